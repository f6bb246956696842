"""Many impaired processes at once, compiled; `oldlight.envs.batch_simulator` says what it does.

`past[what, row, e]` is what happened in environment e: STATE, ACTION (by the step that it acts on), SETTLES and LOST of the step in
row i, which is step i − warmup. `agent[what, e]` is its present: rows 0..4 are those of `oldlight.kernels.episodes` (whose `draw` and
`observe` are used): the newest visible step t (−warmup−1 for none), the queue's length, a code that stays 0 here, the wait, the
newest settled step; then the time, whether the link is bad, the first step whose reward has not been paid, and the step that
settled just now. `streams[what, e]` are random states of the process, the delays and the losses of environment e alone
(SplitMix64), so that none depends on the others.

Behind a link without a delay law `told[0, e]` is the step and `told[1, e]` the arrival time that the link tells of at this time (−1: it is
lost, or not shown yet); nothing is drawn for the link here.
"""

from typing import NamedTuple

import numpy as np

from oldlight.kernels.cache import compiled
from oldlight.kernels.episodes import draw, observe

STATE, ACTION, SETTLES, LOST = 0, 1, 2, 3  # past
NEWEST, LENGTH, WAITED, SETTLED, CLOCK, BAD, PAID, ARRIVAL = 0, 1, 3, 4, 5, 6, 7, 8  # agent
PROCESS, DELAY, LOSS = 0, 1, 2  # streams
OBSERVATION, AGE, WAIT, FRESH, SEEN, TIME = 0, 1, 2, 3, 4, 5  # what `show` fills
NOTHING = -1  # no step settled (after a warm start, where there is a step −1, one settles at every time)

_GOLDEN, _M1, _M2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


class Start(NamedTuple):
    """How an episode begins: running sums of the laws of s_0 and of d_0, and the actions under way."""

    initial: np.ndarray
    first: np.ndarray
    pending: np.ndarray


class Outcome(NamedTuple):
    """What a step fills, by environment."""

    rewards: np.ndarray
    over: np.ndarray


class Model(NamedTuple):
    """The process and the link, written out."""

    index: np.ndarray  # [h, s·A + a, k] successors
    cumulative: np.ndarray  # [h, s·A + a, k] their running sums
    rewards: np.ndarray  # [h, s, a]
    interarrival: np.ndarray  # [i, s, a, δ] running sums
    seen: np.ndarray  # [link good or bad, step]: the probability to be seen
    bad: float  # how often the link is bad; how it becomes bad, and good
    to_bad: float
    to_good: float
    loses: bool
    has_law: bool  # else the link is told
    longest_delay: int  # no delay is longer
    warmup: int  # steps before step 0
    ahead: int  # how late actions are
    late_rewards: bool


@compiled(inline="always")
def _uniform(streams, j, e):
    z = streams[j, e] + _GOLDEN
    streams[j, e] = z
    z = (z ^ (z >> _S30)) * _M1
    z = (z ^ (z >> _S27)) * _M2
    z = z ^ (z >> _S31)
    return np.float64(z >> _S11) * (1.0 / 9007199254740992.0)


@compiled(inline="always")
def _losing(i, e, model, agent, streams):
    """Is the observation of step i lost?"""
    if not model.loses:
        return False
    if model.to_bad > 0.0 or model.to_good > 0.0:
        u = _uniform(streams, LOSS, e)
        if i == 0:
            agent[BAD, e] = u < model.bad
        elif agent[BAD, e]:
            agent[BAD, e] = u >= model.to_good
        else:
            agent[BAD, e] = u < model.to_bad
    return _uniform(streams, LOSS, e) >= model.seen[agent[BAD, e], min(i, model.seen.shape[1] - 1)]


@compiled(inline="always")
def _hear(e, w, A, model, past, agent):
    """What reaches the agent at time w."""
    if not model.has_law:
        agent[ARRIVAL, e] = NOTHING
        agent[WAITED, e] += 1
        t = agent[NEWEST, e]
        for i in range(w, max(t, w - model.longest_delay - 1), -1):
            if past[SETTLES, i, e] == w and not past[LOST, i, e]:
                agent[NEWEST, e] = agent[ARRIVAL, e] = i
                agent[LENGTH, e] -= i - max(t, 0)
                agent[WAITED, e] = 0
                break
        return
    settled = agent[SETTLED, e]
    observe(e, w, model.warmup, A, model.loses, past[LOST], past[SETTLES], agent)
    agent[ARRIVAL, e] = agent[SETTLED, e] if agent[SETTLED, e] > settled else NOTHING


@compiled(inline="always")
def _take(e, told, past):
    """The observation of a step arrives at a time; what is told first of a step holds."""
    i = told[0, e]
    if i >= 0 and (past[LOST, i, e] or past[SETTLES, i, e] < 0):
        past[SETTLES, i, e] = told[1, e]
        past[LOST, i, e] = told[1, e] < 0


@compiled
def begin(who, start, told, model, past, agent, streams):
    """A new episode for every environment e with who[e]."""
    warmup = model.warmup
    A = model.rewards.shape[2]
    for e in range(len(who)):
        if not who[e]:
            continue
        past[STATE, 0, e] = draw(start.initial, _uniform(streams, PROCESS, e))
        agent[:, e] = 0
        agent[NEWEST, e], agent[LENGTH, e], agent[SETTLED, e] = -warmup - 1, warmup + model.ahead, -warmup - 1
        for i in range(warmup):
            a = min(np.int64(_uniform(streams, PROCESS, e) * A), A - 1)
            row = past[STATE, i, e] * A + a
            k = draw(model.cumulative[0, row], _uniform(streams, PROCESS, e))
            past[STATE, i + 1, e] = model.index[0, row, k]
            past[ACTION, i, e], past[SETTLES, i, e], past[LOST, i, e] = a, i, 0
        for i in range(model.ahead):
            past[ACTION, warmup + i, e] = start.pending[i]
        if not model.has_law:
            past[SETTLES, :, e] = -1
            past[LOST, :, e] = 1
            _take(e, told, past)
            _hear(e, 0, A, model, past, agent)
            continue
        late = warmup
        if warmup == 0 and len(start.first) > 1:
            late = min(draw(start.first, _uniform(streams, DELAY, e)), model.longest_delay)
        past[SETTLES, warmup, e] = late
        past[LOST, warmup, e] = _losing(0, e, model, agent, streams)
        _hear(e, 0, A, model, past, agent)


@compiled
def first_wrong(skip, actions, A):
    """The first environment without skip[e] whose action is none, or −1."""
    for e in range(len(skip)):
        if not skip[e] and not 0 <= actions[e] < A:
            return e
    return -1


@compiled
def step(skip, actions, told, model, past, agent, streams, outcome):
    """One step of every environment e without skip[e]; fills the outcome."""
    rewards, over = outcome.rewards, outcome.over
    H, _, A = model.rewards.shape
    warmup = model.warmup
    random_link = model.interarrival.shape[3] > 1
    for e in range(len(skip)):
        rewards[e] = 0.0
        over[e] = False
        if skip[e]:
            continue
        w = agent[CLOCK, e]
        i = w + warmup
        past[ACTION, i + model.ahead, e] = actions[e]
        a = np.int64(past[ACTION, i, e])
        s = np.int64(past[STATE, i, e])
        row = s * A + a
        at = min(w, model.index.shape[0] - 1)
        k = draw(model.cumulative[at, row], _uniform(streams, PROCESS, e))
        past[STATE, i + 1, e] = model.index[at, row, k]
        if model.has_law:
            settle = past[SETTLES, i, e] + 1
            if random_link:
                law = (
                    min(w, model.interarrival.shape[0] - 1),
                    min(s, model.interarrival.shape[1] - 1),
                    min(a, model.interarrival.shape[2] - 1),
                )
                settle += draw(model.interarrival[law], _uniform(streams, DELAY, e))
                settle = min(settle, w + 1 + model.longest_delay)
            past[SETTLES, i + 1, e] = settle
            past[LOST, i + 1, e] = _losing(w + 1, e, model, agent, streams)
        else:
            _take(e, told, past)
        agent[CLOCK, e] = w + 1
        agent[LENGTH, e] += 1
        _hear(e, w + 1, A, model, past, agent)
        over[e] = w + 1 == H
        if model.late_rewards:  # the newest observation brings all rewards before its step; the end brings the rest
            until = H if over[e] else agent[NEWEST, e]
            for j in range(agent[PAID, e], until):
                rewards[e] += model.rewards[j, past[STATE, j + warmup, e], past[ACTION, j + warmup, e]]
            agent[PAID, e] = max(agent[PAID, e], until)
        else:
            rewards[e] = model.rewards[w, s, a]


@compiled
def show(S, A, warmup, ahead, past, agent, numbers, actions):
    """What each agent sees, as `oldlight.envs.observation_view` describes it: numbers[what, e], and the queue actions[e, place]."""
    places = actions.shape[1]
    for e in range(numbers.shape[1]):
        t, m, waited = agent[NEWEST, e], agent[LENGTH, e], agent[WAITED, e]
        known = t >= -warmup
        now = agent[CLOCK, e] + ahead
        numbers[OBSERVATION, e] = past[STATE, t + warmup, e] if known else S
        numbers[AGE, e] = m
        numbers[WAIT, e] = waited if known else m + 1
        numbers[FRESH, e] = 1 if known and waited == 0 else 0
        numbers[SEEN, e] = 1 if known else 0
        numbers[TIME, e] = now
        first = now + warmup - places  # the row of the leftmost place
        for j in range(places):
            actions[e, j] = past[ACTION, first + j, e] if j >= places - m else A
