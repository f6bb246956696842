"""Bounds for loss on hundreds of states, alone or with a constant delay, by products of matrices; no search.

Step u is settled (seen, or known to be lost) at time u + d; b is the law of s_u, q = (q1..qd) the queue since (d = 0: q1 is a itself), and
q' = (q2..qd, a) the next queue. With the corners of step u + 1 at hand, all pairs and queues of step u are bounded at once.

**Above.** Q(·, q, a) is convex in b, so V_{u+1}(b, q') ≤ max_a' Σ_s2 b(s2)·Q⁺_{u+1}[s2, q', a'], with the maximum outside the sum (the fast
informed bound of Hauskrecht), and for the corner of s

    Q⁺_u[s, q, a] = r_u(s, q1) + λ·Σ_s2 P_u(s2|s, q1)·V⁺_{u+1}[s2, q'] + (1 − λ)·max_a' Σ_s2 P_u(s2|s, q1)·Q⁺_{u+1}[s2, q', a'],

one product of P_u (S·A × S) with a table (S × A^d·A). **Levels**: for the pairs that this leaves open, the law P_u(·|s, q1) is expanded,
all of them together, one product per action and level, and actions that cannot beat the lower bound are dropped in between.

**Below.** A *plan* of step u and queue q is a sequence of actions that is followed while nothing is seen; what it earns is linear in b, a
vector α[s]. Appending an action in front of the plans of step u + 1 is one product again; of all that come out, those are kept that are best at
some of the laws that a blackout leads to. A corner takes the best action with the best plan after it:

    α_u[s] = r_u(s, q1) + Σ_s2 P_u(s2|s, q1)·( λ·V⁻_{u+1}[s2, q'] + (1 − λ)·α'_{u+1}[s2] ),       V⁻_u[s, q] = max over a and α'.

So V⁻ is what the policy of these sequences earns, exactly, and lower ≤ optimum ≤ upper at every moment. Each *pass* keeps more plans and
looks one level deeper than the one before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from oldlight.arrays import Floats, Ints, action_type
from oldlight.checks import TooLarge
from oldlight.machine import default_limit, format_bytes
from oldlight.model.information import Information, decode, encode, newest, push, settled_late
from oldlight.model.policies import BlackoutPolicy
from oldlight.model.problem import ImpairedMDP
from oldlight.model.successors import all_successors
from oldlight.planning import law_rows
from oldlight.planning.blackout import after_the_end
from oldlight.planning.q_values import earned

SPARSE = 0.04  # share of entries below which a product of lists is faster than one of matrices
PLANS = 8  # kept in the first pass, for each queue; twice as many in each later one
ROOM = 2**24  # entries of one product
MOST_LAWS = 20_000  # expanded together, at one step of one pass


@dataclass(frozen=True, eq=False)
class Plans:
    """The sequences kept at one step: value[s, q, k], the first action [q, k], and the number of the plan that goes on [q, k]."""

    value: Floats
    action: Ints
    then: Ints


class InformedBounds:
    """The bounds of one problem; see the module's text. lower ≤ optimum ≤ upper hold after the first `run`."""

    def __init__(self, problem: ImpairedMDP, max_bytes: int | None = None) -> None:
        seen, self.d = problem.arrival_probability, settled_late(problem)
        assert seen is not None
        self.problem, self.seen = problem, np.append(seen, 0.0)
        self.S, self.A, self.U = problem.n_states, problem.n_actions, problem.horizon - self.d
        self.Q = self.A**self.d
        self._limit = default_limit() if max_bytes is None else max_bytes
        entries = self.S * self.Q * self.A
        self.bytes = (
            8 * (self.U * entries + entries * (PLANS + 4) + 2 * min(ROOM, entries * self.A))
            + problem.horizon**2 * self.S * self.Q
        )
        if self.bytes > self._limit:
            raise TooLarge(
                f"bounds for {problem.channel!r} on S={self.S}, A={self.A}, H={problem.horizon} have {self.U * entries:,} entries and need "
                f"{format_bytes(self.bytes)}; the limit is {format_bytes(self._limit)}. Ways out: raise max_bytes, or shorten the delay"
            )
        self._matrices: dict[int, Any] = {}
        self.lists = problem.mdp.sparse  # laws are kept as lists of their entries
        self._width = max(2, max(step.width for step in all_successors(problem.mdp))) if self.lists else self.S
        self.end = after_the_end(problem, self.d).reshape(self.S, self.Q)
        self.queues = np.arange(self.Q)  # that the agent can have when step 0 is settled
        for i, a in enumerate(problem.pending[: self.d]):
            self.queues = self.queues[self.queues // self.A**i % self.A == a]
        self.ceiling: list[Floats | None] = [None] * self.U  # Q⁺[s, q, a], the lowest so far
        self.lower, self.upper, self.passes, self.laws = -np.inf, np.inf, 0, 0
        self._seen_best, self._chosen = self._full_information()

    # -- the process ------------------------------------------------------------------------------------------------

    def matrix(self, u: int) -> Any:
        """P_u as a matrix (S·A × S), sparse if that is faster."""
        key = 0 if self.problem.mdp.stationary_transitions else u
        if key not in self._matrices:
            P = self.problem.matrix_at(u)
            few = not self.lists and np.count_nonzero(P) < SPARSE * P.size
            self._matrices[key] = law_rows.sparse(P) if few else P
        return self._matrices[key]

    def rewards(self, u: int) -> Floats:
        return self.problem.rewards_at(u)

    def _full_information(self) -> tuple[Ints, Ints]:
        """The best actions of somebody who sees everything, [u, s], twice: the points of the first pass."""
        V, best = np.zeros(self.S), np.zeros((self.problem.horizon, self.S), np.int64)
        for t in range(self.problem.horizon - 1, -1, -1):
            x = self.rewards(t) + (self.matrix(t) @ V).reshape(self.S, self.A)
            best[t], V = x.argmax(axis=1), x.max(axis=1)
        return best, best.copy()

    def _points(self, u: int) -> Any:
        """Laws of s_u that blackouts lead to, [i, s]: one and two steps after a state was seen."""
        if u == 0:
            return self.problem.initial[None]
        s = np.arange(self.S)
        rows = np.unique(np.concatenate([s * self.A + chosen[u - 1] for chosen in (self._seen_best, self._chosen)]))
        laws = [self._laws(u - 1, rows)]
        if u > 1:
            before = self._laws(u - 2, s * self.A + self._chosen[u - 2])
            likely = self._chosen[u - 1][law_rows.likeliest(before)]
            laws.append(law_rows.advanced(before, self.matrix(u - 1), likely))
        return law_rows.stacked(laws)

    def _laws(self, u: int, rows: Ints) -> Any:
        """The laws after the pairs s·A + a in `rows`."""
        found = self.matrix(u)[rows]
        return found if self.lists else law_rows.dense(found)

    def _pushed(self, u: int, B: Any, a: int) -> Any:
        """B·P_u(a)."""
        return law_rows.advanced(B, self.matrix(u), np.full(B.shape[0], a))

    # -- one pass ---------------------------------------------------------------------------------------------------

    def run(
        self, slack: float, seconds: float = np.inf, progress: Callable[[int, int], None] | None = None
    ) -> InformedBounds:
        """One pass, last step first. slack: gaps of a corner up to this are left alone; seconds: for looking deeper."""
        began, U = time.perf_counter(), self.U
        levels, plans = self.passes, self._how_many(PLANS * 2**self.passes)
        high, low = self.end, self.end
        following = Plans(self.end[:, :, None], np.zeros((self.Q, 1), np.int64), np.zeros((self.Q, 1), np.int64))
        above: Floats = self.end[:, :, None]  # Q⁺ of step u + 1
        kept: list[Plans] = []
        corners: list[tuple[Ints, Ints, Floats]] = []
        chosen = self._chosen.copy()
        stages: list[tuple[Floats, Floats, Floats, Plans]] = [(above, high, low, following)]  # of the steps after u
        for u in range(U - 1, -1, -1):
            x = self._above(u, above, high)
            z = self._below(u, following, low)  # [s, q, (a, k)]
            best = z.argmax(axis=2)
            now_low = np.take_along_axis(z, best[:, :, None], axis=2)[:, :, 0]
            if levels:
                share = seconds - (time.perf_counter() - began)
                self._deeper(u, x, now_low, stages, levels, slack, share / (u + 1))
            old = self.ceiling[u]
            above = x if old is None else np.minimum(x, old)
            self.ceiling[u] = above
            K = following.value.shape[2]
            corners.append((best // K, best % K, now_low))
            chosen[u] = (best // K)[:, 0] if self.d == 0 else chosen[u]
            following = self._plans(u, z, K, plans)
            kept.append(following)
            high, low = above.max(axis=2), now_low
            stages.insert(0, (above, high, low, following))
            del stages[levels + 1 :]
            if progress is not None:
                progress(self.passes * U + U - u, (self.passes + 1) * U)
        unseen = np.tensordot(self.problem.initial, above, axes=1).max(axis=1)  # [q]
        if levels and self.seen[0] < 1 and U > 0:
            laws = np.broadcast_to(self.problem.initial, (len(self.queues), self.S))
            laws = law_rows.sparse(laws) if self.lists else laws
            floor = np.full(len(self.queues), -np.inf)
            unseen[self.queues] = self._blind(0, laws, self.queues, stages, levels, 0.0, floor)
        self._finish(high, low, unseen, following, corners[::-1], kept[::-1])
        self._chosen = chosen
        return self

    def _how_many(self, wanted: int) -> int:
        """Plans for which there is room."""
        entries = self.S * self.Q * self.A
        return int(max(1, min(wanted, (self._limit - self.bytes) // (16 * entries) + PLANS)))

    def _rows(self, u: int, table: Floats) -> Floats:
        """P_u times a table [s2, ...], entries [s, q1, ...]."""
        return np.asarray(self.matrix(u) @ table.reshape(self.S, -1)).reshape(self.S, self.A, *table.shape[1:])

    def _by_action(self, x: Floats) -> Floats:
        """[s, q1, q', ...] as [s, q, a, ...]."""
        S, A, d = self.S, self.A, self.d
        if d == 0:
            return x.reshape(S, 1, A, *x.shape[3:])
        apart = x.reshape(S, A, A, A ** (d - 1), *x.shape[3:])  # [s, q1, a, q2..qd]
        return np.ascontiguousarray(np.moveaxis(apart, 3, 1)).reshape(S, self.Q, A, *x.shape[3:])

    def _above(self, u: int, above: Floats, high: Floats) -> Floats:
        """Q⁺_u[s, q, a] by one step of lookahead."""
        seen = self.seen[u + 1]
        blind = np.empty((self.S, self.A, self.Q))
        width = max(1, ROOM // (self.S * self.A * above.shape[2]))
        for i in range(0, self.Q, width):
            blind[:, :, i : i + width] = _highest(self._rows(u, above[:, i : i + width]))
        x = (1.0 - seen) * blind
        if seen > 0:
            x += seen * self._rows(u, high)
        x += self.rewards(u)[:, :, None]
        return self._by_action(x)

    def _below(self, u: int, following: Plans, low: Floats) -> Floats:
        """What each action earns with each plan after it, [s, q, (a, k)]."""
        seen = self.seen[u + 1]
        z = (1.0 - seen) * self._rows(u, following.value)
        if seen > 0:
            z += seen * self._rows(u, low)[:, :, :, None]
        z += self.rewards(u)[:, :, None, None]
        return self._by_action(z).reshape(self.S, self.Q, -1)

    def _plans(self, u: int, z: Floats, K: int, most: int) -> Plans:
        """The plans of step u: those that are best at most of its points, at each queue."""
        points, count = self._points(u), min(most, z.shape[2])
        chosen = np.empty((self.Q, count), np.int64)
        for q in range(self.Q):
            wins = np.bincount((points @ z[:, q]).argmax(axis=1), minlength=z.shape[2])
            chosen[q] = np.argpartition(-wins, count - 1)[:count]
        value = np.take_along_axis(z, chosen[None], axis=2)
        return Plans(value, chosen // K, chosen % K)

    def _finish(self, high: Floats, low: Floats, unseen: Floats, plans: Plans, corners: Any, kept: Any) -> None:
        """Bounds at the start; the policy of this pass if it is the best so far."""
        rho, seen = self.problem.initial, self.seen[0]
        ups = seen * (rho @ high) + (1.0 - seen) * unseen
        blind = np.tensordot(rho, plans.value, axes=1)  # [q, k]
        lows = seen * (rho @ low) + (1.0 - seen) * blind.max(axis=1)
        first = int(self.queues[lows[self.queues].argmax()])
        self.upper = min(self.upper, float(ups[self.queues].max()))
        self.passes += 1
        if lows[first] > self.lower:
            self.lower = float(lows[first])
            plan = int(blind[first].argmax())
            self.first, self.lows, self._corners, self._kept, self._first_plan = first, lows, corners, kept, plan
            self.low_by_start = seen * low[:, first] + (1.0 - seen) * plans.value[:, first, plan]

    # -- looking deeper ---------------------------------------------------------------------------------------------

    def _deeper(
        self, u: int, x: Floats, low: Floats, stages: list[Any], levels: int, slack: float, seconds: float
    ) -> None:
        """Lower Q⁺_u where it leaves a corner open, by expanding the laws that follow."""
        lost = 1.0 - self.seen[u + 1]
        if lost == 0 or u + 1 == self.U or seconds <= 0:
            return
        _, high, _, _ = stages[0]
        open_ = np.argwhere(x > low[:, :, None] + slack)  # (s, q, a)
        if not len(open_):
            return
        s, q, a = open_.T
        head, after = (a, np.zeros_like(a)) if self.d == 0 else (q % self.A, q // self.A + a * self.A ** (self.d - 1))
        key, place = np.unique((s * self.A + head) * self.Q + after, return_inverse=True)
        gap = np.zeros(len(key))
        np.maximum.at(gap, place, (x - low[:, :, None])[s, q, a])
        need = np.full(len(key), np.inf)  # what a law must be worth to matter to any of its corners
        np.minimum.at(need, place, low[s, q])
        order = np.argsort(-gap)[:MOST_LAWS]
        wide = min(self.S, self._width ** (levels + 1)) if self.lists else self.S  # entries of a law, at most
        began, size = time.perf_counter(), max(1, ROOM // (wide * self.A))
        better = np.full(len(key), np.inf)
        for i in range(0, len(order), size):
            part = order[i : i + size]
            laws = self._laws(u, key[part] // self.Q)
            codes = key[part] % self.Q
            known = self.rewards(u).reshape(-1)[key[part] // self.Q]
            if self.seen[u + 1] > 0:
                known = known + self.seen[u + 1] * law_rows.means(laws, high, codes)
            floor = (need[part] - known) / lost
            better[part] = known + lost * self._blind(u + 1, laws, codes, stages, levels - 1, slack / lost, floor)
            self.laws += len(part)
            if time.perf_counter() - began > seconds:
                break
        x[s, q, a] = np.minimum(x[s, q, a], better[place])

    def _blind(
        self, u: int, B: Any, codes: Ints, stages: list[Any], levels: int, slack: float, floor: Floats
    ) -> Floats:
        """Upper bounds of V_u at laws B[i] with queues codes[i], one level at least; below floor[i] they do not matter."""
        above, _, _, plans = stages[0]
        A = self.A
        bound, low = np.empty((len(codes), A)), np.empty(len(codes))
        for q in np.unique(codes).tolist():
            rows = codes == q
            bound[rows] = B[rows] @ above[:, q]
            low[rows] = np.maximum((B[rows] @ plans.value[:, q]).max(axis=1), floor[rows])
        if u + 1 >= self.U or len(stages) < 2:
            return np.asarray(bound.max(axis=1))
        next_above, next_high, _, _ = stages[1]
        seen = self.seen[u + 1]
        for q in np.unique(codes).tolist():
            here = np.flatnonzero(codes == q)
            shared = None if self.d == 0 else self._pushed(u, B[here], q % A)
            for a in range(A):
                mine = bound[here, a] > low[here] + slack
                if not mine.any():
                    continue
                rows = here[mine]
                head, after = (a, 0) if self.d == 0 else (q % A, q // A + a * A ** (self.d - 1))
                laws = self._pushed(u, B[rows], a) if shared is None else shared[mine]
                value = B[rows] @ self.rewards(u)[:, head] + seen * (laws @ next_high[:, after])
                if levels > 0 and len(stages) > 2 and seen < 1:
                    lower = (low[rows] - value) / (1.0 - seen)
                    rest = self._blind(
                        u + 1, laws, np.full(len(rows), after), stages[1:], levels - 1, slack / (1.0 - seen), lower
                    )
                else:
                    rest = (laws @ next_above[:, after]).max(axis=1)
                value += (1.0 - seen) * rest
                bound[rows, a] = np.minimum(bound[rows, a], value)
        return np.asarray(bound.max(axis=1))

    # -- what comes out ---------------------------------------------------------------------------------------------

    def policy(self) -> BlackoutPolicy:
        """The sequences that earn `lower`."""
        H, S, Q, A, d, U = self.problem.horizon, self.S, self.Q, self.A, self.d, self.U
        table = np.zeros((H + 1, S, Q, H), dtype=action_type(A))
        plans = np.zeros((Q, 1, 0), dtype=table.dtype)  # [q, k, j] of step u + 1
        queue = np.arange(Q)
        for u in range(U - 1, -1, -1):
            actions, then, _ = self._corners[u]  # [s, q]
            table[u + 1, :, :, 0] = actions
            table[u + 1, :, :, 1 : U - u] = plans[self._next(queue, actions), then]
            kept = self._kept[u]
            ahead = plans[self._next(queue[:, None], kept.action), kept.then]
            plans = np.concatenate([kept.action[:, :, None].astype(table.dtype), ahead], axis=2)
        table[0, 0, 0, :d] = decode(self.first, d, A)
        table[0, 0, 0, d:] = plans[self.first, self._first_plan]
        return BlackoutPolicy(table, A, d, self.action)

    def _next(self, q: Any, a: Any) -> Any:
        """The code of the next queue."""
        return np.zeros_like(a) if self.d == 0 else q // self.A + a * self.A ** (self.d - 1)

    def q(self, info: Information) -> Floats:
        """What each action earns at least at an information state, with the best of the plans after it."""
        problem, d, A = self.problem, self.d, self.A
        values = np.full(A, -np.inf)
        if info.h < d:
            digit = A**info.h
            going_on = self.queues[self.queues % digit == encode(info.queue, A)]
            np.maximum.at(values, going_on // digit % A, self.lows[going_on])
            return np.asarray(values - earned(problem, problem.initial, 0, info.queue))
        begin, b = newest(problem, info)
        u = info.h - d
        b, queue = push(problem, b, begin, info.queue[: u - begin]), info.queue[u - begin :]
        code = encode(queue, A)
        for a in range(A):
            head, after = (a, 0) if d == 0 else (code % A, int(self._next(code, np.int64(a))))
            law = self.problem.mdp.advanced(b, u, head)
            rest, low = self._worth(u + 1, law, after)
            seen = self.seen[u + 1]
            values[a] = b @ self.rewards(u)[:, head] + seen * low + (1.0 - seen) * rest
        return np.asarray(values - earned(problem, b, u, queue))

    def _worth(self, u: int, b: Floats, q: int) -> tuple[float, float]:
        """What the plans of step u earn at a law: unseen by the best of them, and seen."""
        if u == self.U:
            value = float(b @ self.end[:, q])
            return value, value
        return float((b @ self._kept[u].value[:, q]).max()), float(b @ self._corners[u][2][:, q])

    def action(self, info: Information) -> int:
        return int(self.q(info).argmax())


def _highest(x: Floats) -> Floats:
    """The maximum over the last axis; a running one, which is several times faster than numpy's over a short axis."""
    top = x[..., 0].copy()
    for i in range(1, x.shape[-1]):
        np.maximum(top, x[..., i], out=top)
    return top
