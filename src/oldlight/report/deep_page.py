"""The page of a study of deep learners: learning curves under the exact optimum, where there is one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from oldlight.report import summary
from oldlight.report.charts import Lines, Panels, Reference, Series, seeds_band
from oldlight.report.markup import plain
from oldlight.report.page import Page, Table
from oldlight.report.study_page import finished, made_by, missing
from oldlight.studies import Result

LOOKS = {"full": "dotted", "augmented": "solid", "newest": "broken"}


def deep_page(folder: str | os.PathLike[str]) -> Page:
    """The page of a folder of `oldlight.deep:train` jobs; it says how many others are in it."""
    everything = finished(folder)
    found = [r for r in everything if r.settings.get("task", {}).get("name") == "oldlight.deep:train"]
    if not found:
        raise ValueError(f"{folder}: no finished job of oldlight.deep:train in it")
    page = Page(
        "Deep learners behind a bad link",
        lead="PPO and DQN that see everything, all that an agent behind the link can know (*augmented*), or the newest observation alone. "
        "Each point is the mean return of the greedy policy over test episodes behind the same link.",
    )
    others = [r for r in everything if r not in found]
    names = ", ".join(plain(label) for (label,) in summary.groups(others, "label"))
    more = [f"{len(others)} finished jobs are not of oldlight.deep:train and are not on this page: {names}."]
    missing(page, folder, *(more if others else []))
    for (instance,), jobs in summary.groups(found, "instance").items():
        page.section(instance)
        full = [r for r in jobs if r.settings["task"]["options"].get("observation") == "full"]
        rest = [r for r in jobs if r not in full]
        panels = [panel(some, full, channel) for (channel,), some in summary.groups(rest or full, "channel").items()]
        page.figure(Panels(f"Learning on the {instance}", panels, share=True))
        page.table(Table(*rows(jobs)))
    made_by(page, found, folder)
    return page


def panel(jobs: Sequence[Result], full: Sequence[Result], title: str) -> Lines:
    """The curves of one channel, with those of full observation for comparison, and the exact optimum behind this channel."""
    series = []
    for (label,), runs in summary.groups([*jobs, *(r for r in full if r not in jobs)], "label").items():
        algorithm, _, looks_at = label.partition(", ")
        points = min(len(r.columns["at"]) for r in runs)
        series.append(
            Series.over_seeds(
                label, runs[0].columns["at"][:points], [r.columns["returns"][:points] for r in runs],
                colour=("PPO", "DQN").index(algorithm) if algorithm in ("PPO", "DQN") else None,
                dash=LOOKS.get(looks_at), marks=True,
            )
        )  # fmt: skip
    best = {round(r.scalars["optimum"], 9) for r in jobs if np.isfinite(r.scalars["optimum"])}
    lines = [Reference(f"optimum {value:.3f}, exact", value) for value in sorted(best)]
    n = max(len(runs) for runs in summary.groups(jobs, "label").values())
    return Lines(title, "steps of training", "mean return", series, references=lines, band=seeds_band(n))


def rows(jobs: Sequence[Result]) -> tuple[list[str], list[list[Any]], str]:
    """The last fifth of each training, and its share of the optimum."""
    out: list[list[Any]] = []
    for (channel, label), runs in summary.groups(jobs, "channel", "label").items():
        final = np.array([r.scalars["final"] for r in runs])
        best = runs[0].scalars["optimum"]
        known = bool(np.isfinite(best))
        out.append([
            channel, label, len(runs), round(float(final.mean()), 3),
            round(float(final.std(ddof=1)), 3) if len(runs) > 1 else None,
            round(best, 4) if known else None, round(100 * float(final.mean()) / best, 1) if known and best else None,
        ])  # fmt: skip
    titles = ["channel", "learner", "seeds", "final return", "± sd", "exact optimum", "% of the optimum"]
    return titles, out, "Mean over the last fifth of the training; ± is one standard deviation between seeds."
