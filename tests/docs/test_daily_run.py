"""What the daily run leaves out: half of the pairs of two parameters that are marked `crossed`, and no value of either."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import without_half_of_the_pairs

CASES = """
import pytest

@pytest.mark.crossed("one", "other")
@pytest.mark.parametrize("one", ["a", "b", "c"])
@pytest.mark.parametrize("other", [0.5, 1.5, 2.5, 3.5])
def test_pairs(one, other):
    pass

@pytest.mark.parametrize("one", ["a", "b", "c"])
@pytest.mark.parametrize("other", [0.5, 1.5])
def test_all(one, other):
    pass
"""


class Listed:
    """A plugin that keeps the tests that pytest has found."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.items = list(session.items)


def test_every_second_pair_and_every_value(tmp_path: Path) -> None:
    (tmp_path / "test_cases.py").write_text(CASES, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = crossed: of pairs\n", encoding="utf-8")
    found = Listed()
    assert (
        pytest.main(["--collect-only", "-qq", "-p", "no:xdist", "-p", "no:cacheprovider", str(tmp_path)], [found]) == 0
    )
    kept = list(without_half_of_the_pairs(found.items))
    pairs = {(x.callspec.params["one"], x.callspec.params["other"]) for x in kept if x.originalname == "test_pairs"}
    assert len(found.items) == 12 + 6
    assert len(pairs) == 6
    assert {one for one, _ in pairs} == {"a", "b", "c"}
    assert {other for _, other in pairs} == {0.5, 1.5, 2.5, 3.5}
    assert sum(x.originalname == "test_all" for x in kept) == 6
