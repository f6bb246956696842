"""The compiled loops of `oldlight.learners.loss_ucbvi`, which says what they compute.

The visited information states are the nodes of a tree. Node 0 stands before the start, with the one action 0. A node is
entered by an observation (`corner[h, s]`) or by a loss (`child[node, a]`); −1 where nothing was visited. `Tree` has:

    nodes[i, :]         step, state (−1 for a loss), parent, the action that led here, the next node of the same step
    child[i, a]         the node after acting a and losing the next observation
    visits[i, a]        N_h(τ, a): how often the next state was seen after acting a
    first[i, a]         the first of the entries that hold N_h(τ, a, s2), −1 for none
    entries[j, :]       s2, how often, the next entry
    value[i], choice[i] V_h(τ) and the action chosen there
    level[h]            the newest node of step h
    top[h + 1]          the largest value of step h; h = −1 is node 0
    shown[h]            episodes in which s_h was seen
    sizes               nodes and entries in use

A block of episodes comes back to Python where an episode could need more nodes or entries than there is room for.
"""

from typing import Any, NamedTuple

import numpy as np

from oldlight.kernels.cache import borrowing, compiled
from oldlight.kernels.episode_blocks import draws_of, keep_policy, play_blackout

STEP, STATE, PARENT, ACTION, NEXT = 0, 1, 2, 3, 4
TIE = 1e-12


class Tree(NamedTuple):
    nodes: Any
    child: Any
    visits: Any
    first: Any
    entries: Any
    value: Any
    choice: Any
    corner: Any
    level: Any
    shown: Any
    top: Any
    sizes: Any


class Rules(NamedTuple):
    """The number k of episodes so far, the constant c of the bonus, ι, and rewards[h, s, a]."""

    episodes: int
    c: float
    iota: float
    rewards: Any


@compiled
def _node(h, state, parent, action, tree):
    """A new node of step h."""
    i, nodes = tree.sizes[0], tree.nodes
    tree.sizes[0] += 1
    nodes[i, STEP], nodes[i, STATE], nodes[i, PARENT], nodes[i, ACTION] = h, state, parent, action
    nodes[i, NEXT] = tree.level[h]
    tree.value[i] = tree.top[h + 1]
    tree.level[h] = i
    return i


@compiled
def count_episode(states, actions, tree, path):
    """Count an episode: path[h] is the node at time h."""
    child, first, entries, corner, sizes = tree.child, tree.first, tree.entries, tree.corner, tree.sizes
    i, a = 0, 0
    for h in range(len(states)):
        s = states[h]
        if s >= 0:
            tree.shown[h] += 1
            tree.visits[i, a] += 1
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
                corner[h, s] = _node(h, s, np.int64(-1), np.int64(-1), tree)
            i = corner[h, s]
        else:
            if child[i, a] < 0:
                child[i, a] = _node(h, np.int64(-1), i, a, tree)
            i = child[i, a]
        path[h] = i
        a = actions[h]


@compiled
def _uniform(key, i):
    """A number in [0, 1) from a key and a node (splitmix64)."""
    x = np.uint64(key) + np.uint64(i + 1) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return np.float64(x >> np.uint64(11)) * 2.0**-53


@compiled
def q_values(i, tree, rules, q):
    """Q_h(τ, a) of node i into q[a]."""
    k, c, iota, R = rules
    first, entries, top = tree.first, tree.entries, tree.top
    H, A = R.shape[0], R.shape[2]
    h, s, parent, before = tree.nodes[i, STEP], tree.nodes[i, STATE], tree.nodes[i, PARENT], tree.nodes[i, ACTION]
    parents = 0
    if i > 0 and s < 0:
        parents = tree.visits[parent, before]
        if parents == 0:
            q[:] = top[h + 1]
            return
    for a in range(1 if i == 0 else A):
        n = tree.visits[i, a]
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
            rate = tree.shown[h + 1] / k
            ahead = 0.0
            j = first[i, a]
            while j >= 0:
                ahead += entries[j, 1] * tree.value[tree.corner[h + 1, entries[j, 0]]]
                j = entries[j, 2]
            lost = top[h + 2] if tree.child[i, a] < 0 else tree.value[tree.child[i, a]]
            x += rate * ahead / n + (1.0 - rate) * lost + c * H * (np.sqrt(H * iota / n) + np.sqrt(iota / k))
        q[a] = min(x, top[h + 1])


@compiled
def _back_up(i, key, fall, tree, rules, q):
    """V and the action of node i; with `fall` a value never rises."""
    q_values(i, tree, rules, q)
    A = 1 if i == 0 else len(q)
    best = q[:A].max()
    ties = 0
    for a in range(A):
        ties += q[a] >= best - TIE
    pick = min(np.int64(_uniform(key, i) * ties), ties - 1)
    for a in range(A):
        if q[a] >= best - TIE:
            if pick == 0:
                tree.choice[i] = a
            pick -= 1
    tree.value[i] = min(tree.value[i], best) if fall else best


@compiled
def plan(tree, rules, everything, path, key, draws, sequences):
    """Back up every node, or those of the path alone, last step first; then follow the choices along blackouts."""
    H, S, A = rules.rewards.shape
    child, corner = tree.child, tree.corner
    q = np.empty(A)
    for h in range(H - 1, -1, -1):
        i = tree.level[h] if everything else path[h]
        while i >= 0:
            _back_up(i, key, not everything, tree, rules, q)
            i = tree.nodes[i, NEXT] if everything else -1
    _back_up(np.int64(0), key, np.bool_(False), tree, rules, q)
    for row in range(H + 1):
        for s in range(S if row > 0 else 1):
            i = child[0, 0] if row == 0 else corner[row - 1, s]
            for j in range(H - max(row - 1, 0)):
                a = draws[row, s, 0, j] if i < 0 else tree.choice[i]
                sequences[row, s, 0, j] = a
                if i >= 0:
                    i = child[i, a]


@borrowing
def take_up(sequences, table):
    """table = sequences, one behind the other; returns: has it changed?"""
    changed = False
    for i in range(len(table)):
        changed = changed or table[i] != sequences[i]
        table[i] = sequences[i]
    return changed


@borrowing
def show(lost, played, states, actions):
    """The states of one episode that were seen, −1 for the others, and its actions."""
    for h in range(len(states)):
        states[h] = -1 if lost[h, 0] else played.states[h, 0]
        actions[h] = played.actions[h, 0]


@compiled
def block(world, rule, played, learnt, changed, rng, block, e):
    """A block of episodes, from its episode e on; learnt = (tree, rules, everything, draws, sequences), changed: has the policy since the last one that was kept?
    Returns that, and the first episode that was not played: there is no room for its nodes, or the block is done."""
    tree, rules, everything, draws, sequences = learnt
    H, _, A = rules.rewards.shape
    states, actions, path = np.empty(H, np.int64), np.empty(H, np.int64), np.empty(H, np.int64)
    first = e
    while e < len(block.returns) and tree.sizes[0] + H <= len(tree.nodes) and tree.sizes[1] + H <= len(tree.entries):
        changed = keep_policy(block, e, rule.table, changed)
        play_blackout(e, world, rule, block, played)
        show(draws_of(block, e).lost, played, states, actions)
        count_episode(states, actions, tree, path)
        key = rng.integers(0, 2**62)
        draws[:] = rng.integers(0, A, size=draws.shape)
        now = Rules(rules.episodes + e - first + 1, rules.c, rules.iota, rules.rewards)
        plan(tree, now, everything, path, key, draws, sequences)
        changed = take_up(sequences.reshape(-1), rule.table) or changed
        block.estimates[e] = tree.value[0]
        e += 1
    return changed, e
