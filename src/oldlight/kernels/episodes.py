"""The interaction protocol, compiled; `oldlight.simulation` says what it does.

Arrays have one row per step −warmup..H−1 (row i holds step i − warmup) and one column per episode: a step is done for all
episodes of a chunk before the next, so that their memory look-ups overlap. The agent's side of the episodes is
`agent[0..4, e]`: the newest visible step t (−warmup−1 for none), the queue's length m and code, the wait, the newest settled
step. `settles` is when each observation arrives or is known to be lost; `lost` says which (one entry: nothing is).
"""

from typing import NamedTuple

import numpy as np

from oldlight.kernels.cache import compiled

TABLE, PROBABILITIES, BLACKOUT, MARKOV, GIVEN = 0, 1, 2, 3, 4


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


class Rule(NamedTuple):
    """A policy: a flat table by place (TABLE, BLACKOUT, MARKOV) or probabilities[place, a] (PROBABILITIES); GIVEN: actions are there already."""

    table: np.ndarray
    probabilities: np.ndarray
    offset: np.ndarray  # [h, m, δ], as in Layout
    root: np.ndarray  # [h]
    pending: np.ndarray  # [h]: actions under way before the start
    late: int  # BLACKOUT: how late an observation is


class Draws(NamedTuple):
    """Uniform random numbers, axes (step, episode), and which observations are lost; one entry where none is needed."""

    lost: np.ndarray
    state: np.ndarray
    link: np.ndarray
    action: np.ndarray


class Played(NamedTuple):
    """What the episodes leave."""

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
def observe(e, h, warmup, A, loses, lost, settles, agent):
    """What reaches the agent at time h, in order and at most one: an observation, or the news that it is lost."""
    u = agent[4, e] + 1
    if u <= h and settles[u + warmup, e] == h:
        agent[4, e] = u
        if not loses or not lost[u + warmup, e]:
            t = agent[0, e]
            gone = u - t if t >= -warmup else u + warmup  # actions that leave the queue
            agent[0, e] = u
            agent[1, e] -= gone
            code = agent[2, e] if agent[1, e] > 0 else 0
            for _ in range(gone if code > 0 else 0):
                code = np.int64((code + 0.5) * (1.0 / A))  # code // A, without the slow division of integers
            agent[2, e] = code
            agent[3, e] = 0
            return
    agent[3, e] += 1


@compiled
def begin(world, draws, played):
    """The steps before step 0, and what the agent knows at time 0."""
    initial, index, cumulative, rewards, first, _, _, longest_delay, warmup = world
    lost, draw_state, draw_link, draw_action = draws
    states, actions, settles, agent = played.states, played.actions, played.settles, played.agent
    A = rewards.shape[2]
    for e in range(states.shape[1]):
        states[0, e] = draw(initial, draw_state[0, e])
        agent[0, e], agent[1, e], agent[2, e], agent[3, e], agent[4, e] = -warmup - 1, warmup, 0, 0, -warmup - 1
        power = 1
        for i in range(warmup):
            a = min(np.int64(draw_action[i, e] * A), A - 1)
            actions[i, e] = a
            row = states[i, e] * A + a
            states[i + 1, e] = index[0, row, draw(cumulative[0, row], draw_state[i + 1, e])]
            settles[i, e] = i
            agent[2, e] += a * power
            power *= A
        if warmup > 0:
            settles[warmup, e] = warmup
        else:
            settles[0, e] = min(draw(first, draw_link[0, e]), longest_delay) if len(first) > 1 else 0
        observe(e, 0, warmup, A, len(lost) > 1, lost, settles, agent)


@compiled
def play(mode, h_from, h_to, world, rule, draws, played):
    """Steps h_from..h_to of every episode: choose, act, move on, and see what arrives."""
    _, index, cumulative, rewards, _, interarrival, powers, longest_delay, warmup = world
    table, probabilities, offset, root, pending, late = rule
    lost, draw_state, draw_link, draw_action = draws
    states, actions, settles, agent, returns, earned, ages = played
    H, S, A = rewards.shape
    random_link = interarrival.shape[3] > 1
    loses = len(lost) > 1
    for h in range(h_from, h_to):
        i = h + warmup
        step = min(h, index.shape[0] - 1)
        link = min(h, interarrival.shape[0] - 1)
        total = 0.0
        for e in range(states.shape[1]):
            s = np.int64(states[i, e])
            t, m, code = agent[0, e], agent[1, e], agent[2, e]
            nothing = t < -warmup
            if h < len(pending):
                a = pending[h]
            elif mode in (TABLE, PROBABILITIES):
                if nothing:
                    where = root[h] + code
                else:
                    where = offset[h, m, agent[3, e]] + states[t + warmup, e] * powers[m] + code
                if mode == TABLE:
                    a = np.int64(table[where])
                else:
                    u = draw_action[i, e]
                    a = 0
                    below = probabilities[where, 0]
                    while a < A - 1 and u >= below:
                        a += 1
                        below += probabilities[where, a]
            elif mode == BLACKOUT:
                where = np.int64(0)
                j = h
                if not nothing:
                    for k in range(late - 1, -1, -1):
                        where = where * A + actions[t + k, e]
                    where += ((t + 1) * S + states[t, e]) * powers[late]
                    j = m - late
                a = np.int64(table[where * H + j])
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
                states[i + 1, e] = index[step, row, draw(cumulative[step, row], draw_state[i + 1, e])]
                settle = settles[i, e] + 1
                if random_link:
                    at = (link, min(s, interarrival.shape[1] - 1), min(a, interarrival.shape[2] - 1))
                    settle += draw(interarrival[at], draw_link[h + 1, e])
                    settle = min(settle, h + 1 + longest_delay)
                settles[i + 1, e] = settle
                observe(e, h + 1, warmup, A, loses, lost, settles, agent)
        earned[h] += total
