"""The paper's regret bounds as numbers, with the constant c explicit.

S states, A actions, horizon H, K episodes, failure probability γ, ι = log(S·A·H·K/γ), rewards in [0, 1]. D counts the
delay as the paper's Assumption 1 does: D = max_delay + 1, so D = 1 is no delay. u is a discount, λ₀ the least rate at
which observations are seen. The paper leaves c open in every upper bound ("a constant"); c = 1 here is a scale to
compare shapes by, not a claim. Only the lower bound comes with its number, 1/(72√2).

    theorem_1       c·( (H∧D)^{5/2}·√(H³·S·A·K·ι) + H⁴·S²·A·ι² )                            Algorithm 1, delay
    corollary_1     the same for a discounted process, at the effective horizon ι/(1−u)
    proposition_2   H·√(D·S·A·K)/(72√2), for S ≥ 6, A ≥ 2, H ≥ 2D, K ≥ H·S·A                   any algorithm, at least
    proposition_6   c·( ⌈1/−log(1−λ₀²)⌉·√(H³·S²·A·K·ι³) + √(H⁴·K·ι) )                       Algorithm 2, loss
    theorem_2       c·( H⁴·√(S·A·K·ι³) + S²·√(H⁹·K^{1/(1+v)}·ι⁶) ), for λ₀ ≥ 1 − A^{−(1+v)}   Algorithm 3, loss
    minimax_rate    c·H·√(D·S·A·K)                                                         Lee and Jamieson (2026)
    trivial         H·K: no regret is larger

Lee and Jamieson (Minimax Optimal Strategy for Delayed Observations in Online Reinforcement Learning,
https://arxiv.org/abs/2603.03480) state `minimax_rate`, up to logarithms, as the minimax regret under stochastic delay. At D = 1 it is
below √(H³·S·A·K), the minimax rate of processes whose transitions change with h; so it must be for transitions that do
not: **claim it for pooled counts only.** Proposition 2 is about processes that do change with h (its tree has one good
moment), and its D is the tree's window for waiting: that process is as hard without any delay.

An upper bound is informative only where it is below H·K: `informative_from` finds from which K on.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from oldlight import checks
from oldlight.model.span import checked_discount

LOWER_CONSTANT = 1.0 / (72.0 * math.sqrt(2.0))


def log_term(S: int, A: int, H: float, K: float, gamma: float) -> float:
    """ι = log(S·A·H·K/γ)."""
    S, A = _count("S", S), _count("A", A)
    H, K = checks.at_least("H", H, 1), checks.at_least("K", K, 1)
    if not 0.0 < checks.real("gamma", gamma) <= 1.0:
        raise ValueError(f"gamma is {gamma:.12g}, expected a failure probability in (0, 1]")
    return math.log(S) + math.log(A) + math.log(H) + math.log(K) - math.log(gamma)


def trivial(H: float, K: float) -> float:
    """H·K: with rewards in [0, 1] no algorithm has a larger regret."""
    return checks.at_least("H", H, 1) * checks.at_least("K", K, 1)


def theorem_1(S: int, A: int, H: int, D: float, K: float, gamma: float, *, c: float = 1.0) -> float:
    """The regret of Algorithm 1 with probability 1 − γ, whatever the delay law: D = max_delay + 1."""
    return checks.positive("c", c) * sum(theorem_1_terms(S, A, H, D, K, gamma))


def theorem_1_terms(S: int, A: int, H: int, D: float, K: float, gamma: float) -> tuple[float, float]:
    """The two terms of Theorem 1 with c = 1; only the first grows with the delay.

    >>> first, second = theorem_1_terms(20, 5, 10, 4, 10_000, 0.1)
    >>> second > 200 * first
    True
    """
    iota = log_term(S, A, H, K, gamma)
    return math.pow(_capped(H, D), 2.5) * math.sqrt(H**3 * S * A * K * iota), H**4 * S**2 * A * iota**2


def theorem_1_first_leads_from(S: int, A: int, H: int, D: float, gamma: float) -> float:
    """From which K on the first term of Theorem 1 is the larger one."""

    def excess(K: float) -> float:
        first, second = theorem_1_terms(S, A, H, D, K, gamma)
        return second - first

    return _last_sign_change(excess)


def effective_horizon(S: int, A: int, K: float, gamma: float, discount: float) -> int:
    """⌈ι/(1−u)⌉, the horizon at which Corollary 1 cuts a discounted process.

    ι holds the horizon itself, which the paper leaves implicit: this is the least H with H ≥ log(S·A·H·K/γ)/(1 − u).
    """
    u = checked_discount(discount)
    H = 1
    while True:  # increases to the least fixed point
        longer = max(1, math.ceil(log_term(S, A, H, K, gamma) / (1.0 - u)))
        if longer <= H:
            return H
        H = longer


def corollary_1(S: int, A: int, D: float, K: float, gamma: float, discount: float, *, c: float = 1.0) -> float:
    """The regret of Algorithm 1 on a process with discount u, with probability 1 − γ, as printed:

        c·( (ι/(1−u) ∧ D)^{5/2}·√((1/(1−u))³·S·A·K·ι⁴) + (1/(1−u))⁴·S²·A·ι⁶ ),

    which is `theorem_1` at H = ι/(1−u). In ι, H is the effective horizon.
    """
    iota = log_term(S, A, effective_horizon(S, A, K, gamma, discount), K, gamma)
    long, c = 1.0 / (1.0 - checked_discount(discount)), checks.positive("c", c)
    return c * (
        math.pow(_capped(iota * long, D), 2.5) * math.sqrt(long**3 * S * A * K * iota**4) + long**4 * S**2 * A * iota**6
    )


def proposition_2(S: int, A: int, H: int, D: int, K: float, *, c: float = LOWER_CONSTANT) -> float:
    """No algorithm has a smaller expected regret on every process of these sizes; refused where it is not proved."""
    for name, value, least, why in (
        ("S", S, 6, "6"), ("A", A, 2, "2"), ("D", D, 1, "1"), ("H", H, 2 * D, "2D"), ("K", K, H * S * A, "H·S·A"),
    ):  # fmt: skip
        if checks.real(name, value) < least:
            raise ValueError(f"{name} is {value:.12g}; Proposition 2 needs {name} ≥ {why} = {least}")
    return checks.positive("c", c) * H * math.sqrt(D * S * A * K)


def proposition_6(S: int, A: int, H: int, K: float, gamma: float, seen: float, *, c: float = 1.0) -> float:
    """The regret of Algorithm 2 with probability 1 − γ; seen is λ₀ > 0."""
    iota, c = log_term(S, A, H, K, gamma), checks.positive("c", c)
    return c * (wait_for_a_pair(seen) * math.sqrt(H**3 * S**2 * A * K * iota**3) + math.sqrt(H**4 * K * iota))


def wait_for_a_pair(seen: float) -> int:
    """⌈1/−log(1−λ₀²)⌉, the factor of loss in Proposition 6: λ₀² is the probability that two observations in a row are seen.

    For small λ₀ it is 1/λ₀² (between 1/λ₀² − 1 and 1/λ₀² + 1); from λ₀ = √(1 − 1/e) ≈ 0.795 on it is 1.
    """
    rate = checks.probability("seen", seen)
    if rate == 0.0:
        raise ValueError("seen is 0: if nothing is ever seen, nothing can be learnt")
    return 1 if rate == 1.0 else math.ceil(-1.0 / math.log1p(-(rate**2)))


def largest_v(A: int, seen: float) -> float:
    """The largest v with λ₀ ≥ 1 − A^{−(1+v)}; infinite if nothing is lost. Refused unless v > 0: λ₀ > 1 − 1/A."""
    A, rate = _count("A", A), checks.probability("seen", seen)
    if rate == 1.0 or A == 1:
        return math.inf
    v = -math.log1p(-rate) / math.log(A) - 1.0
    if v <= 1e-12:
        raise ValueError(
            f"seen is {rate:.12g}; Theorem 2 needs λ₀ > 1 − 1/A = {1 - 1 / A:.12g}. Below, use proposition_6"
        )
    return v


def theorem_2(
    S: int, A: int, H: int, K: float, gamma: float, seen: float, *, v: float | None = None, c: float = 1.0
) -> float:
    """The regret of Algorithm 3 with probability 1 − γ; seen is λ₀, v the largest that the condition allows if None."""
    most, iota, c = largest_v(A, seen), log_term(S, A, H, K, gamma), checks.positive("c", c)
    if v is None:
        v = most
    elif not 0.0 < v <= most * (1 + 1e-12):
        raise ValueError(f"v is {v:.12g}, expected 0 < v ≤ {most:.12g}: Theorem 2 needs λ₀ ≥ 1 − A^(−(1+v))")
    rest = math.pow(K, 1.0 / (1.0 + v))
    return c * (H**4 * math.sqrt(S * A * K * iota**3) + S**2 * math.sqrt(H**9 * rest * iota**6))


def theorem_2_crossover(S: int, v: float) -> float:
    """S^{3(1+v)/v}: from this K on, by the paper, the first term of Theorem 2 leads.

    That leaves H, A and ι out: the terms are equal where K^{v/(1+v)} = S³·H·ι³/A. See `theorem_2_first_leads_from`.
    """
    if not v > 0:
        raise ValueError(f"v is {v:.12g}, expected a number > 0")
    return math.pow(_count("S", S), 3.0 if math.isinf(v) else 3.0 * (1.0 + v) / v)


def theorem_2_first_leads_from(S: int, A: int, H: int, gamma: float, v: float) -> float:
    """From which K on the first term of Theorem 2 is the larger one, with H, A and ι left in."""
    if not v > 0:
        raise ValueError(f"v is {v:.12g}, expected a number > 0")
    share = 1.0 if math.isinf(v) else v / (1.0 + v)
    return _last_sign_change(lambda K: S**3 * H * log_term(S, A, H, K, gamma) ** 3 / A - math.pow(K, share))


def minimax_rate(S: int, A: int, H: int, D: float, K: float, *, c: float = 1.0) -> float:
    """c·H·√(D·S·A·K), without its logarithms. For transitions that do not change with h: pooled counts only."""
    S, A = _count("S", S), _count("A", A)
    window = checks.at_least("D", D, 1) * checks.at_least("K", K, 1)
    return checks.positive("c", c) * checks.at_least("H", H, 1) * math.sqrt(window * S * A)


def informative_from(bound: Callable[[float], float], H: float) -> float:
    """From which number of episodes on `bound(K)` is below H·K, and stays so; infinite if not by 10^60.

    >>> informative_from(lambda K: theorem_1(20, 5, 10, 1, K, 0.1), 10) > 1e9
    True
    """
    return _last_sign_change(lambda K: bound(K) - trivial(H, K))


def _last_sign_change(excess: Callable[[float], float]) -> float:
    """The least whole K such that excess < 0 from K on. (Each bound over K rises, if at all, only while ι is small.)"""
    grid = [2.0**i for i in range(200)]
    above = [K for K in grid if excess(K) >= 0]
    if not above:
        return 1.0
    low, high = above[-1], 2.0 * above[-1]
    if low == grid[-1]:
        return math.inf
    while high - low > max(1.0, 1e-12 * low):
        middle = math.floor((low + high) / 2)
        low, high = (middle, high) if excess(middle) >= 0 else (low, middle)
    return high


def _capped(H: float, D: float) -> float:
    """H∧D."""
    return min(H, checks.at_least("D", D, 1))


def _count(name: str, value: int) -> int:
    return checks.whole(name, value, least=1)
