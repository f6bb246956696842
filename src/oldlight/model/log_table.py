"""A log of episodes, whatever it comes as: rows of (episode, step, state, action, reward), checked and in order.

A log is a mapping of columns (a DataFrame is one), a list of rows (mappings, or tuples in the order above), or a CSV file with a header.
A row whose action is empty holds only the state that was seen last. Where there is a column of next states it is used; otherwise the
next state is that of the row one step later in the same episode, and where that row is missing the transition is not known.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn

from oldlight import checks, files


class Columns(NamedTuple):
    """What the columns are called; costs: the column of costs that takes the place of rewards, or None."""

    episode: str = "episode"
    step: str = "step"
    state: str = "state"
    action: str = "action"
    reward: str = "reward"
    costs: str | None = None
    next_state: str | None = "next_state"


class Row(NamedTuple):
    """One step. action is None in a row that only says where the episode ended; next_state is None where it is not known."""

    where: str
    step: int
    state: Any
    action: Any
    reward: float
    next_state: Any


@dataclass(frozen=True)
class LogTable:
    """The episodes, each with its rows in order of their steps."""

    episodes: dict[Any, list[Row]]
    source: str


def wrong(where: str, words: str) -> NoReturn:
    """The one refusal of a log."""
    raise ValueError(f"{where}: {words}")


def read_log(table: Any, columns: Columns) -> LogTable:
    """The log, checked row by row."""
    source, header, rows = _rows(table, columns)
    value = columns.reward if columns.costs is None else columns.costs
    sign = 1.0 if columns.costs is None else -1.0
    for name in (columns.episode, columns.step, columns.state, columns.action, value):
        if name not in header:
            wrong(
                source,
                f"column {name!r} is missing; there are {', '.join(map(repr, header)) or 'none'}. Say which is which, for example "
                'from_log(table, state="position", costs="euros")',
            )
    following = columns.next_state if columns.next_state in header else None
    episodes: dict[Any, list[Row]] = {}
    for where, row in rows:
        step = checks.whole(f"{where}: {columns.step}", _number(row[columns.step]), least=0)
        state, action, name = _word(row[columns.state]), _word(row[columns.action]), _word(row[columns.episode])
        if state is None or name is None:
            wrong(where, f"{columns.state if state is None else columns.episode} is empty, expected a name or a number")
        reward = 0.0 if action is None else sign * checks.real(f"{where}: {value}", _number(row[value]))
        goes = None if following is None else _word(row[following])
        episodes.setdefault(name, []).append(Row(where, step, state, action, reward, goes))
    if not episodes:
        wrong(source, "the log has no rows; expected at least one step of one episode")
    for name, steps in episodes.items():
        steps.sort(key=lambda row: row.step)
        for first, second in pairwise(steps):
            if first.step == second.step:
                wrong(second.where, f"step {second.step} of episode {name!r} is there twice, also at {first.where}")
    return LogTable(episodes, source)


def _rows(table: Any, columns: Columns) -> tuple[str, list[str], Iterable[tuple[str, Mapping[str, Any]]]]:
    """(what it is, its columns, its rows with the place of each)."""
    if isinstance(table, str | os.PathLike):
        text = files.read_text(table)
        with files.reading(table, "log in CSV"):
            reader = csv.DictReader(text.splitlines(), restval="", skipinitialspace=True)
            reader.fieldnames = [name.strip() for name in reader.fieldnames or []]
            found = [(f"{table}, line {reader.line_num}", line) for line in reader]
        return str(table), list(reader.fieldnames), found
    if hasattr(table, "keys") and hasattr(table, "__getitem__"):
        header = [str(name) for name in table.keys()]  # noqa: SIM118  (a DataFrame's iteration differs)
        lists = {name: list(table[name]) for name in header}
        lengths = {name: len(values) for name, values in lists.items()}
        odd = next((name for name in header if lengths[name] != lengths[header[0]]), None)
        if odd is not None:
            wrong("the log", f"column {odd!r} has {lengths[odd]} rows, column {header[0]!r} {lengths[header[0]]}")
        count = lengths[header[0]] if header else 0
        return "the log", header, [(f"row {i}", {k: v[i] for k, v in lists.items()}) for i in range(count)]
    value = columns.reward if columns.costs is None else columns.costs
    names = [columns.episode, columns.step, columns.state, columns.action, value]
    rows = []
    for i, row in enumerate(table if isinstance(table, Iterable) else wrong("the log", _expected(table))):
        if isinstance(row, Mapping):
            missing = next((name for name in names if name not in row), None)
            rows.append((f"row {i}", row if missing is None else wrong(f"row {i}", f"{missing!r} is missing")))
        elif isinstance(row, Sequence) and not isinstance(row, str) and len(row) == len(names):
            rows.append((f"row {i}", dict(zip(names, row, strict=True))))
        else:
            wrong(f"row {i}", f"{row!r} is not a row; expected ({', '.join(names)}), or a mapping with these keys")
    followed = bool(rows) and all(columns.next_state in row for _, row in rows)
    return "the log", [*names, *([str(columns.next_state)] if followed else [])], rows


def _expected(table: Any) -> str:
    return f"{type(table).__name__} is not a table; expected columns by name, a list of rows, or the path of a CSV file"


def _number(value: Any) -> Any:
    """A cell of a CSV file as a number where it is one; whole numbers stay whole."""
    if not isinstance(value, str):
        return value.item() if hasattr(value, "item") else value
    try:
        number = float(value)
    except ValueError:
        return value
    return int(number) if number.is_integer() else number


def _word(value: Any) -> Any:
    """The name of a state, an action or an episode; None where the cell is empty."""
    value = value.item() if hasattr(value, "item") else value
    if value is None or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, str):
        return value.strip() or None
    return int(value) if isinstance(value, float) and value.is_integer() else value
