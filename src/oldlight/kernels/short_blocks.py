"""Blocks of the backward induction with few queues for each state, compiled: those of a large process behind a short delay.

Here a sum over successors is a few numbers long, and what costs is everything around it. `oldlight.kernels.block` has the recursion, and calls
these where nothing waits, the best action is taken, and transitions are lists; other blocks are its own.
"""

import numpy as np

from oldlight.kernels.cache import compiled

ONE, TWO = (
    np.uint64(1),
    np.uint64(2),
)  # places are counted without a sign: the compiler would look for places before the first one


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
            k = np.uint64(first[s * A + q])
            end = k + np.uint64(count[s * A + q])
            p, at = th * probability[k], np.uint64(successor[k]) * np.uint64(n)
            for i in range(np.uint64(n)):
                x[i] = r + p * V[at + i]
            k += ONE
            while k < end:
                p, at = th * probability[k], np.uint64(successor[k]) * np.uint64(n)
                for i in range(np.uint64(n)):
                    x[i] += p * V[at + i]
                k += ONE
            to = np.uint64(s * W * A + q)
            for j in range(np.uint64(W)):
                best, chosen, i = x[j], 0, j
                for a in range(1, choices):
                    i += np.uint64(W)
                    later = x[i] > best
                    best = x[i] if later else best
                    chosen = a if later else chosen
                out[to] = best
                if len(arg) > 0:
                    arg[to] = chosen
                to += np.uint64(A)


@compiled(fastmath={"contract"})
def best_now(lists, reward, theta, v_next, value, action, s_from, s_to):
    """`back_up_now` by lists where nothing waits and the best is taken."""
    successor, probability, first, count = lists
    A = len(count) // len(value)
    V, out, arg = v_next.reshape(v_next.size), value.reshape(value.size), action.reshape(action.size)
    s_reward, q_reward = reward.shape
    s_theta, q_theta = theta.shape
    rewards, thetas = reward.reshape(reward.size), theta.reshape(theta.size)
    reward_step, theta_step = np.uint64(min(q_reward - 1, 1)), np.uint64(min(q_theta - 1, 1))  # 0: one for all
    row, keep = np.uint64(s_from * A), len(arg) > 0
    for s in range(s_from, s_to):
        best, chosen = -np.inf, 0
        at, at_theta = np.uint64(min(s, s_reward - 1) * q_reward), np.uint64(min(s, s_theta - 1) * q_theta)
        for a in range(A):
            k = np.uint64(first[row])
            end = k + np.uint64(count[row])
            mean = probability[k] * V[np.uint32(successor[k])]
            k += ONE
            if k + ONE < end:
                mean += (
                    probability[k] * V[np.uint32(successor[k])]
                    + probability[k + ONE] * V[np.uint32(successor[k + ONE])]
                )
                k += TWO
            while k < end:
                mean += probability[k] * V[np.uint32(successor[k])]
                k += ONE
            x = rewards[at] + thetas[at_theta] * mean
            later = x > best
            best = x if later else best
            chosen = a if later else chosen
            row += ONE
            at += reward_step
            at_theta += theta_step
        out[s] = best
        if keep:
            arg[s] = chosen
