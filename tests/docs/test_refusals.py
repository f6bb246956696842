"""docs/when_it_says_no.md against the library: each line of the page is run, and each refusal of the library is on it.

A new refusal needs a line on the page; the failing test shows it. Nothing is written twice: the page is the list. To add
a line, write the code and `?` for the message; `python tests/docs/test_refusals.py --write` fills in what is said, on every
line where it changed. Then read the diff: is that what a reader should be told?
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

import pytest

import oldlight as ol

PAGE = Path(__file__).parents[2] / "docs" / "when_it_says_no.md"
PACKAGE = Path(ol.__file__).parent
TEXT = PAGE.read_text(encoding="utf-8")
ROW = re.compile(r"\| `(?P<code>[^`]+)` \| (?P<tick>`+) ?(?P<says>.+?) ?(?P=tick) \|")
ROWS = {row["code"]: row["says"] for row in map(ROW.fullmatch, TEXT.splitlines()) if row}
LATER = (
    "__init__",
    "cli",
    "control",
    "deep",
    "envs/",
    "files",
    "learners/",
    "model/channels/channel",
    "model/channels/hidden",
    "model/channels/text",
    "paper/",
    "planning/link_plan",
    "registry",
    "report/",
    "simulation/link_sampler",
    "studies/",
    "testbed",
    "testing",
    "traces",
)  # files whose refusals are tested elsewhere
INSIDE = {"_tail", "_note"}  # functions whose refusal only the library's own code can meet


def says(error: BaseException) -> str:
    """As Python prints it; a KeyError without the quotes, and the folder of installed packages as `…`, because it differs from machine to machine."""
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


@pytest.fixture(scope="module")
def refusals() -> dict[str, BaseException | None]:
    return {code: refusal_of(code) for code in ROWS}


def test_every_line_of_the_tables_is_read() -> None:
    lines = [line for line in TEXT.splitlines() if line.startswith("|")]
    tables = TEXT.count("| what you did | what it says |\n|---|---|\n")
    assert tables == TEXT.count("\n## ") > 5
    assert len(lines) == len(ROWS) + 2 * tables


@pytest.mark.parametrize("code", ROWS)
def test_it_says_what_the_page_says(code: str, refusals: dict[str, BaseException | None]) -> None:
    error = refusals[code]
    assert error is not None, "nothing was refused"
    assert matches(ROWS[code], says(error)), f"the page says\n{ROWS[code]}\nbut it is\n{says(error)}"


WAYS_OUT = {
    "constant": (ol.ConstantDelay(7), {}),
    "geometric": (ol.GeometricDelay(0.5), {}),
    "geometric from the start": (ol.GeometricDelay(0.5, first="same"), {}),
    "warm": (ol.ConstantDelay(7), {"start": ol.WarmStart()}),
    "late actions": (ol.ConstantDelay(6), {"actuation": 2}),
}


@pytest.mark.parametrize(("channel", "options"), WAYS_OUT.values(), ids=WAYS_OUT)
def test_the_way_out_of_a_plan_too_large_leads_out(channel: Any, options: Any) -> None:
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(n_states=4, n_actions=2), channel, **options)
    limit = 5_000
    with pytest.raises(ol.TooLarge) as refusal:
        ol.solve(problem, max_bytes=limit)
    named = re.search(r"oldlight\.solve\(problem, depth=(\d+)\) fits", str(refusal.value))
    assert named
    depth = int(named[1])
    plan = ol.solve(problem, depth=depth, max_bytes=limit)
    assert plan.lower <= plan.value <= plan.upper
    with pytest.raises(ol.TooLarge):
        ol.solve(problem, depth=depth + 1, max_bytes=limit)


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


FILES = sorted(file.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("name", [name for name in FILES if not name.startswith(LATER)])
def test_every_refusal_is_on_the_page(name: str, refusals: dict[str, BaseException | None]) -> None:
    file = PACKAGE / name
    met = {line for error in refusals.values() for where, line in where_raised(error) if where == file}
    missing = [f"{file}:{min(lines)}: {text}" for text, lines in raises_of(file).items() if not lines & met]
    assert not missing, f"no line of {PAGE.name} leads to\n" + "\n".join(missing)


def written(line: str) -> str:
    """A line of the page with what is said now; as it was if that fits, or if the library itself refuses nothing."""
    row = ROW.fullmatch(line)
    error = refusal_of(row["code"]) if row else None
    if row is None or error is None or not by_the_library(error) or matches(row["says"], says(error)):
        return line
    message = " ".join(says(error).split())
    tick, space = ("``", " ") if "`" in message else ("`", "")
    return f"| `{row['code']}` | {tick}{space}{message}{space}{tick} |"


def test_the_page_can_be_written_anew() -> None:
    line = next(line for line in TEXT.splitlines() if "ol.ConstantDelay(-1)" in line)
    code, message = "ol.ConstantDelay(-1)", "ConstantDelay: d is -1, expected a whole number ≥ 0"
    assert line == written(line) == written(f"| `{code}` | `?` |") == f"| `{code}` | `ValueError: {message}` |"
    assert written(f"| `{code}` | `ValueError: …` |") == f"| `{code}` | `ValueError: …` |"
    assert written("| `raise ValueError(2)` | `?` |") == "| `raise ValueError(2)` | `?` |"  # not the library's own
    assert written("| `ol.ConstantDelay(1)` | `?` |") == "| `ol.ConstantDelay(1)` | `?` |"
    assert written("text") == "text"


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python tests/docs/test_refusals.py --write")
    lines = [written(line) for line in TEXT.splitlines()]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    errors = {row["code"]: (row["says"], refusal_of(row["code"])) for row in map(ROW.fullmatch, lines) if row}
    left = [code for code, (words, error) in errors.items() if error is None or not matches(words, says(error))]
    sys.exit("\n".join(["left as they were, because the library refuses nothing there:", *left]) if left else 0)
