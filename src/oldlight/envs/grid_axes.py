"""A grid of points: the nearest one of any place, and the weights of its corners.

Along each axis the grid has knots k_0 < k_1 < ...; a point of the grid has a knot of each axis, numbered with the last axis fastest.
A place x lies in one box of neighbouring knots. With f = (x − k_i)/(k_{i+1} − k_i) along each axis (x is moved to the edge if it is
outside) the weight of a corner is the product of f or 1 − f: they are positive, add up to one, and their mean is x. So as transition
probabilities they keep the expected place as it is, which rounding to the nearest point does not: what moves less than half a cell in a
step would stand still for ever.

An axis may be an angle: then the knots lie on a circle, and the last one has the first as its neighbour.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from oldlight import checks
from oldlight.arrays import Floats, Ints

CIRCLE = 2 * np.pi


class GridAxes:
    """Knots for each axis; `circles` says which axes are angles, in radians."""

    def __init__(self, knots: Sequence[ArrayLike], circles: Sequence[bool] | None = None) -> None:
        self.knots: list[Floats] = []
        self.circles = [False] * len(knots) if circles is None else [bool(c) for c in circles]
        for d, given in enumerate(knots):
            row = checks.finite_array(f"knots[{d}]", given, ("knot",))
            if row.ndim != 1 or len(row) < 2 or not bool((np.diff(row) > 0).all()):
                raise ValueError(
                    f"knots[{d}] is {row!r}, expected at least two numbers, each larger than the one before"
                )
            if self.circles[d] and row[-1] - row[0] >= CIRCLE:
                raise ValueError(
                    f"knots[{d}] goes {row[-1] - row[0]:.6g} around a circle, expected less than 2π: the last knot has the first as its neighbour"
                )
            self.knots.append(row)
        ends = [
            np.append(row, row[0] + CIRCLE) if circle else row
            for row, circle in zip(self.knots, self.circles, strict=True)
        ]
        self._halfway: list[list[float]] = [((row[1:] + row[:-1]) / 2).tolist() for row in ends]
        self.shape = tuple(len(row) for row in self.knots)
        self.n = int(np.prod(self.shape))

    def points(self) -> Floats:
        """Every point of the grid, axes (point, axis)."""
        mesh = np.meshgrid(*self.knots, indexing="ij")
        return np.stack([part.ravel() for part in mesh], axis=1)

    def nearest(self, places: Floats) -> Ints:
        """The number of the nearest knot along each axis, as one number for each row of `places`."""
        found = np.zeros(len(places), dtype=np.int64)
        for d in range(len(self.knots)):
            i, f, n = self._between(d, places[:, d])
            found = found * n + (i + (f > 0.5)) % n
        return found

    def cell(self, place: Sequence[float]) -> int:
        """`nearest` of one place, in a microsecond."""
        found = 0
        for d, (x, halfway) in enumerate(zip(place, self._halfway, strict=True)):
            n = self.shape[d]
            if self.circles[d]:
                first = float(self.knots[d][0])
                x = first + (x - first) % CIRCLE
            found = found * n + bisect_left(halfway, x) % n
        return found

    def weights(self, places: Floats) -> tuple[Ints, Floats]:
        """(corners, weights), axes (row, 2^d): see the module's text."""
        corners = np.zeros((len(places), 1), dtype=np.int64)
        weight = np.ones((len(places), 1))
        for d in range(len(self.knots)):
            i, f, n = self._between(d, places[:, d])
            corners = np.concatenate([corners * n + i[:, None], corners * n + ((i + 1) % n)[:, None]], axis=1)
            weight = np.concatenate([weight * (1 - f)[:, None], weight * f[:, None]], axis=1)
        return corners, weight

    def _between(self, d: int, x: Floats) -> tuple[Ints, Floats, int]:
        """(the knot below, how far x is on the way to the next, how many knots there are)."""
        row, n = self.knots[d], len(self.knots[d])
        if self.circles[d]:
            x = row[0] + np.mod(x - row[0], CIRCLE)
            ends = np.append(row, row[0] + CIRCLE)
        else:
            x, ends = np.clip(x, row[0], row[-1]), row
        i = np.clip(np.searchsorted(ends, x, side="right") - 1, 0, len(ends) - 2)
        return i, (x - ends[i]) / (ends[i + 1] - ends[i]), n

    def __repr__(self) -> str:
        return f"GridAxes({' × '.join(str(n) for n in self.shape)} points)"


def spread_knots(low: float, high: float, bins: int, focus: float = 1.0, circle: bool = False) -> Floats:
    """`bins` knots from low to high, closer together around the middle if focus > 1: middle ± half·|u|^focus, u even in [−1, 1]."""
    if circle:
        return np.asarray(low + (high - low) * np.arange(bins) / bins)
    u = np.linspace(-1.0, 1.0, bins)
    return np.asarray((low + high) / 2 + (high - low) / 2 * np.sign(u) * np.abs(u) ** focus)
