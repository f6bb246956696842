"""The order of a backward induction over a layout, and where its values stand: what `oldlight.kernels.delay.sweep` goes over.

Blocks come last time first: what follows the last action (G_{H−m}, m = 1, 2, ..), then those of time H − 1, H − 2, .. with the root of each
time. A *level* is the blocks of one time, which do not need each other.

Values stand in one flat array, in one of three ways:

    "two times"   only two times are held at once, at the front and at the back of the array in turn;
    "all times"   every time is kept;
    "table"       as in the table of actions (`Layout`), roots as means over the start state, then G_{H−0}, G_{H−1}, ..
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from oldlight.arrays import Floats, Ints
from oldlight.machine import thread_count
from oldlight.model.information import Layout
from oldlight.threads import lent_threads

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Key = tuple[int, int]  # (m, δ)
SMALL = 2_000_000  # multiplications of a level for which threads are started
LEAST = 200_000  # and of another level of the same plan, which they share too
CALL = 50_000_000  # multiplications of one compiled call: well under 0.2 seconds, so that Ctrl-C is heard
NODE, REST, ROOT = range(3)  # as in `oldlight.kernels.delay`
APART, GONE = 8, 2**62  # as in `oldlight.kernels.turns`


@dataclass
class Stage:
    """Values at one time: U[(m, δ)] has axes [s, code]; root has axes [s, code] (the start state, then the queue)."""

    values: dict[Key, Floats]
    root: Floats | None = None


class Schedule:
    """Rows of blocks for the kernel, levels of them, and the size of the array of values.

    ends[m]: where G_{H−m} stands. powers[m] = A^m. width: successors of a pair, for the number of multiplications. certain: once something was seen,
    every arrival is; shortest: the shortest queue then.
    """

    def __init__(
        self,
        layout: Layout,
        *,
        warmup: int,
        longest_delay: int,
        values: Literal["two times", "all times", "table"],
        width: int = 1,
    ) -> None:
        self.layout, self.values = layout, values
        self._places: dict[
            int, list[tuple[int, int, int]]
        ] = {}  # (m, δ, place) of the blocks of a time, once they were asked for
        H, S, A = layout.horizon, layout.n_states, layout.n_actions
        h, m, waited = (axis[::-1].copy() for axis in np.nonzero(layout.offset >= 0))
        rooted = np.flatnonzero(layout.root >= 0)[::-1]
        self.lengths = sorted({*m[h == H - 1].tolist(), *([H] if layout.root[H - 1] >= 0 else [])})
        longest = self.lengths[-1]
        self.powers: Ints = np.array(
            [A**i for i in range(max(longest, int(rooted[0]) if len(rooted) else 0) + 2)], dtype=np.int64
        )
        sizes = S * self.powers[m]
        root_sizes = self.powers[rooted] * (1 if values == "table" else S)
        self.node: Ints = np.full((H + 1, layout.offset.shape[1] + 1, layout.offset.shape[2] + 1), -1, dtype=np.int64)
        self.root: Ints = np.full(H + 1, -1, dtype=np.int64)
        if values == "table":
            self.node[:H, :-1, :-1], self.root[:H] = layout.offset, layout.root
            self.ends: Ints = layout.size + np.append(0, np.cumsum(S * self.powers[:longest]))
            self.size = int(self.ends[-1] + S * self.powers[longest])
        else:
            self._place(h, m, waited, sizes, rooted, root_sizes)
        self.blocks = self._rows(h, m, waited, rooted, warmup > 0, longest_delay)
        times = np.concatenate([np.full(longest, H), h, rooted])
        order = np.argsort(-times, kind="stable")
        order[:longest] = np.arange(longest)
        self.blocks = np.ascontiguousarray(self.blocks[order])
        work = np.concatenate([S * self.powers[1 : longest + 1], sizes * A, root_sizes * A])[order] * width
        starts = np.append(np.arange(longest), longest + np.flatnonzero(np.diff(times[order][longest:], prepend=H)))
        self.levels: list[tuple[int, int, int, int]] = [  # (time, first row, last row, multiplications)
            (int(times[order[i]]), i, j, int(work[i:j].sum()))
            for i, j in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True)
        ]
        self.most_work = max(level[3] for level in self.levels)
        behind = self.blocks[self.blocks[:, 0] != ROOT]
        self.certain, self.shortest = bool(behind[:, 8].all()), int(behind[:, 2].min())

    def _place(self, h: Ints, m: Ints, waited: Ints, sizes: Ints, rooted: Ints, root_sizes: Ints) -> None:
        """Where the values stand if not as in the table: time H at the front; G that no time reads, at the back of what is still free."""
        layout = self.layout
        H, S = layout.horizon, layout.n_states
        of_time = np.bincount(h, sizes, H + 1) + np.bincount(rooted, root_sizes, H + 1)
        of_time[H] = sum(S * int(self.powers[n]) for n in self.lengths)
        stage = of_time.astype(np.int64)
        passing = [S * int(self.powers[n]) for n in range(self.lengths[-1]) if n not in self.lengths]
        at_end = int(stage[H]) + sum(sorted(passing)[-2:])
        if self.values == "all times":
            self.size = max(int(stage.sum()), at_end)
            begin = np.cumsum(stage[::-1])[::-1] - stage
        else:
            self.size = max(int((stage[:-1] + stage[1:]).max()), at_end)
            begin = np.where((H - np.arange(H + 1)) % 2 == 0, 0, self.size - stage)
        before = np.cumsum(sizes) - sizes  # h falls; what stands before the first block of a time is not counted
        first = np.searchsorted(-h, -h, side="left")
        self.node[h, m, waited] = begin[h] + before - before[first]
        for time, size in zip(rooted.tolist(), root_sizes.tolist(), strict=True):
            self.root[time] = begin[time] + stage[time] - size
        self.ends = np.zeros(self.lengths[-1] + 1, dtype=np.int64)
        kept, largest, i = 0, max(passing, default=0), len(passing)
        for n in range(self.lengths[-1] + 1):
            size = S * int(self.powers[n])
            if n in self.lengths:
                self.ends[n], kept = kept, kept + size
            else:
                i -= 1
                self.ends[n] = self.size - size - (largest if i % 2 else 0)

    def _rows(self, h: Ints, m: Ints, waited: Ints, rooted: Ints, warm: bool, longest_delay: int) -> Ints:
        """Columns as in `oldlight.kernels.delay`: G, then the nodes, then the roots."""
        layout, H, ends = self.layout, self.layout.horizon, self.ends
        n, rest = len(self.ends) - 1, np.arange(1, len(self.ends))
        G = np.column_stack([np.full(n, REST), np.full(n, H), rest, np.zeros(n), np.full(n, -1), ends[1:], ends[:-1],
                             np.full(n, -1), np.ones(n)])  # fmt: skip
        final = h == H - 1
        forced = final | warm | (m >= longest_delay)
        arrival = np.where(final, ends[np.minimum(m, n)], self.node[h + 1, m, 0])
        wait = np.where(forced, -1, self.node[h + 1, m + 1, waited + 1])
        nodes = np.column_stack([np.full(len(h), NODE), h, m, waited, layout.offset[h, m, waited], self.node[h, m, waited],
                                 arrival, wait, forced])  # fmt: skip
        last = rooted == H - 1
        seen = self.node[rooted + 1, np.minimum(rooted + 1, self.node.shape[1] - 1), 0]
        arrival = np.where(last, ends[-1], np.where(rooted + 1 < self.node.shape[1], seen, -1))
        roots = np.column_stack([np.full(len(rooted), ROOT), rooted, rooted, np.zeros(len(rooted)), layout.root[rooted],
                                 self.root[rooted], arrival, self.root[rooted + 1], last])  # fmt: skip
        return np.concatenate([G, nodes, roots]).astype(np.int64)

    def stage(self, h: int, values: Floats) -> Stage:
        """The values of time h as arrays; h = H: what follows the last action."""
        layout, H = self.layout, self.layout.horizon
        if h == H:
            rest = {(m, 0): self._block(values, int(self.ends[m]), m) for m in self.lengths}
            return Stage(rest, rest.get((H, 0)) if layout.root[H - 1] >= 0 else None)
        if h not in self._places:
            self._places[h] = [(b.m, b.waited, int(self.node[h, b.m, b.waited])) for b in layout.blocks(h)]
        found = {(m, waited): self._block(values, place, m) for m, waited, place in self._places[h]}
        return Stage(found, self._block(values, int(self.root[h]), h) if layout.root[h] >= 0 else None)

    def _block(self, values: Floats, place: int, m: int) -> Floats:
        S, Q = self.layout.n_states, int(self.powers[m])
        return values[place : place + S * Q].reshape(S, Q)

    def calls(self, threads: int | None = None, stop: int = 0) -> Iterator[tuple[int, int, int, int]]:
        """(time, first row, last row, parts) of the compiled calls down to time `stop`: one for all that is small, and one part for each thread of what is worth
        sharing, several levels if they are not large. threads: those of the machine if None, which is asked only where a level is worth sharing."""
        if threads is None:
            threads = thread_count() if self.most_work >= SMALL else 1
        least = min(LEAST, SMALL) if self.most_work >= SMALL else SMALL
        pending: list[int] = []  # time, first row, last row, multiplications, threads
        for time, first, last, work in self.levels:
            if time < stop:
                break
            shared = threads if work >= least else 1
            if pending and (shared != pending[4] or pending[3] + work > CALL * shared):
                yield self._call(pending)
                pending = []
            pending = (
                [time, first, last, work, shared]
                if not pending
                else [time, pending[1], last, pending[3] + work, shared]
            )
        if pending:
            yield self._call(pending)

    @staticmethod
    def _call(pending: list[int]) -> tuple[int, int, int, int]:
        time, first, last, work, shared = pending
        return time, first, last, -(-work // (CALL * shared)) * shared  # as many parts for each thread

    def turns(self) -> Ints:
        """Where the threads of a call say how far they have come (`oldlight.kernels.turns`)."""
        return np.zeros(APART * thread_count() if self.most_work >= SMALL else 0, dtype=np.int64)


def run_calls(
    work: Callable[..., None],
    calls: Iterable[tuple[int, int, int, int]],
    turns: Ints,
    after: Callable[[int], None] | None = None,
) -> None:
    """Do work(first, last, part, parts) for every part of every call, parts of one call on several threads; after(time) when it is done.

    turns: as the work reads them. The compiled calls are short, so that an interrupt is heard between two of them.
    """
    pool: ThreadPoolExecutor | None = None
    with ExitStack() as stack:
        for time, first, last, parts in calls:
            if parts == 1:
                work(first, last, 0, 1)
            else:
                pool = pool or stack.enter_context(lent_threads(thread_count()))
                _share(pool, work, (first, last), parts, turns)
            if after is not None:
                after(time)


def _share(pool: ThreadPoolExecutor, work: Callable[..., None], rows: tuple[int, int], parts: int, turns: Ints) -> None:
    """The parts of one call; this thread does the first where there is one for each thread: one less to be woken."""
    own = parts == thread_count()
    turns[:] = 0

    def do(part: int) -> None:
        try:
            work(*rows, part, parts)
        finally:
            if own:
                turns[part * APART] = GONE

    jobs = [pool.submit(do, part) for part in range(own, parts)]
    try:
        if own:
            do(0)
    finally:
        if own:
            turns[0] = GONE  # also where Ctrl-C comes before its part has begun
    for job in jobs:
        job.result()
