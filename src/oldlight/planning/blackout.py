"""Sequences of actions for blackouts: what they earn exactly, and those of a plan whose corners are settled.

Behind losses with a constant delay d, step u = h − d is settled (seen, or known to be lost) at time h. A policy of sequences knows the newest settled
observation with its queue, and follows one sequence of actions while nothing more is seen (`oldlight.model.policies.BlackoutPolicy`). Its value is a walk
along each sequence, last step first; with a plan (`oldlight.planning.settling`) the sequences are its decisions at the laws that a blackout leads to.

Laws go forward along each sequence in one compiled call (`oldlight.kernels.blackout`). Of sparse and of larger processes no law is written out. A *word* of step u is a queue with the sequence after it, H − u actions; what it earns from each state,

    α_u[s, w] = r_u(s, w1) + Σ_s2 P_u(s2|s, w1)·( λ_{u+1}·V_{u+1}[s2, w2..w_{d+1}] + (1 − λ_{u+1})·α_{u+1}[s2, w2 w3 ..] ),

is a product with P_u for all words that begin alike, and V_u[s, q] is α_u[s] at the word of s and q. Where words are too many to keep, laws go forward after all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from oldlight.arrays import Floats, Ints, action_type
from oldlight.model.channels import ConstantDelay
from oldlight.model.information import Information, Layout, decode, encode, settled_late
from oldlight.model.policies import BlackoutPolicy
from oldlight.model.problem import ImpairedMDP
from oldlight.planning.ages import Plant
from oldlight.planning.delay import DelayModel, Induction

if TYPE_CHECKING:
    from oldlight.planning.link_plan import LinkPlan
    from oldlight.planning.settling import SettledSearch

ROOM = 2**25  # entries of a table of what words earn
SHORT = 1e8  # products of walking along every sequence, up to which that is quicker than words


def blackout_policy(
    problem: ImpairedMDP, plan: LinkPlan, search: SettledSearch, elsewhere: Callable[[Information], int]
) -> BlackoutPolicy:
    """The sequences of a plan whose corners are settled; off them `elsewhere` is asked."""
    H, S, A, d = problem.horizon, problem.n_states, problem.n_actions, search.tables.layers.depth
    late = settled_late(problem)
    Q, few = A**late, len(plan.kept)
    sequences = np.zeros((H + 1, S, Q, H), dtype=action_type(A))
    if late == d:  # else nothing is ever seen
        found = search.corner_sequences.reshape(H - d, S, few**d, H - d)
        if few < A:
            codes = np.arange(Q)
            mine = sum((plan.number[codes // A**j % A] * few**j for j in range(d)), np.zeros(Q, np.int64))
            found = plan.kept[found[:, :, mine]]
        sequences[1 : H - d + 1, :, :, : H - d] = found
    code = 0
    for h in range(d):
        root = next(i for i, block in enumerate(search.tables.layers.blocks[h]) if block.root)
        a = search.action(h, root, code, -1, problem.initial)
        sequences[0, 0, 0, h] = plan.kept[a]
        code += a * few**h
    start = search.start_sequence if d == 0 else search.sequences(d, problem.initial[None], np.array([code]))[0]
    sequences[0, 0, 0, d:] = start if few == A else plan.kept[start]
    return BlackoutPolicy.trusted(sequences, A, late, elsewhere)


def after_the_end(problem: ImpairedMDP, d: int) -> Floats:
    """G_{H−d}[s, q]: what the d actions that are done but not settled at time H still earn."""
    late = ImpairedMDP(problem.mdp, ConstantDelay(d))
    stage = Induction(DelayModel(late, Layout.of(late))).run(stop=late.horizon)
    return stage.values[d, 0] if d < problem.horizon else np.asarray(stage.root)


def blackout_values(problem: ImpairedMDP, policy: BlackoutPolicy) -> Floats:
    """The exact value of a policy of sequences, per start state: by words, or by one walk along each sequence, last step first."""
    seen, d = problem.arrival_probability, settled_late(problem)
    assert seen is not None
    H, S, A, Q = problem.horizon, problem.n_states, problem.n_actions, problem.n_actions**d
    G = after_the_end(problem, d).reshape(S, Q)
    small = not problem.mdp.sparse and H * H * Q * S**3 <= SHORT
    words = None if small or d == H else _words(problem, policy, d)
    if words is not None:
        return _values_of_words(problem, words, d, G)
    from oldlight.kernels import blackout as kernels
    from oldlight.kernels.graph import Process

    process = Process(np.array([S, A, d, H]), A ** np.arange(d + 2), *Plant(problem.mdp).lists, np.zeros(1))
    corner, unseen = np.zeros((H - d + 1, S, Q)), np.empty(S)
    first = encode(tuple(policy.sequences[0, 0, 0, :d].tolist()), A)
    losses = (d, np.array(seen), np.ascontiguousarray(G))
    sequences = np.require(policy.sequences, action_type(A), ["C", "W"])  # one kind of array: one loop is compiled
    kernels.walk_all(process, losses, sequences, first, corner, unseen)
    if d == H:
        return unseen
    return np.asarray(seen[0] * corner[0][:, first] + (1.0 - seen[0]) * unseen)


@dataclass(frozen=True, eq=False)
class _Words:
    """The different words of one step [n, H − u]; the number of each corner's own [s, q] (of step 0 also that of the start), and of each word's rest
    among those of the next step."""

    actions: Ints
    own: Ints
    rest: Ints


def _words(problem: ImpairedMDP, policy: BlackoutPolicy, d: int) -> list[_Words] | None:
    """The words of steps 0..H − d − 1; None where they are many."""
    H, S, A, Q = problem.horizon, problem.n_states, problem.n_actions, problem.n_actions**d
    queues = np.array([decode(code, d, A) for code in range(Q)], dtype=np.int64).reshape(Q, d)
    before = policy.sequences[0, 0, 0][None].astype(np.int64)  # of step 0: the start
    found: list[_Words] = []
    for u in range(H - d):
        mine = policy.sequences[u + 1, :, :, : H - d - u].astype(np.int64)
        corners = np.concatenate([np.broadcast_to(queues, (S, Q, d)), mine], axis=2).reshape(S * Q, H - u)
        words, number = np.unique(np.concatenate([before, corners]), axis=0, return_inverse=True)
        number = number.reshape(-1)
        if len(words) * S > ROOM:
            return None
        if found:
            found[-1] = replace(found[-1], rest=number[: len(before)])
        own = number if not found else number[len(before) :]
        found.append(_Words(words, own, np.zeros(0, np.int64)))
        before = words[:, 1:]
    return found


def _values_of_words(problem: ImpairedMDP, words: list[_Words], d: int, G: Floats) -> Floats:
    """The value per start state, by the recursion of the module's text."""
    seen = problem.arrival_probability
    assert seen is not None
    S, A, U = problem.n_states, problem.n_actions, len(words)
    power = A ** np.arange(d)
    later, corner = np.zeros((S, 0)), G  # α and V of step u + 1
    for u in range(U - 1, -1, -1):
        actions = words[u].actions
        code = actions[:, 1 : d + 1] @ power  # of the next queue
        if u + 1 < U:
            ahead = seen[u + 1] * corner[:, code] + (1.0 - seen[u + 1]) * later[:, words[u].rest]
        else:
            ahead = G[:, code]
        later, matrix = np.empty((S, len(actions))), problem.matrix_at(u)
        for a in np.unique(actions[:, 0]).tolist():
            mine = actions[:, 0] == a
            later[:, mine] = problem.rewards_at(u)[:, a, None] + matrix[a::A] @ ahead[:, mine]
        own = words[u].own if u else words[u].own[1:]
        corner = later[np.arange(S)[:, None], own.reshape(S, -1)]
    blind = int(words[0].own[0])
    first = int(words[0].actions[blind, :d] @ power)
    return np.asarray(seen[0] * corner[:, first] + (1.0 - seen[0]) * later[:, blind])
