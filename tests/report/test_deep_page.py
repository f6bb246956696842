"""The page of deep learners: shares of the exact optimum or of a plan on a grid, with intervals over seeds, from results that are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.report.deep_page import deep_page, rows, yardstick
from oldlight.studies import load_study, results, store
from oldlight.studies.result import pack

KEYS = {
    "name": "known",
    "seeds": 3,
    "instances": [{"name": "env:Pendulum-v1", "label": "Pendulum"}, {"name": "env:CartPole-v1", "label": "CartPole"}],
    "channels": [{"kind": "constant", "d": 1, "label": "delay 1"}],
    "tasks": [
        {"name": "oldlight.deep:plan_on_grid", "label": "plan on a grid"},
        {"name": "oldlight.deep:train", "algorithm": "SAC", "settings": {"batch_size": 64}, "label": "SAC, augmented"},
    ],
}
ENDS = {"Pendulum": [-600.0, -700.0, -725.0], "CartPole": [100.0, 200.0, 300.0]}
PLANS = {"Pendulum": (-150.0, -1200.0), "CartPole": (400.0, 20.0)}


def kept(folder: Path, plans: bool = True, optimum: float = float("nan")) -> Path:
    """A folder in which every job is finished with known numbers."""
    study = load_study(KEYS)
    jobs = study.jobs()
    store.prepare(folder)
    store.write_study(folder, study.data(), jobs)
    for job in jobs:
        if job.label == "plan on a grid":
            mean, random = PLANS[job.instance]
            found: dict[str, Any] = {
                "returns": np.array([mean - 1, mean + 1]),
                "mean": mean,
                "half_width": 2.0,
                "random": random,
            }
            if not plans:
                continue
        else:
            end = ENDS[job.instance][job.replicate]
            found = {
                "at": np.array([0, 10]),
                "returns": np.array([np.nan, end]),
                "final": end,
                "optimum": optimum,
                "full_optimum": optimum,
            }
        store.keep(folder, job.id, pack(job, found, 1.0))
    return folder


def split(folder: Path, instance: str) -> tuple[list[Any], list[Any]]:
    found = [r for r in results(folder) if r.instance == instance]
    return [r for r in found if "SAC" in r.label], [r for r in found if "grid" in r.label]


def test_shares_by_hand(tmp_path: Path) -> None:
    """Pendulum: (−675 + 1200)/(−150 + 1200) = 1/2. CartPole: 200/400. ± is t(0.975, 2)·sd/√3 = 4.3027·sd/√3."""
    kept(tmp_path)
    for instance, scale in (("Pendulum", 1050.0), ("CartPole", 400.0)):
        trained, plans = split(tmp_path, instance)
        _, (row,), text = rows(trained, plans)
        half = 4.302653 * np.std(ENDS[instance], ddof=1) / np.sqrt(3)
        assert row[3:5] == [pytest.approx(np.mean(ENDS[instance])), pytest.approx(half, abs=1e-3)]
        assert row[6:] == [50.0, pytest.approx(100 * half / scale, abs=0.06)]
        assert ("0 % is what random actions earn" in text) == (instance == "Pendulum")
    assert row[5] == "plan on a grid 400 ± 2"


def test_the_exact_optimum_comes_first_and_nothing_is_compared_with_nothing(tmp_path: Path) -> None:
    trained, plans = split(kept(tmp_path / "exact", optimum=250.0), "CartPole")
    best = yardstick(trained, plans)
    assert best is not None
    assert (best.name, best.value, best.share(125.0)) == ("exact optimum", 250.0, 0.5)
    trained, plans = split(kept(tmp_path / "none", plans=False), "CartPole")
    assert yardstick(trained, plans) is None
    _, (row,), _ = rows(trained, plans)
    assert row[5:] == ["nothing", None, None]


def test_the_page_says_what_was_run_and_what_is_missing(tmp_path: Path) -> None:
    text = deep_page(kept(tmp_path / "all")).html()
    for words in (
        "stable_baselines3 SAC(",
        "batch_size=64",
        "40,000 steps, 100 test episodes at each of 21 points",
        "100 % is: delay 1: plan on a grid -150 ± 2; random actions -1200",
        "mean ± 1 standard deviation over 3 seeds",
    ):
        assert words in text.replace("&quot;", '"'), words
    text = deep_page(kept(tmp_path / "some", plans=False)).html()
    assert "6 of 8 jobs are finished" in text
    assert "there is neither a table nor a plan on a grid" in text
    assert ol.__version__ in text
