"""Writes the guides as notebooks, docs/guides/*.ipynb, from their scripts: python docs/scripts/notebooks.py [--run]

The module's text is the first cell, its imports and functions the second, and each numbered comment of `main` begins a new pair of a
text and a code cell. The notebooks have no outputs; `--run` executes each in a temporary folder and stops at the first error
(`make check-all` does; it needs nbclient and ipykernel, the extra `notebooks`). `tests/docs/test_notebooks.py` compares them with the scripts.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

GUIDES = Path(__file__).parents[1] / "guides"
NAMES = ("researcher", "engineer", "practitioner")


def cells_of(name: str) -> list[tuple[str, str]]:
    """(kind, text) of each cell of a guide."""
    source = (GUIDES / f"{name}.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    lines = source.splitlines()
    [main] = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "main"]
    text = f"{ast.get_docstring(tree)}"
    title = text.partition(":")[0]
    head = lines[tree.body[0].end_lineno : main.lineno - 1]
    head = [line for line in head if line != "from __future__ import annotations"]
    cells = [
        ("markdown", f"# {title}\n\n[The guide]({name}.md) says more; `{name}.py` is the same as a script."),
        ("code", "\n".join(head).strip() + f'\n\nout = Path("out/{name}")\nout.mkdir(parents=True, exist_ok=True)'),
    ]
    body = textwrap.dedent("\n".join(lines[main.body[0].lineno - 1 - comments_before(lines, main) : main.end_lineno]))
    for part in re.split(r"^(?=# \d+\. )", body, flags=re.MULTILINE):
        said, code = re.match(r"((?:#[^\n]*\n)*)(.*)", part, re.DOTALL).groups()  # type: ignore[union-attr]
        if said:
            cells.append(("markdown", "## " + " ".join(line.lstrip("# ") for line in said.splitlines())))
        if code.strip() and code.strip() != "out.mkdir(parents=True, exist_ok=True)":
            cells.append(("code", code.strip().replace("Path(__file__)", f'Path("{name}.py")')))
    return cells


def comments_before(lines: list[str], main: ast.FunctionDef) -> int:
    """How many lines of comment stand between the head of `main` and its first statement."""
    return main.body[0].lineno - 1 - main.lineno


def notebook(name: str) -> str:
    """The notebook of a guide, as text."""
    cells: list[dict[str, Any]] = []
    for i, (kind, text) in enumerate(cells_of(name)):
        cell: dict[str, Any] = {
            "cell_type": kind,
            "id": f"{name}-{i}",
            "metadata": {},
            "source": text.splitlines(keepends=True),
        }
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        cells.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def run(name: str) -> None:
    """Execute a notebook as somebody would who opens it in its folder."""
    import nbformat
    from nbclient import NotebookClient

    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(GUIDES, folder, dirs_exist_ok=True)
        book = nbformat.reads(notebook(name), as_version=4)
        NotebookClient(book, timeout=900, resources={"metadata": {"path": folder}}).execute()
    print(f"{name}.ipynb ran, {len(book.cells)} cells")


if __name__ == "__main__":
    for name in NAMES:
        (GUIDES / f"{name}.ipynb").write_text(notebook(name), encoding="utf-8")
        if "--run" in sys.argv:
            run(name)
