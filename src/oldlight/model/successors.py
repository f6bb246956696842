"""One step's transitions as the compiled loops read them: a matrix, and a list of successors for each (s, a)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
