"""Rewards of any size: gaps that are closed from 10¹⁰ to 0 are told of, too."""

from __future__ import annotations

import numpy as np
import pytest

import oldlight as ol
from oldlight.progress import decades_closed


def test_decades_of_gaps_too_far_apart_for_a_quotient() -> None:
    assert decades_closed(1e10, 0.0, 1.0) == (31_000, 1_000)
    assert decades_closed(1e10, -1.0, 0.0) == (31_000, 31_000)
    assert decades_closed(1.0, 0.1, 0.01) == (100, 200)
    assert decades_closed(1.0, 2.0, 3.0) == (0, 1)


@pytest.mark.parametrize("scale", [1e-10, 1e10])
@pytest.mark.parametrize("seed", [2, 3, 8])
def test_a_tolerance_with_large_and_small_rewards(scale: float, seed: int) -> None:
    P = np.random.default_rng(0).random((4, 3, 4)) ** 3
    P /= P.sum(axis=-1, keepdims=True)
    R = np.random.default_rng(seed).normal(size=(4, 3)) * scale
    problem = ol.ImpairedMDP(ol.TabularMDP(P, R, horizon=6), "constant:1+loss:0.5")
    exact, near = ol.solve(problem), ol.solve(problem, tolerance=1e-6 * scale)
    rounding = 100 * 6 * scale * 2.0**-46  # 6 steps of rewards around `scale`; laws are compared to 2^−46
    assert near.lower <= exact.value + rounding
    assert near.upper >= exact.value - rounding
    assert near.upper - near.lower <= 1e-6 * scale + rounding
