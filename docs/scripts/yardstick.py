"""Writes the yardstick's tables and figures into docs/deep.md, from the folder of a run, finished or not.

    oldlight run docs/studies/yardstick_quick.toml
    python docs/scripts/yardstick.py runs/yardstick_quick

The mark `<!-- yardstick_quick -->` or `<!-- yardstick_full -->` in the page, the name of the folder, says where they go. The tables are those of the page that `oldlight report` makes (`oldlight.report.deep_page`). What is not finished is not in them, and the text
says how many jobs are. The figures go to docs/deep/; one whose panels are not all there is not written.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from marks import fill

from oldlight.report import summary
from oldlight.report.charts import Panels
from oldlight.report.deep_page import GRID, TRAIN, panel, rows, task_settings, yardstick
from oldlight.report.draw_matplotlib import picture, to_matplotlib
from oldlight.studies import results, status

DOCS = Path(__file__).parents[1]


def section(folder: Path) -> str:
    """The tables of a run as Markdown."""
    everything, now = list(results(folder)), status(folder)
    trained, plans = ([r for r in everything if task_settings(r).get("name") == name] for name in (TRAIN, GRID))
    done = "All" if now.complete else f"{now.done} of {now.total}"
    to_come = ": rows with fewer seeds than others, and learners, links and environments that are not in the tables, are still to come"
    lines = [f"{done} jobs of this run are finished{'' if now.complete else to_come}."]
    for (instance,), jobs in summary.groups(trained, "instance").items():
        titles, found, caption = rows(jobs, plans)
        lines += [
            "",
            f"### {instance[0].upper()}{instance[1:]}",
            "",
            caption,
            "",
            _line(titles),
            "|" + "---|" * len(titles),
        ]
        lines += [_line(row) for row in found]
        name = f"{folder.name}-{instance}.svg".replace("_", "-").replace(" ", "-").lower()
        if _whole(jobs, now.complete):
            panels = [panel(some, [], channel, yardstick(some, plans)) for (channel,), some in summary.groups(jobs, "channel").items()]  # fmt: skip
            figure = to_matplotlib(Panels(f"Learning on the {instance}", panels, share=True))
            (DOCS / "deep" / name).write_bytes(picture(figure, "svg", name))
            lines += ["", f"![Learning curves on the {instance} as shares of the yardstick](deep/{name})"]
    return "\n".join(lines)


def _whole(jobs: list[Any], complete: bool) -> bool:
    """Has every learner of this environment all its seeds behind every link?"""
    counts = {len(some) for some in summary.groups(jobs, "channel", "label").values()}
    links = {len(summary.groups(some, "label")) for some in summary.groups(jobs, "channel").values()}
    return complete or (len(counts) == len(links) == 1 and len(summary.groups(jobs, "channel")) > 1)


def _line(cells: list[Any]) -> str:
    return "| " + " | ".join("" if cell is None else str(cell) for cell in cells) + " |"


def main(folder: Path) -> None:
    fill(DOCS / "deep.md", {folder.name: section(folder)})


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/yardstick_quick"))
