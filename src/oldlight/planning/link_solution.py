"""`solve` for channels that are planned by their automaton: the certificate, the policy, and Q-values at any information state.

**Q-values.** The search takes any information state into its graph: each action is expanded there, and what follows it is closed to the
plan's tolerance, by the tables and the graph that the plan made.

**Hidden links.** With a tolerance ε > 0 the laws of the hidden mode are merged so that merging costs at most ε/4 on each side
(`oldlight.model.channels.hidden`); upper is that of the merged link plus the error. The policy follows the merged laws. Where it can be
walked on the true link its exact value there is the lower bound, else that of the merged link less the error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from oldlight.arrays import Floats
from oldlight.model.channels.automaton import ChannelAutomaton
from oldlight.model.channels.hidden import merging_error
from oldlight.model.held_steps import certain
from oldlight.model.information import settled_late
from oldlight.model.link_policy import LinkPolicy
from oldlight.model.policies import BlackoutPolicy
from oldlight.model.problem import ImpairedMDP
from oldlight.planning.blackout import blackout_policy, blackout_values
from oldlight.planning.group_walk import group_value
from oldlight.planning.link_plan import SEQUENCES, LinkPlan
from oldlight.planning.q_values import earned
from oldlight.planning.settling import SettledSearch
from oldlight.planning.solution import PlanOptions, Solution, Work
from oldlight.progress import progress_bar

WALK = 20_000  # information states up to which values of a plan's policy are walked
STARTS = 2_000  # first states that are walked one by one

OPTIONS = 20_000  # what a search makes of them in a second, about


def planned_by_automaton(problem: ImpairedMDP) -> bool:
    """Is `problem` one for `LinkPlan`: no delay law, or losses?"""
    return not problem.has_delay_law or problem.loss is not None


def solve_link(problem: ImpairedMDP, asked: PlanOptions, room: int | None = None) -> Solution:
    """The best executable policy with its certificate; `value` is `lower`, what the policy is certain to earn."""
    tolerance, depth = asked.tolerance, asked.depth
    if depth is not None and depth < problem.automaton.longest:
        from oldlight.planning.ladder import plan_ladder

        return plan_ladder(problem, asked)
    if depth is not None:
        asked = asked._replace(depth=min(depth, problem.horizon - 1))
    merging = _merging(problem, tolerance)
    automaton, true_link = problem.automaton if merging == 0 else None, None
    if automaton is None:
        known, true_link = problem.channel.merged(problem.horizon, merging)
        automaton = known.shifted(problem.actuation)
    plan = LinkPlan(
        problem.mdp,
        automaton,
        initial=problem.initial,
        pending=problem.pending[: problem.horizon],
        max_bytes=asked.max_bytes,
        scratch=asked.scratch,
        room=room,
        settle_all=room is not None,
    )
    try:
        with progress_bar(asked.progress, "planning") as callback:
            plan.run(tolerance, asked.seconds, asked.depth, callback, asked.options)
    except KeyboardInterrupt as stopped:
        done = plan.tables is not None
        stopped.partial = _solution(problem, plan, true_link, asked) if done else None  # type: ignore[attr-defined]
        raise
    return _solution(problem, plan, true_link, asked)


def plan_exactly(problem: ImpairedMDP, tolerance: float = 0.0, room: int | None = None) -> Solution:
    """`solve_link` without limits, for losses with a constant delay: for learners and heuristics, which plan many small problems. room: bytes of its
    search; every corner is settled then, and the policy is one of sequences."""
    settled_late(problem)  # refuses other links
    return solve_link(problem, PlanOptions(tolerance, progress=False), room)


def settled_search(solution: Solution) -> SettledSearch | None:
    """The search behind a plan of this module, if it settled every corner."""
    search = solution._q.plan.search if isinstance(solution._q, QValues) else None
    return search if isinstance(search, SettledSearch) else None


def solve_within(problem: ImpairedMDP, tolerance: float, seconds: float) -> Solution:
    """As `solve`, but the effort of closing the gap is counted in work, not by the clock: what a core of today does in so many seconds. The
    same call gives the same plan on every machine, compiled before or not, busy or idle."""
    from oldlight.planning import solve

    if problem.forever or not planned_by_automaton(problem):
        return solve(problem, tolerance=tolerance, progress=False)
    return solve_link(problem, PlanOptions(tolerance, progress=False, options=int(seconds * OPTIONS)))


def _merging(problem: ImpairedMDP, tolerance: float) -> float:
    """How far laws of a hidden mode may be merged: so that it costs at most a quarter of the tolerance on each side."""
    if tolerance == 0 or not hasattr(problem.channel, "merged"):
        return 0.0
    most = merging_error(1.0, problem.mdp.rewards)
    return min(tolerance / 4 / most, 1.0) if most > 0 else 0.0


def _solution(
    problem: ImpairedMDP, plan: LinkPlan, true_link: Callable[[], ChannelAutomaton] | None, asked: PlanOptions
) -> Solution:
    answers = QValues(problem, plan, asked.tolerance, np.inf if asked.seconds is None else asked.seconds)
    policy, lower = _policy(problem, plan, answers), plan.lower
    if true_link is not None:
        assert isinstance(policy, LinkPolicy)
        policy.follow(true_link().shifted(problem.actuation), problem)
        truly = group_value(problem, policy, link=policy.link, max_states=WALK)
        lower = lower if truly is None else max(lower, truly[0])
    upper = lower if plan.exact else max(plan.upper, lower)
    rounding = plan.search.rounding if isinstance(plan.search, SettledSearch) else 0.0
    work = Work(plan.entries + plan.states, plan.seconds, plan.bytes, rounding, scratch=plan.on_disk)
    starts = plan.lower_by_start
    by_start = starts if starts is not None else partial(_walked_starts, problem, plan, policy)
    return Solution(problem, lower, policy, lower, upper, plan.exact, by_start, work, answers, asked.depth)


def _policy(problem: ImpairedMDP, plan: LinkPlan, answers: QValues) -> LinkPolicy | BlackoutPolicy:
    """Sequences for losses with a constant delay whose corners are settled, unless they are very many; else a policy of nodes."""
    search = plan.search
    if isinstance(search, SettledSearch) and problem.has_delay_law and problem.loss is not None:
        H, d = problem.horizon, search.tables.layers.depth
        late = problem.law.constant if problem.loss.independent else None
        small = late is not None and H * H * problem.n_states * problem.n_actions ** min(late, H) <= SEQUENCES
        small = small or plan.settle_all
        if small and late is not None and late >= d:  # a greater one: nothing is ever seen
            return blackout_policy(problem, plan, search, answers.action)
    return plan.policy if plan.settle_all else answers.places


def _walked_starts(problem: ImpairedMDP, plan: LinkPlan, policy: LinkPolicy | BlackoutPolicy) -> Floats | None:
    """What the policy earns from each first state that can be, 0 from the others; None where that is too long a walk."""
    if isinstance(policy, BlackoutPolicy):
        return blackout_values(problem, policy)
    if np.count_nonzero(problem.initial) > STARTS:
        return None
    known = plan.walked_by_start()
    if known is not None:
        return known
    out = np.zeros(problem.n_states)
    for s in np.flatnonzero(problem.initial > 0).tolist():
        start = certain(problem.n_states, s)
        found = group_value(problem, policy, link=policy.link, initial=start, max_states=WALK)
        if found is None:
            return None
        out[s] = found[0]
    return out


@dataclass(frozen=True, eq=False)
class QValues:
    """Q_h(info, a) of the module's text, each within the plan's tolerance from below."""

    problem: ImpairedMDP
    plan: LinkPlan
    tolerance: float
    seconds: float

    @cached_property
    def places(self) -> LinkPolicy:
        """The plan as a policy of nodes, which also knows where an information state stands in the tables; for that alone where its search forgets."""
        return self.plan.places if self.plan.settle_all else self.plan.policy

    def action(self, info: Any) -> int:
        return int(self(info).argmax())

    def __call__(self, info: Any) -> Floats:
        known = self.places.of_node(info)
        problem, plan, h = self.problem, self.plan, known.h
        search = plan.searching()
        block, code, s, b = self.places.place(known)
        i = search.number(h, block, code, s, b, make=True)
        out = np.full(problem.n_actions, -np.inf)
        possible = range(len(plan.kept)) if h >= problem.actuation else [int(plan.number[problem.pending[h]])]
        for few in possible:
            out[plan.number == few] = search.q_value(i, few, self.tolerance, self.seconds / len(possible))
        if h < problem.actuation:
            out[np.arange(problem.n_actions) != problem.pending[h]] = -np.inf
        queue = known.queue[max(len(known.queue) - self.places.depth, 0) :]
        return out - earned(problem, b, h - len(queue), queue)
