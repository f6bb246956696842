"""What ping and fping print. A ping goes there and back: its delay is that of an observation and of the action that answers it.

**ping** of Linux (iputils), macOS and BusyBox: lines with `icmp_seq=7` (or `seq=7`) and `time=12.3 ms`. A number that is missing, is
answered by an error, or lies beyond the last answer (the closing line says how many were sent), was lost; of doubled answers the
first counts. Numbers begin again after 65535.

**ping of Windows**, in any language: `Reply from ... time=12ms`; every other line from the heading (or the first reply) to the next blank
line is a loss. **fping** (`-l`, `-c`: lines with
`: [7], ... 12.3 ms` or `timed out`; `-C`: a closing line of delays), each host a session.

**Sessions.** A line `PING ...` or `Pinging ...`, a line after the closing one, or the first number again (not marked DUP!) begins one.

**When messages were sent.** With a time at the beginning of each line (`ping -D`, `fping -D`, or any date in ISO form, with or without
brackets) that is when the answer came. Otherwise they were sent at the interval that follows from the closing line, or each
second; Windows waits four seconds for an answer that does not come.

**Long lines.** Each pattern takes at most the square of a line's length, and of a line that is no list of delays the first 1,000 characters are read: no ping
prints more, and a damaged file must not take for ever.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from oldlight.arrays import Floats, Ints
from oldlight.traces.measured import UNITS, Measured, by_number, counted, joined, number_or_date, one_session, possible

ANSWER = re.compile(r"(?:icmp_)?seq[= ](?P<seq>\d{1,15})\b.*?\b\w+[=<](?P<time>[\d.,]+) ?(?P<unit>ms|us|s)\b")
SILENCE = re.compile(
    r"(?:(?:no answer yet for|request timeout for)[\s:]*|from .*?)(?:icmp_)?seq[= ](?P<seq>\d{1,15})\b", re.IGNORECASE
)
CLOSING = re.compile(  # in any language: so many sent, so many received, a percentage, perhaps the time
    r"\b(?P<sent>\d{1,15}) [^\W\d][^,\d]*, \d{1,15}\b[^,\d]*,[^%]*%"
)
CLOSING_TIME = re.compile(r"\b(\d{1,15}) ?ms\s*$")
WINDOWS = re.compile(r":\s+(?:\w+[=:] ?\d+ )?\w+[=<](?P<time>[\d.,]+) ?(?P<unit>ms|s)\b")
WINDOWS_HEADING = re.compile(r"^(?=.*:\s*$).*\bping\b.* \d{1,15} \w|^Pinging ", re.IGNORECASE)
WINDOWS_CLOSING = re.compile(r"= ?(?P<sent>\d{1,15})[,，] ?\S+ = ?(?P<came>\d{1,15})[,，] ?\S+ = ?(?P<gone>\d{1,15})")
FPING = re.compile(
    r"(?<!\S)(?P<host>\S+)\s*:\s*\[(?P<seq>\d{1,15})\],\s*(?:(?:\d+ bytes,\s*)?(?P<time>[\d.]+) ?(?P<unit>ms)\b|(?P<lost>timed out))"
)
FPING_CLOSING = re.compile(r"^\s*(?P<host>\S+)\s*:(?P<delays>(?:\s+(?:[\d.]+|-)){2,})\s*$")
STAMP = re.compile(
    r"^\s*(?:\[(?P<inside>[^\]]+)\]|(?P<date>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?))\s+"
)
LONGEST = 1000  # characters of a line
WRAP = 65536  # ping's numbers begin again after this many
SECOND, PATIENCE = 1000.0, 4000.0  # milliseconds between messages, and what Windows waits for an answer


@dataclass
class _Session:
    """Lines of one session: numbers, delays (NaN: lost), when each answer came (NaN: not said), and the closing line's figures.
    listing: of Windows, the lines are still about messages."""

    windows: bool = False
    listing: bool = False
    seqs: list[int] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    came: list[float] = field(default_factory=list)
    total: int | None = None
    took: str | None = None
    closed: bool = False
    turns: int = 0
    last: int = -1

    def add(self, number: int, delay: float, came: float) -> None:
        number += self.turns * WRAP
        if number < self.last - WRAP // 2:
            self.turns, number = self.turns + 1, number + WRAP
        elif self.seqs and number > self.last + WRAP // 2:  # an answer from before the numbers began again
            number -= WRAP
        self.last = max(number, self.last)
        self.seqs.append(number)
        self.delays.append(delay)
        self.came.append(came)

    def begins_again(self, number: int, line: str) -> bool:
        return bool(self.seqs) and number == min(self.seqs) <= 1 and self.last > number and "DUP!" not in line


def looks_like_ping(lines: list[str]) -> bool:
    return any(
        line.startswith("PING ") or WINDOWS_HEADING.search(line) or ANSWER.search(line) or FPING.search(line)
        or FPING_CLOSING.match(line) or WINDOWS.search(line)
        for line in (line[:LONGEST] for line in lines[:20])
    )  # fmt: skip


def read_ping(source: Path, lines: list[str]) -> Measured:
    """Every session of what ping or fping printed."""
    sessions: list[_Session] = []
    hosts: dict[str, _Session] = {}
    closings: list[tuple[str, str]] = []
    for n, line in enumerate(lines, 1):
        where = f"{source}, line {n}"
        closing, line = FPING_CLOSING.match(line), line[:LONGEST]
        stamp, fping = STAMP.match(line), FPING.search(line)
        came = _stamp(stamp)
        if fping:
            host = hosts.setdefault(fping["host"], _Session())
            host.add(int(fping["seq"]), _delay(where, fping) if fping["time"] else np.nan, came)
        elif closing:
            closings.append((closing["host"], closing["delays"]))
        else:
            _read_line(where, line if stamp is None else line[stamp.end() :], came, sessions)
    if not hosts:
        for name, delays in closings:
            host = hosts.setdefault(name, _Session())
            for k, delay in enumerate(delays.split()):
                host.add(k, np.nan if delay == "-" else float(delay), np.nan)
    parts = [made for session in (*sessions, *hosts.values()) if (made := _made(source, session)) is not None]
    count = sum(len(part.delay_ms) for part in parts)
    if count < 2:
        raise ValueError(
            f"{source}: ping's output with {counted(count, 'message')}; expected at least two lines with icmp_seq="
        )
    return joined(parts)


def _read_line(where: str, line: str, came: float, sessions: list[_Session]) -> None:
    """One line of ping's: of the last session, or of a new one."""
    windows = WINDOWS_HEADING.search(line) is not None
    if windows or line.startswith("PING "):
        sessions.append(_Session(windows, windows))
        return
    if not line.strip():
        if sessions and sessions[-1].seqs:
            sessions[-1].listing = False
        return
    answer, silence = ANSWER.search(line), SILENCE.search(line)
    closing = CLOSING.search(line) or _windows_closing(line)
    reply = None if answer or silence else WINDOWS.search(line)
    lost = not (answer or silence or closing or reply) and bool(sessions) and sessions[-1].listing
    if not (answer or silence or closing or reply or lost):
        return
    numbered = answer or silence
    if (
        not sessions
        or (sessions[-1].closed and not closing)
        or (numbered and sessions[-1].begins_again(int(numbered["seq"]), line))
    ):
        sessions.append(_Session(bool(reply), bool(reply)))
    session = sessions[-1]
    if closing:
        session.total, session.closed = int(closing["sent"]), True
        took = CLOSING_TIME.search(line, closing.end()) if closing.re is CLOSING else None
        session.took = None if took is None else took[1]
    elif numbered:
        session.add(int(numbered["seq"]), _delay(where, answer) if answer else np.nan, came if answer else np.nan)
    else:
        session.windows = session.listing = True
        session.add(len(session.seqs), _delay(where, reply) if reply else np.nan, came if reply else np.nan)


def _windows_closing(line: str) -> re.Match[str] | None:
    """Sent, received and lost in any language: they add up."""
    found = WINDOWS_CLOSING.search(line)
    return found if found and int(found["sent"]) == int(found["came"]) + int(found["gone"]) else None


def _stamp(stamp: re.Match[str] | None) -> float:
    """The milliseconds at the beginning of a line: seconds since 1970, or a date."""
    if stamp is None:
        return np.nan
    try:
        value, date = number_or_date(stamp["inside"] or stamp["date"])
    except ValueError:
        return np.nan
    return value if date else 1e3 * value


def _delay(where: str, found: re.Match[str]) -> float:
    try:
        delay = float(found["time"].replace(",", ".")) * UNITS[found["unit"].lower()]
    except ValueError:
        raise ValueError(f"{where}: time={found['time']!r}, expected a number of milliseconds") from None
    possible(where, delay)
    return delay


def _made(source: Path, session: _Session) -> Measured | None:
    """The messages of one session; None where nothing says that there were any."""
    if not session.seqs:
        if not session.total:
            return None
        session.seqs, session.delays, session.came = [1], [np.nan], [np.nan]
    order = np.argsort(session.seqs, kind="stable")
    seq = np.array(session.seqs, dtype=np.int64)[order]
    delay, at = np.array(session.delays)[order], np.array(session.came)[order]
    begin = min(int(seq[0]), 1)  # Linux counts from 1, others from 0
    if session.total is not None and session.total > seq[-1] - begin:  # the first and the last may have had no answer
        seq = np.concatenate([[begin], seq, [begin + session.total - 1]])
        delay, at = (np.concatenate([[np.nan], x, [np.nan]]) for x in (delay, at))
    measured = by_number(source, seq, delay, None)
    numbers = np.arange(len(measured.delay_ms), dtype=np.int64)
    stamped = np.isfinite(at - delay)
    if stamped.sum() >= 2:
        which, first = np.unique(seq[stamped] - seq[0], return_index=True)
        return measured._replace(sent_ms=_along(numbers, which, (at - delay)[stamped][first]))
    if session.windows:
        waits = np.where(np.isnan(measured.delay_ms), PATIENCE, np.maximum(measured.delay_ms, SECOND))
        sent = np.concatenate([[0.0], np.cumsum(waits[:-1])])
        return one_session(
            measured.delay_ms,
            sent,
            "sent every second, or four seconds after a message without an answer, as Windows does",
        )
    if session.took is not None and session.total is not None and session.total > 1:
        interval = float(session.took) / (session.total - 1)
        note = f"sent every {interval:.6g} ms, by the closing line"
    else:
        interval, note = (
            SECOND,
            "sent every second, ping's default: neither the lines nor a closing line say when",
        )
    return one_session(measured.delay_ms, np.asarray(numbers * interval, dtype=np.float64), note)


def _along(numbers: Ints, known: Ints, times: Floats) -> Floats:
    """Times of all numbers: between known ones on a line, outside at the mean interval. Never backwards."""
    inside = np.interp(numbers, known, times)
    interval = max((times[-1] - times[0]) / max(known[-1] - known[0], 1), 0.0)
    after, before = np.maximum(numbers - known[-1], 0), np.maximum(known[0] - numbers, 0)
    return np.asarray(np.maximum.accumulate(inside + interval * after - interval * before))
