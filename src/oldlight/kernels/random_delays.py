"""Episodes of a policy that is a table, behind random delays that do not look at the process, without losses; the steps are those of `kernels.independent_links`.

Arrivals of a whole part of the episodes are drawn first, a bit of a number for each time. They are in order and at most one a time, so that the newest visible step is one further
wherever something arrives. The place of an information state in the table is found block by block (a queue length and a wait): the states of one
block were all sent at the same time, so that many episodes are worked on at once.
"""

from typing import NamedTuple

import numpy as np

from oldlight.kernels.cache import borrowing, compiled
from oldlight.kernels.episodes import draw, draw_row
from oldlight.kernels.independent_links import PART, _begin, _count, _earn, _fill, _move

WORD = 64  # times whose arrivals are the bits of one number
CODES = 2**31  # of queues and one action more
BLOCKS = 8  # of one time of the table, for which the states of all episodes are gone through


class Agents(NamedTuple):
    """What the agents of a tile know: the newest visible step (−1: none), for how long nothing new has come, the code of the queue, and A^m for its length m,
    which never shrinks: the weight of the next action. `blocks` and `places` are scratch."""

    newest: np.ndarray
    waited: np.ndarray
    blocks: np.ndarray
    codes: np.ndarray
    weights: np.ndarray
    places: np.ndarray


@compiled
def play_random(world, rule, draws, played):
    """`begin` and `play` with a table, from a cold start, where delays are random and do not depend on states and actions."""
    index, cumulative, rewards = world.successor, world.cumulative, world.rewards
    states, pending, (H, _, A) = played.states, rule.pending, rewards.shape
    n, nothing_yet, visited = states.shape[1], played.ages.shape[1] - 1, states.reshape(-1)
    came, known = np.empty((H // WORD + 1, PART), np.int64), np.empty((6, PART), np.int32)
    agents = Agents(known[0], known[1], known[2], known[3], known[4], known[5])
    for low in range(0, n, PART):
        high = min(low + PART, n)
        tile, returns = slice(0, high - low), played.returns[low:high]
        _arrivals(low, high, world, draws, played, came)
        _know_nothing(agents)
        _begin(world.initial, draws.state[0, low:high], states[0, low:high])
        for h in range(H):
            now, acts = states[h, low:high], played.actions[h, low:high]
            _hear(came[h // WORD], np.int64(h % WORD), np.int32(1 if h == 0 else A), 1.0 / A, agents)
            _count(h, agents.newest[tile], nothing_yet, played.ages[h])
            if h < len(pending):
                _fill(acts, pending[h])
            else:
                offset = rule.offset[min(h, len(rule.offset) - 1)]
                _look_where(np.int32(h), np.int32(offset.shape[0] - 1), np.int32(offset.shape[1]), agents)
                root = np.int32(rule.root[h])
                if _few(offset):
                    _find_in_blocks(h, low, high, offset, root, np.int32(A), states, agents)
                else:
                    _find_each(offset.reshape(-1), root, n, visited[low:], agents, acts)
                _look_up_there(rule.table, agents.places, acts)
            _join(agents.codes, acts, agents.weights)
            _earn(rewards[h], now, acts, returns, played.earned[h:])
            if h + 1 < H:
                step, u = min(h, len(index) - 1), draws.state[h + 1, low:high]
                _move(A, index[step], cumulative[step], u, now, acts, states[h + 1, low:high])


@compiled
def _arrivals(low, high, world, draws, played, came):
    """Bit h % WORD of came[h // WORD, e]: does an observation of episode low + e arrive at time h? Fills `settles`."""
    H, waits, longest = len(world.rewards), world.interarrival, world.longest_delay
    for word in range(len(came)):
        _fill(came[word], 0)
    for i in range(H):
        law, u = waits[min(max(i - 1, 0), len(waits) - 1), 0], draws.link[i, low:high]
        before, settles = played.settles[max(i - 1, 0), low:high], played.settles[i, low:high]
        if i == 0:
            _settle_first(world.first, longest, u, settles)
        elif law[0, 0] >= 1.0:
            _settle_next(np.int32(i + longest), before, settles)
        elif law.shape[1] == 2:
            _settle_soon(law[0, 0], np.int32(i + longest), u, before, settles)
        else:
            _settle(law, i + longest, u, before, settles)
        if len(came) == 1:
            _mark(np.int64(H), settles, came[0])
        else:
            _mark_word(np.int64(H), settles, came)


@borrowing
def _settle_first(first, longest, u, settles):
    for e in range(len(u)):
        settles[e] = min(draw(first, u[e]), longest)


@borrowing
def _settle_next(last, before, settles):
    """In order: the next one surely arrives one step after the one before."""
    for e in range(len(settles)):
        settles[e] = min(np.int32(before[e] + np.int32(1)), last)


@borrowing
def _settle_soon(at_once, last, u, before, settles):
    """In order: the next one arrives one or two steps after the one before."""
    for e in range(len(u)):
        settles[e] = min(np.int32(before[e] + np.int32(1) + np.int32(u[e] >= at_once)), last)


@borrowing
def _settle(law, last, u, before, settles):
    for e in range(len(u)):
        settles[e] = min(before[e] + 1 + draw_row(law, 0, u[e]), last)


@borrowing
def _mark(last, settles, came):
    for e in range(len(settles)):
        came[e] |= np.int64(1) << min(np.int64(settles[e]), last)


@borrowing
def _mark_word(last, settles, came):
    for e in range(len(settles)):
        h = min(np.int64(settles[e]), last)
        came[np.uintp(h // WORD), np.uintp(e)] |= np.int64(1) << (h % WORD)


@borrowing
def _know_nothing(agents):
    for e in range(len(agents.newest)):
        agents.newest[e], agents.waited[e], agents.codes[e], agents.weights[e] = -1, 0, 0, 1


@borrowing
def _hear(came, h, A, inverse, agents):
    """An observation has arrived, or not: the oldest action leaves the queue, unless it was the first observation or none. (A is 1 where nothing was done yet.)"""
    newest, waited, codes, weights = agents.newest, agents.waited, agents.codes, agents.weights
    for e in range(len(newest)):
        shorter = ((came[e] >> h) & 1 == 1) & (newest[e] >= 0)
        codes[e] = np.int32((codes[e] + 0.5) * (inverse if shorter else 1.0))
        weights[e] *= np.int32(1) if shorter else A
    for e in range(len(newest)):
        seen = np.int32((came[e] >> h) & 1)
        newest[e] += seen
        waited[e] = (waited[e] + np.int32(1)) * (np.int32(1) - seen)


@borrowing
def _look_where(h, longest, wide, agents):
    """Which entry of Layout.offset[h] is the block of the table; −1 where nothing is seen yet."""
    newest, waited, blocks = agents.newest, agents.waited, agents.blocks
    for e in range(len(newest)):
        m = min(h - newest[e], longest)
        blocks[e] = np.int32(m * wide) + min(waited[e], m) if newest[e] >= 0 else np.int32(-1)


@compiled(inline="always")
def _few(offset):
    n = 0
    for at in offset.flat:
        n += at >= 0
        if n > BLOCKS:
            return False
    return True


@borrowing
def _find_in_blocks(h, low, high, offset, root, A, states, agents):
    """The place in the table, one block after the other, each for many episodes at once: all that are in it saw a state of the same time."""
    wide, weight = offset.shape[1], np.int32(1)
    _place(root, agents.codes, agents.places)
    for m in range(min(h + 1, offset.shape[0])):
        for waited in range(m + 1):
            at = offset[m, waited]
            if at >= 0:
                block = np.int32(m * wide + waited)
                _place_in_block(block, np.int32(at), weight, states[h - m, low:high], agents)
        weight = np.int32(weight * A)


@borrowing
def _place(root, codes, places):
    for e in range(len(places)):
        places[e] = root + codes[e]


@borrowing
def _place_in_block(block, at, weight, then, agents):
    blocks, codes, places = agents.blocks, agents.codes, agents.places
    for e in range(len(then)):
        place = np.int32(at + codes[e]) + np.int32(then[e] * weight)
        places[e] = place if blocks[e] == block else places[e]


@borrowing
def _find_each(offset, root, n, visited, agents, acts):
    """The same, one episode after the other."""
    newest, blocks, codes, weights, places = agents.newest, agents.blocks, agents.codes, agents.weights, agents.places
    for e in range(len(acts)):
        block, t = max(blocks[e], np.int32(0)), max(newest[e], np.int32(0))
        places[e] = np.int32(offset[np.uintp(block)] + visited[np.uintp(t * n + e)] * np.int64(weights[e]))
    for e in range(len(acts)):
        places[e] = codes[e] + (places[e] if newest[e] >= 0 else root)


@borrowing
def _look_up_there(table, places, acts):
    for e in range(len(acts)):
        acts[e] = table[np.uintp(places[e])]


@borrowing
def _join(codes, acts, weights):
    """The action joins the queue."""
    for e in range(len(acts)):
        codes[e] += acts[e] * weights[e]
