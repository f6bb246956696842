"""Planning behind any link that does not depend on the process: tables, then the search, until the certificate is met.

1. Actions that do the same everywhere are one (`distinct_actions`).
2. Tables of depth D, the longest delay (`oldlight.planning.ages`): lower ≤ optimum ≤ upper, and equal where no observation can be
   older than D.
3. Where a gap is left, the search closes it where the policy goes (`oldlight.planning.search`); if that takes more work than
   tables one step deeper would, those are made first.

The result is lower ≤ optimum ≤ upper, and its policy earns at least `lower`. Nodes that were merged (hidden links) widen the
bounds by the error of merging.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oldlight.checks import TooLarge
from oldlight.machine import default_limit, format_bytes
from oldlight.model.channels.automaton import ChannelAutomaton
from oldlight.model.channels.hidden import merging_error
from oldlight.model.mdp import TabularMDP
from oldlight.planning.age_layers import Layers, sizes
from oldlight.planning.ages import AgeTables, Plant
from oldlight.planning.delay import action_type
from oldlight.planning.link_policy import LinkPolicy
from oldlight.planning.search import CLOSED, AgeSearch, magnitude

Floats = NDArray[np.float64]
DEEPER = 2**22  # entries up to which deeper tables are tried before a long search
TRIES = (
    20  # a search may make as many options as the tables have entries, divided by this, before deeper tables are tried
)


def distinct_actions(mdp: TabularMDP) -> NDArray[np.int64]:
    """For each action the first one that has the same transitions and rewards at every step."""
    P = mdp.transitions[:1] if mdp.stationary_transitions else mdp.transitions
    R = mdp.rewards[:1] if mdp.stationary_rewards else mdp.rewards
    first: dict[tuple[bytes, bytes], int] = {}
    keys = [(P[:, :, a].tobytes(), R[:, :, a].tobytes()) for a in range(mdp.n_actions)]
    return np.array([first.setdefault(key, a) for a, key in enumerate(keys)])


@dataclass(frozen=True, eq=False)
class LinkPlan:
    """lower ≤ optimum ≤ upper; `policy` earns at least `lower`. entries: of the tables; states: of the search's graph."""

    lower: float
    upper: float
    exact: bool
    depth: int
    entries: int
    states: int
    bytes: int
    seconds: float
    policy: LinkPolicy
    tables: AgeTables
    search: AgeSearch | None

    def __repr__(self) -> str:
        how = "exact" if self.exact else f"in [{self.lower:.10g}, {self.upper:.10g}]"
        return f"LinkPlan({self.lower:.10g}, {how}, {self.entries:,} entries, {self.states:,} states, {self.seconds:.3g} s)"


def plan_link(
    mdp: TabularMDP,
    automaton: ChannelAutomaton,
    *,
    initial: Floats | None = None,
    pending: tuple[int, ...] = (),
    tolerance: float = 0.0,
    seconds: float | None = None,
    max_bytes: int | None = None,
    depth: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> LinkPlan:
    """The best executable policy behind `automaton` (shifted already by late actions, whose first ones are `pending`).

    initial: the law of the first state if it is not the process's own. tolerance, seconds: when to stop closing the gap.
    depth: of the tables, fixed; otherwise from the longest delay on, as deep as it helps.
    """
    began = time.perf_counter()
    limit = default_limit() if max_bytes is None else max_bytes
    same = distinct_actions(mdp)
    kept, number = np.unique(same, return_inverse=True)
    small = mdp if len(kept) == len(same) else _with_actions(mdp, kept)
    plant = Plant(small, initial=initial, pending=tuple(int(number[a]) for a in pending))
    D = automaton.longest if depth is None else depth
    tables, need = _tables(plant, automaton, D, limit, False, progress)
    lower, upper, search = tables.lower_value, tables.upper_value, None

    def left() -> float:
        return np.inf if seconds is None else seconds - (time.perf_counter() - began)

    layers = tables.layers
    while upper - lower > tolerance and layers.searched and _need(layers, kept=True) <= limit and left() > 0:
        made, bytes_of_tables = _tables(plant, automaton, layers.depth, limit, True, progress)
        deeper = None if depth is not None else _deeper(plant, automaton, layers.depth, limit)
        found = AgeSearch(made, limit - bytes_of_tables)
        found.run(tolerance, left(), None if deeper is None else max(2000, layers.size // TRIES))
        upper = min(found.upper, upper)
        if found.lower >= lower:
            tables, search, need, lower = made, found, bytes_of_tables, found.lower
        if deeper is None or upper - lower <= found.closed:
            break
        layers = deeper
    error = merging_error(automaton.merging, mdp.rewards)
    policy = LinkPolicy(mdp, automaton, tables, search, number, kept)
    states = 0 if search is None else search.states
    held = need + (0 if search is None else search.bytes)
    exact = error == 0 and upper - lower <= CLOSED * magnitude(mdp)
    spent = time.perf_counter() - began
    return LinkPlan(
        lower - error,
        upper + error,
        exact,
        tables.layers.depth,
        tables.layers.size,
        states,
        held,
        spent,
        policy,
        tables,
        search,
    )


def _with_actions(mdp: TabularMDP, kept: NDArray[np.int64]) -> TabularMDP:
    P = mdp.transitions[0][:, kept] if mdp.stationary_transitions else mdp.transitions[:, :, kept]
    R = mdp.rewards[0][:, kept] if mdp.stationary_rewards else mdp.rewards[:, :, kept]
    return TabularMDP(P, R, horizon=mdp.horizon, initial=mdp.initial)


def _need(layers: Layers, kept: bool) -> int:
    """Bytes of the tables: the actions, and the values of two times, on both sides where they are bounds, or of all times."""
    neighbours, entries = sizes(layers)
    values = 8 * neighbours * (3 if layers.searched else 1)
    if kept:
        values += 16 * entries + 8 * layers.blind_size
    return int(values + entries * action_type(layers.n_actions).itemsize)


def _tables(
    plant: Plant,
    automaton: ChannelAutomaton,
    D: int,
    limit: int,
    kept: bool,
    progress: Callable[[int, int], None] | None,
) -> tuple[AgeTables, int]:
    S, A = plant.mdp.n_states, plant.mdp.n_actions
    layers = Layers.of(automaton, S, A, D)
    need = _need(layers, kept)
    if need > limit:
        raise TooLarge(
            f"planning for {automaton!r} on S={S}, A={A}, H={plant.mdp.horizon} has {layers.size:,} information states up to age "
            f"{D} and needs {format_bytes(need)}; the limit is {format_bytes(limit)}. Ways out: raise max_bytes, or shorten the longest delay"
        )
    return AgeTables(plant, layers, layers.searched, kept, progress).run(), need


def _deeper(plant: Plant, automaton: ChannelAutomaton, D: int, limit: int) -> Layers | None:
    """The layers of the next depth, if its tables are small."""
    if plant.mdp.horizon - 1 < D + 1:
        return None
    layers = Layers.of(automaton, plant.mdp.n_states, plant.mdp.n_actions, D + 1)
    return layers if layers.size <= DEEPER and 2 * _need(layers, kept=True) <= limit else None
