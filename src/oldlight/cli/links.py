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
    give,
    problem_of,
    said,
    save_picture,
    targets,
    tell,
    write_json,
)

if TYPE_CHECKING:
    from oldlight.model.problem import ImpairedMDP


OLDEST = 4  # ticks; what arrives older is not used in the channel that is written, because tables grow with A^OLDEST


@app.command()
def trace(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A table, what ping or fping printed, irtt's JSON, or JSON lines.")],
    *,
    period_ms: Annotated[float | None, typer.Option("--period-ms", help="Control period, milliseconds a step.")] = None,
    horizon: Annotated[int | None, typer.Option(min=1, help="Steps of an episode, for the in-order law; the plant's own with --plant.")] = None,
    plant: Annotated[str | None, typer.Option("--plant", metavar="PROCESS", help="Plan this process behind every model, and play each plan on the recording.")] = None,
    holes: Annotated[str, typer.Option(help="Holes in the sending times where messages have no numbers: lost, stop, or the longest in ms that counts as lost.")] = "lost",
    columns: Annotated[str | None, typer.Option(help="Names of the columns of a table that has none: sent_ms,received_ms.")] = None,
    per_tick: Annotated[bool, typer.Option("--per-tick", help="One message at each tick, with the recording's delay at that time.")] = False,
    oldest: Annotated[int, typer.Option(min=0, help="Steps; observations that arrive older are not used in the channel.")] = OLDEST,
    episodes: Annotated[int, typer.Option("--episodes", "-n", min=2, help="With --plant: episodes on the recording.")] = 5000,
    channel: Annotated[str | None, typer.Option("--channel", metavar="FILE", help="Write the channel that is printed, for --channel file:FILE.")] = None,
    deadline: Annotated[int | None, typer.Option(min=0, help="Use what is at most this many steps late, when it is this old: a channel that can be planned.")] = None,
    plot: Annotated[str | None, typer.Option(metavar="FILE", help="Draw the recording and the fit, or with --plant the comparison (png, svg or pdf).")] = None,
    seed: Seed = 0,
    as_json: AsJson = None,
) -> None:  # fmt: skip
    """A measured link: its delays, outages and loss, which model to plan for, and what each plan earns on the recording itself.

    Examples:
    [dim]ping -c 1000 -i 0.02 robot | tee link.txt; oldlight trace link.txt[/dim]
    [dim]oldlight trace link.csv --period-ms 20 --plant sensing_chain:p=0.8,horizon=50 --plot link.png[/dim]
    [dim]oldlight trace link.csv --period-ms 20 --deadline 3 --channel link.json[/dim]
    """
    from oldlight.registry import mdp_of
    from oldlight.traces import compare_models, read_trace, save_channel
    from oldlight.traces.fit_text import chosen

    targets(channel, as_json, pictures=plot)
    _positive("--period-ms", period_ms)
    names = None if columns is None else [name.strip() for name in columns.split(",")]
    found = said("FILE", read_trace, file, holes=said("--holes", _holes, holes), columns=names)
    mdp = None if plant is None else said("--plant", mdp_of, plant)
    try:
        fitted = found.fit(period_ms, horizon=horizon, per_tick=per_tick)
    except ValueError as error:
        if as_json != "-":
            typer.echo(str(found))
        option = "--horizon" if str(error).endswith("horizon") else "--period-ms"
        raise typer.BadParameter(str(error), param_hint=option) from error
    data = {"trace": found.to_dict(), "fit": fitted.to_dict(deadline, oldest=oldest)}
    if as_json != "-":
        typer.echo(fitted.text(deadline, oldest=oldest))
    drawn: Any = fitted
    if mdp is not None:
        drawn = said(
            "--plant", compare_models, found, mdp, period_ms=period_ms, per_tick=per_tick, episodes=episodes, seed=seed
        )
        data["plant"] = drawn.to_dict()
        if as_json != "-":
            typer.echo(f"\n{drawn}")
    write_json(as_json, data)
    if channel is not None:
        shown, why = chosen(fitted, deadline, oldest)
        if shown is None:
            raise typer.BadParameter(why, param_hint="--channel")
        tell(f"The channel is in {save_channel(channel, shown)}")
    if plot is not None:
        save_picture(plot, drawn.figure())


def _holes(given: str) -> str | float:
    from oldlight.checks import positive

    if given in ("lost", "stop"):
        return given
    try:
        return positive("holes", given)
    except ValueError as wrong:
        raise ValueError(f"{wrong} of milliseconds, lost or stop") from None


@app.command("testbed")
def on_testbed(
    process: Process,
    *,
    channel: Channel = "constant:2",
    warm: Warm = False,
    actuation: Late = 0,
    policy: PolicyName = "best",
    link: Annotated[str | None, typer.Option(help="What the relay does, if not the channel that was planned for: words, or trace:FILE[@period_ms], a recording.")] = None,
    as_it_came: Annotated[bool, typer.Option("--as-it-came", help="With --link trace:FILE: the recording as it came, late messages used, losses not announced; says whether the prediction holds.")] = False,
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
    if as_it_came and (link is None or not link.startswith("trace:")):
        raise typer.BadParameter("a recording comes by --link trace:FILE[@period_ms]", param_hint="--as-it-came")
    said("--link", relay_of, problem, other, in_order=not as_it_came)
    chosen = said("--policy", policy_of, problem, policy)
    said("--policy", Controller, problem, chosen)
    found = run_testbed(
        problem,
        chosen,
        episodes=episodes,
        link=other,
        in_order=not as_it_came,
        seed=seed,
        period_ms=period_ms,
        timeout=timeout,
    )
    give(found, as_json)


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
