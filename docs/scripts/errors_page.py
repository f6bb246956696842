"""Writes docs/errors.md: the page holds what you did, and the code says what you then read.

    python docs/scripts/errors_page.py    run every line of the tables, and write what is said now on the right

So rewording a message is one edit, in the code. A new refusal is a new line with the message `?`. A message that holds `…` stays as
it is where it fits: `…` stands for words that come from another library. Then read the diff: is that what a reader should be told?
`tests/docs/test_refusals.py` checks the page, and that every refusal of the library is on it.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import os
import re
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import oldlight

PAGE = Path(__file__).parents[1] / "errors.md"
PACKAGE = Path(oldlight.__file__).parent
TEXT = PAGE.read_text(encoding="utf-8")
ROW = re.compile(r"\| `(?P<code>[^`]+)` \| (?P<tick>`+) ?(?P<says>.+?) ?(?P=tick) \|")
ROWS = {row["code"]: row["says"] for row in map(ROW.fullmatch, TEXT.splitlines()) if row}
INSIDE = {"_tail", "_note"}  # functions whose refusal only the library's own code can meet


def says(error: BaseException) -> str:
    """As Python prints it; a KeyError without the quotes, and the folder of installed packages as `…`, because it differs from
    machine to machine."""
    words = str(error.args[0] if isinstance(error, KeyError) else error)
    return f"{type(error).__name__}: {words.replace(sysconfig.get_path('purelib'), '…')}"


@functools.cache
def beginning() -> dict[str, Any]:
    """The names that the page starts from."""
    setup = re.search(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert setup
    names: dict[str, Any] = {}
    exec(setup[1], names)
    return names


def refusal_of(code: str) -> BaseException | None:
    """What a line of the page raises, in an empty folder of its own."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), mock.patch.dict(os.environ):
        try:
            exec(code, dict(beginning()))
        except Exception as error:
            return error
    return None


def matches(pattern: str, message: str) -> bool:
    """Is it what the page says? `…` stands for anything."""
    return bool(re.fullmatch(".*".join(re.escape(part) for part in pattern.split("…")), message, re.DOTALL))


def where_raised(error: BaseException | None) -> Iterator[tuple[Path, int]]:
    """The file and line that raised it, then those of the errors that it took the place of."""
    while error is not None:
        step = error.__traceback__
        while step and step.tb_next:
            step = step.tb_next
        if step:
            yield Path(step.tb_frame.f_code.co_filename), step.tb_lineno
        error = error.__context__


def by_the_library(error: BaseException) -> bool:
    """Was it raised by one of the library's own raise statements?"""
    file, line = next(where_raised(error), (Path(), 0))
    return file.is_relative_to(PACKAGE) and line in set().union(*raises_of(file).values())


def raises_of(file: Path) -> dict[str, set[int]]:
    """The raise statements of a file with their lines; equal ones are one, and those that pass an error on are none."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    inside = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in INSIDE]
    hidden = {node for function in inside for node in ast.walk(function)}
    found: dict[str, set[int]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc and node not in hidden:
            found.setdefault(ast.unparse(node), set()).update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found


def written(line: str) -> str:
    """A line of the page with what is said now; as it was if that fits, or if the library itself refuses nothing."""
    row = ROW.fullmatch(line)
    error = refusal_of(row["code"]) if row else None
    if row is None or error is None or not by_the_library(error) or matches(row["says"], says(error)):
        return line
    message = " ".join(says(error).split())
    tick, space = ("``", " ") if "`" in message else ("`", "")
    return f"| `{row['code']}` | {tick}{space}{message}{space}{tick} |"


if __name__ == "__main__":
    lines = [written(line) for line in TEXT.splitlines()]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    errors = {row["code"]: (row["says"], refusal_of(row["code"])) for row in map(ROW.fullmatch, lines) if row}
    left = [code for code, (words, error) in errors.items() if error is None or not matches(words, says(error))]
    sys.exit("\n".join(["left as they were, because the library refuses nothing there:", *left]) if left else 0)
