"""The processes of the tuning suite (suite_tuning.toml): whatever is chosen, a constant or a default, is chosen on these alone.

None of them, and none of these constructions, is in the reporting suite. All rewards are in [0, 1]. Every function is a process of a study:
`tuning_processes:open_grid`, with its arguments as keys.
"""

from __future__ import annotations

import math

import numpy as np

import oldlight as ol
from oldlight import TabularMDP


@ol.registered
def dirichlet_dense(*, n_states: int = 6, n_actions: int = 3, horizon: int = 6, seed: int = 77) -> TabularMDP:
    """Every row from a Dirichlet law with parameter 0.3, every reward uniform."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(0.3 * np.ones(n_states), size=(n_states, n_actions))
    return TabularMDP(P, rng.random((n_states, n_actions)), horizon=horizon)


@ol.registered
def two_successors(*, n_states: int = 12, n_actions: int = 3, horizon: int = 10, seed: int = 78) -> TabularMDP:
    """Two successors each, drawn at random; a tenth of the states pays."""
    rng = np.random.default_rng(seed)
    P = np.zeros((n_states, n_actions, n_states))
    for s in range(n_states):
        for a in range(n_actions):
            to = rng.choice(n_states, size=2, replace=False)
            P[s, a, to] = 0.7, 0.3
    r = np.zeros((n_states, n_actions))
    r[rng.choice(n_states, size=max(n_states // 10, 1), replace=False)] = 1.0
    return TabularMDP(P, r, horizon=horizon)


@ol.registered
def river_swim(*, horizon: int = 15) -> TabularMDP:
    """Strehl and Littman's six states (https://doi.org/10.1016/j.jcss.2007.08.009): left is sure and pays a little at the mouth; right
    fights the current."""
    S = 6
    P, r = np.zeros((S, 2, S)), np.zeros((S, 2))
    for s in range(S):
        P[s, 0, max(s - 1, 0)] = 1.0
        P[s, 1, min(s + 1, S - 1)] += 0.6 if s in (0, S - 1) else 0.35
        P[s, 1, s] += 0.4 if s == 0 else 0.6 if s < S - 1 else 0.0
        P[s, 1, max(s - 1, 0)] += 1.0 - P[s, 1].sum()
    r[0, 0], r[S - 1, 1] = 0.05, 1.0
    return TabularMDP(P, r, horizon=horizon, initial=np.eye(S)[0])


@ol.registered
def deep_sea(*, depth: int = 6, cost: float = 0.01) -> TabularMDP:
    """Osband's deep sea: a grid that one falls through, row by row; only `right` at every step reaches the treasure, and each costs a little.

    Right is action 0 in even columns and 1 in odd ones; all rewards are raised by the cost, so that none is negative."""
    S = depth * depth
    P, r = np.zeros((S, 2, S)), np.full((S, 2), cost)
    for y in range(depth):
        for x in range(depth):
            for a in (0, 1):
                right = a == x % 2
                z = min(max(x + (1 if right else -1), 0), depth - 1)
                P[y * depth + x, a, min(y + 1, depth - 1) * depth + z] = 1.0
                r[y * depth + x, a] -= cost if right else 0.0
    last = depth * depth - 1
    r[last, (depth - 1) % 2] = 1.0
    return TabularMDP(P, r, horizon=depth, initial=np.eye(S)[0])


@ol.registered
def open_grid(*, width: int = 5, height: int = 4, horizon: int = 10) -> TabularMDP:
    """North, east, south, west or stay, with probability 0.8, else one stays; the last place but one of the first row pays."""

    def at(x: int, y: int) -> int:
        return min(max(y, 0), height - 1) * width + min(max(x, 0), width - 1)

    steps = ((0, -1), (1, 0), (0, 1), (-1, 0), (0, 0))
    moves = [[at(x + i, y + j) for i, j in steps] for y in range(height) for x in range(width)]
    return _places(moves, width - 2, horizon)


@ol.registered
def ring(*, places: int = 20, horizon: int = 10) -> TabularMDP:
    """One or two places on or back, or stay; the seventh pays."""
    return _places([[(s + k) % places for k in (1, 2, -1, -2, 0)] for s in range(places)], 7, horizon)


def _places(moves: list[list[int]], goal: int, horizon: int) -> TabularMDP:
    S, A = len(moves), len(moves[0])
    P, r = np.zeros((S, A, S)), np.zeros((S, A))
    for s in range(S):
        for a in range(A):
            P[s, a, moves[s][a]] += 0.8
            P[s, a, s] += 0.2
    r[goal] = 1.0
    return TabularMDP(P, r, horizon=horizon)


@ol.registered
def admission_queue(*, room: int = 8, arrive: float = 0.6, serve: float = 0.5, horizon: int = 20) -> TabularMDP:
    """Admit a customer or send him away: each admitted one pays 1 when he is let in, a full room costs everything, waiting a little."""
    S = room + 1
    P, r = np.zeros((S, 2, S)), np.zeros((S, 2))
    for n in range(S):
        for a in (0, 1):
            for comes, p in ((1, arrive), (0, 1 - arrive)):
                for served, q in ((1, serve if n else 0.0), (0, 1 - serve if n else 1.0)):
                    P[n, a, min(n - served + comes * a, room)] += p * q
            r[n, a] = 0.0 if n == room else max(0.5 - 0.5 * n / room, 0.0) + 0.5 * arrive * a
    return TabularMDP(P, r, horizon=horizon, initial=np.eye(S)[0])


@ol.registered
def lost_sales(*, room: int = 6, mean: float = 1.5, horizon: int = 12) -> TabularMDP:
    """Order 0..3 pieces, which come at once; demand is Poisson, what is not there is not sold. Price 1, order 0.4, storage 0.1, scaled."""
    S, A = room + 1, 4
    demand = np.array([mean**k * math.exp(-mean) / math.factorial(k) for k in range(room + 1)])
    demand[-1] += 1 - demand.sum()
    P, r = np.zeros((S, A, S)), np.zeros((S, A))
    for n in range(S):
        for a in range(A):
            stock = min(n + a, room)
            for k, p in enumerate(demand):
                sold = min(stock, k)
                P[n, a, stock - sold] += p
                r[n, a] += p * sold
            r[n, a] -= 0.4 * a + 0.1 * stock
    low, high = r.min(), r.max()
    return TabularMDP(P, (r - low) / (high - low), horizon=horizon, initial=np.eye(S)[0])


@ol.registered
def frozen_lake(*, horizon: int = 20) -> TabularMDP:
    """Gymnasium's FrozenLake, 4 × 4, slippery."""
    return TabularMDP.from_gymnasium("FrozenLake-v1", horizon)


@ol.registered
def combination_lock(*, length: int = 8, horizon: int = 10, seed: int = 79) -> TabularMDP:
    """One right digit of three at each place leads on (with probability 0.9), any other back to the start; the last place pays."""
    rng = np.random.default_rng(seed)
    P, r = np.zeros((length, 3, length)), np.zeros((length, 3))
    right = rng.integers(3, size=length)
    for s in range(length):
        for a in range(3):
            P[s, a, min(s + 1, length - 1) if a == right[s] else 0] += 0.9
            P[s, a, 0] += 0.1
    r[length - 1, right[-1]] = 1.0
    r[0] = 0.02
    return TabularMDP(P, r, horizon=horizon, initial=np.eye(length)[0])


@ol.registered
def machine(*, wear: int = 7, horizon: int = 30) -> TabularMDP:
    """Run a machine that wears out, repair it a little or replace it; a worn one earns less and may break."""
    P, r = np.zeros((wear, 3, wear)), np.zeros((wear, 3))
    for w in range(wear):
        P[w, 0, min(w + 1, wear - 1)] += 0.5
        P[w, 0, w] += 0.5
        P[w, 1, max(w - 2, 0)] += 0.8
        P[w, 1, w] += 0.2
        P[w, 2, 0] = 1.0
        r[w] = (wear - 1 - w) / (wear - 1), 0.4 * (wear - 1 - w) / (wear - 1), 0.0
    return TabularMDP(P, r, horizon=horizon, initial=np.eye(wear)[0])


@ol.registered
def drifting(*, n_states: int = 6, n_actions: int = 3, horizon: int = 8, seed: int = 80) -> TabularMDP:
    """Another dense law at every step, rewards of the states alone: counts must not be put together, and where one goes is all that counts."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(0.3 * np.ones(n_states), size=(horizon, n_states, n_actions))
    return TabularMDP(P, np.repeat(rng.random(n_states)[:, None], n_actions, axis=1), horizon=horizon)
