"""The worst case of counts that are shared until a test says otherwise: `default()` on a process whose steps differ by ε.

    python docs/scripts/pooling.py [EPISODES] [SEEDS]

Two states, two actions, H = 10: whatever the state, action a leads to state 1, which pays, with probability ½ + ε at even steps for a = 0 and odd steps for
a = 1, and ½ − ε otherwise. Put together, the two actions are alike: a learner that shares its counts over the steps loses about ε·(H − 1) in every episode, for
as long as the test does not see that the steps differ. That takes of the order of log(S·A/γ)/ε² visits to a pair, so the most is lost where ε is just too small
to be seen in K episodes. Prints the regret with shared counts until they split, with counts of each step, and in how many runs all pairs were split.
"""

from __future__ import annotations

import sys

import numpy as np

import oldlight as ol
from oldlight.learners import default, learn


def alternating(eps: float, horizon: int = 10) -> ol.TabularMDP:
    """The process of the text."""
    P = np.empty((horizon, 2, 2, 2))
    for h in range(horizon):
        for a in (0, 1):
            P[h, :, a, 1] = 0.5 + (eps if a == h % 2 else -eps)
    P[..., 0] = 1.0 - P[..., 1]
    return ol.TabularMDP(P, np.array([[0.0, 0.0], [1.0, 1.0]]), horizon=horizon)


def main(episodes: int, seeds: int) -> None:
    print("| ε | shared until they split | each step | split | shared for ever (ε·(H − 1)·K) |\n|---|---|---|---|---|")
    for eps in (0.01, 0.02, 0.05, 0.1, 0.2, 0.4):
        problem = ol.ImpairedMDP(alternating(eps), "none")
        regret: dict[object, list[float]] = {"auto": [], False: []}
        split = []
        for seed in range(seeds):
            for pooled in ("auto", False):
                learner = default(pooled=pooled)  # type: ignore[arg-type]
                run = learn(problem, learner, episodes, seed=seed, every=10, progress=False)
                regret[pooled].append(float(run.regret[-1]))
                if pooled == "auto":
                    split.append(bool(learner.counts.split.all()))
        auto, each = np.mean(regret["auto"]), np.mean(regret[False])
        print(f"| {eps:g} | {auto:.0f} | {each:.0f} | {sum(split)} of {seeds} | {eps * 9 * episodes:.0f} |", flush=True)


if __name__ == "__main__":
    main(*(int(x) for x in (sys.argv[1:] + ["1000", "3"][len(sys.argv) - 1 :])))
