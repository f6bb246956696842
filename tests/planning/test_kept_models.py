"""What is made of a problem once is used again, gives the same plan, and does not travel with it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import oldlight as ol
from oldlight.planning.delay import DelayModel


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


def test_what_was_made_of_a_problem_is_not_pickled() -> None:
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:2")
    size = len(pickle.dumps(problem))
    value = ol.solve(problem).value
    assert DelayModel.of(problem).layout.size > 0
    sent = pickle.dumps(problem)
    assert b"kernels" not in sent
    assert len(sent) < size + 5_000  # cached laws, no tables
    assert ol.solve(pickle.loads(sent)).value == value
