# mypy: ignore-errors
"""The compiled loops of `oldlight.learners.loss_ucbvi`, which says what they compute.

The visited information states are the nodes of a tree. Node 0 stands before the start, with the one action 0. A node is
entered by an observation (`corner[h, s]`) or by a loss (`child[node, a]`); −1 where nothing was visited. Arrays:

    nodes[i, :]         step, state (−1 for a loss), parent, the action that led here, the next node of the same step
    child[i, a]         the node after acting a and losing the next observation
    count[i, a]         N_h(τ, a): how often the next state was seen after acting a
    first[i, a]         the first of the entries that hold N_h(τ, a, s2), −1 for none
    entries[j, :]       s2, how often, the next entry
    value[i], choice[i] V_h(τ) and the action chosen there
    level[h]            the newest node of step h
    top[h + 1]          the largest value of step h; h = −1 is node 0
    shown[h]            episodes in which s_h was seen
    sizes               nodes and entries in use
"""

import numba as nb
import numpy as np

STEP, STATE, PARENT, ACTION, NEXT = 0, 1, 2, 3, 4
TIE = 1e-12


@nb.njit(nogil=True, cache=True)
def _node(h, state, parent, action, nodes, value, top, level, sizes):
    """A new node of step h."""
    i = sizes[0]
    sizes[0] += 1
    nodes[i, STEP], nodes[i, STATE], nodes[i, PARENT], nodes[i, ACTION], nodes[i, NEXT] = (
        h, state, parent, action, level[h],
    )  # fmt: skip
    value[i] = top[h + 1]
    level[h] = i
    return i


@nb.njit(nogil=True, cache=True)
def count_episode(states, actions, nodes, child, count, first, entries, value, corner, level, shown, top, sizes, path):
    """Count an episode: path[h] is the node at time h."""
    i, a = 0, 0
    for h in range(len(states)):
        s = states[h]
        if s >= 0:
            shown[h] += 1
            count[i, a] += 1
            j = first[i, a]
            while j >= 0 and entries[j, 0] != s:
                j = entries[j, 2]
            if j < 0:
                j = sizes[1]
                sizes[1] += 1
                entries[j, 0], entries[j, 1], entries[j, 2] = s, 0, first[i, a]
                first[i, a] = j
            entries[j, 1] += 1
            if corner[h, s] < 0:
                corner[h, s] = _node(h, s, -1, -1, nodes, value, top, level, sizes)
            i = corner[h, s]
        else:
            if child[i, a] < 0:
                child[i, a] = _node(h, -1, i, a, nodes, value, top, level, sizes)
            i = child[i, a]
        path[h] = i
        a = actions[h]


@nb.njit(nogil=True, cache=True)
def _chance(key, i):
    """A number in [0, 1) from a key and a node (splitmix64)."""
    x = np.uint64(key) + np.uint64(i + 1) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return np.float64(x >> np.uint64(11)) * 2.0**-53


@nb.njit(nogil=True, cache=True)
def q_values(i, k, c, iota, R, nodes, child, count, first, entries, value, corner, shown, top, q):
    """Q_h(τ, a) of node i into q[a]."""
    H, A = R.shape[0], R.shape[2]
    h, s = nodes[i, STEP], nodes[i, STATE]
    parent, before = nodes[i, PARENT], nodes[i, ACTION]
    parents = 0
    if i > 0 and s < 0:
        parents = count[parent, before]
        if parents == 0:
            q[:] = top[h + 1]
            return
    for a in range(1 if i == 0 else A):
        n = count[i, a]
        if n == 0 and h < H - 1:
            q[a] = top[h + 1]
            continue
        x = 0.0
        if s >= 0:
            x = R[h, s, a]
        elif i > 0:
            j = first[parent, before]
            while j >= 0:
                x += entries[j, 1] * R[h, entries[j, 0], a]
                j = entries[j, 2]
            x = x / parents + c * np.sqrt(H * iota / parents)
        if h < H - 1:
            rate = shown[h + 1] / k
            ahead = 0.0
            j = first[i, a]
            while j >= 0:
                ahead += entries[j, 1] * value[corner[h + 1, entries[j, 0]]]
                j = entries[j, 2]
            lost = top[h + 2] if child[i, a] < 0 else value[child[i, a]]
            x += rate * ahead / n + (1.0 - rate) * lost + c * H * (np.sqrt(H * iota / n) + np.sqrt(iota / k))
        q[a] = min(x, top[h + 1])


@nb.njit(nogil=True, cache=True)
def _back_up(i, key, fall, k, c, iota, R, nodes, child, count, first, entries, value, choice, corner, shown, top, q):
    """V and the action of node i; with `fall` a value never rises."""
    q_values(i, k, c, iota, R, nodes, child, count, first, entries, value, corner, shown, top, q)
    A = 1 if i == 0 else len(q)
    best = q[:A].max()
    ties = 0
    for a in range(A):
        ties += q[a] >= best - TIE
    pick = min(np.int64(_chance(key, i) * ties), ties - 1)
    for a in range(A):
        if q[a] >= best - TIE:
            if pick == 0:
                choice[i] = a
            pick -= 1
    value[i] = min(value[i], best) if fall else best


@nb.njit(nogil=True, cache=True)
def plan(
    everything, path, key, draws, sequences, k, c, iota, R, nodes, child, count, first, entries, value, choice, corner,
    level, shown, top,
):  # fmt: skip
    """Back up every node, or those of the path alone, last step first; then follow the choices along blackouts."""
    H, S, A = R.shape
    q = np.empty(A)
    for h in range(H - 1, -1, -1):
        i = level[h] if everything else path[h]
        while i >= 0:
            _back_up(
                i, key, not everything, k, c, iota, R, nodes, child, count, first, entries, value, choice, corner,
                shown, top, q,
            )  # fmt: skip
            i = nodes[i, NEXT] if everything else -1
    _back_up(0, key, False, k, c, iota, R, nodes, child, count, first, entries, value, choice, corner, shown, top, q)
    for row in range(H + 1):
        for s in range(S if row > 0 else 1):
            i = child[0, 0] if row == 0 else corner[row - 1, s]
            for j in range(H - max(row - 1, 0)):
                a = draws[row, s, 0, j] if i < 0 else choice[i]
                sequences[row, s, 0, j] = a
                if i >= 0:
                    i = child[i, a]
