"""What the daily run leaves out: half of the pairs of two parameters that are marked `crossed`, and no value of either."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conftest import without_half_of_the_pairs


def case(name: str, marks: list[pytest.Mark], **params: Any) -> Any:
    """A test as pytest hands it to a plugin; its `indices` are those of pytest 9, which count whole cases."""
    return SimpleNamespace(
        path=Path("test_cases.py"),
        originalname=name,
        callspec=SimpleNamespace(params=params, indices=dict.fromkeys(params, 0)),
        get_closest_marker=lambda wanted: next((mark for mark in marks if mark.name == wanted), None),
    )


@pytest.mark.parametrize("others", [[0.5, 1.5, 2.5, 3.5], [[1], [1], [1]]])
def test_every_second_pair_and_every_value(others: list[Any]) -> None:
    crossed = pytest.mark.crossed("one", "other").mark
    ones = ["a", "b", "c"]
    items = [case("pairs", [crossed], one=one, other=other) for other, one in product(others, ones)]
    items += [case("all", [], one=one, other=other) for other, one in product(others, ones)]
    kept = list(without_half_of_the_pairs(items))
    pairs = [(x.callspec.params["one"], id(x.callspec.params["other"])) for x in kept if x.originalname == "pairs"]
    assert len(pairs) == (len(items) // 2 + 1) // 2
    assert {one for one, _ in pairs} == set(ones)
    assert {other for _, other in pairs} == {id(other) for other in others}
    assert sum(x.originalname == "all" for x in kept) == len(items) // 2
