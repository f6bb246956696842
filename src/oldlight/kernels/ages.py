"""The compiled loop that follows a policy through one block of a link's tables; `oldlight.planning.ages` says what it computes.

A block is V[s, code] with code = q1 + A·w, w the code of q2..qm, as in `oldlight.kernels.delay`. For each (s, w, q1) the policy
acts a = action[s, w, q1] (or action[0, w, q1] for one that does not look at s), and

    out[s, w, q1] = base[s, q1] + θ·Σ_s2 P(s2|s, q1)·rows[a·W + w, s2] + (1 − θ)·wait[s, a, w, q1].

`rows` is the next block with the state as its last axis, so that the sum runs over one short contiguous row.
"""

from typing import NamedTuple

import numpy as np

from oldlight.kernels.cache import compiled


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
