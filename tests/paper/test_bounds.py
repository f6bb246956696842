"""The bounds as numbers: values by hand, how each argument enters, order, conditions, and where they say something."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from oldlight.paper import bounds as b

E = math.e
HERE: dict[str, Any] = {"S": 20, "A": 5, "H": 10, "K": 10_000, "gamma": 0.1}
SIZES = ("S", "A", "H", "D", "K")


def test_log_term_by_hand() -> None:
    assert b.log_term(1, 1, 1, E**3, 1.0) == pytest.approx(3.0, rel=1e-15)
    assert b.log_term(20, 5, 10, 10_000, 0.1) == pytest.approx(math.log(1e8), rel=1e-15)


def test_closed_forms_where_iota_is_one() -> None:
    # S = A = H = 1 and K = e, γ = 1 make ι = 1, so that each bound can be done in the head
    assert b.theorem_1(1, 1, 1, 1, E, 1.0) == pytest.approx(math.sqrt(E) + 1, rel=1e-14)
    assert b.theorem_1(1, 1, 1, 1, E, 1.0, c=3.0) == pytest.approx(3 * math.sqrt(E) + 3, rel=1e-14)
    assert b.proposition_6(1, 1, 1, E, 1.0, 1.0) == pytest.approx(2 * math.sqrt(E), rel=1e-14)
    assert b.theorem_2(1, 1, 1, E, 1.0, 1.0) == pytest.approx(math.sqrt(E) + 1, rel=1e-14)
    assert b.theorem_2(1, 2, 1, E / 2, 1.0, 0.75) == pytest.approx(math.sqrt(E) + (E / 2) ** 0.25, rel=1e-14)  # v = 1
    assert b.minimax_rate(1, 1, 3, 4, 9) == pytest.approx(18.0, rel=1e-15)
    assert b.trivial(10, 7) == 70.0


def test_theorem_1_spot_value() -> None:
    # S=20, A=5, H=10, D=3, K=1e4, γ=.1: ι = log 1e8 = 18.4207; 3^2.5·√(1e3·100·1e4·ι) + 1e4·400·5·ι²
    iota = 8 * math.log(10)
    by_hand = 9 * math.sqrt(3) * math.sqrt(1e9 * iota) + 2e7 * iota**2
    assert b.theorem_1(D=3, **HERE) == pytest.approx(by_hand, rel=1e-14)


def test_proposition_2_spot_value() -> None:
    # 72√2·bound = 10·√(2·20·5·10^4) = 10·√2·1000, so the bound is 10^4/72
    assert b.proposition_2(20, 5, 10, 2, 10_000) == pytest.approx(10_000 / 72, rel=1e-14)


def test_corollary_1_is_theorem_1_at_the_effective_horizon() -> None:
    S, A, D, K, gamma, u = 20, 5, 3, 1000, 0.1, 0.9
    H = b.effective_horizon(S, A, K, gamma, u)
    iota = b.log_term(S, A, H, K, gamma)
    assert H - 1 < iota / (1 - u) <= H
    long = iota / (1 - u)
    by_hand = D**2.5 * math.sqrt(long**3 * S * A * K * iota) + long**4 * S**2 * A * iota**2
    assert b.corollary_1(S, A, D, K, gamma, u) == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize(
    ("argument", "power"), [("S", 0.5), ("A", 0.5), ("K", 0.5), ("H", 1.5), ("D", 2.5)], ids=lambda x: str(x)
)
def test_dimensions_of_the_leading_term_of_theorem_1(argument: str, power: float) -> None:
    """Far out, where the first term leads: doubling an argument multiplies it by 2^power, and by its part of √ι."""
    at = {"S": 8, "A": 4, "H": 64, "D": 4, "K": 1e40, "gamma": 0.1}
    more = at | {argument: 2 * at[argument]}
    iota = {k: math.sqrt(b.log_term(v["S"], v["A"], v["H"], v["K"], 0.1)) for k, v in (("at", at), ("more", more))}
    ratio = b.theorem_1(**more) / iota["more"] / (b.theorem_1(**at) / iota["at"])
    assert ratio == pytest.approx(2**power, rel=1e-9)


def upper_bounds() -> dict[str, Callable[..., float]]:
    return {
        "theorem_1": lambda **x: b.theorem_1(x["S"], x["A"], x["H"], x["D"], x["K"], x["gamma"]),
        "corollary_1": lambda **x: b.corollary_1(x["S"], x["A"], x["D"], x["K"], x["gamma"], 1 - 1 / x["H"]),
        "proposition_2": lambda **x: b.proposition_2(x["S"], x["A"], x["H"], x["D"], x["K"]),
        "proposition_6": lambda **x: b.proposition_6(x["S"], x["A"], x["H"], x["K"], x["gamma"], 0.9),
        "theorem_2": lambda **x: b.theorem_2(x["S"], x["A"], x["H"], x["K"], x["gamma"], 0.99),
        "minimax_rate": lambda **x: b.minimax_rate(x["S"], x["A"], x["H"], x["D"], x["K"]),
    }


@pytest.mark.parametrize("name", list(upper_bounds()))
def test_monotone_in_every_argument(name: str) -> None:
    bound, at = upper_bounds()[name], HERE | {"D": 2, "K": 100_000}
    for argument in SIZES:
        values = [bound(**(at | {argument: at[argument] * k})) for k in (1, 2)]
        if argument == "D" and name in ("proposition_6", "theorem_2"):
            assert values[0] == values[1]
        else:
            assert values[0] < values[1], argument
    if name not in ("proposition_2", "minimax_rate"):
        assert bound(**at) < bound(**(at | {"gamma": 0.01}))


def test_delays_beyond_the_horizon_cost_no_more() -> None:
    assert b.theorem_1(D=10, **HERE) == b.theorem_1(D=11, **HERE) == b.theorem_1(D=1e9, **HERE)


@pytest.mark.parametrize("S", [6, 20, 100])
@pytest.mark.parametrize("D", [1, 3, 10])
@pytest.mark.parametrize("H", [20, 60])
def test_the_lower_bound_is_below_the_upper_bounds(S: int, D: int, H: int) -> None:
    for A in (2, 5):
        for factor in (1, 100, 10**8):
            K = H * S * A * factor
            low = b.proposition_2(S, A, H, D, K)
            assert low < b.theorem_1(S, A, H, D, K, 0.1)
            assert low < b.minimax_rate(S, A, H, D, K)
            assert low < b.trivial(H, K)


def test_the_2026_rate_is_below_the_rate_of_processes_that_change_with_h() -> None:
    """Why it can only be claimed for pooled counts: at D = 1 it is below √(H³·S·A·K), by √H."""
    S, A, H, K = 20, 5, 16, 10_000
    assert b.minimax_rate(S, A, H, 1, K) * 4 == pytest.approx(math.sqrt(H**3 * S * A * K), rel=1e-14)


def test_the_price_of_loss() -> None:
    assert b.wait_for_a_pair(1.0) == 1
    assert b.wait_for_a_pair(math.sqrt(1 - 1 / E) + 1e-9) == 1
    assert b.wait_for_a_pair(math.sqrt(1 - 1 / E) - 1e-9) == 2
    for seen in (0.5, 0.1, 0.01, 1e-4, 1e-9):  # the 1/λ₀² regime
        assert abs(b.wait_for_a_pair(seen) - 1 / seen**2) <= 1 + 1e-9 / seen**2
    x = {**HERE, "K": 1e12}
    assert b.proposition_6(seen=0.001, **x) / b.proposition_6(seen=0.002, **x) == pytest.approx(4.0, rel=1e-4)
    assert b.proposition_6(seen=0.8, **x) < b.proposition_6(seen=0.5, **x)


def test_theorem_2_has_its_condition() -> None:
    assert b.largest_v(5, 1 - 5.0**-3) == pytest.approx(2.0, rel=1e-12)
    assert b.largest_v(5, 1.0) == math.inf
    with pytest.raises(ValueError, match=r"1 − 1/A = 0\.8"):
        b.theorem_2(seen=0.8, **HERE)
    with pytest.raises(ValueError, match="expected 0 < v"):
        b.theorem_2(seen=0.95, v=1.0, **HERE)
    # a smaller v is allowed and gives a weaker bound
    assert b.theorem_2(seen=0.99, v=0.5, **HERE) > b.theorem_2(seen=0.99, **HERE)


def test_where_the_first_term_of_theorem_2_leads() -> None:
    assert b.theorem_2_crossover(20, 1.0) == pytest.approx(20.0**6, rel=1e-14)
    assert b.theorem_2_crossover(20, math.inf) == pytest.approx(20.0**3, rel=1e-14)
    S, A, H, gamma = 6, 3, 5, 0.1

    def terms(K: float, v: float) -> tuple[float, float]:
        iota = b.log_term(S, A, H, K, gamma)
        return H**4 * math.sqrt(S * A * K * iota**3), S**2 * math.sqrt(H**9 * K ** (1 / (1 + v)) * iota**6)

    for v in (0.5, 2.0):
        K = b.theorem_2_first_leads_from(S, A, H, gamma, v)
        assert terms(K * 1.001, v)[0] > terms(K * 1.001, v)[1]
        assert terms(K * 0.999, v)[0] < terms(K * 0.999, v)[1]
        assert b.theorem_2_crossover(S, v) < K  # H and ι are left out there


def test_where_a_bound_says_something() -> None:
    # √K·100 < 10·K from K = 101 on
    assert b.informative_from(lambda K: 100 * math.sqrt(K), 10) == 101.0
    assert b.informative_from(lambda K: 0.0, 10) == 1.0
    assert b.informative_from(lambda K: 11 * K, 10) == math.inf
    for D in (1, 4):
        K = b.informative_from(lambda K, D=D: b.theorem_1(20, 5, 10, D, K, 0.1), 10)
        assert b.theorem_1(20, 5, 10, D, K, 0.1) < b.trivial(10, K)
        assert b.theorem_1(20, 5, 10, D, K - 1, 0.1) >= b.trivial(10, K - 1)
    assert b.informative_from(lambda K: b.theorem_1(20, 5, 10, 2, K, 0.1, c=0.01), 10) < K


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: b.proposition_2(5, 2, 4, 2, 1000), "S is 5; Proposition 2 needs S ≥ 6"),
        (lambda: b.proposition_2(6, 2, 3, 2, 1000), "H ≥ 2D = 4"),
        (lambda: b.proposition_2(6, 2, 4, 2, 47), "K ≥ H·S·A = 48"),
        (lambda: b.theorem_1(6, 2, 4, 0, 100, 0.1), "D is 0, expected a number ≥ 1"),
        (lambda: b.theorem_1(6, 2, 4, 1, 100, 0.0), "gamma is 0"),
        (lambda: b.corollary_1(6, 2, 1, 100, 0.1, 1.0), "discount is 1"),
        (lambda: b.proposition_6(6, 2, 4, 100, 0.1, 0.0), "nothing can be learnt"),
        (lambda: b.theorem_2_crossover(6, 0.0), "v is 0"),
        (lambda: b.theorem_1(6, 2, 4, 1, 100, 0.1, c=0.0), "c is 0"),
    ],
)
def test_refusals(call: Callable[[], float], words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        call()
