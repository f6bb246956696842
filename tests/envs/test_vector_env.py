"""The native vector environment: each copy does what a single environment with its seed does, in every autoreset mode."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import oldlight as ol
from oldlight.envs import TabularVectorEnv

LINKS: list[dict[str, Any]] = [
    {},
    {"channel": "constant:2"},
    {"channel": "geometric:0.5", "rewards": "delayed"},
    {"channel": "constant:1+loss:0.4", "queue": 2},
    {"channel": "bursty:0.3,0.3", "rewards": "delayed"},
    {"channel": "constant:2", "start": "warm"},
    {"channel": "bernoulli:0.5,3", "actuation": 2, "pending": [1, 2]},
]
MDP = ol.instances.sensing_chain(0.8, n_states=6, n_actions=3, horizon=5)


def pair(link: dict[str, Any], mode: AutoresetMode, n: int = 4) -> tuple[Any, Any]:
    """The native vector, and single environments side by side."""
    native = gym.make_vec("oldlight/Tabular-v0", num_envs=n, mdp=MDP, autoreset_mode=mode, **link)
    assert isinstance(native, TabularVectorEnv)
    singles = SyncVectorEnv([lambda: gym.make("oldlight/Tabular-v0", mdp=MDP, **link)] * n, autoreset_mode=mode)
    return native, singles


def assert_same(one: Any, other: Any) -> None:
    """Equal in value, type and shape, down to the infos and their masks."""
    assert data_equivalence(one, other, exact=True), (one, other)


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("link", LINKS, ids=str)
def test_does_exactly_what_single_environments_do(link: dict[str, Any], mode: AutoresetMode) -> None:
    native, singles = pair(link, mode)
    assert native.observation_space == singles.observation_space
    assert native.action_space == singles.action_space
    assert native.metadata["autoreset_mode"] is mode
    assert_same(native.reset(seed=10), singles.reset(seed=10))
    native.action_space.seed(1)
    for k in range(23):
        actions = native.action_space.sample()
        one, other = native.step(actions), singles.step(actions)
        assert one[0] in native.observation_space
        assert_same(one, other)
        over = one[2]
        if mode is AutoresetMode.DISABLED and over.any():
            assert_same(native.reset(options={"reset_mask": over}), singles.reset(options={"reset_mask": over.copy()}))
        if k == 7:  # two of them in the middle of an episode, one with a seed
            mask, seeds = np.array([True, False, True, False]), [99, 1, None, 2]
            one = native.reset(seed=seeds, options={"reset_mask": mask})
            assert_same(one, singles.reset(seed=seeds, options={"reset_mask": mask.copy()}))
    assert_same(native.reset(seed=[5, 4, 3, 2]), singles.reset(seed=[5, 4, 3, 2]))


def test_bug_a_partial_reset_advances_the_other_environments() -> None:
    one, other = (pair({"channel": "geometric:0.5"}, AutoresetMode.NEXT_STEP)[0] for _ in range(2))
    one.reset(seed=3)
    other.reset(seed=3)
    differs = False
    for k in range(40):
        if k % 3 == 1:
            mask = np.array([False, True, False, False])
            before = other.reset(options={"reset_mask": mask})[0]
            assert before["time"][1] == 0
            assert mask.tolist() == [False, True, False, False], "the caller's mask is left alone"
        a, b = one.step(np.zeros(4, dtype=int)), other.step(np.zeros(4, dtype=int))
        for name in a[0]:
            assert np.array_equal(a[0][name][[0, 2, 3]], b[0][name][[0, 2, 3]])
        differs |= bool((a[0]["time"][1] != b[0]["time"][1]).any())
    assert differs


def test_a_partial_reset_shows_the_others_as_they_are() -> None:
    envs = pair({"channel": "constant:2"}, AutoresetMode.NEXT_STEP)[0]
    envs.reset(seed=0)
    for _ in range(3):
        shown = envs.step(np.full(4, 1))[0]
    again, infos = envs.reset(options={"reset_mask": np.array([True, False, False, False])})
    for name, array in shown.items():
        assert np.array_equal(array[1:], again[name][1:])
    assert again["seen"].tolist() == [0, 1, 1, 1]
    assert infos["_arrival"].tolist() == [True, False, False, False]


def test_bug_the_seed_is_ignored() -> None:
    envs = pair({"channel": "geometric:0.5"}, AutoresetMode.NEXT_STEP, 50)[0]

    def play(seed: Any) -> list[Any]:
        envs.reset(seed=seed)
        return [envs.step(np.zeros(50, dtype=int))[0]["observation"].tolist() for _ in range(12)]

    assert play(1) == play(1)
    assert play(1) != play(2)
    assert play(1) != [play(None), play(None)][0]
    assert play(None) != play(None)
    assert len({tuple(column) for column in np.array(play(1)).T.tolist()}) > 25, "copies have luck of their own"


def test_bug_arrays_are_shared_with_the_caller() -> None:
    envs, same = (pair({"channel": "constant:1"}, AutoresetMode.NEXT_STEP)[0] for _ in range(2))
    envs.reset(seed=1)
    same.reset(seed=1)
    actions = np.zeros(4, dtype=np.int64)
    kept = []
    for k in range(9):
        actions[:] = k % 3
        mine, theirs = envs.step(actions), same.step(actions)
        assert_same(mine, theirs)
        kept.append(theirs)
        for array in (*mine[0].values(), *mine[1:4], mine[4]["arrival"], actions):
            array[...] = 1
    again = pair({"channel": "constant:1"}, AutoresetMode.NEXT_STEP)[0]
    again.reset(seed=1)
    for k in range(9):
        assert_same(again.step(np.full(4, k % 3)), kept[k])


def test_refusals() -> None:
    envs = pair({"channel": "constant:1"}, AutoresetMode.DISABLED)[0]
    with pytest.raises(gym.error.ResetNeeded, match="environment 0 was never reset"):
        envs.step(np.zeros(4, dtype=int))
    envs.reset(seed=0)
    with pytest.raises(ValueError, match=r"actions\[2\] is 3, expected an action in 0..2"):
        envs.step(np.array([0, 1, 3, 0]))
    with pytest.raises(ValueError, match="expected 4 whole numbers"):
        envs.step(np.zeros(3, dtype=int))
    with pytest.raises(ValueError, match="expected 4 whole numbers"):
        envs.step(np.zeros(4))
    with pytest.raises(ValueError, match="expected one per environment: 4"):
        envs.reset(seed=[1, 2])
    for mask in ([True] * 4, np.ones(3, dtype=bool), np.ones(4), np.zeros(4, dtype=bool)):
        with pytest.raises(ValueError, match="reset_mask"):
            envs.reset(options={"reset_mask": mask})
    for _ in range(5):
        envs.step(np.zeros(4, dtype=int))
    with pytest.raises(gym.error.ResetNeeded, match="environment 0 has ended"):
        envs.step(np.zeros(4, dtype=int))
    with pytest.raises(ValueError, match="'NextStep', 'SameStep', 'Disabled'"):
        gym.make_vec("oldlight/SensingChain-v0", num_envs=2, autoreset_mode="never")
    with pytest.raises(ValueError, match="num_envs"):
        gym.make_vec("oldlight/SensingChain-v0", num_envs=0)


def test_one_frame_for_each_environment() -> None:
    envs = gym.make_vec("oldlight/SensingChain-v0", num_envs=3, channel="constant:1", render_mode="ansi")
    envs.reset(seed=0)
    envs.step(np.zeros(3, dtype=int))
    frames = envs.render()
    assert frames is not None
    assert len(frames) == 3
    assert all("under way     step 1 (arrives at 2)" in str(frame) for frame in frames)


@pytest.mark.parametrize("name", ["CenterChain", "SensingChain", "Dichotomy", "HardTree", "Tabular"])
def test_every_name_has_a_vector(name: str) -> None:
    envs = gym.make_vec(f"oldlight/{name}-v0", num_envs=5, channel="constant:1")
    single = gym.make(f"oldlight/{name}-v0", channel="constant:1")
    assert isinstance(envs, TabularVectorEnv)
    assert envs.single_observation_space == single.observation_space
    assert envs.reset(seed=0)[0] in envs.observation_space
