"""The gap: what full information would earn minus what can really be earned, and Proposition 4 beside it.

    gap = V*_full − V*_executable ≥ 0,    one policy each, in expectation over the start.

Proposition 4 of the paper bounds the gap by Σ_h (E1_h + 2·E2_h) with

    E1_h = Σ_τ ( E_{s ~ b_h(·|τ)}[max_a r_h(s, a)] − max_a E_{s ~ b_h(·|τ)}[r_h(s, a)] )·min(ρ_h^exec, ρ_h^full)(τ)
    E2_h = TV(ρ_h^full, ρ_h^exec) = ½ Σ_τ |ρ_h^full(τ) − ρ_h^exec(τ)|

where ρ_h is the law of the information state at time h under the two optimal policies; the policy with full information
acts on the true state, and τ is what an impaired observer of its episodes would know. Both sides are computed here;
the inequality does not always hold (docs/statements.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from oldlight import checks, drawing
from oldlight.arrays import Floats
from oldlight.model.information import current, settled_late
from oldlight.model.policies import MarkovPolicy, Policy, TablePolicy
from oldlight.model.problem import ImpairedMDP
from oldlight.model.successors import all_successors
from oldlight.planning import Solution, solve
from oldlight.planning.evaluation import unimpaired, visits
from oldlight.planning.heuristics import full_information
from oldlight.planning.hidden_visits import Measure, hidden_visits, refuse_size


def rounding(problem: ImpairedMDP) -> float:
    """How far the difference of two values of one process can be off by rounding.

    With n the most successors of a pair (s, a) or states of the start, a value is found by at most H + 1 sums of n products, one inside the
    other, of numbers up to M = Σ_h max|r_h|, and beliefs by as many again. Each sum is off by at most (n + 2)·(ε/2)·M, ε the distance from 1
    to the next larger number, so the two values together by at most 2·ε·(H + 1)·(n + 2)·M.
    """
    mdp = problem.mdp
    if problem.forever:  # lower bounds, each within the tolerance of `solve`
        return 1e-6 * float(np.abs(mdp.rewards).max()) / (1.0 - (mdp.discount or 0.0))
    n = max(*(step.width for step in all_successors(mdp)), int(np.count_nonzero(problem.initial)))
    largest = float(np.abs(mdp.rewards).max(axis=(1, 2)).sum())
    return 2 * float(np.finfo(np.float64).eps) * (mdp.finite_horizon + 1) * (n + 2) * largest


def value_lost(problem: ImpairedMDP, before: float, after: float) -> float:
    """before − after, two values of one process; 0 where it is negative by no more than the rounding of both can make it."""
    difference = before - after
    return 0.0 if -rounding(problem) <= difference < 0 else difference


@dataclass(frozen=True)
class Proposition4:
    """Both terms of Proposition 4, as `Gap.proposition4` computes them.

    Parameters
    ----------
    e1, e2 : ndarray, shape (H,)
        The terms of each step.
    bound : float
        Σ_h (E1_h + 2·E2_h).
    full, executable : list of {Information: float}, length H
        ρ_h under the policy with full information, and under the best executable one.
    """

    e1: Floats  # [h]
    e2: Floats  # [h]
    bound: float
    full: list[Measure]  # [h]: ρ_h under the policy with full information
    executable: list[Measure]  # [h]: ρ_h under the best executable policy

    def __repr__(self) -> str:
        return f"Proposition4(bound={self.bound:.10g}, E1 {self.e1.sum():.6g}, E2 {self.e2.sum():.6g})"


@dataclass(frozen=True, eq=False)
class Gap(drawing.Result):
    """What the impairment costs: `gap` = `full` − `impaired`.

    Parameters
    ----------
    problem : ImpairedMDP
        The process and its channel.
    full : float
        The optimal value if every state were seen at once.
    impaired : float
        The best executable value.
    full_policy : MarkovPolicy
        Earns `full`.
    solution : Solution
        The plan behind `impaired`.
    max_states : int
        The most information states in the visitation measures of Proposition 4.

    Examples
    --------
    >>> import oldlight as ol
    >>> lost = ol.gap(ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:2", start="warm"))
    >>> print(lost)
    Gap
      gap                          0.2917888306 (7.366% of the value with full information)
      value with full information  3.96106496
      best executable value        3.669276129
      problem                      ImpairedMDP(TabularMDP(S=20, A=5, H=10, stationary), ConstantDelay(d=2), start=warm)
    """

    problem: ImpairedMDP
    full: float
    impaired: float
    full_policy: MarkovPolicy
    solution: Solution
    max_states: int = 200_000
    _data = "problem gap relative full impaired solution"

    @property
    def gap(self) -> float:
        """full − impaired: what the impairment costs."""
        return value_lost(self.problem, self.full, self.impaired)

    value = checks.renamed_property("value", "gap")

    @property
    def relative(self) -> float:
        """The gap as a share of the value with full information."""
        return self.gap / abs(self.full) if self.full else 0.0

    @cached_property
    def proposition4(self) -> Proposition4:
        """Both terms of Proposition 4, with their visitation measures. Computed when first asked for."""
        return proposition4(self.problem, self.full_policy, self.solution.policy, self.max_states)

    @property
    def e1(self) -> Floats:
        """E1_h of Proposition 4, shape (H,)."""
        return self.proposition4.e1

    @property
    def e2(self) -> Floats:
        """E2_h of Proposition 4, shape (H,)."""
        return self.proposition4.e2

    @property
    def bound(self) -> float:
        """The bound of Proposition 4 (which is not always one; see docs/statements.md)."""
        return self.proposition4.bound

    def plot(self, ax: Any = None) -> Any:
        """Draw both values as bars, with the gap in the title; returns the matplotlib axes."""
        ax = drawing.bars(ax, {"full information": self.full, "best executable": self.impaired})
        ax.set_title(f"gap {self.gap:.4g}")
        return ax

    def __float__(self) -> float:
        return self.gap

    def __str__(self) -> str:
        """A small table."""
        rows = {
            "gap": f"{self.gap:.10g}"
            + (f" ({self.relative:.3%} of the value with full information)" if self.full else ""),
            "value with full information": f"{self.full:.10g}",
            "best executable value": f"{self.impaired:.10g}",
            "problem": self.problem,
        }
        return drawing.facts("Gap", rows)

    def __repr__(self) -> str:
        return f"Gap({self.gap:.10g} = {self.full:.10g} full − {self.impaired:.10g} executable)"


def gap(problem: ImpairedMDP, *, max_states: int = 200_000, **options: Any) -> Gap:
    """What the impairment costs: the optimal value with full information minus the best executable value.

    Parameters
    ----------
    problem : ImpairedMDP
        The process and its channel.
    max_states : int
        Limits the visitation measures of Proposition 4.
    **options
        Those of `solve`.

    Returns
    -------
    Gap
        `.gap`, `.full`, `.impaired`, and both terms of Proposition 4 when asked for.

    Examples
    --------
    >>> import oldlight as ol
    >>> round(ol.gap(ol.ImpairedMDP(ol.instances.dichotomy(2), "constant:3")).gap, 6)
    0.5
    """
    best = solve(problem, **options)
    plain = solve(
        unimpaired(problem), **{k: v for k, v in options.items() if k not in ("tolerance", "depth", "seconds")}
    )
    if problem.forever:
        return Gap(problem, plain.value, best.value, full_information(problem), best, max_states)
    table = plain.policy
    assert isinstance(table, TablePolicy)
    assert table.actions is not None
    markov = MarkovPolicy(table.actions.reshape(problem.horizon, problem.n_states), problem.n_actions)
    return Gap(problem, plain.value, best.value, markov, best, max_states)


def proposition4(problem: ImpairedMDP, full: MarkovPolicy, executable: Policy, max_states: int) -> Proposition4:
    """Both terms for any two policies."""
    H = problem.horizon
    if problem.actuation or (problem.arrival_probability is not None and settled_late(problem)):
        raise ValueError(f"Proposition 4 speaks of delay or of loss, with actions that act at once; not of {problem!r}")
    of_full = hidden_visits(problem, full, max_states)
    of_exec: list[Measure] = []
    for reached in visits(problem, executable, max_states):
        if reached is None:
            refuse_size(max_states)
        of_exec.append(reached)
    e1, e2 = np.zeros(H), np.zeros(H)
    for h in range(H):
        r = problem.mdp.rewards[h]
        one, two = of_full[h], of_exec[h]
        e2[h] = 0.5 * sum(abs(one.get(info, 0.0) - two.get(info, 0.0)) for info in one.keys() | two.keys())
        for info in one.keys() & two.keys():
            b = current(problem, info)
            e1[h] += float(b @ r.max(axis=1) - (b @ r).max()) * min(one[info], two[info])
    return Proposition4(e1, e2, float(e1.sum() + 2 * e2.sum()), of_full, of_exec)
