"""What a run of a learner leaves: values, regret, returns, estimates, time; saved, loaded, drawn and compared.

`regret` is against one best executable policy, in expectation over the start. `printed_regret`, of a run made with
`learn(..., by_start=True)`, is the form that the paper prints,

    Σ_k ( max_π V^π(s^k) − V^{π^k}(s^k) ),       s^k the first state of episode k,

whose comparator is chosen for each s^k on its own, as if it knew it. For policies that do not look ahead the two differ
in expectation by  K·( Σ_s rho(s)·max_π V^π(s) − max_π Σ_s rho(s)·V^π(s) ) ≥ 0.  Where the agent sees the first state at
once this is 0, and what is left is the randomness of the draws s^k. Where the start is hidden it is what knowing it would be
worth, times K: nobody who acts on what has arrived can earn that, so the printed form then grows like K for the best
policy too.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from oldlight import checks, drawing, files
from oldlight.arrays import Floats

PERIOD = re.compile(r"\.with_period\([^)]*\)")  # of a channel: no number of a run depends on it
Every = int | Literal["growing"]
GROWING = 16  # values between two powers of two
COLUMNS = ("values", "half_widths", "returns", "estimates", "seconds")
HEAD: dict[str, type | tuple[type, ...]] = {
    "learner": str,
    "problem": str,
    "episodes": int,
    "seed": int,
    "best": (int, float),
    "every": (int, str),
    "evaluate": str,
    "done": int,
    "interrupted": bool,
}  # what stands at the head of a file
BY_START = ("starts", "start_values")  # columns of a run with by_start=True


def valued(every: Every, k: Any) -> Any:
    """Is the policy of episode k (from 0) valued? `every=n`: every n-th. "growing": the first 32, then every 2nd up to 64, every 4th up to 128, ..:
    a value stands for at most one sixteenth of the episodes so far, so the first policies do not count as if they had been played for longer."""
    k = np.asarray(k)
    step = (
        np.maximum(1, 2 ** np.frexp(np.maximum(k, 1))[1].astype(np.int64) // (2 * GROWING))
        if every == "growing"
        else every
    )
    return k % step == 0


def checked_every(every: Any) -> Every:
    """`every` of `learn`: a number of episodes, or "growing"."""
    return (
        "growing" if every == "growing" else checks.whole('every (a number of episodes, or "growing")', every, least=1)
    )


@dataclass(eq=False)
class LearningRun:
    """What a run leaves; every column has shape (episodes,).

    Parameters
    ----------
    learner, problem : str
        Who learnt, and what: the learner's class and the problem's repr.
    episodes : int
        How many were asked for.
    seed : int
        Random seed.
    best : float
        The value of the best executable policy.
    every : int or "growing"
        Which episodes' policies were valued: every n-th, or those of `valued`.
    evaluate : "exact" or "sampled"
        How.
    values, half_widths : ndarray
        The value of each episode's policy, and half of its 95% confidence interval (0 where exact).
    returns : ndarray
        What was earned.
    estimates : ndarray
        The learner's own estimate of the optimal value.
    seconds : ndarray
        Time to plan, play and learn, without the valuation.
    done : int
        How many episodes were complete.
    interrupted : bool
        Did Ctrl-C end it?
    starts, start_values : ndarray, optional
        With by_start=True: the first state (of step −warmup) of each episode, and the value of its policy from there.
    best_by_start : ndarray, shape (S,), optional
        The best executable value when the first state is s and known (NaN for an s that no episode begins in).

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.center_chain(0.8), ol.ConstantDelay(1))
    >>> run = ol.learn(problem, ol.learners.UniformRandom(), 20, seed=1)
    >>> print(run)
    LearningRun of UniformRandom
      problem                   ImpairedMDP(TabularMDP(S=20, A=5, H=10, stationary), ConstantDelay(d=1), start=cold)
      seed                      1
      episodes                  20 of 20
      regret                    56.4138
      value of the last policy  0.40011
      best executable value     3.2208
      mean return               0.1
      learner's estimate        nan
      seconds                   ...
      values                    exact
    >>> len(run.to_dict()["regret"])
    20
    """

    learner: str
    problem: str
    episodes: int
    seed: int
    best: float
    every: Every
    evaluate: str
    values: Floats
    half_widths: Floats
    returns: Floats
    estimates: Floats
    seconds: Floats
    done: int = 0
    interrupted: bool = False
    starts: NDArray[np.int64] | None = None
    start_values: Floats | None = None
    best_by_start: Floats | None = None

    @classmethod
    def empty(cls, episodes: int, best_by_start: Floats | None, **settings: Any) -> LearningRun:
        """A run of which no episode is done yet; settings: the fields before `values`."""
        blank: dict[str, Any] = {name: np.full(episodes, np.nan) for name in COLUMNS}
        if best_by_start is not None:
            blank |= {"starts": np.full(episodes, -1), "start_values": np.full(episodes, np.nan)}
        return cls(episodes=episodes, best_by_start=best_by_start, **settings, **blank)

    @property
    def regret(self) -> Floats:
        """Cumulative regret after each episode."""
        return np.cumsum(self.best - self.values)

    @property
    def printed_regret(self) -> Floats:
        """Cumulative regret as the paper prints it, against a comparator that knows the start of each episode (see the
        module's text). Only for a run made with `learn(..., by_start=True)`."""
        if self.starts is None or self.start_values is None or self.best_by_start is None:
            raise ValueError("this run did not record where its episodes began; run learn(..., by_start=True)")
        return np.cumsum(self.best_by_start[self.starts] - self.start_values)

    @property
    def shortfalls(self) -> Floats:
        """best − values: the regret of each episode, shape (episodes,)."""
        return self.best - self.values

    gaps = checks.renamed_property("gaps", "shortfalls")

    @property
    def exact(self) -> bool:
        """Is every value exact and its own?"""
        return self.every == 1 and self.sampled == 0

    @property
    def sampled(self) -> int:
        """How many values are means of played episodes, with a half-width, because the policy was too much work to value exactly (or because of
        `evaluate="sampled"`)."""
        return int(np.count_nonzero(self.half_widths > 0))

    def first_within(self, eps: float, *, for_good: bool = False) -> int | None:
        """The first episode (from 0) whose policy is within `eps` of the best executable one; for_good: and so is every later one. None if there
        is none. Values are as exact as those of the run."""
        if not eps >= 0:
            raise ValueError(f"eps is {eps!r}, expected a number ≥ 0")
        near = self.shortfalls <= eps
        if for_good:
            near = np.logical_and.accumulate(near[::-1])[::-1]
        found = np.flatnonzero(near)
        return int(found[0]) if len(found) else None

    def growth(self) -> float:
        """The exponent x of R(2k) − R(k) ~ k^x by least squares over the last three octaves; NaN below four episodes."""
        R = self.regret
        ks = [k for k in (len(R) // 16, len(R) // 8, len(R) // 4, len(R) // 2) if k > 0]
        if len(ks) < 2:
            return float("nan")
        more = np.maximum([R[2 * k - 1] - R[k - 1] for k in ks], 1e-12)
        return float(np.polyfit(np.log(ks), np.log(more), 1)[0])

    def cut(self) -> LearningRun:
        """The episodes that were done (all of them, unless the run was stopped)."""
        for name in self._columns:
            setattr(self, name, getattr(self, name)[: self.done])
        return self

    @property
    def _columns(self) -> tuple[str, ...]:
        return COLUMNS if self.starts is None else COLUMNS + BY_START

    # -- files ----------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Any]:
        """The arrays of a file: the head as JSON, and the columns as far as they are done."""
        head = {name: getattr(self, name) for name in HEAD}
        columns = {name: getattr(self, name)[: self.done] for name in self._columns}
        if self.best_by_start is not None:
            columns["best_by_start"] = self.best_by_start
        return {"head": np.array(json.dumps(head)), **columns}

    def fill(self, held: files.Arrays, where: str) -> None:
        """Take over what a checkpoint holds; refused if it is of another run."""
        head, columns = _held(held)
        head["by_start"] = "starts" in columns
        here = vars(self) | {"by_start": self.starts is not None}
        for key in ("learner", "problem", "episodes", "seed", "every", "evaluate", "by_start"):
            if PERIOD.sub("", str(head[key])) != PERIOD.sub("", str(here[key])):
                raise files.UnreadableFile(
                    f"{where}: a checkpoint of another run: {key} is {head[key]!r}, here {here[key]!r}; "
                    "give another file"
                )
        self.done = head["done"]
        for name in self._columns:
            getattr(self, name)[: len(columns[name])] = columns[name]

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the run as one npz file (no pickle)."""
        return checks.save_arrays(path, **self.arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> LearningRun:
        """Read what `save` wrote, or a checkpoint."""
        with files.arrays_in(path) as held:
            head, columns = _held(held)
            return cls(**(head | columns))

    # -- to look at -----------------------------------------------------------------------------------------------

    def plot(self, ax: Any = None, **style: Any) -> Any:
        """Draw the cumulative regret on the axes (new ones if None); returns the axes."""
        return compare([self], ax=ax, labels=[self.learner], **style)

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values: what stands at the head of a file, and each column, with the regret, as a list."""
        columns = {name: getattr(self, name).tolist() for name in (*self._columns, "regret")}
        by_start = {} if self.best_by_start is None else {"best_by_start": self.best_by_start.tolist()}
        return {name: getattr(self, name) for name in HEAD} | columns | by_start

    def __str__(self) -> str:
        """A small table."""
        rows = {"problem": self.problem, "seed": self.seed, "episodes": f"{self.done:,} of {self.episodes:,}"}
        if len(self.values):
            rows |= {
                "regret": f"{self.regret[-1]:.6g}",
                "value of the last policy": f"{self.values[-1]:.6g}",
                "best executable value": f"{self.best:.6g}",
                "mean return": f"{self.returns.mean():.6g}",
                "learner's estimate": f"{self.estimates[-1]:.6g}",
                "seconds": f"{self.seconds.sum():.3g}",
            }
        how = [self._which()] if self.every != 1 else []
        how += [f"{self.sampled:,} sampled: each ± {self.half_widths.max():.2g} or less (95%)"] if self.sampled else []
        rows |= {"values": ", ".join(how) or "exact"} | ({"interrupted": "yes"} if self.interrupted else {})
        return drawing.facts(f"LearningRun of {self.learner}", rows)

    def _which(self) -> str:
        return "valued ever more seldom" if self.every == "growing" else f"valued every {self.every} episodes"

    def __repr__(self) -> str:
        regret = f"{self.regret[-1]:.6g}" if len(self.values) else "0"
        how = f", {self._which()}" if self.every != 1 else ""
        if self.sampled:
            how += f", {self.sampled:,} values sampled: each ± {self.half_widths.max():.2g} or less (95%)"
        return f"LearningRun({self.learner}, {self.done:,} episodes, regret {regret}{how})"


def _held(held: files.Arrays) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The head and the columns of a run in a file, checked: as many rows as episodes (as were done, once it is over)."""
    head = held.table("head", **HEAD)
    episodes = checks.whole("episodes", head["episodes"], least=1)
    checks.whole("done", head["done"], most=episodes)
    checked_every(head["every"])
    rows = held.shape("values")
    if rows not in ((episodes,), (head["done"],)):
        raise ValueError(f"'values' has shape {rows}, with {head['done']} of {episodes} episodes done")
    columns = {name: held.array(name, "f", rows) for name in COLUMNS}
    if "starts" in held:
        columns |= {"starts": held.array("starts", "i", rows), "start_values": held.array("start_values", "f", rows)}
        best = columns["best_by_start"] = held.array("best_by_start", "f", (None,))
        if ((columns["starts"] < -1) | (columns["starts"] >= len(best))).any():
            raise ValueError(f"'starts' names states outside 0..{len(best) - 1}")
    return head, columns


def compare(runs: Sequence[LearningRun], *, ax: Any = None, labels: Sequence[str] | None = None, **style: Any) -> Any:
    """Draw the regret of runs on one axes.

    Runs with the same label are seeds of one learner, drawn as their mean with a band of one standard deviation.

    Parameters
    ----------
    runs : sequence of LearningRun
        What to draw.
    ax : matplotlib axes, optional
        New ones if None.
    labels : sequence of str, optional
        One for each run; the learners' names if None.
    **style
        Of the lines, as matplotlib takes it.

    Returns
    -------
    matplotlib axes
        On which was drawn.

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.center_chain(0.8), "constant:1")
    >>> runs = ol.learners.learn_seeds(problem, ol.learners.UniformRandom, 20, seeds=range(3))
    >>> ol.compare(runs).get_legend().get_texts()[0].get_text()
    'UniformRandom (3 seeds)'
    """
    ax = drawing.axes_of(ax)
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
