"""`solve` for channels that are planned by their automaton: the certificate, the policy, and Q-values at any information state.

**Q-values.** What is known at `info` is that s_t = s, that `queue` was done since, and the node. So Q_h(info, a) is the best value of
the process from step t on, started in s, whose first actions `queue` and a are given, without the rewards before step h, behind a
link that shows nothing until time h and then goes on from the node: one more plan for each action.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.model.channels.automaton import NOTHING_NEWER, ChannelAutomaton, Tick
from oldlight.model.link_information import LinkInformation
from oldlight.model.mdp import TabularMDP
from oldlight.model.problem import ImpairedMDP
from oldlight.planning.link_plan import plan_link
from oldlight.planning.solution import Solution, Work
from oldlight.progress import progress_bar

Floats = NDArray[np.float64]


def planned_by_automaton(problem: ImpairedMDP) -> bool:
    """Is `problem` one for `plan_link`: no delay law, or losses in bursts or together with random delays?"""
    if not problem.has_delay_law:
        return True
    return problem.loss is not None and not (problem.loss.independent and problem.law.constant is not None)


def solve_link(
    problem: ImpairedMDP,
    *,
    tolerance: float,
    seconds: float | None,
    depth: int | None,
    max_bytes: int | None,
    progress: bool | Callable[[int, int], None] | None,
) -> Solution:
    """The best executable policy with its certificate; `value` is `lower`, what the policy is certain to earn."""
    deep = None if depth is None else min(depth, problem.horizon - 1)
    with progress_bar(progress, "planning") as callback:
        plan = plan_link(
            problem.mdp,
            problem.automaton,
            initial=problem.initial,
            pending=problem.pending[: problem.horizon],
            tolerance=tolerance,
            seconds=seconds,
            max_bytes=max_bytes,
            depth=deep,
            progress=callback,
        )
    upper = plan.lower if plan.exact else plan.upper
    starts = plan.tables.upper_by_start if plan.exact and not plan.tables.layers.searched else None
    work = Work(plan.entries + plan.states, plan.seconds, plan.bytes)
    answers = QValues(problem, tolerance, seconds, max_bytes)
    return Solution(problem, plan.lower, plan.policy, plan.lower, upper, plan.exact, starts, work, answers, deep)


@dataclass(frozen=True, eq=False)
class QValues:
    """Q_h(info, a) of the module's text, each within the plan's tolerance from below."""

    problem: ImpairedMDP
    tolerance: float
    seconds: float | None
    max_bytes: int | None

    def __call__(self, info: Any) -> Floats:
        problem, begin = self.problem, info.t or 0
        known = problem.initial if info.t is None else np.eye(problem.n_states)[info.state]
        mdp, link = _from_step(problem.mdp, begin, info.h), _from_node(problem.automaton, info, problem.horizon - begin)
        forced = range(problem.n_actions) if info.h >= problem.actuation else [problem.pending[info.h]]
        rest = problem.pending[info.h + 1 : problem.horizon]
        out = np.full(problem.n_actions, -np.inf)
        for a in forced:
            first = (*info.queue, a, *rest)
            plan = plan_link(
                mdp,
                link,
                initial=known,
                pending=first,
                tolerance=self.tolerance,
                seconds=self.seconds,
                max_bytes=self.max_bytes,
            )
            out[a] = plan.lower
        return out


def _from_step(mdp: TabularMDP, t: int, h: int) -> TabularMDP:
    """The process from step t on, without the rewards before step h."""
    rewards = np.array(mdp.rewards[t:])
    rewards[: h - t] = 0.0
    return TabularMDP(mdp.transitions[t:], rewards, horizon=mdp.horizon - t)


def _from_node(automaton: ChannelAutomaton, info: LinkInformation, horizon: int) -> ChannelAutomaton:
    """The link that shows nothing until the time of `info`, and then goes on from its node."""
    there, wait = automaton.nodes.index(info.node), len(info.queue)

    def ahead(i: int) -> list[Tick]:
        return [(1.0, ("ahead", i) if i < wait else there, NOTHING_NEWER)]

    def step(node: Any) -> list[Tick]:
        return ahead(node[1] + 1) if isinstance(node, tuple) else list(automaton.row(node))

    return ChannelAutomaton.explore(ahead(0), step, horizon, merging=automaton.merging)


__all__ = ["planned_by_automaton", "solve_link"]
