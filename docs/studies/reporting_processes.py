"""The processes of the reporting suite (suite_reporting.toml): nothing is chosen on these; figures and tables are made with them.

None of them, and none of these constructions, is in the tuning suite. All rewards are in [0, 1]. Every function is a process of a study:
`reporting_processes:windy_grid`, with its arguments as keys.
"""

from __future__ import annotations

import numpy as np

import oldlight as ol
from oldlight import TabularMDP


@ol.registered
def softmax_dense(*, n_states: int = 9, n_actions: int = 4, horizon: int = 9, seed: int = 5) -> TabularMDP:
    """Rows proportional to exp(2·φ(s, a)·ψ(s2)) with Gaussian features of length 3; rewards uniform, cubed."""
    rng = np.random.default_rng(seed)
    x = np.exp(2.0 * rng.normal(size=(n_states, n_actions, 3)) @ rng.normal(size=(3, n_states)))
    return TabularMDP(x / x.sum(axis=2, keepdims=True), rng.random((n_states, n_actions)) ** 3, horizon=horizon)


@ol.registered
def garnet(
    *, n_states: int = 14, n_actions: int = 4, successors: int = 3, horizon: int = 12, seed: int = 6
) -> TabularMDP:
    """A GARNET: so many successors each, their probabilities the lengths between uniform cuts; rewards of pairs, most of them 0."""
    rng = np.random.default_rng(seed)
    P = np.zeros((n_states, n_actions, n_states))
    for s in range(n_states):
        for a in range(n_actions):
            cuts = np.sort(rng.random(successors - 1))
            to = rng.choice(n_states, size=successors, replace=False)
            P[s, a, to] = np.diff(np.concatenate([[0.0], cuts, [1.0]]))
    r = rng.random((n_states, n_actions)) * (rng.random((n_states, n_actions)) < 0.2)
    return TabularMDP(P, r, horizon=horizon)


@ol.registered
def long_river(*, n_states: int = 9, horizon: int = 24) -> TabularMDP:
    """A river with two ways upstream: paddle, slow and fairly sure, or sprint, fast and tiring; drifting pays a little everywhere."""
    S = n_states
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3))
    for s in range(S):
        P[s, 0, max(s - 1, 0)] = 1.0
        P[s, 1, min(s + 1, S - 1)] += 0.5
        P[s, 1, s] += 0.4
        P[s, 1, max(s - 1, 0)] += 0.1
        P[s, 2, min(s + 2, S - 1)] += 0.4
        P[s, 2, max(s - 2, 0)] += 0.6
    r[:, 0] = 0.02
    r[S - 1, 1] = 1.0
    return TabularMDP(P, r, horizon=horizon, initial=np.eye(S)[0])


@ol.registered
def slippery_sea(*, depth: int = 7, slip: float = 0.05, seed: int = 7) -> TabularMDP:
    """A sea as deep as wide, columns alone are states: which action leads right is drawn for each column, and may slip; the treasure is in
    the last column, a small one in the first."""
    rng = np.random.default_rng(seed)
    S = depth
    P, r, right = np.zeros((S, 2, S)), np.zeros((S, 2)), rng.integers(2, size=S)
    for x in range(S):
        for a in (0, 1):
            there, back = min(x + 1, S - 1), max(x - 1, 0)
            P[x, a, there if a == right[x] else back] += 1 - slip
            P[x, a, back if a == right[x] else there] += slip
    r[S - 1], r[0] = 1.0, 0.05
    return TabularMDP(P, r, horizon=depth + 3, initial=np.eye(S)[0])


@ol.registered
def windy_grid(*, width: int = 6, height: int = 4, horizon: int = 14) -> TabularMDP:
    """Four moves that always happen; in the middle columns the wind lifts by one with probability a half; the far corner of the row below pays."""
    S, wind = width * height, {2, 3}
    P, r = np.zeros((S, 4, S)), np.zeros((S, 4))
    for x in range(width):
        for y in range(height):
            for a, (i, j) in enumerate(((0, 1), (1, 0), (0, -1), (-1, 0))):
                for lift, p in ((1, 0.5), (0, 0.5)) if x in wind else ((0, 1.0),):
                    u, v = min(max(x + i, 0), width - 1), min(max(y + j + lift, 0), height - 1)
                    P[x * height + y, a, u * height + v] += p
    r[(width - 1) * height] = 1.0
    return TabularMDP(P, r, horizon=horizon, initial=np.eye(S)[0])


@ol.registered
def cliff(*, width: int = 6, horizon: int = 16) -> TabularMDP:
    """Two lanes to walk along, a cliff below: the lower lane is shorter to the goal's bonus, and one falls from it now and then."""
    S = 2 * width
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3))
    for x in range(width):
        for lane in (0, 1):
            s, on = 2 * x + lane, min(x + 1, width - 1)
            fall = 0.15 if lane == 0 else 0.0
            P[s, 0, 2 * on + lane] += 1 - fall
            P[s, 1, 2 * x + 1 - lane] += 1 - fall
            P[s, 2, 2 * max(x - 1, 0) + lane] += 1 - fall
            P[s, :, 0] += fall
            r[s] = 0.3 if lane == 0 and x < width - 1 else 0.0
    r[2 * (width - 1) + 1] = 1.0
    return TabularMDP(P, r, horizon=horizon, initial=np.eye(S)[0])


@ol.registered
def service_queue(*, room: int = 9, horizon: int = 25) -> TabularMDP:
    """Serve slowly, fast or not at all: fast costs, customers in line cost, an empty line earns."""
    S, arrive, rates, price = room + 1, 0.45, (0.0, 0.4, 0.8), (0.0, 0.1, 0.35)
    P, r = np.zeros((S, 3, S)), np.zeros((S, 3))
    for n in range(S):
        for a, rate in enumerate(rates):
            served = rate if n else 0.0
            P[n, a, min(n + 1, room)] += arrive * (1 - served)
            P[n, a, n] += arrive * served + (1 - arrive) * (1 - served)
            P[n, a, max(n - 1, 0)] += (1 - arrive) * served
            r[n, a] = max(1.0 - n / room - price[a], 0.0)
    return TabularMDP(P, r, horizon=horizon)


@ol.registered
def backlog(*, horizon: int = 15) -> TabularMDP:
    """Stock from −4 (customers wait) to 6; order nothing, two or four; geometric demand. Waiting customers cost more than stock."""
    low, high, A = -4, 6, 3
    S = high - low + 1
    demand = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
    P, r = np.zeros((S, A, S)), np.zeros((S, A))
    for i in range(S):
        for a in range(A):
            stock = min(i + low + 2 * a, high)
            for k, p in enumerate(demand):
                P[i, a, max(stock - k, low) - low] += p
            r[i, a] = 1.0 - (0.06 * max(stock, 0) + 0.2 * max(-stock, 0) + (0.15 if a else 0.0))
    return TabularMDP(P, np.clip(r, 0.0, 1.0), horizon=horizon)


@ol.registered
def ice_field(*, horizon: int = 18) -> TabularMDP:
    """A lake of five by four with three holes: a move goes where it should with probability 0.7, else to either side; one may rest."""
    rows = ["S....", ".H..H", "...H.", "....G"]
    width, height = len(rows[0]), len(rows)
    S, A = width * height, 5
    P, r = np.zeros((S, A, S)), np.zeros((S, A))
    moves = ((0, -1), (1, 0), (0, 1), (-1, 0))
    for y in range(height):
        for x in range(width):
            s = y * width + x
            if rows[y][x] in "HG":
                P[s, :, s] = 1.0
                r[s] = 1.0 if rows[y][x] == "G" else 0.0
                continue
            P[s, 4, s] = 1.0
            for a in range(4):
                for turn, p in ((0, 0.7), (1, 0.15), (3, 0.15)):
                    i, j = moves[(a + turn) % 4]
                    u, v = min(max(x + i, 0), width - 1), min(max(y + j, 0), height - 1)
                    P[s, a, v * width + u] += p
    return TabularMDP(P, r, horizon=horizon, initial=np.eye(S)[0])


@ol.registered
def balancing_chain(*, n_states: int = 11, horizon: int = 12) -> TabularMDP:
    """Keep the middle of a chain that pushes outwards: push left or right, hard or softly; the middle three places pay."""
    S, middle = n_states, n_states // 2
    P, r = np.zeros((S, 4, S)), np.zeros((S, 4))
    for s in range(S):
        drift = 1 if s > middle else -1 if s < middle else 0
        for a, push in enumerate((-2, -1, 1, 2)):
            for noise, p in ((0, 0.7), (1, 0.15), (-1, 0.15)):
                P[s, a, min(max(s + drift + push + noise, 0), S - 1)] += p
    r[middle - 1 : middle + 2] = 0.5
    r[middle] = 1.0
    return TabularMDP(P, r, horizon=horizon)


@ol.registered
def six_arms(*, horizon: int = 20) -> TabularMDP:
    """Six arms to try from the middle (Strehl and Littman): the better an arm pays, the less likely one gets there; one stays by another action
    than one came by, and leaves by the rest."""
    reach, pay = (1.0, 0.5, 0.3, 0.2, 0.12, 0.07), (0.03, 0.08, 0.15, 0.25, 0.5, 1.0)
    P, r = np.zeros((7, 6, 7)), np.zeros((7, 6))
    for a in range(6):
        P[0, a, a + 1] = reach[a]
        P[0, a, 0] = 1 - reach[a]
        for s in range(1, 7):
            P[s, a, s if a == (s + 1) % 6 else 0] = 1.0
            r[s, a] = pay[s - 1] if a == (s + 1) % 6 else 0.0
    return TabularMDP(P, r, horizon=horizon, initial=np.eye(7)[0])


@ol.registered
def two_machines(*, wear: int = 4, horizon: int = 16) -> TabularMDP:
    """Two machines that wear together; use one, or both, or repair the worse."""
    S = wear * wear
    P, r = np.zeros((S, 4, S)), np.zeros((S, 4))
    for i in range(wear):
        for j in range(wear):
            s = i * wear + j
            for a in range(4):
                used = (a in (0, 2), a in (1, 2))
                for di, p in ((1, 0.4), (0, 0.6)) if used[0] else ((0, 1.0),):
                    for dj, q in ((1, 0.4), (0, 0.6)) if used[1] else ((0, 1.0),):
                        u, v = min(i + di, wear - 1), min(j + dj, wear - 1)
                        if a == 3:
                            u, v = (0, j) if i >= j else (i, 0)
                        P[s, a, u * wear + v] += p * q
                left = [1 - i / (wear - 1), 1 - j / (wear - 1)]
                r[s, a] = 0.5 * sum(x for x, on in zip(left, used, strict=True) if on)
    return TabularMDP(P, r, horizon=horizon, initial=np.eye(S)[0])


@ol.registered
def shifts(*, horizon: int = 10) -> TabularMDP:
    """A queue with calm and busy hours: the law changes with the step, half way through and back."""
    room, rates = 6, (0.3, 0.7)
    S = room + 1
    P, r = np.zeros((horizon, S, 2, S)), np.zeros((S, 2))
    for h in range(horizon):
        arrive = 0.8 if horizon // 3 <= h < 2 * horizon // 3 else 0.3
        for n in range(S):
            for a, rate in enumerate(rates):
                served = rate if n else 0.0
                P[h, n, a, min(n + 1, room)] += arrive * (1 - served)
                P[h, n, a, n] += arrive * served + (1 - arrive) * (1 - served)
                P[h, n, a, max(n - 1, 0)] += (1 - arrive) * served
    for n in range(S):
        r[n] = max(1.0 - n / room, 0.0), max(0.75 - n / room, 0.0)
    return TabularMDP(P, r, horizon=horizon)
