"""Doing one cell, in whatever process: learn or run the task, write the result, say how it went.

`perform` never raises for what goes wrong inside a cell: it returns an Event that says done, failed (with the traceback), stopped
(Ctrl-C; the checkpoint stands) or unwritable (a full disk or a read-only folder: no other cell would fare better).

A learner that has `state()` and `restore()` writes a checkpoint as it goes and continues from the one it finds, to the identical
result. A checkpoint that cannot be continued is named, moved aside, and the cell starts over.
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
from oldlight.studies.cells import Cell, canonical
from oldlight.studies.result import pack

THREADS = ("OLDLIGHT_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
           "NUMBA_NUM_THREADS")  # fmt: skip
ONE_THREAD = dict.fromkeys(THREADS, "1")  # one cell, one core: workers do not fight, and their number decides no number


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
class Job:
    """What a worker must know besides the cell. folder: None if the worker cannot reach it; then the result is sent back."""

    folder: str | None
    checkpoint_every: float
    version: str


@dataclass(frozen=True)
class Parcel:
    """A cell on its way to another process: it is opened there only when code of one's own can be found."""

    id: str
    path: str | None
    packed: bytes

    @classmethod
    def of(cls, cell: Cell) -> Parcel:
        return cls(cell.id, cell.path, pickle.dumps(cell))


def perform(parcel: Parcel, job: Job, tell: Callable[[int, int], None] | None = None) -> Event:
    """Do the cell; `tell(k, K)` is called now and then while it learns."""
    began = time.perf_counter()
    notes: list[str] = []
    folder = None if job.folder is None else Path(job.folder)
    try:
        if job.version != oldlight.__version__:
            raise RuntimeError(
                f"this worker has oldlight {oldlight.__version__}, the study was started with {job.version}; install the same "
                "version everywhere"
            )
        with _own_code_of(parcel):
            cell: Cell = pickle.loads(parcel.packed)
            checkpoint = None if folder is None else store.checkpoint_file(folder, cell.id)
            learns = cell.kind == "learner"
            found = _learn(cell, checkpoint, job.checkpoint_every, tell, notes) if learns else _task(cell)
        data = pack(cell, found, time.perf_counter() - began)
        if folder is not None:
            store.keep(folder, cell.id, data)
        return Event("done", cell.id, cell.episodes, notes=tuple(notes), data=data if folder is None else None)
    except KeyboardInterrupt:
        return Event("stopped", parcel.id, notes=tuple(notes))
    except BaseException as error:
        if isinstance(error, OSError) and error.errno in store.NO_ROOM:
            return Event("unwritable", parcel.id, error=str(error.strerror), errno=error.errno)
        words = f"{type(error).__name__}: {error}"
        return Event("failed", parcel.id, error=words, traceback=traceback.format_exc(), notes=tuple(notes))


def _own_code_of(parcel: Parcel) -> contextlib.AbstractContextManager[Any]:
    """Where the study's own code is found. Who started the study has trusted its folder: nobody is asked again."""
    if parcel.path is None:
        return contextlib.nullcontext()
    find_modules_in(os.path.realpath(parcel.path))
    return looking_in(parcel.path)


def _task(cell: Cell) -> Mapping[str, Any]:
    given = dict(cell.who["options"])
    if cell.seed is not None:
        given["seed"] = cell.seed
    return tasks.task_of(cell.who["name"])(cell.problem, **given)


def _learn(
    cell: Cell,
    checkpoint: Path | None,
    checkpoint_every: float,
    tell: Callable[[int, int], None] | None,
    notes: list[str],
) -> Mapping[str, Any]:
    content, problem = cell.content, cell.problem
    assert isinstance(problem, ImpairedMDP)
    best = _best(problem, canonical(content["problem"]))

    def once() -> LearningRun:
        learner = learner_of(cell.who["name"], **cell.who["options"])
        assert cell.seed is not None
        return learn(
            problem,
            learner,
            content["episodes"],
            seed=cell.seed,
            evaluate=content["evaluate"],
            every=content["every"],
            best=best,
            failure=content["failure"],
            by_start=content.get("by_start", False),
            checkpoint=checkpoint if has_hook(learner, "state") else None,
            checkpoint_every=checkpoint_every,
            progress=tell or False,
        )

    before = _changed(checkpoint)
    try:
        run = once()
    except Exception as error:
        if checkpoint is None or before is None or _changed(checkpoint) != before:
            raise
        moved = store.aside(checkpoint)
        notes.append(f"{checkpoint} cannot be continued ({error}); it is now {moved.name}, and the cell starts over")
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
