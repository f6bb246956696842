"""Processes to plan for, made of counts, compiled; `oldlight.learners.optimistic_model` has the definitions.

All of them fill transitions P[t, s, a, s2] from counts [t or one, s, a, s2] and rewards [t, s, a], and return how many t of P they filled: one where
all steps are the same. R[t, s, a] has the rewards, with their bonuses if the kind has any. A kind that adds a state has it last.
"""

from typing import NamedTuple

import numpy as np

from oldlight.kernels.cache import compiled
from oldlight.kernels.dirichlet import draw_rows

PRIOR, BEST, BERNSTEIN, HOEFFDING, POSTERIOR = range(5)
LEAST = 0.01  # pseudo-visits that are learnt
HALVINGS = 14  # of the range of their logarithm
NOISE = 1e-9  # of the rewards' size, to break ties at random


class How(NamedTuple):
    """The kind and its numbers."""

    kind: int
    c: float
    log_term: float
    visits: float  # 0: learnt
    looks: int  # second looks while the number of episodes grows by a factor e; 0: none
    sharpness: float
    draws: int
    prior: float  # 0: 1/S


@compiled
def make(number, rewards, how, times, rng, P, R):
    """The process of this kind, rewards into R; with so many times its pseudo-visits."""
    _pay(rewards, R)
    if how.kind == POSTERIOR:
        rows = drawn(number, rewards, how.prior if how.prior > 0.0 else 1.0 / number.shape[1], how.draws, rng, P)
    elif how.kind == BEST:
        visits = how.visits if how.visits > 0.0 else pseudo_visits(number)
        rows = towards_best(number, rewards, times * visits, how.sharpness, rng, P)
    else:
        rows = optimistic(number, rewards, how, times, P, R)
    return rows


@compiled
def _pay(rewards, R):
    """The rewards, and in a state that was added the most that the step can earn."""
    H, S, A = rewards.shape
    for t in range(H):
        most = rewards[t, 0, 0]
        for s in range(S):
            for a in range(A):
                R[t, s, a] = rewards[t, s, a]
                most = max(most, rewards[t, s, a])
        for s in range(S, R.shape[1]):
            for a in range(A):
                R[t, s, a] = most


@compiled
def _most_left(rewards):
    """[t]: Σ_{i ≥ t} max r_i, t = 0..H."""
    H, S, A = rewards.shape
    left = np.zeros(H + 1)
    for t in range(H - 1, -1, -1):
        most = rewards[t, 0, 0]
        for s in range(S):
            for a in range(A):
                most = max(most, rewards[t, s, a])
        left[t] = left[t + 1] + most
    return left


@compiled
def _back_up(t, rewards, P, row, beyond, V, V_next):
    """V[s] = max_a r + P·V_next, with the value `beyond` of a state that was added."""
    S, A = len(V), rewards.shape[2]
    for s in range(S):
        V[s] = -np.inf
        for a in range(A):
            x = rewards[t, s, a]
            for s2 in range(S):
                x += P[row, s, a, s2] * V_next[s2]
            if P.shape[1] > S:
                x += P[row, s, a, S] * beyond
            V[s] = max(V[s], x)


@compiled
def _bonus(how, N, mean, square, left):
    """What a pair that was tried is paid more; mean, square: p̂V and p̂V². No more than is left to earn beyond what is expected."""
    if how.kind == HOEFFDING:
        bonus = how.c * left * np.sqrt(how.log_term / N)
    else:
        variance = max(square - mean * mean, 0.0)
        bonus = how.c * (np.sqrt(2.0 * variance * how.log_term / N) + left * how.log_term / (3.0 * N))
    return min(bonus, max(left - mean, 0.0))


@compiled
def optimistic(number, rewards, how, times, P, R):
    """ "prior", "hoeffding" and "bernstein"; bonuses are added to R."""
    H, S, A = rewards.shape
    rows = 1 if how.kind == PRIOR and len(number) == 1 else H
    visits = times * (how.visits if how.visits > 0.0 else pseudo_visits(number))
    left, V, V_next = _most_left(rewards), np.zeros(S), np.zeros(S)
    for t in range(rows - 1, -1, -1):
        counted = number[min(t, len(number) - 1)]
        for s in range(S):
            for a in range(A):
                N = 0.0
                for s2 in range(S):
                    N += counted[s, a, s2]
                if how.kind == PRIOR:
                    share = visits / (N + visits)
                elif N < 1e-9:
                    share = 1.0 if left[t + 1] > 0.0 else 0.0
                else:
                    share = 0.0
                    mean, square = 0.0, 0.0
                    for s2 in range(S):
                        p = counted[s, a, s2] / max(N, 1e-300)
                        mean += p * V_next[s2]
                        square += p * V_next[s2] * V_next[s2]
                    R[t, s, a] += _bonus(how, N, mean, square, left[t + 1])
                rest = 1.0
                for s2 in range(S):
                    P[t, s, a, s2] = (1.0 - share) * counted[s, a, s2] / max(N, 1e-300)
                    rest -= P[t, s, a, s2]
                P[t, s, a, S] = max(rest, 0.0) if share > 0.0 or N < 1e-9 else 0.0
        if how.kind != PRIOR:
            _back_up(t, R, P, t, left[t + 1], V, V_next)
            V, V_next = V_next, V
    for t in range(rows):
        for a in range(A):
            for s2 in range(S + 1):
                P[t, S, a, s2] = 1.0 if s2 == S else 0.0
    return rows


@compiled
def pseudo_visits(number):
    """n from how often a visit met a successor that was new to its pair; `oldlight.learners.optimistic_model` has the equation."""
    T, S, A, _ = number.shape
    visits, pairs, new = np.empty(T * S * A), 0, 1.0
    for t in range(T):
        for s in range(S):
            for a in range(A):
                N, met = 0.0, 0
                for s2 in range(S):
                    N += number[t, s, a, s2]
                    met += number[t, s, a, s2] > 0.5
                if N > 1.0:
                    visits[pairs] = N
                    pairs += 1
                    new += max(met - 1, 0)
    low, high = np.log(LEAST), np.log(2.0 * S)
    for _ in range(HALVINGS):
        n = np.exp((low + high) / 2)
        expected = 2.0 * n / (n + 1.0)
        for i in range(pairs):
            expected += n * np.log((n + visits[i] - 0.5) / (n + 0.5))
        if expected < new:
            low = np.log(n)
        else:
            high = np.log(n)
    return np.exp((low + high) / 2)


@compiled
def towards_best(number, rewards, visits, sharpness, rng, P):
    """ "best"."""
    H, S, A = rewards.shape
    T = len(number)
    rows, N = np.empty((T, S, A, S)), np.zeros((T, S, A))
    for t in range(T):
        for s in range(S):
            for a in range(A):
                total = 0.0
                for s2 in range(S):
                    n = number[t, s, a, s2]
                    N[t, s, a] += n
                    rows[t, s, a, s2] = rng.standard_gamma(sharpness * n) if n > 0.0 else 0.0
                    total += rows[t, s, a, s2]
                for s2 in range(S):
                    p = rows[t, s, a, s2] / total if total > 0.0 else number[t, s, a, s2] / max(N[t, s, a], 1e-300)
                    rows[t, s, a, s2] = p
    V, V_next = np.zeros(S), np.zeros(S)
    for t in range(H - 1, -1, -1):
        i, best = min(t, T - 1), np.argmax(V_next)
        for s in range(S):
            for a in range(A):
                n = N[i, s, a]
                share = visits / (n + visits) if n > 1e-9 else 1.0
                for s2 in range(S):
                    P[t, s, a, s2] = (1.0 - share) * rows[i, s, a, s2]
                P[t, s, a, best] += share
        _back_up(t, rewards, P, t, 0.0, V, V_next)
        V, V_next = V_next, V
    return H


@compiled
def drawn(number, rewards, prior, draws, rng, P):
    """ "posterior"."""
    H, S, A = rewards.shape
    T = len(number)
    if draws == 1:
        draw_rows(number.reshape(-1, S), prior, rng, P.reshape(-1, S))
        return T
    many = np.empty((draws, T, S, A, S))
    for i in range(draws):
        draw_rows(number.reshape(-1, S), prior, rng, many[i].reshape(-1, S))
    V, V_next = np.zeros(S), np.zeros(S)
    for t in range(H - 1, -1, -1):
        here = min(t, T - 1)
        for s in range(S):
            for a in range(A):
                most, taken = -np.inf, 0
                for i in range(draws):
                    x = 0.0
                    for s2 in range(S):
                        x += many[i, here, s, a, s2] * V_next[s2]
                    if x > most:
                        most, taken = x, i
                for s2 in range(S):
                    P[t, s, a, s2] = many[taken, here, s, a, s2]
        _back_up(t, rewards, P, t, 0.0, V, V_next)
        V, V_next = V_next, V
    return H


@compiled
def break_ties(rewards, rng):
    """Raise the rewards by a little, the same for a pair at every step: actions that are equally good are equally likely to be taken."""
    H, S, A = rewards.shape
    size = 1.0
    for t in range(H):
        for s in range(S):
            for a in range(A):
                size = max(size, abs(rewards[t, s, a]))
    for s in range(S):
        for a in range(A):
            little = NOISE * size * rng.random()
            for t in range(H):
                rewards[t, s, a] += little
