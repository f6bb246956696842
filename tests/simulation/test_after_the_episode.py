"""What arrives after an episode is revealed to learners that are asked with nodes, too."""

from __future__ import annotations

import math

import numpy as np
import pytest

import oldlight as ol
from oldlight.simulation.link_episodes import link_runs

H = 9


def problem(channel: str, **options: int) -> ol.ImpairedMDP:
    return ol.ImpairedMDP(ol.instances.sensing_chain(0.8, n_states=4, horizon=H), channel, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("actuation", [0, 2])
@pytest.mark.parametrize("channel", ["constant:3", "delays:1=0.5,3=0.5", "bernoulli:0.5"])
def test_behind_a_delay_alone_everything_is_revealed(channel: str, actuation: int) -> None:
    p = problem(channel, actuation=actuation)
    _, ages, arrivals = link_runs(p, p.automaton, np.random.default_rng(1), 200)
    assert (arrivals >= 0).all()
    assert (np.diff(arrivals, axis=0) > 0).all()  # in order, one at a time
    last = np.where(ages[-1] < 0, -1, H - 1 - ages[-1])
    assert ((arrivals >= H) == (np.arange(H)[:, None] > last)).all()
    if channel == "constant:3":
        assert (arrivals == np.arange(H)[:, None] + 3 + actuation).all()


def test_the_last_observations_are_lost_as_often_as_the_others() -> None:
    p, n = problem("constant:2+loss:0.3"), 4000
    _, _, arrivals = link_runs(p, p.automaton, np.random.default_rng(2), n)
    lost = (arrivals < 0).mean(axis=1)
    assert (np.abs(lost - 0.3) < 5 * math.sqrt(0.3 * 0.7 / n)).all()
    shown = np.where(arrivals < 0, np.arange(H)[:, None] + 2, arrivals)
    assert (shown == np.arange(H)[:, None] + 2).all()


def test_losses_in_bursts_are_not_made_up_after_the_episode() -> None:
    p = problem("constant:2+bursty:0.1,0.5")
    _, _, arrivals = link_runs(p, p.automaton, np.random.default_rng(3), 50)
    assert (arrivals[-2:] < 0).all()


@pytest.mark.parametrize("channel", ["constant:3", "delays:1=0.5,3=0.5"])
def test_an_estimated_link_shows_as_many_transitions_as_a_known_one(channel: str) -> None:
    for law in ("known", "estimated"):
        learner = ol.learners.LinkLearner(law=law, pooled=True)  # type: ignore[arg-type]
        ol.learn(problem(channel), learner, 20, progress=False)
        assert learner.counts.number.sum() == 20 * (H - 1)


def test_what_is_only_met_late_in_an_episode_is_learnt_behind_an_estimated_delay() -> None:
    """A lock whose last places can be reached in the last steps alone: their observations arrive after the episode."""
    length = 6
    P, r = np.zeros((length, 2, length)), np.zeros((length, 2))
    for s in range(length):
        P[s, s % 2, min(s + 1, length - 1)] = P[s, 1 - s % 2, 0] = 1.0
    r[length - 1] = 1.0
    mdp = ol.TabularMDP(P, r, horizon=length + 1, initial=np.eye(length)[0])
    run = ol.learn(
        ol.ImpairedMDP(mdp, "constant:3"),
        ol.learners.LinkLearner(law="estimated", pooled=True),
        150,
        seed=1,
        progress=False,
    )
    assert run.shortfalls[-1] == pytest.approx(0.0, abs=1e-9)
