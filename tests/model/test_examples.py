"""The examples in the docstrings of the model give what they show."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

MODULES = (
    "oldlight",
    "oldlight.random_streams",
    "oldlight.model.problem",
    "oldlight.model.channels.delays",
    "oldlight.model.channels.losses",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    failed, tried = doctest.testmod(import_module(name))
    assert tried > 0
    assert failed == 0
