"""`ImpairedObservation` inside vector environments, and `AugmentedObservation`: one flat vector."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from counting_env import ACTIONS, SPACES, CountingEnv, _frozen, run
from oldlight.envs import AugmentedObservation, AugmentedVectorObservation, ImpairedObservation

# -- inside vector environments ---------------------------------------------------------------------------------------


def wrapped_counter() -> Any:
    return ImpairedObservation(CountingEnv(4), "constant:2", rewards="delayed")


@pytest.mark.parametrize("make", [SyncVectorEnv, AsyncVectorEnv])
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_inside_vectors_each_episode_starts_clean(make: Any, mode: AutoresetMode) -> None:
    """Times 0..4 of two episodes in each autoreset mode: nothing of the first is left in the second, and no reward is lost."""
    envs = make([wrapped_counter] * 2, autoreset_mode=mode)
    seen, rewards, final = [], [], []
    shown, _ = envs.reset(seed=1)
    try:
        for _ in range(12):
            seen.append([None if s == 0 else int(o) for s, o in zip(shown["seen"], shown["observation"], strict=True)])
            shown, reward, over, _, info = envs.step(np.zeros(2, dtype=np.int64))
            rewards.append(reward.tolist())
            if over.any() and mode is AutoresetMode.SAME_STEP:
                final.append(int(info["final_obs"][0]["observation"]))
                assert info["final_info"]["hindsight"]["observations"][0] == [0, 1, 2, 3, 4]
            elif over.any():
                final.append(int(shown["observation"][0]))
                assert info["hindsight"]["observations"][0] == [0, 1, 2, 3, 4]
            if over.any() and mode is AutoresetMode.DISABLED:
                shown, _ = envs.reset(options={"reset_mask": over})
    finally:
        envs.close()
    assert set(final) == {2}
    once = [None, None, 0, 1] if mode is not AutoresetMode.NEXT_STEP else [None, None, 0, 1, 2]
    paid = [0.0, 0.0, 1.0, 14.0] if mode is not AutoresetMode.NEXT_STEP else [0.0, 0.0, 1.0, 14.0, 0.0]
    assert [row[0] for row in seen] == [row[1] for row in seen] == (once * 3)[:12]
    assert [row[0] for row in rewards] == [row[1] for row in rewards] == (paid * 3)[:12]


def test_a_partial_reset_leaves_the_other_environments_where_they_are() -> None:
    def made() -> Any:
        return SyncVectorEnv(
            [lambda: ImpairedObservation(CountingEnv(30), "geometric:0.5")] * 3, autoreset_mode=AutoresetMode.DISABLED
        )

    one, other = made(), made()
    one.reset(seed=5)
    other.reset(seed=5)
    for k in range(20):
        if k == 6:
            mask = np.array([False, True, False])
            shown, _ = other.reset(seed=[None, 77, None], options={"reset_mask": mask})
            assert shown["age"][1] == 0
        a, b = one.step(np.zeros(3, dtype=int))[0], other.step(np.zeros(3, dtype=int))[0]
        for name in a:
            assert np.array_equal(a[name][[0, 2]], b[name][[0, 2]])
    assert a["age"][1] != b["age"][1] or a["observation"][1] != b["observation"][1]


# -- one flat vector --------------------------------------------------------------------------------------------------


def test_the_flat_box_by_hand() -> None:
    inner = TimeLimit(CountingEnv(5), 4)
    inner.unwrapped.observation_space = spaces.Discrete(4)
    env = AugmentedObservation(ImpairedObservation(inner, "constant:1"))
    first, *_ = env.reset(seed=0)
    assert first.dtype == np.float32
    # entries by name: actions (0, 1, 2, none), age, fresh (no, yes), observation (0..3, nothing), seen (no, yes), waited
    assert first.tolist() == pytest.approx([0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 1, 0, 1])
    env.step(2)
    shown = env.step(1)[0]
    assert shown.tolist() == pytest.approx([0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0])
    assert shown in env.observation_space
    numbers = AugmentedObservation(ImpairedObservation(inner, "constant:1"), "multidiscrete")
    assert numbers.observation_space == spaces.MultiDiscrete([4, 5, 2, 5, 2, 6])
    assert numbers.reset(seed=0)[0].tolist() == [3, 0, 0, 4, 0, 1]
    numbers.step(2)
    assert numbers.step(1)[0].tolist() == [1, 1, 1, 1, 1, 0]


@pytest.mark.crossed("kind", "actions")
@pytest.mark.parametrize("kind", [k for k in SPACES if k != "Text"])
@pytest.mark.parametrize("actions", ACTIONS)
def test_the_flat_box_loses_nothing(kind: str, actions: str) -> None:
    """Different Dicts have different vectors, all in the space; a vector environment flattens the same way."""
    inner = ImpairedObservation(CountingEnv(7, kind, actions), "geometric:0.5", queue=3)
    env = AugmentedObservation(inner)
    raw, flat = run(inner, 1), run(env, 1)
    assert all(step[0] in env.observation_space for step in flat)
    for (one, *_), (vector, *_) in zip(raw, flat, strict=True):
        for (other, *_), (vector2, *_) in zip(raw, flat, strict=True):
            assert (_frozen(one) == _frozen(other)) == np.array_equal(vector, vector2)


def test_the_flat_vector_of_a_vector_environment() -> None:
    for mode in AutoresetMode:
        envs = gym.make_vec(
            "oldlight/SensingChain-v0", num_envs=3, horizon=4, channel="geometric:0.5", autoreset_mode=mode
        )
        single = AugmentedObservation(gym.make("oldlight/SensingChain-v0", horizon=4, channel="geometric:0.5"))
        flat = AugmentedVectorObservation(envs)
        assert flat.single_observation_space == single.observation_space
        shown, _ = flat.reset(seed=8)
        assert shown in flat.observation_space
        mine, _ = single.reset(seed=9)
        for k in range(4):
            assert np.array_equal(shown[1], mine)
            shown, *_, info = flat.step(np.full(3, k))
            mine = single.step(k)[0]
        assert np.array_equal(info["final_obs"][1] if mode is AutoresetMode.SAME_STEP else shown[1], mine)


def test_flat_refusals_and_choices() -> None:
    env = ImpairedObservation(gym.make("CartPole-v1"), "constant:2")
    assert AugmentedObservation(env, keys=["observation", "seen"]).observation_space.shape == (4 + 2,)
    with pytest.raises(ValueError, match="did you mean observation"):
        AugmentedObservation(env, keys=["observatoin"])
    with pytest.raises(ValueError, match="numbers, not choices"):
        AugmentedObservation(env, "multidiscrete")
    with pytest.raises(TypeError, match="ImpairedObservation"):
        AugmentedObservation(gym.make("CartPole-v1"))
    with pytest.raises(ValueError, match="no limit on its steps"):
        AugmentedObservation(ImpairedObservation(CountingEnv(), "constant:2"), "multidiscrete")
    with pytest.raises(ValueError, match="'box', 'multidiscrete'"):
        AugmentedObservation(env, "list")
    with pytest.raises(TypeError, match="AugmentedVectorObservation"):
        AugmentedObservation(gym.make_vec("CartPole-v1"))  # type: ignore[arg-type]
