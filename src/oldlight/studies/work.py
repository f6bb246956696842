"""Doing one job, in whatever process: learn or run the task, write the result, say how it went.

`perform` never raises for what goes wrong inside a job: it returns an Event that says done, failed (with the traceback), stopped
(Ctrl-C; the checkpoint stands) or unwritable (a full disk or a read-only folder: every other job would fail too).

A learner that has `state()` and `restore()` writes a checkpoint as it goes and continues from the one it finds, to the identical
result. A checkpoint that cannot be continued is named, moved aside, and the job starts over.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import oldlight
from oldlight.learners.base import has_hook
from oldlight.learners.loop import learn
from oldlight.learners.run import BY_START, COLUMNS, LearningRun
from oldlight.model.problem import ImpairedMDP
from oldlight.own_code import find_modules_in, looking_in
from oldlight.planning import solve
from oldlight.registry import learner_of
from oldlight.studies import store, tasks
from oldlight.studies.jobs import Job, canonical
from oldlight.studies.result import pack


@dataclass(frozen=True)
class Event:
    """What an engine tells: kind is started, episodes, done, failed, stopped or unwritable."""

    kind: str
    id: str
    episodes: int = 0
    error: str = ""
    traceback: str = ""
    notes: tuple[str, ...] = ()
    errno: int = 0
    data: bytes | None = None  # the result file, where the worker cannot reach the folder


@dataclass(frozen=True)
class RunSettings:
    """What a worker must know besides the job. folder: None if the worker cannot reach it; then the result is sent back."""

    folder: str | None
    checkpoint_every: float
    version: str


@dataclass(frozen=True)
class PackedJob:
    """A job on its way to another process: it is opened there only when code of one's own can be found."""

    id: str
    path: str | None
    packed: bytes

    @classmethod
    def of(cls, job: Job) -> PackedJob:
        return cls(job.id, job.path, pickle.dumps(job))


def perform(packed: PackedJob, settings: RunSettings, callback: Callable[[int, int], None] | None = None) -> Event:
    """Do the job; `callback(done, total)` is called now and then while it learns."""
    began = time.perf_counter()
    notes: list[str] = []
    folder = None if settings.folder is None else Path(settings.folder)
    try:
        if settings.version != oldlight.__version__:
            raise RuntimeError(
                f"this worker has oldlight {oldlight.__version__}, the study was started with {settings.version}; install the same "
                "version everywhere"
            )
        with _own_code_of(packed):
            job: Job = pickle.loads(packed.packed)
            checkpoint = None if folder is None else store.checkpoint_file(folder, job.id)
            learns = job.kind == "learner"
            found = _learn(job, checkpoint, settings.checkpoint_every, callback, notes) if learns else _task(job)
        data = pack(job, found, time.perf_counter() - began)
        if folder is not None:
            store.keep(folder, job.id, data)
        return Event("done", job.id, job.episodes, notes=tuple(notes), data=data if folder is None else None)
    except KeyboardInterrupt:
        return Event("stopped", packed.id, notes=tuple(notes))
    except BaseException as error:
        if isinstance(error, OSError) and error.errno in store.NO_ROOM:
            return Event("unwritable", packed.id, error=str(error.strerror), errno=error.errno)
        words = f"{type(error).__name__}: {error}"
        return Event("failed", packed.id, error=words, traceback=traceback.format_exc(), notes=tuple(notes))


def _own_code_of(packed: PackedJob) -> contextlib.AbstractContextManager[Any]:
    """Where the study's own code is found. Who started the study has trusted its folder: nobody is asked again."""
    if packed.path is None:
        return contextlib.nullcontext()
    find_modules_in(os.path.realpath(packed.path))
    return looking_in(packed.path)


def _task(job: Job) -> Mapping[str, Any]:
    given = dict(job.who["options"])
    if job.seed is not None:
        given["seed"] = job.seed
    return tasks.task_of(job.who["name"])(job.problem, **given)


def _learn(
    job: Job,
    checkpoint: Path | None,
    checkpoint_every: float,
    callback: Callable[[int, int], None] | None,
    notes: list[str],
) -> Mapping[str, Any]:
    content, problem = job.content, job.problem
    assert isinstance(problem, ImpairedMDP)
    best = _best(problem, canonical(content["problem"]))

    def once() -> LearningRun:
        learner = learner_of(job.who["name"], **job.who["options"])
        assert job.seed is not None
        return learn(
            problem,
            learner,
            content["episodes"],
            seed=job.seed,
            evaluate=content["evaluate"],
            every=content["every"],
            best=best,
            failure=content["failure"],
            by_start=content.get("by_start", False),
            checkpoint=checkpoint if has_hook(learner, "state") else None,
            checkpoint_every=checkpoint_every,
            progress=callback or False,
        )

    before = _changed(checkpoint)
    try:
        run = once()
    except Exception as error:
        if checkpoint is None or before is None or _changed(checkpoint) != before:
            raise
        moved = store.aside(checkpoint)
        notes.append(f"{checkpoint} cannot be continued ({error}); it is now {moved.name}, and the job starts over")
        run = once()
    names = COLUMNS if run.starts is None else (*COLUMNS, *BY_START, "best_by_start")
    return {"best": run.best} | {name: getattr(run, name) for name in names}


def _changed(path: Path | None) -> int | None:
    """When a file was last written, or None."""
    try:
        return None if path is None else path.stat().st_mtime_ns
    except FileNotFoundError:
        return None


_known: dict[str, float] = {}


def _best(problem: ImpairedMDP, key: str) -> float:
    """The optimal value of a problem, planned once in each process."""
    if key not in _known:
        _known[key] = solve(problem, progress=False).value
    return _known[key]


def keep_to_one_thread() -> None:
    """For processes that were not started by this package: what is read at run time."""
    os.environ["OLDLIGHT_THREADS"] = "1"
