"""Numbers that no plan could have are refused at once; what is long but small is quick."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oldlight as ol

MDP = ol.TabularMDP(np.full((2, 3, 2), 0.5), np.eye(2, 3), horizon=6)
CHANNELS = [
    ol.ConstantDelay(0),
    ol.ConstantDelay(2),
    ol.ConstantDelay(40),
    ol.GeometricDelay(0.5).capped(3),
    ol.GeometricDelay(0.4, first="same"),
    ol.BernoulliDelay(0.5),
    ol.StochasticDelay([0.2, 0.0, 0.8], first=[0.0, 0.5, 0.0, 0.5]),
]


@pytest.mark.parametrize("actuation", [0, 2])
@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
def test_a_layout_has_the_blocks_that_can_be_met(channel: Any, actuation: int) -> None:
    """One by one: step t came d late, and for δ steps nothing newer."""
    problem = ol.ImpairedMDP(MDP, channel, actuation=actuation)
    law, S, A, H = problem.law, 2, 3, 6
    layout, size = ol.Layout.of(problem), 0
    possible = law.feasible_delays
    for h in range(H):
        here = 0
        for m in range(min(h, law.longest_delay) + 1):
            for waited in range(m + 1):
                t = h - m
                if waited <= law.longest_wait(t) and possible[t, m - waited]:
                    assert layout.offset[h, m, waited] == size
                    size, here = size + S * A**m, here + S * A**m
                elif m < layout.offset.shape[1]:
                    assert layout.offset[h, m, waited] == -1
        assert layout.entries[h] == here + (S * A**h if layout.root[h] >= 0 else 0)
    for h in range(H):
        unseen = law.first[h + 1 :].sum() > 0
        assert layout.root[h] == (size if unseen else -1)
        size += A**h if unseen else 0
    assert layout.size == size


def test_a_long_horizon_with_a_short_delay_is_small() -> None:
    long = ol.ImpairedMDP(MDP.replace(horizon=100_000), ol.ConstantDelay(1))
    layout = ol.Layout.of(long)
    assert layout.size == 1 + (100_000 - 1) * 6
    assert long.law.possible_delays.shape == (100_000, 2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ol.ImpairedMDP(MDP, ol.ConstantDelay(10**7), start="warm"),
        lambda: ol.ImpairedMDP(MDP, "constant:1e9"),
        lambda: ol.ImpairedMDP(MDP, "none", actuation=10**7),
        lambda: MDP.replace(horizon=10**9),
        lambda: ol.solve(ol.ImpairedMDP(MDP, ol.ConstantDelay(10**6), start="warm")),
        lambda: ol.solve(ol.ImpairedMDP(MDP.replace(horizon=100), ol.ConstantDelay(63))),
        lambda: ol.learn(
            ol.ImpairedMDP(MDP.replace(horizon=100), ol.ConstantDelay(35)), ol.learners.DelayedUCBVI(), 2, seed=0
        ),
        lambda: ol.TabularMDP(np.broadcast_to(1e-6, (10**6, 2, 10**6)), np.zeros((10**6, 2)), horizon=3),
    ],
)
def test_absurd_numbers_are_refused_at_once(make: Any) -> None:
    with pytest.raises(ol.TooLarge):
        make()
