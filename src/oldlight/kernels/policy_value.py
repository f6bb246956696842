"""What policies under delay are worth, one after the other, compiled: only what differs from the policy before is computed anew.

The recursion is that of `oldlight.planning.delay` for a given policy: with a = π(τ),

    U_h^{(m, δ)}[s, q1..qm] = 1{δ=0}·r_t(s, q1) + θ_t(s, q1, δ)·Σ_s2 P_t(s2|s, q1)·U_{h+1}^{(m, 0)}[s2, q2..qm, a]
                                                + (1 − θ_t(s, q1, δ))·U_{h+1}^{(m+1, δ+1)}[s, q1..qm, a].

Rows are those of `kernels.delay` with the values of all times kept, and `held` is the policy that they belong to. A *cell* is a row with one
newest (or first) state s and all queues. It is computed anew only if the policy differs in it, or if a value of a cell that it reads has changed:
changed[row, s] of the successors of s. What follows the last action (REST) does not depend on the policy and is there before.
"""

from typing import NamedTuple

import numpy as np

from oldlight.kernels.cache import compiled
from oldlight.kernels.delay import (
    ACTIONS,
    ARRIVAL,
    FORCED,
    KIND,
    LENGTH,
    NODE,
    REST,
    ROOT,
    TIME,
    VALUES,
    WAIT,
    WAITED,
)


class Truth(NamedTuple):
    """The process and the link as in `kernels.delay.Model`, with lists of successors; next_row and wait_row[row]: the rows whose values are read
    (−1: none that depends on the policy)."""

    successor: np.ndarray
    probability: np.ndarray
    count: np.ndarray
    rewards: np.ndarray
    theta: np.ndarray
    first_theta: np.ndarray
    blocks: np.ndarray
    powers: np.ndarray
    pending: np.ndarray
    next_row: np.ndarray
    wait_row: np.ndarray
    horizon: int


class Held(NamedTuple):
    """The policy that was valued last and its values; known[0]: are there any? changed[row, s] is scratch."""

    actions: np.ndarray
    values: np.ndarray
    known: np.ndarray
    changed: np.ndarray


@compiled(inline="always")
def _same(one, other, begin, end):
    different = 0
    for i in range(begin, end):
        different += one[i] != other[i]
    return different == 0


@compiled(inline="always")
def _cell(truth, row, s, actions, V):
    """The values of a cell; has any of them changed?"""
    h, m, waited, here, arrival, wait = row[TIME], row[LENGTH], row[WAITED], row[VALUES], row[ARRIVAL], row[WAIT]
    successor, probability, theta = truth.successor, truth.probability, truth.theta
    H, A, t = truth.horizon, truth.rewards.shape[2], h - m
    T = len(truth.count)
    at = min(max(t + T - H, 0), T - 1)
    law = theta[min(max(t, 0), len(theta) - 1), min(s, theta.shape[1] - 1)]
    rewards = truth.rewards[min(max(t, 0), len(truth.rewards) - 1), s]
    paid, forced = t >= 0 and waited == 0, row[FORCED] > 0
    W = truth.powers[max(m - 1, 0)]
    heads = A if m > 0 else 1
    choices = A
    place = row[ACTIONS] + s * W * heads
    values = V[here + s * W * heads : here + (s + 1) * W * heads]
    different = 0
    for q in range(heads):
        for w in range(W):
            a = np.int64(actions[place + w * heads + q])
            head = q if m > 0 else a
            th = 1.0 if forced else law[min(head, len(law) - 1), waited]
            x = 0.0
            if m > 0:
                offset, stride = arrival + a * W + w, choices * W
            else:
                offset, stride = arrival, 1
            if arrival >= 0 and th > 0.0:
                pair = s * A + head
                for k in range(truth.count[at, pair]):
                    x += probability[at, pair, k] * V[offset + successor[at, pair, k] * stride]
            x *= th
            if paid:
                x += rewards[head]
            if wait >= 0 and th < 1.0:
                x += (1.0 - th) * V[wait + ((s * A + a) * W + w) * heads + q]
            i = w * heads + q
            different += values[i] != x
            values[i] = x
    return different > 0


@compiled(inline="always")
def _root_cell(truth, row, s, actions, V):
    """Before anything is seen, the first state being s; has any value changed?"""
    h, here, arrival, wait = row[TIME], row[VALUES], row[ARRIVAL], row[WAIT]
    A, W = truth.rewards.shape[2], truth.powers[row[LENGTH]]
    th = 1.0 if row[FORCED] > 0 else truth.first_theta[h + 1]
    different = 0
    for w in range(W):
        a = truth.pending[h] if h < len(truth.pending) else np.int64(actions[row[ACTIONS] + w])
        x = 0.0
        if arrival >= 0 and th > 0.0:
            x += th * V[arrival + (s * A + a) * W + w]
        if wait >= 0 and th < 1.0:
            x += (1.0 - th) * V[wait + (s * A + a) * W + w]
        different += V[here + s * W + w] != x
        V[here + s * W + w] = x
    return different > 0


@compiled
def _reads_changed(truth, row, b, s, changed):
    """Has a value that cell s of row b reads changed?"""
    after, later = truth.next_row[b], truth.wait_row[b]
    if later >= 0 and changed[later, s]:
        return True
    if after < 0:
        return False
    if row[KIND] == ROOT:
        return changed[after, s]
    A, t, T = truth.rewards.shape[2], row[TIME] - row[LENGTH], len(truth.count)
    at = min(max(t + T - truth.horizon, 0), T - 1)
    for pair in range(s * A, (s + 1) * A):
        for k in range(truth.count[at, pair]):
            if changed[after, truth.successor[at, pair, k]]:
                return True
    return False


@compiled(fastmath={"contract"})
def _value_one(truth, held, actions):
    """Bring the values that are held up to date with `actions`; returns how many cells were computed."""
    S = truth.rewards.shape[1]
    changed, done = held.changed, 0
    for b in range(len(truth.blocks)):
        row = truth.blocks[b]
        kind, m = row[KIND], row[LENGTH]
        if kind == REST:
            continue
        size = truth.powers[m]  # of a cell
        same_root = kind == ROOT and held.known[0] and _same(actions, held.actions, row[ACTIONS], row[ACTIONS] + size)
        for s in range(S):
            same = same_root
            if kind == NODE and held.known[0]:
                begin = row[ACTIONS] + s * size
                same = _same(actions, held.actions, begin, begin + size)
            if same and not _reads_changed(truth, row, b, s, changed):
                changed[b, s] = False
                continue
            different = (
                _cell(truth, row, s, actions, held.values)
                if kind == NODE
                else _root_cell(truth, row, s, actions, held.values)
            )
            changed[b, s] = different or not held.known[0]
            done += 1
    for i in range(len(actions)):
        held.actions[i] = actions[i]
    held.known[0] = True
    return done


@compiled
def value_policies(truth, held, policies, start, by_start):
    """by_start[i, s]: the value of the policy policies[i] from first state s; start = (place and length of the blocks of time 0 that are seen at once and
    of the root, and the probability of the first). Returns how many cells were computed."""
    seen, queues, root, at_once = start
    done, S = 0, by_start.shape[1]
    for i in range(len(policies)):
        done += _value_one(truth, held, policies[i])
        for s in range(S):
            value = 0.0
            if seen >= 0 and at_once > 0.0:
                for code in range(queues):
                    value += held.values[seen + s * queues + code]
                value *= at_once / queues
            if root >= 0:
                value += (1.0 - at_once) * held.values[root + s]
            by_start[i, s] = value
    return done
