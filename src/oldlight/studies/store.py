"""The folder of results.

    runs/study.json          the study that was run last: its words, its file, and the name of every job in it
    runs/cells/ID.parquet    one file per finished job (`oldlight.studies.result`), never changed
    runs/failed/ID.json      what went wrong in a job, with its traceback
    runs/running/            checkpoints of jobs that are under way, and who is at work (running.json)
    runs/lock                held by the process that runs a study here (`oldlight.studies.lock`)

Files are written to a temporary name, flushed to the disk and moved into place. Every writer of one file would write the same
numbers, so nothing breaks even where two of them meet. A damaged file is named, moved aside and computed again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import platform
import time
import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeGuard

import oldlight
from oldlight import checks, files
from oldlight.studies.frames import Results
from oldlight.studies.jobs import Job
from oldlight.studies.result import FORMAT, Damaged, Result, unpack

HALF_WRITTEN = 60.0  # seconds after which a temporary file is a leftover of a process that was killed
NAMES = ("id", "block", "instance", "channel", "label")  # of a job
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)  # nothing more can be written here


def result_file(folder: Path, id: str) -> Path:
    return folder / "cells" / f"{id}.parquet"


def failed_file(folder: Path, id: str) -> Path:
    return folder / "failed" / f"{id}.json"


def checkpoint_file(folder: Path, id: str) -> Path:
    """Named after the version too: another version starts over rather than go on with what this one began."""
    return folder / "running" / f"{id}-{oldlight.__version__}.npz"


def prepare(folder: Path) -> None:
    """Make the folder and try to write in it; leftovers of killed processes go."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, f"{folder} is a file, expected a folder for the results")
    try:
        for name in ("cells", "failed", "running"):
            (folder / name).mkdir(parents=True, exist_ok=True)
            probe = folder / name / f".probe-{os.getpid()}"
            probe.write_bytes(b"")
            probe.unlink()
    except OSError as error:
        raise OSError(
            error.errno,
            f"{folder} cannot be written ({error.strerror}); give a folder that can, or make this one writable. "
            "What is in it can still be read",
        ) from None
    now = time.time()
    for part in folder.rglob(".*.part"):
        with contextlib.suppress(OSError):
            if now - part.stat().st_mtime > HALF_WRITTEN:
                part.unlink()


def keep(folder: Path, id: str, data: bytes) -> Path:
    """Write a finished job and forget its checkpoint and its failure. A file that is there already stays."""
    target = result_file(folder, id)
    if not target.exists():
        checks.write_file(target, lambda stream: stream.write(data))
        _flush(target.parent)
    for done in (checkpoint_file(folder, id), failed_file(folder, id)):
        done.unlink(missing_ok=True)
    return target


def _flush(folder: Path) -> None:
    """Make a move last through a power cut, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def aside(path: Path) -> Path:
    """Move a file that cannot be used out of the way; nothing is deleted."""
    target = path.with_name(path.name + ".damaged")
    number = 1
    while target.exists():
        number += 1
        target = path.with_name(f"{path.name}.damaged{number}")
    os.replace(path, target)
    return target


def record_failure(folder: Path, job: Job, error: str, traceback: str) -> None:
    """Write down what went wrong."""
    text = {
        "id": job.id,
        "heading": job.heading,
        "content": job.content,
        "error": error,
        "traceback": traceback,
        "version": oldlight.__version__,
        "host": platform.node(),
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    checks.write_text(failed_file(folder, job.id), json.dumps(text, indent=1, ensure_ascii=False, default=repr))


def read_json(path: Path) -> dict[str, Any] | None:
    """A file of ours as a dictionary; None if it is not there or damaged."""
    try:
        found = files.read_json(path, "record")
    except (OSError, files.UnreadableFile):
        return None
    return found if isinstance(found, dict) else None


def write_study(folder: Path, data: Mapping[str, Any], jobs: list[Job]) -> None:
    """Write down which study this folder now belongs to, with the names of its jobs."""
    text = {
        "format": FORMAT,
        "version": oldlight.__version__,
        "study": data,
        "cells": [job.heading | {"episodes": job.episodes} for job in jobs],
    }
    checks.write_text(folder / "study.json", json.dumps(text, indent=1, ensure_ascii=False, default=repr))


def read_study(folder: Path) -> dict[str, Any]:
    """The study of a folder; refused where there is none."""
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder of results")
    found = read_json(folder / "study.json")
    again = "run the study again, what is finished stays"
    if found is None:
        there = f"damaged; {again}" if (folder / "study.json").exists() else "missing"
        raise ValueError(f"{folder} is not a folder of results: its study.json is {there}")
    if found.get("format") != FORMAT:
        raise ValueError(
            f"{folder}: its study.json is of format {found.get('format')!r}, this oldlight reads format {FORMAT}; use the "
            "version that wrote it, or run the study into another folder"
        )
    for what, is_right in (("study", _described), ("cells", _named)):
        if not is_right(found.get(what)):
            raise ValueError(
                f'{folder} is not a folder of results: "{what}" in its study.json is not as it was written; {again}'
            )
    return found


def has(record: Any, **kinds: Any) -> TypeGuard[dict[str, Any]]:
    """Is a record, as it was read, a dictionary with values of these kinds?"""
    return isinstance(record, dict) and all(isinstance(record.get(key), kind) for key, kind in kinds.items())


def _described(study: Any) -> bool:
    """Is this what `Study.data` writes?"""
    if not has(study, name=str, file=str | None, blocks=list) or not isinstance(study.get("code", []), list):
        return False
    return all(has(block, name=str) for block in study["blocks"])


def _named(jobs: Any) -> bool:
    """Is this a list of jobs? The id of one is the name of a file, not a path."""
    kinds = dict.fromkeys(NAMES, str) | {"replicate": int, "episodes": int}
    return isinstance(jobs, list) and all(has(job, **kinds) and job["id"].isalnum() for job in jobs)


def results(folder: str | os.PathLike[str]) -> Results:
    """The finished jobs of a folder's study, in its order and under its names. A damaged file is skipped with a warning.

    Parameters
    ----------
    folder : path-like
        Where `run_study` put its results.

    Returns
    -------
    Results
        An iterable of `Result`, one for each finished job; `.frame()` is all of it as a table.

    Examples
    --------
    >>> import tempfile
    >>> from oldlight.studies import load_study, results, run_study
    >>> study = load_study({"name": "tiny", "instances": ["dichotomy:1"], "channels": ["constant:2"], "tasks": ["gap"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = run_study(study, folder, workers=1, progress=False)
    ...     [result.scalars["gap"] for result in results(folder)]
    [0.5]
    """
    return Results(partial(_finished, Path(folder)))


def _finished(place: Path) -> Iterator[Result]:
    for heading in read_study(place)["cells"]:
        path = result_file(place, heading["id"])
        if not path.exists():
            continue
        try:
            found = unpack(path)
        except Damaged as error:
            warnings.warn(f"{error}; it is left out. Run the study again to compute it anew", stacklevel=2)
            continue
        names = {key: heading[key] for key in NAMES[1:]}
        yield dataclasses.replace(found, **names)


def numbers(folder: str | os.PathLike[str]) -> dict[str, str]:
    """A fingerprint of everything computed except times: two folders of the same study agree when these do.

    Parameters
    ----------
    folder : path-like
        Where `run_study` put its results.

    Returns
    -------
    dict
        id -> fingerprint of each finished job.

    Examples
    --------
    >>> import tempfile
    >>> from oldlight.studies import load_study, numbers, run_study
    >>> study = load_study({"name": "tiny", "instances": ["dichotomy:1"], "channels": ["constant:1"], "tasks": ["gap"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = run_study(study, folder, workers=1, progress=False)
    ...     list(numbers(folder)) == [job.id for job in study.jobs()]
    True
    """
    return {result.id: result.numbers for result in results(folder)}
