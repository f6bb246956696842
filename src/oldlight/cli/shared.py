"""The application, the arguments that several commands take, and how results are printed."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from oldlight.model.problem import ImpairedMDP

app = typer.Typer(
    name="oldlight",
    help="Act well when observations arrive late or never: plan, price, simulate and learn behind a delayed or lossy link.\n\n"
    "Start with:  oldlight list   ·   oldlight gap sensing_chain --warm --channel constant:2   ·   oldlight paper --quick",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

Process = Annotated[
    str,
    typer.Argument(
        metavar="PROCESS",
        help="A named process (sensing_chain:0.8), a file of TabularMDP.save, maze.pomdp@20, ring.tra@20, log.csv@20 (20 steps), gym:FrozenLake-v1@20, or module:function.",
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
PolicyName = Annotated[
    str,
    typer.Option("--policy", help="A name of `oldlight list`, module:function of a problem, or a file of plan --save."),
]
Late = Annotated[int, typer.Option("--actuation", min=0, help="Actions take effect this many steps late.")]
Discount = Annotated[
    float | None,
    typer.Option(
        "--discount", help="Let the process run for ever, rewards discounted by this factor a step, in [0, 1)."
    ),
]
Average = Annotated[
    bool, typer.Option("--average", help="Let the process run for ever; the value is the reward per step.")
]
Seed = Annotated[int, typer.Option("--seed", "-s", min=0, help="Random seed.")]
Episodes = Annotated[int, typer.Option("--episodes", "-n", min=1, help="How many episodes.")]
AsJson = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help='Write the rows as JSON; "-": to the terminal.')
]
AsCsv = Annotated[
    str | None, typer.Option("--csv", metavar="FILE", help='Write the rows as CSV; "-": to the terminal.')
]
Out = Annotated[str, typer.Option("--out", metavar="FOLDER", help="Where results go (made if need be).")]


def said(option: str, read: Callable[..., Any], *given: Any, **options: Any) -> Any:
    """What the text of an option stands for; a mistake in it is wrong usage, and the message names the option."""
    try:
        return read(*given, **options)
    except (ValueError, TypeError, FileNotFoundError) as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


def problem_of(
    process: str, channel: str, warm: bool, actuation: int = 0, discount: float | None = None, average: bool = False
) -> ImpairedMDP:
    from oldlight.model.problem import ImpairedMDP, WarmStart
    from oldlight.registry import channel_of, mdp_of

    mdp = said("PROCESS", mdp_of, process)
    if discount is not None or average:
        option = "--average" if average else "--discount"
        mdp = said(option, mdp.replace, horizon=None, discount=discount, average=average, truncation_error=0.0)
    link = said("--channel", channel_of, channel)
    late = {"actuation": actuation} if actuation else {}
    made: ImpairedMDP = said("--channel", ImpairedMDP, mdp, link, start=WarmStart() if warm else None, **late)
    return made


def targets(*files: str | None, pictures: str | None = None) -> None:
    """Refuse, before any work, a file that could not be written afterwards."""
    from pathlib import Path

    for file in (*files, pictures):
        if file is None or file == "-":
            continue
        if Path(file).is_dir():
            raise typer.BadParameter(f"{file} is a folder, expected the name of a file")
        if not Path(file).absolute().parent.is_dir():
            raise typer.BadParameter(f"{Path(file).parent}: no such folder; make it first")
    if pictures is not None and Path(pictures).suffix not in (".png", ".svg", ".pdf"):
        raise typer.BadParameter(f"{pictures}: expected a name that ends in .png, .svg or .pdf", param_hint="--plot")


def finite(value: Any) -> Any:
    """JSON knows neither NaN nor infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_json(target: str | None, data: Any) -> None:
    """Write plain values as JSON, where --json asks for it."""
    import json

    if target is not None:
        write_out(target, json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def write_out(target: str | None, text: str) -> None:
    """Write to a file; "-": to the terminal; None: nowhere."""
    from oldlight.checks import write_text

    if target == "-":
        sys.stdout.write(text)
    elif target is not None:
        write_text(target, text)


def show(rows: list[dict[str, Any]], title: str, as_json: str | None, as_csv: str | None) -> None:
    """The rows as a table, unless they go to the terminal for a program; and to the files."""
    import csv
    import io

    rows = [{key: finite(value) for key, value in row.items()} for row in rows]
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_json(as_json, rows)
    write_out(as_csv, text.getvalue())
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


def give(found: Any, as_json: str | None, plot: str | None = None) -> None:
    """A result: written as JSON, printed unless that went to the terminal, and drawn."""
    write_json(as_json, found.to_dict())
    if as_json != "-":
        typer.echo(str(found))
    if plot is not None:
        save_picture(plot, found.figure())


def save_picture(target: str, figure: Any) -> None:
    """Write a matplotlib figure in the form that the name of the file asks for."""
    from pathlib import Path

    from oldlight.checks import write_file

    kind = Path(target).suffix.removeprefix(".")
    tell(f"The picture is in {write_file(target, lambda stream: figure.savefig(stream, format=kind, dpi=160))}")


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
