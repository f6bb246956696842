"""One time of a learner's backward induction where nothing is late, compiled: `kernels.block.back_up_now` in mode OPTIMISTIC without a wait.

Then an information state is a state, and with the pair (s, a) counted as s·A + a

    x[pair] = min(reward + bonus + θ·Σ_s2 P(s2|pair)·V_next[s2] + coefficient·√Var_P(V_next), clip),      value[s] = max_a x[s·A + a],

a few numbers for each pair, so that what costs is everything around them. Nothing here counts references, and there are three loops over the pairs: the sums
(lists of different lengths), the rest of x (the same for every pair, so that the compiler does several at a time) and the choice. Additions are in the order
of `back_up_now`.
"""

import numpy as np

from oldlight.kernels.block import SHIFTS
from oldlight.kernels.cache import borrowing

ONE = np.uint64(1)  # places are counted without a sign: the compiler would look for places before the first one


@borrowing
def add_up(lists, V, after, mean, square):
    """mean[pair] = Σ_s2 P(s2|pair)·V[after + s2], and square[pair] the same of V²."""
    successor, probability, first, count = lists
    begin = np.uint64(after)
    for pair in range(len(mean)):
        k = np.uint64(first[pair])
        end = k + np.uint64(count[pair])
        total, squares = 0.0, 0.0
        while k < end:
            p, v = probability[k], V[begin + np.uint64(np.uint32(successor[k]))]
            total += p * v
            squares += p * v * v
            k += ONE
        mean[pair] = total
        square[pair] = squares


@borrowing
def worth(reward, theta, pairs, clip, mean, square, x):
    """x of every pair, from its sums; pairs: as in `kernels.delay._fill_step`, arrays by pair, `spread` empty for a bonus without variance."""
    bonus, theta_bonus, spread, known = pairs
    if len(spread) > 0:
        for i in range(len(x)):
            y = reward[i] + (bonus[i] + theta_bonus[i])
            y += theta[i] * mean[i]
            y += spread[i] * np.sqrt(max(square[i] - mean[i] * mean[i], 0.0))
            y = y if y < clip else clip
            x[i] = y if known[i] else clip
    else:
        for i in range(len(x)):
            y = reward[i] + (bonus[i] + theta_bonus[i])
            y += theta[i] * mean[i]
            y = y if y < clip else clip
            x[i] = y if known[i] else clip


@borrowing
def worth_at_the_end(reward, clip, mean, x):
    """x of every pair at the last step: no bonus, and what follows comes for certain."""
    for i in range(len(x)):
        x[i] = min(reward[i] + mean[i], clip)


@borrowing
def choose(x, noise, value, action):
    """The best action of each state, ties broken by `noise`; an empty `action` is not written."""
    A, keep, pair = len(noise), len(action) > 0, np.uint64(0)
    for s in range(len(value)):
        shift = (s * 131) % SHIFTS
        best, top, chosen = 0.0, -np.inf, 0
        for a in range(A):
            y = x[pair]
            z = y + noise[a, shift]
            better = z > top
            top = z if better else top
            best = y if better else best
            chosen = a if better else chosen
            pair += ONE
        value[s] = best
        if keep:
            action[s] = chosen
