"""What sequences of actions earn while nothing is seen: `oldlight.planning.blackout` walked along every sequence in one call, last step first."""

import numpy as np

from oldlight.kernels.cache import borrowing, compiled
from oldlight.kernels.outlook import pushed

_inner = borrowing(error_model="numpy")


@_inner
def _walk(process, losses, corner, u, s, queue, actions, laws):
    """Rewards from step u on, when s_u = s, `queue` is under way and `actions` follow while nothing is seen. losses = (delay, λ, G[s, queue]);
    laws = (b, support): scratch of two rows each, b empty before and after."""
    d, seen, G = losses
    b, support = laws
    A, H = process.sizes[1], process.sizes[3]
    top = A ** max(d - 1, 0)
    weight, value = 1.0, 0.0
    b[0, s], support[0, 0] = 1.0, s
    n, before, now = np.int64(1), np.int64(0), 0
    for j in range(H - d - u):
        a = np.int64(actions[j])
        head = a if d == 0 else queue % A
        queue = queue if d == 0 else queue // A + a * top
        m, earned = pushed(process, u + j, b[now], support[now], n, head, b[1 - now], support[1 - now], before)
        value += weight * earned
        before, n, now = n, m, 1 - now
        if u + j + 1 < H - d:
            shown = 0.0
            for k in range(n):
                shown += b[now, support[now, k]] * corner[u + j + 1, support[now, k], queue]
            value += weight * seen[u + j + 1] * shown
            weight *= 1.0 - seen[u + j + 1]
            if weight == 0.0:
                break
    for k in range(n):
        value += weight * b[now, support[now, k]] * G[support[now, k], queue]
        b[now, support[now, k]] = 0.0
    for k in range(before):
        b[1 - now, support[1 - now, k]] = 0.0
    return value


@compiled(error_model="numpy")
def walk_all(process, losses, sequences, first, corner, unseen):
    """corner[u, s, q]: what the policy earns from an observation of step u on; unseen[s]: what it earns where nothing is ever seen and s_0 = s, by the
    sequence sequences[0, 0, 0], whose first actions have the code `first`."""
    d = losses[0]
    S, H = process.sizes[0], process.sizes[3]
    laws = (np.zeros((2, S)), np.zeros((2, S), np.int64))
    for u in range(H - d - 1, -1, -1):
        for s in range(S):
            for q in range(corner.shape[2]):
                corner[u, s, q] = _walk(process, losses, corner, u, s, q, sequences[u + 1, s, q], laws)
    for s in range(S):
        unseen[s] = _walk(process, losses, corner, np.int64(0), s, first, sequences[0, 0, 0, d:], laws)
