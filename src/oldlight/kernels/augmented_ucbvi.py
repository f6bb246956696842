"""The compiled loops of the learners on the augmented table; `learners.augmented_ucbvi` says what they compute.

A *cell* of the table is a group and a place in it: an information state (or one without its time, when pooled), the
root's queue at one time, or a state with the queue that is left after the last action. Only cells that were met have a
number i.

    Shape   what does not change: node[h, m, δ], root[h] and rest[j] are group numbers (−1: no such group; rest[j] is
            for queues of length j ≥ 1); base[g]: where the group stands in `number`; length[g]: the length of its
            queue; kind[g]; wait[g]; powers[m] = A^m
    Cells   number[place] (−1: not met), group[i], local[i] = s·A^m + code, sibling[i]: the cell of the same group met
            before i, newest[g]: the last one met; size[0]: how many were met
    Counts  visits[i, a]; first[i, a] and link[k]: the outcomes k of a pair; owner[k] = i; follow[k]: the cell that
            followed, times[k]: how often; into[i] and back[k]: the outcomes that lead to i; size[0]: how many outcomes
    Work    the cells whose value is to be computed again: head[stage] and after[row, i] a list per stage (time h, or
            H + j for what is left of a queue of length j), queued[row, i]; row is h when pooled (H for what is left
            after the last action), else 0

A *move* (i, a, j) is one observed step from cell i by action a (0 where there is nothing to choose) to cell j.

A plan computes a cell again only if a count of it, or the value of a cell that followed it, has changed. All others
would come out the same, so this is full planning, in the time that the changes take.
"""

from typing import Any, NamedTuple

import numpy as np

from oldlight.kernels.cache import compiled

NODE, ROOT, REST = 0, 1, 2
TIE = 1e-12


class Shape(NamedTuple):
    node: Any
    root: Any
    rest: Any
    base: Any
    length: Any
    kind: Any
    wait: Any
    powers: Any


class Cells(NamedTuple):
    number: Any
    group: Any
    local: Any
    sibling: Any
    newest: Any
    size: Any


class Counts(NamedTuple):
    visits: Any
    first: Any
    into: Any
    owner: Any
    follow: Any
    times: Any
    link: Any
    back: Any
    size: Any


class Work(NamedTuple):
    head: Any
    after: Any
    queued: Any


class Rules(NamedTuple):
    """rewards[h, s, a]; remaining[t]: the most that steps t, t+1, .. can earn; pending: the actions that are under way
    at the start; offset, root: where each information state stands in the policy's table; weights[0]: the probability that
    nothing is seen at time 0, weights[1 + s]: that s is the newest visible state; warmup; pooled."""

    rewards: Any
    remaining: Any
    pending: Any
    offset: Any
    root: Any
    weights: Any
    warmup: int
    pooled: bool


class Bonus(NamedTuple):
    """Its constant, ι, and its form."""

    c: float
    iota: float
    bernstein: bool


class Plan(NamedTuple):
    """values[h, i] when pooled, with what is left after the last action in row H; otherwise values[0, i]. table: the policy."""

    values: Any
    table: Any


@compiled
def _meet(shape, cells, g, local):
    """The number of a cell, a new one if it was not met before."""
    place = shape.base[g] + local
    i = np.int64(cells.number[place])
    if i < 0:
        i = cells.size[0]
        cells.size[0] += 1
        cells.number[place] = i
        cells.group[i] = g
        cells.local[i] = local
        cells.sibling[i] = cells.newest[g]
        cells.newest[g] = i
    return i


@compiled
def walk(states, actions, arrivals, rules, shape, cells, moves, path):
    """The moves of one revealed episode, those that end it first; path[h]: the cell at time h. Returns how many moves.

    What is left after the last action: step t of a queue of length j moves from (s_t, a_t..a_{t+j−1}) to
    (s_{t+1}, a_{t+1}..a_{t+j−1}). It counts only if s_{t+1} was not yet seen when the last of these actions was chosen:
    otherwise that action tells of it.
    """
    H, warmup, pooled = len(shape.root), rules.warmup, rules.pooled
    A = shape.powers[1]
    n = 0
    for j in range(2, len(shape.rest)):
        if shape.rest[j] < 0:
            continue
        for t in range(min(H - j, H - 2), (-warmup if pooled else H - j) - 1, -1):
            if arrivals[t + 1 + warmup] < t + j:
                continue
            code = np.int64(0)
            for k in range(j):
                code += actions[t + k + warmup] * shape.powers[k]
            moves[n, 0] = _meet(shape, cells, shape.rest[j], states[t + warmup] * shape.powers[j] + code)
            moves[n, 1] = 0
            moves[n, 2] = _meet(
                shape, cells, shape.rest[j - 1], states[t + 1 + warmup] * shape.powers[j - 1] + code // A
            )
            n += 1
    t = -warmup - 1
    for h in range(H):
        while t < h and arrivals[t + 1 + warmup] <= h:
            t += 1
        begin = max(t, -warmup)
        m = h - begin
        code = np.int64(0)
        for k in range(m):
            code += actions[begin + k + warmup] * shape.powers[k]
        if t < -warmup:
            path[h] = _meet(shape, cells, shape.root[h], code)
        else:
            g = shape.node[h, m, h - arrivals[t + warmup]]
            path[h] = _meet(shape, cells, g, states[t + warmup] * shape.powers[m] + code)
    if t < -warmup:
        code = np.int64(0)
        for k in range(H):
            code += actions[k] * shape.powers[k]
        moves[n, 0] = path[H - 1]
        moves[n, 1] = actions[H - 1]
        moves[n, 2] = _meet(shape, cells, shape.rest[H], states[0] * shape.powers[H] + code)
        n += 1
    for h in range(H - 2, -1, -1):
        moves[n, 0] = path[h]
        moves[n, 1] = actions[h + warmup]
        moves[n, 2] = path[h + 1]
        n += 1
    return n


@compiled
def count(moves, n, path, shape, cells, counts, work):
    """Count n moves and queue what they change; has a count come to a power of two?"""
    doubled = False
    for e in range(n):
        i, a, j = moves[e, 0], moves[e, 1], moves[e, 2]
        counts.visits[i, a] += 1
        doubled |= (counts.visits[i, a] & (counts.visits[i, a] - 1)) == 0
        k = counts.first[i, a]
        while k >= 0 and counts.follow[k] != j:
            k = counts.link[k]
        if k < 0:
            k = counts.size[0]
            counts.size[0] += 1
            counts.owner[k] = i
            counts.follow[k] = j
            counts.times[k] = 0
            counts.link[k] = counts.first[i, a]
            counts.first[i, a] = k
            counts.back[k] = counts.into[j]
            counts.into[j] = k
        counts.times[k] += 1
        _queue_cell(shape, cells, work, i)
        _queue_cell(shape, cells, work, j)
    for i in path:
        _queue_cell(shape, cells, work, i)
    return doubled


@compiled
def _queue(work, stage, row, i):
    if not work.queued[row, i]:
        work.queued[row, i] = True
        work.after[row, i] = work.head[stage]
        work.head[stage] = i


@compiled
def _queue_cell(shape, cells, work, i):
    """A cell at all times at which it can stand."""
    H = len(shape.root)
    g = cells.group[i]
    pooled = len(work.queued) > 1
    if shape.kind[g] == REST:
        _queue(work, H + shape.length[g], H if pooled else 0, i)
    elif shape.kind[g] == ROOT:
        _queue(work, shape.length[g], shape.length[g] if pooled else 0, i)
    else:
        for h in range(H):
            if shape.node[h, shape.length[g], shape.wait[g]] == g:
                _queue(work, h, h if pooled else 0, i)


@compiled
def _queue_before(shape, cells, counts, work, h, j):
    """What depends on the value of cell j at time h (H: what is left after the last action)."""
    H = len(shape.root)
    pooled = len(work.queued) > 1
    k = counts.into[j]
    while k >= 0:
        i = counts.owner[k]
        g = cells.group[i]
        if shape.kind[g] == REST:
            _queue(work, H + shape.length[g], H if pooled else 0, i)
        elif shape.kind[g] == ROOT:
            if h == shape.length[g] + 1:
                _queue(work, h - 1, h - 1 if pooled else 0, i)
        elif h > 0 and shape.node[h - 1, shape.length[g], shape.wait[g]] == g:
            _queue(work, h - 1, h - 1 if pooled else 0, i)
        k = counts.back[k]
    g = cells.group[j]
    if h == H and 0 < shape.length[g] <= shape.node.shape[1]:  # the last action, where the queue begins the same way
        m = shape.length[g] - 1
        s, code = cells.local[j] // shape.powers[m + 1], cells.local[j] % shape.powers[m]
        for wait in range(m + 1):
            g = shape.node[H - 1, m, wait]
            i = cells.number[shape.base[g] + s * shape.powers[m] + code] if g >= 0 else -1
            if i >= 0:
                _queue(work, H - 1, H - 1 if pooled else 0, i)


@compiled
def _hoped(counts, i, a, v_next, H, bonus):
    """Σ p̂·V plus the bonus, for a pair that was met."""
    c, iota, bernstein = bonus
    n = counts.visits[i, a]
    total, square = 0.0, 0.0
    k = counts.first[i, a]
    while k >= 0:
        v = v_next[counts.follow[k]]
        total += counts.times[k] * v
        square += counts.times[k] * v * v
        k = counts.link[k]
    mean = total / n
    if bernstein:
        spread = max(square / n - mean * mean, 0.0)
        return mean + c * (np.sqrt(2.0 * spread * iota / n) + H * iota / (3.0 * n))
    return mean + c * H * np.sqrt(iota / n)


@compiled
def pick(x, rng):
    """The largest entry: its value and where it is, ties at random."""
    best, ties, chosen = x.max(), 0, 0
    for a in range(len(x)):
        if x[a] >= best - TIE:
            ties += 1
            chosen = a
    if ties > 1:
        left = np.int64(rng.random() * ties)
        for a in range(len(x)):
            if x[a] >= best - TIE:
                if left == 0:
                    chosen = a
                    break
                left -= 1
    return best, chosen


@compiled
def last(shape, cells, rules, v_rest, m, wait, local, x):
    """The values of the last action, at time H − 1: what is left is the queue with that action at its end."""
    H, A = len(shape.root), len(x)
    s, code, t = local // shape.powers[m], local % shape.powers[m], H - 1 - m
    paid = rules.rewards[t, s, code % A] if wait > 0 else 0.0  # then the reward of step t is behind us
    for a in range(A):
        if m == 0:
            x[a] = rules.rewards[t, s, a]
            continue
        i = cells.number[shape.base[shape.rest[m + 1]] + s * shape.powers[m + 1] + code + a * shape.powers[m]]
        cap = rules.remaining[max(t, 0)] if wait == 0 else rules.remaining[t + 1]
        x[a] = cap if i < 0 else min(cap, v_rest[i] - paid)


@compiled
def restricted(rules, h, x):
    """Before the first own action takes effect there is nothing to choose."""
    if h < len(rules.pending):
        for a in range(len(x)):
            if a != rules.pending[h]:
                x[a] = -np.inf


@compiled
def plan(shape, cells, counts, rules, work, bonus, plan, rng):
    """Optimistic value iteration over the queued cells and all that depends on them; writes their values and their entries
    of the policy. Returns the value of the start."""
    values, table = plan
    H, _, A = rules.rewards.shape
    x = np.empty(A)
    row = H if rules.pooled else 0
    left = values[row]
    for j in range(1, len(shape.rest)):
        t = H - j
        cap = rules.remaining[max(t, 0)]
        i = work.head[H + j]
        work.head[H + j] = -1
        while i >= 0:
            s, q = cells.local[i] // shape.powers[j], cells.local[i] % A
            r = rules.rewards[t, s, q] if t >= 0 else 0.0
            if j == 1:
                v = r
            elif counts.visits[i, 0] == 0:
                v = cap
            else:
                v = min(cap, r + _hoped(counts, i, np.int64(0), left, H, bonus))
            if v != left[i]:
                left[i] = v
                _queue_before(shape, cells, counts, work, H, i)
            work.queued[row, i] = False
            i = work.after[row, i]
    for h in range(H - 1, -1, -1):
        row = h if rules.pooled else 0
        now, v_next = values[row], values[h + 1 if rules.pooled else 0]
        i = work.head[h]
        work.head[h] = -1
        while i >= 0:
            g, local = cells.group[i], cells.local[i]
            m, wait = shape.length[g], shape.wait[g]
            t = h - m
            if shape.kind[g] == ROOT:
                place = rules.root[h] + local
                cap = rules.remaining[0]
                certain = h < H - 1 and (h + 1 >= shape.node.shape[1] or shape.node[h + 1, h + 1, 0] < 0)
                paid = False
            else:
                place = rules.offset[h, m, wait] + local
                cap = rules.remaining[max(t, 0)] if wait == 0 else rules.remaining[t + 1]
                certain = h < H - 1 and shape.node[h + 1, m, 0] < 0
                paid = wait == 0 and t >= 0
            if shape.kind[g] == NODE and h == H - 1:
                last(shape, cells, rules, left, m, wait, local, x)
            else:
                for a in range(A):
                    if counts.visits[i, a] == 0:
                        x[a] = cap
                        continue
                    r = rules.rewards[t, local // shape.powers[m], a if m == 0 else local % A] if paid else 0.0
                    if certain:
                        x[a] = min(cap, r + v_next[counts.follow[counts.first[i, a]]])
                    else:
                        x[a] = min(cap, r + _hoped(counts, i, a, v_next, H, bonus))
            restricted(rules, h, x)
            v, chosen = pick(x, rng)
            table[place] = chosen
            if v != now[i]:
                now[i] = v
                _queue_before(shape, cells, counts, work, h, i)
            work.queued[row, i] = False
            i = work.after[row, i]
    return begin(shape, cells, rules, values[0])


@compiled
def begin(shape, cells, rules, now):
    """The value of time 0: everything that was not met is at what can be earned."""
    weights = rules.weights
    total = rules.remaining[0]
    for m in range(shape.node.shape[1]):
        g = shape.node[0, m, 0]
        i = cells.newest[g] if g >= 0 else -1
        while i >= 0:
            total += weights[1 + cells.local[i] // shape.powers[m]] / shape.powers[m] * (now[i] - rules.remaining[0])
            i = cells.sibling[i]
    if shape.root[0] >= 0 and cells.newest[shape.root[0]] >= 0:
        total += weights[0] * (now[cells.newest[shape.root[0]]] - rules.remaining[0])
    return total
