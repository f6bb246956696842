"""One engine for all links that do not depend on the process, against brute force over raw histories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import link_oracle as raw
import oldlight as ol
from link_cases import plan_link
from oldlight.model.channels import Channel
from oracle import random_instance, random_pmf
from repeats import is_thorough, repeats

TOLERANCE = 1e-10
SEEDS = (
    list(range(101)) if is_thorough() else [*range(12), 34, 49]
)  # 12: each kind of process once; 34 begins with several ages; 49 is the longest
Kind = tuple[Channel, raw.RawLink]


def pmf(rng: np.random.Generator, n: int) -> np.ndarray:
    law = random_pmf(rng, n)
    return law / law.sum()


def packets(rng: np.random.Generator, H: int) -> Kind:
    delays, lost = pmf(rng, int(rng.integers(1, 4))), float(rng.choice([0.0, rng.random()]))
    return ol.PacketChannel(delays, lost), raw.Packets((1 - lost) * delays)


def fifo(rng: np.random.Generator, H: int) -> Kind:
    delays = pmf(rng, int(rng.integers(1, 4)))
    return ol.FIFODelay(delays), raw.InTurn(delays)


def age_chain(rng: np.random.Generator, H: int) -> Kind:
    kernel = [pmf(rng, m + 2) for m in range(int(rng.integers(1, 4)))]
    first = pmf(rng, 3) if rng.random() < 0.5 else np.ones(1)
    return ol.AgeChain(kernel, first=first), raw.Ages(kernel, first)


def renewal(rng: np.random.Generator, H: int) -> Kind:
    lengths = pmf(rng, int(rng.integers(1, 5)))
    return ol.RenewalLoss(lengths), raw.Renewal(lengths)


def periodic(rng: np.random.Generator, H: int) -> Kind:
    every, delay = int(rng.integers(1, 4)), int(rng.integers(0, 3))
    offset = int(rng.integers(0, every))
    return ol.Periodic(every, delay, offset), raw.Slow(every, delay, offset)


def held_lag(rng: np.random.Generator, H: int) -> Kind:
    lags, hold = pmf(rng, int(rng.integers(1, 4))), float(rng.choice([0.0, rng.random()]))
    return ol.HeldLag(lags, hold), raw.Held(lags, hold)


def hidden(rng: np.random.Generator, H: int) -> Kind:
    K, lossy = int(rng.integers(1, 3)), rng.random() < 0.7
    delays = np.array([pmf(rng, K + 1)[:K] if lossy else pmf(rng, K) for _ in range(2)])
    switch = np.array([pmf(rng, 2) for _ in range(2)])
    first = pmf(rng, 2)
    return ol.HiddenLink(switch, delays, first=first), raw.Packets(delays, switch, first)


def lossy_in_order(rng: np.random.Generator, H: int) -> Kind:
    """The paper's law with losses announced in order; a law and a rate for each step, or one for all; perhaps capped."""
    per_step = rng.random() < 0.5
    table = np.array([pmf(rng, 3) for _ in range(H if per_step else 1)])
    first, cap = pmf(rng, 3), int(rng.choice([1, 2, 10]))
    seen = rng.random(H) if per_step else np.full(H, float(rng.choice([1.0, rng.random()])))
    channel = ol.StochasticDelay(table[:, None, None, :], first=first).capped(cap)

    def lose(i: int, mode: Any) -> list[tuple[float, bool, Any]]:
        return [(float(seen[i]), False, None), (1 - float(seen[i]), True, None)]

    return ol.Lossy(channel, loss=ol.Loss(seen=seen)), raw.InOrder(
        first, lambda i: table[min(i, len(table) - 1)], lose, cap
    )


def bursts(rng: np.random.Generator, H: int) -> Kind:
    """Gilbert–Elliott, at once or behind a constant delay."""
    d = int(rng.integers(0, 3))
    loss = ol.BurstyLoss(*rng.random(2), *(rng.random(2) if rng.random() < 0.7 else (1.0, 0.0)))

    def lose(i: int, mode: Any) -> list[tuple[float, bool, Any]]:
        bad = loss.bad if mode == "start" else (1 - loss.to_good if mode else loss.to_bad)
        return [
            (chance * rate, lost, z)
            for z, chance, seen in ((0, 1 - bad, loss.seen_good), (1, bad, loss.seen_bad))
            for lost, rate in ((False, seen), (True, 1 - seen))
        ]

    return ol.Lossy(ol.ConstantDelay(d), loss=loss) if d else loss, raw.InOrder(np.eye(d + 1)[d], lambda i: [1.0], lose)


KINDS: list[Callable[[np.random.Generator, int], Kind]] = [
    packets, fifo, age_chain, renewal, periodic, held_lag, hidden, lossy_in_order, bursts,
]  # fmt: skip


def instance(rng: np.random.Generator, seed: int) -> tuple[ol.TabularMDP, Any, Any, Any]:
    S, H = (2, 5) if seed == 49 else (3, 3) if seed % 3 == 0 else (2, 4)
    P, R, rho = random_instance(rng, S, 2, H, sparse=seed % 4 == 1, stationary=seed % 4 == 2)
    R = R + (np.arange(S)[:, None] % 2 == np.arange(2))  # so that the action matters, and with it what is known
    return ol.TabularMDP(P, R, horizon=H, initial=rho / rho.sum()), P, np.broadcast_to(R, (H, S, 2)), rho / rho.sum()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_link_against_raw_histories(kind: Callable[[np.random.Generator, int], Kind]) -> None:
    """Exactly, and with a tolerance; by `solve`, and what its policies earn by `evaluate`."""
    differ = 0
    for seed in SEEDS:
        rng = np.random.default_rng([seed, 71])
        mdp, P, R, rho = instance(rng, seed)
        if kind in (lossy_in_order, hidden) and mdp.horizon > 3 and (seed % 4 or mdp.horizon > 4):
            mdp, P, R, rho = instance(rng, 0)  # raw histories of these, at longer horizons, take long
        channel, link = kind(rng, mdp.horizon)
        problem = ol.ImpairedMDP(mdp, channel)
        optimum = raw.value(P, R, rho, link)
        deep = min(problem.automaton.longest + 1, mdp.horizon - 1) if seed % 3 == 2 else None
        best = ol.solve(problem, depth=deep)
        assert best.exact, seed
        assert max(abs(best.lower - optimum), abs(best.upper - optimum)) < TOLERANCE, (seed, optimum, best, channel)
        assert abs(float(ol.evaluate(problem, best.policy)) - optimum) < TOLERANCE, (seed, channel)
        tolerance = float(rng.choice([0.3, 0.1, 0.01]))
        plan = ol.solve(problem, tolerance=tolerance)
        assert plan.upper - plan.lower <= tolerance
        assert plan.lower - TOLERANCE <= optimum <= plan.upper + TOLERANCE, (seed, optimum, plan, channel)
        earned = float(ol.evaluate(problem, plan.policy))
        assert plan.lower - TOLERANCE <= earned <= optimum + TOLERANCE, (seed, earned, plan)
        differ += optimum < ol.gap(problem).full - 1e-6
    assert differ >= len(SEEDS) // 2  # the link costs something in most of them


@pytest.mark.parametrize("kind", KINDS)
def test_late_actions(kind: Callable[[np.random.Generator, int], Kind]) -> None:
    for seed in range(repeats(6, 20)):  # 6: each size twice, each kind of numbers at least once
        rng = np.random.default_rng([seed, 73])
        mdp, P, R, rho = instance(rng, seed)
        channel, link = kind(rng, mdp.horizon)
        k = int(rng.integers(1, 3))
        pending = tuple(rng.integers(0, 2, k).tolist())
        best = ol.solve(ol.ImpairedMDP(mdp, channel, actuation=k, pending=pending))
        assert best.exact
        assert abs(best.value - raw.value(P, R, rho, link, pending=pending)) < TOLERANCE, seed


def test_the_in_order_automaton_is_the_delay_planner() -> None:
    for seed in range(30):
        rng = np.random.default_rng([seed, 74])
        mdp, _, _, _ = instance(rng, seed)
        table = np.array([pmf(rng, 3) for _ in range(mdp.horizon)])
        channel = ol.StochasticDelay(table[:, None, None, :], first=pmf(rng, 3)).capped(2)
        plan = plan_link(mdp, channel.automaton(mdp.horizon))
        assert abs(plan.lower - ol.solve(ol.ImpairedMDP(mdp, channel)).value) < TOLERANCE


def test_a_link_that_shows_the_newest_state_or_nothing_and_begins_with_several_ages() -> None:
    """No tables beyond corners, and at time 0 several nodes where nothing is seen, of one law: each is worth something else."""
    values = set()
    for seed in range(20):
        rng = np.random.default_rng([seed, 5])
        mdp, P, R, rho = instance(rng, seed)
        kernel = [np.append(np.append(p, np.zeros(m)), 1 - p) for m, p in enumerate(rng.random(3))]
        first = rng.dirichlet(np.ones(4))
        problem = ol.ImpairedMDP(mdp, ol.AgeChain(kernel, first=first))
        optimum = raw.value(P, R, rho, raw.Ages(kernel, first))
        best = ol.solve(problem)
        assert best.exact
        assert max(abs(best.lower - optimum), abs(best.upper - optimum)) < TOLERANCE, seed
        assert abs(float(ol.evaluate(problem, best.policy)) - optimum) < TOLERANCE, seed
        values.add(round(best.value, 6))
    assert len(values) == 20
