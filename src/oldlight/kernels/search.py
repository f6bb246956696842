"""The compiled search behind `oldlight.planning.search`: depth first where the policy goes; the graph is `kernels.graph`'s."""

from typing import NamedTuple

import numpy as np

from oldlight.kernels.cache import compiled
from oldlight.kernels.graph import (
    ACTION,
    BELIEF,
    BELIEF_SIZE,
    BLOCK,
    CHOSEN,
    CODE,
    CUT_OFF,
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
    WEIGHT,
    expand,
    option_of,
    room,
    visit,
)  # fmt: skip

DONE, GROW, PAUSE = range(3)
_inner = compiled


class Limits(NamedTuple):
    """Gaps up to `slack` are closed; states whose probability times gap is at most `cut` wait for a later `turn` (1, 2, ..); a
    call makes at most `most` options."""

    cut: np.ndarray
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
            graph.q[i, a] = min(graph.q[i, a], visit(process, link, tables, graph, scratch, i, a, -1))
    graph.whole[i, KNOWN] = 1
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
    if row[STATE] < 0:  # the tables may have come down since
        width = process.sizes[1] ** link.length[row[BLOCK]]
        up = 0.0
        for j in range(row[BELIEF], row[BELIEF] + row[BELIEF_SIZE]):
            up += graph.mass[j] * tables.upper[link.offset[row[BLOCK]] + graph.place[j] * width + row[CODE]]
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
        at = link.offset[row[BLOCK]] + row[STATE] * process.sizes[1] ** link.length[row[BLOCK]] + row[CODE]
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
        graph.q[i, a] = min(
            graph.q[i, a], visit(process, link, tables, graph, scratch, i, a, -1)
        )  # the graph may know more
        _choose(process, graph, i)
        if row[CHOSEN] == a:
            break
    if not room(process, link, graph, row[BLOCK]):
        return -1
    return expand(process, link, tables, graph, scratch, i, row[CHOSEN])


@_inner
def _open(process, graph, i, weight, limits):
    """Is there anything to gain from state i, met with this probability, that this turn has not looked at?"""
    gap = graph.real[i, UP] - graph.real[i, LOW]
    done = graph.whole[i, TURN] == limits.turn[0] and graph.real[i, WEIGHT] >= weight
    if gap <= limits.slack[0] or done:
        return False
    if weight * gap <= limits.cut[0]:
        graph.count[CUT_OFF] += 1
        return False
    return True


@compiled
def close(process, link, tables, graph, scratch, start, limits):
    """Depth first from the start: at each state follow the action with the highest upper bound until no other can beat it.

    start[k] = (state, probability) as floats. Returns DONE, or GROW or PAUSE when it should be called again for the same turn.
    """
    H = process.sizes[3]
    state, option, edge = np.empty(H + 2, np.int64), np.empty(H + 2, np.int64), np.empty(H + 2, np.int64)
    weight, total, before = np.empty(H + 2), np.empty(H + 2), np.empty(H + 2)
    expanded = graph.count[EXPANDED]
    for k in range(len(start)):
        if not _open(process, graph, np.int64(start[k, 0]), start[k, 1], limits):
            continue
        depth = 0
        state[0], weight[0], option[0] = np.int64(start[k, 0]), start[k, 1], -1
        while depth >= 0:
            i = state[depth]
            row = graph.whole[i]
            if option[depth] < 0:
                if graph.count[EXPANDED] - expanded >= limits.most[0]:
                    return PAUSE
                o = _next_option(process, link, tables, graph, scratch, i)
                if o < 0:
                    return GROW
                option[depth], edge[depth], total[depth] = o, graph.option[o, FROM], graph.gain[o]
                for e in range(graph.option[o, FROM], graph.option[o, TO]):
                    total[depth] += graph.probability[e] * graph.real[graph.child[e], UP]
            o = option[depth]
            going = graph.real[i, UP] - graph.real[i, LOW] > limits.slack[0]
            if going and row[KNOWN] and edge[depth] > graph.option[o, FROM]:
                others = -np.inf  # does another action look better by now?
                for a in range(process.sizes[1]):
                    if a != graph.option[o, ACTION]:
                        others = max(others, graph.q[i, a])
                if total[depth] < others - process.tie[0]:
                    option[depth] = -1
                    continue
            e = edge[depth]
            while going and e < graph.option[o, TO]:
                if _open(process, graph, graph.child[e], weight[depth] * graph.probability[e], limits):
                    break
                e += 1
            edge[depth] = e + 1
            if going and e < graph.option[o, TO]:
                before[depth] = graph.real[graph.child[e], UP]
                depth += 1
                state[depth], weight[depth], option[depth] = (
                    graph.child[e],
                    weight[depth - 1] * graph.probability[e],
                    -1,
                )
                continue
            _settle(process, link, tables, graph, i)
            open_still = graph.real[i, UP] - graph.real[i, LOW] > limits.slack[0]
            if open_still and _next_option(process, link, tables, graph, scratch, i) != o:
                option[depth] = -1
                continue
            row[TURN], graph.real[i, WEIGHT] = limits.turn[0], weight[depth]
            depth -= 1
            if depth >= 0:
                e = edge[depth] - 1
                total[depth] += graph.probability[e] * (graph.real[i, UP] - before[depth])
    return DONE
