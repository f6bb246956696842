"""Links that are drawn for each episode, vectors behind links, what `info` tells of the link, ends that travel, milliseconds, ids."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from scipy.stats import chi2

import oldlight as ol
from counting_env import CountingEnv
from fixed_model import Nearest
from oldlight.envs import ImpairedObservation, ImpairedVectorObservation, LinkPerEpisode, learn_in, policy_of
from oldlight.registry import channel_of
from repeats import repeats


class Fresh(gym.ObservationWrapper[Any, Any, Any]):
    """Arrays that are not reused: a vector of Gymnasium keeps those of an ended episode while it resets the environment."""

    def observation(self, observation: Any) -> Any:
        return copy.deepcopy(observation)


def test_the_link_of_an_episode_is_drawn_by_its_weight() -> None:
    env = ImpairedObservation(CountingEnv(3), LinkPerEpisode(["none", "constant:1", "constant:2"], [1, 2, 1]))
    assert env.queue == 2
    drawn = np.zeros(3)
    env.reset(seed=0)
    for _ in range(400):
        _, info = env.reset()
        d = info["channel"].d
        drawn[d] += 1
        for _ in range(3):
            shown = env.step(0)[0]
        assert shown["age"][0] == d
    expected = np.array([100, 200, 100])
    assert ((drawn - expected) ** 2 / expected).sum() < chi2.ppf(0.999, 2)


def test_a_mixture_as_text_and_data_and_in_a_spec() -> None:
    env = ImpairedObservation(gym.make("CartPole-v1"), "constant:1 | constant:3+loss:0.1", queue=4)
    again = gym.make(env.spec)
    assert repr(again.get_wrapper_attr("channel")) == repr(env.channel)
    env.channel = LinkPerEpisode(["constant:2"], once=True)
    assert env.reset(seed=1)[1]["channel"] == ol.ConstantDelay(2)
    with pytest.raises(ValueError, match="channels is empty"):
        LinkPerEpisode([])
    with pytest.raises(ValueError, match="weights is"):
        LinkPerEpisode(["none"], [-1.0])
    table = ImpairedObservation(gym.make("FrozenLake-v1", max_episode_steps=5), "none | constant:1")
    with pytest.raises(ValueError, match="drawn for each episode"):
        learn_in(table, ol.learners.DelayedUCBVI(), 1)


def test_each_environment_of_a_vector_keeps_its_link() -> None:
    links = LinkPerEpisode(["constant:0", "constant:1", "constant:2", "constant:3"], once=True)
    envs = ImpairedVectorObservation(SyncVectorEnv([lambda: CountingEnv(5)] * 16), links)
    envs.reset(seed=3)
    ages = []
    for _ in range(13):
        shown, _, over, *_ = envs.step(np.zeros(16, dtype=np.int64))
        if over.all():
            ages.append(shown["age"][:, 0].tolist())
    assert ages[0] == ages[1]
    assert len(set(ages[0])) > 1


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("kind", ["Discrete", "Box", "Dict"])
def test_a_vector_behind_links_is_a_vector_of_wrapped_environments(mode: AutoresetMode, kind: str) -> None:
    """Observations, rewards, ends and infos, for 14 steps of episodes that end at different times."""
    how: dict[str, Any] = {"rewards": "delayed", "queue": 3}
    makers = [lambda n=n: Fresh(CountingEnv(n, kind)) for n in (4, 6, 3)]
    mine = ImpairedVectorObservation(SyncVectorEnv(makers, autoreset_mode=mode), "packets:0=.5,2=.5+loss:0.2", **how)
    each = [lambda make=make: ImpairedObservation(make(), "packets:0=.5,2=.5+loss:0.2", **how) for make in makers]
    theirs = SyncVectorEnv(each, autoreset_mode=mode)
    assert mine.single_observation_space == theirs.single_observation_space
    (a, first), (b, second) = mine.reset(seed=5), theirs.reset(seed=5)
    same(a, b)
    same(first["arrivals"], second["arrivals"])
    for k in range(14):
        one, other = mine.step(np.full(3, k % 3)), theirs.step(np.full(3, k % 3))
        for x, y in zip(one[:4], other[:4], strict=True):
            same(x, y)
        same(one[4]["arrivals"], other[4]["arrivals"])
        over = other[2] | other[3]
        if over.any() and mode is AutoresetMode.SAME_STEP:
            for e in np.flatnonzero(over):
                same(one[4]["final_obs"][e], other[4]["final_obs"][e])
                same(one[4]["final_info"]["hindsight"]["rewards"][e], other[4]["final_info"]["hindsight"]["rewards"][e])
        if over.any() and mode is AutoresetMode.DISABLED:
            same(mine.reset(options={"reset_mask": over})[0], theirs.reset(options={"reset_mask": over})[0])


def same(x: Any, y: Any) -> None:
    if isinstance(y, dict):
        assert x.keys() == y.keys()
        for key in y:
            same(x[key], y[key])
    elif isinstance(y, tuple | list) or (isinstance(y, np.ndarray) and y.dtype == object):
        assert len(x) == len(y)
        for one, other in zip(x, y, strict=True):
            same(one, other)
    else:
        assert np.array_equal(x, y)


# -- what info tells --------------------------------------------------------------------------------------------------


def test_the_statistics_of_the_link_by_hand() -> None:
    """Behind a delay of 2, for 6 steps: ages 0, 1, 2, 2, ..; nothing is lost; the first three Dicts are a blackout of at most 2 + 1."""
    env = ImpairedObservation(CountingEnv(6), "constant:2", reveal=True)
    _, info = env.reset(seed=0)
    assert info["present"] == 0
    for i in range(1, 7):
        *_, info = env.step(0)
        assert info["present"] == i
        assert ("link" in info) == (i == 6)
    assert info["link"] == {"mean_age": pytest.approx(11 / 7), "lost": 0.0, "longest_blackout": 2.0}
    assert "present" not in ImpairedObservation(CountingEnv(6), "constant:2").reset(seed=0)[1]


@pytest.mark.parametrize(
    "channel", ["loss:0.4", "packets:0=.5,3=.5+loss:0.4", "bursty:0.2,0.4", "held:0=.5,2=.5,hold=.7", "periodic:3"]
)
@pytest.mark.parametrize("hindsight", [True, False])
def test_the_statistics_are_those_of_the_hindsight(channel: str, hindsight: bool) -> None:
    env = ImpairedObservation(CountingEnv(200), channel, hindsight=hindsight, queue=1)
    full = ImpairedObservation(CountingEnv(200), channel, queue=1)
    ages, waits = [], []
    for wrapped in (env, full):
        shown, _ = wrapped.reset(seed=3)
        ages, waits = [int(shown["age"][0])], [int(shown["waited"][0])]
        over = False
        while not over:
            shown, _, over, _, info = wrapped.step(0)
            ages.append(int(shown["age"][0]))
            waits.append(int(shown["waited"][0]))
        if wrapped is env:
            counted = info["link"]
    assert counted["mean_age"] == pytest.approx(np.mean(ages))
    assert counted["longest_blackout"] == max(waits)
    if channel != "held:0=.5,2=.5,hold=.7":
        assert counted["lost"] == pytest.approx(np.mean([when < 0 for when in info["hindsight"]["arrivals"]]))


def test_an_end_that_travels() -> None:
    """Behind a delay of 2 the agent learns of the end of step 3 at step 5; what it does until then earns nothing and goes nowhere."""
    inner = CountingEnv(3)
    env = ImpairedObservation(inner, "constant:2", ends="delayed")
    env.reset(seed=0)
    steps = [env.step(1) for _ in range(5)]
    assert [over for _, _, over, _, _ in steps] == [False] * 4 + [True]
    assert [reward for _, reward, *_ in steps] == [1.0, 2.0, 4.0, 0.0, 0.0]
    assert len(inner.acted) == 3
    assert steps[-1][0]["observation"] == 3
    lost = ImpairedObservation(CountingEnv(3), "seen:0", ends="delayed", horizon=6)
    lost.reset(seed=0)
    assert [lost.step(1)[2] for _ in range(6)] == [False] * 5 + [True]


# -- names ------------------------------------------------------------------------------------------------------------


def test_milliseconds_as_text() -> None:
    link = channel_of("constant:40ms@20")
    assert (link, link.period_ms) == (ol.ConstantDelay(2).with_period(20), 20.0)
    assert channel_of("constant:41ms@20") == ol.ConstantDelay(3).with_period(20)
    assert channel_of("constant:0.3ms@0.1").d == 3  # type: ignore[attr-defined]  # by rounding of floats it would be 4
    packets = channel_of("packets:10ms=.5,30ms=.5@20+loss:0.1")
    assert packets == channel_of("packets:1=.5,2=.5+loss:0.1").with_period(20)
    assert channel_of("geometric:0.5+cap:60ms@20") == channel_of("geometric:0.5+cap:3").with_period(20)
    for text, word in (
        ("constant:40ms", "how many a step has"),
        ("constant:40ms@x", "no period"),
        ("constant:40ms@0", "no period"),
    ):
        with pytest.raises(ValueError, match=word):
            channel_of(text)


@pytest.mark.parametrize(
    "name", ["CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1", "Acrobot-v1"]
)
def test_the_classic_ids(name: str) -> None:
    env = gym.make(f"oldlight/{name}", channel="constant:2", queue=3)
    bare = ImpairedObservation(gym.make(name), "constant:2", queue=3)
    env.action_space.seed(1)
    same(env.reset(seed=2)[0], bare.reset(seed=2)[0])
    for _ in range(4):
        a = env.action_space.sample()
        same(env.step(a)[:4], bare.step(a)[:4])
    assert gym.make(env.spec).observation_space == env.observation_space


# -- trained models ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("channel", ["constant:2", "geometric:0.6+cap:3", "constant:1+loss:0.3"])
@pytest.mark.parametrize("actuation", [0, 1])
def test_a_model_is_valued_as_it_plays(channel: str, actuation: int) -> None:
    """The exact value of the policy against the model itself in the environment, within four standard errors; the controller does the same."""
    env = ol.envs.AugmentedObservation(
        ol.envs.TabularEnv("sensing_chain:n_states=6,n_actions=3,horizon=5", channel=channel, actuation=actuation)
    )
    problem = env.unwrapped.problem  # type: ignore[attr-defined]
    model = Nearest(env.observation_space.shape[0], problem.n_actions)
    policy = policy_of(model, env)
    value = ol.evaluate(problem, policy).value
    n, earned = repeats(300, 1500), []
    shown, _ = env.reset(seed=0)
    for _ in range(n):
        total, over = 0.0, False
        while not over:
            shown, reward, over, _, _ = env.step(int(model.predict(shown)[0]))
            total += float(reward)
        earned.append(total)
        shown, _ = env.reset()
    assert abs(np.mean(earned) - value) < 4 * np.std(earned, ddof=1) / np.sqrt(n)
    ol.Controller(problem, policy).act()
    assert ol.simulate(problem, policy, 50, seed=0).mean >= 0


def test_a_model_runs_over_the_network() -> None:
    """The testbed sends the model to another process, and it earns there what its exact value says."""
    env = ol.envs.AugmentedObservation(
        ol.envs.TabularEnv("sensing_chain:n_states=6,n_actions=3,horizon=5", channel="constant:1")
    )
    problem = env.unwrapped.problem  # type: ignore[attr-defined]
    policy = policy_of(Nearest(env.observation_space.shape[0], problem.n_actions), env)
    result = ol.run_testbed(problem, policy, episodes=60, seed=1)
    assert result.report["ticks"] == 300
    assert result.predicted.value == pytest.approx(ol.evaluate(problem, policy).value)
    assert result.agrees


def test_a_model_behind_packets_and_what_is_refused() -> None:
    keys = ["observation", "age", "seen", "actions", "time"]
    env = ol.envs.AugmentedObservation(
        ol.envs.TabularEnv("sensing_chain:n_states=6,n_actions=3,horizon=4", channel="packets:0=.6,1=.4+loss:0.2"),
        keys=keys,
    )
    problem = env.unwrapped.problem  # type: ignore[attr-defined]
    policy = policy_of(Nearest(env.observation_space.shape[0], problem.n_actions), env)
    assert ol.evaluate(problem, policy).value <= ol.solve(problem).upper + 1e-9
    every = ol.envs.AugmentedObservation(env.env)
    with pytest.raises(ValueError, match="no wait"):
        ol.evaluate(problem, policy_of(Nearest(every.observation_space.shape[0], problem.n_actions), every))
    with pytest.raises(TypeError, match="no predict"):
        policy_of(object(), env)
    with pytest.raises(TypeError, match="no Discrete states"):
        policy_of(Nearest(1, 1), ImpairedObservation(gym.make("CartPole-v1"), "constant:1"))
