"""Tables and profile of a suite of learners, from the folder of results that `oldlight run` made.

    oldlight run docs/studies/suite_tuning.toml --trust
    python docs/scripts/suites.py runs/suite_tuning                # prints the tables
    python docs/scripts/suites.py runs/suite_tuning --docs         # writes the tables and the profile into docs/paper, the best learners into docs/learning_suites.md

A *problem* is a process behind a link, with its number of episodes. The regret of a learner there is the mean over the seeds of its last cumulative regret;
its score is that over the least regret of any learner on the same problem, so 1 is the best. Over the problems that a learner is made for: the
geometric mean of its scores, the worst one, and how many problems these are. The profile draws, for each learner, the share of *all* problems on which
its score is at most x: what a learner is not made for counts as missed. A regret below a thousandth of the best value counts as that much, so that
nothing is divided by (nearly) nothing. docs/learning_suites.md has the learners with the largest area under their profile, on all problems, on those behind a
delay alone, and on the others. A study that is not finished is shown as far as it is: the problems on which every learner has run with every seed,
and how many of the suite's problems these are.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from marks import fill

from oldlight.checks import write_text
from oldlight.studies import Result, results, store

Problem = tuple[str, str, str]
LEAST = 1e-3  # of the best value
DEFAULT = "default"  # the label of `learners.default()`
FACTORS = np.geomspace(1.0, 20.0, 200)  # of the profile
DOCS = Path(__file__).resolve().parent.parent


def regrets(found: Iterable[Result]) -> dict[Problem, dict[str, float]]:
    """[problem][learner]: the mean over the seeds of the last regret."""
    each: dict[Problem, dict[str, list[float]]] = {}
    for result in found:
        if result.kind != "learner":
            continue
        run, problem = result.run, (result.block, result.instance, result.channel)
        regret = max(float(run.regret[-1]), LEAST * abs(run.best))
        each.setdefault(problem, {}).setdefault(result.label, []).append(regret)
    return {
        problem: {label: float(np.mean(row)) for label, row in learners.items()} for problem, learners in each.items()
    }


def complete(folder: Path, found: Iterable[Result]) -> tuple[set[Problem], int]:
    """The problems of the folder's study of which every job is done, and how many problems it has."""
    jobs = store.read_study(folder)["cells"]
    asked = Counter((job["block"], job["instance"], job["channel"]) for job in jobs if job["kind"] == "learner")
    done = Counter((x.block, x.instance, x.channel) for x in found if x.kind == "learner")
    return {problem for problem, n in asked.items() if done[problem] == n}, len(asked)


def seeds_of(found: Iterable[Result]) -> str:
    """How many seeds each problem has, as text."""
    each: dict[Problem, set[int]] = {}
    for x in found:
        each.setdefault((x.block, x.instance, x.channel), set()).add(x.replicate)
    many = Counter(map(len, each.values()))
    if len(many) == 1:
        n = next(iter(many))
        return f"{n} seed{'s' * (n != 1)}"
    return " and ".join(f"{n} seed{'s' * (n != 1)} on {many[n]} of them" for n in sorted(many, reverse=True))


def scores(regret: Mapping[Problem, Mapping[str, float]]) -> dict[Problem, dict[str, float]]:
    """[problem][learner]: the regret over the least one there."""
    return {p: {name: x / min(row.values()) for name, x in row.items()} for p, row in regret.items()}


def summary(score: Mapping[Problem, Mapping[str, float]]) -> list[tuple[str, float, float, int]]:
    """(learner, geometric mean, worst, problems), best mean first; learners made for most problems first of all."""
    names = list(dict.fromkeys(name for row in score.values() for name in row))
    rows = []
    for name in names:
        mine = [row[name] for row in score.values() if name in row]
        rows.append((name, float(np.exp(np.mean(np.log(mine)))), max(mine), len(mine)))
    return sorted(rows, key=lambda row: (-row[3], row[1]))


def profile(score: Mapping[Problem, Mapping[str, float]], name: str, factors: Any) -> Any:
    """The share of all problems on which the learner's score is at most each factor."""
    mine = np.array([row.get(name, np.inf) for row in score.values()])
    return (mine[None, :] <= np.asarray(factors)[:, None]).mean(axis=1)


def table(score: Mapping[Problem, Mapping[str, float]], regret: Mapping[Problem, Mapping[str, float]]) -> str:
    """Two tables in Markdown: learners, and problems with their best learner and the score of the default."""
    lines = ["| learner | mean score | worst | problems |", "|---|---|---|---|"]
    lines += [f"| {name} | {mean:.2f} | {worst:.1f} | {n} |" for name, mean, worst, n in summary(score)]
    lines += ["", f"| link | process | best learner | regret | score of {DEFAULT} |", "|---|---|---|---|---|"]
    for problem, row in regret.items():
        block, instance, channel = problem
        best = min(row, key=row.__getitem__)
        mine = f"{score[problem][DEFAULT]:.2f}" if DEFAULT in row else "–"
        lines.append(f"| {block} (`{channel}`) | {instance} | {best} | {row[best]:.4g} | {mine} |")
    return "\n".join(lines)


def delay_alone(problem: Problem) -> bool:
    """Is nothing lost behind this link, and delivered in order, so that every learner takes it?"""
    name = problem[2].split(":")[0]
    return "+" not in problem[2] and name in ("none", "constant", "delays", "bernoulli", "geometric")


def best_learners(score: Mapping[Problem, Mapping[str, float]], shown: int = 8) -> list[str]:
    """Those with the largest area under their profile."""
    areas = {name: float(profile(score, name, FACTORS).mean()) for name, *_ in summary(score)}
    return sorted(areas, key=areas.__getitem__, reverse=True)[:shown]


def short_table(score: Mapping[Problem, Mapping[str, float]]) -> str:
    """The best learners: mean, worst on all problems, behind a delay alone, behind other links; and a sentence on what the default reached."""
    parts = list(score), [p for p in score if delay_alone(p)], [p for p in score if not delay_alone(p)]
    titles = [
        f"{n} {what}: mean, worst"
        for n, what in zip(map(len, parts), ("problems", "behind a delay alone", "behind other links"), strict=True)
    ]
    lines = ["| learner | " + " | ".join(titles) + " |", "|---|---|---|---|"]
    for name in dict.fromkeys([DEFAULT, *best_learners(score)]):
        cells = []
        for part in parts:
            mine = [score[p][name] for p in part if name in score[p]]
            some = "" if len(mine) == len(part) else f" ({len(mine)} of them)"
            cells.append(f"{np.exp(np.mean(np.log(mine))):.2f}, {max(mine):.1f}{some}" if mine else "refuses them")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    mine = np.array([row[DEFAULT] for row in score.values() if DEFAULT in row])
    sentence = f"Of these {len(mine)} problems the default is the best of all learners on {(mine == 1).sum()}, and within 1.25 of the best on {(mine <= 1.25).sum()}."
    worst = sorted(((row[DEFAULT], p) for p, row in score.items() if DEFAULT in row), reverse=True)[:5]
    sentence += " Where it loses most: " + ", ".join(f"{p[1]} {p[0]} ({x:.2f})" for x, p in worst) + "."
    return "\n".join(lines) + "\n\n" + sentence


def draw(score: Mapping[Problem, Mapping[str, float]], path: Path, shown: int = 8) -> None:
    """The profile of the learners that are made for most problems and have the best means."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    ax = figure.subplots()
    for name in best_learners(score, shown):
        ax.step(FACTORS, profile(score, name, FACTORS), where="post", label=name)
    ax.set_xscale("log")
    ax.set_xticks([1, 1.25, 2, 5, 10, 20], labels=["1", "1.25", "2", "5", "10", "20"])
    ax.minorticks_off()
    ax.set_xlabel("regret over the best learner's")
    ax.set_ylabel("share of the problems")
    ax.set_ylim(0, 1.02)
    ax.legend(frameon=False, fontsize="small")
    with rc_context({"svg.hashsalt": path.name}):  # the same file from the same results
        figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description="Tables and profile of a suite of learners.")
    parser.add_argument("folder", type=Path, help="the folder of results that `oldlight run` made")
    parser.add_argument("--docs", action="store_true", help="write into the docs, not to the terminal alone")
    given = parser.parse_args()
    found = list(results(given.folder))
    whole, problems = complete(given.folder, found)
    regret = {problem: row for problem, row in regrets(found).items() if problem in whole}
    score = scores(regret)
    extent = (
        f"All {problems} problems"
        if len(whole) == problems
        else f"{len(whole)} of {problems} problems, those on which every learner has run"
    )
    extent += f", {seeds_of(found)}."
    text = extent + "\n\n" + table(score, regret)
    print(text, short_table(score), sep="\n\n")
    if given.docs:
        name = given.folder.name
        write_text(DOCS / "paper" / f"{name}.md", text + "\n")
        draw(score, DOCS / "paper" / f"{name}.svg")
        fill(DOCS / "learning_suites.md", {name: extent + "\n\n" + short_table(score)})


if __name__ == "__main__":
    main()
