"""The backward induction under delay, compiled: one sweep for planning, for the value of a given policy and for optimistic planning.

`oldlight.planning.delay` has the recursion and `kernels.block` one block of it. A sweep goes over the rows of `Tables.blocks`, last time
first. A row is a block of information states of time h with a queue of length m and wait δ (NODE), what follows the last action
(REST, G_{H−m} of the recursion: one action, nothing chosen) or the queues of time h before anything is seen (ROOT). Rows of one time do not
need each other, and each can be shared: part i of n does its share of every row, of its w if they are many, else of its s. Parts of several times are done by as
many threads, which wait for each other between two times (`oldlight.kernels.turns`).

A learner's model has bonuses (mode OPTIMISTIC): the reward of a pair becomes reward + bonus[pair] + theta_bonus[pair, δ], the
second only where the arrival is uncertain; a pair of which nothing is known is worth `remaining`, the most that can still be earned; no
value is above that. What follows the last step is never seen and does not matter, so that there is no bonus.
"""

from typing import NamedTuple

import numpy as np

from oldlight.kernels.block import BEST, FEW, FOLLOW, MIX, OPTIMISTIC, SHIFTS, Block, Choice, Step, back_up, back_up_now
from oldlight.kernels.cache import borrowing, compiled
from oldlight.kernels.long_blocks import best_of_many
from oldlight.kernels.optimistic_now import add_up, choose, worth, worth_at_the_end
from oldlight.kernels.short_blocks import best_now, best_of_few
from oldlight.kernels.turns import take_turn

# columns of Tables.blocks: the kind; time, queue length, wait; where its actions stand (−1: no choice) and its values; where the values
# after an arrival and after a wait stand (−1: neither happens); is the arrival certain?
KIND, TIME, LENGTH, WAITED, ACTIONS, VALUES, ARRIVAL, WAIT, FORCED = range(9)
NODE, REST, ROOT = range(3)
UNIT = 64  # parts share w in multiples of this


class Model(NamedTuple):
    """The process and the link, true or estimated. Row min(max(t + T − H, 0), T − 1) of T belongs to step t: T = 1 for a stationary
    process, T = H, or more if steps before step 0 have rows of their own. Where matrix is not empty, the lists are not read."""

    successor: np.ndarray  # [place]
    probability: np.ndarray  # [place]
    first: np.ndarray  # [row, s·A + q1]: where the list begins
    count: np.ndarray  # [row, s·A + q1]: and how long it is
    matrix: np.ndarray  # [row, s·A + q1, s2]
    rewards: np.ndarray  # [t, s, q1]; one t for all steps
    theta: np.ndarray  # [t, s, q1, δ]; one t, s or q1 for all of them
    first_theta: np.ndarray  # [h]
    initial: np.ndarray  # [s]


class Optimism(NamedTuple):
    """What a learner adds; empty arrays for anybody else."""

    bonus: np.ndarray  # [row, s·A + q1]
    theta_bonus: np.ndarray  # [row, s·A + q1, δ]
    std_coefficient: np.ndarray  # [row, s·A + q1]; empty for a bonus without variance
    known: np.ndarray  # [row, s·A + q1]
    remaining: np.ndarray  # [t]
    root_bonus: np.ndarray  # [h]
    noise: np.ndarray  # [a, place]


NO_OPTIMISM = Optimism(
    np.empty((1, 0)),
    np.empty((1, 0, 0)),
    np.empty((0, 0)),
    np.empty((1, 0), np.bool_),
    np.empty(0),
    np.empty(0),
    np.empty((0, 0)),
)


class Tables(NamedTuple):
    """Where everything stands. by_start: the values of a ROOT have axes [start state, code]; else [code], the mean over `initial`."""

    blocks: np.ndarray  # [row, column]
    powers: np.ndarray  # A^m
    values: np.ndarray  # flat
    actions: np.ndarray  # flat; followed or written, empty: neither
    probabilities: np.ndarray  # [place, a]; for mode MIX
    pending: np.ndarray  # [h]: actions under way before the start
    turns: np.ndarray  # [part·APART]: how far each part of a call has come; empty: no call has parts of several times
    horizon: int
    by_start: bool


class Now(NamedTuple):
    """What is true of a block: is its reward counted, how long nothing has come, is the arrival certain, is there a bonus, and the most it is worth."""

    paid: bool
    waited: int
    forced: bool
    learns: bool
    clip: float


class Root(NamedTuple):
    """Before anything is seen: the probability of an arrival, the bonus, the most it is worth, and the action under way (−1: it is chosen)."""

    theta: float
    bonus: float
    clip: float
    pending: int


@compiled
def _fill_step(rewards, law, pairs, now, s_from, s_to, filled):
    """Reward, θ and the coefficient of the standard deviation (`filled`), axes [s, q1], s = s_from..s_to, from those of one step; now: `Now`."""
    bonus, theta_bonus, spread, known = pairs
    paid, waited, forced, learns, clip = now
    reward, theta, std_coefficient = filled
    A = reward.shape[1]
    s_last, q_last = law.shape[0] - 1, law.shape[1] - 1
    for s in range(s_from, s_to):
        for q in range(A):
            reward[s, q] = rewards[s, q] if paid else 0.0
            theta[s, q] = 1.0 if forced else law[min(s, s_last), min(q, q_last), waited]
            if learns:
                pair = s * A + q
                extra = bonus[pair] if forced else bonus[pair] + theta_bonus[pair, waited]
                reward[s, q] = reward[s, q] + extra if known[pair] else clip
                if len(std_coefficient) > 0:
                    std_coefficient[s, q] = spread[pair] if known[pair] else 0.0
    if not learns:
        std_coefficient[:] = 0.0


@compiled
def _share(S, W, part, parts):
    """What part number `part` does, from and to: s, and w."""
    units = (W + UNIT - 1) // UNIT
    if units >= 2 * parts or 2 * parts > S:
        return 0, S, min(units * part // parts * UNIT, W), min(units * (part + 1) // parts * UNIT, W)
    return S * part // parts, S * (part + 1) // parts, 0, W


@compiled
def _root(row, mode, tables, initial, root, noise, w_from, w_to):
    """Before anything is seen: x_a[i, w] = bonus + θ·U^{(h+1, 0)}[i, w, a] + (1 − θ)·Root_{h+1}[i, w, a], i the start state (or one i, the
    mean over start states), and one action for all i; `pending` if that is not negative. root: `Root`."""
    _, powers, V, actions, mix, _, _, _, by_start = tables
    th, bonus, clip, pending = root
    W = powers[row[LENGTH]]
    place, here, arrival, wait = row[ACTIONS], row[VALUES], row[ARRIVAL], row[WAIT]
    S, A = len(initial), mix.shape[1]
    starts = S if by_start else 1
    chooses = mode in (BEST, OPTIMISTIC)
    x = np.empty((A, starts))
    for w in range(w_from, w_to):
        best, top = max(pending, 0), -np.inf
        if pending < 0 and mode == FOLLOW:
            best = np.int64(actions[place + w])
        for a in range(A):
            y = 0.0
            for i in range(starts):
                z = bonus
                if arrival >= 0 and th > 0.0:
                    if by_start:
                        z += th * V[arrival + (i * A + a) * W + w]
                    else:
                        for s in range(S):
                            z += th * initial[s] * V[arrival + (s * A + a) * W + w]
                if wait >= 0 and th < 1.0:
                    z += (1.0 - th) * V[wait + (i * A + a) * W + w]
                x[a, i] = min(z, clip)
                y += initial[i] * x[a, i] if by_start else x[a, i]
            if mode == OPTIMISTIC:
                y += noise[a, (w * 37) % SHIFTS]
            if chooses and pending < 0 and y > top:
                best, top = a, y
        for i in range(starts):
            y = x[best, i]
            if mode == MIX and pending < 0:
                y = 0.0
                for a in range(A):
                    y += mix[place + w, a] * x[a, i]
            V[here + i * W + w] = y
        if chooses and len(actions) > 0:
            actions[place + w] = best


@borrowing
def _nothing_is_late(model, tables, first, last):
    """Has no row first..last a queue or a wait? Then only what follows the last step is forced, and θ has one δ."""
    blocks, H = tables.blocks, tables.horizon
    for b in range(first, last):
        if blocks[b, KIND] != NODE or blocks[b, LENGTH] > 0 or blocks[b, WAIT] >= 0 or blocks[b, ARRIVAL] < 0:
            return False
        if (blocks[b, FORCED] > 0) != (blocks[b, TIME] == H - 1):
            return False
    return model.theta.shape[1:] == (*model.rewards.shape[1:], 1) and len(model.matrix) == 0


@borrowing
def _sweep_now(model, optimism, tables, first, last, scratch):
    """The rows first..last of a learner where nothing is late; scratch: [3, pair]."""
    successor, probability, begin, count, _, rewards, law, _, _ = model
    bonus, theta_bonus, spread, known, remaining, _, noise = optimism
    blocks, _, V, actions, _, _, _, H, _ = tables
    S, T, n = rewards.shape[1], len(count), scratch.shape[1]
    mean, square, x = scratch[0], scratch[1], scratch[2]
    for b in range(first, last):
        t, here, place = blocks[b, TIME], blocks[b, VALUES], blocks[b, ACTIONS]
        at = min(max(t + T - H, 0), T - 1)
        reward, theta = rewards[min(t, len(rewards) - 1)].reshape(n), law[min(t, len(law) - 1)].reshape(n)
        add_up((successor, probability, begin[at], count[at]), V, blocks[b, ARRIVAL], mean, square)
        if t == H - 1:
            worth_at_the_end(reward, remaining[t], mean, x)
        else:
            spreads = spread[at] if len(spread) > 0 else bonus[at, :0]
            pairs = (bonus[at], theta_bonus[at].reshape(n), spreads, known[at])
            worth(reward, theta, pairs, remaining[t], mean, square, x)
        choose(x, noise, V[here : here + S], actions[place : place + S])


@compiled
def sweep(model, optimism, tables, mode, first, last, part, parts):
    """Part `part` of `parts` of the rows first..last of tables.blocks: their values, and their actions unless a policy is followed. With None for
    `optimism` the best is taken, every arrival is certain and no queue is empty where transitions are a matrix; that is compiled apart, from half of the code."""
    successor, probability, begin, count, matrices, rewards, law, first_theta, initial = model
    blocks, powers, V, actions, mix, pending, turns, H, _ = tables
    S, A = rewards.shape[1:]
    T, learning = len(count), mode == OPTIMISTIC
    nothing, certain = np.zeros((1, 1)), np.ones((1, 1))
    no_wait, no_action, no_matrix = np.empty((0, 0, 0, 0)), np.empty((0, 0, 0), actions.dtype), np.empty((0, 0))
    if optimism is None:
        noise = no_matrix
    else:
        bonus, theta_bonus, spread, known, remaining, root_bonus, noise = optimism
        if learning and parts == 1 and _nothing_is_late(model, tables, first, last):
            _sweep_now(model, optimism, tables, first, last, np.empty((3, S * A)))
            return
        some_wait = learning
        for b in range(first, last):
            some_wait = some_wait or (blocks[b, KIND] == NODE and blocks[b, FORCED] == 0)
        room = (S, A) if some_wait else (0, 0)
        reward, theta = np.empty(room), np.empty(room)
        std_coefficient = np.empty((S, A)) if len(spread) > 0 else np.empty((0, 0))
    number = 0
    for b in range(first, last):
        row = blocks[b]
        if parts > 1 and b > first and (row[KIND] == REST or row[TIME] != blocks[b - 1, TIME]):
            number += 1
            take_turn(turns, part, parts, number)
        kind, h, m, waited, here, forced = row[KIND], row[TIME], row[LENGTH], row[WAITED], row[VALUES], row[FORCED] > 0
        W = powers[m] if kind == ROOT else powers[max(m - 1, 0)]
        s_from, s_to, low, high = _share(1 if kind == ROOT else S, W, part, parts)
        if low == high:
            continue
        t = h - m
        clip, extra = np.inf, 0.0
        if optimism is not None and learning:
            clip = remaining[t + 1] if waited > 0 and t >= 0 else remaining[max(t, 0)]
            extra = root_bonus[h] if kind == ROOT else 0.0
        if kind == ROOT:
            theta_0, under_way = 1.0 if forced else first_theta[h + 1], pending[h] if h < len(pending) else -1
            _root(row, mode, tables, initial, Root(theta_0, extra, clip, under_way), noise, low, high)
            continue
        at, at_reward = min(max(t + T - H, 0), T - 1), min(max(t, 0), len(rewards) - 1)
        paid = t >= 0 and waited == 0
        r, th = rewards[at_reward] if paid else nothing, certain
        if optimism is not None and (learning or not forced):
            at_law, at_bonus = min(max(t, 0), len(law) - 1), min(at, len(bonus) - 1)
            spreads = spread[at] if len(spread) > 0 else bonus[0]
            pairs = (bonus[at_bonus], theta_bonus[at_bonus], spreads, known[at_bonus])
            r, th = reward, theta
            now, filled = Now(paid, waited, forced, learning and t < H - 1, clip), (r, th, std_coefficient)
            _fill_step(rewards[at_reward], law[at_law], pairs, now, s_from, s_to, filled)
        matrix = matrices[at] if len(matrices) > 0 else no_matrix
        heads = A if m > 0 else 1
        choices = heads if kind == NODE else 1
        size, n = S * W * heads, S * choices * W
        v_next = (V[row[ARRIVAL] : row[ARRIVAL] + n] if row[ARRIVAL] >= 0 else np.zeros(n)).reshape(S, choices, W)
        value, action = V[here : here + size].reshape(S, W, heads), no_action
        if kind == NODE and mode != MIX and len(actions) > 0:
            action = actions[row[ACTIONS] : row[ACTIONS] + size].reshape(S, W, heads)
        if optimism is None:
            lists = (successor, probability, begin[at], count[at])
            if m == 0:
                best_now(lists, r, th, v_next, value, action, s_from, s_to)
            elif W <= FEW and len(matrix) == 0:
                best_of_few(lists, r, th, v_next, value, action, s_from, s_to)
            else:
                best_of_many(lists, matrix, r, th, v_next, value, action, (s_from, s_to, low, high))
        else:
            v_wait, probabilities, how = no_wait, no_wait, mode
            if row[WAIT] >= 0:
                v_wait = V[row[WAIT] : row[WAIT] + size * A].reshape(S, A, W, heads)
            if kind == REST:
                how = OPTIMISTIC if learning else BEST
            elif mode == MIX:
                probabilities = mix[row[ACTIONS] : row[ACTIONS] + size].reshape(S, W, heads, A)
            step = Step(successor, probability, begin[at], count[at], matrix, r, th, std_coefficient, noise, clip)
            block, choice = Block(v_next, v_wait, value), Choice(how, action, probabilities)
            if m == 0:
                back_up_now(step, block, choice, s_from, s_to)
            else:
                back_up(step, block, choice, s_from, s_to, low, high)
