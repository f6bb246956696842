"""Proposition 4 on random processes, and a search for the worst ones, each from one fixed first state, as it is printed.

    python docs/scripts/proposition4.py dense                 one row of docs/statements.md; also: sparse, duplicated
    python docs/scripts/proposition4.py climb 2 0 2,2,5 700 1  delay 2, rewards from 0 to 1, S, A, H = 2, 2, 5, 700 trials, seed 1: another row

The first kind draws random small processes (dense; sparse with rewards 0, 1/2, 1; sparse with a duplicated action), delays
1 to 3, rewards in [0, 1] and in [−1, 1], and computes the bound for every pair of optimal policies, ties and mixtures included.
The second climbs: it changes a process bit by bit so that bound/gap falls, for the policies that planning returns.
The seeds are fixed; the same numbers come out every time.
"""

from __future__ import annotations

import sys

import numpy as np

import oldlight as ol
from oldlight.paper import proposition4, proposition4_repaired, proposition4_ties

Process = tuple[np.ndarray, np.ndarray]  # P[h, s, a, s2], R[h, s, a]; the first state is 0
SEED = 20261115
EIGHTHS = np.array([0, 0, 0, 1, 2, 4, 8]) / 8


def random_process(rng: np.random.Generator, S: int, A: int, H: int, kind: str) -> Process:
    P = rng.dirichlet(np.ones(S), size=(H, S, A))
    R = rng.random((H, S, A))
    if kind != "dense":
        P = np.array([coarse(rng, S) for _ in range(H * S * A)]).reshape(H, S, A, S)
        R = rng.choice([0.0, 0.5, 1.0], size=(H, S, A))
    if kind == "duplicated":
        P[:, :, -1], R[:, :, -1] = P[:, :, 0], R[:, :, 0]
    return P, R


def coarse(rng: np.random.Generator, n: int) -> np.ndarray:
    """A distribution in eighths, often a corner, so that equal values are really equal."""
    row = rng.choice(EIGHTHS, size=n)
    row[rng.integers(n)] += max(0.0, 1 - row.sum())
    return row / row.sum() if row.sum() in (1, 2) else np.eye(n)[rng.integers(n)]


def problem_of(process: Process, delay: int, low: float) -> ol.ImpairedMDP:
    P, R = process
    initial = np.eye(P.shape[1])[0]
    return ol.ImpairedMDP(
        ol.TabularMDP(P, low + (1 - low) * R, horizon=len(P), initial=initial), ol.ConstantDelay(delay)
    )


def draw(kind: str, instances: int = 20) -> str:
    """What became of `instances` processes for each delay and each range of rewards."""
    rng = np.random.default_rng(SEED)
    total = ties = pairs = failed = repaired = 0
    for delay in (1, 2, 3):
        for low in (0.0, -1.0):
            for i in range(instances):
                S, A, H = (int(x) for x in rng.integers([2, 2, 3], [4, 4, 5]))
                problem = problem_of(random_process(rng, S, A, H, kind), delay, low)
                every = proposition4_ties(problem, limit=16, mixtures=4, seed=i)
                total += 1
                ties += every.detail["ties"]
                pairs += every.detail["pairs"]
                failed += every.detail["pairs that fail"]
                repaired += proposition4_repaired(problem).holds
    return f"{total} processes, {ties} with ties, {pairs:,} pairs of policies, {failed} fail; repaired bound: {repaired} hold"


def climb(
    delay: int, low: float, sizes: tuple[int, int, int], evaluations: int, seed: int = SEED
) -> tuple[float, float]:
    """The pair (gap, bound) with the smallest bound/gap found, among gaps of at least 1/50."""
    S, A, H = sizes
    rng = np.random.default_rng(seed)
    best = (1.0, np.inf)
    done = 0

    def sides(process: Process) -> tuple[float, float]:
        claim = proposition4(problem_of(process, delay, low))
        return (claim.left, claim.right) if claim.left >= 0.02 else (1.0, np.inf)

    while done < evaluations:
        P = rng.dirichlet(np.full(S, 0.5), size=(H, S, A))
        R = rng.choice([0.0, 0.5, 1.0], size=(H, S, A)) if rng.random() < 0.5 else rng.random((H, S, A))
        plain = rng.random() < 0.5  # rewards that ignore the action: then E1 = 0, and only the visits are left
        current: Process = P, R[..., :1].repeat(A, axis=2) if plain else R
        now, stale = sides(current), 0
        while stale < 200 and done < evaluations:
            trial = changed(current, plain, rng)
            new = sides(trial)
            done += 1
            better = new[1] * now[0] - now[1] * new[0] if np.isfinite(now[1]) else -float(np.isfinite(new[1]))
            stale = 0 if better < -1e-9 else stale + 1
            if better <= 1e-12:
                current, now = trial, new
        if now[1] * best[0] < best[1] * now[0]:
            best = now
    return best


def changed(process: Process, plain: bool, rng: np.random.Generator) -> Process:
    P, R = (x.copy() for x in process)
    H, S, A = R.shape
    for _ in range(rng.integers(1, 3)):
        at = tuple(rng.integers(0, [H, S, A]))
        towards = np.eye(S)[rng.integers(S)] if rng.random() < 0.6 else rng.dirichlet(np.ones(S))
        what, share = rng.random(), rng.choice([1.0, 0.5, 0.2])
        if what < 0.5:
            P[at] = (1 - share) * P[at] + share * towards
        else:
            R[at[:2] if plain else at] = rng.choice([0.0, 0.5, 1.0, rng.random()])
    return P, R


def main(words: list[str]) -> None:
    match words:
        case [("dense" | "sparse" | "duplicated") as kind]:
            print(draw(kind))
        case ["climb", delay, low, sizes, evaluations, *seed]:
            S, A, H = (int(x) for x in sizes.split(","))
            gap, bound = climb(int(delay), float(low), (S, A, H), int(evaluations), *map(int, seed))
            print(f"gap {gap:.4f}, bound {bound:.4f}: {'fails' if gap > bound + 1e-9 else 'none found'}")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
