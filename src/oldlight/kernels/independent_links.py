"""Episodes of a policy that is a table, behind a link that does not look at the process, compiled; `kernels.episodes` has the general loop and the tuples.

What arrives when is then known before the process has moved, and the agent's side of an episode is short:

    play_late        every observation is `late` steps late and none is lost: what is known when is the same in all episodes
    play_random      the delays are random, and none is lost (`kernels.random_delays`)
    play_blackouts   every observation is `late` steps late or lost. Between two that are seen the policy follows one sequence: its place in the
                     table is worked out when an observation is seen, and after that only the time is added

A step of a tile of episodes is several short loops one after the other: know, choose, remember, earn, move. What they hand on stays in the nearest cache, and
each has so few arrays that the compiler keeps them in registers and works on many episodes at once wherever nothing is looked up: one long loop with all of
it took three to six times as long. What is random has no branches: they would be guessed wrong.

Random numbers are read as in the general loop, and the sums are made in the same order: so are the results.
"""

import numpy as np

from oldlight.kernels.cache import borrowing, compiled
from oldlight.kernels.chunks import draw_chunk, of_chunk
from oldlight.kernels.episodes import TILE, draw, draw_row

PART = 4 * TILE  # episodes at a time
FEW = 32  # running sums
YOUNG = 12  # ages that are counted for many episodes at once


@borrowing
def _begin(initial, u, now):
    """Draw the first states: sum by sum for all episodes where there are few."""
    if len(initial) > FEW:
        for e in range(len(u)):
            now[e] = draw(initial, u[e])
        return
    _fill(now, 0)
    _count_sums(initial, len(initial) - 1, u, now)


@borrowing
def _count_sums(sums, n, u, counted):
    """counted[e] += how many of the first n running sums u[e] is not below: sum by sum for all episodes."""
    for k in range(0, n - 3, 4):
        _pass(sums[k], sums[k + 1], sums[k + 2], sums[k + 3], u, counted)
    for k in range(n - n % 4, n):
        for e in range(len(u)):
            counted[e] += np.int32(u[e] >= sums[k])


@borrowing
def _pass(first, second, third, fourth, u, counted):
    """The same of four running sums."""
    for e in range(len(u)):
        counted[e] += (
            np.int32(u[e] >= first) + np.int32(u[e] >= second) + np.int32(u[e] >= third) + np.int32(u[e] >= fourth)
        )


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
def play_late(world, rule, draws, played, numbers, chunks):
    """The chunks chunks[0] to chunks[1] − 1 with a table, where every observation is `late` steps late and none is lost: what is known when is then the same in all
    episodes, and only the state, the code of the queue and what was earned belong to one."""
    codes = np.empty(PART, np.int64)
    for chunk in range(chunks[0], chunks[1]):
        draw_chunk(numbers, chunk, draws)
        _play_late(world, rule, draws, of_chunk(played, chunk - chunks[0]), codes)


@borrowing
def _play_late(world, rule, draws, played, codes):
    initial, index, cumulative, rewards, _, _, powers, _, warmup, late = world
    states, pending, A = played.states, rule.pending, rewards.shape[2]
    steps, n, nothing_yet = len(states), len(played.returns), played.ages.shape[1] - 1
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


@borrowing
def _of_four_ages(t, newest):
    """How many saw the state of time t, t − 1, t − 2 and t − 3 last."""
    first, second, third, fourth = np.int32(0), np.int32(0), np.int32(0), np.int32(0)
    for e in range(len(newest)):
        older = np.int32(t - newest[e])
        first = np.int32(first + np.int32(older == 0))
        second = np.int32(second + np.int32(older == 1))
        third = np.int32(third + np.int32(older == 2))
        fourth = np.int32(fourth + np.int32(older == 3))
    return first, second, third, fourth


@borrowing
def _count(h, newest, nothing_yet, counted):
    """How old the newest visible state is: four ages at a time, each for many episodes at once, and one episode after the other where it is old."""
    left = len(newest)
    for m in range(0, min(h + 1, YOUNG), 4):
        found = _of_four_ages(np.int32(h - m), newest)
        for i in range(min(4, h + 1 - m)):  # beyond these stand those that have seen nothing
            counted[m + i] += found[i]
            left -= found[i]
        if left == 0:
            return
    if h < YOUNG:
        counted[nothing_yet] += left
        return
    for e in range(len(newest)):
        m = h - newest[e] if newest[e] >= 0 else nothing_yet
        counted[np.uintp(m)] += m >= YOUNG or m == nothing_yet


@compiled
def play_blackouts(world, rule, draws, played, numbers, chunks):
    """The chunks chunks[0] to chunks[1] − 1 with the sequences of a blackout policy, from a cold start, where every observation is `late` steps late or lost."""
    for chunk in range(chunks[0], chunks[1]):
        draw_chunk(numbers, chunk, draws)
        follow_sequences(world, rule, draws, of_chunk(played, chunk - chunks[0]))


@compiled
def follow_sequences(world, rule, draws, played):
    """Episodes whose random numbers are drawn."""
    initial, index, cumulative, rewards, _, _, powers, _, _, late = world
    states, pending, (H, S, A) = played.states, rule.pending, rewards.shape
    n, nothing_yet, full = len(played.returns), played.ages.shape[1] - 1, powers[late]
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
