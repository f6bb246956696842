"""One engine for all links that do not depend on the process, against brute force over raw histories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import link_oracle as raw
import oldlight as ol
from oldlight.model.channels.age_chain import AgeChain
from oldlight.model.channels.automaton import ChannelAutomaton
from oldlight.model.channels.fifo import FIFODelay
from oldlight.model.channels.held_lag import HeldLag
from oldlight.model.channels.hidden import HiddenLink
from oldlight.model.channels.in_order import in_order_automaton
from oldlight.model.channels.packets import PacketChannel
from oldlight.model.channels.periodic import Periodic
from oldlight.model.channels.renewal import RenewalLoss
from oldlight.planning.link_plan import plan_link
from oldlight.planning.link_walk import walk_value
from oracle import random_instance, random_pmf

TOLERANCE = 1e-10
Kind = tuple[ChannelAutomaton, raw.RawLink]


def pmf(rng: np.random.Generator, n: int) -> np.ndarray:
    law = random_pmf(rng, n)
    return law / law.sum()


def packets(rng: np.random.Generator, H: int) -> Kind:
    delays, lost = pmf(rng, int(rng.integers(1, 4))), float(rng.choice([0.0, rng.random()]))
    return PacketChannel(delays, lost).automaton(H), raw.Packets((1 - lost) * delays)


def fifo(rng: np.random.Generator, H: int) -> Kind:
    delays = pmf(rng, int(rng.integers(1, 4)))
    return FIFODelay(delays).automaton(H), raw.InTurn(delays)


def age_chain(rng: np.random.Generator, H: int) -> Kind:
    kernel = [pmf(rng, m + 2) for m in range(int(rng.integers(1, 4)))]
    first = pmf(rng, 3) if rng.random() < 0.5 else np.ones(1)
    return AgeChain(kernel, first=first).automaton(H), raw.Ages(kernel, first)


def renewal(rng: np.random.Generator, H: int) -> Kind:
    lengths = pmf(rng, int(rng.integers(1, 5)))
    return RenewalLoss(lengths).automaton(H), raw.Renewal(lengths)


def periodic(rng: np.random.Generator, H: int) -> Kind:
    every, delay = int(rng.integers(1, 4)), int(rng.integers(0, 3))
    offset = int(rng.integers(0, every))
    return Periodic(every, delay, offset).automaton(H), raw.Slow(every, delay, offset)


def held_lag(rng: np.random.Generator, H: int) -> Kind:
    lags, hold = pmf(rng, int(rng.integers(1, 4))), float(rng.choice([0.0, rng.random()]))
    return HeldLag(lags, hold).automaton(H), raw.Held(lags, hold)


def hidden(rng: np.random.Generator, H: int) -> Kind:
    K, lossy = int(rng.integers(1, 3)), rng.random() < 0.7
    delays = np.array([pmf(rng, K + 1)[:K] if lossy else pmf(rng, K) for _ in range(2)])
    switch = np.array([pmf(rng, 2) for _ in range(2)])
    first = pmf(rng, 2)
    return HiddenLink(switch, delays, first=first).automaton(H), raw.Packets(delays, switch, first)


def lossy_in_order(rng: np.random.Generator, H: int) -> Kind:
    """The paper's law with losses announced in order; a law and a rate for each step, or one for all; perhaps capped."""
    per_step = rng.random() < 0.5
    table = np.array([pmf(rng, 3) for _ in range(H if per_step else 1)])
    first, cap = pmf(rng, 3), int(rng.choice([1, 2, 10]))
    seen = rng.random(H) if per_step else np.full(H, float(rng.choice([1.0, rng.random()])))
    channel = ol.StochasticDelay(table[:, None, None, :], first=first).capped(cap)
    automaton = in_order_automaton(channel.law(H, 1, 1), ol.Loss(seen=seen))

    def lose(i: int, mode: Any) -> list[tuple[float, bool, Any]]:
        return [(float(seen[i]), False, None), (1 - float(seen[i]), True, None)]

    return automaton, raw.InOrder(first, lambda i: table[min(i, len(table) - 1)], lose, cap)


def bursts(rng: np.random.Generator, H: int) -> Kind:
    """Gilbert–Elliott, at once or behind a constant delay."""
    d = int(rng.integers(0, 3))
    loss = ol.BurstyLoss(*rng.random(2), *(rng.random(2) if rng.random() < 0.7 else (1.0, 0.0)))
    automaton = in_order_automaton(ol.ConstantDelay(d).law(H, 1, 1), loss)

    def lose(i: int, mode: Any) -> list[tuple[float, bool, Any]]:
        bad = loss.bad if mode == "start" else (1 - loss.to_good if mode else loss.to_bad)
        return [
            (chance * rate, lost, z)
            for z, chance, seen in ((0, 1 - bad, loss.seen_good), (1, bad, loss.seen_bad))
            for lost, rate in ((False, seen), (True, 1 - seen))
        ]

    return automaton, raw.InOrder(np.eye(d + 1)[d], lambda i: [1.0], lose)


KINDS: list[Callable[[np.random.Generator, int], Kind]] = [
    packets, fifo, age_chain, renewal, periodic, held_lag, hidden, lossy_in_order, bursts,
]  # fmt: skip


def instance(rng: np.random.Generator, seed: int) -> tuple[ol.TabularMDP, Any, Any, Any]:
    S, H = (3, 3) if seed % 3 == 0 else (2, 4)
    P, R, rho = random_instance(rng, S, 2, H, sparse=seed % 4 == 1, stationary=seed % 4 == 2)
    return ol.TabularMDP(P, R, horizon=H, initial=rho / rho.sum()), P, R, rho / rho.sum()


@pytest.mark.parametrize("kind", KINDS)
def test_every_link_against_raw_histories(kind: Callable[[np.random.Generator, int], Kind]) -> None:
    worst = 0.0
    for seed in range(100):
        rng = np.random.default_rng([seed, 71])
        mdp, P, R, rho = instance(rng, seed)
        automaton, link = kind(rng, mdp.horizon)
        optimum = raw.value(P, R, rho, link)
        depth = automaton.longest + int(rng.integers(0, 2))
        plan = plan_link(mdp, automaton, depth=min(depth, mdp.horizon - 1))
        assert plan.exact, seed
        worst = max(worst, abs(plan.lower - optimum), abs(plan.upper - optimum))
        assert worst < TOLERANCE, (seed, optimum, plan, automaton.nodes)
        earned = walk_value(mdp, automaton, plan.policy)
        assert earned is not None
        assert abs(earned - optimum) < TOLERANCE, (seed, optimum, earned, plan)


@pytest.mark.parametrize("kind", KINDS)
def test_a_tolerance_is_kept_and_contains_the_optimum(kind: Callable[[np.random.Generator, int], Kind]) -> None:
    for seed in range(100):
        rng = np.random.default_rng([seed, 72])
        mdp, P, R, rho = instance(rng, seed)
        automaton, link = kind(rng, mdp.horizon)
        optimum = raw.value(P, R, rho, link)
        tolerance = float(rng.choice([0.3, 0.1, 0.01]))
        plan = plan_link(mdp, automaton, tolerance=tolerance)
        assert plan.upper - plan.lower <= tolerance
        assert plan.lower - TOLERANCE <= optimum <= plan.upper + TOLERANCE, (seed, optimum, plan)
        earned = walk_value(mdp, automaton, plan.policy)
        assert earned is not None
        assert plan.lower - TOLERANCE <= earned <= optimum + TOLERANCE, (seed, earned, plan)


@pytest.mark.parametrize("kind", KINDS)
def test_late_actions(kind: Callable[[np.random.Generator, int], Kind]) -> None:
    for seed in range(20):
        rng = np.random.default_rng([seed, 73])
        mdp, P, R, rho = instance(rng, seed)
        automaton, link = kind(rng, mdp.horizon)
        k = int(rng.integers(1, 3))
        pending = tuple(rng.integers(0, 2, k).tolist())
        plan = plan_link(mdp, automaton.shifted(k), pending=pending)
        assert plan.exact
        assert abs(plan.lower - raw.value(P, R, rho, link, pending=pending)) < TOLERANCE, seed
