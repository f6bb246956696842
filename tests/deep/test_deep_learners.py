"""Deep learners of stable-baselines3 behind a link: `make test-deep`. Without torch these are skipped, and say so."""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol

pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed: make test-deep")

from oldlight.deep import OBSERVATIONS, make, train
from oldlight.report.deep_page import deep_page
from oldlight.studies import Environment, load_study, results, run_study

ROOT = Path(__file__).parents[2]
CHAIN, POLE = "oldlight/SensingChain-v0", "CartPole-v1"
SHORT = {"steps": 600, "points": 2, "test_episodes": 5}


@pytest.mark.parametrize("algorithm", ["PPO", "DQN"])
@pytest.mark.parametrize("observation", OBSERVATIONS)
@pytest.mark.parametrize("env", [CHAIN, POLE])
def test_a_short_training(env: str, observation: str, algorithm: str) -> None:
    problem = Environment(env, ol.Lossy(ol.ConstantDelay(2), rate=0.2))
    found = train(problem, 1, algorithm=algorithm, observation=observation, settings={"n_steps": 128} if algorithm == "PPO" else None, **SHORT)  # fmt: skip
    assert len(found["at"]) == len(found["returns"]) == 3
    assert found["at"][0] == 0
    assert found["at"][-1] >= 600
    assert np.isfinite(
        found["returns"][observation == "forward" :]
    ).all()  # a forward model knows nothing before the first step
    if env == POLE:
        assert math.isnan(found["optimum"])
        assert (found["returns"][observation == "forward" :] >= 5).all()  # a pole takes a while to fall
    else:
        mdp = ol.instances.sensing_chain()
        behind = ol.ConstantDelay(0) if observation == "full" else problem.channel
        assert found["optimum"] == pytest.approx(ol.solve(ol.ImpairedMDP(mdp, behind)).value)
        assert (found["returns"][observation == "forward" :] <= mdp.horizon).all()


def test_one_seed_decides() -> None:
    problem = Environment(CHAIN, ol.ConstantDelay(2))
    one, two = (train(problem, 7, algorithm="DQN", **SHORT) for _ in range(2))
    assert one["returns"].tolist() == two["returns"].tolist()
    assert one["returns"].tolist() != train(problem, 8, algorithm="DQN", **SHORT)["returns"].tolist()


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stable-Baselines3 makes a folder for each call of `learn`, unless it is told not to."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    train(Environment(CHAIN, ol.ConstantDelay(2)), 7, algorithm="DQN", **SHORT)
    assert list(tmp_path.iterdir()) == []


def test_what_each_agent_looks_at() -> None:
    full, all_known, newest, forward = (make(POLE, "constant:2", x).observation_space.shape for x in OBSERVATIONS)
    assert full == newest == forward == (4,)
    assert all_known[0] > 4
    with pytest.raises(ValueError, match="observation is 'everything', expected one of"):
        make(POLE, "constant:2", "everything")


def test_actions_that_are_numbers() -> None:
    found = train(Environment("Pendulum-v1", ol.ConstantDelay(1)), 1, settings={"n_steps": 128}, **SHORT)
    assert np.isfinite(found["returns"]).all()
    assert math.isnan(found["optimum"])


def test_the_optimum_behind_bursts_and_none_where_the_plan_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = ol.BurstyLoss(0.1, 0.5)
    exact = ol.solve(ol.ImpairedMDP(ol.instances.sensing_chain(), channel)).value
    found = train(Environment(CHAIN, channel), 1, algorithm="DQN", **SHORT)
    assert np.isfinite(found["returns"]).all()
    assert found["optimum"] == pytest.approx(exact, abs=1e-9)

    def refused(problem: Any) -> None:
        raise ol.TooLarge("too large")

    monkeypatch.setattr(sys.modules["oldlight.planning.gap"], "gap", refused)
    found = train(Environment(CHAIN, channel), 1, algorithm="DQN", **SHORT)
    assert np.isfinite(found["returns"]).all()
    assert math.isnan(found["optimum"])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"settings": {"n_stepz": 3}}, "unexpected keyword argument 'n_stepz'"),
        ({"algorithm": "DQN", "instance": "env:Pendulum-v1"}, "DQN on env:Pendulum-v1 behind none: AssertionError"),
        ({}, ""),
    ],
)
def test_what_the_library_refuses_is_found_before_training(changes: dict[str, Any], says: str) -> None:
    options = {key: value for key, value in changes.items() if key != "instance"}
    task = {"name": "oldlight.deep:train", "label": options.get("algorithm", "PPO"), **options}
    study = load_study({"name": "s", "instances": [changes.get("instance", f"env:{POLE}")], "tasks": [task]})
    before = random.getstate()  # the library seeds it, too
    if says:
        with pytest.raises(ValueError, match=says):
            study.check()
    else:
        study.check()
    assert random.getstate() == before


def test_the_study_and_its_page(tmp_path: Path) -> None:
    jobs = load_study(ROOT / "docs" / "studies" / "deep.toml").jobs()
    assert len(jobs) == 3 * 2 * (2 + 3 * 4)
    keys = {
        "name": "short",
        "seeds": 2,
        "instances": [{"name": f"env:{CHAIN}", "label": "sensing chain"}],
        "channels": [{"kind": "constant", "d": 2, "label": "delay 2"}],
        "tasks": [{"name": "oldlight.deep:train", "algorithm": "DQN", "label": "DQN, augmented", **SHORT}],
    }
    assert run_study(load_study(keys), tmp_path / "runs", workers=1, progress=False).complete
    (one, two) = results(tmp_path / "runs")
    assert one.seed != two.seed
    page = deep_page(tmp_path / "runs").write(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "optimum" in page
    with pytest.raises(ValueError, match="needs a process with a table"):
        load_study(keys | {"tasks": ["gap"]})
