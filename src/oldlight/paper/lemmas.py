"""The lemmas of the appendix on runs and counts, with exact left sides.

**Longest gap** (Lemma `max_gap`). u_1..u_k are independent, P(u_i = 1) = θ; g(k) is the largest distance j − i of two
neighbouring zeros. Printed: P(g(k) > q) ≤ k·θ^{q+1}. A distance above q needs q ones in between, not q + 1. What holds:

    P(g(k) > q) ≤ (k − q − 1)·(1 − θ)·θ^q ≤ k·θ^q,    and also    P(some q ones in a row) ≤ (k − q + 1)·θ^q ≤ k·θ^q.

The second is what the counts need: a run of lost observations before the first or after the last seen one counts too.

**Event E_m**, m ≥ 1: no run of lost observations in K episodes of H steps is longer than m. Printed:
P(E_m) ≤ (1 − H·(1−λ_0)^{m+1})^K where λ_h ≥ λ_0. It is the other way round: ≥, by a union bound per episode, where the
base is not negative; and strictly so for 0 < λ_0 < 1, since a run of m + 1 has at most H − m places, not H. From a *lower* bound λ_0 on the arrival probability no upper bound on P(E_m) can follow at all.

**The use of E_m** in Theorem 2's proof, m = ½·⌊log K/(−log(1 − λ_0))⌋: "on the complement the regret is bounded by
H(1 − P(E_m)) ≤ H²K(1−λ_0)^{m+1} ≤ H²√K". If E_m is about all K episodes, as its printed power K means, the regret on the
complement is up to HK, not H; and with this m < H, E_m nearly never happens (its probability falls exponentially in √K), so that
a bound on E_m bounds nothing. What holds: *single episodes* with a longer run cost H each, and there are at most HK(1−λ_0)^{m+1} ≤ H√K
of them in expectation (`long_runs`). That is a bound in expectation; the theorem states "with probability 1 − γ", for which
the number of such episodes has to be bounded with that probability too.

**The gap between two losses of the same length** there: ⌈ι/(−log(1 − (1−λ_0)^j))⌉ episodes with probability 1 − γ. The probability
of j losses in a row is *at most* (1−λ_0)^j; where λ_h > λ_0 it is smaller, and the gaps are longer than that (`pattern_gap`).

**Counts** (Lemma `round_robin_sum`). N_h^k(s, a) is the number of episodes j ≤ k in which (s_h, a_h) = (s, a) with both
s_h and s_{h+1} seen. Printed: with probability 1 − γ,

    Σ_k Σ_h 1/√N_h^k(s_h^k, a_h^k) ≤ q·√(SAKH),    q = ⌈log(HK/γ)/(−log(1 − λ_0²))⌉.

The proof itself ends with twice that, and its pigeon-hole step loses √H: there are SAH counters, and they share HK
visits, so Σ_{h,s,a} Σ_{i ≤ N} 1/√i ≤ 2·√(SAH·HK) = 2H·√(SAK). Worse, it takes for granted that a pair is seen as often
as it is visited. But a policy knows whether s_h was seen; an action that it takes only where s_h is hidden is never
counted, and the sum grows like K (`hidden_only` is such a policy). What this does to Proposition 6 is in
`oldlight.paper.counterexamples`.

Steps are counted from 0; the last step has no successor and no count, so sums run over the H − 1 steps before it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from oldlight import checks
from oldlight.model.policies import FunctionPolicy, Policy
from oldlight.model.problem import ImpairedMDP
from oldlight.paper.claims import Claim
from oldlight.random_streams import Seed, seed_number
from oldlight.simulation import simulate


def longest_gap(k: int, q: int, theta: float) -> Claim:
    """P(g(k) > q), exactly, against the printed bound.

    Parameters
    ----------
    k : int
        Draws.
    q : int
        Distance, ≥ 1.
    theta : float
        θ.

    Returns
    -------
    Claim
        left: the probability; right: the bound; `detail`: the bounds that hold, and the probability of a run.

    Examples
    --------
    >>> from oldlight import paper
    >>> paper.longest_gap(3, 1, 0.5).holds
    True
    """
    checks.whole("k", k, least=1)
    checks.whole("q", q, least=1)
    checks.probability("theta", theta)
    exact = gap_probability(k, q, theta)
    detail = {
        "k·θ^q": k * theta**q,
        "(k − q − 1)(1 − θ)θ^q": max(0, k - q - 1) * (1 - theta) * theta**q,
        "P(q ones in a row)": run_probability(np.full(k, theta), q),
    }
    return Claim("Lemma max_gap", exact, k * theta ** (q + 1), exact <= k * theta ** (q + 1) + 1e-15, detail)


def gap_probability(k: int, q: int, theta: float) -> float:
    """P(two neighbouring zeros are more than q apart): one pass over the k draws."""
    before = 1.0  # no zero yet
    since = np.zeros(q + 1)  # since[r]: r ones since the last zero (q: q or more)
    hit = 0.0
    for _ in range(k):
        hit += float(since[q]) * (1 - theta)
        zero = (before + float(since[:q].sum())) * (1 - theta)
        longer = since * theta
        since = np.append(0.0, longer[:-1])
        since[q] += longer[q]
        since[0] = zero
        before *= theta
    return hit


def run_probability(thetas: ArrayLike, q: int) -> float:
    """P(some q ones in a row) for independent draws with P(u_i = 1) = thetas[i]."""
    ones = np.asarray(thetas, dtype=np.float64)
    if q < 1:
        return 1.0
    alive = np.zeros(q)  # alive[r]: the run at the end has r ones, and no run of q so far
    alive[0] = 1.0
    for theta in ones.tolist():
        total = float(alive.sum()) * (1 - theta)
        alive = np.append(total, alive[:-1] * theta)
    return max(0.0, 1.0 - float(alive.sum()))


def event_no_long_run(
    horizon: int, m: int, seen: ArrayLike, episodes: int, *, least_seen: float | None = None
) -> Claim:
    """P(E_m), exactly, against the printed upper bound.

    Parameters
    ----------
    horizon : int
        H.
    m : int
        The longest run of losses that is allowed, ≥ 1.
    seen : float or array_like, shape (H,)
        λ_h.
    episodes : int
        K.
    least_seen : float, optional
        λ_0; the smallest λ_h if None.

    Returns
    -------
    Claim
        left: the probability; right: the printed bound; `detail`: the lower bound that holds.

    Examples
    --------
    >>> from oldlight import paper
    >>> paper.event_no_long_run(10, 2, 0.8, 5).holds
    False
    """
    H = checks.whole("horizon", horizon, least=1)
    K = checks.whole("episodes", episodes, least=1)
    checks.whole("m", m, least=1)
    rates = np.broadcast_to(np.asarray(seen, dtype=np.float64), (H,))
    low = checks.probability("least_seen", rates.min() if least_seen is None else least_seen)
    if low > rates.min():
        raise ValueError(f"least_seen is {low:.6g}, expected at most the smallest rate, {rates.min():.6g}")
    exact = (1.0 - run_probability(1.0 - rates, m + 1)) ** K
    base = 1.0 - H * (1.0 - low) ** (m + 1)
    printed = base**K
    detail = {
        "lower bound": max(0.0, base) ** K,
        "lower bound holds": exact >= max(0.0, base) ** K - 1e-12,
        "P by the printed definition (h − t_h − 1 ≤ m)": (1.0 - run_probability(1.0 - rates, m + 2)) ** K,
    }
    return Claim("event E_m", exact, printed, exact <= printed * (1 + 1e-12), detail)


def long_runs(horizon: int, seen: float, episodes: int) -> Claim:
    """What the episodes with more than m losses in a row cost in expectation, H each, against H²√K; m as in the proof.

    Parameters
    ----------
    horizon : int
        H.
    seen : float
        λ in (0, 1).
    episodes : int
        K.

    Returns
    -------
    Claim
        left: the cost; right: H²√K; `detail`: P(E_m) over all K episodes, and the printed H(1 − P(E_m)), which is at most H whatever
        happens.

    Examples
    --------
    >>> from oldlight import paper
    >>> paper.long_runs(10, 0.8, 1000).holds
    True
    """
    H, K = checks.whole("horizon", horizon, least=1), checks.whole("episodes", episodes, least=1)
    if not 0.0 < checks.probability("seen", seen) < 1.0:
        raise ValueError(f"seen is {seen}, expected a number in (0, 1)")
    m = math.floor(math.log(K) / -math.log1p(-seen)) / 2
    one = run_probability(np.full(H, 1.0 - seen), math.floor(m) + 1)
    left, right = H * K * one, H * H * math.sqrt(K)
    never = (1.0 - one) ** K
    detail = {"m": m, "P(E_m), all K episodes": never, "H(1 − P(E_m))": H * (1 - never), "one episode": one}
    return Claim("cost of long runs", left, right, left <= right * (1 + 1e-12), detail)


def pattern_gap(
    episodes: int, run: int, seen: float, *, least_seen: float, gamma: float, S: int = 1, A: int = 1, H: int = 1
) -> Claim:
    """P(two neighbouring episodes with j losses in a row at a step are further apart than printed) ≤ γ.

    Parameters
    ----------
    episodes, run : int
        K and j.
    seen : float
        λ_h of these steps.
    least_seen : float
        λ_0 ≤ λ_h.
    gamma : float
        γ.
    S, A, H : int
        For ι.

    Returns
    -------
    Claim
        left: the exact probability; right: γ.

    Examples
    --------
    >>> from oldlight import paper
    >>> paper.pattern_gap(1000, 1, 0.9, least_seen=0.5, gamma=0.1).holds
    False
    """
    K, j = checks.whole("episodes", episodes, least=1), checks.whole("run", run, least=1)
    lost = 1.0 - checks.probability("seen", seen)
    if not 0.0 < checks.probability("least_seen", least_seen) <= seen:
        raise ValueError(f"least_seen is {least_seen}, expected a number in (0, {seen}]")
    iota = math.log(S * A * H * K / gamma)
    bound = math.ceil(iota / -math.log1p(-((1.0 - least_seen) ** j)))
    left = gap_probability(K, bound, 1.0 - lost**j)
    return Claim("gap between losses of one length", left, gamma, left <= gamma, {"printed gap": bound})


def pigeonhole(counts: ArrayLike) -> Claim:
    """Σ_{h,s,a} Σ_{i=1}^{N_h(s,a)} 1/√i for given counts against the printed 2·√(SAHK), K visits per step.

    Parameters
    ----------
    counts : array_like of int, shape (H, S, A)
        N_h(s, a).

    Returns
    -------
    Claim
        left: the sum; right: the printed bound; `detail`: the one that holds.

    Examples
    --------
    >>> import numpy as np
    >>> from oldlight import paper
    >>> paper.pigeonhole(np.full((4, 1, 1), 100)).holds
    False
    """
    N = np.asarray(counts, dtype=np.int64)
    if N.ndim != 3 or N.size == 0 or (N < 0).any():
        raise ValueError(f"counts has shape {N.shape}; expected whole numbers ≥ 0 with axes (h, s, a)")
    H, S, A = N.shape
    K = int(N.sum(axis=(1, 2)).max())
    partial = np.append(0.0, np.cumsum(1.0 / np.sqrt(np.arange(1, K + 1))))
    left = float(partial[N].sum())
    right, corrected = 2 * math.sqrt(S * A * H * K), 2 * H * math.sqrt(S * A * K)
    detail = {"2H·√(SAK)": corrected, "which holds": left <= corrected}
    return Claim("pigeon-hole step of round_robin_sum", left, right, left <= right, detail)


def round_robin(
    problem: ImpairedMDP, policy: Policy, episodes: int, gamma: float, *, runs: int = 1, seed: Seed = 0
) -> Claim:
    """The sum of Lemma round_robin_sum when a policy plays K episodes, against the printed bound.

    N counts the episodes up to and with k, and 0 counts as 1.

    Parameters
    ----------
    problem : ImpairedMDP
        Under loss.
    policy : Policy
        Who plays.
    episodes : int
        K.
    gamma : float
        γ.
    runs : int
        Repetitions.
    seed : int, SeedSequence or Generator
        Random seed of the first.

    Returns
    -------
    Claim
        left: the median over the runs; right: the bound; `holds`: the share of runs above the bound is at most γ. `detail` has the shares
        above larger bounds too.

    Examples
    --------
    >>> from oldlight import paper
    >>> from oldlight.paper.counterexamples import one_state
    >>> paper.round_robin(one_state(2, 4, 0.9), paper.hidden_only(), 100, 0.1).holds
    True
    """
    if problem.arrival_probability is None:
        raise ValueError(f"round_robin is about loss; {problem.channel!r} loses nothing")
    K = checks.whole("episodes", episodes, least=1)
    H, S, A = problem.horizon, problem.n_states, problem.n_actions
    low = float(problem.arrival_probability.min())
    q = 0 if low >= 1 else math.inf if low <= 0 else math.ceil(math.log(H * K / gamma) / -math.log1p(-(low**2)))
    first = seed_number(seed)
    sums = np.array([_sum_of_roots(problem, policy, K, first + i) for i in range(runs)])
    right = q * math.sqrt(S * A * K * H)
    above = {
        "q·√(SAKH)": float((sums > right).mean()),
        "2q·√(SAKH)": float((sums > 2 * right).mean()),
        "2(q + 1)·H·√(SAK)": float((sums > 2 * (q + 1) * H * math.sqrt(S * A * K)).mean()),
    }
    detail = {"q": q, "share of runs above": above, "largest": float(sums.max()), "gamma": gamma}
    return Claim("Lemma round_robin_sum", float(np.median(sums)), right, above["q·√(SAKH)"] <= gamma, detail)


def hidden_only(n_actions: int = 2) -> FunctionPolicy:
    """A policy that takes action 1 where the current state is hidden, action 0 where it is seen.

    Parameters
    ----------
    n_actions : int
        A ≥ 2.

    Returns
    -------
    FunctionPolicy
        The policy.

    Examples
    --------
    >>> import oldlight as ol
    >>> ol.paper.hidden_only().action(ol.Information.nothing_seen())
    1
    """
    return FunctionPolicy(lambda info: int(info.t != info.h), n_actions)


def _sum_of_roots(problem: ImpairedMDP, policy: Policy, K: int, seed: int) -> float:
    states, actions, arrivals = simulate(problem, policy, K, seed=seed, record=True).record
    total = 0.0
    for h in range(problem.horizon - 1):
        pair = states[:, h].astype(np.int64) * problem.n_actions + actions[:, h]
        both = (arrivals[:, h] >= 0) & (arrivals[:, h + 1] >= 0)
        for one in np.unique(pair):
            here = pair == one
            total += float((1.0 / np.sqrt(np.maximum(np.cumsum(both[here]), 1))).sum())
    return total
