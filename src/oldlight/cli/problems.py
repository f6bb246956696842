"""One problem: plan, gap, simulate, learn; and what has a name: list."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oldlight.cli.grids import plan_on_grid
from oldlight.cli.shared import (
    AsCsv,
    AsJson,
    Average,
    Channel,
    Channels,
    Discount,
    Episodes,
    Late,
    PolicyName,
    Process,
    Seed,
    Warm,
    app,
    console,
    problem_of,
    said,
    save_picture,
    show,
    targets,
    tell,
)

if TYPE_CHECKING:
    from oldlight.learners import LearningRun
    from oldlight.planning import Solution
    from oldlight.planning.gap import Gap


@app.command()
def plan(
    process: Process,
    *,
    channel: Channel = "none",
    warm: Warm = False,
    actuation: Late = 0,
    discount: Discount = None,
    average: Average = False,
    tolerance: Annotated[float, typer.Option(min=0, help="Losses and links: stop when the value is known to within this.")] = 0.0,
    depth: Annotated[int | None, typer.Option(min=0, help="Long delays: remember only this many actions; bounds on both sides.")] = None,
    seconds: Annotated[float | None, typer.Option(min=1e-9, help="Packets, ages, bursts: stop closing the gap between the bounds after this time.")] = None,
    max_gb: Annotated[float | None, typer.Option(min=1e-9, help="Memory the plan may take; refused beforehand if it needs more.")] = None,
    scratch: Annotated[str | None, typer.Option(metavar="FOLDER", help="Delays: a folder on a disk with room, for tables that memory does not hold.")] = None,
    save: Annotated[str | None, typer.Option(metavar="FILE", help="Write the policy, for simulate --policy.")] = None,
    controller: Annotated[str | None, typer.Option(metavar="FILE", help="Write a controller, for oldlight.Controller.load: numpy alone at run time.")] = None,
    grid: Annotated[bool, typer.Option("--grid", help="A continuous environment, gym:CartPole-v1: plan it on a grid, and play the plan on the real one.")] = False,
    bins: Annotated[str | None, typer.Option(metavar="N,N,..", help="Knots along each axis of the grid; one number for all.")] = None,
    episodes: Annotated[int, typer.Option("--episodes", "-n", min=2, help="With --grid: episodes on the real environment.")] = 20,
    as_json: AsJson = None,
    as_csv: AsCsv = None,
) -> None:  # fmt: skip
    """The best policy that can be executed behind the channel, and its value.

    Examples:
    [dim]oldlight plan sensing_chain:0.8 --warm --channel constant:2 --save best.npz[/dim]
    [dim]oldlight plan gym:FrozenLake-v1@20 --channel constant:1+loss:0.2[/dim]
    [dim]oldlight plan sensing_chain:0.8 --channel constant:2 --discount 0.99 --controller plant.npz[/dim]
    [dim]oldlight plan sensing_chain:0.8 --channel constant:9 --max-gb 0.1 --scratch /var/tmp[/dim]
    [dim]oldlight plan gym:CartPole-v1 --channel constant:3 --grid[/dim]
    """
    from oldlight.planning import solve

    targets(save, controller, as_json, as_csv)
    if grid:
        if warm or average or depth is not None or save is not None:
            raise typer.BadParameter(
                "--grid goes with --channel, --actuation, --discount, --tolerance, --bins, --episodes and --controller"
            )
        plan_on_grid(process, channel, actuation, (discount, tolerance, bins, episodes), (controller, as_json, as_csv))
        return
    problem = problem_of(process, channel, warm, actuation, discount, average)
    memory = None if max_gb is None else int(max_gb * 1e9)
    try:
        found = solve(problem, tolerance=tolerance, seconds=seconds, depth=depth, max_bytes=memory, scratch=scratch)
    except KeyboardInterrupt as stop:
        known = getattr(stop, "partial", None)
        if known is not None:
            tell("Interrupted: this is what was known by then.")
            show([_plan_row(process, channel, warm, known)], f"Bounds for {problem.mdp!r}", as_json, as_csv)
        raise
    show([_plan_row(process, channel, warm, found)], f"Best executable policy of {problem.mdp!r}", as_json, as_csv)
    if save is not None:
        if not hasattr(found.policy, "save"):
            raise ValueError(
                f"--save: a {type(found.policy).__name__} is a function, not a table, and has no file form"
            )
        tell(f"The policy is in {found.policy.save(save)}")
    if controller is not None:
        from oldlight.control import Controller

        tell(f"The controller is in {Controller(problem, found.policy).save(controller)}")


def _plan_row(process: str, channel: str, warm: bool, found: Solution) -> dict[str, Any]:
    return {
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


@app.command()
def gap(
    process: Process,
    *,
    channel: Channels = ["constant:1"],  # noqa: B006
    warm: Warm = False,
    actuation: Late = 0,
    discount: Discount = None,
    average: Average = False,
    terms: Annotated[bool, typer.Option("--terms", help="Both terms of Proposition 4, and the bound they give.")] = False,
    as_json: AsJson = None,
    as_csv: AsCsv = None,
) -> None:  # fmt: skip
    """What the impairment costs: the optimal value with full information less the best executable one.

    Examples:
    [dim]oldlight gap sensing_chain --warm -c constant:1 -c constant:2 -c loss:0.2 --csv prices.csv[/dim]
    """
    from oldlight.planning.gap import gap as price

    targets(as_json, as_csv)
    rows: list[dict[str, Any]] = []
    interrupted = None
    try:
        for words in channel:
            rows.append(
                _gap_row(process, words, price(problem_of(process, words, warm, actuation, discount, average)), terms)
            )
    except KeyboardInterrupt as stop:
        interrupted = stop
        tell("Interrupted: these are the channels that were done.")
    if rows:
        show(rows, f"What the link costs ({'warm' if warm else 'cold'} start)", as_json, as_csv)
    if interrupted is not None:
        raise interrupted


def _gap_row(process: str, channel: str, found: Gap, terms: bool) -> dict[str, Any]:
    row = {
        "process": process,
        "channel": channel,
        "full": found.full,
        "executable": found.impaired,
        "gap": found.gap,
        "% of full": 100 * found.relative,
    }
    if terms:
        row |= {
            "first term": float(found.e1.sum()),
            "second term": float(found.e2.sum()),
            "Proposition 4": found.bound,
        }
    return row


@app.command()
def simulate(
    process: Process,
    *,
    channel: Channel = "none",
    warm: Warm = False,
    actuation: Late = 0,
    discount: Discount = None,
    average: Average = False,
    policy: PolicyName = "best",
    episodes: Episodes = 100_000,
    steps: Annotated[int | None, typer.Option(min=1, help="Of a process that runs for ever: how many steps to play.")] = None,
    seed: Seed = 0,
    as_json: AsJson = None,
    as_csv: AsCsv = None,
) -> None:  # fmt: skip
    """Play episodes through the link; the mean return with its 95% interval, beside the exact value where there is one.

    Examples:
    [dim]oldlight simulate sensing_chain --warm -c constant:2 --policy memoryless -n 1000000[/dim]
    """
    from oldlight.model.policies import MarkovPolicy
    from oldlight.planning.evaluation import evaluate
    from oldlight.registry import policy_of
    from oldlight.simulation import simulate as play

    problem = problem_of(process, channel, warm, actuation, discount, average)
    chosen = said("--policy", policy_of, problem, policy)
    found = play(problem, chosen, episodes, seed=seed, steps=steps)
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
    *,
    channel: Channel = "none",
    warm: Warm = False,
    learner: Annotated[list[str], typer.Option("--learner", "-l", help="A name of `oldlight list` or module:Class; several for a comparison.")] = ["default"],  # noqa: B006
    option: Annotated[list[str], typer.Option("--option", "-o", help="key=value for every learner that has it, e.g. -o pooled=true -o c=0.05")] = [],  # noqa: B006
    episodes: Episodes = 2_000,
    seeds: Annotated[int, typer.Option(min=1, help="How many runs; the unit of the ± below.")] = 3,
    seed: Seed = 0,
    every: Annotated[int, typer.Option(min=1, help="Value the policy of every n-th episode only.")] = 10,
    evaluate: Annotated[str, typer.Option(help="exact, or sampled where the value of a policy takes too long.")] = "exact",
    best: Annotated[float | None, typer.Option(help="The best executable value, where it is known and takes too long to plan.")] = None,
    actuation: Late = 0,
    workers: Annotated[int, typer.Option(min=1, help="Processes; the numbers do not depend on it.")] = 1,
    save: Annotated[str | None, typer.Option(metavar="FOLDER", help="Write each run as a file.")] = None,
    plot: Annotated[str | None, typer.Option(metavar="FILE", help="Draw the regret curves (png, svg or pdf).")] = None,
    as_json: AsJson = None,
    as_csv: AsCsv = None,
) -> None:  # fmt: skip
    """Run learners and measure their regret against the best executable policy.

    Examples:
    [dim]oldlight learn sensing_chain --warm -c constant:2 -l DelayedUCBVI -l PosteriorSampling -o pooled=true --plot regret.png[/dim]
    """
    from pathlib import Path

    from oldlight.learners import learn_seeds
    from oldlight.registry import learner_of

    targets(as_json, as_csv, pictures=plot)
    if save is not None and Path(save).exists() and not Path(save).is_dir():
        raise typer.BadParameter(f"{save} is a file, expected a folder", param_hint="--save")
    problem = problem_of(process, channel, warm, actuation)
    found: dict[str, list[LearningRun]] = {}
    interrupted = None
    for name, options in _options_by_learner(learner, option).items():
        try:
            found[name] = learn_seeds(problem, partial(learner_of, name, **options), episodes,
                                      seeds=range(seed, seed + seeds), workers=workers, every=every, evaluate=evaluate,
                                      **({} if best is None else {"best": best}))  # fmt: skip
        except KeyboardInterrupt as stop:
            interrupted = stop
            found[name] = [run for run in getattr(stop, "partial", []) if run.done]
        _keep_runs(name, found[name], save)
        if interrupted is not None:
            tell("Interrupted: these are the episodes that were done.")
            break
    rows = [_regret_row(name, runs) for name, runs in found.items() if runs]
    if rows:
        show(rows, f"Regret on {process} behind {channel} ({'warm' if warm else 'cold'} start)", as_json, as_csv)
    if rows and plot is not None:
        _draw_regret(found, plot)
    if interrupted is not None:
        raise interrupted


def _options_by_learner(learners: list[str], items: list[str]) -> dict[str, dict[str, Any]]:
    """The options that each learner has; what no learner has is refused."""
    from oldlight.registry import learner_of

    options = dict(said("--option", _option, item) for item in items)
    own = {name: {k: v for k, v in options.items() if takes(name, k)} for name in learners}
    unknown = {k: v for k, v in options.items() if not any(k in mine for mine in own.values())}
    for name in learners:
        said("--learner", learner_of, name, **own[name], **unknown)
    return own


def _keep_runs(name: str, runs: list[LearningRun], folder: str | None) -> None:
    """Write the runs of a learner into the folder, and say if values were sampled."""
    from pathlib import Path

    if any(run.sampled for run in runs):
        widest = max(float(run.half_widths.max()) for run in runs)
        tell(f"{name}: values of policies were sampled, each ± {widest:.2g} or less (95%).")
    for run in runs if folder is not None else []:
        Path(str(folder)).mkdir(parents=True, exist_ok=True)
        run.save(Path(str(folder)) / f"{name.replace(':', '.')}-{run.seed}.npz")


def _regret_row(name: str, runs: list[LearningRun]) -> dict[str, Any]:
    import numpy as np

    last, best = [run.regret[-1] for run in runs], runs[0].best
    return {
        "learner": name,
        "episodes": min(run.done for run in runs),
        "runs": len(runs),
        "regret": float(np.mean(last)),
        "± sd over seeds": float(np.std(last, ddof=1)) if len(last) > 1 else None,
        "last gap %": float(100 * np.mean([run.shortfalls[-1] for run in runs]) / abs(best)) if best else None,
        "best value": best,
        "episodes/s": float(1 / np.mean([np.median(run.seconds) for run in runs])),
    }


def _draw_regret(found: dict[str, list[LearningRun]], path: str) -> None:
    from matplotlib.figure import Figure

    from oldlight.learners import compare

    figure = Figure(figsize=(7, 4), layout="constrained")
    labels = [name for name, runs in found.items() for _ in runs]
    compare([run for runs in found.values() for run in runs], ax=figure.subplots(), labels=labels)
    save_picture(path, figure)


def takes(name: str, option: str) -> bool:
    """Does the learner have this option?"""
    import inspect

    from oldlight.registry import learner_maker

    return option in inspect.signature(said("--learner", learner_maker, name)).parameters


def _option(item: str) -> tuple[str, Any]:
    from oldlight.files import json_of

    key, equals, value = item.partition("=")
    if not equals or not key:
        raise ValueError(f"{item!r} is not key=value, e.g. pooled=true or c=0.05")
    try:
        return key, json_of(value)
    except ValueError:
        return key, value


@app.command("list")
def list_() -> None:
    """Processes, channels, learners, policies and environments that have a name here.

    Examples:
    [dim]oldlight list[/dim]
    """
    import inspect

    from rich.table import Table

    from oldlight import learners
    from oldlight import registry as words
    from oldlight.envs.registration import NAMES

    def first_line(thing: Any) -> str:
        return (inspect.getdoc(thing) or "").partition("\n")[0]

    def arguments(thing: Any) -> str:
        return ", ".join(p.name for p in inspect.signature(thing).parameters.values())

    parts = {
        "processes": [(name, arguments(make), first_line(make)) for name, make in words.INSTANCES.items()],
        "channels": [(f"{kind}:{form}" if form else kind, "", words.MEANING[kind]) for kind, form in words.FORMS.items()],
        "learners": [(n, arguments(getattr(learners, n)), first_line(getattr(learners, n))) for n in ("default", *words.learner_names())],
        "environments of Gymnasium": [(f"oldlight/{name}-v0", "", f"oldlight.instances.{f}" if f else "any process: mdp=") for name, f in NAMES.items()],
        "policies": [(name, "", first_line(words.policy_maker(name))) for name in words.POLICIES],
    }  # fmt: skip
    for title, rows in parts.items():
        width = 3 if any(row[1] for row in rows) else 2
        table = Table(title=title, title_justify="left", title_style="bold", show_header=False)
        for name, takes, text in rows:
            table.add_row(name.replace("[", r"\["), *([takes] if width == 3 else []), text)
        console().print(table)
        if title == "channels":
            console().print(f"[bold]{words.IN_ORDER}[/bold]", highlight=False)
