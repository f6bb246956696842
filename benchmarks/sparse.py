"""Large sparse processes beside quantecon and a plain recursion with scipy: `python benchmarks/sparse.py [--quick]`.

S states, A = 5 actions, 3 successors near the state, H = 20 steps. Delay 0: quantecon's backward induction, and ours. Delay 1 and 2: the plain
recursion X = P·U with scipy.sparse (quantecon would need the written-out model; whether that fits in 16 GB is said). Values are compared on the way; the best of
three times counts, the solvers in turn.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

import oldlight as ol

A, K, H, MOST = 5, 3, 20, 16e9


def process(S: int, seed: int = 0) -> tuple[Any, Any]:
    """Transitions with the rows s·A + a, and rewards."""
    rng = np.random.default_rng(seed)
    row = np.repeat(np.arange(S * A), K)
    to = (row // A + rng.integers(-50, 51, len(row))) % S
    p = rng.dirichlet(np.ones(K), size=S * A).reshape(-1)
    return sparse.csr_array((p, (row, to)), shape=(S * A, S)), rng.random((S, A))


def plain(P: Any, R: Any, delay: int) -> float:
    """The recursion of `oldlight.planning.delay` for a constant delay, with products of scipy and the actions kept."""
    S = len(R)
    U, kept = np.zeros((S, 1)), []
    for m in range(delay):  # what follows the last action: G[s, q1..qm]
        U = R[:, :, None] + (P @ U).reshape(S, A, -1) if m else R[:, :, None]
        U = U.swapaxes(1, 2).reshape(S, -1)  # the code of q1..qm: q1 is the least significant digit
    for _ in range(H - delay):
        x = (P @ U).reshape(S, A, -1) if delay else (R + (P @ U).reshape(S, A))[:, None, :]
        x = x.reshape(S, A, A, -1).transpose(0, 1, 3, 2) if delay else x  # [s, q1, w, a]
        kept.append(x.argmax(axis=-1).astype(np.uint8))
        U = x.max(axis=-1)
        U = (R[:, :, None] + U).swapaxes(1, 2).reshape(S, -1) if delay else U
    return float(U.mean(axis=0).max())


def quantecon(P: Any, R: Any) -> float:
    from quantecon.markov import DiscreteDP
    from quantecon.markov.ddp import backward_induction

    s, a = np.divmod(np.arange(P.shape[0]), A)
    ddp = DiscreteDP(R.reshape(-1), P, 1 - 1e-12, s, a)
    return float(backward_induction(ddp, H)[0][0].mean())


def ours(problem: ol.ImpairedMDP) -> float:
    return ol.solve(problem, progress=False).value


def timed(repeats: int, **work: Callable[[], float]) -> dict[str, tuple[float, float]]:
    """name -> (value, shortest time), done in turn after one round to warm up."""
    found = {name: (do(), np.inf) for name, do in work.items()}
    for _ in range(repeats):
        for name, do in work.items():
            began = time.perf_counter()
            do()
            found[name] = (found[name][0], min(found[name][1], time.perf_counter() - began))
    return found


def rows(quick: bool = False) -> list[dict[str, Any]]:
    """One row for each size and delay."""
    made = []
    for S in (1_000, 10_000) if quick else (1_000, 10_000, 50_000, 200_000, 1_000_000):
        P, R = process(S)
        mdp = ol.TabularMDP(P, R, horizon=H)
        for delay in (0, 1, 2):
            problem = ol.ImpairedMDP(mdp, ol.ConstantDelay(delay))
            work: dict[str, Callable[[], float]] = {"oldlight": partial(ours, problem)}
            if S * A**delay <= 5_000_000:
                work["scipy"] = partial(plain, P, R, delay)
            if delay == 0 and importlib.util.find_spec("quantecon") is not None:
                work["quantecon"] = partial(quantecon, P, R)
            found = timed(1 if S > 100_000 else 3, **work)
            for name, (value, _) in found.items():
                assert abs(value - found["oldlight"][0]) < 1e-8 * H, (
                    f"{name}: {value}, oldlight: {found['oldlight'][0]}"
                )
            written = 12 * S * A ** (delay + 1) * K
            made.append(
                {"S": S, "delay": delay, "bytes": mdp.nbytes + ol.solve(problem, progress=False).work.bytes}
                | {name: found.get(name, (0.0, None))[1] for name in ("oldlight", "scipy", "quantecon")}
                | ({} if delay == 0 or written < MOST else {"quantecon": "over 16 GB"})
            )
    return made


def sparse_processes(quick: bool) -> Iterator[dict[str, Any]]:
    """S states, A = 5, 3 successors near the state, H = 20, constant delay. scipy: the plain recursion with sparse products; quantecon: backward induction
    at delay 0, beyond that it would need the written-out model. – : not run."""
    for row in rows(quick):
        yield {"process": f"S={row['S']:,}, delay {row['delay']}"} | {
            name: row[name] for name in ("oldlight", "scipy", "quantecon")
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to 10,000 states")
    print(f"{'S':>9} {'delay':>5} {'oldlight':>10} {'scipy':>10} {'quantecon':>10} {'bytes':>10}")
    for row in rows(parser.parse_args().quick):
        cells = [
            f"{x:.3f} s" if isinstance(x, float) else str(x or "–")
            for x in (row["oldlight"], row["scipy"], row["quantecon"])
        ]
        print(
            f"{row['S']:>9,} {row['delay']:>5} {cells[0]:>10} {cells[1]:>10} {cells[2]:>10} {row['bytes'] / 2**20:>6.0f} MiB"
        )


if __name__ == "__main__":
    main()
