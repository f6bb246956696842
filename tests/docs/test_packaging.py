"""What is in the package, and what it says that it needs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]
STRAY = re.compile(r".*(\.orig|\.rej|\.bak|\.swp|~)")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = {name: [Requirement(line) for line in lines] for name, lines in PROJECT["optional-dependencies"].items()}
NEEDED = {one.name: one for one in map(Requirement, PROJECT["dependencies"])}
OPTIONAL = {
    one.name: one for name in ("studies", "explore", "dask", "deep") for one in EXTRAS[name] if one.name != "oldlight"
}
BROUGHT = {"torch": "stable_baselines3", "dask": "distributed"}  # module -> the one whose package brings it


def git(*arguments: str) -> subprocess.CompletedProcess[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git repository")
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)


def test_no_leftovers_of_editors_and_merges_are_tracked() -> None:
    tracked = git("ls-files").stdout.splitlines()
    assert "src/oldlight/files.py" in tracked
    assert [name for name in tracked if STRAY.fullmatch(name)] == []
    for name in ("kernels.py.orig", "kernels.py.rej", "kernels.py.bak", "kernels.py~"):
        assert git("check-ignore", "-q", f"src/oldlight/{name}").returncode == 0, f"{name} would be packed"


def imported(file: Path) -> set[str]:
    """The packages from elsewhere that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return {name for name in found if name not in sys.stdlib_module_names and name != "oldlight"}


def test_everything_that_is_imported_is_declared() -> None:
    """And what is declared is imported: a minimum that nobody uses cannot be right or wrong."""
    used = set[str]().union(*(imported(file) for file in (ROOT / "src").rglob("*.py")))
    used = {BROUGHT.get(name, name).replace("_", "-") for name in used}
    assert used == {*NEEDED, *OPTIONAL}


@pytest.mark.parametrize("name", [*NEEDED, *OPTIONAL])
def test_each_has_a_minimum_that_the_installed_version_keeps(name: str) -> None:
    one = {**NEEDED, **OPTIONAL}[name]
    assert [bound.operator for bound in one.specifier] == [">="]
    try:
        installed = metadata.version(name)
    except metadata.PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    assert Version(installed) in one.specifier
