"""A link's blocks and ticks as the compiled search reads them, and what the search counts of them: found once for all plans behind the link."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.arrays import Floats
from oldlight.model.age_layers import Layers
from oldlight.model.channels.automaton import NOTHING_NEWER


@lru_cache(maxsize=8)
def key_of_states(n_states: int) -> Floats:
    """A number between 1 and 2 for each state, without a pattern: two laws with one mean of them are equal, or rare."""
    return np.random.default_rng(0).uniform(1.0, 2.0, n_states)


@lru_cache(maxsize=8)
def most_ticks(layers: Layers) -> int:
    """The most ticks of one block."""
    return max((len(moves) for row in layers.moves for moves in row), default=1)


@lru_cache(maxsize=8)
def hidden_ticks(layers: Layers) -> int:
    """The most ticks of one block that show nothing."""
    return max((sum(move.age < 0 for move in moves) for row in layers.moves for moves in row), default=0)


@lru_cache(maxsize=8)
def corner_blocks(layers: Layers) -> int:
    """The most blocks of one time whose state may be unknown (`oldlight.planning.settling`)."""
    return max(sum(b.blind_offset >= 0 and not b.root for b in row) for row in layers.blocks)


@lru_cache(maxsize=8)
def first_blocks(layers: Layers) -> NDArray[np.int64]:
    """The number of the first block of each time, in the numbering of `flat_link`."""
    return np.concatenate([[0], np.cumsum([len(row) for row in layers.blocks])])


@lru_cache(maxsize=8)
def flat_link(layers: Layers) -> Any:
    """The blocks of all times in one numbering, as the kernels read them; the same for every plan behind a link."""
    from oldlight.kernels import graph as kernels

    flat = [block for row in layers.blocks for block in row]
    base = first_blocks(layers)
    first, to, age, probability = [0], [], [], []
    for h, rows in enumerate(layers.moves):
        for moves in rows:
            for p, block, k in moves:
                to.append(int(base[h + 1]) + block)
                age.append(k)
                probability.append(p)
            first.append(len(to))
    first += [len(to)] * len(layers.blocks[-1])
    hidden, following = [-1] * len(flat), [-1] * len(to)
    for c in range(len(flat)):
        for e in reversed(range(first[c], first[c + 1])):
            following[e] = hidden[c]
            if age[e] < 0 and to[e] < base[-2]:
                hidden[c] = e
    columns = [np.array([getattr(b, name) for b in flat]) for name in ("h", "length", "root", "offset", "blind_offset")]
    arrays: list[Any] = [*columns, *map(np.array, (first, to, age, probability, hidden, following))]
    return kernels.Link(*arrays)


@lru_cache(maxsize=8)
def begins_at_corners(layers: Layers) -> bool:
    """Are the information states of time 0 corners, or the law of an unknown first state? Then the bounds there are known without the graph."""
    return not any(layers.blocks[0][i].root for _, i, _ in layers.start)


def begins_in_one_law(layers: Layers) -> bool:
    """Is there at most one node of time 0 where nothing is seen? A link that may be of several ages then has several, of the same law, which are worth different values."""
    return len({i for _, i, age in layers.start if age == NOTHING_NEWER}) <= 1


@lru_cache(maxsize=8)
def first_laws(layers: Layers) -> tuple[Floats, int]:
    """Depth 0, and at most one law at time 0: the probability that the first state is seen in each block of time 0, then that it is not seen; and the block of its law then."""
    weight, hidden = np.zeros(len(layers.blocks[0]) + 1), [i for _, i, age in layers.start if age == NOTHING_NEWER]
    for p, i, age in layers.start:
        weight[-1 if age == NOTHING_NEWER else i] += p
    return weight, hidden[0] if hidden else block_with_corners(layers, 0)


def block_with_corners(layers: Layers, h: int) -> int:
    """The block of time h that has corners."""
    return next(i for i, b in enumerate(layers.blocks[h]) if b.blind_offset >= 0 and not b.root)
