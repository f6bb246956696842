"""A delay that is certain is played as a constant one, however its law is written: no random number is drawn for it, and none may be read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.planning.heuristics import full_information
from oldlight.simulation.world import CHUNK

S, H = 4, 8
MDP = ol.TabularMDP(np.full((S, S, S), 1 / S), np.eye(S), horizon=H)
LAWS: list[tuple[Any, Any]] = [
    (ol.BernoulliDelay(1.0), ol.ConstantDelay(0)),
    (ol.GeometricDelay(1.0), ol.ConstantDelay(0)),
    (ol.StochasticDelay([1.0, 0.0]), ol.ConstantDelay(0)),
    (ol.StochasticDelay([1.0, 0.0, 0.0], first=[0.0, 0.0, 1.0]), ol.ConstantDelay(2)),
    (ol.Lossy(ol.BernoulliDelay(1.0), seen=0.7), ol.Lossy(ol.ConstantDelay(0), seen=0.7)),
]


def repeat(info: ol.Information) -> int:
    """The newest visible state, as an action."""
    return 0 if info.state is None else info.state


def policies(problem: ol.ImpairedMDP) -> list[Any]:
    found: list[Any] = [ol.FunctionPolicy(repeat, S), full_information(problem)]
    if problem.loss is None:
        found += [ol.solve(problem, progress=False).policy]
        layout = ol.Layout.of(problem)
        weights = np.random.default_rng(1).dirichlet(np.ones(S), size=layout.size)
        found += [ol.TablePolicy(layout, action_probabilities=weights)]
    return found


@pytest.mark.parametrize(("law", "same"), LAWS, ids=repr)
def test_certain_delays_are_constant_ones(law: Any, same: Any) -> None:
    problem, other = ol.ImpairedMDP(MDP, law), ol.ImpairedMDP(MDP, same)
    for policy, its in zip(policies(problem), policies(other), strict=True):
        expected = ol.simulate(other, its, CHUNK + 100, seed=3)
        for _ in range(3):
            left = [np.full(300, 1e3) for _ in range(50)]  # numbers that a loop would read past the end of its own
            del left
            found = ol.simulate(problem, policy, CHUNK + 100, seed=3)
            np.testing.assert_array_equal(found.returns, expected.returns)
            np.testing.assert_array_equal(found.ages, expected.ages)
