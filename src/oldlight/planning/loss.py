"""Exact planning under loss, without the S·A^H information states: branch and bound on beliefs.

The sufficient statistic is (h, b) with b the law of s_h; after an observation b is a corner e_s.

    Q_h(b, a) = b·r_h(:, a) + λ_{h+1} Σ_s2 b'(s2)·V_{h+1}(e_s2) + (1 − λ_{h+1})·V_{h+1}(b'),    b' = b P_h(a)
    V_h = max_a Q_h,    V_H = 0,    value = λ_0 Σ_s rho(s)·V_0(e_s) + (1 − λ_0)·V_0(rho)

Q_h(·, a) is convex in b, so Q_h(b, a) ≤ Σ_s b(s)·Q_h(e_s, a). A backward pass that solves the corners of step h has the
corner values of step h + 1 at hand for that bound: try actions in the order of their bound, stop when the bound does not
beat the incumbent, pass the cut-off (incumbent − settled part)/(1 − λ) down a blackout, and remember beliefs already met.
A pruned action keeps its bound as its Q, which stays valid as a bound for earlier steps.

Guarantee: with tolerance ε every node is solved to within ε, so upper − lower ≤ ε at the end (a pruned action's bound
exceeds the incumbent by at most ε, and mixing seen and lost branches cannot widen the gap); ε = 0 is exact up to the
rounding of the belief table, which is stated in `work.rounding`.

**Late and lossy.** With a constant delay d ≥ 1 as well, step u = h − d is settled at time h: seen, or known to be lost. The
statistic is (b, q1..qd): the belief of s_u and the queue since, V is convex in b for each queue, and the same search with
corner tables of size S·A^d plans it. With b' = b P_u(q1),

    V_h(b, q1..qd) = b·r_u(:, q1) + max_a [ λ_{u+1} Σ_s2 b'(s2)·V_{h+1}(e_s2, q2..qd, a)
                                          + (1 − λ_{u+1})·V_{h+1}(b', q2..qd, a) ]
    V_H(b, q) = b·G_{H−d}[:, q],    value = max_q λ_0 Σ_s rho(s)·V_d(e_s, q) + (1 − λ_0)·V_d(rho, q)

The code is written once for all d; d = 0, where q1 is a itself, is loss alone. Late actions lengthen the queue.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.checks import TooLarge
from oldlight.kernels.belief_table import GAP, HEAD, SHIFT
from oldlight.machine import default_limit, format_bytes
from oldlight.model.channels import ConstantDelay
from oldlight.model.information import Information, Layout, advance, decode, encode, newest, push, settled_late
from oldlight.model.policies import BlackoutPolicy
from oldlight.model.problem import ImpairedMDP
from oldlight.planning.delay import DelayModel, Induction, action_type
from oldlight.planning.q_values import earned
from oldlight.planning.solution import Solution, Work
from oldlight.progress import progress_bar

Floats = NDArray[np.float64]
FIRST_ENTRIES = 2**14
CHUNK = 64  # corners between two looks at the progress bar and the keyboard


class Search:
    """One branch and bound. P[u, s, a, s2], R[u, s, a] (length 1 on u if stationary), seen[u], after[s, q] the value
    left after the last action, d the queue length."""

    def __init__(
        self, P: Floats, R: Floats, seen: Floats, tolerance: float = 0.0, after: Floats | None = None, d: int = 0
    ) -> None:
        self.P, self.R, self.d = np.array(P, order="C"), np.array(R, order="C"), d
        S, A = R.shape[1:]
        U, Q = len(seen) - d, A**d
        self.S, self.A, self.U, self.Q = S, A, U, Q
        self.seen = np.append(seen, 0.0)  # what follows the last step is never seen
        self.span = float((R.max(axis=(1, 2)) - R.min(axis=(1, 2))).sum()) * (len(seen) if len(R) == 1 else 1)
        magnitude = float(np.abs(R).max(axis=(1, 2)).sum()) * (len(seen) if len(R) == 1 else 1)
        tie = 2.0**-46 * max(magnitude, 1e-300)  # bounds this close are a tie
        self.slack = max(tolerance / GAP, tie)
        self.rounding = (U + 1) * (tie + S * 2.0**-47 * self.span)
        self.corner = np.zeros((2, U + 1, S, Q))
        if after is not None:
            self.corner[:, U] = after
        self.qup = np.zeros((U, S, Q, A))
        self.best = np.zeros((U, S, Q), dtype=np.int64)
        self._space = np.empty((U + 1, A + 3, max(S, A)))
        self._real, self._whole = np.empty((U + 1, 5)), np.zeros((U + 1, 4 + S + 2 * A), dtype=np.int64)
        self._count = np.zeros(2, dtype=np.int64)
        self.most_entries = 2**22
        self._table, self._bounds = np.zeros((0, HEAD + S), np.int64), np.zeros((0, 2))
        self._allocate(FIRST_ENTRIES)

    def _allocate(self, entries: int) -> None:
        """A larger belief table. Of entries that fall on one slot one is kept: the rest is only forgotten, never wrong."""
        old, old_bounds = self._table, self._bounds
        self._table = np.zeros((entries, HEAD + self.S), np.int64)
        self._bounds = np.zeros((entries, 2))
        used = np.flatnonzero(old[:, 0])
        slots, which = np.unique((old[used, 0] >> SHIFT) & (entries - 1), return_index=True)
        self._table[slots], self._bounds[slots] = old[used[which]], old_bounds[used[which]]
        self._count[1] = len(slots)

    @property
    def nodes(self) -> int:
        return int(self._count[0])

    @property
    def bytes(self) -> int:
        arrays = (self.P, self.corner, self.qup, self.best, self._space, self._table, self._bounds)
        return sum(x.nbytes for x in arrays)

    def visit(
        self, u: int, beliefs: Floats, queues: NDArray[np.int64], solving: NDArray[np.int64] | None = None
    ) -> Floats:
        """(lower, upper, action) of each node (u, beliefs[i], queues[i])."""
        from oldlight.kernels import loss as kernels

        b = np.zeros((len(beliefs), self._space.shape[2]))
        b[:, : self.S] = beliefs
        corners = np.full(len(b), -1) if solving is None else solving
        out = np.empty((len(b), 3))
        done = 0
        while done < len(b):
            tree = kernels.Tree(
                self.d, self.slack, self.P, self.R, self.seen, self.corner, self.qup, self._table, self._bounds, self._space,
                self._real, self._whole, self._count,
            )  # fmt: skip
            done = kernels.visit(u, b, queues, corners, done, out, tree)
            entries = len(self._table)
            if 3 * self._count[1] > 2 * entries:
                if entries >= self.most_entries:  # start over rather than grow
                    self._table[:, 0] = 0
                self._allocate(min(4 * entries, self.most_entries))
        return out

    def run(self, callback: Callable[[int, int], None] | None = None) -> Search:
        """Solve every corner, last step first."""
        S, Q = self.S, self.Q
        number = np.arange(S * Q)
        for u in range(self.U - 1, -1, -1):
            for i in range(0, S * Q, CHUNK):
                s, q = number[i : i + CHUNK] // Q, number[i : i + CHUNK] % Q
                found = self.visit(u, np.eye(S)[s], q, s)
                self.corner[0, u, s, q], self.corner[1, u, s, q], self.best[u, s, q] = found.T
                if callback is not None:
                    callback((self.U - 1 - u) * S * Q + i + len(s), self.U * S * Q)
        return self

    def bounds(self, u: int, b: Floats, q: int = 0) -> tuple[float, float, int]:
        """(lower, upper, action) at the node (u, b, q)."""
        corner = np.flatnonzero(b == 1.0)
        if u < self.U and len(corner):
            s = int(corner[0])
            return float(self.corner[0, u, s, q]), float(self.corner[1, u, s, q]), int(self.best[u, s, q])
        low, up, a = self.visit(u, b[None], np.array([q]))[0]
        return float(low), float(up), int(a)

    def act(self, u: int, b: Floats, q: int, a: int) -> tuple[float, Floats, int]:
        """Act a: the settled reward with what is seen next, the next belief, the next queue."""
        A = self.A
        head, q_next = (a, 0) if self.d == 0 else (q % A, q // A + a * A ** (self.d - 1))
        P, R = self.P[min(u, len(self.P) - 1)], self.R[min(u, len(self.R) - 1)]
        after = b @ P[:, head, :]
        return float(b @ R[:, head] + self.seen[u + 1] * (after @ self.corner[0, u + 1, :, q_next])), after, q_next

    def q_values(self, u: int, b: Floats, q: int = 0) -> Floats:
        """What acting each a at the node and following the plan afterwards earns."""
        values = np.empty(self.A)
        for a in range(self.A):
            settled, after, q_next = self.act(u, b, q, a)
            stay = 1.0 - self.seen[u + 1]
            values[a] = settled + (stay * self.bounds(u + 1, after, q_next)[0] if stay > 0 else 0.0)
        return values

    def sequences(self, u: int, beliefs: Floats, queues: NDArray[np.int64], first: Any = None) -> NDArray[np.int64]:
        """out[i, j]: what the plan does j steps after the node (u, beliefs[i], queues[i]) while nothing is seen."""
        out = np.zeros((len(beliefs), self.U), dtype=np.int64)
        B, q = beliefs, queues
        for j in range(self.U - u):
            acts = first if j == 0 and first is not None else self.visit(u + j, B, q)[:, 2].astype(np.int64)
            out[:, j] = acts
            heads = acts if self.d == 0 else q % self.A
            B = advance(B, heads, self.P[min(u + j, len(self.P) - 1)])
            q = q if self.d == 0 else q // self.A + acts * self.A ** (self.d - 1)
        return out


def plan_loss(
    problem: ImpairedMDP,
    tolerance: float,
    max_bytes: int | None,
    progress: bool | Callable[[int, int], None] | None,
) -> Solution:
    """The best executable policy under loss, alone or with a constant delay; see `oldlight.solve`."""
    began = time.perf_counter()
    mdp, seen, d = problem.mdp, problem.arrival_probability, settled_late(problem)
    assert seen is not None
    S, A, H = problem.n_states, problem.n_actions, problem.horizon
    limit = default_limit() if max_bytes is None else max_bytes
    Q = A**d
    need = 8 * (H * S * Q * (A + 4) + H * S * Q * H + (H + 1) * (A + 3) * max(S, A)) + FIRST_ENTRIES * (8 * S + 48)
    if need > limit:
        raise TooLarge(
            f"planning for {problem.channel!r} on S={S}, A={A}, H={H} has {H * S * Q:,} information states just after an "
            f"observation and needs at least {format_bytes(need)}; the limit is {format_bytes(limit)}. Ways out: raise max_bytes, or shorten "
            f"{'the delay or ' if d else ''}the horizon"
        )
    P = mdp.transitions[:1] if mdp.stationary_transitions else mdp.transitions
    R = mdp.rewards[:1] if mdp.stationary else mdp.rewards
    search = Search(P, R, seen, tolerance, after_the_end(problem, d), d)
    search.most_entries = 1 << max(14, int((limit - need) // (8 * S + 48)).bit_length() - 2)
    with progress_bar(progress, "planning") as callback:
        search.run(callback)

    # before step 0 is settled, at time d, nothing is known: the best queue of the d actions that can be chosen by then
    queues = np.arange(Q)
    for i, a in enumerate(problem.pending[:d]):
        queues = queues[queues // A**i % A == a]
    blind = search.visit(0, np.broadcast_to(problem.initial, (len(queues), S)), queues)
    known = problem.initial @ search.corner[:, 0][:, :, queues]  # [lower or upper, queue]
    low, up = (seen[0] * known[i] + (1 - seen[0]) * blind[:, i] for i in (0, 1))
    first = queues[low.argmax()]
    upper = float(up.max())

    sequences = np.zeros((H + 1, S, Q, H), dtype=action_type(A))
    s, q = np.arange(S * Q) // Q, np.arange(S * Q) % Q
    for u in range(H - d):
        found = search.sequences(u, np.eye(S)[s], q, search.best[u].reshape(-1))
        sequences[u + 1, :, :, : H - d] = found.reshape(S, Q, -1)
    sequences[0, 0, 0, :d] = decode(int(first), d, A)
    sequences[0, 0, 0, d:] = search.sequences(0, problem.initial[None], np.array([first]))[0]

    answers = _Answers(problem, search, queues, low)
    policy = BlackoutPolicy(sequences, A, d, answers.action)
    starts = blackout_values(problem, policy)
    value = float(problem.initial @ starts)
    exact = tolerance == 0 or upper <= value
    work = Work(search.nodes, time.perf_counter() - began, search.bytes, search.rounding)
    return Solution(problem, value, policy, value, value if exact else upper, exact, starts, work, answers.q)


@dataclass(frozen=True, eq=False)
class _Answers:
    """Q-values at any information state, from the tables of a finished search."""

    problem: ImpairedMDP
    search: Search
    queues: NDArray[np.int64]  # the queues that the agent can have when step 0 is settled
    low: Floats  # and their values

    def q(self, info: Information) -> Floats:
        problem, d, A = self.problem, self.search.d, self.problem.n_actions
        if info.h < d:  # nothing is settled yet: the best queue that goes on from here, for each action
            values = np.full(A, -np.inf)
            digit = A**info.h
            going_on = self.queues % digit == encode(info.queue, A)
            np.maximum.at(values, self.queues[going_on] // digit % A, self.low[going_on])
            return np.asarray(values - earned(problem, problem.initial, 0, info.queue))
        begin, b = newest(problem, info)
        u = info.h - d
        b, queue = push(problem, b, begin, info.queue[: u - begin]), info.queue[u - begin :]
        return np.asarray(self.search.q_values(u, b, encode(queue, A)) - earned(problem, b, u, queue))

    def action(self, info: Information) -> int:
        return int(self.q(info).argmax())


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
