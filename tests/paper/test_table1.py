"""docs/scripts/table1.py: its exact accounts against the planner on the chain with all five actions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.planning.heuristics import memoryless

PRINTED, SENSING = "turns at 10, pays in 10 and 11", "right, left, stay (the sensing chain)"
BEST, STALE, _ = POLICIES = (
    "best executable",
    "full-information plan on the newest state",
    "best executable, at random until something is seen",
)


@pytest.fixture(scope="module")
def table1() -> Any:
    import table1

    return table1


def warm(mdp: ol.TabularMDP, d: int) -> ol.ImpairedMDP:
    return ol.ImpairedMDP(mdp, ol.ConstantDelay(d), start=ol.WarmStart())


@pytest.mark.parametrize("p", [0.99, 0.8])
def test_the_right_account_is_the_gap(table1: Any, p: float) -> None:
    """On the stated chain 0; on the sensing chain the planner's figure, with five actions instead of three with weights."""
    assert table1.POLICIES == POLICIES
    sensing = ol.instances.sensing_chain(p)
    for d in (1, 2, 3):
        exact = ol.gap(warm(sensing, d)).gap
        assert table1.gaps(SENSING, p, "past", d, 0.0)[BEST, "all rewards", "total"] == pytest.approx(exact, abs=1e-10)
        stated = table1.gaps(PRINTED, p, "past", d, 0.0)
        assert stated[BEST, "all rewards", "total"] == pytest.approx(0, abs=1e-10)
        assert stated[STALE, "all rewards", "total"] == pytest.approx(0, abs=1e-10)
    for q in (0.9, 0.3):
        exact = ol.gap(ol.ImpairedMDP(sensing, ol.BernoulliDelay(q), start=ol.WarmStart())).gap
        assert table1.gaps(SENSING, p, "past", None, q)[BEST, "all rewards", "total"] == pytest.approx(exact, abs=1e-10)


def test_wrong_accounts_are_what_they_say(table1: Any) -> None:
    """Each against the planner: other starts, lost rewards, the plan on the newest state, scales, the chain itself."""
    sensing, d = ol.instances.sensing_chain(0.8), 2
    found = table1.gaps(SENSING, 0.8, "past", d, 0.0)
    price = ol.gap(warm(sensing, d))
    R = np.array(sensing.rewards)
    R[-d:] = 0.0
    short = ol.gap(warm(sensing.replace(rewards=R), d))
    assert found[BEST, "late rewards lost", "total"] == pytest.approx(price.full - short.impaired, abs=1e-10)
    assert found[BEST, "late rewards lost on both sides", "total"] == pytest.approx(short.value, abs=1e-10)
    stale = ol.evaluate(warm(sensing, d), memoryless(warm(sensing, d))).value
    assert found[STALE, "all rewards", "total"] == pytest.approx(price.full - stale, abs=1e-10)
    assert found[BEST, "all rewards", "per step (H + d)"] == pytest.approx(price.gap / 12, abs=1e-11)
    assert found[BEST, "all rewards", "share of the value"] == pytest.approx(price.relative, abs=1e-11)
    other = table1.gaps(SENSING, 0.8, "past, full information from uniform", d, 0.0)
    full = ol.solve(ol.ImpairedMDP(sensing, ol.ConstantDelay(0))).value
    assert other[BEST, "all rewards", "total"] == pytest.approx(full - price.impaired, abs=1e-10)
    cold = ol.gap(ol.ImpairedMDP(sensing, ol.ConstantDelay(d))).gap
    unseen = table1.gaps(SENSING, 0.8, "uniform, unseen", d, 0.0)
    assert unseen[BEST, "all rewards", "total"] == pytest.approx(cold, abs=1e-10)
    known = [ol.gap(ol.ImpairedMDP(sensing.replace(initial=e), ol.ConstantDelay(d))).gap for e in np.eye(20)]
    seen = table1.gaps(SENSING, 0.8, "uniform, seen", d, 0.0)
    assert seen[BEST, "all rewards", "total"] == pytest.approx(np.mean(known), abs=1e-10)
    chain = table1.chain(0.99)
    stated = ol.instances.center_chain(0.99)
    assert np.array_equal(chain.P, stated.transitions[0][:, :2])
    assert np.array_equal(chain.R, stated.rewards[0][:, :2])
