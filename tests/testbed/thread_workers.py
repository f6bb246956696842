"""The testbed's plant, relay and controller as threads of the test process, where what is tested is not that they are processes.

Everything else is real: `run_testbed`, the pipes, the UDP ports, and what a process would be sent is pickled for each thread. Three processes that
import the package are most of what a short run costs.
"""

from __future__ import annotations

import multiprocessing
import pickle
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from oldlight.testbed import testbed
from repeats import is_thorough


class ThreadWorker:
    """What the testbed asks of an `oldlight.workers.Worker`."""

    def __init__(self, target: Callable[..., None], *arguments: Any, name: str) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        given = pickle.loads(pickle.dumps(arguments))
        self.thread = threading.Thread(target=target, args=(theirs, *given), name=name, daemon=True)
        self.thread.start()


def stop(workers: Sequence[ThreadWorker]) -> None:
    """The end of its pipe ends each of them."""
    for worker in workers:
        worker.pipe.close()
    for worker in workers:
        worker.thread.join(30)
        assert not worker.thread.is_alive(), f"{worker.thread.name} goes on"


def in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on runs of the testbed are in threads; if thorough they stay in processes."""
    if not is_thorough():
        monkeypatch.setattr(testbed, "Worker", ThreadWorker)
        monkeypatch.setattr(testbed, "stop", stop)
