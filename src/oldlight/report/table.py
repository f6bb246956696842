"""A table for a page, which sorts by any column: click its head, or press Enter there.

A cell is a text, a number, None (nothing to say; sorted last) or one of

- `Number(value, text)`: sorted by its value and shown as its text, "18 ± 8";
- `Marked(text)`: text with the marks of markup.py.

Numbers are sorted as numbers and stand to the right.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from oldlight import checks
from oldlight.report.markup import inline


@dataclass(frozen=True)
class Number:
    """A number that is shown as a given text."""

    value: float
    text: str


@dataclass(frozen=True)
class Marked:
    """A text with marks."""

    text: str


@dataclass(frozen=True, eq=False)
class Table:
    """Rows under named columns. formats: column -> how its numbers are written, such as ".4f", "," or ".1%"."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str = ""
    formats: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checks.names("columns", self.columns, len(self.columns))
        for i, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ValueError(f"rows[{i}] has {len(row)} cells, expected one per column: {len(self.columns)}")
        for name in self.formats:
            checks.one_of("a column in formats", name, [str(c) for c in self.columns])

    def html(self) -> str:
        """The table as an element of a page."""
        right = [all(_is_number(row[j]) or row[j] is None for row in self.rows) for j in range(len(self.columns))]
        heads = "".join(
            f'<th scope="col" aria-sort="none"{_side(r)}><button type="button">{escape(str(name))}</button></th>'
            for name, r in zip(self.columns, right, strict=True)
        )
        body = "\n".join(f"<tr>{''.join(self._cells(row, right))}</tr>" for row in self.rows)
        caption = f'<caption><span class="caption-text">{escape(self.caption)}</span></caption>' if self.caption else ""
        label = escape(self.caption or f"table of {', '.join(map(str, self.columns[:3]))}")
        return (
            f'<div class="table" role="region" tabindex="0" aria-label="{label}"><table>{caption}'
            f"<thead><tr>{heads}</tr></thead>\n<tbody>{body}</tbody></table></div>"
        )

    def _cells(self, row: Sequence[Any], right: Sequence[bool]) -> list[str]:
        made = []
        for name, cell, r in zip(self.columns, row, right, strict=True):
            value = f' data-value="{_value(cell)!r}"' if _is_number(cell) and math.isfinite(_value(cell)) else ""
            made.append(f"<td{_side(r)}{value}>{cell_html(cell, self.formats.get(name))}</td>")
        return made


def cell_html(cell: Any, form: str | None = None) -> str:
    """A cell in HTML."""
    if isinstance(cell, Marked):
        return inline(cell.text)
    if isinstance(cell, Number):
        return escape(cell.text)
    if cell is None or (_is_number(cell) and math.isnan(cell)):
        return '<span class="none" aria-label="none">–</span>'
    if _is_number(cell):
        return escape(format(cell, form) if form else number(cell)).replace("-", "−")
    return escape(str(cell))


def number(value: float) -> str:
    """A number as people write it: whole ones with separators, others with five digits."""
    if isinstance(value, int | np.integer) or (math.isfinite(value) and abs(value) >= 1e5):
        return f"{value:,.0f}"
    return f"{value:.5g}"


def _is_number(cell: Any) -> bool:
    if isinstance(cell, Number):
        return True
    return isinstance(cell, int | float | np.integer | np.floating) and not isinstance(cell, bool)


def _value(cell: Any) -> float:
    return float(cell.value if isinstance(cell, Number) else cell)


def _side(right: bool) -> str:
    return ' class="number"' if right else ""
