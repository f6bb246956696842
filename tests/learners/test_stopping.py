"""Certificates, stopping and off-line learning: what is proved holds, on the true process and by hand."""

from __future__ import annotations

import numpy as np
import pytest

import oldlight as ol
from link_cases import guessing
from oldlight.learners import (
    LinkLearner,
    PosteriorSampling,
    Setting,
    WithinEpsilon,
    learn,
    learn_offline,
    recorded_episodes,
)
from oldlight.learners.link_counts import LinkCounts
from oldlight.learners.stopping import certificate
from repeats import repeats

LINKS = ["none", "constant:1", "packets:0=0.5,1=0.5", "loss:0.3"]


def problem(seed: int, channel: str) -> ol.ImpairedMDP:
    rng = np.random.default_rng([seed, 17])
    mdp = ol.TabularMDP(rng.dirichlet(np.ones(2), size=(2, 2)), rng.random((2, 2)), horizon=3)
    return ol.ImpairedMDP(mdp, channel)


def uniform(n_actions: int) -> ol.FunctionPolicy:
    return ol.FunctionPolicy(lambda info: np.full(n_actions, 1 / n_actions), n_actions)


@pytest.mark.parametrize("channel", LINKS)
@pytest.mark.parametrize("episodes", [30, 3000])
def test_bounds_hold_on_the_true_process(channel: str, episodes: int) -> None:
    """With γ = 0.1, in each of the processes (the bounds are far from tight: a failure would be a mistake)."""
    for seed in range(repeats(2, 5)):
        here = problem(seed, channel)
        played = ol.simulate(here, uniform(2), episodes, seed=seed, record=True)
        for pooled in (False, True):
            found = learn_offline(here, recorded_episodes(here, played), pooled=pooled)
            best, earned = ol.solve(here).value, ol.evaluate(here, found.policy).value
            assert found.lower - 1e-9 <= earned <= best + 1e-9
            assert best <= found.upper + 1e-9
            assert found.episodes == episodes


@pytest.mark.parametrize("channel", LINKS)
def test_with_all_counts_the_bounds_meet_at_the_optimum(channel: str) -> None:
    here = problem(1, channel)
    layout = ol.Layout.of(here) if channel in ("none", "constant:1") else None
    counts = LinkCounts(Setting.of(here, 10, 0.1, layout), True)
    counts.number[0] = 1e14 * here.mdp.transitions[0]
    found = certificate(counts)
    assert found.lower == pytest.approx(ol.solve(here).value, abs=1e-3)
    assert found.gap < 2e-3


def test_radius_by_hand() -> None:
    """Two states, one visit of one pair: every other row is unknown, and the widths are those of the text."""
    P, R = np.full((2, 1, 2), 0.5), np.array([[0.0], [1.0]])
    here = ol.ImpairedMDP(ol.TabularMDP(P, R, horizon=2, initial=[1, 0]), "none")
    counts = LinkCounts(Setting.of(here, 50, 0.1, ol.Layout.of(here)), False)
    counts.number[0, 0, 0] = [300, 100]
    found = certificate(counts)
    width = 0.5 * np.sqrt(2 * np.log(2 * 2 * 50 / 0.1) / 400)
    assert found.upper == pytest.approx(0.25 + width, abs=1e-12)
    assert found.lower == pytest.approx(0.25 - width, abs=1e-12)


def test_a_run_stops_when_a_policy_is_good_enough() -> None:
    here = problem(2, "packets:0=0.5,1=0.5")
    stop = WithinEpsilon(0.8)
    run = learn(here, LinkLearner(pooled=True), 5000, seed=3, every=500, stop=stop)
    assert run.done < 5000
    assert not run.interrupted
    assert stop.certificate is not None
    assert stop.certificate.gap <= 0.8
    assert ol.solve(here).value - ol.evaluate(here, stop.certificate.policy).value <= 0.8
    with pytest.raises(TypeError, match="does not count as LinkLearner"):
        learn(problem(1, "none"), PosteriorSampling(), 5, stop=WithinEpsilon(0.5))
    auto = LinkLearner(pooled="auto")
    with pytest.raises(ValueError, match="no proved bounds"):
        learn(here, auto, 5, stop=WithinEpsilon(0.5))


def test_recorded_episodes_are_those_that_a_learner_sees() -> None:
    mdp = guessing(4)
    here = ol.ImpairedMDP(mdp.replace(rewards=mdp.rewards / 1.2), "packets:0=0.5,1=0.3,2=0.2+loss:0.2")
    policy, seen = ol.solve(here).policy, []

    class Keeps(LinkLearner):
        def policy(self):  # type: ignore[no-untyped-def]
            return policy

        def see(self, episode):  # type: ignore[no-untyped-def]
            seen.append(episode)

    learn(here, Keeps(), 20, seed=4, every=20)
    recorded = recorded_episodes(here, ol.simulate(here, policy, 20, seed=4, record=True))
    for one, other in zip(seen, recorded, strict=True):
        for name in ("states", "actions", "arrivals", "rewards"):
            assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True), name


def test_first_within() -> None:
    run = learn(problem(0, "none"), LinkLearner(), 10, seed=1)
    run.values[:] = run.best - np.array([3, 2, 0.5, 1, 0.4, 0.3, 0.6, 0.1, 0.1, 0])
    assert run.first_within(0.5) == 2
    assert run.first_within(0.5, for_good=True) == 7
    assert run.first_within(0.0) == 9
    assert run.first_within(5.0) == 0
    run.values[-1] = run.best - 1
    assert run.first_within(0.5, for_good=True) is None
    with pytest.raises(ValueError, match="eps"):
        run.first_within(-1.0)
