"""The quick way through an episode (`oldlight.envs.in_order_episode`) against the general one of `ImpairedObservation`: the same in everything."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import oldlight as ol
from counting_env import SPACES, CountingEnv, assert_same, count
from oldlight.envs import ImpairedObservation
from repeats import repeats

LINKS = ["none", "constant:3", "constant:300", "geometric:0.5", "constant:2+loss:0.4", "geometric:0.4+loss:0.3", "loss:0.9", "bursty:0.3,0.4"]  # fmt: skip


def both(make: Any, channel: Any, **how: Any) -> list[ImpairedObservation]:
    """The same environment twice; the second is played the general way."""
    quick, general = ImpairedObservation(make(), channel, **how), ImpairedObservation(make(), channel, **how)
    general._plain = False
    return [quick, general]


def assert_same_episode(envs: list[ImpairedObservation], seed: int, actions: list[Any]) -> None:
    (shown, info), (other, told) = (env.reset(seed=seed) for env in envs)
    assert_same(shown, other)
    assert_same(info, told)
    assert (envs[0]._episode is None, envs[1]._episode is None) == (False, True)
    for a in actions:
        one, two = (env.step(a) for env in envs)
        assert [type(x) for x in one[1:4]] == [type(x) for x in two[1:4]]
        assert {key: type(x) for key, x in one[0].items()} == {key: type(x) for key, x in two[0].items()}
        assert_same(one, two)
        assert (list(one[0]), list(one[4])) == (list(two[0]), list(two[4]))
        if one[2] or one[3]:
            break
    else:
        pytest.fail("the episode did not end")
    for env in envs:
        with pytest.raises(gym.error.ResetNeeded):
            env.step(actions[0])


@pytest.mark.parametrize("hindsight", [True, False])
@pytest.mark.parametrize("channel", LINKS)
def test_every_in_order_link(channel: str, hindsight: bool) -> None:
    envs = both(lambda: CountingEnv(30, "Box", end="truncated"), channel, hindsight=hindsight, queue=4)
    rng = np.random.default_rng(1)
    for seed in range(repeats(4, 20)):
        assert_same_episode(envs, seed, list(rng.integers(3, size=30)))


@pytest.mark.parametrize("how", [{"clock": True}, {"queue": 0}, {"queue": 1}, {}], ids=str)
@pytest.mark.parametrize("kind", SPACES)
def test_every_kind_of_observation(kind: str, how: dict[str, Any]) -> None:
    envs = both(lambda: CountingEnv(12, kind, "Discrete from 5"), "constant:2+loss:0.3", **how)
    rng = np.random.default_rng(2)
    for seed in range(3):
        assert_same_episode(envs, seed, (5 + rng.integers(3, size=12)).tolist())


def test_a_law_that_depends_on_state_and_action() -> None:
    law = np.random.default_rng(3).dirichlet(np.ones(4), size=(16, 4))
    envs = both(lambda: gym.make("FrozenLake-v1"), ol.StochasticDelay(law))
    rng = np.random.default_rng(4)
    for seed in range(repeats(5, 30)):
        assert_same_episode(envs, seed, rng.integers(4, size=200).tolist())


def test_a_copy_in_the_middle_of_an_episode_goes_its_own_way() -> None:
    env = ImpairedObservation(gym.make("CartPole-v1"), "geometric:0.5")
    env.reset(seed=0)
    for _ in range(4):
        env.step(1)
    other = copy.deepcopy(env)
    assert_same([env.step(a) for a in (0, 1, 0)], [other.step(a) for a in (0, 1, 0)])


def test_nothing_that_is_shown_is_shared() -> None:
    """Whoever writes into what was returned changes nothing that is returned later."""
    envs = both(lambda: CountingEnv(8, "Box"), "constant:1")
    clean = ImpairedObservation(CountingEnv(8, "Box"), "constant:1")
    for env in (*envs, clean):
        shown, info = env.reset(seed=0)
    out = []
    for _ in range(8):
        for env in envs:
            shown, _, _, _, info = env.step(1)
            for value in (shown["observation"], shown["age"], shown["waited"], shown["actions"]):
                value[:] = 99
            for _, came in info["arrivals"]:
                came[:] = 99
            out.append(info)
        expected = clean.step(1)
    assert_same(out[-1]["hindsight"], expected[4]["hindsight"])
    assert_same(out[-2]["hindsight"], expected[4]["hindsight"])
    fresh = envs[0].reset(seed=0), envs[0].step(1)
    assert_same(fresh, (clean.reset(seed=0), clean.step(1)))


@pytest.mark.parametrize("channel", ["constant:3", "wifi", "seen:0", "constant:2+loss:0.5", "bursty:0.2,0.2"])
def test_without_hindsight_nothing_grows_with_the_episode(channel: str) -> None:
    def held(steps: int) -> int:
        env = ImpairedObservation(CountingEnv(10**6, "Box"), channel, hindsight=False, queue=3)
        env.reset(seed=0)
        most = 0
        for k in range(steps):
            env.step(1)
            if k > steps - 40:
                most = max(most, count({name: value for name, value in vars(env).items() if name != "env"}))
        return most

    assert held(repeats(700, 3000)) <= held(300) + 3 * 64  # one thing more in every step would be 400


def test_other_episodes_are_played_the_general_way() -> None:
    for channel, how in [
        ("packets:0=.5,1=.5", {}),
        ("constant:1", {"in_order": False}),
        ("constant:1", {"rewards": "delayed"}),
        ("constant:1", {"ends": "delayed"}),
        ("constant:1", {"actuation": 1}),
        ("constant:1", {"reveal": True}),
    ]:
        env = ImpairedObservation(CountingEnv(8), channel, **how)  # type: ignore[arg-type]
        env.reset(seed=0)
        assert env._episode is None, (channel, how)
