"""Rows written queue by queue, beside numpy's own order of axes: every number of rows up to beyond what registers put in order, every remainder of columns, and
vectors of four and of eight numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from oldlight.kernels import interleaving
from other_lanes import for_lanes, from_python


@pytest.fixture(params=[4, 8], scope="module")
def kernels(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The module for vectors of so many numbers, whatever this processor has."""
    line, folder = "from oldlight.kernels.products import LANES", tmp_path_factory.mktemp("interleaving")
    yield from for_lanes(interleaving, line, request.param, folder)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 7, 8, 24, 25, 61])
@pytest.mark.parametrize("A", [1, 2, 3, 4, 5, 6, 7, 8, 9, 13])
def test_interleaving(kernels: Any, A: int, n: int) -> None:
    """Rows that several heads share, rows elsewhere in longer arrays, and nothing written beside them."""
    rng = np.random.default_rng(A * n)
    rows, first, to = rng.normal(size=(A + 2, n + 3)), 2, 5
    which = rng.integers(0, A + 2, size=first + A + 1)
    scale, added = rng.normal(size=which.size), rng.normal(size=which.size)
    chosen, mine = rows[which[first : first + A], :n], slice(first, first + A)
    out = np.full(to + n * A + 4, np.nan)
    from_python(kernels, "interleave")(rows, which, first, A, n, out, to)
    assert (out[to : to + n * A] == chosen.T.ravel()).all()
    assert np.isnan(out[:to]).all()
    assert np.isnan(out[to + n * A :]).all()
    out[:] = np.nan
    from_python(kernels, "interleave_scaled")(rows, which, first, A, n, out, to, scale, added)
    expected = added[mine, None] + scale[mine, None] * chosen
    most = abs(added[mine, None]) + abs(
        scale[mine, None] * chosen
    )  # a product and a sum round once each, or once together
    assert (abs(out[to : to + n * A] - expected.T.ravel()) <= 2 * 2.0**-53 * most.T.ravel()).all()
    assert np.isnan(out[:to]).all()
    assert np.isnan(out[to + n * A :]).all()


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int64])
@pytest.mark.parametrize("A", [1, 3, 5, 8, 11])
def test_actions_of_fewer_bytes(kernels: Any, A: int, kind: type) -> None:
    rng, n = np.random.default_rng(A), 29
    rows, out = rng.integers(0, 200, size=(A, n)), np.full(n * A + 1, 255, kind)
    from_python(kernels, "interleave")(rows, np.arange(A), 0, A, n, out, 1)
    assert (out[1:] == rows.T.ravel()).all()
    assert out[0] == 255
