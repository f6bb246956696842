"""How the levels of an impairment are searched for the last one that reaches a target; see `oldlight.planning.requirement`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from oldlight.arrays import Floats
from oldlight.model.channels import Loss
from oldlight.model.mdp import TabularMDP
from oldlight.model.problem import ImpairedMDP, Start
from oldlight.planning.gap import rounding
from oldlight.planning.holding import held
from oldlight.planning.impairments import CONTROL, IMPAIRMENTS, falls, in_steps, link_of
from oldlight.planning.known_points import Bounds, KnownPoints, Levels
from oldlight.planning.link_plan import kept_actions, with_actions
from oldlight.planning.requirement_result import Point, Requirement
from oldlight.planning.search import CLOSED, magnitude
from oldlight.progress import Callback

REFINEMENTS = 4  # of the grid of a rate, each by ten
GUESSES = 12  # by interpolation, before levels are bisected
GIVE_UP = 3  # delays in a row that are not decided
PlantAt = Callable[[float], TabularMDP]


@dataclass(eq=False)
class Question:
    """What is asked: a plant, what is varied over which levels, what else the link does, and the target."""

    mdp: TabularMDP | PlantAt
    names: tuple[str, ...]
    at: dict[str, float]
    period_ms: float | None
    start: Start
    actuation: int
    tolerance: float
    seconds: float | None
    max_bytes: int | None
    target: float = np.nan
    full: float = np.nan
    grids: list[Floats] = field(default_factory=list)
    given: frozenset[str] = frozenset()  # those whose levels the caller chose: they are not refined
    progress: Callback | None = None

    def __post_init__(self) -> None:
        self._plants: Callable[[float], TabularMDP] = cache(self._plant)

    @property
    def by_period(self) -> bool:
        """Is the plant a function of the control period, whose levels then are milliseconds?"""
        return not isinstance(self.mdp, TabularMDP)

    def _plant(self, n: float) -> TabularMDP:
        mdp = held(self.mdp, int(n)) if isinstance(self.mdp, TabularMDP) else self.mdp(n)
        if not isinstance(mdp, TabularMDP):
            raise TypeError(
                f"mdp({n:g}) is of type {type(mdp).__name__}, expected a TabularMDP for this control period"
            )
        return mdp if self.actuation else with_actions(mdp, kept_actions(mdp)[0])

    def problem(self, levels: Levels) -> ImpairedMDP:
        """The problem at these levels. Actions that do the same are one, which changes no value."""
        varied = dict(zip(self.names, levels, strict=True))
        n = varied.pop(CONTROL, 1.0)
        plant = self._plants(n)
        steps = in_steps(self.at, 1.0 if self.by_period else self.period_ms, n) | varied
        link = link_of(steps)
        if steps.get("delay", 0) >= plant.finite_horizon and self.start in (None, "cold"):
            link = Loss(rate=1.0)  # nothing is seen within the episode
        period = n if self.by_period else None if self.period_ms is None else n * self.period_ms
        return ImpairedMDP(plant, link.with_period(period), start=self.start, actuation=self.actuation)

    def known(self) -> KnownPoints:
        """An empty table of what is known about the values at all levels."""
        first = self.problem(tuple(float(grid[0]) for grid in self.grids))
        slack = rounding(first) + CLOSED * magnitude(first.mdp)
        order = tuple(self.order(i)[0] for i in range(len(self.names)))
        width = self.tolerance * abs(self.full)
        return KnownPoints(self.problem, order, width, slack, self.seconds, self.max_bytes)

    def grid(self, before: Levels = ()) -> Floats:
        """The levels of the next impairment, with those before it fixed: a jitter is at most the mean delay."""
        name, grid, fixed = (
            self.names[len(before)],
            self.grids[len(before)],
            dict(zip(self.names, before, strict=False)),
        )
        if name == "jitter" and "delay" in fixed:
            return grid[grid <= fixed["delay"]]
        return grid[grid >= fixed["jitter"]] if name == "delay" and "jitter" in fixed else grid

    def order(self, i: int) -> tuple[bool, str]:
        """Do values fall along the i-th impairment, and why or why not?"""
        steps = in_steps(self.at, self.period_ms or 1.0)
        return falls(self.names[i], self.grids[i], steps, self.start not in (None, "cold"))


def along(asked: Question, known: KnownPoints, before: Levels = (), began: float | None = None) -> Requirement:
    """The requirement over the last impairment of a question, the others fixed at the levels `before`."""
    began = time.perf_counter() if began is None else began
    made, reused = known.plans, known.reused
    monotone, why = asked.order(len(before))
    grid = asked.grid(before)

    def look(level: float) -> Bounds:
        return known.against((*before, float(level)), asked.target)

    def result() -> Requirement:
        return _result(
            asked,
            known,
            before,
            why,
            monotone,
            (known.plans - made, known.reused - reused, time.perf_counter() - began),
        )

    try:
        if not monotone:
            for k, level in enumerate(grid):
                look(level)
                if asked.progress is not None and not before:
                    asked.progress(k + 1, len(grid))
        elif asked.names[len(before)] == "delay":
            _upwards(asked, known, grid, look)
        else:
            _bisected(asked, known, grid, look, before)
    except KeyboardInterrupt as stopped:
        stopped.partial = result() if known.points else None  # type: ignore[attr-defined]
        raise
    return result()


def _upwards(asked: Question, known: KnownPoints, grid: Floats, look: Callable[[float], Bounds]) -> None:
    """Every level until one fails, or too many in a row are not decided."""
    doubtful = 0
    for level in grid:
        found = look(level)
        if reaches(known, found, asked.target) is False:
            return
        doubtful = doubtful + 1 if reaches(known, found, asked.target) is None else 0
        if doubtful == GIVE_UP:
            return


def _bisected(
    asked: Question, known: KnownPoints, grid: Floats, look: Callable[[float], Bounds], before: Levels
) -> None:
    """The last level that reaches the target and the first that fails it; the grid is refined between them."""
    name = asked.names[len(before)]
    for _ in range(REFINEMENTS + 1):
        low = last(
            grid, lambda x: reaches(known, look(x), asked.target) is True, lambda x: look(x).value - asked.target
        )
        high = low + 1
        if high < len(grid) and reaches(known, look(grid[high]), asked.target) is None:
            high = last(grid, lambda x: reaches(known, look(x), asked.target) is not False) + 1
        for i in {low, high} & set(range(len(grid))):  # the certificates are plans of their own
            found = look(grid[i])
            if found.how != "a plan":
                known.planned((*before, float(grid[i])), known.tolerance)
        if low < 0 or high >= len(grid) or high > low + 1 or not IMPAIRMENTS[name].refined or name in asked.given:
            return
        drop = look(grid[low]).value - look(grid[high]).value
        finer = np.linspace(grid[low], grid[high], 11).round(12)
        steps = in_steps(asked.at, asked.period_ms or 1.0)
        if (
            drop <= asked.tolerance * abs(asked.full)
            or not falls(name, finer, steps, False)[0]
            or (0 < finer[1] < 1 and name == "blackout")
        ):
            return
        grid = finer


def last(grid: Floats, holds: Callable[[float], bool], above: Callable[[float], float] | None = None) -> int:
    """The last index of a level at which something holds that holds up to some level and not beyond; −1 if nowhere.

    above(level): how far above the target the value is there, to guess where it holds last (the Illinois variant of false position, which
    halves the distance of an end that stays); after a few guesses, or without it, the levels are bisected.
    """
    if not holds(grid[0]):
        return -1
    if holds(grid[-1]):
        return len(grid) - 1
    low, high, stayed, guesses = 0, len(grid) - 1, 0, 0 if above is None else GUESSES
    ends = [0.0, 0.0] if above is None else [above(grid[0]), above(grid[-1])]
    while high - low > 1:
        middle = (low + high) // 2
        if guesses > 0 and ends[0] > ends[1]:
            share = (grid[low] * -ends[1] + grid[high] * ends[0]) / (ends[0] - ends[1])
            middle = min(max(int(np.searchsorted(grid, share, side="right")) - 1, low + 1), high - 1)
            guesses -= 1
        here = 0.0 if above is None else above(grid[middle])
        if holds(grid[middle]):
            low, ends = middle, [here, ends[1] / 2 if stayed > 0 else ends[1]]
            stayed = 1
        else:
            high, ends = middle, [ends[0] / 2 if stayed < 0 else ends[0], here]
            stayed = -1
    return low


def reaches(known: KnownPoints, found: Bounds, target: float) -> bool | None:
    if found.lower >= target - known.slack:
        return True
    return False if found.upper < target - known.slack else None


def _result(
    asked: Question, known: KnownPoints, before: Levels, why: str, monotone: bool, work: tuple[int, int, float]
) -> Requirement:
    here = sorted((levels[-1], found) for levels, found in known.points.items() if levels[:-1] == before)
    points = [Point(x, b.lower, b.upper, b.channel, reaches(known, b, asked.target), b.how) for x, b in here]
    good = 0
    while good < len(points) and points[good].reaches:
        good += 1
    reached = points[good - 1] if good else None
    failed = next((p for p in points[good:] if p.reaches is False), None)
    end = np.inf if failed is None else failed.level
    undecided = [p.level for p in points[good:] if p.reaches is None and p.level < end]
    again: list[list[float]] = []
    for p, previous in zip(points[good:], [None, *points[good:]], strict=False):
        if p.reaches and p.level > end:
            if again and previous is not None and previous.reaches:
                again[-1][1] = p.level
            else:
                again.append([p.level, p.level])
    fixed = {**asked.at, **dict(zip(asked.names, before, strict=False))}
    return Requirement(
        asked.names[len(before)], asked.target, asked.full, None if reached is None else reached.level, reached, failed, undecided,
        [(a, b) for a, b in again], points, monotone, why, fixed, asked.period_ms, *work,
        held=asked.names[len(before)] == CONTROL and not asked.by_period,
    )  # fmt: skip
