"""Large sparse processes beside quantecon and a plain recursion with scipy: `python benchmarks/sparse.py [--quick]`.

S states, A = 5 actions, 3 successors near the state, H = 20 steps. quantecon: its backward induction, for a delay on the written-out model of S·A^d states, whose
making is not timed; where that model with its policies takes more than 16 GB, the row says so. scipy: the plain recursion X = P·U. Values are compared on
the way. Times are those of the processor, the solvers in turn: the best of three up to 10,000 states, one run of the larger ones, everything compiled before.
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
LARGEST = 5_000_000  # states of the written-out model up to which the others are run too


def process(S: int, seed: int = 0) -> tuple[Any, Any]:
    """Transitions with the rows s·A + a, and rewards."""
    rng = np.random.default_rng(seed)
    row = np.repeat(np.arange(S * A), K)
    apart = np.arange(K) * 34 - 50 + rng.integers(0, 33, (S * A, K))  # three different places among the 101 nearest
    to = (row // A + apart.reshape(-1)) % S
    p = rng.dirichlet(np.ones(K), size=S * A).reshape(-1)
    return sparse.csr_array((p, (row, to)), shape=(S * A, S)), rng.random((S, A))


def after_the_end(P: Any, R: Any, delay: int) -> Any:
    """What follows the last action: G[s, q1..qd]; q1 is the least significant digit of a queue's code."""
    S = len(R)
    U = np.zeros((S, 1))
    for m in range(delay):
        U = R[:, :, None] + (P @ U).reshape(S, A, -1) if m else R[:, :, None]
        U = U.swapaxes(1, 2).reshape(S, -1)
    return U


def plain(P: Any, R: Any, delay: int) -> float:
    """The recursion of `oldlight.planning.delay` for a constant delay, with products of scipy and the actions kept."""
    S, U, kept = len(R), after_the_end(P, R, delay), []
    for _ in range(H - delay):
        x = (P @ U).reshape(S, A, -1) if delay else (R + (P @ U).reshape(S, A))[:, None, :]
        x = x.reshape(S, A, A, -1).transpose(0, 1, 3, 2) if delay else x  # [s, q1, w, a]
        kept.append(x.argmax(axis=-1).astype(np.uint8))
        U = x.max(axis=-1)
        U = (R[:, :, None] + U).swapaxes(1, 2).reshape(S, -1) if delay else U
    return float(U.mean(axis=0).max())


def written_out(P: Any, R: Any, delay: int) -> tuple[Any, Any]:
    """The model of states x = (s, q1..qd), rows x·A + a, and its rewards, those of the step that s belongs to."""
    S, Q = len(R), A**delay
    if not delay:
        return P, R
    s, code, a = (x.reshape(-1) for x in np.meshgrid(np.arange(S), np.arange(Q), np.arange(A), indexing="ij"))
    row, rest = s * A + code % A, code // A + a * (Q // A)
    to = P.indices.reshape(-1, K)[row].astype(np.int64) * Q + rest[:, None]
    begin = np.arange(0, K * len(row) + 1, K)
    big = sparse.csr_array((P.data.reshape(-1, K)[row].reshape(-1), to.reshape(-1), begin), shape=(len(row), S * Q))
    return big, R.reshape(-1)[row].reshape(S * Q, A)


def quantecon(P: Any, R: Any, end: Any) -> float:
    """On a written-out model; end: what follows the last action."""
    from quantecon.markov import DiscreteDP
    from quantecon.markov.ddp import backward_induction

    delay = round(np.log(end.shape[1]) / np.log(A))
    x, a = np.divmod(np.arange(P.shape[0]), A)
    ddp = DiscreteDP(R.reshape(-1), P, 1 - 1e-12, x, a)
    values = backward_induction(ddp, H - delay, v_term=end.reshape(-1))[0]
    return float(values[0].reshape(end.shape).mean(axis=0).max())


def written_bytes(S: int, delay: int) -> int:
    """Of the written-out model as quantecon holds it (places in 8 bytes), and of values and policies of all times."""
    N = S * A**delay
    return N * A * (16 * K + 8 + 8 + 8 + 8) + 16 * N * (H + 1)


def ours(problem: ol.ImpairedMDP) -> float:
    return ol.solve(problem, progress=False).value


def timed(repeats: int, **work: Callable[[], float]) -> dict[str, tuple[float, float]]:
    """name -> (value, shortest processor time), done in turn."""
    found = dict.fromkeys(work, (0.0, np.inf))
    for _ in range(repeats):
        for name, do in work.items():
            began = time.process_time()
            value = do()
            found[name] = value, min(found[name][1], time.process_time() - began)
    return found


def rows(quick: bool = False) -> list[dict[str, Any]]:
    """One row for each size and delay."""
    made = []
    for S in (
        (1_000, 1_000, 10_000) if quick else (1_000, 1_000, 10_000, 50_000, 100_000, 1_000_000)
    ):  # the first compiles
        P, R = process(S)
        began = time.process_time()
        mdp = ol.TabularMDP(P, R, horizon=H)
        build = time.process_time() - began
        for delay in (0, 1, 2):
            problem = ol.ImpairedMDP(mdp, ol.ConstantDelay(delay))
            work: dict[str, Callable[[], float]] = {"oldlight": partial(ours, problem)}
            if S * A**delay <= LARGEST:
                work["scipy"] = partial(plain, P, R, delay)
                if importlib.util.find_spec("quantecon") is not None:
                    work["quantecon"] = partial(quantecon, *written_out(P, R, delay), after_the_end(P, R, delay))
            found = timed(1 if S > 10_000 else 3, **work)
            for name, (value, _) in found.items():
                assert abs(value - found["oldlight"][0]) < 1e-8 * H, (
                    f"{name}: {value}, oldlight: {found['oldlight'][0]}"
                )
            made.append(
                {"S": S, "delay": delay, "bytes": mdp.nbytes, "build": build}
                | {name: found.get(name, (0.0, None))[1] for name in ("oldlight", "scipy", "quantecon")}
                | ({} if written_bytes(S, delay) < MOST else {"quantecon": "over 16 GB"})
            )
    return made[3:]


def sparse_processes(quick: bool) -> Iterator[dict[str, Any]]:
    """S states, A = 5, 3 successors near the state, H = 20, constant delay; processor time, both threads of ours counted. scipy: the plain recursion with
    sparse products; quantecon: backward induction, for a delay on the written-out model of S·5^d states, whose making is not counted. build: our TabularMDP, made
    once for all delays and not counted in the plan. – : not run."""
    for row in rows(quick):
        yield {"process": f"S={row['S']:,}, delay {row['delay']}"} | {
            name: row[name] for name in ("build", "oldlight", "scipy", "quantecon")
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
