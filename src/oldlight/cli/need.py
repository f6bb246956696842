"""What link is needed, which is better, and what the next step costs: need, compare-links, sensitivity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from oldlight.cli.shared import (
    AsCsv,
    AsJson,
    Channel,
    Episodes,
    Late,
    Process,
    Seed,
    Warm,
    app,
    give,
    problem_of,
    said,
    save_picture,
    show,
    targets,
    tell,
)

if TYPE_CHECKING:
    from oldlight.planning.frontier import Frontier
    from oldlight.planning.requirement_result import Requirement

AtLevels = Annotated[
    list[str],
    typer.Option("--at", metavar="NAME=NUMBER", help="What else the link does: delay=2, delay_ms=30, loss=0.1, jitter=1, blackout=3, blackout_probability=0.05, sensor_period=2."),
]  # fmt: skip
PeriodMs = Annotated[float | None, typer.Option("--period-ms", help="Milliseconds of a step, so that answers are in milliseconds too.")]  # fmt: skip
EACH = ("delay", "loss", "blackout", "sensor_period")


@app.command()
def need(
    process: Process,
    *,
    value: Annotated[str | None, typer.Option("--value", metavar="NUMBER", help="The value to reach; with a percent sign, such as 95%, a share of the value with full information.")] = None,
    share: Annotated[float | None, typer.Option("--share", min=0, max=1, help="The same as a share: 0.95.")] = None,
    over: Annotated[list[str], typer.Option("--over", help="delay, loss, jitter, blackout, sensor_period or control_period; twice for the frontier over both. Without it: each of the first ones alone.")] = [],  # noqa: B006
    at: AtLevels = [],  # noqa: B006
    period_ms: PeriodMs = None,
    warm: Warm = False,
    actuation: Late = 0,
    step: Annotated[float | None, typer.Option(help="Step of the levels that are looked at.")] = None,
    most: Annotated[float | None, typer.Option(help="The last level.")] = None,
    tolerance: Annotated[float, typer.Option(min=0, help="Share of the value within which it is known.")] = 1e-3,
    seconds: Annotated[float | None, typer.Option(min=1e-9, help="For each plan; what is not decided then is said.")] = None,
    plot: Annotated[str | None, typer.Option(metavar="FILE", help="Draw the values, or the frontier over a map of them (png, svg or pdf); with --over.")] = None,
    as_json: AsJson = None,
    as_csv: AsCsv = None,
) -> None:  # fmt: skip
    """How late, lossy, jittery or slow the link may be before the best executable policy misses a target.

    Each answer is certified on both sides: a policy that reaches the target there, and a proof that none does one step further.

    Examples:
    [dim]oldlight need sensing_chain:0.8 --value 95% --period-ms 20[/dim]
    [dim]oldlight need sensing_chain:0.8 --value 3.2 --over loss --at delay=1[/dim]
    [dim]oldlight need sensing_chain:0.8 --share 0.8 --over delay --over loss --plot frontier.png[/dim]
    """
    from oldlight.registry import mdp_of

    targets(as_json, as_csv, pictures=plot)
    if (value is None) == (share is None):
        raise typer.BadParameter("give exactly one of --value (3.2, or 95%) and --share (0.95)", param_hint="--value")
    if plot is not None and not over:
        raise typer.BadParameter("needs --over: which of the answers is to be drawn", param_hint="--plot")
    mdp = said("PROCESS", mdp_of, process)
    options: dict[str, Any] = {
        "target": said("--value", _target, value) if share is None else share,
        "relative": share is not None, "at": said("--at", levels_of, at), "period_ms": period_ms, "step": step, "most": most,
        "start": "warm" if warm else None, "actuation": actuation, "tolerance": tolerance, "seconds": seconds,
    }  # fmt: skip
    if len(over) == 2:
        found = said("--over", _asked, mdp, tuple(over), options)
        _show_frontier(process, found, as_json, as_csv)
    else:
        if len(over) > 2:
            raise typer.BadParameter("give it once, or twice for the frontier over both", param_hint="--over")
        names = over or [name for name in (*EACH, "jitter") if name not in options["at"] and (name != "jitter" or "delay" in options["at"])]  # fmt: skip
        several = [said("--over", _asked, mdp, name, options) for name in names]
        _show(process, several, as_json, as_csv, _hint(several, value))
        found = several[0]
    if plot is not None:
        save_picture(plot, found.plot().figure)


def _asked(mdp: Any, over: Any, options: dict[str, Any]) -> Any:
    from oldlight.planning.requirement import requirement

    return requirement(mdp, over=over, **options)


def _target(value: str | None) -> float | str:
    from oldlight.checks import real

    text = str(value).strip()
    if text.endswith("%"):
        real("--value", text[:-1])
        return text
    return real("--value", text)


def levels_of(items: list[str]) -> dict[str, float]:
    """{name: number} of options such as delay=2."""
    from oldlight.checks import real

    out: dict[str, float] = {}
    for item in items:
        name, equals, number = item.partition("=")
        if not equals:
            raise ValueError(f"{item!r} is not name=number, e.g. delay=2")
        out[name.strip()] = real(name.strip(), number)
    return out


def _hint(found: list[Requirement], value: str | None) -> str:
    """A number that every link reaches may have been meant as a share."""
    if value is None or value.strip().endswith("%") or any(each.status != "always" for each in found):
        return ""
    return f"Every level reaches the value {value}. Was a share of the value with full information, {found[0].full:.6g}, meant? Write --share 0.95, or --value 95%."


def _row(found: Requirement) -> dict[str, Any]:
    from oldlight.planning.impairments import IMPAIRMENTS

    return {
        "impairment": IMPAIRMENTS[found.over].label,
        "at most": found.answer_text if found.status != "always" else f"{found.answer_text} (the last tried)",
        "level": found.answer,
        "value there ≥": None if found.reached is None else found.reached.lower,
        "value beyond ≤": None if found.failed is None else found.failed.upper,
        "certificate": found.status,
        "reached again": ", ".join(f"{found.say(a)} to {found.say(b)}" for a, b in found.reentries) or None,
        "plans": found.plans,
        "seconds": found.seconds,
    }


def _show(process: str, found: list[Requirement], as_json: str | None, as_csv: str | None, hint: str) -> None:
    first = found[0]
    share = (
        ""
        if first.share is None
        else f", {100 * first.share:.6g}% of the value with full information, {first.full:.6g}"
    )
    title = f"What link {process} needs to reach {first.target:.6g}{share}"
    show([_row(each) for each in found], title, as_json, as_csv)
    for each in found:
        if each.undecided:
            tell(f"{each.over}: not decided from {each.say(each.undecided[0])} on; give more --seconds.")
    if hint:
        tell(hint)


def _show_frontier(process: str, found: Frontier, as_json: str | None, as_csv: str | None) -> None:
    x, y = found.over
    rows = [
        {**row, f"{x} level": float(level), f"{y} level": each.answer}
        for row, level, each in zip(found.rows, found.x, found.requirements, strict=True)
    ]
    show(rows, f"The frontier of {process}: {x} × {y} that reaches {found.target:.6g}", as_json, as_csv)


@app.command("compare-links")
def compare_links(
    process: Process,
    *,
    link: Annotated[list[str], typer.Option("--link", "-l", metavar="NAME=LINK", help="A link: a channel as for plan (wired=constant:1), or a recording (wifi=wifi.csv). Give it several times.")],
    period_ms: PeriodMs = None,
    episodes: Episodes = 5_000,
    seconds: Annotated[float, typer.Option(min=1e-9, help="For each plan.")] = 2.0,
    per_tick: Annotated[bool, typer.Option("--per-tick", help="Of recordings: one message at each tick, with the recording's delay at that time.")] = False,
    plot: Annotated[str | None, typer.Option(metavar="FILE", help="Draw the values and the losses (png, svg or pdf).")] = None,
    seed: Seed = 0,
    as_json: AsJson = None,
) -> None:  # fmt: skip
    """Which link is better: values with intervals, the price against full information, and what a plan for one link loses on another.

    Examples:
    [dim]oldlight compare-links sensing_chain:0.8 -l wired=constant:1 -l radio=loss:0.2 -l both=constant:1+loss:0.2[/dim]
    [dim]oldlight compare-links sensing_chain:0.8 -l wifi=wifi.csv -l 5g=drive.txt --period-ms 20 --plot links.png[/dim]
    """
    from oldlight.registry import mdp_of
    from oldlight.traces.channel_comparison import compare_channels

    targets(as_json, pictures=plot)
    mdp = said("PROCESS", mdp_of, process)
    links = dict(said("--link", _named_link, item) for item in link)
    options: dict[str, Any] = {"period_ms": period_ms, "episodes": episodes, "seconds": seconds, "seed": seed, "per_tick": per_tick}  # fmt: skip
    found = said("--link", compare_channels, mdp, links, **options)
    give(found, as_json, plot)


def _named_link(item: str) -> tuple[str, Any]:
    from pathlib import Path

    from oldlight.registry import channel_of
    from oldlight.traces import read_trace

    name, equals, link = item.partition("=")
    if not equals or not name or not link:
        raise ValueError(f"{item!r} is not name=link, e.g. wired=constant:1 or wifi=wifi.csv")
    return name, read_trace(link) if Path(link).is_file() else channel_of(link)


@app.command()
def sensitivity(
    process: Process,
    *,
    channel: Channel = "constant:1",
    period_ms: PeriodMs = None,
    warm: Warm = False,
    actuation: Late = 0,
    tolerance: Annotated[float, typer.Option(min=0, help="Of each plan: stop when the value is known to within this.")] = 0.0,
    seconds: Annotated[float | None, typer.Option(min=1e-9, help="For each plan.")] = None,
    plot: Annotated[str | None, typer.Option(metavar="FILE", help="Draw the prices, and the value lost by step and state (png, svg or pdf).")] = None,
    as_json: AsJson = None,
) -> None:  # fmt: skip
    """What one more step, millisecond or percent costs behind this link, and where the impairment hurts most.

    Examples:
    [dim]oldlight sensitivity sensing_chain:0.8 -c constant:2+loss:0.1 --period-ms 20 --plot prices.png[/dim]
    """
    from oldlight.planning.sensitivity import sensitivity as price

    targets(as_json, pictures=plot)
    problem = problem_of(process, channel, warm, actuation)
    if period_ms is not None:
        problem = problem.behind(said("--period-ms", problem.channel.with_period, period_ms))
    found = price(problem, tolerance=tolerance, seconds=seconds)
    give(found, as_json, plot)
