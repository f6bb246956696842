"""Beyond the tables: close what is left between their bounds, where the policy goes.

The tables of `oldlight.planning.ages` bound the value of every information state from both sides. The search keeps a graph of
information states that begins with those of time 0. Depth first it

- walks forward along the actions whose upper bound is highest, and expands what it meets: corners (a newest state, a queue and a
  node of the link) and, beyond the depth of the tables, laws of the state of step u. What is closed to the tolerance, or can no
  longer change the action of the state before, is left alone;
- brings the bounds back to the start: an expanded action is worth what its successors are, the others are bounded by one
  step of lookahead, and the state's upper bound is the largest of them, its lower bound the best that an expanded action
  earns. The value of each action is convex in the law, so the corners of a block, which come first, bound its laws action by
  action: that prunes nearly everything,

until upper − lower at the start is at most the tolerance, or nothing is left but rounding, or time is up. Where every corner was settled before
(`oldlight.planning.settling`), a law is closed along its blackout alone.
The policy plays the action that earns the lower bound at the states of the graph, the tables' action at other corners, and the
tables' blind action at other laws: it earns at least the lower bound.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.arrays import Floats, action_type, aligned_zeros
from oldlight.checks import TooLarge
from oldlight.machine import format_bytes
from oldlight.model.channels.automaton import NOTHING_NEWER
from oldlight.model.mdp import TabularMDP
from oldlight.planning.ages import AgeTables, Plant
from oldlight.planning.flat_link import first_blocks, first_laws, flat_link, hidden_ticks, key_of_states, most_ticks
from oldlight.progress import decades_closed

CLOSED = 2.0**-44  # a gap of this share of the largest return is rounding; a quarter of it is a tie
BATCH = 2_000  # expansions between two looks at the clock and the keyboard
FIRST_STATES = 2**13
TABLE = 2**28  # bytes of the outlooks of corners (`Settled.ahead`), or a quarter of what the search may take
WIDE = 24  # states of a law that there is room for at once
ROUNDING = 1.05  # states are closed to the tolerance divided by this: the rest is for rounding


@dataclass
class AgeSearch:
    """One search. lower ≤ optimum ≤ upper hold from the beginning and get closer with `run`."""

    tables: AgeTables
    max_bytes: int
    lower: float = 0.0
    upper: float = 0.0

    def __post_init__(self) -> None:
        self._arrange(FIRST_STATES)
        self._settled = self._corners(False)
        self._start()
        self.lower, self.upper = self._value()

    def _arrange(self, states: int, options: float = np.inf) -> None:
        """The process, the link, the tables and an empty graph with room for so many states, and for an option of each, or for so many, as the kernels read them."""
        from oldlight.kernels import graph as kernels

        t = self.tables
        mdp, layers = t.plant.mdp, t.layers
        S, A, H, D = mdp.n_states, mdp.n_actions, mdp.finite_horizon, layers.depth
        self.tie = CLOSED / 4 * magnitude(mdp)
        self._process = process_arrays(t.plant, D)
        self._link = flat_link(t.layers)
        self._begin = first_blocks(layers)
        forced = np.full(H + 1, -1)
        if t.plant.pending:
            forced[: min(len(t.plant.pending), H)] = t.plant.pending[:H]
        self._tables = kernels.Tables(t.upper, t.lower, t.blind, t.actions, forced)
        self._turn = 1
        fewest = 8 * (most_ticks(layers) + 1) * S
        n = self._states = max(2 * states, fewest)
        places, slots = n * max(8, min(S, WIDE)), 1 << (2 * n - 1).bit_length()
        tried = int(min(n, max(options, fewest)))
        edges = 8 * tried
        self._graph = kernels.Graph(
            np.empty((n, kernels.WHOLE), np.int64), np.empty((n, 2)), np.empty((n, A)), np.empty((tried, 4), np.int64), np.empty(tried),
            np.empty(edges, np.int64), np.empty(edges), np.empty(places, np.int64), np.empty(places), np.zeros(slots, np.int64),
            key_of_states(S), np.zeros(layers.blind_size, np.int64), np.zeros(6, np.int64),
        )  # fmt: skip

    def _corners(self, kept: bool, sequences: bool = False, start: bool = False) -> Any:
        """Room for what is known of settled corners (`oldlight.planning.settling`) and for their sequences, if they are to be kept; start: depth 0, and the
        law of the first state is to be closed after them, in the same call."""
        from oldlight.kernels import settling as kernels
        from oldlight.kernels.outlook import SUMS

        S, A, D, H = self._process.sizes.tolist()
        places, levels = (self.tables.layers.blind_size, H + 2) if kept else (0, 0)
        hidden = hidden_ticks(self.tables.layers)
        wide = (
            -(-A * (SUMS + hidden * A) // 8) * 8
        )  # whole lines of the cache: the sums over rows take three fifths of the time
        known = places if D == 0 and 8 * places * wide <= min(self.max_bytes // 4, TABLE) else 0
        weight, block = first_laws(self.tables.layers) if start else (np.zeros(1), 0)
        law = np.array(self.tables.plant.initial) if start else np.empty(0)  # one that can be written, as all of these
        return kernels.Settled(
            np.array([H + 2]), np.empty((places, A)), np.empty((2, places)), aligned_zeros(known, wide), np.full(levels, np.inf),
            np.zeros((H - D, S * A**D, H - D) if sequences else (0, 0, 0), action_type(A)), law, np.array([block]), weight, np.zeros(2), np.zeros(H if sequences else 0, action_type(A)), np.zeros((levels, S)), np.zeros((levels, S), np.int64), np.zeros(levels, np.int64), np.zeros((levels, A)), np.zeros((levels, A)),
            aligned_zeros(levels, wide), np.zeros((levels, A, hidden)), np.zeros((levels, 7)),
            np.zeros((levels, kernels.WHOLE), np.int64),
        )  # fmt: skip

    @cached_property
    def _scratch(self) -> Any:
        from oldlight.kernels import graph as kernels

        S, D = self.tables.layers.n_states, self.tables.layers.depth
        laws = (np.zeros((D + 2, S)), np.zeros((D + 2, S)), np.zeros((D + 2, S), np.int64))
        return kernels.Scratch(*laws, np.zeros(D + 2, np.int64), np.zeros(D + 2))

    @property
    def states(self) -> int:
        """Information states in the graph."""
        return int(self._graph.count[0])

    @property
    def options(self) -> int:
        """Actions that were bounded at them, and laws that were opened: the work done."""
        from oldlight.kernels import graph as kernels

        return int(self._graph.count[kernels.OPTIONS] + self._graph.count[kernels.OPENED])

    @property
    def bytes(self) -> int:
        """What is held: the filled part of the graph (the rest of its room is not touched) and what is known of settled corners."""
        from oldlight.kernels import graph as kernels

        g, count = self._graph, self._graph.count.tolist()
        states, options, edges, laws = (
            count[i] for i in (kernels.STATES, kernels.OPTIONS, kernels.EDGES, kernels.BELIEFS)
        )
        filled = 8 * (states * (kernels.WHOLE + 2 + g.q.shape[1]) + options * 5 + 2 * edges + 2 * laws)
        return int(filled + g.slots.nbytes + g.corner.nbytes + sum([x.nbytes for x in self._settled]))

    def _grow(self) -> bool:
        """Twice the room; False where that would be over the limit."""
        from oldlight.kernels import graph as kernels

        n, g = 2 * self._states, self._graph
        edges = max(8 * n, 2 * len(g.child))
        laws = max(edges, n * min(self.tables.layers.n_states, WIDE))
        slots = 1 << (2 * n - 1).bit_length()
        need = 8 * (n * (kernels.WHOLE + 2 + g.q.shape[1] + 5) + 2 * edges + 2 * laws + slots + len(g.place))
        if need > self.max_bytes:
            return False
        self._states = n
        del g
        sizes = {"whole": n, "real": n, "q": n, "option": n, "gain": n}
        sizes |= {"child": edges, "probability": edges, "place": laws, "mass": laws}
        self._graph = self._graph._replace(slots=np.zeros(0, np.int64))
        kinds = [(kernels.STATES, "whole real q"), (kernels.OPTIONS, "option gain")]
        kinds += [(kernels.EDGES, "child probability"), (kernels.BELIEFS, "place mass")]
        filled = {name: int(self._graph.count[place]) for place, names in kinds for name in names.split()}
        for name, size in sizes.items():  # one after the other, and what is filled alone, so that little is there twice
            old, rows = getattr(self._graph, name), filled[name]
            new = np.empty((size, *old.shape[1:]), old.dtype)
            new[:rows] = old[:rows]
            self._graph = self._graph._replace(**{name: new})
        self._graph = self._graph._replace(slots=np.zeros(slots, np.int64))
        kernels.rehash(self._graph)
        return True

    def _make_room(self, more: int) -> None:
        """For so many more states, or for one more with so many places."""
        from oldlight.kernels import graph as kernels

        count = self._graph.count
        while count[kernels.STATES] + more >= len(self._graph.whole) or count[kernels.BELIEFS] + more > len(
            self._graph.place
        ):
            if not self._grow():
                raise self._too_large()

    def _too_large(self) -> TooLarge:
        return TooLarge(f"the search would need more than {format_bytes(self.max_bytes)}; raise max_bytes")

    def _start(self) -> None:
        from oldlight.kernels import corners
        from oldlight.kernels import graph as kernels

        t = self.tables
        initial, S = t.plant.initial, t.layers.n_states
        support = np.flatnonzero(initial > 0)
        law = np.array(initial)
        padded = np.zeros(S, np.int64)
        padded[: len(support)] = support
        numbers, weights = [np.zeros(0, np.int64)], [np.zeros(0)]
        for p, i, age in t.layers.start:
            block = t.layers.blocks[0][i]
            if age == NOTHING_NEWER:
                number = self._enter(kernels, (i, 0, -1), law, padded, len(support))
                numbers.append(np.array([number]))
                weights.append(np.array([p]))
                continue
            queues = t.layers.n_actions**block.length
            places = np.empty((len(support), queues, 3), np.int64)
            places[..., 0], places[..., 1], places[..., 2] = i, np.arange(queues), support[:, None]
            places = places.reshape(-1, 3)
            s = places[:, 2]
            self._make_room(len(s))
            parts = (self._process, self._link, self._tables, self._graph)
            numbers.append(corners.enter_corners(*parts, places, law, padded))
            weights.append(p * initial[s] / queues)
        self._first, self._weights = np.concatenate(numbers), np.concatenate(weights)

    def _enter(self, kernels: Any, place: tuple[int, int, int], law: Floats, support: NDArray[np.int64], n: int) -> int:
        self._make_room(n)
        return int(kernels.enter(self._process, self._link, self._tables, self._graph, place, law, support, n))

    def _value(self) -> tuple[float, float]:
        up, low = self._graph.real[self._first].T
        return float(self._weights @ low), float(self._weights @ up)

    @property
    def lower_by_start(self) -> Floats | None:
        """What the policy earns at least from each first state; None where that state may be unknown at time 0."""
        if any(age == NOTHING_NEWER for _, _, age in self.tables.layers.start):
            return None
        value = np.zeros(self.tables.layers.n_states)
        initial = self.tables.plant.initial
        states = self._graph.whole[self._first, 2]
        np.add.at(value, states, self._weights * self._graph.real[self._first, 1] / initial[states])
        return np.where(initial > 0, value, self.tables.upper_by_start)

    @property
    def closed(self) -> float:
        """A gap of this size is rounding."""
        return 4 * self.tie

    def number(self, h: int, block: int, code: int, s: int, b: Floats, *, make: bool = False) -> int:
        """The number of an information state, block number and code as in the tables, s or the law b; −1 where the graph has none
        and none is made."""
        from oldlight.kernels import graph as kernels

        support = np.flatnonzero(b > 0)
        place = (int(self._begin[h]) + block, code, s)
        law = np.require(b, requirements=["C", "W"])  # one kind of array: one loop is compiled
        if make:
            return self._enter(kernels, place, law, support, len(support))
        return int(kernels.find(self._graph, place, law, support, len(support)))

    def action(self, h: int, block: int, code: int, s: int, b: Floats) -> int:
        """What earns the lower bound at a state of the graph; −1 where that is the tables' own action."""
        from oldlight.kernels import graph as kernels

        i = self.number(h, block, code, s, b)
        return -1 if i < 0 else int(self._graph.whole[i, kernels.LOW_ACTION])

    def decisions(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """Where the search chose: rows (time, block within its time, code, state or −1, action, where its law begins, its length),
        and the places and masses of the laws."""
        from oldlight.kernels import graph as kernels

        whole = self._graph.whole[: self.states]
        whole = whole[whole[:, kernels.LOW_ACTION] >= 0]
        h = np.searchsorted(self._begin, whole[:, kernels.BLOCK], side="right") - 1
        size = np.where(whole[:, kernels.STATE] < 0, whole[:, kernels.BELIEF_SIZE], 0)
        columns = (kernels.CODE, kernels.STATE, kernels.LOW_ACTION, kernels.BELIEF)
        rows = np.column_stack([h, whole[:, kernels.BLOCK] - self._begin[h], *(whole[:, c] for c in columns), size])
        rows[size == 0, 5] = 0
        laws = int(self._graph.count[kernels.BELIEFS])
        return rows, self._graph.place[:laws].copy(), self._graph.mass[:laws].copy()

    def q_value(self, i: int, a: int, tolerance: float, seconds: float) -> float:
        """What acting a at state i earns from the state's step on: the lower bound, closed to the tolerance."""
        from oldlight.kernels import graph as kernels
        from oldlight.kernels import search as searching

        while True:
            parts = (self._process, self._link, self._tables, self._graph, self._scratch)
            option = int(searching.option_at(*parts, i, a))
            del parts
            if option >= 0:
                break
            if not self._grow():
                raise self._too_large()
        edges = slice(*self._graph.option[option, kernels.FROM : kernels.TO + 1])
        children, weights = self._graph.child[edges].copy(), self._graph.probability[edges].copy()

        def value() -> tuple[float, float]:
            up, low = self._graph.real[children].T
            return float(weights @ low), float(weights @ up)

        low, _ = self._close(children, value, tolerance, seconds, None)
        return float(self._graph.gain[option]) + low

    def run(
        self,
        tolerance: float = 0.0,
        seconds: float = np.inf,
        most: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> AgeSearch:
        """Close the gap to `tolerance` (0: to rounding), or for so many seconds, or with about `most` options."""
        self._close(self._first, self._refresh, tolerance, seconds, most, progress)
        return self

    def _refresh(self) -> tuple[float, float]:
        self.lower, self.upper = self._value()
        return self.lower, self.upper

    def _close(
        self,
        start: NDArray[np.int64],
        value: Callable[[], tuple[float, float]],
        tolerance: float,
        seconds: float,
        most: int | None,
        progress: Callable[[int, int], None] | None = None,
    ) -> tuple[float, float]:
        """Close the states `start` until the bounds `value()` are within the tolerance."""
        from oldlight.kernels import graph as kernels
        from oldlight.kernels import search as searching

        began = time.perf_counter()
        target = max(tolerance, self.closed)
        slack = max(tolerance / ROUNDING, self.tie)
        batch = BATCH if most is None else min(BATCH, most)
        limits = searching.Limits(np.array([slack]), np.array([self._turn]), np.array([batch]))
        count = self._graph.count
        before = (-1, 0.0, 0.0)
        low, up = value()
        first = up - low
        while up - low > target and time.perf_counter() - began < seconds:
            status = searching.close(
                self._process, self._link, self._tables, self._graph, self._scratch, self._settled, start, limits
            )
            low, up = value()
            if progress is not None:
                progress(*decades_closed(first, up - low, target))
            if most is not None and self.options >= most:
                break
            if status == searching.GROW and not self._grow():
                break
            if status == searching.DONE:
                self._turn += 1
                limits.turn[0] = self._turn
                now = (int(count[kernels.EXPANDED]), low, up)
                if now == before:  # a turn that changed nothing: look more closely
                    limits.slack[0] /= 4
                    if limits.slack[0] < self.tie / 64:
                        break
                before = now
        self._turn += 1
        return low, up


def different_rewards(mdp: TabularMDP) -> tuple[Floats, int]:
    """The rewards [h, s, a] of the steps that differ, and how often they are paid: one step, H times, if they are stationary."""
    return (mdp.rewards[:1], mdp.finite_horizon) if mdp.stationary_rewards else (mdp.rewards, 1)


def magnitude(mdp: TabularMDP) -> float:
    """The largest return, or its negative; found once for a process."""
    if "magnitude" not in mdp._cache:
        R, times = different_rewards(mdp)
        mdp._cache["magnitude"] = max(times * float(np.abs(R).max(axis=(1, 2)).sum()), 1e-300)
    return float(mdp._cache["magnitude"])


def process_arrays(plant: Plant, depth: int) -> Any:
    """The process as the kernels read it; made once for a small one."""
    from oldlight.kernels import graph as kernels

    mdp, name = plant.mdp, f"process of the search, depth {depth}"
    if name in mdp._cache:
        return mdp._cache[name]
    sizes = np.array([mdp.n_states, mdp.n_actions, depth, mdp.finite_horizon])
    tie = np.array([CLOSED / 4 * magnitude(mdp)])
    made = kernels.Process(sizes, mdp.n_actions ** np.arange(depth + 2), *plant.lists, tie)
    mdp._cache.update({name: made} if "padded lists" in mdp._cache else {})
    return made


def span(mdp: TabularMDP) -> float:
    """How far apart two returns can be; found once for a process."""
    if "span" not in mdp._cache:
        R, times = different_rewards(mdp)
        mdp._cache["span"] = times * float((R.max(axis=(1, 2)) - R.min(axis=(1, 2))).sum())
    return float(mdp._cache["span"])
