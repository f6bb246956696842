"""The graph of information states that `oldlight.kernels.search` grows: its arrays, its states, and how one is expanded.

A state of the graph is a block c with a queue code and either a state s (a *corner*) or a law b of the state of step u = h − L
(`belief`, kept sparse). It has bounds up and low on its value, which begin as those of the tables. Expanding it with an
action a adds an *option*: the known reward `gain`, and edges to the information states of the next time,

    value(option) = gain + Σ_e probability[e]·value(child[e]).

With full queue q = (q1..qL, a) and b_0 = b, b_{j+1} = b_j P_{u+j}(q_{j+1}) the tick with age k shows a state of step h + 1 − k, drawn
from b_j with j = L + 1 − k; a tick without anything newer leaves a corner a corner while L < D, and leads to the law b_1 beyond.

Arrays that grow are doubled by the caller when a call says so; every call can be made again.
"""

from typing import NamedTuple

import numpy as np

from oldlight.kernels.cache import borrowing, compiled

# columns of Graph.whole
BLOCK, CODE, STATE, BELIEF, BELIEF_SIZE, OPTION, CHOSEN, LOW_ACTION, KNOWN, TURN, NEXT = range(11)
WHOLE = 11
UP, LOW = range(2)  # columns of Graph.real
ACTION, FROM, TO, NEXT_OPTION = range(4)  # columns of Graph.option
STATES, OPTIONS, EDGES, BELIEFS, EXPANDED, OPENED = range(6)  # places of Graph.count
UNKNOWN = -1
ROUND = 2.0**46
# odd factors of a hash: its products are made side by side, and mixed once
_BLOCK, _CODE, _STATE, _LAW, _MIX = (
    np.uint64(i)
    for i in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93, 0xBF58476D1CE4E5B9)
)
_inner = borrowing(error_model="numpy")


class Process(NamedTuple):
    """sizes = (S, A, D, H); power[L] = A^L; successors of row s·A + a of step t; rewards[t, s, a]; one step if stationary; full[t]: does
    every row of step t list all states, in their order? tie: bounds this close are equal."""

    sizes: np.ndarray
    power: np.ndarray
    index: np.ndarray
    weight: np.ndarray
    count: np.ndarray
    rewards: np.ndarray
    full: np.ndarray
    tie: np.ndarray


class Link(NamedTuple):
    """Blocks of all times in one numbering, and their ticks as in `oldlight.model.channels.automaton`; hidden[c], the first tick of block c that shows
    nothing and is not the end, and following[e], the next one of its block after tick e, or −1."""

    time: np.ndarray
    length: np.ndarray
    root: np.ndarray
    offset: np.ndarray
    blind_offset: np.ndarray
    first: np.ndarray
    to: np.ndarray
    age: np.ndarray
    probability: np.ndarray
    hidden: np.ndarray
    following: np.ndarray


class Tables(NamedTuple):
    """See `oldlight.planning.ages.AgeTables`; forced[h] is the action of a time whose action was chosen before the start, or −1."""

    upper: np.ndarray
    lower: np.ndarray
    blind: np.ndarray
    actions: np.ndarray
    forced: np.ndarray


class Graph(NamedTuple):
    """States, options, edges and sparse laws; `slots` is a hash table of states, by key[s] where they are laws, and corner[i] the number + 1 of the
    corner whose law could be unknown, at the places of `Tables.blind`."""

    whole: np.ndarray
    real: np.ndarray
    q: np.ndarray
    option: np.ndarray
    gain: np.ndarray
    child: np.ndarray
    probability: np.ndarray
    place: np.ndarray
    mass: np.ndarray
    slots: np.ndarray
    key: np.ndarray
    corner: np.ndarray
    count: np.ndarray


class Scratch(NamedTuple):
    """The laws b_0..b_{L+1} of one expansion: dense, and as mass[j, k] at support[j, k], k < size[j]; and the rewards on the way."""

    law: np.ndarray
    mass: np.ndarray
    support: np.ndarray
    size: np.ndarray
    earned: np.ndarray


@borrowing(fastmath={"contract", "reassoc"}, forceinline=True)
def _key_of_law(key, law, support, n):
    """Σ_s key[s]·law[s]: the same in any order of the support, but for rounding. Two laws that are equal may differ by that, and are then rarely two states."""
    total = 0.0
    if n == len(key):
        for s in range(n):
            total += key[s] * law[s]
    else:
        for i in range(n):
            total += key[support[i]] * law[support[i]]
    return total


@_inner
def find_slot(graph, place, law, support, n):
    """(the slot of a state, its number or −1): s ≥ 0 is a corner, else the law law[support[:n]], compared to within 2^−46."""
    block, code, s = place
    x = np.uint64(block) * _BLOCK + np.uint64(code) * _CODE + np.uint64(s + 1) * _STATE
    if s < 0:
        x += np.uint64(np.int64(_key_of_law(graph.key, law, support, n) * ROUND + 0.5)) * _LAW + np.uint64(n)
    x = (x ^ (x >> np.uint64(29))) * _MIX
    mask = len(graph.slots) - 1
    slot = np.int64((x ^ (x >> np.uint64(32))) & np.uint64(mask))
    while graph.slots[slot] > 0:
        i = graph.slots[slot] - 1
        row = graph.whole[i]
        if row[BLOCK] == block and row[CODE] == code and row[STATE] == s:
            if s >= 0:
                return slot, i
            if row[BELIEF_SIZE] == n:
                same = True
                start = row[BELIEF]
                for j in range(n):
                    if abs(law[graph.place[start + j]] - graph.mass[start + j]) > 1.0 / ROUND:
                        same = False
                        break
                if same:
                    return slot, i
        slot = (slot + 1) & mask
    return slot, -1


@_inner
def bounds(process, link, tables, graph, place, mass, support, n):
    """(upper, lower) of the state place = (block, code, s) by the tables and by the corners that the graph knows."""
    block, code, s = place
    A = process.sizes[1]
    width = process.power[link.length[block]]
    start = link.offset[block] + code
    if s >= 0:
        at = start + s * width
        return tables.upper[at], tables.lower[at]
    blind = link.blind_offset[block] + code
    up, low, known = 0.0, 0.0, 0
    for i in range(n):
        s2 = support[i]
        up += mass[i] * tables.upper[start + s2 * width]
        low += mass[i] * tables.blind[blind + s2 * width]
        corner = graph.corner[blind + s2 * width] - 1
        if corner >= 0 and graph.whole[corner, KNOWN] > 0:
            known += 1
    if known > 0:  # the value of each action is convex in the law
        best = -np.inf
        for a in range(A):
            x = 0.0
            for i in range(n):
                s2 = support[i]
                corner = graph.corner[blind + s2 * width] - 1
                if corner >= 0 and graph.whole[corner, KNOWN] > 0:
                    x += mass[i] * min(graph.q[corner, a], graph.real[corner, UP])
                else:
                    x += mass[i] * tables.upper[start + s2 * width]
            best = max(best, x)
        up = min(up, best)
    return up, low


@_inner
def _make(process, link, tables, graph, place, slot, mass, support, n):
    """Make the state place = (block, code, s) and return its number."""
    block, code, s = place
    i = graph.count[STATES]
    graph.count[STATES] += 1
    graph.slots[slot] = i + 1
    row = graph.whole[i]
    row[BLOCK], row[CODE], row[STATE], row[OPTION], row[KNOWN], row[LOW_ACTION] = block, code, s, -1, 0, UNKNOWN
    row[TURN], row[NEXT] = 0, UNKNOWN
    up, low = bounds(process, link, tables, graph, place, mass, support, n)
    graph.real[i, UP], graph.real[i, LOW] = max(up, low), low
    row[CHOSEN] = UNKNOWN
    if s >= 0:
        at = s * process.power[link.length[block]] + code
        row[CHOSEN] = tables.actions[link.offset[block] + at]
        if link.blind_offset[block] >= 0:
            graph.corner[link.blind_offset[block] + at] = i + 1
    else:
        start = graph.count[BELIEFS]
        graph.count[BELIEFS] += n
        row[BELIEF], row[BELIEF_SIZE] = start, n
        for j in range(n):
            graph.place[start + j] = support[j]
            graph.mass[start + j] = mass[j]
    for a in range(process.sizes[1]):
        graph.q[i, a] = np.inf
    return i


@compiled(error_model="numpy")
def enter(process, link, tables, graph, place, law, support, n):
    """The number of the state place = (block, code, s), made if need be."""
    slot, i = find_slot(graph, place, law, support, n)
    if i < 0:
        i = _make(process, link, tables, graph, place, slot, law[support[:n]], support, n)
    return i


@compiled(error_model="numpy")
def find(graph, place, law, support, n):
    """The number of the state place = (block, code, s), or −1."""
    return find_slot(graph, place, law, support, n)[1]


@_inner
def _push(process, link, graph, scratch, i, a):
    """Fill the scratch with the laws b_0, b_1, .. of state i under its queue and a, as far as a tick needs them."""
    A, row = process.sizes[1], graph.whole[i]
    block = row[BLOCK]
    L = link.length[block]
    h = link.time[block]
    first, last = link.first[block], link.first[block + 1]
    far = 0
    for e in range(first, last):
        if link.age[e] >= 0:
            far = max(far, L + 1 - link.age[e])
        elif link.length[link.to[e]] == L:
            far = max(far, 1)
    for j in range(far + 1):  # what is left of an earlier use
        for k in range(scratch.size[j]):
            scratch.law[j, scratch.support[j, k]] = 0.0
        scratch.size[j] = 0
    if row[STATE] >= 0:
        scratch.law[0, row[STATE]] = 1.0
        scratch.support[0, 0], scratch.mass[0, 0] = row[STATE], 1.0
        scratch.size[0] = 1
    else:
        for k in range(row[BELIEF_SIZE]):
            s = graph.place[row[BELIEF] + k]
            scratch.law[0, s] = graph.mass[row[BELIEF] + k]
            scratch.support[0, k], scratch.mass[0, k] = s, graph.mass[row[BELIEF] + k]
        scratch.size[0] = row[BELIEF_SIZE]
    scratch.earned[0] = 0.0
    code = row[CODE]
    for j in range(far):
        t = h - L + j
        q = a if j == L else code % A
        code = code // A
        now = min(max(t, 0), len(process.index) - 1)
        reward_step = min(max(t, 0), len(process.rewards) - 1)
        total, n = 0.0, 0
        for k in range(scratch.size[j]):
            s = scratch.support[j, k]
            p = scratch.law[j, s]
            if t >= 0:
                total += p * process.rewards[reward_step, s, q]
            line = s * A + q
            for i2 in range(process.count[now, line]):
                s2, x = process.index[now, line, i2], p * process.weight[now, line, i2]
                if x > 0.0:  # a product of small numbers may be 0: its place would be listed again and again
                    if scratch.law[j + 1, s2] == 0.0:
                        scratch.support[j + 1, n] = s2
                        n += 1
                    scratch.law[j + 1, s2] += x
        for k in range(n):
            scratch.mass[j + 1, k] = scratch.law[j + 1, scratch.support[j + 1, k]]
        scratch.size[j + 1] = n
        scratch.earned[j + 1] = scratch.earned[j] + total


@_inner
def visit(process, link, tables, graph, scratch, i, a, option):
    """Act a at state i: an upper bound, from the graph where it has the next state, else from the tables.

    option ≥ 0: the next states are entered, and the edges and the gain of that option written.
    """
    _push(process, link, graph, scratch, i, a)
    block = graph.whole[i, BLOCK]
    L = link.length[block]
    full = graph.whole[i, CODE] + a * process.power[L]
    value, gain = 0.0, 0.0
    edge = graph.count[EDGES]
    for e in range(link.first[block], link.first[block + 1]):
        to, k, p = link.to[e], link.age[e], link.probability[e]
        j, s, shown = 0, -1, 1
        if k >= 0:
            j = L + 1 - k
            shown = scratch.size[j]
        elif link.length[to] == L:
            j = 1
        else:
            s = graph.whole[i, STATE]
        code = full // process.power[j]
        gain += p * scratch.earned[j]
        law, mass, support, n = scratch.law[j], scratch.mass[j], scratch.support[j], scratch.size[j]
        if s < 0 and k < 0 and n == 1 and not link.root[to]:
            s = support[0]
        if option < 0 and (k >= 0 or s >= 0):  # bounds of corners are in the tables
            at, width = link.offset[to] + code, process.power[link.length[to]]
            if k < 0:
                value += p * tables.upper[at + s * width]
            else:
                for m in range(shown):
                    value += p * mass[m] * tables.upper[at + support[m] * width]
            continue
        for m in range(shown):
            share = 1.0
            if k >= 0:
                s = support[m]
                share = mass[m]
            place = (to, code, s)
            slot, child = find_slot(graph, place, law, support, n)
            if option < 0:
                up = bounds(process, link, tables, graph, place, mass, support, n)[0]
                value += p * (up if child < 0 else min(up, graph.real[child, UP]))
                continue
            if child < 0:
                child = _make(process, link, tables, graph, place, slot, mass, support, n)
            graph.child[edge], graph.probability[edge] = child, p * share
            value += p * share * graph.real[child, UP]
            edge += 1
    if option >= 0:
        graph.option[option, TO] = edge
        graph.gain[option] = gain
        graph.count[EDGES] = edge
    return gain + value


@_inner
def look(process, link, tables, graph, scratch, i, a):
    """An upper bound of acting a at state i, by one step of lookahead."""
    return visit(
        process, link, tables, graph, scratch, i, a, np.int64(UNKNOWN)
    )  # a plain number: a literal compiles again


@_inner
def expand(process, link, tables, graph, scratch, i, a):
    """Add the option a to state i."""
    option = graph.count[OPTIONS]
    graph.count[OPTIONS] += 1
    graph.option[option, ACTION], graph.option[option, FROM] = a, graph.count[EDGES]
    visit(process, link, tables, graph, scratch, i, a, option)
    graph.option[option, NEXT_OPTION] = graph.whole[i, OPTION]
    graph.whole[i, OPTION] = option
    graph.count[EXPANDED] += 1
    return option


@_inner
def option_of(graph, i, a):
    o = graph.whole[i, OPTION]
    while o >= 0 and graph.option[o, ACTION] != a:
        o = graph.option[o, NEXT_OPTION]
    return o


@_inner
def room(process, link, graph, block):
    """Is there room for one more option of a state of this block?"""
    ticks = link.first[block + 1] - link.first[block]
    more = ticks * process.sizes[0]
    return (
        graph.count[STATES] + more <= len(graph.whole)
        and graph.count[EDGES] + more <= len(graph.child)
        and graph.count[BELIEFS] + more <= len(graph.place)
        and graph.count[OPTIONS] < len(graph.option)
        and 2 * (graph.count[STATES] + more) <= len(graph.slots)
    )


@compiled(error_model="numpy")
def rehash(graph):
    """Fill a new, empty table of slots."""
    law = np.zeros(len(graph.key))
    for i in range(graph.count[STATES]):
        row = graph.whole[i]
        n = row[BELIEF_SIZE] if row[STATE] < 0 else 0
        support = graph.place[row[BELIEF] : row[BELIEF] + n]
        for j in range(n):
            law[support[j]] = graph.mass[row[BELIEF] + j]
        slot, _known = find_slot(graph, (row[BLOCK], row[CODE], row[STATE]), law, support, n)
        graph.slots[slot] = i + 1
        for j in range(n):
            law[support[j]] = 0.0
