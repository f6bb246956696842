"""Results as tidy tables: one row for each episode of each run, or one for each job. For pandas, Arrow, CSV, Parquet and LaTeX.

| column | |
|---|---|
| block, instance, channel, label | the names that the study gives |
| kind, replicate, seed, id | "learner" or "task"; which repetition, its seed, and the job's id |
| episode | from 1 (rows of episodes only) |
| value, half_width | of the episode's policy, and of its 95% interval (0 where exact) |
| regret | cumulative, against the best executable policy (rows of jobs: at the end) |
| best | the value of the best executable policy |
| return, estimate, seconds | earned, the learner's own estimate, time |

Rows of jobs have, for a task, its scalars as columns instead; what a job does not have is empty.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np

from oldlight import checks
from oldlight.learners.run import LearningRun
from oldlight.studies.result import Result

Rows = Literal["episodes", "jobs"]
NAMES = ("block", "instance", "channel", "label", "kind", "replicate", "seed", "id")
COLUMNS = {
    "values": "value", "half_widths": "half_width", "returns": "return", "estimates": "estimate", "seconds": "seconds",
}  # fmt: skip


class Results:
    """The finished jobs of a study, in its order; made by `results`. Iterate over it, or take all of it as a table.

    Examples
    --------
    >>> import tempfile
    >>> from oldlight.studies import load_study, results, run_study
    >>> study = load_study({"name": "tiny", "instances": ["dichotomy:1"], "channels": ["constant:2"], "learners": ["UniformRandom"], "episodes": 3})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = run_study(study, folder, workers=1, progress=False)
    ...     len(results(folder).frame())
    3
    """

    def __init__(self, read: Callable[[], Iterator[Result]]) -> None:
        self._read = read
        self._left: Iterator[Result] | None = None

    def __iter__(self) -> Iterator[Result]:
        return self._read()

    def __next__(self) -> Result:
        if self._left is None:
            self._left = self._read()
        return next(self._left)

    def frame(self, rows: Rows = "episodes") -> Any:
        """A pandas DataFrame if pandas is installed, else an Arrow table; rows: of "episodes" of the learners, or of "jobs"."""
        return frame(self, rows)

    def __repr__(self) -> str:
        return f"Results({sum(1 for _ in self)} jobs)"


def table(found: Iterable[Result], rows: Rows = "episodes") -> Any:
    """The Arrow table of the module's text."""
    import pyarrow as pa  # type: ignore[import-untyped]

    checks.one_of("rows", rows, ("episodes", "jobs"))
    parts = [_of_job(result) if rows == "jobs" else _of_episodes(result) for result in found]
    parts = [part for part in parts if part is not None]
    if not parts:
        return pa.table({name: [] for name in NAMES})
    return pa.concat_tables([pa.table(part) for part in parts], promote_options="permissive")


def frame(found: Iterable[Result], rows: Rows = "episodes") -> Any:
    """`table`, as a pandas DataFrame if pandas is installed."""
    from importlib.util import find_spec

    made = table(found, rows)
    return made if find_spec("pandas") is None else made.to_pandas()


def run_table(run: LearningRun) -> Any:
    """One run, not of a study, as the same table."""
    import pyarrow as pa

    names = {"instance": run.problem, "label": run.learner, "kind": "learner", "seed": run.seed}
    return pa.table(_episodes(run, names))


def write_csv(made: Any, path: str | os.PathLike[str]) -> Path:
    """The table as CSV with a header."""
    import pyarrow.csv  # type: ignore[import-untyped]

    target = Path(path)
    checks.write_file(target, lambda stream: pyarrow.csv.write_csv(made, stream))
    return target


def write_parquet(made: Any, path: str | os.PathLike[str]) -> Path:
    """The table as one Parquet file."""
    import pyarrow.parquet  # type: ignore[import-untyped]

    target = Path(path)
    checks.write_file(target, lambda stream: pyarrow.parquet.write_table(made, stream))
    return target


def latex(found: Iterable[Result]) -> str:
    """A LaTeX table (booktabs): problems down, learners across, the last cumulative regret as mean ± standard deviation over the seeds. Where
    blocks share a problem, for other numbers of episodes say, each has a row of its own and its name in a column."""
    each: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for result in found:
        if result.kind == "learner":
            row = each.setdefault((result.block, result.instance, result.channel), {})
            row.setdefault(result.label, []).append(float(result.run.regret[-1]))
    if not each:
        raise ValueError("no learner is finished here, so there is no regret for a LaTeX table; use --csv or --parquet")
    labels = list(dict.fromkeys(label for row in each.values() for label in row))
    first = 0 if len({problem[1:] for problem in each}) < len(each) else 1  # is the block's name needed?
    titles = ["block", "process", "link"][first:]
    lines = [rf"\begin{{tabular}}{{{'l' * len(titles)}{'r' * len(labels)}}}", r"\toprule"]
    lines += [" & ".join([*titles, *map(_escaped, labels)]) + r" \\", r"\midrule"]
    for problem, row in each.items():
        cells = [_cell(row.get(label, [])) for label in labels]
        lines.append(" & ".join([*map(_escaped, problem[first:]), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _cell(regrets: list[float]) -> str:
    if not regrets:
        return "--"
    mean = float(np.mean(regrets))
    if len(regrets) == 1:
        return f"{mean:.4g}"
    deviation = float(np.std(regrets, ddof=1))
    return rf"${mean:.4g} \pm {deviation if deviation > 1e-12 * abs(mean) else 0.0:.2g}$"  # below that it is rounding


def _escaped(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(special.get(c, "\\" + c if c in "&%$#_{}" else c) for c in text)


def _names(result: Result) -> dict[str, Any]:
    return {name: getattr(result, name) for name in NAMES}


def _of_episodes(result: Result) -> dict[str, Any] | None:
    """None for a task, which has no episodes."""
    return _episodes(result.run, _names(result)) if result.kind == "learner" else None


def _episodes(run: LearningRun, names: dict[str, Any]) -> dict[str, Any]:
    n = len(run.values)
    columns: dict[str, Any] = {name: [value] * n for name, value in names.items()}
    columns |= {"episode": np.arange(1, n + 1), "regret": run.regret, "best": np.full(n, run.best)}
    return columns | {new: getattr(run, old) for old, new in COLUMNS.items()}


def _of_job(result: Result) -> dict[str, Any]:
    row: dict[str, Any] = {name: [value] for name, value in _names(result).items()}
    row |= {name: [value] for name, value in result.scalars.items() if name not in row}
    if result.kind == "learner":
        run = result.run
        row |= {"episodes": [run.done], "regret": [float(run.regret[-1])], "value": [float(run.values[-1])]}
    return row | {"job_seconds": [result.seconds]}
