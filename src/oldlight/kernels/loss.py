"""The compiled search of planning under loss; `oldlight.planning.loss` says what it computes.

Step u is settled (seen, or known to be lost) at time h = u + d. A node is (u, b, q): the belief b of s_u and the code q of
the actions since. Arrays:

    P[u, s, a, s2], R[u, s, a]   the first axis has length 1 for a stationary process
    seen[u]                      λ_u
    corner[i, u, s, q]           bounds on the value of the corners e_s: lower (i = 0) and upper (i = 1), equal when exact;
                                 u = U is the open-loop value after the last action
    qup[u, s, q, a]              an upper bound on the value of acting a at a corner
    table[slot, :], bounds[slot, :]   the beliefs already met: (hash, u, q, action, rounded belief) and (lower, upper)

Few arguments and one entry point, `visit`, keep the time to compile short.
"""

from typing import NamedTuple

import numpy as np

from oldlight.kernels.belief_table import GAP, HEAD, SHIFT
from oldlight.kernels.cache import compiled

ROUND = 2.0**46  # beliefs that agree to 2^−46 in every entry share a table entry
PROBES = 8
NO = -np.inf
CUTOFF, LOW, UP, FOUND_LOW, FOUND_UP = 0, 1, 2, 3, 4  # columns of real[u]
QUEUE, ACTION, FOUND_ACTION, PENDING, DIGITS = (
    0,
    1,
    2,
    3,
    4,
)  # columns of whole[u]; then rounded belief, tried, next queue
_inner = compiled


class Tree(NamedTuple):
    """The process, the bounds and the beliefs met (see above); d: the length of the queue; slack: gaps up to this are closed.

    Scratch of level u: space[u] = A next beliefs, then ceiling, settled, settled_up [a]; real[u], whole[u] by the names above.
    count: nodes expanded, entries of the table.
    """

    d: int
    slack: float
    P: np.ndarray
    R: np.ndarray
    seen: np.ndarray
    corner: np.ndarray
    qup: np.ndarray
    table: np.ndarray
    bounds: np.ndarray
    space: np.ndarray
    real: np.ndarray
    whole: np.ndarray
    count: np.ndarray


@_inner
def _find(u, b, q, digits, table):
    """Round b into digits; the slot of this node, or of a free place for it, or (all taken) the first of its places."""
    x = np.uint64(u) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(q) * np.uint64(0xC2B2AE3D27D4EB4F)
    S = len(digits)
    for s in range(S):
        digits[s] = np.int64(b[s] * ROUND + 0.5)
        x ^= np.uint64(digits[s]) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    key = np.int64((x ^ (x >> np.uint64(32))) | np.uint64(1))
    mask = len(table) - 1
    first = (key >> SHIFT) & mask
    for i in range(PROBES):
        slot = (first + i) & mask
        if table[slot, 0] == 0:
            return slot, key, False
        if table[slot, 0] == key and table[slot, 1] == u and table[slot, 2] == q:
            s = 0
            while s < S and table[slot, HEAD + s] == digits[s]:
                s += 1
            if s == S:
                return slot, key, True
    return first, key, False


@_inner
def _act(u, b, q, a, d, P, R, seen, corner, after):
    """Act a at (u, b, q): the settled reward and what is seen next (lower, upper), the next q; the next belief in after."""
    S = P.shape[1]
    A = P.shape[2]
    now = min(u, P.shape[0] - 1)
    rnow = min(u, R.shape[0] - 1)
    head = a
    q_next = 0
    if d > 0:
        head = q % A
        q_next = q // A + a * A ** (d - 1)
    low = 0.0
    after[:S] = 0.0
    for s in range(S):
        if b[s] > 0.0:
            low += b[s] * R[rnow, s, head]
            for s2 in range(S):
                after[s2] += b[s] * P[now, s, head, s2]
    up = low
    arrival = seen[u + 1]
    if arrival > 0.0:
        for s2 in range(S):
            if after[s2] > 0.0:
                low += arrival * after[s2] * corner[0, u + 1, s2, q_next]
                up += arrival * after[s2] * corner[1, u + 1, s2, q_next]
    return low, up, q_next


@_inner
def _open(u, b, q, cutoff, solving, tree):
    """Come to a node: True if it is settled at once (its bounds and action in real[u], whole[u]), else ready to expand."""
    d, slack, P, R, seen, corner, qup, table, bounds, space, real, whole, count = tree
    S = P.shape[1]
    A = P.shape[2]
    U = corner.shape[1] - 1
    real[u, CUTOFF], whole[u, QUEUE] = cutoff, q
    real[u, LOW], real[u, UP], whole[u, ACTION] = NO, np.inf, 0
    if u == U:
        value = 0.0
        for s in range(S):
            value += b[s] * corner[0, U, s, q]
        real[u, LOW], real[u, UP] = value, value
        return True
    if solving < 0:
        slot, _key, known = _find(u, b, q, whole[u, DIGITS : DIGITS + S], table)
        if known:
            real[u, LOW], real[u, UP], whole[u, ACTION] = bounds[slot, 0], bounds[slot, 1], table[slot, 3]
            if real[u, UP] <= cutoff or real[u, UP] - real[u, LOW] <= GAP * slack:
                return True
    real[u, FOUND_LOW], real[u, FOUND_UP], whole[u, FOUND_ACTION] = real[u, LOW], real[u, UP], whole[u, ACTION]
    ceiling, settled, settled_up = space[u, A], space[u, A + 1], space[u, A + 2]
    top = NO
    for a in range(A):
        x = np.inf
        if solving < 0:
            x = 0.0
            for s in range(S):
                x += b[s] * qup[u, s, q, a]
        ceiling[a] = min(x, real[u, FOUND_UP])
        top = max(top, ceiling[a])
    if top <= cutoff:
        real[u, LOW], real[u, UP], whole[u, ACTION] = NO, top, 0
        return True
    count[0] += 1
    stay = 1.0 - seen[u + 1]
    for a in range(A):  # one step of lookahead sharpens the bound
        whole[u, DIGITS + S + a] = 0  # not tried yet
        if ceiling[a] > cutoff:
            after = space[u, a]
            settled[a], settled_up[a], q2 = _act(u, b, q, a, d, P, R, seen, corner, after)
            whole[u, DIGITS + S + A + a] = q2
            deeper = 0.0
            if u + 1 == U:
                for s in range(S):
                    deeper += after[s] * corner[1, U, s, q2]
            elif stay > 0.0:
                deeper = NO
                for a2 in range(A):
                    x = 0.0
                    for s in range(S):
                        x += after[s] * qup[u + 1, s, q2, a2]
                    deeper = max(deeper, x)
            ceiling[a] = min(ceiling[a], settled_up[a] + stay * deeper)
    real[u, LOW], real[u, UP], whole[u, ACTION] = NO, NO, 0
    return False


@_inner
def _close(u, b, solving, tree):
    """Every action of the node is tried or pruned: remember what was found."""
    qup, table, bounds, space, real, whole, count = tree[6:]
    S = qup.shape[1]
    A = qup.shape[3]
    q = whole[u, QUEUE]
    if solving >= 0:
        for a in range(A):
            qup[u, solving, q, a] = space[u, A, a]
        return
    if real[u, FOUND_LOW] >= real[u, LOW]:
        real[u, LOW], whole[u, ACTION] = real[u, FOUND_LOW], whole[u, FOUND_ACTION]
    real[u, UP] = min(real[u, UP], real[u, FOUND_UP])
    slot, key, _known = _find(u, b, q, whole[u, DIGITS : DIGITS + S], table)
    if table[slot, 0] == 0:
        count[1] += 1
    table[slot, 0], table[slot, 1], table[slot, 2], table[slot, 3] = key, u, q, whole[u, ACTION]
    bounds[slot, 0], bounds[slot, 1] = real[u, LOW], real[u, UP]
    for s in range(S):
        table[slot, HEAD + s] = whole[u, DIGITS + s]


@_inner
def _search(first, b_first, q_first, solving, tree):
    """(lower, upper, action) of the node (first, b_first, q_first), depth first along blackouts, without recursion.

    solving ≥ 0: the node is that corner, being solved: its row of qup is written rather than used.
    A node below may be left with only `upper` ≤ its cut-off, because it cannot matter; then its lower may be −∞.
    """
    slack, seen, space, real, whole = tree.slack, tree.seen, tree.space, tree.real, tree.whole
    S = tree.P.shape[1]
    A = tree.P.shape[2]
    u = first
    coming = True
    cutoff, q = NO, q_first
    while True:
        who = solving if u == first else -1
        b = b_first if u == first else space[u - 1, whole[u - 1, PENDING]]
        if coming:
            if _open(u, b, q, cutoff, who, tree):
                if u == first:
                    return real[u, LOW], real[u, UP], whole[u, ACTION]
                u -= 1
                coming = False
                continue
        else:  # back from the blackout that follows the pending action
            a = whole[u, PENDING]
            stay = 1.0 - seen[u + 1]
            low = space[u, A + 1, a]
            up = space[u, A + 2, a]
            if stay > 0.0:
                low += stay * real[u + 1, LOW]
                up += stay * real[u + 1, UP]
            space[u, A, a] = min(space[u, A, a], up)
            real[u, UP] = max(real[u, UP], space[u, A, a])
            if low > real[u, LOW]:
                real[u, LOW], whole[u, ACTION] = low, a
        a = -1  # the untried action with the highest ceiling
        for i in range(A):
            if whole[u, DIGITS + S + i] == 0 and (a < 0 or space[u, A, i] > space[u, A, a]):
                a = i
        threshold = real[u, LOW] + slack if real[u, LOW] > real[u, CUTOFF] else real[u, CUTOFF]
        if a < 0 or space[u, A, a] <= threshold:
            if a >= 0:
                real[u, UP] = max(real[u, UP], space[u, A, a])
            _close(u, b, who, tree)
            if u == first:
                return real[u, LOW], real[u, UP], whole[u, ACTION]
            u -= 1
            coming = False
            continue
        whole[u, DIGITS + S + a] = 1
        whole[u, PENDING] = a
        coming = seen[u + 1] < 1.0
        if coming:
            cutoff = (threshold - space[u, A + 2, a]) / (1.0 - seen[u + 1])
            q = whole[u, DIGITS + S + A + a]
            u += 1


@compiled
def visit(u, beliefs, queues, solving, start, out, tree):
    """Search the nodes (u, beliefs[i], queues[i]) from i = start on; out[i] = (lower, upper, action).

    Returns where it stopped: at the end, or earlier when the table is two thirds full and should grow.
    """
    for i in range(start, len(queues)):
        out[i, 0], out[i, 1], out[i, 2] = _search(u, beliefs[i], queues[i], solving[i], tree)
        if 3 * tree.count[1] > 2 * len(tree.table):
            return i + 1
    return len(queues)
