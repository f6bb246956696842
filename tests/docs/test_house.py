"""The rules of the house: sizes, names, places, and an import rule that sees every import.

Limits that do not hold yet are listed as exceptions. The lists may only shrink: an exception that is no longer needed fails
its test, which prints the list that is true now.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "oldlight"
RULE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]

LONG_FUNCTIONS: set[str] = set()
MANY_ARGUMENTS: set[str] = set()
PRIVATE_WORDS = (  # docs/glossary.md has the words to use
    r"\b([Ll]ucks?|LUCKS?|[Cc]hances?|CHANCES?|too dear|dearer|fares? better|in disguise)\b|(?<=[a-z,] )in words\b(?!\.\w)"
)
SAME_NAMES: set[str] = set()


@cache
def sources() -> dict[str, ast.Module]:
    """Every module of the package but those that only name where a module has moved: path -> syntax tree."""
    trees = {
        path.relative_to(SRC).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in SRC.rglob("*.py")
    }
    return {name: tree for name, tree in trees.items() if not (ast.get_docstring(tree) or "").startswith("Renamed: ")}


def functions(node: ast.AST, inside: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):  # no function is defined in one, and most of a tree is expressions
            continue
        here = inside
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            here = f"{inside}{child.name}."
            if not isinstance(child, ast.ClassDef):
                yield here[:-1], child
        yield from functions(child, here)


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function without its docstring, whose length follows from what it takes and returns."""
    lines = (function.end_lineno or 0) - function.lineno + 1
    text = function.body[0]
    return lines - ((text.end_lineno or 0) - text.lineno + 1 if ast.get_docstring(function, clean=False) else 0)


@cache
def called_from_python() -> set[str]:
    """The kernels that are used outside kernels/, as `kernels/file.py:name`."""
    found = set()
    for name, tree in sources().items():
        if name.startswith("kernels/"):
            continue
        modules: dict[str, set[str]] = {}  # one name may be another module in another function
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == "oldlight.kernels":
                for alias in node.names:
                    modules.setdefault(alias.asname or alias.name, set()).add(alias.name)
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("oldlight.kernels."):
                file = (node.module or "").rpartition(".")[2]
                found |= {f"kernels/{file}.py:{alias.name}" for alias in node.names}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
                owner = node.value.id if isinstance(node.value, ast.Name) else node.value.attr.removeprefix("_")
                found |= {f"kernels/{file}.py:{node.attr}" for file in modules.get(owner, ())}
    return found


def assert_exactly(found: set[str], known: set[str], rule: str) -> None:
    """Nothing new breaks the rule, and nothing is excused that no longer breaks it."""
    new, old = sorted(found - known), sorted(known - found)
    assert new == [], f"{rule}: {new}"
    listed = "".join(f'    "{name}",\n' for name in sorted(found))
    assert old == [], f"no longer needed as exceptions: {old}. The list that is true now:\n{listed}"


def test_no_file_is_too_long() -> None:
    for folder, limit in ((SRC, 400), (ROOT / "tests", 500)):
        lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in folder.rglob("*.py")}
        assert lengths
        assert {path.name: n for path, n in lengths.items() if n > limit} == {}, f"at most {limit} lines in a file"


def test_no_function_is_too_long() -> None:
    found = set()
    for file, tree in sources().items():
        limit = 80 if file.startswith("kernels/") else 60
        for name, function in functions(tree):
            if code_lines(function) > limit:
                found.add(f"{file}:{name}")
    assert_exactly(found, LONG_FUNCTIONS, "at most 60 lines in a function, 80 in a kernel, without its docstring")


def test_no_function_takes_too_many_positional_arguments() -> None:
    found = set()
    for file, tree in sources().items():
        for name, function in functions(tree):
            arguments = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
            n = len(arguments) - (arguments[:1] in (["self"], ["cls"]))
            helper = file.startswith("kernels/") and f"{file}:{name}" not in called_from_python()
            if n > (16 if helper else 8):
                found.add(f"{file}:{name}")
    assert_exactly(found, MANY_ARGUMENTS, "at most 8 positional arguments, 16 for what only kernels call")


def test_the_kernels_that_python_calls_are_found() -> None:
    kernels = {
        f"{file}:{name}"
        for file, tree in sources().items()
        if file.startswith("kernels/")
        for name, _ in functions(tree)
    }
    assert len(called_from_python() & kernels) > 10
    assert "kernels/delayed_ucbvi.py:greedy_block" in called_from_python()  # where two modules go by one name
    assert "kernels/batch_simulator.py:step" in called_from_python()  # through an attribute


def test_no_two_modules_have_one_name() -> None:
    """Except a kernel and the one module that it serves."""
    names: dict[str, list[str]] = {}
    for file in sources():
        if not file.startswith("kernels/") and not Path(file).name.startswith("__"):
            names.setdefault(Path(file).name, []).append(file)
    assert_exactly({name for name, files in names.items() if len(files) > 1}, SAME_NAMES, "two modules of one name")


def test_words_are_those_of_the_glossary() -> None:
    """Of the words that were replaced, none comes back; a line that says `renamed` keeps an old name working."""
    paths = [
        *SRC.rglob("*.py"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "docs").rglob("*.py"),
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
    ]
    assert re.search(PRIVATE_WORDS, "a state in disguise")
    found = [
        f"{path.relative_to(ROOT).as_posix()}: {line.strip()}"
        for path in paths
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(PRIVATE_WORDS, line) and "renamed" not in line.lower()
    ]
    assert found == []


def tracked() -> list[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git repository")
    return subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def test_every_file_has_its_place() -> None:
    """Nothing stray at the top, tests in a folder that is named like a package, no empty file."""
    files = [Path(name) for name in tracked()]
    folders = {".ci", ".github", "benchmarks", "docs", "src", "tests", "tools"}
    at_top = {
        "CHANGELOG.md",
        "CITATION.cff",
        "CODE_OF_CONDUCT.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "Makefile",
        "README.md",
        "SECURITY.md",
        "mkdocs.yml",
        "pyproject.toml",
        ".gitignore",
        ".pre-commit-config.yaml",
    }
    assert {path.parts[0] for path in files} <= folders | at_top
    assert [
        path
        for path in files
        if path.parts[0] == "src" and path.suffix not in (".py", ".typed", ".css", ".js", ".html")
    ] == []
    packages = {path.parent.name for path in SRC.glob("*/__init__.py")}
    tests = [path for path in files if path.parts[0] == "tests" and path.name.startswith("test_")]
    assert {path.parts[1] for path in tests} <= packages | {"docs", "fuzz", "typing"}
    empty = [path for path in files if (ROOT / path).exists() and (ROOT / path).stat().st_size == 0]
    assert [path for path in empty if path.name not in ("py.typed", "__init__.py")] == []


def test_no_page_names_a_folder_of_one_machine() -> None:
    """A path into somebody's environment is wrong everywhere else, and a test that compares with it passes on one machine only."""
    texts = [ROOT / name for name in tracked() if name.endswith((".md", ".toml", ".yml")) and (ROOT / name).exists()]
    assert [path.name for path in texts if "site-packages" in path.read_text(encoding="utf-8")] == []


def test_the_import_rule_names_every_package() -> None:
    top = {Path(file).parts[0].removesuffix(".py") for file in sources()}
    (layers,) = (contract["layers"] for contract in RULE["contracts"] if contract["type"] == "layers")
    assert {f"oldlight.{name}" for name in top if not name.startswith("_")} == set(layers)


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--config", folder / "pyproject.toml"]
    where = {**os.environ, "PYTHONPATH": str(folder / "src"), "COLUMNS": "200"}
    return subprocess.run(command, cwd=folder, env=where, capture_output=True, text=True)


def test_the_import_rule_sees_an_import_inside_a_function(tmp_path: Path) -> None:
    pytest.importorskip("importlinter")
    shutil.copytree(SRC, tmp_path / "src" / "oldlight", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    kept = lint_imports(tmp_path)
    assert kept.returncode == 0, kept.stdout + kept.stderr
    with (tmp_path / "src" / "oldlight" / "model" / "problem.py").open("a", encoding="utf-8") as stream:
        stream.write("\n\ndef forbidden():\n    from oldlight.studies import runner\n\n    return runner\n")
    broken = lint_imports(tmp_path)
    assert broken.returncode == 1, broken.stdout + broken.stderr
    assert "oldlight.model.problem -> oldlight.studies.runner" in broken.stdout
