"""Planning: `solve(problem)` finds the best executable policy of any problem whose channel it knows."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.arrays import Floats, action_type
from oldlight.machine import power
from oldlight.model.information import Information, current, newest
from oldlight.model.policies import MarkovPolicy, TablePolicy
from oldlight.model.problem import ImpairedMDP, checked_problem
from oldlight.planning.delay import (
    DelayModel,
    Induction,
    Stage,
    by_start,
    checked_layout,
)
from oldlight.planning.q_values import q_values
from oldlight.planning.scratch import empty, scratch_folder
from oldlight.planning.solution import PlanOptions, Solution, Work
from oldlight.progress import progress_bar

SMALL_TABLE = 100_000  # information states up to which a table is made even where none is needed
KEEP_VALUES = 2**28  # bytes of values that a solution keeps for q(info); beyond that they are computed again on request


def solve(
    problem: ImpairedMDP,
    *,
    tolerance: float = 0.0,
    depth: int | None = None,
    seconds: float | None = None,
    max_bytes: int | None = None,
    scratch: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
) -> Solution:
    """The best executable policy.

    Parameters
    ----------
    problem : ImpairedMDP
        The process, its channel and its start.
    tolerance : float
        0 for an exact answer, up to rounding (behind losses with more than 100,000 corners: until a search of about a minute has ended, see
        `oldlight.planning.large_loss`; of a process that runs for ever: to 1e-9 of max|r|/(1−u), where observations are lost or only get later 1e-6; see
        `oldlight.planning.stationary`). Under loss a larger one gives lower ≤ optimum ≤ upper with upper − lower ≤ tolerance, faster; a plan
        under delay is always exact.
    depth : int, optional
        Plan a long delay by the ladder (`oldlight.planning.ladder`): act on the belief as a controller with delays capped at `depth` would,
        with certified bounds instead of an exact value. A depth that reaches the longest delay is the exact plan; for channels
        planned by their automaton with tables of that depth.
    seconds : float, optional
        Stop closing the gap between lower and upper after this time, for channels that lose or are planned by their automaton
        (`oldlight.planning.link_plan`). Plans under delay alone take the time they take.
    max_bytes : int, optional
        Refuse what needs more memory than this; half of the machine's memory if None.
    scratch : path-like, optional
        A folder on a disk with room: tables of a delay or a link that need more memory than `max_bytes` are then kept in memory-mapped files there
        instead of being refused, with the same numbers (`oldlight.planning.scratch`). The files have no name, and are gone with the solution.
        Behind links that lose these are the tables that bound the value from both sides; a search, and plans for ever, stay in memory.
    progress : bool or function of (done, total), optional
        A progress bar or none, or a callback; None: a bar on a terminal after two seconds.

    Returns
    -------
    Solution
        `.value`, `.policy`, `.lower`, `.upper`, `.exact`, `.q(info)` and more.

    Raises
    ------
    KeyboardInterrupt
        On Ctrl-C; its `partial` is the best certified Solution so far, or None.

    Examples
    --------
    >>> import oldlight as ol
    >>> best = ol.solve(ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:2", start="warm"))
    >>> round(best.value, 6), best.exact
    (3.669276, True)
    """
    try:
        folder = None if scratch is None else scratch_folder(scratch)
        return _solved(problem, PlanOptions(tolerance, depth, seconds, max_bytes, folder, progress))
    except KeyboardInterrupt as stopped:
        stopped.partial = getattr(stopped, "partial", None)  # type: ignore[attr-defined]
        raise


def _solved(problem: ImpairedMDP, asked: PlanOptions) -> Solution:
    checked_problem(problem, "solve")
    depth = asked.depth
    if asked.seconds is not None:
        checks.positive("seconds", asked.seconds)
    asked = asked._replace(tolerance=checked_options(problem, asked.tolerance, depth, asked.max_bytes))
    if problem.forever:
        from oldlight.planning.stationary import solve_forever

        return solve_forever(problem, asked)
    if not problem.has_delay_law or problem.loss is not None:
        return _plan_link(problem, asked)
    if depth is not None and depth < (problem.warmup or problem.law.max_delay):
        from oldlight.planning.ladder import plan_ladder

        return plan_ladder(problem, asked)
    if _counted_along(problem):
        return _plan_certain(problem)
    return _plan_delay(problem, asked)


def _plan_link(problem: ImpairedMDP, asked: PlanOptions) -> Solution:
    """Behind a link without a delay law, or with losses. Its planners are imported here: a plan under delay alone needs none of them."""
    from oldlight.planning.large_loss import plan_large_loss, settled_losses, too_many_corners
    from oldlight.planning.link_solution import solve_link

    if asked.depth is None and too_many_corners(problem):
        return plan_large_loss(problem, asked)
    if asked.depth is None and asked.seconds is None and settled_losses(problem) and _counted_along(problem):
        return _plan_certain(problem)
    return solve_link(problem, asked)


def checked_options(problem: ImpairedMDP, tolerance: float, depth: int | None, max_bytes: int | None) -> float:
    """The tolerance, if `solve` takes these options."""
    epsilon = checks.at_least("tolerance", tolerance, 0)
    if max_bytes is not None:
        checks.whole("max_bytes", max_bytes, least=1)
    if depth is not None:
        checks.whole("depth", depth, least=problem.actuation)
    return epsilon


def _counted_along(problem: ImpairedMDP) -> bool:
    """Are there many information states, and is the current state certain at each?"""
    if _size(problem) <= SMALL_TABLE:
        return False
    if "certain" not in problem._made:
        from oldlight.planning.heuristics import certain

        problem._made["certain"] = certain(problem)
    found: bool = problem._made["certain"]
    return found


def _size(problem: ImpairedMDP) -> int:
    """The information states of the longest queue."""
    longest = (
        problem.horizon - 1 if problem.arrival_probability is not None else problem.warmup or problem.law.max_delay
    )
    return problem.n_states * power(problem.n_actions, longest)


def _plan_certain(problem: ImpairedMDP) -> Solution:
    """Deterministic transitions and a known start: the full-information plan on the state that is counted along."""
    from oldlight.planning.heuristics import full_information, most_likely

    began = time.perf_counter()
    plan = full_information(problem).actions.copy()
    for h, a in enumerate(problem.pending[: problem.horizon]):
        plan[h] = a
    starts = markov_values(problem, MarkovPolicy(plan, problem.n_actions))
    value = float(problem.initial @ starts)
    work = Work(plan.size, time.perf_counter() - began, plan.nbytes)
    answers = partial(_q_certain, problem, plan)
    return Solution(problem, value, most_likely(problem), value, value, True, starts, work, answers)


def _q_certain(problem: ImpairedMDP, plan: NDArray[Any], info: Information) -> Floats:
    after = markov_values(problem, MarkovPolicy(plan, problem.n_actions), info.h + 1)
    h, b = info.h, current(problem, info)
    return np.asarray(b @ (problem.rewards_at(h) + problem.mdp.expected(after, h)))


def markov_values(problem: ImpairedMDP, policy: MarkovPolicy, stop: int | None = None) -> Floats:
    """The value of a Markov policy per state of step `stop` (−warmup if None), with uniform actions before step 0."""
    V = np.zeros(problem.n_states)
    for t in range(problem.horizon - 1, (-problem.warmup if stop is None else stop) - 1, -1):
        x = problem.rewards_at(t) + problem.mdp.expected(V, max(t, 0))
        V = x.mean(axis=1) if t < 0 else x[np.arange(problem.n_states), policy.actions[t]]
    return V


def _plan_delay(problem: ImpairedMDP, asked: PlanOptions) -> Solution:
    began = time.perf_counter()
    layout, need, folder = checked_layout(problem, asked.max_bytes, scratch=asked.scratch)
    model = DelayModel.of(problem)
    table = empty(layout.size, action_type(layout.n_actions), folder)
    with progress_bar(asked.progress, "planning") as callback:
        first = Induction(model, table=table, progress=callback, scratch=folder).run()
    starts = by_start(problem, first)
    value = float(problem.initial @ starts)
    work = Work(layout.size, time.perf_counter() - began, 0 if folder else need, scratch=need if folder else 0)
    answers = partial(_q_delay, model, [], folder)
    return Solution(problem, value, TablePolicy.trusted(layout, table), value, value, True, starts, work, answers)


def _q_delay(model: DelayModel, kept: list[Stage], scratch: Path | None, info: Information) -> Floats:
    if not kept and model.layout.size * 8 <= KEEP_VALUES:
        Induction(model, kept=kept).run()
    following = kept[info.h + 1] if kept else Induction(model, scratch=scratch).run(stop=info.h + 1)
    _, b = newest(model.problem, info)
    return q_values(model, info.h, info.t, b, info.queue, info.waited, following)


__all__ = ["Solution", "Work", "solve"]
