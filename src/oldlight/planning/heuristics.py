"""Policies that people use instead of the exact plan. Each is executable, and is valued and simulated like any other.

    most_likely(problem)   the full-information plan played on the most likely current state (Walsh et al. 2007,
                           Planning and Learning in Environments with Delayed Feedback, https://doi.org/10.1007/978-3-540-74958-5_41)
    qmdp(problem)          max_a E_b[Q_h(s, a)] with the full-information Q and the belief b: the ladder's rung 0
    memoryless(problem)    the full-information plan played on the newest visible state, as if it were the current one
    open_loop(problem)     the best fixed sequence of actions, whatever is seen

`certain(problem)`: with deterministic transitions and a known start (or a known past) the current state can always be
computed, so playing the full-information plan on it is exact, and needs no table of queues at all.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.arrays import Floats, action_type
from oldlight.model.channels import ConstantDelay, Loss
from oldlight.model.information import Information, Layout, current
from oldlight.model.link_information import NodePolicy
from oldlight.model.policies import FunctionPolicy, MarkovPolicy
from oldlight.model.problem import ImpairedMDP
from oldlight.model.successors import all_successors
from oldlight.planning.delay import DelayModel, Induction
from oldlight.planning.link_solution import plan_exactly

Ints = NDArray[Any]


def full_information(problem: ImpairedMDP) -> MarkovPolicy:
    """The plan of somebody who sees everything at once and acts at once.

    Parameters
    ----------
    problem : ImpairedMDP
        Its process is planned for; its channel does not matter.

    Returns
    -------
    MarkovPolicy
        The best action of each step and state; of one step for a process that runs for ever.

    Examples
    --------
    >>> import oldlight as ol
    >>> from oldlight.planning.heuristics import full_information
    >>> full_information(ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:2"))
    MarkovPolicy(H=10, S=20, A=5)
    """
    plain = ImpairedMDP(problem.mdp, ConstantDelay(0))
    if problem.forever:
        return MarkovPolicy(_endless_plan(plain)[0][None], problem.n_actions)
    layout = Layout.of(plain)
    table = np.empty(layout.size, dtype=action_type(problem.n_actions))
    Induction(DelayModel(plain, layout), table=table).run()
    return MarkovPolicy(table.reshape(problem.horizon, problem.n_states), problem.n_actions)


def _endless_plan(plain: ImpairedMDP) -> tuple[Ints, Floats]:
    """The best action of each state, and Q[s, a], of a process that runs for ever and is seen at once."""
    from oldlight.planning import solve

    best = solve(plain)
    Q = np.array([best.q(Information.seen(0, s)) for s in range(plain.n_states)])
    return Q.argmax(axis=1).astype(action_type(plain.n_actions)), Q


def most_likely(problem: ImpairedMDP) -> FunctionPolicy:
    """The full-information plan on the most likely current state (ties: the lowest).

    Parameters
    ----------
    problem : ImpairedMDP
        The process and its channel.

    Returns
    -------
    FunctionPolicy
        The policy.

    Examples
    --------
    >>> import oldlight as ol
    >>> from oldlight.planning.heuristics import most_likely
    >>> problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:2", start="warm")
    >>> ol.evaluate(problem, most_likely(problem)).value < ol.solve(problem).value
    True
    """
    plan = full_information(problem).actions
    return FunctionPolicy(partial(_on_most_likely, problem, plan), problem.n_actions)


def _on_most_likely(problem: ImpairedMDP, plan: Ints, info: Information) -> int:
    return int(plan[min(info.h, len(plan) - 1), _mode(current(problem, info))])


def _mode(b: Floats) -> int:
    return int(np.flatnonzero(b >= b.max() * (1 - 1e-12))[0])


def memoryless(problem: ImpairedMDP) -> FunctionPolicy:
    """The full-information plan on the newest visible state; on the most likely first state until one is seen.

    Parameters
    ----------
    problem : ImpairedMDP
        The process and its channel.

    Returns
    -------
    FunctionPolicy
        The policy.

    Examples
    --------
    >>> import oldlight as ol
    >>> from oldlight.planning.heuristics import memoryless
    >>> problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:2")
    >>> memoryless(problem).action(ol.Information.seen(t=0, state=3, queue=(0, 0)))  # as if it were still in state 3
    0
    """
    plan = full_information(problem).actions
    return FunctionPolicy(partial(_on_newest, plan, _mode(problem.initial)), problem.n_actions)


def _on_newest(plan: Ints, first: int, info: Information) -> int:
    return int(plan[min(info.h, len(plan) - 1), first if info.state is None else info.state])


def qmdp(problem: ImpairedMDP) -> FunctionPolicy | NodePolicy:
    """Act as if everything were seen from the next step on (with late actions: as early as it can be acted upon).

    Parameters
    ----------
    problem : ImpairedMDP
        The process behind any channel.

    Returns
    -------
    FunctionPolicy or NodePolicy
        The policy.

    Examples
    --------
    >>> import oldlight as ol
    >>> from oldlight.planning.heuristics import qmdp
    >>> problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:2", start="warm")
    >>> ol.evaluate(problem, qmdp(problem)).value <= ol.solve(problem).value
    True
    """
    from oldlight.planning.ladder import rung

    if problem.forever:
        Q = _endless_plan(ImpairedMDP(problem.mdp, ConstantDelay(0)))[1]
        return FunctionPolicy(partial(_on_expected, problem, Q), problem.n_actions)
    policy: FunctionPolicy | NodePolicy = rung(problem, problem.actuation)[1]
    return policy


def _on_expected(problem: ImpairedMDP, Q: Floats, info: Information) -> int:
    x = current(problem, info) @ Q
    return int(np.flatnonzero(x >= x.max() - 1e-12 * np.abs(x).max())[0])


def open_loop(problem: ImpairedMDP, *, tolerance: float = 0.0) -> FunctionPolicy:
    """The best fixed sequence of actions, whatever is seen.

    Parameters
    ----------
    problem : ImpairedMDP
        The process and the distribution of its first state.
    tolerance : float
        0 for the best sequence; otherwise one within `tolerance` of it.

    Returns
    -------
    FunctionPolicy
        The policy.

    Examples
    --------
    >>> import oldlight as ol
    >>> from oldlight.planning.heuristics import open_loop
    >>> problem = ol.ImpairedMDP(ol.instances.dichotomy(1), "constant:1")
    >>> ol.evaluate(problem, open_loop(problem)).value
    0.5
    """
    rho = problem.state_at_zero / problem.state_at_zero.sum()
    late = problem.actuation
    blind = ImpairedMDP(problem.mdp.replace(initial=rho), Loss(seen=0.0), actuation=late, pending=problem.pending)
    plan: Any = plan_exactly(blind, tolerance).policy
    sequence: list[int] = [*problem.pending[: problem.horizon]]
    for h in range(len(sequence), problem.horizon):
        sequence.append(int(plan.action(Information(h, None, None, tuple(sequence), h))))
    return FunctionPolicy(partial(_by_time, np.array(sequence)), problem.n_actions)


def _by_time(sequence: Ints, info: Information) -> int:
    return int(sequence[info.h])


def certain(problem: ImpairedMDP) -> bool:
    """Can the current state always be computed: deterministic transitions, and a start or past that is known?

    Parameters
    ----------
    problem : ImpairedMDP
        The process and its channel.

    Returns
    -------
    bool
        If so, the full-information plan on that state is exact.

    Examples
    --------
    >>> import oldlight as ol
    >>> from oldlight.planning.heuristics import certain
    >>> certain(ol.ImpairedMDP(ol.instances.sensing_chain(1.0), "constant:2", start="warm"))
    True
    """
    if any(step.width > 1 or (step.weight != 1).any() for step in all_successors(problem.mdp)):
        return False
    at_once = problem.law.first[0] == 1 and (problem.arrival_probability is None or problem.arrival_probability[0] == 1)
    return bool(problem.warmup or at_once or problem.initial.max() == 1)


__all__ = ["certain", "full_information", "memoryless", "most_likely", "open_loop", "qmdp"]
