"""The page of any study: for each block its regret curves and tables, its tasks, and how it was made.

Pages of one's own study show `made_by` (settings, versions, machine, and the commands that compute and draw it again) and `missing`
(what is not finished, and what failed) as well; they say which command runs the study, where it is not `oldlight run FILE`.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from oldlight.report import summary
from oldlight.report.charts import Panels
from oldlight.report.markup import plain
from oldlight.report.page import Page, Table
from oldlight.studies import Result, results, status
from oldlight.studies.store import read_study

Command = tuple[str, Path]  # what runs a study, and the folder of its results where no other is given


def study_page(folder: str | os.PathLike[str]) -> Page:
    """The page of the results in `folder`; refused where nothing is finished yet."""
    found = finished(folder)
    page = Page(
        read_study(Path(folder))["study"]["name"],
        lead=f"{plain(str(status(folder)))}. Regret is cumulative, against the best policy that can be executed behind the channel.",
    )
    missing(page, folder)
    for (name,), jobs in summary.groups(found, "block").items():
        page.section(name)
        learners = [r for r in jobs if r.kind == "learner"]
        tasks = [r for r in jobs if r.kind == "task"]
        for (instance,), runs in summary.groups(learners, "instance").items():
            page.figure(curves(runs, f"Regret on {instance}"))
        if learners:
            page.table(Table(*summary.regret_rows(learners)))
        for (label,), some in summary.groups(tasks, "label").items():
            page.section(label, level=3)
            page.table(Table(*summary.task_rows(some), caption="Means over seeds."))
    made_by(page, found, folder)
    return page


def finished(folder: str | os.PathLike[str]) -> list[Result]:
    """Every finished job; refused where there is none."""
    found = list(results(folder))
    if not found:
        raise ValueError(
            f"{folder}: no job of this study is finished yet; oldlight status {folder} shows where it stands"
        )
    return found


def missing(page: Page, folder: str | os.PathLike[str], *more: str, command: Command | None = None) -> None:
    """A note where something is not on the page: how many jobs are not finished and what to run, which failed, and `more`."""
    now, notes = status(folder), list(more)
    if not now.complete:
        notes += [
            f"{now.done} of {now.total} jobs are finished. What is missing is computed by",
            f"    {commands(folder, command)[0]}",
        ]
    if now.failed:
        notes += ["Failed, and not on this page (--retry-failed tries them again):"]
        notes += ["\n".join(f"- {plain(x.name)}: {plain(' '.join(x.error.split()))}" for x in now.failed)]
    if notes:
        page.note("\n\n".join(notes))


def curves(runs: Sequence[Result], title: str) -> Panels:
    """One panel per channel, one curve per learner; or, with one learner, one panel with a curve per channel."""
    if len(summary.groups(runs, "label")) == 1:
        return Panels(title, [summary.regret_lines(runs, runs[0].label, by="channel")])
    panels = [summary.regret_lines(jobs, channel) for (channel,), jobs in summary.groups(runs, "channel").items()]
    return Panels(title, panels)


def commands(folder: str | os.PathLike[str], command: Command | None = None) -> list[str]:
    """What computes these results, and what draws them; `command`: of a study that has one of its own."""
    file, place = read_study(Path(folder))["study"].get("file"), shlex.quote(str(folder))
    if file is not None:
        command = f"oldlight run {shlex.quote(file)}", Path("runs") / Path(file).stem
    if command is None:
        return [f"run_study(study, {str(folder)!r})  # in Python: the study is a mapping", f"oldlight report {place}"]
    run, usual = command
    return [run if Path(folder) == usual else f"{run} --out {place}", f"oldlight report {place}"]


def made_by(
    page: Page, found: Sequence[Result], folder: str | os.PathLike[str], command: Command | None = None
) -> None:
    """The settings, versions, machine and commands behind the results."""
    study = read_study(Path(folder))["study"]
    settings = {key: value for key, value in study.items() if key != "blocks" and value is not None}
    for i, block in enumerate(study["blocks"]):
        keys = {key: value for key, value in block.items() if key != "name"}
        settings[f"block {i + 1}: {block['name']}"] = json.dumps(keys, ensure_ascii=False)
    page.made(settings=settings | summary.about(found), commands=commands(folder, command))
