"""The price of delay and of loss on the sensing chain: a table on the terminal and a picture in a folder.

    python -m oldlight.report.price out/

Left: what one more step of delay costs. Right: what one more percent of lost observations costs. Both exactly, for a
nearly deterministic and a noisy chain.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from oldlight.instances import sensing_chain
from oldlight.planning.sweep import Sweep, sweep
from oldlight.problem import WarmStart
from oldlight.report.pictures import save

DELAYS = range(7)
LOSSES = [0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0]
CHAINS = {0.99: "#1f6f8b", 0.8: "#c8553d"}


def prices() -> dict[float, tuple[Sweep, Sweep]]:
    """For each p: the sweep over constant delays and the one over rates of loss, warm start."""
    return {
        p: (
            sweep(sensing_chain(p), delays=DELAYS, start=WarmStart()),
            sweep(sensing_chain(p), losses=LOSSES, start=WarmStart()),
        )
        for p in CHAINS
    }


def table(found: dict[float, tuple[Sweep, Sweep]]) -> list[Any]:
    """Two rich tables: delay and loss."""
    from rich.table import Table

    tables = []
    for which, title in enumerate(("The price of delay", "The price of loss")):
        out = Table(title=f"{title} (sensing chain, S=20, A=5, H=10, warm start)")
        one = next(iter(found.values()))[which]
        out.add_column(one.name, justify="right")
        for p in found:
            out.add_column(f"p={p}: value", justify="right")
            out.add_column("price", justify="right")
            out.add_column("% of full", justify="right")
        for i, label in enumerate(one.labels):
            cells = [str(label) if isinstance(label, int) else f"{label:.0%}"]
            for sweeps in found.values():
                g = sweeps[which].gaps[i]
                cells += [f"{g.impaired:.4f}", f"{abs(g.value):.4f}", f"{100 * abs(g.relative):.1f}"]
            out.add_row(*cells)
        tables.append(out)
    return tables


def figure(found: dict[float, tuple[Sweep, Sweep]]) -> Any:
    """Two panels side by side, as a share of the value with full information."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    fig = Figure(figsize=(9.0, 3.6), layout="constrained")
    axes = fig.subplots(1, 2, sharey=True)
    for which, ax in enumerate(axes):
        for p, colour in CHAINS.items():
            one = found[p][which]
            ax.plot(
                one.labels,
                [g.relative for g in one.gaps],
                "o-",
                ms=4,
                color=colour,
                label=f"move succeeds with p = {p}",
            )
        ax.set_xlabel("observations are this many steps late" if which == 0 else "share of observations lost")
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
    axes[1].xaxis.set_major_formatter(PercentFormatter(1.0))
    axes[0].yaxis.set_major_formatter(PercentFormatter(1.0))
    axes[0].set_ylabel("value lost, against full information")
    axes[0].set_ylim(bottom=0)
    axes[0].legend(frameon=False)
    fig.suptitle("What the best executable policy loses on the sensing chain, exactly", fontsize=11)
    return fig


def main(folder: str = "out") -> Path:
    """Print the tables, write price.png and price.svg into `folder`; returns the picture's path."""
    from rich.console import Console

    found = prices()
    console = Console()
    for one in table(found):
        console.print(one)
    path = save(figure(found), folder, "price")
    console.print(f"The picture is in {path}", soft_wrap=True)
    return path


if __name__ == "__main__":
    main(*sys.argv[1:2])
