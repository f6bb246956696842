"""Plans of processes that run for ever: against long finite horizons, linear systems, closed forms and other solvers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from forever_cases import (
    LINKS,
    USUAL,
    USUAL_QUICK,
    WIDE,
    best_of,
    names,
    naming,
    random_process,
    two_states,
    written_out,
)
from oldlight.model.channels.endless import endless
from repeats import is_thorough

CUT = 9


def certified(found: ol.Solution, close: float) -> None:
    assert found.lower <= found.value <= found.upper
    assert found.upper - found.lower <= close


def merging_costs(link: Any, mdp: ol.TabularMDP) -> float:
    """What a plan for merged laws of a hidden mode can be off on each side: each of the steps 0, 1, .. takes a law that is δ away in total
    variation, and from step h + 1 on a law that is δ away can cost δ·u^{h+1}·span/(1 − u)."""
    if not isinstance(link, WIDE):
        return 0.0
    u, delta = mdp.discount, endless(link).automaton.merging
    assert u is not None
    return float(sum(delta * u ** (h + 1) * np.ptp(mdp.rewards) / (1 - u) for h in range(200)))


@pytest.mark.parametrize("link", USUAL, ids=names)
def test_agrees_with_a_long_finite_horizon(link: Any) -> None:
    """u^H·max|r|/(1−u) is all that can differ."""
    cases: list[Any] = [(0, {}), (1, {"actuation": 1, "pending": [1]})]
    if isinstance(link, WIDE):
        cases = cases[:1]
    elif not is_thorough():  # every second link with late actions
        cases = [cases[LINKS.index(link) % 2]]
    for seed, options in cases:
        mdp = random_process(seed, discount=0.35)
        problem = ol.ImpairedMDP(mdp, link, **options)
        found = ol.solve(problem)
        certified(found, 6e-6 + 2 * merging_costs(link, mdp))
        cut = ol.ImpairedMDP(mdp.replace(horizon=CUT), link, **options)
        known, rest = ol.solve(cut, tolerance=1e-4, seconds=20), cut.mdp.truncation_error
        assert found.lower <= known.upper + rest
        assert known.lower - rest <= found.upper
        value = ol.evaluate(problem, found.policy)
        assert found.lower - 1e-8 <= value.value <= found.upper + 1e-8
        played = ol.evaluate(cut, found.policy) if not isinstance(link, WIDE) and not found.policy.growing else None  # type: ignore[attr-defined]
        assert played is None or abs(played.value - value.value) <= rest + 1e-8


@pytest.mark.parametrize("d", [0, 1, 2, 3])
def test_constant_delay_is_the_written_out_process(d: int) -> None:
    for seed in range(4):
        for u in (0.0, 0.5, 0.9, 0.999)[min(d, 1) :]:
            mdp = random_process(seed, discount=u)
            found = ol.solve(ol.ImpairedMDP(mdp, ol.ConstantDelay(d), start="warm"))
            P, R = written_out(mdp, d)
            exact = best_of(P, R, u)
            scale = np.abs(mdp.rewards).max() / (1 - u)
            assert found.lower - 1e-9 * scale <= exact.mean() <= found.upper + 1e-9 * scale
            certified(found, 1.1e-9 * scale)
            assert ol.evaluate(found.problem, found.policy).value == pytest.approx(exact.mean(), abs=3e-9 * scale)


@pytest.mark.parametrize("solver", ["quantecon", "mdptoolbox"])
def test_other_solvers_on_the_written_out_process(solver: str) -> None:
    module = pytest.importorskip(solver)
    mdp = random_process(5, discount=0.95)
    P, R = written_out(mdp, 2)
    if solver == "quantecon":
        other = module.markov.DiscreteDP(R, P, 0.95).solve(method="policy_iteration").v
    else:
        from mdptoolbox.mdp import PolicyIteration

        made = PolicyIteration(P.transpose(1, 0, 2), R, 0.95)
        made.run()
        other = np.array(made.V)
    found = ol.solve(ol.ImpairedMDP(mdp, ol.ConstantDelay(2), start="warm"))
    assert found.lower - 1e-7 <= other.mean() <= found.upper + 1e-7


@pytest.mark.parametrize("d", [0, 1, 2, 3])
@pytest.mark.parametrize("p", [0.8, 0.3])
def test_two_states_in_closed_form(p: float, d: int) -> None:
    """A guess is right with probability (1 + |2p−1|^m)/2, m the age; s_0 is seen at once and later ones d late (Δ_0 = d)."""
    q = abs(2 * p - 1)
    channel = ol.StochasticDelay([0.0] * d + [1.0], first=[1.0]) if d == 0 else ol.AgeChain(_late(d))
    per_step = (1 + q**d) / 2
    average = ol.solve(ol.ImpairedMDP(two_states(p, average=True), channel))
    certified(average, 1e-6)
    assert average.lower - 1e-9 <= per_step <= average.upper + 1e-9
    u = 0.9
    found = ol.solve(ol.ImpairedMDP(two_states(p, discount=u), channel))
    exact = sum(u**h * (1 + q**h) / 2 for h in range(d)) + u**d / (1 - u) * per_step
    certified(found, 1e-5)
    assert found.lower - 1e-9 <= exact <= found.upper + 1e-9


def _late(d: int) -> list[list[float]]:
    """Ages 0, 1, .., d, d, d, .."""
    return [[0.0] * (m + 1) + [1.0] for m in range(d)] + [[0.0] * d + [1.0, 0.0]]


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.6])
def test_loss_of_two_states_in_closed_form(rate: float) -> None:
    """The age is geometric: the reward per step is Σ_m (1 − λ)^m·λ·(1 + q^m)/2."""
    p, q = 0.8, 0.6
    found = ol.solve(ol.ImpairedMDP(two_states(p, average=True), ol.Loss(rate=rate)))
    exact = 0.5 + 0.5 * (1 - rate) / (1 - rate * q)
    certified(found, 2e-6)
    assert found.lower - 1e-12 <= exact <= found.upper + 1e-12


@pytest.mark.parametrize("link", USUAL_QUICK, ids=names)
def test_average_is_the_limit_of_discounts(link: Any) -> None:
    """(1−u)·V_u → g; the difference is at most (1−u) times the span of relative values, and for every policy both lie between its rewards."""
    g = ol.solve(ol.ImpairedMDP(naming(average=True), link), tolerance=1e-4)
    assert g.lower <= g.upper <= 1.2
    certified(g, 1e-4)
    u = 0.998
    v = ol.solve(ol.ImpairedMDP(naming(discount=u), link), tolerance=1e-3)
    assert abs((1 - u) * v.lower - g.lower) <= (1 - u) * 10
    value = ol.evaluate(g.problem, g.policy)
    assert g.lower - 1e-8 <= value.value <= g.upper + 1e-8


@pytest.mark.parametrize("kind", [{"discount": 0.7}, {"discount": 0.999}, {"average": True}], ids=str)
@pytest.mark.parametrize("d", [0, 1, 2])
def test_sweeps_in_one_call_agree_with_those_one_by_one(
    d: int, kind: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(d)
    P = rng.dirichlet(0.4 * np.ones(6), size=(6, 3))
    P[rng.random(P.shape) < 0.3] = 0.0
    mdp = ol.TabularMDP(P / P.sum(axis=2, keepdims=True), rng.normal(size=(6, 3)), horizon=None, **kind)
    problem = ol.ImpairedMDP(mdp, ol.ConstantDelay(d))
    quick = ol.solve(problem)
    monkeypatch.setattr("oldlight.planning.stationary_tables.SMALL_BLOCK", 0)
    slow = ol.solve(problem)
    assert max(quick.lower, slow.lower) <= min(quick.upper, slow.upper) + 1e-12  # both hold the optimum
    wanted = 2e-9 * np.abs(mdp.rewards).max() / (1 - kind.get("discount", 0.0))
    assert max(quick.upper - quick.lower, slow.upper - slow.lower) <= wanted
    assert ol.evaluate(problem, quick.policy).value == pytest.approx(slow.value, abs=2 * wanted)


def test_sweeps_do_not_grow_with_the_discount() -> None:
    counts = []
    for u in (0.99, 0.999, 0.9999, 0.99999):
        found = ol.solve(ol.ImpairedMDP(naming(discount=u), ol.ConstantDelay(2)))
        assert found.upper - found.lower <= 2e-9 * 1.2 / (1 - u)
        counts.append(found.work.sweeps)
    assert max(counts) <= 2 * min(counts)


def test_a_better_link_is_worth_more() -> None:
    values = [ol.solve(ol.ImpairedMDP(naming(discount=0.9), ol.ConstantDelay(d))).value for d in range(4)]
    assert all(x > y for x, y in pairwise(values))


def test_q_values() -> None:
    mdp = random_process(3, discount=0.8)
    found = ol.solve(ol.ImpairedMDP(mdp, ol.ConstantDelay(1), start="warm"))
    P, R = written_out(mdp, 1)
    exact = R + 0.8 * P @ best_of(P, R, 0.8)
    for s in range(3):
        for a in range(2):
            info = ol.Information.seen(0, s, (a,))
            assert found.q(info) == pytest.approx(exact[2 * s + a], abs=1e-7)
            assert found.policy.action(info) == exact[2 * s + a].argmax()  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [{"discount": 0.9}, {"average": True}])
def test_gap_sweep_and_heuristics(kind: dict[str, Any]) -> None:
    from oldlight.planning.heuristics import full_information, memoryless, most_likely, qmdp

    mdp = naming(**kind)
    rows = ol.sweep(mdp, delays=[0, 1, 2]).gap
    assert abs(rows[0]) <= 1e-6
    assert 0 < rows[1] < rows[2]
    assert ol.sweep(mdp, losses=[0.0, 0.2]).gap[1] > 0
    for link in (ol.ConstantDelay(1), ol.Loss(rate=0.2), ol.PacketChannel([0.5, 0.5], lost=0.1)):
        problem = ol.ImpairedMDP(mdp, link)
        lost = ol.gap(problem)
        assert lost.gap > 0
        full = ol.evaluate(problem, full_information(problem))
        assert full.value == pytest.approx(lost.full, rel=1e-6)
        for heuristic in (memoryless, most_likely, qmdp):
            value = ol.evaluate(problem, heuristic(problem))
            assert value.value - value.half_width <= lost.solution.upper + 1e-9
            assert value.method == "chain of information states"


def test_a_policy_that_looks_at_the_clock_is_refused() -> None:
    problem = ol.ImpairedMDP(naming(discount=0.9), ol.ConstantDelay(1))
    with pytest.raises(ValueError, match="policies that do not look at the time"):
        ol.evaluate(problem, ol.FunctionPolicy(lambda info: info.h % 2, 3))


def test_too_large_is_said_before_the_work() -> None:
    with pytest.raises(ol.TooLarge, match="planning for ever"):
        ol.solve(ol.ImpairedMDP(naming(discount=0.9), ol.ConstantDelay(40)))


def test_depth_and_seconds() -> None:
    problem = ol.ImpairedMDP(naming(discount=0.9), ol.Loss(rate=0.5))
    shallow, deep = ol.solve(problem, depth=0), ol.solve(problem, depth=3)
    assert shallow.policy.depth == 0  # type: ignore[attr-defined]
    assert deep.upper <= shallow.upper + 1e-9
    quick = ol.solve(problem, seconds=1e-6)
    assert quick.lower <= deep.upper
    assert deep.lower <= quick.upper
