"""One step's transitions as the compiled loops read them: a matrix, and a list of successors for each (s, a)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oldlight.model.channels.pmfs import running_sums
from oldlight.model.mdp import TabularMDP

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Successors:
    """One step's transitions, ready for the kernels: lists of successors, and the matrix if a product is cheaper."""

    matrix: Floats  # [s·A + a, s2]
    index: NDArray[np.int64]  # [s·A + a, k]
    weight: Floats  # [s·A + a, k]
    count: NDArray[np.int64]  # [s·A + a]
    dense: bool

    @classmethod
    def of(cls, P: Floats) -> Successors:
        """From P[s, a, s2]."""
        S = P.shape[-1]
        matrix = np.ascontiguousarray(P.reshape(-1, S))
        count = np.count_nonzero(matrix, axis=1)
        width = int(count.max())
        order = np.argsort(matrix == 0, axis=1, kind="stable")[:, :width]
        weight = np.take_along_axis(matrix, order, axis=1)
        dense = float(count.mean()) > max(6.0, 0.3 * S)
        return cls(matrix, order.astype(np.int64), weight, count.astype(np.int64), dense)


def successor_sums(mdp: TabularMDP) -> tuple[NDArray[np.int64], Floats]:
    """The transitions as the kernels draw them: successors index[h, s·A + a, k] and the running sums of their probabilities; one h if
    they do not change with time."""
    steps = [Successors.of(P) for P in (mdp.transitions[:1] if mdp.stationary_transitions else mdp.transitions)]
    width = max(step.index.shape[1] for step in steps)
    shape = (len(steps), mdp.n_states * mdp.n_actions, width)
    index, cumulative = np.zeros(shape, dtype=np.int64), np.full(shape, 2.0)
    for i, step in enumerate(steps):
        order = np.argsort(-step.weight, axis=1, kind="stable")  # likely successors are found first
        n = order.shape[1]
        index[i, :, :n] = np.take_along_axis(step.index, order, axis=1)
        cumulative[i, :, :n] = running_sums(np.take_along_axis(step.weight, order, axis=1))
    return index, cumulative
