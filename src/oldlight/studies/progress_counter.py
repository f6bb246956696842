"""How far a run of a study is: jobs done, episodes per second, time left."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from oldlight.checks import renamed_property
from oldlight.progress import drawing, time_left
from oldlight.studies.jobs import Job
from oldlight.studies.work import Event


@dataclass(frozen=True)
class Progress:
    """How far a run of a study is.

    Parameters
    ----------
    jobs, done, failed, running : int
        Jobs that it began with, and how many of them are done, failed and under way.
    episodes, of_episodes : int
        Played so far, and in all.
    episodes_per_second : float
        The rate of this run.
    seconds_left : float or None
        At that rate; None before there is one.

    Examples
    --------
    >>> from oldlight.studies import Progress
    >>> print(Progress(4, 1, 0, 2, 100, 400, 50.0, 6.0))
    1 of 4 jobs done, 2 running, 50 episodes/s, 0:06 left
    """

    jobs: int
    done: int
    failed: int
    running: int
    episodes: int
    of_episodes: int
    episodes_per_second: float
    seconds_left: float | None
    cells = renamed_property("cells", "jobs")

    def __str__(self) -> str:
        parts = [f"{self.done} of {self.jobs} jobs done"]
        parts += [f"{self.failed} failed"] if self.failed else []
        parts += [f"{self.running} running"] if self.running else []
        parts += [f"{self.episodes_per_second:,.0f} episodes/s"] if self.of_episodes else []
        return ", ".join(parts) + time_left(self.seconds_left)

    @property
    def share(self) -> float:
        """How much of the work is done, in [0, 1]: episodes count where there are any, else jobs."""
        over = self.done + self.failed == self.jobs
        if over or not self.of_episodes:
            return (self.done + self.failed) / max(self.jobs, 1)
        return self.episodes / self.of_episodes


class ProgressCounter:
    """Counts what happens in one run. played[id]: the episode that a job has reached; first[id]: where it began in this run."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = {job.id: job.episodes for job in jobs}
        self.began = time.monotonic()
        self.done = self.failed = 0
        self.running: dict[str, float] = {}
        self.played: Counter[str] = Counter()
        self.first: dict[str, int] = {}
        self.over: set[str] = set()  # news from a cluster may arrive late

    def count(self, event: Event) -> None:
        if event.id in self.over:
            return
        if event.kind == "started":
            self.running[event.id] = time.monotonic()
        elif event.kind == "episodes":
            self.first.setdefault(event.id, event.episodes)
            self.played[event.id] = event.episodes
        else:
            self.running.pop(event.id, None)
            self.over.add(event.id)
            self.done += event.kind == "done"
            self.failed += event.kind == "failed"
            if event.kind in ("done", "failed"):
                self.played[event.id] = self.jobs[event.id]

    def now(self) -> Progress:
        elapsed = max(time.monotonic() - self.began, 1e-9)
        played, of = sum(self.played.values()), sum(self.jobs.values())
        rate = (played - sum(self.first.values())) / elapsed
        over = self.done + self.failed
        if of:
            left = (of - played) / rate if rate > 0 else None
        else:
            left = (len(self.jobs) - over) * elapsed / over if over else None
        return Progress(len(self.jobs), self.done, self.failed, len(self.running), played, of, rate, left)


@contextmanager
def reporting(
    progress: bool | Callable[[Progress], None] | None, title: str
) -> Iterator[Callable[[Progress, bool], None]]:
    """What to call with how far the run is, and whether that must be reported now."""
    if progress is False:
        yield lambda now, must: None
    elif callable(progress):
        yield lambda now, must: progress(now)
    else:
        with drawing(title, at_once=True, stays=True) as draw:
            yield lambda now, must: draw(now.share, str(now), must)
