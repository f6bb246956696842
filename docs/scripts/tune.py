"""How the default constants c of the learners under delay were chosen: on processes that are reported nowhere else.

    python docs/scripts/tune.py [--quick] [LEARNER ...]

Five processes: two that are easy to explore (a dense random one, slippery FrozenLake) and three that are not (RiverSwim: the
reward is upstream of a current; a grid and a ring of twenty places with one that pays). Constant delays 0 and 2, cold start,
10,000 episodes, 2 seeds, one grid of constants for every learner. Algorithm 1 as the paper prints it learns the delay law too,
so for it there are stochastic delays as well (Bernoulli interarrivals, P(Δ = 0) = 0.8 and 0.4). The score of a
constant is its final regret divided by the best constant's on the same process and delay, averaged over all ten (or twenty).
Too large a constant costs a factor, too small a one can fail for ever; so the default is the largest constant whose mean score
is within 1.5 times the least. Prints the mean score and, in brackets, the worst.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np

import oldlight as ol
from oldlight.learners import learn

GRID = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
ALGORITHM_1 = "DelayedUCBVI, Hoeffding, law estimated, clip H"
LEARNERS: dict[str, Callable[..., Any]] = {
    ALGORITHM_1: partial(ol.learners.DelayedUCBVI, bonus="hoeffding", law="estimated", clip="H"),
    "DelayedUCBVI, Bernstein": partial(ol.learners.DelayedUCBVI, bonus="bernstein"),
    "DelayedUCBVI, Bernstein, pooled": partial(ol.learners.DelayedUCBVI, bonus="bernstein", pooled=True),
    "DelayedUCBVI, Hoeffding": partial(ol.learners.DelayedUCBVI, bonus="hoeffding"),
    "DelayedUCBVI, Hoeffding, pooled": partial(ol.learners.DelayedUCBVI, bonus="hoeffding", pooled=True),
    "AugmentedUCBVI, Hoeffding": partial(ol.learners.AugmentedUCBVI, bonus="hoeffding"),
    "AugmentedUCBVI, Hoeffding, pooled": partial(ol.learners.AugmentedUCBVI, bonus="hoeffding", pooled=True),
    "AugmentedUCBVI, Bernstein": partial(ol.learners.AugmentedUCBVI, bonus="bernstein"),
    "AugmentedUCBVI, Bernstein, pooled": partial(ol.learners.AugmentedUCBVI, bonus="bernstein", pooled=True),
    "AugmentedQLearning": ol.learners.AugmentedQLearning,
    "AugmentedQLearning, pooled": partial(ol.learners.AugmentedQLearning, pooled=True),
    "MemorylessUCBVI": ol.learners.MemorylessUCBVI,
    "MemorylessUCBVI, aligned": partial(ol.learners.MemorylessUCBVI, aligned=True),
    "MemorylessQLearning": ol.learners.MemorylessQLearning,
}


def river_swim(horizon: int = 15) -> ol.TabularMDP:
    """Strehl and Littman's six states (An analysis of model-based Interval Estimation for Markov Decision Processes,
    https://doi.org/10.1016/j.jcss.2007.08.009): left is sure and pays a little at the mouth; right fights the current."""
    S = 6
    P, r = np.zeros((S, 2, S)), np.zeros((S, 2))
    for s in range(S):
        P[s, 0, max(s - 1, 0)] = 1.0
        P[s, 1, min(s + 1, S - 1)] += 0.6 if s in (0, S - 1) else 0.35
        P[s, 1, s] += 0.4 if s == 0 else 0.6 if s < S - 1 else 0.0
        P[s, 1, max(s - 1, 0)] += 1.0 - P[s, 1].sum()
    r[0, 0], r[S - 1, 1] = 0.05, 1.0
    return ol.TabularMDP(P, r, horizon=horizon, initial=np.eye(S)[0])


def places(moves: list[list[int]], goal: int, horizon: int = 10) -> ol.TabularMDP:
    """moves[s][a] is reached with probability 0.8, else one stays; being at `goal` pays 1; the start is uniform."""
    S, A = len(moves), len(moves[0])
    P, r = np.zeros((S, A, S)), np.zeros((S, A))
    for s in range(S):
        for a in range(A):
            P[s, a, moves[s][a]] += 0.8
            P[s, a, s] += 0.2
    r[goal] = 1.0
    return ol.TabularMDP(P, r, horizon=horizon)


def grid(width: int = 5, height: int = 4) -> ol.TabularMDP:
    """North, east, south, west or stay; the last place but one in the first row pays."""

    def at(x: int, y: int) -> int:
        return min(max(y, 0), height - 1) * width + min(max(x, 0), width - 1)

    steps = ((0, -1), (1, 0), (0, 1), (-1, 0), (0, 0))
    return places([[at(x + i, y + j) for i, j in steps] for y in range(height) for x in range(width)], width - 2)


def ring(n: int = 20) -> ol.TabularMDP:
    """One or two places on or back, or stay."""
    return places([[(s + k) % n for k in (1, 2, -1, -2, 0)] for s in range(n)], 7)


def processes() -> dict[str, ol.TabularMDP]:
    rng = np.random.default_rng(77)
    return {
        "dense": ol.TabularMDP(rng.dirichlet(0.3 * np.ones(6), size=(6, 3)), rng.random((6, 3)), horizon=6),
        "FrozenLake": ol.TabularMDP.from_gymnasium("FrozenLake-v1", 20),
        "RiverSwim": river_swim(),
        "grid": grid(),
        "ring": ring(),
    }


def channels(name: str) -> list[ol.DelayChannel]:
    constant: list[ol.DelayChannel] = [ol.ConstantDelay(0), ol.ConstantDelay(2)]
    return constant + ([ol.BernoulliDelay(0.8), ol.BernoulliDelay(0.4)] if name == ALGORITHM_1 else [])


def final_regret(name: str, process: str, channel: ol.DelayChannel, episodes: int, seeds: Sequence[int]) -> list[float]:
    """The mean over seeds for each constant."""
    problem = ol.ImpairedMDP(processes()[process], channel)
    run = partial(learn, problem, episodes=episodes, every=50, best=ol.solve(problem).value, progress=False)
    return [float(np.mean([run(LEARNERS[name](c=c), seed=k).regret[-1] for k in seeds])) for c in GRID]


def scores(name: str, episodes: int, seeds: tuple[int, ...], pool: ProcessPoolExecutor) -> np.ndarray:
    """[problem, constant]: final regret over the best constant's."""
    tasks = [(name, process, channel, episodes, seeds) for process in processes() for channel in channels(name)]
    found = np.array(list(pool.map(final_regret, *zip(*tasks, strict=True))))
    return found / found.min(axis=1, keepdims=True)


def main(quick: bool, wanted: list[str]) -> None:
    print("| learner | " + " | ".join(f"{c:g}" for c in GRID) + " | taken |\n|" + "---|" * (len(GRID) + 2), flush=True)
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for name in wanted or LEARNERS:
            found = scores(name, *((300, (0,)) if quick else (10_000, (0, 1))), pool)
            mean = found.mean(axis=0)
            taken = max(c for c, score in zip(GRID, mean, strict=True) if score <= 1.5 * mean.min())
            cells = " | ".join(f"{m:.2f} ({w:.2f})" for m, w in zip(mean, found.max(axis=0), strict=True))
            print(f"| {name} | {cells} | {taken:g} |", flush=True)
            print(name, np.round(found, 2).tolist(), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main("--quick" in sys.argv, [x for x in sys.argv[1:] if not x.startswith("--")])
