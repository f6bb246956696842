"""How regret grows with the delay where the delay matters: the rate √(D ∧ B) of docs/learning.md, measured with pooled counts.

    python docs/scripts/delay_slope.py [--into docs/paper] [--episodes 20000] [--package 1000]

**The process.** From the start the first step leads, whatever is done, to one of B = 2P successors; successor i belongs to pair j = i // 2 < P and waits for
time 1 + j. At that time the action must be i mod 2: then the state is *good* for ever, else *bad*. Being good pays 1 at each step of the second half of the horizon, so that
each pair is worth the same, H/2. The two successors of a pair have probabilities (1 ± ε)/B, the likelier one drawn at random for each pair.

With delay d the successor is seen from time 1 + d on: the actions for the pairs j < d are chosen blindly, and each needs to know which of two successors is the likelier; all
other pairs cost nothing. Without a delay there is nothing of this to learn. So the regret of K episodes is about

    min(d, P) · (ε/P)·(H/2) · (episodes until a pair's sign is known, of the order of P/ε²),       largest where ε is of the order of √(P/K):     H·min(d, P)·√(K/P).

With P = d, the hardest process for a delay of d, that is H·√(d·K): slope ½. With B = 2P successors at most, it stops growing at d = P.

**Two measurements.** (1) *Counts alone*: the learner knows everything but the successors' law and takes the likelier one by its counts (a tie: either). No plan over queues is needed then, so
that D = 32 is computed in a second; regret is the largest over a grid of ε, mean over seeds. (2) *The package's learners* with pooled counts, who know nothing but the rewards, behind the
same delays as far as tables of A^D queues go. They have to find out every transition first, which costs them a term that does not grow with K.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import oldlight as ol
from oldlight.learners import PosteriorSampling, default, learn

HORIZON = 68  # so that 32 pairs have had their time when the pay begins
DELAYS = (1, 2, 4, 8, 16, 32)
SCALES = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)  # ε in units of √(P/K)
FEW = 4  # pairs of the process whose number of successors is fixed, B = 8


def blind_choice(pairs: int, eps: float, signs: Any, horizon: int = HORIZON) -> ol.TabularMDP:
    """The process of the text. signs[j] = ±1: +1 where successor 2j is the likelier one of its pair."""
    places = {(i, j): 1 + n for n, (i, j) in enumerate((i, j) for i in range(2 * pairs) for j in range(i // 2 + 1))}
    good, bad = len(places) + 1, len(places) + 2
    P = np.zeros((bad + 1, 2, bad + 1))
    for i in range(2 * pairs):
        P[0, :, places[i, 0]] = (1.0 + eps * signs[i // 2] * (-1) ** i) / (2 * pairs)
    for (i, j), s in places.items():
        for a in (0, 1):
            P[s, a, places[i, j + 1] if j < i // 2 else good if a == i % 2 else bad] = 1.0
    P[good, :, good] = P[bad, :, bad] = 1.0
    rewards = np.zeros((horizon, bad + 1, 2))
    rewards[horizon // 2 :, good] = 1.0
    return ol.TabularMDP(P, rewards, horizon=horizon, initial=np.eye(bad + 1)[0])


def by_counts(pairs: int, delay: int, eps: float, episodes: int, rng: np.random.Generator) -> float:
    """Regret of the learner of the text that knows all but the successors' law."""
    signs = rng.choice((-1, 1), size=pairs)
    pair = rng.integers(pairs, size=episodes)
    likelier = rng.random(episodes) < (1.0 + eps) / 2
    regret = 0.0
    for j in range(min(delay, pairs)):
        lead = np.concatenate([[0], np.cumsum(np.where(pair == j, np.where(likelier, signs[j], -signs[j]), 0))[:-1]])
        wrong = np.where(lead == 0, 0.5, np.sign(lead) != signs[j])  # a tie: either
        regret += eps / pairs * (HORIZON // 2) * float(wrong.sum())
    return regret


def worst(pairs: int, delay: int, episodes: int, seeds: int) -> float:
    """The largest mean regret over the grid of ε."""
    found = []
    for scale in SCALES:
        eps = min(scale * np.sqrt(pairs / episodes), 1.0)
        found.append(np.mean([by_counts(pairs, delay, eps, episodes, np.random.default_rng(s)) for s in range(seeds)]))
    return float(max(found))


def by_package(make: Any, pairs: int, delay: int, episodes: int, seeds: int) -> tuple[float, float]:
    """Regret of a learner of the package at ε = 2·√(P/K): of all episodes, and of the second half of them."""
    found = []
    for seed in range(seeds):
        signs = np.random.default_rng(seed).choice((-1, 1), size=pairs)
        process = blind_choice(pairs, min(2.0 * np.sqrt(pairs / episodes), 1.0), signs)
        problem = ol.ImpairedMDP(process, ol.ConstantDelay(delay))
        run = learn(problem, make(), episodes, seed=seed, every=10, progress=False)
        found.append((run.regret[-1], run.regret[-1] - run.regret[episodes // 2 - 1]))
    whole, late = np.mean(found, axis=0)
    return float(whole), float(late)


def slope(x: Any, y: Any) -> float:
    """Of log y against log x."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def draw(path: Path, hardest: list[float], fixed: list[float], package: dict[str, dict[int, float]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    ax = figure.subplots()
    ax.loglog(DELAYS, hardest, "o-", label=f"counts alone, B = 2D (slope {slope(DELAYS, hardest):.2f})")
    ax.loglog(DELAYS, fixed, "s-", label=f"counts alone, B = {2 * FEW} for all D")
    for name, row in package.items():
        ax.loglog(list(row), list(row.values()), "x--", label=name)
    ax.axvline(FEW, color="gray", lw=0.8, ls=":")
    ax.set_xticks(DELAYS, [str(d) for d in DELAYS])
    ax.set_xlabel("delay D")
    ax.set_ylabel("regret")
    ax.legend(frameon=False, fontsize="small")
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description="Regret against the delay where the delay matters.")
    parser.add_argument("--into", type=Path, help="write delay_slope.svg here")
    parser.add_argument("--episodes", type=int, default=20_000, help="of counts alone")
    parser.add_argument("--package", type=int, default=1_000, help="episodes of the package's learners; 0: none")
    parser.add_argument("--seeds", type=int, default=20, help="of counts alone; the package's learners have 2")
    given = parser.parse_args()
    hardest = [worst(d, d, given.episodes, given.seeds) for d in DELAYS]
    fixed = [worst(FEW, d, given.episodes, given.seeds) for d in DELAYS]
    print("| D | counts alone, B = 2D | counts alone, B = 8 |\n|---|---|---|")
    for d, x, y in zip(DELAYS, hardest, fixed, strict=True):
        print(f"| {d} | {x:.0f} | {y:.0f} |")
    print(
        f"slope at B = 2D: {slope(DELAYS, hardest):.3f}; at B = 8 from D = 4 on: {slope(DELAYS[2:], fixed[2:]):.3f}\n"
    )
    package: dict[str, dict[int, float]] = {}
    print("| learner | D | B | regret | of the second half |\n|---|---|---|---|---|")
    makers = {
        "PosteriorSampling, pooled": lambda: PosteriorSampling(pooled=True),
        "default": default,
    }
    for name, make in makers.items() if given.package else ():
        for pairs_of, label in ((lambda d: d, "B = 2D"), (lambda d: FEW, f"B = {2 * FEW}")):
            row = package.setdefault(f"{name}, {label}", {})
            for d in (1, 2, 4):
                row[d], late = by_package(make, pairs_of(d), d, given.package, 2)
                print(f"| {name} | {d} | {2 * pairs_of(d)} | {row[d]:.0f} | {late:.0f} |", flush=True)
    if given.into is not None:
        given.into.mkdir(parents=True, exist_ok=True)
        draw(given.into / "delay_slope.svg", hardest, fixed, package)


if __name__ == "__main__":
    main()
