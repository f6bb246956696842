"""The smallest processes found on which a statement of the paper fails, with exact numbers. Steps are counted from 0.

Proposition 4:

`mirror(d)`, d ≥ 2: S = A = 2, H = d + 2, rewards 0 and 1, one optimal policy on each side: gap 3/8, bound 0.
    The state is kept with probability 3/4 at steps 0 and 1 (else it flips) and surely until step d; there the action
    must name it to earn 1 at the last step. Who sees it names it; who is d late names s_0 instead. What an observer
    knows in the end is s_1 and the name, and they agree with probability 3/4 under both policies: under the first
    because s_d = s_1 three times in four, under the second because s_0 = s_1 as often. So all visitation measures
    coincide, and the reward of the last step leaves nothing to choose: every term of the bound is 0.
`mirror_warm()`: the same from a warm start, d = 2, S = A = H = 2: gap 3/16, bound 0.
`both_signs(q)`: delay 1, S = A = H = 2, rewards ±1, q < 1/3: gap 4q, bound 2q. (Rewards 0 and 1: both sides 2q.)
`decoy(q)`: delay 2, S = A = 3, H = 2, rewards 0 and 1, q < 1/3: gap (1 + 3q)/2, bound smaller by q(1 − q)/2: the belief
    in E1 is averaged over states that the full-information policy has left.
`blind_coin()`: delay 2, S = A = H = 2: gap 1/2. For the executable policy all first actions tie; if it tosses a fair
    coin the bound is 0.

Lemma optimism_missing:

`rarely_seen(λ)`: S = 2, A = 1, H = 2. The state of step 1 is 0 or 1 with equal chance, is worth 0 or 1, and is seen with
    chance λ only. What a hidden one is worth, 1/2, is estimated from those seen, Kλ of K, while N_h(τ, a) counts those
    hidden: after K ≥ 94·c²·ι episodes the printed bonus is below 1/2, and if the few that were seen were all 0, then Q < Q*.
    With λ = 2·log 2/K that is the case with probability 1/4.

Lemma round_robin_sum and Proposition 6:

`hidden_action(seen)`: S = 2, A = 3, H = 3. At step 1 the state is 0 or 1 with equal chance, and seen with chance λ.
    Seen, one action is best and earns 3/2. Hidden, action 1 earns 1; actions 0 and 2 earn 3/2 in one state and 0 in the
    other, 3/4 on average. What they do in that other state is never counted: there they are played only when the state
    is hidden, and so they are taken for good for ever (5/4 > 1). Optimistic planning (Algorithm 2) loses (1 − λ)/4 in
    every episode, whatever its constant c: its regret is linear.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import bdtr, gammaln, xlog1py, xlogy

from oldlight import checks
from oldlight.channels import ConstantDelay, Loss
from oldlight.mdp import TabularMDP
from oldlight.problem import ImpairedMDP, WarmStart
from oldlight.theory.claims import Claim

NAMES_IT = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])  # [s, a, s2]: to state 0 if a = s


def mirror(d: int = 2, keep: float = 0.75) -> ImpairedMDP:
    """Gap 2x(1 − x) with x = keep, bound 0, behind ConstantDelay(d), cold start."""
    checks.whole("d", d, least=2)
    x = checks.probability("keep", keep)
    H = d + 2
    P = np.zeros((H, 2, 2, 2))
    P[:, [0, 1], :, [0, 1]] = 1.0
    P[:2] = np.array([[x, 1 - x], [1 - x, x]])[:, None, :]
    P[d] = NAMES_IT
    R = np.zeros((H, 2, 2))
    R[:d, :, 0] = 1.0  # so that the actions before are decided, the same way for everybody
    R[d + 1, 0, 0] = 1.0
    return ImpairedMDP(TabularMDP(P, R, horizon=H), ConstantDelay(d))


def mirror_warm() -> ImpairedMDP:
    """Gap 3/16, bound 0, behind ConstantDelay(2), warm start: action 0 keeps the state, 1 flips it, 3 times in 4."""
    keep = np.array([[0.75, 0.25], [0.25, 0.75]])
    P = np.stack([keep, 1 - keep], axis=1)
    R = np.zeros((2, 2, 2))
    R[1, 0, 0] = 1.0
    return ImpairedMDP(TabularMDP(P, R, horizon=2), ConstantDelay(2), start=WarmStart())


def both_signs(q: float = 0.25) -> ImpairedMDP:
    """Gap 4q, bound 2q, behind ConstantDelay(1), rewards ±1."""
    _below_a_third(q)
    P = np.stack([NAMES_IT, np.broadcast_to([1.0, 0.0], (2, 2, 2))])
    R = np.array([[[1.0, 1.0], [-1.0, 1.0]], [[1.0, 1.0], [-1.0, -1.0]]])
    return ImpairedMDP(TabularMDP(P, R, horizon=2, initial=[1 - q, q]), ConstantDelay(1))


def decoy(q: float = 0.25) -> ImpairedMDP:
    """Gap (1 + 3q)/2, bound (1 + 3q)/2 − q(1 − q)/2, behind ConstantDelay(2), rewards 0 and 1."""
    _below_a_third(q)
    P = np.zeros((2, 3, 3, 3))
    P[:, :, :, 2] = 1.0  # state 2: nothing more to earn
    P[0, 0, 0] = 0.5, 0.5, 0.0
    P[0, 1, 1] = 1.0, 0.0, 0.0
    R = np.zeros((2, 3, 3))
    R[0, 0] = 1.0, 0.0, 1.0
    R[0, 1] = 0.0, 1.0, 1.0
    R[1, 0, 0] = R[1, 1, 1] = 1.0
    return ImpairedMDP(TabularMDP(P, R, horizon=2, initial=[1 - q, q, 0.0]), ConstantDelay(2))


def blind_coin() -> ImpairedMDP:
    """Gap 1/2 behind ConstantDelay(2); the bound is 0 for the executable policy that tosses a fair coin."""
    P = np.stack([NAMES_IT, NAMES_IT])
    R = np.zeros((2, 2, 2))
    R[1, 0] = 1.0
    return ImpairedMDP(TabularMDP(P, R, horizon=2), ConstantDelay(2))


def _below_a_third(q: float) -> None:
    if not 0.0 < q < 1 / 3:
        raise ValueError(f"q is {q}, expected a number in (0, 1/3)")


def rarely_seen(seen: float) -> ImpairedMDP:
    """Value 1/2; the belief behind it is learnt from the share λ of the episodes."""
    checks.probability("seen", seen)
    mdp = TabularMDP(np.full((2, 2, 1, 2), 0.5), [[[0.0], [0.0]], [[0.0], [1.0]]], horizon=2, initial=[1.0, 0.0])
    return ImpairedMDP(mdp, Loss(seen=[1.0, seen]))


def optimism_missing_printed(episodes: int, *, seen: float | None = None, c: float = 1.0, gamma: float = 0.1) -> Claim:
    """P(Q^K < Q*) at the hidden state of step 1 of `rarely_seen`, exactly, against γ; λ = 2·log 2/K if None.

    The bonus is the printed one, c·H·(√(H·ι/N) + √(ι/K)), with N the episodes in which the state was hidden (all of them
    count: say that what follows the last step is always seen). Where the state was never seen Q = H.
    """
    K = checks.whole("episodes", episodes, least=1)
    rate = 2 * math.log(2) / K if seen is None else checks.probability("seen", seen)
    iota = math.log(2 * 1 * 2 * K / gamma)
    n = np.arange(1, K)
    bonus = c * 2 * (np.sqrt(2 * iota / (K - n)) + math.sqrt(iota / K))
    least = np.ceil(n * (0.5 - bonus) - 1e-9) - 1  # ones among the n seen, at most, for Q < 1/2
    chance = np.exp(gammaln(K + 1) - gammaln(n + 1) - gammaln(K - n + 1) + xlogy(n, rate) + xlog1py(K - n, -rate))
    left = float(chance @ np.where(least >= 0, bdtr(np.maximum(least, 0), n, 0.5), 0.0))
    detail = {"seen": rate, "bonus": float(bonus[0]), "c": c}
    return Claim("Lemma optimism_missing, as printed", left, gamma, left <= gamma, detail)


def hidden_action(seen: float = 0.5) -> ImpairedMDP:
    """Optimal value λ·3/2 + (1 − λ)·1; optimistic planning settles for λ·3/2 + (1 − λ)·3/4."""
    checks.probability("seen", seen)
    P = np.zeros((3, 2, 3, 2))
    P[0] = 0.5
    P[1, 0] = [[1, 0], [1, 0], [0, 1]]
    P[1, 1] = [[0, 1], [1, 0], [1, 0]]
    P[2, :, :, 0] = 1.0
    R = np.zeros((3, 2, 3))
    R[1, 0, 0] = R[1, 1, 2] = 0.5
    R[2, 0] = 1.0
    return ImpairedMDP(TabularMDP(P, R, horizon=3, initial=[1.0, 0.0]), Loss(seen=[1.0, seen, 1.0]))


def proposition6(episodes: int, *, seen: float = 0.5, c: float = 1.0, gamma: float = 0.1, seed: int = 0) -> Claim:
    """Algorithm 2 on `hidden_action`, literally, for K episodes: its regret against K·(1 − λ)/4.

    Only the rows of step 1 matter, and their value grows with the chance of state 0 next; so the joint maximum over
    policies and models takes the upper end p̂ + c·√(Sι/N) of each row (N = 0: 1), and is found by hand. Ties are broken
    at random. `holds` is Proposition 6 in a form that can be tested: the later half costs clearly less than the first.
    """
    K = checks.whole("episodes", episodes, least=2)
    problem = hidden_action(seen)
    rng = np.random.default_rng(seed)
    r, p = problem.mdp.rewards[1], problem.mdp.transitions[1, :, :, 0]
    iota = math.log(2 * 3 * 3 * K / gamma)
    counts, goods = np.zeros((2, 3)), np.zeros((2, 3))
    lost = np.zeros(K)
    for k in range(K):
        hat = np.divide(goods, counts, out=np.ones((2, 3)), where=counts > 0)
        width = c * np.sqrt(2 * iota / np.maximum(counts, 1))
        upper = np.where(counts > 0, np.minimum(1.0, hat + width), 1.0)
        hopes, truth = r + upper, r + p
        hidden = _one_of_the_best(hopes.mean(axis=0), rng)
        shown = [_one_of_the_best(hopes[s], rng) for s in range(2)]
        value = seen * np.mean([truth[s, shown[s]] for s in range(2)]) + (1 - seen) * truth[:, hidden].mean()
        lost[k] = seen * truth.max(axis=1).mean() + (1 - seen) * truth.mean(axis=0).max() - value
        s, is_seen = int(rng.integers(2)), rng.random() < seen
        if is_seen:  # the next state is always seen here; a hidden s counts for nothing
            counts[s, shown[s]] += 1
            goods[s, shown[s]] += rng.random() < p[s, shown[s]]
    first, later = float(lost[: K // 2].mean()), float(lost[K // 2 :].mean())
    detail = {"mean regret, first half": first, "later half": later, "counts of step 1": counts.tolist()}
    return Claim("Proposition 6", float(lost.sum()), K * (1 - seen) / 4, later < 0.9 * first, detail, "far below")


def _one_of_the_best(values: np.ndarray[tuple[int], np.dtype[np.float64]], rng: np.random.Generator) -> int:
    return int(rng.choice(np.flatnonzero(values >= values.max() - 1e-12)))
