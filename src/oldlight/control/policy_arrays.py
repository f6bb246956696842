"""A policy on a problem as the arrays that a `Controller` reads (`oldlight.control.plan_tables`).

**A discounted plan without end.** `TabularMDP.discounted` cuts an endless process with discount u off after H steps. If
transitions and link do not change with time, let V_n be the best value of n more steps, at any information state, in rewards of
the time when they begin; M = (max r − min r)/2 and V the best endless value. Adding a constant to all rewards changes no
choice, so take |r| ≤ M: then |V_{n+1} − V_n| ≤ u^n·M, and |V − V_n| ≤ u^n·M/(1−u).

The plan at time h acts best for n = H − h more steps. *Turn its clock back* whenever you like, so that n goes on to n − 1 or to
any larger number that the plan has. Then the value W of what is done differs from V_n by at most u^n·M/(1−u): with n' ≥ n − 1
the next number, the same choice stands in both, and

    |W − V_n| ≤ u·( |W' − V_n'| + |V_n' − V_{n−1}| ) ≤ u·( u^n'·M/(1−u) + (u^{n−1} − u^n')·M/(1−u) ) = u^n·M/(1−u).

Hence at a time when the plan's clock has n steps to go, acting so for ever loses at most

    u^n·(max r − min r)/(1−u)

against the best endless policy; from time 0 on that is at most twice the process's `truncation_error`. The rule here is:
- delay: the clock stands still at time `hold`, the first at which every information state of the long run has its place in the
  table (constant delay d: hold = d after a cold start, 0 after a warm one). So n = H − hold for ever.
- loss: the clock goes back to the beginning at each observation (n = H − late), and counts on through a blackout.
`loss_bound` is that number for n = H − hold. It holds for an exact plan behind the link that was planned for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.arrays import Ints
from oldlight.control.plan_tables import ACTIONS, ASKED, NODES, PROBABILITIES, SEQUENCES, STATIONARY, Tables
from oldlight.model.information import Layout
from oldlight.model.link_information import PolicyOfNodes
from oldlight.model.mdp import TabularMDP
from oldlight.model.policies import BlackoutPolicy, MarkovPolicy, TablePolicy
from oldlight.model.policy_check import check_made_for
from oldlight.model.problem import ImpairedMDP, checked_problem
from oldlight.model.stationary_policy import StationaryPolicy
from oldlight.model.successors import likely_successors

ENDS_BY_NODES = "a plan made by the nodes of a link's automaton has no table whose clock could stand still"
_NONE: Ints = np.zeros(0, dtype=np.int64)


def tables_of(problem: ImpairedMDP, policy: Any) -> Tables:
    """The arrays for `policy` on `problem`; refused if it was made for another problem."""
    checked_problem(problem, "Controller")
    if problem.forever:
        return _stationary(problem, policy)
    by_nodes = not problem.has_delay_law or isinstance(policy, PolicyOfNodes)
    mdp, H = problem.mdp, problem.horizon
    u = discount_of(mdp)
    hold, why = (-1, "") if u is None else standstill(problem) if not by_nodes else (-1, ENDS_BY_NODES)
    parts: dict[str, Any] = {
        "horizon": H,
        "n_states": problem.n_states,
        "n_actions": problem.n_actions,
        "warmup": problem.warmup,
        "pending": problem.pending,
        "likely": checks.frozen(likely_successors(mdp).astype(np.min_scalar_type(problem.n_states))),
        "first_state": int(problem.initial.argmax()),
        "hold": hold,
        "why_it_ends": why,
    }
    if u is not None and hold >= 0:
        span = float(np.ptp(mdp.rewards[0]))
        parts |= {"discount": u, "loss_bound": u ** (H - hold) * span / (1.0 - u)}
    if isinstance(policy, MarkovPolicy):
        raise TypeError(
            f"{policy!r} acts on the current state, which a controller does not see; plan: oldlight.solve(problem)"
        )
    check_made_for(problem, policy)
    if by_nodes:
        return _of_nodes(problem, policy, parts)
    if isinstance(policy, TablePolicy):
        kind, body = (
            (ACTIONS, policy.actions) if policy.actions is not None else (PROBABILITIES, policy.action_probabilities)
        )
        assert body is not None
        offset, root = policy.layout.offset, policy.layout.root
        if hold >= 0:
            offset, root, body = _up_to(policy.layout, body, hold)
        return Tables(kind=kind, table=body, offset=offset, root=root, late=0, **parts)
    if isinstance(policy, BlackoutPolicy):
        table = policy.sequences if hold < 0 else np.array(policy.sequences[:2])
        return Tables(kind=SEQUENCES, table=table, offset=_NONE, root=_NONE, late=policy.late, **parts)
    if u is not None:
        parts |= {"hold": -1, "why_it_ends": "a policy that is asked has no table whose clock could stand still"}
    return Tables(kind=ASKED, table=_NONE, offset=_NONE, root=_NONE, late=0, **parts)


def _stationary(problem: ImpairedMDP, policy: Any) -> Tables:
    """A plan of a process that runs for ever."""
    if not isinstance(policy, StationaryPolicy):
        raise TypeError(
            f"a controller of a process that runs for ever takes the plan of oldlight.solve(problem), not a {type(policy).__name__}"
        )
    check_made_for(problem, policy)
    likely = likely_successors(problem.mdp).astype(np.min_scalar_type(problem.n_states))
    return Tables(
        kind=STATIONARY, horizon=1, n_states=problem.n_states, n_actions=problem.n_actions, warmup=problem.warmup,
        pending=problem.pending, table=_NONE, offset=_NONE, root=_NONE, late=0, likely=checks.frozen(likely),
        first_state=int(problem.initial.argmax()), hold=0, discount=policy.discount,
        loss_bound=max(policy.upper - policy.lower, 0.0), stationary=policy,
    )  # fmt: skip


def _of_nodes(problem: ImpairedMDP, policy: Any, parts: dict[str, Any]) -> Tables:
    """A policy that reads the nodes of the link's automaton: its tables, or the automaton to ask it by."""
    link = policy.as_arrays() if hasattr(policy, "as_arrays") else None
    kind, automaton = (ASKED, problem.automaton) if link is None else (NODES, None)
    return Tables(kind=kind, table=_NONE, offset=_NONE, root=_NONE, late=0, **parts, link=link, automaton=automaton)


def discount_of(mdp: TabularMDP) -> float | None:
    """u, if `mdp` is an endless discounted process cut off (`TabularMDP.discounted`), else None."""
    H, R = mdp.finite_horizon, mdp.rewards
    largest = float(np.abs(R[0]).max())
    if mdp.truncation_error <= 0 or not mdp.stationary_transitions or largest == 0:
        return None
    low, high = 0.0, 1.0  # u^H·max|r|/(1−u) = truncation_error, which grows with u
    for _ in range(200):
        u = (low + high) / 2
        low, high = (u, high) if u**H * largest < mdp.truncation_error * (1 - u) else (low, u)
    scaled = u ** np.arange(H)[:, None, None] * R[0]
    return u if np.abs(R - scaled).max() <= 1e-9 * largest else None


def standstill(problem: ImpairedMDP) -> tuple[int, str]:
    """(hold, ""): where the clock of a discounted plan can stand still; or (−1, why not)."""
    law, H = problem.law, problem.horizon
    if law.interarrival.shape[0] != 1:
        return -1, f"the law of {problem.channel!r} changes with time"
    if problem.arrival_probability is not None:
        if (
            law.constant is None
            or np.ptp(problem.arrival_probability) > 0
            or not (problem.loss and problem.loss.independent)
        ):
            return -1, f"the law of {problem.channel!r} changes with time, or its losses are not independent"
        return (law.constant, "") if law.constant < H else (-1, "the delay is not shorter than the plan")
    if problem.warmup:
        return 0, ""
    possible = law.feasible_delays  # [i, d]
    steady = law.longest_wait(0) == 0 or (H > 1 and bool((possible[-1] == possible[-2]).all()))
    if not steady or law.max_delay >= H:
        return (
            -1,
            f"delays behind {problem.channel!r} grow without bound, or beyond the plan's {H} steps; cap them: .capped(k)",
        )
    offset, root = Layout.of(problem).offset, Layout.of(problem).root
    longest = min(law.longest_delay, law.max_delay + law.longest_wait(0))
    wanted = [(m, w) for m in range(longest + 1) for w in range(min(m, law.longest_wait(0)) + 1) if possible[-1, m - w]]
    for h in range(H):
        fits = longest < offset.shape[1] and all(offset[h, m, w] >= 0 for m, w in wanted)
        if root[h] < 0 and fits:
            return h, ""
    return -1, f"the plan's {H} steps are too few for a queue of {longest} actions; a smaller tolerance plans further"


def _up_to(layout: Layout, body: NDArray[Any], hold: int) -> tuple[Ints, Ints, NDArray[Any]]:
    """The part of a table for times 0..hold."""
    offset, root = layout.offset[: hold + 1].copy(), layout.root[: hold + 1].copy()
    pieces: list[NDArray[Any]] = []
    size = 0

    def take(start: int, n: int) -> int:
        nonlocal size
        pieces.append(body[start : start + n])
        size += n
        return size - n

    for h in range(hold + 1):
        for block in layout.blocks(h):
            offset[h, block.m, block.waited] = take(block.offset, layout.block_size(block.m))
        if root[h] >= 0:
            root[h] = take(int(root[h]), layout.n_actions**h)
    return offset, root, np.concatenate(pieces)
