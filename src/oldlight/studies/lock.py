"""One runner at a time in a folder.

The runner holds a lock of the operating system on the file `lock`. The system lets go of it when the process ends, however it ends,
so a lock is never stale. The file says who holds it. Where the file system has no locks nobody can be kept out, and nothing breaks:
two runners would compute the same numbers twice and move the same files into place.
"""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

PATIENCE = 0.5  # seconds: somebody may just be looking whether the folder is locked


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; refused, with the other's name, while another process has it."""
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        until = time.monotonic() + PATIENCE
        while not _take(handle):
            if time.monotonic() > until:
                holder = os.read(handle, 1000).decode("utf-8", "replace").strip() or "it has just begun"
                raise BlockingIOError(
                    errno.EAGAIN,
                    f"another process runs a study in {folder} ({holder}); wait for it, stop it, or give another folder",
                )
            time.sleep(0.05)
        with contextlib.suppress(OSError):  # a full disk: the lock holds all the same
            os.ftruncate(handle, 0)
            os.write(handle, f"process {os.getpid()} on {platform.node()} since {time.ctime()}\n".encode())
        yield
    finally:
        os.close(handle)


def somebody_at_work(folder: Path) -> bool:
    """Does a living process hold the folder's lock?"""
    try:
        handle = os.open(folder / "lock", os.O_RDONLY)
    except OSError:
        return False
    try:
        return not _take(handle, shared=True)
    finally:
        os.close(handle)


def _take(handle: int, *, shared: bool = False) -> bool:
    """Take the lock until the file is closed; False if somebody else has it."""
    try:
        import fcntl

        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return True
    return True
