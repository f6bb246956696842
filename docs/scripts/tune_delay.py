"""How the default constants c of DelayedUCBVI were chosen: on processes that are reported nowhere else.

    python docs/scripts/tune_delay.py [--quick]

Three processes (a sparse random one, a dense random one, slippery FrozenLake), delays 0, 1 and 2, 2,000 episodes, 2 seeds. The
score of a constant is its final regret divided by the best constant's on the same process and delay, averaged over all of
them. These processes are easy to explore, which never punishes too small a constant; so the rule is: the largest constant
whose mean score is within 1.5 of the best.
"""

from __future__ import annotations

import sys

import numpy as np

import oldlight as ol
from oldlight.learners import learn
from oldlight.learners.delayed_ucbvi import DelayedUCBVI

GRID = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


def processes() -> dict[str, ol.TabularMDP]:
    rng = np.random.default_rng(77)
    sparse = np.zeros((8, 3, 8))
    for s in range(8):
        for a in range(3):
            sparse[s, a, rng.choice(8, 2, replace=False)] = rng.dirichlet(np.ones(2))
    reward = (rng.random((8, 3)) < 0.15).astype(float)
    dense = rng.dirichlet(0.3 * np.ones(6), size=(6, 3))
    return {
        "sparse": ol.TabularMDP(sparse, reward, horizon=8),
        "dense": ol.TabularMDP(dense, rng.random((6, 3)), horizon=6),
        "FrozenLake": ol.TabularMDP.from_gymnasium("FrozenLake-v1", 20),
    }


def regret(problem: ol.ImpairedMDP, c: float, bonus: str, pooled: bool, episodes: int, seed: int, best: float) -> float:
    learner = DelayedUCBVI(c=c, bonus=bonus, pooled=pooled)
    return float(learn(problem, learner, episodes, seed=seed, every=20, best=best, progress=False).regret[-1])


def main(quick: bool) -> None:
    seeds, episodes = ((0,), 300) if quick else ((0, 1), 2000)
    for bonus in ("hoeffding", "bernstein"):
        for pooled in (False, True):
            scores = []
            for mdp in processes().values():
                for d in (0, 1, 2):
                    problem = ol.ImpairedMDP(mdp, ol.ConstantDelay(d))
                    best = ol.solve(problem).value
                    found = [
                        np.mean([regret(problem, c, bonus, pooled, episodes, k, best) for k in seeds]) for c in GRID
                    ]
                    scores.append(np.array(found) / min(found))
            row = "  ".join(f"{c:g}: {x:.2f}" for c, x in zip(GRID, np.mean(scores, axis=0), strict=True))
            print(f"{bonus}, {'pooled' if pooled else 'per step'}:  {row}", flush=True)


if __name__ == "__main__":
    main("--quick" in sys.argv)
