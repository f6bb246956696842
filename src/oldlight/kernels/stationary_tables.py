"""Anderson's extrapolation of a fixed point, and the sweeps of one small table for ever in one call; `oldlight.planning.stationary_tables` has both.

With the residuals g_i = f_i − x_i of the last pairs (x_i, f_i = F x_i), each less its mean, the proposal is the affine combination of the f_i whose residual
is smallest. A proposal that does not bring the spread down within a few turns is dropped for the last f that did.
"""

from typing import NamedTuple

import numpy as np

from oldlight.kernels.block import back_up, back_up_now
from oldlight.kernels.cache import compiled
from oldlight.kernels.copying import copy_into

MEMORY = 5  # pairs that an extrapolation uses beside the newest
PATIENCE = 4  # turns after which an extrapolation must have brought the spread down
LARGEST = 1e3  # a combination with larger weights is not trusted
PAIRS, NEWEST, SINCE, KEPT = range(4)  # places of History.count


class History(NamedTuple):
    """The last pairs, a ring of rows xs[i] and fs[i]; safe: the f of the least spread; least[0]: that spread."""

    xs: np.ndarray
    fs: np.ndarray
    safe: np.ndarray
    count: np.ndarray
    least: np.ndarray


@compiled(error_model="numpy")
def _weights(history, pairs, newest, out):
    """The weights of the older pairs, out[i] for row i; False: none that can be trusted."""
    xs, fs = history.xs, history.fs
    N, M = xs.shape[1], MEMORY + 1
    mean, gram, right = np.zeros(M), np.zeros((M, M)), np.zeros(M)
    for i in range(pairs):
        for k in range(N):
            mean[i] += fs[i, k] - xs[i, k]
        mean[i] /= N
    here = np.zeros(M)
    for k in range(N):
        last = fs[newest, k] - xs[newest, k] - mean[newest]
        for i in range(pairs):
            here[i] = fs[i, k] - xs[i, k] - mean[i] - last
        for i in range(pairs):
            right[i] -= here[i] * last
            for j in range(i + 1):
                gram[i, j] += here[i] * here[j]
    trace = 0.0
    for i in range(pairs):
        trace += gram[i, i]
        for j in range(i):
            gram[j, i] = gram[i, j]
    for i in range(pairs):
        gram[i, i] += 1e-12 * trace + 1e-300
    for i in range(pairs):  # positive definite: no pivots; the newest row is 0 but for its diagonal
        for j in range(i + 1, pairs):
            share = gram[j, i] / gram[i, i]
            for k in range(i, pairs):
                gram[j, k] -= share * gram[i, k]
            right[j] -= share * right[i]
    total = 0.0
    for i in range(pairs - 1, -1, -1):
        x = right[i]
        for j in range(i + 1, pairs):
            x -= gram[i, j] * out[j]
        out[i] = x / gram[i, i]
        total += abs(out[i])
    return total <= LARGEST  # False for NaN


@compiled(error_model="numpy")
def propose(history, x, fx, spread, out):
    """The next x, in `out`, after the pair (x, fx) whose spread was found to be `spread`; out may be x."""
    count, N = history.count, len(x)
    if spread < history.least[0]:
        history.least[0], count[SINCE], count[KEPT] = spread, 0, 1
        copy_into(history.safe, fx)
    else:
        count[SINCE] += 1
    if count[SINCE] >= PATIENCE and count[KEPT]:
        history.least[0] = np.inf
        count[:] = 0
        copy_into(out, history.safe)
        return
    newest = 0 if count[PAIRS] == 0 else (count[NEWEST] + 1) % len(history.xs)
    count[NEWEST], count[PAIRS] = newest, min(count[PAIRS] + 1, len(history.xs))
    copy_into(history.xs[newest], x)
    copy_into(history.fs[newest], fx)
    weights = np.zeros(MEMORY + 1)
    pairs = count[PAIRS]
    if pairs < 3 or not _weights(history, pairs, newest, weights):
        copy_into(out, fx)
        return
    for k in range(N):
        value = fx[k]
        for i in range(pairs):
            value += weights[i] * (history.fs[i, k] - fx[k])
        out[k] = value


@compiled(error_model="numpy")
def settle(step, blocks, choice, flat, history, rule, most):
    """Sweep one block that leads to itself until max − min of Tx − x is small enough, or `most` times: how often. x, the block's own next values, is
    changed in place; it is left where it was found to be close enough.

    flat = (x, y), the two tables of `blocks` as vectors; rule = (damping, whether constants are taken off, the spread that is wanted)."""
    x, y = flat
    damping, relative, wanted = rule
    S, W = blocks.value.shape[0], blocks.value.shape[1]
    now = blocks.v_next.shape[1] == 1 and blocks.value.shape[2] == 1
    for sweep in range(most):
        if now:
            back_up_now(step, blocks, choice, np.int64(0), S)
        else:
            back_up(step, blocks, choice, np.int64(0), S, np.int64(0), W)
        low, high = np.inf, -np.inf
        for k in range(len(x)):
            change = y[k] - x[k]
            low, high = min(low, change), max(high, change)
            y[k] = x[k] + damping * change
        if high - low <= wanted:
            return sweep + 1
        propose(history, x, y, high - low, x)
        if relative:
            first = x[0]
            for k in range(len(x)):
                x[k] -= first
    return most
