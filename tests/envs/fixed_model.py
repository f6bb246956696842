"""A model that other processes can load quickly: this module imports nothing but numpy."""

from __future__ import annotations

from typing import Any

import numpy as np


class Nearest:
    """A model that looks at the vector it is shown: a fixed function with a different answer nearly everywhere."""

    def __init__(self, size: int, n: int) -> None:
        self.weights = np.random.default_rng(0).normal(size=(size, n))

    def predict(self, row: Any, deterministic: bool = True) -> tuple[Any, None]:
        return np.array((row @ self.weights).argmax()), None
