"""Recordings in JSON: irtt's output, JSON lines as ROS 2 tools write them, and a list of such objects.

**irtt.** `irtt client -o file.json`: `round_trips`, each with `seqno`, `lost`, `delay.rtt` and `timestamps.client.send`, in nanoseconds.
The delay is that of the round trip.

**JSON lines.** One object per message. Its fields are looked for by the names of a table's columns, in nested objects too
(`payload.seqnum`, `payload.src_timestamp_ns`); a time in two parts (`stamp.sec` and `stamp.nanosec`) is put together. Beside a sending
time, `timestamp` is when the message arrived.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from oldlight import files
from oldlight.traces.measured import Measured, by_number, counted, one_session, possible
from oldlight.traces.read_table import first_lines, kinds, messages

SECONDS, NANOSECONDS = ("sec", "secs"), ("nanosec", "nsec", "nsecs", "nanosecs")


def looks_like_json(lines: list[str]) -> bool:
    first = next((line.strip() for line in lines if line.strip()), "")
    return first.startswith(("{", "[{")) or first == "["


def read_json(source: Path, lines: list[str]) -> tuple[Measured, bool]:
    """The messages, and whether they are numbered."""
    try:
        whole = files.json_of("\n".join(lines))
    except ValueError:
        whole = None
    if isinstance(whole, dict) and isinstance(whole.get("round_trips"), list):
        return _irtt(source, whole["round_trips"]), True
    if isinstance(whole, list):
        what, numbered = "entry", list(enumerate(whole, 1))
    else:
        what, numbered = "line", [(n, _object(source, n, line)) for n, line in enumerate(lines, 1) if line.strip()]
    for n, one in numbered:
        if not isinstance(one, dict):
            raise ValueError(f"{source}, {what} {n}: expected an object {{...}} for each message.{first_lines(lines)}")
    if len(numbered) < 2:
        raise ValueError(f"{source}: {counted(len(numbered), 'message')}; expected at least two.{first_lines(lines)}")
    flat = [(n, flattened(one)) for n, one in numbered]
    names = list(dict.fromkeys(key for _, one in flat[:100] for key in one))
    places = kinds(f"{source}, {what} {flat[0][0]}", [name.rpartition(".")[2] for name in names], first_lines(lines))
    columns = {}
    for kind, (i, unit) in places.items():
        texts = [_text(one.get(names[i])) for _, one in flat]
        columns[kind] = (texts, names[i], unit)
    return messages(source, what, [n for n, _ in flat], columns)


def _object(source: Path, n: int, line: str) -> Any:
    try:
        return files.json_of(line)
    except ValueError as error:
        raise ValueError(f"{source}, line {n}: not JSON ({str(error)[:80]})") from None


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def flattened(one: dict[str, Any], before: str = "") -> dict[str, Any]:
    """Fields of nested objects by their path; {sec, nanosec} is one time in nanoseconds, as a field of its own."""
    out: dict[str, Any] = {}
    for key, value in one.items():
        if isinstance(value, dict):
            whole = next((value[name] for name in SECONDS if name in value), None)
            part = next((value[name] for name in NANOSECONDS if name in value), None)
            if isinstance(whole, int) and isinstance(part, int):
                out[f"{before}{key}_ns"] = whole * 10**9 + part
            else:
                out |= flattened(value, f"{before}{key}.")
        else:
            out[f"{before}{key}"] = value
    return out


def _irtt(source: Path, trips: list[Any]) -> Measured:
    seq, delay, sent = [], [], []
    for n, trip in enumerate(trips, 1):
        try:
            number, lost = int(trip["seqno"]), str(trip["lost"]).lower() != "false"
            begun = trip["timestamps"]["client"]["send"]
            when = float(begun["wall"] if "wall" in begun else begun["monotonic"]) * 1e-6
            late = np.nan if lost else float(trip["delay"]["rtt"]) * 1e-6
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{source}, round trip {n}: expected seqno, lost, delay.rtt and timestamps.client.send as irtt writes them "
                f"({type(error).__name__}: {str(error)[:60]})"
            ) from None
        if not np.isfinite(when) or late < 0:
            raise ValueError(
                f"{source}, round trip {n}: sent at {when} ms with a delay of {late} ms, expected numbers ≥ 0"
            )
        possible(f"{source}, round trip {n}", late)
        seq.append(number)
        delay.append(late)
        sent.append(when)
    if len(seq) < 2:
        raise ValueError(f"{source}: {len(seq)} round trips; expected at least two")
    order = np.argsort(seq, kind="stable")
    found = by_number(source, np.array(seq, dtype=np.int64)[order], np.array(delay)[order], np.array(sent)[order])
    return one_session(found.delay_ms, found.sent_ms, "round trips: right for a loop that closes over the link")
