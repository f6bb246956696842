"""Draws what planning for ever costs, against the number of states and against 1/(1−u): `python docs/scripts/forever.py FOLDER [--quick] [--only states]`.

Two pictures, cost_states.png and cost_discount.png. Times are those of the processor, the shortest of several, as multiples of the first point of each
curve: they change little when others use the machine. The smallest and largest are printed in milliseconds.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy import sparse

import oldlight as ol

DISCOUNTS = (0.9, 0.97, 0.99, 0.997, 0.999, 0.9997, 0.9999)
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
LINKS = ("constant:2", "loss:0.2", "packets:0=.5,1=.3,2=.2")
REPEATS = 3


def planned(problem: ol.ImpairedMDP, tolerance: float) -> tuple[float, ol.Solution]:
    """The shortest processor time of some plans, and the plan; the first one compiles."""
    best = np.inf
    for _ in range(REPEATS):
        began = time.process_time()
        found = ol.solve(problem, tolerance=tolerance, progress=False)
        best = min(best, time.process_time() - began)
    return best, found


def large(S: int) -> ol.TabularMDP:
    """Three actions, three successors anywhere: a sparse process without end that forgets where it began within a few steps."""
    rng = np.random.default_rng(0)
    A, K = 3, 3
    row = np.repeat(np.arange(S * A), K)
    to = rng.integers(S, size=len(row))
    P = sparse.csr_array((rng.dirichlet(np.ones(K), size=S * A).reshape(-1), (row, to)), shape=(S * A, S))
    return ol.TabularMDP(P, rng.random((S, A)), horizon=None, discount=0.99)


def drawn(curves: dict[str, tuple[Any, list[float]]], xlabel: str, slope: bool, path: Path) -> None:
    """Each curve as multiples of its first point, on logarithmic axes; slope: with the line of what grows like x."""
    figure = Figure(figsize=(5.5, 3.6), layout="constrained")
    ax = figure.subplots()
    for label, (x, times) in curves.items():
        ax.loglog(x, np.array(times) / times[0], marker="o", label=f"{label} ({1e3 * times[0]:.3g} ms)")
        print(f"{path.stem}: {label}: {1e3 * times[0]:.3g} .. {1e3 * times[-1]:.3g} ms")
    x = np.array(next(iter(curves.values()))[0], dtype=float)
    if slope:
        ax.loglog(x, x / x[0], color="0.6", ls="--", label="grows like S")
    else:
        ax.set_ylim(0.1, 10 * max(max(t) / t[0] for _, t in curves.values()))
    ax.set_xlabel(xlabel)
    ax.set_ylabel("processor time, first point = 1")
    ax.legend(fontsize=8)
    figure.savefig(path, dpi=140)


def against_discount(folder: Path) -> None:
    chain = ol.instances.sensing_chain(0.8, n_actions=3)
    curves: dict[str, tuple[Any, list[float]]] = {}
    for link in LINKS:
        times, sweeps = [], []
        for u in DISCOUNTS:
            plant = ol.TabularMDP(chain.transitions[0], chain.rewards[0], horizon=None, discount=u)
            seconds, found = planned(ol.ImpairedMDP(plant, link), 1e-6 / (1 - u))
            times.append(seconds)
            sweeps.append(found.work.sweeps)
        print(link, "sweeps", sweeps)
        curves[link] = [1 / (1 - u) for u in DISCOUNTS], times
    drawn(curves, "1/(1 − u)", False, folder / "cost_discount.png")


def against_states(folder: Path, sizes: tuple[int, ...]) -> None:
    curves: dict[str, tuple[Any, list[float]]] = {}
    for d in (0, 1, 2):
        made = [planned(ol.ImpairedMDP(large(S), ol.ConstantDelay(d)), 1e-4) for S in sizes]
        print("delay", d, "sweeps", [found.work.sweeps for _, found in made])
        curves[f"delay {d}"] = sizes, [seconds for seconds, _ in made]
    drawn(curves, "states S (A = 3, 3 successors, u = 0.99)", True, folder / "cost_states.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quick", action="store_true", help="up to 10,000 states")
    parser.add_argument("--only", choices=("states", "discount"), help="one of the two pictures")
    given = parser.parse_args()
    if given.only != "states":
        against_discount(given.folder)
    if given.only != "discount":
        against_states(given.folder, SIZES[:3] if given.quick else SIZES)


if __name__ == "__main__":
    main()
