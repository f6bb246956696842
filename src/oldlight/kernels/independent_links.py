"""Episodes of a policy that is a table, behind a link that does not look at the process, compiled; `kernels.episodes` has the general loop and the tuples.

What arrives when is then known before the process has moved, and the agent's side of an episode is short:

    play_late        every observation is `late` steps late and none is lost: what is known when is the same in all episodes
    play_random      the delays are random, and none is lost. Arrivals of a whole tile of episodes are drawn first; in order and at most one a time, so that the
                     newest visible step is one further wherever something arrives
    play_blackouts   every observation is `late` steps late or lost. Between two that are seen the policy follows one sequence: its place in the
                     table is worked out when an observation is seen, and after that only the time is added

Random numbers are read as in the general loop, and the sums are made in the same order: so are the results.
"""

import numpy as np

from oldlight.kernels.cache import compiled
from oldlight.kernels.copying import copy_into
from oldlight.kernels.episodes import TILE, draw, draw_row


@compiled
def play_late(world, rule, draws, played):
    """`begin` and `play` with a table, where every observation is `late` steps late and none is lost: what is known when is then the same in all
    episodes, and only the state, the code of the queue and what was earned belong to one. Actions are kept if there is room for them."""
    initial, index, cumulative, rewards, _, _, powers, _, warmup, late = world
    table, offset, root, pending = rule.table, rule.offset, rule.root, rule.pending
    states, actions = played.states, played.actions
    A = rewards.shape[2]
    steps, n = states.shape
    keep = actions.shape[1] > 0
    for part in range((n + TILE - 1) // TILE * steps):  # every step of one tile of episodes, then of the next
        i, low = part % steps, part // steps * TILE
        high = min(low + TILE, n)
        h, seen = i - warmup, i >= late
        now, u = states[i, low:high], draws.state[i, low:high]
        codes, returns = played.agent[2, low:high], played.returns[low:high]
        if i == 0:
            for e in range(high - low):
                now[e] = draw(initial, u[e])
                codes[e] = 0
        after, u = states[min(i + 1, steps - 1), low:high], draws.state[min(i + 1, steps - 1), low:high]
        u_action = draws.action[min(i, len(draws.action) - 1), low:high]
        step, length = min(max(h, 0), index.shape[0] - 1), late if seen else i
        successor, sums, reward = index[step], cumulative[step], rewards[max(h, 0)]
        power, inverse, newest = powers[length], 1.0 / A if seen else 1.0, states[max(i - late, 0), low:high]
        place = 0
        if h >= 0:
            place = offset[h, late, 0] if seen else root[h]
        weight = power if seen else 0
        total = 0.0
        for e in range(high - low):
            s, code = np.int64(now[e]), codes[e]
            if h < 0:
                a = min(np.int64(u_action[e] * A), A - 1)
            elif h < len(pending):
                a = pending[h]
            else:
                a = np.int64(table[np.uintp(place + newest[e] * weight + code)])
            if keep:
                actions[i, low + e] = a
            codes[e] = np.int64((code + a * power + 0.5) * inverse)
            if h >= 0:
                r = reward[s, a]
                returns[e] += r
                total += r
            if i + 1 < steps:
                row = np.uintp(s * A + a)
                after[e] = successor[row, draw_row(sums, row, u[e])]
        if h >= 0:
            played.earned[h] += total
            played.ages[h, length if seen else played.ages.shape[1] - 1] += high - low


@compiled
def play_random(world, rule, draws, played):
    """`begin` and `play` with a table, from a cold start, where delays are random and do not depend on states and actions. What is random has no branches:
    they would be guessed wrong."""
    initial, index, cumulative, rewards, _, _, powers, _, _, _ = world
    table, offset, root, pending = rule.table, rule.offset, rule.root, rule.pending
    (H, _, A), K = rewards.shape, index.shape[2]
    n, two, factor = played.states.shape[1], K == 2, np.array([1.0, 1.0 / A])
    nothing_yet, longest, wide = played.ages.shape[1] - 1, offset.shape[1] - 1, offset.shape[2]
    came, states = np.empty((H + 1, TILE), np.uint8), np.empty((H + 1) * TILE, np.int32)
    newest, waited, codes = np.empty(TILE, np.int32), np.empty(TILE, np.int32), np.empty(TILE, np.int64)
    for low in range(0, n, TILE):
        high = min(low + TILE, n)
        _arrivals(low, high, world, draws, played, came)
        for e in range(high - low):
            states[e] = draw(initial, draws.state[0, low + e])
            newest[e], waited[e], codes[e] = -1, 0, 0
        for h in range(H):
            step = min(h, index.shape[0] - 1)
            now, after = states[h * TILE : (h + 1) * TILE], states[(h + 1) * TILE : (h + 2) * TILE]
            successor, sums, reward = index[step].reshape(-1), cumulative[step], rewards[h].reshape(-1)
            first_sums, places = sums.reshape(-1), offset[min(h, len(offset) - 1)].reshape(-1)
            first, arrived, u = root[h], came[h], draws.state[min(h + 1, H - 1), low:high]
            acts, returns, counted = played.actions[h, low:high], played.returns[low:high], played.ages[h]
            total = 0.0
            for e in range(high - low):
                s, seen, t = np.int64(now[e]), np.int64(arrived[e]), np.int64(newest[e])
                code = np.int64(
                    (codes[e] + 0.5) * factor[np.uintp(seen & (t >= 0))]
                )  # without the slow division of integers
                t += seen
                wait = (np.int64(waited[e]) + 1) * (1 - seen)
                newest[e], waited[e] = t, wait
                m = h - max(t, 0)
                power = powers[np.uintp(m)]
                if h < len(pending):
                    a = pending[h]
                else:
                    there = min(m, longest)  # a place that is there, also where nothing is seen yet
                    where = places[np.uintp(there * wide + min(wait, there))]
                    where += states[np.uintp((h - m) * TILE + e)] * power
                    a = np.int64(table[np.uintp(code + (where if t >= 0 else first))])
                acts[e] = a
                codes[e] = code + a * power
                row = np.uintp(s * A + a)
                r = reward[row]
                returns[e] += r
                total += r
                if two:
                    after[e] = successor[np.uintp(2) * row + np.uintp(u[e] >= first_sums[np.uintp(2) * row])]
                else:
                    after[e] = successor[row * np.uintp(K) + np.uintp(draw_row(sums, row, u[e]))]
            played.earned[h] += total
            for e in range(high - low):
                counted[np.uintp(h - newest[e] if newest[e] >= 0 else nothing_yet)] += 1
        for h in range(H):
            copy_into(played.states[h, low:high], states[h * TILE : h * TILE + high - low])


@compiled
def _arrivals(low, high, world, draws, played, came):
    """came[h, e]: does an observation of episode low + e arrive at time h? Fills `settles`."""
    H, waits, longest = len(came) - 1, world.interarrival, world.longest_delay
    came[:] = 0
    for i in range(H):
        law, u = waits[min(max(i - 1, 0), len(waits) - 1), 0], draws.link[min(i, len(draws.link) - 1), low:high]
        before, settles, top = (
            played.settles[max(i - 1, 0), low:high],
            played.settles[i, low:high],
            np.int32(i + longest),
        )
        if i == 0:
            for e in range(high - low):
                settles[e] = min(draw(world.first, u[e]), longest)
        elif law.shape[1] == 2:
            for e in range(high - low):
                settles[e] = min(np.int32(before[e] + np.int32(1) + np.int32(u[e] >= law[0, 0])), top)
        else:
            for e in range(high - low):
                settles[e] = min(before[e] + 1 + draw_row(law, 0, u[e]), i + longest)
        for e in range(high - low):
            came[np.uintp(min(settles[e], H)), e] = 1


@compiled
def play_blackouts(world, rule, draws, played):
    """`begin` and `play` with the sequences of a blackout policy, from a cold start, where every observation is `late` steps late or lost."""
    initial, index, cumulative, rewards, _, _, powers, _, _, late = world
    (H, S, A), K, two = rewards.shape, index.shape[2], index.shape[2] == 2
    n, nothing_yet, full = played.states.shape[1], played.ages.shape[1] - 1, powers[late]
    newest, places, codes = np.empty(TILE, np.int64), np.empty(TILE, np.int64), np.empty(TILE, np.int64)
    for part in range((n + TILE - 1) // TILE * H):  # every time of one tile of episodes, then of the next
        h, low = part % H, part // H * TILE
        high = min(low + TILE, n)
        step, sent, last = min(h, index.shape[0] - 1), h - late, h + 1 == H
        now, after, u = (
            played.states[h, low:high],
            played.states[min(h + 1, H - 1), low:high],
            draws.state[min(h + 1, H - 1), low:high],
        )
        successor, sums, reward, counted = index[step].reshape(-1), cumulative[step], rewards[h], played.ages[h]
        first_sums = sums.reshape(-1)
        then, lost = played.states[max(sent, 0), low:high], draws.lost[max(sent, 0), low:high]
        acts, returns = played.actions[h, low:high], played.returns[low:high]
        power, inverse = powers[min(h, late)], 1.0 / A if sent >= 0 else 1.0
        if h == 0:
            for e in range(high - low):
                now[e] = draw(initial, draws.state[0, low + e])
                newest[e], places[e], codes[e] = -1, 0, 0
        total = 0.0
        for e in range(high - low):
            s, t, place = np.int64(now[e]), newest[e], places[e]
            if sent >= 0:
                seen = not lost[e]
                t = sent if seen else t
                place = ((((sent + 1) * S + then[e]) * full + codes[e]) * H - h) if seen else place
                newest[e], places[e] = t, place
            if h < len(rule.pending):
                a = rule.pending[h]
            else:
                a = np.int64(rule.table[np.uintp(place + h)])
            counted[np.uintp(nothing_yet if t < 0 else h - t)] += 1
            acts[e] = a
            if late > 0:
                codes[e] = np.int64((codes[e] + a * power + 0.5) * inverse)
            r = reward[s, a]
            returns[e] += r
            total += r
            row = np.uintp(s * A + a)
            if last:
                continue
            if two:
                after[e] = successor[np.uintp(2) * row + np.uintp(u[e] >= first_sums[np.uintp(2) * row])]
            else:
                after[e] = successor[row * np.uintp(K) + np.uintp(draw_row(sums, row, u[e]))]
        played.earned[h] += total
