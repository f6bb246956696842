"""Planning behind any link that does not depend on the process: tables, then the search, until the certificate is met.

1. Actions that do the same everywhere are one (`distinct_actions`).
2. Upper tables of depth D, the longest delay (`oldlight.planning.ages`), exact where no observation can be older than D; what their
   actions earn is the lower bound (`oldlight.planning.table_walk`).
3. Where a gap is left, the search closes it where the policy goes (`oldlight.planning.search`); if that takes long, every corner is settled
   last step first (`oldlight.planning.settling`), or where these are too many, tables one step deeper are made. Without a delay, or where an exact
   plan is wanted and there are few corners, settling them comes first.

The result is lower ≤ optimum ≤ upper, and its policy earns at least `lower`. Nodes that were merged (hidden links) widen the
bounds by the error of merging. A plan that is interrupted holds at every moment what was certified until then.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.arrays import Floats
from oldlight.checks import TooLarge
from oldlight.machine import default_limit, format_bytes
from oldlight.model.age_layers import Layers
from oldlight.model.channels.automaton import ChannelAutomaton
from oldlight.model.channels.hidden import merging_error
from oldlight.model.held_steps import HeldSteps
from oldlight.model.link_policy import LinkPolicy
from oldlight.model.mdp import TabularMDP
from oldlight.planning.ages import AgeTables, Plant
from oldlight.planning.flat_link import corner_blocks, hidden_ticks
from oldlight.planning.link_memory import table_bytes, walk_bytes
from oldlight.planning.scratch import refuse_full
from oldlight.planning.search import CLOSED, AgeSearch, magnitude
from oldlight.planning.settling import SettledSearch, Stopped
from oldlight.planning.table_walk import can_be_walked, value_by_start, value_of_actions

DEEPER = 2**22  # entries up to which deeper tables are tried before a long search
TRIES = 20  # a search may make the tables' entries divided by this many options, or FIRST_TRY, before deeper tables are tried
FIRST_TRY = 4_000
ALONE = 100_000  # corners that are settled at once where there is no delay,
AT_ONCE = 50_000  # or where there is one and the plan is to be exact, if that takes no more than
LIGHT = 1e8  # operations, about 0.2 seconds: until it is done there is no plan that an interrupt could hand out,
CORNERS = 60_000  # and after a first try up to so many,
HEAVY = 5e9  # if expanding each of them once takes no more operations: S²·A for a law of the state
SEQUENCES = 2**25  # actions of a table of sequences
FEWEST_OPTIONS = 100  # of that first try, or
SHARE = 25  # the corners divided by this: about a seventh of the time that settling them takes


def distinct_actions(mdp: TabularMDP) -> NDArray[np.int64]:
    """For each action the first one that has the same transitions and rewards at every step."""
    R, A = mdp.rewards[:1] if mdp.stationary_rewards else mdp.rewards, mdp.n_actions
    earned = [R[:, :, a].tobytes() for a in range(A)]
    begins = [b"" if mdp.sparse else mdp.matrix(0)[a].tobytes() for a in range(A)]  # from the first state
    if len(set(zip(earned, begins, strict=True))) == A:
        return np.arange(A)
    first: dict[tuple[bytes, ...], int] = {}
    return np.array([first.setdefault((earned[a], *_bytes_of_action(mdp, a)), a) for a in range(A)])


def kept_actions(mdp: TabularMDP) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first of all actions that do the same, and for each action the place of its first one among them; found once for a process."""
    if "kept actions" not in mdp._cache:
        mdp._cache["kept actions"] = np.unique(distinct_actions(mdp), return_inverse=True)
    found: tuple[NDArray[np.int64], NDArray[np.int64]] = mdp._cache["kept actions"]
    return found


def _bytes_of_action(mdp: TabularMDP, a: int) -> Iterator[bytes]:
    """The transitions of an action, whatever the storage."""
    for h in range(1 if mdp.stationary_transitions else mdp.finite_horizon):
        P = mdp.matrix(h)[a :: mdp.n_actions]
        yield from (part.tobytes() for part in ((P.indptr, P.indices, P.data) if mdp.sparse else (P,)))


class LinkPlan:
    """A plan behind `automaton` (shifted already by late actions, whose first ones are `pending`).

    initial: the law of the first state if it is not the process's own; scratch: a folder for first tables that `max_bytes` of memory do not hold; room: bytes
    that a search may take, which stops there with the bounds that it has; settle_all: settle every corner, however many there are, and forget what can be found again where the room is full: such a plan has
    no `policy`, but the sequences of its search (`oldlight.planning.blackout`). After `run`, and whenever that is interrupted after the first
    tables: lower ≤ optimum ≤ upper, and `policy` earns at least `lower`. entries: of the tables; states: of the search's graph.
    """

    def __init__(
        self,
        mdp: TabularMDP,
        automaton: ChannelAutomaton,
        *,
        initial: Floats | None = None,
        pending: tuple[int, ...] = (),
        max_bytes: int | None = None,
        scratch: Path | None = None,
        room: int | None = None,
        settle_all: bool = False,
    ) -> None:
        self.mdp, self.automaton, self.scratch, self.room = mdp, automaton, scratch, room
        self.settle_all = settle_all
        self.limit = default_limit() if max_bytes is None else max_bytes
        self.kept, self.number = kept_actions(mdp)
        self.closed = CLOSED * magnitude(mdp)  # a gap of this size is rounding
        self.plant = Plant(
            with_actions(mdp, self.kept), initial=initial, pending=tuple(int(self.number[a]) for a in pending)
        )
        self.error = merging_error(automaton.merging, mdp.rewards)
        self.tables: AgeTables | None = None
        self.search: AgeSearch | None = None
        self.seconds, self._need, self._lower, self._upper = 0.0, 0, -np.inf, np.inf
        self.on_disk = 0  # bytes of the tables in the scratch folder

    def run(
        self,
        tolerance: float = 0.0,
        seconds: float | None = None,
        depth: int | None = None,
        progress: Callable[[int, int], None] | None = None,
        options: int | None = None,
    ) -> LinkPlan:
        """Plan until upper − lower is at most the tolerance, or time is up, or the searches have made so many `options` in all. depth: of the
        tables, fixed; otherwise from the longest delay on, as deep as it helps."""
        began = time.perf_counter()

        def left() -> float:
            return np.inf if seconds is None else seconds - (time.perf_counter() - began)

        layers = self._layers(self.automaton.longest if depth is None else depth)
        wanted = max(tolerance - 2 * self.error, self.closed)
        try:
            exact = wanted <= self.closed
            light = layers.blind_size <= AT_ONCE and self._operations(layers) <= LIGHT
            at_once = (self.settle_all or layers.depth == 0 or (exact and light)) and self._few_corners(layers)
            if at_once and self._settle(layers, wanted, left(), options, progress):
                return self
            self._first(layers, progress)
            while self._upper - self._lower > wanted and layers.searched and left() > 0 and options != 0:
                if table_bytes(layers, kept=True, bounded=True) > self.limit:
                    break
                made, need = self._tables(layers, True, progress)
                deeper = None if depth is not None else self._deeper(layers.depth)
                settled = not at_once and layers.depth > 0 and self._few_corners(layers)
                found = AgeSearch(made, self._left(need))
                try:
                    limits = [] if deeper is None else [max(FIRST_TRY, layers.size // TRIES)]
                    limits += [max(FEWEST_OPTIONS, layers.blind_size // SHARE)] if settled else []
                    limits += [] if options is None else [options]
                    found.run(wanted, left(), min(limits, default=None), progress)
                finally:
                    self._take(found, made, need)
                if self._upper - self._lower <= max(found.closed, wanted):
                    break
                options = None if options is None else max(options - found.options, 0)
                if settled and self._settle(layers, wanted, left(), options, progress):
                    break
                if deeper is None and not settled:
                    break
                layers = layers if deeper is None else deeper
        finally:
            self.seconds += time.perf_counter() - began
            if self.tables is not None:
                self.tables.progress = None  # a plan may travel to another process
        return self

    def _take(self, found: AgeSearch, made: AgeTables, need: int) -> None:
        """The better bounds of what was found."""
        self._upper = min(found.upper, self._upper)
        if math.isfinite(found.lower) and found.lower >= self._lower - found.tie:
            self.tables, self.search, self._need, self._lower = made, found, need, found.lower

    def _few_corners(self, layers: Layers) -> bool:
        """Is settling every corner (`oldlight.planning.settling`) cheap enough to be tried?"""
        A, most = layers.n_actions, CORNERS if layers.depth else ALONE
        few = layers.blind_size <= most and self._operations(layers) <= HEAVY
        few = layers.searched and (few or self.settle_all)
        return few and table_bytes(layers, kept=True, bounded=True) + 8 * layers.blind_size * (A + 2) <= self.limit

    def _one_blackout(self, layers: Layers) -> bool:
        """Does nothing but time pass in a blackout, and are its sequences of actions few enough to be written down?"""
        H, D = len(layers.moves), layers.depth
        few = self.settle_all or H * H * layers.n_states * layers.n_actions**D <= SEQUENCES
        return few and hidden_ticks(layers) == 1 and corner_blocks(layers) == 1

    @staticmethod
    def _operations(layers: Layers) -> int:
        """Of expanding every corner once."""
        return layers.blind_size * layers.n_states**2 * layers.n_actions

    def _settle(
        self,
        layers: Layers,
        wanted: float,
        seconds: float,
        options: int | None,
        progress: Callable[[int, int], None] | None,
    ) -> bool:
        """Settle every corner, then the start; False where that takes too long."""
        if seconds <= 0 or options == 0:
            return False
        need = table_bytes(layers, kept=True, bounded=True) + 8 * layers.blind_size * (layers.n_actions + 2)
        made = AgeTables(self.plant, layers, True, True, progress)
        try:
            found = SettledSearch(
                made, self._left(need), tolerance=wanted, seconds=seconds, most=options, forgets=self.settle_all,
                with_sequences=self._one_blackout(layers),
            )  # fmt: skip
        except Stopped:
            return False
        try:
            found.run(wanted)  # what is left, before anything can be seen, is little
        finally:
            self._take(found, made, need)
        return True

    def _first(self, layers: Layers, progress: Callable[[int, int], None] | None) -> None:
        """Upper tables, and what their actions earn; tables of lower bounds as well where that cannot be walked."""
        walked = layers.searched and can_be_walked(self.plant, layers)
        made, self._need = self._tables(layers, False, progress, bounded=layers.searched and not walked)
        self._lower, self._upper = value_of_actions(made) if walked else made.lower_value, made.upper_value
        self._need = max(self._need, walk_bytes(layers) - self.on_disk if walked else 0)
        self.tables = made

    @property
    def lower(self) -> float:
        return self._lower - self.error

    @property
    def upper(self) -> float:
        return self._upper + self.error

    @property
    def exact(self) -> bool:
        return self.error == 0 and self._upper - self._lower <= self.closed

    @property
    def depth(self) -> int:
        return self._made.layers.depth

    @property
    def entries(self) -> int:
        return self._made.layers.size

    @property
    def states(self) -> int:
        return 0 if self.search is None else self.search.states

    @property
    def bytes(self) -> int:
        return self._need + (0 if self.search is None else self.search.bytes)

    @property
    def _made(self) -> AgeTables:
        assert self.tables is not None, "run() comes first"
        return self.tables

    @property
    def lower_by_start(self) -> Floats | None:
        """What the policy earns at least from each first state, where that can be read off."""
        if self.error == 0 and not self._made.layers.searched:
            return self._made.upper_by_start
        return None if self.error or self.search is None else self.search.lower_by_start

    def walked_by_start(self) -> Floats | None:
        """The same where the tables' actions were walked."""
        walked = self.error == 0 and self.search is None and self._made.layers.searched and not self._made.bounded
        return value_by_start(self._made) if walked else None

    @property
    def policy(self) -> LinkPolicy:
        """What the plan does at every information state; of a plan whose search forgets the sequences alone know that."""
        return self.places if self.search is None else self._by_nodes(*self.search.decisions())

    @property
    def places(self) -> LinkPolicy:
        """The tables as a policy, without what the search decided: it knows where an information state stands in them."""
        return self._by_nodes(np.zeros((0, 7), np.int64), np.zeros(0, np.int64), np.zeros(0))

    def _by_nodes(self, rows: NDArray[np.int64], places: NDArray[np.int64], masses: Floats) -> LinkPolicy:
        mdp, made = self.mdp, self._made
        arrays: dict[str, NDArray[Any]] = HeldSteps.of(mdp).to_arrays() | {
            "initial": self.plant.initial, "number": self.number, "kept": self.kept, "depth": np.array(made.layers.depth),
            "actions": made.actions, "blind_actions": made.blind_actions, "rows": rows, "places": places, "masses": masses,
        }  # fmt: skip
        return LinkPolicy(self.automaton, arrays)

    def searching(self) -> AgeSearch:
        """A search whose graph takes any information state, for Q-values."""
        if self.search is None:
            made, need = self._tables(self._made.layers, True, None, bounded=True)
            self.search = AgeSearch(made, self._left(need))
        return self.search

    def _left(self, need: int) -> int:
        """Bytes that a search may take beside tables of `need` bytes."""
        return self.limit - need if self.room is None else min(self.limit - need, self.room)

    def exact_tables(self, depth: int) -> tuple[AgeTables, int]:
        """Tables of all values, for a link that shows everything up to this age, and their bytes."""
        made, need = self._tables(self._layers(depth), True, None)
        assert not made.layers.searched
        return made, need

    def _layers(self, depth: int) -> Layers:
        return Layers.of(self.automaton, self.plant.mdp.n_states, self.plant.mdp.n_actions, depth)

    def _tables(
        self,
        layers: Layers,
        kept: bool,
        progress: Callable[[int, int], None] | None,
        bounded: bool | None = None,
    ) -> tuple[AgeTables, int]:
        """The tables, with lower bounds where they are not exact or as `bounded` says, and their bytes."""
        S, A, D = layers.n_states, layers.n_actions, layers.depth
        bounded = layers.searched if bounded is None else bounded
        need, folder = table_bytes(layers, kept=kept, bounded=bounded), None
        if need > self.limit and self.scratch is not None and not kept:
            folder = self.scratch
            refuse_full(folder, need)
        elif need > self.limit:
            raise TooLarge(
                f"planning for {self.automaton!r} on S={S}, A={A}, H={self.mdp.finite_horizon} has {layers.size:,} information states up to age "
                f"{D} and needs {format_bytes(need)}; the limit is {format_bytes(self.limit)}. Ways out: raise max_bytes, keep the "
                "tables on a disk: scratch=FOLDER, or give a shorter depth: oldlight.solve(problem, depth=k)"
            )
        made = AgeTables(self.plant, layers, bounded, kept, progress, scratch=folder).run()
        self.on_disk = need if folder else 0
        return made, 0 if folder else need

    def _deeper(self, D: int) -> Layers | None:
        """The layers of the next depth, if its tables are small."""
        if self.mdp.finite_horizon - 1 < D + 1:
            return None
        layers = self._layers(D + 1)
        small = layers.size <= DEEPER and 2 * table_bytes(layers, kept=True, bounded=True) <= self.limit
        return layers if small else None

    def __repr__(self) -> str:
        how = "exact" if self.exact else f"in [{self.lower:.10g}, {self.upper:.10g}]"
        return f"LinkPlan({self.lower:.10g}, {how}, {self.entries:,} entries, {self.states:,} states, {self.seconds:.3g} s)"


def with_actions(mdp: TabularMDP, kept: NDArray[np.int64]) -> TabularMDP:
    """The process with these of its actions alone; itself, if they are all."""
    if len(kept) == mdp.n_actions:
        return mdp
    rows = (np.arange(mdp.n_states)[:, None] * mdp.n_actions + kept).reshape(-1)
    steps = [mdp.matrix(h)[rows] for h in range(1 if mdp.stationary_transitions else mdp.finite_horizon)]
    if not mdp.sparse:
        steps = [step.reshape(mdp.n_states, len(kept), -1) for step in steps]
    P = steps[0] if mdp.stationary_transitions else steps if mdp.sparse else np.array(steps)
    R = mdp.rewards[0][:, kept] if mdp.stationary_rewards else mdp.rewards[:, :, kept]
    return TabularMDP(P, R, horizon=mdp.horizon, initial=mdp.initial, discount=mdp.discount, average=mdp.average)
