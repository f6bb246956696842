"""What a first user of the wrappers trips over: rounding of actions, a channel changed too late, images, time limits, memory."""

from __future__ import annotations

import json
import pickle
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics, RescaleAction, TimeLimit

import oldlight as ol
from counting_env import CountingEnv, count, run
from oldlight.envs import AugmentedObservation, AugmentedVectorObservation, ImpairedObservation
from oldlight.envs.agents import _Stage
from repeats import repeats

# -- actions within rounding ------------------------------------------------------------------------------------------


class BoxEnv(CountingEnv):
    """Takes what its Box holds, exactly, and nothing else."""

    def __init__(self, low: Any, high: Any, dtype: Any = np.float32) -> None:
        super().__init__(10**6)
        self.action_space = spaces.Box(np.asarray(low, dtype), np.asarray(high, dtype), dtype=dtype)

    def step(self, action: Any) -> Any:
        given = np.asarray(action)
        assert given.astype(self.action_space.dtype) in self.action_space
        assert (given >= self.action_space.low).all()
        assert (given <= self.action_space.high).all()
        return super().step(action)


def behind(*box: Any, channel: str = "constant:1", **how: Any) -> ImpairedObservation:
    env = ImpairedObservation(BoxEnv(*box), channel, **how)
    env.reset(seed=0)
    return env


def unscaled(space: Any, action: Any) -> Any:
    """stable-baselines3's `unscale_action`, in its own order of operations."""
    return space.low + (0.5 * (action + 1.0) * (space.high - space.low))


def test_the_box_at_which_td3_died() -> None:
    env = behind([-2.1], [0.4])
    scaled = unscaled(env.action_space, np.ones(1, np.float32))
    assert scaled > env.action_space.high  # by rounding
    shown = env.step(scaled)[0]
    assert shown in env.observation_space
    assert shown["actions"][-1] == env.action_space.high[0]
    assert env.env.acted[-1] == env.action_space.high.tolist()  # type: ignore[attr-defined]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_what_scaling_makes_is_taken_and_clipped(dtype: Any) -> None:
    """Random boxes, narrow ones far from 0 and one-sided ones among them: both ends, scaled as libraries do it."""
    rng, outside = np.random.default_rng(3), 0
    for _ in range(150):
        middle, width = rng.normal(size=4) * 10.0 ** rng.integers(-2, 3, 4), 10.0 ** rng.uniform(-1, 2, 4)
        low, high = (middle - width).astype(dtype), (middle + width).astype(dtype)
        env = behind(low, high, dtype)
        for end in (-1.0, 1.0):
            for action in (
                unscaled(env.action_space, np.full(4, end, dtype)),
                (low if end < 0 else high).astype(np.float32),
            ):
                outside += bool((action < low).any() or (action > high).any())
                env.step(action)
        for least in (-1.0, 0.0):
            rescaled = RescaleAction(env, np.full(4, least, dtype), np.ones(4, dtype))
            for end in (least, 1.0):
                rescaled.step(np.full(4, end, dtype))
    assert outside > 0


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_what_is_further_outside_is_refused(dtype: Any) -> None:
    env = behind([-2.1, -1.0], [0.4, 1.0], dtype)
    eps = np.finfo(dtype).eps
    inside = np.array([0.4, 1.0], dtype)
    env.step(np.nextafter(inside, dtype(np.inf), dtype=dtype))
    for far in ([2.1 * 10 * eps, 0], [0, 12 * eps], [1, 0]):
        for sign in (1, -1):
            wrong = (env.action_space.high if sign > 0 else env.action_space.low) + sign * np.array(far, dtype)
            with pytest.raises(ValueError, match=r"expected one in Box.*ClipAction"):
                env.step(wrong.astype(dtype))
    for wrong in (np.array([np.nan, 0], dtype), np.array([np.inf, 0], dtype), np.zeros(3, dtype)):
        with pytest.raises(ValueError, match="expected one in Box"):
            env.step(wrong)
    half = behind([0.0], [np.inf], dtype)
    half.step(np.array([1e3], dtype))
    with pytest.raises(ValueError, match="expected one in Box"):
        half.step(np.array([-1e-7], dtype))


def test_whole_numbers_have_no_rounding() -> None:
    env = behind([0], [100], np.int8)
    env.step(np.array([100]))
    for wrong in ([101], [-1], [256], [0.5]):  # 256 is 0 in 8 bits
        with pytest.raises(ValueError, match="expected one in Box"):
            env.step(np.array(wrong))


def test_rounding_in_parts_late_actions_and_pending() -> None:
    inner = BoxEnv([-2.1], [0.4])
    inner.action_space = spaces.Dict({"a": inner.action_space, "b": spaces.Discrete(2)})
    inner.step = lambda action: CountingEnv.step(inner, action)  # type: ignore[method-assign]
    env = ImpairedObservation(inner, "constant:1", actuation=1)
    env.reset(seed=0)
    over = unscaled(spaces.Box(np.float32(-2.1), np.float32(0.4), (1,)), np.ones(1, np.float32))
    for _ in range(2):
        assert env.step({"a": over, "b": 1})[0] in env.observation_space
    assert inner.acted[-1]["a"] in inner.action_space["a"]
    with pytest.raises(ValueError, match=r"action\['a'\] is .*expected one in Box"):
        env.step({"a": over + 1, "b": 1})
    late = behind([-2.1], [0.4], actuation=1, pending=[over])
    assert late.pending[0] == late.action_space.high
    with pytest.raises(ValueError, match=r"pending\[0\] is"):
        behind([-2.1], [0.4], actuation=1, pending=[over + 1])


@pytest.mark.parametrize("make", [SyncVectorEnv, AsyncVectorEnv])
def test_rounding_inside_vectors(make: Any) -> None:
    envs = make([lambda: ImpairedObservation(BoxEnv([-2.1], [0.4]), "constant:1")] * 2)
    try:
        envs.reset(seed=0)
        over = unscaled(envs.action_space, np.ones((2, 1), np.float32))
        assert (over > envs.action_space.high).all()
        assert envs.step(over)[0] in envs.observation_space
    finally:
        envs.close()


# -- a channel that is changed ----------------------------------------------------------------------------------------


def ages(env: Any, steps: int = 6, **how: Any) -> list[int]:
    """The age of the newest observation at each time of an episode."""
    shown, _ = env.reset(seed=0, **how)
    out = [shown]
    for _ in range(steps):
        out.append(env.step(0)[0])
    return [int(x["age"][0]) for x in out]


def test_a_channel_holds_from_the_next_reset_on() -> None:
    env = ImpairedObservation(CountingEnv(99), "constant:4")
    env.reset(seed=0)
    for _ in range(5):
        env.step(0)
    env.channel = "constant:1"  # type: ignore[assignment]
    assert env.channel == ol.ConstantDelay(1)
    assert env.step(0)[0]["age"] == 4, "the episode goes on as it began"
    assert ages(env) == [0, 1, 1, 1, 1, 1, 1]
    space = env.observation_space
    for given in (ol.ConstantDelay(2), {"kind": "constant", "d": 2}, "constant:2"):
        env.channel = "none"  # type: ignore[assignment]
        assert ages(env)[-1] == 0
        env.set_wrapper_attr("channel", given)
        assert ages(env)[-1] == 2
        assert ages(env, options={"channel": "constant:3"})[-1] == 3
        assert ages(env)[-1] == 3, "it stays"
        assert ages(env, options={"channel": given})[-1] == 2
    assert env.observation_space is space
    assert env.queue == 4


def test_a_channel_set_on_a_wrapper_outside() -> None:
    """A plain attribute of the outermost wrapper, as `VecEnv.set_attr` of stable-baselines3 sets it."""
    inner = ImpairedObservation(CountingEnv(99), "constant:4")
    for env in (RecordEpisodeStatistics(inner), TimeLimit(RecordEpisodeStatistics(inner), 50)):
        setattr(env, "channel", "constant:1")  # noqa: B010
        assert ages(env)[-1] == 1
        assert env.get_wrapper_attr("channel") == ol.ConstantDelay(1)
        env.set_wrapper_attr("channel", "constant:3")
        assert ages(env)[-1] == 3
        setattr(env, "channel", "constnt:1")  # noqa: B010
        with pytest.raises(ValueError, match="did you mean constant"):
            env.reset()
        setattr(env, "channel", 3)  # noqa: B010, an attribute of its own: the number of an image's channels
        assert ages(env)[-1] == 3
        assert env.channel == 3
        del env.channel
    flat = AugmentedObservation(inner)
    flat.channel = "constant:2"
    assert inner.channel == flat.channel == ol.ConstantDelay(2)


@pytest.mark.parametrize("make", [SyncVectorEnv, AsyncVectorEnv])
def test_set_attr_of_a_vector(make: Any) -> None:
    envs = make([lambda: AugmentedObservation(ImpairedObservation(CountingEnv(99), "constant:4"), keys=["age"])] * 2)
    try:
        envs.set_attr("channel", ["constant:1", ol.ConstantDelay(2)])
        envs.reset(seed=0)
        for _ in range(6):
            shown = envs.step(np.zeros(2, dtype=int))[0]
        assert shown.tolist() == [[0.25], [0.5]]
        assert list(envs.get_attr("channel")) == [ol.ConstantDelay(1), ol.ConstantDelay(2)]
    finally:
        envs.close()


def test_a_channel_that_does_not_fit_is_refused_at_once() -> None:
    env = ImpairedObservation(CountingEnv(99), "constant:4")
    with pytest.raises(ValueError, match=r"needs a queue of 9 actions, and 4 are shown.* make it with queue=9"):
        env.channel = "constant:9"  # type: ignore[assignment]
    for wrong in ("constnt:2", {"kind": "slow"}):
        with pytest.raises(ValueError, match="constant"):
            env.channel = wrong  # type: ignore[assignment]
    with pytest.raises(TypeError, match="a channel is given as text"):
        env.channel = 7  # type: ignore[assignment]
    with pytest.raises(ValueError, match="limit on its steps"):
        env.channel = ol.StochasticDelay(np.full((7, 1, 1, 2), 0.5))
    env.reset(seed=0)
    with pytest.raises(ValueError, match="queue=9"):
        env.reset(options={"channel": "constant:9"})
    assert ages(env)[-1] == 4, "what was refused changed nothing"
    wide = ImpairedObservation(CountingEnv(99), "constant:4", queue=2)
    assert ages(wide, 10, options={"channel": "constant:9"})[-1] == 9


def test_a_changed_channel_is_the_one_of_its_spec_and_of_the_learners() -> None:
    env: Any = ImpairedObservation(gym.make("FrozenLake-v1", max_episode_steps=8), "constant:3")
    before = env.spec.to_json()
    env.channel = "constant:1"
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert again.get_wrapper_attr("channel") == ol.ConstantDelay(1)
    assert again.observation_space == env.observation_space
    assert json.loads(before)["additional_wrappers"][-1]["kwargs"]["channel"] == "constant:3"
    assert _Stage(env, None).env.get_wrapper_attr("channel") == _Stage(env, None).problem.channel == ol.ConstantDelay(1)


def test_options_reach_the_environment_without_the_channel() -> None:
    class Asks(CountingEnv):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            self.options = options
            return super().reset(seed=seed)

    inner = Asks(9)
    env = ImpairedObservation(inner, "constant:2")
    for given, passed in (({"channel": "none", "low": 1}, {"low": 1}), ({"channel": "none"}, None), (None, None)):
        env.reset(options=given)
        assert inner.options == passed


def test_tabular_environments_keep_their_channel() -> None:
    env = gym.make("oldlight/SensingChain-v0", channel="constant:2")
    envs = gym.make_vec("oldlight/SensingChain-v0", num_envs=2, channel="constant:2")
    assert env.unwrapped.channel == envs.channel == ol.ConstantDelay(2)  # type: ignore[attr-defined]
    says = r"keeps the channel that it was made with.*gym.make\(id, channel=...\).*ImpairedObservation"
    for change in (
        lambda: setattr(env.unwrapped, "channel", "none"),
        lambda: env.set_wrapper_attr("channel", "none"),
        lambda: env.reset(options={"channel": "none"}),
        lambda: (setattr(env, "channel", "none"), env.reset()),
        lambda: setattr(envs, "channel", "none"),
        lambda: envs.reset(options={"channel": "none"}),
    ):
        with pytest.raises(ValueError, match=says):
            change()
    env.reset(seed=0)


# -- vectors, images, time limits, memory -----------------------------------------------------------------------------


@pytest.mark.parametrize("flat", [False, True])
def test_delays_of_their_own_in_a_vector_need_a_queue(flat: bool) -> None:
    def made(d: int, queue: int | None) -> Any:
        env: Any = ImpairedObservation(CountingEnv(9), f"constant:{d}", queue=queue)
        return AugmentedObservation(env) if flat else env

    refused = (RuntimeError, AssertionError)  # Gymnasium 1.1 asserts it
    with pytest.raises(refused, match=r"queue=1 \(all environments of a vector need the same queue=\)"):
        SyncVectorEnv([lambda d=d: made(d, None) for d in (1, 3)])
    envs: Any = SyncVectorEnv([lambda d=d: made(d, 3) for d in (1, 3)])
    assert envs.reset(seed=0)[0] in envs.observation_space
    if not flat:
        assert AugmentedVectorObservation(envs).reset(seed=0)[0].shape[0] == 2
    assert pickle.loads(pickle.dumps(envs.single_observation_space)) == envs.single_observation_space


def test_an_image_is_not_made_a_vector() -> None:
    inner = CountingEnv(9, "image")
    small = AugmentedObservation(ImpairedObservation(inner, "constant:1"))
    assert small.observation_space.shape is not None
    inner.observation_space = spaces.Box(0, 255, (210, 160, 3), np.uint8)
    env = ImpairedObservation(inner, "constant:1")
    with pytest.raises(ValueError, match=r"image of shape \(210, 160, 3\), 100,800 numbers.*MultiInputPolicy"):
        AugmentedObservation(env)
    with pytest.raises(ValueError, match="MultiInputPolicy"):
        AugmentedVectorObservation(SyncVectorEnv([lambda: env]))
    assert AugmentedObservation(env, keys=["age", "actions"]).observation_space.shape == (5,)
    inner.observation_space = spaces.Box(-1, 1, (10_000,), np.float32)  # long, but a vector
    assert AugmentedObservation(ImpairedObservation(inner, "constant:1")).observation_space.shape == (10_010,)


class Ones(CountingEnv):
    def step(self, action: Any) -> Any:
        observation, _, *rest = super().step(action)
        return observation, 1.0, *rest


def test_a_time_limit_outside_warns_where_rewards_travel() -> None:
    env = TimeLimit(ImpairedObservation(Ones(99), "constant:3", rewards="delayed"), 7)
    with pytest.warns(
        UserWarning, match=r"TimeLimit\(7\) is outside.*never paid.*ImpairedObservation\(TimeLimit\(env, 7\)"
    ):
        steps = run(env, action=0)
    assert sum(step[1] for step in steps[1:]) == 4, "4 of 7"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(env, action=0)  # once is enough
        inside = ImpairedObservation(TimeLimit(Ones(99), 7), "constant:3", rewards="delayed")
        assert sum(step[1] for step in run(inside, action=0)[1:]) == 7
        run(TimeLimit(inside, 8), action=0)  # never reached
        run(TimeLimit(ImpairedObservation(Ones(99), "constant:3"), 7), action=0)  # rewards at once


@pytest.mark.crossed("channel", "in_order")
@pytest.mark.parametrize("rewards", ["immediate", "delayed"])
@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize(
    "channel", ["constant:3", "wifi", "seen:0", "constant:2+loss:0.5", "bursty:0.2,0.2", "bernoulli:0.5,3"]
)
def test_without_hindsight_nothing_grows_with_the_episode(channel: str, in_order: bool, rewards: str) -> None:
    """All that the wrapper holds, counted: after many more steps there is no more of it than what can be under way."""

    def held(steps: int) -> int:
        env = ImpairedObservation(
            TimeLimit(CountingEnv(10**6, "Box", "Box"), 4000), channel, hindsight=False, in_order=in_order, rewards=rewards,
            queue=3, actuation=1,
        )  # fmt: skip
        env.reset(seed=0)
        most = 0
        for k in range(steps):
            env.step(np.zeros(2, dtype=np.float32))
            if k > steps - 40:
                most = max(most, count({name: value for name, value in vars(env).items() if name != "env"}))
        return most

    early, late = held(300), held(repeats(700, 3000))  # one thing more in every step would be 400
    assert late <= early + 3 * 64  # a few observations more or fewer under way


def test_travelling_rewards_are_the_same_with_and_without_hindsight() -> None:
    for channel, in_order in (("constant:2+loss:0.5", True), ("delays:0=0.5,4=0.5+loss:0.4", False), ("seen:0", True)):
        paid = [
            [
                step[1]
                for step in run(
                    ImpairedObservation(
                        CountingEnv(40), channel, rewards="delayed", in_order=in_order, hindsight=hindsight
                    ),
                    seed=2,
                    action=0,
                )[1:]
            ]
            for hindsight in (True, False)
        ]
        assert paid[0] == paid[1]
        assert sum(paid[0]) == 2.0**40 - 1
