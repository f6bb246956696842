"""Are delays and losses as independent as the model has them? Tests with p-values, each against a shuffling of the data.

The model of `oldlight.model.channels` draws each interarrival time Δ_i, and each loss, by itself. A p-value is the probability of something so
far from that, or farther, if it were true:
- *delay and next wait*, *wait and next wait* (`shuffled`): over episodes e that do not overlap, Σ_i Σ_e x_{e,i}·y_{e,i} with (x, y) =
  (d_i, Δ_i) or (Δ_i, Δ_{i+1}), centred at each step i. Shuffling the y of each step among the n episodes gives it the mean 0 and the
  variance Σ_i (Σ_e x²)(Σ_e y²)/(n − 1); its square over that variance is χ² with one degree of freedom for many episodes;
- *message and next* (`successive`): the same for the ranks of successive delays in milliseconds;
- *runs of losses* (`runs`): b losses among n messages fall in k runs with probability C(b − 1, k − 1)·C(n − b + 1, k)/C(n, b) if every order is
  alike. The p-value is the probability of so few runs or fewer: exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight import drawing
from oldlight.arrays import Floats


@dataclass(frozen=True)
class IndependenceTest(drawing.Result):
    """`p_value`: of something so far from independence or farther, if it held; effect: a correlation, or how much longer runs are."""

    name: str
    p_value: float
    effect: float
    means: str


def shuffled(name: str, means: str, x: NDArray[Any], y: NDArray[Any]) -> IndependenceTest:
    """Axes (episode, step): do x and y of a step go together? Against shuffling y among the episodes, step by step."""
    n = len(x)
    if n < 2 or x.shape[1] == 0:
        return IndependenceTest(name, 1.0, 0.0, f"{means} (too few episodes to tell)")
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    together = float((x * y).sum())
    squares = (x**2).sum(axis=0) * (y**2).sum(axis=0)
    variance = float(squares.sum()) / (n - 1)
    if variance <= 0:
        return IndependenceTest(name, 1.0, 0.0, f"{means} (nothing varies)")
    effect = together / math.sqrt(float((x**2).sum()) * float((y**2).sum()))
    return IndependenceTest(name, math.erfc(abs(together) / math.sqrt(2 * variance)), effect, means)


def successive(delay_ms: Floats) -> IndependenceTest:
    """Successive delays in milliseconds, by their ranks (equal ones share theirs), where both were received."""
    received = delay_ms[~np.isnan(delay_ms)]
    _, place, count = np.unique(received, return_inverse=True, return_counts=True)
    ranks = np.full(len(delay_ms), np.nan)
    ranks[~np.isnan(delay_ms)] = (np.cumsum(count) - (count - 1) / 2)[place]
    x, y = ranks[:-1], ranks[1:]
    both = ~np.isnan(x + y)
    return shuffled("message and next", "a delay does not depend on the one before", x[both][:, None], y[both][:, None])


def runs(lost: NDArray[np.bool_]) -> IndependenceTest:
    """The probability of at most as many runs of losses, if every order of losses is alike; something was lost."""
    n, bad = len(lost), int(lost.sum())
    count = int((lost[1:] & ~lost[:-1]).sum() + lost[0])

    def log_choose(a: int, b: int) -> float:
        return math.lgamma(a + 1) - math.lgamma(b + 1) - math.lgamma(a - b + 1)

    logs = [
        log_choose(bad - 1, k - 1) + log_choose(n - bad + 1, k) - log_choose(n, bad)
        for k in range(1, min(count, n - bad + 1) + 1)
    ]
    p = min(1.0, math.fsum(math.exp(x) for x in logs))
    longer = (bad / count) / (n / (n - bad + 1)) - 1.0
    return IndependenceTest("runs of losses", p, longer, "runs are as long as those of independent losses")
