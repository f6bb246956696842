"""Regret under delay on the sensing chain: Algorithm 1, posterior sampling, and what people run instead.

    python docs/scripts/learning.py OUT [--quick] [--workers N] [--delays 0,1,2,3] | OUT --draw learning.csv

sensing_chain(0.8), constant delays 0..3, warm start, H = 10, 10,000 episodes, 5 seeds (paired: seed k gives every learner the
same luck). Prints the table, writes OUT/learning.png and OUT/learning.csv. Policies are valued exactly, every tenth episode.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import oldlight as ol
from oldlight.checks import write_text
from oldlight.learners import LearningRun, compare, learn_seeds
from oldlight.report.pictures import save

LEARNERS: dict[str, Any] = {
    "DelayedUCBVI": ol.learners.DelayedUCBVI,
    "DelayedUCBVI, pooled": partial(ol.learners.DelayedUCBVI, pooled=True),
    "DelayedUCBVI, paper's bonus": partial(ol.learners.DelayedUCBVI, bonus="hoeffding"),
    "PosteriorSampling": ol.learners.PosteriorSampling,
    "PosteriorSampling, pooled": partial(ol.learners.PosteriorSampling, pooled=True),
    "AugmentedUCBVI": ol.learners.AugmentedUCBVI,
    "AugmentedUCBVI, pooled": partial(ol.learners.AugmentedUCBVI, pooled=True),
    "AugmentedQLearning": ol.learners.AugmentedQLearning,
    "AugmentedQLearning, pooled": partial(ol.learners.AugmentedQLearning, pooled=True),
    "MemorylessUCBVI": ol.learners.MemorylessUCBVI,
    "MemorylessQLearning": ol.learners.MemorylessQLearning,
    "UniformRandom": ol.learners.UniformRandom,
}


def main(out: str, quick: bool, workers: int, delays: tuple[int, ...]) -> None:
    from matplotlib.figure import Figure

    seeds, episodes = (range(2), 500) if quick else (range(5), 10_000)
    rows = ["delay,learner,regret mean,regret sd,last gap %,gap % at 1000,growth exponent,best"]
    figure = Figure(figsize=(12, 6.5), layout="constrained")
    axes = figure.subplots(
        1 if len(delays) < 3 else 2, -(-len(delays) // (1 if len(delays) < 3 else 2)), squeeze=False
    ).flat
    for d, ax in zip(delays, axes, strict=False):
        problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.ConstantDelay(d), start=ol.WarmStart())
        shown: list[LearningRun] = []
        labels: list[str] = []
        for name, make in LEARNERS.items():
            fixed = name in ("UniformRandom",)
            every = episodes if fixed else 10
            runs = learn_seeds(problem, make, episodes, seeds=seeds, workers=workers, every=every, progress=False)
            last = [r.regret[-1] for r in runs]
            gap = np.mean([r.gaps[-1] / r.best for r in runs])
            early = np.mean([r.gaps[min(1000, episodes - 1)] / r.best for r in runs])
            growth = np.mean([r.growth() for r in runs])
            rows.append(
                f"{d},{name},{np.mean(last):.1f},{np.std(last, ddof=1):.1f},{100 * gap:.2f},{100 * early:.2f},{growth:.2f},"
                f"{runs[0].best:.6f}"
            )
            print(rows[-1], flush=True)
            shown += runs
            labels += [name] * len(runs)
        compare(shown, ax=ax, labels=labels)
        ax.set_title(f"delay {d}", fontsize=10)
        ax.set_yscale("log")
        ax.legend(fontsize=6, frameon=False)
    Path(out).mkdir(parents=True, exist_ok=True)
    write_text(Path(out) / "learning.csv", "\n".join(rows) + "\n")
    print(save(figure, out, "curves"))
    draw(Path(out) / "learning.csv", out)


def draw(table: Path, out: str) -> None:
    """The final regret by delay, one line per learner, from the table."""
    from matplotlib.figure import Figure

    found: dict[str, list[tuple[int, float, float]]] = {}
    for line in table.read_text(encoding="utf-8").splitlines()[1:]:
        d, rest = line.split(",", 1)
        name, mean, sd = rest.rsplit(",", 7 - 1)[:3]
        found.setdefault(name, []).append((int(d), float(mean), float(sd)))
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    ax = figure.subplots()
    for i, (name, points) in enumerate(found.items()):
        x, y, e = (list(column) for column in zip(*sorted(points), strict=True))
        style = "--" if "pooled" in name else "-"
        ax.errorbar(x, y, yerr=e, fmt=f"o{style}", ms=4, lw=1.4, capsize=2, label=name, color=f"C{i % 10}")
    ax.set_yscale("log")
    ax.set_xticks(range(4))
    ax.set_xlabel("delay (steps)")
    ax.set_ylabel("cumulative regret after 10,000 episodes")
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", fontsize=7, frameon=False)
    print(save(figure, out, "learning"))


if __name__ == "__main__":

    def option(name: str, default: str) -> str:
        return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default

    if "--draw" in sys.argv:
        draw(Path(option("--draw", "")), sys.argv[1])
        sys.exit()
    target = sys.argv[1] if len(sys.argv) > 1 and not sys.argv[1].startswith("--") else "out"
    wanted = tuple(int(x) for x in option("--delays", "0,1,2,3").split(","))
    main(target, "--quick" in sys.argv, int(option("--workers", "1")), wanted)
