"""Exact planning under delay: one backward induction on blocks of information states.

At time h with newest visible step t = h − m, wait δ and queue q1..qm, account for a reward when its step becomes visible
(the paper's second model), so that no belief is needed. U counts the reward of step t if δ = 0, and every later one:

    X_h[s, q1..qm, a]  = 1{δ=0}·r_t(s, q1) + θ_t(s, q1, δ)·Σ_s2 P_t(s2|s, q1)·U_{h+1}^{(m, 0)}[s2, q2..qm, a]
                                          + (1 − θ_t(s, q1, δ))·U_{h+1}^{(m+1, δ+1)}[s, q1..qm, a]
    U_h^{(m, δ)}[s, q1..qm] = max_a X_h[s, q1..qm, a]

The max stands outside the sum: the agent acts before it sees s2. For m = 0 the head q1 is the action a itself. After the
last action nothing is left to decide, and arrival is forced one step at a time:

    U_H^{(m, 0)} = G_{H−m},   G_t[s, q1..] = r_t(s, q1) + Σ_s2 P_t(s2|s, q1)·G_{t+1}[s2, q2..],   G_H = 0.

Before anything is seen (the root, with queue a_0..a_{h−1}), rho plays the part of the transition and the law of d_0 that
of the hazard; the start state is kept as an axis so that the result is known per start:

    X_h[·, a] = θ0·U_{h+1}^{(h+1, 0)}[s, ·, a] + (1 − θ0)·Root_{h+1}[s, ·, a],    a maximises Σ_s rho(s)·X_h[s, ·, a].

Cost per block: a product of P_t (S·A × S) with a value block (S × A^m) and a running maximum; no augmented transition
matrix exists. The same induction follows a given policy instead of the maximum: that is exact evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.checks import TooLarge
from oldlight.machine import default_limit, format_bytes, thread_count
from oldlight.model.information import Block, Layout
from oldlight.model.problem import ImpairedMDP
from oldlight.model.successors import Successors

Floats = NDArray[np.float64]
Key = tuple[int, int]  # (m, δ)
SMALL = 2_000_000  # multiplications of a block below which threads do not pay
UNIT = 64  # threads share w in multiples of this
DENSE_TILE = 128  # w at a time where successors are dense
PRODUCT = 2**18  # multiplications up to which a product is not shared among threads by the library itself
SHORT = 32  # up to this many w all actions go into one product


class DelayModel:
    """What the induction asks of a delayed problem. A learner answers with estimates and bonuses instead."""

    def __init__(self, problem: ImpairedMDP, layout: Layout) -> None:
        law = problem.law
        self.problem, self.layout, self.law = problem, layout, law
        self._cache: dict[int, Successors] = {}

    def successors(self, t: int) -> Successors:
        """P_t, for t = −warmup..H−1."""
        key = 0 if self.problem.mdp.stationary_transitions else max(t, 0)
        if key not in self._cache:
            self._cache[key] = Successors.of(self.problem.transitions_at(t))
        return self._cache[key]

    def base(self, t: int, waited: int) -> Floats:
        """What is earned when an agent with newest step t, wait δ and head q1 acts: [s, q1]."""
        r = self.problem.rewards_at(t)
        return np.ascontiguousarray(r) if waited == 0 else np.zeros_like(r)

    def theta(self, t: int, m: int, waited: int) -> Floats:
        """The probability that step t + 1 is the next to arrive: [s, q1]."""
        S, A = self.layout.n_states, self.layout.n_actions
        if m >= self.law.longest_delay or self.problem.warmup:
            return np.ones((S, A))
        return np.ascontiguousarray(np.broadcast_to(self.law.at_step(self.law.hazard, t)[..., waited], (S, A)))

    def first_theta(self, h: int) -> float:
        """The probability that the first observation arrives at time h + 1, given that it has not by time h."""
        return float(self.law.first_hazard[h + 1])


@dataclass
class Stage:
    """Values at one time: U[(m, δ)] has axes [s, code]; root has axes [s, code] (the start state, then the queue)."""

    values: dict[Key, Floats]
    root: Floats | None = None


@dataclass
class Induction:
    """One backward induction. `given` (chosen actions) or `mix` (their probabilities) follow a policy; else the best is taken."""

    model: DelayModel
    given: NDArray[Any] | None = None  # [information state]
    mix: Floats | None = None  # [information state, a]
    table: NDArray[Any] | None = None  # out: the best actions
    kept: list[Stage] | None = None  # out: every stage, if a list is given
    progress: Callable[[int, int], None] | None = None
    _spare: dict[int, list[Floats]] = field(default_factory=dict)

    def run(self, stop: int = 0) -> Stage:
        """The stage of time `stop` (H gives what follows the last action)."""
        H = self.model.layout.horizon
        threads = thread_count()
        with ThreadPoolExecutor(threads) as pool:
            stage = self.after_the_end(pool, threads)
            for h in range(H - 1, stop - 1, -1):
                following, stage = stage, self._step(h, stage, pool, threads)
                if self.kept is None:
                    self.reuse(following.values.values())
                else:
                    self.kept.append(following)
                if self.progress is not None:
                    self.progress(H - h, H - stop)
        if self.kept is not None:
            self.kept.append(stage)
            self.kept.reverse()
        return stage

    def reuse(self, arrays: Iterable[Floats]) -> None:
        """These blocks are not needed any more: their memory is."""
        for array in arrays:
            self._spare.setdefault(array.size, []).append(array.reshape(-1))

    def _empty(self, size: int) -> Floats:
        spare = self._spare.get(size)
        return spare.pop() if spare else np.empty(size)

    def after_the_end(self, pool: ThreadPoolExecutor | None = None, threads: int = 1) -> Stage:
        """G_{H−m} as the block (m, 0) of time H, for every m that the last step needs."""
        layout = self.model.layout
        H, S = layout.horizon, layout.n_states
        lengths = {block.m for block in layout.blocks(H - 1)}
        if layout.root[H - 1] >= 0:
            lengths.add(H)
        G: dict[int, Floats] = {0: np.zeros((S, 1))}
        for m in range(1, max(lengths) + 1):
            t = H - m
            G[m] = self._backup(t, 0, m, G[m - 1], None, np.ones(self.model.base(t, 0).shape), None, 1, pool, threads)
            if m - 1 not in lengths and m - 1 in G:
                del G[m - 1]
        return Stage({(m, 0): G[m] for m in lengths}, G.get(H))

    def _step(self, h: int, following: Stage, pool: ThreadPoolExecutor, threads: int) -> Stage:
        layout = self.model.layout
        S, A, H = layout.n_states, layout.n_actions, layout.horizon
        values: dict[Key, Floats] = {}
        for block in layout.blocks(h):
            m, waited, t = block.m, block.waited, h - block.m
            forced = h == H - 1
            theta = np.ones((S, A)) if forced else self.model.theta(t, m, waited)
            arrival = following.values.get((m, 0))
            if arrival is None:  # no arrival is possible yet, so θ = 0 wherever anyone can be
                arrival = np.zeros((S, A**m))
            wait = None if forced else following.values.get((m + 1, waited + 1))
            values[m, waited] = self._backup(t, waited, m, arrival, wait, theta, block, A, pool, threads)
        root = None
        if layout.root[h] >= 0:
            root = self._root(h, following)
        return Stage(values, root)

    def _backup(
        self,
        t: int,
        waited: int,
        m: int,
        arrival: Floats,
        wait: Floats | None,
        theta: Floats,
        block: Block | None,
        choices: int = 0,
        pool: ThreadPoolExecutor | None = None,
        threads: int = 1,
    ) -> Floats:
        """One block: [s, code]. With block = None and choices = 1 there is nothing to choose: one step of G."""
        from oldlight.kernels import delay as kernels

        layout = self.model.layout
        S, A = layout.n_states, layout.n_actions
        successors, base = self.model.successors(t), self.model.base(t, waited)
        size = S * A**m
        given, mix, table, mode = _NO_GIVEN, _NO_MIX, _NO_GIVEN, kernels.MAX
        keep = False
        if block is not None:
            here = slice(block.offset, block.offset + size)
            if self.given is not None:
                given, mode = self.given[here], kernels.FOLLOW
            elif self.mix is not None:
                mix, mode = self.mix[here], kernels.MIX
            elif self.table is not None:
                table, keep = self.table[here], True
        if m == 0:
            x = base + theta * (successors.matrix @ arrival[:, 0]).reshape(S, A)
            if wait is not None:
                x += (1.0 - theta) * wait
            return _choose_now(x, given, mix, table, mode, kernels, keep)[:, None]
        W = A ** (m - 1)
        v_next = arrival.reshape(S, choices, W)
        v_wait = _NO_MIX if wait is None else wait.reshape(S, choices, W, A)
        out = self._empty(size).reshape(S, W, A)
        given = given.reshape(S, W, A) if mode == kernels.FOLLOW else given
        mix = mix.reshape(S, W, A, A) if mode == kernels.MIX else mix
        table = table.reshape(S, W, A) if keep else table
        shared = (v_wait, wait is not None, mode, given, mix, keep)
        if pool is None or size * choices * successors.index.shape[1] < SMALL or (successors.dense and W <= SHORT):
            threads = 1
        cuts = [min(-(-W // UNIT) * i // threads * UNIT, W) for i in range(threads + 1)]
        lists = (successors.index, successors.weight, successors.count, base, theta)
        work: Callable[..., None]
        front: tuple[Any, ...]
        if successors.dense:
            work, front = _backup_dense, (successors.matrix, base, theta, v_next, shared)
        elif mode == kernels.MAX:
            work, front = kernels.backup_best, (*lists, v_next, v_wait, wait is not None, keep)
        else:
            plain = (_NO_SPREAD, np.inf, _NO_SPREAD)  # no bonus on the variance, no clip, no noise
            work, front = kernels.backup_sparse, (*lists, *plain, v_next, *shared)
        _share(pool, work, [(*front, i, j, out, table) for i, j in pairwise(cuts) if j > i])
        return out.reshape(S, A**m)

    def _root(self, h: int, following: Stage) -> Floats:
        layout = self.model.layout
        S, A = layout.n_states, layout.n_actions
        theta = self.model.first_theta(h)
        x = np.zeros((S, A, A**h))
        if h == layout.horizon - 1:
            assert following.root is not None
            x = following.root.reshape(S, A, A**h)
        else:
            arrival = following.values.get((h + 1, 0))
            if arrival is not None and theta > 0:
                x = theta * arrival.reshape(S, A, A**h)
            if following.root is not None and theta < 1:
                x = x + (1.0 - theta) * following.root.reshape(S, A, A**h)
        here = slice(int(layout.root[h]), int(layout.root[h]) + A**h)
        if h < self.model.problem.actuation:  # under way before the start: nothing to choose
            chosen = np.full(A**h, self.model.problem.pending[h])
            if self.table is not None:
                self.table[here] = chosen
        elif self.mix is not None:
            return np.asarray(np.einsum("saw,wa->sw", x, self.mix[here]))
        elif self.given is not None:
            chosen = self.given[here].astype(np.int64)
        else:
            chosen = np.tensordot(self.model.problem.initial, x, axes=1).argmax(axis=0)
            if self.table is not None:
                self.table[here] = chosen
        return np.take_along_axis(x, chosen[None, None, :], axis=1)[:, 0, :]


_NO_GIVEN = np.empty((0, 0, 0), np.uint8)
_NO_MIX = np.empty((0, 0, 0, 0))
_NO_SPREAD = np.empty((0, 0))


def _share(pool: ThreadPoolExecutor | None, work: Callable[..., None], tasks: list[tuple[Any, ...]]) -> None:
    """Do the tasks; this thread does the first itself."""
    jobs = [] if pool is None else [pool.submit(work, *task) for task in tasks[1:]]
    for task in tasks if pool is None else tasks[:1]:
        work(*task)
    for job in jobs:
        job.result()


def _backup_dense(
    matrix: Floats, base: Floats, theta: Floats, v_next: Floats, shared: tuple[Any, ...], w_from: int, w_to: int,
    out: Floats, table: NDArray[Any],
) -> None:  # fmt: skip
    """Dense successors for w_from..w_to: products, then the choice, tile by tile of w."""
    from oldlight.kernels import delay as kernels

    finish: Callable[..., None] = kernels.backup_dense
    S, choices, W = v_next.shape
    if W <= SHORT:  # all actions in one product
        product = (matrix @ v_next.reshape(S, choices * W)).reshape(-1, choices, W).swapaxes(0, 1)
        finish(np.ascontiguousarray(product), base, theta, *shared, 0, out, table)
        return
    product = np.empty((choices, len(matrix), min(DENSE_TILE, w_to - w_from)))
    for w0 in range(w_from, w_to, DENSE_TILE):
        w1 = min(w0 + DENSE_TILE, w_to)
        tile = product if w1 - w0 == product.shape[2] else np.empty((choices, len(matrix), w1 - w0))
        rows = max(8, PRODUCT // (S * (w1 - w0)))
        for a in range(choices):
            for i in range(0, len(matrix), rows):
                np.matmul(matrix[i : i + rows], v_next[:, a, w0:w1], out=tile[a, i : i + rows])
        finish(tile, base, theta, *shared, w0, out, table)


def _choose_now(x: Floats, given: Any, mix: Any, table: Any, mode: int, kernels: Any, keep: bool) -> Floats:
    """The choice over a of x[s, a], for blocks with an empty queue."""
    if mode == kernels.FOLLOW:
        return np.take_along_axis(x, given.astype(np.int64)[:, None], axis=1)[:, 0]
    if mode == kernels.MIX:
        return np.asarray((x * mix).sum(axis=1))
    if keep:
        table[:] = x.argmax(axis=1)
    return np.asarray(x.max(axis=1))


def by_start(problem: ImpairedMDP, first: Stage) -> Floats:
    """The value per state of the first step (step −warmup), from the stage of time 0."""
    if problem.warmup:
        return np.asarray(first.values[problem.warmup, 0].mean(axis=1))
    at_once = float(problem.law.first[0])
    value = np.zeros(problem.n_states)
    if at_once > 0:
        value += at_once * first.values[0, 0][:, 0]
    if first.root is not None:
        value += (1.0 - at_once) * first.root[:, 0]
    return value


# -- sizes --------------------------------------------------------------------------------------------------------


def action_type(n_actions: int) -> np.dtype[Any]:
    """The smallest integer type that holds an action."""
    return np.dtype(np.uint8 if n_actions <= 256 else np.uint16 if n_actions <= 65536 else np.int32)


def checked_layout(
    problem: ImpairedMDP, max_bytes: int | None, *, policy: bool = True, kept: bool = False
) -> tuple[Layout, int]:
    """The layout and the bytes that a plan needs, with its policy or with all of its values kept; refused with the numbers
    if that is over the limit."""
    limit = default_limit() if max_bytes is None else int(max_bytes)
    layout, states, need = _needs(problem, limit, policy, kept)
    if layout is not None and need <= limit:
        return layout, need
    raise _too_large(problem, states, need, limit, at_least=layout is None)


def _needs(problem: ImpairedMDP, limit: int, policy: bool, kept: bool) -> tuple[Layout | None, int, int]:
    """(layout, information states, bytes); the layout is None, and the rest a lower bound, if one block is over the limit."""
    S, A, H = problem.n_states, problem.n_actions, problem.horizon
    longest = problem.warmup or min(problem.law.max_delay, H - 1)
    if 8 * S * A**longest > limit:  # refuse before anything of that size is even listed
        return None, S * A**longest, 8 * S * A**longest
    layout = Layout.of(problem)
    sizes = [layout.largest_at(h) for h in range(H)]
    after = S * A ** (H if layout.root[H - 1] >= 0 else longest)
    need = 8 * max(x + y for x, y in zip(sizes, [*sizes[1:], after], strict=True))
    if kept:
        need = max(need, 8 * (sum(sizes) + after))
    return layout, layout.size, need + (layout.size * action_type(A).itemsize if policy else 0)


def _too_large(problem: ImpairedMDP, states: int, need: int, limit: int, at_least: bool) -> TooLarge:
    word = "at least " if at_least else ""
    S, A = problem.n_states, problem.n_actions
    fits = None
    if problem.loss is None:
        for k in range((problem.warmup or problem.law.max_delay) - 1, problem.actuation - 1, -1):
            shorter = problem.behind(problem.channel.delay.capped(k - problem.actuation))
            layout, _, bytes_there = _needs(shorter, limit, policy=False, kept=True)
            if layout is not None and bytes_there <= limit:
                fits = k
                break
    ladder = "" if fits is None else (
        f"oldlight.solve(problem, depth={fits}) fits and gives a policy with bounds on both sides; "
        "oldlight.truncate(problem, probability=...) computes what a shorter delay costs; "
    )  # fmt: skip
    return TooLarge(
        f"an exact plan for {problem.channel!r} on S={S}, A={A}, H={problem.horizon} has {word}{states:,} information "
        f"states and needs {word}{format_bytes(need)}; the limit is {format_bytes(limit)}. Ways out: {ladder}raise max_bytes"
    )
