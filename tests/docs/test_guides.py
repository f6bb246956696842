"""The guides' scripts run, and the commands that the pages show exist."""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conftest import inline_engine
from oldlight import cli
from repeats import is_thorough

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "guides"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SAID = {
    "researcher": ("0.29178", "fails", "mine", "report.html"),
    "engineer": ("±", "predicted", "act()"),
    "practitioner": ("oldlight/SensingChain-v0", "FrozenLake", "% of the optimum", "real CartPole", "cartpole.npz"),
}


SHORTER = {  # in `make test`: the same with fewer episodes
    "researcher.toml": ("seeds = 3\nepisodes = 400\nevery = 40", "seeds = 2\nepisodes = 40\nevery = 4"),
    "engineer.py": ("episodes=400", "episodes=60"),
}


def guides(place: Path) -> Path:
    """The folder of the guides; a copy with fewer episodes unless thorough."""
    if is_thorough():
        return GUIDES
    place.mkdir()
    for file in (*GUIDES.glob("*.py"), *GUIDES.glob("*.toml")):
        text, (many, few) = file.read_text(encoding="utf-8"), SHORTER.get(file.name, ("", ""))
        assert file.name not in SHORTER or text.count(many) == 1
        (place / file.name).write_text(text.replace(many, few), encoding="utf-8")
    return place


@pytest.fixture
def as_a_script(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, Path], str]:
    """Runs a guide and returns what it printed: if thorough in a process of its own, as its readers do; otherwise in this one, where everything is imported
    already, and so are the jobs of its study."""

    def run(script: Path, out: Path) -> str:
        if is_thorough():
            command = [sys.executable, str(script), str(out)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=out, env=os.environ)
            assert done.returncode == 0, done.stderr[-3000:]
            return done.stdout
        monkeypatch.setattr("oldlight.studies.runner._engine", inline_engine)
        monkeypatch.setattr(sys, "argv", [str(script), str(out)])
        monkeypatch.setattr(sys, "path", [str(script.parent), *sys.path])
        monkeypatch.chdir(out)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            runpy.run_path(str(script), run_name="__main__")
        sys.modules.pop("my_learner", None)
        return said.getvalue()

    return run


@pytest.mark.slow
@pytest.mark.parametrize("name", SAID)
def test_the_guide_runs(name: str, tmp_path: Path, as_a_script: Callable[[Path, Path], str]) -> None:
    pytest.importorskip("pyarrow")
    printed = as_a_script(guides(tmp_path / "guides") / f"{name}.py", tmp_path)
    for words in SAID[name]:
        assert words in printed, f"{name}.py did not say {words!r}:\n{printed[-3000:]}"


def shown() -> list[tuple[str, str]]:
    """(page, command line) for each line of a page that starts with `oldlight`."""
    found = []
    for page in PAGES:
        fenced = False
        for line in page.read_text(encoding="utf-8").splitlines():
            fenced ^= line.startswith("```")
            if not fenced and not line.startswith("    "):
                continue
            for part in re.split(r"&&|;|\|", line.partition("#")[0]):
                if re.match(r"oldlight [a-z]+( |$)", part.strip()):
                    found.append((page.name, part.strip()))
    return found


@pytest.mark.parametrize(("page", "line"), shown())
def test_commands_on_the_pages_exist(page: str, line: str) -> None:
    commands = {c.name or c.callback.__name__: c for c in cli.app.registered_commands}
    words = shlex.split(line)[1:]
    assert words[0] in commands, f"{page}: {line}"
    for option in (word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)):
        assert re.search(rf"(?<![\w-]){option}(?![\w-])", help_of(words[0])), f"{page}: {line}: no option {option}"


@cache
def help_of(command: str) -> str:
    return CliRunner().invoke(cli.app, [command, "--help"]).output


def test_links_between_the_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!#|https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
