"""The package's own learners and policies in the registered environments."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import oldlight as ol
from env_cases import LINKS
from oldlight.envs import (
    FixedLength,
    ImpairedObservation,
    information,
    learn_in,
    play,
)

# -- the package's own agents -----------------------------------------------------------------------------------------


class Witness:
    """A learner that acts at random and compares what it was told when it acted with what the episode says it knew."""

    def start(self, setting: Any, rng: np.random.Generator) -> None:
        self.setting, self.rng, self.told, self.episodes = setting, rng, {}, 0
        self.salt = 0

    def act(self, info: ol.Information) -> Any:
        self.told[info.h] = info
        return np.random.default_rng([self.salt, info.h]).dirichlet(np.ones(self.setting.n_actions))

    def see(self, episode: Any) -> None:
        for h, info in self.told.items():
            assert episode.information(h) == info
        assert sorted(self.told) == list(range(self.setting.actuation, self.setting.horizon))
        H, warmup = self.setting.horizon, self.setting.warmup
        assert len(episode.states) == H + warmup
        known = episode.states[warmup:] >= 0
        paid = self.setting.rewards[np.arange(H), episode.states[warmup:], episode.actions[warmup:]]
        if self.check_rewards:
            assert np.allclose(episode.rewards[warmup:][known], paid[known])
        assert np.isnan(episode.rewards[warmup:][~known]).all()
        assert ((episode.arrivals == -1) == (episode.states == -1)).all()
        assert tuple(episode.actions[: self.setting.actuation]) == self.setting.pending
        self.told, self.episodes, self.salt = {}, self.episodes + 1, self.salt + 1

    check_rewards = True


AGENT_LINKS = [
    *LINKS[1:],
    {"channel": "geometric:0.5"},
    {"channel": "heavy:0.7"},
    {"channel": "bernoulli:0.4+loss:0.5"},
]


@pytest.mark.parametrize("link", AGENT_LINKS, ids=str)
def test_what_a_learner_is_told_is_what_the_episode_says_it_knew(link: dict[str, Any]) -> None:
    witness = Witness()
    env = gym.make("oldlight/SensingChain-v0", n_states=4, n_actions=3, horizon=7, **link)
    learn_in(env, witness, 40, seed=1)
    assert witness.episodes == 40
    if link.get("start") != "warm":  # the wrapper starts cold
        witness = Witness()
        inner = gym.make("oldlight/SensingChain-v0", n_states=4, n_actions=3, horizon=7)
        learn_in(ImpairedObservation(inner, **link), witness, 40, seed=1)
        assert witness.episodes == 40


@pytest.mark.parametrize("link", [{"channel": "constant:2"}, {"channel": "loss:0.4", "queue": 12}], ids=str)
def test_a_learner_on_frozen_lake_behind_the_wrapper(link: dict[str, Any]) -> None:
    """The ends of the lake absorb; what a learner is told still agrees with the episode."""
    witness = Witness()
    witness.check_rewards = False  # the table holds mean rewards, the lake pays what happens
    env = ImpairedObservation(gym.make("FrozenLake-v1", max_episode_steps=12), **link)
    learn_in(env, witness, 60, seed=1)
    assert witness.episodes == 60


@pytest.mark.parametrize(
    "name",
    [
        "AugmentedQLearning",
        "AugmentedUCBVI",
        "DelayedUCBVI",
        "MemorylessQLearning",
        "MemorylessUCBVI",
        "PosteriorSampling",
    ],
)
def test_every_delay_learner_runs(name: str) -> None:
    small = gym.make("oldlight/SensingChain-v0", n_states=4, n_actions=2, horizon=5, channel="constant:1")
    lake = ImpairedObservation(gym.make("FrozenLake-v1", max_episode_steps=8), "constant:1")
    for env, most in ((small, 5.0), (lake, 1.0)):
        earned = learn_in(env, getattr(ol.learners, name)(), 30, seed=0)
        assert earned.shape == (30,)
        assert (earned >= 0).all()
        assert (earned <= most).all()


@pytest.mark.parametrize("name", ["LossUCBVI", "OptimisticPlanning"])
def test_every_loss_learner_runs(name: str) -> None:
    env = gym.make("oldlight/SensingChain-v0", n_states=4, n_actions=2, horizon=4, channel="loss:0.3")
    assert learn_in(env, getattr(ol.learners, name)(), 15, seed=0).shape == (15,)


def test_a_learner_learns() -> None:
    """On a small chain behind a delay of one, the last episodes of Algorithm 1 earn what the best policy earns, within 4 standard
    errors, and more than acting at random does."""
    env = gym.make(
        "oldlight/SensingChain-v0",
        p=1.0,
        n_states=4,
        n_actions=2,
        horizon=6,
        channel="constant:1",
        disable_env_checker=True,
    )
    best = ol.solve(env.unwrapped.problem).value  # type: ignore[attr-defined]
    earned = learn_in(env, ol.learners.PosteriorSampling(), 600, seed=3)
    last = earned[-300:]
    assert abs(last.mean() - best) < 4 * last.std() / np.sqrt(len(last))
    chance = play(env, ol.FunctionPolicy(lambda info: [0.5, 0.5], 2), 300, seed=4)
    assert last.mean() > chance.mean() + 4 * chance.std() / np.sqrt(300)


def test_the_best_policy_on_frozen_lake_earns_its_exact_value() -> None:
    """The lake's own table, planned exactly behind a delay of two, and played on the lake itself."""
    lake = gym.make("FrozenLake-v1", max_episode_steps=20, disable_env_checker=True)
    problem = ol.ImpairedMDP(ol.TabularMDP.from_gymnasium(lake, 20), ol.ConstantDelay(2))
    best = ol.solve(problem)
    earned = play(ImpairedObservation(lake, "constant:2"), best.policy, 800, seed=5)
    assert abs(earned.mean() - best.value) < 4 * earned.std() / np.sqrt(len(earned))


def test_fixed_length_stays_where_it_ended() -> None:
    env = FixedLength(gym.make("FrozenLake-v1", is_slippery=False), 9)
    env.reset(seed=0)
    ways = [env.step(a) for a in (2, 1, 0, 0, 0, 0, 0, 0, 0)]  # right, down: into the hole at 5
    assert [w[0] for w in ways] == [1, 5] + [5] * 7
    assert [w[2] for w in ways] == [False] * 8 + [True]
    assert not any(w[3] for w in ways)
    short = FixedLength(gym.make("CartPole-v1", max_episode_steps=3), 9)
    short.reset(seed=0)
    for _ in range(2):
        short.step(0)
    with pytest.raises(ValueError, match="cut off after 3"):
        short.step(0)


def test_information_from_the_dict() -> None:
    env = gym.make("oldlight/SensingChain-v0", p=1.0, initial=np.eye(20)[4].tolist(), channel="constant:2")
    shown, _ = env.reset(seed=0)
    assert information(shown, 0) == ol.Information.nothing_seen()
    shown = env.step(0)[0]
    assert information(shown, 1) == ol.Information.nothing_seen((0,))
    env.step(3)
    shown = env.step(1)[0]
    assert information(shown, 3) == ol.Information.seen(1, 5, (3, 1))
