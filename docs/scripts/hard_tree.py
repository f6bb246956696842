"""Algorithm 1 on the lower bound's tree: measured regret beside Proposition 2, Theorem 1 and H·K.

    python docs/scripts/hard_tree.py [--quick]

m = 2, A = 2, D = 2 (S = 6, H = 8), K = 2,000 and 8,000 ≥ H·S·A episodes, ε(K) as in the proof, the triple (h*, ℓ*, a*) drawn
with the seed, at delay 0 and at delay D; cold start (the first state is known).
"""

from __future__ import annotations

import sys

import numpy as np

import oldlight as ol
from oldlight.instances.hard_tree import hard_tree_epsilon
from oldlight.learners import DelayedUCBVI, learn
from oldlight.paper import bounds


def main(quick: bool) -> None:
    m, A, D, H = 2, 2, 2, 8
    S = 3 + (A**m - 1) // (A - 1)
    for K in (500,) if quick else (2_000, 8_000):
        epsilon = hard_tree_epsilon(m, A, D, K)
        lower = bounds.proposition_2(S, A, H, D, K)
        upper = bounds.theorem_1(S, A, H, D + 1, K, 0.1)
        for d in (0, D):
            found = []
            for seed in range(3 if quick else 12):
                mdp = ol.instances.hard_tree(m, A, D, epsilon=epsilon, horizon=H, seed=seed)
                problem = ol.ImpairedMDP(mdp, ol.ConstantDelay(d))
                found.append(learn(problem, DelayedUCBVI(), K, seed=seed, every=10, progress=False).regret[-1])
            measured = f"{np.mean(found):.1f} ± {np.std(found, ddof=1):.1f} (sd over triples)"
            theory = f"Proposition 2 {lower:.1f}; Theorem 1 (c=1) {upper:.3g}; HK {H * K}"
            print(f"K={K} delay={d} epsilon={epsilon:.4f}: regret {measured}; {theory}", flush=True)
    first = bounds.informative_from(lambda k: bounds.theorem_1(S, A, H, D + 1, k, 0.1), H)
    print(f"Theorem 1 with c = 1 is below HK from K = {first:.3g} on")


if __name__ == "__main__":
    main("--quick" in sys.argv)
