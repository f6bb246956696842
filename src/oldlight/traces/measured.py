"""What every reader of recordings makes: messages in the order of sending, and what was assumed on the way.

**Sessions.** A file may hold several recordings one after the other (ping started ten times). Each is a session: time does not
run on between them, and numbers begin again.

**Holes.** A log of received messages without numbers shows a loss only as a hole in the sending times. Where messages are sent at
regular intervals (at most one gap in ten is longer than 1.5 times the median) such a gap is a hole, and round(gap/median) − 1
messages are missing in it. `holes` says what they are: "lost" (the default), "stop" (nothing was sent or logged: a new session
begins), or a number of milliseconds, the longest hole that counts as lost. Either way it is said.

**Two clocks.** Where messages seem to arrive before they were sent, the clocks differ. The smallest difference that keeps every
delay ≥ 0 is taken out, and it is said: real delays are longer by what the quickest message took.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oldlight.arrays import Floats, Ints

Holes = str | float
UNITS = {"s": 1e3, "ms": 1.0, "us": 1e-3, "µs": 1e-3, "ns": 1e-6}  # in milliseconds
LOST = {"", "lost", "nan", "timeout", "none", "null", "na", "-", "*", "inf"}
YEAR = 365.25 * 24 * 3600e3  # milliseconds; no message is later
EPOCH = (978307200e3, 4102444800e3)  # 2001 and 2100 in milliseconds: a time in between is one of the calendar
HOLE = 1.5  # times the median interval
REGULAR = 0.1  # at most this share of gaps may be holes
ENOUGH = 8  # gaps, to tell
SLOW = 60e3  # milliseconds; a link whose quickest message takes longer is doubted


class Measured(NamedTuple):
    """What a file holds, in the order of sending: delays in milliseconds (NaN: lost), when each was sent if that is known, the
    number of its session, and what was assumed."""

    delay_ms: Floats
    sent_ms: Floats | None
    session: Ints
    notes: tuple[str, ...]


def one_session(delay: Floats, sent: Floats | None, *notes: str) -> Measured:
    return Measured(delay, sent, np.zeros(len(delay), dtype=np.int64), notes)


def joined(parts: list[Measured]) -> Measured:
    """Several recordings as the sessions of one; a note that all of them have is said once."""
    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    first, session = 0, []
    for part in parts:
        session.append(part.session + first)
        first += int(part.session.max(initial=-1)) + 1
    known = [part.sent_ms for part in parts if part.sent_ms is not None]
    sent = np.concatenate(known) if len(known) == len(parts) else None
    if len(parts) > 1:
        notes = (f"{len(parts)} sessions, kept apart", *notes)
    return Measured(np.concatenate([part.delay_ms for part in parts]), sent, np.concatenate(session), notes)


def by_number(source: object, seq: Ints, delay: Floats, sent: Floats | None) -> Measured:
    """One entry per number from the first to the last; numbers without a line are lost, of doubled ones the first to come counts."""
    if seq[-1] - seq[0] > 100 * len(seq) + 1000:
        raise ValueError(f"{source}: messages are numbered {seq[0]}..{seq[-1]}, but only {len(seq)} of them are there")
    number = seq - seq[0]
    full = np.full(int(number[-1]) + 1, np.nan)
    np.fmin.at(full, number, delay)
    if sent is None:
        return one_session(full, None)
    unique, which = np.unique(number, return_index=True)
    return one_session(full, np.interp(np.arange(len(full)), unique, sent[which]))


def numbered_sessions(seq: Ints, sent: Floats | None) -> list[Ints]:
    """The rows of each session of a numbered log, in the order of the file: a new one begins where a number comes again that was
    sent at another time (where times are not known: where the first number comes again)."""
    begins, known = [0], dict[int, float]()
    first = int(seq[0]) if len(seq) else 0
    for i, number in enumerate(seq.tolist()):
        at = 0.0 if sent is None else float(sent[i])
        again = number in known and (known[number] != at if sent is not None else number == first)
        if again:
            begins.append(i)
            known, first = {}, number
        known.setdefault(number, at)
    return [np.arange(a, b) for a, b in pairwise([*begins, len(seq)])]


def counted(n: int, what: str) -> str:
    """n of them, as text."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def possible(where: str, delay: float) -> None:
    if delay > YEAR:
        raise ValueError(
            f"{where}: a delay of {delay:.6g} ms, more than a year; is the unit right? A lost message has an empty cell"
        )


# -- times ------------------------------------------------------------------------------------------------------------

BRACKETS = re.compile(r"^[\[(]\s*(.*?)\s*[\])]$")


def number_or_date(text: str) -> tuple[float, bool]:
    """A number, or the milliseconds of a date in ISO form, and whether it was one; brackets and quotes are left off. ValueError
    for anything else."""
    plain = text.strip().strip('"').strip()
    inside = BRACKETS.match(plain)
    plain = inside[1] if inside else plain
    try:
        value, date = float(plain), False
    except ValueError:
        when = datetime.fromisoformat(plain.replace(",", "."))
        value, date = 1e3 * (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp(), True
    if not np.isfinite(value):
        raise ValueError(text)
    return value, date


def calendar_unit(values: Floats) -> str | None:
    """The unit in which these numbers are times between 2001 and 2100, if there is one."""
    known = values[np.isfinite(values)]
    if not len(known):
        return None
    middle = float(np.median(known))
    return next((unit for unit in ("s", "ms", "us", "ns") if EPOCH[0] < middle * UNITS[unit] < EPOCH[1]), None)


def one_clock(where: str, sent: Floats, received: Floats) -> tuple[Floats, tuple[str, ...]]:
    """Delays from two columns of times; where some are negative the clocks differ, and the offset is taken out."""
    delay = received - sent
    if not (delay < 0).any():
        if np.isfinite(delay).any() and np.nanmin(delay) > SLOW:
            quickest = float(np.nanmin(delay)) / 1e3
            return delay, (
                f"the quickest message took {quickest:.6g} s: are both times of one clock, and of one time zone?",
            )
        return delay, ()
    offset = float(-np.nanmin(delay))
    possible(where, offset)
    early = int((delay < 0).sum())
    some = (
        "1 message seems to arrive before it was sent"
        if early == 1
        else f"{early:,} messages seem to arrive before they were sent"
    )
    note = (
        f"{some}, by up to {offset:.4g} ms: two clocks. {offset:.4g} ms were added to "
        "all delays, so that the quickest took 0 ms; what it really took is not in the data"
    )
    return delay + offset, (note,)


# -- holes ------------------------------------------------------------------------------------------------------------


def without_holes(source: object, found: Measured, holes: Holes) -> Measured:
    """Holes in the sending times of a log without numbers, as lost messages or as the ends of sessions; see the module's text."""
    longest_lost = np.inf if holes == "lost" else 0.0 if holes == "stop" else float(holes)
    if found.sent_ms is None:
        return found
    inside = np.diff(found.session) == 0
    gaps = np.diff(found.sent_ms)
    if inside.sum() < ENOUGH:
        return found
    interval = float(np.median(gaps[inside]))
    hole = inside & (gaps > HOLE * interval) & (interval > 0)
    if not hole.any():
        return found
    share = float(hole.sum() / inside.sum())
    if share > REGULAR:
        note = f"{share:.0%} of the sending intervals are over {HOLE} times their median: holes, and so losses without a line, cannot be told"
        return found._replace(notes=(*found.notes, note))
    lost = hole & (gaps <= longest_lost)
    missing = np.where(lost, np.round(gaps / interval) - 1, 0)
    if missing.sum() > 100 * len(gaps) + 1000:
        raise ValueError(
            f"{source}: holes of {gaps[lost].sum() / 1e3:.4g} s in the sending times would be {missing.sum():.4g} lost messages, of {len(gaps) + 1}"
            ' that are there; give holes="stop", or the longest hole in milliseconds that counts as lost'
        )
    longest = f"{gaps[hole].max() / 1e3:.4g} s"
    if hole.sum() == 1:
        note = f"1 hole of {longest} in the sending times: "
        note += (
            f"{counted(int(missing.sum()), 'message')} in it, taken for lost"
            if lost.any()
            else "taken for a stop of the log"
        )
        return _filled(found, missing.astype(np.int64), hole & ~lost)._replace(notes=(*found.notes, note))
    note = f"{int(hole.sum()):,} holes in the sending times, {gaps[hole].sum() / 1e3:.4g} s in all, the longest {longest}: "
    if lost.any():
        note += f"{int(missing.sum()):,} messages in {int(lost.sum()):,} of them count as lost"
    if (hole & ~lost).any():
        note += f"{'; ' if lost.any() else ''}{int((hole & ~lost).sum()):,} count as stops of the log"
    return _filled(found, missing.astype(np.int64), hole & ~lost)._replace(notes=(*found.notes, note))


def _filled(found: Measured, missing: Ints, stop: NDArray[np.bool_]) -> Measured:
    """`missing[i]` lost messages after message i, evenly in between; a new session after message i where stop[i]."""
    assert found.sent_ms is not None
    after = np.concatenate([missing, [0]])
    place = np.arange(len(found.delay_ms)) + np.concatenate([[0], np.cumsum(missing)])
    delay = np.full(int(after.sum()) + len(after), np.nan)
    delay[place] = found.delay_ms
    sent = np.interp(np.arange(len(delay)), place, found.sent_ms)
    session = np.repeat(found.session + np.concatenate([[0], np.cumsum(stop)]), after + 1)
    return found._replace(delay_ms=delay, sent_ms=sent, session=session)
