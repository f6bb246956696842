"""The command line, thin: it parses, calls, prints. Everything it does is one call in Python too.

A process is a name with its arguments (`sensing_chain:0.8`), a file of `TabularMDP.save`, `gym:FrozenLake-v1@20`, or
`module:function`; a channel is given in words (see `oldlight.words`). Results are rows: a readable table on the terminal,
and with --json FILE or --csv FILE ("-" for the terminal, and then no table) the same rows for a program.

Exit codes: 0; 2 for wrong usage; 1 for failure; 130 for Ctrl-C. Errors are one paragraph; --debug shows the traceback.
Nothing heavy is imported before a command needs it, so that --help answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from oldlight.problem import ImpairedMDP

app = typer.Typer(
    name="oldlight",
    help="Act well when observations arrive late or never: plan, price, simulate and learn behind a delayed or lossy link.\n\n"
    "Start with:  oldlight list   ·   oldlight gap sensing_chain --warm --channel constant:2   ·   oldlight paper --quick",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

# -- what several commands share --------------------------------------------------------------------------------------

Process = Annotated[
    str,
    typer.Argument(
        metavar="PROCESS", help="A named process (sensing_chain:0.8), a file, gym:FrozenLake-v1@20, or module:function."
    ),
]
Channel = Annotated[
    str,
    typer.Option(
        "--channel", "-c",
        help="constant:2, geometric:0.3, loss:0.2 (20% lost), seen:0.8, constant:2+loss:0.2, trace:link.csv, ...",
    ),
]  # fmt: skip
Channels = Annotated[
    list[str],
    typer.Option("--channel", "-c", help="As for plan; may be given several times, one row each."),
]
Warm = Annotated[
    bool, typer.Option("--warm", help="Start from a known past, actions until then uniform, as in the paper's study.")
]
Late = Annotated[int, typer.Option("--actuation", min=0, help="Actions take effect this many steps late.")]
Seed = Annotated[int, typer.Option("--seed", "-s", min=0, help="Decides everything that is drawn.")]
AsJson = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help='Write the rows as JSON; "-": to the terminal.')
]
AsCsv = Annotated[
    str | None, typer.Option("--csv", metavar="FILE", help='Write the rows as CSV; "-": to the terminal.')
]
Out = Annotated[str, typer.Option("--out", metavar="FOLDER", help="Where results go (made if need be).")]


def said(option: str, read: Callable[..., Any], *given: Any, **options: Any) -> Any:
    """What was meant by words on the command line; a mistake in them is wrong usage, and names the option."""
    try:
        return read(*given, **options)
    except (ValueError, TypeError, FileNotFoundError) as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


def problem_of(process: str, channel: str, warm: bool, actuation: int = 0) -> ImpairedMDP:
    from oldlight.problem import ImpairedMDP, WarmStart
    from oldlight.words import channel_of, mdp_of

    mdp = said("PROCESS", mdp_of, process)
    link = said("--channel", channel_of, channel)
    late = {"actuation": actuation} if actuation else {}
    made: ImpairedMDP = said("--channel", ImpairedMDP, mdp, link, start=WarmStart() if warm else None, **late)
    return made


def show(rows: list[dict[str, Any]], title: str, as_json: str | None, as_csv: str | None) -> None:
    """The rows as a table, unless they go to the terminal for a program; and to the files."""
    import csv
    import io
    import json

    from oldlight.checks import write_text

    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    for target, body in ((as_json, json.dumps(rows, indent=1, ensure_ascii=False) + "\n"), (as_csv, text.getvalue())):
        if target == "-":
            sys.stdout.write(body)
        elif target is not None:
            write_text(target, body)
    if "-" in (as_json, as_csv):
        return
    from rich.table import Table

    if len(rows) == 1:
        table = Table("", "", title=title, title_justify="left", title_style="bold", show_header=False)
        for column in columns:
            table.add_row(column, _cell(rows[0][column]))
    else:
        table = Table(title=title, title_justify="left", title_style="bold")
        for column in columns:
            numeric = all(isinstance(row.get(column), int | float) for row in rows)
            table.add_column(column, justify="right" if numeric else "left", overflow="fold")
        for row in rows:
            table.add_row(*(_cell(row.get(column)) for column in columns))
    console().print(table)


def console() -> Any:
    """As wide as the terminal; where there is none, wide enough for the tables."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 140)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}" if isinstance(value, float) else str(value)


def tell(text: str) -> None:
    typer.echo(text, err=True)


# -- one problem ------------------------------------------------------------------------------------------------------


@app.command()
def plan(
    process: Process,
    channel: Channel = "none",
    warm: Warm = False,
    actuation: Late = 0,
    tolerance: Annotated[float, typer.Option(help="Loss only: stop when the value is known to within this.")] = 0.0,
    depth: Annotated[int | None, typer.Option(help="Long delays: remember only this many actions; bounds on both sides.")] = None,
    max_gb: Annotated[float | None, typer.Option(help="Memory the plan may take; refused beforehand if it needs more.")] = None,
    save: Annotated[str | None, typer.Option(metavar="FILE", help="Write the policy, for simulate --policy and the controller.")] = None,
    as_json: AsJson = None,
    as_csv: AsCsv = None,
) -> None:  # fmt: skip
    """The best policy that can be executed behind the channel, and its value.

    [dim]oldlight plan sensing_chain:0.8 --warm --channel constant:2 --save best.npz[/dim]
    [dim]oldlight plan gym:FrozenLake-v1@20 --channel constant:1+loss:0.2[/dim]
    """
    from oldlight.planning import solve

    problem = problem_of(process, channel, warm, actuation)
    found = solve(problem, tolerance=tolerance, depth=depth, max_bytes=None if max_gb is None else int(max_gb * 1e9))
    row = {
        "process": process,
        "channel": channel,
        "start": "warm" if warm else "cold",
        "value": found.value,
        "lower": found.lower,
        "upper": found.upper,
        "exact": found.exact,
        "information states": found.work.information_states,
        "seconds": found.work.seconds,
    }
    show([row], f"Best executable policy of {problem.mdp!r}", as_json, as_csv)
    if save is not None:
        if not hasattr(found.policy, "save"):
            raise ValueError(
                f"--save: a {type(found.policy).__name__} is a function, not a table, and has no file form"
            )
        tell(f"The policy is in {found.policy.save(save)}")


@app.command()
def gap(
    process: Process,
    channel: Channels = ["constant:1"],  # noqa: B006
    warm: Warm = False,
    actuation: Late = 0,
    terms: Annotated[bool, typer.Option("--terms", help="Both terms of Proposition 4, and the bound they give.")] = False,
    as_json: AsJson = None,
    as_csv: AsCsv = None,
) -> None:  # fmt: skip
    """What the impairment costs: the optimal value with full information less the best executable one.

    [dim]oldlight gap sensing_chain --warm -c constant:1 -c constant:2 -c loss:0.2 --csv prices.csv[/dim]
    """
    from oldlight.planning.gap import gap as price

    rows = []
    for words in channel:
        found = price(problem_of(process, words, warm, actuation))
        row = {
            "process": process,
            "channel": words,
            "full": found.full,
            "executable": found.impaired,
            "gap": found.value,
            "% of full": 100 * found.relative,
        }
        if terms:
            row |= {
                "first term": float(found.e1.sum()),
                "second term": float(found.e2.sum()),
                "Proposition 4": found.bound,
            }
        rows.append(row)
    show(rows, f"What the link costs ({'warm' if warm else 'cold'} start)", as_json, as_csv)


POLICIES = ("best", "uniform", "most-likely", "qmdp", "memoryless", "open-loop", "full-information")


def policy_of(problem: ImpairedMDP, name: str) -> Any:
    """A named policy, or one from a file."""
    from oldlight.planning import heuristics, solve
    from oldlight.policies import FunctionPolicy, load_policy

    if name == "best":
        return solve(problem).policy
    if name == "uniform":
        A = problem.n_actions
        return FunctionPolicy(lambda info: [1 / A] * A, A)
    if name in POLICIES:
        return getattr(heuristics, name.replace("-", "_"))(problem)
    from pathlib import Path

    if not Path(name).exists():
        from oldlight.words import nearest

        raise FileNotFoundError(f"{name!r} is neither a file nor a known policy{nearest(name, POLICIES)}")
    return load_policy(name)


@app.command()
def simulate(
    process: Process,
    channel: Channel = "none",
    warm: Warm = False,
    actuation: Late = 0,
    policy: Annotated[str, typer.Option(help=f"{', '.join(POLICIES)}, or a file of plan --save.")] = "best",
    episodes: Annotated[int, typer.Option("--episodes", "-n", min=1)] = 100_000,
    seed: Seed = 0,
    as_json: AsJson = None,
    as_csv: AsCsv = None,
) -> None:
    """Play episodes through the link; the mean return with its 95% interval, beside the exact value where there is one.

    [dim]oldlight simulate sensing_chain --warm -c constant:2 --policy memoryless -n 1000000[/dim]
    """
    from oldlight.planning.evaluation import evaluate
    from oldlight.policies import MarkovPolicy
    from oldlight.simulation import simulate as play

    problem = problem_of(process, channel, warm, actuation)
    chosen = said("--policy", policy_of, problem, policy)
    found = play(problem, chosen, episodes, seed=seed)
    worth = None if isinstance(chosen, MarkovPolicy) else evaluate(problem, chosen, seed=seed)
    row = {
        "process": process,
        "channel": channel,
        "policy": policy,
        "episodes": episodes,
        "mean return": found.mean,
        "± 95%": found.half_width,
        "exact value": worth.value if worth is not None and worth.exact else None,
    }
    show([row], f"Played with seed {seed} ({'warm' if warm else 'cold'} start)", as_json, as_csv)


@app.command()
def learn(
    process: Process,
    channel: Channel = "none",
    warm: Warm = False,
    learner: Annotated[list[str], typer.Option("--learner", "-l", help="A name of `oldlight list` or module:Class; several for a comparison.")] = ["DelayedUCBVI"],  # noqa: B006
    option: Annotated[list[str], typer.Option("--option", "-o", help="key=value for every learner that has it, e.g. -o pooled=true -o c=0.05")] = [],  # noqa: B006
    episodes: Annotated[int, typer.Option("--episodes", "-n", min=1)] = 2_000,
    seeds: Annotated[int, typer.Option(min=1, help="How many runs; the unit of the ± below.")] = 3,
    seed: Seed = 0,
    every: Annotated[int, typer.Option(min=1, help="Value the policy of every n-th episode only.")] = 10,
    workers: Annotated[int, typer.Option(min=1, help="Processes; the numbers do not depend on it.")] = 1,
    save: Annotated[str | None, typer.Option(metavar="FOLDER", help="Write each run as a file.")] = None,
    plot: Annotated[str | None, typer.Option(metavar="FILE", help="Draw the regret curves (png, svg or pdf).")] = None,
    as_json: AsJson = None,
    as_csv: AsCsv = None,
) -> None:  # fmt: skip
    """Run learners and measure their regret against the best executable policy.

    [dim]oldlight learn sensing_chain --warm -c constant:2 -l DelayedUCBVI -l PosteriorSampling -o pooled=true --plot regret.png[/dim]
    """
    from functools import partial
    from pathlib import Path

    import numpy as np

    from oldlight.learners import compare, learn_seeds
    from oldlight.words import learner_of

    problem = problem_of(process, channel, warm)
    options = dict(said("--option", _option, item) for item in option)
    for name in learner:
        said("--learner", learner_of, name, **options)
    rows, shown, labels = [], [], []
    for name in learner:
        runs = learn_seeds(problem, partial(learner_of, name, **options), episodes,
                           seeds=range(seed, seed + seeds), workers=workers, every=every)  # fmt: skip
        last = [run.regret[-1] for run in runs]
        rows.append({
            "learner": name,
            "episodes": min(run.done for run in runs),
            "runs": len(runs),
            "regret": float(np.mean(last)),
            "± sd over seeds": float(np.std(last, ddof=1)) if len(last) > 1 else None,
            "last gap %": float(100 * np.mean([run.gaps[-1] for run in runs]) / abs(runs[0].best)),
            "best value": runs[0].best,
            "episodes/s": float(1 / np.mean([np.median(run.seconds) for run in runs])),
        })  # fmt: skip
        shown += runs
        labels += [name] * len(runs)
        for run in runs if save is not None else []:
            Path(str(save)).mkdir(parents=True, exist_ok=True)
            run.save(Path(str(save)) / f"{name.replace(':', '.')}-{run.seed}.npz")
        if any(run.interrupted for run in runs):
            tell("Interrupted: these are the episodes that were done.")
            break
    show(rows, f"Regret on {process} behind {channel} ({'warm' if warm else 'cold'} start)", as_json, as_csv)
    if plot is not None:
        from matplotlib.figure import Figure

        from oldlight.checks import write_file

        figure = Figure(figsize=(7, 4), layout="constrained")
        compare(shown, ax=figure.subplots(), labels=labels)
        kind = Path(plot).suffix.removeprefix(".") or "png"
        tell(f"The picture is in {write_file(plot, lambda stream: figure.savefig(stream, format=kind, dpi=160))}")
    if any(run.interrupted for run in shown):
        raise KeyboardInterrupt


def _option(item: str) -> tuple[str, Any]:
    import json

    key, equals, value = item.partition("=")
    if not equals or not key:
        raise ValueError(f"{item!r} is not key=value, e.g. pooled=true or c=0.05")
    try:
        return key, json.loads(value)
    except json.JSONDecodeError:
        return key, value


@app.command("list")
def list_() -> None:
    """Processes, channels, learners and policies that have a name here."""
    import inspect

    from rich.table import Table

    from oldlight import learners, words

    def first_line(thing: Any) -> str:
        return (inspect.getdoc(thing) or "").partition("\n")[0]

    def arguments(thing: Any) -> str:
        return ", ".join(p.name for p in inspect.signature(thing).parameters.values())

    parts = {
        "processes": [(name, arguments(make), first_line(make)) for name, make in words.INSTANCES.items()],
        "channels": [(f"{kind}:{form}" if form else kind, "", words.MEANING[kind]) for kind, form in words.WORDS.items()],
        "learners": [(n, arguments(getattr(learners, n)), first_line(getattr(learners, n))) for n in words.learner_names()],
        "policies": [(name, "", "for simulate --policy") for name in POLICIES],
    }  # fmt: skip
    for title, rows in parts.items():
        width = 3 if any(row[1] for row in rows) else 2
        table = Table(title=title, title_justify="left", title_style="bold", show_header=False)
        for name, takes, text in rows:
            table.add_row(name.replace("[", r"\["), *([takes] if width == 3 else []), text)
        console().print(table)


# -- studies and the page ---------------------------------------------------------------------------------------------

Engine = Annotated[str, typer.Option("--engine", help="local (processes of this machine) or dask (a cluster).")]
Scheduler = Annotated[
    str | None, typer.Option("--scheduler", metavar="ADDRESS", help="Of a dask cluster; none: a local one.")
]
Workers = Annotated[
    int | None, typer.Option("--workers", min=1, help="Processes; all cores if not given. No number depends on it.")
]
Retry = Annotated[bool, typer.Option("--retry-failed", help="Try again what failed before.")]


def _run(study: Any, out: str, engine: str, scheduler: str | None, workers: int | None, retry: bool) -> Any:
    from oldlight.studies import run_study

    now = run_study(study, out, engine=engine, scheduler=scheduler, workers=workers, retry_failed=retry)
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
    dry: Annotated[bool, typer.Option("--dry-run", help="Check the study and say what would be done.")] = False,
) -> None:  # fmt: skip
    """Run a study: what is missing is computed, what is finished stays. Stop and start it as you like.

    [dim]oldlight run study.toml[/dim]
    [dim]oldlight run study.toml --engine dask --scheduler tcp://10.0.0.1:8786[/dim]
    """
    from pathlib import Path

    need_extra("pydantic", "pyarrow")
    from oldlight.studies import load_study

    found = said("STUDY", load_study, study)
    folder = out or str(Path("runs") / Path(study).stem)
    if dry:
        found.check()
        tell(f"{found!r} would go to {folder}; nothing was run")
        return
    now = _run(found, folder, engine, scheduler, workers, retry_failed)
    if not now.complete:
        raise typer.Exit(1)
    tell(f"Now: oldlight report {folder}")


@app.command()
def status(
    folder: Annotated[str, typer.Argument(metavar="RUNS", help="A folder of results.")],
    as_json: AsJson = None,
) -> None:
    """How far a study is: done, running, failed, waiting; also while it runs.

    [dim]oldlight status runs/study[/dim]
    """
    import dataclasses
    import json

    need_extra("pydantic", "pyarrow")
    from oldlight.studies import status as status_of

    now = said("RUNS", status_of, folder)
    if as_json is not None:
        text = json.dumps(dataclasses.asdict(now), indent=1, ensure_ascii=False) + "\n"
        if as_json == "-":
            sys.stdout.write(text)
        else:
            from oldlight.checks import write_text

            write_text(as_json, text)
        return
    typer.echo(str(now))
    for cell in now.running:
        typer.echo(f"  running: {cell.name}: {cell.episodes:,} of {cell.of:,} episodes, {cell.seconds:.0f} s")
    for failure in now.failed:
        typer.echo(f"  failed: {failure.name}: {failure.error} ({failure.file})")
    for file in now.damaged:
        typer.echo(f"  damaged: {file}")


@app.command()
def report(
    folder: Annotated[str, typer.Argument(metavar="RUNS", help="A folder of results.")],
    out: Annotated[str | None, typer.Option("--out", metavar="FILE", help="The page; RUNS/report.html if not given.")] = None,
) -> None:  # fmt: skip
    """One HTML page of a study's results, and each figure as SVG and PDF beside it.

    [dim]oldlight report runs/study --out page/index.html[/dim]
    """
    from pathlib import Path

    need_extra("pydantic", "pyarrow", "plotly")
    from oldlight.report.pages import page_of
    from oldlight.studies import status as status_of

    said("RUNS", status_of, folder)
    typer.echo(page_of(folder).write(out or Path(folder) / "report.html"))


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

    [dim]oldlight paper --quick[/dim]
    """
    from pathlib import Path

    need_extra("pydantic", "pyarrow", "plotly")
    from oldlight.report.paper_page import paper_page
    from oldlight.studies import load_study
    from oldlight.studies.paper import paper_study

    folder = out or ("runs/paper-quick" if quick else "runs/paper")
    now = _run(load_study(paper_study(quick)), folder, engine, scheduler, workers, retry_failed)
    if not now.complete:
        raise typer.Exit(1)
    tell("Drawing the page ...")
    page = paper_page(folder, ["oldlight paper" + (" --quick" if quick else "")])
    typer.echo(f"The page is in {page.write(Path(folder) / 'report.html').absolute()}")


def need_extra(*modules: str) -> None:
    """Refuse at once, with what to install, where an extra is missing."""
    from importlib.util import find_spec

    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise ModuleNotFoundError(
            f"{', '.join(missing)} is not installed; studies and pages need: pip install 'oldlight[studies]'"
        )


# -- the real link --------------------------------------------------------------------------------------------------


def _version(wanted: bool) -> None:
    if wanted:
        from oldlight import __version__

        typer.echo(f"oldlight {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:  # fmt: skip
    pass


def main() -> None:
    """The entry point: what goes wrong is said in one paragraph, with the exit code that fits."""
    try:
        code = app(standalone_mode=False, prog_name="oldlight")
    except (KeyboardInterrupt, typer.Abort):
        tell("Interrupted.")
        code = 130
    except Exception as error:
        show_usage = getattr(error, "show", None)  # what the parser itself refuses
        if callable(show_usage):
            show_usage()
            code = getattr(error, "exit_code", 2)
        elif "--debug" in sys.argv:
            raise
        else:
            words = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
            tell(f"Error: {words or type(error).__name__}")
            code = 1
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
