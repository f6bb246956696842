"""Running a study: find what is missing, give it to an engine, write down what happens.

    run_study(study, "runs")                                   # all cores of this machine
    run_study(study, "runs", engine="dask", scheduler="tcp://head:8786")

A job whose file is there and sound is not computed again; a damaged file is named, moved aside and computed again. A job that
fails is written down with its traceback and the others go on; it is tried again with retry_failed=True. A folder may hold jobs of
other studies, or of this one before it was changed: they are never touched. When the finished jobs come from several versions of
the package a warning says so. Ctrl-C stops the workers, which write their checkpoints, and is passed on.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Literal

import oldlight
from oldlight import checks
from oldlight.machine import thread_count
from oldlight.studies import store
from oldlight.studies.jobs import Job
from oldlight.studies.lock import locked
from oldlight.studies.progress_counter import Progress, ProgressCounter, reporting
from oldlight.studies.result import Damaged, unpack
from oldlight.studies.status import StudyStatus, status
from oldlight.studies.study import Study
from oldlight.studies.work import Event, RunSettings

NOTE_EVERY = 2.0  # seconds between two notes of what is running


def run_study(
    study: Study,
    folder: str | os.PathLike[str],
    *,
    engine: Literal["local", "dask"] = "local",
    workers: int | None = None,
    scheduler: str | None = None,
    retry_failed: bool = False,
    progress: bool | Callable[[Progress], None] | None = None,
) -> StudyStatus:
    """Compute what is missing of a study in a folder.

    Parameters
    ----------
    study : Study
        Made by `load_study`.
    folder : path-like
        Where results and checkpoints are kept.
    engine : "local" or "dask"
        Processes of this machine, or a cluster.
    workers : int, optional
        Processes of the local engine or cluster; all cores if None.
    scheduler : str, optional
        Address of the dask cluster; a local one if None.
    retry_failed : bool
        Try again what failed before.
    progress : bool or function of a Progress, optional
        False for nothing, a callback, None for a bar on a terminal and a line now and then elsewhere.

    Returns
    -------
    StudyStatus
        How far it is now.

    Examples
    --------
    >>> import tempfile
    >>> from oldlight.studies import load_study, run_study
    >>> study = load_study({"name": "tiny", "instances": ["dichotomy:1"], "channels": ["constant:1"], "tasks": ["gap"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run_study(study, folder, workers=1, progress=False).complete
    True
    """
    checks.one_of("engine", engine, ("local", "dask"))
    processes = thread_count() if workers is None else checks.whole("workers", workers, least=1)
    if scheduler is not None and engine != "dask":
        raise ValueError(f'scheduler is {scheduler!r}, but only engine="dask" has one')
    if not isinstance(study, Study):
        raise TypeError(
            f"run_study takes a Study, not {type(study).__name__}; make one with load_study(file or mapping)"
        )
    if study.code and not study.import_code:
        raise ValueError(
            f"{study.source} was loaded with import_code=False, so {study.code[0]} was not imported; run study.with_code()"
        )
    place = Path(folder).absolute()
    jobs = study.jobs()
    different = {job.id: job for job in jobs}
    store.prepare(place)
    with locked(place):
        missing = _missing(place, different, retry_failed)
        study.check(missing)
        store.write_study(place, study.data(), jobs)
        if missing:
            settings = RunSettings(str(place), study.checkpoint_every, oldlight.__version__)
            with contextlib.closing(_engine(engine, missing, settings, processes, scheduler)) as events:
                _follow(place, study.name, different, missing, events, progress)
    return status(folder)


def _engine(
    engine: str, jobs: Sequence[Job], settings: RunSettings, workers: int, scheduler: str | None
) -> Generator[Event, None, None]:
    if engine == "dask":
        from oldlight.studies.cluster import run_on_dask

        return run_on_dask(jobs, settings, min(workers, len(jobs)), scheduler)
    from oldlight.studies.local import run_locally

    return run_locally(jobs, settings, workers)


def _missing(place: Path, jobs: dict[str, Job], retry_failed: bool) -> list[Job]:
    """The jobs to compute; what is there is looked through."""
    missing: list[Job] = []
    versions: Counter[str] = Counter()
    for id, job in jobs.items():
        path = store.result_file(place, id)
        if path.exists():
            try:
                versions[unpack(path).version] += 1
                for left in (place / "running").glob(f"{id}-*.npz"):
                    left.unlink()  # killed between the last checkpoint's use and its end
                continue
            except Damaged as error:
                warnings.warn(f"{error}; it is now {store.aside(path).name} and is computed again", stacklevel=3)
        if retry_failed or not store.failed_file(place, id).exists():
            missing.append(job)
    older = {version: n for version, n in versions.items() if version != oldlight.__version__}
    if older:
        found = ", ".join(f"{n} by oldlight {version}" for version, n in sorted(older.items()))
        warnings.warn(
            f"{place}: of {sum(versions.values())} finished jobs {found}, and this is {oldlight.__version__}: the results mix "
            "versions. Give a new folder to compute all of them with one",
            stacklevel=3,
        )
    return missing


def _follow(
    place: Path,
    name: str,
    jobs: dict[str, Job],
    missing: Sequence[Job],
    events: Iterator[Event],
    progress: bool | Callable[[Progress], None] | None,
) -> None:
    """Record the events of an engine, until there are no more."""
    counter = ProgressCounter(missing)
    noted = 0.0
    try:
        with reporting(progress, name) as report:
            report(counter.now(), True)
            for event in events:
                counter.count(event)
                for note in event.notes:
                    warnings.warn(note, stacklevel=4)
                if event.kind == "unwritable":
                    raise OSError(
                        event.errno,
                        f"{event.error}. The {counter.done} jobs finished now and all earlier ones are kept; make room and start "
                        "the study again",
                    )
                if event.kind == "failed":
                    store.record_failure(place, jobs[event.id], event.error, event.traceback)
                if event.data is not None:
                    store.keep(place, event.id, event.data)
                if event.kind != "episodes" or time.monotonic() - noted > NOTE_EVERY:
                    noted = time.monotonic()
                    _note_running(place, counter)
                report(counter.now(), False)
            report(counter.now(), True)
    finally:
        (place / "running" / "running.json").unlink(missing_ok=True)


def _note_running(place: Path, counter: ProgressCounter) -> None:
    """What `status` shows of jobs under way; not worth stopping for."""
    now = time.monotonic()
    under_way = [
        {"id": id, "episodes": counter.played[id], "seconds": now - began} for id, began in counter.running.items()
    ]
    target = place / "running" / "running.json"
    with contextlib.suppress(OSError):
        written = target.with_name(".running.json.part")
        written.write_text(json.dumps({"cells": under_way}), encoding="utf-8")
        os.replace(written, target)
