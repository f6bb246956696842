"""A module of compiled loops for vectors of so many numbers, whatever this processor has; and what is for other compiled functions alone, called from Python."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from oldlight.kernels import products


def for_lanes(module: ModuleType, line: str, lanes: int, folder: Path) -> Iterator[Any]:
    """The module as it is, or a copy of it in which `line` says LANES = lanes; gone when the next one is asked for."""
    if lanes == products.LANES:
        yield module
        return
    assert module.__file__ is not None
    source = Path(module.__file__).read_text(encoding="utf-8")
    changed = source.replace(line, f"LANES = {lanes}")
    assert changed != source
    name = f"{module.__name__.split('.')[-1]}_of_{lanes}"
    path = folder / f"{name}.py"
    path.write_text(changed, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    copy = importlib.util.module_from_spec(spec)
    sys.modules[name] = copy
    spec.loader.exec_module(copy)
    yield copy
    del sys.modules[name]


_known: dict[tuple[str, str], Any] = {}


def from_python(kernels: Any, name: str) -> Any:
    """The function of that name, compiled so that Python can call it."""
    import numba as nb

    if (kernels.__name__, name) not in _known:
        function = getattr(kernels, name)
        _known[kernels.__name__, name] = nb.njit(lambda *given: function(*given))
    return _known[kernels.__name__, name]
