"""Links without a delay law, and bursts and late-and-lossy ones, behind environments: ages by χ², plans earn their value, hindsight."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import oldlight as ol
from counting_env import CountingEnv, waiting
from link_cases import BY_NODES, CHANNELS, HORIZON, age_law, ages_of, assert_law, guessing, names
from oldlight.envs import ImpairedObservation, TabularEnv, TabularVectorEnv, play
from oldlight.envs.batch_simulator import NO_STEP
from oldlight.model.channels.messages import AgeLink
from repeats import repeats

TEXTS = ["packets:0=.2,1=.6,2=.2+loss:0.1", "fifo:0=.5,1=.3,2=.2", "ages:.9,.1/.5,.3,.2", "periodic:5", "bursty:.1,.5", "held:0=.5,2=.5,hold=.7", "renewal:0=.9,5=.1"]  # fmt: skip


def age(shown: Any) -> int:
    return int(shown["age"][0]) if shown["seen"] else -1


@pytest.mark.parametrize("channel", BY_NODES, ids=names)
def test_ages_in_the_vector_environment(channel: Any) -> None:
    n = repeats(1000, 4000)
    envs = TabularVectorEnv(guessing(), num_envs=n, channel=channel)
    shown, _ = envs.reset(seed=11)
    ages = []
    for _ in range(HORIZON):
        ages.append(np.where(shown["seen"], shown["age"][:, 0], -1))
        shown, *_, infos = envs.step(np.zeros(n, dtype=np.int64))
    assert_law([tuple(column) for column in np.array(ages).T.tolist()], age_law(channel.automaton(HORIZON)))
    arrivals = infos["hindsight"]["arrivals"]
    assert [tuple(column) for column in np.array(ages).T.tolist()] == ages_of(arrivals.T), (
        "hindsight tells the same ages"
    )
    if not isinstance(channel, AgeLink) and channel.has_delay_law is False:
        late = (arrivals - np.arange(HORIZON))[arrivals >= 0]
        assert late.min() >= 0
        assert late.max() == channel.longest or isinstance(channel, ol.RenewalLoss)


@pytest.mark.crossed("channel", "wrapped")
@pytest.mark.parametrize("channel", BY_NODES, ids=names)
@pytest.mark.parametrize("wrapped", [False, True])
def test_ages_of_one_environment(channel: Any, wrapped: bool) -> None:
    env: Any = (
        ImpairedObservation(TabularEnv(guessing()), channel, queue=0)
        if wrapped
        else TabularEnv(guessing(), channel=channel)
    )
    paths = []
    for e in range(repeats(200, 400)):
        shown, _ = env.reset(seed=12 if e == 0 else None)
        ages = [age(shown)]
        for _ in range(HORIZON - 1):
            ages.append(age(env.step(0)[0]))
        paths.append(tuple(ages))
    assert_law(paths, age_law(channel.automaton(HORIZON)))


@pytest.mark.parametrize("channel", CHANNELS, ids=names)
def test_one_environment_is_one_of_a_vector(channel: Any) -> None:
    n = 5
    envs = TabularVectorEnv(guessing(), num_envs=n, channel=channel, rewards="delayed", actuation=1)
    shown, infos = envs.reset(seed=3)
    alone = [TabularEnv(guessing(), channel=channel, rewards="delayed", actuation=1) for _ in range(n)]
    single = [env.reset(seed=3 + e) for e, env in enumerate(alone)]
    rng = np.random.default_rng(0)
    for h in range(HORIZON + 1):
        for e, (mine, info) in enumerate(single):
            assert all(np.array_equal(values[e], mine[name]) for name, values in shown.items())
            assert info["arrival"] == infos["arrival"][e]
            assert info["arrivals"] == [i for i in infos["arrivals"][e].tolist() if i != NO_STEP]
        if h == HORIZON:
            break
        acts = rng.integers(3, size=n)
        shown, rewards, over, _, infos = envs.step(acts)
        stepped = [env.step(acts[e]) for e, env in enumerate(alone)]
        single = [(step[0], step[4]) for step in stepped]
        assert rewards.tolist() == [step[1] for step in stepped]
    assert over.all()
    for e, (_, info) in enumerate(single):
        for name, values in info["hindsight"].items():
            assert np.array_equal(infos["hindsight"][name][e], values)


@pytest.mark.parametrize("channel", BY_NODES, ids=names)
def test_plans_earn_their_value(channel: Any) -> None:
    """In the tabular environment and behind the wrapper, the node read from what is delivered."""
    for actuation, n in ((0, repeats(60, 200)), (1, repeats(40, 100))):
        problem = ol.ImpairedMDP(guessing(), channel, actuation=actuation)
        solution = ol.solve(problem)
        for env in (
            TabularEnv(guessing(), channel=channel, actuation=actuation),
            ImpairedObservation(TabularEnv(guessing()), channel, actuation=actuation, queue=HORIZON + 1),
        ):
            returns = play(env, solution.policy, n, seed=4 + actuation)
            assert abs(returns.mean() - solution.value) < 4.2 * returns.std() / np.sqrt(n)


@pytest.mark.parametrize("channel", CHANNELS, ids=names)
def test_the_wrapper_delivers_what_hindsight_tells(channel: Any) -> None:
    """Every message that was not lost, once, with its arrival time; and nothing is kept that cannot come any more."""
    env: Any = ImpairedObservation(CountingEnv(30), channel, queue=0)
    kept = []
    for seed in range(repeats(6, 20)):  # 6: some 180 messages over each link
        _, info = env.reset(seed=seed)
        told = [(0, info["arrivals"])]
        for h in range(1, 31):
            _, _, over, _, info = env.step(0)
            told.append((h, info["arrivals"]))
            kept.append(waiting(env))
        assert over
        record = info["hindsight"]
        first: dict[int, int] = {}
        for h, rows in told:
            for i, seen in rows:
                if i < 0:
                    assert seen is None
                    continue
                assert seen == i, "the environment shows the number of its step"
                first.setdefault(i, h)
        for i in range(31):
            when = record["arrivals"][i]
            assert record["observations"][i] == (None if when < 0 else i)
            assert first.get(i, -1) == (when if when < 0 else min(when, 30))
    assert max(kept) <= channel.longest + 2


@pytest.mark.parametrize("text", TEXTS)
def test_the_same_text_everywhere(text: str) -> None:
    one = gym.make("oldlight/SensingChain-v0", channel=text)
    envs = gym.make_vec("oldlight/SensingChain-v0", num_envs=2, channel=text)
    wrapped = ImpairedObservation(CountingEnv(9), text, queue=3)
    channel = ol.ImpairedMDP(guessing(), text).channel
    assert one.unwrapped.channel == envs.channel == wrapped.channel == channel  # type: ignore[attr-defined]
    assert gym.make(one.spec).unwrapped.channel == channel  # type: ignore[arg-type, attr-defined]
    one.reset(seed=0)
    one.step(0)
    wrapped.channel = "constant:1"  # type: ignore[assignment]
    wrapped.reset(options={"channel": text})
    assert wrapped.channel == channel
    assert "age" in one.reset()[0]


def test_the_default_queue_is_long_enough() -> None:
    for text, queue in [
        ("fifo:0=.5,2=.5", 2),
        ("periodic:4,1", 4),
        ("held:3=1.", 3),
        ("renewal:0=.5,6=.5", 6),
        ("packets:1=.5,2=.5", 2),
    ]:
        assert ImpairedObservation(CountingEnv(50), text).queue == queue
        assert gym.make("oldlight/SensingChain-v0", channel=text).observation_space["actions"].shape == (queue,)  # type: ignore[index]
    with pytest.warns(UserWarning, match="shows the last 1 actions"):  # older than 1 with probability 0.02²
        assert ImpairedObservation(CountingEnv(50), "packets:0=1.+loss:0.02").queue == 1


def test_what_goes_without_a_delay_law_has_its_own_order() -> None:
    with pytest.raises(ValueError, match="in_order=False is for a delay channel"):
        ImpairedObservation(CountingEnv(9), "packets:0=.5,1=.5", in_order=False)


def test_learners_refuse_a_link_without_a_delay_law() -> None:
    env = TabularEnv(guessing(), channel="packets:0=.5,1=.5")
    with pytest.raises(ValueError, match=r"PacketChannel.*has no delay law.*learner"):
        ol.envs.learn_in(env, ol.learners.DelayedUCBVI(), 2, seed=0)
    with pytest.raises(ValueError, match=r"LossUCBVI learns behind Loss.*alone.*PacketChannel"):
        ol.learn(ol.ImpairedMDP(guessing(), "packets:0=.5,1=.5"), ol.learners.LossUCBVI(), 2, seed=0)
