"""The results of `oldlight paper` as documentation: python docs/scripts/paper_results.py RUNS docs/paper

Writes the figures (SVG) into the folder, and the tables and sentences with numbers into docs/paper.md beside it, each between its
marks `<!-- NAME -->` and `<!-- end -->`; prints the tables of docs/learning.md. Of a study that is not finished, the parts whose
blocks are.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from marks import fill

from oldlight.paper.paper_page import PRINTED, gap_rows, paper_page, whole_blocks
from oldlight.paper.paper_regret import growth, growth_rows, law_costs, order_by_delay, share_of_bonus, theorem_1_there
from oldlight.paper.statements import as_rows, statements
from oldlight.report import summary
from oldlight.studies import Result

FIGURES = ("regret", "regret-known-law", "sensing-gap", "sensing-regret", "price", "late-and-lossy", "learners", "learners-final", "loss", "bounds",
           "interaction", "dichotomy", "chain", "hard-tree")  # fmt: skip


def markdown(titles: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    def cell(x: Any) -> str:
        return "–" if x is None else f"{x:,}" if isinstance(x, int | float) else str(x).replace("\u200b", "")

    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    return "\n".join(lines + ["| " + " | ".join(cell(x) for x in row) + " |" for row in rows])


def by_delay(found: Sequence[Result]) -> str:
    """Regret, last gap and gap at episode 1,000, one row per learner and one column per delay."""
    channels = list(dict.fromkeys(r.channel for r in found))
    rows = []
    for (label,), cells in summary.groups(found, "label").items():
        row: list[Any] = [label]
        for channel in channels:
            runs = [r.run for r in cells if r.channel == channel]
            last = np.array([run.regret[-1] for run in runs])
            end = 100 * np.mean([run.shortfalls[-1] for run in runs]) / runs[0].best
            early = (
                100 * np.mean([run.shortfalls[1000] for run in runs]) / runs[0].best
                if len(runs[0].shortfalls) > 1000
                else np.nan
            )
            growth = np.mean([run.growth() for run in runs])
            row.append(f"{last.mean():,.0f} ± {last.std(ddof=1):,.0f}; {end:.1f} %; {early:.1f} %; {growth:.2f}")
        rows.append(row)
    return markdown(["learner", *channels], rows)


def paired(found: Sequence[Result], one: str, other: str) -> str:
    """Regret of `other` less that of `one`, by seed: mean and a 95% interval (Student) over paired seeds."""
    from scipy.stats import t

    rows = []
    for (channel,), cells in summary.groups(found, "channel").items():
        final = {(r.label, r.replicate): r.run.regret[-1] for r in cells}
        n = 1 + max(r.replicate for r in cells)
        less = np.array([final[other, k] - final[one, k] for k in range(n)])
        half = t.ppf(0.975, n - 1) * less.std(ddof=1) / np.sqrt(n)
        rows.append([channel, f"{less.mean():,.0f}", f"[{less.mean() - half:,.0f}, {less.mean() + half:,.0f}]"])
    return markdown(["channel", f"{other} − {one}", "95 % interval"], rows)


def parts(block: dict[str, list[Result]]) -> dict[str, str]:
    """What docs/paper.md shows of the blocks that are there, by the name of its marks."""
    cells = {r.id for found in block.values() for r in found}
    made = {"cells": f"{len(cells)} jobs.", "statements": markdown(*as_rows(statements()))}
    if all(name in block for name in ("figure", "printed", "known law", "fixed D")):
        figure, grown = block["figure"], growth(block["figure"], block["fixed D"])
        made |= {
            "called": f"`{summary.called(figure[0])}`",
            "regret": markdown(*summary.regret_rows([*figure, *block["printed"]])[:2]),
            "order": order_by_delay(figure),
            "law costs": law_costs(figure, block["known law"]),
            "known law": markdown(*summary.regret_rows(block["known law"])[:2]),
            "share": share_of_bonus(grown),
            "growth": markdown(*growth_rows(grown)[:2]),
            "theorem 1": theorem_1_there(figure),
        }
    if "table" in block:
        chains = [name for (name,) in summary.groups(block["table"], "instance") if name not in PRINTED]
        titles = ["process", "channel", "printed", "Monte Carlo", "± sd of 5", "exact"]
        made["table 1"] = markdown(titles, gap_rows(block["table"], PRINTED))
        made["sensing gap"] = markdown([*titles[:2], *titles[3:]], gap_rows(block["table"], chains))
    for name in ("sensing", "loss"):
        if name in block:
            made[name] = markdown(*summary.regret_rows(block[name])[:2])
    if "loss" in block:
        called = {r.label: f"{r.label}: `{summary.called(r)}`." for r in block["loss"]}
        made["loss called"] = "\n".join(called.values())
    return made


def main(runs: Path, out: Path) -> None:
    page = paper_page(runs).write(runs / "report.html")
    out.mkdir(parents=True, exist_ok=True)
    for drawn in (page.parent / "figures" / f"{name}.svg" for name in FIGURES):
        if drawn.exists():
            shutil.copy(drawn, out / drawn.name)
    block = whole_blocks(runs)
    told = out.with_suffix(".md")
    print(fill(told, parts(block)))
    if learners := block.get("learners"):
        print(by_delay(learners), paired(learners, "DelayedUCBVI", "PosteriorSampling"), sep="\n\n")
        print(paired(learners, "DelayedUCBVI, pooled", "PosteriorSampling, pooled"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
