"""Episodes of a policy that is a table, behind random delays that do not look at the process, without losses; the steps are those of `kernels.independent_links`.

Arrivals of a whole part of the episodes are drawn first, a bit of a number for each time. They are in order and at most one a time, so that the newest visible step is one further
wherever something arrives. An information state is in a block of the table, m·wide + δ for a queue of length m whose newest observation came δ steps ago; nothing seen yet is
a queue one longer than the episode, and as long a wait. Where the times have few blocks, the place in the table is found block by block, for many episodes at once: the
states and the queues of one block all begin at the same time, and how many there are in each is counted on the way. Elsewhere each episode has its own queue.
"""

from typing import NamedTuple

import numpy as np

from oldlight.kernels.cache import borrowing, compiled
from oldlight.kernels.chunks import draw_chunk, of_chunk
from oldlight.kernels.episodes import draw, draw_row
from oldlight.kernels.independent_links import FEW, PART, _begin, _count, _count_sums, _earn, _fill, _move

WORD = 32  # times whose arrivals are the bits of one number
CODES = 2**31  # of queues and one action more
BLOCKS = 8  # of one time of the table, for which the states of all episodes are gone through


class Agents(NamedTuple):
    """What the agents of a part know: m·wide for the length m of the queue, their block, the code of the queue, and, where each has its own queue, A^m, which never shrinks: the
    weight of the next action, and the newest visible step (−1: none). `places` is scratch."""

    lengths: np.ndarray
    blocks: np.ndarray
    codes: np.ndarray
    weights: np.ndarray
    newest: np.ndarray
    places: np.ndarray


@compiled
def play_random(world, rule, draws, played, numbers, chunks):
    """The chunks chunks[0] to chunks[1] − 1 with a table, from a cold start, where delays are random and do not depend on states and actions."""
    came, known = np.empty((len(world.rewards) // WORD + 1, PART), np.int32), np.empty((6, PART), np.int32)
    for chunk in range(chunks[0], chunks[1]):
        draw_chunk(numbers, chunk, draws)
        _play_random(world, rule, draws, of_chunk(played, chunk - chunks[0]), came, known)


@borrowing
def _play_random(world, rule, draws, played, came, known):
    index, cumulative, rewards = world.successor, world.cumulative, world.rewards
    states, pending, (H, _, A) = played.states, rule.pending, rewards.shape
    n, nothing_yet, visited = len(played.returns), played.ages.shape[1] - 1, states.reshape(-1)
    wide, few = rule.offset.shape[2], _few(rule.offset)
    for low in range(0, n, PART):
        high = min(low + PART, n)
        tile, returns = slice(0, high - low), played.returns[low:high]
        agents = Agents(known[0, tile], known[1, tile], known[2, tile], known[3, tile], known[4, tile], known[5, tile])
        _arrivals(low, high, world, draws, played, came[:, tile])
        _know_nothing(agents)
        _begin(world.initial, draws.state[0, low:high], states[0, low:high])
        for h in range(H):
            now, acts, here = states[h, low:high], played.actions[h, low:high], came[h // WORD, tile]
            offset, root = rule.offset[min(h, len(rule.offset) - 1)], np.int32(rule.root[h])
            if not few:
                _shorten(here, np.int32(h % WORD), np.int32(1 if h == 0 else A), 1.0 / A, agents)
                _count(h, agents.newest, nothing_yet, played.ages[h])
            _hear(here, np.int32(1 << (h % WORD)), np.int32(wide), agents.lengths, agents.blocks)
            if few:
                _find_in_blocks(
                    h, low, high, offset, root, len(world.first), A, states, played.actions, agents, played.ages[h]
                )
            elif h >= len(pending):
                _find_each(offset.reshape(-1), root, states.shape[1], visited[low:], agents)
            if h < len(pending):
                _fill(acts, pending[h])
            else:
                _look_up_there(rule.table, agents.places, acts)
            if not few:
                _join(agents.codes, acts, agents.weights)
            _earn(rewards[h], now, acts, returns, played.earned[h:])
            if h + 1 < H:
                step, u = min(h, len(index) - 1), draws.state[h + 1, low:high]
                _move(A, index[step], cumulative[step], u, now, acts, states[h + 1, low:high])


@borrowing
def _few(offset):
    """Does every time have few blocks?"""
    for h in range(len(offset)):
        n = 0
        for at in offset[h].flat:
            n += at >= 0
        if n > BLOCKS:
            return False
    return True


@compiled
def certain_from(waits, H):
    """From this observation on each surely comes one step after the one before. waits: running sums, as World.interarrival."""
    i = H
    while i > 1 and waits[min(i - 2, len(waits) - 1), 0, 0, 0] >= 1.0:
        i -= 1
    return i


@borrowing
def _arrivals(low, high, world, draws, played, came):
    """Bit h % WORD of came[h // WORD, e]: does an observation of episode low + e arrive at time h? Fills the rows of `settles`, those to `certain_from` at least."""
    waits, longest, tile = world.interarrival, world.longest_delay, slice(0, high - low)
    certain = certain_from(waits, np.int64(len(world.rewards)))
    for word in range(len(came)):
        _fill(came[word], 0)
    for i in range(len(played.settles)):
        law, u = waits[min(max(i - 1, 0), len(waits) - 1), 0], draws.link[i, low:high]
        before, settles = played.settles[max(i - 1, 0), low:high], played.settles[i, low:high]
        if i == 0:
            _settle_first(world.first, longest, u, settles)
        elif i >= certain or law[0, 0] >= 1.0:
            _settle_next(before, settles)
        elif law.shape[1] == 2:
            _settle_soon(law[0, 0], np.int32(i + longest), u, before, settles)
        else:
            _settle(law, i + longest, u, before, settles)
        for word in range(len(came) if i < certain else 0):
            if i + 1 < certain:
                _mark(np.int32(word * WORD), settles, came[word, tile])
            else:
                _mark_from(np.int32(word * WORD), settles, came[word, tile])


@borrowing
def _settle_first(first, longest, u, settles):
    for e in range(len(u)):
        settles[e] = min(draw(first, u[e]), longest)


@borrowing
def _settle_next(before, settles):
    """In order: the next one surely arrives one step after the one before."""
    for e in range(len(settles)):
        settles[e] = before[e] + np.int32(1)


@borrowing
def _settle_soon(at_once, last, u, before, settles):
    """In order: the next one arrives one or two steps after the one before."""
    for e in range(len(u)):
        settles[e] = min(np.int32(before[e] + np.int32(1) + np.int32(u[e] >= at_once)), last)


@borrowing
def _settle(law, last, u, before, settles):
    """In order: the next one arrives one step after the one before or later, by as many steps as there are running sums that the number is not below."""
    n = law.shape[1] - 1
    if n > FEW:
        for e in range(len(u)):
            settles[e] = min(before[e] + 1 + draw_row(law, 0, u[e]), last)
        return
    _settle_next(before, settles)
    _count_sums(law[0], n, u, settles)
    for e in range(len(u)):
        settles[e] = min(settles[e], np.int32(last))


@borrowing
def _mark(first, settles, came):
    """The bit of the time when it settles, in the word that begins with the time `first`."""
    for e in range(len(settles)):
        late = np.int32(settles[e] - first)
        bit = np.int32(np.int32(1) << np.int32(late & np.int32(WORD - 1)))
        came[e] |= bit if np.int32(late & np.int32(-WORD)) == np.int32(0) else np.int32(0)


@borrowing
def _mark_from(first, settles, came):
    """The bits of that time and of all later ones."""
    for e in range(len(settles)):
        late = max(np.int32(settles[e] - first), np.int32(0))
        bits = np.int32(np.int32(-1) << np.int32(late & np.int32(WORD - 1)))
        came[e] |= bits if late < np.int32(WORD) else np.int32(0)


@borrowing
def _know_nothing(agents):
    for e in range(len(agents.blocks)):
        agents.lengths[e], agents.blocks[e], agents.codes[e], agents.weights[e], agents.newest[e] = 0, 0, 0, 1, -1


@borrowing
def _hear(came, bit, wide, lengths, blocks):
    """An observation has arrived, or not: then the queue and the wait are one longer."""
    for e in range(len(came)):
        seen, length, waited = np.int32(came[e] & bit) != np.int32(0), lengths[e], np.int32(blocks[e] - lengths[e] + 1)
        length = np.int32(length + (np.int32(0) if seen else wide))
        lengths[e] = length
        blocks[e] = np.int32(length + (np.int32(0) if seen else waited))


@borrowing
def _shorten(came, bit, A, inverse, agents):
    """The oldest action leaves the queue where an observation has arrived that was not the first. (A is 1 where nothing was done yet.)"""
    newest, codes, weights = agents.newest, agents.codes, agents.weights
    for e in range(len(came)):
        seen = np.int32((came[e] >> bit) & 1)
        shorter = (seen == 1) & (newest[e] >= 0)
        codes[e] = np.int32((codes[e] + 0.5) * (inverse if shorter else 1.0))
        weights[e] *= np.int32(1) if shorter else A
        newest[e] += seen


@borrowing
def _find_in_blocks(h, low, high, offset, root, first, A, states, actions, agents, counted):
    """The place in the table, one block after the other, each for many episodes at once; counted[m] and counted[-1]: how many have seen the state of m steps ago last, and none."""
    blocks, codes, places, weight = agents.blocks, agents.codes, agents.places, np.int32(1)
    waiting = h + 1 < first  # the first observation may still be under way
    _fill(codes, 0)
    for m in range(h + 1 if waiting else min(h + 1, len(offset))):
        sent = h - m
        if m > 0:
            _lengthen(np.int32(A), actions[sent, low:high], codes)
        for waited in range(m + 1 if m < len(offset) else 0):
            if offset[m, waited] >= 0:
                block, at = np.int32(m * offset.shape[1] + waited), np.int32(offset[m, waited])
                counted[m] += _place(block, at, weight, states[sent, low:high], blocks, codes, places)
        weight = np.int32(weight * A)
    if waiting:
        block = np.int32((h + 1) * (offset.shape[1] + 1))
        counted[-1] += _place(block, root, np.int32(0), states[h, low:high], blocks, codes, places)


@borrowing
def _lengthen(A, acts, codes):
    """The queue that began with one action less."""
    for e in range(len(acts)):
        codes[e] = np.int32(codes[e] * A + acts[e])


@borrowing
def _place(block, at, weight, then, blocks, codes, places):
    """Of those in this block; how many they are."""
    n = np.int32(0)
    for e in range(len(then)):
        place, here, other = np.int32(at + codes[e]) + np.int32(then[e] * weight), blocks[e] == block, places[e]
        places[e] = place if here else other
        n = np.int32(n + np.int32(here))
    return n


@borrowing
def _find_each(offset, root, n, visited, agents):
    """The same, one episode after the other."""
    newest, blocks, codes, weights, places = agents.newest, agents.blocks, agents.codes, agents.weights, agents.places
    for e in range(len(places)):
        seen = newest[e] >= 0
        block, t = blocks[e] if seen else np.int32(0), max(newest[e], np.int32(0))
        places[e] = np.int32(offset[np.uintp(block)] + visited[np.uintp(t * n + e)] * np.int64(weights[e]))
    for e in range(len(places)):
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
