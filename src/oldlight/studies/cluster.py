"""The dask engine: the jobs on the workers of a dask.distributed cluster, or of a local one where no address is given.

A worker that can reach the results folder (it sees a file that the runner has just put there) writes its checkpoints and results
itself, as in the local engine; one that cannot sends the finished file back, and has no checkpoints. The job of a worker that dies
is given to another one by the scheduler, and continues from the checkpoint; after several deaths it fails. A job that nobody waits
for any more, because the runner was stopped or has died, stops at its last checkpoint.

The numbers are those of the local engine: the seed of a job decides them, and each job keeps to one thread. Workers need the same
version of this package, and code of one's own on their path (the study's folder is tried too).
"""

from __future__ import annotations

import contextlib
import queue
import secrets
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from oldlight.studies.jobs import Job
from oldlight.studies.work import Event, PackedJob, RunSettings, keep_to_one_thread, perform
from oldlight.workers import ONE_THREAD

MESSAGE_EVERY = 1.0  # seconds between two messages of a worker


def run_on_dask(
    jobs: Sequence[Job], settings: RunSettings, workers: int, scheduler: str | None
) -> Generator[Event, None, None]:
    """Do the jobs; yields what happens. Closing it takes back what is not finished."""
    token = secrets.token_hex(6)
    with _client(workers, scheduler) as client, _sign(settings, token) as sign:
        news: queue.SimpleQueue[Any] = queue.SimpleQueue()
        client.subscribe_topic(token, lambda message: news.put(Event(*message[1])))
        futures = {}
        for job in jobs:
            key = f"oldlight-{job.id}-{token}"
            future = client.submit(remote, PackedJob.of(job), settings, sign, token, key=key, pure=False)
            futures[key] = (future, job.id)
            future.add_done_callback(news.put)
        try:
            while futures:
                with contextlib.suppress(queue.Empty):  # a wait that Ctrl-C can interrupt
                    message = news.get(timeout=1.0)
                    if isinstance(message, Event):
                        yield message
                    elif message.status in (
                        "lost",
                        "pending",
                    ):  # its worker died with the result: the scheduler has the job done again
                        message.add_done_callback(news.put)
                    else:
                        yield _outcome(message, futures.pop(message.key)[1])
        finally:
            client.cancel([future for future, _ in futures.values()], reason="stopped")


def _outcome(future: Any, id: str) -> Event:
    """What became of a job; a cluster that has gone away is no fault of the job."""
    if future.status == "finished":
        event: Event = future.result()
        return event
    if future.status == "error":
        error = future.exception()
        if type(error).__name__ == "KilledWorker":
            return Event("failed", id, error="the dask workers that tried this job died; were they out of memory?")
        return Event("failed", id, error=f"{type(error).__name__}: {error}")
    raise ConnectionError(
        f"the dask cluster has gone away (a job was {future.status}); what is finished is kept: start the study again when the "
        "cluster is back"
    )


@contextlib.contextmanager
def _client(workers: int, scheduler: str | None) -> Iterator[Any]:
    try:
        import distributed
    except ImportError:
        raise ImportError('the dask engine needs the package distributed: pip install "oldlight[dask]"') from None
    dask: Any = distributed  # its functions have no types
    if scheduler is not None:
        _check_address(scheduler)
        try:
            client = dask.Client(scheduler, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ConnectionError(f"no dask scheduler answers at {scheduler} ({error})") from None
        with client:
            yield client
        return
    # no dashboard, and whatever port is free for what the scheduler serves all the same: without an address it warns where 8787 is taken
    quiet = {"dashboard_address": "127.0.0.1:0", "scheduler_kwargs": {"dashboard": False}}
    of = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "memory_limit": 0, "env": ONE_THREAD}
    with (
        dask.LocalCluster(**of, **quiet) as cluster,
        dask.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def _check_address(scheduler: str) -> None:
    """Refuse what is no address before there is a Client, which would try for a minute to close what it never opened."""
    from distributed.comm.addressing import parse_address, parse_host_port
    from distributed.comm.registry import get_backend

    try:
        scheme, place = parse_address(scheduler)
        get_backend(scheme)
        _, port = parse_host_port(place)
        if not 0 < port < 2**16:
            raise ValueError(f"port {port} is not in 1..65535")
    except ValueError as error:
        raise ValueError(
            f"scheduler is {scheduler!r}, expected an address such as tcp://10.0.0.1:8786 ({error})"
        ) from None


@contextlib.contextmanager
def _sign(settings: RunSettings, token: str) -> Iterator[str]:
    """A file in the folder by which a worker knows that it sees the same folder."""
    assert settings.folder is not None
    path = Path(settings.folder) / "running" / f".sign-{token}"
    path.touch()
    try:
        yield str(path)
    finally:
        path.unlink(missing_ok=True)


# -- in the worker ----------------------------------------------------------------------------------------------------


def remote(packed: PackedJob, settings: RunSettings, sign: str, token: str) -> Event:
    """Do one job on a worker of the cluster."""
    from distributed import get_worker

    keep_to_one_thread()
    worker = get_worker()
    worker.log_event(token, ("started", packed.id))
    reachable = Path(sign).exists()
    return perform(
        packed, settings if reachable else replace(settings, folder=None), _Callback(worker, packed.id, token)
    )


class _Callback:
    """Passes on how far a learner is, and stops it when nobody waits for it."""

    def __init__(self, worker: Any, id: str, token: str) -> None:
        self.worker, self.id, self.token = worker, id, token
        self.sent = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() - self.sent < MESSAGE_EVERY:
            return
        self.sent = time.monotonic()
        self.worker.log_event(self.token, ("episodes", self.id, done))
        task = self.worker.state.tasks.get(f"oldlight-{self.id}-{self.token}")
        if task is None or task.state == "cancelled":
            raise KeyboardInterrupt
