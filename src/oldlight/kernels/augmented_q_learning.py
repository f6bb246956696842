"""The compiled loop of Q-learning on the augmented table; `learners.augmented_q_learning` says what it computes, and
`kernels.augmented_ucbvi` what Shape, Cells, Rules and moves are."""

from typing import Any, NamedTuple

import numpy as np

from oldlight.kernels.augmented_ucbvi import NODE, ROOT, begin, last, pick, restricted
from oldlight.kernels.cache import compiled


class Values(NamedTuple):
    """visits[i, a]; q[h, i, a] when pooled, otherwise q[0, i, a]; left[i]: what is left after the last action."""

    visits: Any
    q: Any
    left: Any


class Moves(NamedTuple):
    """The first n moves of an episode, its path, and space for the count of each move."""

    moves: Any
    n: int
    path: Any
    times: Any


@compiled
def _left(shape, cells, rules, left, i):
    """The value of a cell with a state and the queue that is left after the last action."""
    H, A = len(shape.root), rules.rewards.shape[2]
    j, local = shape.length[cells.group[i]], cells.local[i]
    if j == 1:
        return rules.rewards[H - 1, local // A, local % A]
    return min(rules.remaining[max(H - j, 0)], left[i])


@compiled
def _weigh(shape, cells, rules, values, h, i, x):
    """Fills x with the values of the actions at cell i and time h, and returns the largest."""
    g = cells.group[i]
    H, m, wait = len(shape.root), shape.length[g], shape.wait[g]
    if shape.kind[g] == NODE and h == H - 1:
        last(shape, cells, rules, values.left, m, wait, cells.local[i], x)
    else:
        cap = rules.remaining[max(h - m, 0) + (1 if wait > 0 and shape.kind[g] == NODE else 0)]
        row = values.q[h if rules.pooled else 0]
        for a in range(len(x)):
            x[a] = cap if values.visits[i, a] == 0 else min(cap, row[i, a])
    restricted(rules, h, x)
    return x.max()


@compiled
def _take(shape, cells, rules, values, h, i, a, j, times, bonus, x):
    """One move from cell i to cell j, taken as one of time h: Q ← (1 − α)·Q + α·(r + V + b)."""
    g = cells.group[i]
    H, A, m, wait, t = len(shape.root), len(x), shape.length[g], shape.wait[g], h - shape.length[g]
    row = values.q[h if rules.pooled else 0]
    r = 0.0
    if shape.kind[g] == ROOT:
        known = h < H - 1 and (h + 1 >= shape.node.shape[1] or shape.node[h + 1, h + 1, 0] < 0)
    else:
        known = shape.node[h + 1, m, 0] < 0
        if wait == 0 and t >= 0:
            local = cells.local[i]
            r = rules.rewards[t, local // shape.powers[m], a if m == 0 else local % A]
    if h == H - 1:
        v = _left(shape, cells, rules, values.left, j)
    else:
        v = _weigh(shape, cells, rules, values, h + 1, j, x)
    if known:
        row[i, a] = r + v
    else:
        rate = (H + 1.0) / (H + times)
        row[i, a] += rate * (r + v + bonus / np.sqrt(times) - row[i, a])


@compiled
def update(shape, cells, rules, values, episode, bonus, rng, table):
    """Take the moves of one episode into the values, last time first, and write the policy where it can have changed.

    bonus: c·√(H³·ι). When pooled, every move is one of every time at which its cell can stand.
    """
    H, _, A = rules.rewards.shape
    visits, left = values.visits, values.left
    moves, n, path, times = episode
    x = np.empty(A)
    begin = n - (H - 1)  # moves begin + k: of time H − 2 − k
    for e in range(n):
        visits[moves[e, 0], moves[e, 1]] += 1
        times[e] = visits[moves[e, 0], moves[e, 1]]
    for e in range(begin):
        i, j = moves[e, 0], moves[e, 2]
        g = cells.group[i]
        if shape.kind[g] == ROOT:
            _take(shape, cells, rules, values, H - 1, i, moves[e, 1], j, times[e], bonus, x)
            continue
        t = H - shape.length[g]
        r = rules.rewards[t, cells.local[i] // shape.powers[H - t], cells.local[i] % A] if t >= 0 else 0.0
        rate = (H + 1.0) / (H + times[e])
        left[i] += rate * (r + _left(shape, cells, rules, left, j) + bonus / np.sqrt(times[e]) - left[i])
    for h in range(H - 2, -1, -1):
        for e in range(begin, n):
            i = moves[e, 0]
            g = cells.group[i]
            mine = h == H - 2 - (e - begin)
            if mine or (rules.pooled and shape.kind[g] == NODE and shape.node[h, shape.length[g], shape.wait[g]] == g):
                _take(shape, cells, rules, values, h, i, moves[e, 1], moves[e, 2], times[e], bonus, x)
    for h in range(H):
        i = path[h]
        g = cells.group[i]
        if shape.kind[g] == ROOT:
            _weigh(shape, cells, rules, values, h, i, x)
            table[rules.root[h] + cells.local[i]] = pick(x, rng)[1]
            continue
        for u in range(H if rules.pooled else 1):
            hh = u if rules.pooled else h
            if shape.node[hh, shape.length[g], shape.wait[g]] == g:
                _weigh(shape, cells, rules, values, hh, i, x)
                table[rules.offset[hh, shape.length[g], shape.wait[g]] + cells.local[i]] = pick(x, rng)[1]
    for e in range(begin):  # the last action, wherever the queue that is left begins the same way
        i = moves[e, 0]
        if shape.kind[cells.group[i]] == ROOT:
            continue
        m = shape.length[cells.group[i]] - 1
        if m >= shape.node.shape[1]:
            continue
        s, code = cells.local[i] // shape.powers[m + 1], cells.local[i] % shape.powers[m]
        for wait in range(m + 1):
            g = shape.node[H - 1, m, wait]
            k = cells.number[shape.base[g] + s * shape.powers[m] + code] if g >= 0 else -1
            if k >= 0:
                _weigh(shape, cells, rules, values, H - 1, k, x)
                table[rules.offset[H - 1, m, wait] + cells.local[k]] = pick(x, rng)[1]


@compiled
def start_value(shape, cells, rules, values, now):
    """The value of time 0; `now` is space for one value per cell."""
    x = np.empty(rules.rewards.shape[2])
    for m in range(shape.node.shape[1]):
        g = shape.node[0, m, 0]
        i = cells.newest[g] if g >= 0 else -1
        while i >= 0:
            now[i] = _weigh(shape, cells, rules, values, np.int64(0), i, x)
            i = cells.sibling[i]
    if shape.root[0] >= 0:
        i = cells.newest[shape.root[0]]
        if i >= 0:
            now[i] = _weigh(shape, cells, rules, values, np.int64(0), i, x)
    return begin(shape, cells, rules, now)
