"""The learners of `oldlight.learners.memoryless`, compiled: what an episode shows, the two recursions, the policy, and blocks of episodes.

A cell (h, x, a) has x = 0..S−1, the newest visible state, or x = S while nothing has been seen. Entries of an episode are i = 0..n−1: steps 0..H−1, or steps
−warmup..H−1 where counts are pooled and the states themselves are learnt from.
"""

from typing import NamedTuple

import numpy as np

from oldlight.kernels.cache import borrowing, compiled
from oldlight.kernels.episode_blocks import draws_of, keep_policy, reveal, room_for_one
from oldlight.kernels.episodes import NEWEST, begin_within, play_within

TIE = 1e-12
UCBVI, Q_LEARNING = range(2)


class Rules(NamedTuple):
    """What is known beforehand, and the learner's options."""

    kind: int  # UCBVI or Q_LEARNING
    aligned: bool
    pooled: bool
    pays_known: bool  # is the reward of a cell known?
    warmup: int
    arrives: float  # the probability that s_0 is seen at time 0
    c: float
    log_term: float  # ι
    rewards: np.ndarray  # [h, s, a]
    remaining: np.ndarray  # [h]: M_h, the most that can still be earned; 0 after the end
    initial: np.ndarray  # [s]
    pending: np.ndarray  # [h]: actions under way before the start


class Cells(NamedTuple):
    """What is learnt. T is 1 where counts are pooled, else H; of Q-learning the last three are empty."""

    q: np.ndarray  # [h, x, a]
    greedy: np.ndarray  # [h, x]
    visits: np.ndarray  # [T, x, a]: N_h(x, a)
    number: np.ndarray  # [T, x, a, y]: N_h(x, a, y)
    paid: np.ndarray  # [h, x, a]: the sum of the rewards that time h would have paid
    paid_times: np.ndarray  # [T, x, a]: n_h(x, a)


@borrowing
def _read(episode, rules, x):
    """x[i] of every entry: the cell to learn on, −1 where its state was lost. Returns how many entries there are, and how many steps come before the first."""
    H, S, _ = rules.rewards.shape
    if rules.aligned:
        before = 0 if rules.pooled else rules.warmup
        for i in range(len(episode.states) - before):
            x[i] = episode.states[i + before]
        return len(episode.states) - before, before
    for h in range(H):
        x[h] = S
        for i in range(len(episode.states)):
            if 0 <= episode.arrivals[i] <= h:
                x[h] = episode.states[i]
    return H, rules.warmup


@borrowing
def _value(cells, rules, h, out):
    """out[x] = V_h(x)."""
    H, wide, A = cells.q.shape
    for x in range(wide):
        if h == H:
            out[x] = 0.0
            continue
        best = cells.q[h, x, 0]
        if h < len(rules.pending):
            best = cells.q[h, x, rules.pending[h]]
        else:
            for a in range(1, A):
                best = max(best, cells.q[h, x, a])
        out[x] = min(best, rules.remaining[h])


@borrowing
def _blind(cells, rules, h):
    """Q_h(∅, ·) of somebody who learns from the states."""
    if rules.aligned:
        for a in range(cells.q.shape[2]):
            total = 0.0
            for s in range(len(rules.initial)):
                total += rules.initial[s] * cells.q[h, s, a]
            cells.q[h, len(rules.initial), a] = total


@compiled
def start_value(cells, rules):
    """V_0 in expectation over what is seen at time 0."""
    S = len(rules.initial)
    first, total = np.empty(S + 1), 0.0
    _value(cells, rules, 0, first)
    for s in range(S):
        total += first[s] / S if rules.warmup > 0 else rules.initial[s] * first[s]
    return total if rules.warmup > 0 else rules.arrives * total + (1.0 - rules.arrives) * first[S]


@borrowing
def _count(episode, rules, cells, x):
    """The transitions and rewards of an episode, for UCBVI."""
    n, before = _read(episode, rules, x)
    R = rules.rewards
    for i in range(n):
        row, a, s = 0 if rules.pooled else i, episode.actions[i + before], episode.states[i + before]
        if i + 1 < n and x[i] >= 0 and x[i + 1] >= 0:
            cells.visits[row, x[i], a] += 1
            cells.number[row, x[i], a, x[i + 1]] += 1.0
        if not rules.pays_known and s >= 0:
            cells.paid_times[row, x[i], a] += 1
            for h in range(0 if rules.pooled else i, len(R) if rules.pooled else i + 1):
                cells.paid[h, x[i], a] += R[h, s, a]


@compiled
def plan(cells, rules):
    """UCBVI's recursion, last time first; returns the value of the start."""
    q, R, c, root = cells.q, rules.rewards, rules.c, np.sqrt(rules.log_term)
    H, S, A = R.shape
    following = np.empty(S + 1)
    for h in range(H - 1, -1, -1):
        row, most = 0 if rules.pooled else h, rules.remaining[h]
        _value(cells, rules, h + 1, following)
        for x in range(S + 1):
            for a in range(A):
                N, n = cells.visits[row, x, a], cells.paid_times[row, x, a]
                if rules.pays_known:
                    worth, unknown = R[h, x, a] if x < S else most, False
                else:
                    worth, unknown = (cells.paid[h, x, a] + c * root * np.sqrt(n)) / max(n, 1), n == 0
                if h < H - 1 and N == 0:
                    unknown = True
                elif h < H - 1:
                    ahead, number = 0.0, cells.number[row, x, a]
                    for y in range(S + 1):
                        ahead += number[y] * following[y]
                    worth += (ahead + c * H * root * np.sqrt(N)) / N
                q[h, x, a] = most if unknown else min(worth, most)
        _blind(cells, rules, h)
    return start_value(cells, rules)


@compiled
def _learn_q(episode, rules, cells, x):
    """Q-learning from an episode, last step first; returns the value of the start."""
    n, before = _read(episode, rules, x)
    q, R, states, actions = cells.q, rules.rewards, episode.states[before:], episode.actions[before:]
    H, S, _ = R.shape
    end, scale = n - 1, rules.c * np.sqrt(H**3 * rules.log_term)
    times, following = np.zeros(n, np.int64), np.empty(S + 1)  # N of an entry when it was counted, 0: it is left out
    for i in range(end, -1, -1):
        if states[i] < 0 or (rules.pays_known if i == end else x[i + 1] < 0):
            continue
        row = 0 if rules.pooled else i
        cells.visits[row, x[i], actions[i]] += 1
        times[i] = cells.visits[row, x[i], actions[i]]
    for h in range(H - 2 if rules.pays_known else H - 1, -1, -1):
        _value(cells, rules, h + 1, following)
        for i in range(end if rules.pooled else h, -1 if rules.pooled else h - 1, -1):
            if times[i] == 0 or (i == end and h < H - 1):  # nothing is known of what followed the last entry
                continue
            s, a = states[i], actions[i]
            ahead = following[x[i + 1]] if h < H - 1 else 0.0
            target = R[h, s, a] + ahead + scale / np.sqrt(times[i])
            q[h, x[i], a] += (H + 1) / (H + times[i]) * (target - q[h, x[i], a])
        _blind(cells, rules, h)
    return start_value(cells, rules)


@compiled
def decide(cells, rules, rng):
    """The greedy policy of min(M, Q), ties at random; returns: has it changed?"""
    H, wide, A = cells.q.shape
    changed = False
    for h in range(H):
        for x in range(wide):
            q, most, top, highest, chosen = cells.q[h, x], rules.remaining[h], -np.inf, -1.0, 0
            for a in range(A):
                top = max(top, min(q[a], most))
            for a in range(A):
                lot = rng.random()
                if min(q[a], most) >= top - TIE and lot > highest:
                    highest, chosen = lot, a
            if h < len(rules.pending):
                chosen = rules.pending[h]
            changed = changed or cells.greedy[h, x] != chosen
            cells.greedy[h, x] = chosen
    return changed


@compiled
def learn(episode, rules, cells):
    """What one episode teaches; returns the value of the start."""
    x = np.empty(len(episode.states), np.int64)
    if rules.kind == UCBVI:
        _count(episode, rules, cells, x)
        return plan(cells, rules)
    return _learn_q(episode, rules, cells, x)


@compiled
def block(world, rule, played, rules, cells, rng, block):
    """A block of episodes; the table of `rule` is cells.greedy. Returns the last estimate, and whether the policy has changed since the last one that was kept."""
    episode = room_for_one(played.states.shape[0])
    changed, estimated = False, 0.0
    for e in range(len(block.returns)):
        changed = keep_policy(block, e, rule.table, changed)
        draws = draws_of(block, e)
        played.returns[0] = 0.0
        begin_within(world, draws, played)
        play_within(NEWEST, 0, len(rules.rewards), world, rule, draws, played)
        reveal(e, world, block, played, episode)
        if len(draws.lost) > 1:
            for i in range(len(episode.states)):
                if draws.lost[i, 0]:
                    episode.states[i], episode.arrivals[i] = -1, -1
        estimated = learn(episode, rules, cells)
        changed = decide(cells, rules, rng) or changed
        block.estimates[e] = estimated
    return estimated, changed
