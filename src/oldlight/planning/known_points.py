"""Bounds on the best executable value at many levels of impairments, each planned at most once, with what the neighbours tell.

A point is a tuple of levels, one for each impairment that is varied. Along those that are ordered (`oldlight.planning.impairments`) values fall, so

    upper(x) ≤ upper(x') for x' ≤ x,      lower(x) ≥ lower(x') for x' ≥ x,      x and x' equal where there is no order.

Asked whether the value at x reaches a target, three things are tried, the cheapest first: what the order tells; what the policy of the nearest plan
earns behind this link (for losses with one delay: a policy is a table of action sequences, which can be followed at any loss rate); a plan, to the
tolerance, and exactly where that does not decide. Where tables would not fit, a ladder (`oldlight.planning.ladder`) bounds the value from above, and from
below where its policy could be walked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from oldlight.checks import TooLarge
from oldlight.model.channels import Channel
from oldlight.model.policies import BlackoutPolicy
from oldlight.model.problem import ImpairedMDP
from oldlight.planning import solve
from oldlight.planning.evaluation import evaluate

Levels = tuple[float, ...]
SMALL = 2**26  # bytes of the tables of a ladder, which is valued rung by rung


@dataclass(frozen=True)
class Bounds:
    """lower ≤ the best executable value ≤ upper at these levels; `how` it was found."""

    levels: Levels
    lower: float
    upper: float
    channel: Channel
    how: str

    @property
    def value(self) -> float:
        """The middle of the bounds, or the one that there is."""
        return self.upper if not np.isfinite(self.lower) else (self.lower + self.upper) / 2


@dataclass(eq=False)
class KnownPoints:
    """What is known so far.

    problem_of: the problem at given levels; ordered: which of them values fall along; slack: the rounding of a value; tolerance, seconds,
    max_bytes: of a plan.
    """

    problem_of: Callable[[Levels], ImpairedMDP]
    ordered: tuple[bool, ...]
    tolerance: float
    slack: float
    seconds: float | None = None
    max_bytes: int | None = None
    points: dict[Levels, Bounds] = field(default_factory=dict)
    plans: int = 0
    reused: int = 0
    _exhausted: set[Levels] = field(default_factory=set)  # planned as well as can be
    _policies: list[tuple[Levels, BlackoutPolicy]] = field(default_factory=list)

    def told(self, levels: Levels) -> tuple[float, float]:
        """What the order tells about the value at these levels."""
        lower, upper = -np.inf, np.inf
        for other, found in self.points.items():
            pairs = list(zip(other, levels, self.ordered, strict=True))
            if all(x <= y if ordered else x == y for x, y, ordered in pairs):
                upper = min(upper, found.upper)
            if all(x >= y if ordered else x == y for x, y, ordered in pairs):
                lower = max(lower, found.lower)
        return lower, upper

    def within(self, levels: Levels, width: float) -> Bounds:
        """Bounds no wider than `width`, where they can be had."""
        lower, upper = self.told(levels)
        if upper - lower <= width + self.slack:
            return self._keep(levels, lower, upper, "its neighbours")
        return self.planned(levels, max(width, self.tolerance))

    def against(self, levels: Levels, target: float) -> Bounds:
        """Bounds that tell whether the value reaches the target, where they can be had."""
        if levels in self._exhausted:
            return self.points[levels]
        lower, upper = self.told(levels)
        if self.decides(lower, upper, target):
            self.reused += levels not in self.points
            return self._keep(levels, lower, upper, "its neighbours")
        earned = self._earned(levels)
        if earned >= target - self.slack:
            self.reused += 1
            return self._keep(levels, earned, upper, "the plan of a neighbour")
        found = self.planned(levels, self.tolerance)
        if not self.decides(found.lower, found.upper, target) and self.tolerance > 0:
            found = self.planned(levels, 0.0)
        self._exhausted.add(levels)
        return found

    def decides(self, lower: float, upper: float, target: float) -> bool:
        """Is the target at most lower, or above upper (with the rounding of a value)?"""
        return lower >= target - self.slack or upper < target - self.slack

    def planned(self, levels: Levels, tolerance: float) -> Bounds:
        """Plan here."""
        problem = self.problem_of(levels)
        self.plans += 1
        limits: dict[str, Any] = {"seconds": self.seconds, "max_bytes": self.max_bytes, "progress": False}
        how = "a plan"
        try:
            found: Any = solve(problem, tolerance=tolerance, **limits)
        except TooLarge:
            found, how = _ladder(problem, limits), "a ladder"
        lower, upper = -np.inf, np.inf
        if found is not None:
            lower, upper = found.lower if found.lower_certified else -np.inf, found.upper
            if isinstance(found.policy, BlackoutPolicy):
                self._policies.append((levels, found.policy))
        else:
            how = "its neighbours"
        return self._keep(levels, lower, upper, how, problem.channel)

    def _keep(self, levels: Levels, lower: float, upper: float, how: str, channel: Channel | None = None) -> Bounds:
        told = self.told(levels)
        channel = self.problem_of(levels).channel if channel is None else channel
        lower, upper = max(lower, told[0]), min(upper, told[1])
        self.points[levels] = Bounds(levels, min(lower, upper), max(lower, upper), channel, how)
        return self.points[levels]

    def _earned(self, levels: Levels) -> float:
        """What the policy of the nearest plan earns here, −∞ where none fits."""
        if not self._policies:
            return -np.inf
        problem = self.problem_of(levels)
        if not problem.has_delay_law or problem.loss is None or not problem.loss.independent:
            return -np.inf
        near = sorted(self._policies, key=lambda each: sum(abs(x - y) for x, y in zip(each[0], levels, strict=True)))
        fitting = next((policy for _, policy in near if policy.fits(problem)), None)
        return -np.inf if fitting is None else evaluate(problem, fitting).value


def _ladder(problem: ImpairedMDP, limits: dict[str, Any]) -> Any:
    """The deepest ladder whose tables are small; None if none is."""
    small = limits | {"max_bytes": min(limits["max_bytes"] or SMALL, SMALL)}
    longest = min(problem.automaton.longest, problem.horizon - 1) if not problem.has_delay_law else problem.horizon - 1
    for depth in range(longest - 1, -1, -1):
        try:
            return solve(problem, depth=depth, **small)
        except TooLarge:
            continue
    return None
