"""docs/when_it_says_no.md against the library: each line of the page is run, and each refusal of the library is on it.

A new refusal needs a line on the page; the failing test shows it. Nothing is written twice: the page is the list.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import os
import re
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import oldlight as ol

PAGE = Path(__file__).parent.parent / "docs" / "when_it_says_no.md"
PACKAGE = Path(ol.__file__).parent
TEXT = PAGE.read_text(encoding="utf-8")
ROW = re.compile(r"\| `(?P<code>[^`]+)` \| (?P<tick>`+) ?(?P<says>.+?) ?(?P=tick) \|")
ROWS = {row["code"]: row["says"] for row in map(ROW.fullmatch, TEXT.splitlines()) if row}
LATER = {"planning/augmented.py"}  # files whose refusals still have to be written on the page
INSIDE = {"_tail"}  # functions whose refusal only the library's own code can meet


def says(error: BaseException) -> str:
    """As Python prints it; a KeyError without the quotes."""
    words = error.args[0] if isinstance(error, KeyError) else error
    return f"{type(error).__name__}: {words}"


@functools.cache
def beginning() -> dict[str, Any]:
    """The names that the page starts from."""
    setup = re.search(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert setup
    names: dict[str, Any] = {}
    exec(setup[1], names)
    return names


@pytest.fixture(scope="module")
def refusals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, BaseException | None]:
    """What each line of the page raises, each in an empty folder of its own."""
    found: dict[str, BaseException | None] = {}
    for code in ROWS:
        found[code] = None
        with contextlib.chdir(tmp_path_factory.mktemp("row")), mock.patch.dict(os.environ):
            try:
                exec(code, dict(beginning()))
            except Exception as error:
                found[code] = error
    return found


def test_every_line_of_the_tables_is_read() -> None:
    lines = [line for line in TEXT.splitlines() if line.startswith("|")]
    tables = TEXT.count("| what you did | what it says |\n|---|---|\n")
    assert tables == TEXT.count("\n## ") > 5
    assert len(lines) == len(ROWS) + 2 * tables


@pytest.mark.parametrize("code", ROWS)
def test_it_says_what_the_page_says(code: str, refusals: dict[str, BaseException | None]) -> None:
    error = refusals[code]
    assert error is not None, "nothing was refused"
    pattern = ".*".join(re.escape(part) for part in ROWS[code].split("…"))
    assert re.fullmatch(pattern, says(error), re.DOTALL), f"the page says\n{ROWS[code]}\nbut it is\n{says(error)}"


NOT_YET = [
    "ol.TabularMDP([[1], [1, 2]], R, horizon=3)",
    "ol.TabularMDP.from_dict({0: {0: [(2, 0, 0), (-1, 0, 0)]}}, horizon=3)",
    "ol.TabularMDP.from_dict({0: {0: [(1, 0)]}}, horizon=3)",
    "ol.TabularMDP(P, R, horizon=3, truncation_error=-1)",
    "ol.StochasticDelay([[1], [1, 2]])",
    "ol.EmpiricalDelay(3)",
    'ol.Loss(seen="often")',
    "ol.ImpairedMDP(mdp, ol.CappedDelay(ol.GeometricDelay(0.5), -1))",
    "ol.ImpairedMDP(mdp, ol.CappedDelay(2, 1))",
    "ol.truncate(mdp, 0.1)",
    "ol.simulate(mdp, coin, 100, seed=0)",
    "ol.evaluate(mdp, coin)",
    "ol.evaluate(late, 0)",
    "ol.evaluate(lossy, ol.solve(late).policy)",
    "ol.evaluate(late, ol.FunctionPolicy(lambda info: 0, 3))",
    "ol.evaluate(late, ol.MarkovPolicy(np.zeros((3, 2), int), 7))",
    "ol.TablePolicy(layout, np.arange(layout.size) % 2 - 1)",
    "ol.BlackoutPolicy(np.full((4, 2, 3), -1), 2)",
    "ol.MarkovPolicy(np.full((3, 2), -1), 2)",
    "ol.MarkovPolicy(np.zeros((0, 2), int), 2)",
    'np.savez("plan.npz", kind="oldlight.BlackoutPolicy"); ol.load_policy("plan.npz")',
    'np.savez("plan.npz", kind="oldlight.TablePolicy", actions=[0]); ol.load_policy("plan.npz")',
    'Path("chain.csv").write_text("p,r,s,a,s\'\\n1,0,x"); ol.TabularMDP.from_csv("chain.csv", horizon=3)',
    'Path("chain.csv").write_bytes(b"s,a,s\',p,r\\n\\xfc,0,0,1,1"); ol.TabularMDP.from_csv("chain.csv", horizon=3)',
]


@pytest.mark.xfail(
    strict=True, reason="not refused, or not in the library's own words; once it is, it belongs on the page"
)
@pytest.mark.parametrize("code", NOT_YET)
def test_it_ought_to_say_no(code: str, tmp_path: Path) -> None:
    with contextlib.chdir(tmp_path), pytest.raises((ValueError, TypeError)) as refusal:
        exec(code, dict(beginning()))
    at = where_raised(refusal.value)
    assert at is not None
    assert at[0].is_relative_to(PACKAGE)
    assert at[1] in set().union(*raises_of(at[0]).values())


@pytest.mark.parametrize(
    "channel",
    [
        ol.ConstantDelay(7),
        pytest.param(
            ol.GeometricDelay(0.5),
            marks=pytest.mark.xfail(strict=True, reason="the cap named is right for a constant delay only"),
        ),
    ],
    ids=repr,
)
def test_the_way_out_of_a_plan_too_large_leads_out(channel: Any) -> None:
    mdp = ol.instances.sensing_chain(n_states=6, n_actions=3)
    limit = 50_000
    with pytest.raises(ol.TooLarge) as refusal:
        ol.solve(ol.ImpairedMDP(mdp, channel), max_bytes=limit)
    cap = re.search(r"channel\.capped\((\d+)\) fits", str(refusal.value))
    assert cap
    assert ol.solve(ol.ImpairedMDP(mdp, channel.capped(int(cap[1]))), max_bytes=limit).exact
    with pytest.raises(ol.TooLarge):
        ol.solve(ol.ImpairedMDP(mdp, channel.capped(int(cap[1]) + 1)), max_bytes=limit)


def where_raised(error: BaseException | None) -> tuple[Path, int] | None:
    """The file and line of the library that raised, or None if it was not the library itself."""
    step = error.__traceback__ if error else None
    if step is None:
        return None
    while step.tb_next:
        step = step.tb_next
    return Path(step.tb_frame.f_code.co_filename), step.tb_lineno


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


@pytest.mark.parametrize("name", sorted(file.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("*.py")))
def test_every_refusal_is_on_the_page(name: str, refusals: dict[str, BaseException | None]) -> None:
    if name in LATER:
        pytest.xfail("its lines are not written yet")
    file = PACKAGE / name
    met = {at[1] for at in map(where_raised, refusals.values()) if at and at[0] == file}
    missing = [f"{file}:{min(lines)}: {text}" for text, lines in raises_of(file).items() if not lines & met]
    assert not missing, f"no line of {PAGE.name} leads to\n" + "\n".join(missing)
