"""What `oldlight.planning.settling` calls of the compiled search along blackouts: settle the corners of a block, close laws, follow a plan."""

import numpy as np

from oldlight.kernels.cache import borrowing, compiled
from oldlight.kernels.settling import ACT, CEILING, DONE, HELD, HIGH, NO, pushed, search

_inner = borrowing(error_model="numpy")


@compiled(error_model="numpy")
def settle(process, link, tables, graph, settled, block, start, limits):
    """Settle the corners (s, code) of a block from number `start` = s·A^D + code on: (where it stopped, DONE, GROW or PAUSE)."""
    S, A = process.sizes[0], process.sizes[1]
    h, width = link.time[block], process.power[link.length[block]]
    b, support = np.zeros(S), np.zeros(S, np.int64)
    for i in range(start, S * width):
        s, code = i // width, i % width
        b[s], support[0] = 1.0, s
        node = (block, code, NO)
        status = search(process, link, tables, graph, settled, node, (b, support, 1), True, limits)
        b[s] = 0.0
        if status != DONE:
            return i, status
        at = link.offset[block] + i
        tables.upper[at] = min(settled.real[h, HIGH], settled.cap[h])
        tables.lower[at] = min(settled.real[h, HELD], settled.cap[h])
        tables.actions[at] = settled.whole[h, ACT]
        for a in range(A):
            settled.ceiling[link.blind_offset[block] + i, a] = settled.option[h, CEILING, a]
    return S * width, DONE


@_inner
def _listed(b, support):
    n = 0
    for s in range(len(b)):
        if b[s] > 0.0:
            support[n] = s
            n += 1
    return n


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
        status = search(process, link, tables, graph, settled, node, (laws[i], support, n), False, limits)
        if status != DONE:
            return i, status
        out[i, 0], out[i, 1], out[i, 2] = settled.real[h, HELD], settled.real[h, HIGH], settled.whole[h, ACT]
    return len(laws), DONE


@compiled(error_model="numpy")
def follow(process, link, tables, graph, settled, nodes, start, limits):
    """out[i, j]: what the plan does j ticks after the node (block, codes[i], laws[i]) while nothing is seen, for links with one such tick at each
    block; from i = start on. Returns as `close_laws`."""
    block, codes, laws, out = nodes
    S, A, D = process.sizes[0], process.sizes[1], process.sizes[2]
    H, width = process.sizes[3], process.power[process.sizes[2]]
    b, support = np.zeros((2, S)), np.zeros((2, S), np.int64)
    for i in range(start, len(laws)):
        c, code, now = block, codes[i], 0
        b[0, :] = laws[i]
        b[1, :] = 0.0
        n, before = _listed(b[0], support[0]), 0
        for j in range(H - link.time[block]):
            h = link.time[c]
            if n == 1 and settled.cap[h] == np.inf:
                a = np.int64(tables.actions[link.offset[c] + support[now, 0] * width + code])
            else:
                law = (b[now], support[now], n)
                status = search(process, link, tables, graph, settled, (c, code, NO), law, False, limits)
                if status != DONE:
                    return i, status
                a = settled.whole[h, ACT]
            out[i, j] = a
            head = a if D == 0 else code % A
            m, _earned = pushed(process, h - D, b[now], support[now], n, head, b[1 - now], support[1 - now], before)
            before, n, now = n, m, 1 - now
            code = (code + a * width) // A if D > 0 else 0
            e = link.first[c]
            while e < link.first[c + 1] and link.age[e] >= 0:
                e += 1
            if e == link.first[c + 1]:  # something is always seen: the rest of the sequence is never played
                out[i, j + 1 : H - link.time[block]] = 0
                break
            c = link.to[e]
    return len(laws), DONE
