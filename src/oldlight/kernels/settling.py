"""The compiled search along blackouts, the corners of later times being settled; `oldlight.planning.settling` says what it computes.

A node is (c, code, b): a block beyond the depth, the queue's code and a law b of the state of step u = h − D, one level for each time h. Acting a,

    value(a) = b·r_u(q1) + b'·C_c[:, q'] + Σ_e p_e·V_{c_e}(b', q'),      b' = b P_u(q1),  q' = (q2..qD, a)       (D = 0: q1 is a)

where C_c (`jump`) holds what the ticks that show something are worth, and e runs over those that show nothing. A first look at the actions is their
outlook (`oldlight.kernels.outlook`); with D = 0 it needs no b', which is made only where the search goes.

Laws that were closed are states of the graph of `oldlight.kernels.graph`, which remembers their bounds, what earns the lower one, and as its `NEXT` the law that
follows while nothing is seen: its number, or −2 − i where the state is known, corner i of the next time; −1: no action follows. Where there is one such tick
at each block, a blackout is this chain, and the actions along it are written down for every corner when it is settled.
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
    NEXT,
    OPENED,
    OPTION,
    STATE,
    STATES,
    TURN,
    UNKNOWN,
    UP,
    find_slot,
)  # fmt: skip
from oldlight.kernels.opaque import as_it_is
from oldlight.kernels.outlook import GAIN_LOW, GAIN_UP, NO, SUMS, law_sums, look_ahead, outlook_of_action, push_on

DONE, GROW, PAUSE = range(3)
FROM_ABOVE, FROM_BELOW, NEITHER = range(3)  # how the search came to a level
ALONE = (0, 0)  # `search` closes one law; no corners
GAP = 1.05  # a node whose bounds are within this many slacks is settled (the rest is rounding)
# columns of Settled.real[h]: HIGH, HELD are the bounds
CUTOFF, HIGH, HELD, OLD_HIGH, OLD_HELD, SUM_HIGH, SUM_HELD = range(7)
# columns of Settled.whole[h]. NUMBER: in the graph, or −2 − i of a corner; LED, HEIR: where the pending action and ACT lead in a blackout
NODE, QUEUE, ACT, OLD_ACT, PENDING, TICK, RANK, NUMBER, SLOT, LED, HEIR = range(11)
WHOLE = 11
_1 = np.uintp(1)  # levels are unsigned: an index that may be negative is looked at before it is used
_inner = borrowing(error_model="numpy", fastmath={"contract", "reassoc"})
_short = borrowing(
    error_model="numpy", fastmath={"contract", "reassoc"}, forceinline=True
)  # a call would copy all the arrays


class Settled(NamedTuple):
    """since[0]: corners of this time and of later ones are settled. At the places of `Tables.blind`: ceiling[place, a], upper bounds of each action at
    a corner, jump[i, place], C_c from below (i = 0) and above, and ahead[place], the outlook at a corner (D = 0, or empty). cap[h]: no corner of
    time h is worth more. sequence[h − D, i, j]: what corner i of time h does j ticks later while nothing is seen (or empty). With D = 0 also the
    start: start_law, the law of the first state (or empty); start_weight[c], the probability that the first state is seen in block c of time 0, and start_weight[-1] that it is not
    seen; start_block[0], the block of the law then; start_bounds, the lower and the upper value of the start; start_sequence[j], what is done at time j while nothing is seen.

    Scratch of level h: law, support and size of its law; bound[h, a] of every action; untried[h, a], the same of those that are not tried yet, else −∞; outlook[h],
    one action after the other; deeper[h, a, i], the highest sum of the i-th tick that shows nothing; real and whole by the names above.
    """

    since: np.ndarray
    ceiling: np.ndarray
    jump: np.ndarray
    ahead: np.ndarray
    cap: np.ndarray
    sequence: np.ndarray
    start_law: np.ndarray
    start_block: np.ndarray
    start_weight: np.ndarray
    start_bounds: np.ndarray
    start_sequence: np.ndarray
    law: np.ndarray
    support: np.ndarray
    size: np.ndarray
    bound: np.ndarray
    untried: np.ndarray
    outlook: np.ndarray
    deeper: np.ndarray
    real: np.ndarray
    whole: np.ndarray


@_short
def _open(process, link, tables, graph, settled, level, node, slack):
    """Come to a node, whose law stands at its level, and below the first the sums of its law as bounds: True if it is settled at once (its bounds and action at
    level h), else ready to expand.

    node = (block, code, cut-off); level = (time, is the search to close this node, is it a corner that is being settled)."""
    h, first, corner = level
    c, code, cutoff = node
    A = process.sizes[1]
    real, whole, bound = settled.real[h], settled.whole[h], settled.bound[h]
    b, support, n = settled.law[h], settled.support[h], settled.size[h]
    width = process.power[link.length[c]]
    real[CUTOFF], real[HELD], real[HIGH] = cutoff, NO, np.inf
    whole[NODE], whole[QUEUE], whole[ACT], whole[NUMBER], whole[HEIR] = c, code, UNKNOWN, -1, -1
    if not corner:
        if n == 1 and settled.cap[h] == np.inf:
            at = link.offset[c] + support[0] * width + code
            real[HELD], real[HIGH], whole[ACT] = tables.lower[at], tables.upper[at], tables.actions[at]
            whole[NUMBER] = -2 - (support[0] * width + code)
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
    if first and not corner:
        law_sums(process, link, settled, c, code, b, support, n, bound)
    for a in range(A):
        x = real[HIGH] if corner else min(real[HIGH], bound[a])
        if forced >= 0 and a != forced:
            x = NO
        bound[a] = x
        top = max(top, x)
    if top <= cutoff:
        real[HIGH], real[HELD], whole[ACT] = top, NO, UNKNOWN
        return True
    graph.count[OPENED] += 1
    look_ahead(process, link, settled, h, c, code, cutoff)
    real[HELD], real[HIGH], whole[ACT] = NO, NO, UNKNOWN
    return False


@_short
def _closed(process, graph, settled, h):
    """Every action of a law is tried or pruned: remember what was found. False: no room."""
    real, whole = settled.real[h], settled.whole[h]
    b, support, n = settled.law[h], settled.support[h], settled.size[h]
    better = real[HELD] > real[OLD_HELD]
    if not better:
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
        row[CHOSEN], row[KNOWN], row[TURN], row[BELIEF], row[BELIEF_SIZE], row[NEXT] = UNKNOWN, 0, 0, start, n, UNKNOWN
        place, mass = graph.place[start : start + n], graph.mass[start : start + n]
        for k in range(n):
            place[k] = support[k]
        for k in range(n):
            mass[k] = b[support[k]]
        for a in range(process.sizes[1]):
            graph.q[i, a] = np.inf
        whole[NUMBER] = i
    graph.real[i, LOW], graph.real[i, UP], graph.whole[i, LOW_ACTION] = real[HELD], real[HIGH], whole[ACT]
    if better:
        graph.whole[i, NEXT] = whole[HEIR]
    return True


@_short
def _returned(link, settled, h, threshold, below):
    """Back from the tick that was followed: its bounds are added, below = (upper, lower, number). True if another tick of the pending action is to be followed."""
    real, whole = settled.real[h], settled.whole[h]
    e, a = whole[TICK], whole[PENDING]
    p, bound = link.probability[e], settled.deeper[h, a, whole[RANK]]
    real[SUM_HIGH] += p * (min(below[0], bound) - bound)
    real[SUM_HELD] += p * below[1]
    whole[LED] = below[2]
    following = link.following[e]
    if following < 0:
        return False
    if real[SUM_HIGH] <= threshold:
        real[SUM_HELD] = NO
        return False
    whole[TICK], whole[RANK] = following, whole[RANK] + 1
    return True


@_short
def _tried(settled, h):
    """The pending action is done: its bounds are the node's, if they are better."""
    real, whole = settled.real[h], settled.whole[h]
    a = whole[PENDING]
    settled.bound[h, a] = min(settled.bound[h, a], real[SUM_HIGH])
    real[HIGH] = max(real[HIGH], settled.bound[h, a])
    if real[SUM_HELD] > real[HELD]:
        real[HELD], whole[ACT], whole[HEIR] = real[SUM_HELD], a, whole[LED]


@_short
def _untried(process, settled, h):
    """The untried action with the highest ceiling, if that is not −∞, or −1."""
    a, highest, untried = -1, NO, settled.untried[h]
    for i in range(process.sizes[1]):
        a, highest = (i if untried[i] > highest else a), max(highest, untried[i])
    return a


@_short
def _write_down(graph, settled, at, action, following, out):
    """The sequence of a node that was closed just now: its action, then those of the laws that follow while nothing is seen; at: time − D."""
    out[0], j = action, 1
    while following >= 0:
        out[j], j, following = graph.whole[following, LOW_ACTION], j + 1, graph.whole[following, NEXT]
    if following < -1:
        later = settled.sequence[at + j, -2 - following]
        for k in range(j, len(out)):
            out[k] = later[k - j]
    else:
        for k in range(j, len(out)):
            out[k] = 0


@_short
def _corner_settled(process, link, tables, graph, settled, h, c, i):
    """Corner i of block c, time h, is closed: write down its bounds, those of its actions, and its sequence."""
    real, whole, at = settled.real[h], settled.whole[h], link.offset[c] + i
    tables.upper[at] = min(real[HIGH], settled.cap[h])
    tables.lower[at] = min(real[HELD], settled.cap[h])
    tables.actions[at] = whole[ACT]
    for a in range(process.sizes[1]):
        settled.ceiling[link.blind_offset[c] + i, a] = settled.bound[h, a]
    if len(settled.sequence) > 0:
        u = np.int64(h) - process.sizes[2]
        _write_down(graph, settled, u, whole[ACT], whole[HEIR], settled.sequence[u, i])


@_short
def _try(process, link, settled, h, a):
    """Take the action a of level h up: True if a tick that shows nothing is to be followed, else its bounds are the node's, if they are better."""
    A, D = process.sizes[1], process.sizes[2]
    real, whole = settled.real[h], settled.whole[h]
    c, at = whole[NODE], np.uintp(a * outlook_of_action(settled, A))
    settled.untried[h, a], whole[PENDING] = NO, a
    real[SUM_HIGH], real[SUM_HELD] = (
        settled.outlook[h, at + np.uintp(GAIN_UP)],
        settled.outlook[h, at + np.uintp(GAIN_LOW)],
    )
    i, e = 0, link.hidden[c]
    whole[TICK], whole[RANK], whole[LED] = e, 0, -1
    follow = e >= 0
    while e >= 0:
        real[SUM_HIGH] += link.probability[e] * settled.deeper[h, a, i]
        i, e = i + 1, link.following[e]
    if not follow:
        _tried(settled, h)
    elif D == 0:
        push_on(process, settled, h, np.int64(h), a)
    return follow


@_short
def _threshold(real, slack):
    """An action that is worth no more than this does not matter."""
    return real[HELD] + slack if real[HELD] > real[CUTOFF] else real[CUTOFF]


@_short
def _hand_down(settled, h, a, i, A):
    """The sums of the law that follows action a and the i-th tick that shows nothing, as bounds of its actions."""
    outlook, bound = settled.outlook[h], settled.bound[h + _1]
    k = np.uintp(a * outlook_of_action(settled, A) + SUMS + i * A)
    for a2 in range(A):
        bound[a2] = outlook[k + np.uintp(a2)]


@_short
def _let_stand(settled, h, b, support, n):
    """A law stands at level h."""
    law, places, before = settled.law[h], settled.support[h], settled.size[h]
    for k in range(before):
        law[places[k]] = 0.0
    for k in range(n):
        places[k] = support[k]
        law[support[k]] = b[support[k]]
    settled.size[h] = n


@_short
def _begin_corner(settled, h, i, width):
    """Corner i stands at level h: the code of its queue."""
    law, places, before = settled.law[h], settled.support[h], settled.size[h]
    for k in range(before):
        law[places[k]] = 0.0
    law[i // width], places[0], settled.size[h] = 1.0, i // width, 1
    return i % width


@_inner
def search(process, link, tables, graph, settled, node, law, corners, limits):
    """Close the node = (block, code, cut-off) with law = (b, support, places), depth first along blackouts: its bounds are left at the level of its time.
    With corners = (i, end), i < end, settle the corners s·A^D + code = i..end − 1 of the block instead, one after the other, whatever the law is.

    A node below may be left with only an upper bound ≤ its cut-off, because it cannot matter; then its lower bound may be −∞.
    Returns the corner that it came to, and DONE, or GROW or PAUSE when it should be called again from there.
    """
    A, D = process.sizes[1], process.sizes[2]
    slack = limits.slack[0]
    c, code, cutoff = node
    first, top, width = np.uintp(link.time[c]), c, process.power[link.length[c]]
    i, end = corners
    corner = i < end
    if corner:
        code = _begin_corner(settled, first, i, width)
    else:
        _let_stand(settled, first, law[0], law[1], law[2])
    opened = graph.count[OPENED]
    h, came, below = first, FROM_ABOVE, (0.0, 0.0, np.int64(-1))
    while (
        True
    ):  # hide h from the compiler, which else works out in advance where all that a level may need stands, used or not
        h = np.uintp(as_it_is(h))
        real, whole, closed, follow = settled.real[h], settled.whole[h], False, False
        if came == FROM_ABOVE:
            if graph.count[OPENED] - opened > limits.most[0]:
                return i, PAUSE
            level = (h, h == first, corner and h == first)
            closed = _open(process, link, tables, graph, settled, level, (c, code, cutoff), slack)
        elif came == FROM_BELOW:
            follow = _returned(link, settled, h, _threshold(real, slack), below)
            if not follow:
                _tried(settled, h)
        if not closed and not follow:
            a = _untried(process, settled, h)
            if a >= 0 and settled.bound[h, a] > _threshold(real, slack):
                follow, came = _try(process, link, settled, h, a), NEITHER
                if not follow:
                    continue
            elif a >= 0:
                real[HIGH] = max(real[HIGH], settled.bound[h, a])
        if follow:
            e, a = whole[TICK], whole[PENDING]
            p, bound = link.probability[e], settled.deeper[h, a, whole[RANK]]
            cutoff = (_threshold(real, slack) - (real[SUM_HIGH] - p * bound)) / p
            _hand_down(settled, h, a, whole[RANK], A)
            c, code = link.to[e], (whole[QUEUE] + a * process.power[D]) // A if D > 0 else 0
            h, came = h + _1, FROM_ABOVE
            continue
        if not closed and not (corner and h == first) and not _closed(process, graph, settled, h):
            return i, GROW
        if h > first:
            below = real[HIGH], real[HELD], whole[NUMBER]
            h, came = h - _1, FROM_BELOW
            continue
        if not corner:
            return i, DONE
        _corner_settled(process, link, tables, graph, settled, h, top, i)
        i += 1
        if i == end:
            return i, DONE
        c, code, cutoff = top, _begin_corner(settled, first, i, width), NO
        opened, came = graph.count[OPENED], FROM_ABOVE
