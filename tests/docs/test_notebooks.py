"""The guides as notebooks say what their scripts say; `make check-all` executes them."""

from __future__ import annotations

import ast
import json

import notebooks
import pytest


@pytest.mark.parametrize("name", notebooks.NAMES)
def test_the_notebook_is_the_script_of_today(name: str) -> None:
    stored = (notebooks.GUIDES / f"{name}.ipynb").read_text(encoding="utf-8")
    assert stored == notebooks.notebook(name), "run: python docs/scripts/notebooks.py"


@pytest.mark.parametrize("name", notebooks.NAMES)
def test_every_statement_of_the_script_is_in_a_cell(name: str) -> None:
    """And nothing else: the calls of the script's main are those of the cells, in their order."""
    source = (notebooks.GUIDES / f"{name}.py").read_text(encoding="utf-8")
    [main] = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name == "main"]
    book = json.loads(notebooks.notebook(name))
    code = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
    shown = [ast.dump(node) for node in ast.parse("\n".join(code[1:])).body]
    body = [ast.unparse(node).replace("Path(__file__)", f"Path('{name}.py')") for node in main.body]
    wanted = [ast.dump(ast.parse(line).body[0]) for line in body if not line.startswith("out.mkdir")]
    assert shown == wanted
    assert not any(cell.get("outputs") for cell in book["cells"])
