"""Files of measured delays: CSV, or what `ping` prints.

**CSV.** The first line names the columns; others are left alone. Commas, semicolons or tabs; lines that begin with # are skipped.

    sent_ms, received_ms     when a message was sent and received, by one clock
    delay_ms                 instead of received (or alone, in the order of sending): how long it took
    seq                      its number, if messages that were lost have no line: a number that is missing was lost

`sent` may also be called send, tx; `received` recv, rx, arrived; `delay` latency, rtt; `seq` sequence, id, index. Times carry their
unit in the name: _s, _ms, _us or _ns, also as "sent (ms)". An empty cell, or lost, nan, timeout, none, -, means: never received.

A delay of more than a year is a mistake, and refused.

**ping.** Linux (iputils), macOS and busybox: lines with `icmp_seq=7` (or `seq=7`) and `time=12.3 ms`. A number that is missing, is
answered by an error, or lies beyond the last answer (the closing line says how many were sent), was lost; of doubled answers the
first counts. With `ping -D` each line has the time when the answer came; otherwise messages were sent at the interval that
follows from the closing line, or each second. A ping goes there and back: its delay is that of an observation and of the action
that answers it, together.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oldlight import files

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
UNITS = {"s": 1e3, "ms": 1.0, "us": 1e-3, "µs": 1e-3, "ns": 1e-6}  # in milliseconds
NAMES = {
    "sent": ("sent", "send", "tx", "t_sent", "time_sent", "send_time", "sent_time", "sent_at"),
    "received": ("received", "recv", "rx", "arrived", "t_received", "recv_time", "receive_time", "received_at"),
    "delay": ("delay", "latency", "rtt"),
    "seq": ("seq", "sequence", "id", "index"),
}
LOST = {"", "lost", "nan", "timeout", "none", "null", "na", "-", "inf"}
HEADER = re.compile(r"(?P<name>[a-z_]+?)[ _]*[(\[]?(?P<unit>s|ms|us|µs|ns)?[)\]]?")
ANSWER = re.compile(r"(?:icmp_)?seq[= ](?P<seq>\d{1,15})\b.*?\btime[=<](?P<time>[\d.]+) ?(?P<unit>ms|us|s)\b")
SILENCE = re.compile(
    r"(?:no answer yet for|request timeout for|from .*?)\s*:?\s*(?:icmp_)?seq[= ](?P<seq>\d{1,15})\b", re.IGNORECASE
)
STAMP = re.compile(r"\[(?P<at>\d+\.\d+)\]")
CLOSING = re.compile(r"\b(?P<sent>\d{1,15}) packets transmitted.*?(?:time (?P<time>\d{1,15}) ?ms)?\s*$")
YEAR = 365.25 * 24 * 3600e3  # milliseconds; no message is later
WRAP = 65536  # ping's numbers begin again after this many


class Measured(NamedTuple):
    """What a file holds, in the order of sending: delays in milliseconds (NaN: lost), when each was sent if that is known, and
    what was assumed."""

    delay_ms: Floats
    sent_ms: Floats | None
    notes: tuple[str, ...]


def read_file(path: str | os.PathLike[str]) -> Measured:
    """The messages of a CSV file or of ping's output; what cannot be read is named with its line."""
    source = Path(path)
    lines = files.read_text(source).splitlines()
    looks_like_ping = any(line.startswith("PING ") or ANSWER.search(line) for line in lines[:20])
    found = _read_ping(source, lines) if looks_like_ping else _read_csv(source, lines)
    if len(found.delay_ms) < 2:
        raise ValueError(f"{source}: one message, in several lines; expected at least two")
    if np.isnan(found.delay_ms).all():
        raise ValueError(f"{source}: of {len(found.delay_ms)} messages none was received; there is no delay to measure")
    return found


# -- CSV --------------------------------------------------------------------------------------------------------------


def _read_csv(source: Path, lines: list[str]) -> Measured:
    rows = [(n, line) for n, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith("#")]
    if not rows:
        raise ValueError(f"{source}: empty; expected a line of column names, e.g. sent_ms,received_ms")
    at, head = rows[0]
    mark = max(",;\t", key=head.count)
    columns = _columns(f"{source}, line {at}", [cell.strip() for cell in head.split(mark)])
    table: dict[str, list[float]] = {name: [] for name in columns}
    for n, line in rows[1:]:
        cells = [cell.strip() for cell in line.split(mark)]
        where = f"{source}, line {n}"
        if len(cells) > head.count(mark) + 1:
            raise ValueError(f"{where}: {len(cells)} cells, but the first line names {head.count(mark) + 1} columns")
        for name, (i, scale) in columns.items():
            table[name].append(_cell(where, name, cells[i] if i < len(cells) else "", scale))
        if "received" in table and table["received"][-1] < table["sent"][-1]:
            late = table["sent"][-1] - table["received"][-1]
            raise ValueError(f"{where}: received {late:.6g} ms before it was sent; both times must be of one clock")
        _possible(where, table["received"][-1] - table["sent"][-1] if "received" in table else table["delay"][-1])
    if len(rows) < 3:
        raise ValueError(f"{source}: {len(rows) - 1} messages; expected at least two")
    values = {name: np.array(column) for name, column in table.items()}
    sent = values.get("sent")
    delay = values["delay"] if sent is None or "received" not in values else values["received"] - sent
    by = values.get("seq", np.arange(len(delay)) if sent is None else sent)
    order = np.argsort(by, kind="stable")
    delay, sent = delay[order], None if sent is None else sent[order]
    if "seq" in values:
        return _by_number(source, values["seq"][order].astype(np.int64), delay, sent)
    return Measured(delay, sent, ())


def _columns(where: str, names: list[str]) -> dict[str, tuple[int, float]]:
    """Of each column that is known: where it stands, and its unit in milliseconds."""
    found: dict[str, tuple[int, float]] = {}
    for i, given in enumerate(names):
        match = HEADER.fullmatch(given.strip('"').lower())
        for name, words in NAMES.items():
            if given.strip('"').lower() in words and name == "seq":
                found[name] = (i, 1.0)
            elif match and match["name"] in words and name != "seq":
                if match["unit"] is None:
                    raise ValueError(
                        f"{where}: column {given!r} has no unit; name it {given}_s, {given}_ms, {given}_us or {given}_ns"
                    )
                if name in found:
                    raise ValueError(f"{where}: {given!r} is a second column of the kind {name!r}")
                found[name] = (i, UNITS[match["unit"]])
    if "delay" not in found and not {"sent", "received"} <= set(found):
        raise ValueError(
            f"{where}: the columns are {names}; expected sent_ms and received_ms, or delay_ms (also _s, _us, _ns)"
        )
    return {name: place for name, place in found.items() if name != "delay" or not {"sent", "received"} <= set(found)}


def _cell(where: str, name: str, text: str, scale: float) -> float:
    if text.strip('"').lower() in LOST and name in ("received", "delay"):
        return float("nan")
    try:
        value = float(text.strip('"'))
        if not np.isfinite(value):
            raise ValueError
    except ValueError:
        raise ValueError(
            f"{where}: {name} is {text!r}, expected a number{'' if name in ('sent', 'seq') else ', or nothing if lost'}"
        ) from None
    if name == "delay" and value < 0:
        raise ValueError(f"{where}: a delay of {value:.6g}, expected a number ≥ 0")
    if name == "seq" and (value < 0 or value != value // 1 or value >= 1e15):
        raise ValueError(f"{where}: seq is {text}, expected a whole number ≥ 0, of at most 15 digits")
    return value * scale


def _possible(where: str, delay: float) -> None:
    if delay > YEAR:
        raise ValueError(
            f"{where}: a delay of {delay:.6g} ms, more than a year; is the unit right? A lost message has an empty cell"
        )


def _by_number(source: Path, seq: Ints, delay: Floats, sent: Floats | None) -> Measured:
    """One entry per number from the first to the last; numbers without a line are lost, of doubled ones the first to come counts."""
    if seq[-1] - seq[0] > 100 * len(seq) + 1000:
        raise ValueError(f"{source}: messages are numbered {seq[0]}..{seq[-1]}, but only {len(seq)} of them are there")
    number = seq - seq[0]
    full = np.full(int(number[-1]) + 1, np.nan)
    np.fmin.at(full, number, delay)
    if sent is None:
        return Measured(full, None, ())
    unique, which = np.unique(number, return_index=True)
    return Measured(full, np.interp(np.arange(len(full)), unique, sent[which]), ())


# -- ping -------------------------------------------------------------------------------------------------------------


def _read_ping(source: Path, lines: list[str]) -> Measured:
    seqs: list[int] = []
    delays: list[float] = []
    came: list[float] = []  # milliseconds; NaN where the line has no time
    total, took, turns, last = None, None, 0, -1
    for n, line in enumerate(lines, 1):
        answer, silence, closing = ANSWER.search(line), SILENCE.search(line), CLOSING.search(line)
        if closing:
            total, took = int(closing["sent"]), closing["time"]
        elif answer or silence:
            found = answer or silence
            assert found is not None
            number = int(found["seq"]) + turns * WRAP
            if number < last - WRAP // 2:
                turns, number = turns + 1, number + WRAP
            elif seqs and number > last + WRAP // 2:  # an answer from before the numbers began again
                number -= WRAP
            last = max(number, last)
            stamp = STAMP.match(line)
            seqs.append(number)
            try:
                delays.append(float(answer["time"]) * UNITS[answer["unit"]] if answer else np.nan)
            except ValueError:
                raise ValueError(
                    f"{source}, line {n}: time={found['time']!r}, expected a number of milliseconds"
                ) from None
            _possible(f"{source}, line {n}", delays[-1])
            came.append(1e3 * float(stamp["at"]) if stamp and answer else np.nan)
    if len(seqs) < 2:
        raise ValueError(
            f"{source}: ping's output with {len(seqs)} messages; expected at least two lines with icmp_seq="
        )
    order = np.argsort(seqs, kind="stable")
    seq, delay, at = np.array(seqs, dtype=np.int64)[order], np.array(delays)[order], np.array(came)[order]
    begin = min(int(seq[0]), 1)  # Linux counts from 1, others from 0
    if total is not None and total > seq[-1] - begin:  # the first and the last may have had no answer
        seq = np.concatenate([[begin], seq, [begin + total - 1]])
        delay, at = (np.concatenate([[np.nan], x, [np.nan]]) for x in (delay, at))
    measured = _by_number(source, seq, delay, None)
    numbers = np.arange(len(measured.delay_ms), dtype=np.int64)
    stamped = np.isfinite(at - delay)
    if stamped.sum() >= 2:
        which, first = np.unique(seq[stamped] - seq[0], return_index=True)
        return measured._replace(sent_ms=_along(numbers, which, (at - delay)[stamped][first]))
    if took is not None and total is not None and total > 1:
        interval = float(took) / (total - 1)
        notes = (f"sent every {interval:.6g} ms, by the closing line",)
    else:
        interval, notes = (
            1000.0,
            ("sent every second, ping's default: there is neither a closing line nor a time on each line",),
        )
    return measured._replace(sent_ms=np.asarray(numbers * interval, dtype=np.float64), notes=notes)


def _along(numbers: Ints, known: Ints, times: Floats) -> Floats:
    """Times of all numbers: between known ones on a line, outside at the mean interval."""
    inside = np.interp(numbers, known, times)
    interval = (times[-1] - times[0]) / max(known[-1] - known[0], 1)
    after, before = np.maximum(numbers - known[-1], 0), np.maximum(known[0] - numbers, 0)
    return np.asarray(inside + interval * after - interval * before)
