"""The types of arrays: numbers and whole numbers, of any shape, and actions."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@lru_cache
def action_type(n_actions: int) -> np.dtype[Any]:
    """The smallest integer type that holds an action."""
    return np.dtype(np.uint8 if n_actions <= 256 else np.uint16 if n_actions <= 65536 else np.int32)


def aligned_zeros(rows: int, columns: int) -> Floats:
    """Zeros whose rows begin with a line of the cache (eight numbers), if `columns` is a multiple of that."""
    room = np.zeros(rows * columns + 8)
    first = -(room.ctypes.data // room.itemsize) % 8
    return room[first : first + rows * columns].reshape(rows, columns)
