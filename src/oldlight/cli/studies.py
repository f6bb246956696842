"""Studies and pages: run, status, report, paper."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oldlight.cli.shared import (
    AsJson,
    app,
    said,
    tell,
    write_json,
)

if TYPE_CHECKING:
    from oldlight.studies import Study

Engine = Annotated[str, typer.Option("--engine", help="local (processes of this machine) or dask (a cluster).")]
Scheduler = Annotated[
    str | None, typer.Option("--scheduler", metavar="ADDRESS", help="Of a dask cluster; none: a local one.")
]
Workers = Annotated[
    int | None, typer.Option("--workers", min=1, help="Processes; all cores if not given. No number depends on it.")
]
Retry = Annotated[bool, typer.Option("--retry-failed", help="Try again what failed before.")]


def _run(study: Any, out: str, engine: Any, scheduler: str | None, workers: int | None, retry: bool) -> Any:
    from oldlight.checks import one_of
    from oldlight.studies import run_study
    from oldlight.studies import status as status_of

    said("--engine", one_of, "engine", engine, ("local", "dask"))
    if scheduler is not None and engine != "dask":
        raise typer.BadParameter("only --engine dask has a scheduler", param_hint="--scheduler")
    try:
        now = run_study(study, out, engine=engine, scheduler=scheduler, workers=workers, retry_failed=retry)
    except KeyboardInterrupt:
        with contextlib.suppress(OSError, ValueError):  # it had not begun
            tell(f"{status_of(out)}. The same command goes on from there.")
        raise
    tell(str(now))
    for failure in now.failed[:5]:
        tell(f"  failed: {failure.name}: {failure.error}")
    return now


@app.command()
def run(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="A study file (TOML); docs/studies.md has the keys.")],
    out: Annotated[str | None, typer.Option("--out", metavar="FOLDER", help="Where results go; runs/NAME-OF-FILE if not given.")] = None,
    engine: Engine = "local",
    scheduler: Scheduler = None,
    workers: Workers = None,
    retry_failed: Retry = False,
    dry: Annotated[bool, typer.Option("--dry-run", help="Check the study and say what would be done; no code of its own is imported, and what is not checked is named.")] = False,
    trust: Annotated[bool, typer.Option("--trust", help="Trust the study's folder, now and later, with what I may do: code that it names is run. Look at it first.")] = False,
) -> None:  # fmt: skip
    """Run a study: what is missing is computed, what is finished stays. Stop and start it as you like.

    A study that names code (module:name) runs it. The mark guards against accidents: only what has @oldlight.registered before it, or derives from a class of oldlight's, may be named. --trust guards against strangers: before anything is imported for a study from a folder that has not been trusted yet, you are asked on a terminal, and need --trust elsewhere.

    Examples:
    [dim]oldlight run study.toml[/dim]
    [dim]oldlight run study.toml --engine dask --scheduler tcp://10.0.0.1:8786[/dim]
    """
    from pathlib import Path

    need_extra("pydantic", "pyarrow")
    from oldlight.studies import load_study

    found = said("STUDY", load_study, study, import_code=False)
    folder = out or str(Path("runs") / Path(study).stem)
    if dry:
        found.check()
        tell(f"{found!r} would go to {folder}; nothing was run")
        _not_checked(found.code)
        return
    if found.code:
        _need_trust(found, trust)
        found = said("STUDY", found.with_code)
    now = _run(found, folder, engine, scheduler, workers, retry_failed)
    if not now.complete:
        raise typer.Exit(1)
    tell(f"Now: oldlight report {folder}")


def _need_trust(study: Study, trust: bool) -> None:
    """Ask, or refuse, before code is imported for a study from a folder that is not trusted."""
    from oldlight.own_code import whereabouts
    from oldlight.studies.trust import is_trusted, remember

    if is_trusted(study.folder):
        return
    if not trust:
        tell(f"{study.source} names code that would be imported and run, with everything that you may do:")
        for name in study.code:
            tell(_printable(f"  {name}  ({whereabouts(name, study.folder)})"))
        asked = sys.stdin.isatty() and sys.stderr.isatty()
        if not asked or not typer.confirm(_printable(f"Trust the folder {study.folder} from now on?"), err=True):
            raise typer.BadParameter(
                _printable(
                    f"the folder {study.folder} has not been trusted yet, and {study.code[0]} would be imported; look at "
                )
                + "what it names, then give --trust. --dry-run checks the rest without it",
                param_hint="STUDY",
            )
    remember(study.folder)


def _not_checked(code: tuple[str, ...]) -> None:
    """Say which code of the user's was named and not imported."""
    for name in code:
        tell(_printable(f"  not checked: {name}"))


def _printable(text: str) -> str:
    """Without what could move the cursor: a study's names are somebody else's text."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


@app.command()
def status(
    folder: Annotated[str, typer.Argument(metavar="RUNS", help="A folder of results.")],
    as_json: AsJson = None,
) -> None:
    """How far a study is: done, running, failed, waiting; also while it runs.

    Examples:
    [dim]oldlight status runs/study[/dim]
    """
    import dataclasses

    need_extra("pydantic", "pyarrow")
    from oldlight.studies import status as status_of

    now = said("RUNS", status_of, folder)
    if as_json is not None:
        write_json(as_json, dataclasses.asdict(now))
        return
    typer.echo(str(now))
    for job in now.running:
        typer.echo(f"  running: {job.name}: {job.episodes:,} of {job.of:,} episodes, {job.seconds:.0f} s")
    for failure in now.failed:
        typer.echo(f"  failed: {failure.name}: {failure.error} ({failure.file})")
    for file in now.damaged:
        typer.echo(f"  damaged: {file}")
    _not_checked(now.code)


@app.command()
def report(
    folder: Annotated[str, typer.Argument(metavar="RUNS", help="A folder of results.")],
    out: Annotated[str | None, typer.Option("--out", metavar="FILE", help="The page; RUNS/report.html if not given.")] = None,
) -> None:  # fmt: skip
    """One HTML page of a study's results, and each figure as SVG and PDF beside it.

    Examples:
    [dim]oldlight report runs/study --out page/index.html[/dim]
    """
    from pathlib import Path

    need_extra("pydantic", "pyarrow", "plotly")
    from oldlight.cli.pages import page_of
    from oldlight.studies import status as status_of

    _not_checked(said("RUNS", status_of, folder).code)
    typer.echo(page_of(folder).write(out or Path(folder) / "report.html"))


@app.command()
def export(
    folder: Annotated[str, typer.Argument(metavar="RUN", help="A folder of results, or a run that LearningRun.save wrote (.npz).")],
    csv: Annotated[str | None, typer.Option("--csv", metavar="FILE", help="Write a tidy table as CSV.")] = None,
    parquet: Annotated[str | None, typer.Option("--parquet", metavar="FILE", help="Write the same table as Parquet.")] = None,
    latex: Annotated[str | None, typer.Option("--latex", metavar="FILE", help="Write a table of the last regrets, mean ± standard deviation over the seeds (booktabs).")] = None,
    rows: Annotated[str, typer.Option("--rows", help="episodes: one row for each episode of each learner; jobs: one for each job, with the scalars of tasks.")] = "episodes",
) -> None:  # fmt: skip
    """A study's results, or one run, as tidy tables: regret, value, best value, seed and labels in columns.

    Examples:
    [dim]oldlight export runs/study --csv regret.csv[/dim]
    [dim]oldlight export runs/study --rows jobs --parquet jobs.parquet --latex table.tex[/dim]
    """
    from oldlight.checks import one_of, write_text

    need_extra("pydantic", "pyarrow")
    from oldlight.learners.run import LearningRun
    from oldlight.studies import frames, results

    said("--rows", one_of, "rows", rows, ("episodes", "jobs"))
    if csv is None and parquet is None and latex is None:
        raise typer.BadParameter("nothing to write; give --csv FILE, --parquet FILE or --latex FILE")
    one = folder.endswith(".npz")
    if one and latex is not None:
        raise typer.BadParameter("one run has no table of learners; use --csv or --parquet", param_hint="--latex")
    found = [] if one else said("RUN", list, results(folder))
    if csv is not None or parquet is not None:
        made = frames.run_table(said("RUN", LearningRun.load, folder)) if one else frames.table(found, rows)  # type: ignore[arg-type]
        for path, write in ((csv, frames.write_csv), (parquet, frames.write_parquet)):
            if path is not None:
                typer.echo(write(made, path))
    if latex is not None:
        write_text(latex, said("RUN", frames.latex, found))
        typer.echo(latex)


@app.command()
def paper(
    quick: Annotated[bool, typer.Option("--quick", help="A small setting, about half a minute, instead of about 20.")] = False,
    out: Annotated[str | None, typer.Option("--out", metavar="FOLDER", help="runs/paper or runs/paper-quick if not given.")] = None,
    engine: Engine = "local",
    scheduler: Scheduler = None,
    workers: Workers = None,
    retry_failed: Retry = False,
) -> None:  # fmt: skip
    """The paper's study: Section 6 reproduced, the exact values beside it, what the paper has no experiment for; and its page.

    Examples:
    [dim]oldlight paper --quick[/dim]
    """
    from pathlib import Path

    need_extra("pydantic", "pyarrow", "plotly")
    from oldlight.paper.paper_page import paper_page
    from oldlight.paper.section6 import paper_study
    from oldlight.studies import load_study

    folder = out or ("runs/paper-quick" if quick else "runs/paper")
    now = _run(load_study(paper_study(quick)), folder, engine, scheduler, workers, retry_failed)
    if not now.complete:
        raise typer.Exit(1)
    tell("Drawing the page ...")
    page = paper_page(folder)
    typer.echo(f"The page is in {page.write(Path(folder) / 'report.html').absolute()}")


def need_extra(*modules: str) -> None:
    """Refuse at once, with what to install, where an extra is missing."""
    from importlib.util import find_spec

    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise ModuleNotFoundError(
            f"{', '.join(missing)} is not installed; studies and pages need: pip install 'oldlight[studies]'"
        )
