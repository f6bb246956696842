"""What must hold on every process: information never hurts, names do not matter, certainty costs nothing."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oldlight as ol
from conftest import random_mdp

TOLERANCE = 1e-10
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=25, deadline=None)


def value_iteration(mdp: ol.TabularMDP) -> float:
    V = np.zeros(mdp.n_states)
    for h in range(mdp.horizon - 1, -1, -1):
        V = (mdp.rewards[h] + mdp.transitions[h] @ V).max(axis=1)
    return float(mdp.initial @ V)


def value(mdp: ol.TabularMDP, channel: object, start: ol.WarmStart | None = None) -> float:
    return ol.solve(ol.ImpairedMDP(mdp, channel, start=start)).value  # type: ignore[arg-type]


@few
@given(seeds)
def test_no_impairment_is_value_iteration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, *(int(x) for x in rng.integers(1, 7, 3)))
    plain = value_iteration(mdp)
    for channel in (ol.ConstantDelay(0), ol.Loss(seen=1.0), ol.GeometricDelay(1.0), ol.BernoulliDelay(1.0)):
        assert value(mdp, channel) == pytest.approx(plain, abs=TOLERANCE)


@few
@given(seeds)
def test_more_delay_never_helps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 3, 2, 5)
    values = [value(mdp, ol.ConstantDelay(d)) for d in range(7)]
    assert all(a >= b - TOLERANCE for a, b in pairwise(values))
    assert values[5] == pytest.approx(values[6], abs=TOLERANCE)  # both see nothing in time
    slower = [value(mdp, ol.GeometricDelay(p)) for p in (1.0, 0.7, 0.4, 0.0)]
    assert all(a >= b - TOLERANCE for a, b in pairwise(slower))
    capped = [value(mdp, ol.GeometricDelay(0.4).capped(k)) for k in range(5)]
    assert all(a >= b - TOLERANCE for a, b in pairwise(capped))


@few
@given(seeds)
def test_more_loss_never_helps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 3, 3, 5)
    values = [value(mdp, ol.Loss(rate=rate)) for rate in (0, 0.1, 0.4, 0.8, 1)]
    assert all(a >= b - TOLERANCE for a, b in pairwise(values))
    assert values[-1] == pytest.approx(value(mdp, ol.ConstantDelay(5)), abs=TOLERANCE)  # blind either way


@few
@given(seeds)
def test_one_step_less_delay_is_worth_something(seed: int) -> None:
    """V^d_h(s, q1..qd) ≤ r(s, q1) + Σ P(s2|s, q1) V^{d−1}_h(s2, q2..qd), with rewards counted from step h on."""
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 2, 2, 5)
    d = int(rng.integers(1, 4))
    late = ol.solve(ol.ImpairedMDP(mdp, ol.ConstantDelay(d)))
    sooner = ol.solve(ol.ImpairedMDP(mdp, ol.ConstantDelay(d - 1)))
    for t in range(5 - d):
        queue = tuple(int(a) for a in rng.integers(0, 2, d))
        for s in range(2):
            known = sum(
                mdp.transitions[t, s, queue[0], s2] * sooner.value_at(ol.Information.seen(t + 1, s2, queue[1:]))
                for s2 in range(2)
            )
            assert late.value_at(ol.Information.seen(t, s, queue)) <= known + TOLERANCE


@few
@given(seeds)
def test_relabelling_changes_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 4, 3, 4)
    s, a = rng.permutation(4), rng.permutation(3)
    other = ol.TabularMDP(
        mdp.transitions[:, s][:, :, a][:, :, :, s], mdp.rewards[:, s][:, :, a], horizon=4, initial=mdp.initial[s]
    )
    for channel, start in (
        (ol.ConstantDelay(2), None),
        (ol.ConstantDelay(1), ol.WarmStart()),
        (ol.GeometricDelay(0.6), None),
        (ol.Loss(seen=0.6), None),
    ):
        assert value(mdp, channel, start) == pytest.approx(value(other, channel, start), abs=TOLERANCE)


@few
@given(seeds)
def test_certainty_costs_nothing(seed: int) -> None:
    """Deterministic transitions and a known start: the agent can count along, whatever the link does."""
    rng = np.random.default_rng(seed)
    S, A, H = 4, 2, 5
    P = np.eye(S)[rng.integers(0, S, (H, S, A))]
    mdp = ol.TabularMDP(P, rng.random((H, S, A)), horizon=H, initial=np.eye(S)[rng.integers(S)])
    for channel in (ol.ConstantDelay(3), ol.GeometricDelay(0.3, first="same"), ol.Loss(seen=0.2), ol.Loss(seen=0.0)):
        assert ol.gap(ol.ImpairedMDP(mdp, channel)).gap == pytest.approx(0.0, abs=TOLERANCE)


@few
@given(seeds)
def test_rewards_may_be_any_finite_numbers(seed: int) -> None:
    """Shifting and scaling rewards shifts and scales the value."""
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 3, 2, 4)
    other = mdp.replace(rewards=-1000.0 + 50.0 * mdp.rewards)
    for channel in (ol.ConstantDelay(2), ol.Loss(seen=0.5)):
        assert value(other, channel) == pytest.approx(-4000.0 + 50.0 * value(mdp, channel), abs=1e-8)


def test_dense_and_sparse_kernels_agree(rng: np.random.Generator) -> None:
    """The same process with lists of successors and with a matrix product, tiles and threads included."""
    import oldlight.model.successors as successors

    P = rng.dirichlet(np.ones(12), size=(12, 6))
    mdp = ol.TabularMDP(P, rng.random((12, 6)), horizon=6)
    problem = ol.ImpairedMDP(mdp, ol.StochasticDelay([[[[0.5, 0.5]]]], first=[0.2, 0.3, 0.5]).capped(4))
    dense = ol.solve(problem)
    assert successors.Successors.of(mdp.matrix()).dense
    with pytest.MonkeyPatch.context() as patch:
        original = successors.Successors.of
        patch.setattr(successors.Successors, "of", classmethod(lambda cls, P: _listed(original(P))))
        sparse = ol.solve(ol.ImpairedMDP(mdp.replace(), problem.channel))  # a process that remembers no lists
    assert dense.value == pytest.approx(sparse.value, abs=1e-12)
    assert dense.value_by_start == pytest.approx(sparse.value_by_start, abs=1e-12)
    assert float(ol.evaluate(problem, dense.policy)) == pytest.approx(sparse.value, abs=1e-12)


def _listed(successors: object) -> object:
    import dataclasses

    return dataclasses.replace(successors, matrix=successors.matrix[:0])  # type: ignore[attr-defined, type-var]


def test_threads_do_not_change_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.ConstantDelay(6), start=ol.WarmStart())
    tables = []
    for threads in ("1", "3"):
        monkeypatch.setenv("OLDLIGHT_THREADS", threads)
        tables.append(ol.solve(problem).policy.actions)  # type: ignore[union-attr]
    assert np.array_equal(*tables)
