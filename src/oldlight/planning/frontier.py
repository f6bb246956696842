"""The frontier over two impairments: for each level of the first the largest level of the second that still reaches the target.

Each is a requirement of its own, with its certificates (`oldlight.planning.requirement_search`); all of them share what is known of the values
(`oldlight.planning.known_points`), so that where values fall along both, the answer at one level bounds the next. The map below the curve has
the value at every pair of its levels to within 1 % of the value with full information, from the plans that the curve needed where they tell enough.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from oldlight import drawing
from oldlight.arrays import Floats
from oldlight.planning.impairments import IMPAIRMENTS
from oldlight.planning.known_points import KnownPoints
from oldlight.planning.requirement_result import Requirement, said
from oldlight.planning.requirement_search import Question, along, last, reaches

MAP = 0.01  # of the value with full information: how well the values of the map are known


@dataclass(frozen=True, eq=False)
class Frontier(drawing.Result):
    """Which pairs of two impairments a plant can stand; made by `requirement`.

    Parameters
    ----------
    over : (str, str)
        The two impairments, x and y.
    target, full : float
        The value that has to be reached, and that with full information.
    requirements : list of Requirement
        Over y, one for each level of x, with its certificates.
    x : ndarray, shape (m,)
        The levels of x.
    y : ndarray, shape (n,)
        The levels of y in the map.
    lower, upper : ndarray, shape (m, n)
        Bounds on the best executable value at x[i], y[j]; NaN where that is no link (a jitter above the mean delay).
    period_ms : float, optional
        Milliseconds of a step.
    plans, reused : int
        Plans that were made, and levels that a neighbour's plan decided.
    seconds : float
        Time taken.

    Examples
    --------
    >>> import oldlight as ol
    >>> chain = ol.instances.sensing_chain(0.8, horizon=5)
    >>> print(ol.requirement(chain, target="75%", over=("delay", "loss"), grid=3))
      delay    loss     value  certificate
    0 steps  61.5 %  0.901449    certified
     1 step   8.6 %  0.901297    certified
    2 steps    none     0.724        never
    """

    over: tuple[str, str]
    target: float
    full: float
    requirements: list[Requirement]
    x: Floats
    y: Floats
    lower: Floats
    upper: Floats
    period_ms: float | None
    plans: int
    reused: int
    seconds: float
    _data = "over target full period_ms plans reused seconds x y lower upper answers requirements"

    @property
    def answers(self) -> Floats:
        """The largest level of y for each level of x, NaN where none reaches the target; shape (m,)."""
        return np.array([np.nan if r.answer is None else r.answer for r in self.requirements])

    @property
    def values(self) -> Floats:
        """The best executable value at x[i], y[j]: the middle of its bounds; shape (m, n)."""
        return np.where(np.isfinite(self.lower), (self.lower + self.upper) / 2, self.upper)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each level of x."""
        x, y = self.over
        return [
            {
                x: said(x, float(level), self.period_ms, held=True),
                y: r.answer_text,
                "value": (r.reached or r.points[0]).value,
                "certificate": r.status,
            }
            for level, r in zip(self.x, self.requirements, strict=True)
        ]

    def plot(self, ax: Any = None) -> Any:
        """Draw the frontier as a curve over a map of the values; returns the matplotlib axes."""
        ax = drawing.axes_of(ax)
        scale = [100.0 if name == "loss" else 1.0 for name in self.over]
        shown = np.ma.masked_invalid(self.values.T)
        ready = len(self.x) > 1 and len(self.y) > 1
        x, y = (self.x * scale[0], self.y * scale[1])
        if ready:
            image = ax.pcolormesh(x, y, shown, shading="nearest", cmap="viridis")
            ax.figure.colorbar(image, ax=ax, label="best executable value")
        ax.plot(x, self.answers * scale[1], "o-", color="white", lw=3.5, ms=6)
        ax.plot(x, self.answers * scale[1], "o-", color="#c8553d", lw=2, ms=4, label=f"reaches {self.target:.4g}")
        for axis, name in ((ax.set_xlabel, self.over[0]), (ax.set_ylabel, self.over[1])):
            axis(f"{IMPAIRMENTS[name].label} [{IMPAIRMENTS[name].unit}]")
        ax.legend(fontsize=8)
        return ax

    def __str__(self) -> str:
        """A small table."""
        return drawing.columns(self.rows)

    def __repr__(self) -> str:
        reached = int(np.isfinite(self.answers).sum())
        return f"Frontier({self.over[0]} × {self.over[1]}, target {self.target:.6g}: reached at {reached} of {len(self.x)} levels, {self.plans} plans)"


def frontier(asked: Question, count: int) -> Frontier:
    """The frontier of a question over two impairments, with `count` levels of each where none are given."""
    began, known = time.perf_counter(), asked.known()
    chosen = asked.given
    grid = asked.grids[0] if asked.names[0] in chosen else _levels_of_x(asked, known, count)
    found: list[Requirement] = []
    for k, level in enumerate(grid):
        found.append(along(asked, known, (float(level),)))
        if asked.progress is not None:
            asked.progress(k + 1, 2 * len(grid))
        if asked.order(0)[0] and asked.names[0] not in chosen and found[-1].status == "never":
            break
    x = grid[: len(found)]
    y = asked.grids[1] if asked.names[1] in chosen else _levels_of_y(asked, found, count)
    lower, upper = np.full((2, len(x), len(y)), np.nan)
    for i, level in enumerate(x):
        for j in np.flatnonzero(np.isin(y, asked.grid((float(level),))) | (asked.names[1] not in ("jitter", "delay"))):
            bounds = known.within((float(level), float(y[j])), MAP * abs(asked.full))
            lower[i, j], upper[i, j] = bounds.lower, bounds.upper
        if asked.progress is not None:
            asked.progress(len(x) + i + 1, 2 * len(x))
    names = (asked.names[0], asked.names[1])
    seconds = time.perf_counter() - began
    return Frontier(names, asked.target, asked.full, found, x, y, lower, upper, asked.period_ms, known.plans, known.reused, seconds)  # fmt: skip


def _levels_of_x(asked: Question, known: KnownPoints, count: int) -> Floats:
    """Where the curve is drawn: whole steps one by one; of a rate or a length, levels up to its own requirement."""
    grid = asked.grids[0]
    if not asked.order(0)[0]:
        return _thinned(grid, count)
    if not IMPAIRMENTS[asked.names[0]].refined:
        return grid

    def holds(level: float) -> bool:
        first = (float(level), float(asked.grid((float(level),))[0]))
        return reaches(known, known.against(first, asked.target), asked.target) is True

    return _thinned(grid[: max(last(grid, holds), 0) + 1], count)


def _levels_of_y(asked: Question, found: list[Requirement], count: int) -> Floats:
    """The map goes a quarter beyond the largest answer."""
    grid = asked.grids[1]
    largest = max((r.answer for r in found if r.answer is not None), default=float(grid[-1]))
    return _thinned(grid[: max(int(np.searchsorted(grid, 1.25 * largest, side="right")), 2)], count)


def _thinned(grid: Floats, count: int) -> Floats:
    return np.asarray(grid[np.unique(np.linspace(0, len(grid) - 1, min(count, len(grid))).round().astype(int))])
