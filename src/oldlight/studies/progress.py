"""What a run shows: cells done, episodes per second, time left. A bar on a terminal, else a plain line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

QUIET = 10.0  # seconds between two plain lines
SMOOTH = 0.1  # seconds between two drawings of the bar


@dataclass(frozen=True)
class Progress:
    """How far a run is: cells done and failed of those that it began with, episodes played now and in all, the rate of this run
    and the seconds that are left at that rate (None before there is one)."""

    cells: int
    done: int
    failed: int
    running: int
    episodes: int
    of_episodes: int
    episodes_per_second: float
    seconds_left: float | None

    def __str__(self) -> str:
        parts = [f"{self.done} of {self.cells} cells done"]
        parts += [f"{self.failed} failed"] if self.failed else []
        parts += [f"{self.running} running"] if self.running else []
        parts += [f"{self.episodes_per_second:,.0f} episodes/s"] if self.of_episodes else []
        parts += [f"{_clock(self.seconds_left)} left"] if self.seconds_left is not None else []
        return ", ".join(parts)

    @property
    def share(self) -> float:
        """How much of the work is done, in [0, 1]: episodes count where there are any, else cells."""
        over = self.done + self.failed == self.cells
        if over or not self.of_episodes:
            return (self.done + self.failed) / max(self.cells, 1)
        return self.episodes / self.of_episodes


def _clock(seconds: float) -> str:
    whole = round(seconds)
    return (
        f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}" if whole >= 3600 else f"{whole // 60}:{whole % 60:02}"
    )


@contextmanager
def shown(progress: bool | Callable[[Progress], None] | None, title: str) -> Iterator[Callable[[Progress, bool], None]]:
    """What to call with how far the run is, and whether that must be said now."""
    if progress is False:
        yield lambda now, surely: None
    elif callable(progress):
        yield lambda now, surely: progress(now)
    elif sys.stderr.isatty():
        with _bar(title) as draw:
            yield draw
    else:
        yield _lines(title)


def _lines(title: str) -> Callable[[Progress, bool], None]:
    spoken = time.monotonic()

    def say(now: Progress, surely: bool) -> None:
        nonlocal spoken
        if surely or time.monotonic() - spoken >= QUIET:
            spoken = time.monotonic()
            print(f"{title}: {now}", file=sys.stderr, flush=True)

    return say


@contextmanager
def _bar(title: str) -> Iterator[Callable[[Progress, bool], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[now]}"), TimeElapsedColumn())
    drawn = 0.0
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=1.0, now="")

        def draw(now: Progress, surely: bool) -> None:
            nonlocal drawn
            if surely or time.monotonic() - drawn >= SMOOTH:
                drawn = time.monotonic()
                bar.update(task, completed=now.share, now=str(now))

        yield draw
