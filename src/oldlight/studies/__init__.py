"""Studies: instances × channels × learners or tasks × seeds, from a file, resumable, on this machine or a cluster.

    study = load_study("study.toml")                 # or a mapping with the same keys
    run_study(study, "runs")                         # does what is missing; Ctrl-C and kill −9 lose little
    for result in results("runs"): ...               # settings, columns and scalars of each finished cell

`spec` is what a study may say, `entries` what its lists stand for, `study` expands it into cells, `cells` gives each an id
and a seed, `tasks` are the things to do that do not learn, `work` does one cell, `result` is its file and `store` the folder of
them, `local` and `cluster` are the engines, and `runner` joins them. `trust` remembers the folders whose code may run.
docs/studies.md is the guide.
"""

from oldlight.studies.cells import Cell, Environment
from oldlight.studies.progress import Progress
from oldlight.studies.result import Result
from oldlight.studies.runner import run_study
from oldlight.studies.status import Failure, Running, StudyStatus, status
from oldlight.studies.store import numbers, results
from oldlight.studies.study import Study, load_study

__all__ = [
    "Cell",
    "Environment",
    "Failure",
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
