"""Progress: a bar on a terminal, a line now and then where the output goes elsewhere, or a function of the caller's.

    with progress_bar(progress, "planning") as callback:
        callback(done, total)                  # as often as one likes; None if nobody wants to know

`progress` is what a user gives: False for nothing; a function callback(done, total); None for a bar that appears on a terminal after two
seconds and is taken away at the end, or elsewhere a line every ten seconds; True for the same at once. All goes to stderr.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 2.0  # seconds before a bar appears
EVERY_LINE = 10.0  # seconds between two lines
EVERY_DRAWING = 0.1  # seconds between two drawings of the bar

Callback = Callable[[int, int], None]
Draw = Callable[[float, str, bool], None]


@contextmanager
def progress_bar(progress: bool | Callback | None, title: str) -> Iterator[Callback | None]:
    """What to call with (done, total), or None; see the module's text."""
    if progress is False:
        yield None
        return
    if callable(progress):
        yield progress
        return
    began = time.monotonic()
    with drawing(title, at_once=bool(progress), stays=False) as draw:

        def callback(done: int, total: int) -> None:
            left = (time.monotonic() - began) * (total - done) / done if done else None
            draw(done / max(total, 1), f"{done:,} of {total:,}" + time_left(left), False)

        yield callback


def time_left(seconds: float | None) -> str:
    """, 1:05 left; nothing where it is not known."""
    if seconds is None:
        return ""
    whole = round(seconds)
    hours = f"{whole // 3600}:{whole // 60 % 60:02}" if whole >= 3600 else f"{whole // 60}"
    return f", {hours}:{whole % 60:02} left"


def decades_closed(first: float, now: float, wanted: float) -> tuple[int, int]:
    """(done, total) of a gap that was `first`, is `now` and shall be `wanted`, in hundredths of a decade."""
    decades = [
        math.log10(max(gap, 1e-300)) for gap in (first, now, wanted)
    ]  # a quotient of gaps may be too large for a number
    return round(100 * max(decades[0] - decades[1], 0.0)), max(round(100 * (decades[0] - decades[2])), 1)


@contextmanager
def drawing(title: str, *, at_once: bool, stays: bool) -> Iterator[Draw]:
    """What to call with the share that is done, a text for it, and whether that must appear now: draws a bar or prints lines."""
    if not sys.stderr.isatty():
        yield _lines(title, at_once)
        return
    began, drawn = time.monotonic(), 0.0
    bar: Any = None

    def draw(share: float, text: str, must: bool) -> None:
        nonlocal bar, drawn
        now = time.monotonic()
        if bar is None and (at_once or now - began >= PATIENCE):
            bar = _bar(title, stays)
        if bar is not None and (must or now - drawn >= EVERY_DRAWING):
            drawn = now
            bar.update(bar.task_ids[0], completed=share, text=text)

    try:
        yield draw
    finally:
        if bar is not None:
            bar.stop()


def _lines(title: str, at_once: bool) -> Draw:
    printed = -EVERY_LINE if at_once else time.monotonic()

    def draw(share: float, text: str, must: bool) -> None:
        nonlocal printed
        if must or time.monotonic() - printed >= EVERY_LINE:
            printed = time.monotonic()
            print(f"{title}: {text}", file=sys.stderr, flush=True)

    return draw


def _bar(title: str, stays: bool) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=not stays)
    bar.start()
    bar.add_task(title, total=1.0, text="")
    return bar
