"""The pseudo-visits that `LinkLearner(visits="learnt")` takes from its counts: the equation of `learners.optimistic_model`, and what it gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import digamma

from oldlight.kernels.optimistic_model import LEAST, pseudo_visits


def solved(number: Any) -> float:
    """The equation with exact sums, by another solver."""
    N, met = number.sum(axis=-1).ravel(), (number > 0).sum(axis=-1).ravel()
    N, met = N[N > 1], met[N > 1]

    def lacking(n: float) -> float:
        return float(1 + (met - 1).sum() - 2 * n / (n + 1) - (n * (digamma(n + N) - digamma(n + 1))).sum())

    low, high = LEAST, 2.0 * number.shape[-1]
    return low if lacking(low) < 0 else high if lacking(high) > 0 else float(brentq(lacking, low, high))


@pytest.mark.parametrize("seed", range(8))
def test_it_solves_the_equation(seed: int) -> None:
    rng = np.random.default_rng([seed, 3])
    S, A, T = 6, 3, 1 + 2 * (seed % 2)
    P = rng.dirichlet(rng.choice([0.05, 0.3, 2.0]) * np.ones(S), size=(T, S, A))
    visits = rng.integers(0, 40, size=(T, S, A))
    number = np.array(
        [rng.multinomial(n, p) for n, p in zip(visits.ravel(), P.reshape(-1, S), strict=True)], dtype=float
    )
    # Σ n/(n + i) is taken as an integral by the midpoint rule, which is off by less than 3 %
    assert pseudo_visits(number.reshape(T, S, A, S)) == pytest.approx(solved(number), rel=0.03)


def test_before_the_first_episode_it_is_one_and_it_vanishes_where_nothing_is_random() -> None:
    nothing = np.zeros((1, 5, 2, 5))
    assert pseudo_visits(nothing) == pytest.approx(1.0, rel=0.01)
    sure = nothing.copy()
    sure[..., 2] = 50.0
    assert pseudo_visits(sure) < 0.06
    assert pseudo_visits(sure) == pytest.approx(solved(sure), rel=0.05)
    everything = nothing + 1.0  # five visits, five successors
    assert pseudo_visits(everything) > 5.0
