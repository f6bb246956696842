"""The compiled search behind `oldlight.planning.search`: depth first where the policy goes; the graph is `kernels.graph`'s."""

from typing import NamedTuple

import numpy as np

from oldlight.kernels import settling
from oldlight.kernels.cache import borrowing, compiled
from oldlight.kernels.graph import (
    ACTION,
    BELIEF,
    BELIEF_SIZE,
    BLOCK,
    CHOSEN,
    CODE,
    EXPANDED,
    FROM,
    KNOWN,
    LOW,
    LOW_ACTION,
    NEXT_OPTION,
    OPTION,
    STATE,
    TO,
    TURN,
    UNKNOWN,
    UP,
    bounds,
    expand,
    look,
    option_of,
    room,
)  # fmt: skip

DONE, GROW, PAUSE = settling.DONE, settling.GROW, settling.PAUSE
ASKED, ASKED_CLOSED = 1, 2  # Graph.whole[:, KNOWN]: every action is bounded; bounded again after the state was closed
_inner = borrowing(error_model="numpy")


class Limits(NamedTuple):
    """Gaps up to `slack` are closed; a state is looked into once in each `turn` (1, 2, ..); a call makes at most `most` options."""

    slack: np.ndarray
    turn: np.ndarray
    most: np.ndarray


@_inner
def _ask(process, link, tables, graph, scratch, i):
    """Bound every action of state i that has no option yet, and choose."""
    forced = tables.forced[link.time[graph.whole[i, BLOCK]]]
    for a in range(process.sizes[1]):
        if forced >= 0 and a != forced:
            graph.q[i, a] = -np.inf
        elif option_of(graph, i, a) < 0:
            graph.q[i, a] = min(graph.q[i, a], look(process, link, tables, graph, scratch, i, a))
    graph.whole[i, KNOWN] = max(graph.whole[i, KNOWN], ASKED)
    _choose(process, graph, i)


@_inner
def _choose(process, graph, i):
    """The action with the highest bound, one with an option where bounds are equal; the state's bound is that one's."""
    best, top = -1, -np.inf
    for a in range(process.sizes[1]):
        if graph.q[i, a] > top:
            best, top = a, graph.q[i, a]
    if option_of(graph, i, best) < 0:
        for a in range(process.sizes[1]):
            if graph.q[i, a] >= top - process.tie[0] and option_of(graph, i, a) >= 0:
                best = a
    graph.whole[i, CHOSEN] = best
    graph.real[i, UP] = max(min(graph.real[i, UP], top), graph.real[i, LOW])


@_inner
def _update(process, link, tables, graph, i):
    """Bounds of state i from its options; the best upper bound among them."""
    row = graph.whole[i]
    best = -np.inf
    o = row[OPTION]
    while o >= 0:
        up, low = graph.gain[o], graph.gain[o]
        for e in range(graph.option[o, FROM], graph.option[o, TO]):
            up += graph.probability[e] * graph.real[graph.child[e], UP]
            low += graph.probability[e] * graph.real[graph.child[e], LOW]
        a = graph.option[o, ACTION]
        graph.q[i, a] = min(graph.q[i, a], up)
        best = max(best, graph.q[i, a])
        if low > graph.real[i, LOW]:
            graph.real[i, LOW], row[LOW_ACTION] = low, a
        o = graph.option[o, NEXT_OPTION]
    if row[STATE] < 0:  # what is known of the corners may have come down since
        here = slice(row[BELIEF], row[BELIEF] + row[BELIEF_SIZE])
        place = (row[BLOCK], row[CODE], row[STATE])
        up, _low = bounds(process, link, tables, graph, place, graph.mass[here], graph.place[here], row[BELIEF_SIZE])
        graph.real[i, UP] = min(graph.real[i, UP], up)
    graph.real[i, UP] = max(graph.real[i, UP], graph.real[i, LOW])
    return best


@_inner
def _settle(process, link, tables, graph, i):
    """Update state i and put a corner's upper bound into the tables: V is convex in the law, so it bounds all of its block."""
    best = _update(process, link, tables, graph, i)
    row = graph.whole[i]
    if row[KNOWN]:
        _choose(process, graph, i)
    if row[STATE] >= 0:
        at = link.offset[row[BLOCK]] + row[STATE] * process.power[link.length[row[BLOCK]]] + row[CODE]
        tables.upper[at] = min(tables.upper[at], graph.real[i, UP])
    return best


@_inner
def _next_option(process, link, tables, graph, scratch, i):
    """The option to follow at state i: the one with the highest upper bound, made if need be (−1: no room for it)."""
    row = graph.whole[i]
    best = _settle(process, link, tables, graph, i)
    if not row[KNOWN] and (row[CHOSEN] == UNKNOWN or (row[OPTION] >= 0 and best < graph.real[i, UP] - process.tie[0])):
        _ask(process, link, tables, graph, scratch, i)
    while True:
        a = row[CHOSEN]
        option = option_of(graph, i, a)
        if option >= 0:
            return option
        if not row[KNOWN]:
            break
        graph.q[i, a] = min(graph.q[i, a], look(process, link, tables, graph, scratch, i, a))  # the graph may know more
        _choose(process, graph, i)
        if row[CHOSEN] == a:
            break
    if not room(process, link, graph, row[BLOCK]):
        return -1
    return expand(process, link, tables, graph, scratch, i, row[CHOSEN])


@_inner
def _sharpen(process, link, tables, graph, scratch, i, slack):
    """Before a law is looked into: bound every action of its closed corners anew, since theirs bound the law's."""
    row = graph.whole[i]
    start = link.blind_offset[row[BLOCK]] + row[CODE]
    width = process.power[link.length[row[BLOCK]]]
    for j in range(row[BELIEF], row[BELIEF] + row[BELIEF_SIZE]):
        c = graph.corner[start + graph.place[j] * width] - 1
        if c >= 0 and graph.whole[c, KNOWN] < ASKED_CLOSED and graph.real[c, UP] - graph.real[c, LOW] <= slack:
            _ask(process, link, tables, graph, scratch, c)
            graph.whole[c, KNOWN] = ASKED_CLOSED


@_inner
def _open(graph, i, limits):
    """Is there anything to gain from state i that this turn has not looked at?"""
    return graph.real[i, UP] - graph.real[i, LOW] > limits.slack[0] and graph.whole[i, TURN] != limits.turn[0]


@_inner
def _others(process, graph, i, a):
    """The highest upper bound of another action than a; −∞ where they have not been asked for."""
    best = -np.inf
    if graph.whole[i, KNOWN]:
        for a2 in range(process.sizes[1]):
            if a2 != a:
                best = max(best, graph.q[i, a2])
    return best


@compiled(error_model="numpy")
def _close_law(process, link, tables, graph, settled, i, enough, limits):
    """Close a law between settled corners (`oldlight.kernels.settling`), or bring its upper bound below `enough`."""
    row = graph.whole[i]
    b, support, n = np.zeros(process.sizes[0]), np.zeros(process.sizes[0], np.int64), row[BELIEF_SIZE]
    for k in range(n):
        support[k] = graph.place[row[BELIEF] + k]
        b[support[k]] = graph.mass[row[BELIEF] + k]
    node = (row[BLOCK], row[CODE], enough)
    _, status = settling.search(process, link, tables, graph, settled, node, (b, support, n), settling.ALONE, limits)
    if status == DONE:
        h = link.time[row[BLOCK]]
        graph.real[i, UP] = min(graph.real[i, UP], settled.real[h, settling.HIGH])
        if settled.real[h, settling.HELD] > graph.real[i, LOW]:
            graph.real[i, LOW], row[LOW_ACTION] = settled.real[h, settling.HELD], settled.whole[h, settling.ACT]
    return status


@compiled(error_model="numpy")
def option_at(process, link, tables, graph, scratch, i, a):
    """The option a of state i, made if need be; −1: there is no room for it."""
    option = option_of(graph, i, a)
    if option < 0 and room(process, link, graph, graph.whole[i, BLOCK]):
        option = expand(process, link, tables, graph, scratch, i, a)
    return option


@compiled(error_model="numpy")
def close(process, link, tables, graph, scratch, settled, start, limits):
    """Depth first from the start: at each state follow the action with the highest upper bound until no other can beat it.

    A state is left early when its upper bound is so low, below `enough`, that the state before will take another action.
    start: numbers of states. Returns DONE, or GROW or PAUSE when it should be called again for the same turn.
    """
    H, tie, slack = process.sizes[3], process.tie[0], limits.slack[0]
    state, option, edge, last = np.empty((4, H + 2), np.int64)
    total, before, enough = np.empty((3, H + 2))
    expanded = graph.count[EXPANDED]
    for k in range(len(start)):
        if not _open(graph, start[k], limits):
            continue
        depth = 0
        state[0], option[0], last[0], enough[0] = start[k], -1, -1, -np.inf
        while depth >= 0:
            i = state[depth]
            row = graph.whole[i]
            law = row[STATE] < 0 and not link.root[row[BLOCK]]
            if law and link.time[row[BLOCK]] >= settled.since[0]:
                status = _close_law(process, link, tables, graph, settled, i, enough[depth], limits)
                if status != DONE:
                    return status
                if graph.real[i, UP] > enough[depth]:
                    row[TURN] = limits.turn[0]
                depth -= 1
                if depth >= 0:
                    e = edge[depth] - 1
                    total[depth] += graph.probability[e] * (graph.real[i, UP] - before[depth])
                continue
            if option[depth] < 0:
                if graph.count[EXPANDED] - expanded >= limits.most[0]:
                    return PAUSE
                if row[STATE] < 0 and row[TURN] != limits.turn[0] and last[depth] < 0:
                    _sharpen(process, link, tables, graph, scratch, i, slack)
                o = _next_option(process, link, tables, graph, scratch, i)
                if o < 0:
                    return GROW
                option[depth], edge[depth], total[depth] = o, graph.option[o, FROM], graph.gain[o]
                for e in range(graph.option[o, FROM], graph.option[o, TO]):
                    total[depth] += graph.probability[e] * graph.real[graph.child[e], UP]
                if o == last[depth]:  # still the best, and there is nothing left to look into
                    edge[depth] = graph.option[o, TO]
            o = option[depth]
            others = _others(process, graph, i, graph.option[o, ACTION])
            going = graph.real[i, UP] - graph.real[i, LOW] > slack and max(total[depth], others) > enough[depth]
            if going and total[depth] < others - tie and graph.option[o, FROM] < edge[depth] < graph.option[o, TO]:
                option[depth] = -1  # another action looks better by now
                continue
            e = edge[depth]
            while going and e < graph.option[o, TO]:
                if _open(graph, graph.child[e], limits):
                    break
                e += 1
            edge[depth] = e + 1
            if going and e < graph.option[o, TO]:
                before[depth] = graph.real[graph.child[e], UP]
                spare = total[depth] - max(others, enough[depth]) + 2 * tie
                depth += 1
                state[depth], option[depth], last[depth] = graph.child[e], -1, -1
                enough[depth] = before[depth - 1] - spare / graph.probability[e]
                continue
            _settle(process, link, tables, graph, i)
            if graph.real[i, UP] > enough[depth]:
                if graph.real[i, UP] - graph.real[i, LOW] > slack and last[depth] != o:
                    last[depth], option[depth] = o, -1
                    continue
                row[TURN] = limits.turn[0]
            depth -= 1
            if depth >= 0:
                e = edge[depth] - 1
                total[depth] += graph.probability[e] * (graph.real[i, UP] - before[depth])
    return DONE
