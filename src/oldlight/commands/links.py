"""The real link: trace, testbed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from oldlight.commands.problems import POLICIES, policy_of
from oldlight.commands.shared import (
    AsJson,
    Channel,
    Process,
    Seed,
    Warm,
    app,
    problem_of,
    said,
    tell,
)

if TYPE_CHECKING:
    pass

Period = Annotated[float | None, typer.Option("--period-ms", help="Control period, milliseconds a step.")]


@app.command()
def trace(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A CSV of sent and received times, or what ping printed.")],
    period_ms: Period = None,
    horizon: Annotated[int, typer.Option(min=1, help="Steps of an episode.")] = 10,
    channel: Annotated[str | None, typer.Option("--channel", metavar="FILE", help="Write the fitted channel, for --channel file:FILE.")] = None,
    deadline: Annotated[int | None, typer.Option(min=0, help="Use what is at most this many steps late, when it is this old: a channel that can be planned.")] = None,
    plot: Annotated[str | None, typer.Option(metavar="FILE", help="Draw the trace and the fit (png, svg or pdf).")] = None,
    as_json: AsJson = None,
) -> None:  # fmt: skip
    """A measured link: its delays, autocorrelation and loss, the law fitted at a control period, and how far independence is from it.

    [dim]oldlight trace link.csv --period-ms 20 --deadline 3 --channel link.json[/dim]
    [dim]ping -c 1000 -i 0.02 robot | tee link.txt; oldlight trace link.txt[/dim]
    """
    import json
    from pathlib import Path

    from oldlight.checks import write_file, write_text
    from oldlight.traces import read_trace, save_channel

    found = said("FILE", read_trace, file)
    fitted = said("--period-ms", found.fit, period_ms, horizon=horizon)
    if as_json is not None:
        text = json.dumps({"trace": found.to_dict(), "fit": fitted.to_dict()}, indent=1, ensure_ascii=False) + "\n"
        if as_json == "-":
            sys.stdout.write(text)
        else:
            write_text(as_json, text)
    if as_json != "-":
        typer.echo(str(fitted))
    if channel is not None:
        tell(
            f"The channel is in {save_channel(channel, fitted.channel() if deadline is None else fitted.with_deadline(deadline))}"
        )
    if plot is not None:
        from oldlight.traces_picture import figure

        kind = Path(plot).suffix.removeprefix(".") or "png"
        drawn = figure(fitted)
        tell(f"The picture is in {write_file(plot, lambda stream: drawn.savefig(stream, format=kind, dpi=160))}")


@app.command("testbed")
def on_testbed(
    process: Process,
    channel: Channel = "constant:2",
    warm: Warm = False,
    policy: Annotated[str, typer.Option(help=f"{', '.join(POLICIES[:-1])}, or a file of plan --save.")] = "best",
    link: Annotated[str | None, typer.Option(help="What the relay does, if not the channel that was planned for: words, or trace:FILE.")] = None,
    episodes: Annotated[int, typer.Option("--episodes", "-n", min=2)] = 300,
    period_ms: Annotated[float | None, typer.Option("--period-ms", help="By the wall clock, a tick every so many ms; else in lock-step.")] = None,
    seed: Seed = 0,
    as_json: AsJson = None,
) -> None:  # fmt: skip
    """A plan on a real link: plant, relay and controller as processes that talk UDP on loopback; the return beside the prediction.

    [dim]oldlight testbed sensing_chain --channel constant:2+loss:0.1 -n 500[/dim]
    [dim]oldlight testbed sensing_chain --channel constant:2 --link trace:link.csv --period-ms 20 -n 50[/dim]
    """
    import json

    from oldlight.checks import write_text
    from oldlight.testbed import run_testbed
    from oldlight.traces import read_trace
    from oldlight.words import channel_of

    problem = problem_of(process, channel, warm)
    chosen = said("--policy", policy_of, problem, policy)
    other = None
    if link is not None:
        is_trace = link.startswith("trace:") and "+" not in link
        other = (
            said("--link", read_trace, link.removeprefix("trace:").partition("@")[0])
            if is_trace
            else said("--link", channel_of, link)
        )
    found = run_testbed(problem, chosen, episodes=episodes, link=other, seed=seed, period_ms=period_ms)
    if as_json is not None:
        text = json.dumps(found.to_dict(), indent=1, ensure_ascii=False) + "\n"
        if as_json == "-":
            sys.stdout.write(text)
            return
        write_text(as_json, text)
    typer.echo(str(found))
