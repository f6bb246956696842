"""The page of any study: for each block its regret curves and tables, its tasks, and how it was made."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from oldlight.report import summary
from oldlight.report.charts import Panels
from oldlight.report.markup import plain
from oldlight.report.page import Page, Table
from oldlight.studies import Result, results, status
from oldlight.studies.store import read_study


def study_page(folder: str | os.PathLike[str], commands: Sequence[str] = ()) -> Page:
    """The page of the results in `folder`; refused where nothing is finished yet."""
    found = list(results(folder))
    if not found:
        raise ValueError(
            f"{folder}: no cell of this study is finished yet; oldlight status {folder} shows where it stands"
        )
    study = read_study(Path(folder))["study"]
    now = status(folder)
    page = Page(
        study["name"],
        lead=f"{plain(str(now))}. Regret is cumulative, against the best policy that can be executed behind the channel.",
    )
    if now.failed:
        page.note(
            "\n".join(
                [
                    "Some cells failed and are not on this page:",
                    "",
                    *(f"- {plain(x.name)}: {plain(x.error)}" for x in now.failed),
                ]
            )
        )
    for (name,), cells in summary.groups(found, "block").items():
        page.section(name)
        learners = [r for r in cells if r.kind == "learner"]
        tasks = [r for r in cells if r.kind == "task"]
        for (instance,), runs in summary.groups(learners, "instance").items():
            page.figure(curves(runs, f"Regret on {instance}"))
        if learners:
            page.table(Table(*summary.regret_rows(learners)))
        for (label,), some in summary.groups(tasks, "label").items():
            page.section(label, level=3)
            page.table(Table(*summary.task_rows(some), caption="Means over seeds."))
    made_by(page, found, folder, commands or [f"oldlight report {folder}"])
    return page


def curves(runs: Sequence[Result], title: str) -> Panels:
    """One panel per channel, one curve per learner; or, with one learner, one panel with a curve per channel."""
    if len(summary.groups(runs, "label")) == 1:
        return Panels(title, [summary.regret_lines(runs, runs[0].label, by="channel")])
    panels = [summary.regret_lines(cells, channel) for (channel,), cells in summary.groups(runs, "channel").items()]
    return Panels(title, panels)


def made_by(page: Page, found: Sequence[Result], folder: str | os.PathLike[str], commands: Sequence[str]) -> None:
    """The settings, versions, machine and commands behind the results."""
    study = read_study(Path(folder))["study"]
    settings = {key: value for key, value in study.items() if key != "blocks"}
    for i, block in enumerate(study["blocks"]):
        told = {key: value for key, value in block.items() if key != "name"}
        settings[f"block {i + 1}: {block['name']}"] = json.dumps(told, ensure_ascii=False)
    page.made(settings=settings | summary.about(found), commands=commands)
