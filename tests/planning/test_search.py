"""The planner of links against the planners before it, known numbers, merging, and stopping early."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import link_oracle as raw
import oldlight as ol
from link_cases import plan_link
from node_walk import walk_value
from oldlight.checks import TooLarge
from oldlight.model.channels.automaton import ChannelAutomaton
from oldlight.model.channels.hidden import HiddenLink, merging_error
from oldlight.model.channels.packets import PacketChannel
from oldlight.planning.link_plan import distinct_actions
from oracle import random_instance, random_pmf
from repeats import repeats

TOLERANCE = 1e-10


def random_process(seed: int, S: int = 4, A: int = 3, H: int = 6) -> ol.TabularMDP:
    rng = np.random.default_rng([seed, 81])
    P, R, rho = random_instance(rng, S, A, H, sparse=seed % 3 == 0, stationary=seed % 2 == 0)
    return ol.TabularMDP(P, R, horizon=H, initial=rho / rho.sum())


def channels(seed: int, H: int) -> list[Any]:
    rng = np.random.default_rng([seed, 82])
    law, first = random_pmf(rng, 3), random_pmf(rng, 3)
    return [
        ol.ConstantDelay(int(rng.integers(0, H + 2))),
        ol.StochasticDelay(law / law.sum(), first=first / first.sum()).capped(3),
        ol.BernoulliDelay(float(rng.random())),
        ol.GeometricDelay(0.5),
        ol.Loss(seen=rng.random(H)),
        ol.Lossy(ol.ConstantDelay(int(rng.integers(1, 4))), rate=float(rng.random())),
    ]


@pytest.mark.parametrize("seed", range(12))
def test_the_automaton_plans_what_solve_plans(seed: int) -> None:
    mdp = random_process(seed)
    for channel in channels(seed, mdp.horizon):
        before = ol.solve(ol.ImpairedMDP(mdp, channel))
        plan = plan_link(mdp, channel.automaton(mdp.horizon))
        assert plan.exact
        assert abs(plan.lower - before.value) < TOLERANCE, channel


@pytest.mark.parametrize("seed", range(6))
def test_packets_with_one_delay_are_late_and_lossy(seed: int) -> None:
    mdp = random_process(seed)
    for d in range(3):
        plan = plan_link(mdp, PacketChannel({d: 1.0}, lost=0.3).automaton(mdp.horizon))
        late_and_lossy = ol.solve(ol.ImpairedMDP(mdp, ol.Lossy(ol.ConstantDelay(d), rate=0.3)))
        assert abs(plan.lower - late_and_lossy.value) < TOLERANCE
        if d == 0:
            assert abs(plan.lower - ol.solve(ol.ImpairedMDP(mdp, ol.Loss(rate=0.3))).value) < TOLERANCE


def test_a_warm_start_is_a_known_age() -> None:
    mdp, d = random_process(1), 2
    link = ChannelAutomaton.explore([(1.0, "on", d)], lambda _: [(1.0, "on", d)], mdp.horizon)
    plan = plan_link(mdp, link, initial=np.full(mdp.n_states, 1 / mdp.n_states))
    warm = ol.solve(ol.ImpairedMDP(mdp, ol.ConstantDelay(d), start=ol.WarmStart()))
    assert abs(plan.lower - warm.value) < TOLERANCE


def two_states(p: float = 0.8, horizon: int = 6) -> ol.TabularMDP:
    P = np.array([[[p, 1 - p]] * 2, [[1 - p, p]] * 2])
    return ol.TabularMDP(P, np.eye(2), horizon=horizon, initial=[1, 0])


def later_by(d: int, horizon: int) -> Any:
    """The first state is seen at once, every later one d steps late."""
    law = np.zeros((horizon, 1, 1, d + 1))
    law[:, 0, 0, 0] = 1.0
    law[0, 0, 0] = np.eye(d + 1)[d]
    return ol.StochasticDelay(law, first=[1.0])


def test_numbers_that_are_known() -> None:
    mdp = two_states()
    for d, value in enumerate((6, 5, 113 / 25, 538 / 125)):
        assert abs(plan_link(mdp, later_by(d, 6).automaton(6)).lower - value) < TOLERANCE
    for rate, value in ((0.3, 5.6502051744), (0.5, 5.34679), (1.0, 4.19168)):
        seen = np.array([1.0] + [1 - rate] * 5)
        assert abs(plan_link(mdp, ol.Loss(seen=seen).automaton(6)).lower - value) < TOLERANCE
    chain = ol.instances.sensing_chain(0.8).replace(horizon=20, initial=np.eye(20)[4])
    for d, value in ((2, 11.014287743841312), (4, 9.694362490222781)):
        assert abs(plan_link(chain, later_by(d, 20).automaton(20)).lower - value) < TOLERANCE


def test_the_dense_instance_under_loss() -> None:
    rng = np.random.default_rng(0)
    P = rng.dirichlet(0.3 * np.ones(20), size=(5, 20))
    mdp = ol.TabularMDP(P.transpose(1, 0, 2), rng.random((20, 5)), horizon=10)
    plan = plan_link(mdp, ol.Loss(seen=[1.0] + [0.5] * 9).automaton(10))
    assert plan.exact
    assert abs(plan.lower - 7.573000406) < 1e-9


def test_actions_that_do_the_same_are_one() -> None:
    chain = ol.instances.sensing_chain(0.8)
    assert distinct_actions(chain).tolist() == [0, 1, 2, 2, 2]
    plan = plan_link(chain, PacketChannel([0.5, 0.5], lost=0.2).automaton(10))
    assert plan.exact
    earned = walk_value(chain, PacketChannel([0.5, 0.5], lost=0.2).automaton(10), plan.policy)
    assert earned is not None
    assert abs(earned - plan.lower) < TOLERANCE


@pytest.mark.parametrize("seed", range(repeats(6, 30)))
def test_merging_is_in_the_certificate(seed: int) -> None:
    rng = np.random.default_rng([seed, 83])
    mdp = random_process(seed, S=2, A=2, H=4)
    delays, switch = rng.dirichlet(np.ones(3), 2)[:, :2], rng.dirichlet(np.ones(2), 2)
    link = HiddenLink(switch, delays, first=[0.5, 0.5])
    optimum = raw.value(mdp.transitions, mdp.rewards, mdp.initial, raw.Packets(delays, switch, [0.5, 0.5]))
    merged = link.automaton(4, merging=0.05)
    plan = plan_link(mdp, merged)
    assert not plan.exact
    assert plan.lower <= optimum + TOLERANCE
    assert optimum <= plan.upper + TOLERANCE
    assert plan.upper - plan.lower <= 2 * merging_error(0.05, mdp.rewards) + TOLERANCE
    assert len(merged.nodes) <= len(link.automaton(4).nodes)


def test_late_messages_tell_of_a_hidden_link() -> None:
    """A link that is fixed but unknown: a late, older message leaves the age alone, and the node is another one."""
    link = HiddenLink(np.eye(2), [[0.5, 0.5], [0.5, 0.0]], first=[0.5, 0.5])
    automaton = link.automaton(5)
    ages = [n[0] for n in automaton.nodes]  # type: ignore[index]
    assert len(set(ages)) < len(ages)  # several nodes share an age


def test_stopping_early_and_too_large() -> None:
    chain = ol.instances.sensing_chain(0.8)
    automaton = PacketChannel([0.5, 0.5], lost=0.3).automaton(10)
    full = plan_link(chain, automaton)
    short = plan_link(chain, automaton, seconds=0.0)
    assert short.lower <= full.lower + TOLERANCE
    assert full.upper <= short.upper + TOLERANCE
    earned = walk_value(chain, automaton, short.policy)
    assert earned is not None
    assert short.lower - TOLERANCE <= earned <= full.upper + TOLERANCE
    with pytest.raises(TooLarge, match=r"information states up to age 1 and needs .* KiB; the limit is 1"):
        plan_link(chain, automaton, max_bytes=1000)
    with pytest.raises(ValueError, match=r"depth is 0, expected 1\.\.9"):
        plan_link(chain, automaton, depth=0)
