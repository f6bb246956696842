"""What is made of a problem once is used again, gives the same plan, and does not travel with it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import oldlight as ol
from oldlight.planning.delay import DelayModel
from oracle import optimal_value, random_instance


@pytest.mark.parametrize("channel", ["constant:2", "bernoulli:0.5"])
def test_the_second_plan_of_a_problem_is_that_of_a_new_one(channel: str) -> None:
    chain = ol.instances.sensing_chain(0.8, n_states=6)
    problem = ol.ImpairedMDP(chain, channel)
    plans = [ol.solve(problem), ol.solve(problem), ol.solve(ol.ImpairedMDP(chain, channel))]
    tables = [plan.policy.actions for plan in plans]  # type: ignore[attr-defined]
    assert tables[0] is not tables[1]
    for plan, table in zip(plans, tables, strict=True):
        assert plan.value == plans[0].value
        np.testing.assert_array_equal(table, tables[0])
    assert DelayModel.of(problem) is DelayModel.of(problem)
    assert ol.Layout.of(problem) is ol.Layout.of(problem)
    changed = problem.behind("constant:1")
    assert ol.Layout.of(changed).size != ol.Layout.of(problem).size


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("stationary", [False, True])
def test_processes_of_one_size_share_their_places_and_not_their_numbers(warm: bool, stationary: bool) -> None:
    rng, problems = np.random.default_rng(5), []
    for _ in range(2):
        P, R, rho = random_instance(rng, 2, 2, 3, stationary=stationary)
        mdp = ol.TabularMDP(P, R, horizon=3, initial=rho)
        problem = ol.ImpairedMDP(mdp, ol.ConstantDelay(1), start="warm" if warm else None)
        first = None if warm else [0.0, 1.0]
        expected = optimal_value(P, R, rho, first=first, warm_delay=1 if warm else None)
        assert ol.solve(problem).value == pytest.approx(expected, abs=1e-12)
        problems.append(problem)
    one, two = problems
    assert ol.Layout.of(one) is ol.Layout.of(two)
    assert DelayModel.of(one).schedule("two times") is DelayModel.of(two).schedule("two times")
    later = ol.ImpairedMDP(
        two.mdp, ol.ConstantDelay(0), actuation=1
    )  # the same delay of what is seen, the other kind of it
    assert ol.solve(later).value == pytest.approx(
        optimal_value(P, R, rho, actuation=1, initial_actions=(0,)), abs=1e-12
    )


def test_what_was_made_of_a_problem_is_not_pickled() -> None:
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:2")
    size = len(pickle.dumps(problem))
    value = ol.solve(problem).value
    assert DelayModel.of(problem).layout.size > 0
    sent = pickle.dumps(problem)
    assert b"kernels" not in sent
    assert len(sent) < size + 5_000  # cached laws, no tables
    assert ol.solve(pickle.loads(sent)).value == value
