"""The result of a plan: its value, its policy, how far it may be off, and how much work it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from oldlight import drawing
from oldlight.arrays import Floats
from oldlight.model.link_information import LinkInformation, check_endless_info, check_link
from oldlight.model.policies import Policy
from oldlight.model.possible import check
from oldlight.model.problem import ImpairedMDP


class PlanOptions(NamedTuple):
    """What `oldlight.solve` is asked for beside the problem, as its planners pass it on; options: the most that a search may make."""

    tolerance: float = 0.0
    depth: int | None = None
    seconds: float | None = None
    max_bytes: int | None = None
    scratch: Path | None = None
    progress: bool | Callable[[int, int], None] | None = None
    options: int | None = None


@dataclass(frozen=True)
class Work(drawing.Result):
    """How much work a plan was.

    Parameters
    ----------
    information_states : int
        Entries planned (delay) or belief nodes visited (loss).
    seconds : float
        Time taken.
    bytes : int
        Memory held at the peak.
    rounding : float
        How far values may be off because beliefs that agree to this precision share one table entry (loss only).
    sweeps : int
        Of a process that runs for ever: how often its tables were gone over.
    scratch : int
        Bytes of tables that were kept in files of a scratch folder instead of memory.

    Examples
    --------
    >>> import oldlight as ol
    >>> ol.solve(ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:2")).work.information_states
    4006
    """

    information_states: int
    seconds: float
    bytes: int
    rounding: float = 0.0
    sweeps: int = 0
    scratch: int = 0


@dataclass(frozen=True, eq=False)
class Solution(drawing.Result):
    """The best executable policy that was found, with lower ≤ optimal value ≤ upper.

    Parameters
    ----------
    problem : ImpairedMDP
        What was planned.
    value : float
        What `policy` earns; where a search ended with a gap (losses, and channels that are planned by their automaton), it is `lower`, which the policy earns at least.
    policy : Policy
        The best executable policy.
    lower, upper : float
        Bounds on the optimal value. Those of a ladder (`solve(problem, depth=k)`): `upper` is certified.
    exact : bool
        Are the three the same?
    work : Work
        How much work it was.
    depth : int, optional
        Of a ladder: the rung that was best.
    lower_certified : bool
        Of a ladder: is `lower` certified, or the lower end of a 95% confidence interval?

    Examples
    --------
    >>> import oldlight as ol
    >>> best = ol.solve(ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:2", start="warm"))
    >>> print(best)
    Solution
      value                  3.669276129
      bounds on the optimum  the value itself: the plan is exact
      problem                ImpairedMDP(TabularMDP(S=20, A=5, H=10, stationary), ConstantDelay(d=2), start=warm)
      policy                 TablePolicy(5,000 information states)
      work                   5,000 information states, ... s
    >>> int(best.q(ol.Information.seen(t=-2, state=9, queue=(2, 2))).argmax())  # it stayed in the middle: stay
    2
    """

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
    _data = "problem value lower upper exact lower_certified depth value_by_start policy work"

    @cached_property
    def value_by_start(self) -> Floats | None:
        """What the policy earns when the first state (of step −warmup) is s, shape (S,); None where that is too much to find out."""
        return self._starts() if callable(self._starts) else self._starts

    def q(self, info: Any) -> Floats:
        """Q_h(τ, a) = E[rewards of steps h, h+1, ... | τ_h = info, a_h = a, best afterwards], shape (A,).

        Of a ladder these are upper bounds. Behind a channel planned by its automaton `info` is a `LinkInformation`.
        """
        if self.problem.forever:
            check_endless_info(self.problem, info)
        elif isinstance(info, LinkInformation) or not self.problem.has_delay_law:
            check_link(self.problem, info, getattr(self.policy, "automaton", None))
        else:
            check(self.problem, info)
        return self._q(info)

    def value_at(self, info: Any) -> float:
        """max_a Q_h(τ, a): the best expected reward of the steps that are left."""
        return float(self.q(info).max())

    def plot(self, ax: Any = None) -> Any:
        """Draw the value for each first state, or value and bounds where that is not known; returns the matplotlib axes."""
        if self.value_by_start is None:
            return drawing.bars(ax, {"lower": self.lower, "value": self.value, "upper": self.upper})
        ax = drawing.axes_of(ax)
        ax.bar(range(len(self.value_by_start)), self.value_by_start)
        ax.axhline(self.value, color="black", linewidth=1, linestyle="--")
        ax.set_xlabel("first state (dashed: in expectation)")
        ax.set_ylabel("value")
        return ax

    def __str__(self) -> str:
        """A small table."""
        sure = "" if self.lower_certified else " (lower: 95% confidence)"
        bounds = (
            "the value itself: the plan is exact" if self.exact else f"{self.lower:.10g} .. {self.upper:.10g}{sure}"
        )
        rows = {
            "value": f"{self.value:.10g}",
            "bounds on the optimum": bounds,
            "problem": self.problem,
            "policy": self.policy,
            "work": f"{self.work.information_states:,} information states, {self.work.seconds:.3g} s",
        }
        return drawing.facts("Solution", rows)

    def __repr__(self) -> str:
        how = "exact" if self.exact else f"in [{self.lower:.10g}, {self.upper:.10g}]"
        if not self.lower_certified:
            how += " (lower: 95% confidence)"
        return f"Solution(value={self.value:.10g}, {how}, {self.work.information_states:,} states, {self.work.seconds:.3g} s)"
