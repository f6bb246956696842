"""The real link: trace, testbed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from oldlight.cli.shared import (
    AsJson,
    Channel,
    Late,
    PolicyName,
    Process,
    Seed,
    Warm,
    app,
    problem_of,
    said,
    targets,
    tell,
    write_json,
)

if TYPE_CHECKING:
    from oldlight.model.problem import ImpairedMDP


@app.command()
def trace(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A CSV of sent and received times, or what ping printed.")],
    period_ms: Annotated[float | None, typer.Option("--period-ms", help="Control period, milliseconds a step.")] = None,
    horizon: Annotated[int, typer.Option(min=1, help="Steps of an episode.")] = 10,
    channel: Annotated[str | None, typer.Option("--channel", metavar="FILE", help="Write the channel that is printed, for --channel file:FILE.")] = None,
    deadline: Annotated[int | None, typer.Option(min=0, help="Use what is at most this many steps late, when it is this old: a channel that can be planned.")] = None,
    plot: Annotated[str | None, typer.Option(metavar="FILE", help="Draw the trace and the fit (png, svg or pdf).")] = None,
    as_json: AsJson = None,
) -> None:  # fmt: skip
    """A measured link: its delays, autocorrelation and loss, the law fitted at a control period, and how far independence is from it.

    Examples:
    [dim]oldlight trace link.csv --period-ms 20 --deadline 3 --channel link.json[/dim]
    [dim]ping -c 1000 -i 0.02 robot | tee link.txt; oldlight trace link.txt[/dim]
    """
    from pathlib import Path

    from oldlight.checks import write_file
    from oldlight.traces import read_trace, save_channel

    targets(channel, as_json, pictures=plot)
    _positive("--period-ms", period_ms)
    found = said("FILE", read_trace, file)
    try:
        fitted = found.fit(period_ms, horizon=horizon)
    except ValueError as error:
        if as_json != "-":
            typer.echo(str(found))
        option = "--horizon" if str(error).endswith("horizon") else "--period-ms"
        raise typer.BadParameter(str(error), param_hint=option) from error
    write_json(as_json, {"trace": found.to_dict(), "fit": fitted.to_dict(deadline)})
    if as_json != "-":
        typer.echo(fitted.text(deadline))
    if channel is not None:
        shown = fitted.channel() if deadline is None else fitted.with_deadline(deadline)
        tell(f"The channel is in {save_channel(channel, shown)}")
    if plot is not None:
        from oldlight.traces.plot import figure

        kind = Path(plot).suffix.removeprefix(".")
        drawn = figure(fitted)
        tell(f"The picture is in {write_file(plot, lambda stream: drawn.savefig(stream, format=kind, dpi=160))}")


@app.command("testbed")
def on_testbed(
    process: Process,
    channel: Channel = "constant:2",
    warm: Warm = False,
    actuation: Late = 0,
    policy: PolicyName = "best",
    link: Annotated[str | None, typer.Option(help="What the relay does, if not the channel that was planned for: words, or trace:FILE[@period_ms], a recording.")] = None,
    episodes: Annotated[int, typer.Option("--episodes", "-n", min=2)] = 300,
    period_ms: Annotated[float | None, typer.Option("--period-ms", help="By the wall clock, a tick every so many ms; else in lock-step.")] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds for everything; by default by the number of ticks.")] = None,
    seed: Seed = 0,
    as_json: AsJson = None,
) -> None:  # fmt: skip
    """A plan on a real link: plant, relay and controller as processes that talk UDP on loopback; the return beside the prediction.

    Examples:
    [dim]oldlight testbed sensing_chain --channel constant:2+loss:0.1 -n 500[/dim]
    [dim]oldlight testbed sensing_chain --channel constant:2 --link trace:link.csv@20 --period-ms 20 -n 50[/dim]
    """
    from oldlight.control import Controller
    from oldlight.registry import policy_of
    from oldlight.testbed import relay_of, run_testbed

    targets(as_json)
    _positive("--period-ms", period_ms)
    _positive("--timeout", timeout)
    problem = problem_of(process, channel, warm, actuation)
    other = None if link is None else said("--link", _link, link, problem, period_ms)
    said("--link", relay_of, problem, other)
    chosen = said("--policy", policy_of, problem, policy)
    said("--policy", Controller, problem, chosen)
    found = run_testbed(problem, chosen, episodes=episodes, link=other, seed=seed, period_ms=period_ms, timeout=timeout)
    write_json(as_json, found.to_dict())
    if as_json != "-":
        typer.echo(str(found))


def _positive(option: str, value: float | None) -> None:
    from oldlight.checks import positive

    if value is not None:
        said(option, positive, option.removeprefix("--"), value)


def _link(words: str, problem: ImpairedMDP, period_ms: float | None) -> Any:
    """A channel; or trace:FILE alone, a recording in ticks of its own @period, else of the wall clock's, else of the problem's."""
    from oldlight.checks import positive
    from oldlight.registry import channel_of
    from oldlight.traces import read_trace

    if not words.startswith("trace:") or "+" in words:
        return channel_of(words)
    file, _, period = words.removeprefix("trace:").partition("@")
    ticks = positive(f"{words}: the period", period) if period else period_ms or problem.period_ms
    return read_trace(file).fit(ticks, horizon=problem.horizon)
