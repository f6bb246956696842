"""Bounds by products under loss: they hold, their policy earns the lower one, and they close; against the planner that solves every corner."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.planning import large_loss
from oldlight.planning.blackout import blackout_values
from oldlight.planning.informed import InformedBounds
from oldlight.planning.large_loss import plan_large_loss
from oldlight.planning.link_plan import LinkPlan
from oldlight.planning.link_solution import plan_exactly
from oldlight.planning.solution import PlanOptions


def small(seed: int) -> ol.ImpairedMDP:
    """A random process, stationary or not, behind loss, late or not, with late actions or without."""
    rng = np.random.default_rng(seed)
    S, A, H = 4, int(rng.integers(2, 4)), int(rng.integers(1, 6))
    shape = (S, A) if rng.random() < 0.5 else (H, S, A)
    P = rng.dirichlet(np.ones(S) * 0.5, size=shape)
    if rng.random() < 0.3:
        P = np.eye(S)[rng.integers(S, size=shape)]  # certain and sparse
    mdp = ol.TabularMDP(P, rng.normal(size=shape), horizon=H, initial=rng.dirichlet(np.ones(S)))
    d = int(rng.integers(0, 3))
    rate = rng.random(H) if d == 0 and rng.random() < 0.3 else float(rng.random())
    link: Any = ol.Loss(rate=rate) if d == 0 else ol.Lossy(ol.ConstantDelay(d), rate=rate)
    return ol.ImpairedMDP(mdp, link, actuation=int(rng.random() < 0.3))


@pytest.mark.parametrize("seed", range(60))
def test_bounds_hold_close_and_are_earned(seed: int) -> None:
    problem = small(seed)
    best = plan_exactly(problem).value
    bounds = InformedBounds(problem)
    for _ in range(problem.horizon + 1):
        bounds.run(0.0)
        assert bounds.lower - 1e-12 <= best <= bounds.upper + 1e-12
        starts = blackout_values(problem, bounds.policy())
        assert np.allclose(starts, bounds.low_by_start, atol=1e-12)
        assert float(problem.initial @ starts) == pytest.approx(bounds.lower, abs=1e-12)
    assert bounds.upper - best < 1e-10  # every level was looked at
    assert best - bounds.lower < 1e-10  # every plan was kept


@pytest.mark.parametrize("seed", range(20))
def test_values_of_actions_are_those_of_the_exact_planner(seed: int) -> None:
    """Where all plans are kept, q is exact at every information state of a short walk."""
    problem = small(seed)
    exact, bounds = plan_exactly(problem), InformedBounds(problem)
    for _ in range(problem.horizon + 1):
        bounds.run(0.0)
    assert problem.law.constant is not None
    infos = [ol.Information.nothing_seen(())]
    t = problem.horizon - 1 - problem.law.constant - problem.actuation
    if t >= 0 and not problem.actuation:
        infos.append(ol.Information.seen(t, 1, (0,) * problem.law.constant))
    for info in infos:
        want, got = exact.q(info), bounds.q(info)
        assert (got <= want + 1e-10).all()
        assert got.max() == pytest.approx(want.max(), abs=1e-10)


def test_solve_takes_this_way_where_there_are_many_corners(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:1+loss:0.2")
    exact = ol.solve(problem)
    monkeypatch.setattr(large_loss, "HEAVY", 0)
    for tolerance in (0.3, 1e-3, 0.0):
        found = ol.solve(problem, tolerance=tolerance)
        assert found.lower - 1e-10 <= exact.value <= found.upper + 1e-10
        assert found.upper - found.lower <= max(tolerance, 1e-10)
        assert ol.evaluate(problem, found.policy).value == pytest.approx(found.lower, abs=1e-10)
    timed = ol.solve(problem, seconds=1e-6)
    assert timed.lower <= exact.value + 1e-10 <= timed.upper + 2e-10
    assert type(timed.policy) is ol.BlackoutPolicy


def test_a_plan_without_tolerance_or_time_ends_after_some_work(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    mdp = ol.TabularMDP(rng.dirichlet(0.3 * np.ones(8), size=(8, 4)), rng.random((8, 4)), horizon=8)
    problem = ol.ImpairedMDP(mdp, "loss:0.7")
    exact = ol.solve(problem)
    monkeypatch.setattr(large_loss, "LARGE", 0)
    monkeypatch.setattr(large_loss, "PASSES", 1)
    monkeypatch.setattr(large_loss, "ENOUGH", 0)
    stopped = ol.solve(problem)
    assert not stopped.exact
    assert stopped.lower <= exact.value + 1e-10 <= stopped.upper + 2e-10
    assert ol.solve(problem, seconds=600).exact  # who gives a time goes on


def test_the_search_tells_how_far_it_is(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oldlight.progress.EVERY_LINE", 0.0)  # a pipe has a line every ten seconds
    rng = np.random.default_rng(5)
    mdp = ol.TabularMDP(rng.dirichlet(0.3 * np.ones(8), size=(8, 4)), rng.random((8, 4)), horizon=8)
    plan = LinkPlan(mdp, ol.PacketChannel([0.5, 0.5], lost=0.4).automaton(8))
    told: list[tuple[int, int]] = []
    plan.run(1e-9, progress=lambda done, total: told.append((done, total)))
    assert max(total for _, total in told) > 8  # not the times of the tables alone: hundredths of a decade of the gap
    ol.solve(ol.ImpairedMDP(mdp, "loss:0.3"), progress=True)
    assert "planning: 8 of 8" in capsys.readouterr().err


def test_walks_and_words_value_a_policy_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(12):
        problem = small(seed)
        policy = plan_exactly(problem).policy
        if not isinstance(policy, ol.BlackoutPolicy):
            continue
        walked = blackout_values(problem, policy)
        with monkeypatch.context() as patch:
            patch.setattr("oldlight.planning.blackout.SHORT", 0)
            np.testing.assert_allclose(blackout_values(problem, policy), walked, rtol=0, atol=1e-12)


def test_an_interrupted_plan_carries_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "loss:0.5")
    exact = ol.solve(problem)
    calls = 0

    def stop(done: int, total: int) -> None:
        nonlocal calls
        calls += 1
        if calls == stop_at:
            raise KeyboardInterrupt

    for stop_at in (3, 14, 25):  # in the first pass, the second, the third
        calls = 0
        with pytest.raises(KeyboardInterrupt) as stopped:
            plan_large_loss(problem, PlanOptions(progress=stop))
        known = stopped.value.partial  # type: ignore[attr-defined]
        if stop_at == 3:
            assert known is None
            continue
        assert known.lower <= exact.value + 1e-10 <= known.upper + 2e-10
        assert ol.evaluate(problem, known.policy).value == pytest.approx(known.lower, abs=1e-10)


def test_too_little_memory_is_refused_before_work() -> None:
    with pytest.raises(ol.TooLarge, match="raise max_bytes"):
        InformedBounds(ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "loss:0.5"), max_bytes=1000)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("icu_sepsis") is None, reason="icu-sepsis is not installed")
def test_icu_sepsis_with_a_tenth_lost() -> None:
    """Three steps of it; H = 20 is in docs/icu.md. Between what is earned with everything lost and with nothing lost."""
    mdp = ol.instances.icu_sepsis(horizon=3)
    assert large_loss.too_many_corners(ol.ImpairedMDP(mdp, "loss:0.1"))
    found = ol.solve(ol.ImpairedMDP(mdp, "loss:0.1"), tolerance=1e-3)
    assert found.upper - found.lower <= 1e-3
    V = np.zeros(mdp.n_states)
    for _ in range(3):
        V = (mdp.rewards[0] + mdp.transitions[0] @ V).max(axis=1)
    assert found.upper <= float(mdp.initial @ V)
    assert isinstance(found.policy, ol.BlackoutPolicy)
    assert float(mdp.initial @ blackout_values(found.problem, found.policy)) == pytest.approx(found.lower, abs=1e-12)
