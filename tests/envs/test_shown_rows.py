"""Rows that a link shows itself (`oldlight.envs.shown_rows`) against those made of its Dict: the same in everything."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from counting_env import CountingEnv, assert_same
from oldlight.envs import AugmentedObservation, ImpairedObservation
from oldlight.envs.augmented_observation import Flattening
from oldlight.envs.observation_view import ObservationView
from repeats import repeats


class Small(CountingEnv):
    """Counts in a space of one's own; `given` is how an observation is given, which need not be the type that the space holds."""

    def __init__(self, space: spaces.Space[Any], given: Callable[[Any], Any] = lambda value: value) -> None:
        super().__init__(12, actions="Discrete from 5")
        self.observation_space, self._given = space, given

    def say(self, space: Any) -> Any:
        return self._given(super().say(space))


def cart_pole() -> Any:
    return gym.make("CartPole-v1")


ENVS: dict[str, Callable[[], Any]] = {
    "CartPole": cart_pole,
    "FrozenLake": lambda: gym.make("FrozenLake-v1"),
    "Pendulum, actions of a Box": lambda: gym.make("Pendulum-v1", max_episode_steps=30),
    "float64": lambda: Small(spaces.Box(-99, 99, (2,), np.float64)),
    "int8, given as other numbers": lambda: Small(spaces.Box(-99, 99, (2,), np.int8), lambda x: x + 0.75),
    "float16, given as float64": lambda: Small(spaces.Box(-99, 99, (2,), np.float16), lambda x: x / 3.0),
    "a list": lambda: Small(spaces.Box(-99, 99, (2,), np.float32), lambda x: x.tolist()),
    "two axes": lambda: Small(spaces.Box(-99, 99, (2, 2), np.float32)),
    "Discrete, int": lambda: Small(spaces.Discrete(20), int),
    "Discrete, array": lambda: Small(spaces.Discrete(20), np.array),
    "Discrete from 5": lambda: Small(spaces.Discrete(20, start=5)),
    "Discrete from -4": lambda: Small(spaces.Discrete(20, start=-4)),
    "many states": lambda: CountingEnv(20),
    "MultiBinary": lambda: CountingEnv(20, "MultiBinary"),
    "Dict": lambda: CountingEnv(20, "Dict"),
}
NUMBERS = slice(6, 10)  # CartPole's observation in a row with one action
LINKS = ["none", "constant:3", "geometric:0.5+loss:0.2", "loss:0.9", "packets:0=.4,1=.3,4=.3"]
KEYS: list[list[str] | None] = [None, ["observation", "seen"], ["age", "actions"], ["actions", "observation"]]
HOW: list[dict[str, Any]] = [{}, {"queue": 8}, {"queue": 0}, {"clock": True, "queue": 2}, {"actuation": 1, "rewards": "delayed", "queue": 2}]  # fmt: skip


def assert_rows_of_the_dict(make: Any, channel: str, how: dict[str, Any], keys: list[str] | None, seeds: int) -> None:
    """Episodes of rows beside the same episodes of Dicts."""
    quick, plain = (ImpairedObservation(make(), channel, **how) for _ in range(2))
    env = AugmentedObservation(quick, keys=keys)
    assert env._link is quick
    flattening = Flattening(plain.observation_space, "box", keys)

    def assert_row(row: Any, shown: dict[str, Any]) -> None:
        expected = flattening.rows(shown, 1)[0]
        assert type(row) is np.ndarray
        np.testing.assert_array_equal(row, expected, strict=True)

    for seed in range(seeds):
        (row, info), (shown, told) = env.reset(seed=seed), plain.reset(seed=seed)
        over = False
        env.action_space.seed(seed)
        while not over:
            assert_row(row, shown)
            assert_same(info, told)
            action = env.action_space.sample()
            row, *rest, info = env.step(action)
            shown, *expected, told = plain.step(action)
            assert (rest, [type(x) for x in rest]) == (expected, [type(x) for x in expected])
            over = rest[1] or rest[2]
        assert_row(row, shown)
        assert_same(info, told)


@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize("channel", LINKS)
@pytest.mark.parametrize("name", ["CartPole", "FrozenLake"])
def test_rows_are_those_of_the_dict(name: str, channel: str, how: dict[str, Any]) -> None:
    assert_rows_of_the_dict(ENVS[name], channel, {"queue": 3} | how, None, repeats(4, 20))


@pytest.mark.parametrize(
    ("name", "keys"), [(name, keys) for name in ENVS for keys in KEYS if name != "Dict" or keys is None], ids=str
)
def test_every_kind_of_observation(name: str, keys: list[str] | None) -> None:
    assert_rows_of_the_dict(ENVS[name], "constant:2+loss:0.3", {"queue": 2}, keys, 3)


@pytest.mark.parametrize("name", ["CartPole", "FrozenLake"])
def test_what_was_shown_before_needs_no_dict(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The quick way is taken: rows that are kept are shown again without the Dict."""
    env = AugmentedObservation(ImpairedObservation(ENVS[name](), "constant:3"))

    def played() -> list[Any]:
        env.action_space.seed(0)
        out: list[Any] = [env.reset(seed=0)]
        while len(out) == 1 or not (out[-1][2] or out[-1][3]):
            out.append(env.step(env.action_space.sample()))
        return out

    expected = played()
    monkeypatch.setattr(ObservationView, "show", None)
    assert_same(played(), expected)


@pytest.mark.parametrize("name", ["CartPole", "FrozenLake"])
def test_whoever_writes_into_a_row_changes_no_later_one(name: str) -> None:
    env, clean = (AugmentedObservation(ImpairedObservation(ENVS[name](), "constant:2")) for _ in range(2))
    for seed in (0, 0, 1):
        row, info = env.reset(seed=seed)
        assert_same((row, info), clean.reset(seed=seed))
        over, k = False, 0
        while not over:
            row[:] = 99.0
            for _, came in info["arrivals"]:
                if isinstance(came, np.ndarray):
                    came[:] = 99.0
            row, *rest, info = env.step(k % 2)
            assert_same((row, *rest, info), clean.step(k % 2))
            over, k = rest[1] or rest[2], k + 1


class Doubled(AugmentedObservation):
    def observation(self, observation: Any) -> Any:
        return 2 * super().observation(observation)


class Shouted(gym.ObservationWrapper[Any, Any, Any]):
    """Between the link and the row: what it makes of the Dict is what counts."""

    def observation(self, observation: Any) -> Any:
        return observation | {"observation": observation["observation"] + 1}


class OwnLink(ImpairedObservation):
    def step(self, action: Any, **how: Any) -> Any:
        shown, *rest = super().step(action)
        return shown | {"observation": shown["observation"] + 1}, *rest


def rows(env: Any, steps: int = 5) -> list[Any]:
    return [env.reset(seed=0)[0], *(env.step(k % 2)[0] for k in range(steps))]


def test_what_others_make_of_it_counts() -> None:
    """A subclass with its own `observation`, one of the link with its own `step`, a wrapper in between, methods set on one object."""
    plain = np.array(rows(AugmentedObservation(ImpairedObservation(cart_pole(), "constant:1"))))
    numbers = np.zeros_like(plain)
    numbers[:, NUMBERS] = 1
    between = AugmentedObservation(Shouted(ImpairedObservation(cart_pole(), "constant:1")))
    np.testing.assert_array_equal(np.array(rows(between)), plain + numbers)
    np.testing.assert_array_equal(rows(Doubled(ImpairedObservation(cart_pole(), "constant:1"))), 2 * plain)
    numbers[0] = 0  # its reset is that of every link
    np.testing.assert_array_equal(rows(AugmentedObservation(OwnLink(cart_pole(), "constant:1"))), plain + numbers)

    env = AugmentedObservation(ImpairedObservation(cart_pole(), "constant:1"))
    env.observation = lambda shown: int(shown["age"][0])  # type: ignore[method-assign, assignment, return-value]
    assert rows(env) == [0, 1, 1, 1, 1, 1]
    env = AugmentedObservation(ImpairedObservation(cart_pole(), "constant:1"))
    inner = env.env
    step = inner.step
    env.env.step = lambda action: step(1 - action)  # type: ignore[method-assign]
    other = AugmentedObservation(ImpairedObservation(cart_pole(), "constant:1"))
    other.reset(seed=0)
    np.testing.assert_array_equal(rows(env)[1:], [other.step(1 - k % 2)[0] for k in range(5)])


def test_an_environment_put_in_its_place() -> None:
    """In the middle of an episode, too."""
    env, expected = (AugmentedObservation(ImpairedObservation(cart_pole(), "constant:1")) for _ in range(2))
    np.testing.assert_array_equal(rows(env), rows(expected))
    env.env = Shouted(env.env)
    row, wanted = env.step(0)[0], expected.step(0)[0]
    wanted[NUMBERS] += 1
    np.testing.assert_array_equal(row, wanted)
    env.env = ImpairedObservation(cart_pole(), "constant:1")
    np.testing.assert_array_equal(rows(env), rows(expected))


@pytest.mark.parametrize("again", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copy", "pickle"])
def test_a_copy_in_the_middle_of_an_episode_goes_its_own_way(again: Any) -> None:
    env = AugmentedObservation(ImpairedObservation(CountingEnv(30, "Box"), "constant:2"))
    rows(env)
    other = again(env)
    assert other._link is other.env is not env.env
    assert_same([env.step(a) for a in (0, 1, 0)], [other.step(a) for a in (0, 1, 0)])
    assert_same(rows(env), rows(other))


def test_the_channel_and_the_recipe() -> None:
    """The channel can be set outside, and the environment made anew from its spec."""
    env = AugmentedObservation(ImpairedObservation(cart_pole(), "constant:3"))
    rows(env)
    env.channel = "constant:1"
    short = AugmentedObservation(ImpairedObservation(cart_pole(), "constant:1", queue=3))
    np.testing.assert_array_equal(rows(env), rows(short))
    assert env.spec is not None
    made = gym.make(env.spec)
    np.testing.assert_array_equal(rows(made), rows(env))
    assert made.unwrapped is not env.unwrapped
