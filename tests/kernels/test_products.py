"""Tiles of sums, and means of rows, beside numpy's products: every remainder of rows and columns, and vectors of four and of eight numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from oldlight.arrays import aligned_zeros
from oldlight.kernels import products
from other_lanes import for_lanes, from_python


@pytest.fixture(params=[4, 8], scope="module")
def kernels(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The module for vectors of so many numbers, whatever this processor has."""
    yield from for_lanes(products, "LANES = _lanes()", request.param, tmp_path_factory.mktemp("products"))


@pytest.mark.parametrize("panels", [1, 3])
@pytest.mark.parametrize(("S", "rows", "choices", "W"), [(1, 1, 1, 1), (3, 5, 2, 7), (20, 8, 5, 60), (7, 11, 3, 25)])
def test_products(kernels: Any, S: int, rows: int, choices: int, W: int, panels: int) -> None:
    """To within what sums of S products round: S·2^−53 times the sum of their sizes."""
    rng = np.random.default_rng(S + W)
    matrix, values = rng.normal(size=(rows, S)), rng.normal(size=(S, choices, W))
    w0, n = W // 4, W - W // 4
    columns = kernels.room_for_columns(S, choices, panels * kernels.COLUMNS)[:panels]
    found = np.full((rows, choices * n), np.nan)
    from_python(kernels, "multiply")(matrix, values, w0, n, columns, np.empty(kernels.ROWS * kernels.COLUMNS), found)
    expected = np.einsum("rs,saw->raw", matrix, values[:, :, w0:]).reshape(rows, -1)
    most = np.einsum("rs,saw->raw", abs(matrix), abs(values[:, :, w0:])).reshape(rows, -1)
    assert (abs(found - expected) <= 2 * S * 2.0**-53 * most).all()


@pytest.mark.parametrize("n", [0, 1, 2, 20])
@pytest.mark.parametrize("wide", [1, 3, 4, 5, 8, 20, 35, 48, 50, 52, 97, 101])
def test_mean_of_rows(kernels: Any, wide: int, n: int) -> None:
    """To within what sums of n products round; every remainder of vectors, and more than are summed at once."""
    rng = np.random.default_rng(wide + n)
    matrix, law, support = rng.normal(size=(70, wide)), rng.random(20), rng.permutation(20)
    found = np.full(wide + 1, np.nan)
    from_python(kernels, "mean_of_rows")(matrix, 4, 3, law, support, n, found[:wide])
    weights, rows = law[support[:n], None], matrix[4 + 3 * support[:n]]
    assert (
        abs(found[:wide] - (weights * rows).sum(axis=0)) <= 2 * n * 2.0**-53 * (weights * abs(rows)).sum(axis=0)
    ).all()
    assert np.isnan(found[wide])


def test_rooms_begin_with_a_line_of_the_cache(kernels: Any) -> None:
    kept = []  # of many sizes at once, so that not all of them begin there by chance
    for n in range(1, 60):
        kept += [kernels.aligned_room(n), aligned_zeros(n, 8), aligned_zeros(1, n)]
        assert [x.size for x in kept[-3:]] == [n, 8 * n, n]
        kept[-3][:] = 1.0
        assert not kept[-2].any()
        assert not kept[-1].any()
    assert {x.ctypes.data % 64 for x in kept} == {0}
    columns = kernels.room_for_columns(20, 5, 1000)
    assert columns.ctypes.data % 64 == 0
    assert columns.size <= kernels.PACKED
