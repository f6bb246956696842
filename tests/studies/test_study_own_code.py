"""Studies that name code of one's own."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import oldlight as ol
from oldlight.studies import load_study, results, run_study
from study_cases import OWN, ids, small_study

# -- one's own code ----------------------------------------------------------------------------------------------------


def test_code_of_ones_own_beside_the_study(own: Path, inline: None) -> None:
    (own / "study.toml").write_text("""
name = "mine"
episodes = 12
instances = [{name = "heron:coin", horizon = 4, label = "coin"}]
channels = [{name = "heron:Late", d = 1}, "constant:2"]
learners = [{name = "heron:Stubborn", action = 1}]
tasks = ["heron:everything"]
""")
    study = load_study(own / "study.toml")
    assert [c.label for c in study.jobs()] == ["heron:Stubborn(action=1)", "heron:everything"] * 2
    state = run_study(study, own / "runs", progress=False)
    assert state.complete, state.failed
    by = {(r.channel, r.label): r for r in results(own / "runs")}
    stubborn = by["heron:Late(d=1)", "heron:Stubborn(action=1)"]
    assert stubborn.columns["values"].tolist() == [2.0] * 12  # whatever it does, it is right half of four times
    everything = by["constant:2", "heron:everything"]
    assert everything.seed is not None
    assert np.array_equal(everything.columns["draws"], np.random.default_rng(everything.seed).random(12))
    assert everything.columns["counts"].tolist() == [0, 1, 2]
    assert everything.columns["yes"].tolist() == [True, False]
    assert everything.columns["none"].tolist() == []
    assert everything.columns["words"].tolist() == ["a", "longer"]
    assert everything.scalars["name"] == "heron"
    assert everything.scalars["fine"] is True
    assert np.isnan(everything.scalars["nan"])

    ours = {"name": "evaluate", "policy": "heron:first"}
    old = {job.id for job in study.jobs()} | ids(learners=None, tasks=[ours])
    (own / "heron.py").write_text(OWN.replace("rng.random(episodes)", "rng.random(episodes) ** 2"))
    sys.modules.pop("heron")
    edited = {job.id for job in load_study(own / "study.toml").jobs()} | ids(learners=None, tasks=[ours])
    assert not old & edited  # an edited learner is another learner, and so is a task or a policy


def test_options_are_those_of_what_is_called(own: Path) -> None:
    """A factory whose default differs from that of the class it makes: an option that says the class's default still counts."""
    given = [{"name": "heron:make", "action": 0, "label": "zero"}, {"name": "heron:make", "action": 1, "label": "one"}]
    jobs = small_study(learners=given, tasks=None, channels=["constant:1"], seeds=1).jobs()
    assert [job.who["options"] for job in jobs] == [{"action": 0}, {}]


def test_mistakes_in_code_of_ones_own_are_located(own: Path) -> None:
    with pytest.raises(ValueError, match=r"study: instances\[0\]: KeyError: 'no such key'"):
        small_study(instances=["heron:broken"])


def test_a_task_must_return_scalars_and_columns(own: Path, inline: None) -> None:
    study = small_study(learners=None, tasks=["heron:square", "heron:seven"], channels=["constant:1"])
    one, two = run_study(study, own / "runs", progress=False).failed
    assert "'matrix' of shape (2, 2)" in one.error
    assert "returned int, expected a dictionary of scalars and 1-D arrays" in two.error


def test_what_another_process_cannot_find_is_refused() -> None:
    class Here:
        pass

    with pytest.raises(ValueError, match=r"Here cannot be found by another process; put it in a module"):
        small_study(learners=[Here])


def test_files_are_found_beside_the_study(tmp_path: Path) -> None:
    ol.instances.sensing_chain(0.8, n_states=4, n_actions=2, horizon=4).save(tmp_path / "chain.toml")
    (tmp_path / "study.toml").write_text(
        'name = "f"\ninstances = ["chain.toml"]\nchannels = ["constant:1"]\ntasks = ["gap"]\nstart = "warm"\n'
    )
    job = load_study(tmp_path / "study.toml").jobs()[0]
    assert job.id in ids()  # the same process, whatever it is called
    assert job.instance == "chain.toml"
    ol.instances.sensing_chain(0.9, n_states=4, n_actions=2, horizon=4).save(tmp_path / "chain.toml")
    assert load_study(tmp_path / "study.toml").jobs()[0].id not in ids()
