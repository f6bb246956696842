"""Delays and losses of `ImpairedObservation` against their laws and against the compiled simulator."""

from __future__ import annotations

from collections import Counter
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from scipy import stats

import oldlight as ol
from conftest import arrays, random_mdp
from counting_env import CountingEnv, assert_same, run
from oldlight.envs import ImpairedObservation
from oracle import arrival_law, random_law, return_law
from played import chi_square, nearest
from repeats import repeats

# -- delays and losses against their laws -----------------------------------------------------------------------------


STEPS = repeats(2000, 4000)


def interarrivals(channel: Any, seed: int, steps: int = STEPS) -> tuple[int, Any]:
    """d_0 and Δ_0, Δ_1, ... of one long episode of an environment without any limit."""
    env = ImpairedObservation(CountingEnv(steps), channel, queue=0)
    when = np.array(run(env, seed)[-1][4]["hindsight"]["arrivals"])
    delays = when - np.arange(steps + 1)
    return int(delays[0]), np.diff(delays)


@pytest.mark.parametrize(
    "channel",
    [
        ol.GeometricDelay(0.3),
        ol.HeavyTailedDelay(0.8),
        ol.HeavyTailedDelay(2.0, 3.0),
        ol.EmpiricalDelay(interarrival={0: 0.6, 1: 0.3, 90: 0.1}),
        ol.StochasticDelay([0.5, 0.0, 0.25, 0.25]),
    ],
    ids=repr,
)
def test_interarrival_times_follow_the_law_without_a_horizon(channel: Any) -> None:
    """χ² against a law written out far beyond what the wrapper begins with; heavy tails included."""
    law = channel.law(5000, 1, 1).interarrival[0, 0, 0]
    _, found = interarrivals(channel, 1)
    assert found.min() >= 0
    seen = Counter(np.minimum(found, len(law) - 1).tolist())
    assert chi_square(seen, {k: float(p) for k, p in enumerate(law) if p > 0}) > 1e-4
    assert abs(np.corrcoef(np.minimum(found[:-1], 3), np.minimum(found[1:], 3))[0, 1]) < 4 / np.sqrt(STEPS)


def test_a_heavy_tail_is_not_cut_off() -> None:
    """P(Δ ≥ k) = (1 + k)^−0.8 well beyond the 64 steps that a law is first written out for (exact binomial tests)."""
    _, found = interarrivals(ol.HeavyTailedDelay(0.8), 5, 4000)
    for k in (64, 65, 128, 500, 2000):
        assert stats.binomtest(int((found >= k).sum()), 4000, (1 + k) ** -0.8).pvalue > 1e-4
    assert found.max() > 2000


@pytest.mark.parametrize("first", [None, "same", [0.2, 0.3, 0.5]], ids=str)
def test_the_first_delay_follows_its_law(first: Any) -> None:
    env = ImpairedObservation(CountingEnv(1), ol.GeometricDelay(0.4, first=first), queue=0)
    law = {None: [1.0], "same": None}.get(first, first) if not isinstance(first, list) else first
    pmf = 0.4 * 0.6 ** np.arange(60) if law is None else np.array(law)
    found = Counter(run(env, seed)[-1][4]["hindsight"]["arrivals"][0] for seed in range(repeats(600, 1500)))
    assert chi_square(found, {k: float(p) for k, p in enumerate(pmf) if p > 0}) > 1e-4


def test_bernoulli_delays_stop_growing() -> None:
    env = ImpairedObservation(CountingEnv(200), ol.BernoulliDelay(0.3, steps=100))
    grown, n = [], repeats(25, 60)
    for seed in range(n):
        delays = np.array(run(env, seed, action=0)[-1][4]["hindsight"]["arrivals"]) - np.arange(201)
        assert delays[0] == 0
        assert set(np.diff(delays[:101])) <= {0, 1}
        assert (np.diff(delays[100:]) == 0).all()
        grown.append(int(delays[-1]))
    assert stats.binomtest(sum(grown), 100 * n, 0.7).pvalue > 1e-4


def test_a_cap_holds_for_ever() -> None:
    d0, found = interarrivals(ol.HeavyTailedDelay(0.8).capped(100), 2)
    delays = d0 + np.cumsum(found)
    assert delays.max() == 100
    assert (delays[-100:] == 100).all()
    assert interarrivals(ol.ConstantDelay(200), 0, 300)[0] == 200


def lost(channel: Any, seed: int, steps: int = STEPS) -> Any:
    env = ImpairedObservation(CountingEnv(steps), channel, queue=0)
    return np.array(run(env, seed)[-1][4]["hindsight"]["arrivals"]) == -1


def test_losses_follow_their_rate_one_by_one() -> None:
    for channel in (ol.Loss(rate=0.3), ol.Lossy(ol.ConstantDelay(2), rate=0.3)):
        gone = lost(channel, 3)
        assert stats.binomtest(int(gone.sum()), len(gone), 0.3).pvalue > 1e-4
        assert abs(np.corrcoef(gone[:-1], gone[1:])[0, 1]) < 4 / np.sqrt(STEPS)
    rates, n = np.linspace(0, 1, 20), repeats(200, 400)
    env = ImpairedObservation(TimeLimit(CountingEnv(99), 20), ol.Loss(seen=rates))
    share = np.mean([np.array(run(env, s)[-1][4]["hindsight"]["arrivals"][:20]) >= 0 for s in range(n)], axis=0)
    assert np.abs(share - rates).max() < 4.5 * 0.5 / np.sqrt(n)
    assert share[0] == 0
    assert share[-1] == 1


def test_bursts_follow_the_link() -> None:
    """A link that loses all or nothing: the losses are the two-state chain itself, from its stationary law on."""
    gone = lost(ol.BurstyLoss(0.1, 0.4), 4)
    before, after = gone[:-1], gone[1:]
    assert stats.binomtest(int((~before & after).sum()), int((~before).sum()), 0.1).pvalue > 1e-4
    assert stats.binomtest(int((before & ~after).sum()), int(before.sum()), 0.4).pvalue > 1e-4
    n = repeats(300, 1000)
    env = ImpairedObservation(CountingEnv(1), ol.BurstyLoss(0.1, 0.4), queue=0)
    first = sum(run(env, s)[-1][4]["hindsight"]["arrivals"][0] == -1 for s in range(n))
    assert stats.binomtest(first, n, 0.2).pvalue > 1e-4
    half = lost(ol.BurstyLoss(0.2, 0.3, seen_good=0.9, seen_bad=0.25), 6)
    assert (
        stats.binomtest(int(half.sum()), len(half), 0.6 * 0.1 + 0.4 * 0.75).pvalue > 1e-6
    )  # correlated: a wider bound


def test_a_loss_is_known_when_the_observation_would_have_arrived() -> None:
    steps = run(ImpairedObservation(CountingEnv(40), "constant:3+loss:0.5"))
    when = steps[-1][4]["hindsight"]["arrivals"]
    for now, (*_, info) in enumerate(steps[:-1]):
        expected = [(now - 3, None if when[now - 3] == -1 else now - 3)] if now >= 3 else []
        assert info["arrivals"] == expected


# -- the same thing as the compiled simulator -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["state and action", "geometric", "loss", "late and lossy", "late actions"])
def test_agrees_with_the_compiled_simulator_and_the_exact_law(kind: str) -> None:
    """`oldlight/Tabular-v0` inside the wrapper, `simulate`, and the exact law: arrivals and returns under the same policy."""
    rng = np.random.default_rng([3, len(kind)])
    mdp = random_mdp(rng, 2, 2, 4)
    law: dict[str, Any] = {}
    how: dict[str, Any] = {}
    if kind == "state and action":
        law["first"], law["inter"] = random_law(rng, 4, 2, 2, 3, kind="state_action")
        channel: Any = ol.StochasticDelay(law["inter"], first=law["first"])
    elif kind == "geometric":
        pmf = np.append(0.6 * 0.4 ** np.arange(4), 0.4**4)
        law = {"first": pmf, "inter": np.broadcast_to(pmf, (4, 2, 2, 5))}
        channel = ol.GeometricDelay(0.6, first="same")
    elif kind == "loss":
        law["seen"] = rng.random(4)
        channel = ol.Loss(seen=law["seen"])
    elif kind == "late and lossy":
        law = {"first": [0.5, 0.5], "seen": np.full(4, 0.4)}
        channel = ol.Lossy(ol.EmpiricalDelay([0, 1]), seen=0.4)
    else:
        law = {"first": [0, 1], "actuation": 1, "initial_actions": (1,)}
        channel, how = ol.ConstantDelay(1), {"actuation": 1, "pending": [1]}
    ahead = how.get("actuation", 0)
    problem = ol.ImpairedMDP(mdp, channel, **how)
    env = ImpairedObservation(gym.make("oldlight/Tabular-v0", mdp=mdp, disable_env_checker=True), channel, **how)
    n, luck = repeats(400, 2500), np.random.default_rng(1)
    patterns, returns = [], np.zeros(n)
    for e in range(n):
        env.reset(seed=0 if e == 0 else None)
        over, info = False, {}
        while not over:
            _, reward, over, _, info = env.step(int(luck.integers(2)))
            returns[e] += reward
        patterns.append(tuple(min(t, 4) for t in info["hindsight"]["arrivals"][:4]))

    def half(_: Any) -> Any:
        return [0.5, 0.5]

    played = ol.simulate(problem, ol.FunctionPolicy(half, 2), repeats(8_000, 20_000), seed=1, record=True)
    assert played.arrivals is not None
    theirs = Counter(tuple(int(min(t - ahead, 4)) if t >= 0 else -1 for t in row) for row in played.arrivals)
    P, R, rho = arrays(mdp)
    exact = {tuple(int(x) for x in key): p for key, p in arrival_law(P, rho, half, **law).items()}
    assert chi_square(Counter(patterns), exact) > 1e-4
    both = sorted(set(patterns) | set(theirs))
    table = np.array([[Counter(patterns)[key] for key in both], [theirs[key] for key in both]])
    table = table[:, table.sum(axis=0) >= 20]
    assert stats.chi2_contingency(table).pvalue > 1e-4
    exact_returns = return_law(P, R, rho, half, **law)
    near = np.array(sorted(exact_returns))
    index = nearest(returns, near)
    assert np.abs(returns - near[index]).max() < 1e-8
    assert chi_square({near[i]: c for i, c in Counter(index.tolist()).items()}, exact_returns) > 1e-4
    assert stats.ks_2samp(returns, played.returns).pvalue > 1e-4


CAPPED = ol.StochasticDelay([0, 1]).capped(2)  # delays 0, 1, 2, 2, ...


@pytest.mark.parametrize("channel", ["constant:2", "none", "seen:0", CAPPED], ids=str)
def test_the_wrapper_and_the_native_environment_show_the_same_dict(channel: Any) -> None:
    """The same space; and with nothing random, the same episode."""
    mdp = ol.instances.sensing_chain(1.0, n_states=6, horizon=8, initial=np.eye(6)[0])
    how: dict[str, Any] = {"channel": channel, "actuation": 1, "pending": [1], "rewards": "delayed"}
    native = gym.make("oldlight/Tabular-v0", mdp=mdp, **how)
    wrapped = ImpairedObservation(gym.make("oldlight/Tabular-v0", mdp=mdp), clock=True, **how)
    assert native.observation_space == wrapped.observation_space
    for one, other in zip(run(native), run(wrapped), strict=True):
        assert_same({k: np.asarray(v) for k, v in one[0].items()}, {k: np.asarray(v) for k, v in other[0].items()})
        assert one[1:4] == other[1:4]
