"""The process behind the registered environments against exact laws and exact plans."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from scipy import stats

import oldlight as ol
from conftest import arrays, random_mdp
from oldlight.envs import (
    ImpairedObservation,
    play,
)
from oracle import arrival_law, random_law, return_law
from played import chi_square, nearest
from repeats import repeats

# -- the process behind it, against exact laws ------------------------------------------------------------------------


def cases(kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A process with a link, and the same in the oracle's words."""
    rng = np.random.default_rng([7, len(kind)])
    mdp = random_mdp(rng, 2, 2, 4)
    if kind == "warm":
        return {"mdp": mdp, "channel": "constant:2", "start": "warm"}, {"warm_delay": 2}
    if kind == "by state and action":
        first, inter = random_law(rng, 4, 2, 2, 3, kind="state_action")
        return {"mdp": mdp, "channel": ol.StochasticDelay(inter, first=first)}, {"first": first, "inter": inter}
    if kind == "geometric":
        pmf = np.append(0.6 * 0.4 ** np.arange(4), 0.4**4)
        law = {"first": pmf, "inter": np.broadcast_to(pmf, (4, 2, 2, 5))}
        return {"mdp": mdp, "channel": ol.GeometricDelay(0.6, first="same")}, law
    if kind == "loss":
        seen = rng.random(4)
        return {"mdp": mdp, "channel": ol.Loss(seen=seen)}, {"seen": seen}
    assert kind == "late and lossy"
    return {"mdp": mdp, "channel": "constant:1+seen:0.4"}, {"first": [0, 1], "seen": np.full(4, 0.4)}


KINDS = ["warm", "by state and action", "geometric", "loss", "late and lossy"]


def uniform_episodes(link: dict[str, Any], n: int, seed: int) -> dict[str, Any]:
    """The hindsight of n episodes under uniform actions, and their returns."""
    envs = gym.make_vec("oldlight/Tabular-v0", num_envs=n, autoreset_mode="Disabled", **link)
    envs.reset(seed=seed)
    rng, returns = np.random.default_rng(seed), np.zeros(n)
    over = np.zeros(n, dtype=bool)
    while not over.any():
        _, rewards, over, _, infos = envs.step(rng.integers(2, size=n))
        returns += rewards
    assert over.all()
    return {**infos["hindsight"], "returns": returns}


@cache
def exact_laws(kind: str) -> tuple[dict[tuple[int, ...], float], dict[float, float]]:
    """The laws of the arrival times and of the return under uniform actions, by enumeration."""
    link, law = cases(kind)
    P, R, rho = arrays(link["mdp"])

    def uniform(history: Any) -> Any:
        return [0.5, 0.5]

    times = {tuple(int(x) for x in key): p for key, p in arrival_law(P, rho, uniform, **law).items()}
    return times, return_law(P, R, rho, uniform, **law)


@pytest.mark.parametrize("rewards", ["immediate", "delayed"])
@pytest.mark.parametrize("kind", KINDS)
def test_arrivals_and_returns_follow_their_exact_law(kind: str, rewards: str) -> None:
    link, law = cases(kind)
    found = uniform_episodes({**link, "rewards": rewards}, repeats(3_000, 20_000), seed=11)
    exact, exact_returns = exact_laws(kind)
    warmup = law.get("warm_delay", 0)
    seen = Counter(map(tuple, np.minimum(found["arrivals"][:, warmup:], 4).tolist()))
    assert chi_square(seen, exact) > 1e-4
    near = np.array(sorted(exact_returns))
    index = nearest(found["returns"], near)
    assert np.abs(found["returns"] - near[index]).max() < 1e-8
    assert chi_square({near[i]: n for i, n in Counter(index.tolist()).items()}, exact_returns) > 1e-4


def test_bursts_follow_the_link() -> None:
    """A link that loses all or nothing: the losses are the two-state chain itself, from its stationary law on."""
    mdp = ol.instances.sensing_chain(0.8, n_states=4, n_actions=2, horizon=12)
    gone = uniform_episodes({"mdp": mdp, "channel": ol.BurstyLoss(0.1, 0.4)}, 3000, seed=2)["arrivals"] == -1
    before, after = gone[:, :-1], gone[:, 1:]
    assert stats.binomtest(int(gone[:, 0].sum()), 3000, 0.2).pvalue > 1e-4
    assert stats.binomtest(int((~before & after).sum()), int((~before).sum()), 0.1).pvalue > 1e-4
    assert stats.binomtest(int((before & ~after).sum()), int(before.sum()), 0.4).pvalue > 1e-4


class EverySecond(ol.model.channels.LossChannel):
    """A loss of one's own: draws a whole episode at once."""

    independent = False

    def arrival_probabilities(self, horizon: int) -> Any:
        return np.full(horizon, 0.5)

    def lost(self, rng: np.random.Generator, horizon: int, n: int) -> Any:
        return (np.arange(horizon)[:, None] + rng.integers(2, size=n)) % 2 == 0


def test_a_loss_of_ones_own_runs_in_the_wrapper() -> None:
    with pytest.raises(TypeError, match="EverySecond is not compiled here"):
        gym.make("oldlight/SensingChain-v0", channel=EverySecond())
    with pytest.raises(ValueError, match="horizon"):
        ImpairedObservation(gym.make("CartPole-v1", max_episode_steps=-1).unwrapped, EverySecond())
    env = ImpairedObservation(gym.make("oldlight/SensingChain-v0"), EverySecond())
    starts = set()
    for seed in range(8):
        env.reset(seed=seed)
        for _ in range(10):
            info = env.step(0)[4]
        gone = np.array(info["hindsight"]["arrivals"][:10]) == -1
        assert (gone[1:] != gone[:-1]).all()
        starts.add(bool(gone[0]))
    assert starts == {True, False}


def test_the_copies_of_a_vector_are_independent() -> None:
    """States of neighbouring copies at the same step: no correlation (4 standard errors), in the process and in the link."""
    link, _ = cases("geometric")
    found = uniform_episodes(link, repeats(8_000, 20_000), seed=3)
    for name in ("observations", "arrivals"):
        x = found[name][:, 2].astype(float)
        assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 4 / np.sqrt(len(x))


@pytest.mark.parametrize(
    "link",
    [
        {"channel": "constant:2", "start": "warm"},
        {"channel": "bernoulli:0.5"},
        {"channel": "constant:1+loss:0.3"},
        {"channel": "constant:1", "actuation": 2, "pending": [0, 1], "rewards": "delayed"},
    ],
    ids=str,
)
def test_the_best_policy_earns_its_exact_value(link: dict[str, Any]) -> None:
    """Within 4 standard errors; so observations, queue, wait and time in the Dict are those that the plan is about."""
    env = gym.make("oldlight/SensingChain-v0", n_states=6, n_actions=3, horizon=6, disable_env_checker=True, **link)
    best = ol.solve(env.unwrapped.problem)  # type: ignore[attr-defined]
    earned = play(env, best.policy, repeats(300, 1500), seed=2)
    assert abs(earned.mean() - best.value) < 4 * earned.std() / np.sqrt(len(earned))


def test_the_dichotomy_is_seen_in_time_or_not_at_all() -> None:
    for late, value in ((2, 1.0), (3, 0.5)):
        env = gym.make("oldlight/Dichotomy-v0", d=2, channel=ol.ConstantDelay(late))
        policy = ol.solve(env.unwrapped.problem).policy  # type: ignore[attr-defined]
        earned = play(env, policy, 300, seed=late)
        assert earned.mean() == 1.0 if value == 1.0 else abs(earned.mean() - 0.5) < 4 * 0.5 / np.sqrt(300)
