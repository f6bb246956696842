"""The names in the glossary are names in the code."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]
WORDS = {row[0]: row[2] for row in ROWS if row[0] != "word"}
NAMES = sorted({name for cell in WORDS.values() for name in re.findall(r"`([\w.]+)`", cell)})
HOMES = ("", ".model.channels.delay_law", ".learners.base", ".learners.counts", ".planning.gap", ".planning.solution")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_the_glossary_is_a_name_of_the_code(name: str) -> None:
    owner, _, attribute = name.partition(".")
    modules = [import_module(f"oldlight{home}") for home in HOMES]
    found = next((getattr(module, owner) for module in modules if hasattr(module, owner)), None)
    assert found is not None, f"{owner} is none of {HOMES}"
    if attribute:
        fields = {field for base in found.__mro__ for field in inspect.get_annotations(base)}
        assert attribute in fields or hasattr(found, attribute)


def test_each_word_stands_once_and_says_everything() -> None:
    assert len(WORDS) == len([row for row in ROWS if row[0] != "word"]) > 30
    assert [row[0] for row in ROWS if len(row) != 5 or not all(row)] == []
