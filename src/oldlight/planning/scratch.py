"""Tables larger than memory: arrays in files that have no name.

An array of a scratch folder is a memory-mapped file, so that the recursions read and write it as any other array, with the same numbers; what
does not fit in memory is on the disk. Three things are made sure of:

- **Full disk.** A mapped file in which a page cannot be written kills the process. So all of its bytes are reserved before the first one
  is written, and a disk without room for them is named in the refusal.
- **Nothing is left.** The file has no name from the beginning (on Windows: it is deleted when it is closed), so that its room is free again as
  soon as the array is not used any more, or the process has ended in whatever way.
- **Memory first.** Tables that fit in the memory allowed are kept there; the folder is for those that would be refused.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from oldlight.checks import TooLarge
from oldlight.machine import format_bytes

PIECE = 2**24  # bytes of zeros written at once where a system cannot reserve room


def scratch_folder(folder: str | os.PathLike[str]) -> Path:
    """The folder, if files can be made in it."""
    path = Path(folder)
    if not path.is_dir():
        what = "is a file" if path.exists() else "does not exist"
        raise FileNotFoundError(f"scratch: {folder} {what}, expected a folder on a disk with room; make it first")
    if not os.access(path, os.W_OK | os.X_OK):
        raise PermissionError(f"scratch: no file may be made in {folder}; give a folder of your own")
    return path


def refuse_full(folder: Path, need: int) -> None:
    """Refuse if the tables need more than the disk has left."""
    free = shutil.disk_usage(folder).free
    if need > free:
        raise TooLarge(
            f"scratch: the tables need {format_bytes(need)} and {folder} has {format_bytes(free)} left. Ways out: a folder on a larger disk, or "
            "a ladder, oldlight.solve(problem, depth=k), which has tables for the delay k only"
        )


def empty(size: int, kind: DTypeLike, folder: Path | None) -> NDArray[Any]:
    """An array of `size` numbers, in memory or, with a folder, in a file there that is gone when the array is."""
    if folder is None or size == 0:
        return np.empty(size, kind)
    need = size * np.dtype(kind).itemsize
    try:
        with tempfile.TemporaryFile(dir=folder, prefix="oldlight-") as file:
            _reserve(file, need)
            return np.asarray(np.memmap(file, dtype=kind, mode="r+", shape=(size,)))
    except OSError as error:
        raise OSError(
            error.errno,
            f"scratch: {format_bytes(need)} could not be reserved in {folder} ({error.strerror}); give a folder on a disk with more room",
        ) from None


def _reserve(file: IO[bytes], need: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, need)
        return
    zeros = bytes(min(PIECE, need))
    for begin in range(0, need, PIECE):
        file.write(zeros[: need - begin])
    file.flush()
