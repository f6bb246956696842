"""What the tables of a link hold at once, in bytes, computed before any of them is made (`oldlight.planning.ages`).

With n_h entries at time h, all blocks together, b_h of them in blocks whose law may be unknown, and the largest block of m entries:

    values       those of two neighbouring times, max (n_h + n_{h+1}); with lower bounds twice as many and b_h + b_{h+1} more.
                 Where all times are kept: Σ n_h, with lower bounds Σ (2·n_h + b_h); blocks are made where they are kept
    chains       the N_L of one time, those that nodes share counted once, and none that is a block of the next time itself; on both sides
    in between   where ages go beyond the depth a mean of two terms, 2·m; to follow given actions as much again

of 8 bytes each, and the actions of all times. A walk along the actions (`oldlight.planning.table_walk`) has weights of n_h + b_h entries of two times.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

from oldlight.arrays import action_type
from oldlight.model.age_layers import Layers, Move


def _per_time(layers: Layers) -> tuple[list[int], list[int]]:
    """n_h and b_h."""
    S, A = layers.n_states, layers.n_actions
    whole = [sum(S * A**b.length for b in row) for row in layers.blocks]
    blind = [sum(S * A**b.length for b in row if b.blind_offset >= 0) for row in layers.blocks]
    return whole, blind


def _two_times(entries: list[int]) -> int:
    return max(x + y for x, y in pairwise(entries))


def chain_entries(layers: Layers, h: int) -> int:
    """Entries of the N_L that are made for the tick from time h on."""
    S, A, seen, total = layers.n_states, layers.n_actions, set(), 0
    for block, moves in zip(layers.blocks[h], layers.moves[h], strict=True):
        jumps: tuple[Move, ...] = tuple(sorted(m for m in moves if m.age >= 0))
        for L in range(block.length + (2 if block.root else 1)):
            up_to = tuple(m for m in jumps if m.age <= L)
            if not up_to or (up_to, L) in seen:
                continue
            seen.add((up_to, L))
            if len(up_to) > 1 or up_to[0].age < L:  # else it is the block of the next time
                total += S * A**L
    return total


@lru_cache(maxsize=8)
def table_bytes(layers: Layers, *, kept: bool, bounded: bool) -> int:
    """The most that the tables hold while they are made; kept: all times of the values, bounded: lower bounds too."""
    (whole, blind), sides = _per_time(layers), 2 if bounded else 1
    if kept:
        values = sides * sum(whole) + (sum(blind) if bounded else 0)
    else:
        values = sides * _two_times(whole) + (_two_times(blind) if bounded else 0)
    chains = max((chain_entries(layers, h) for h in range(len(layers.moves))), default=0)
    largest = layers.n_states * layers.n_actions ** max(b.length for row in layers.blocks for b in row)
    between = (2 if layers.searched else 0) + (2 if bounded else 0)
    small = action_type(layers.n_actions).itemsize
    return int(8 * (values + sides * chains + between * largest) + small * (sum(whole) + sum(blind) // layers.n_states))


def walk_bytes(layers: Layers) -> int:
    """The most that a walk along the actions of the tables holds, the actions included."""
    whole, blind = _per_time(layers)
    small = action_type(layers.n_actions).itemsize
    return int(8 * (_two_times(whole) + _two_times(blind)) + small * sum(whole))
