"""Rows from a Dirichlet posterior: each is drawn from the exact law, whatever the prior and the counts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from oldlight.kernels.dirichlet import draw_rows
from repeats import repeats

NUMBER = {
    "nothing seen": [0.0] * 6,
    "one seen": [0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
    "many": [3.0, 0.0, 40.0, 1.0, 0.0, 7.0],
    "parts of visits": [0.25, 0.0, 0.0, 1.5, 0.0, 0.0],
}
LEAST = 1e-5  # a p-value below this fails; there are some 130 of them


def drawn(number: np.ndarray, alpha: float, draws: int) -> np.ndarray:
    rows = np.empty((draws, len(number)))
    draw_rows(np.tile(number, (draws, 1)), alpha, np.random.default_rng(3), rows)
    return rows


@pytest.mark.parametrize("alpha", [1 / 6, 0.05, 0.7])
@pytest.mark.parametrize("seen", NUMBER)
def test_every_part_of_a_row_has_its_beta_law(seen: str, alpha: float) -> None:
    """A component, a sum of two of them and a mixture of all have known laws or moments: the share below 25 of its quantiles, and the mean, within five standard errors."""
    number = np.array(NUMBER[seen])
    draws = repeats(20_000, 200_000)
    rows = drawn(number, alpha, draws)
    assert rows.min() > 0.0  # every successor stays possible
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-14)
    parameter = number + alpha
    total = parameter.sum()
    for some in ([0], [1], [2], [0, 3], [1, 2, 5]):
        part = parameter[some].sum()
        law = stats.beta(part, total - part)
        # rounding puts what is below 2^-53 to 0 and what is above to 1: compare where both are resolved
        x = np.clip(rows[:, some].sum(axis=1), 1e-12, 1 - 1e-12)
        grid = np.clip(law.ppf(np.linspace(0.02, 0.98, 25)), 1e-12, 1 - 1e-12)
        for point in np.unique(grid):
            share, expected = np.mean(x <= point), law.cdf(point)
            assert abs(share - expected) <= 5 * np.sqrt(expected * (1 - expected) / draws) + 1e-9
    weight = np.array([0.3, -1.0, 2.0, 0.1, 0.0, 1.0])
    mean = weight @ parameter / total
    variance = (weight**2 @ parameter / total - mean**2) / (total + 1)
    assert abs((rows @ weight).mean() - mean) <= 5 * np.sqrt(variance / draws)


def test_rows_are_as_those_of_numpy() -> None:
    """The joint law, where the prior is 1/S: the largest entry, the sum of squares and a product of two, beside NumPy's own Dirichlet variates."""
    number, draws = np.array(NUMBER["parts of visits"]), repeats(20_000, 100_000)
    ours = drawn(number, 1 / 6, draws)
    theirs = np.random.default_rng(4).dirichlet(number + 1 / 6, draws)
    for of in (lambda x: x.max(axis=1), lambda x: (x**2).sum(axis=1), lambda x: x[:, 1] * x[:, 4] > 1e-6):
        assert stats.ks_2samp(of(ours).astype(float), of(theirs).astype(float)).pvalue > LEAST


@pytest.mark.parametrize("S", [1, 2, 3, 49, 716])
def test_any_number_of_states(S: int) -> None:
    """1/S·S is not always 1 to the last digit; one state alone has all of the probability."""
    rows = np.empty((200, S))
    draw_rows(np.zeros((200, S)), 1.0 / S, np.random.default_rng(0), rows)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-14)
    assert abs(rows[:, 0].mean() - 1 / S) <= 5 * np.sqrt((1 / S) * (1 - 1 / S) / 2 / 200) + 1e-15
    if S > 1:  # some 37 sticks of a uniform law: E Σ p² = (1 + 1/S)/2
        assert abs((rows**2).sum(axis=1).mean() - (1 + 1 / S) / 2) < 0.1
