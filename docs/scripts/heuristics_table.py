"""What simpler policies lose against the optimum, by delay: a table on the terminal and a picture in a folder.

    python docs/scripts/heuristics_table.py docs/

Three processes: the sensing chain (p = 0.8), slippery FrozenLake (4×4, 30 steps) and a random process. Constant delays, cold
start. Every value is exact, so a difference is a difference. FrozenLake's reward is the probability of reaching the goal.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from oldlight.drawing import save
from oldlight.instances import sensing_chain
from oldlight.model.channels import ConstantDelay
from oldlight.model.mdp import TabularMDP
from oldlight.model.policies import FunctionPolicy
from oldlight.model.problem import ImpairedMDP
from oldlight.planning import heuristics, solve
from oldlight.planning.evaluation import evaluate
from oldlight.planning.ladder import Rung

DELAYS = [0, 1, 2, 3, 4, 5]
COLOURS = ["#c8553d", "#e0a458", "#7a9e7e", "#1f6f8b", "#6c5b7b"]


def processes() -> dict[str, TabularMDP]:
    """The three processes of the comparison."""
    rng = np.random.default_rng(1)
    P, R = rng.dirichlet(0.15 * np.ones(10), size=(10, 3)), rng.random((10, 3))
    return {
        "sensing chain": sensing_chain(0.8, initial=np.eye(20)[6]),
        "FrozenLake": TabularMDP.from_gymnasium("FrozenLake-v1", 30),
        "random process": TabularMDP(P, R, horizon=15, initial=np.eye(10)[0]),
    }


def policies(problem: ImpairedMDP) -> dict[str, Any]:
    """Every heuristic that is not the optimum itself."""
    found: dict[str, Any] = {
        "memoryless": heuristics.memoryless(problem),
        "open loop": heuristics.open_loop(problem, tolerance=1e-3),
        "most likely state": heuristics.most_likely(problem),
        "QMDP (rung 0)": heuristics.qmdp(problem),
    }
    half = -(-problem.law.max_delay // 2)
    if half:
        found["rung ⌈d/2⌉"] = FunctionPolicy(Rung(problem, half).choose, problem.n_actions)
    return found


def compare() -> dict[str, dict[str, list[float]]]:
    """process -> policy -> the share of the optimum that it loses, by delay."""
    lost: dict[str, dict[str, list[float]]] = {}
    for name, mdp in processes().items():
        rows: dict[str, list[float]] = {}
        for d in DELAYS:
            problem = ImpairedMDP(mdp, ConstantDelay(d))
            best = solve(problem).value
            for who, policy in policies(problem).items():
                value = evaluate(problem, policy)
                if not value.exact:
                    raise RuntimeError(f"{who} on {name} at delay {d} was sampled; this comparison is of exact values")
                rows.setdefault(who, [0.0] * DELAYS.index(d)).append(1 - value.value / best)
        lost[name] = rows
    return lost


def figure(lost: dict[str, dict[str, list[float]]]) -> Any:
    """One panel per process."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    fig = Figure(figsize=(11.0, 3.6), layout="constrained")
    for ax, (name, rows) in zip(fig.subplots(1, len(lost), squeeze=False).flat, lost.items(), strict=True):
        for colour, (who, values) in zip(COLOURS, rows.items(), strict=False):
            ax.plot(DELAYS, values, "o-", ms=4, color=colour, label=who)
        ax.set_title(name, fontsize=10)
        ax.set_xlabel("delay (steps)")
        ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_ylim(bottom=0)
    fig.axes[0].set_ylabel("lost against the best executable policy")
    handles, labels = fig.axes[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=8)
    return fig


def main(folder: str = "out") -> Path:
    """Print the table, write heuristics.png and heuristics.svg into `folder`; returns the picture's path."""
    from rich.console import Console
    from rich.table import Table

    lost = compare()
    table = Table(title="Lost against the best executable policy, in percent, by constant delay (cold start)")
    for column in ("process", "policy", *(f"d={d}" for d in DELAYS)):
        table.add_column(column, justify="right" if column.startswith("d=") else "left")
    for name, rows in lost.items():
        for who, values in rows.items():
            table.add_row(name, who, *(f"{100 * abs(x):.2f}" for x in values))
        table.add_section()
    console = Console()
    console.print(table)
    path = save(figure(lost), folder, "heuristics")
    console.print(f"The picture is in {path}", soft_wrap=True)
    return path


if __name__ == "__main__":
    main(*sys.argv[1:2])
