"""Blocks of the backward induction with many queues for each state, compiled: those of a long delay, and those with dense successors.

`oldlight.kernels.block` has the recursion, and calls `best_of_many` where the best action is taken and nothing waits; other blocks are its own. What
stands outside the maximum is done after it:

    value[s, w, q1] = reward[s, q1] + θ[s, q1]·max_a Σ_s2 P(s2|s, q1)·v_next[s2, a, w]

so that heads q1 of one state with the same successors and probabilities (*twins*) have one maximum, made once. All maxima are made by one pass
over w that takes up to five actions at a time, from two rows of v_next and their probabilities (`_best_of_sums`); where there are more than two successors
from sums that were made before, for a tile of w that stays in cache (`_best_of_rows`). Where transitions are a matrix, those are tiles of products
(`oldlight.kernels.products`).
"""

import math

import numpy as np

from oldlight.kernels.cache import borrowing, compiled
from oldlight.kernels.interleaving import interleave, interleave_scaled
from oldlight.kernels.products import COLUMNS, ROWS, aligned_room, pack, room_for_columns, rows_of_tile, tile_of_sums

_inner = borrowing(fastmath={"contract"})

TILE = 256  # w at a time
GROUP = 4  # panels of columns that all rows pass over before the next ones: what is written of a state is then as many times longer


@_inner
def _best_of_sums(source, i, p, i_second, p_second, w0, n, best, arg):
    """best[j] = max_a p·source[i, a, w0 + j] + p_second·source[i_second, a, w0 + j], and arg[j] the first a that reaches it."""
    w1, choices = w0 + n, source.shape[1]
    v, u = source[i, 0, w0:w1], source[i_second, 0, w0:w1]
    a = 1
    if choices >= 5:
        v1, v2, v3, v4 = source[i, 1, w0:w1], source[i, 2, w0:w1], source[i, 3, w0:w1], source[i, 4, w0:w1]
        u1, u2 = source[i_second, 1, w0:w1], source[i_second, 2, w0:w1]
        u3, u4 = source[i_second, 3, w0:w1], source[i_second, 4, w0:w1]
        for j in range(n):
            y, k = p * v[j] + p_second * u[j], 0
            z = p * v1[j] + p_second * u1[j]
            later = z > y
            y = z if later else y
            k = 1 if later else k
            z = p * v2[j] + p_second * u2[j]
            later = z > y
            y = z if later else y
            k = 2 if later else k
            z = p * v3[j] + p_second * u3[j]
            later = z > y
            y = z if later else y
            k = 3 if later else k
            z = p * v4[j] + p_second * u4[j]
            later = z > y
            best[j] = z if later else y
            arg[j] = 4 if later else k
        a = 5
    else:
        for j in range(n):
            best[j] = p * v[j] + p_second * u[j]
            arg[j] = 0
    while a + 1 < choices:
        v1, u1 = source[i, a, w0:w1], source[i_second, a, w0:w1]
        v2, u2 = source[i, a + 1, w0:w1], source[i_second, a + 1, w0:w1]
        for j in range(n):
            y, k = best[j], arg[j]
            z = p * v1[j] + p_second * u1[j]
            later = z > y
            y = z if later else y
            k = a if later else k
            z = p * v2[j] + p_second * u2[j]
            later = z > y
            best[j] = z if later else y
            arg[j] = a + 1 if later else k
        a += 2
    if a < choices:
        v1, u1 = source[i, a, w0:w1], source[i_second, a, w0:w1]
        for j in range(n):
            z = p * v1[j] + p_second * u1[j]
            later = z > best[j]
            best[j] = z if later else best[j]
            arg[j] = a if later else arg[j]


@_inner
def _best_of_rows(rows, n, best, arg):
    """best[j] = max_a rows[a, j], and arg[j] the first a that reaches it: five rows, then two at a time; the last stands for one that is missing."""
    last = len(rows) - 1
    x, x1, x2, x3, x4 = rows[0], rows[min(1, last)], rows[min(2, last)], rows[min(3, last)], rows[min(4, last)]
    for j in range(n):
        y, k = x[j], 0
        z = x1[j]
        later = z > y
        y = z if later else y
        k = 1 if later else k
        z = x2[j]
        later = z > y
        y = z if later else y
        k = 2 if later else k
        z = x3[j]
        later = z > y
        y = z if later else y
        k = 3 if later else k
        z = x4[j]
        later = z > y
        best[j] = z if later else y
        arg[j] = 4 if later else k
    for a in range(5, last + 1, 2):
        b = min(a + 1, last)
        x1, x2 = rows[a], rows[b]
        for j in range(n):
            y, k = best[j], arg[j]
            z = x1[j]
            later = z > y
            y = z if later else y
            k = a if later else k
            z = x2[j]
            later = z > y
            best[j] = z if later else y
            arg[j] = b if later else k


@_inner
def _add_up(successor, probability, begin, K, v_next, w0, n, x):
    """x[a, j] = Σ_k probability[begin + k]·v_next[successor[begin + k], a, w0 + j], k < K, for K ≥ 3."""
    w1, end = w0 + n, begin + K
    p, p1, p2 = probability[begin], probability[begin + 1], probability[begin + 2]
    i, i1, i2 = successor[begin], successor[begin + 1], successor[begin + 2]
    for a in range(v_next.shape[1]):
        v, v1, v2, to = v_next[i, a, w0:w1], v_next[i1, a, w0:w1], v_next[i2, a, w0:w1], x[a]
        for j in range(n):
            to[j] = p * v[j] + p1 * v1[j] + p2 * v2[j]
        for k in range(begin + 3, end - 1, 2):
            p3, p4 = probability[k], probability[k + 1]
            v, v1 = v_next[successor[k], a, w0:w1], v_next[successor[k + 1], a, w0:w1]
            for j in range(n):
                to[j] += p3 * v[j] + p4 * v1[j]
        if K % 2 == 0:
            p3, v = probability[end - 1], v_next[successor[end - 1], a, w0:w1]
            for j in range(n):
                to[j] += p3 * v[j]


@compiled
def _find_twins(lists, A, s_from, s_to, twin):
    """twin[(s − s_from)·A + q]: the first head of s with the successors and probabilities of q."""
    successor, probability, first, count = lists
    for s in range(s_from, s_to):
        for q in range(A):
            row, found = s * A + q, q
            for other in range(q):
                one, two = first[row], first[s * A + other]
                same, k = count[s * A + other] == count[row], 0
                while same and k < count[row]:
                    same = successor[one + k] == successor[two + k] and probability[one + k] == probability[two + k]
                    k += 1
                if same:
                    found = other
                    break
            twin[(s - s_from) * A + q] = found


@_inner
def _best_of_products(matrix, factors, v_next, part, scratch, value, action):
    """`best_of_many` where transitions are a matrix: a tile of sums for each action, the best of them, and where they belong; value and action flat. Tiles have
    `ROWS` rows and a state has A: as many states are found before they are written as have whole tiles; places[row]: where the row of a state is then."""
    s_from, s_to, w_from, w_to = part
    r, th = factors
    columns, sums, best, arg, places = scratch
    choices, W = v_next.shape[1:]
    A, size = len(r) // (s_to - s_from), ROWS * COLUMNS
    last, tile, states = s_to * A - 1, len(columns) * COLUMNS, len(best) // A
    for w in range(w_from, w_to, tile):
        pack(v_next, w, min(tile, w_to - w), columns)
        for g in range(w, min(w + tile, w_to), GROUP * COLUMNS):
            for s0 in range(s_from, s_to, states):
                s1 = min(s0 + states, s_to)
                for w0 in range(g, min(g + GROUP * COLUMNS, w + tile, w_to), COLUMNS):
                    n, packed = min(COLUMNS, w_to - w0), columns[(w0 - w) // COLUMNS]
                    for i in range(0, (s1 - s0) * A, ROWS):
                        rows, found = rows_of_tile(s0 * A + i, last), best[i : i + ROWS].reshape(size)
                        if choices == 1:
                            tile_of_sums(matrix, rows, packed[0], found)
                            continue
                        for a in range(choices):
                            tile_of_sums(matrix, rows, packed[a], sums[a])
                        _best_of_rows(sums, size, found, arg[i : i + ROWS].reshape(size))
                    for s in range(s0, s1):
                        here, to = (s - s_from) * A, (s * W + w0) * A
                        interleave_scaled(best, places, here, A, n, value, to, th, r)
                        if len(action) > 0:  # where there is one choice, 0: `arg` was never written
                            interleave(arg, places, here, A, n, action, to)


@compiled
def _room_for_products(S, choices, A, part):
    """Scratch for `_best_of_products`."""
    s_from, s_to, w_from, w_to = part
    states = ROWS // math.gcd(ROWS, A)
    rows, places = states * A, np.arange((s_to - s_from) * A) % (states * A)
    best, sums = aligned_room(rows * COLUMNS), aligned_room(choices * ROWS * COLUMNS)
    room = room_for_columns(S, choices, w_to - w_from), sums.reshape(choices, ROWS * COLUMNS)
    return *room, best.reshape(rows, COLUMNS), np.zeros((rows, COLUMNS), np.int64), places


@_inner
def _fill_factors(reward, theta, s_from, A, r, th):
    """What is added to the best sum of each state and head, from s_from on, and what it is multiplied by; one s or q1 may stand for all of them."""
    for i in range(len(r)):
        s, q = s_from + i // A, i % A
        r[i] = reward[min(s, len(reward) - 1), min(q, reward.shape[1] - 1)]
        th[i] = theta[min(s, len(theta) - 1), min(q, theta.shape[1] - 1)]


@compiled(fastmath={"contract"})
def best_of_many(lists, matrix, reward, theta, v_next, value, action, part):
    """`back_up` where the best is taken and nothing waits, part = (s_from, s_to, w_from, w_to)."""
    successor, probability, first, count = lists
    s_from, s_to, w_from, w_to = part
    S, choices, _ = v_next.shape
    A, rows, keep = value.shape[2], (s_to - s_from) * value.shape[2], len(action) > 0
    values, actions, r, th = value.reshape(value.size), action.reshape(action.size), np.empty(rows), np.empty(rows)
    _fill_factors(reward, theta, s_from, A, r, th)
    if len(matrix) > 0:
        scratch = _room_for_products(S, choices, A, part)
        _best_of_products(matrix, (r, th), v_next, part, scratch, values, actions)
        return
    twin = np.empty(rows, np.int64)
    _find_twins(lists, A, s_from, s_to, twin)
    W, tile = value.shape[1], min(TILE, w_to - w_from)
    bests, args, x = np.empty((A, tile)), np.empty((A, tile), np.int64), np.empty((choices, tile))
    for w0 in range(w_from, w_to, tile):
        n = min(tile, w_to - w0)
        for s in range(s_from, s_to):
            here, to = (s - s_from) * A, (s * W + w0) * A
            for q in range(A):
                if twin[here + q] < q:
                    continue
                best, arg = bests[q], args[q]
                row, K = first[s * A + q], count[s * A + q]
                if K > 2:
                    _add_up(successor, probability, row, K, v_next, w0, n, x)
                    _best_of_rows(x, n, best, arg)
                    continue
                i, p, i_second, p_second = np.int64(successor[row]), probability[row], np.int64(successor[row]), 0.0
                if K > 1:
                    i_second, p_second = np.int64(successor[row + 1]), probability[row + 1]
                _best_of_sums(v_next, i, p, i_second, p_second, w0, n, best, arg)
            interleave_scaled(bests, twin, here, A, n, values, to, th, r)
            if keep:
                interleave(args, twin, here, A, n, actions, to)
