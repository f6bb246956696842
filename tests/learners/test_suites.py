"""The two suites of the learners: disjoint, as large as they should be, and scored as their text says."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import suites

import oldlight as ol
from oldlight import files

STUDIES = Path(__file__).parents[2] / "docs" / "studies"
CONSTANTS = {0.005, 0.02, 0.08}


def suite(name: str) -> dict[str, Any]:
    return files.read_toml(STUDIES / f"suite_{name}.toml", "study file")


def makers(name: str) -> dict[str, Any]:
    sys.path.insert(0, str(STUDIES))
    try:
        module = __import__(f"{name}_processes")
    finally:
        sys.path.remove(str(STUDIES))
    return {
        key: f
        for key, f in inspect.getmembers(module, inspect.isfunction)
        if f.__module__ == module.__name__ and not key.startswith("_")
    }


@pytest.mark.parametrize("name", ["tuning", "reporting"])
def test_processes_are_many_bounded_and_of_all_lengths(name: str) -> None:
    made = {key: f() for key, f in makers(name).items()}
    assert len(made) >= 12
    for mdp in made.values():
        assert 5 <= mdp.horizon <= 30
        assert mdp.rewards.min() >= 0
        assert mdp.rewards.max() <= 1
        value = ol.solve(ol.ImpairedMDP(mdp, "none")).value
        always = [
            ol.evaluate(ol.ImpairedMDP(mdp, "none"), ol.FunctionPolicy(lambda info, a=a: a, mdp.n_actions)).value
            for a in range(mdp.n_actions)
        ]
        assert value > max(always) + 1e-3  # something is to be learnt
        greedy = mdp.rewards.argmax(axis=2)  # what the known rewards alone would say
        seen = ol.FunctionPolicy(lambda info, greedy=greedy: int(greedy[info.h, info.state]), mdp.n_actions)
        assert value > ol.evaluate(ol.ImpairedMDP(mdp, "none"), seen).value + 1e-3
    used = {x["name"].partition(":")[2] for block in suite(name)["blocks"] for x in block["instances"]}
    assert used == set(made)


def test_no_process_is_in_both_suites() -> None:
    one, other = makers("tuning"), makers("reporting")
    assert not set(one) & set(other)
    arrays = [{f().rewards.tobytes() for f in made.values()} for made in (one, other)]
    assert not arrays[0] & arrays[1]


@pytest.mark.parametrize("name", ["tuning", "reporting"])
def test_every_learner_is_a_rival_pooled_and_not_at_three_constants(name: str) -> None:
    text = suite(name)
    rows = [*text["learners"], *(x for block in text["blocks"] for x in block.get("learners", []))]
    from oldlight.registry import learner_names, learner_of

    assert {row["name"] for row in rows} >= set(learner_names())
    assert all(block.get("learners", text["learners"])[0]["name"] == "default" for block in text["blocks"])
    for key in {row["name"] for row in rows} - {"default"}:
        mine = [row for row in rows if row["name"] == key]
        options = inspect.signature(type(learner_of(key))).parameters
        for pooled in [False, True] if "pooled" in options else [False]:
            constants = {row.get("c") for row in mine if row.get("pooled", False) == pooled}
            assert constants >= (CONSTANTS if "c" in options else {None}), (key, pooled)
    kinds = {channel.partition(":")[0] for block in text["blocks"] for channel in block["channels"]}
    assert {"none", "constant", "delays", "packets", "loss"} <= kinds
    labels = [row["label"] for row in text["learners"]]
    assert len(set(labels)) == len(labels)


def test_scores_means_worst_and_profile_by_hand() -> None:
    regret = {("b", "p", "x"): {"one": 2.0, "two": 8.0}, ("b", "q", "x"): {"one": 6.0, "two": 3.0, "three": 30.0}}
    score = suites.scores(regret)
    assert score[("b", "q", "x")] == {"one": 2.0, "two": 1.0, "three": 10.0}
    (first, mean, worst, n), *rest = suites.summary(score)
    assert (first, worst, n) == ("one", 2.0, 2)
    assert mean == pytest.approx(np.sqrt(2.0))
    assert [row[0] for row in rest] == ["two", "three"]
    assert suites.profile(score, "three", [1.0, 9.0, 10.0]).tolist() == [0.0, 0.0, 0.5]
    assert suites.profile(score, "one", [1.0, 2.0]).tolist() == [0.5, 1.0]
    assert "| one | 1.41 | 2.0 | 2 |" in suites.table(score, regret)


def test_a_problem_counts_when_every_learner_and_seed_is_done(tmp_path: Path) -> None:
    from oldlight.studies import load_study, results, run_study, store

    learners = ["UniformRandom", "PosteriorSampling"]
    text = {"name": "two", "instances": ["dichotomy:1"], "channels": ["none", "constant:1"], "learners": learners}
    run_study(load_study(text | {"episodes": 5, "seeds": 2}), tmp_path, workers=1, progress=False)
    whole, problems = suites.complete(tmp_path, results(tmp_path))
    assert (len(whole), problems) == (2, 2)
    lost = next(job for job in store.read_study(tmp_path)["cells"] if job["channel"] == "none")
    store.result_file(tmp_path, lost["id"]).unlink()
    whole, problems = suites.complete(tmp_path, results(tmp_path))
    assert problems == 2
    assert {channel for _, _, channel in whole} == {"constant:1"}
