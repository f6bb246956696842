"""What a run of a learner leaves: values, regret, returns, estimates, time; saved, loaded, drawn and compared."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight import checks

Floats = NDArray[np.float64]
COLUMNS = ("values", "half_widths", "returns", "estimates", "seconds")


@dataclass(eq=False)
class LearningRun:
    """values[k]: the value of the policy of episode k, with its half-width (0 where exact); returns[k]: what was earned;
    estimates[k]: the learner's own estimate of the optimal value; seconds[k]: time to plan, play and learn, without the
    valuation. `best`: the value of the best executable policy. `regret[k]`: cumulative."""

    learner: str
    problem: str
    episodes: int
    seed: int
    best: float
    every: int
    evaluate: str
    values: Floats
    half_widths: Floats
    returns: Floats
    estimates: Floats
    seconds: Floats
    done: int = 0
    interrupted: bool = False

    @classmethod
    def empty(
        cls, learner: str, problem: str, episodes: int, seed: int, best: float, every: int, evaluate: str
    ) -> LearningRun:
        blank: dict[str, Any] = {name: np.full(episodes, np.nan) for name in COLUMNS}
        return cls(learner, problem, episodes, seed, best, every, evaluate, **blank)

    @property
    def regret(self) -> Floats:
        """Cumulative regret after each episode."""
        return np.cumsum(self.best - self.values)

    @property
    def gaps(self) -> Floats:
        """What each episode's policy falls short of the best."""
        return self.best - self.values

    @property
    def exact(self) -> bool:
        """Is every value exact and its own?"""
        return self.every == 1 and not (self.half_widths > 0).any()

    def growth(self) -> float:
        """The exponent x of R(2k) − R(k) ~ k^x by least squares over the last three octaves."""
        R = self.regret
        ks = [k for k in (len(R) // 16, len(R) // 8, len(R) // 4, len(R) // 2) if k > 0]
        more = np.maximum([R[2 * k - 1] - R[k - 1] for k in ks], 1e-12)
        return float(np.polyfit(np.log(ks), np.log(more), 1)[0])

    def cut(self) -> LearningRun:
        """The episodes that were done (all of them, unless the run was stopped)."""
        for name in COLUMNS:
            setattr(self, name, getattr(self, name)[: self.done])
        return self

    # -- files ----------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Any]:
        head = {
            k: getattr(self, k) for k in ("learner", "problem", "episodes", "seed", "best", "every", "evaluate", "done")
        }
        return {"head": np.array(json.dumps(head)), **{name: getattr(self, name) for name in COLUMNS}}

    def fill(self, data: dict[str, Any], where: str) -> None:
        """Take over what a checkpoint holds; refused if it is of another run."""
        head = json.loads(str(data["head"]))
        for key in ("learner", "problem", "episodes", "seed", "every", "evaluate"):
            if head[key] != getattr(self, key):
                raise ValueError(
                    f"{where}: a checkpoint of another run: {key} is {head[key]!r}, here {getattr(self, key)!r}; "
                    "give another file"
                )
        self.done = head["done"]
        for name in COLUMNS:
            getattr(self, name)[: len(data[name])] = data[name]

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the run as one npz file (no pickle)."""
        return checks.save_arrays(path, **self.arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> LearningRun:
        data = checks.load_arrays(path, needs=("head", *COLUMNS))
        parts: dict[str, Any] = {name: data[name] for name in COLUMNS}
        return cls(**(json.loads(str(data["head"])) | parts))

    # -- pictures -------------------------------------------------------------------------------------------------

    def plot(self, ax: Any = None, **style: Any) -> Any:
        """Draw the cumulative regret; returns the axes."""
        return compare([self], ax=ax, labels=[self.learner], **style)

    def __repr__(self) -> str:
        regret = f"{self.regret[-1]:.6g}" if len(self.values) else "0"
        how = "" if self.exact else " (valued now and then, or sampled)"
        return f"LearningRun({self.learner}, {self.done:,} episodes, regret {regret}{how})"


def compare(runs: Sequence[LearningRun], *, ax: Any = None, labels: Sequence[str] | None = None, **style: Any) -> Any:
    """Draw the regret of runs on one axes: runs with the same label are seeds of one learner, shown as their mean with a band
    of one standard deviation. Labels are the learners' names if None. Returns the axes."""
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(layout="constrained").subplots()
    names = [run.learner for run in runs] if labels is None else list(labels)
    if len(names) != len(runs):
        raise ValueError(f"{len(names)} labels for {len(runs)} runs; expected one each")
    for name in dict.fromkeys(names):
        mine = [run for run, label in zip(runs, names, strict=True) if label == name]
        n = min(len(run.values) for run in mine)
        curves = np.array([run.regret[:n] for run in mine])
        thin = np.unique(np.linspace(0, n - 1, 400).astype(int))
        mean = curves.mean(axis=0)[thin]
        (line,) = ax.plot(thin + 1, mean, label=f"{name} ({len(mine)} seeds)" if len(mine) > 1 else name, **style)
        if len(mine) > 1:
            band = curves.std(axis=0, ddof=1)[thin]
            ax.fill_between(thin + 1, mean - band, mean + band, alpha=0.2, color=line.get_color(), linewidth=0)
    ax.set_xlabel("episode")
    ax.set_ylabel("cumulative regret\n(band: ± one standard deviation over seeds)")
    ax.legend(frameon=False)
    return ax
