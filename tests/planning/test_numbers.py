"""Published and closed-form numbers (sources in each test)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import oldlight as ol


def late_after_the_first(d: int, horizon: int) -> ol.StochasticDelay:
    """d_0 = 0 and every later observation exactly d late: Δ_0 = d, then 0."""
    law = np.zeros((horizon, 1, 1, d + 1))
    law[..., 0] = 1.0
    law[0] = np.eye(d + 1)[d]
    return ol.StochasticDelay(law)


def two_states(p: float, horizon: int) -> ol.TabularMDP:
    P = np.empty((2, 2, 2))
    P[0, :], P[1, :] = [p, 1 - p], [1 - p, p]
    return ol.TabularMDP(P, np.eye(2), horizon=horizon, initial=[1, 0])


@pytest.mark.parametrize(
    ("d", "exact"), [(0, Fraction(6)), (1, Fraction(5)), (2, Fraction(113, 25)), (3, Fraction(538, 125))]
)
def test_two_states_closed_form_under_delay(d: int, exact: Fraction) -> None:
    """V = Σ_{h<H} (1 + (2p−1)^{min(h, d)})/2 at p = .8, H = 6."""
    assert sum((1 + 0.6 ** min(h, d)) / 2 for h in range(6)) == pytest.approx(float(exact), abs=1e-14)
    assert ol.solve(ol.ImpairedMDP(two_states(0.8, 6), late_after_the_first(d, 6))).value == pytest.approx(
        float(exact), abs=1e-13
    )


@pytest.mark.parametrize(("rate", "value"), [(0.3, 5.6502051744), (0.5, 5.34679), (1.0, 4.19168)])
def test_two_states_under_loss(rate: float, value: float) -> None:
    rates = [0.0] + [rate] * 5
    assert ol.solve(ol.ImpairedMDP(two_states(0.8, 6), ol.Loss(rate=rates))).value == pytest.approx(value, abs=1e-13)


@pytest.mark.parametrize(
    ("p", "d", "value"),
    [
        (0.8, 2, 11.014287743841312),
        (0.8, 4, 9.694362490222781),
        (0.99, 2, 14.867554149343905),
        (0.99, 4, 14.797047305829617),
    ],
)
def test_sensing_chain_known_start(p: float, d: int, value: float) -> None:
    mdp = ol.instances.sensing_chain(p, horizon=20, initial=np.eye(20)[4])
    assert ol.solve(ol.ImpairedMDP(mdp, late_after_the_first(d, 20))).value == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    ("p", "gaps"), [(0.99, [0, 75.0, 208.9, 384.3, 585.4]), (0.8, [0, 1085.6, 2917.9, 4955.8, 7011.5])]
)
def test_sensing_chain_gap(p: float, gaps: list[float]) -> None:
    """Longer delay costs more, more randomness costs more: ×10⁴, printed to one digit."""
    found = ol.sweep(ol.instances.sensing_chain(p), delays=range(5), start=ol.WarmStart())
    assert np.round(found.gap * 1e4, 1) == pytest.approx(gaps, abs=1e-9)


@pytest.mark.parametrize("p", [0.99, 0.8])
def test_the_papers_chain_has_no_gap(p: float) -> None:
    """The first action is best everywhere, so no delay law of the paper's Table 1 can cost anything."""
    mdp = ol.instances.center_chain(p)
    for d in range(5):
        assert abs(ol.gap(ol.ImpairedMDP(mdp, ol.ConstantDelay(d), start=ol.WarmStart())).gap) < 1e-12
    for p_zero in (0.9, 0.7, 0.5, 0.3):
        assert abs(ol.gap(ol.ImpairedMDP(mdp, ol.BernoulliDelay(p_zero), start=ol.WarmStart())).gap) < 1e-12


@pytest.mark.parametrize("d", [0, 1, 3, 6])
def test_dichotomy(d: int) -> None:
    """Proposition 5: delay d costs nothing, delay d + 1 costs exactly half."""
    mdp = ol.instances.dichotomy(d, horizon=d + 3)
    assert ol.solve(ol.ImpairedMDP(mdp, ol.ConstantDelay(d))).value == 1.0
    assert ol.solve(ol.ImpairedMDP(mdp, ol.ConstantDelay(d + 1))).value == 0.5


def test_forest_management() -> None:
    """pymdptoolbox's example: N = 3, discount .9, horizon 3."""
    found = ol.solve(ol.ImpairedMDP(ol.instances.forest(discount=0.9), ol.ConstantDelay(0))).value_by_start
    assert found == pytest.approx([2.6973, 5.9373, 9.9373], abs=1e-12)


def test_putermans_inventory() -> None:
    """Puterman (2005), Section 3.2 and 4.6.1: in sixteenths."""
    found = ol.solve(ol.ImpairedMDP(ol.instances.inventory(), ol.ConstantDelay(0))).value_by_start
    assert found * 16 == pytest.approx([67, 129, 194, 227], abs=1e-11)


def dense_instance() -> ol.TabularMDP:
    rng = np.random.default_rng(0)
    P = rng.dirichlet(0.3 * np.ones(20), size=(5, 20))  # [a, s, s2]
    return ol.TabularMDP(P.transpose(1, 0, 2), rng.random((20, 5)), horizon=10)


def test_dense_random_instance_under_loss() -> None:
    """Value to nine digits, and the search stays a search: a thousand nodes of a tree of 48.8 million."""
    solution = ol.solve(ol.ImpairedMDP(dense_instance(), ol.Loss(seen=[1.0] + [0.5] * 9)))
    assert solution.value == pytest.approx(7.573000406, abs=5e-10)
    assert solution.work.information_states < 2_000
    assert ol.solve(ol.ImpairedMDP(dense_instance(), ol.Loss(seen=[1.0] + [0.05] * 9))).work.information_states < 5_200
