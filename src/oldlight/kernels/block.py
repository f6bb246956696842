"""One block of the backward induction under delay, compiled; `oldlight.planning.delay` has the recursion, `kernels.delay` the whole sweep.

A block is U[s, code] with code = q1 + A·w, w the code of q2..qm. The block after an arrival is v_next[s2, a, w], after no
arrival v_wait[s, a, w, q1] (see `oldlight.model.information` for the codes). For each (s, q1)

    x_a[w] = reward[s, q1] + θ[s, q1]·Σ_s2 P(s2|s, q1)·v_next[s2, a, w] + (1 − θ[s, q1])·v_wait[s, a, w, q1]

and value[s, w, q1] is the maximum over a (mode BEST), the entry that a policy chose (FOLLOW) or the mean under its probabilities (MIX). For
a learner (OPTIMISTIC) x_a gains std_coefficient[s, q1]·√Var_P(v_next[·, a, w]) and is clipped at `clip`, and ties are broken by `noise`,
as small as rounding errors; noise[a, :] is read from a place that depends on (s, q1). With an empty queue q1 is a itself.

Vectors run along w, so that every inner loop is long and contiguous; a tile of w is small enough that the rows of v_next that it reads
stay in cache while all (s, q1) pass over them. Where most states are successors, the sums over s2 of a tile are one product of matrices. Where the
best is taken and nothing waits, `oldlight.kernels.short_blocks` and `oldlight.kernels.long_blocks` do the same with less.
"""

from typing import NamedTuple

import numpy as np

from oldlight.kernels.cache import compiled
from oldlight.kernels.interleaving import interleave
from oldlight.kernels.long_blocks import best_of_many
from oldlight.kernels.products import COLUMNS, ROWS, multiply, room_for_columns
from oldlight.kernels.short_blocks import best_now, best_of_few

BEST, FOLLOW, MIX, OPTIMISTIC = range(4)
TILE = 512  # w at a time
DENSE_TILE = 128  # the same where products of matrices are made
FEW = 32  # up to this many w the choice is made for one after the other
SHIFTS = 64  # places where a row of noise may begin


class Step(NamedTuple):
    """What happens to (s, q1): row s·A + q1 has the successors first[row], first[row] + 1, .. of the lists, or is a row of the matrix if that
    is not empty. One s or q1 of reward and theta stands for all of them."""

    successor: np.ndarray  # [place]
    probability: np.ndarray  # [place]
    first: np.ndarray  # [s·A + q1]
    count: np.ndarray  # [s·A + q1]
    matrix: np.ndarray  # [s·A + q1, s2]
    reward: np.ndarray  # [s, q1], with the bonus of a learner
    theta: np.ndarray  # [s, q1]: the probability of an arrival
    std_coefficient: np.ndarray  # [s, q1]; empty for none
    noise: np.ndarray  # [a, place]
    clip: float


class Block(NamedTuple):
    """The values of the next time and of this one; an empty v_wait stands for θ = 1. With an empty queue w and q1 have length 1."""

    v_next: np.ndarray  # [s2, a, w]
    v_wait: np.ndarray  # [s, a, w, q1]
    value: np.ndarray  # [s, w, q1]


class Choice(NamedTuple):
    """How an action is chosen: `action` is followed, or is where the best one is written (empty: nowhere)."""

    mode: int
    action: np.ndarray  # [s, w, q1]
    probability: np.ndarray  # [s, w, q1, a]


# Tuples are taken apart at the top of a function and the helpers take arrays: numba compiles that in half of the time.


@compiled(inline="always")
def _choose(mode, a, x, best, top, arg, action, probability, noise, clip, s, w0, n, q):
    """Take x_a into the running choice over a."""
    if mode == BEST:
        this = arg.dtype.type(a)
        if a == 0:
            for j in range(n):
                best[j] = x[j]
                arg[j] = this
        else:
            for j in range(n):
                better = x[j] > best[j]
                best[j] = x[j] if better else best[j]
                arg[j] = this if better else arg[j]
    elif mode == OPTIMISTIC:
        this = arg.dtype.type(a)
        shift = ((s * len(noise) + q) * 131) % SHIFTS
        if a == 0:
            for j in range(n):
                top[j] = -np.inf
        for j in range(n):
            y = min(x[j], clip)
            z = y + noise[a, shift + j]
            better = z > top[j]
            top[j] = z if better else top[j]
            best[j] = y if better else best[j]
            arg[j] = this if better else arg[j]
    elif mode == FOLLOW:
        for j in range(n):
            if action[s, w0 + j, q] == a:
                best[j] = x[j]
    else:
        if a == 0:
            for j in range(n):
                best[j] = 0.0
        for j in range(n):
            best[j] += probability[s, w0 + j, q, a] * x[j]


@compiled(inline="always")
def _choose_one(mode, j, x, n, action, probability, noise, clip, s, q, th, v_wait, waits):
    """The choice over all actions for one w = j, where x[a·n + j] holds x_a without the wait: (value, action)."""
    best, top, chosen = 0.0, -np.inf, 0
    shift = ((s * len(noise) + q) * 131) % SHIFTS
    for a in range(len(x) // n):
        y = x[a * n + j]
        if waits:
            y += (1.0 - th) * v_wait[s, a, j, q]
        if mode == BEST:
            if y > top:
                best, top, chosen = y, y, a
        elif mode == OPTIMISTIC:
            y = min(y, clip)
            z = y + noise[a, shift + j]
            if z > top:
                best, top, chosen = y, z, a
        elif mode == FOLLOW:
            if action[s, j, q] == a:
                best = y
        else:
            best += probability[s, j, q, a] * y
    return best, chosen


@compiled(inline="always")
def _expect(row, K, successor, probability, r, th, v_next, begin, end, paired, x):
    """x[j] = r + θ·Σ_k probability[row + k]·v_next[successor[row + k], begin + j], k < K, two successors at a time (`paired`: the first two as
    well); row: where the list begins."""
    n = end - begin
    p = th * probability[row]
    v = v_next[successor[row], begin:end]
    k = 1
    if paired and K > 1:
        p_second = th * probability[row + 1]
        v_second = v_next[successor[row + 1], begin:end]
        for j in range(n):
            x[j] = r + p * v[j] + p_second * v_second[j]
        k = 2
    else:
        for j in range(n):
            x[j] = r + p * v[j]
    while k + 1 < K:
        p = th * probability[row + k]
        p_second = th * probability[row + k + 1]
        v = v_next[successor[row + k], begin:end]
        v_second = v_next[successor[row + k + 1], begin:end]
        for j in range(n):
            x[j] += p * v[j] + p_second * v_second[j]
        k += 2
    if k < K:
        p = th * probability[row + k]
        v = v_next[successor[row + k], begin:end]
        for j in range(n):
            x[j] += p * v[j]


@compiled(inline="always")
def _add_spread(row, K, successor, probability, coefficient, v_next, begin, end, mean, square, x):
    """x[j] += coefficient·√Var_P(v_next[·, begin + j]); mean and square are scratch."""
    n = end - begin
    for j in range(n):
        mean[j] = 0.0
        square[j] = 0.0
    for k in range(K):
        p = probability[row + k]
        v = v_next[successor[row + k], begin:end]
        for j in range(n):
            mean[j] += p * v[j]
            square[j] += p * v[j] * v[j]
    for j in range(n):
        x[j] += coefficient * np.sqrt(max(square[j] - mean[j] * mean[j], 0.0))


@compiled(fastmath={"contract"})
def back_up(step, block, choice, s_from, s_to, w_from, w_to):
    """Fill the values of a block with a queue, s = s_from..s_to and w = w_from..w_to."""
    successor, probability, first, count, matrix, reward, theta, std_coefficient, noise, clip = step
    v_next, v_wait, value = block
    mode, action, mix = choice
    S, choices, W = v_next.shape
    A = value.shape[2]
    flat = v_next.reshape(S, choices * W)
    dense, varies, may_wait = len(matrix) > 0, len(std_coefficient) > 0, len(v_wait) > 0
    if mode == BEST and not may_wait:
        lists = (successor, probability, first, count)
        if W <= FEW and not dense:
            best_of_few(lists, reward, theta, v_next, value, action, s_from, s_to)
        else:
            best_of_many(lists, matrix, reward, theta, v_next, value, action, (s_from, s_to, w_from, w_to))
        return
    modes = np.full(2, mode)  # read anew for every s: else the compiler makes a copy of all loops for each mode
    s_reward, q_reward = reward.shape
    s_theta, q_theta = theta.shape
    tile = min(DENSE_TILE if dense else TILE, w_to - w_from)
    together = choices if tile == W and choices * W <= TILE else 1  # actions whose sums are one loop
    few = together == choices and tile <= FEW
    x, mean, square = np.empty(together * tile), np.empty(together * tile), np.empty(together * tile)
    top, bests, args, heads = np.empty(tile), np.empty((A, tile)), np.empty((A, tile), np.int64), np.arange(A)
    values, actions, no_row = value.reshape(value.size), action.reshape(action.size), np.int64(0)
    keep = len(action) > 0 and (mode in (BEST, OPTIMISTIC))
    columns, sums = room_for_columns(S, choices if dense else 0, tile), np.empty(ROWS * COLUMNS)
    products = np.empty((s_to - s_from) * A * choices * tile if dense else 0)
    for w0 in range(w_from, w_to, tile):
        w1 = min(w0 + tile, w_to)
        n = w1 - w0
        made = (s_to - s_from) * A if dense else 0
        product = products[: made * choices * n].reshape(made, choices * n)
        if dense:
            multiply(matrix[s_from * A : s_to * A], v_next, w0, n, columns, sums, product)
        for s in range(s_from, s_to):
            mode = modes[s & 1]
            for q in range(A):
                row, K = first[s * A + q], count[s * A + q]
                r = reward[min(s, s_reward - 1), min(q, q_reward - 1)]
                th = theta[min(s, s_theta - 1), min(q, q_theta - 1)]
                waits = may_wait and th < 1.0
                a = 0
                while a < choices:
                    begin, end = a * W + w0, a * W + w0 + together * n
                    if dense:
                        y = product[(s - s_from) * A + q, a * n : (a + together) * n]
                        for j in range(together * n):
                            x[j] = r + th * y[j]
                    else:
                        _expect(row, K, successor, probability, r, th, flat, begin, end, mode == BEST, x)
                    if varies and std_coefficient[s, q] > 0.0:
                        c = std_coefficient[s, q]
                        _add_spread(row, K, successor, probability, c, flat, begin, end, mean, square, x)
                    if few:
                        for j in range(n):
                            bests[q, j], args[q, j] = _choose_one(
                                mode, j, x, n, action, mix, noise, clip, s, q, th, v_wait, waits
                            )
                        break
                    for g in range(together):
                        z = x[g * n : (g + 1) * n]
                        if waits:
                            for j in range(n):
                                z[j] += (1.0 - th) * v_wait[s, a + g, w0 + j, q]
                        _choose(mode, a + g, z, bests[q], top, args[q], action, mix, noise, clip, s, w0, n, q)
                    a += together
            interleave(bests, heads, no_row, A, n, values, (s * W + w0) * A)
            if keep:
                interleave(args, heads, no_row, A, n, actions, (s * W + w0) * A)


@compiled
def back_up_now(step, block, choice, s_from, s_to):
    """Fill the values of a block with an empty queue, s = s_from..s_to: the action taken now moves the newest visible state."""
    successor, probability, first, count, matrix, reward, theta, std_coefficient, noise, clip = step
    v_next, v_wait, value = block
    mode, action, mix = choice
    S = len(value)
    A = len(count) // S
    dense, varies, waits = len(matrix) > 0, len(std_coefficient) > 0, len(v_wait) > 0
    if mode == BEST and not dense and not waits:
        best_now((successor, probability, first, count), reward, theta, v_next, value, action, s_from, s_to)
        return
    s_reward, q_reward = reward.shape
    s_theta, q_theta = theta.shape
    product = np.empty(((s_to - s_from) * A if dense else 0, 1))
    if dense:
        np.dot(matrix[s_from * A : s_to * A], v_next.reshape(S, 1), product)
    keep = len(action) > 0 and (mode in (BEST, OPTIMISTIC))
    for s in range(s_from, s_to):
        best, top, chosen = 0.0, -np.inf, 0
        for a in range(A):
            if mode == FOLLOW and a != action[s, 0, 0]:
                continue
            row = first[s * A + a]
            mean, square = 0.0, 0.0
            if dense:
                mean = product[(s - s_from) * A + a, 0]
            elif varies:
                for k in range(row, row + count[s * A + a]):
                    v = v_next[successor[k], 0, 0]
                    mean += probability[k] * v
                    square += probability[k] * v * v
            else:
                for k in range(row, row + count[s * A + a]):
                    mean += probability[k] * v_next[successor[k], 0, 0]
            th = theta[min(s, s_theta - 1), min(a, q_theta - 1)]
            x = reward[min(s, s_reward - 1), min(a, q_reward - 1)]
            x += th * mean
            if varies:
                x += std_coefficient[s, a] * np.sqrt(max(square - mean * mean, 0.0))
            if waits:
                x += (1.0 - th) * v_wait[s, a, 0, 0]
            if mode == MIX:
                best += mix[s, 0, 0, a] * x
            elif mode == OPTIMISTIC:
                x = min(x, clip)
                if x + noise[a, (s * 131) % SHIFTS] > top:
                    top = x + noise[a, (s * 131) % SHIFTS]
                    best, chosen = x, a
            elif x > top:
                best, top, chosen = x, x, a
        value[s, 0, 0] = best
        if keep:
            action[s, 0, 0] = chosen
