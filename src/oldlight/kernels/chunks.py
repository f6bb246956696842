"""Chunks of episodes one after the other, in one compiled call: the random numbers of a chunk are drawn, then its episodes are played.

A thread that plays a chunk at a time would ask for Python's lock several times in a tenth of a millisecond, and two such threads would wait for each other for longer than they
play. `Played.returns` and `Played.earned` have room for all chunks, one behind the other; the rest is used again for each.
"""

from typing import NamedTuple

import numpy as np

from oldlight.kernels.cache import compiled
from oldlight.kernels.episodes import Played, begin_within, play_within
from oldlight.kernels.random_numbers import begin, fill, lose


class Numbers(NamedTuple):
    """Which random numbers a chunk has: those of the process, and more."""

    seed: np.ndarray  # as words (`oldlight.random_streams.words`); empty: the numbers are there already
    seen: np.ndarray  # the arrival probability of each observation, or one for all; empty: losses are not drawn here
    link: int  # for how many steps the delay is random
    action: int  # for how many steps the policy draws


@compiled
def draw_chunk(numbers, chunk, draws):
    """Fill `draws` with the numbers of this chunk, a stream for each purpose: the process (0), the link (1), the policy (2)."""
    if len(numbers.seed) == 0:
        return
    state = np.empty(4, np.uint64)
    begin(numbers.seed, chunk, np.int64(0), state)
    fill(state, draws.state)
    if numbers.link > 0 or len(numbers.seen) > 0:
        begin(numbers.seed, chunk, np.int64(1), state)
        fill(state, draws.link[: numbers.link])
        if len(numbers.seen) > 0:
            lose(state, numbers.seen, draws.lost)
    if numbers.action > 0:
        begin(numbers.seed, chunk, np.int64(2), state)
        fill(state, draws.action[: numbers.action])


@compiled
def of_chunk(played, i):
    """What the episodes of the i-th chunk leave."""
    wide, H = played.states.shape[1], played.ages.shape[0]
    returns, earned = played.returns[i * wide : (i + 1) * wide], played.earned[i * H : (i + 1) * H]
    return Played(played.states, played.actions, played.settles, played.agent, returns, earned, played.ages)


@compiled
def play_chunks(mode, world, rule, draws, played, numbers, chunks):
    """The chunks chunks[0] to chunks[1] − 1 by the general loop."""
    for chunk in range(chunks[0], chunks[1]):
        draw_chunk(numbers, chunk, draws)
        here = of_chunk(played, chunk - chunks[0])
        begin_within(world, draws, here)
        play_within(mode, 0, len(world.rewards), world, rule, draws, here)
