"""Planning: `solve(problem)` finds the best executable policy of any problem whose channel it knows."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from oldlight import checks
from oldlight.information import Information
from oldlight.planning.delay import (
    DelayModel,
    Floats,
    Induction,
    Stage,
    action_type,
    by_start,
    checked_layout,
    q_values,
)
from oldlight.planning.progress import shown
from oldlight.planning.solution import Solution, Work
from oldlight.policies import TablePolicy
from oldlight.problem import ImpairedMDP

KEEP_VALUES = 2**28  # bytes of values that a solution keeps for q(info); beyond that they are computed again on request


def solve(
    problem: ImpairedMDP,
    *,
    tolerance: float = 0.0,
    max_bytes: int | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
) -> Solution:
    """The best executable policy.

    tolerance: 0 for an exact answer. Under loss a larger one gives lower ≤ optimum ≤ upper with upper − lower at most
        `tolerance`, faster; a plan under delay is always exact.
    max_bytes: refuse what needs more memory than this (half of the machine's memory if None).
    progress: True or False for a bar or none, a function of (done, of) to be told, None for a bar on a terminal once two
        seconds have passed.
    """
    if not isinstance(problem, ImpairedMDP):
        raise TypeError(
            f"solve takes an ImpairedMDP, not a {type(problem).__name__}; wrap it: ImpairedMDP(mdp, channel)"
        )
    epsilon = checks.real("tolerance", tolerance)
    if epsilon < 0:
        raise ValueError(f"tolerance is {epsilon:.12g}, expected a number ≥ 0")
    if max_bytes is not None:
        checks.whole("max_bytes", max_bytes, least=1)
    if problem.seen is not None:
        from oldlight.planning.loss import plan_loss

        return plan_loss(problem, epsilon, max_bytes, progress)
    return _plan_delay(problem, max_bytes, progress)


def _plan_delay(
    problem: ImpairedMDP, max_bytes: int | None, progress: bool | Callable[[int, int], None] | None
) -> Solution:
    began = time.perf_counter()
    layout, need = checked_layout(problem, max_bytes)
    model = DelayModel(problem, layout)
    table = np.empty(layout.size, dtype=action_type(layout.n_actions))
    kept: list[Stage] | None = [] if layout.size * 8 <= KEEP_VALUES else None
    with shown(progress, "planning") as tell:
        first = Induction(model, table=table, kept=kept, progress=tell).run()
    starts = by_start(problem, first)
    value = float(problem.initial @ starts)

    def q(info: Information) -> Floats:
        following = kept[info.h + 1] if kept is not None else Induction(model).run(stop=info.h + 1)
        return q_values(model, info, following)

    work = Work(layout.size, time.perf_counter() - began, need)
    return Solution(problem, value, TablePolicy(layout, table), value, value, True, starts, work, q)


__all__ = ["Solution", "Work", "solve"]
