"""The registered environments: documentation, registration, Gymnasium's own checks, specs, pictures."""

from __future__ import annotations

import copy
import json
import pickle
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env, data_equivalence

import oldlight as ol
from conftest import random_mdp
from env_cases import LINKS
from oldlight.envs import (
    AugmentedObservation,
    ImpairedObservation,
    TabularEnv,
    play,
)

IDS = [f"oldlight/{name}-v0" for name in ("CenterChain", "SensingChain", "Dichotomy", "HardTree", "Tabular")]


# -- documentation ----------------------------------------------------------------------------------------------------


HEADINGS = ["Description", "Action Space", "Observation Space", "Rewards", "Starting State", "Episode End", "Information",
            "Arguments", "Version History"]  # fmt: skip


def test_the_documentation_has_gymnasiums_headings_and_its_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[2] / "docs" / "envs.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", text, re.M) == HEADINGS
    assert all(f"`{name}`" in text for name in IDS)
    env = gym.make("oldlight/SensingChain-v0", channel="constant:2")
    assert all(f"| `{entry}` |" in text for entry in env.observation_space.spaces)  # type: ignore[attr-defined]
    code = re.findall(r"```python\n(.*?)```", text, re.S)
    assert len(code) == 2
    names: dict[str, Any] = {}
    for block in code:
        exec(compile(block, "docs/envs.md", "exec"), names)
    assert "agent sees    nothing yet" in capsys.readouterr().out


# -- registration and Gymnasium's checks ------------------------------------------------------------------------------


def fresh(code: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_made_by_name_without_importing_the_package() -> None:
    code = 'import gymnasium as gym; print(gym.make("oldlight:oldlight/SensingChain-v0").unwrapped.horizon)'
    assert fresh(code) == "10"


@pytest.mark.parametrize(
    "order", ["oldlight.envs, gymnasium", "gymnasium, oldlight", "oldlight, gymnasium, oldlight.envs"]
)
def test_the_order_of_imports_does_not_matter_and_nothing_is_hung_into_the_import_system(order: str) -> None:
    code = f'import sys; before = list(sys.meta_path); import {order}; print(sys.meta_path == before, len([i for i in gymnasium.registry if i.startswith("oldlight/")]), '
    code += 'gymnasium.make_vec("oldlight:oldlight/Dichotomy-v0", num_envs=3).num_envs)'
    assert fresh(code) == "True 10 3"


def test_importing_the_package_does_not_import_gymnasium() -> None:
    assert (
        fresh("import sys, oldlight; print([m for m in ('gymnasium', 'matplotlib', 'numba') if m in sys.modules])")
        == "[]"
    )


@pytest.mark.crossed("name", "link")
@pytest.mark.parametrize("link", LINKS, ids=str)
@pytest.mark.parametrize("name", IDS)
def test_check_env_finds_nothing(name: str, link: dict[str, Any]) -> None:
    if "channel" in link and link != LINKS[1]:
        env = gym.make(name, **link)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_env(env.unwrapped, skip_render_check=True)
        return
    import matplotlib.figure  # noqa: F401  (an old release warns while it is imported)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(name, **link).unwrapped)


CHANNELS = [
    "constant:2",
    "geometric:0.5+cap:3+loss:0.1",
    {"kind": "bernoulli", "p_zero": 0.5, "steps": 2},
    ol.EmpiricalDelay({1: 0.5, 3: 0.5}),
    ol.Lossy(ol.HeavyTailedDelay(1.5), loss=ol.BurstyLoss(0.2, 0.4)),
]


@pytest.mark.parametrize("channel", CHANNELS, ids=str)
def test_specs_go_through_json(channel: Any) -> None:
    """A channel object or a process object becomes data in the spec; what comes back plays the same episode."""
    mdp = random_mdp(np.random.default_rng(1), 3, 2, 6)
    for env in (
        gym.make("oldlight/SensingChain-v0", p=0.7, horizon=6, channel=channel),
        gym.make("oldlight/Tabular-v0", mdp=mdp, channel=channel, rewards="delayed"),
    ):
        assert env.spec is not None
        text = env.spec.to_json()
        again, same = gym.make(EnvSpec.from_json(text)), gym.make(env.spec)
        assert json.loads(again.spec.to_json()) == json.loads(text)  # type: ignore[union-attr]
        assert again.unwrapped.problem.mdp == env.unwrapped.problem.mdp  # type: ignore[attr-defined]
        assert episode(env, 5) == episode(again, 5) == episode(same, 5)


def test_a_vector_spec_makes_the_same_vector() -> None:
    envs = gym.make_vec("oldlight/SensingChain-v0", num_envs=3, channel=ol.ConstantDelay(1), autoreset_mode="SameStep")
    assert envs.spec is not None
    again = gym.make_vec(EnvSpec.from_json(envs.spec.to_json()))
    assert (again.num_envs, again.metadata, again.unwrapped.problem.channel) == (  # type: ignore[attr-defined]
        3,
        envs.metadata,
        ol.ConstantDelay(1),
    )


def episode(env: Any, seed: int) -> list[Any]:
    """One episode under fixed actions, as plain numbers."""
    rng = np.random.default_rng(seed)
    shown, _ = env.reset(seed=seed)
    out = [_plain(shown)]
    over = False
    while not over:
        shown, reward, terminated, truncated, _ = env.step(int(rng.integers(env.action_space.n)))
        over = terminated or truncated
        out.append((_plain(shown), float(reward), over))
    return out


def _plain(shown: Any) -> Any:
    return {k: np.asarray(v).tolist() for k, v in shown.items()} if isinstance(shown, dict) else int(shown)


@pytest.mark.parametrize("name", IDS)
def test_the_seed_decides_everything(name: str) -> None:
    for link in ({}, {"channel": "geometric:0.5+loss:0.3"}):
        env = gym.make(name, **link)
        first = [episode(env, 3), [episode_without_seed(env) for _ in range(3)]]
        assert first == [episode(env, 3), [episode_without_seed(env) for _ in range(3)]]
        assert episode(env, 4) != first[0] or name == "oldlight/HardTree-v0"
        assert len({str(run) for run in first[1]}) > 1, "episodes without a seed must go on, not repeat"


def episode_without_seed(env: Any) -> list[Any]:
    env.reset()
    return [_plain(env.step(0)[0]) for _ in range(env.unwrapped.horizon)]


@pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copied", "pickled"]
)
def test_a_copy_goes_on_from_the_middle_of_an_episode(again: Any) -> None:
    for env in (
        gym.make("oldlight/SensingChain-v0", channel="geometric:0.5+loss:0.2").unwrapped,
        gym.make_vec("oldlight/SensingChain-v0", num_envs=2, channel="geometric:0.5"),
        ImpairedObservation(gym.make("CartPole-v1"), "geometric:0.5+loss:0.2", rewards="delayed"),
        AugmentedObservation(ImpairedObservation(gym.make("CartPole-v1"), "constant:2")),
    ):
        action: Any = np.zeros(2, dtype=int) if hasattr(env, "num_envs") else 0
        env.reset(seed=1)
        for _ in range(4):
            env.step(action)
        other = again(env)
        for _ in range(4):
            assert data_equivalence(env.step(action), other.step(action), exact=True)


def test_nothing_is_stepped_before_a_reset_or_after_the_end() -> None:
    env = gym.make("oldlight/Dichotomy-v0", d=1).unwrapped
    with pytest.raises(gym.error.ResetNeeded, match="reset"):
        env.step(0)
    env.reset()
    for _ in range(3):
        *_, terminated, truncated, _ = env.step(0)
    assert (terminated, truncated) == (True, False)
    with pytest.raises(gym.error.ResetNeeded, match="reset"):
        env.step(0)


def test_refusals() -> None:
    def make(**link: Any) -> Any:
        return TabularEnv(ol.instances.sensing_chain(), **link)

    with pytest.raises(ValueError, match="did you mean constant"):
        make(channel="constnat:2")
    with pytest.raises(ValueError, match="need one"):
        make(actuation=1)
    with pytest.raises(TypeError, match="no keyword 'chanel'; did you mean channel"):
        make(chanel="none")
    for make_it in (gym.make, gym.make_vec):
        with pytest.raises(TypeError, match="no keyword 'horizn'; did you mean horizon"):
            make_it("oldlight/SensingChain-v0", horizn=3)
        for mdp, kind, says in [
            (3, TypeError, r"a process is given by name \(.*sensing_chain.*; not 3"),
            ({"transitions": [[[1.0]]], "rewrds": [[0.0]]}, ValueError, "no option 'rewrds'; did you mean rewards"),
            ({"transitions": [[[1.0]]]}, ValueError, "missing a required argument: 'rewards'"),
        ]:
            with pytest.raises(kind, match=says):
                make_it("oldlight/Tabular-v0", mdp=mdp)
    with pytest.raises(ValueError, match="'cold', 'warm'"):
        make(channel="none", start="hot")
    with pytest.raises(ValueError, match="'immediate', 'delayed'"):
        make(channel="none", rewards="late")
    with pytest.raises(ValueError, match="render_mode"):
        make(render_mode="human")
    env = make(channel="none")
    env.reset()
    for wrong in (5, -1, 1.5, None):
        with pytest.raises(ValueError, match=r"action is .*expected a"):
            env.step(wrong)
    with pytest.raises(ValueError, match="no link"):
        play(make(), ol.FunctionPolicy(lambda info: 0, 5), 1, seed=0)
    with pytest.raises(TypeError, match="outermost"):
        play(gym.make("FrozenLake-v1"), ol.FunctionPolicy(lambda info: 0, 4), 1, seed=0)
    with pytest.raises(ValueError, match="no transition table"):
        play(ImpairedObservation(gym.make("CartPole-v1"), "none"), ol.FunctionPolicy(lambda info: 0, 2), 1, seed=0)
    with pytest.raises(ValueError, match="queue="):
        play(make(channel="constant:3", queue=2), ol.FunctionPolicy(lambda info: 0, 5), 1, seed=0)


# -- pictures ---------------------------------------------------------------------------------------------------------


def test_text_shows_truth_sight_traffic_and_queue() -> None:
    env = gym.make(
        "oldlight/SensingChain-v0", p=1.0, initial=np.eye(20)[4].tolist(), channel="constant:2", render_mode="ansi"
    )
    env.reset(seed=0)
    assert "agent sees    nothing yet" in str(env.render())
    for a in (0, 0, 1):
        env.step(a)
    assert str(env.render()).splitlines() == [
        "time 3 of 10   reward so far 0   ConstantDelay(d=2)",
        "[.....@...$$.........]   X true, o seen, @ both, $ reward",
        "true state    5",
        "agent sees    state 5, as it was 2 steps ago (step 1)",
        "under way     step 2 (arrives at 4), step 3 (arrives at 5)",
        "action queue  right, left",
    ]


@pytest.mark.parametrize("name", IDS)
def test_pictures_follow_the_process(name: str) -> None:
    """A picture of the right kind that changes when something changes, and does not when nothing does."""
    env = gym.make(name, channel="constant:1+loss:0.5", render_mode="rgb_array")
    env.reset(seed=0)
    before, same = np.asarray(env.render()), np.asarray(env.render())
    env.step(0)
    after = np.asarray(env.render())
    assert before.shape == (600, 960, 3)
    assert before.dtype == np.uint8
    assert np.array_equal(before, same)
    assert (before != after).any()
    assert len(np.unique(before[::7, ::7].reshape(-1, 3), axis=0)) > 5
