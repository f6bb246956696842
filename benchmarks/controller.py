"""How long a controller takes to decide: `python benchmarks/controller.py [--quick]`; a section of `bench.py`.

Each call is timed by itself, with the clock's own cost taken off; the median and the 99th percentile count, because a controller
that is quick on average can still be late. The chain has S=20, A=5, H=10.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import oldlight as ol
from oldlight.control import Controller

Row = dict[str, Any]


def controller_latency(quick: bool) -> Iterator[Row]:
    """Microseconds for one decision (`act`) and for one message (`observe`) of a controller that was saved and loaded."""
    chain = ol.instances.sensing_chain(0.8)
    d = 5
    warm = ol.ImpairedMDP(chain, ol.ConstantDelay(d), start=ol.WarmStart())
    random = ol.ImpairedMDP(chain, ol.GeometricDelay(0.7, first="same").capped(3))
    cases: list[tuple[str, ol.ImpairedMDP, Callable[[int], list[int]]]] = [
        ("table, delay 5, warm", warm, lambda h: [h - d]),
        ("table, delay 5, cold", ol.ImpairedMDP(chain, ol.ConstantDelay(d)), lambda h: [h - d]),
        ("table, delay 5, messages come 5 ticks early", ol.ImpairedMDP(chain, ol.ConstantDelay(d)), lambda h: [h]),
        (
            "table, delay 5, after tick 5 nothing more",
            ol.ImpairedMDP(chain, ol.ConstantDelay(d)),
            lambda h: [h - d][h > d :],
        ),
        ("table, random delay up to 3", random, lambda h: [h - 2]),
        ("sequences, loss 50%, every other lost", ol.ImpairedMDP(chain, ol.Loss(seen=0.5)), lambda h: [h][h % 2 :]),
    ]
    for what, problem, arrives in cases:
        with tempfile.TemporaryDirectory() as folder:
            path = Controller(problem, ol.solve(problem, progress=False).policy).save(Path(folder) / "plan.npz")
            controller = Controller.load(path)
        acts, observes = _timed(controller, problem, arrives, 2_000 if quick else 20_000)
        yield {
            "what": what,
            "act, median": micro(np.median(acts)),
            "act, 99%": micro(np.quantile(acts, 0.99)),
            "act, 99.9%": micro(np.quantile(acts, 0.999)),
            "observe, median": micro(np.median(observes)),
            "unplanned": f"{controller.report().unplanned / controller.report().ticks:.0%}",
        }


def _timed(
    controller: Controller, problem: ol.ImpairedMDP, arrives: Callable[[int], list[int]], episodes: int
) -> tuple[Any, Any]:
    """Seconds of each act and each observe, over many episodes with states drawn at random."""
    rng = np.random.default_rng(0)
    clock, warmup = time.perf_counter_ns, problem.warmup
    states = rng.integers(0, problem.n_states, (episodes, problem.horizon + warmup)).tolist()
    past = rng.integers(0, problem.n_actions, (episodes, warmup)).tolist()
    acts, observes = [], []
    own = min(-(clock() - clock()) for _ in range(1000))
    with _no_collection():
        for e in range(episodes):
            controller.reset(past[e])
            for h in range(problem.horizon):
                for i in arrives(h):
                    if i >= -warmup:
                        began = clock()
                        controller.observe(i, states[e][i + warmup])
                        observes.append(clock() - began - own)
                began = clock()
                controller.act()
                acts.append(clock() - began - own)
    return np.array(acts) / 1e9, np.array(observes) / 1e9


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """The timing's own lists must not set off Python's garbage collector."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def micro(seconds: Any) -> str:
    return f"{1e6 * float(seconds):.2f} µs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer episodes")
    for row in controller_latency(parser.parse_args().quick):
        print(", ".join(f"{key}: {value}" if key != "what" else f"{value:44}" for key, value in row.items()))


if __name__ == "__main__":
    main()
