"""A sparse process is planned, valued, played and learned like the dense one with the same numbers, and no dense array is made of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import oldlight as ol
from oldlight.control.policy_arrays import tables_of
from oldlight.planning import heuristics
from oldlight.planning.augmented import augmented
from oldlight.planning.augmented import value as value_of
from oracle import random_instance

pytestmark = pytest.mark.usefixtures("no_dense_array")


def pair(seed: int, S: int = 5, A: int = 2, H: int = 5) -> tuple[ol.TabularMDP, ol.TabularMDP]:
    """The same process twice: dense, sparse."""
    stationary = seed % 2 == 0
    P, R, rho = random_instance(np.random.default_rng(seed), S, A, H, stationary=stationary, sparse=seed % 3 > 0)
    steps = [sparse.csr_array(step.reshape(S * A, S)) for step in P]
    dense = ol.TabularMDP(P[0] if stationary else P, R, horizon=H, initial=rho)
    return dense, ol.TabularMDP(steps[0] if stationary else steps, R, horizon=H, initial=rho)


CHANNELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "none": (ol.ConstantDelay(0), {}),
    "constant": (ol.ConstantDelay(1), {}),
    "warm": (ol.ConstantDelay(2), {"start": "warm"}),
    "late actions": (ol.ConstantDelay(1), {"actuation": 1, "pending": [1]}),
    "geometric": (ol.GeometricDelay(0.6).capped(3), {}),
    "of state and action": (ol.StochasticDelay(np.random.default_rng(0).dirichlet(np.ones(2), size=(5, 2))), {}),
}


@pytest.mark.crossed("kind", "seed")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", CHANNELS)
def test_plans_and_values_agree(kind: str, seed: int) -> None:
    channel, options = CHANNELS[kind]
    one, other = (ol.ImpairedMDP(mdp, channel, **options) for mdp in pair(seed))
    dense, plan = ol.solve(one), ol.solve(other)
    assert plan.value == pytest.approx(dense.value, abs=1e-12)
    assert plan.value_by_start == pytest.approx(dense.value_by_start, abs=1e-12)
    assert float(ol.evaluate(other, plan.policy)) == pytest.approx(dense.value, abs=1e-12)
    assert ol.gap(other).gap == pytest.approx(ol.gap(one).gap, abs=1e-12)
    for make in (heuristics.most_likely, heuristics.memoryless, heuristics.qmdp):
        assert float(ol.evaluate(other, make(other))) == pytest.approx(float(ol.evaluate(one, make(one))), abs=1e-12)
    infos = list(ol.Layout.of(one))
    possible = [info for info in infos if info.t != 0 or info.state is None or one.initial[info.state] > 0][::7]
    for info in possible:
        try:
            expected = ol.belief(one, info)
        except ValueError:
            with pytest.raises(ValueError, match="impossible"):
                ol.belief(other, info)
            continue
        assert ol.belief(other, info) == pytest.approx(expected, abs=1e-12)
        assert plan.q(info) == pytest.approx(dense.q(info), abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_episodes_learners_controllers_and_explicit_models_agree(seed: int) -> None:
    one, other = (ol.ImpairedMDP(mdp, ol.ConstantDelay(1)) for mdp in pair(seed))
    policy = ol.solve(one).policy
    assert np.array_equal(
        ol.simulate(one, policy, 200, seed=1).returns, ol.simulate(other, policy, 200, seed=1).returns
    )
    runs = [ol.learn(each, ol.learners.DelayedUCBVI(), 20, seed=2) for each in (one, other)]
    assert np.array_equal(runs[0].returns, runs[1].returns)
    assert runs[1].values == pytest.approx(runs[0].values, abs=1e-12)
    assert np.array_equal(*(tables_of(each, policy).likely for each in (one, other)))
    values = [value_of(augmented(each)) for each in (one, other)]
    assert values[1] == pytest.approx(values[0], abs=1e-12)
    assert ol.sweep(other.mdp, delays=[0, 1]).gap == pytest.approx(ol.sweep(one.mdp, delays=[0, 1]).gap, abs=1e-12)


def test_a_large_sparse_process_is_planned_like_by_products() -> None:
    """Delay 0 and 1 on 3,000 states against the plain recursions with scipy."""
    S, A, H, rng = 3000, 3, 4, np.random.default_rng(0)
    row = np.repeat(np.arange(S * A), 3)
    P = sparse.csr_array(
        (rng.dirichlet(np.ones(3), size=S * A).reshape(-1), (row, rng.integers(0, S, len(row)))), shape=(S * A, S)
    )
    R = rng.random((S, A))
    mdp = ol.TabularMDP(P, R, horizon=H)
    v, U = np.zeros(S), R.copy()
    for h in range(H):
        v = (R + (P @ v).reshape(S, A)).max(axis=1)
        if h < H - 1:
            U = R + (P @ U).max(axis=1).reshape(S, A)
    assert ol.solve(ol.ImpairedMDP(mdp, "none")).value == pytest.approx(v.mean(), abs=1e-12)
    assert ol.solve(ol.ImpairedMDP(mdp, "constant:1")).value == pytest.approx(U.mean(axis=0).max(), abs=1e-12)
