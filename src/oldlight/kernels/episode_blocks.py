"""Blocks of episodes in one compiled call: what every learner that plays them shares. `oldlight.learners.episode_blocks` says what a block is.

A learner's block is a loop over the episodes of `Draws`: `keep_policy` if it is wanted, `play_one`, then whatever the learner does with what
the episode reveals, then `record`.
"""

from typing import NamedTuple

import numpy as np

from oldlight.kernels.cache import borrowing, compiled
from oldlight.kernels.counts import Episode
from oldlight.kernels.episodes import TABLE, Draws, begin_within, play_within
from oldlight.kernels.independent_links import follow_sequences


class Block(NamedTuple):
    """The random numbers of the episodes and what they lose, axes [episode, step, 0] (one entry where none are needed), and what is left of them."""

    state: np.ndarray
    link: np.ndarray
    action: np.ndarray
    lost: np.ndarray
    wanted: np.ndarray  # [episode]: is its policy?
    returns: np.ndarray  # [episode]
    starts: np.ndarray  # [episode]: the first state
    estimates: np.ndarray  # [episode]: the learner's own, after the episode
    which: np.ndarray  # [episode]: the row of `policies` that it played, −1 where that is not wanted
    policies: np.ndarray  # [row, place]
    rows: np.ndarray  # [0]: how many; [1]: does the first belong to a plan of this block?


@compiled(inline="always")
def draws_of(block, e):
    """The random numbers of one episode, as `kernels.episodes` reads them."""
    link, action = block.link[min(e, len(block.link) - 1)], block.action[min(e, len(block.action) - 1)]
    return Draws(block.lost[min(e, len(block.lost) - 1)], block.state[e], link, action)


@borrowing
def keep_policy(block, e, actions, changed):
    """Keep the policy of episode e, if it is wanted and not the one that was kept last. Returns: has it changed since the last one kept (or since the
    block began)?"""
    block.which[e] = -1
    if not block.wanted[e]:
        return changed
    if block.rows[0] == 0:
        block.rows[1] = changed
    if changed or block.rows[0] == 0:
        for i in range(len(actions)):
            block.policies[block.rows[0], i] = actions[i]
        block.rows[0] += 1
    block.which[e] = block.rows[0] - 1
    return False


@borrowing
def play_one(e, world, rule, block, played, episode):
    """Play episode e with the table of `rule`; `played` has room for one episode."""
    draws = draws_of(block, e)
    played.returns[0] = 0.0
    begin_within(world, draws, played)
    play_within(TABLE, 0, world.rewards.shape[0], world, rule, draws, played)
    reveal(e, world, block, played, episode)


@compiled
def play_blackout(e, world, rule, block, played):
    """Play episode e behind losses alone, with the sequences of `rule`; `played` has room for one episode."""
    played.returns[0] = 0.0
    follow_sequences(world, rule, draws_of(block, e), played)
    block.returns[e], block.starts[e] = played.returns[0], played.states[0, 0]


@borrowing
def reveal(e, world, block, played, episode):
    """What episode e shows afterwards, and what it earned."""
    warmup = world.warmup
    for i in range(len(episode.states)):
        s, a = played.states[i, 0], played.actions[i, 0]
        episode.states[i] = s
        episode.actions[i] = a
        episode.arrivals[i] = played.settles[i, 0]
        episode.rewards[i] = world.rewards[i - warmup, s, a] if i >= warmup else 0.0
    block.returns[e] = played.returns[0]
    block.starts[e] = played.states[0, 0]


@compiled
def room_for_one(steps):
    """An episode to be filled by `reveal`."""
    return Episode(
        np.empty(steps, np.int64), np.empty(steps, np.int64), np.empty(steps, np.int64), np.empty(steps, np.float64)
    )
