"""Explicit models, for checking and for export: the augmented MDPs of the paper's Section 3 as sparse matrices.

**MDP_aug** (`augmented`). State τ_h = (t, s_t, queue a_t..a_{h−1}, δ), expected reward by the belief b_h, H steps:

    r_aug(τ_h, a_h) = E[ r_h(s_h, a_h) | τ_h ] = Σ_s b_h(s|τ_h)·r_h(s, a_h)
    p_aug, delay:  θ_t(s_t, a_t, δ)·p_t(s_{t+1}|s_t, a_t)  to (t + 1, s_{t+1}, a_{t+1}..a_h, 0)
                   1 − θ_t(s_t, a_t, δ)                    to (t, s_t, a_t..a_h, δ + 1)
    p_aug, loss:   λ_u·p(s_u|s_t, a_t..a_{u−1})            to (u, s_u, a_u..a_h, 0),   u = h + 1 − d settled d late
                   1 − λ_u                                 to (t, s_t, a_t..a_h, δ + 1)

Before anything is seen, rho plays the part of the law of s_t, and under delay the hazard of d_0 that of θ. If the queue
is empty, a_t is the action being taken. The last step leads to one absorbing *end* state without reward.

**Past-reward twin** (`past_reward`; delay). The same information states while h < H, then one forced arrival a step
with the queue cut off after a_{H−1}, 2H steps in all (H + warmup after a longer warm start). The first forced arrival
follows step H − 1, a case that the paper leaves out; if nothing has been seen by then it is that of step 0, drawn from
rho. Every executable policy has the same value in both, whatever it does after step H − 1 (Proposition 1). The reward:

    r̃_aug(τ_h, a_h) = r_t(s_t, a_t)·1{δ = 0}·1{0 ≤ t < H}

**Index.** States come in *segments* of equal (h, t, δ), so of equal queue length m: state s with queue code c stands at
offset + s·A^m + c, or offset + c where nothing has been seen (codes: `oldlight.model.information`). Under delay the segments
are those of `Layout` and the index is `Layout.index(info)`; under loss they go by time, shortest queue first, nothing
seen last. The twin's own follow by time, shortest queue first; the end comes last. Places that no episode reaches are
kept; what has nowhere to go from there goes to the end. Rows of the transition matrix are pairs i·A + a. Before late
actions take effect (h < actuation) every a stands for the one under way.

**Other solvers.** In each, v0[i] is the most that can be earned from state i on, and v0 @ model.initial is the value.

    R, Q, s, a = to_quantecon(model)
    v0 = quantecon.markov.backward_induction(quantecon.markov.DiscreteDP(R, Q, 1.0, s, a), model.horizon)[0][0]
    P, R = to_mdptoolbox(model)             # its checks make n × n arrays: for models of a few thousand states
    plan = mdptoolbox.mdp.FiniteHorizon(P, R, 1, model.horizon); plan.run(); v0 = plan.V[:, 0]
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from oldlight import checks
from oldlight.arrays import Floats, Ints
from oldlight.machine import default_limit, format_bytes
from oldlight.model.information import Information, Layout, beginnings, decode, encode, settled_late
from oldlight.model.policies import Policy, probabilities_at
from oldlight.model.problem import ImpairedMDP, checked_problem
from oldlight.model.successors import all_successors

Key = tuple[int, int | None, int, int]  # the first four of a segment


class Segment(NamedTuple):
    """`size` states from `offset` on: time h, newest seen step t (None: nothing seen), wait δ, queue length m."""

    h: int
    t: int | None
    waited: int
    m: int
    offset: int
    size: int


@dataclass(frozen=True, eq=False)
class AugmentedMDP:
    """An ordinary MDP whose states are information states: run `horizon` steps from the law `initial`."""

    problem: ImpairedMDP
    segments: tuple[Segment, ...]
    transitions: Any  # scipy.sparse.csr_array [i·A + a, j]
    rewards: Floats  # [i, a]
    initial: Floats  # [i]
    horizon: int

    @property
    def size(self) -> int:
        """The number of states, the end included."""
        return len(self.initial)

    @cached_property
    def times(self) -> Ints:
        """[i]: the time h of state i; `horizon` for the end."""
        return np.repeat([*(x.h for x in self.segments), self.horizon], [*(x.size for x in self.segments), 1])

    @cached_property
    def _places(self) -> dict[tuple[int, int | None, int], Segment]:
        return {(x.h, x.t, x.waited): x for x in self.segments}

    def information(self, i: int) -> Information | None:
        """What the agent knows in state i; None at the end. From time H on the queue stops at a_{H−1}."""
        if checks.whole("state", i, most=self.size - 1) == self.size - 1:
            return None
        h, t, waited, m, offset, _ = self.segments[bisect(self.segments, i, key=lambda x: x.offset) - 1]
        s, code = divmod(int(i) - offset, self.problem.n_actions**m)
        return Information(h, t, None if t is None else s, decode(code, m, self.problem.n_actions), waited)

    def index(self, info: Information | None) -> int:
        """Where `info` stands (None: the end); raises KeyError where it has no place."""
        if info is None:
            return self.size - 1
        h, t, s, queue, waited = info
        S, A = self.problem.n_states, self.problem.n_actions
        place = self._places.get((h, t, h + 1 if t is None else waited))
        known = s is None if t is None else s is not None and 0 <= s < S
        if place is None or not known or len(queue) != place.m or not all(0 <= a < A for a in queue):
            raise KeyError(f"no information state {tuple(info)} in this model")
        return int(place.offset + (s or 0) * A**place.m + encode(queue, A))

    def __repr__(self) -> str:
        return f"AugmentedMDP({self.size:,} states, {self.transitions.nnz:,} transitions, {self.horizon} steps)"


def augmented(problem: ImpairedMDP, *, max_bytes: int | None = None) -> AugmentedMDP:
    """MDP_aug, with expected rewards. Refused above `max_bytes` (half of the machine's memory if None)."""
    checked_problem(problem, "augmented")
    return _write(problem, False, max_bytes)


def past_reward(problem: ImpairedMDP, *, max_bytes: int | None = None) -> AugmentedMDP:
    """The past-reward twin, under delay."""
    checked_problem(problem, "past_reward")
    return _write(problem, True, max_bytes)


def values(model: AugmentedMDP) -> Floats:
    """[i]: the most that can be earned from state i on, by `horizon` rounds of plain value iteration."""
    v: Floats = np.zeros(model.size)
    for _ in range(model.horizon):
        v = (model.rewards + (model.transitions @ v).reshape(model.rewards.shape)).max(axis=1)
    return v


def value(model: AugmentedMDP) -> float:
    """The optimal value: what the best executable policy earns."""
    return float(model.initial @ values(model))


def policy_value(model: AugmentedMDP, policy: Policy) -> float:
    """What an executable policy earns, by the law of the states step by step. It is asked only where it can come to."""
    total, law = 0.0, model.initial
    open_to_choice = (model.times >= model.problem.actuation) & (model.times < model.problem.horizon)
    for _ in range(model.horizon):
        pairs = np.zeros(model.rewards.shape)  # the probability of (i, a) at this step
        pairs[:, 0] = law  # any action will do where there is no choice
        for i in np.flatnonzero((law > 0) & open_to_choice).tolist():
            pairs[i] = law[i] * probabilities_at(model.problem, policy, model.information(i))  # type: ignore[arg-type]
        total += float((pairs * model.rewards).sum())
        law = model.transitions.T @ pairs.reshape(-1)
    return total


def to_quantecon(model: AugmentedMDP) -> tuple[Floats, Any, Ints, Ints]:
    """(R, Q, s_indices, a_indices) of `quantecon.markov.DiscreteDP`, by pairs; see the module's text for the call."""
    s_indices, a_indices = np.divmod(np.arange(model.rewards.size), model.problem.n_actions)
    return model.rewards.reshape(-1), model.transitions, s_indices, a_indices


def to_mdptoolbox(model: AugmentedMDP) -> tuple[list[Any], Floats]:
    """(P, R) of `mdptoolbox.mdp.FiniteHorizon`: a sparse n × n matrix for each action, and (n, A); call as above. Rows
    are divided by their sums, because none may be off by more than 2e-15 there."""
    P = [model.transitions[a :: model.problem.n_actions] for a in range(model.problem.n_actions)]
    for matrix in P:
        matrix.data /= np.repeat(np.asarray(matrix.sum(axis=1)).reshape(-1), np.diff(matrix.indptr))
    return P, model.rewards


def _segments(problem: ImpairedMDP) -> list[Segment]:
    """The information states of the times 0..H−1."""
    H, seen, keys = problem.horizon, problem.arrival_probability, list[Key]()
    if seen is None:
        layout = Layout.of(problem)
        keys += [(h, h - m, waited, m) for h in range(H) for _, m, waited, _ in layout.blocks(h)]
        keys += [(h, None, h + 1, h) for h in np.flatnonzero(layout.root >= 0).tolist()]
        return _line_up(problem, keys)
    for h in range(H):
        u = h - settled_late(problem)
        sure = np.flatnonzero(seen[: max(u + 1, 0)] >= 1).tolist()  # none before the last is the newest
        keys += [(h, t, u - t, h - t) for t in range(u, max(sure, default=0) - 1, -1) if seen[t] > 0]
        keys += [] if sure else [(h, None, h + 1, h)]
    return _line_up(problem, keys)


def _after_the_end(problem: ImpairedMDP, segments: list[Segment]) -> list[Segment]:
    """The twin's states from time H on: newest seen step t = H − m, queue a_t..a_{H−1}."""
    H = problem.horizon
    lengths = sorted({H if x.t is None else x.m for x in segments if x.h == H - 1})
    keys: list[Key] = [(H + j, H - m + j, 0, m - j) for j in range(lengths[-1]) for m in lengths if m > j]
    return _line_up(problem, keys, sum(x.size for x in segments))


def _line_up(problem: ImpairedMDP, keys: list[Key], offset: int = 0) -> list[Segment]:
    sizes = [problem.n_actions**m * (1 if t is None else problem.n_states) for _, t, _, m in keys]
    return [Segment(*key, i, n) for key, i, n in zip(keys, accumulate(sizes, initial=offset), sizes, strict=False)]


def _write(problem: ImpairedMDP, past: bool, max_bytes: int | None) -> AugmentedMDP:
    """Count, refuse what is too large, write segment by segment."""
    from scipy.sparse import csr_array, vstack  # not at the top, so that importing this module is quick

    S, A, H, segments = problem.n_states, problem.n_actions, problem.horizon, _segments(problem)
    if past and problem.arrival_probability is not None:
        raise ValueError(f"past_reward is for delay: what {problem.channel!r} loses never arrives. Use augmented")
    segments += _after_the_end(problem, segments) if past else []
    end, moving = sum(x.size for x in segments), [x.size for x in segments if past or x.h < H - 1]
    wide = (
        S
        if problem.arrival_probability is not None
        else 1 + int(np.mean([step.count.mean() for step in all_successors(problem.mdp)]))
    )
    need = A * (wide * (24 * sum(moving) + 64 * max(moving, default=0)) + 96 * end)  # all rows, work on one segment
    limit = default_limit() if max_bytes is None else checks.whole("max_bytes", max_bytes, least=1)
    if need > limit:
        raise checks.TooLarge(
            f"the {'past-reward' if past else 'augmented'} model of {problem!r} has {end + 1:,} states and needs about "
            f"{format_bytes(need)}; the limit is {format_bytes(limit)}. Ways out: oldlight.solve(problem) plans without it, raise "
            "max_bytes, or shorten the horizon or the delay (channel.capped(k))"
        )
    rewards, places = np.zeros((end + 1, A)), {(x.h, x.t, x.waited): x.offset for x in segments}
    for x in segments:
        here = rewards[x.offset : x.offset + x.size]
        if not past:
            acts = [problem.pending[x.h]] * A if x.h < problem.actuation else np.arange(A)
            here[:] = _follow(problem, x, x.m, problem.mdp.rewards[x.h][:, acts])
        elif x.t is not None and x.waited == 0:
            here[:] = problem.rewards_at(x.t).reshape(-1)[_pairs(problem, x)[2]].reshape(-1, A)
    rows = [_moves(problem, x, places, end, csr_array) for x in segments]
    rows.append(csr_array((np.ones(A), np.full(A, end), np.arange(A + 1)), shape=(A, end + 1)))
    horizon = max(2 * H, H + problem.warmup) if past else H
    model = AugmentedMDP(problem, tuple(segments), vstack(rows, format="csr"), rewards, np.zeros(end + 1), horizon)
    for p, info in beginnings(problem):
        model.initial[model.index(info)] = p
    return model


def _follow(problem: ImpairedMDP, x: Segment, n: int, future: Floats) -> Floats:
    """E[ future[s_{t+n}, k] | s_t, a_t..a_{t+n−1} ], axes [s_t·A^n + code, k]; from rho, [code, k], at a root."""
    t, (S, width) = x.t or 0, future.shape
    out = future[:, None, :]  # [s, code, k]
    for i in range(t + n - 1, t - 1, -1):
        out = (problem.matrix_at(i) @ out.reshape(S, -1)).reshape(S, problem.n_actions, -1, width)
        out = out.swapaxes(1, 2).reshape(S, -1, width)  # [s, q1, rest, k] -> [s, code = q1 + A·rest, k]
    return np.tensordot(problem.initial, out, axes=1) if x.t is None else out.reshape(-1, width)


def _pairs(problem: ImpairedMDP, x: Segment) -> tuple[Ints, Ints, Ints]:
    """For each pair (state, a): s; the code of the queue with a, cut off after a_{H−1}; and s·A + the oldest of it."""
    A, C = problem.n_actions, problem.n_actions**x.m
    i, a = np.divmod(np.arange(x.size * A), A)
    s, code = np.divmod(i, C)
    code += C * (0 if x.h >= problem.horizon else a if x.h >= problem.actuation else problem.pending[x.h])
    return s, code, s * A + code % A


def _moves(problem: ImpairedMDP, x: Segment, places: dict[tuple[int, int | None, int], int], end: int, csr: Any) -> Any:
    """The rows of the pairs of one segment."""
    S, A, H, law, seen = problem.n_states, problem.n_actions, problem.horizon, problem.law, problem.arrival_probability
    s, longer, s_q1 = _pairs(problem, x)
    u = x.h + 1 - settled_late(problem) if seen is not None else 0 if x.t is None else x.t + 1
    theta = np.ones(len(s))
    if x.h < H - 1 and seen is not None:
        theta[:] = seen[u] if u >= 0 else 0.0
    elif x.h < H - 1 and x.t is None:
        theta[:] = law.first_hazard[x.h + 1]
    elif x.h < H - 1 and x.t is not None and x.m < law.longest_delay:
        theta = np.broadcast_to(law.at_step(law.hazard, x.t)[..., x.waited], (S, A)).reshape(-1)[s_q1]
    # What arrives is s_u, drawn from row `head` of P; n actions of the queue are older, the others stay in it.
    n, arrive = u - (x.t or 0), places.get((x.h + 1, u, 0), end)
    if arrive == end:
        P, head, stride, rest = np.ones((1, 1)), 0 * s, 0, 0 * s
    else:
        one = x.t is not None and n == 1
        P = problem.matrix_at(u - 1) if one else _follow(problem, x, n, np.eye(S))
        head, stride, rest = s * A**n + longer % A**n, A ** (x.m + (x.h < H) - n), longer // A**n
    row = csr(P)[head]
    count, shape = np.diff(row.indptr), (len(s), end + 1)
    to = arrive + row.indices.astype(np.int64) * stride + np.repeat(rest, count)
    news = csr((row.data * np.repeat(theta, count), to, row.indptr), shape=shape)
    if (theta == 1).all():
        return news
    to = places[x.h + 1, x.t, x.waited + 1] + s * A ** (x.m + 1) + longer
    return news + csr((1 - theta, to, np.arange(len(s) + 1)), shape=shape)
