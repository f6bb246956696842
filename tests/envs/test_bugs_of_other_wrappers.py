"""Bugs that other wrappers for delayed observations had, by name, and that `ImpairedObservation` does not have."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import DelayObservation

from counting_env import SPACES, CountingEnv, _frozen, assert_same, run, told
from oldlight.envs import ImpairedObservation

# -- bugs that others had ---------------------------------------------------------------------------------------------


def test_bug_zeros_for_nothing_yet() -> None:
    """Gymnasium's DelayObservation shows state 0 before anything has arrived. Here no observation that was made can look like it."""
    lake = gym.make("FrozenLake-v1")
    assert DelayObservation(lake, 2).reset(seed=0)[0] == 0  # the bug
    nothing = ImpairedObservation(lake, "constant:2").reset(seed=0)[0]
    assert nothing["observation"] == 16
    assert nothing["seen"] == 0
    for kind in SPACES:
        if kind == "Discrete from 5":
            continue
        steps = run(ImpairedObservation(CountingEnv(8, kind), "constant:2"))
        names = [k for k in steps[0][0] if k.startswith("observation")]
        for shown, *_ in steps[2:]:
            assert any(not np.array_equal(shown[k], steps[0][0][k]) for k in [*names, "seen"])
            if not isinstance(SPACES[kind], spaces.Box | spaces.Dict):
                assert any(not np.array_equal(shown[k], steps[0][0][k]) for k in names)


def test_bug_the_last_observations_are_never_delivered() -> None:
    for channel in ("constant:3", "geometric:0.3", "constant:2+loss:0.4", "loss:0.5"):
        env = ImpairedObservation(CountingEnv(8), channel)
        for seed in range(5):
            steps = run(env, seed)
            arrived = [arrival for *_, info in steps for arrival in info["arrivals"]]
            assert sorted(i for i, _ in arrived) == list(range(9)), "each step exactly once"
            assert all(value is None or value == i for i, value in arrived)
            revealed = steps[-1][4]["hindsight"]
            when = revealed["arrivals"]
            assert [o for o in revealed["observations"] if o is not None] == [i for i in range(9) if when[i] >= 0]
            assert revealed["rewards"] == [2.0**i for i in range(8)]
            assert len(revealed["actions"]) == 8
            for now, (*_, info) in enumerate(steps[:-1]):
                assert "hindsight" not in info
                for i, value in info["arrivals"]:
                    assert when[i] == (-1 if value is None else now)


def test_bug_buffers_survive_the_reset() -> None:
    env = ImpairedObservation(CountingEnv(50, "Box"), "geometric:0.4", rewards="delayed", actuation=1)
    first = run_some(env, 7)
    for played in (1, 3, 20):
        env.reset(seed=9)
        for _ in range(played):
            env.step(2)
        assert_same(run_some(env, 7), first)


def run_some(env: Any, seed: int) -> list[Any]:
    shown, info = env.reset(seed=seed)
    return [(shown, info), *(env.step(k % 3) for k in range(12))]


@pytest.mark.parametrize("end", ["terminated", "truncated"])
@pytest.mark.parametrize("channel", ["constant:3", "geometric:0.3", "loss:0.6", "constant:2+loss:0.4", "constant:99"])
def test_bug_reward_lost_at_the_end(channel: str, end: str) -> None:
    """Travelling rewards: each binary digit is one step's reward, so the sum shows whether each was paid exactly once."""
    for seed in range(6):
        steps = run(ImpairedObservation(CountingEnv(12, end=end), channel, rewards="delayed"), seed)
        assert sum(step[1] for step in steps[1:]) == 2.0**12 - 1
        # and none before its observation: the reward of step i − 1 comes with observation i
        paid = np.cumsum([step[1] for step in steps[1:-1]])
        for (shown, *_), total in zip(steps[1:-1], paid, strict=True):
            newest = told(shown)
            assert total == 2.0 ** (newest or 0) - 1


def test_bug_the_seed_is_ignored() -> None:
    env = ImpairedObservation(CountingEnv(60), "geometric:0.5+loss:0.3")

    def when(seed: int | None) -> list[int]:
        arrivals: list[int] = run(env, seed)[-1][4]["hindsight"]["arrivals"]
        return arrivals

    assert when(1) == when(1)
    assert when(1) != when(2)
    when(1)
    after = [when(None), when(None)]
    when(1)
    assert after == [when(None), when(None)]
    assert after[0] != after[1], "without a seed the luck goes on"
    fresh = [
        run(ImpairedObservation(CountingEnv(60), "geometric:0.5"), None)[-1][4]["hindsight"]["arrivals"]
        for _ in range(2)
    ]
    assert fresh[0] != fresh[1]


@pytest.mark.parametrize("channel", ["constant:3", "geometric:0.5", "bursty:0.3,0.3", "heavy:1.2+loss:0.5"])
@pytest.mark.parametrize("name", ["CartPole-v1", "FrozenLake-v1", "Pendulum-v1", "MountainCar-v0"])
def test_bug_the_wrapper_changes_the_trajectory(name: str, channel: str) -> None:
    bare, wrapped = gym.make(name), ImpairedObservation(gym.make(name), channel)
    for seed in (3, None, 4):  # None: both go on from where their generators are
        observations = [bare.reset(seed=seed)[0]]
        wrapped.reset(seed=seed)
        bare.action_space.seed(1)
        rewards, over, info = [], False, {}
        while not over:
            action = bare.action_space.sample()
            observation, reward, *ends, _ = bare.step(action)
            _, same_reward, *same_ends, info = wrapped.step(action)
            assert ends == same_ends
            observations.append(observation)
            rewards.append((reward, same_reward))
            over = any(ends)
        assert all(one == other for one, other in rewards)
        for truth, seen in zip(observations, info["hindsight"]["observations"], strict=True):
            assert seen is None or np.array_equal(truth, seen)
        assert bare.unwrapped.np_random.bit_generator.state == wrapped.unwrapped.np_random.bit_generator.state


@pytest.mark.parametrize("kind", ["Box", "image", "MultiDiscrete", "Dict"])
def test_bug_arrays_are_shared_with_the_caller(kind: str) -> None:
    """Neither can a caller change what is shown later, nor does what was shown change by itself."""
    env = ImpairedObservation(CountingEnv(9, kind, "Box"), "constant:2", actuation=1)

    def play(meddle: bool) -> list[Any]:
        out = []
        shown, info = env.reset(seed=0)
        for k in range(9):
            out.append([_frozen(shown), _frozen(info["arrivals"])])
            if meddle:
                _scribble(shown)
                _scribble(info)
            action = np.full(2, k / 9, dtype=np.float32)
            shown, _, _, _, info = env.step(action)
            if meddle:
                _scribble(action)
        out.append([_frozen(shown), _frozen(info["hindsight"])])
        return out

    assert play(False) == play(True)


def _scribble(value: Any) -> None:
    if isinstance(value, dict):
        for inner in value.values():
            _scribble(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            _scribble(inner)
    elif isinstance(value, np.ndarray):
        value[...] = 77
