"""Sequences of actions for blackouts: what they earn exactly, and those of a plan whose corners are settled.

Behind losses with a constant delay d, step u = h − d is settled (seen, or known to be lost) at time h. A policy of sequences knows the newest settled
observation with its queue, and follows one sequence of actions while nothing more is seen (`oldlight.model.policies.BlackoutPolicy`). Its value is a walk
along each sequence, last step first; with a plan (`oldlight.planning.settling`) the sequences are its decisions at the laws that a blackout leads to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oldlight.model.channels import ConstantDelay
from oldlight.model.information import Information, Layout, advance, encode, settled_late
from oldlight.model.policies import BlackoutPolicy
from oldlight.model.problem import ImpairedMDP
from oldlight.planning.delay import DelayModel, Induction, action_type

if TYPE_CHECKING:
    from oldlight.planning.link_plan import LinkPlan
    from oldlight.planning.settling import SettledSearch

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def blackout_policy(
    problem: ImpairedMDP, plan: LinkPlan, search: SettledSearch, elsewhere: Callable[[Information], int]
) -> BlackoutPolicy:
    """The sequences of a plan whose corners are settled; off them `elsewhere` is asked."""
    H, S, A, d = problem.horizon, problem.n_states, problem.n_actions, search.tables.layers.depth
    late = settled_late(problem)
    Q, few = A**late, len(plan.kept)
    codes = np.arange(Q)
    mine = sum((plan.number[codes // A**j % A] * few**j for j in range(d)), np.zeros(Q, np.int64))
    sequences = np.zeros((H + 1, S, Q, H), dtype=action_type(A))
    small = few**d  # queues of actions that differ
    s, q = np.arange(S * small) // small, np.arange(S * small) % small
    for u in range(H - d if late == d else 0):  # else nothing is ever seen
        found = plan.kept[search.sequences(u + d, np.eye(S)[s], q)].reshape(S, small, -1)
        sequences[u + 1, :, :, : H - d - u] = found[:, mine]
    code = 0
    for h in range(d):
        root = next(i for i, block in enumerate(search.tables.layers.blocks[h]) if block.root)
        a = search.action(h, root, code, -1, problem.initial)
        sequences[0, 0, 0, h] = plan.kept[a]
        code += a * few**h
    sequences[0, 0, 0, d:] = plan.kept[search.sequences(d, problem.initial[None], np.array([code]))[0]]
    return BlackoutPolicy(sequences, A, late, elsewhere)


def after_the_end(problem: ImpairedMDP, d: int) -> Floats:
    """G_{H−d}[s, q]: what the d actions that are done but not settled at time H still earn."""
    late = ImpairedMDP(problem.mdp, ConstantDelay(d))
    stage = Induction(DelayModel(late, Layout.of(late))).run(stop=late.horizon)
    return stage.values[d, 0] if d < problem.horizon else np.asarray(stage.root)


def blackout_values(problem: ImpairedMDP, policy: BlackoutPolicy) -> Floats:
    """The exact value of a policy of sequences, per start state: one walk along each sequence, last step first."""
    seen, d = problem.arrival_probability, settled_late(problem)
    assert seen is not None
    H, S, A, Q = problem.horizon, problem.n_states, problem.n_actions, problem.n_actions**d
    G = after_the_end(problem, d)
    corner = np.zeros((H - d + 1, S, Q))  # the value from an observation of step u in state s, with queue q, on
    s, q = np.arange(S * Q) // Q, np.arange(S * Q) % Q

    def walk(u: int, B: Floats, queue: NDArray[np.int64], actions: NDArray[Any]) -> Floats:
        """Rewards from step u on, when s_u ~ B[i], the queue is queue[i], and actions[i] follow while nothing is seen."""
        weight, value = 1.0, np.zeros(len(B))
        for j in range(H - d - u):
            acts = actions[:, j].astype(np.int64)
            heads = acts if d == 0 else queue % A
            queue = queue if d == 0 else queue // A + acts * A ** (d - 1)
            value += weight * np.einsum("is,si->i", B, problem.rewards_at(u + j)[:, heads])
            B = advance(B, heads, problem.matrix_at(u + j))
            if u + j + 1 < H - d:
                value += weight * seen[u + j + 1] * np.einsum("is,si->i", B, corner[u + j + 1][:, queue])
                weight *= 1.0 - seen[u + j + 1]
        return np.asarray(value + weight * np.einsum("is,si->i", B, G[:, queue]))

    for u in range(H - d - 1, -1, -1):
        corner[u] = walk(u, np.eye(S)[s], q, policy.sequences[u + 1].reshape(S * Q, H)).reshape(S, Q)
    blind = policy.sequences[0, 0, 0]
    first = encode(tuple(blind[:d].tolist()), A)
    unseen = walk(0, np.eye(S), np.full(S, first), np.broadcast_to(blind[d:], (S, H - d)))
    if d == H:
        return unseen
    return np.asarray(seen[0] * corner[0][:, first] + (1.0 - seen[0]) * unseen)
