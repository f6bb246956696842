"""What the project promises about itself: workflows, hooks, the changelog's form, the README's."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]  # of Keep a Changelog


def yaml_of(name: str) -> Any:
    return pytest.importorskip("yaml").safe_load((ROOT / name).read_text(encoding="utf-8"))


def recipe(target: str) -> str:
    """What `make TARGET` would run."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    command = ["make", "-n", "--no-print-directory", target]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_workflows_run_what_make_has_on_every_python_that_is_declared() -> None:
    jobs = yaml_of(".github/workflows/check.yml")["jobs"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    assert jobs["tests"]["strategy"]["matrix"]["python"] == declared
    runs = {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in jobs.items()}
    assert runs == {
        "tests": ["make test", "make fuzz SECONDS=20"],
        "lint": ["make lint"],
        "docs": ["make docs"],
        "wheel": ["make wheel"],
    }
    for line in (line for lines in runs.values() for line in lines):
        assert re.search(rf"^{line.split()[1]}:", MAKEFILE, re.MULTILINE), f"{line}: no such target"


def test_a_commit_is_checked_by_what_make_lint_runs() -> None:
    [own] = yaml_of(".pre-commit-config.yaml")["repos"]
    hooks = {hook["entry"].replace(" --force-exclude", "") for hook in own["hooks"]}
    linters = {line.removesuffix(" .") for line in recipe("lint").splitlines() if line.startswith(".venv/bin/")}
    set_up = (".venv/bin/pip", ".venv/bin/python")  # printed where there is no environment yet
    assert hooks == {line for line in linters if not line.startswith(set_up)}


def test_check_all_has_every_part() -> None:
    """The linters, the site, all tests, those that need torch, the notebooks, the lowest versions, and the fuzz for longer."""
    said = recipe("check-all")
    for part in (
        *("ruff check .", "mypy", "lint-imports", "mkdocs build", "-m pytest -n auto", "-m pytest tests/deep"),
        *("notebooks.py --run", ".venv-minimum/bin/python -m pytest", "run.py --seconds 20", "run.py --seconds 300"),
    ):
        assert part in said, part


def test_the_changelog_keeps_its_form() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    names = [release.splitlines()[0] for release in releases]
    assert names[0] == "Unreleased"
    for name, release in zip(names, releases, strict=True):
        assert re.fullmatch(r"Unreleased|\d+\.\d+\.\d+ \((unreleased|\d{4}-\d\d-\d\d)\)", name)
        kinds = re.findall(r"^### (.*)$", release, re.MULTILINE)
        assert kinds == [kind for kind in KINDS if kind in kinds], f"{name}: {kinds}"


def test_the_readme_is_a_picture_two_commands_ten_lines_and_links() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(re.findall(r"!\[", text)) == 1
    commands = re.findall(r"^    (make \w+)", text, re.MULTILINE)
    assert commands == ["make demo", "make test"]
    [code] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    lines = [line for line in code.splitlines() if line and not line.startswith("import")]
    assert len(lines) <= 10
    for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
        assert (ROOT / link).exists(), link


def test_the_security_page_says_what_is_checked_and_what_is_not() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "**A study file is code.**" in text
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == [
        "What is trusted, and what is not",
        "What is not checked",
        "Reporting a weakness",
    ]
