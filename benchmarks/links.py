"""Links as they are, against a constant delay of the same length, by `solve`: `python benchmarks/links.py [--quick]`; a section of bench.py.

Only ratios within one run count: the machine may be busy. Each figure is the least processor time of several after a first run that compiles, or the least time of several turns.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import oldlight as ol
from turns import best


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


def links(quick: bool) -> Iterator[dict[str, Any]]:
    """Plans behind links, processor time: the best of 3, or 1 for the plant (S = 730, A = 2, H = 50). ratio: to ConstantDelay(5) on the same process."""
    repeat = 3 if quick else 9
    processes = {"sensing chain 0.8": ol.instances.sensing_chain(0.8), "dense random": dense_instance()}
    packets = ol.PacketChannel([1 / 6] * 6, lost=0.1)
    for name, mdp in processes.items():
        late, exact = best_of(
            lambda mdp=mdp: ol.solve(ol.ImpairedMDP(mdp, ol.ConstantDelay(5)), progress=False), repeat
        )
        yield _row(f"{name}, constant:5", late, exact)
        for tolerance in (0.01, 0.0):
            problem = ol.ImpairedMDP(mdp, packets)
            spent, found = best_of(lambda p=problem, t=tolerance: ol.solve(p, tolerance=t, progress=False), repeat)
            yield _row(f"{name}, packets 0..5, 10 % lost, tolerance {tolerance:g}", spent, found) | {
                "ratio": spent / late
            }
        for text in ("loss:0.5", "constant:2+loss:0.2", "constant:4+loss:0.1"):
            problem = ol.ImpairedMDP(mdp, text)
            spent, found = best_of(lambda p=problem: ol.solve(p, progress=False), repeat)
            yield _row(f"{name}, {text}", spent, found) | {"ratio": spent / late}
    problem = ol.ImpairedMDP(plant(), "constant:3+loss:0.2")
    for tolerance in (0.1,) if quick else (0.1, 0.01):
        spent, found = best_of(lambda t=tolerance: ol.solve(problem, tolerance=t, seconds=60, progress=False), 1)
        yield _row(f"plant, constant:3+loss:0.2, tolerance {tolerance:g}", spent, found)


def products(nodes: int, mdp: ol.TabularMDP) -> list[Callable[[], float]]:
    """So many products b·P, one law with all actions each, in a bare compiled loop: with its arrays in several places, since where they happen to lie makes this loop
    up to three times slower."""
    import numba as nb

    @nb.njit(fastmath=True)
    def loop(laws: Any, P: Any, out: Any) -> float:
        total = 0.0
        for k in range(len(laws)):
            out[:] = 0.0
            for s in range(len(P)):
                p = laws[k, s]
                for i in range(P.shape[1]):
                    out[i] += p * P[s, i]
            total += out[k % len(out)]
        return total

    P = mdp.transitions[0].reshape(mdp.n_states, -1)
    laws = np.random.default_rng(0).dirichlet(np.ones(mdp.n_states), size=nodes)
    places = [(laws.copy(), P.copy(), np.zeros(P.shape[1] + 8 * k)[: P.shape[1]]) for k in range(8)]
    return [lambda arrays=arrays: loop(*arrays) for arrays in places]


def numpy_products(nodes: int, mdp: ol.TabularMDP) -> Callable[[], None]:
    """The same products, each by the library's product of a vector and a matrix, as one would write it in Python."""
    P = np.ascontiguousarray(mdp.transitions[0].reshape(mdp.n_states, -1))
    laws, out = list(np.random.default_rng(0).dirichlet(np.ones(mdp.n_states), size=nodes)), np.empty(P.shape[1])

    def work() -> None:
        for law in laws:
            np.dot(law, P, out)

    return work


def loss_nodes(quick: bool) -> Iterator[dict[str, Any]]:
    """Loss alone on the dense random process (S = 20, A = 5, H = 10), exact. theirs: as many products of a law with P (20 × 100), all
    actions at once, as the search opens nodes (laws, and corners of every time), in a bare compiled loop (goal: at most twice that), in turn with ours. search: of our time, the
    one compiled call that finds the values and the sequences of actions; the rest is Python: arrays, checks, a solution and its certificate. by NumPy: the same products, a call of
    the library's product of a vector and a matrix each; next to it our time as a multiple of that."""
    from oldlight.kernels import corners

    mdp = dense_instance()
    for text in ("loss:0.5", "loss:0.95"):
        problem = ol.ImpairedMDP(mdp, text)
        plan = partial(ol.solve, problem, progress=False)
        nodes = plan().work.information_states - mdp.n_states  # the states after the last step are not opened
        with timed_calls(corners, "settle_all") as spent:
            places = {f"place {k}": do for k, do in enumerate(products(nodes, mdp))}
            t = best(1 if quick else 4, ours=plan, numpy=numpy_products(nodes, mdp), **places)
        ours, library, searched = t.pop("ours"), t.pop("numpy"), min(spent)
        bare = min(t.values())
        yield {
            "what": f"{text}, {nodes:,} nodes",
            "ours": ours,
            "search": searched,
            "theirs": bare,
            "search / theirs": f"{searched / bare:.2f}×",
            "ratio": ours / bare,
            "by NumPy": library,
            "ours / NumPy": f"{ours / library:.2f}×",
        }


@contextlib.contextmanager
def timed_calls(module: Any, name: str) -> Iterator[list[float]]:
    """The seconds of each call of a compiled function, meanwhile."""
    kernel, spent = getattr(module, name), []

    def timed(*args: Any) -> Any:
        began = time.perf_counter()
        try:
            return kernel(*args)
        finally:
            spent.append(time.perf_counter() - began)

    setattr(module, name, timed)
    try:
        yield spent
    finally:
        setattr(module, name, kernel)


def _row(what: str, spent: float, found: ol.Solution) -> dict[str, Any]:
    gap = "exact" if found.exact else f"{found.upper - found.lower:.2g}"
    return {"what": what, "ours": spent, "upper − lower": gap, "value": f"{found.value:.9f}"}


def main() -> None:
    for row in loss_nodes("--quick" in sys.argv):
        print(
            f"{row['what']:30s} {row['ours'] * 1e3:7.2f} ms, search {row['search'] * 1e3:6.2f}, products {row['theirs'] * 1e3:6.2f}, {row['ratio']:.1f}×",
            flush=True,
        )
    for row in links("--quick" in sys.argv):
        ratio = f"{row['ratio']:.2f}×" if "ratio" in row else ""
        print(
            f"{row['what']:60s} {row['ours'] * 1e3:9.1f} ms {ratio:>7s}  {row['upper − lower']:>8s}  {row['value']}",
            flush=True,
        )


if __name__ == "__main__":
    main()
