"""docs/errors.md against the library: each line of the page is run, and each refusal of the library is on it.

A new refusal needs a line on the page; the failing test shows it. The messages on the page are written from the code:
`python docs/scripts/errors_page.py`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from errors_page import PACKAGE, PAGE, ROWS, TEXT, matches, raises_of, refusal_of, says, where_raised, written

import oldlight as ol
from conftest import made_once
from oldlight import machine
from repeats import is_thorough, repeats

LATER = (
    "__init__",
    "cli",
    "control",
    "deep",
    "envs/",
    "explore/",
    "files",
    "kernels/cache",
    "learners/",
    "model/channels/channel",
    "model/channels/hidden",
    "model/channels/text",
    "model/age_layers",
    "model/link_policy",
    "paper/",
    "planning/link_plan",
    "planning/search",
    "registry",
    "report/",
    "simulation/channel_check",
    "simulation/link_sampler",
    "studies/",
    "testbed",
    "testing",
    "traces",
    "workers",
)  # files whose refusals are tested elsewhere


SMALLER = {"200_000": "20_000", "200,000": "20,000", "298 GiB": "2.98 GiB"}


def smaller(text: str) -> str:
    """A line of the page, or what it says, with a tenth of the states and so a hundredth of the table; as it is if thorough."""
    for many, few in SMALLER.items() if not is_thorough() else ():
        text = text.replace(many, few)
    return text


@pytest.fixture(scope="module")
def refusals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each line of the page says when it is run (None: it was not refused), and the files and lines that it was refused by."""

    def make(place: Path) -> None:
        found, memory = {}, machine.default_limit()
        for code in ROWS:
            of_this = (
                memory if smaller(code) == code else memory // 100
            )  # what is smaller has to be too large all the same
            with mock.patch.object(machine, "default_limit", lambda of_this=of_this: of_this):
                error = refusal_of(smaller(code))
            where = [[str(file), line] for file, line in where_raised(error)]
            found[code] = [None if error is None else says(error), where]
        (place / "found.json").write_text(json.dumps(found), encoding="utf-8")

    made = made_once(tmp_path_factory, "refusals", make) / "found.json"
    return dict(json.loads(made.read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def met(refusals: dict[str, Any]) -> set[tuple[Path, int]]:
    """The files and lines that refuse something on the page."""
    return {(Path(file), line) for _, where in refusals.values() for file, line in where}


def test_every_line_of_the_tables_is_read() -> None:
    lines = [line for line in TEXT.splitlines() if line.startswith("|")]
    tables = TEXT.count("| what you did | what it says |\n|---|---|\n")
    assert tables == TEXT.count("\n## ") > 5
    assert len(lines) == len(ROWS) + 2 * tables


@pytest.mark.parametrize("code", ROWS)
def test_it_says_what_the_page_says(code: str, refusals: dict[str, Any]) -> None:
    said, _ = refusals[code]
    assert said is not None, "nothing was refused"
    assert matches(smaller(ROWS[code]), said), f"the page says\n{ROWS[code]}\nbut it is\n{said}"


WAYS_OUT = {
    "constant": (ol.ConstantDelay(7), {}),
    "geometric": (ol.GeometricDelay(0.5), {}),
    "geometric from the start": (ol.GeometricDelay(0.5, first="same"), {}),
    "warm": (ol.ConstantDelay(7), {"start": ol.WarmStart()}),
    "late actions": (ol.ConstantDelay(6), {"actuation": 2}),
}


@pytest.mark.parametrize(("channel", "options"), WAYS_OUT.values(), ids=WAYS_OUT)
def test_the_way_out_of_a_plan_too_large_leads_out(channel: Any, options: Any) -> None:
    """With a horizon of 7 each of them is too large already, and the way out is a depth below that of the exact plan."""
    plant = ol.instances.sensing_chain(n_states=4, n_actions=2, horizon=repeats(7, 10))
    problem = ol.ImpairedMDP(plant, channel, **options)
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


FILES = sorted(file.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("name", [name for name in FILES if not name.startswith(LATER)])
def test_every_refusal_is_on_the_page(name: str, met: set[tuple[Path, int]]) -> None:
    file = PACKAGE / name
    here = {line for where, line in met if where == file}
    missing = [f"{file}:{min(lines)}: {text}" for text, lines in raises_of(file).items() if not lines & here]
    assert not missing, f"no line of {PAGE.name} leads to\n" + "\n".join(missing)


def test_the_page_can_be_written_anew() -> None:
    line = next(line for line in TEXT.splitlines() if "ol.ConstantDelay(-1)" in line)
    code, message = "ol.ConstantDelay(-1)", "ConstantDelay: d is -1, expected a whole number ≥ 0"
    assert line == written(line) == written(f"| `{code}` | `?` |") == f"| `{code}` | `ValueError: {message}` |"
    assert written(f"| `{code}` | `ValueError: …` |") == f"| `{code}` | `ValueError: …` |"
    assert written("| `raise ValueError(2)` | `?` |") == "| `raise ValueError(2)` | `?` |"  # not the library's own
    assert written("| `ol.ConstantDelay(1)` | `?` |") == "| `ol.ConstantDelay(1)` | `?` |"
    assert written("text") == "text"


if __name__ == "__main__":
    sys.exit("docs/errors.md is written by python docs/scripts/errors_page.py")
