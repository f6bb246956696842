"""How far a study is: done, running, failed, waiting. Read from the folder alone, while it runs or later."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oldlight import drawing
from oldlight.studies import store
from oldlight.studies.lock import somebody_at_work
from oldlight.studies.result import Damaged, unpack


@dataclass(frozen=True)
class Running(drawing.Result):
    """A job under way.

    Parameters
    ----------
    id, name : str
        Of the job.
    episodes, of : int
        Done, and in all.
    seconds : float
        Since when it runs.

    Examples
    --------
    >>> from oldlight.studies import Running
    >>> Running("0f" * 8, "gap on chain", 10, 40, 1.5).episodes
    10
    """

    id: str
    name: str
    episodes: int
    of: int
    seconds: float


@dataclass(frozen=True)
class Failure(drawing.Result):
    """A job that failed.

    Parameters
    ----------
    id, name : str
        Of the job.
    error, traceback, when : str
        The error in one line, the traceback, and when.
    file : str
        Its record in the folder.

    Examples
    --------
    >>> from oldlight.studies import Failure
    >>> Failure("0f" * 8, "gap on chain", "ValueError: ...", "", "", "failed/0f.json").error
    'ValueError: ...'
    """

    id: str
    name: str
    error: str
    traceback: str
    when: str
    file: str


@dataclass(frozen=True)
class StudyStatus(drawing.Result):
    """How far a study is: total = done + len(running) + len(failed) + waiting.

    Parameters
    ----------
    name, folder : str
        Of the study.
    total, done, waiting : int
        Different jobs.
    stopped : int
        Of those waiting: with a checkpoint.
    running : tuple of Running
        Under way.
    failed : tuple of Failure
        With their errors.
    damaged : tuple of str
        Result files that cannot be trusted; they count as waiting.
    versions : dict
        Finished jobs per version of this package.
    others : int
        Finished jobs in the folder that are not of this study.
    seconds : float
        Computing time of all finished jobs.
    code : tuple of str
        The code of its own that the study named when it was run, as `module:name`; it is not imported here, so nothing of it is checked.

    Examples
    --------
    >>> from oldlight.studies import StudyStatus
    >>> print(StudyStatus("tiny", "runs", total=4, done=3, waiting=1))
    tiny in runs: 3 of 4 jobs done, 1 waiting
    """

    name: str
    folder: str
    total: int
    done: int
    waiting: int
    stopped: int = 0
    running: tuple[Running, ...] = ()
    failed: tuple[Failure, ...] = ()
    damaged: tuple[str, ...] = ()
    versions: dict[str, int] = field(default_factory=dict)
    others: int = 0
    seconds: float = 0.0
    code: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Is every job done?"""
        return self.done == self.total

    def plot(self, ax: Any = None) -> Any:
        """Draw how many jobs are done, running, failed and waiting; returns the matplotlib axes."""
        parts = {"done": self.done, "running": len(self.running), "failed": len(self.failed), "waiting": self.waiting}
        return drawing.bars(ax, parts, "jobs")

    def __str__(self) -> str:
        parts = [f"{self.done} of {self.total} jobs done"]
        parts += [f"{len(self.running)} running"] if self.running else []
        parts += [f"{len(self.failed)} failed"] if self.failed else []
        stopped = f" ({self.stopped} stopped in the middle)" if self.stopped else ""
        parts += [f"{self.waiting} waiting{stopped}"] if self.waiting else []
        parts += [f"{len(self.damaged)} damaged, to be computed again"] if self.damaged else []
        parts += [f"{self.others} of other studies"] if self.others else []
        parts += [f"from versions {', '.join(sorted(self.versions))}"] if len(self.versions) > 1 else []
        return f"{self.name} in {self.folder}: {', '.join(parts)}"


def status(folder: str | os.PathLike[str]) -> StudyStatus:
    """How far the study in a folder is, while it runs or later.

    Parameters
    ----------
    folder : path-like
        Where `run_study` put its results.

    Returns
    -------
    StudyStatus
        Counts, and what failed.

    Examples
    --------
    >>> import tempfile
    >>> from oldlight.studies import load_study, run_study, status
    >>> study = load_study({"name": "tiny", "instances": ["dichotomy:1"], "channels": ["constant:1"], "tasks": ["gap"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = run_study(study, folder, workers=1, progress=False)
    ...     status(folder).done
    1
    """
    place = Path(folder)
    about = store.read_study(place)
    jobs = {heading["id"]: heading for heading in about["cells"]}
    at_work = store.read_json(place / "running" / "running.json") if somebody_at_work(place) else None
    entries = at_work["cells"] if store.has(at_work, cells=list) else ()
    running = {entry["id"]: entry for entry in entries if store.has(entry, id=str, episodes=int, seconds=float)}
    versions: Counter[str] = Counter()
    damaged: list[str] = []
    seconds, done = 0.0, set()
    for id in jobs:
        path = store.result_file(place, id)
        if path.exists():
            try:
                found = unpack(path)
            except Damaged:
                damaged.append(str(path))
                continue
            done.add(id)
            versions[found.version] += 1
            seconds += found.seconds
    left = jobs.keys() - done
    failed = [_failure(place, id, jobs[id]) for id in jobs if id in left and store.failed_file(place, id).exists()]
    under_way = [_running(running[id], jobs[id]) for id in jobs if id in left and id in running]
    waiting = left - {job.id for job in failed} - {job.id for job in under_way}
    finished = {path.stem for path in (place / "cells").glob("*.parquet")}
    return StudyStatus(
        name=about["study"]["name"],
        folder=str(folder),
        total=len(jobs),
        done=len(done),
        waiting=len(waiting),
        stopped=sum(store.checkpoint_file(place, id).exists() for id in waiting),
        running=tuple(under_way),
        failed=tuple(job for job in failed if job.id not in running),
        damaged=tuple(damaged),
        versions=dict(versions),
        others=len(finished - jobs.keys()),
        seconds=seconds,
        code=tuple(map(str, about["study"].get("code", ()))),
    )


def name_of(heading: dict[str, Any]) -> str:
    """A job as a line of text."""
    return f"{heading['label']} on {heading['instance']} behind {heading['channel']}, replicate {heading['replicate']}"


def _failure(place: Path, id: str, heading: dict[str, Any]) -> Failure:
    path = store.failed_file(place, id)
    record = store.read_json(path)
    if not store.has(record, error=str, traceback=str, when=str):
        record = {"error": "its record is damaged", "traceback": "", "when": ""}
    return Failure(id, name_of(heading), record["error"], record["traceback"], record["when"], str(path))


def _running(entry: dict[str, Any], heading: dict[str, Any]) -> Running:
    return Running(entry["id"], name_of(heading), entry["episodes"], heading["episodes"], entry["seconds"])
