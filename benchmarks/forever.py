"""Planning for ever beside general solvers on the written-out model: `python benchmarks/forever.py [--quick]`.

A delay d on the sensing chain, discount u. Ours: `solve`, policy and bounds included. Theirs: the S·A^d augmented process written out with scipy (not
timed), then policy iteration: quantecon, pymdptoolbox and mdpsolver, each if it is installed. Values are compared on the way; the rows also count our sweeps.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import oldlight as ol

Row = dict[str, Any]


def written_out(mdp: ol.TabularMDP, d: int) -> tuple[Any, Any]:
    """The augmented process in rewards of the present: P[x, a, y] as one matrix with rows x·A + a, and R[x, a]."""
    from scipy.sparse import csr_array

    S, A = mdp.n_states, mdp.n_actions
    P, R = mdp.transitions[0], mdp.rewards[0]
    rows, columns, mass = [], [], []
    reward = np.zeros((S * A**d, A))
    for s in range(S):
        for code in range(A**d):
            queue = [code // A**i % A for i in range(d)]
            b = np.eye(S)[s]
            for q in queue:
                b = b @ P[:, q]
            x = s * A**d + code
            reward[x] = b @ R
            for a in range(A):
                after = [*queue, a]
                rest = sum(q * A**i for i, q in enumerate(after[1:]))
                law = P[s, after[0]]
                for z in np.flatnonzero(law).tolist():
                    rows.append(x * A + a)
                    columns.append(z * A**d + rest)
                    mass.append(float(law[z]))
    N = S * A**d
    return csr_array((mass, (rows, columns)), shape=(N * A, N)), reward


def quantecon(P: Any, R: Any, u: float) -> Any:
    from quantecon.markov import DiscreteDP
    from scipy.sparse import csr_matrix

    N, A = R.shape
    states, actions = np.repeat(np.arange(N), A), np.tile(np.arange(A), N)
    return DiscreteDP(R.reshape(-1), csr_matrix(P), u, states, actions).solve(method="policy_iteration").v


def pymdptoolbox(P: Any, R: Any, u: float) -> Any:
    from mdptoolbox.mdp import PolicyIteration
    from scipy.sparse import csr_matrix

    A = R.shape[1]
    made = PolicyIteration([csr_matrix(P[a::A]) for a in range(A)], R, u)
    made.run()
    return np.array(made.V)


def mdpsolver(P: Any, R: Any, u: float) -> Any:
    import mdpsolver as solver

    N, A = R.shape
    starts, columns, mass = P.indptr.tolist(), P.indices.tolist(), P.data.tolist()

    def rows(values: list[Any]) -> list[Any]:
        return [[values[starts[x * A + a] : starts[x * A + a + 1]] for a in range(A)] for x in range(N)]

    model = solver.model()
    model.mdp(discount=u, rewards=R.tolist(), tranMatProbs=rows(mass), tranMatColumns=rows(columns))
    model.solve(algorithm="mpi", tolerance=1e-6)
    return np.array(model.getValueVector())


SOLVERS = {"quantecon": quantecon, "mdptoolbox": pymdptoolbox, "mdpsolver": mdpsolver}


def forever(quick: bool) -> Iterator[Row]:
    """Sensing chain, S=20, A=3, constant delay, warm start if there is one, no horizon. Ours: `solve` with its bounds. Theirs: policy iteration (mdpsolver: modified)
    on the augmented process written out, which is not timed; – : not installed, or minutes."""
    more = [(0.99, 0), (0.99, 1), (0.99, 2), (0.998, 2), (0.999, 2), (0.9999, 2), (0.999, 5)]
    n, cases = (12, more[:3]) if quick else (20, more)
    chain = ol.instances.sensing_chain(0.8, n_states=n, n_actions=3)
    for u, d in cases:
        mdp = ol.TabularMDP(chain.transitions[0], chain.rewards[0], horizon=None, discount=u)
        problem = ol.ImpairedMDP(mdp, ol.ConstantDelay(d), start="warm" if d else None)
        ol.solve(problem)
        seconds, found = np.inf, None
        for _ in range(9):
            began = time.perf_counter()
            found = ol.solve(problem)
            seconds = min(seconds, time.perf_counter() - began)
        assert found is not None
        case = f"u = {u}, delay {d}, {mdp.n_states * 3**d:,} states written out; {found.work.sweeps} sweeps"
        row: Row = {"case": case, "oldlight": seconds}
        P, R = written_out(mdp, d)
        for name, solve in SOLVERS.items():
            slow = (name == "mdpsolver" and u > 0.99) or (name == "mdptoolbox" and d > 2)  # minutes
            if slow or importlib.util.find_spec(name) is None:
                row[name] = None
                continue
            try:
                solve(P, R, u)  # compiled, loaded
                row[name] = np.inf
                for _ in range(3):
                    began = time.perf_counter()
                    value = float(np.mean(solve(P, R, u)))
                    row[name] = min(row[name], time.perf_counter() - began)
            except (TypeError, AttributeError, ValueError) as error:  # another version of it
                row[name] = None
                print(f"{name}: {error}", file=sys.stderr)
                continue
            if not found.lower - 1e-5 / (1 - u) <= value <= found.upper + 1e-5 / (1 - u):
                raise SystemExit(f"{name} found {value}, outside {found.lower}..{found.upper}")
        yield row


if __name__ == "__main__":
    for line in forever("--quick" in sys.argv):
        print(line)
