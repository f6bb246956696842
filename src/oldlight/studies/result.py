"""One finished job as one immutable Parquet file.

Its columns are the job's 1-D arrays (shorter ones end in nulls). Under the key `oldlight` its metadata hold, as JSON, the package
version, the settings (`content`, which the file's name is the hash of), the labels, the seed, the seconds it took, the machine,
the scalars, and `numbers`: a fingerprint of everything computed except times (names that are `seconds` or end in `_seconds`). Two
jobs agree when their `numbers` do. Under `oldlight.sha256` stands a checksum of all of it; a file that does not match it, or that
cannot be read, is *damaged*.
"""

from __future__ import annotations

import io
import os
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import oldlight
from oldlight import files, machine
from oldlight.learners.run import LearningRun
from oldlight.studies.jobs import Job, canonical, fingerprint, id_of

FORMAT = 1
KEY, SUM = b"oldlight", b"oldlight.sha256"

Columns = dict[str, NDArray[Any]]


class Damaged(files.UnreadableFile):
    """A result file that cannot be trusted."""


@dataclass(frozen=True, eq=False)
class Result:
    """One finished job, under the names that its study gives it.

    Parameters
    ----------
    id, block, instance, channel, kind, label, replicate
        Of the job.
    settings : dict
        The content that decided the numbers.
    columns : dict of 1-D arrays
        A learner has values, half_widths, returns, estimates and seconds, one row per episode; see `run`.
    scalars : dict
        Numbers, truth values and text; a learner has `best`.
    seed : int or None
        None for a task that draws nothing.
    seconds : float
        Time taken.
    version, machine, finished
        The version of this package, the machine, and when.
    numbers : str
        A fingerprint of everything computed except times.

    Examples
    --------
    >>> from oldlight.studies import Result
    >>> Result("0f" * 8, "", "chain", "constant:1", "task", "gap", 0, {}, {}, {"gap": 0.5}, None, 0.1, "0.1.0", {}, "", "")
    Result(0f0f0f0f0f0f0f0f: gap on chain behind constant:1, replicate 0)
    """

    id: str
    block: str
    instance: str
    channel: str
    kind: str
    label: str
    replicate: int
    settings: dict[str, Any]
    columns: Columns
    scalars: dict[str, Any]
    seed: int | None
    seconds: float
    version: str
    machine: dict[str, Any]
    finished: str
    numbers: str

    @property
    def run(self) -> LearningRun:
        """A learner's job as a LearningRun: regret, growth, compare."""
        if self.kind != "learner":
            raise ValueError(f"{self.label} is a task, not a learner; its numbers are in .scalars and .columns")
        s, about = self.settings, f"{self.instance} behind {self.channel}"
        parts: dict[str, Any] = {name: s[name] for name in ("episodes", "seed", "every", "evaluate")}
        parts |= self.columns
        return LearningRun(self.label, about, best=self.scalars["best"], done=s["episodes"], **parts)

    def __repr__(self) -> str:
        return f"Result({self.id}: {self.label} on {self.instance} behind {self.channel}, replicate {self.replicate})"


def is_time(name: str) -> bool:
    """Is this the name of a time, which differs from run to run?"""
    return name == "seconds" or name.endswith("_seconds")


def pack(job: Job, found: Mapping[str, Any], seconds: float) -> bytes:
    """What a job found, as the bytes of its Parquet file."""
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    columns, scalars = _sorted_out(job, found)
    meta = {
        "format": FORMAT,
        "id": job.id,
        "version": oldlight.__version__,
        "content": job.content,
        "heading": job.heading,
        "seed": job.seed,
        "seconds": seconds,
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": _machine(),
        "scalars": scalars,
        "lengths": {name: len(array) for name, array in columns.items()},
        "numbers": _fingerprint(columns, scalars, times=False),
    }
    text = canonical(meta)
    longest = max(map(len, columns.values()), default=0)
    filled = {}
    for name, array in columns.items():
        plain = pa.array(array)
        filled[name] = pa.concat_arrays([plain, pa.nulls(longest - len(array), plain.type)])
    total = fingerprint(text, _fingerprint(columns, {}, times=True))
    table, stream = pa.table(filled), io.BytesIO()
    with pq.ParquetWriter(stream, table.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({KEY: text.encode("utf-8"), SUM: total.encode()})
    return stream.getvalue()


def unpack(path: Path) -> Result:
    """Read a finished job; anything that does not match its checksum or its name is Damaged."""
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, memory_map=False) as file:
            size = 8 * file.metadata.num_rows * file.metadata.num_columns
            if size > machine.default_limit():
                raise ValueError(f"it unpacks to {machine.format_bytes(size)}, more than half of the memory")
            table, stored = file.read(), file.metadata.metadata or {}
        text = stored[KEY].decode("utf-8")
        meta = files.json_of(text)
        columns = {
            name: table[name].slice(0, n).combine_chunks().to_numpy(zero_copy_only=False)
            for name, n in meta["lengths"].items()
        }
        if fingerprint(text, _fingerprint(columns, {}, times=True)).encode() != stored[SUM]:
            raise ValueError("its checksum does not match")
        if meta["id"] != path.stem or id_of(meta["content"]) != path.stem:
            raise ValueError("its name is not the hash of its settings")
        same = {key: meta[key] for key in ("seed", "seconds", "version", "machine", "finished", "numbers", "scalars")}
        return Result(**meta["heading"], settings=meta["content"], columns=columns, **same)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such result") from None
    except PermissionError:
        raise
    except Exception as error:
        raise Damaged(f"{path}: damaged ({_first_line(error)})") from None


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _sorted_out(job: Job, found: Mapping[str, Any]) -> tuple[Columns, dict[str, Any]]:
    """The 1-D arrays and the scalars among what a task returned; anything else is refused."""
    if not isinstance(found, Mapping):
        raise TypeError(f"{job.label} returned {type(found).__name__}, expected a dictionary of scalars and 1-D arrays")
    columns: Columns = {}
    scalars: dict[str, Any] = {}
    for name, value in found.items():
        array = np.asarray(value)
        if array.ndim > 1 or array.dtype.kind not in "biufU":
            raise TypeError(
                f"{job.label} returned {name!r} of shape {array.shape} and type {array.dtype}; expected a number, a truth "
                "value, a word, or a 1-D array of them"
            )
        if array.ndim == 1:
            columns[str(name)] = array
        else:
            scalars[str(name)] = array.item()
    return columns, scalars


def _fingerprint(columns: Columns, scalars: Mapping[str, Any], *, times: bool) -> str:
    """Of all columns and scalars, or of those that are not times."""
    parts: list[bytes | str] = []
    for name in sorted(columns):
        if times or not is_time(name):
            array = columns[name]
            words = array.dtype.kind in "UO"  # Parquet knows words, not their widths
            parts += [name, canonical(array.tolist()) if words else array.dtype.str, b"" if words else array.tobytes()]
    kept = {name: value for name, value in scalars.items() if times or not is_time(name)}
    return fingerprint(*parts, canonical(kept))


def _machine() -> dict[str, Any]:
    import numba

    return {
        "host": platform.node(),
        "system": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }
