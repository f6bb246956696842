"""Blocks of the backward induction with many queues for each state, compiled: those of a long delay, and those with dense successors.

`oldlight.kernels.block` has the recursion, and calls `best_of_many` where the best action is taken and nothing waits; other blocks are its own. What
stands outside the maximum is done after it:

    value[s, w, q1] = reward[s, q1] + θ[s, q1]·max_a Σ_s2 P(s2|s, q1)·v_next[s2, a, w]

so that heads q1 of one state with the same successors and probabilities (*twins*) have one maximum, made once. All maxima are made by one pass
over w that takes up to five actions at a time, from two rows of v_next and their probabilities (`_best_of_sums`); where there are more than two successors
from sums that were made before, for a tile of w that stays in cache (`_best_of_rows`). Where transitions are a matrix, those are tiles of products
(`oldlight.kernels.products`).
"""

import numpy as np

from oldlight.kernels.cache import borrowing, compiled
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
def _interleave(rows, which, scale, added, n, to):
    """to[j·A + q] = added[q] + scale[q]·rows[which[q], j], five q at a time while there are as many, then one."""
    A = len(which)
    q = 0
    while q + 4 < A:
        row, row1, row2 = rows[which[q]], rows[which[q + 1]], rows[which[q + 2]]
        row3, row4 = rows[which[q + 3]], rows[which[q + 4]]
        r, r1, r2, r3, r4 = added[q], added[q + 1], added[q + 2], added[q + 3], added[q + 4]
        th, th1, th2, th3, th4 = scale[q], scale[q + 1], scale[q + 2], scale[q + 3], scale[q + 4]
        k = q
        for j in range(n):
            to[k] = r + th * row[j]
            to[k + 1] = r1 + th1 * row1[j]
            to[k + 2] = r2 + th2 * row2[j]
            to[k + 3] = r3 + th3 * row3[j]
            to[k + 4] = r4 + th4 * row4[j]
            k += A
        q += 5
    while q < A:
        row, th, r, k = rows[which[q]], scale[q], added[q], q
        for j in range(n):
            to[k] = r + th * row[j]
            k += A
        q += 1


@_inner
def _interleave_actions(rows, which, n, to):
    """to[j·A + q] = rows[which[q], j], five q at a time while there are as many, then one."""
    A = len(which)
    q = 0
    while q + 4 < A:
        row, row1, row2 = rows[which[q]], rows[which[q + 1]], rows[which[q + 2]]
        row3, row4 = rows[which[q + 3]], rows[which[q + 4]]
        k = q
        for j in range(n):
            to[k] = row[j]
            to[k + 1] = row1[j]
            to[k + 2] = row2[j]
            to[k + 3] = row3[j]
            to[k + 4] = row4[j]
            k += A
        q += 5
    while q < A:
        row, k = rows[which[q]], q
        for j in range(n):
            to[k] = row[j]
            k += A
        q += 1


@_inner
def _best_of_products(matrix, reward, theta, v_next, part, scratch, value, action):
    """`best_of_many` where transitions are a matrix: a tile of sums for each action, the best of them, and where they belong; value and action flat."""
    s_from, s_to, w_from, w_to = part
    columns, sums, best, arg = scratch
    choices, W = v_next.shape[1:]
    A, last = len(matrix) // len(v_next), s_to * (len(matrix) // len(v_next)) - 1
    tile = len(columns) * COLUMNS
    for w in range(w_from, w_to, tile):
        pack(v_next, w, min(tile, w_to - w), columns)
        for g in range(w, min(w + tile, w_to), GROUP * COLUMNS):
            for row in range(s_from * A, last + 1, ROWS):
                for w0 in range(g, min(g + GROUP * COLUMNS, w + tile, w_to), COLUMNS):
                    n, packed = min(COLUMNS, w_to - w0), columns[(w0 - w) // COLUMNS]
                    for a in range(choices):
                        tile_of_sums(matrix, rows_of_tile(row, last), packed[a], sums[a])
                    _best_of_rows(sums, ROWS * COLUMNS, best, arg)
                    for i in range(min(ROWS, last + 1 - row)):
                        s, q = (row + i) // A, (row + i) % A
                        r = reward[min(s, len(reward) - 1), min(q, reward.shape[1] - 1)]
                        th = theta[min(s, len(theta) - 1), min(q, theta.shape[1] - 1)]
                        to = np.uint64((s * W + w0) * A + q)
                        _spread(best, i * COLUMNS, n, r, th, A, to, value)
                        if len(action) > 0:
                            _spread_actions(arg, i * COLUMNS, n, A, to, action)


@_inner
def _spread(best, first, n, r, th, A, to, value):
    """value[to + j·A] = r + th·best[first + j], j < n."""
    for j in range(np.uint64(first), np.uint64(first + n)):
        value[to] = r + th * best[j]
        to += np.uint64(A)


@_inner
def _spread_actions(arg, first, n, A, to, action):
    """action[to + j·A] = arg[first + j], j < n."""
    for j in range(np.uint64(first), np.uint64(first + n)):
        action[to] = arg[j]
        to += np.uint64(A)


@compiled(fastmath={"contract"})
def best_of_many(lists, matrix, reward, theta, v_next, value, action, part):
    """`back_up` where the best is taken and nothing waits, part = (s_from, s_to, w_from, w_to)."""
    successor, probability, first, count = lists
    s_from, s_to, w_from, w_to = part
    S, choices, _ = v_next.shape
    if len(matrix) > 0:
        columns, sums = room_for_columns(S, choices, w_to - w_from), aligned_room(choices * ROWS * COLUMNS)
        best, arg = aligned_room(ROWS * COLUMNS), np.empty(ROWS * COLUMNS, np.int64)
        scratch = (columns, sums.reshape(choices, ROWS * COLUMNS), best, arg)
        flat = value.reshape(value.size), action.reshape(action.size)
        _best_of_products(matrix, reward, theta, v_next, part, scratch, *flat)
        return
    A, rows, keep = value.shape[2], (s_to - s_from) * value.shape[2], len(action) > 0
    s_reward, q_reward = reward.shape
    s_theta, q_theta = theta.shape
    twin = np.empty(rows, np.int64)
    _find_twins(lists, A, s_from, s_to, twin)
    tile = min(TILE, w_to - w_from)
    bests, args = np.empty((A, tile)), np.empty((A, tile), np.int64)
    r, th, x = np.empty(A), np.empty(A), np.empty((choices, tile))
    for w0 in range(w_from, w_to, tile):
        n = min(tile, w_to - w0)
        for s in range(s_from, s_to):
            here = (s - s_from) * A
            for q in range(A):
                r[q] = reward[min(s, s_reward - 1), min(q, q_reward - 1)]
                th[q] = theta[min(s, s_theta - 1), min(q, q_theta - 1)]
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
            which = twin[here : here + A]
            _interleave(bests, which, th, r, n, value[s, w0 : w0 + n].reshape(n * A))
            if keep:
                _interleave_actions(args, which, n, action[s, w0 : w0 + n].reshape(n * A))
