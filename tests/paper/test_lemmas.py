"""The appendix's lemmas on runs, counts and concentration: exact left sides, the bounds that fail and those that hold."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.paper import (
    azuma_consequence,
    bernstein,
    bernstein_consequence,
    bernstein_for_runs,
    event_no_long_run,
    hoeffding_consequence,
    longest_gap,
    pigeonhole,
    round_robin,
    within_a_gap,
)
from oldlight.paper.concentration import lower_tail, upper_tail
from oldlight.paper.counterexamples import one_state
from oldlight.paper.lemmas import gap_probability, hidden_only, run_probability
from repeats import repeats


@pytest.mark.parametrize(("k", "q", "theta"), list(itertools.product([1, 2, 3, 6, 9], [1, 2, 4], [0.1, 0.5, 0.8])))
def test_run_probabilitys_by_enumeration(k: int, q: int, theta: float) -> None:
    gap = run = 0.0
    for draws in itertools.product([0, 1], repeat=k):
        weight = math.prod(theta if u else 1 - theta for u in draws)
        zeros = [i for i, u in enumerate(draws) if u == 0]
        gap += weight * any(j - i > q for i, j in itertools.pairwise(zeros))
        run += weight * ("1" * q in "".join(str(u) for u in draws))
    assert gap_probability(k, q, theta) == pytest.approx(gap, abs=1e-13)
    assert run_probability([theta] * k, q) == pytest.approx(run, abs=1e-13)


def test_longest_gap() -> None:
    """The printed bound fails from k = 3, q = 1 on; with q in place of q + 1 it holds, for runs at the ends too."""
    first = longest_gap(3, 1, 0.1)
    assert (first.left, first.right) == (pytest.approx(0.081), pytest.approx(0.03))
    assert not first.holds
    failed = 0
    for k, q, theta in itertools.product(range(1, 41), range(1, 7), np.arange(0.05, 1, 0.1)):
        claim = longest_gap(k, q, float(theta))
        failed += not claim.holds
        sharp, loose, run = claim.detail.values()
        assert claim.left <= loose + 1e-12  # (k − q − 1)(1 − θ)θ^q
        assert loose <= sharp + 1e-15
        assert run <= sharp + 1e-12
    assert failed > 500


def test_event_no_long_run(rng: np.random.Generator) -> None:
    """The printed ≤ fails, ≥ holds; and a lower bound on the rates gives no upper bound at all."""
    smallest = event_no_long_run(3, 1, 0.5, 1)
    assert (smallest.left, smallest.right, smallest.holds) == (5 / 8, 1 / 4, False)
    with pytest.raises(ValueError, match="m is 0, expected a whole number ≥ 1"):
        event_no_long_run(2, 0, 0.5, 1)
    for H, m, lam, K in itertools.product(range(1, 8), range(1, 5), [0.1, 0.5, 0.9], [1, 2, 50]):
        if H * (1 - lam) ** (m + 1) <= 1:
            assert not event_no_long_run(H, m, lam, K).holds
    assert event_no_long_run(10, 6, 0.5, 10_000).left < 1e-80  # with the m of Theorem 2's proof it nearly never happens
    always = event_no_long_run(10, 1, 1.0, 5, least_seen=0.9)
    assert always.left == 1.0
    assert not always.holds
    for _ in range(200):
        H, m, K = int(rng.integers(1, 12)), int(rng.integers(1, 5)), int(rng.integers(1, 20))
        claim = event_no_long_run(H, m, rng.uniform(0.3, 1, size=H), K)
        assert claim.detail["lower bound holds"]
    with pytest.raises(ValueError, match=r"least_seen is 0\.95"):
        event_no_long_run(3, 1, 0.9, 5, least_seen=0.95)


def test_event_no_long_run_by_simulation() -> None:
    """P(E_m) for one episode against how long an agent behind a lossy link has seen nothing."""
    H, m, lam, n = 8, 1, 0.7, repeats(12_000, 40_000)
    played = ol.simulate(one_state(1, H, lam), ol.FunctionPolicy(lambda _: 0, 1), n, seed=3, record=True)
    assert played.arrivals is not None
    lost = played.arrivals < 0
    long_run = (lost[:, :-1] & lost[:, 1:]).any(axis=1)
    exact = event_no_long_run(H, m, lam, 1).left
    assert 1 - long_run.mean() == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / n))


def test_pigeonhole(rng: np.random.Generator) -> None:
    """2·√(SAHK) fails from H = 5, K = S = A = 1 on; 2H·√(SAK) holds."""
    assert pigeonhole(np.ones((4, 1, 1), dtype=int)).holds
    assert not pigeonhole(np.ones((5, 1, 1), dtype=int)).holds
    for _ in range(100):
        H, S, A, K = (int(x) for x in rng.integers(1, 6, size=4))
        counts = np.stack([rng.multinomial(7 * K, rng.dirichlet(np.ones(S * A))).reshape(S, A) for _ in range(H)])
        assert pigeonhole(counts).detail["which holds"]
    with pytest.raises(ValueError, match="axes"):
        pigeonhole([[1, 2]])


def test_round_robin_lacks_a_factor() -> None:
    """One state, one action, nearly everything seen: the sum is H·2√K, the printed bound √(HK)."""
    always = ol.FunctionPolicy(lambda _: 0, 1)
    assert round_robin(one_state(1, 2, 0.9999), always, 4, 0.1, runs=5).holds
    five = round_robin(one_state(1, 2, 0.9999), always, 5, 0.1, runs=5)
    assert (five.left, five.right) == (pytest.approx(sum(k**-0.5 for k in range(1, 6))), pytest.approx(10**0.5))
    assert not five.holds
    longer = round_robin(one_state(1, 12, 0.99), always, 400, 0.1, runs=5)
    above = longer.detail["share of runs above"]
    assert above["2q·√(SAKH)"] == 1.0  # twice the bound is not enough either
    assert above["2(q + 1)·H·√(SAK)"] == 0.0


def test_round_robin_fails_for_hidden_actions() -> None:
    """An action taken only where the state is hidden is never counted: the sum grows like (1 − λ)·K."""
    sums = {K: round_robin(one_state(2, 2, 0.8), hidden_only(), K, 0.1) for K in (5_000, 20_000, 100_000)}
    assert not sums[20_000].holds
    assert sums[100_000].detail["share of runs above"]["2q·√(SAKH)"] == 1.0
    assert sums[100_000].left / 100_000 == pytest.approx(0.2, abs=0.01)
    with pytest.raises(ValueError, match="about loss"):
        round_robin(ol.ImpairedMDP(one_state(1, 2, 1).mdp, ol.ConstantDelay(1)), hidden_only(), 5, 0.1)


def test_bernstein_consequence_lacks_a_factor() -> None:
    """Smallest failure for a fair coin: n = 156. With 2 under the root it holds everywhere; so does the inequality."""
    first = bernstein_consequence(156, 0.5, 7.5e-5)
    exact = sum(math.comb(156, k) for k in range(102, 157)) / 2**156
    assert first.left == pytest.approx(exact, rel=1e-12)
    assert exact > 7.5e-5
    assert not first.holds
    assert bernstein_consequence(10**6, 0.5, 1e-6).left > 95e-6
    assert (
        smallest_failure(bernstein_consequence, range(1, 120, 7), [0.1, 0.5, 0.9], np.geomspace(1e-9, 0.9, 30)) is None
    )
    found = smallest_failure(bernstein_consequence, [500], [0.3, 0.5], np.geomspace(1e-9, 0.9, 30))
    assert found is not None
    for n, p, gamma in itertools.product([2, 30, 400, 3000], [0.02, 0.3, 0.5, 0.9], np.geomspace(1e-9, 0.9, 12)):
        claim = bernstein_consequence(n, p, gamma)
        assert claim.detail["corrected holds"]
        assert bernstein(n, p, claim.detail["t"]).holds
        assert hoeffding_consequence(n, p, gamma).holds
        assert azuma_consequence(n, gamma).holds


def test_binomial_tails() -> None:
    assert upper_tail(5, 0.5, 3) == pytest.approx(6 / 32)
    assert lower_tail(5, 0.5, 2) == pytest.approx(6 / 32)
    assert (upper_tail(5, 0.5, -1), upper_tail(5, 0.5, 5), lower_tail(5, 0.5, 0)) == (1.0, 0.0, 0.0)
    with pytest.raises(ValueError, match=r"gamma is 1\.0"):
        hoeffding_consequence(5, 0.5, 1.0)


def test_bernstein_as_used_for_runs() -> None:
    """The H and the logarithm of everything under the root make up for the lost factor."""
    for K, H, run, seen in itertools.product([10, 1000, 10_000], [1, 2, 10], [1, 3], [0.1, 0.5, 0.9]):
        assert bernstein_for_runs(K, H, run, seen, 0.01).holds


def test_within_a_gap() -> None:
    """The step of Theorem 2's proof that loses ι: fails from ι = 3 on in the smallest case, holds with ι + 1 for 2."""
    claim = within_a_gap(1, 1, 0.5, 3.0)
    assert (claim.left, claim.right) == (pytest.approx(6.186, abs=1e-3), pytest.approx(5.732, abs=1e-3))
    assert not claim.holds
    for H, run, seen, iota in itertools.product([1, 5, 20], [1, 2, 5], [0.1, 0.5, 0.99], [0.5, 1, 3, 10, 20]):
        assert within_a_gap(H, run, seen, iota).detail["which holds"]


def smallest_failure(claim: Any, sizes: Any, ps: Any, gammas: Any) -> Any:
    """The first (n, p, γ) at which a claim fails, n first; None if it never does."""
    grid = [(p, g) for p in ps for g in gammas]
    for n in sizes:
        failing = [(c.left / c.right, p, g, c) for p, g in grid if not (c := claim(n, p, g)).holds]
        if failing:
            _, p, g, worst = max(failing, key=lambda row: row[0])
            return n, p, g, worst
    return None
