"""The concentration inequalities of the appendix against exact tails of sums of independent draws.

With L = log(1/γ), x_i = B_i − p for Bernoulli draws B_i (mean p, variance v = p(1 − p), |x_i| ≤ M = max(p, 1 − p)):

Bernstein     P(Σ x_i > t) ≤ exp(−t²/2 / (n·v + M·t/3))                               holds.
  consequence P(Σ x_i > √(n·v·L) + M·L) ≤ γ                    printed; a factor 2 is lost on the way, and it fails.
              P(Σ x_i > √(2·n·v·L) + (2/3)·M·L) ≤ γ            follows from the inequality, and holds.
  as used     for the number of runs of j lost observations in K episodes: √(K·w·H·ι) + ι with w = (1−λ_0)^j. The H
              under the root makes up for the 2 when H ≥ 2.
Hoeffding     P(|Σ B_i − n·p| > t) ≤ 2·exp(−2t²/n)             and its consequence √(n·log(2/γ)/2) hold.
Azuma         ±1 steps: P(Σ > t) ≤ exp(−t²/(2n))               and its consequence √(2·n·L) hold.

**Of estimates, at every moment of a run at once.** With ι = log(S·A·H·K/γ), D = max delay + 1 (at most H):

λ̂             |λ̂ − λ_h| ≤ 2·√(log(H·K/γ)/k) for all k ≤ K and all h                             holds, with room to spare.
θ̂             |θ̂ − θ| ≤ c·√(D·ι/n) for all (h, s, a, δ) and all n ≤ K at risk                   holds with c = 1.
p̂             |(p̂ − p)V*| ≤ c·H·√(D·ι/n) for all (h, s, a), every V* ahead and all n ≤ K         holds with c = 1.
              The D is there for the V*: one for each queue and action, 1 + A + .. + A^{D−1} for each (h, s, a).
TV            P(TV(p̂, p) ≥ t) ≤ (2^S − 2)·exp(−n·t²/2)                                       printed, and holds: it is the
              inequality of Weissman et al. for L1; for TV = L1/2 it is exp(−2·n·t²).

A stream of draws leaves its band at some n ≤ K with a probability that is computed exactly, step by step; streams are put together
by a union bound (exactly for λ̂, whose H streams are independent). `oldlight.paper.estimates` measures all of it on a process.

Tails are exact up to rounding (the incomplete beta function); a bound counts as broken only beyond a relative 1e-9.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr, bdtrc, gammaln

from oldlight import checks
from oldlight.paper.claims import Claim

SLACK = 1e-9


def upper_tail(n: int, p: float, x: float) -> float:
    """P(B > x) for B binomial (n, p). What misses a whole number by rounding alone counts as that number."""
    k = math.floor(x + SLACK)
    return 1.0 if k < 0 else 0.0 if k >= n else float(bdtrc(k, n, p))


def lower_tail(n: int, p: float, x: float) -> float:
    """P(B < x)."""
    k = math.ceil(x - SLACK) - 1
    return 0.0 if k < 0 else 1.0 if k >= n else float(bdtr(k, n, p))


def _checked(n: int, p: float, gamma: float) -> float:
    checks.whole("n", n, least=1)
    checks.probability("p", p)
    if not 0.0 < gamma < 1.0:
        raise ValueError(f"gamma is {gamma}, expected a number in (0, 1)")
    return math.log(1.0 / gamma)


def bernstein(n: int, p: float, t: float) -> Claim:
    """Bernstein's inequality itself, for n Bernoulli draws.

    Parameters
    ----------
    n : int
        Draws.
    p : float
        Their mean.
    t : float
        How far the sum exceeds n·p.

    Returns
    -------
    Claim
        left: the exact tail; right: the bound.

    Examples
    --------
    >>> from oldlight import paper
    >>> paper.bernstein(100, 0.1, 5.0).holds
    True
    """
    v, M = p * (1 - p), max(p, 1 - p)
    left = upper_tail(n, p, n * p + t)
    right = math.exp(-t * t / 2 / (n * v + M * t / 3))
    return Claim("Bernstein", left, right, left <= right * (1 + SLACK), {"t": t})


def bernstein_consequence(n: int, p: float, gamma: float) -> Claim:
    """The printed consequence of Bernstein's inequality; the corrected one is in `detail`.

    Parameters
    ----------
    n, p, gamma : int, float, float
        Draws, their mean, γ in (0, 1).

    Returns
    -------
    Claim
        left: the exact tail beyond the printed t; right: γ.

    Examples
    --------
    >>> from oldlight import paper
    >>> found = paper.bernstein_consequence(1000, 0.5, 0.1)
    >>> found.holds, found.detail["corrected holds"]
    (True, True)
    """
    L = _checked(n, p, gamma)
    v, M = p * (1 - p), max(p, 1 - p)
    printed = math.sqrt(n * v * L) + M * L
    corrected = math.sqrt(2 * n * v * L) + 2 / 3 * M * L
    left = upper_tail(n, p, n * p + printed)
    right = upper_tail(n, p, n * p + corrected)
    detail = {"t": printed, "corrected t": corrected, "corrected tail": right, "corrected holds": right <= gamma}
    return Claim("Bernstein, consequence", left, gamma, left <= gamma * (1 + SLACK), detail)


def bernstein_for_runs(
    episodes: int, horizon: int, run: int, least_seen: float, gamma: float, *, n_states: int = 1, n_actions: int = 1
) -> Claim:
    """As used for C^K, the number of episodes (of K) with j lost observations in a row before a given step.

    Parameters
    ----------
    episodes, horizon, run : int
        K, H and j.
    least_seen, gamma : float
        λ_0, γ in (0, 1).
    n_states, n_actions : int
        S and A, for ι.

    Returns
    -------
    Claim
        left: the exact tail; right: γ.

    Examples
    --------
    >>> from oldlight import paper
    >>> paper.bernstein_for_runs(1000, 10, 2, 0.8, 0.1).holds
    True
    """
    _checked(episodes, least_seen, gamma)
    w = (1.0 - least_seen) ** run
    iota = math.log(n_states * n_actions * horizon * episodes / gamma)
    above = math.sqrt(episodes * w * horizon * iota) + iota
    left = upper_tail(episodes, w, episodes * w + above)
    return Claim("Bernstein, as used for runs", left, gamma, left <= gamma * (1 + SLACK), {"mean": episodes * w})


def hoeffding_consequence(n: int, p: float, gamma: float) -> Claim:
    """P(|mean − p| > √(log(2/γ)/(2n))) ≤ γ for Bernoulli draws.

    Parameters
    ----------
    n, p, gamma : int, float, float
        Draws, their mean, γ in (0, 1).

    Returns
    -------
    Claim
        left: the exact tail; right: γ.

    Examples
    --------
    >>> from oldlight import paper
    >>> paper.hoeffding_consequence(100, 0.3, 0.1).holds
    True
    """
    _checked(n, p, gamma)
    t = math.sqrt(n * math.log(2 / gamma) / 2)
    left = upper_tail(n, p, n * p + t) + lower_tail(n, p, n * p - t)
    return Claim("Hoeffding, consequence", left, gamma, left <= gamma * (1 + SLACK), {"t": t})


def azuma_consequence(n: int, gamma: float) -> Claim:
    """P(Σ of n fair ±1 steps > √(2·n·log(1/γ))) ≤ γ.

    Parameters
    ----------
    n, gamma : int, float
        Steps, γ in (0, 1).

    Returns
    -------
    Claim
        left: the exact tail; right: γ.

    Examples
    --------
    >>> from oldlight import paper
    >>> paper.azuma_consequence(100, 0.1).holds
    True
    """
    L = _checked(n, 0.5, gamma)
    t = math.sqrt(2 * n * L)
    left = upper_tail(n, 0.5, (n + t) / 2)
    return Claim("Azuma, consequence", left, gamma, left <= gamma * (1 + SLACK), {"t": t})


def within_a_gap(horizon: int, run: int, least_seen: float, iota: float) -> Claim:
    """The step C_{≥j} of Theorem 2's proof.

    It is (g·w' + √(g·w'·H·ι) + ι) ≤ √(2(1−λ_0)Hι) + 2(1−λ_0) + ι, where
    w' = (1−λ_0)^{j+1} and g = ⌈ι/(−log(1 − (1−λ_0)^j))⌉. But g·w' is about ι·(1−λ_0), and the right has no ι there.

    Parameters
    ----------
    horizon, run : int
        H and j.
    least_seen : float
        λ_0.
    iota : float
        ι.

    Returns
    -------
    Claim
        left and right as above; `detail` has a right side that holds.

    Examples
    --------
    >>> from oldlight import paper
    >>> found = paper.within_a_gap(10, 1, 0.5, 10.0)
    >>> found.holds, found.detail["which holds"]
    (False, True)
    """
    lost = 1.0 - checks.probability("least_seen", least_seen)
    g = math.ceil(iota / -math.log1p(-(lost**run)))
    left = g * lost ** (run + 1) + math.sqrt(g * lost ** (run + 1) * horizon * iota) + iota
    right = math.sqrt(2 * lost * horizon * iota) + 2 * lost + iota
    corrected = math.sqrt((iota + 1) * lost * horizon * iota) + (iota + 1) * lost + iota
    detail = {"with ι + 1 for 2": corrected, "which holds": left <= corrected * (1 + SLACK)}
    return Claim("Theorem 2, step C_≥", left, right, left <= right, detail)


def leaves_its_band(p: float, n: int, width: Callable[[int], float]) -> float:
    """P(|mean of the first j draws − p| > width(j) for some j ≤ n) for Bernoulli draws, exactly."""
    alive, out = np.ones(1), 0.0  # alive[x]: never outside so far, and x ones
    for j in range(1, n + 1):
        alive = np.append(alive * (1 - p), 0.0) + np.append(0.0, alive * p)
        outside = np.abs(np.arange(j + 1) - j * p) > j * width(j) + SLACK
        out += float(alive[outside].sum())
        alive[outside] = 0.0
    return out


def lambda_hat(seen: ArrayLike, episodes: int, gamma: float, *, c: float = 2.0) -> Claim:
    """P(|λ̂_h − λ_h| > c·√(log(HK/γ)/k) for some k ≤ K and some h) ≤ γ.

    Parameters
    ----------
    seen : array_like, shape (H,)
        λ_h.
    episodes, gamma : int, float
        K, γ in (0, 1).
    c : float
        The constant.

    Returns
    -------
    Claim
        left: the exact probability; right: γ.

    Examples
    --------
    >>> from oldlight import paper
    >>> paper.lambda_hat([0.8, 0.8], 50, 0.1).holds
    True
    """
    rates = np.atleast_1d(np.asarray(seen, dtype=np.float64))
    _checked(episodes, float(rates.min()), gamma)
    log = math.log(len(rates) * episodes / gamma)
    outside = {x: leaves_its_band(x, episodes, lambda k: c * math.sqrt(log / k)) for x in set(rates.tolist())}
    left = 1.0 - math.prod(1.0 - outside[x] for x in rates.tolist())
    return Claim("concentration of λ̂", left, gamma, left <= gamma * (1 + SLACK), {"per step": outside})


def theta_hat(theta: float, episodes: int, gamma: float, *, S: int, A: int, H: int, D: int, c: float = 1.0) -> Claim:
    """P(|θ̂ − θ| > c·√(D·ι/n) for some n ≤ K and some of the (H−1)·S·A·D pairs and waits) ≤ γ, every θ the same.

    Parameters
    ----------
    theta, episodes, gamma : float, int, float
        θ, K, γ in (0, 1).
    S, A, H, D : int
        States, actions, horizon, maximal delay + 1.
    c : float
        The constant.

    Returns
    -------
    Claim
        left: a union bound over exact probabilities; right: γ.

    Examples
    --------
    >>> from oldlight import paper
    >>> paper.theta_hat(0.5, 50, 0.1, S=2, A=2, H=3, D=2).holds
    True
    """
    one = _leaves(theta, episodes, gamma, S * A * H, c * math.sqrt(D))
    return _union("concentration of θ̂", one, (H - 1) * S * A * D, gamma)


def p_hat(p: float, episodes: int, gamma: float, *, S: int, A: int, H: int, D: int, c: float = 1.0) -> Claim:
    """P(|(p̂ − p)V*| > c·H·√(D·ι/n) for some n ≤ K, (h, s, a) and V*) ≤ γ, where every V* is 0 or H, H with probability p.

    Parameters
    ----------
    p, episodes, gamma : float, int, float
        Probability of the next state that is worth H, K, γ in (0, 1).
    S, A, H, D : int
        States, actions, horizon, maximal delay + 1.
    c : float
        The constant.

    Returns
    -------
    Claim
        left: a union bound over exact probabilities; right: γ.

    Examples
    --------
    >>> from oldlight import paper
    >>> paper.p_hat(0.5, 50, 0.1, S=2, A=2, H=3, D=2).holds
    True
    """
    one = _leaves(p, episodes, gamma, S * A * H, c * math.sqrt(D))
    return _union("concentration of p̂", one, (H - 1) * S * A * sum(A**m for m in range(D)), gamma)


def _leaves(p: float, K: int, gamma: float, pairs: int, c: float) -> float:
    """P(|p̂ − p| > c·√(ι/n) for some n ≤ K), ι = log(pairs·K/γ)."""
    _checked(K, p, gamma)
    return leaves_its_band(p, K, lambda n: c * math.sqrt(math.log(pairs * K / gamma) / n))


def _union(name: str, one: float, streams: int, gamma: float) -> Claim:
    left = min(1.0, streams * one)
    return Claim(name, left, gamma, left <= gamma * (1 + SLACK), {"one stream": one, "streams": streams})


def total_variation(n: int, p: ArrayLike, t: float) -> Claim:
    """P(TV(p̂, p) ≥ t) after n draws, over all outcomes, against (2^S − 2)·exp(−n·t²/2); exp(−2·n·t²) in `detail`.

    Parameters
    ----------
    n : int
        Draws.
    p : array_like, shape (S,)
        Their distribution.
    t : float
        In [0, 1].

    Returns
    -------
    Claim
        left: the exact probability; right: the bound.

    Examples
    --------
    >>> from oldlight import paper
    >>> paper.total_variation(10, [0.2, 0.3, 0.5], 0.4).holds
    True
    """
    checks.whole("n", n, least=1)
    truth = checks.probability_rows("p", p, ("s",))
    S, left = len(truth), 0.0
    for bars in itertools.combinations(range(n + S - 1), S - 1):
        x = np.diff([-1, *bars, n + S - 1]) - 1
        if np.abs(x / n - truth).sum() / 2 >= t - SLACK and not ((truth == 0) & (x > 0)).any():
            some = x > 0
            left += math.exp(gammaln(n + 1) - gammaln(x + 1).sum() + (x[some] * np.log(truth[some])).sum())
    right, sharp = (2**S - 2) * math.exp(-n * t * t / 2), (2**S - 2) * math.exp(-2 * n * t * t)
    detail = {"(2^S − 2)·exp(−2nt²)": sharp, "which holds": left <= sharp * (1 + SLACK) + SLACK}
    return Claim("Weissman et al., for TV", left, right, left <= right * (1 + SLACK) + SLACK, detail)
