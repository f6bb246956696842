"""What a plan says of itself: its value, its policy, how far it may be off, and how much work it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.model.information import check
from oldlight.model.link_information import LinkInformation, check_link
from oldlight.model.policies import Policy
from oldlight.model.problem import ImpairedMDP

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Work:
    """information_states: entries planned (delay) or belief nodes visited (loss); seconds; bytes held at the peak.

    rounding: how far values may be off because beliefs that agree to this precision share one table entry (loss only).
    """

    information_states: int
    seconds: float
    bytes: int
    rounding: float = 0.0


@dataclass(frozen=True, eq=False)
class Solution:
    """The best executable policy. lower ≤ optimal value ≤ upper; `value` is what `policy` earns, and `exact` says that
    the three are the same. `value_by_start[s]`: what the policy earns when the first state (of step −warmup) is s.

    Behind a channel that is planned by its automaton (`oldlight.planning.link_plan`) `value` is `lower`, which the policy earns at least;
    and `q` takes a `LinkInformation`.

    For a ladder (`solve(problem, depth=k)`): `depth` is the rung that was best, `value_by_start` is None, `q` gives upper
    bounds, `upper` is certified, and `lower` is certified if `lower_certified`, else the lower end of a 95% interval."""

    problem: ImpairedMDP
    value: float
    policy: Policy
    lower: float
    upper: float
    exact: bool
    _starts: Floats | Callable[[], Floats | None] | None
    work: Work
    _q: Callable[[Any], Floats]
    depth: int | None = None
    lower_certified: bool = True

    @cached_property
    def value_by_start(self) -> Floats | None:
        """What the policy earns when the first state (of step −warmup) is s, shape (S,); None where that is too much to find out."""
        return self._starts() if callable(self._starts) else self._starts

    def q(self, info: Any) -> Floats:
        """Q_h(τ, a) = E[rewards of steps h, h+1, ... | τ_h = info, a_h = a, best afterwards], shape (A,)."""
        if isinstance(info, LinkInformation) or not self.problem.has_delay_law:
            check_link(self.problem, info, getattr(self.policy, "automaton", None))
        else:
            check(self.problem, info)
        return self._q(info)

    def value_at(self, info: Any) -> float:
        """max_a Q_h(τ, a): the best expected reward of the steps that are left."""
        return float(self.q(info).max())

    def __repr__(self) -> str:
        how = "exact" if self.exact else f"in [{self.lower:.10g}, {self.upper:.10g}]"
        if not self.lower_certified:
            how += " (lower: 95% confidence)"
        return f"Solution(value={self.value:.10g}, {how}, {self.work.information_states:,} states, {self.work.seconds:.3g} s)"
