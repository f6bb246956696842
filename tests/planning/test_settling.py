"""The two ways of the search, corners settled last step first and where the policy goes: the same optimum, and bounds that hold when either is stopped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oldlight as ol
from link_cases import plan_link
from node_walk import walk_value
from oldlight.model.channels.packets import PacketChannel
from oldlight.planning import link_plan
from oldlight.planning.link_plan import LinkPlan
from oldlight.planning.settling import SettledSearch
from repeats import repeats
from test_search import random_process

TOLERANCE = 1e-10


def links(seed: int, H: int) -> list[Any]:
    rng = np.random.default_rng([seed, 91])
    lost = float(rng.uniform(0.05, 0.95))
    return [
        ol.Loss(seen=rng.uniform(0.05, 0.95, H)),
        ol.Lossy(ol.ConstantDelay(int(rng.integers(1, 3))), rate=lost),
        PacketChannel(rng.dirichlet(np.ones(3)), lost=lost),
        ol.BurstyLoss(to_bad=0.2, to_good=0.4),
        ol.RenewalLoss([0.5, 0.2, 0.3]),
        ol.HiddenLink([[0.8, 0.2], [0.4, 0.6]], [[0.7, 0.2], [0.1, 0.3]]),
    ]


@pytest.mark.parametrize("seed", range(8))
def test_settled_corners_and_where_the_policy_goes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = random_process(seed, S=3, A=2, H=5)
    found = [plan_link(mdp, link.automaton(5)) for link in links(seed, 5)]
    assert all(isinstance(plan.search, SettledSearch) for plan in found)
    monkeypatch.setattr(LinkPlan, "_few_corners", lambda *_: False)
    for settled, link in zip(found, links(seed, 5), strict=True):
        other = plan_link(mdp, link.automaton(5))
        assert not isinstance(other.search, SettledSearch)
        assert settled.exact
        assert other.exact
        assert abs(settled.lower - other.lower) < TOLERANCE, link
        earned = walk_value(mdp, link.automaton(5), settled.policy)
        assert earned is not None
        assert abs(earned - settled.lower) < TOLERANCE, link


@pytest.mark.parametrize("seed", range(repeats(4, 8)))
def test_settled_within_a_tolerance(seed: int) -> None:
    mdp = random_process(seed, S=4, A=3, H=6)
    for link in links(seed, 6):
        exact, rough = plan_link(mdp, link.automaton(6)), plan_link(mdp, link.automaton(6), tolerance=0.2)
        assert rough.lower <= exact.lower + TOLERANCE
        assert exact.lower <= rough.upper + TOLERANCE
        assert rough.upper - rough.lower <= 0.2 + TOLERANCE


def test_settling_that_is_stopped_leaves_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = random_process(3, S=4, A=3, H=6)
    for link in links(3, 6):
        exact = plan_link(mdp, link.automaton(6))
        stopped = LinkPlan(mdp, link.automaton(6)).run(options=1)
        assert stopped.lower <= exact.lower + TOLERANCE
        assert exact.lower <= stopped.upper + TOLERANCE
        assert not isinstance(stopped.search, SettledSearch)
    monkeypatch.setattr(link_plan, "AT_ONCE", 0)  # after a first try
    monkeypatch.setattr(link_plan, "FEWEST_OPTIONS", 1)
    for link in links(3, 6):
        late = plan_link(mdp, link.automaton(6))
        assert abs(late.lower - plan_link(mdp, link.automaton(6), tolerance=0.0).lower) < TOLERANCE
        assert late.exact
