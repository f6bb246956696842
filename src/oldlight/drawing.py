"""How results are shown: axes, small tables of text, plain data for JSON, and pictures as files (PNG to look at, SVG to print)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from oldlight.checks import write_file


def save(figure: Any, folder: str | Path, name: str) -> Path:
    """Write `name`.svg and `name`.png into `folder` (made if need be); returns the path of the PNG."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    write_file(target / f"{name}.svg", lambda stream: figure.savefig(stream, format="svg"))
    return write_file(target / f"{name}.png", lambda stream: figure.savefig(stream, format="png", dpi=160))


def axes_of(ax: Any = None) -> Any:
    """`ax`, or the matplotlib axes of a new figure."""
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(layout="constrained").subplots()


def bars(ax: Any, heights: Mapping[str, float], unit: str = "value") -> Any:
    """Draw one labelled bar for each entry on the axes (new ones if None); returns the axes."""
    ax = axes_of(ax)
    ax.bar_label(ax.bar(list(heights), list(heights.values()), width=0.6), fmt="%.4g")
    ax.set_ylabel(unit)
    return ax


def facts(title: str, rows: Mapping[str, Any]) -> str:
    """A title, and below it one line for each name and its value."""
    width = max(map(len, rows))
    return "\n".join([title, *(f"  {name:<{width}}  {value}" for name, value in rows.items())])


def columns(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows with the same names as an aligned table; numbers with six digits."""
    cells = [list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)] if rows else []
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(_line(line, widths) for line in cells)


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _line(cells: Iterable[str], widths: Iterable[int]) -> str:
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))


class Result:
    """A result, a dataclass, that writes itself as data: the attributes that `_data` names, all fields if it names none."""

    _data: ClassVar[str] = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, results inside it too; null for a number that is not finite."""
        names = self._data.split() or [field.name for field in fields(self)]  # type: ignore[arg-type]
        return {name: _finite(plain(getattr(self, name))) for name in names}


def _finite(value: Any) -> Any:
    """Plain data with None for what JSON cannot write."""
    if isinstance(value, dict):
        return {key: _finite(held) for key, held in value.items()}
    if isinstance(value, list):
        return [_finite(held) for held in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plain(value: Any) -> Any:
    """`value` as numbers, text, lists and dictionaries, which `json.dumps` accepts; a result as its data, anything else as its repr."""
    if isinstance(value, Result):
        return value.to_dict()
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [plain(held) for held in value]
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)
