"""Tables for a link that does not depend on the process: one backward induction for all of them.

Let n be the node of the automaton and m the age at time h (`oldlight.model.age_layers` has the blocks). U counts the rewards
of step t = h − m and of every later one. Of a tick to time h + 1 with a jump to an age k ≤ L let F(L) be the probability,
and N_L[s, q1..qL] the mean of U_{h+1} given such a jump, when s is the state of step h + 1 − L and q1..qL was done since:

    N_L = θ_L·( r_t(s, q1) + Σ_s2 P_t(s2|s, q1)·N_{L−1}[s2, q2..qL] ) + (1 − θ_L)·U_{h+1}^{n'}[s, q1..qL],     θ_L = F(L−1)/F(L)
    X_h[s, q1..qm, a] = F(m)·( r_t(s, q1) + Σ_s2 P_t(s2|s, q1)·N_m[s2, q2..qm, a] ) + (1 − F(m))·U_{h+1}^{n'}[s, q1..qm, a]

(means over n' where several nodes share an age), U_h = max_a X_h, and after the last action U_H = G, the open-loop rewards. Nodes
whose ticks begin alike share their N_L: packets have one chain of products for all ages.

**Beyond the depth D** ≥ the longest delay, only the law b of s_u, u = h − D, is known. Upper: let step u be seen while the link
ages on; with E = F·N_D + Σ p·W_{h+1} over the ticks without anything newer,

    W_h[s, q1..qD] = r_u(s, q1) + max_a Σ_s2 P_u(s2|s, q1)·E[s2, q2..qD, a],       V_h(b, q) ≤ Σ_s b(s)·W_h[s, q].

Lower: the value of one policy, which acts at information states with a known state as the upper tables say, and beyond
them on the queue alone; it is linear in b and comes from the same recursion, following instead of maximising:

    V_h(b, q) ≥ Σ_s b(s)·B_h[s, q].

Where no tick leads beyond the depth both are the optimum. Else `oldlight.planning.search` closes what is left between them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.arrays import Floats, action_type
from oldlight.machine import thread_count
from oldlight.model.age_layers import Block, Layers, Move
from oldlight.model.channels.automaton import NOTHING_NEWER
from oldlight.model.information import Block as Place
from oldlight.model.mdp import TabularMDP
from oldlight.model.successors import Successors, all_successors, padded_width, successors_at
from oldlight.planning.blocks import SMALL
from oldlight.planning.delay import KEPT, DelayModel, SingleBlocks, share
from oldlight.planning.law_rows import likely_states
from oldlight.planning.scratch import empty
from oldlight.threads import lent_threads

Table = dict[int, Floats]  # a block's number within its time -> [s, code]


class Plant(DelayModel):
    """The process as the induction reads it, steps before 0 included (without reward, transitions of step 0).

    start: the law of the first state; pending: the actions of the steps 0..k−1 that were chosen before the start.
    """

    def __init__(self, mdp: TabularMDP, *, initial: Floats | None = None, pending: tuple[int, ...] = ()) -> None:
        self.mdp, self.pending = mdp, pending
        self.initial = mdp.initial if initial is None else initial
        self.layout: Any = mdp  # what the induction asks of a layout: n_states, n_actions, horizon
        self.share = 1.0  # of the rewards, in the block at hand

    def successors(self, t: int) -> Successors:
        return successors_at(self.mdp, max(t, 0))

    @cached_property
    def lists(self) -> tuple[NDArray[np.int64], Floats, NDArray[np.int64], Floats, NDArray[np.bool_]]:
        """Successors index[t, s·A + a, k], their probabilities, their number, rewards [t, s, a], and whether all rows of t list all states; made once if small."""
        mdp, known = self.mdp, self.mdp._cache.get("padded lists")
        if known is not None:
            return known  # type: ignore[no-any-return]
        steps = all_successors(mdp)
        shape = (len(steps), mdp.n_states * mdp.n_actions, padded_width(steps))
        index, weight = np.zeros(shape, np.int64), np.zeros(shape)
        for t, x in enumerate(steps):
            index[t, :, : x.width], weight[t, :, : x.width] = x.padded()
        rewards = np.array(mdp.rewards[:1] if mdp.stationary_rewards else mdp.rewards, order="C")  # never read-only
        count = np.stack([x.count for x in steps])
        found = index, weight, count, rewards, (count == mdp.n_states).all(axis=1)
        mdp._cache.update({"padded lists": found} if index.size <= KEPT else {})
        return found

    def rewards(self, t: int) -> Floats:
        return np.zeros((self.mdp.n_states, self.mdp.n_actions)) if t < 0 else self.mdp.rewards[t]

    def reward(self, t: int, waited: int) -> Floats:
        return np.ascontiguousarray(self.share * self.rewards(t))


@dataclass
class AgeTables:
    """One plan's tables. upper, lower, blind and the actions are flat, a block's entries at its offset; `kept`: whether
    they hold every time (else only the actions do). Values at the start: lower ≤ optimum ≤ upper; without `bounded` the upper
    tables and the actions alone are made, which is enough where they are exact, and where `oldlight.planning.table_walk` finds what the
    actions earn (`lower_value` is the upper one then). settle(h, i, C⁻, C⁺): makes the corners of block i of time h beyond the depth, from below and
    above, in place (`oldlight.planning.settling`)."""

    plant: Plant
    layers: Layers
    bounded: bool
    kept: bool
    progress: Callable[[int, int], None] | None = None
    settle: Callable[[int, int, Floats, Floats], tuple[Floats, Floats]] | None = None
    scratch: Path | None = None  # a folder for tables that memory does not hold
    lower_value: float = 0.0
    upper_value: float = 0.0
    upper_by_start: Floats = field(default_factory=np.zeros(0).view)
    upper: Floats = field(default_factory=np.zeros(0).view)
    lower: Floats = field(default_factory=np.zeros(0).view)
    blind: Floats = field(default_factory=np.zeros(0).view)
    actions: NDArray[Any] = field(default_factory=np.zeros(0, np.uint8).view)
    blind_actions: NDArray[Any] = field(default_factory=np.zeros(0, np.uint8).view)

    def allocate(self) -> AgeTables:
        """Room for the tables."""
        layers, S, kind = self.layers, self.layers.n_states, action_type(self.layers.n_actions)
        self.actions = np.zeros(layers.size, kind) if self.scratch is None else empty(layers.size, kind, self.scratch)
        self.blind_actions = np.zeros(layers.blind_size // S, kind)
        if self.kept:
            self.upper = np.empty(layers.size)
        if self.kept and self.bounded:
            self.lower, self.blind = np.empty(layers.size), np.full(layers.blind_size, -np.inf)
        return self

    def run(self) -> AgeTables:
        layers, plant, H = self.layers, self.plant, self.plant.mdp.finite_horizon
        if not len(self.actions):
            self.allocate()
        self._searched = self.bounded or layers.searched
        self._weights = likely_states(self.plant.mdp, self.plant.initial) if self.settle is None else np.zeros((0, 0))
        with lent_threads(threads := thread_count()) as pool:
            self._pool, self._threads = pool, threads
            self._induction = SingleBlocks(plant, self.actions, pool, threads, self.scratch)
            up = low = blind = self._end()
            for h in range(H - 1, -1, -1):
                self._store(h + 1, up, low, blind)
                old = [*up.values(), *low.values(), *blind.values()] if h + 1 < H and not self.kept else []
                up, low, blind = self._step(h, up, low, blind)
                self._induction.reuse({array.__array_interface__["data"]: array for array in old}.values())
                if self.progress is not None:
                    self.progress(H - h, H)
        del self._pool, self._induction  # neither travels to another process
        self._store(0, up, low, blind)
        self.from_start(up)
        if self.bounded and self.settle is None:
            self.lower_value = float(plant.initial @ self._first(low, blind))
        return self

    def from_start(self, up: Table) -> None:
        """Take the bounds of the start from the upper tables of time 0; what is settled has no others."""
        self.upper_by_start = self._first(up, up)
        self.upper_value = self.lower_value = float(self.plant.initial @ self.upper_by_start)

    def _first(self, table: Table, blind: Table) -> Floats:
        """The value per first state, from the tables of time 0."""
        value = np.zeros(self.layers.n_states)
        for p, i, age in self.layers.start:
            found = (blind if age == NOTHING_NEWER else table)[i]
            value += p * (found[:, 0] if found.shape[1] == 1 else found.mean(axis=1))
        return value

    def _store(self, h: int, up: Table, low: Table, blind: Table) -> None:
        if not self.kept:
            return
        for i, block in enumerate(self.layers.blocks[h]):
            _write(self._place(self.upper, block.offset, block), up[i])
            if not self.bounded:
                continue
            _write(self._place(self.lower, block.offset, block), blind[i] if block.root else low[i])
            if block.blind_offset >= 0 and (self.settle is None or h == len(self.layers.moves)):
                _write(self._place(self.blind, block.blind_offset, block), blind[i])

    def _place(self, flat: NDArray[Any], offset: int, block: Block) -> NDArray[Any]:
        """The entries [s, code] of a block."""
        S, entries = self.layers.n_states, self.layers.n_states * self.layers.n_actions**block.length
        return flat[offset : offset + entries].reshape(S, -1)

    def values(self, h: int, i: int, kept: Floats | None = None) -> Floats:
        """The kept upper values [s, code] of a block, or those of other `kept` tables."""
        block = self.layers.blocks[h][i]
        return self._place(self.upper if kept is None else kept, block.offset, block)

    def _room(self, flat: Floats, offset: int, block: Block) -> Floats | None:
        """Where a block is made: where it is kept, if it is."""
        return self._place(flat, offset, block) if self.kept else None

    def _end(self) -> Table:
        """G_{H−L}[s, q1..qL]: what L actions that are done but not seen still earn."""
        layers, H = self.layers, self.plant.mdp.finite_horizon
        wanted = {block.length for block in layers.blocks[H]}
        G: dict[int, Floats] = {0: np.zeros((layers.n_states, 1))}
        for L in range(1, max(wanted) + 1):
            G[L] = self._product(H - L, L, G[L - 1], None, 1.0)
        return {i: G[block.length] for i, block in enumerate(layers.blocks[H])}

    def _product(self, t: int, L: int, arrival: Floats, wait: Floats | None, theta: float) -> Floats:
        """θ·(r_t + P_t·arrival) + (1 − θ)·wait, entries [s, q1..qL], L ≥ 1: nothing is chosen."""
        self.plant.share = theta
        return self._induction.back_up(t, L, arrival, wait, theta)

    def _step(self, h: int, up: Table, low: Table, blind: Table) -> tuple[Table, Table, Table]:
        new_up: Table = {}
        new_low: Table = {}
        new_blind: Table = {}
        chains: tuple[dict[Any, Floats], ...] = ({}, {})
        for i, block in enumerate(self.layers.blocks[h]):
            moves = self.layers.moves[h][i]
            beyond = block.length == self.layers.depth and not block.root
            if block.root:
                new_up[i], chosen = self._root(block, self._mixed(block, moves, up, up, chains[0]), None)
                self.blind_actions[block.blind_offset // self.layers.n_states :][: len(chosen)] = chosen
                if self.bounded:
                    new_blind[i], _ = self._root(block, self._mixed(block, moves, low, blind, chains[1]), chosen)
                    new_low[i] = new_blind[i]
                continue
            if beyond and self.settle is not None:
                least, most = (self._shown(block, moves, x, c) for x, c in zip((low, up), chains[::-1], strict=True))
                new_low[i], new_up[i] = self.settle(h, i, least, most)
                new_blind[i] = np.full_like(new_low[i], -np.inf)
                continue
            arrival, wait, theta = self._parts(block, moves, up, up, chains[0])
            if h < len(self.plant.pending):
                self._place(self.actions, block.offset, block)[:] = self.plant.pending[h]
                only = np.full((1, self.layers.n_actions**block.length), self.plant.pending[h], self.actions.dtype)
                new_up[i] = self._follow(block, arrival, wait, theta, only, None)
            else:
                new_up[i] = self._best(block, arrival, wait, theta)
            if beyond and self._searched and not self.bounded:
                self._blind_choice(block, arrival)
            if self.bounded:
                arrival, wait, theta = self._parts(block, moves, low, blind if beyond else low, chains[1])
                acts = self._place(self.actions, block.offset, block)
                new_low[i] = self._follow(
                    block, arrival, wait, theta, acts, self._room(self.lower, block.offset, block)
                )
                if beyond:
                    queue_acts = self._blind_choice(block, arrival)
                    room = self._room(self.blind, block.blind_offset, block)
                    new_blind[i] = self._follow(block, arrival, wait, theta, queue_acts[None], room)
                    better = new_blind[i] > new_low[i]  # a known state never earns less than an unknown one
                    np.copyto(new_low[i], new_blind[i], where=better)
                    np.copyto(acts, np.broadcast_to(queue_acts, acts.shape), where=better, casting="unsafe")
        return new_up, new_low, new_blind

    def _chain(self, h: int, moves: list[Move], L: int, table: Table, chains: dict[Any, Floats]) -> tuple[float, Any]:
        """(F(L), N_L) of the module's text; N_L is None where F(L) = 0."""
        jumps = tuple(sorted(m for m in moves if 0 <= m.age <= L))
        mass = sum(m.probability for m in jumps)
        if mass == 0:
            return 0.0, None
        key = (jumps, L)
        if key not in chains:
            here = [m for m in jumps if m.age == L]
            share = sum(m.probability for m in here)
            mix = None if not here else self._mean([(m.probability / share, table[m.block]) for m in here])
            before, arrival = self._chain(h, moves, L - 1, table, chains) if L else (0.0, None)
            if arrival is None:
                assert mix is not None
                chains[key] = mix
            else:
                chains[key] = self._product(h + 1 - L, L, arrival, mix, before / (before + share) if here else 1.0)
        return mass, chains[key]

    def _shown(self, block: Block, moves: list[Move], table: Table, chains: dict[Any, Floats]) -> Floats:
        """F·N_D of a block beyond the depth: what the ticks that show something are worth, and the end."""
        mass, chain = self._chain(block.h, moves, block.length, table, chains)
        parts = [] if chain is None else [(mass, chain)]
        if block.h + 1 == self.plant.mdp.finite_horizon:
            parts += [(m.probability, table[m.block]) for m in moves if m.age == NOTHING_NEWER]
        return self._mean(parts) if parts else np.zeros((self.layers.n_states, self.layers.n_actions**block.length))

    def _parts(
        self, block: Block, moves: list[Move], table: Table, older: Table, chains: dict[Any, Floats]
    ) -> tuple[Floats | None, Floats | None, float]:
        """(arrival, wait, θ) of one block: X = θ·(r + P·arrival) + (1 − θ)·wait. Beyond the depth everything is an arrival."""
        mass, chain = self._chain(block.h, moves, block.length, table, chains)
        ageing = [m for m in moves if m.age == NOTHING_NEWER]
        if block.length == self.layers.depth:
            parts = [(m.probability, older[m.block]) for m in ageing]
            if chain is not None:
                parts.append((mass if ageing else 1.0, chain))
            return self._mean(parts), None, 1.0
        if not ageing:
            return chain, None, 1.0
        share = sum(m.probability for m in ageing)
        wait = self._mean([(m.probability / share, older[m.block]) for m in ageing])
        return chain, wait, mass if chain is not None else 0.0

    def _best(self, block: Block, arrival: Floats | None, wait: Floats | None, theta: float) -> Floats:
        S, A, L = self.layers.n_states, self.layers.n_actions, block.length
        place = Place(block.h, L, 0, block.offset)
        if arrival is None:
            assert wait is not None
            x = wait.reshape(S, A, A**L)
            chosen = x.argmax(axis=1)
            self.actions[block.offset : block.offset + chosen.size] = chosen.reshape(-1)
            return np.take_along_axis(x, chosen[:, None, :], axis=1)[:, 0, :]
        self.plant.share = theta
        if self.kept:  # the block is made where it is kept
            self._induction.reuse([self._place(self.upper, block.offset, block)])
        return self._induction.back_up(block.h - L, L, arrival, wait, theta, place)

    def _follow(
        self,
        block: Block,
        arrival: Floats | None,
        wait: Floats | None,
        theta: float,
        acts: NDArray[Any],
        room: Floats | None,
    ) -> Floats:
        """The same block under given actions, [s or 1, code]; made in `room` if given."""
        from oldlight.kernels import ages as kernels

        S, A, L, t = self.layers.n_states, self.layers.n_actions, block.length, block.h - block.length
        each = np.broadcast_to(acts.astype(np.int64), (S, A**L))
        if arrival is None:
            assert wait is not None
            return np.take_along_axis(wait.reshape(S, A, A**L), each[:, None, :], axis=1)[:, 0, :]
        successors = self.plant.successors(t)
        base = theta * self.plant.rewards(t)
        if L == 0:
            x = base + theta * self.plant.mdp.expected(arrival[:, 0], max(t, 0))
            x = x if wait is None else x + (1.0 - theta) * wait
            return np.take_along_axis(x, each, axis=1)
        W = A ** (L - 1)
        out = (self._induction.empty(S * A**L) if room is None else room).reshape(S, W, A)
        if successors.dense and len(acts) == 1 and wait is None:  # one action for all states: products
            for q in range(A):
                columns = arrival[:, each[0].reshape(W, A)[:, q] * W + np.arange(W)]
                out[:, :, q] = base[:, q, None] + successors.matrix[q::A] @ columns
            return out.reshape(S, A**L)
        waits = np.empty((0, 0, 0, 0)) if wait is None else wait.reshape(S, A, W, A)
        rows, acts = np.ascontiguousarray(arrival.T), acts.reshape(-1, W, A)
        index, weight = successors.padded()
        weight = successors.matrix if successors.dense else weight
        threads = self._threads if 4 * out.size * index.shape[1] > SMALL else 1
        cuts = [S * i // threads for i in range(threads + 1)]
        tasks = []
        for i, j in pairwise(cuts):
            part = slice(i * A, i * A if successors.dense else j * A)
            lists = kernels.Lists(index[part], weight[i * A : j * A], successors.count[i * A : j * A])
            mine = acts[i:j] if len(acts) > 1 else acts
            tasks.append((lists, base[i:j], theta, rows, waits[i:j], mine, out[i:j]))
        share(self._pool, kernels.follow, tasks)
        return out.reshape(S, A**L)

    def _blind_choice(self, block: Block, arrival: Floats | None) -> NDArray[Any]:
        """An action for each queue: the best for the law of s_u under the full-information plan."""
        assert arrival is not None
        A, L, t = self.layers.n_actions, block.length, block.h - block.length
        b = self._weights[max(t, 0)]
        after = np.stack([self.plant.mdp.advanced(b, max(t, 0), a) for a in range(A)])  # [q1, s2]
        x = after @ arrival  # [q1, code of q2..qL, a]
        if block.h < len(self.plant.pending):
            chosen = np.full(A**L, self.plant.pending[block.h])
        elif L == 0:
            chosen = (b @ self.plant.rewards(t) + x[:, 0]).argmax(keepdims=True)
        else:
            chosen = x.reshape(A, A, -1).argmax(axis=1).T.reshape(-1)  # [w, q1]
        here = block.blind_offset // self.layers.n_states
        kept = self.blind_actions[here : here + len(chosen)]
        kept[:] = chosen
        return kept

    def _mixed(self, block: Block, moves: list[Move], table: Table, older: Table, chains: dict[Any, Floats]) -> Floats:
        """X[s_0, queue, a] of a root: the tick of time h shows s_{h+1−k}, or still nothing."""
        mass, chain = self._chain(block.h, moves, block.length + 1, table, chains)
        parts = [(m.probability, older[m.block]) for m in moves if m.age == NOTHING_NEWER]
        if chain is not None:
            parts.append((mass if parts else 1.0, chain))
        return self._mean(parts).reshape(self.layers.n_states, self.layers.n_actions, -1)

    def _root(self, block: Block, x: Floats, chosen: NDArray[Any] | None) -> tuple[Floats, NDArray[Any]]:
        """The root's values per first state, and its actions (given, or the best for rho)."""
        if block.h < len(self.plant.pending):
            chosen = np.full(x.shape[2], self.plant.pending[block.h])
        elif chosen is None:
            chosen = np.tensordot(self.plant.initial, x, axes=1).argmax(axis=0)
        return np.take_along_axis(x, chosen[None, None, :], axis=1)[:, 0, :], chosen

    def _mean(self, parts: list[tuple[float, Floats]]) -> Floats:
        """Σ w·x; the array itself where there is only one and w = 1."""
        (weight, first), *rest = parts
        if not rest and weight == 1.0:
            return first
        total = np.multiply(first, weight, out=self._induction.empty(first.size).reshape(first.shape))
        pieces = 1 if self.scratch is None else len(total)  # so that what is in between is small
        for w, x in rest:
            for piece, more in zip(np.array_split(total, pieces), np.array_split(x, pieces), strict=True):
                piece += w * more
        return total


def _write(place: Floats, table: Floats) -> None:
    if not np.may_share_memory(place, table):
        place[:] = table
