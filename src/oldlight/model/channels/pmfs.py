"""Laws of a whole number, as users write them: a list of probabilities or {value: probability}."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oldlight import checks
from oldlight.arrays import Floats

LONGEST = 10**6  # steps: a longer delay is a mistake of units
FEW = 16  # entries: numpy's calls take longer than adding them up


def pmf_of(name: str, values: ArrayLike | Mapping[int, float]) -> Floats:
    """P(X = 0), P(X = 1), .. up to the last positive one."""
    given: Any = values
    if isinstance(values, Mapping):
        steps = [checks.whole(f"{name}: a value", k, most=LONGEST) for k in values]
        if not steps:
            raise ValueError(f"{name} is empty; expected at least one value with its probability")
        given = np.zeros(max(steps) + 1)
        for k, p in zip(steps, values.values(), strict=True):
            given[k] += checks.real(f"{name}[{k}]", p)
    pmf = checks.probability_rows(name, given, ("k",))
    return checks.frozen(pmf[: int(np.flatnonzero(pmf)[-1]) + 1])


def written(pmf: Floats) -> str:
    """A law as `pmf_of` reads it."""
    return "{" + ", ".join(f"{k}: {p:.6g}" for k, p in enumerate(pmf) if p > 0) + "}"


def running_sums(pmf: Floats) -> Floats:
    """Running sums along the last axis; from the last positive entry on, more than any draw."""
    if pmf.ndim == 1 and len(pmf) <= FEW:
        return np.array(_running_sums_of_few(pmf.tolist()))
    total = np.cumsum(pmf, axis=-1)
    left = np.cumsum(pmf[..., ::-1] > 0, axis=-1)[..., ::-1]  # positive entries from here on
    return np.ascontiguousarray(np.where(left <= 1, np.where(pmf > 0, 2.0, total), total) + 2.0 * (left == 0))


def _running_sums_of_few(pmf: list[float]) -> list[float]:
    """The same numbers for the probabilities of some actions, in a tenth of the time."""
    total = list(accumulate(pmf))
    for k in range(len(pmf) - 1, -1, -1):
        if pmf[k] > 0:
            total[k] = 2.0
            break
        total[k] += 2.0
    return total


def drawn(pmf: Floats, u: Floats) -> NDArray[np.int64]:
    """One draw from `pmf` for each uniform number; pmf may have a row for each of them."""
    sums = running_sums(pmf)
    if sums.ndim == 1:
        return np.searchsorted(sums, u, side="right")
    return np.asarray((sums <= u[:, None]).sum(axis=1))
