"""What one step of lookahead says of the actions at a law: the *outlook* behind the search along blackouts (`oldlight.kernels.settling`).

For each action the outlook has what is earned now and shown next, b·r + b'·C_c, from below and above, and then for every tick e that shows nothing and
every next action a2 the mean of the corners' bounds, Σ_s b'(s)·Q⁺_{c_e}[s, q', a2]. All of it is linear in b. With D = 0 it is b·`ahead`, a table
that is made when the corners of the next time are settled: one product of matrix and law for all actions, without the next law b'. Otherwise, or where that table is
too large, it is sums over b'.
"""

import numpy as np

from oldlight.kernels.cache import borrowing
from oldlight.kernels.products import COLUMNS, ROWS, mean_of_rows, rows_of_tile, tile_of_sums

GAIN_LOW, GAIN_UP, SUMS = range(3)  # of one action: what is earned and shown, from below and above; then the sums
NO = -np.inf
_inner = borrowing(error_model="numpy", fastmath={"contract", "reassoc"})
_short = borrowing(error_model="numpy", fastmath={"contract", "reassoc"}, forceinline=True)


@_short
def pushed(process, t, b, support, n, q, after, after_support, before):
    """after = b·P_t(q), which held a law of `before` places: (its places, b·r_t(q))."""
    S, A = process.sizes[0], process.sizes[1]
    now, reward_step = min(max(t, 0), len(process.index) - 1), min(max(t, 0), len(process.rewards) - 1)
    total, m = 0.0, 0
    if t >= 0:
        reward = process.rewards[reward_step]
        for k in range(n):
            total += b[support[k]] * reward[support[k], q]
    if process.full[now]:
        mean_of_rows(process.weight[now], q, A, b, support, n, after)
    else:
        for k in range(before):
            after[after_support[k]] = 0.0
        index, weight, count = process.index[now], process.weight[now], process.count[now]
        if 4 * n * index.shape[1] < S:
            for j in range(n):
                p, line = b[support[j]], support[j] * A + q
                for k in range(count[line]):
                    s2, x = index[line, k], p * weight[line, k]
                    if x > 0.0:  # a product of small numbers may be 0: its place would be listed again and again
                        if after[s2] == 0.0:
                            after_support[m] = s2
                            m += 1
                        after[s2] += x
            return m, total
        for j in range(n):  # most places are met: looking at all of them is cheaper than asking at each
            p, line = b[support[j]], support[j] * A + q
            for k in range(count[line]):
                after[index[line, k]] += p * weight[line, k]
    for s2 in range(S):
        m += after[s2] > 0.0
    if m == before == S:  # they are listed already, in their order
        return m, total
    place = np.uintp(0)
    for s2 in range(S):  # without a branch: it would be guessed wrong
        after_support[place] = s2
        place += np.uintp(after[s2] > 0.0)
    return m, total


@_short
def outlook_of_action(settled, A):
    """How many numbers the outlook has for each action."""
    return SUMS + settled.deeper.shape[2] * A


@_short
def push_on(process, settled, h, t, q):
    """The law of level h, pushed with P_t(q), stands at the next level: b·r_t(q)."""
    after, n = h + np.uintp(1), settled.size[h]
    b, support = settled.law[h], settled.support[h]
    m, earned = pushed(process, t, b, support, n, q, settled.law[after], settled.support[after], settled.size[after])
    settled.size[after] = m
    return earned


@_short
def law_sums(process, link, settled, c, code, b, support, n, sums):
    """sums[a] = Σ_s b(s)·ceiling of every action: the value of each action is convex in the law."""
    A = process.sizes[1]
    width, first = process.power[link.length[c]], link.blind_offset[c] + code
    for a in range(A):
        sums[a] = 0.0
    for k in range(n):
        s = support[k]
        p, at = b[s], first + s * width
        for a in range(A):
            sums[a] += p * settled.ceiling[at, a]


@_inner
def _sums_of_lists(index, weight, count, lines, later, sums):
    """`tile_of_sums` where transitions are lists."""
    for i in range(ROWS):
        line, out = lines[i], sums[i * COLUMNS : (i + 1) * COLUMNS]
        for j in range(COLUMNS):
            out[j] = 0.0
        for k in range(count[line]):
            p, row = weight[line, k], later[index[line, k] * COLUMNS : (index[line, k] + 1) * COLUMNS]
            for j in range(COLUMNS):
                out[j] += p * row[j]


@_inner
def fill_ahead(process, link, settled, c, later, sums):
    """`ahead` of block c, D = 0: the corners of the next time are settled, and so is C_c. Scratch: later[panel, s·COLUMNS + j], where column panel·COLUMNS + j of the
    outlook stands for each state, and sums[ROWS·COLUMNS] (`oldlight.kernels.products`)."""
    S, A = process.sizes[0], process.sizes[1]
    h, first, wide = link.time[c], link.blind_offset[c], outlook_of_action(settled, A)
    now, reward_step = min(h, len(process.index) - 1), min(h, len(process.rewards) - 1)
    for s in range(S):
        later[0, s * COLUMNS + GAIN_LOW], later[0, s * COLUMNS + GAIN_UP] = (
            settled.jump[0, first + s],
            settled.jump[1, first + s],
        )
    n, e = SUMS, link.hidden[c]
    while e >= 0:
        at = link.blind_offset[link.to[e]]
        for a in range(A):
            panel, j = (n + a) // COLUMNS, (n + a) % COLUMNS
            for s in range(S):
                later[panel, s * COLUMNS + j] = settled.ceiling[at + s, a]
        n, e = n + A, link.following[e]
    index, weight, count = process.index[now], process.weight[now], process.count[now]
    for line in range(0, S * A, ROWS):
        lines = rows_of_tile(line, S * A - 1)
        for i in range(0, n, COLUMNS):
            if process.full[now]:
                tile_of_sums(weight, lines, later[i // COLUMNS], sums)
            else:
                _sums_of_lists(index, weight, count, lines, later[i // COLUMNS], sums)
            s, a = line // A, line % A
            for k in range(min(ROWS, S * A - line)):
                out, at = settled.ahead[first + s], a * wide + i
                for j in range(min(COLUMNS, n - i)):
                    out[np.uintp(at + j)] = sums[np.uintp(k * COLUMNS + j)]
                if i == 0:
                    out[at + GAIN_LOW] += process.rewards[reward_step, s, a]
                    out[at + GAIN_UP] += process.rewards[reward_step, s, a]
                s, a = (s, a + 1) if a + 1 < A else (s + 1, 0)


@_short
def _by_law(process, link, settled, h, c, code, cutoff):
    """The outlook of the actions of level h whose bound is above the cut-off, by sums over the next law."""
    A, D = process.sizes[1], process.sizes[2]
    width, first = process.power[D], link.blind_offset[c]
    now, later = np.int64(h), h + np.uintp(1)
    after, places, wide = settled.law[later], settled.support[later], outlook_of_action(settled, A)
    total = 0.0
    if D > 0:
        total = push_on(process, settled, h, now - D, code % A)
    for a in range(A):
        if settled.bound[h, a] <= cutoff:
            continue
        if D == 0:
            total = push_on(process, settled, h, now, a)
        m, out = settled.size[later], settled.outlook[h, a * wide : (a + 1) * wide]
        code2 = (code + a * width) // A if D > 0 else 0
        low, up = total, total
        for k in range(m):
            at = first + places[k] * width + code2
            low += after[places[k]] * settled.jump[0, at]
            up += after[places[k]] * settled.jump[1, at]
        out[GAIN_LOW], out[GAIN_UP] = low, up
        i, e = SUMS, link.hidden[c]
        while e >= 0:
            law_sums(process, link, settled, link.to[e], code2, after, places, m, out[i : i + A])
            i, e = i + A, link.following[e]


@_short
def look_ahead(process, link, settled, h, c, code, cutoff):
    """Bound every action of level h by one step of lookahead, where its bound is above the cut-off."""
    A, bound, outlook = process.sizes[1], settled.bound[h], settled.outlook[h]
    wide = outlook_of_action(settled, A)
    if len(settled.ahead) > 0:
        b, support, n = settled.law[h], settled.support[h], settled.size[h]
        mean_of_rows(settled.ahead, link.blind_offset[c], np.int64(1), b, support, n, outlook)
    else:
        _by_law(process, link, settled, h, c, code, cutoff)
    first, deeper, untried, at = link.hidden[c], settled.deeper[h], settled.untried[h], np.uintp(0)
    for a in range(A):
        if bound[a] > cutoff:
            up, k = outlook[at + np.uintp(GAIN_UP)], at + np.uintp(SUMS)
            i, e = 0, first
            while e >= 0:
                top = outlook[k]
                for j in range(1, A):
                    top = max(top, outlook[k + np.uintp(j)])
                deeper[a, i] = top
                up += link.probability[e] * top
                i, k, e = i + 1, k + np.uintp(A), link.following[e]
            bound[a] = min(bound[a], up)
        untried[a] = bound[a]
        at += np.uintp(wide)
