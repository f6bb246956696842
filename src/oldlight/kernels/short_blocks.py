"""Blocks of the backward induction with few queues for each state, compiled: those of a large process behind a short delay.

Here a sum over successors is a few numbers long, and what costs is everything around it. `oldlight.kernels.block` has the recursion, and calls
these where nothing waits, the best action is taken, and transitions are lists; other blocks are its own.
"""

import numpy as np

from oldlight.kernels.cache import compiled


@compiled(fastmath={"contract"})
def best_of_few(lists, reward, theta, v_next, value, action, s_from, s_to):
    """`back_up` by lists where w are few, nothing waits and the best is taken: no slices of arrays, which would cost more than the sums."""
    successor, probability, first, count = lists
    _, choices, W = v_next.shape
    A, n = value.shape[2], choices * W
    V, out, arg = v_next.reshape(v_next.size), value.reshape(value.size), action.reshape(action.size)
    s_reward, q_reward = reward.shape
    s_theta, q_theta = theta.shape
    x = np.empty(n)
    for s in range(s_from, s_to):
        for q in range(A):
            r = reward[min(s, s_reward - 1), min(q, q_reward - 1)]
            th = theta[min(s, s_theta - 1), min(q, q_theta - 1)]
            begin = first[s * A + q]
            for i in range(n):
                x[i] = r
            for k in range(begin, begin + count[s * A + q]):
                p, at = th * probability[k], successor[k] * n
                for i in range(n):
                    x[i] += p * V[at + i]
            for j in range(W):
                best, chosen = x[j], 0
                for a in range(1, choices):
                    y = x[a * W + j]
                    if y > best:
                        best, chosen = y, a
                out[(s * W + j) * A + q] = best
                if len(arg) > 0:
                    arg[(s * W + j) * A + q] = chosen


@compiled
def best_now(lists, reward, theta, v_next, value, action, s_from, s_to):
    """`back_up_now` by lists where nothing waits and the best is taken."""
    successor, probability, first, count = lists
    S = len(value)
    A = len(count) // S
    V, out, arg = v_next.reshape(v_next.size), value.reshape(value.size), action.reshape(action.size)
    s_reward, q_reward = reward.shape
    s_theta, q_theta = theta.shape
    for s in range(s_from, s_to):
        best, chosen = -np.inf, 0
        for a in range(A):
            mean, begin = 0.0, first[s * A + a]
            for k in range(begin, begin + count[s * A + a]):
                mean += probability[k] * V[successor[k]]
            x = reward[min(s, s_reward - 1), min(a, q_reward - 1)]
            x += theta[min(s, s_theta - 1), min(a, q_theta - 1)] * mean
            if x > best:
                best, chosen = x, a
        out[s] = best
        if len(arg) > 0:
            arg[s] = chosen
