"""The interaction protocol, compiled; `oldlight.simulation` says what it does.

Arrays have one row per step −warmup..H−1 (row i holds step i − warmup) and one column per episode: a step is done for a tile of
episodes before the next, so that their memory look-ups overlap. The agent's side of the episodes is
`agent[0..4, e]`: the newest visible step t (−warmup−1 for none), the queue's length m and code, the wait, the newest settled
step. `settles` is when each observation arrives or is known to be lost; `lost` says which (one entry: nothing is).
"""

from typing import NamedTuple

import numpy as np

from oldlight.kernels.cache import borrowing, compiled

TABLE, PROBABILITIES, BLACKOUT, MARKOV, GIVEN, NEWEST = range(6)
TILE = 256  # episodes at a time: what they need of a step stays in the nearest cache


class World(NamedTuple):
    """The true process and link. Laws are running sums; an axis of length 1 stands for all steps, states or actions."""

    initial: np.ndarray  # [s]
    successor: np.ndarray  # [step, s·A + a, k]
    cumulative: np.ndarray  # [step, s·A + a, k]
    rewards: np.ndarray  # [h, s, a]
    first: np.ndarray  # [d]: the delay of the first observation
    interarrival: np.ndarray  # [step, s, a, δ]
    powers: np.ndarray  # A^m
    longest_delay: int
    warmup: int
    late: int  # how late every observation is, −1 where that is random


class Rule(NamedTuple):
    """A policy: a flat table by place (TABLE, MARKOV), or by time and newest visible state, S for none (NEWEST); probabilities[place, a] (PROBABILITIES); sequences one
    behind the other (BLACKOUT, which `kernels.independent_links` plays); GIVEN: actions are there already."""

    table: np.ndarray
    probabilities: np.ndarray
    offset: np.ndarray  # [h, m, δ], as in Layout
    root: np.ndarray  # [h]
    pending: np.ndarray  # [h]: actions under way before the start


class Draws(NamedTuple):
    """Uniform random numbers, axes (step, episode), and which observations are lost; one entry where none is needed."""

    lost: np.ndarray
    state: np.ndarray
    link: np.ndarray
    action: np.ndarray


class Played(NamedTuple):
    """What the episodes leave. `returns` says how many they are; the arrays by step may have room for more."""

    states: np.ndarray  # [step, episode]
    actions: np.ndarray  # [step, episode]
    settles: np.ndarray  # [step, episode]
    agent: np.ndarray  # [what, episode]
    returns: np.ndarray  # [episode]
    earned: np.ndarray  # [h], of all episodes
    ages: np.ndarray  # [h, age], of all episodes


@compiled(inline="always")
def draw(cumulative, u):
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


@compiled(inline="always")
def draw_row(cumulative, row, u):
    """`draw` from one row of a table; the first running sum is looked at before any loop, since most rows have two successors."""
    n = cumulative.shape[1]
    k = 0
    if n > 1:
        k += u >= cumulative[row, 0]
    if n <= 32:
        for j in range(1, n - 1):
            k += u >= cumulative[row, j]
    else:
        while 0 < k < n - 1 and u >= cumulative[row, k]:
            k += 1
    return k


@compiled(inline="always")
def _observed(h, warmup, inverse, settled, seen, known):
    """What an agent knows at time h, `known` = (t, m, code, wait, newest settled step), once the next observation was settled, or not, and seen, or not. All of
    it is random, so that every branch would be guessed wrong half of the time: there is none. (The code of the queue is right where nothing is lost;
    nobody reads it elsewhere.) inverse: 1/A."""
    t, m, code, waited, last = known
    u = last + 1
    shorter = np.int64((code + 0.5) * inverse)  # code // A, without the slow division of integers
    return (
        u if seen else t,
        m - (u - max(t, -warmup)) if seen else m,
        shorter if seen & (t >= -warmup) else code,
        0 if seen else waited + 1,
        u if settled else last,
    )


@compiled(inline="always")
def observe(e, h, warmup, A, loses, lost, settles, agent):
    """What reaches the agent at time h, in order and at most one: an observation, or the news that it is lost."""
    u = agent[4, e] + 1
    row = min(u, h) + warmup
    settled = (u <= h) & (settles[row, e] == h)
    seen = settled
    if loses:
        seen = settled & (not lost[row, e])
    known = (agent[0, e], agent[1, e], agent[2, e], agent[3, e], agent[4, e])
    agent[0, e], agent[1, e], agent[2, e], agent[3, e], agent[4, e] = _observed(
        h, warmup, 1.0 / A, settled, seen, known
    )


@compiled
def begin(world, draws, played):
    """`begin_within`, for Python."""
    begin_within(world, draws, played)


@borrowing
def begin_within(world, draws, played):
    """The steps before step 0, and what the agent knows at time 0."""
    initial, index, cumulative, rewards, first, _, _, longest_delay, warmup, late = world
    lost, draw_state, draw_link, draw_action = draws
    states, actions, settles, agent = played.states, played.actions, played.settles, played.agent
    A, n = rewards.shape[2], len(played.returns)
    for e in range(n):
        states[0, e] = draw(initial, draw_state[0, e])
        agent[0, e], agent[1, e], agent[2, e], agent[3, e], agent[4, e] = -warmup - 1, warmup, 0, 0, -warmup - 1
    successor, sums, power = index[0], cumulative[0], 1
    for i in range(warmup):
        for e in range(n):
            a = min(np.int64(draw_action[i, e] * A), A - 1)
            actions[i, e] = a
            row = states[i, e] * A + a
            states[i + 1, e] = successor[row, draw_row(sums, row, draw_state[i + 1, e])]
            settles[i, e] = i
            agent[2, e] += a * power
        power *= A
    for e in range(n):
        if warmup > 0:
            settles[warmup, e] = warmup
        elif late >= 0:
            settles[0, e] = late
        else:
            settles[0, e] = min(draw(first, draw_link[0, e]), longest_delay)
        observe(e, 0, warmup, A, len(lost) > 1, lost, settles, agent)


@compiled
def play(mode, h_from, h_to, world, rule, draws, played):
    """`play_within`, for Python."""
    play_within(mode, h_from, h_to, world, rule, draws, played)


@borrowing
def play_within(mode, h_from, h_to, world, rule, draws, played):
    """Steps h_from..h_to of every episode: choose, act, move on, and see what arrives."""
    _, index, cumulative, rewards, _, interarrival, powers, longest_delay, warmup, _ = world
    table, probabilities, offset, root, pending = rule
    states, settles, agent, ages = played.states, played.settles, played.agent, played.ages
    H, S, A = rewards.shape
    random_link, loses, times = interarrival.shape[3] > 1, len(draws.lost) > 1, h_to - h_from
    n, wide = len(played.returns), states.shape[1]
    inverse, every_state, every_action = 1.0 / A, interarrival.shape[1] - 1, interarrival.shape[2] - 1
    seen_states, settle_times = states.reshape(states.size), settles.reshape(states.size)
    for part in range((n + TILE - 1) // TILE * times):  # every time of one tile of episodes, then of the next
        h, low = h_from + part % times, part // times * TILE
        high, i = min(low + TILE, n), h + warmup
        following, last = min(i + 1, warmup + H - 1), h + 1 == H
        step, link = min(h, index.shape[0] - 1), min(h, interarrival.shape[0] - 1)
        now, after, acts, settle, settle_after = (
            states[i, low:high], states[following, low:high], played.actions[i, low:high], settles[i, low:high],
            settles[following, low:high],
        )  # fmt: skip
        u_state, u_link = draws.state[following, low:high], draws.link[min(h + 1, len(draws.link) - 1), low:high]
        u_action = draws.action[min(i, len(draws.action) - 1), low:high]
        successor, sums, waits, reward, returns = (
            index[step],
            cumulative[step],
            interarrival[link],
            rewards[h],
            played.returns[low:high],
        )
        newest, lengths, codes = agent[0, low:high], agent[1, low:high], agent[2, low:high]
        waited, settled = agent[3, low:high], agent[4, low:high]
        offset_now, root_now = offset[min(h, len(offset) - 1)], root[h]
        total = 0.0
        for e in range(high - low):
            s, t, m, code = np.int64(now[e]), newest[e], lengths[e], codes[e]
            nothing = t < -warmup
            if h < len(pending):
                a = pending[h]
            elif mode in (TABLE, PROBABILITIES):
                m_there = min(m, offset.shape[1] - 1)  # a place that is there, also where nothing is seen yet
                where = offset_now[np.uintp(m_there), np.uintp(min(waited[e], m_there))]
                where += seen_states[np.uintp(max(t + warmup, 0) * wide + low + e)] * powers[np.uintp(m)]
                where = code + (root_now if nothing else where)
                a = _chosen(mode, np.uintp(where), table, probabilities, u_action, e)
            elif mode == MARKOV:
                a = np.int64(table[h * S + s])
            elif mode == NEWEST:
                seen_state = np.int64(seen_states[np.uintp(max(t + warmup, 0) * wide + low + e)])
                a = np.int64(table[h * (S + 1) + (S if nothing else seen_state)])
            else:
                a = np.int64(acts[e])
            acts[e] = a
            r = reward[s, a]
            returns[e] += r
            total += r
            ages[h, ages.shape[1] - 1 if nothing else m] += 1
            known = (t, m + 1, code if loses else code + a * powers[m], waited[e], settled[e])
            if not last:
                row = np.uintp(s * A + a)
                after[e] = successor[row, draw_row(sums, row, u_state[e])]
                when = settle[e] + 1
                if random_link:
                    when += draw_row(waits[min(s, every_state)], min(a, every_action), u_link[e])
                    when = min(when, h + 1 + longest_delay)
                settle_after[e] = when
                u = min(settled[e] + 1, h + 1)
                arrives = settle_times[np.uintp((u + warmup) * wide + low + e)] == h + 1
                seen = arrives
                if loses:
                    seen = arrives & (not draws.lost[u + warmup, low + e])
                known = _observed(h + 1, warmup, inverse, arrives, seen, known)
            newest[e], lengths[e], codes[e], waited[e], settled[e] = known
        played.earned[h] += total


@compiled(inline="always")
def _chosen(mode, where, table, probabilities, u_action, e):
    """The action at this place of a table, or one that is drawn from its probabilities."""
    if mode == TABLE:
        return np.int64(table[where])
    a, below, u = 0, probabilities[where, 0], u_action[e]
    while a < probabilities.shape[1] - 1 and u >= below:
        a += 1
        below += probabilities[where, a]
    return a
