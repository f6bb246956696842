"""A process to plan for, made of counts: optimistic by a state in which everything is earned or by the best one there is, or drawn from the
posterior.

**Optimism.** One state is added, ∞, that is never left and earns at each step the most that the step can earn. With N = N_t(s, a),

    p̃_t(·|s, a) = (1 − β)·p̂_t(·|s, a) + β·e_∞,         β_t(s, a) ∈ [0, 1],   1 where N = 0,   0 at the last step, whose successor does not matter.

So a plan for p̃ never expects more than can still be earned, whatever the link is, and needs no other planner. β is

    "prior"        n/(N + n): as if each pair had been seen to lead to ∞ n times before the first episode. No constant that depends on H, S, A or K
    "hoeffding"    so that the full-information value of p̃ is min( r + p̂V + c·R·√(ι/N), r + R ),                       R = Σ_{i>t} max r_i
    "bernstein"    the same with c·( √(2·Var_p̂(V)·ι/N) + R·ι/(3N) )

where V is the full-information value of p̃ one step later: β = bonus/(R − p̂V), at most 1. ι = log(S·A·H·K/γ).

What is proved: with c ≥ 1 and "hoeffding", and everything seen at once, this is UCBVI with its values clipped at what is left to earn, and optimistic with
probability 1 − γ. Behind a link the value ahead of a queue is another function than V, so that for it, and for "prior", nothing is proved: `certificate`
in `oldlight.learners.stopping` has the bounds that hold behind every link. What is measured is in docs/learning.md.

**Towards the best.** "best" needs no state that is not there: with g the best state of the next step, the one whose full-information value V_{t+1} is largest,

    p̃_t(·|s, a) = ( X + n·e_g ) / ( |X| + n ),        X(s2) ~ Gamma(κ·N_t(s, a, s2))/κ independently,       e_g where N = 0.

Whatever a pair that was never tried does, it cannot lead to more than the best state: so everything untried is optimistic, but by the span of the values and not by all that could be earned, which is
what makes it learn faster than "prior". The draw is the posterior's with κ times as many visits (its variance is 1/κ of the posterior's; κ = `sharpness`), and keeps a wrong estimate from
staying for ever. Nothing is proved of it.

**Posterior.** Each row is drawn from a Dirichlet law with parameters N + prior (1/S); with draws = n > 1 each pair takes, of n rows, the one that promises most
(the largest Σ p·V of full information), which is optimistic posterior sampling.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
NOISE = 1e-9  # of the rewards' size, to break ties at random


class Estimated(NamedTuple):
    """A process to plan for: transitions (1 or H, S, A, S) and rewards (H, S, A), the added state last if there is one."""

    transitions: Floats
    rewards: Floats


class Optimism(NamedTuple):
    """How β is made: kind, constant c, log term ι, pseudo-visits n of the prior."""

    kind: str
    c: float
    log_term: float
    visits: float


def optimistic(number: Floats, rewards: Floats, how: Optimism) -> Estimated:
    """The process of the module's text from counts [1 or H, s, a, s2] and rewards [H, s, a]."""
    H, S, A = rewards.shape
    n = number.sum(axis=3)
    most = rewards.max(axis=(1, 2))
    left = np.append(np.cumsum(most[::-1])[::-1], 0.0)  # Σ_{i ≥ t} max r_i
    one = how.kind == "prior" and len(number) == 1
    P = np.zeros((1 if one else H, S + 1, A, S + 1))
    if how.kind == "prior":
        share = how.visits / (n + how.visits)
        for t in range(len(P)):  # step by step: nothing of its size is there twice
            i = min(t, len(number) - 1)
            P[t, :S, :, :S] = (1.0 - share[i])[..., None] * _rows(number[i], n[i])
            P[t, :S, :, S] = np.maximum(1.0 - P[t, :S, :, :S].sum(axis=2), 0.0)
    else:
        V = np.zeros(S)
        for t in range(H - 1, -1, -1):
            i = min(t, len(number) - 1)
            p, N = _rows(number[i], n[i]), n[i]
            share = _share(p, N, V, left[t + 1], how)
            P[t, :S, :, :S] = (1.0 - share)[..., None] * p
            P[t, :S, :, S] = np.maximum(1.0 - P[t, :S, :, :S].sum(axis=2), 0.0)
            V = (rewards[t] + P[t, :S, :, :S] @ V + P[t, :S, :, S] * left[t + 1]).max(axis=1)
    P[:, S, :, S] = 1.0
    R = np.concatenate([rewards, np.broadcast_to(most[:, None, None], (H, 1, A))], axis=1)
    return Estimated(P, R)


def _rows(number: Floats, n: Floats) -> Floats:
    """Their shares, axes (s, a, s2); 0 where nothing was counted."""
    return number / np.maximum(n, 1e-300)[..., None]


def _share(p: Floats, N: Floats, V: Floats, left: float, how: Optimism) -> Floats:
    """β of one step, [s, a]."""
    if left <= 0:
        return np.zeros_like(N)
    seen, mean = np.maximum(N, 1e-12), p @ V
    if how.kind == "hoeffding":
        bonus = how.c * left * np.sqrt(how.log_term / seen)
    else:
        variance = np.maximum(p @ V**2 - mean**2, 0.0)
        bonus = how.c * (np.sqrt(2 * variance * how.log_term / seen) + left * how.log_term / (3 * seen))
    missing = np.maximum(left - mean, 1e-12)
    return np.where(N < 1e-9, 1.0, np.minimum(bonus / missing, 1.0))


def towards_best(
    number: Floats, rewards: Floats, visits: float, sharpness: float, rng: np.random.Generator
) -> Estimated:
    """The process "best" of the module's text from counts [1 or H, s, a, s2] and rewards [H, s, a]."""
    H, S, A = rewards.shape
    mass = rng.standard_gamma(sharpness * number) / sharpness
    untried = number.sum(axis=3) < 1e-9
    P, V = np.empty((H, S, A, S)), np.zeros(S)
    for t in range(H - 1, -1, -1):
        i, best = min(t, len(number) - 1), int(V.argmax())
        row = mass[i].copy()
        row[..., best] += visits
        row[untried[i]] = np.eye(S)[best]
        P[t] = row / row.sum(axis=2, keepdims=True)
        V = (rewards[t] + P[t] @ V).max(axis=1)
    return Estimated(P, rewards)


def drawn(number: Floats, rewards: Floats, prior: float, draws: int, rng: np.random.Generator) -> Estimated:
    """A process from the posterior; of several draws for each pair, the one that promises most."""
    H = len(rewards)
    rows = _dirichlet(number + prior, rng)
    if draws == 1:
        return Estimated(rows, rewards)
    many = np.stack([rows, *(_dirichlet(number + prior, rng) for _ in range(draws - 1))])
    best, V = np.empty((H, *number.shape[1:])), np.zeros(number.shape[1])
    for t in range(H - 1, -1, -1):
        here = many[:, min(t, len(number) - 1)]
        chosen = (here @ V).argmax(axis=0)
        best[t] = np.take_along_axis(here, chosen[None, :, :, None], axis=0)[0]
        V = (rewards[t] + best[t] @ V).max(axis=1)
    return Estimated(best, rewards)


def _dirichlet(parameters: Floats, rng: np.random.Generator) -> Floats:
    gamma = rng.standard_gamma(parameters)
    total = gamma.sum(axis=-1, keepdims=True)
    return np.where(total > 0, gamma / np.where(total > 0, total, 1.0), 1.0 / parameters.shape[-1])


def without_ties(model: Estimated, rng: np.random.Generator) -> Estimated:
    """The same with rewards raised by a little, drawn for each pair: actions that are equally good are equally likely to be taken."""
    size = NOISE * max(float(np.abs(model.rewards).max()), 1.0)
    return Estimated(model.transitions, model.rewards + size * rng.random(model.rewards.shape[1:]))
