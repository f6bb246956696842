"""The page of a study of deep learners: learning curves as shares of the exact optimum, or of a plan on a grid where there is no table.

**The yardstick** of an environment behind a link is V: the exact optimum where the process has a table (`oldlight.solve`, as the job of the learner
says), else the mean return of the job `oldlight.deep:plan_on_grid` of the same environment and link, else nothing. A mean return R is shown as

    share = (R − B)/(V − B),        B = 0 where V > 0, else the mean return of uniformly random actions, which that job says too

(on Pendulum all returns are negative, and R/V would grow with what is lost). Without a yardstick the curves are mean returns. The exact optimum is never
exceeded but by the noise of test episodes; a plan on a grid can be. Bands are those of every page; ± in tables is half of the 95 % interval for
the mean over seeds, by Student's law with n − 1 degrees of freedom.
"""

from __future__ import annotations

import inspect
import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oldlight.deep import SETTINGS, train
from oldlight.report import summary
from oldlight.report.charts import Lines, Panels, Reference, Series, seeds_band
from oldlight.report.markup import plain
from oldlight.report.page import Page, Table
from oldlight.report.study_page import finished, made_by, missing
from oldlight.studies import Result

TRAIN, GRID = "oldlight.deep:train", "oldlight.deep:plan_on_grid"
LOOKS = {"full": "dotted", "augmented": "solid", "newest": "broken", "forward model": "dash-dot"}
COLOURS = ("PPO", "DQN", "RecurrentPPO", "SAC")


class Yardstick(NamedTuple):
    """What returns are measured by."""

    name: str
    value: float
    base: float
    half_width: float = 0.0

    def share(self, returns: Any) -> NDArray[np.float64]:
        """(R − B)/(V − B)."""
        shares: NDArray[np.float64] = (np.asarray(returns, dtype=np.float64) - self.base) / (self.value - self.base)
        return shares

    def __str__(self) -> str:
        noise = f" ± {self.half_width:.3g}" if self.half_width > 0 else ""
        below = "" if self.base == 0 else f"; random actions {self.base:.5g}"
        return f"{self.name} {self.value:.5g}{noise}{below}"


def deep_page(folder: str | os.PathLike[str]) -> Page:
    """The page of a folder of `oldlight.deep:train` jobs, with those of `oldlight.deep:plan_on_grid`; it says how many others are in it."""
    everything = finished(folder)
    found, plans = ([r for r in everything if task_settings(r).get("name") == name] for name in (TRAIN, GRID))
    if not found:
        raise ValueError(f"{folder}: no finished job of oldlight.deep:train in it")
    page = Page(
        "Deep learners behind a bad link",
        lead="Learners that see everything (*full*), all that an agent behind the link can know (*augmented*), the newest observation alone (*newest*), or the "
        "present observation as a learned model predicts it, for a policy that was trained without the link (*forward model*). "
        "Each point is the mean return of the greedy policy over test episodes behind the same link, as a share of the exact optimum or, where "
        "there is no table, of a plan on a grid.",
    )
    others = [r for r in everything if r not in found and r not in plans]
    names = ", ".join(plain(label) for (label,) in summary.groups(others, "label"))
    more = [f"{len(others)} finished jobs are not of oldlight.deep:train and are not on this page: {names}."]
    missing(page, folder, *(more if others else []))
    for (instance,), jobs in summary.groups(found, "instance").items():
        page.section(instance)
        full = [r for r in jobs if _options(r).get("observation") == "full"]
        rest = [r for r in jobs if r not in full]
        measured = [(yardstick(some, plans), channel, some) for (channel,), some in summary.groups(rest or full, "channel").items()]  # fmt: skip
        panels = [panel(some, full, channel, by) for by, channel, some in measured]
        alike = len({by is None for by, _, _ in measured}) == 1
        page.figure(Panels(f"Learning on the {instance}", panels, share=alike, caption=_caption(measured)))
        page.table(Table(*rows(jobs, plans)))
        page.table(Table(["learner", "what was run"], _recipes(jobs), caption="Every learner with all its options."))
    made_by(page, [*found, *plans], folder)
    return page


def yardstick(jobs: Sequence[Result], plans: Sequence[Result]) -> Yardstick | None:
    """What the jobs of one environment and link are measured by; see the module's text."""
    exact = {round(r.scalars["optimum"], 9) for r in jobs if np.isfinite(r.scalars["optimum"])}
    if len(exact) == 1 and (best := exact.pop()) > 0:
        return Yardstick("exact optimum", best, 0.0)
    where = jobs[0].instance, jobs[0].channel
    for r in plans:
        if (r.instance, r.channel) == where:
            value, random = float(r.scalars["mean"]), float(r.scalars["random"])
            base = 0.0 if value > 0 else random
            if value > base:
                return Yardstick("plan on a grid", value, base, float(r.scalars["half_width"]))
    return None


def panel(jobs: Sequence[Result], full: Sequence[Result], title: str, by: Yardstick | None) -> Lines:
    """The curves of one channel, with those of full observation for comparison, under the yardstick of this channel."""
    series = []
    for (label,), runs in summary.groups([*jobs, *(r for r in full if r not in jobs)], "label").items():
        algorithm, _, looks_at = label.partition(", ")
        points = min(len(r.columns["at"]) for r in runs)
        returns = np.array([r.columns["returns"][:points] for r in runs])
        series.append(
            Series.over_seeds(
                label, runs[0].columns["at"][:points], returns if by is None else by.share(returns),
                colour=COLOURS.index(algorithm) if algorithm in COLOURS else None, dash=LOOKS.get(looks_at), marks=True,
            )
        )  # fmt: skip
    lines = [] if by is None else [Reference(f"{by.name} {by.value:.4g}", 1.0)]
    n = max(len(runs) for runs in summary.groups(jobs, "label").values())
    what = "mean return" if by is None else f"share of the {by.name}"
    return Lines(title, "steps of training", what, series, references=lines, percent_y=by is not None, band=seeds_band(n))  # fmt: skip


def rows(jobs: Sequence[Result], plans: Sequence[Result]) -> tuple[list[str], list[list[Any]], str]:
    """The last fifth of each training, and its share of the yardstick."""
    out: list[list[Any]] = []
    for (channel, label), runs in summary.groups(jobs, "channel", "label").items():
        final = np.array([r.scalars["final"] for r in runs])
        by = yardstick(runs, plans)
        mean, half = _interval(final)
        share, noise = (None, None) if by is None else (by.share(mean).item(), half / (by.value - by.base))
        out.append([
            channel, label, len(runs), round(mean, 3), _rounded(half, 3), "nothing" if by is None else str(by),
            None if share is None else round(100 * share, 1), None if noise is None else _rounded(100 * noise, 1),
        ])  # fmt: skip
    titles = ["channel", "learner", "seeds", "final return", "± 95 %", "compared with", "% of it", "± % of it"]
    text = "Mean over the last fifth of the points of the training, at least the last one; ± is half of the 95 % interval over seeds (Student)."
    if any("random actions" in str(row[5]) for row in out):
        text += " Returns are negative here: 0 % is what random actions earn."
    return titles, out, text


def _interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """(mean, half of the 95 % interval), NaN for one seed."""
    from scipy.stats import t

    n = len(values)
    if n < 2:
        return float(values.mean()), math.nan
    return float(values.mean()), float(t.ppf(0.975, n - 1) * values.std(ddof=1) / math.sqrt(n))


def _rounded(value: float, digits: int) -> float | None:
    return None if math.isnan(value) else round(value, digits)


def _caption(measured: Sequence[tuple[Yardstick | None, str, Any]]) -> str:
    """What 100 % is in each panel."""
    known = [f"{channel}: {by}" for by, channel, _ in measured if by is not None]
    if not known:
        return "Mean returns: there is neither a table nor a plan on a grid to compare with."
    zero = "; 0 % is what random actions earn" if any(by is not None and by.base != 0 for by, _, _ in measured) else ""
    return f"100 % is: {'; '.join(known)}{zero}."


def _recipes(jobs: Sequence[Result]) -> list[list[Any]]:
    """Each label with its algorithm and all options, as they were run."""
    out = []
    defaults = {name: option.default for name, option in inspect.signature(train).parameters.items()}
    for (label,), runs in summary.groups(jobs, "label").items():
        options = defaults | dict(_options(runs[0]))
        algorithm = options["algorithm"]
        settings = SETTINGS.get(algorithm, {}) | dict(options["settings"] or {})
        given = ", ".join(f"{name}={json.dumps(value)}" for name, value in settings.items())
        library = "sb3_contrib" if algorithm == "RecurrentPPO" else "stable_baselines3"
        length = f"{options['steps']:,} steps, {options['test_episodes']:,} test episodes at each of {options['points'] + 1} points"
        out.append([label, f'{library} {algorithm}({given}), observation="{options["observation"]}", {length}'])
    return out


def task_settings(result: Result) -> Mapping[str, Any]:
    task: Mapping[str, Any] = result.settings.get("task", {})
    return task


def _options(result: Result) -> Mapping[str, Any]:
    options: Mapping[str, Any] = task_settings(result).get("options", {})
    return options
