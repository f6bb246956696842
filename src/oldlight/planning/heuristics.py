"""Policies that people use instead of the exact plan. Each is executable, and is valued and simulated like any other.

    most_likely(problem)   the full-information plan played on the most likely current state (Walsh et al. 2007,
                           Planning and Learning in Environments with Delayed Feedback, https://doi.org/10.1007/978-3-540-74958-5_41)
    qmdp(problem)          max_a E_b[Q_h(s, a)] with the full-information Q and the belief b: the ladder's rung 0
    memoryless(problem)    the full-information plan played on the newest visible state, as if it were the current one
    open_loop(problem)     the best fixed sequence of actions, whatever is seen

`certain(problem)`: with deterministic transitions and a known start (or a known past) the current state can always be
counted along, so playing the full-information plan on it is exact, and needs no table of queues at all.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.model.channels import ConstantDelay, Loss
from oldlight.model.information import Information, Layout, current
from oldlight.model.link_information import NodePolicy
from oldlight.model.policies import BlackoutPolicy, FunctionPolicy, MarkovPolicy
from oldlight.model.problem import ImpairedMDP
from oldlight.planning.delay import DelayModel, Floats, Induction, action_type
from oldlight.planning.loss import plan_loss

Ints = NDArray[Any]


def full_information(problem: ImpairedMDP) -> MarkovPolicy:
    """The plan of somebody who sees everything at once and acts at once."""
    plain = ImpairedMDP(problem.mdp, ConstantDelay(0))
    layout = Layout.of(plain)
    table = np.empty(layout.size, dtype=action_type(problem.n_actions))
    Induction(DelayModel(plain, layout), table=table).run()
    return MarkovPolicy(table.reshape(problem.horizon, problem.n_states), problem.n_actions)


def most_likely(problem: ImpairedMDP) -> FunctionPolicy:
    """The full-information plan on the most likely current state (ties: the lowest)."""
    plan = full_information(problem).actions
    return FunctionPolicy(partial(_on_most_likely, problem, plan), problem.n_actions)


def _on_most_likely(problem: ImpairedMDP, plan: Ints, info: Information) -> int:
    return int(plan[info.h, _mode(current(problem, info))])


def _mode(b: Floats) -> int:
    return int(np.flatnonzero(b >= b.max() * (1 - 1e-12))[0])


def memoryless(problem: ImpairedMDP) -> FunctionPolicy:
    """The full-information plan on the newest visible state; on the most likely first state until one is seen."""
    plan = full_information(problem).actions
    return FunctionPolicy(partial(_on_newest, plan, _mode(problem.initial)), problem.n_actions)


def _on_newest(plan: Ints, first: int, info: Information) -> int:
    return int(plan[info.h, first if info.state is None else info.state])


def qmdp(problem: ImpairedMDP) -> FunctionPolicy | NodePolicy:
    """Act as if everything were seen from the next step on (with late actions: as early as it can be acted upon)."""
    from oldlight.planning.ladder import rung

    policy: FunctionPolicy | NodePolicy = rung(problem, problem.actuation)[1]
    return policy


def open_loop(problem: ImpairedMDP, tolerance: float = 0.0) -> FunctionPolicy:
    """The best fixed sequence from the law of the first state: exact, or within `tolerance` of the best."""
    rho = problem.state_at_zero / problem.state_at_zero.sum()
    late = problem.actuation
    blind = ImpairedMDP(problem.mdp.replace(initial=rho), Loss(seen=0.0), actuation=late, pending=problem.pending)
    plan = plan_loss(blind, tolerance, None, False).policy
    assert isinstance(plan, BlackoutPolicy)
    return FunctionPolicy(partial(_by_time, plan.sequences[0, 0, 0]), problem.n_actions)


def _by_time(sequence: Ints, info: Information) -> int:
    return int(sequence[info.h])


def certain(problem: ImpairedMDP) -> bool:
    """Can the current state always be counted along: deterministic transitions, and a start or past that is known?"""
    P = problem.mdp.transitions[:1] if problem.mdp.stationary_transitions else problem.mdp.transitions
    if not ((P == 0) | (P == 1)).all():
        return False
    at_once = problem.law.first[0] == 1 and (problem.arrival_probability is None or problem.arrival_probability[0] == 1)
    return bool(problem.warmup or at_once or problem.initial.max() == 1)
