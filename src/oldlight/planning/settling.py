"""Corners settled last step first: the first stage of the search where there are few enough of them.

A *corner* is a state of step u = h − D with a queue, at a block beyond the depth of the tables (`oldlight.planning.ages`): either it was just
seen, or it bounds the laws of its block. With the corners of time h + 1 settled, those of time h are settled one after the other. What ticks that
show something are worth is a table, C_c[s', q2..qD, a] = F·N_D, and with b' = b P_u(q1)

    Q_h(b, q, a) = b·r_u(q1) + b'·C_c[:, q2..qD, a] + Σ p·V_{h+1}(b', q2..qD, a)          over the ticks that show nothing   (D = 0: q1 is a)
    Q_h(b, q, a) ≤ Σ_s b(s)·Q⁺_h[s, q, a]                                                 convex in b: the corners bound every action

which decides most actions at once. What is left is searched depth first along the blackout: actions in the order of their bound, until no bound
beats what was found; the cut-off (what was found − what is known)/p goes down the blackout; a pruned action keeps its bound as its Q⁺, which stays
valid for earlier times. Laws that were closed stay in the search's graph with their bounds and with the action that earns the lower one.

Guarantee: with tolerance ε every corner, and every law that matters, is closed to within ε: a pruned action's bound exceeds what was found by at most
ε, and the value of an action is a mean over what comes next, whose gap is at most the largest of theirs. So upper − lower ≤ ε at the start; ε = 0 is exact up to rounding. Loss alone is depth 0, late and lossy the
depth of its delay; any other link is settled alike. `cap`: no corner of time h counts as more than cap[h] (optimistic learners).

**Memory.** The laws of the graph are remembered to save work alone: a law that is not there is closed once more when it is met again. So a search that
`forgets` drops them where there is no room for more, and keeps to its bytes with the same result, unless one corner alone needs more than that. What it decides stands in
`corner_sequences`, written down corner by corner, and in `sequences`, which closes a law again where it is missing: its `decisions` would have gaps, and are refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.arrays import Floats, Ints
from oldlight.model.channels.automaton import NOTHING_NEWER
from oldlight.model.mdp import TabularMDP
from oldlight.planning.ages import Plant
from oldlight.planning.flat_link import begins_at_corners, begins_in_one_law, block_with_corners
from oldlight.planning.search import ROUNDING, AgeSearch, span

BATCH = 20_000  # laws that are opened between two looks at the clock and the keyboard
FEWEST = 128  # states that the graph has room for at first, or eight for each corner, up to
ENOUGH = 2**14


class Stopped(Exception):
    """Settling would take more time, work or memory than it may."""


@dataclass
class SettledSearch(AgeSearch):
    """A search whose corners are settled, to within the tolerance, when it is made; the tables are filled by this.

    seconds, most: after so long, or so many opened laws, `Stopped` is raised; only while the corners are settled. forgets: see the
    module's text. with_sequences: `corner_sequences` are wanted, of a link with at most one block of corners at each time and one tick that shows nothing.
    """

    tolerance: float = 0.0
    seconds: float = np.inf
    most: int | None = None
    cap: Floats | None = None
    forgets: bool = False
    with_sequences: bool = False
    _kept: tuple[int, int] = field(default=(0, 0), init=False)  # states and places of laws that are never forgotten
    _until: float = field(default=np.inf, init=False)
    _started: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        tables = self.tables.allocate()
        few = min(8, ENOUGH // max(tables.layers.blind_size, 1)) * tables.layers.blind_size
        self._arrange(max(FEWEST, few), options=2 * FEWEST)
        at_corners = begins_at_corners(tables.layers)
        at_once = at_corners and tables.layers.depth == 0 and begins_in_one_law(tables.layers)
        self._settled = self._corners(True, self.with_sequences, at_once)
        self.max_bytes -= self._settled.ahead.nbytes  # at most a quarter of them: the graph has the rest
        if self.cap is not None:
            self._settled.cap[: len(self.cap)] = self.cap
        self.slack = max(self.tolerance / ROUNDING, self.tie)
        self._until = time.perf_counter() + self.seconds
        tables.settle = self._settle
        if tables.layers.depth == 0:
            self._settle_all()
        else:
            tables.run()
        self._settled.since[0], self._until, self.most = 0, np.inf, None
        tables.settle = None  # no circle of references: what is not used any more is free at once
        if self.forgets and 2 * self.states > len(self._graph.whole):
            self._forget()
        if len(self._settled.start_law):
            self.lower, self.upper = self._settled.start_bounds.tolist()
        elif at_corners:
            self.lower, self.upper = self._from_corners()
        else:
            self._ensure_started()
            self.lower, self.upper = self._value()

    def _from_corners(self) -> tuple[float, float]:
        """The bounds of the start, from its corners and from its law, which is closed by this."""
        tables, layers, initial = self.tables, self.tables.layers, self.tables.plant.initial
        low = high = 0.0
        for p, i, age in layers.start:
            if age == NOTHING_NEWER:
                closed = self.laws(0, initial[None], block=i)[0]
                low, high = low + p * float(closed[0]), high + p * float(closed[1])
            else:
                low += p * float(initial @ tables.values(0, i, tables.lower).mean(axis=1))
                high += p * float(initial @ tables.values(0, i).mean(axis=1))
        return low, high

    def _ensure_started(self) -> None:
        """Enter the information states of time 0 into the graph, where what they are worth is not enough."""
        from oldlight.kernels import graph

        if not self._started:
            self._started = True
            self._start()
            self._kept = int(self._graph.count[graph.STATES]), int(self._graph.count[graph.BELIEFS])
            self._settle_start()

    def run(
        self,
        tolerance: float = 0.0,
        seconds: float = np.inf,
        most: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> AgeSearch:
        if self.upper - self.lower <= max(tolerance, self.closed):
            return self
        self._ensure_started()
        return super().run(tolerance, seconds, most, progress)

    @property
    def lower_by_start(self) -> Floats | None:
        if any(age == NOTHING_NEWER for _, _, age in self.tables.layers.start):
            return None
        self._ensure_started()
        tables = self.tables
        tables.from_start({i: tables.values(0, i) for i in range(len(tables.layers.blocks[0]))})
        return super().lower_by_start

    @property
    def ceiling(self) -> Floats:
        """Q⁺ at the corners, [place, action], places as in the tables of laws."""
        found: Floats = self._settled.ceiling
        return found

    @property
    def rounding(self) -> float:
        """How far values may be off because laws that agree to 2^−46 share one state of the graph."""
        S, H = self.tables.layers.n_states, self.tables.plant.mdp.finite_horizon
        return (H + 1) * (self.tie + S * 2.0**-47 * span(self.tables.plant.mdp))

    def _settle(self, h: int, i: int, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Settle the corners of block i of time h; low, high: what ticks that show something are worth."""
        from oldlight.kernels import corners as kernels

        block = self.tables.layers.blocks[h][i]
        here = slice(block.blind_offset, block.blind_offset + low.size)
        self._settled.jump[0, here], self._settled.jump[1, here] = low.reshape(-1), high.reshape(-1)
        self._go_on(kernels.settle, low.size, int(self._begin[h]) + i)
        rows = slice(block.offset, block.offset + low.size)
        return self.tables.lower[rows].reshape(low.shape), self.tables.upper[rows].reshape(low.shape)

    def _settle_all(self) -> None:
        """Depth 0: no products of matrices in between, so that all times are one call."""
        from oldlight.kernels import corners as kernels

        tables, layers = self.tables, self.tables.layers
        for block in layers.blocks[-1]:
            for flat, offset in (
                (tables.upper, block.offset),
                (tables.lower, block.offset),
                (tables.blind, block.blind_offset),
            ):
                flat[offset : offset + layers.n_states] = 0.0
        H = len(layers.moves)
        start: Any = (int(self._begin[H]) - 1, 0)

        def done(place: Any) -> bool:
            if tables.progress is not None:
                left = int(self._link.time[place[0]]) + 1 if place[0] >= 0 else 0
                tables.progress(H - left, H)
            return bool(place[0] < -1)

        self._call(kernels.settle_all, start, done)

    def _go_on(self, kernel: Callable[..., Any], number: int, what: Any) -> None:
        """Call a kernel for a block, or for given nodes, until it has done their `number`."""
        if number > 0:
            self._call(kernel, 0, lambda place: place >= number, what)

    def _call(self, kernel: Callable[..., Any], place: Any, done: Callable[[Any], bool], *what: Any) -> None:
        """Call a kernel from `place` on until it is done."""
        from oldlight.kernels import search as searching
        from oldlight.kernels import settling as kernels

        batch = BATCH if self.most is None else min(BATCH, max(self.most, 1))
        limits = searching.Limits(np.array([self.slack]), np.array([0]), np.array([batch]))
        forgotten_at: Any = None
        while True:
            parts = (self._process, self._link, self._tables, self._graph, self._settled)
            place, status = kernel(*parts, *what, place, limits)
            del parts  # what grows is not to be there twice
            full = status == kernels.GROW and not self._grow()
            if full and self.forgets:
                full, again, forgotten_at = False, place == forgotten_at, place
                if again or not self._forget():  # this corner alone needs more
                    self.max_bytes *= 2
            if full or time.perf_counter() > self._until or (self.most is not None and self.options > self.most):
                raise Stopped(f"settling every corner of {self.tables.layers.blind_size:,} takes more than it may")
            if done(place):
                return

    @property
    def plans_again(self) -> bool:
        """Is all that a plan needs found in one compiled call, its sequences included? Then the same room serves for other transitions (`again`)."""
        return self.tables.layers.depth == 0 and len(self._settled.start_law) > 0 and self._settled.sequence.size > 0

    def let_go(self, like: TabularMDP) -> None:
        """Get ready for `again`: room for lists of all states, and nothing of the first process is kept. like: any process of its sizes and rewards."""
        shape = (len(self._process.index), like.n_states * like.n_actions, like.n_states)
        self._process = self._process._replace(index=np.empty((0, 0, 0), np.int64), weight=np.empty((0, 0, 0)))
        self.tables.plant = Plant(like, initial=self.tables.plant.initial, pending=self.tables.plant.pending)
        index, weight, count = np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape[:2], np.int64)
        self._process = self._process._replace(index=index, weight=weight, count=count, full=np.zeros(shape[0], bool))

    def again(self, kernel: Callable[..., Any], what: Any) -> None:
        """Have a kernel make plans for other transitions, one after the other: kernel(process, link, tables, graph, settled, what, place, limits), from place (0, −2, 0)
        on until the first entry of its place is −1. It fills in the lists of successors; bounds and sequences of the last plan are left."""
        self._call(kernel, (0, -2, 0), lambda place: bool(place[0] < 0), what)

    def _forget(self) -> bool:
        """Drop the laws that are remembered; False where the graph has options, whose states cannot go."""
        from oldlight.kernels import graph as kernels

        count = self._graph.count
        if count[kernels.OPTIONS]:
            return False
        count[kernels.STATES], count[kernels.BELIEFS] = self._kept
        self._graph.slots[:] = 0
        kernels.rehash(self._graph)
        return True

    def _settle_start(self) -> None:
        """Close the law of the first state where that may be unknown from the beginning on."""
        from oldlight.kernels import graph as kernels

        layers, initial = self.tables.layers, self.tables.plant.initial
        for _, i, age in layers.start:
            if age != NOTHING_NEWER or layers.blocks[0][i].root:
                continue
            low, high, action = self.laws(0, initial[None], block=i)[0]
            number = self.number(0, i, 0, -1, initial)
            self._graph.real[number] = high, low
            self._graph.whole[number, kernels.LOW_ACTION] = int(action)

    def decisions(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        assert not self.forgets, "a search that forgets has no table of its decisions; use its sequences"
        if (
            np.count_nonzero(self.tables.plant.initial) == 1
        ):  # a state that is certain is a corner, of which the graph knows nothing
            self._ensure_started()
        return super().decisions()

    def laws(self, h: int, laws: Floats, codes: Ints | None = None, block: int = 0) -> Floats:
        """(lower, upper, action) where the law of the state of step h − D is laws[i] and the queue since has the code codes[i]."""
        from oldlight.kernels import corners as kernels

        out = np.empty((len(laws), 3))
        codes = np.zeros(len(laws), np.int64) if codes is None else codes
        nodes = (int(self._begin[h]) + block, codes, _writable(laws), out)
        self._go_on(kernels.close_laws, len(laws), nodes)
        return out

    @property
    def corner_sequences(self) -> NDArray[Any]:
        """out[u, s·A^D + code, j]: what the plan does j ticks after each corner of time u + D while nothing is seen, 0 where nothing can be done."""
        found: NDArray[Any] = self._settled.sequence
        return found

    @property
    def start_sequence(self) -> NDArray[Any]:
        """What the plan does at times 0, 1, .. while nothing is seen: of depth 0, and with `corner_sequences`."""
        known: NDArray[Any] = self._settled.start_sequence
        if len(self._settled.start_law):
            return known
        return np.asarray(self.sequences(0, self.tables.plant.initial[None], np.zeros(1, np.int64))[0])

    def sequences(self, h: int, laws: Floats, codes: Ints) -> Ints:
        """out[i, j]: what the plan does at time h + j while nothing is seen, of links with one tick that shows nothing."""
        from oldlight.kernels import corners as kernels

        out = np.zeros((len(laws), len(self.tables.layers.moves) - h), self.tables.actions.dtype)
        nodes = (int(self._begin[h]) + block_with_corners(self.tables.layers, h), codes, _writable(laws), out)
        self._go_on(kernels.follow, len(laws), nodes)
        return out.astype(np.int64)


def _writable(laws: Floats) -> Floats:
    """One kind of array, whoever asks: the kernels would be compiled once more for one that cannot be written."""
    return np.require(laws, requirements=["C", "W"])
