"""What a study found, as charts and tables: the pieces from which its page is put together.

A result is one finished job (`oldlight.studies.results`). Jobs that differ in their seed alone are one *group*: a curve with a
band, or a row. Regret is cumulative, against the best executable policy, and the seed is the unit of every band and ±.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oldlight.report.charts import Group, Lines, Reference, Series, seeds_band

if TYPE_CHECKING:
    from oldlight.studies import Result

Key = Callable[["Result"], str]
POINTS = 400  # of a curve; more are not seen


def groups(results: Iterable[Result], *keys: str) -> dict[tuple[str, ...], list[Result]]:
    """The results by these of their names (block, instance, channel, label, kind), in the order of the study."""
    found: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        found.setdefault(tuple(str(getattr(result, key)) for key in keys), []).append(result)
    return found


def regret_lines(
    results: Sequence[Result],
    title: str,
    *,
    by: str = "label",
    look: Callable[[str], dict[str, Any]] = lambda name: {},
    extra: Sequence[Series] = (),
    log: str = "",
    caption: str = "",
) -> Lines:
    """Cumulative regret by episode, one curve per `by`, the mean over seeds with a band. log: "", "y" or "xy".

    With log "y" the curves begin after a hundredth of the episodes: before that they only rise steeply, all alike, through decades
    that would be empty otherwise.
    """
    series = []
    least = min(len(r.columns["values"]) for r in results)
    first = -(-least // 100) if log == "y" else 1
    at = np.unique((np.geomspace if "x" in log else np.linspace)(first, least, POINTS).astype(int))
    for (name,), runs in groups(results, by).items():
        series.append(Series.over_seeds(name, at, [r.run.regret[at - 1] for r in runs], **look(name)))
    n = max(len(runs) for runs in groups(results, by).values())
    return Lines(
        title, "episode", "cumulative regret", [*series, *extra], log_x="x" in log, log_y="y" in log, band=seeds_band(n), caption=caption
    )  # fmt: skip


def regret_rows(results: Sequence[Result]) -> tuple[list[str], list[list[Any]], str]:
    """One row per learner, process and channel: final regret, what the last policy falls short of, growth, speed.

    Names and numbers that are the same in every row go into the caption, the third value.
    """
    titles = ["process", "channel", "learner", "seeds", "episodes", "best value", "regret", "± sd", "last gap %",
              "gap % at a tenth", "exponent", "ms per episode"]  # fmt: skip
    rows: list[list[Any]] = []
    for (instance, channel, label), jobs in groups(results, "instance", "channel", "label").items():
        runs = [job.run for job in jobs]
        K, best = len(runs[0].values), runs[0].best
        last = np.array([run.regret[-1] for run in runs])
        scale = 100 / abs(best) if best else float("nan")
        rows.append([
            instance, channel, label, len(runs), K, round(best, 4), round(float(last.mean()), 1),
            round(float(last.std(ddof=1)), 1) if len(runs) > 1 else None,
            round(float(np.mean([run.shortfalls[-1] for run in runs])) * scale, 2) + 0.0,
            round(float(np.mean([run.shortfalls[K // 10] for run in runs])) * scale, 2) + 0.0,
            round(float(np.mean([run.growth() for run in runs])), 2) if K >= 64 else None,
            round(1e3 * float(np.mean([np.median(run.seconds) for run in runs])), 3),
        ])  # fmt: skip
    same = [j for j in range(5) if len(rows) > 1 and len({row[j] for row in rows}) == 1]
    kept = [j for j in range(len(titles)) if j not in same]
    shared = [f"{rows[0][j]:,} {titles[j]}" if j in (3, 4) else str(rows[0][j]) for j in same]
    caption = f"{'; '.join(shared)}. " if shared else ""
    caption += "Final regret, mean and standard deviation over seeds; exponent: x in R(2k) − R(k) ~ k^x."
    return [titles[j] for j in kept], [[row[j] for j in kept] for row in rows], caption


def final_dots(
    results: Sequence[Result], categories: Sequence[str], *, by: str = "label", across: str = "channel"
) -> list[Group]:
    """Final regret: one dot per category (a name of `across`) and `by`, whiskers over seeds."""
    out = []
    for (name,), jobs in groups(results, by).items():
        per = groups(jobs, across)
        n = max(len(runs) for runs in per.values())
        final = np.full((n, len(categories)), np.nan)
        for j, category in enumerate(categories):
            for i, job in enumerate(per.get((category,), [])):
                final[i, j] = job.run.regret[-1]
        out.append(Group.over_seeds(name, final))
    return out


def task_rows(results: Sequence[Result]) -> tuple[list[str], list[list[Any]]]:
    """One row per task, process and channel: the mean of each number over seeds."""
    names = list(dict.fromkeys(name for r in results for name in r.scalars))
    rows: list[list[Any]] = []
    for (instance, channel, label), jobs in groups(results, "instance", "channel", "label").items():
        row: list[Any] = [instance, channel, label, len(jobs)]
        for name in names:
            values = [job.scalars.get(name) for job in jobs]
            numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
            row.append(float(f"{np.mean([float(v) for v in values if v is not None]):.6g}") if numeric else values[0])
        rows.append(row)
    return ["process", "channel", "task", "seeds", *names], rows


def optimum(results: Sequence[Result]) -> list[Reference]:
    """The best executable value, where all results share it."""
    best = {round(r.scalars["best"], 9) for r in results}
    return [Reference(f"optimum {next(iter(best)):.4g}", next(iter(best)))] if len(best) == 1 else []


def size(results: Sequence[Result]) -> str:
    """The episodes and seeds of some learners, as text."""
    K = " to ".join(f"{k:,}" for k in sorted({r.settings["episodes"] for r in results}))
    return f"K = {K} episodes, {1 + max(r.replicate for r in results)} seeds"


def called(result: Result) -> str:
    """The learner of a result with all its options, as one writes it in Python."""
    who = result.settings["learner"]
    options = (
        f"{name}={f'{value:.4g}' if isinstance(value, float) else json.dumps(value) if isinstance(value, str) else value}"
        for name, value in who["constants"].items()
    )
    return f"{who['name']}({', '.join(options)})"


def constants(results: Sequence[Result]) -> str:
    """The constant of each learner's bonus, of those that have one."""
    constants = {r.label: r.settings["learner"].get("constants", {}).get("c") for r in results}
    known = [f"{label} {c:g}" for label, c in constants.items() if c is not None]
    if len(constants) == len(known) == 1:
        return f"c = {constants[results[0].label]:g}"
    return f"c: {', '.join(known) or 'not recorded'}"


def final(results: Sequence[Result]) -> float:
    """The final regret, mean over seeds."""
    return float(np.mean([r.run.regret[-1] for r in results]))


def about(results: Sequence[Result]) -> dict[str, str]:
    """Versions, machines and times behind the results, as text."""
    machines = list(dict.fromkeys(
        f"{r.machine['processor']}, {r.machine['cores']} cores, {r.machine['system']}" for r in results
    ))  # fmt: skip
    versions = sorted({r.version for r in results})
    software = sorted(
        {f"Python {r.machine['python']}, NumPy {r.machine['numpy']}, numba {r.machine['numba']}" for r in results}
    )
    return {
        "jobs": f"{len(results)}, together {sum(r.seconds for r in results):,.0f} s of work",
        "finished": f"{min(r.finished for r in results)} to {max(r.finished for r in results)}",
        "oldlight": ", ".join(versions) + (" (mixed)" if len(versions) > 1 else ""),
        "software": "; ".join(software),
        "machine": "; ".join(machines),
    }
