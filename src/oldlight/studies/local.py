"""The local engine: worker processes on this machine (`oldlight.workers`), each doing one job at a time.

Results and checkpoints are written by the worker itself. A worker that is stopped, or whose runner has died, writes a checkpoint of its
last complete episode first.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

from oldlight.studies.jobs import Job
from oldlight.studies.work import Event, PackedJob, RunSettings, perform
from oldlight.workers import Pool


def run_locally(jobs: Sequence[Job], settings: RunSettings, workers: int) -> Generator[Event, None, None]:
    """Do the jobs, in this order as far as workers are free; yields what happens. Closing it stops the workers."""
    with Pool(partial(_perform, settings), workers) as pool:
        for kind, k, what in pool.run(jobs, PackedJob.of):
            if kind == "started":
                yield Event("started", jobs[k].id)
            elif kind == "reported":
                yield Event("episodes", jobs[k].id, what)
            else:
                yield what if kind == "done" else Event("failed", jobs[k].id, error=str(what))


def _perform(settings: RunSettings, packed: PackedJob, report: Callable[[Any], None]) -> Event:
    """Do one job in a worker."""
    return perform(packed, settings, lambda done, total: report(done))
