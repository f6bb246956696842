"""The two compiled loops of planning under delay; `oldlight.planning.delay` says what they compute.

A block is V[s, code] with code = q1 + A·w, w the code of q2..qm. The successor block after an arrival is
V_next[s2, a, w], after no arrival V_wait[s, a, w, q1] (see `oldlight.model.information` for the codes). For each (s, q1)

    x_a[w] = base[s, q1] + θ[s, q1]·Σ_s2 P(s2|s, q1)·V_next[s2, a, w] + (1 − θ[s, q1])·V_wait[s, a, w, q1]

and out[s, w, q1] is the maximum over a (mode MAX), the entry a policy chose (FOLLOW) or their mean (MIX). For a learner (mode
OPTIMISTIC) x_a gains spread[s, q1]·√Var_P(V_next[·, a, w]), is clipped at `clip`, and ties are broken by `noise`, as small as
rounding errors; noise[a, :] is read from a place that depends on (s, q1). Vectors run
along w, so every inner loop is long and contiguous; a tile of w is small enough that the rows of V_next that it reads
stay in cache while all (s, q1) pass over them.
"""

import numba as nb
import numpy as np

MAX, FOLLOW, MIX, OPTIMISTIC = 0, 1, 2, 3
TILE = 512
SHIFTS = 64  # places where a row of noise may begin
NO_NOISE = np.zeros((1, 1))


@nb.njit(nogil=True, cache=True, inline="always")
def _choose(a, x, best, top, arg, given, mix, noise, clip, mode, s, w0, n, q, shift):
    """Take x_a into the running choice over a."""
    if mode == MAX:
        if a == 0:
            for j in range(n):
                best[j] = x[j]
                arg[j] = 0
        else:
            for j in range(n):
                better = x[j] > best[j]
                best[j] = x[j] if better else best[j]
                arg[j] = a if better else arg[j]
    elif mode == OPTIMISTIC:
        if a == 0:
            for j in range(n):
                top[j] = -np.inf
        for j in range(n):
            y = min(x[j], clip)
            z = y + noise[a, shift + j]
            better = z > top[j]
            top[j] = z if better else top[j]
            best[j] = y if better else best[j]
            arg[j] = a if better else arg[j]
    elif mode == FOLLOW:
        for j in range(n):
            if given[s, w0 + j, q] == a:
                best[j] = x[j]
    else:
        if a == 0:
            for j in range(n):
                best[j] = 0.0
        for j in range(n):
            best[j] += mix[s, w0 + j, q, a] * x[j]


@nb.njit(nogil=True, cache=True, inline="always")
def _interleave(rows, n, to):
    """to[j·A + q] = rows[q, j]."""
    A = len(rows)
    for q in range(A):
        row = rows[q]
        k = q
        for j in range(n):
            to[k] = row[j]
            k += A


@nb.njit(nogil=True, cache=True, fastmath={"contract"})
def backup_best(index, weight, count, base, theta, v_next, v_wait, waiting, keep, w_from, w_to, out, table):
    """The best action, successors from lists: index/weight[s·A+q1, k], count[s·A+q1]; tiles of w in w_from..w_to."""
    S, nA, _ = v_next.shape
    A = base.shape[1]
    x = np.empty(TILE)
    bests = np.empty((A, TILE))
    args = np.empty((A, TILE), table.dtype)
    for w0 in range(w_from, w_to, TILE):
        w1 = min(w0 + TILE, w_to)
        n = w1 - w0
        for s in range(S):
            for q in range(A):
                row = s * A + q
                K = count[row]
                th = theta[s, q]
                r = base[s, q]
                best = bests[q]
                arg = args[q]
                i = index[row, 0]
                p = th * weight[row, 0]
                i2 = index[row, 1] if K > 1 else i
                p2 = th * weight[row, 1] if K > 1 else 0.0
                waits = waiting and th < 1.0
                a = 0
                if K <= 2 and not waits:  # the common case: one sweep for the first action, one for each two more
                    v = v_next[i, 0, w0:w1]
                    v2 = v_next[i2, 0, w0:w1]
                    for j in range(n):
                        best[j] = r + p * v[j] + p2 * v2[j]
                        arg[j] = 0
                    a = 1
                    while a + 1 < nA:
                        v = v_next[i, a, w0:w1]
                        v2 = v_next[i2, a, w0:w1]
                        u = v_next[i, a + 1, w0:w1]
                        u2 = v_next[i2, a + 1, w0:w1]
                        one = args.dtype.type(a)
                        two = args.dtype.type(a + 1)
                        for j in range(n):
                            y = r + p * v[j] + p2 * v2[j]
                            z = r + p * u[j] + p2 * u2[j]
                            later = z > y
                            y = z if later else y
                            which = two if later else one
                            better = y > best[j]
                            best[j] = y if better else best[j]
                            arg[j] = which if better else arg[j]
                        a += 2
                while a < nA:
                    v = v_next[i, a, w0:w1]
                    v2 = v_next[i2, a, w0:w1]
                    for j in range(n):
                        x[j] = r + p * v[j] + p2 * v2[j]
                    for k in range(2, K - 1, 2):
                        p3 = th * weight[row, k]
                        p4 = th * weight[row, k + 1]
                        v3 = v_next[index[row, k], a, w0:w1]
                        v4 = v_next[index[row, k + 1], a, w0:w1]
                        for j in range(n):
                            x[j] += p3 * v3[j] + p4 * v4[j]
                    if K > 2 and K % 2 == 1:
                        p3 = th * weight[row, K - 1]
                        v3 = v_next[index[row, K - 1], a, w0:w1]
                        for j in range(n):
                            x[j] += p3 * v3[j]
                    if waits:
                        for j in range(n):
                            x[j] += (1.0 - th) * v_wait[s, a, w0 + j, q]
                    this = args.dtype.type(a)
                    if a == 0:
                        for j in range(n):
                            best[j] = x[j]
                            arg[j] = this
                    else:
                        for j in range(n):
                            better = x[j] > best[j]
                            best[j] = x[j] if better else best[j]
                            arg[j] = this if better else arg[j]
                    a += 1
            _interleave(bests, n, out[s, w0:w1].reshape(n * A))
            if keep:
                _interleave(args, n, table[s, w0:w1].reshape(n * A))


@nb.njit(nogil=True, cache=True, fastmath={"contract"})
def backup_sparse(index, weight, count, base, theta, spread, clip, noise, v_next, v_wait, waiting, mode, given, mix, keep,
                  w_from, w_to, out, table):  # fmt: skip
    """Successors from lists: index/weight[s·A+q1, k], count[s·A+q1]; tiles of w in w_from..w_to."""
    S, nA, _ = v_next.shape
    A = base.shape[1]
    x = np.empty(TILE)
    y = np.empty(TILE)
    z = np.empty(TILE)
    best = np.empty(TILE)
    top = np.empty(TILE)
    arg = np.empty(TILE, np.int64)
    for w0 in range(w_from, w_to, TILE):
        w1 = min(w0 + TILE, w_to)
        n = w1 - w0
        for s in range(S):
            for q in range(A):
                row = s * A + q
                th = theta[s, q]
                r = base[s, q]
                varies = len(spread) > 0 and spread[s, q] > 0.0
                for a in range(nA):
                    p = th * weight[row, 0]
                    v = v_next[index[row, 0], a, w0:w1]
                    for j in range(n):
                        x[j] = r + p * v[j]
                    k = 1
                    while k + 1 < count[row]:
                        p = th * weight[row, k]
                        p2 = th * weight[row, k + 1]
                        v = v_next[index[row, k], a, w0:w1]
                        v2 = v_next[index[row, k + 1], a, w0:w1]
                        for j in range(n):
                            x[j] += p * v[j] + p2 * v2[j]
                        k += 2
                    if k < count[row]:
                        p = th * weight[row, k]
                        v = v_next[index[row, k], a, w0:w1]
                        for j in range(n):
                            x[j] += p * v[j]
                    if varies:
                        for j in range(n):
                            y[j] = 0.0
                            z[j] = 0.0
                        for k in range(count[row]):
                            v = v_next[index[row, k], a, w0:w1]
                            for j in range(n):
                                z[j] += weight[row, k] * v[j]
                                y[j] += weight[row, k] * v[j] * v[j]
                        for j in range(n):
                            x[j] += spread[s, q] * np.sqrt(max(y[j] - z[j] * z[j], 0.0))
                    if waiting and th < 1.0:
                        for j in range(n):
                            x[j] += (1.0 - th) * v_wait[s, a, w0 + j, q]
                    _choose(a, x, best, top, arg, given, mix, noise, clip, mode, s, w0, n, q, (row * 131) % SHIFTS)
                for j in range(n):
                    out[s, w0 + j, q] = best[j]
                if keep:
                    for j in range(n):
                        table[s, w0 + j, q] = arg[j]


@nb.njit(nogil=True, cache=True, fastmath={"contract"})
def backup_dense(product, base, theta, v_wait, waiting, mode, given, mix, keep, w0, out, table):
    """The same for one tile of w whose Σ_s2 P·V_next is ready: product[a, s·A+q1, j]."""
    nA, _, n = product.shape
    S, A = base.shape
    x = np.empty(n)
    top = np.empty(n)
    bests = np.empty((A, n))
    args = np.empty((A, n), table.dtype)
    for s in range(S):
        for q in range(A):
            th = theta[s, q]
            r = base[s, q]
            best = bests[q]
            arg = args[q]
            waits = waiting and th < 1.0
            for a in range(nA):
                y = product[a, s * A + q]
                if mode == MAX and a > 0 and not waits:
                    this = args.dtype.type(a)
                    for j in range(n):
                        z = r + th * y[j]
                        better = z > best[j]
                        best[j] = z if better else best[j]
                        arg[j] = this if better else arg[j]
                    continue
                for j in range(n):
                    x[j] = r + th * y[j]
                if waits:
                    for j in range(n):
                        x[j] += (1.0 - th) * v_wait[s, a, w0 + j, q]
                _choose(a, x, best, top, arg, given, mix, NO_NOISE, np.inf, mode, s, w0, n, q, 0)
        _interleave(bests, n, out[s, w0 : w0 + n].reshape(n * A))
        if keep:
            _interleave(args, n, table[s, w0 : w0 + n].reshape(n * A))
