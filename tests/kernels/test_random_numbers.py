"""The compiled loop draws NumPy's own numbers, bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oldlight.kernels.random_numbers import SOME, begin, fill, lose
from oldlight.random_streams import stream, words

SEEDS = [
    (0, (0, 0)),
    (1, (3, 2)),
    (2**63 - 1, (0, 1)),
    (2**70, (2**32 - 1, 2)),
    (2**128, (5, 1)),
    (2**200 + 9, (77, 0)),
]


def begun(seed: int, chunk: int, purpose: int) -> Any:
    state = np.empty(4, np.uint64)
    begin(words(seed), chunk, purpose, state)
    return state


@pytest.mark.parametrize(("seed", "purpose"), SEEDS)
def test_the_numbers_are_those_of_numpy(seed: int, purpose: tuple[int, int]) -> None:
    state = begun(seed, *purpose)
    theirs = stream(seed, *purpose)
    for shape in ((3, 4096), (1, 1), (2, 7), (0, 5), (2, SOME - 1), (3, SOME + 1)):
        found = np.empty(shape)
        fill(state, found)
        np.testing.assert_array_equal(found, theirs.random(shape))
    np.testing.assert_array_equal(state, theirs.bit_generator.state["state"]["state"])  # type: ignore[call-overload, index]


@pytest.mark.parametrize("seen", [[0.3], [0.0, 1.0, 0.5, 1e-3]])
def test_losses_are_those_of_numpys_numbers(seen: list[float]) -> None:
    """After numbers that were drawn for something else, as those of a delay."""
    state, theirs, lost = begun(4, 0, 1), stream(4, 0, 1), np.empty((4, 1000), np.bool_)
    fill(state, np.empty((2, 3)))
    theirs.random((2, 3))
    lose(state, np.array(seen), lost)
    np.testing.assert_array_equal(lost, theirs.random((4, 1000)) >= np.broadcast_to(seen, 4)[:, None])
