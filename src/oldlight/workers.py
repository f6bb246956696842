"""Worker processes: one way to start them, one way to stop them, and none is left behind.

    with Pool(do, 4) as pool:                             # do(job, report), a function of a module
        for kind, k, what in pool.run(jobs): ...          # job k "started"; "reported" what; is "done": its result; "failed": the
                                                          # exception; or its process "died": how

A `Worker` is a process started with the spawn method, one thread and a pipe of its own, so that it is always known what a worker was
doing: of one that dies (killed for its memory, say) the job is known, a new one takes its place, and the others go on. It is started
without the current folder on its path (a `pickle.py` there would be imported before anything else); it then has the path of this
process. A `Pool` gives jobs to workers; the testbed's processes are workers without a pool.

**Stopping.** Ctrl-C is heard by the process that has the terminal alone, since workers leave its group. `stop` closes the pipe of a
worker that does nothing, which ends it, and sends SIGINT to one that has a job: inside a job the first SIGINT is a KeyboardInterrupt,
all others are ignored, so that the job can put down what it has (a checkpoint, the run so far) and return it. What has not ended after
`GRACE` seconds is killed. When the process that started a worker dies, by kill −9 or otherwise, the worker notices and ends in the same
way.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import connection, get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

THREADS = ("OLDLIGHT_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
           "NUMBA_NUM_THREADS")  # fmt: skip
ONE_THREAD = dict.fromkeys(THREADS, "1")  # one job, one core: workers do not fight, and their number decides no number
SAFE = "PYTHONSAFEPATH"  # Python does not look in the current folder
GRACE = 10.0  # seconds that a worker has to put down what it has
AGAIN = 0.5  # seconds between two SIGINTs: a job that is just beginning does not hear the first

Do = Callable[[Any, Callable[[Any], None]], Any]  # do(job, report) -> result


class Worker:
    """A process that runs target(its end of the pipe, *arguments), and this end of the pipe.

    ready: it has reported that it is there. job: the number of the job that it is doing.
    """

    def __init__(self, target: Callable[..., None], *arguments: Any, name: str | None = None) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        given = (theirs, os.environ.get(SAFE), target, arguments)
        self.process: BaseProcess = context.Process(target=_begin, args=given, name=name, daemon=True)
        self.job: int | None = None
        self.ready = False
        try:
            with _environment(ONE_THREAD | {SAFE: "1"}), _deaf():
                self.process.start()
        finally:
            theirs.close()

    def send(self, what: Any) -> bool:
        """Send it something; False if it has died in the meantime."""
        try:
            self.pipe.send(what)
        except OSError:
            return False
        return True

    def receive(self) -> Any:
        """The next thing that it says; None if it has died."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):  # its end of the pipe is closed, perhaps in the middle of a message
            return None

    def interrupt(self) -> None:
        """Send it SIGINT."""
        if self.process.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGINT)

    def death(self) -> str:
        """How it ended."""
        self.process.join(GRACE)
        code = self.process.exitcode
        if code is None or code >= 0:
            return f"the worker process ended by itself (exit code {code})"
        name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
        hint = "; was it out of memory?" if name == "SIGKILL" else ""
        return f"the worker process was killed by signal {-code} ({name}){hint}"


class Pool:
    """At most `size` workers, each doing one job at a time: do(job, report). Leaving the `with` block stops them."""

    def __init__(self, do: Do, size: int) -> None:
        self._do, self._size = do, size
        self._workers: list[Worker] = []

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def run(self, jobs: Sequence[Any], pack: Callable[[Any], Any] | None = None) -> Iterator[tuple[str, int, Any]]:
        """Do the jobs, in this order as far as workers are free; yields (kind, number of the job, what), see the module's text.

        pack: makes of a job what is sent to the worker, when it is sent.
        """
        waiting = list(reversed(range(len(jobs))))
        workers = self._workers
        for _ in range(min(self._size, len(jobs))):
            workers.append(Worker(serve, self._do))
        while waiting or any(worker.job is not None for worker in workers):
            for worker in workers:
                if worker.ready and worker.job is None and waiting:
                    job = jobs[waiting[-1]]
                    if worker.send((waiting[-1], job if pack is None else pack(job))):
                        worker.job = waiting.pop()
                        yield "started", worker.job, None
            heard = connection.wait([worker.pipe for worker in workers])
            for number, worker in enumerate(workers):
                if worker.pipe not in heard:
                    continue
                message = worker.receive()
                if message is None:
                    workers[number] = self._replaced(worker)
                    if worker.job is not None:
                        yield "died", worker.job, worker.death()
                elif message[0] == "ready":
                    worker.ready = True
                else:
                    if message[0] != "reported":
                        worker.job = None
                    yield message

    def stop(self) -> dict[int, Any]:
        """Stop all workers; the results of the jobs that were under way, by number, as far as they had any."""
        workers, self._workers = self._workers, []
        return stop(workers)

    def _replaced(self, worker: Worker) -> Worker:
        """A new worker for one that has died; refused if it never came to life."""
        if not worker.ready:
            raise RuntimeError(
                f'{worker.death()} before it began. A script that starts worker processes needs `if __name__ == "__main__":` '
                "before the call, because they import it"
            )
        worker.pipe.close()
        return Worker(serve, self._do)


def stop(workers: Sequence[Worker]) -> dict[int, Any]:
    """The one way in which processes are stopped, see the module's text; what the jobs under way returned, by number."""
    found: dict[int, Any] = {}
    until = time.monotonic() + GRACE
    try:
        busy = [worker for worker in workers if worker.job is not None]
        for worker in workers:
            if worker.job is None:
                worker.pipe.close()
        while busy and time.monotonic() < until:
            for worker in busy:
                worker.interrupt()
            heard = connection.wait([worker.pipe for worker in busy], AGAIN)
            for worker in [worker for worker in busy if worker.pipe in heard]:
                message = worker.receive()
                if message is None or message[0] != "reported":
                    busy.remove(worker)
                    worker.pipe.close()
                    found |= {message[1]: message[2]} if message is not None and message[0] == "done" else {}
        for worker in workers:
            worker.process.join(0.2 if worker in busy else max(0.2, until - time.monotonic()))
    finally:
        for worker in workers:
            worker.pipe.close()
            if worker.process.is_alive():
                worker.process.kill()
            worker.process.join()
            worker.process.close()
    return found


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """Hold back SIGINT in this thread, and in the processes that are started inside until they take it up themselves (`_begin`): a worker that
    is still importing when somebody presses Ctrl-C would print a traceback."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which would hear SIGINT again when it starts the process of its own
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
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


def _begin(pipe: Connection, safe: str | None, target: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """What every worker does first. safe: the PYTHONSAFEPATH of the process that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # which also forgets one that was held back
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    del os.environ[SAFE]
    os.environ.update({} if safe is None else {SAFE: safe})
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    target(pipe, *arguments)


def serve(pipe: Connection, do: Do) -> None:
    """Do the jobs that come through the pipe until it closes."""
    with contextlib.suppress(EOFError, OSError):
        pipe.send(("ready", -1, None))
        while True:
            k, job = pipe.recv()
            pipe.send(_interruptible(do, job, k, _Report(pipe, k)))


def _interruptible(do: Do, job: Any, k: int, report: Callable[[Any], None]) -> tuple[str, int, Any]:
    """do(job, report), which hears the first SIGINT; where it does not deal with that itself, what is attached to it (`.partial`).

    Not while numba reads a random generator, which it does by ctypes: what is raised there is dropped. SIGINT comes again (`AGAIN`)."""

    def hear(number: int, frame: Any) -> None:
        if frame is not None and frame.f_globals.get("__name__") == "ctypes":
            return
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    result = None
    try:
        signal.signal(signal.SIGINT, hear)
        result = do(job, report)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt as heard:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # raised by the job itself
        return "done", k, getattr(heard, "partial", result)
    except Exception as error:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return "failed", k, _portable(error)
    return "done", k, result


def _portable(error: Exception) -> Exception:
    """The error as it can be sent to another process, with its traceback as a note."""
    error.add_note("In a worker process:\n" + "".join(traceback.format_exception(error)))
    try:
        sent: Exception = pickle.loads(pickle.dumps(error))
    except Exception:  # whatever goes wrong in code of the user's
        return RuntimeError(f"{type(error).__name__}: {error}")
    return sent


class _Report:
    """Passes on what a job says while it is done."""

    def __init__(self, pipe: Connection, k: int) -> None:
        self._pipe, self._k = pipe, k

    def __call__(self, what: Any) -> None:
        with contextlib.suppress(OSError):  # who listened is gone; so is this process, soon
            self._pipe.send(("reported", self._k, what))


def _end_with_parent() -> None:
    """End when the process that started this one is gone: as when it is stopped, and for certain after a while."""
    parent: Any = parent_process()
    parent.join()
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(GRACE)
    os._exit(1)
