"""The rows that `make bench-compare` runs at two commits: `python benchmarks/rows.py FILE [--quick]` writes {row: seconds} as JSON.

Only what has long been public is called, so that old commits can run it; a row that a commit cannot run is left out. Each row is the best of several
repeats, after one that is not counted (and that compiles, where nothing was compiled before).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import oldlight as ol

Work = Callable[[], Any]


def plans() -> Iterator[tuple[str, int, Work]]:
    chain = ol.instances.center_chain(0.99)
    for d in (2, 3, 5, 7):
        problem = ol.ImpairedMDP(chain, ol.ConstantDelay(d), start=ol.WarmStart())
        yield f"plan, d={d}", 60 if d < 5 else 8, lambda p=problem: ol.solve(p, progress=False)
    rng = np.random.default_rng(0)
    dense = ol.TabularMDP(rng.dirichlet(np.ones(20), size=(20, 5)), rng.random((20, 5)), horizon=10)
    for d in (5, 6):
        problem = ol.ImpairedMDP(dense, ol.ConstantDelay(d), start=ol.WarmStart())
        yield f"plan, dense, d={d}", 8, lambda p=problem: ol.solve(p, progress=False)
    problem = ol.ImpairedMDP(dense, ol.Loss(seen=0.5))
    yield "plan, dense, half lost", 5, lambda p=problem: ol.solve(p, progress=False)
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.BernoulliDelay(0.5))
    yield "plan, random delay", 8, lambda p=problem: ol.solve(p, progress=False)


def simulations() -> Iterator[tuple[str, int, Work]]:
    chain = ol.instances.sensing_chain(0.8)
    cases = {
        "constant delay 3, cold": ol.ImpairedMDP(chain, ol.ConstantDelay(3)),
        "constant delay 3, warm": ol.ImpairedMDP(chain, ol.ConstantDelay(3), start=ol.WarmStart()),
        "random delay": ol.ImpairedMDP(chain, ol.BernoulliDelay(0.5)),
        "half lost": ol.ImpairedMDP(chain, ol.Loss(seen=0.5)),
    }
    for what, problem in cases.items():
        policy = ol.solve(problem, progress=False).policy
        yield (
            f"simulate 100,000 episodes, one thread: {what}",
            4,
            lambda p=problem, f=policy: ol.simulate(p, f, 100_000, seed=1, threads=1),
        )


def _learned(problem: Any, make: Callable[[], Any], episodes: int, every: int) -> Work:
    how: dict[str, Any] = {"evaluate": "exact"} if every == 1 else {"evaluate": "sampled"}
    return lambda: ol.learn(problem, make(), episodes, seed=1, every=every, best=4.0, progress=False, **how)


def learning() -> Iterator[tuple[str, int, Work]]:
    chain = ol.instances.sensing_chain(0.8)
    for name, episodes in (
        ("DelayedUCBVI", 1_000),
        ("AugmentedUCBVI", 1_000),
        ("AugmentedQLearning", 1_000),
        ("PosteriorSampling", 200),
    ):
        for d in (0, 3):
            problem = ol.ImpairedMDP(chain, ol.ConstantDelay(d), start=ol.WarmStart())
            work = _learned(problem, getattr(ol.learners, name), episodes, episodes)
            yield f"learn {episodes:,} episodes, not valued: {name}, delay {d}", 2, work


def valued(rows: dict[str, float], episodes: int) -> None:
    """A run whose every policy is valued, and the share of the values in it."""
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.ConstantDelay(3), start=ol.WarmStart())
    _learned(problem, ol.learners.DelayedUCBVI, 20, 1)()
    began = time.perf_counter()
    run = _learned(problem, ol.learners.DelayedUCBVI, episodes, 1)()
    took = time.perf_counter() - began
    rows[f"learn {episodes:,} episodes at delay 3, every policy valued"] = took
    rows[f"learn {episodes:,} episodes at delay 3: of it, valuation"] = took - float(run.seconds.sum())


def main() -> None:
    quick, file = "--quick" in sys.argv, sys.argv[1]
    rows: dict[str, float] = {}
    for section in (plans, simulations, learning):
        for name, repeats, work in section():
            try:
                work()
                times = []
                for _ in range(1 if quick else repeats):
                    began = time.perf_counter()
                    work()
                    times.append(time.perf_counter() - began)
                rows[name] = min(times)
            except Exception as error:
                print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
    valued(rows, 300 if quick else 10_000)
    with open(file, "w", encoding="utf-8") as stream:
        json.dump(rows, stream)


if __name__ == "__main__":
    main()
