"""How often a random check is repeated: `usual` times in `make test`, `thorough` times in `make test-thorough` (pytest --thorough).

Only the number of draws differs: the tolerances are the same, or follow from the number. So a test says with each number what it would catch.
"""

from __future__ import annotations

_asked = {"thorough": False}


def set_thorough(asked: bool) -> None:
    """Said once, by tests/conftest.py, before the first test module is imported."""
    _asked["thorough"] = asked


def is_thorough() -> bool:
    return _asked["thorough"]


def repeats(usual: int, thorough: int) -> int:
    """The number of seeds, instances, runs or episodes."""
    assert 1 <= usual <= thorough
    return thorough if is_thorough() else usual
