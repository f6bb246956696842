"""The compiled walk over what the tables' actions reach, against the walk over information states one by one."""

from __future__ import annotations

import numpy as np
import pytest

import oldlight as ol
from node_walk import walk_value
from oldlight.planning.ages import AgeTables
from oldlight.planning.link_plan import LinkPlan
from oldlight.planning.table_walk import can_be_walked, value_of_actions
from repeats import is_thorough

LINKS = {
    "packets": ol.PacketChannel([0.2, 0.3, 0.5], lost=0.4),
    "loss": ol.Loss(rate=0.6),
    "late and lossy": ol.Lossy(ol.ConstantDelay(1), rate=0.5),
    "periodic": ol.Periodic(3, delay=1, offset=1),
    "renewal": ol.RenewalLoss({0: 0.5, 2: 0.5}),
    "hidden": ol.HiddenLink([[0.8, 0.2], [0.4, 0.6]], [[0.7, 0.2], [0.1, 0.3]]),
}


def random_process(rng: np.random.Generator, certain: bool, H: int = 6) -> ol.TabularMDP:
    """Without certain successors, or one in which all states but one move to a state of their own."""
    S, A = int(rng.integers(2, 5)), 2
    P = rng.dirichlet(0.5 * np.ones(S), size=(H, S, A) if not certain and rng.random() < 0.5 else (S, A))
    if certain:
        for a in range(A):
            P[1:, a] = np.eye(S)[rng.permutation(S)[1:]]
    initial = np.eye(S)[-1] if rng.random() < 0.5 else rng.dirichlet(np.ones(S))
    return ol.TabularMDP(P, rng.random((S, A)), horizon=H, initial=initial)


def upper_tables(plan: LinkPlan) -> AgeTables:
    return AgeTables(plan.plant, plan._layers(plan.automaton.longest), bounded=False, kept=False).run()


@pytest.mark.crossed("channel", "certain")
@pytest.mark.parametrize("channel", LINKS.values(), ids=LINKS)
@pytest.mark.parametrize("certain", [False, True])
def test_the_walk_values_the_policy_of_the_tables(channel: ol.Channel, certain: bool) -> None:
    rng = np.random.default_rng(7)
    for late in (0, 0, 0, 0, 1, 1) if is_thorough() else (0, 0, 1):
        problem = ol.ImpairedMDP(random_process(rng, certain), channel, actuation=late, pending=(1,) * late)
        plan = LinkPlan(problem.mdp, problem.automaton, initial=problem.initial, pending=problem.pending)
        plan.tables = made = upper_tables(plan)
        assert made.layers.searched
        assert can_be_walked(plan.plant, made.layers)
        found = value_of_actions(made)
        assert abs(found - walk_value(problem.mdp, problem.automaton, plan.policy)) < 1e-12  # type: ignore[operator]
        best = plan.run()
        assert found <= best.upper + 1e-12
        assert best.lower <= made.upper_value + 1e-12


def test_laws_that_may_become_one_state_are_not_walked() -> None:
    """Two states with the same certain successor: what is known afterwards depends on the law, not on its weight."""
    P = np.full((3, 2, 3), 1 / 3)
    P[:2, 0] = [0.0, 0.0, 1.0]
    for tables, expected in ((P, False), (np.full((3, 2, 3), 1 / 3), True)):
        mdp = ol.TabularMDP(tables, np.arange(6.0).reshape(3, 2) % 4, horizon=5)
        plan = LinkPlan(mdp, LINKS["loss"].automaton(5))
        assert can_be_walked(plan.plant, plan._layers(0)) is expected


def test_no_lower_tables_are_made_where_the_walk_closes_the_gap() -> None:
    """A dense process, as in docs/benchmarks.md, smaller: the certificate is closed without a search."""
    rng = np.random.default_rng(0)
    mdp = ol.TabularMDP(rng.dirichlet(0.3 * np.ones(24), size=(24, 3)), rng.random((24, 3)), horizon=12)
    plan = LinkPlan(mdp, ol.PacketChannel([1 / 3] * 3, lost=0.1).automaton(12))
    plan.run(tolerance=0.01)
    assert plan.tables is not None
    assert not plan.tables.bounded
    assert plan.search is None
    assert plan.upper - plan.lower <= 0.01


def test_the_value_from_each_first_state() -> None:
    rng = np.random.default_rng(3)
    mdp = random_process(rng, certain=True)
    plan = LinkPlan(mdp, ol.Loss(seen=[1.0] + [0.5] * 5).automaton(6))
    plan.tables = upper_tables(plan)
    found = plan.walked_by_start()
    assert found is not None
    for s in np.flatnonzero(mdp.initial):
        start = np.eye(mdp.n_states)[s]
        assert abs(found[s] - walk_value(mdp, plan.automaton, plan.policy, initial=start)) < 1e-12  # type: ignore[operator]
    assert abs(mdp.initial @ found - value_of_actions(plan.tables)) < 1e-12
