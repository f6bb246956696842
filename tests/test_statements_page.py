"""docs/statements.md against the library: the command of every row is run, and prints what the row says.

A new row has `?` in its last column; `python tests/test_statements_page.py --write` fills in what is printed, on every row
where it changed. Then read the diff: does the verdict beside it still say the same?
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "statements.md"
TEXT = PAGE.read_text(encoding="utf-8")
ROW = re.compile(r"(?P<front>\| .*\| )`(?P<command>[^`]+)` \| `(?P<prints>[^`]+)` \|")
FAILS, HOLDS = (
    re.compile(r"false|wrong way|missing|can rise|near 0|slip|2 \.\.\.|√H|no factor"),
    re.compile(r"holds|true"),
)


def tables() -> list[list[str]]:
    """The lines of each table of the page, its title first."""
    blocks = re.findall(r"(?:^\|.*\|\n)+", TEXT, re.MULTILINE)
    return [block.splitlines() for block in blocks]


def rows() -> list[re.Match[str]]:
    return [row for line in TEXT.splitlines() if (row := ROW.fullmatch(line))]


@functools.cache
def beginning() -> dict[str, Any]:
    """The names that the page starts from."""
    setup = re.search(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert setup
    names: dict[str, Any] = {}
    exec(setup[1], names)
    return names


def printed(command: str) -> str:
    """What a command prints, in one line."""
    if not command.startswith("python "):
        return str(eval(command, beginning()))
    given = [sys.executable, *shlex.split(command)[1:]]
    done = subprocess.run(given, capture_output=True, text=True, encoding="utf-8", cwd=ROOT, env=os.environ, check=True)
    return done.stdout.strip().splitlines()[0]


def test_every_row_has_a_command() -> None:
    for title, _, *lines in tables():
        assert title.endswith("| command | prints |"), title
        for line in lines:
            assert ROW.fullmatch(line), line


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["command"][:60])
def test_the_command_prints_what_the_row_says(row: re.Match[str]) -> None:
    assert printed(row["command"]) == row["prints"]


def test_verdicts_agree_with_what_is_printed() -> None:
    """In the first table: "holds" or "true" where the command prints holds, something else where it prints fails."""
    for line in tables()[0][2:]:
        row = ROW.fullmatch(line)
        assert row
        verdict = row["front"].split(" | ")[1]
        if row["prints"].endswith("fails"):
            assert FAILS.search(verdict), line
        elif row["prints"].endswith("holds"):
            assert HOLDS.search(verdict), line


def written(line: str) -> str:
    """A line of the page with what is printed now."""
    row = ROW.fullmatch(line)
    return f"{row['front']}`{row['command']}` | `{printed(row['command'])}` |" if row else line


def test_the_page_can_be_written_anew() -> None:
    line = "| Lemma | false | `longest_gap(3, 1, 0.1)` | `?` |"
    assert written(line) == "| Lemma | false | `longest_gap(3, 1, 0.1)` | `Lemma max_gap: 0.081 ≤ 0.03 fails` |"
    assert written("text") == "text"


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python tests/test_statements_page.py --write")
    PAGE.write_text("\n".join(written(line) for line in TEXT.splitlines()) + "\n", encoding="utf-8")
