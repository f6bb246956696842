"""Compiled loops that value a policy behind a link: backward through one block of its tables (`follow`; `oldlight.planning.ages` says what it
computes) and forward over what it reaches (`walk`; `oldlight.planning.table_walk`).

A block is V[s, code] with code = q1 + A·w, w the code of q2..qm, as in `oldlight.kernels.delay`. For each (s, w, q1) the policy
acts a = action[s, w, q1] (or action[0, w, q1] for one that does not look at s), and

    out[s, w, q1] = base[s, q1] + θ·Σ_s2 P(s2|s, q1)·rows[a·W + w, s2] + (1 − θ)·wait[s, a, w, q1].

`rows` is the next block with the state as its last axis, so that the sum runs over one short contiguous row.
"""

from typing import NamedTuple

import numpy as np

from oldlight.kernels.cache import borrowing, compiled
from oldlight.kernels.copying import copy_into


class Lists(NamedTuple):
    """The successors of each (s, q1), row s·A + q1; where they are dense, the index is empty and the weights are the whole row."""

    index: np.ndarray
    weight: np.ndarray
    count: np.ndarray


@compiled(fastmath={"contract", "reassoc"})
def follow(lists, base, theta, rows, wait, action, out):
    """See the module's text; an empty `wait` means θ = 1."""
    S, W, A = out.shape
    by_state = len(action) > 1
    dense = len(lists.index) == 0
    for s in range(S):
        chosen = action[s] if by_state else action[0]
        for w in range(W):
            for q in range(A):
                a = np.int64(chosen[w, q])
                row = s * A + q
                after = rows[a * W + w]
                x = 0.0
                if dense:
                    weights = lists.weight[row]
                    for k in range(len(weights)):
                        x += weights[k] * after[k]
                else:
                    for k in range(lists.count[row]):
                        x += lists.weight[row, k] * after[lists.index[row, k]]
                x = base[s, q] + theta * x
                if len(wait):
                    x += (1.0 - theta) * wait[s, a, w, q]
                out[s, w, q] = x


class Occupied(NamedTuple):
    """How likely the information states of one time are, by the places of the tables' blocks: weight[row·S + s], where row numbers the queue
    codes of all blocks, from `begin`; only rows that are `live` hold numbers."""

    weight: np.ndarray
    live: np.ndarray
    begin: int


@borrowing
def _add(place, offset, code, law, p):
    """Add p·law to the row of a block's code."""
    S = len(law)
    row = (offset - place.begin) // S + code
    held = place.weight[row * S : (row + 1) * S]
    if not place.live[row]:
        place.live[row] = True
        held[:] = 0.0
    for s in range(S):
        held[s] += p * law[s]


@borrowing
def _push(index, weight, count, A, q, law, out):
    """out = law·P(q)."""
    out[:] = 0.0
    for s in range(len(law)):
        if law[s] > 0.0:
            row = s * A + q
            for k in range(count[row]):
                out[index[row, k]] += law[s] * weight[row, k]


@borrowing
def _places(law):
    """How many states a law holds."""
    n = 0
    for s in range(len(law)):
        if law[s] != 0.0:
            n += 1
    return n


@borrowing
def _age(lists, A, q, laws, place, blind_place, p, known, offsets, code):
    """Nothing newer beyond the depth: step u + 1 takes the place of step u. A law of one state only is as good as that state.

    laws[0] is the law; the last two rows are scratch."""
    index, weight, count = lists
    law, sure, unsure = laws[0], laws[-2], laws[-1]
    sure[:] = 0.0
    unsure[:] = 0.0
    if known:
        for s in range(len(law)):
            row = s * A + q
            to = sure if count[row] == 1 else unsure
            for k in range(count[row]):
                to[index[row, k]] += law[s] * weight[row, k]
    else:
        _push(index, weight, count, A, q, law, unsure)
        if _places(unsure) == 1:
            _add(place, offsets[0], code, unsure, p)
            return
    if _places(sure) > 0:
        _add(place, offsets[0], code, sure, p)
    if _places(unsure) > 0:
        _add(blind_place, offsets[1], code, unsure, p)


@borrowing
def _spread(process, link, c, code, a, known, laws, coming, blind_coming):
    """Act a on law laws[0] of a block's code: what step h earns; the weights of the next time are added to `coming`."""
    index, weight, count, rewards, power, _depth = process
    h, L, A = link.time[c], link.length[c], rewards.shape[2]
    full, last = code + a * power[L], h + 1 == link.time[-1]
    for j in range(L if last else L + 1):
        now = min(max(h - L + j, 0), len(index) - 1)
        _push(index[now], weight[now], count[now], A, full // power[j] % A, laws[j], laws[j + 1])
    earned = 0.0
    for s in range(len(laws[L])):
        earned += laws[L, s] * rewards[min(h, len(rewards) - 1), s, a]
    for e in range(link.first[c], link.first[c] if last else link.first[c + 1]):
        to, k, p = link.to[e], link.age[e], link.probability[e]
        if k >= 0:
            _add(coming, link.offset[to], full // power[L + 1 - k], laws[L + 1 - k], p)
        elif link.length[to] > L:
            if known:
                _add(coming, link.offset[to], full, laws[0], p)
            else:
                _add(blind_coming, link.blind_offset[to], full, laws[0], p)
        else:
            now = min(max(h - L, 0), len(index) - 1)
            lists = (index[now], weight[now], count[now])
            offsets = (link.offset[to], link.blind_offset[to])
            _age(lists, A, full % A, laws, coming, blind_coming, p, known, offsets, full // A)
    return earned


@compiled
def walk(process, link, actions, blind_actions, blocks, now, after):
    """One time of the policy that acts by the tables: what its step earns on average, and how likely the states of the next time are.

    process = (index, weight, count, each with its step first; rewards; powers of A; depth); blocks: the first number of this time's blocks and
    the one after the last; now, after: two `Occupied` each, of states and of laws of the state.
    """
    here, blind_here = now
    coming, blind_coming = after
    S, A = process[3].shape[1:]
    laws, split, used = np.empty((process[5] + 4, S)), np.zeros((A, S)), np.zeros(A, np.bool_)
    earned = 0.0
    for c in range(blocks[0], blocks[1]):
        width = process[4][link.length[c]]
        first, first_blind = (link.offset[c] - here.begin) // S, (link.blind_offset[c] - blind_here.begin) // S
        for code in range(width):
            if not link.root[c] and here.live[first + code]:
                used[:] = False
                split[:] = 0.0
                for s in range(S):
                    w = here.weight[(first + code) * S + s]
                    if w > 0.0:
                        a = np.int64(actions[link.offset[c] + s * width + code])
                        split[a, s] = w
                        used[a] = True
                for a in range(A):
                    if used[a]:
                        copy_into(laws[0], split[a])
                        earned += _spread(process, link, c, code, a, True, laws, coming, blind_coming)
            if link.blind_offset[c] >= 0 and blind_here.live[first_blind + code]:
                a = np.int64(blind_actions[link.blind_offset[c] // S + code])
                copy_into(laws[0], blind_here.weight[(first_blind + code) * S : (first_blind + code + 1) * S])
                earned += _spread(process, link, c, code, a, False, laws, coming, blind_coming)
    return earned
