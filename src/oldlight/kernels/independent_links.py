"""Episodes of a policy that is a table, behind a link that does not look at the process, compiled; `kernels.episodes` has the general loop and the tuples.

What arrives when is then known before the process has moved, and the agent's side of an episode is short:

    play_late        every observation is `late` steps late and none is lost: what is known when is the same in all episodes
    play_random      the delays are random, and none is lost. Arrivals of a whole tile of episodes are drawn first, a bit of a number for each time; in order and at
                     most one a time, so that the newest visible step is one further wherever something arrives
    play_blackouts   every observation is `late` steps late or lost. Between two that are seen the policy follows one sequence: its place in the
                     table is worked out when an observation is seen, and after that only the time is added

A step of a tile of episodes is several short loops one after the other: know, choose, remember, earn, move. What they hand on stays in the nearest cache, and
each has so few arrays that the compiler keeps them in registers and works on many episodes at once wherever nothing is looked up: one long loop with all of
it took three to six times as long. What is random has no branches: they would be guessed wrong.

Random numbers are read as in the general loop, and the sums are made in the same order: so are the results.
"""

from typing import NamedTuple

import numpy as np

from oldlight.kernels.cache import borrowing, compiled
from oldlight.kernels.episodes import TILE, draw, draw_row

PART = 4 * TILE  # episodes at a time
FEW = 32  # running sums
YOUNG = 12  # ages that are counted for many episodes at once
WORD = 64  # times whose arrivals are the bits of one number
CODES = 2**31  # of queues and one action more, where delays are random
BLOCKS = 8  # of one time of the table, for which the states of all episodes are gone through


@borrowing
def _begin(initial, u, now):
    """Draw the first states: sum by sum for all episodes where there are few."""
    if len(initial) > FEW:
        for e in range(len(u)):
            now[e] = draw(initial, u[e])
        return
    _fill(now, 0)
    for k in range(len(initial) - 1):
        for e in range(len(u)):
            now[e] += np.int32(u[e] >= initial[k])


@borrowing
def _remember(codes, acts, power, inverse):
    """The action joins the queue with the weight `power`; with inverse = 1/A the oldest leaves it, without the slow division of integers."""
    for e in range(len(acts)):
        codes[e] = np.int64((codes[e] + acts[e] * power + 0.5) * inverse)


@borrowing
def _earn(reward, now, acts, returns, earned):
    """The rewards of one step, for each episode and together: earned[0], where tiles are added up one by one, as in the general loop. Those of a whole part are added
    up side by side: one addition after the other would take longer than all the rest."""
    if len(acts) == 4 * TILE:
        total, second, third, fourth = 0.0, 0.0, 0.0, 0.0
        for e in range(np.uintp(TILE)):
            total += _earn_one(reward, now, acts, returns, e)
            second += _earn_one(reward, now, acts, returns, e + np.uintp(TILE))
            third += _earn_one(reward, now, acts, returns, e + np.uintp(2 * TILE))
            fourth += _earn_one(reward, now, acts, returns, e + np.uintp(3 * TILE))
        earned[0] = earned[0] + total + second + third + fourth
        return
    for low in range(0, len(acts), TILE):
        total = 0.0
        for e in range(np.uintp(low), np.uintp(min(low + TILE, len(acts)))):
            total += _earn_one(reward, now, acts, returns, e)
        earned[0] += total


@compiled(inline="always")
def _earn_one(reward, now, acts, returns, e):
    r = reward[np.uintp(now[e]), np.uintp(acts[e])]
    returns[e] += r
    return r


@borrowing
def _move(A, successor, sums, u, now, acts, after):
    if sums.shape[1] == 2:
        for e in range(len(acts)):
            row = np.uintp(now[e] * A + acts[e])
            after[e] = successor[row, np.uintp(u[e] >= sums[row, np.uintp(0)])]
    else:
        for e in range(len(acts)):
            row = np.uintp(now[e] * A + acts[e])
            after[e] = successor[row, np.uintp(draw_row(sums, row, u[e]))]


@borrowing
def _fill(to, value):
    for e in range(len(to)):
        to[e] = value


@compiled
def play_late(world, rule, draws, played):
    """`begin` and `play` with a table, where every observation is `late` steps late and none is lost: what is known when is then the same in all
    episodes, and only the state, the code of the queue and what was earned belong to one."""
    initial, index, cumulative, rewards, _, _, powers, _, warmup, late = world
    states, pending, A = played.states, rule.pending, rewards.shape[2]
    (steps, n), nothing_yet = states.shape, played.ages.shape[1] - 1
    codes = np.empty(PART, np.int64)
    for low in range(0, n, PART):
        high = min(low + PART, n)
        code, returns = codes[: high - low], played.returns[low:high]
        _fill(code, 0)
        _begin(initial, draws.state[0, low:high], states[0, low:high])
        for i in range(steps):
            h, seen = i - warmup, i >= late
            length, now, acts = late if seen else i, states[i, low:high], played.actions[i, low:high]
            if h < 0:
                _anything(A, draws.action[i, low:high], acts)
            elif h < len(pending):
                _fill(acts, pending[h])
            elif seen:
                _look_up(rule.table, rule.offset[h, late, 0], powers[late], states[i - late, low:high], code, acts)
            else:
                _look_up(rule.table, rule.root[h], 0, now, code, acts)
            _remember(code, acts, powers[length], 1.0 / A if seen else 1.0)
            if h >= 0:
                _earn(rewards[h], now, acts, returns, played.earned[h:])
                played.ages[h, length if seen else nothing_yet] += high - low
            if i + 1 < steps:
                step, u = min(max(h, 0), len(index) - 1), draws.state[i + 1, low:high]
                _move(A, index[step], cumulative[step], u, now, acts, states[i + 1, low:high])


@borrowing
def _anything(A, u, acts):
    """An action drawn with equal probabilities."""
    for e in range(len(acts)):
        acts[e] = min(np.int64(u[e] * A), A - 1)


@borrowing
def _look_up(table, place, weight, newest, codes, acts):
    for e in range(len(acts)):
        acts[e] = table[np.uintp(place + newest[e] * weight + codes[e])]


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


@borrowing
def _count(h, newest, nothing_yet, counted):
    """How old the newest visible state is: one age after the other, each for many episodes at once, and one episode after the other where it is old."""
    left = len(newest)
    for m in range(min(h + 1, YOUNG)):
        t, n = np.int32(h - m), np.int32(0)
        for e in range(len(newest)):
            n = np.int32(n + np.int32(newest[e] == t))
        counted[m] += n
        left -= n
        if left == 0:
            return
    if h < YOUNG:
        counted[nothing_yet] += left
        return
    for e in range(len(newest)):
        m = h - newest[e] if newest[e] >= 0 else nothing_yet
        counted[np.uintp(m)] += m >= YOUNG or m == nothing_yet


@compiled
def play_blackouts(world, rule, draws, played):
    """`begin` and `play` with the sequences of a blackout policy, from a cold start, where every observation is `late` steps late or lost."""
    initial, index, cumulative, rewards, _, _, powers, _, _, late = world
    states, pending, (H, S, A) = played.states, rule.pending, rewards.shape
    n, nothing_yet, full = states.shape[1], played.ages.shape[1] - 1, powers[late]
    agent, seen = np.empty((2, PART), np.int64), np.empty(PART, np.int32)
    for low in range(0, n, PART):
        high = min(low + PART, n)
        newest, places, codes = seen[: high - low], agent[0, : high - low], agent[1, : high - low]
        _fill(newest, -1)
        _fill(places, 0)
        _fill(codes, 0)
        _begin(initial, draws.state[0, low:high], states[0, low:high])
        for h in range(H):
            sent, now, acts = h - late, states[h, low:high], played.actions[h, low:high]
            if sent >= 0:
                first = (sent + 1) * S * full * H - h
                _see(sent, draws.lost[sent, low:high], newest)
                _follow(first, full * H, H, draws.lost[sent, low:high], states[sent, low:high], codes, places)
            _count(h, newest, nothing_yet, played.ages[h])
            if h < len(pending):
                _fill(acts, pending[h])
            else:
                _look_up(rule.table, h, 0, now, places, acts)
            if late > 0:
                _remember(codes, acts, powers[min(h, late)], 1.0 / A if sent >= 0 else 1.0)
            _earn(rewards[h], now, acts, played.returns[low:high], played.earned[h:])
            if h + 1 < H:
                step, u = min(h, len(index) - 1), draws.state[h + 1, low:high]
                _move(A, index[step], cumulative[step], u, now, acts, states[h + 1, low:high])


@borrowing
def _see(sent, lost, newest):
    for e in range(len(lost)):
        newest[e] = newest[e] if lost[e] else np.int32(sent)


@borrowing
def _follow(first, by_state, by_code, lost, then, codes, places):
    """The place of the sequence that an observation brings, less its time."""
    for e in range(len(lost)):
        place = first + then[e] * by_state + codes[e] * by_code
        places[e] = places[e] if lost[e] else place
