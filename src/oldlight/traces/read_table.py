"""Tables of messages: commas, semicolons, tabs or blanks, with or without a line of column names.

    sent_ms, received_ms     when a message was sent and received
    delay_ms                 instead of received (or alone, in the order of sending): how long it took
    seq                      its number, if messages that were lost have no line: a number that is missing was lost

`NAMES` has the other names for these; other columns are left alone, lines that begin with # are skipped. Times carry their unit in
the name: _s, _ms, _us or _ns, also as "sent (ms)" or delay(ms). Without a unit they are dates (ISO form), or numbers that are
times of this century in exactly one unit. An empty cell, or lost, nan, timeout, none, -, means: never received.

Without a line of names: one column is delays in milliseconds; of several, the first two are when a message was sent and received,
if they are dates or times of this century. Anything else needs `columns=`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from oldlight.arrays import Floats
from oldlight.traces.measured import (
    LOST,
    UNITS,
    Measured,
    by_number,
    calendar_unit,
    counted,
    joined,
    number_or_date,
    numbered_sessions,
    one_clock,
    one_session,
    possible,
)

NAMES = {
    "sent": (
        *("sent", "send", "tx", "t_sent", "time_sent", "send_time", "sent_time", "sent_at", "tx_time", "pub", "pub_time"),
        *("published", "publish_time", "src_timestamp", "source_timestamp", "send_timestamp", "sent_timestamp", "tx_timestamp"),
        *("src_time", "stamp", "departure"),
    ),
    "received": (
        *("received", "recv", "rx", "arrived", "t_received", "recv_time", "receive_time", "received_at", "rx_time", "sub"),
        *("sub_time", "arrival", "arrival_time", "received_time", "recv_timestamp", "receive_timestamp", "received_timestamp"),
        *("rx_timestamp", "dst_timestamp", "destination_timestamp", "reception_timestamp"),
    ),
    "delay": ("delay", "latency", "rtt", "owd", "one_way_delay", "round_trip"),
    "seq": ("seq", "sequence", "id", "index", "seqno", "seqnum", "seq_num", "sequence_number"),
}  # fmt: skip
# the sending of a message with a delay, the arrival of one with a sending time
CLOCK = ("timestamp", "time", "datetime", "date")
HEADER = re.compile(r"(?P<name>[a-z_]+?)[ _]*[(\[]?(?P<unit>s|ms|us|µs|ns)?[)\]]?")
FORMS = (
    "accepted are: a table with columns such as sent_ms,received_ms or sent_ms,delay_ms or delay_ms (units _s, _ms, _us, _ns; seq if lost "
    "messages have no line); the same without names, which columns=[...] then gives (on a terminal --columns a,b); what ping or fping printed; irtt's JSON; JSON lines"
)
BLANKS = re.compile(r"\[[^\]]*\]|\S+")  # cells between blanks; a time in brackets is one
SHOWN = 3  # first lines of an unknown file
Column = tuple[int, str | None]  # its place and its unit


def read_table(source: Path, lines: list[str], columns: Sequence[str] | None) -> tuple[Measured, bool]:
    """The messages of a table, and whether they are numbered."""
    rows = [(n, line) for n, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith("#")]
    if not rows:
        raise ValueError(f"{source}: empty; expected a line of column names, e.g. sent_ms,received_ms")
    mark = _mark(rows[0][1] if columns is None else rows[-1][1])
    notes: tuple[str, ...] = ()
    if columns is not None:
        where, names = f"{source}: columns", [str(name) for name in columns]
    elif _is_value(_cells(rows[0][1], mark)[0]):
        where, names = f"{source}", _guessed(source, [_cells(line, mark) for _, line in rows[:50]], lines)
        notes = (f"no line of column names: read as {', '.join(name for name in names if name)}",)
    else:
        where, names = f"{source}, line {rows[0][0]}", _cells(_closed(rows[0][1]), mark)
        rows = rows[1:]
    places = kinds(where, names, first_lines(lines))
    texts: dict[str, list[str]] = {name: [] for name in places}
    for n, line in rows:
        cells = _cells(line, mark)
        if len(cells) > len(names) and columns is None and not notes:
            raise ValueError(f"{source}, line {n}: {len(cells)} cells, but the first line names {len(names)} columns")
        if mark is None and len(cells) <= max(place for place, _ in places.values()):
            raise ValueError(
                f"{source}, line {n}: {len(cells)} cells, expected {len(names)}; write nan where nothing was received"
            )
        for name, (i, _) in places.items():
            texts[name].append(cells[i] if i < len(cells) else "")
    if len(rows) < 2:
        raise ValueError(f"{source}: {counted(len(rows), 'message')}; expected at least two")
    numbers = [n for n, _ in rows]
    return messages(
        source, "line", numbers, {name: (texts[name], names[i], unit) for name, (i, unit) in places.items()}, notes
    )


def messages(
    source: Path,
    what: str,
    numbers: Sequence[int],
    columns: Mapping[str, tuple[Sequence[str], str, str | None]],
    notes: tuple[str, ...] = (),
) -> tuple[Measured, bool]:
    """The messages of columns by kind, each (texts, its name, its unit); `numbers` are those of the lines, for errors."""
    values = {kind: column(source, what, numbers, kind, *given) for kind, given in columns.items()}
    sent = values.get("sent")
    if sent is not None and "received" in values:
        for n, late in zip(numbers, (values["received"] - sent).tolist(), strict=True):
            possible(f"{source}, {what} {n}", late)
        delay, more = one_clock(str(source), sent, values["received"])
        notes = (*notes, *more)
    else:
        delay = values["delay"]
        for n, late in zip(numbers, delay.tolist(), strict=True):
            possible(f"{source}, {what} {n}", late)
    if "seq" not in values:
        order = np.arange(len(delay)) if sent is None else np.argsort(sent, kind="stable")
        return one_session(delay[order], None if sent is None else sent[order], *notes), False
    seq, parts = values["seq"].astype(np.int64), []
    for rows in numbered_sessions(seq, sent):
        order = rows[np.argsort(seq[rows], kind="stable")]
        parts.append(by_number(source, seq[order], delay[order], None if sent is None else sent[order]))
    made = joined(parts)
    return made._replace(notes=(*notes, *made.notes)), True


def column(
    source: Path, what: str, numbers: Sequence[int], kind: str, texts: Sequence[str], name: str, unit: str | None
) -> Floats:
    """One column as numbers: times and delays in milliseconds, NaN for never received."""
    out, dates = np.empty(len(texts)), 0
    for i, text in enumerate(texts):
        if text.strip('"').lower() in LOST and kind in ("received", "delay"):
            out[i] = np.nan
            continue
        where = f"{source}, {what} {numbers[i]}"
        try:
            out[i], date = number_or_date(text)
        except ValueError:
            raise ValueError(
                f"{where}: {kind} is {text!r}, expected a number{'' if kind in ('sent', 'seq') else ', or nothing if lost'}"
            ) from None
        dates += date
        if kind == "delay" and out[i] < 0:
            raise ValueError(f"{where}: a delay of {out[i]:.6g}, expected a number ≥ 0")
        if kind == "seq" and (out[i] < 0 or out[i] != out[i] // 1 or out[i] >= 1e15):
            raise ValueError(f"{where}: seq is {text}, expected a whole number ≥ 0, of at most 15 digits")
    if kind == "seq" or dates:
        return out
    unit = unit or (calendar_unit(out) if kind != "delay" else None)
    if unit is None and np.isfinite(out).any():
        raise ValueError(f"{source}: column {name!r} has no unit; name it {name}_s, {name}_ms, {name}_us or {name}_ns")
    return np.asarray(out * UNITS[unit or "ms"])


def kinds(where: str, names: Sequence[str], shown: str = "") -> dict[str, Column]:
    """Which of the columns are sent, received, delay and seq: their places and units."""
    found: dict[str, Column] = {}
    clocks: dict[str, Column] = {}
    for i, given in enumerate(names):
        match = HEADER.fullmatch(given.strip('"').lower())
        if match is None:
            continue
        if match["name"] in CLOCK:
            clocks.setdefault(match["name"], (i, match["unit"]))
        kind = next((kind for kind, words in NAMES.items() if match["name"] in words), None)
        if kind is None:
            continue
        if kind in found and kind != "seq":
            raise ValueError(f"{where}: {given!r} is a second column of the kind {kind!r}")
        found.setdefault(kind, (i, None if kind == "seq" else match["unit"]))
    clock = next((clocks[name] for name in CLOCK if name in clocks), None)
    if clock is not None and "sent" in found and "received" not in found:
        found["received"] = clock
    elif clock is not None and "delay" in found and "sent" not in found:
        found["sent"] = clock
    if "delay" not in found and not {"sent", "received"} <= set(found):
        raise ValueError(
            f"{where}: the columns are {list(names)[:12]}; expected sent_ms and received_ms, or delay_ms (also _s, _us, _ns).{shown}"
        )
    return {kind: place for kind, place in found.items() if kind != "delay" or not {"sent", "received"} <= set(found)}


def first_lines(lines: Sequence[str]) -> str:
    """The first lines of a file of unknown form, and the forms that are accepted."""
    begin = "".join(f"\n    {line[:100]}" for line in lines[:SHOWN])
    return f" The file begins:{begin}\n{FORMS}"


def _mark(line: str) -> str | None:
    """What stands between the cells; None: blanks."""
    mark = max(",;\t", key=line.count)
    return mark if mark in line else None


def _cells(line: str, mark: str | None) -> list[str]:
    return BLANKS.findall(line) if mark is None else [cell.strip() for cell in line.split(mark)]


def _closed(head: str) -> str:
    """A unit in brackets belongs to the name before it."""
    return re.sub(r"\s+(?=[(\[](?:s|ms|us|µs|ns)[)\]])", "", head)


def _is_value(cell: str) -> bool:
    try:
        number_or_date(cell)
    except ValueError:
        return False
    return True


def _guessed(source: Path, rows: list[list[str]], lines: Sequence[str]) -> list[str]:
    """Names for the columns of a table without any, or a refusal."""
    width = min(len(row) for row in rows)
    if max(len(row) for row in rows) == 1:
        return ["delay_ms"]
    if width >= 2:
        columns = []
        for i in range(2):
            read = [number_or_date(row[i]) for row in rows if row[i].strip('"').lower() not in LOST]
            dates = bool(read) and all(date for _, date in read)
            columns.append("date" if dates else calendar_unit(np.array([value for value, _ in read])))
        first, second = columns
        if first is not None and first == second:
            unit = "" if first == "date" else f"_{first}"
            return [f"sent{unit}", f"received{unit}", *[""] * (max(len(row) for row in rows) - 2)]
    raise ValueError(
        f'{source}: a table without column names; say what they are: columns=["sent_ms", "received_ms", ...].{first_lines(lines)}'
    )
