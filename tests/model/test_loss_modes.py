"""Loss channels of one's own: by arrival probabilities, by hidden modes, or only by what they draw; planned, played and refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import link_oracle as raw
import oldlight as ol
from link_cases import HORIZON, age_law, ages_of, assert_law, guessing
from oldlight.envs import TabularEnv, TabularVectorEnv, play
from oldlight.envs.typical_age import age_law as law_of_ages
from oldlight.model.channels import LossChannel, LossModes
from oldlight.simulation.link_sampler import LawSampler, LinkSampler
from oldlight.testing import check_channel

TOLERANCE = 1e-10
SWITCH = np.array([[0.6, 0.4, 0.0], [0.0, 0.5, 0.5], [0.7, 0.0, 0.3]])  # round in one direction: not reversible


@dataclass(frozen=True, eq=False)
class Round(LossChannel):
    """Good, worse, bad, and good again; what is seen while it is worse depends on the step."""

    worse: tuple[float, ...] = (0.5,)
    independent = False

    def modes(self, horizon: int | None = None) -> LossModes:
        seen = np.array([[0.9, p, 0.1] for p in self.worse])
        return LossModes(np.array([0.5, 0.3, 0.2]), SWITCH, seen)


@dataclass(frozen=True, eq=False)
class Even(LossChannel):
    """Odd steps are lost more often."""

    def arrival_probabilities(self, horizon: int) -> Any:
        return np.where(np.arange(horizon) % 2 == 0, 0.9, 0.3)


class Drawn(LossChannel):
    """Every second observation, and nobody knows which: it can be drawn, and that is all that it says."""

    independent = False

    def arrival_probabilities(self, horizon: int) -> Any:
        return np.full(horizon, 0.5)

    def lost(self, rng: np.random.Generator, horizon: int, n: int) -> Any:
        return (np.arange(horizon)[:, None] % 2 == 0) == (rng.random(n) < 0.5)

    def __repr__(self) -> str:
        return "Drawn()"


def in_order(loss: LossChannel, d: int) -> raw.RawLink:
    """The same link in the oracle's words."""
    modes = loss.modes(9)
    assert modes is not None

    def lose(i: int, mode: Any) -> list[tuple[float, bool, Any]]:
        law = modes.first if mode == "start" else modes.switch[mode]
        seen = modes.seen[min(i, len(modes.seen) - 1)]
        return [(p * q, lost, z) for z, p in enumerate(law) for lost, q in ((False, seen[z]), (True, 1 - seen[z]))]

    return raw.InOrder(np.eye(d + 1)[d], lambda i: [1.0], lose)


@pytest.mark.parametrize("d", [0, 1])
@pytest.mark.parametrize("loss", [Round(), Round((0.2, 0.8, 0.5, 0.1)), Even()], ids=repr)
def test_plans_against_raw_histories(loss: LossChannel, d: int) -> None:
    mdp = guessing(3)
    channel = ol.Lossy(ol.ConstantDelay(d), loss=loss) if d else loss
    problem = ol.ImpairedMDP(mdp, channel)
    optimum = raw.value(mdp.transitions, mdp.rewards, mdp.initial, in_order(loss, d))
    best = ol.solve(problem)
    assert best.exact
    assert abs(best.value - optimum) < TOLERANCE
    assert abs(float(ol.evaluate(problem, best.policy)) - optimum) < TOLERANCE
    assert ol.gap(problem).full - optimum > 1e-3
    check_channel(channel)


@pytest.mark.parametrize("loss", [Round((0.2, 0.8)), Even()], ids=repr)
def test_what_is_played_has_the_law_of_the_automaton(loss: LossChannel) -> None:
    law = age_law(loss.automaton(HORIZON))
    lost = loss.lost(np.random.default_rng(1), HORIZON, 3000)
    assert np.abs(1 - lost.mean(axis=1) - loss.arrival_probabilities(HORIZON)).max() < 5 * np.sqrt(0.25 / 3000)
    assert_law(ages_of(np.where(lost, -1, np.arange(HORIZON)[:, None])), law)
    sampler, rng, runs = LinkSampler(loss, horizon=HORIZON), np.random.default_rng(2), 1500
    out = np.full((HORIZON, runs), -1)
    for e in range(runs):
        for h in range(HORIZON):
            for i in (sampler.send() if h else sampler.begin(rng)).arrived:
                out[i, e] = h
    assert_law(ages_of(out), law)


def test_independent_losses_of_one_s_own_are_compiled_too() -> None:
    mdp, n = guessing(), 2000
    envs = TabularVectorEnv(mdp, num_envs=n, channel=Even())
    envs.reset(seed=3)
    for _ in range(HORIZON):
        *_, infos = envs.step(np.zeros(n, dtype=np.int64))
    assert_law(ages_of(infos["hindsight"]["arrivals"].T), age_law(Even().automaton(HORIZON)))
    problem = ol.ImpairedMDP(mdp, Even())
    plan = ol.solve(problem)
    returns = play(TabularEnv(mdp, channel=Even()), plan.policy, 500, seed=0)
    assert abs(returns.mean() - plan.value) <= 5 * returns.std() / np.sqrt(500)
    with pytest.raises(TypeError, match="Round is not compiled here"):
        TabularEnv(mdp, channel=Round())


def test_ages_of_modes_that_look_different_backwards_are_bounded() -> None:
    """Of modes that do not look the same backwards nothing is claimed; of one's own independent losses the law is exact."""
    for loss, exact in ((Round(), False), (Even(), True)):
        law, _ = law_of_ages(LawSampler(loss, horizon=HORIZON, sizes=None), HORIZON, 2)
        ages = age_law(loss.automaton(HORIZON))
        for h in range(1, HORIZON):
            for m in range(min(h, 3)):
                true = sum(p for path, p in ages.items() if 0 <= path[h] <= m)
                assert law[h, m] <= true + TOLERANCE
                assert not exact or abs(law[h, m] - true) < TOLERANCE


def test_losses_that_are_only_drawn_are_played_and_not_planned() -> None:
    problem = ol.ImpairedMDP(guessing(), Drawn())
    assert np.isfinite(ol.simulate(problem, ol.FunctionPolicy(lambda info: 0, 3), 10, seed=0).mean)
    for ask in (lambda: ol.solve(problem), lambda: problem.automaton):
        with pytest.raises(
            ValueError, match=r"Drawn\(\) defines only how its losses are drawn .* a plan needs modes\(horizon\)"
        ):
            ask()

    class Nothing(LossChannel):
        independent = False

        def arrival_probabilities(self, horizon: int) -> Any:
            return np.full(horizon, 0.5)

    with pytest.raises(TypeError, match=r"Nothing says independent = False; it must define modes\(horizon\), or lost"):
        ol.simulate(ol.ImpairedMDP(guessing(), Nothing()), ol.FunctionPolicy(lambda info: 0, 3), 10, seed=0)
