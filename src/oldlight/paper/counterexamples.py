"""The smallest processes found on which a statement of the paper fails, with exact numbers. Steps are counted from 0.

Proposition 1, its list of cases: `late_reward()`, one state, one action, H = 1, reward 1, delay 1: 1 against 0.
Monotonicity: `moved_start()`, S = A = 2, H = 1: behind a warm start a longer delay can have the higher value.
Lemma round_robin_sum: `one_state(A, H, λ)`, nothing to earn and nothing to learn but counts.

Proposition 4 is printed for each fixed first state, so these processes have one, state 0: step 0 earns 1 for action 0 and
nothing otherwise, and draws the state of step 1 whatever is done. What is said of the states below starts there.

`mirror(d)`, d ≥ 2: S = A = 2, H = d + 3, rewards 0 and 1, one optimal policy on each side: gap 3/8, bound 0.
    The state is kept with probability 3/4 at steps 1 and 2 (else it flips) and surely until step d + 1; there the action
    must name it to earn 1 at the last step. Who sees it names it; who is d late names s_1 instead. What an observer
    knows in the end is s_2 and the name, and they agree with probability 3/4 under both policies: under the first
    because s_{d+1} = s_2 three times in four, under the second because s_1 = s_2 as often. So all visitation measures
    coincide, and the reward of the last step leaves nothing to choose: every term of the bound is 0.
`both_signs(q)`: delay 1, S = A = 2, H = 3, rewards ±1, q < 1/3: gap 4q, bound 2q. (Rewards 0 and 1: both sides 2q.)
`decoy(q)`: delay 2, S = A = H = 3, rewards 0 and 1, q < 1/3: gap (1 + 3q)/2, bound smaller by q(1 − q)/2: the belief
    in E1 is averaged over states that the full-information policy has left.
`blind_coin()`: delay 2, S = A = 2, H = 3: gap 1/2. For the executable policy both actions of step 1 tie; if it tosses a
    fair coin the bound is 0 (`proposition4_ties`).

Lemma optimism_missing, for rates of observation λ_0 of the order 1/K. (Theorem 2 asks for λ_0 > 1 − 1/A, at least 1/2 where
there is a choice; there this process is no counterexample, see `optimism_missing_printed`.)

`rarely_seen(λ)`: S = 2, A = 1, H = 2. The state of step 1 is 0 or 1 with equal probability, is worth 0 or 1, and is seen with
    probability λ only. What a hidden one is worth, 1/2, is estimated from those seen, Kλ of K, while N_h(τ, a) counts those
    hidden: after K ≥ 94·c²·ι episodes the printed bonus is below 1/2, and if the few that were seen were all 0, then Q < Q*.
    With λ = 2·log 2/K that is the case with probability 1/4.

Lemma round_robin_sum and Proposition 6:

`hidden_action(seen)`: S = 2, A = 3, H = 3, every state is seen with the same probability λ, and s_0 is always 0. At step 1 the
    state is 0 or 1 with equal probability. Seen, one action is best and earns 3/2. Hidden, action 1 earns 1; actions 0 and 2 earn 3/2 in one state and 0 in the
    other, 3/4 on average. What they do in that other state is never counted: there they are played only when the state
    is hidden, and so they are taken for good for ever (5/4 > 1). Optimistic planning (Algorithm 2) loses (1 − λ)/4 in
    every episode, whatever its constant c: its regret is linear.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr, gammaln, xlog1py, xlogy

from oldlight import checks
from oldlight.arrays import Floats
from oldlight.model.channels import ConstantDelay, Loss
from oldlight.model.mdp import TabularMDP
from oldlight.model.problem import ImpairedMDP
from oldlight.paper import bounds
from oldlight.paper.claims import Claim
from oldlight.random_streams import Seed, seed_number

__all__ = [
    "blind_coin",
    "both_signs",
    "decoy",
    "decoy_lost",
    "hidden_action",
    "late_reward",
    "mirror",
    "moved_start",
    "one_state",
    "optimism_missing_printed",
    "proposition6",
    "rarely_seen",
]

NAMES_IT = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])  # [s, a, s2]: to state 0 if a = s


def late_reward() -> ImpairedMDP:
    """The reward of the only step arrives one step after it."""
    return ImpairedMDP(TabularMDP([[[1.0]]], [[1.0]], horizon=1), ConstantDelay(1))


def moved_start() -> TabularMDP:
    """State 1 is never left, state 0 with probability 1/2; naming the state earns 1. Values 1, 3/4, 7/8 for d = 0, 1, 2, warm."""
    return TabularMDP([[[0.5, 0.5]] * 2, [[0.0, 1.0]] * 2], np.eye(2), horizon=1)


def one_state(n_actions: int, horizon: int, seen: float) -> ImpairedMDP:
    """One state, seen with probability `seen`."""
    mdp = TabularMDP(np.ones((1, n_actions, 1)), np.zeros((1, n_actions)), horizon=horizon)
    return ImpairedMDP(mdp, Loss(seen=seen))


def mirror(d: int = 2, keep: float = 0.75) -> ImpairedMDP:
    """Gap 2x(1 − x) with x = keep, bound 0, behind ConstantDelay(d), from state 0."""
    checks.whole("d", d, least=2)
    x = checks.probability("keep", keep)
    P = np.zeros((d + 2, 2, 2, 2))
    P[:, [0, 1], :, [0, 1]] = 1.0
    P[:2] = np.array([[x, 1 - x], [1 - x, x]])[:, None, :]
    P[d] = NAMES_IT
    R = np.zeros((d + 2, 2, 2))
    R[:d, :, 0] = 1.0  # so that the actions before are decided, the same way for everybody
    R[d + 1, 0, 0] = 1.0
    return ImpairedMDP(_from_state_0(P, R, [0.5, 0.5]), ConstantDelay(d))


def both_signs(q: float = 0.25) -> ImpairedMDP:
    """Gap 4q, bound 2q, behind ConstantDelay(1), rewards ±1, from state 0."""
    _below_a_third(q)
    P = np.stack([NAMES_IT, np.broadcast_to([1.0, 0.0], (2, 2, 2))])
    R = np.array([[[1.0, 1.0], [-1.0, 1.0]], [[1.0, 1.0], [-1.0, -1.0]]])
    return ImpairedMDP(_from_state_0(P, R, [1 - q, q]), ConstantDelay(1))


def decoy(q: float = 0.25) -> ImpairedMDP:
    """Gap (1 + 3q)/2, bound (1 + 3q)/2 − q(1 − q)/2, behind ConstantDelay(2), rewards 0 and 1, from state 0."""
    _below_a_third(q)
    P = np.zeros((2, 3, 3, 3))
    P[:, :, :, 2] = 1.0  # state 2: nothing more to earn
    P[0, 0, 0] = 0.5, 0.5, 0.0
    P[0, 1, 1] = 1.0, 0.0, 0.0
    R = np.zeros((2, 3, 3))
    R[0, 0] = 1.0, 0.0, 1.0
    R[0, 1] = 0.0, 1.0, 1.0
    R[1, 0, 0] = R[1, 1, 1] = 1.0
    return ImpairedMDP(_from_state_0(P, R, [1 - q, q, 0.0]), ConstantDelay(2))


def decoy_lost(q: float = 0.25, seen: float = 0.5) -> ImpairedMDP:
    """The process of `decoy` where every observation is seen with probability `seen` at once, or lost."""
    return ImpairedMDP(decoy(q).mdp, Loss(seen=seen))


def blind_coin() -> ImpairedMDP:
    """Gap 1/2 behind ConstantDelay(2), from state 0; the bound is 0 for the executable policy that tosses a fair coin."""
    R = np.zeros((2, 2, 2))
    R[1, 0] = 1.0
    return ImpairedMDP(_from_state_0(np.stack([NAMES_IT, NAMES_IT]), R, [0.5, 0.5]), ConstantDelay(2))


def _from_state_0(P: Floats, R: Floats, drawn: ArrayLike) -> TabularMDP:
    """The process P[h, s, a, s2], R[h, s, a] with one step in front, which draws its first state from state 0.

    Action 0 earns 1 in that step, any other 0: so no optimal policy has a choice there.
    """
    first = np.broadcast_to(np.asarray(drawn, dtype=np.float64), P.shape[1:])
    pays = np.zeros(R.shape[1:])
    pays[:, 0] = 1.0
    initial = np.eye(P.shape[1])[0]
    return TabularMDP(np.concatenate([[first], P]), np.concatenate([[pays], R]), horizon=len(R) + 1, initial=initial)


def _below_a_third(q: float) -> None:
    if not 0.0 < q < 1 / 3:
        raise ValueError(f"q is {q}, expected a number in (0, 1/3)")


def rarely_seen(seen: float) -> ImpairedMDP:
    """Value 1/2; the belief behind it is learnt from the share λ of the episodes."""
    checks.probability("seen", seen)
    mdp = TabularMDP(np.full((2, 2, 1, 2), 0.5), [[[0.0], [0.0]], [[0.0], [1.0]]], horizon=2, initial=[1.0, 0.0])
    return ImpairedMDP(mdp, Loss(seen=[1.0, seen]))


def optimism_missing_printed(episodes: int, *, seen: float | None = None, c: float = 1.0, gamma: float = 0.1) -> Claim:
    """P(Q^K < Q*) at the hidden state of step 1 of `rarely_seen`, exactly, against γ.

    The bonus is the printed one, c·H·(√(H·ι/N) + √(ι/K)), with N the episodes in which the state was hidden (all of them
    count: let what follows the last step always be seen). Where the state was never seen Q = H.

    Parameters
    ----------
    episodes : int
        K.
    seen : float, optional
        λ; 2·log 2/K if None.
    c, gamma : float
        Bonus constant, γ.

    Returns
    -------
    Claim
        left: the probability; right: γ.

    Examples
    --------
    >>> from oldlight import paper
    >>> paper.optimism_missing_printed(4000).holds
    False
    """
    K = checks.whole("episodes", episodes, least=1)
    rate = 2 * math.log(2) / K if seen is None else checks.probability("seen", seen)
    iota = math.log(2 * 1 * 2 * K / gamma)
    n = np.arange(1, K)
    bonus = c * 2 * (np.sqrt(2 * iota / (K - n)) + math.sqrt(iota / K))
    least = np.ceil(n * (0.5 - bonus) - 1e-9) - 1  # ones among the n seen, at most, for Q < 1/2
    weight = np.exp(gammaln(K + 1) - gammaln(n + 1) - gammaln(K - n + 1) + xlogy(n, rate) + xlog1py(K - n, -rate))
    left = float(weight @ np.where(least >= 0, bdtr(np.maximum(least, 0), n, 0.5), 0.0))
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
    return ImpairedMDP(TabularMDP(P, R, horizon=3, initial=[1.0, 0.0]), Loss(seen=seen))


def proposition6(episodes: int, *, seen: float = 0.5, c: float = 1.0, gamma: float = 0.1, seed: Seed = 0) -> Claim:
    """Algorithm 2 on `hidden_action`, literally, for K episodes: how fast its regret grows, as a power of K.

    The joint maximum over policies and models is found by hand. Each row of step 1 has its own place in the value, which
    grows with the probability of state 0 next: it takes the upper end p̂ + c·√(Sι/N) (N = 0: 1). The row of step 0 is then one
    number x = P(s_1 = 0), and the value is convex in it: it takes one of its two ends. Ties are broken at random.

    Parameters
    ----------
    episodes : int
        K.
    seen : float
        λ.
    c : float
        Constant of the confidence set.
    gamma : float
        γ.
    seed : int, SeedSequence or Generator
        Random seed of the run.

    Returns
    -------
    Claim
        left: x in R(K) = 2^x·R(K/2) of the regret; right: the same x of the printed bound, in which its constant cancels.

    Examples
    --------
    >>> from oldlight import paper
    >>> paper.proposition6(200).holds
    False
    """
    K = checks.whole("episodes", episodes, least=2)
    problem = hidden_action(seen)
    rng = np.random.default_rng(seed_number(seed))
    r, p = problem.mdp.rewards[1], problem.mdp.transitions[1, :, :, 0]
    truth = r + p
    iota = math.log(2 * 3 * 3 * K / gamma)
    counts, goods = np.zeros((2, 2, 3)), np.zeros((2, 2, 3))  # [step, s, a]: seen twice in a row; state 0 next
    lost = np.zeros(K)
    for k in range(K):
        hat = np.divide(goods, counts, out=np.full((2, 2, 3), 0.5), where=counts > 0)
        width = np.where(counts > 0, c * np.sqrt(2 * iota / np.maximum(counts, 1)), 1.0)
        hopes = r + np.minimum(1.0, hat[1] + width[1])
        ends = np.clip(np.stack([hat[0, 0] - width[0, 0], hat[0, 0] + width[0, 0]], axis=1), 0, 1)[:, :, None, None]
        hidden = ends * hopes[0] + (1 - ends) * hopes[1]  # [first action, end, -, action while hidden]
        if_seen = ends[..., 0] * hopes[0].max() + (1 - ends[..., 0]) * hopes[1].max()
        plan = seen * if_seen[..., None] + (1 - seen) * hidden
        first, _, _, blind = np.unravel_index(_one_of_the_best(plan.reshape(-1), rng), plan.shape)
        acts = [_one_of_the_best(hopes[s], rng) for s in range(2)]
        value = seen * np.mean([truth[s, acts[s]] for s in range(2)]) + (1 - seen) * truth[:, blind].mean()
        lost[k] = seen * truth.max(axis=1).mean() + (1 - seen) * truth.mean(axis=0).max() - value
        s, visible = int(rng.integers(2)), rng.random(3) < seen
        if visible[0] and visible[1]:
            counts[0, 0, first] += 1
            goods[0, 0, first] += s == 0
        if visible[1] and visible[2]:  # a hidden s_1 counts for nothing, whatever follows
            counts[1, s, acts[s]] += 1
            goods[1, s, acts[s]] += rng.random() < p[s, acts[s]]
    grown = math.log2(lost.sum() / lost[: K // 2].sum())
    printed = [bounds.proposition_6(2, 3, 3, n, gamma, seen) for n in (K // 2, K)]
    detail = {
        "regret": float(lost.sum()),
        "per episode": (float(lost.min()), float(lost.max())),
        "counts": counts.tolist(),
    }
    right = math.log2(printed[1] / printed[0])
    return Claim("Proposition 6, growth of the regret as a power of K", grown, right, grown <= right, detail)


def _one_of_the_best(values: Floats, rng: np.random.Generator) -> int:
    return int(rng.choice(np.flatnonzero(values >= values.max() - 1e-12)))
