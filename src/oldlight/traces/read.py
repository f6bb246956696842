"""Recordings of links as files: which format it is, and what all of them share.

| format | recognised by | where |
|---|---|---|
| ping of Linux, macOS, BusyBox and Windows; fping | `icmp_seq=`, `seq=`, `Reply from`, `: [7], ...` | `oldlight.traces.read_ping` |
| irtt (`irtt client -o`), JSON lines as ROS 2 tools write them, a JSON list | a first `{` or `[{` | `oldlight.traces.read_json` |
| tables: commas, semicolons, tabs or blanks; with or without a line of names | everything else | `oldlight.traces.read_table` |

A delay of more than a year is a mistake, and refused. What is assumed is a note. What every format shares (sessions, holes in the
sending times, two clocks) is defined in `oldlight.traces.measured`. Nothing received is a recording too: all is lost. Files are in UTF-8 or, as
PowerShell writes them, UTF-16; what ping printed on Windows may be in its older code.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from oldlight import checks, files
from oldlight.traces.measured import YEAR, Holes, Measured, without_holes
from oldlight.traces.read_json import looks_like_json, read_json
from oldlight.traces.read_ping import looks_like_ping, read_ping
from oldlight.traces.read_table import read_table


def read_file(path: str | os.PathLike[str], *, holes: Holes = "lost", columns: Sequence[str] | None = None) -> Measured:
    """The messages of a recording; what cannot be read is named with its line. See `oldlight.traces.read_trace`."""
    if isinstance(holes, str):
        checks.one_of("holes", holes, ("lost", "stop"))
    else:
        checks.positive("holes", holes)
    source = Path(path)
    lines = files.read_text(source, other=lambda text: looks_like_ping(text.splitlines())).splitlines()
    if columns is None and looks_like_ping(lines):
        found, numbered = read_ping(source, lines), True
    elif columns is None and looks_like_json(lines):
        found, numbered = read_json(source, lines)
    else:
        found, numbered = read_table(source, lines, columns)
    if len(found.delay_ms) < 2:
        raise ValueError(f"{source}: one message, in several lines; expected at least two")
    return found if numbered else without_holes(source, found, holes)


__all__ = ["YEAR", "Measured", "read_file"]
