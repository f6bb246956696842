"""The results of `oldlight paper` as documentation: python docs/scripts/paper_results.py RUNS docs/paper

Writes the figures (SVG) into the folder, and tables.md with the tables that docs/paper.md and docs/learning.md show.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from oldlight.checks import write_text
from oldlight.report import summary
from oldlight.report.paper_page import PRINTED, gap_rows, paper_page
from oldlight.report.paper_regret import growth, growth_rows, law_costs, share_of_bonus, theorem_1_there
from oldlight.report.statements import as_rows, statements
from oldlight.studies import Result, results

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
            end = 100 * np.mean([run.gaps[-1] for run in runs]) / runs[0].best
            early = (
                100 * np.mean([run.gaps[1000] for run in runs]) / runs[0].best if len(runs[0].gaps) > 1000 else np.nan
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


def main(runs: Path, out: Path) -> None:
    page = paper_page(runs).write(runs / "report.html")
    out.mkdir(parents=True, exist_ok=True)
    for name in FIGURES:
        shutil.copy(page.parent / "figures" / f"{name}.svg", out / f"{name}.svg")
    found = list(results(runs))
    block = {name: [r for r in found if r.block == name] for name in dict.fromkeys(r.block for r in found)}
    chains = [name for (name,) in summary.groups(block["table"], "instance") if name not in PRINTED]
    learners, figure = block["learners"], block["figure"]
    grown = growth(figure, block["fixed D"])
    told = [share_of_bonus(grown), theorem_1_there(figure), law_costs(figure, block["known law"])]
    told += [f"{name}: {summary.called(cells[0])}" for name, cells in block.items() if cells[0].kind == "learner"]
    parts = {
        "Said of the figure": "\n\n".join(told),
        "Table 1": markdown(["process", "channel", "printed", "Monte Carlo", "± sd of 5", "exact"], gap_rows(block["table"], PRINTED)),
        "Sensing chain": markdown(["process", "channel", "Monte Carlo", "± sd of 5", "exact"], gap_rows(block["table"], chains)),
        "Regret, paper's chains": markdown(*summary.regret_rows([*figure, *block["printed"]])[:2]),
        "Regret, law known": markdown(*summary.regret_rows(block["known law"])[:2]),
        "Growth with delay": markdown(*growth_rows(grown)[:2]),
        "Regret, sensing chain": markdown(*summary.regret_rows(block["sensing"])[:2]),
        "Learners": by_delay(learners),
        "Paired, per step": paired(learners, "DelayedUCBVI", "PosteriorSampling"),
        "Paired, pooled": paired(learners, "DelayedUCBVI, pooled", "PosteriorSampling, pooled"),
        "Loss": markdown(*summary.regret_rows(block["loss"])[:2]),
        "Statements": markdown(*as_rows(statements())),
    }  # fmt: skip
    text = "\n\n".join(f"## {title}\n\n{table}" for title, table in parts.items())
    print(write_text(out / "tables.md", text + "\n"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
