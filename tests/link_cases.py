"""Links for the tests of whatever plays them, and the exact law of their ages by enumeration."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np

import oldlight as ol
from oldlight.model.channels import (
    AgeChain,
    ChannelAutomaton,
    FIFODelay,
    HeldLag,
    HiddenLink,
    PacketChannel,
    Periodic,
    RenewalLoss,
)
from oldlight.planning.link_plan import LinkPlan
from played import chi_square

HORIZON = 5
CHANNELS: list[Any] = [
    PacketChannel({0: 0.3, 1: 0.3, 2: 0.4}, lost=0.2),
    PacketChannel([0.5, 0.5]),
    FIFODelay([0.3, 0.3, 0.4]),
    AgeChain([[0.6, 0.4], [0.2, 0.5, 0.3], [0.1, 0.2, 0.3, 0.4]]),
    AgeChain([[0.6, 0.4], [0.2, 0.5, 0.3]], first=[0.2, 0.3, 0.5]),
    RenewalLoss([0.5, 0.3, 0.0, 0.2]),
    Periodic(3, delay=1, offset=2),
    HeldLag([0.3, 0.3, 0.4], hold=0.6),
    HiddenLink([[0.7, 0.3], [0.4, 0.6]], [[0.6, 0.4], [0.1, 0.3]]),
]


def age_law(automaton: ChannelAutomaton) -> dict[tuple[int, ...], float]:
    """The law of the ages of times 0..H−1 (−1: nothing seen), by enumeration."""
    paths: dict[tuple[tuple[int, ...], int], float] = {((), len(automaton.nodes)): 1.0}
    for _ in range(automaton.horizon):
        longer: dict[tuple[tuple[int, ...], int], float] = defaultdict(float)
        for (ages, n), weight in paths.items():
            for p, to, age in automaton.row(n):
                before = ages[-1] if ages else -1
                now = age if age >= 0 else before + 1 if before >= 0 else -1
                longer[(*ages, now), to] += weight * p
        paths = longer
    law: dict[tuple[int, ...], float] = defaultdict(float)
    for (ages, _), weight in paths.items():
        law[ages] += weight
    return dict(law)


def ages_of(arrivals: Any) -> list[tuple[int, ...]]:
    """The ages of each episode, from arrival times [step, episode] (−1: never)."""
    H = len(arrivals)
    out = np.full(arrivals.shape, -1)
    for h in range(H):
        for i in range(h + 1):
            there = (arrivals[i] >= 0) & (arrivals[i] <= h)
            out[h][there] = h - i
    return [tuple(column) for column in out.T.tolist()]


def assert_law(drawn: list[tuple[int, ...]], law: dict[tuple[int, ...], float]) -> None:
    """χ² against the exact law: impossible outcomes never, p-value above 1e-4."""
    assert len(law) == 1 or chi_square(Counter(drawn), law) > 1e-4
    assert set(drawn) <= set(law)


BY_NODES: list[Any] = [
    *CHANNELS,
    ol.BurstyLoss(0.3, 0.4, 0.9, 0.2),
    ol.Lossy(ol.GeometricDelay(0.5).capped(2), rate=0.3),
]


def names(channel: Any) -> str:
    return repr(channel)[:40]


def guessing(horizon: int = HORIZON) -> ol.TabularMDP:
    """Three states that move by chance, a little by the action; the reward is for naming the state: what is seen counts."""
    stay = np.array([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]])
    P = np.stack([stay, 0.8 * stay + 0.2 * np.roll(stay, 1, axis=1), 0.5 * stay + 0.5 / 3], axis=1)
    return ol.TabularMDP(P, np.eye(3) + 0.1 * np.arange(3), horizon=horizon, initial=[0.5, 0.3, 0.2])


def plan_link(
    mdp: ol.TabularMDP,
    automaton: ChannelAutomaton,
    *,
    tolerance: float = 0.0,
    seconds: float | None = None,
    depth: int | None = None,
    **how: Any,
) -> LinkPlan:
    """The plan behind `automaton`, as `solve` makes it of a problem."""
    return LinkPlan(mdp, automaton, **how).run(tolerance, seconds, depth)
