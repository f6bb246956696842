"""What runs over 256 MB announce, and what they hold: python docs/scripts/peaks.py [row ...]

Each row in a process of its own: a small run of the same kind compiles first, then the peak of the process above what it held before (Linux: VmHWM of
/proc/self/status, set back before the run). Announced: `solve(...).work.bytes`, `run_bytes` and `simulated_bytes`, before anything is made. Without rows it runs all
and writes the table of docs/sizes.md; with numbers of rows (from 0) it prints those.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
from marks import fill
from scipy import sparse

import oldlight as ol
from oldlight.learners.run_memory import run_bytes
from oldlight.simulation.simulated_bytes import simulated_bytes

PAGE = Path(__file__).parents[1] / "sizes.md"
MIB = 2**20
LATE = {"start": "warm"}


def chain(horizon: int, link: str) -> ol.ImpairedMDP:
    return ol.ImpairedMDP(ol.instances.sensing_chain(0.8, horizon=horizon), link, **LATE)


def spread(S: int, link: str, horizon: int = 10) -> ol.ImpairedMDP:
    """Three actions and three successors for each pair."""
    rng = np.random.default_rng(S)
    rows = np.repeat(np.arange(3 * S), 3)
    columns = np.concatenate([rng.choice(S, 3, replace=False) for _ in range(3 * S)])
    P = sparse.csr_array((rng.dirichlet(np.ones(3), 3 * S).ravel(), (rows, columns)), shape=(3 * S, S))
    mdp = ol.TabularMDP(P if S > 1000 else P.toarray().reshape(S, 3, S), rng.random((S, 3)), horizon=horizon)
    return ol.ImpairedMDP(mdp, link)


def planned(problem: Callable[[bool], ol.ImpairedMDP], small: bool) -> int:
    found = ol.solve(problem(small), progress=False)
    return found.work.bytes


def learnt(
    name: str, problem: Callable[[bool], ol.ImpairedMDP], small: bool, evaluate: Literal["exact", "sampled"] = "exact"
) -> int:
    here, learner = problem(small), getattr(ol.learners, name)()
    announced = run_bytes(here, learner, evaluate, 3)
    ol.learn(here, learner, 3, seed=0, best=1.0, evaluate=evaluate, progress=False)
    return announced


def simulated(small: bool) -> int:
    problem, episodes = chain(10, "constant:2"), 10 if small else 1_500_000
    policy = ol.solve(problem).policy
    ol.simulate(problem, policy, episodes, record=True)
    return simulated_bytes(problem, episodes, True)


def late(name: str, d: int) -> Callable[[bool], int]:
    return lambda small: learnt(name, lambda small: chain(20, f"constant:{2 if small else d}"), small)


def lossy(name: str, link: str, S: int) -> Callable[[bool], int]:
    return lambda small: learnt(name, lambda small: spread(4 if small else S, link), small, "sampled")


ROWS: dict[str, Callable[[bool], int]] = {
    "`solve`, sensing chain, delay 8, H = 20": lambda small: planned(lambda small: chain(20, f"constant:{2 if small else 8}"), small),
    **{f"`{name}`, sensing chain, delay {d}, H = 20": late(name, d) for name, d in (
        ("DelayedUCBVI", 7), ("PosteriorSampling", 7), ("AugmentedUCBVI", 7), ("AugmentedQLearning", 7), ("MemorylessQLearning", 7), ("MemorylessUCBVI", 7),
        ("LinkLearner", 7),
    )},
    "`simulate`, sensing chain, delay 2, 1,500,000 episodes, recorded": simulated,
    **{f"`{name}`, S = {S:,}, `{link}`": lossy(name, link, S) for name, link, S in (
        ("PosteriorSampling", "loss:0.02", 400),
        ("OptimisticPlanning", "loss:0.02", 400),
        ("LossUCBVI", "loss:0.2", 70_000),
        ("LinkLearner", "loss:0.1", 400),
        ("LinkLearner", "packets:0=.8,1=.2+loss:0.1", 400),
        ("LinkLearner", "constant:1+loss:0.1", 400),
    )},
}  # fmt: skip


def held(key: str) -> int:
    """Bytes of that line of /proc/self/status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(key))


def row(what: str) -> str:
    do = ROWS[what]
    do(True)  # compiles, and imports
    before = held("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak from now on
    announced = do(False)
    peak = held("VmHWM") - before
    return f"| {what} | {announced / MIB:,.0f} MiB | {peak / MIB:,.0f} MiB | {announced / peak:.2f} |"


def main(numbers: list[str]) -> None:
    rows = []
    for what in [list(ROWS)[int(n)] for n in numbers] or ROWS:
        done = subprocess.run([sys.executable, __file__, "--row", what], stdout=subprocess.PIPE, text=True, check=True)
        rows.append(done.stdout.strip().splitlines()[-1])
        print(rows[-1], flush=True)
    if numbers:
        return
    table = "\n".join(["| | announced | peak | announced / peak |", "|---|---|---|---|", *rows])
    fill(PAGE, {"peaks": table})


if __name__ == "__main__":
    if sys.argv[1:2] == ["--row"]:
        print(row(sys.argv[2]))
    else:
        main(sys.argv[1:])
