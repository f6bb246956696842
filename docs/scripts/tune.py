"""How the default constants c of the learners under delay were chosen: on processes that are reported nowhere else.

    python docs/scripts/tune.py [--quick] [LEARNER ...]

Five processes of the tuning suite: two that are easy to explore (a dense random one, slippery FrozenLake) and three that are not (RiverSwim: the
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
from pathlib import Path
from typing import Any

import numpy as np

import oldlight as ol
from oldlight.learners import learn

sys.path.insert(0, str(Path(__file__).parents[1] / "studies"))
import tuning_processes

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


def processes() -> dict[str, ol.TabularMDP]:
    """Five of the tuning suite's."""
    return {
        "dense": tuning_processes.dirichlet_dense(),
        "FrozenLake": tuning_processes.frozen_lake(),
        "RiverSwim": tuning_processes.river_swim(),
        "grid": tuning_processes.open_grid(),
        "ring": tuning_processes.ring(),
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
