"""Prices are differences of optima; what is lost by step and state adds up to the gap, and is what each step's advantages are worth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.model.channels.later_link import LaterLink
from oldlight.planning.neighbouring_links import earlier, later, lossier, neighbours

CLOSE = 1e-9


def process(seed: int, S: int = 3, A: int = 2, H: int = 4) -> ol.TabularMDP:
    """One in which what is known matters: the action has to fit the state."""
    rng = np.random.default_rng([seed, 23])
    P = rng.dirichlet(0.5 * np.ones(S), size=(S, A) if seed % 2 == 0 else (H, S, A))
    R = 0.3 * rng.random((S, A)) + 0.7 * (np.arange(S)[:, None] % A == np.arange(A))
    return ol.TabularMDP(P, R, horizon=H, initial=rng.dirichlet(np.ones(S)))


LINKS: dict[str, Any] = {
    "constant": ol.ConstantDelay(2),
    "none": ol.ConstantDelay(0),
    "loss": ol.Loss(rate=0.3),
    "late and lossy": ol.Lossy(ol.ConstantDelay(1), rate=0.2),
    "in order": ol.StochasticDelay([0.6, 0.4]).capped(2),
    "packets": ol.PacketChannel({1: 0.5, 2: 0.5}, lost=0.1),
    "fifo": ol.FIFODelay([0.5, 0.5]),
    "renewal": ol.RenewalLoss({0: 0.7, 2: 0.3}),
    "periodic": ol.Periodic(2, delay=1),
    "hidden": ol.HiddenLink([[0.8, 0.2], [0.4, 0.6]], [[0.7, 0.2], [0.1, 0.3]]),
    "bursty": ol.BurstyLoss(0.2, 0.4),
}


@pytest.mark.parametrize("channel", LINKS.values(), ids=LINKS)
def test_prices_are_differences_and_losses_add_up(channel: Any) -> None:
    for seed in range(2):
        problem = ol.ImpairedMDP(process(seed), channel.with_period(20))
        found = ol.sensitivity(problem)
        here = ol.solve(problem)
        assert found.value == pytest.approx(here.value, abs=CLOSE)
        assert found.gap == pytest.approx(ol.gap(problem).gap, abs=CLOSE)
        assert found.exact
        assert (found.lost >= -CLOSE).all()
        assert found.lost.sum() == pytest.approx(found.gap, abs=CLOSE)
        assert found.prices[0].change == "one more step of delay"
        for price in found.prices:
            there = ol.solve(problem.behind(price.channel)).value
            assert price.cost == pytest.approx(here.value - there, abs=CLOSE)
            assert price.low - CLOSE <= price.cost <= price.high + CLOSE
            if price.unit == "step":
                assert price.per_ms == pytest.approx(price.cost / price.amount / 20, abs=CLOSE)
        by_change = {price.change: price.cost for price in found.prices}
        for worse in ("one more step of delay", "one percent more lost"):
            assert by_change.get(worse, 0.0) >= -CLOSE  # more of these never helps


@pytest.mark.parametrize("name", ["constant", "late and lossy", "packets", "renewal"])
def test_what_is_lost_is_what_the_policy_gives_up_there(name: str) -> None:
    """The same policy on the process whose only rewards are the advantages given up in one state at one step."""
    problem = ol.ImpairedMDP(process(1), LINKS[name])
    found = ol.sensitivity(problem)
    V, advantages = np.zeros(3), []
    for h in range(3, -1, -1):
        q = problem.mdp.rewards[h] + problem.mdp.transitions[h] @ V
        V = q.max(axis=1)
        advantages.insert(0, V[:, None] - q)
    for h in range(4):
        for s in range(3):
            rewards = np.zeros((4, 3, 2))
            rewards[h, s] = advantages[h][s]
            there = ol.ImpairedMDP(problem.mdp.replace(rewards=rewards), problem.channel)
            assert found.lost[h, s] == pytest.approx(ol.evaluate(there, found.solution.policy).value, abs=CLOSE)


def test_a_warm_start_and_played_episodes() -> None:
    warm = ol.sensitivity(ol.ImpairedMDP(process(0), "constant:2", start="warm"))
    assert warm.lost.sum() == pytest.approx(warm.gap, abs=CLOSE)
    assert any("not priced" in note for note in warm.notes)  # delay and loss have no warm start
    problem = ol.ImpairedMDP(process(0), LINKS["packets"])
    exact, played = ol.sensitivity(problem), ol.sensitivity(problem, max_states=3, episodes=40_000)
    assert not played.exact
    assert abs(played.lost.sum() - exact.gap) <= 2 * played.half_width  # four standard deviations
    assert np.abs(played.lost - exact.lost).max() <= 4 * problem.reward_span * np.sqrt(0.25 / 40_000)
    assert "played episodes" in str(played)


# -- the links next to a link -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["constant", "loss", "late and lossy", "packets", "periodic", "bursty", "hidden"])
def test_holding_back_is_what_the_parameters_say(name: str) -> None:
    """The link that is held back one step, and the one whose parameters say so, are worth the same."""
    channel = LINKS[name]
    mdp = process(0)
    direct, held = later(channel), LaterLink(channel, 1)
    assert ol.solve(ol.ImpairedMDP(mdp, direct)).value == pytest.approx(
        ol.solve(ol.ImpairedMDP(mdp, held)).value, abs=CLOSE
    )
    if (sooner := earlier(direct)) is not None:
        assert ol.solve(ol.ImpairedMDP(mdp, sooner)).value == pytest.approx(
            ol.solve(ol.ImpairedMDP(mdp, channel)).value, abs=CLOSE
        )


def test_a_percent_is_a_percentage_point() -> None:
    assert lossier(ol.Loss(rate=0.3), 0.01) == ol.Loss(seen=0.7 - 0.01)
    assert lossier(ol.PacketChannel([1.0], lost=0.1), 0.01) == ol.PacketChannel([1.0], lost=0.1 + 0.01)
    assert lossier(ol.ConstantDelay(0), 0.01) == ol.Loss(rate=0.01)
    burst = lossier(ol.BurstyLoss(0.2, 0.4, seen_good=0.9, seen_bad=0.3), 0.01)
    assert isinstance(burst, ol.BurstyLoss)
    assert burst.arrival_probabilities(1)[0] == pytest.approx(0.9 * 2 / 3 + 0.3 / 3 - 0.01)
    assert lossier(ol.Loss(rate=0.995), 0.01) is None
    assert lossier(ol.Loss(rate=0.005), -0.01) is None
    assert lossier(ol.FIFODelay([0.5, 0.5]), 0.01) is None
    slow = lossier(ol.Periodic(2, delay=1), 0.01)
    assert slow is not None
    one = ol.HiddenLink([[1.0]], [[0.5, 0.3]])
    thinner = lossier(one, 0.1)
    assert isinstance(thinner, ol.HiddenLink)
    assert thinner.delays.sum() == pytest.approx(0.7)
    assert thinner.delays[0, 0] / thinner.delays[0, 1] == pytest.approx(5 / 3)


def test_changes_keep_the_control_period() -> None:
    for channel in LINKS.values():
        assert {found.channel.period_ms for found in neighbours(channel.with_period(25))} == {25}
