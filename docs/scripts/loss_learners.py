"""Learning behind a lossy link: the regret of Algorithms 2 and 3 on the sensing chain, as fewer states are seen.

    python docs/scripts/loss_learners.py            # table, and docs/loss_learners.png: some minutes
    python docs/scripts/loss_learners.py --sweep    # more rates around 1 − 1/A, fewer seeds: some minutes
    python docs/scripts/loss_learners.py --quick    # either of them, small: under a minute
    python docs/scripts/loss_learners.py --tune     # how the default constants were chosen, on other processes: an hour

Theorem 2 of the paper covers λ > 1 − 1/A, here 0.8; the paper conjectures that this is a critical point. The runs are
at λ = 0.95, 0.8 and 0.5. Values of policies are exact; that of every tenth episode's policy stands for the ten.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import oldlight as ol
from oldlight.checks import write_file
from oldlight.instances import sensing_chain
from oldlight.learners import compare, learn_seeds
from oldlight.learners.loss_ucbvi import LossUCBVI
from oldlight.learners.optimistic_planning import OptimisticPlanning

RATES = (0.95, 0.8, 0.5)
SWEEP = (0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5)
LEARNERS: dict[str, Callable[..., Any]] = {
    "OptimisticPlanning, bonus": OptimisticPlanning,
    "LossUCBVI": LossUCBVI,
    "LossUCBVI, clip H": partial(LossUCBVI, clip="H"),
}


def uniform_value(problem: ol.ImpairedMDP) -> float:
    """The value of acting at random: no information is used, so the law of the state is enough."""
    b, value = problem.initial, 0.0
    for h in range(problem.horizon):
        value += float(b @ problem.rewards_at(h).mean(axis=1))
        b = b @ problem.transitions_at(h).mean(axis=1)
    return value


def show(episodes: int, seeds: int, every: int, picture: Path | None) -> None:
    """The table, and the picture if asked for."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4.2), layout="constrained")
    axes = figure.subplots(1, len(RATES), sharey=True)
    print(f"sensing chain p = 0.8, S = 20, A = 5, H = 10, cold start; K = {episodes:,}; mean ± sd of {seeds} seeds")
    print("| λ | learner | best value | regret | of acting at random | gap, last tenth | exponent | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for rate, ax in zip(RATES, axes, strict=True):
        problem = ol.ImpairedMDP(sensing_chain(0.8), ol.Loss(seen=rate))
        best = ol.solve(problem).value
        random = best - uniform_value(problem)
        drawn, labels = [], []
        for name, make in LEARNERS.items():
            runs = learn_seeds(problem, make, episodes, seeds=range(seeds), best=best, every=every)
            total = np.array([run.regret[-1] for run in runs])
            last = np.array([run.shortfalls[-episodes // 10 :].mean() for run in runs])
            spread = [x.std(ddof=1) if seeds > 1 else 0.0 for x in (total, last)]
            cells = (
                f"{rate}", name, f"{best:.3f}", f"{total.mean():,.0f} ± {spread[0]:,.0f}",
                f"{100 * total.mean() / (episodes * random):.1f} %",
                f"{100 * last.mean() / best:.1f} ± {100 * spread[1] / best:.1f} %",
                f"{np.mean([run.growth() for run in runs]):.2f}", f"{np.mean([run.seconds.sum() for run in runs]):.1f}",
            )  # fmt: skip
            print("| " + " | ".join(cells) + " |", flush=True)
            drawn += runs
            labels += [name] * len(runs)
        compare(drawn, ax=ax, labels=labels)
        ax.plot([1, episodes], [random, random * episodes], color="0.6", linestyle=":", label="acting at random")
        ax.set_title(f"λ = {rate}" + (" = 1 − 1/A" if rate == 0.8 else " < 1 − 1/A" if rate < 0.8 else " > 1 − 1/A"))
        ax.set_ylabel("cumulative regret" if ax is axes[0] else "")
        ax.legend(frameon=False)
    if picture is not None:
        write_file(picture, lambda stream: figure.savefig(stream, format="png", dpi=120))
        print(f"wrote {picture.name}")


def sweep(episodes: int, seeds: int, every: int) -> None:
    """Does anything happen at λ = 1 − 1/A? Both learners at more rates."""
    print(f"sensing chain p = 0.8, S = 20, A = 5, H = 10, cold start; K = {episodes:,}; mean of {seeds} seeds")
    print("| λ | best value | regret of Algorithm 2 | of 3 | ratio | gap of 2, last tenth | of 3 | exponent of 3 |")
    print("|---|---|---|---|---|---|---|---|")
    for rate in SWEEP:
        problem = ol.ImpairedMDP(sensing_chain(0.8), ol.Loss(seen=rate))
        best = ol.solve(problem).value
        two, three = (
            learn_seeds(problem, make, episodes, seeds=range(seeds), best=best, every=every)
            for make in (OptimisticPlanning, LossUCBVI)
        )
        total = [np.mean([run.regret[-1] for run in runs]) for runs in (two, three)]
        last = [
            100 * np.mean([run.shortfalls[-episodes // 10 :].mean() for run in runs]) / best for runs in (two, three)
        ]
        cells = (
            f"{rate}", f"{best:.3f}", f"{total[0]:,.0f}", f"{total[1]:,.0f}", f"{total[1] / total[0]:.2f}",
            f"{last[0]:.1f} %", f"{last[1]:.1f} %", f"{np.mean([run.growth() for run in three]):.2f}",
        )  # fmt: skip
        print("| " + " | ".join(cells) + " |", flush=True)


def others() -> Iterator[tuple[str, ol.TabularMDP]]:
    """Processes that are not reported on: three random ones, and FrozenLake."""
    for seed, (S, A, H) in zip((100, 101, 102), ((6, 3, 6), (10, 4, 8), (5, 2, 10)), strict=True):
        rng = np.random.default_rng(seed)
        P = rng.dirichlet(np.full(S, 0.3), size=(S, A))
        R = rng.random((S, A)) * (rng.random((S, 1)) < 0.4)
        yield f"random, S={S}, A={A}, H={H}", ol.TabularMDP(P, R, horizon=H)
    yield "FrozenLake 4x4, H=12", ol.TabularMDP.from_gymnasium("FrozenLake-v1", 12)


GRID = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
OTHER_RATES = (0.9, 0.6)
TUNED: dict[str, tuple[Callable[..., Any], tuple[float, ...]]] = {
    "OptimisticPlanning, bonus": (OptimisticPlanning, GRID),
    "OptimisticPlanning, bonus, pooled": (partial(OptimisticPlanning, pooled=True), GRID),
    "LossUCBVI": (LossUCBVI, GRID),
    "OptimisticPlanning, alternating": (partial(OptimisticPlanning, "alternating"), (*GRID, 0.2)),
}


def tune(episodes: int, seeds: int) -> None:
    """The score of a constant is its regret divided by the best constant's on the same process and rate, averaged over
    all of them. These processes are easy to explore and hardly punish a constant that is too small; so the rule is: the
    largest constant whose mean score is within 1.5 times the best one's."""
    for name, (make, grid) in TUNED.items():
        scores = []
        for title, mdp in others():
            for rate in OTHER_RATES:
                problem = ol.ImpairedMDP(mdp, ol.Loss(seen=rate))
                best = ol.solve(problem).value
                runs = [
                    learn_seeds(problem, partial(make, c=c), episodes, seeds=range(seeds), best=best, every=20)
                    for c in grid
                ]
                found = np.array([np.mean([run.regret[-1] for run in some]) for some in runs])
                scores.append(found / found.min())
                shares = found / (episodes * (best - uniform_value(problem)))
                print(f"  {name}; {title}, λ = {rate}: " + "  ".join(f"{x:.3f}" for x in shares), flush=True)
        mean = np.mean(scores, axis=0)
        good = [c for c, x in zip(grid, mean, strict=True) if x <= 1.5 * mean.min()]
        row = "  ".join(f"{c:g}: {x:.2f}" for c, x in zip(grid, mean, strict=True))
        print(f"{name}:  {row}  ->  {max(good):g}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small: 500 episodes, 2 seeds, no picture")
    parser.add_argument("--sweep", action="store_true", help="more rates, both learners")
    parser.add_argument("--tune", action="store_true", help="choose the constants instead")
    parser.add_argument("--episodes", type=int, default=None)
    parser.add_argument("--seeds", type=int, default=None)
    given = parser.parse_args()
    began = time.perf_counter()
    if given.tune:
        tune(given.episodes or (200 if given.quick else 1000), given.seeds or (1 if given.quick else 2))
    elif given.sweep:
        sweep(given.episodes or (500 if given.quick else 10_000), given.seeds or 2, 10)
    else:
        picture = None if given.quick else Path(__file__).resolve().parents[1] / "loss_learners.png"
        show(given.episodes or (500 if given.quick else 10_000), given.seeds or (2 if given.quick else 4), 10, picture)
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
