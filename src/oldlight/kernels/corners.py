"""What `oldlight.planning.settling` calls of the compiled search along blackouts: settle the corners of a block or of all, close laws, follow a plan.

Each call from Python takes some 50 µs to hand over its arrays, as long as it takes to settle thirty corners of a small process: so `settle_all` and `enter_corners`
do in one call what concerns all times.
"""

import numpy as np

from oldlight.kernels.cache import borrowing, compiled
from oldlight.kernels.copying import copy_into
from oldlight.kernels.graph import LOW_ACTION, NEXT, OPENED, enter
from oldlight.kernels.outlook import NO, fill_ahead, outlook_of_action, pushed
from oldlight.kernels.products import COLUMNS, ROWS
from oldlight.kernels.settling import ACT, ALONE, DONE, HELD, HIGH, NUMBER, PAUSE, _write_down, search

_inner = borrowing(error_model="numpy")


@_inner
def _listed(b, support):
    n = 0
    for s in range(len(b)):
        if b[s] > 0.0:
            support[n] = s
            n += 1
    return n


@compiled(error_model="numpy")
def settle(process, link, tables, graph, settled, block, start, limits):
    """Settle the corners (s, code) of a block from number `start` = s·A^D + code on: (where it stopped, DONE, GROW or PAUSE)."""
    S, width = process.sizes[0], process.power[link.length[block]]
    law, node = (np.zeros(S), np.zeros(S, np.int64), np.int64(1)), (block, np.int64(0), NO)
    return search(process, link, tables, graph, settled, node, law, (start, S * width), limits)


@compiled(error_model="numpy")
def _settle_start(process, link, tables, graph, settled, limits):
    """The bounds of the start, from the corners of time 0 and from the law of the first state, which is closed, and its sequence. Returns as `search`."""
    law, weight, block = settled.start_law, settled.start_weight, settled.start_block[0]
    low, up, hidden, in_sequence = 0.0, 0.0, weight[-1], len(settled.sequence) > 0
    for c in range(len(weight) - 1):
        for s in range(process.sizes[0] if weight[c] > 0.0 else 0):
            low += weight[c] * law[s] * tables.lower[link.offset[c] + s]
            up += weight[c] * law[s] * tables.upper[link.offset[c] + s]
    if hidden > 0.0 or in_sequence:
        support = np.zeros(process.sizes[0], np.int64)
        here = (law, support, _listed(law, support))
        node = (block, np.int64(0), NO)
        _, status = search(process, link, tables, graph, settled, node, here, ALONE, limits)
        if status != DONE:
            return status
        low, up = low + hidden * settled.real[0, HELD], up + hidden * settled.real[0, HIGH]
    if in_sequence:
        number = settled.whole[0, NUMBER]
        if number >= 0:
            action, following = graph.whole[number, LOW_ACTION], graph.whole[number, NEXT]
            _write_down(graph, settled, 0, action, following, settled.start_sequence)
        else:  # the first state is certain
            copy_into(settled.start_sequence, settled.sequence[0, -2 - number])
    settled.start_bounds[0], settled.start_bounds[1] = low, up
    return DONE


@compiled(error_model="numpy")
def settle_all(process, link, tables, graph, settled, start, limits):
    """Depth 0, where a tick that shows something shows the state itself: settle the corners of all times, the last block first, from start = (block, corner)
    on, then (block −1) the start, if its law is given. Returns the place where it stopped (block −2 at the end), and DONE, GROW or PAUSE."""
    c, i = start
    opened = graph.count[OPENED]
    columns = outlook_of_action(settled, process.sizes[1])
    later, sums = np.zeros(((columns + COLUMNS - 1) // COLUMNS, process.sizes[0] * COLUMNS)), np.empty(ROWS * COLUMNS)
    while c >= 0:
        if i == 0:
            at = link.blind_offset[c]
            for s in range(process.sizes[0]):
                low, up = 0.0, 0.0
                for e in range(link.first[c], link.first[c + 1]):
                    if link.age[e] >= 0:
                        low += link.probability[e] * tables.lower[link.offset[link.to[e]] + s]
                        up += link.probability[e] * tables.upper[link.offset[link.to[e]] + s]
                settled.jump[0, at + s], settled.jump[1, at + s] = low, up
            if len(settled.ahead) > 0:
                fill_ahead(process, link, settled, c, later, sums)
        i, status = settle(process, link, tables, graph, settled, c, i, limits)
        if status != DONE:
            return (c, i), status
        c, i = c - 1, np.int64(0)
        if c >= 0 and graph.count[OPENED] - opened > limits.most[0]:
            return (c, i), PAUSE
    if len(settled.start_law) > 0:
        status = _settle_start(process, link, tables, graph, settled, limits)
        if status != DONE:
            return (c, i), status
    return (c - 1, i), DONE


@compiled(error_model="numpy")
def enter_corners(process, link, tables, graph, places, law, support):
    """The numbers of the corners places[i] = (block, code, s), made if need be; there must be room for them."""
    out = np.empty(len(places), np.int64)
    for i in range(len(places)):
        place = (places[i, 0], places[i, 1], places[i, 2])
        out[i] = enter(process, link, tables, graph, place, law, support, np.int64(1))
    return out


@compiled(error_model="numpy")
def close_laws(process, link, tables, graph, settled, nodes, start, limits):
    """out[i] = (lower, upper, action) of nodes (block, codes[i], laws[i]) from i = start on: (where it stopped, DONE, GROW or PAUSE).

    nodes = (block, codes, laws, out)."""
    block, codes, laws, out = nodes
    h = link.time[block]
    support = np.zeros(process.sizes[0], np.int64)
    for i in range(start, len(laws)):
        n = _listed(laws[i], support)
        node = (block, codes[i], NO)
        _, status = search(process, link, tables, graph, settled, node, (laws[i], support, n), ALONE, limits)
        if status != DONE:
            return i, status
        out[i, 0], out[i, 1], out[i, 2] = settled.real[h, HELD], settled.real[h, HIGH], settled.whole[h, ACT]
    return len(laws), DONE


@_inner
def _follow(process, link, tables, graph, settled, node, law, out, limits):
    """out[j]: what the plan does j ticks after the node (block, code) while nothing is seen; law = (b, support) of two rows each, whose first row is the
    node's law, with its places listed, and whose second row is empty; and its number of places. Returns DONE, or what `search` returned."""
    b, support, n = law
    A, D, H = process.sizes[1], process.sizes[2], process.sizes[3]
    width = process.power[D]
    c, code = node
    now, before = np.int64(0), np.int64(0)
    for j in range(H - link.time[node[0]]):
        h = link.time[c]
        if n == 1 and settled.cap[h] == np.inf:
            a = np.int64(tables.actions[link.offset[c] + support[now, 0] * width + code])
        else:
            here = (b[now], support[now], n)
            _, status = search(process, link, tables, graph, settled, (c, code, NO), here, ALONE, limits)
            if status != DONE:
                return status
            a = settled.whole[h, ACT]
        out[j] = a
        head = a if D == 0 else code % A
        m, _earned = pushed(process, h - D, b[now], support[now], n, head, b[1 - now], support[1 - now], before)
        before, n, now = n, m, 1 - now
        code = (code + a * width) // A if D > 0 else 0
        e = link.first[c]
        while e < link.first[c + 1] and link.age[e] >= 0:
            e += 1
        if e == link.first[c + 1]:  # something is always seen: the rest of the sequence is never played
            for k in range(j + 1, H - link.time[node[0]]):
                out[k] = 0
            break
        c = link.to[e]
    return DONE


@compiled(error_model="numpy")
def follow(process, link, tables, graph, settled, nodes, start, limits):
    """out[i, j]: what the plan does j ticks after the node (block, codes[i], laws[i]) while nothing is seen, for links with one such tick at each
    block; from i = start on. Returns as `close_laws`."""
    block, codes, laws, out = nodes
    b, support = np.zeros((2, process.sizes[0])), np.zeros((2, process.sizes[0]), np.int64)
    for i in range(start, len(laws)):
        copy_into(b[0], laws[i])
        b[1, :] = 0.0
        law = (b, support, _listed(b[0], support[0]))
        status = _follow(process, link, tables, graph, settled, (block, codes[i]), law, out[i], limits)
        if status != DONE:
            return i, status
    return len(laws), DONE
