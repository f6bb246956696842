"""Draws the cost of planning for ever against 1/(1−u): `python docs/scripts/forever.py FILE.png`. Run it on a quiet machine."""

from __future__ import annotations

import sys
import time

import numpy as np
from matplotlib.figure import Figure

import oldlight as ol

DISCOUNTS = (0.9, 0.97, 0.99, 0.997, 0.999, 0.9997, 0.9999)
LINKS = ("constant:2", "loss:0.2", "packets:0=.5,1=.3,2=.2")


def draw(path: str) -> None:
    """Seconds and sweeps, best of three, for each link."""
    chain = ol.instances.sensing_chain(0.8, n_actions=3)
    figure = Figure(figsize=(9, 3.5), layout="constrained")
    seconds, sweeps = figure.subplots(1, 2)
    for link in LINKS:
        times, counts = [], []
        for u in DISCOUNTS:
            mdp = ol.TabularMDP(chain.transitions[0], chain.rewards[0], horizon=None, discount=u)
            problem, best = ol.ImpairedMDP(mdp, link), np.inf
            for _ in range(3):
                began = time.perf_counter()
                found = ol.solve(problem)
                best = min(best, time.perf_counter() - began)
            times.append(best)
            counts.append(found.work.sweeps)
        x = [1 / (1 - u) for u in DISCOUNTS]
        seconds.loglog(x, times, marker="o", label=link)
        sweeps.semilogx(x, counts, marker="o", label=link)
    for ax, label in ((seconds, "seconds to plan"), (sweeps, "sweeps")):
        ax.set_xlabel("1/(1 − u)")
        ax.set_ylabel(label)
        ax.legend()
    figure.savefig(path, dpi=140)


if __name__ == "__main__":
    draw(sys.argv[1])
