"""The compiled search along blackouts, the corners of later times being settled; `oldlight.planning.settling` says what it computes.

A node is (c, code, b): a block beyond the depth, the queue's code and a law b of the state of step u = h − D, one level for each time h. Acting a,

    value(a) = b·r_u(q1) + b'·C_c[:, q'] + Σ_e p_e·V_{c_e}(b', q'),      b' = b P_u(q1),  q' = (q2..qD, a)       (D = 0: q1 is a)

where C_c (`jump`) holds what the ticks that show something are worth, and e runs over those that show nothing. Laws that were closed are states of
the graph of `oldlight.kernels.graph`, which remembers their bounds and what earns the lower one.
"""

from typing import NamedTuple

import numpy as np

from oldlight.kernels.cache import borrowing
from oldlight.kernels.graph import (
    BELIEF,
    BELIEF_SIZE,
    BELIEFS,
    BLOCK,
    CHOSEN,
    CODE,
    KNOWN,
    LOW,
    LOW_ACTION,
    OPENED,
    OPTION,
    STATE,
    STATES,
    TURN,
    UNKNOWN,
    UP,
    find_slot,
)  # fmt: skip

DONE, GROW, PAUSE = range(3)
GAP = 1.05  # a node whose bounds are within this many slacks is settled (the rest is rounding)
CEILING, GAIN_LOW, GAIN_UP = range(3)  # rows of Settled.option[h]
CUTOFF, HIGH, HELD, OLD_HIGH, OLD_HELD, SUM_HIGH, SUM_HELD = range(
    7
)  # columns of Settled.real[h]: HIGH, HELD are the bounds
NODE, QUEUE, ACT, OLD_ACT, PENDING, TICK, NUMBER, SLOT = range(8)  # columns of Settled.whole[h]; then what was tried
TRIED = 8
NO = -np.inf
_inner = borrowing(error_model="numpy", fastmath={"contract", "reassoc"})
_short = borrowing(
    error_model="numpy", fastmath={"contract", "reassoc"}, forceinline=True
)  # a call would copy all the arrays


class Settled(NamedTuple):
    """since[0]: corners of this time and of later ones are settled. At the places of `Tables.blind`: ceiling[place, a], upper bounds of each action at
    a corner, and jump[i, place], C_c from below (i = 0) and above. cap[h]: no corner of time h is worth more.

    Scratch of level h: law, support and size of the next laws, one for each action if D = 0, else one; option[h, row, a]; deeper[h, a, e], bounds of
    what ticks lead to; real and whole by the names above; sums[a].
    """

    since: np.ndarray
    ceiling: np.ndarray
    jump: np.ndarray
    cap: np.ndarray
    law: np.ndarray
    support: np.ndarray
    size: np.ndarray
    option: np.ndarray
    deeper: np.ndarray
    real: np.ndarray
    whole: np.ndarray
    sums: np.ndarray


@_short
def pushed(process, t, b, support, n, q, after, after_support, before):
    """after = b·P_t(q), which held a law of `before` places: (its places, b·r_t(q))."""
    S, A = process.sizes[0], process.sizes[1]
    now, reward_step = min(max(t, 0), len(process.index) - 1), min(max(t, 0), len(process.rewards) - 1)
    for k in range(before):
        after[after_support[k]] = 0.0
    total, m = 0.0, 0
    wide = (
        4 * n * process.index.shape[2] >= S
    )  # most places are met: looking at all of them is cheaper than asking at each
    for j in range(n):
        s = support[j]
        p, line = b[s], s * A + q
        if t >= 0:
            total += p * process.rewards[reward_step, s, q]
        if wide and process.count[now, line] == S:
            for s2 in range(S):
                after[s2] += p * process.weight[now, line, s2]
        elif wide:
            for k in range(process.count[now, line]):
                after[process.index[now, line, k]] += p * process.weight[now, line, k]
        else:
            for k in range(process.count[now, line]):
                s2, x = process.index[now, line, k], p * process.weight[now, line, k]
                if x > 0.0:  # a product of small numbers may be 0: its place would be listed again and again
                    if after[s2] == 0.0:
                        after_support[m] = s2
                        m += 1
                    after[s2] += x
    if wide:
        for s2 in range(S):
            if after[s2] > 0.0:
                after_support[m] = s2
                m += 1
    return m, total


@_short
def _sums(process, link, settled, c, code, b, support, n):
    """Σ_s b(s)·ceiling of every action, in settled.sums: the value of each action is convex in the law."""
    A = process.sizes[1]
    width, first = process.power[link.length[c]], link.blind_offset[c] + code
    sums = settled.sums
    for a in range(A):
        sums[a] = 0.0
    for k in range(n):
        s = support[k]
        p, at = b[s], first + s * width
        for a in range(A):
            sums[a] += p * settled.ceiling[at, a]


@_short
def _highest(process, link, settled, c, code, b, support, n):
    """The largest of `_sums`."""
    _sums(process, link, settled, c, code, b, support, n)
    top = NO
    for a in range(process.sizes[1]):
        top = max(top, settled.sums[a])
    return top


@_short
def _first_tick(link, c, e):
    """The next tick of block c, from e on, that shows nothing and is not the end; −1: none."""
    last = link.first[c + 1]
    while e < last:
        if link.age[e] < 0 and link.time[link.to[e]] < link.time[-1]:
            return e
        e += 1
    return -1


@_short
def _look_ahead(process, link, settled, h, c, code, b, support, n):
    """Push the law and bound every action of level h by one step of lookahead, where its ceiling is above the cut-off."""
    A, D = process.sizes[1], process.sizes[2]
    width, first = process.power[D], link.blind_offset[c]
    option = settled.option[h]
    total = 0.0
    for a in range(A):
        if option[CEILING, a] <= settled.real[h, CUTOFF]:
            continue
        way = a if D == 0 else 0
        after, places = settled.law[h, way], settled.support[h, way]
        if D == 0 or settled.size[h, 0] < 0:
            before = settled.size[h, way]
            if D > 0:
                before = -before - 1
            settled.size[h, way], total = pushed(
                process, h - D, b, support, n, a if D == 0 else code % A, after, places, before
            )
        m = settled.size[h, way]
        code2 = (code + a * width) // A if D > 0 else 0
        low, up = total, total
        for k in range(m):
            at = first + places[k] * width + code2
            low += after[places[k]] * settled.jump[0, at]
            up += after[places[k]] * settled.jump[1, at]
        option[GAIN_LOW, a], option[GAIN_UP, a] = low, up
        e = _first_tick(link, c, link.first[c])
        while e >= 0:
            bound = _highest(process, link, settled, link.to[e], code2, after, places, m)
            settled.deeper[h, a, e - link.first[c]] = bound
            up += link.probability[e] * bound
            e = _first_tick(link, c, e + 1)
        option[CEILING, a] = min(option[CEILING, a], up)


@_short
def _open(process, link, tables, graph, settled, level, node, b, support, n, slack):
    """Come to a node: True if it is settled at once (its bounds and action at level h), else ready to expand.

    node = (block, code, cut-off); level = (time, 1 if the node is a corner that is being settled)."""
    h, corner = level
    c, code, cutoff = node
    A, D = process.sizes[1], process.sizes[2]
    real, whole = settled.real[h], settled.whole[h]
    width = process.power[link.length[c]]
    real[CUTOFF], real[HELD], real[HIGH] = cutoff, NO, np.inf
    whole[NODE], whole[QUEUE], whole[ACT], whole[NUMBER] = c, code, UNKNOWN, -1
    if not corner:
        if n == 1 and settled.cap[h] == np.inf:
            at = link.offset[c] + support[0] * width + code
            real[HELD], real[HIGH], whole[ACT] = tables.lower[at], tables.upper[at], tables.actions[at]
            return True
        slot, i = find_slot(graph, (c, code, np.int64(-1)), b, support, n)
        whole[NUMBER], whole[SLOT] = i, slot
        if i >= 0:
            real[HELD], real[HIGH], whole[ACT] = graph.real[i, LOW], graph.real[i, UP], graph.whole[i, LOW_ACTION]
            if real[HIGH] <= cutoff or real[HIGH] - real[HELD] <= GAP * slack:
                return True
    real[OLD_HELD], real[OLD_HIGH], whole[OLD_ACT] = real[HELD], real[HIGH], whole[ACT]
    top = NO
    forced = tables.forced[h]
    if not corner:
        _sums(process, link, settled, c, code, b, support, n)
    for a in range(A):
        x = real[HIGH] if corner else min(real[HIGH], settled.sums[a])
        if forced >= 0 and a != forced:
            x = NO
        settled.option[h, CEILING, a] = x
        whole[TRIED + a] = 0
        top = max(top, x)
    if top <= cutoff:
        real[HIGH], real[HELD], whole[ACT] = top, NO, UNKNOWN
        return True
    graph.count[OPENED] += 1
    if D > 0:
        settled.size[h, 0] = -settled.size[h, 0] - 1  # not pushed yet
    _look_ahead(process, link, settled, h, c, code, b, support, n)
    real[HELD], real[HIGH], whole[ACT] = NO, NO, UNKNOWN
    return False


@_short
def _closed(process, graph, settled, h, b, support, n):
    """Every action of a law is tried or pruned: remember what was found. False: no room."""
    real, whole = settled.real[h], settled.whole[h]
    if real[OLD_HELD] >= real[HELD]:
        real[HELD], whole[ACT] = real[OLD_HELD], whole[OLD_ACT]
    real[HIGH] = min(real[HIGH], real[OLD_HIGH])
    i = whole[NUMBER]
    if i < 0:
        i = graph.count[STATES]
        start = graph.count[BELIEFS]
        if i + 1 >= len(graph.whole) or start + n > len(graph.place) or 2 * (i + 1) > len(graph.slots):
            return False
        graph.count[STATES] += 1
        graph.count[BELIEFS] += n
        slot, mask = whole[SLOT], len(graph.slots) - 1
        while graph.slots[slot] > 0:  # taken since by a law of a later time
            slot = (slot + 1) & mask
        graph.slots[slot] = i + 1
        row = graph.whole[i]
        row[BLOCK], row[CODE], row[STATE], row[OPTION] = whole[NODE], whole[QUEUE], -1, -1
        row[CHOSEN], row[KNOWN], row[TURN], row[BELIEF], row[BELIEF_SIZE] = UNKNOWN, 0, 0, start, n
        for k in range(n):
            graph.place[start + k], graph.mass[start + k] = support[k], b[support[k]]
        for a in range(process.sizes[1]):
            graph.q[i, a] = np.inf
    graph.real[i, LOW], graph.real[i, UP], graph.whole[i, LOW_ACTION] = real[HELD], real[HIGH], whole[ACT]
    return True


@_short
def _returned(link, settled, h, threshold):
    """Back from the tick that was followed: its bounds are added. True if another tick of the pending action is to be followed."""
    real, whole, below = settled.real[h], settled.whole[h], settled.real[h + 1]
    e, a, c = whole[TICK], whole[PENDING], whole[NODE]
    p, bound = link.probability[e], settled.deeper[h, a, e - link.first[c]]
    real[SUM_HIGH] += p * (min(below[HIGH], bound) - bound)
    real[SUM_HELD] += p * below[HELD]
    following = _first_tick(link, c, e + 1)
    if following < 0:
        return False
    if real[SUM_HIGH] <= threshold:
        real[SUM_HELD] = NO
        return False
    whole[TICK] = following
    return True


@_short
def _tried(settled, h):
    """The pending action is done: its bounds are the node's, if they are better."""
    real, whole = settled.real[h], settled.whole[h]
    a = whole[PENDING]
    settled.option[h, CEILING, a] = min(settled.option[h, CEILING, a], real[SUM_HIGH])
    real[HIGH] = max(real[HIGH], settled.option[h, CEILING, a])
    if real[SUM_HELD] > real[HELD]:
        real[HELD], whole[ACT] = real[SUM_HELD], a


@_short
def _untried(process, settled, h):
    """The untried action with the highest ceiling, or −1."""
    a = -1
    for i in range(process.sizes[1]):
        higher = a < 0 or settled.option[h, CEILING, i] > settled.option[h, CEILING, a]
        if settled.whole[h, TRIED + i] == 0 and higher:
            a = i
    return a


@_inner
def search(process, link, tables, graph, settled, node, law, corner, limits):
    """Close the node = (block, code, cut-off) with law = (b, support, places), depth first along blackouts: its bounds are left at the level of its time.

    A node below may be left with only an upper bound ≤ its cut-off, because it cannot matter; then its lower bound may be −∞.
    Returns DONE, or GROW or PAUSE when it should be called again.
    """
    A, D = process.sizes[1], process.sizes[2]
    slack = limits.slack[0]
    first = link.time[node[0]]
    opened = graph.count[OPENED]
    c, code, cutoff = node
    h, coming = first, True
    while True:
        real, whole = settled.real[h], settled.whole[h]
        if h > first:
            way = settled.whole[h - 1, PENDING] if D == 0 else 0
            b, support, n = settled.law[h - 1, way], settled.support[h - 1, way], settled.size[h - 1, way]
        else:
            b, support, n = law
        if coming:
            if graph.count[OPENED] - opened > limits.most[0]:
                return PAUSE
            level = (h, corner and h == first)
            if _open(process, link, tables, graph, settled, level, (c, code, cutoff), b, support, n, slack):
                if h == first:
                    return DONE
                h, coming = h - 1, False
                continue
            follow = False
        else:
            threshold = real[HELD] + slack if real[HELD] > real[CUTOFF] else real[CUTOFF]
            follow = _returned(link, settled, h, threshold)
            if not follow:
                _tried(settled, h)
        while not follow:
            a = _untried(process, settled, h)
            threshold = real[HELD] + slack if real[HELD] > real[CUTOFF] else real[CUTOFF]
            if a < 0 or settled.option[h, CEILING, a] <= threshold:
                if a >= 0:
                    real[HIGH] = max(real[HIGH], settled.option[h, CEILING, a])
                break
            whole[TRIED + a], whole[PENDING] = 1, a
            real[SUM_HIGH], real[SUM_HELD] = settled.option[h, GAIN_UP, a], settled.option[h, GAIN_LOW, a]
            e = _first_tick(link, whole[NODE], link.first[whole[NODE]])
            whole[TICK] = e
            follow = e >= 0
            while e >= 0:
                real[SUM_HIGH] += link.probability[e] * settled.deeper[h, a, e - link.first[whole[NODE]]]
                e = _first_tick(link, whole[NODE], e + 1)
            if not follow:
                _tried(settled, h)
        if follow:
            e, a = whole[TICK], whole[PENDING]
            p, bound = link.probability[e], settled.deeper[h, a, e - link.first[whole[NODE]]]
            threshold = real[HELD] + slack if real[HELD] > real[CUTOFF] else real[CUTOFF]
            cutoff = (threshold - (real[SUM_HIGH] - p * bound)) / p
            c, code = link.to[e], (whole[QUEUE] + a * process.power[D]) // A if D > 0 else 0
            h, coming = h + 1, True
            continue
        if not (corner and h == first) and not _closed(process, graph, settled, h, b, support, n):
            return GROW
        if h == first:
            return DONE
        h, coming = h - 1, False
