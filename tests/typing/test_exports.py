"""The public names: one list for Python, the same for type checkers, nothing heavy on import, and the names of before."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import oldlight as ol
from oldlight import _exports

RENAMED = {
    "channels": ("oldlight.model.channels", "ConstantDelay"),
    "controller": ("oldlight.control", "Controller"),
    "information": ("oldlight.model.information", "belief"),
    "theory": ("oldlight.paper", "bounds"),
    "words": ("oldlight.registry", "channel_of"),
}


def for_type_checkers() -> dict[str, str]:
    """Name -> module, from the TYPE_CHECKING block of oldlight/__init__.py."""
    tree = ast.parse(Path(ol.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    assert len(imports) == len(block.body)
    found = {}
    for node in imports:
        for alias in node.names:
            assert alias.asname == alias.name  # "import x as x": a type checker takes it for public
            found[alias.name] = str(node.module)
    return found


def test_both_lists_of_names_agree() -> None:
    listed = {name: f"oldlight.{module}" for name, module in _exports.MODULES.items()}
    parts = dict.fromkeys(_exports.PARTS, "oldlight")
    assert for_type_checkers() == {**parts, **listed}
    assert set(ol.__all__) <= {"__version__", *for_type_checkers()}


@pytest.mark.parametrize("name", [*_exports.MODULES, *_exports.PARTS])
def test_each_name_is_there(name: str) -> None:
    assert getattr(ol, name) is not None
    assert name in dir(ol)


def test_what_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'oldlight' has no attribute 'sovle'"):
        ol.sovle  # type: ignore[attr-defined]  # noqa: B018


def run(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_import_loads_nothing_heavy_and_leaves_the_import_machinery_alone() -> None:
    code = "import sys; before = list(sys.meta_path), list(sys.path_hooks), list(sys.path); import oldlight; "
    code += "assert before == (list(sys.meta_path), list(sys.path_hooks), list(sys.path)); print(*sys.modules)"
    tops = {name.partition(".")[0] for name in run(code)}
    assert "oldlight" in tops
    assert not tops & {
        "numpy",
        "numba",
        "scipy",
        "gymnasium",
        "matplotlib",
        "plotly",
        "pydantic",
        "typer",
        "multiprocessing",
    }


@pytest.mark.parametrize("way", ["import oldlight.{0} as was", "from oldlight import {0} as was"])
def test_a_renamed_module_still_works_with_a_warning(way: str) -> None:
    """Each with its own warning alone; in one process, which none of them has been imported in before."""
    code = "import importlib, warnings\nwarnings.simplefilter('always')\n"
    for old, (new, name) in RENAMED.items():
        code += f"with warnings.catch_warnings(record=True) as caught:\n    {way.format(old)}\n"
        code += f"assert was is importlib.import_module('{new}') and hasattr(was, '{name}'), was\n"
        code += "print(*{f'{w.category.__name__}: {w.message}' for w in caught}, end='; ')\n"
    expected = [f"DeprecationWarning: oldlight.{old} is now {new}; " for old, (new, _) in RENAMED.items()]
    assert " ".join(run(code)) == "".join(expected).strip()
