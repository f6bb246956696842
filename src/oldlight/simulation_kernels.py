"""The interaction protocol, compiled; `oldlight.simulation` says what it does.

Arrays have one row per step −lead..H−1 (row i holds step i − lead) and one column per episode: a step is done for all
episodes of a chunk before the next, so that their memory look-ups overlap. The agent's side of the episodes is
`agent[0..3, e]`: the newest visible step t (−lead−1 for none), the queue's length m and code, the wait.
"""

import numba as nb
import numpy as np

TABLE, CHANCES, BLACKOUT, MARKOV, GIVEN = 0, 1, 2, 3, 4
LOST = -1


@nb.njit(nogil=True, cache=True, inline="always")
def _draw(cumulative, u):
    """How many of the running sums are ≤ u: without branches where there are few."""
    n = len(cumulative)
    k = 0
    if n <= 32:
        for j in range(n - 1):
            k += u >= cumulative[j]
    else:
        while k < n - 1 and u >= cumulative[k]:
            k += 1
    return k


@nb.njit(nogil=True, cache=True, inline="always")
def _observe(e, h, lead, A, loses, arrivals, agent):
    """What reaches the agent at time h, in order and at most one under delay."""
    t = agent[0, e]
    if loses:
        if arrivals[h, e] == h:
            agent[0, e], agent[1, e], agent[2, e], agent[3, e] = h, 0, 0, 0
        else:
            agent[3, e] += 1
    elif t < h and arrivals[t + 1 + lead, e] == h:
        if t >= -lead:  # something was seen before: its action leaves the queue
            agent[1, e] -= 1
            agent[2, e] = np.int64((agent[2, e] + 0.5) / A)  # code // A, without the slow division of integers
        agent[0, e] = t + 1
        agent[3, e] = 0
    else:
        agent[3, e] += 1


@nb.njit(nogil=True, cache=True)
def begin(initial, index, cumulative, seen, first, cap, lead, A, draw_state, draw_link, draw_action,
          states, actions, arrivals, agent):  # fmt: skip
    """The steps before step 0, and what the agent knows at time 0."""
    loses = len(seen) > 0
    for e in range(states.shape[1]):
        states[0, e] = _draw(initial, draw_state[0, e])
        agent[0, e], agent[1, e], agent[2, e], agent[3, e] = -lead - 1, lead, 0, 0
        power = 1
        for i in range(lead):
            a = min(np.int64(draw_action[i, e] * A), A - 1)
            actions[i, e] = a
            row = states[i, e] * A + a
            states[i + 1, e] = index[0, row, _draw(cumulative[0, row], draw_state[i + 1, e])]
            arrivals[i, e] = i
            agent[2, e] += a * power
            power *= A
        if loses:
            arrivals[0, e] = 0 if draw_link[0, e] < seen[0] else LOST
        elif lead > 0:
            arrivals[lead, e] = lead
        elif len(first) > 1:
            arrivals[0, e] = min(_draw(first, draw_link[0, e]), cap)
        else:
            arrivals[0, e] = 0
        _observe(e, 0, lead, A, loses, arrivals, agent)


@nb.njit(nogil=True, cache=True)
def play(mode, h_from, h_to, index, cumulative, rewards, seen, interarrival, cap, lead, powers, offset, root, table,
         chances, draw_state, draw_link, draw_action, states, actions, arrivals, agent, returns, earned, ages):  # fmt: skip
    """Steps h_from..h_to of every episode: choose, act, move on, and see what arrives."""
    H, S, A = rewards.shape
    loses = len(seen) > 0
    random_link = interarrival.shape[3] > 1
    for h in range(h_from, h_to):
        i = h + lead
        step = min(h, index.shape[0] - 1)
        link = min(h, interarrival.shape[0] - 1)
        total = 0.0
        for e in range(states.shape[1]):
            s = np.int64(states[i, e])
            t, m, code = agent[0, e], agent[1, e], agent[2, e]
            nothing = t < -lead
            if mode in (TABLE, CHANCES):
                if nothing:
                    where = root[h] + code
                else:
                    where = offset[h, m, agent[3, e]] + states[t + lead, e] * powers[m] + code
                if mode == TABLE:
                    a = np.int64(table[where])
                else:
                    u = draw_action[i, e]
                    a = 0
                    chance = chances[where, 0]
                    while a < A - 1 and u >= chance:
                        a += 1
                        chance += chances[where, a]
            elif mode == BLACKOUT:
                row = 0 if nothing else (t + 1) * S + states[t + lead, e]
                a = np.int64(table[row * H + m])
            elif mode == MARKOV:
                a = np.int64(table[h * S + s])
            else:
                a = np.int64(actions[i, e])
            actions[i, e] = a
            r = rewards[h, s, a]
            returns[e] += r
            total += r
            ages[h, ages.shape[1] - 1 if nothing else m] += 1
            agent[1, e] = m + 1
            agent[2, e] = code + a * powers[m]
            if h + 1 < H:
                row = s * A + a
                states[i + 1, e] = index[step, row, _draw(cumulative[step, row], draw_state[i + 1, e])]
                if loses:
                    arrivals[i + 1, e] = h + 1 if draw_link[h + 1, e] < seen[h + 1] else LOST
                else:
                    late = arrivals[i, e] + 1
                    if random_link:
                        at = (link, min(s, interarrival.shape[1] - 1), min(a, interarrival.shape[2] - 1))
                        late += _draw(interarrival[at], draw_link[h + 1, e])
                        late = min(late, h + 1 + cap)
                    arrivals[i + 1, e] = late
                _observe(e, h + 1, lead, A, loses, arrivals, agent)
        earned[h] += total
