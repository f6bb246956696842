"""Proposition 4 on random processes, and a search for the worst ones.

    python docs/scripts/proposition4.py            the tables of docs/statements.md, some minutes
    python docs/scripts/proposition4.py --quick    a small part, in seconds

Part 1 draws random small processes (dense; sparse with rewards 0, 1/2, 1; with a duplicated action), delays 1 to 3,
cold and warm, rewards in [0, 1] and in [−1, 1], and computes the bound for every pair of optimal policies, ties and
mixtures included.
Part 2 climbs: it changes a process bit by bit so that bound/gap falls, for the policies that planning returns.
The seeds are fixed; the same numbers come out every time.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import oldlight as ol
from oldlight.theory import proposition4, proposition4_repaired, proposition4_ties

Process = tuple[np.ndarray, np.ndarray, np.ndarray]  # P[h, s, a, s2], R[h, s, a], rho[s]
EIGHTHS = np.array([0, 0, 0, 1, 2, 4, 8]) / 8


def random_process(rng: np.random.Generator, S: int, A: int, H: int, kind: str) -> Process:
    P = rng.dirichlet(np.ones(S), size=(H, S, A))
    R, rho = rng.random((H, S, A)), rng.dirichlet(np.ones(S))
    if kind != "dense":
        P = np.array([coarse(rng, S) for _ in range(H * S * A)]).reshape(H, S, A, S)
        R, rho = rng.choice([0.0, 0.5, 1.0], size=(H, S, A)), coarse(rng, S)
    if kind == "duplicated":
        P[:, :, -1], R[:, :, -1] = P[:, :, 0], R[:, :, 0]
    return P, R, rho


def coarse(rng: np.random.Generator, n: int) -> np.ndarray:
    """A distribution in eighths, often a corner, so that equal values are really equal."""
    row = rng.choice(EIGHTHS, size=n)
    row[rng.integers(n)] += max(0.0, 1 - row.sum())
    return row / row.sum() if row.sum() in (1, 2) else np.eye(n)[rng.integers(n)]


def problem_of(process: Process, delay: int, warm: bool, low: float) -> ol.ImpairedMDP:
    P, R, rho = process
    mdp = ol.TabularMDP(P, low + (1 - low) * R, horizon=len(P), initial=rho)
    return ol.ImpairedMDP(mdp, ol.ConstantDelay(delay), start=ol.WarmStart() if warm else None)


def draw(instances: int, seed: int) -> None:
    print(
        "| process | delay | start | rewards | processes | with ties | pairs | fail: planned pair | fail: some pair |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    rng = np.random.default_rng(seed)
    repaired = total = 0
    for kind in ("dense", "sparse", "duplicated"):
        for delay in (1, 2, 3):
            for warm in (False, True):
                for low in (0.0, -1.0):
                    ties = pairs = planned = some = 0
                    for i in range(instances):
                        S, A, H = (int(x) for x in rng.integers([2, 2, 2], [4, 4, 5]))
                        problem = problem_of(random_process(rng, S, A, H, kind), delay, warm, low)
                        every = proposition4_ties(problem, limit=16, mixtures=4, seed=i)
                        ties += every.detail["ties"]
                        pairs += every.detail["pairs"]
                        some += not every.holds
                        planned += not proposition4(problem).holds
                        repaired += proposition4_repaired(problem).holds
                        total += 1
                    start, rewards = "warm" if warm else "cold", f"[{low:g}, 1]"
                    row = (kind, delay, start, rewards, instances, ties, pairs, planned, some)
                    print("| " + " | ".join(str(x) for x in row) + " |", flush=True)
    print(f"\nThe repaired bound holds on {repaired} of {total} processes.\n")


def climb(
    sizes: tuple[int, int, int], delay: int, warm: bool, low: float, evaluations: int, rng: np.random.Generator
) -> tuple[float, float]:
    """The pair (gap, bound) with the smallest bound/gap found, among gaps of at least 1/50."""
    S, A, H = sizes
    best = (1.0, np.inf)
    done = 0

    def sides(process: Process) -> tuple[float, float]:
        claim = proposition4(problem_of(process, delay, warm, low))
        return (claim.left, claim.right) if claim.left >= 0.02 else (1.0, np.inf)

    while done < evaluations:
        P = rng.dirichlet(np.full(S, 0.5), size=(H, S, A))
        R = rng.choice([0.0, 0.5, 1.0], size=(H, S, A)) if rng.random() < 0.5 else rng.random((H, S, A))
        plain = rng.random() < 0.5  # rewards that ignore the action: then E1 = 0, and only the visits are left
        current: Process = P, R[..., :1].repeat(A, axis=2) if plain else R, rng.dirichlet(np.ones(S))
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
    P, R, rho = (x.copy() for x in process)
    H, S, A = R.shape
    for _ in range(rng.integers(1, 3)):
        at = tuple(rng.integers(0, [H, S, A]))
        towards = np.eye(S)[rng.integers(S)] if rng.random() < 0.6 else rng.dirichlet(np.ones(S))
        what, share = rng.random(), rng.choice([1.0, 0.5, 0.2])
        if what < 0.45:
            P[at] = (1 - share) * P[at] + share * towards
        elif what < 0.9:
            R[at[:2] if plain else at] = rng.choice([0.0, 0.5, 1.0, rng.random()])
        else:
            rho = (1 - share) * rho + share * towards
    return P, R, rho


def search(evaluations: int, seed: int) -> None:
    print("| S, A, H | delay | start | rewards | gap | bound | |")
    print("|---|---|---|---|---|---|---|")
    rng = np.random.default_rng(seed)
    for low in (0.0, -1.0):
        for delay, warm in ((1, False), (1, True), (2, False), (2, True), (3, False)):
            for sizes in ((2, 2, 2), (3, 3, 2), (2, 2, 4)):
                steps = evaluations if low == 0 else evaluations // 3  # with both signs it fails soon
                gap, bound = climb(sizes, delay, warm, low, steps, rng)
                verdict = "fails" if gap > bound + 1e-9 else "none found"
                start = "warm" if warm else "cold"
                print(
                    f"| {sizes} | {delay} | {start} | [{low:g}, 1] | {gap:.4f} | {bound:.4f} | {verdict} |", flush=True
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small part, in seconds")
    parser.add_argument("--seed", type=int, default=20261115)
    given = parser.parse_args()
    began = time.perf_counter()
    draw(4 if given.quick else 40, given.seed)
    search(60 if given.quick else 3000, given.seed)
    print(f"\n{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
