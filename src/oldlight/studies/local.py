"""The local engine: worker processes on this machine, each doing one cell at a time.

Workers are started with the spawn method and one thread each. Each has a pipe of its own, so that it is always known which cell a
worker was doing: one that dies (killed for its memory, say) fails that cell, a new one takes its place, and the others go on.
Results and checkpoints are written by the worker itself. A worker is started without the current folder on its path (a `pickle.py`
there would be imported before anything else); it then has the path of this process.

Ctrl-C is heard by this process alone (workers leave the terminal's group) and passed on once: each worker writes a checkpoint of
its last complete episode; what has not stopped after `GRACE` seconds is ended. When this process dies, by kill −9 or otherwise, each
worker notices, stops in the same way, and is gone: no orphans.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import connection, get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from oldlight.studies.cells import Cell
from oldlight.studies.work import ONE_THREAD, Event, Job, Parcel, perform

SAFE = "PYTHONSAFEPATH"  # Python does not look in the current folder
GRACE = 5.0  # seconds that a worker has to write its checkpoint


class Worker:
    """A process, its pipe, and the cell that it is doing."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        safe = os.environ.get(SAFE)
        self.process: BaseProcess = context.Process(target=_serve, args=(theirs, safe), daemon=True)
        self.cell: Cell | None = None
        self.ready = False
        with _environment(ONE_THREAD | {SAFE: "1"}):
            self.process.start()
        theirs.close()

    def give(self, cell: Cell, job: Job) -> bool:
        """Give it a cell; False if it has died in the meantime."""
        try:
            self.pipe.send((Parcel.of(cell), job))
        except OSError:
            return False
        self.cell = cell
        return True

    def heard(self) -> Event | None:
        """The next thing that it says; None if it has died."""
        try:
            event: Event = self.pipe.recv()
        except (EOFError, OSError):  # its end of the pipe is closed, perhaps in the middle of a message
            return None
        return event

    def death(self) -> str:
        """How it ended."""
        self.process.join(GRACE)
        code = self.process.exitcode
        if code is None or code >= 0:
            return f"the worker process ended by itself (exit code {code})"
        name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
        hint = "; was it out of memory?" if name == "SIGKILL" else ""
        return f"the worker process was killed by signal {-code} ({name}){hint}"


def run_locally(cells: Sequence[Cell], job: Job, workers: int) -> Generator[Event, None, None]:
    """Do the cells, in this order as far as workers are free; yields what happens. Closing it stops the workers."""
    waiting = list(reversed(cells))
    crew: list[Worker] = []
    try:
        crew += [Worker() for _ in range(min(workers, len(cells)))]
        while any(worker.cell for worker in crew) or waiting:
            for worker in crew:
                if worker.ready and worker.cell is None and waiting and worker.give(waiting[-1], job):
                    yield Event("started", waiting.pop().id)
            heard = connection.wait([worker.pipe for worker in crew])
            for number, worker in enumerate(crew):
                if worker.pipe not in heard:
                    continue
                event = worker.heard()
                if event is None:
                    crew[number] = _replaced(worker)
                    if worker.cell is not None:
                        yield Event("failed", worker.cell.id, error=worker.death())
                elif event.kind == "ready":
                    worker.ready = True
                else:
                    if event.kind != "episodes":
                        worker.cell = None
                    yield event
    finally:
        _stop(crew)


def _replaced(worker: Worker) -> Worker:
    """A new worker for one that has died; refused if it never came to life."""
    if not worker.ready:
        raise RuntimeError(
            f'{worker.death()} before it began. A script that runs a study needs `if __name__ == "__main__":` before the '
            "call, because worker processes import it"
        )
    worker.pipe.close()
    return Worker()


def _stop(crew: Sequence[Worker]) -> None:
    """Let each worker write its checkpoint and end; end what does not."""
    for worker in crew:
        if worker.cell is None:
            worker.pipe.close()
        elif worker.process.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker.process.pid, signal.SIGINT)
    until = time.monotonic() + GRACE
    for worker in crew:
        while worker.cell is not None and time.monotonic() < until:
            if worker.pipe.poll(0.05):
                event = worker.heard()
                if event is None or event.kind != "episodes":
                    break
        worker.pipe.close()
        worker.process.join(max(0.2, until - time.monotonic()) if worker.cell is None else 0.2)
        if worker.process.is_alive():
            worker.process.kill()
        worker.process.join()


@contextmanager
def _environment(changes: dict[str, str]) -> Iterator[None]:
    """Change environment variables for the processes that are started inside."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# -- in the worker ----------------------------------------------------------------------------------------------------


def _serve(pipe: Connection, safe: str | None) -> None:
    """Do the cells that come through the pipe until it closes. safe: PYTHONSAFEPATH as it was for who started this."""
    del os.environ[SAFE]
    os.environ.update({} if safe is None else {SAFE: safe})
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    threading.Thread(target=_mourn, daemon=True).start()
    with contextlib.suppress(KeyboardInterrupt, EOFError, OSError):
        pipe.send(Event("ready", ""))
        while True:
            parcel, job = pipe.recv()
            pipe.send(perform(parcel, job, _Telling(pipe, parcel.id)))


class _Telling:
    """Passes on how far a learner is."""

    def __init__(self, pipe: Connection, id: str) -> None:
        self.pipe, self.id = pipe, id

    def __call__(self, done: int, of: int) -> None:
        with contextlib.suppress(OSError):  # who listened is gone; so is this process, soon
            self.pipe.send(Event("episodes", self.id, done))


def _mourn() -> None:
    """Stop when the process that started this one is gone: as for Ctrl-C, and for certain after a while."""
    parent: Any = parent_process()
    parent.join()
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(GRACE)
    os._exit(1)
