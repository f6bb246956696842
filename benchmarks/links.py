"""Links as they are, against a constant delay of the same length, by `solve`: `python benchmarks/links.py`.

Only ratios within one run count: the machine may be busy. Each figure is the least processor time of three after a first run that compiles.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import oldlight as ol


def best_of(work: Callable[[], Any], repeat: int = 3) -> tuple[float, Any]:
    result, times = work(), []
    for _ in range(repeat):
        began = time.process_time()
        result = work()
        times.append(time.process_time() - began)
    return min(times), result


def dense_instance() -> ol.TabularMDP:
    """S = 20, A = 5, H = 10, as in docs/benchmarks.md."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(0.3 * np.ones(20), size=(5, 20))
    return ol.TabularMDP(P.transpose(1, 0, 2), rng.random((20, 5)), horizon=10)


def plant(rooms: int = 27, horizon: int = 50) -> ol.TabularMDP:
    """A mass on a rail, pushed left or right: position × speed and one absorbing state, S = 730, A = 2."""
    n = rooms
    S = n * n + 1
    P, R = np.zeros((S, 2, S)), np.zeros((S, 2))
    P[S - 1, :, S - 1] = 1.0
    for x in range(n):
        for v in range(n):
            s, speed = x * n + v, v - n // 2
            R[s] = 1.0 - abs(x - n // 2) / n
            for a, push in enumerate((-1, 1)):
                for noise, p in ((-1, 0.15), (0, 0.7), (1, 0.15)):
                    faster = min(max(v + push + noise, 0), n - 1)
                    place = x + round(speed / 4)
                    P[s, a, place * n + faster if 0 <= place < n else S - 1] += p
    initial = np.zeros(S)
    initial[(n // 2) * n + n // 2] = 1.0
    return ol.TabularMDP(P, R, horizon=horizon, initial=initial)


def main() -> None:
    link = ol.PacketChannel([1 / 6] * 6, lost=0.1)
    processes = {"sensing chain": ol.instances.sensing_chain(0.8), "dense random": dense_instance()}
    for name, mdp in processes.items():
        problem = ol.ImpairedMDP(mdp, link)
        late, _ = best_of(lambda mdp=mdp: ol.solve(ol.ImpairedMDP(mdp, ol.ConstantDelay(5))))
        some, rough = best_of(lambda p=problem: ol.solve(p, tolerance=0.01))
        full, exact = best_of(lambda p=problem: ol.solve(p))
        print(
            f"{name}: ConstantDelay(5) {late * 1e3:.1f} ms; packets 0..5, 10 % lost: certificate {rough.upper - rough.lower:.2g} "
            f"in {some / late:.2f}×, {exact} in {full / late:.2f}×"
        )
    print("loss, alone and late: the search, in ms, and its information states")
    for name, mdp in processes.items():
        for text in (
            "loss:0.1",
            "loss:0.5",
            "loss:0.95",
            "constant:1+loss:0.2",
            "constant:2+loss:0.2",
            "constant:4+loss:0.1",
        ):
            problem = ol.ImpairedMDP(mdp, text)
            for tolerance in (0.0, 0.01):
                spent, found = best_of(lambda p=problem, t=tolerance: ol.solve(p, tolerance=t, progress=False))
                print(
                    f"{name}, {text}, tolerance {tolerance}: {spent * 1e3:.1f}; {found.work.information_states:,}; {found.value:.10g}"
                )
    problem = ol.ImpairedMDP(plant(), "constant:3+loss:0.2")
    for tolerance in (0.1, 0.01):
        spent, plan = best_of(lambda t=tolerance: ol.solve(problem, tolerance=t, seconds=60), 1)
        print(f"constant:3+loss:0.2, S=730, A=2, H=50, tolerance {tolerance}: {plan} in {spent:.2f} s")
    price = ol.gap(problem, tolerance=0.1)
    print(f"its price: {price.gap:.3f} of {price.full:.3f}")


if __name__ == "__main__":
    main()
