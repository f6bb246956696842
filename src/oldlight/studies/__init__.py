"""Studies: instances × channels × learners or tasks × seeds, from a file, resumable, on this machine or a cluster.

    study = load_study("study.toml")                 # or a mapping with the same keys
    run_study(study, "runs")                         # does what is missing; Ctrl-C and kill −9 lose little
    for result in results("runs"): ...               # settings, columns and scalars of each finished job

`spec` is what a study may say, `entries` what its lists stand for, `study` expands it into jobs, `jobs` gives each an id
and a seed, `tasks` are the things to do that do not learn, `work` does one job, `result` is its file and `store` the folder of
them, `local` and `cluster` are the engines, and `runner` joins them. `trust` remembers the folders whose code may run.
docs/studies.md is the guide.
"""

from typing import Any

from oldlight.checks import renamed
from oldlight.studies.jobs import Environment, Job
from oldlight.studies.progress_counter import Progress
from oldlight.studies.result import Result
from oldlight.studies.runner import run_study
from oldlight.studies.status import Failure, Running, StudyStatus, status
from oldlight.studies.store import numbers, results
from oldlight.studies.study import Study, load_study

__all__ = [
    "Environment",
    "Failure",
    "Job",
    "Progress",
    "Result",
    "Running",
    "Study",
    "StudyStatus",
    "load_study",
    "numbers",
    "results",
    "run_study",
    "status",
]


def __getattr__(name: str) -> Any:
    if name != "Cell":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    renamed("oldlight.studies.Cell", "oldlight.studies.Job")
    return Job
