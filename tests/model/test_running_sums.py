"""Running sums of a law, by which it is drawn: those of few entries, added up one by one, are those of many rows at once."""

from __future__ import annotations

import numpy as np
import pytest

from oldlight.model.channels.pmfs import FEW, drawn, running_sums


@pytest.mark.parametrize("n", [1, 2, 3, 7, FEW, FEW + 1])
def test_few_entries_have_the_sums_of_many_rows(n: int, rng: np.random.Generator) -> None:
    laws = rng.dirichlet(np.full(n, 0.5), size=200) * (
        rng.random((200, n)) < 0.6
    )  # with zeros anywhere, and rows of zeros
    rows = running_sums(laws)
    for law, row in zip(laws, rows, strict=True):
        found = running_sums(law)
        assert found.dtype == row.dtype
        assert np.array_equal(found, row)


def test_nothing_impossible_is_drawn() -> None:
    """Whatever rounding leaves of the last sum, and for the largest draw there is."""
    law = np.array([0.0, 0.1, 0.0, 0.7, 0.2 - 1e-12, 0.0])
    assert drawn(law, np.array([0.0, 0.05, 0.1, 0.5, 0.9, np.nextafter(1.0, 0.0)])).tolist() == [1, 1, 3, 3, 4, 4]
