"""The two ways of the search, corners settled last step first and where the policy goes: the same optimum, and bounds that hold when either is stopped."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from link_cases import plan_link
from node_walk import walk_value
from oldlight.model.channels.packets import PacketChannel
from oldlight.planning import link_plan
from oldlight.planning.ages import AgeTables
from oldlight.planning.link_plan import LinkPlan
from oldlight.planning.link_solution import plan_exactly
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


@pytest.mark.parametrize("seed", range(repeats(4, 8)))
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


@pytest.mark.parametrize("seed", range(repeats(2, 8)))
def test_settled_within_a_tolerance(seed: int) -> None:
    mdp = random_process(seed, S=4, A=3, H=6)
    for link in links(seed, 6):
        exact, rough = plan_link(mdp, link.automaton(6)), plan_link(mdp, link.automaton(6), tolerance=0.2)
        assert rough.lower <= exact.lower + TOLERANCE
        assert exact.lower <= rough.upper + TOLERANCE
        assert rough.upper - rough.lower <= 0.2 + TOLERANCE


def test_settling_that_is_stopped_leaves_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = random_process(3, S=4, A=3, H=6)
    plans = [plan_link(mdp, link.automaton(6)) for link in links(3, 6)]
    for link, exact in zip(links(3, 6), plans, strict=True):
        stopped = LinkPlan(mdp, link.automaton(6)).run(options=1)
        assert stopped.lower <= exact.lower + TOLERANCE
        assert exact.lower <= stopped.upper + TOLERANCE
        assert not isinstance(stopped.search, SettledSearch)
    monkeypatch.setattr(link_plan, "AT_ONCE", 0)  # after a first try
    monkeypatch.setattr(link_plan, "FEWEST_OPTIONS", 1)
    for link, exact in zip(links(3, 6), plans, strict=True):
        late = plan_link(mdp, link.automaton(6))
        assert abs(late.lower - exact.lower) < TOLERANCE
        assert late.exact


def drawn_problem(link: str, S: int = 14, H: int = 8) -> ol.ImpairedMDP:
    """Rows drawn as a posterior draws them, with very small probabilities."""
    rng = np.random.default_rng(5)
    rows = rng.standard_gamma(1 / S, size=(H, S, 2, S))
    return ol.ImpairedMDP(ol.TabularMDP(rows / rows.sum(-1, keepdims=True), rng.random((S, 2)), horizon=H), link)


@pytest.mark.parametrize("link", ["loss:0.5", "constant:1+loss:0.5"])
def test_a_search_that_forgets_finds_the_same(link: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    mdp = ol.TabularMDP(rng.dirichlet(np.ones(8), size=(12, 8, 3)), rng.random((8, 3)), horizon=12)
    problem, times = ol.ImpairedMDP(mdp, link), []
    monkeypatch.setattr("oldlight.planning.settling.FEWEST", 1)
    monkeypatch.setattr("oldlight.planning.settling.ENOUGH", 1)
    forget = SettledSearch._forget
    monkeypatch.setattr(SettledSearch, "_forget", lambda self: times.append(1) or forget(self))
    exact = plan_exactly(problem)
    assert isinstance(exact.policy, ol.BlackoutPolicy)
    assert not times
    for room in (2**17, 2**15, 1):
        times.clear()
        found = plan_exactly(problem, room=room)
        assert times
        assert found.exact
        assert abs(found.value - exact.value) <= 1e-12 * exact.value
        assert isinstance(found.policy, ol.BlackoutPolicy)
        assert np.array_equal(found.policy.sequences, exact.policy.sequences)


def test_a_search_that_forgets_has_no_table_of_decisions() -> None:
    problem = drawn_problem("loss:0.4", S=4, H=5)
    plan = LinkPlan(problem.mdp, problem.automaton, settle_all=True).run()
    with pytest.raises(AssertionError, match="use its sequences"):
        _ = plan.policy


def test_a_plan_that_is_not_used_any_more_is_free_at_once() -> None:
    """Not only when the collector comes: a learner makes one plan after the other."""
    gc.collect()
    gc.disable()
    try:
        for link in ("loss:0.4", "constant:1+loss:0.3", "packets:0=0.7,1=0.3+loss:0.2"):
            problem = drawn_problem(link, S=4, H=5)
            plan = LinkPlan(problem.mdp, problem.automaton).run(tolerance=1e-6)
            held = [weakref.ref(plan), weakref.ref(plan.tables), weakref.ref(plan.search)]
            del plan
            assert [x() for x in held] == [None] * 3, link
    finally:
        gc.enable()


def test_probabilities_whose_product_is_zero_are_in_no_law() -> None:
    """1e-200 times 1e-200 is 0: a place of such a law was listed once for each way to it, beyond the end of the list."""
    S, H = 7, 6
    rng = np.random.default_rng(2)
    P = np.full((S, 2, S), 1e-200)
    P[np.arange(S), :, rng.permutation(S)] = 1.0
    P[0] = 1e-200
    P[0, :, :3] = [0.3, 0.3, 0.4]
    mdp = ol.TabularMDP(P, rng.random((S, 2)), horizon=H)
    zeros = ol.TabularMDP(np.where(P > 1e-100, P, 0.0), mdp.rewards[0], horizon=H)
    for link in (ol.Loss(rate=0.4), ol.Lossy(ol.ConstantDelay(1), rate=0.3), PacketChannel([0.6, 0.4], lost=0.3)):
        for options in ({}, {"tolerance": 1e-3}):
            plan = plan_link(mdp, link.automaton(H), **options)
            assert plan.search is not None
            graph, n = plan.search._graph, plan.search.states
            laws = [row for row in graph.whole[:n] if row[2] < 0]
            assert laws
            for row in laws:
                places = graph.place[row[3] : row[3] + row[4]]
                assert len(np.unique(places)) == len(places)
            assert abs(plan.lower - plan_link(zeros, link.automaton(H), **options).lower) < 1e-3


def partly_certain(seed: int, S: int, A: int, H: int) -> ol.TabularMDP:
    """Half of the rows lead to one state alone, so that a state is often known without being seen; transitions and rewards change with time."""
    rng = np.random.default_rng([seed, 17])
    P = rng.dirichlet(np.ones(S), size=(H, S, A))
    certain = rng.random((H, S, A)) < 0.5
    P[certain] = np.eye(S)[rng.integers(0, S, certain.sum())]
    return ol.TabularMDP(P, rng.random((H, S, A)), horizon=H)


@pytest.mark.parametrize("seed", range(repeats(4, 12)))
def test_looking_ahead_by_a_table_and_by_the_next_law(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    H = 6
    for mdp in (random_process(seed, S=4, A=3, H=H), partly_certain(seed, S=4, A=3, H=H)):
        for link in (links(seed, H)[0], links(seed, H)[3], links(seed, H)[4]):
            found = []
            for size in (2**28, 0):
                monkeypatch.setattr("oldlight.planning.search.TABLE", size)
                plan = plan_link(mdp, link.automaton(H))
                assert isinstance(plan.search, SettledSearch)
                assert (plan.search._settled.ahead.size > 0) == (size > 0)
                found.append(plan)
            for name in ("upper", "lower"):  # of every corner
                one, other = (getattr(plan.tables, name) for plan in found)
                assert np.abs(one - other).max() < TOLERANCE, (link, name)
            for plan in found:
                earned = walk_value(mdp, link.automaton(H), plan.policy)
                assert earned is not None
                assert abs(earned - plan.lower) < TOLERANCE, link


@pytest.mark.parametrize("seed", range(repeats(6, 20)))
def test_the_sequences_that_are_written_down_are_those_of_the_plan(seed: int) -> None:
    """Read off corner by corner as well, by closing each law of its blackout once more."""
    for mdp in (random_process(seed, S=4, A=3, H=6), partly_certain(seed, S=4, A=3, H=6)):
        for link in links(seed, 6)[:2]:
            plan = plan_link(mdp, link.automaton(6))
            search = plan.search
            assert isinstance(search, SettledSearch)
            written, D = search.corner_sequences, plan.depth
            assert written.shape == (6 - D, 4 * 3**D, 6 - D)
            for h in range(D, 6):
                corners = np.eye(4).repeat(3**D, axis=0)
                followed = search.sequences(h, corners, np.tile(np.arange(3**D), 4))
                assert np.array_equal(written[h - D, :, : 6 - h], followed), (link, h)
                assert not written[h - D, :, 6 - h :].any()


def test_links_with_several_blackouts_have_no_table_of_sequences() -> None:
    mdp = random_process(0, S=3, A=2, H=5)
    for link in links(0, 5)[3:]:
        search = plan_link(mdp, link.automaton(5)).search
        assert isinstance(search, SettledSearch)
        assert search.corner_sequences.size == 0


@pytest.mark.parametrize("room", [10**9, 4 * 8 * 21 * 40 * 16, 4 * 8 * 21 * 40 * 16 - 1, 1])
def test_the_table_of_outlooks_is_part_of_the_room(room: int) -> None:
    """H + 1 times S corners, 3 actions, of each what is earned from below and above and three sums, in whole lines of eight numbers: a quarter of the room,
    or none of it."""
    rng = np.random.default_rng(0)
    mdp = ol.TabularMDP(rng.dirichlet(np.ones(40), size=(40, 3)), rng.random((40, 3)), horizon=20)
    plan = LinkPlan(mdp, ol.Loss(rate=0.1).automaton(20))
    tables = AgeTables(plan.plant, plan._layers(0), True, True)
    search = SettledSearch(tables, room, forgets=True)
    table = search._settled.ahead.nbytes
    assert table == (8 * 21 * 40 * 16 if room >= 4 * 8 * 21 * 40 * 16 else 0)
    if room == 10**9:
        assert search.max_bytes + table == room
        assert table < search.bytes
