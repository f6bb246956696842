"""What the tests of workers ask of one. A worker imports this module, so it imports little itself."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

DROPPED = "import os, signal\ntry:\n    os.kill(os.getpid(), signal.SIGINT)\n    for _ in range(1000): pass\nexcept BaseException: pass"


def do(job: tuple[str, Any], report: Callable[[Any], None]) -> Any:
    """What the tests ask of a worker."""
    kind, what = job
    if kind == "square":
        report(what)
        return what * what
    if kind == "raise":
        import oldlight as ol

        raise ol.TooLarge(what)
    if kind == "odd":
        raise Odd(1, 2)
    if kind == "threads":
        from oldlight.machine import thread_count

        return [thread_count(), *(os.environ.get(name) for name in what)]
    if kind == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "wait":
        Path(what).touch()
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            time.sleep(1.5)  # the SIGINTs that follow are not heard
            return "put down"
    if kind == "dropped":  # as while numba reads a random generator: whatever is raised there is dropped
        exec(DROPPED, {"__name__": "ctypes"})
        try:
            report(what)
            time.sleep(60)
        except KeyboardInterrupt:
            return "heard again"
    if kind == "deaf":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        Path(what).touch()
        time.sleep(60)
    return None


class Odd(Exception):
    """Cannot be made again from what it holds."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")
