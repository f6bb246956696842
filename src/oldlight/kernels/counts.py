"""The compiled loops of learning under delay: counts, and the estimates that they make.

Steps t = −warmup..H−1 have their own rows of counts (row t + warmup), or one row for all of them when counts are pooled. A
state-action pair is the number s·A + a.
"""

from typing import NamedTuple

import numpy as np

from oldlight.kernels.cache import compiled


class Protocol(NamedTuple):
    """What is known of the problem."""

    warmup: int
    longest_delay: int
    n_actions: int
    pooled: bool


class Counts(NamedTuple):
    """What was seen."""

    visits: np.ndarray  # [row, pair]: N_t(s, a)
    successor: np.ndarray  # [row, pair, k]: the successors met so far
    number: np.ndarray  # [row, pair, k]: how often
    count: np.ndarray  # [row, pair]: how many successors there are
    event: np.ndarray  # [row, pair, δ]: interarrival times Δ = δ met
    risk: np.ndarray  # [row, pair, δ]: those that were still waiting at δ


class Bonus(NamedTuple):
    """c·H and the logarithms of the bonus: delayed = (H∧D)·ι, log_term = ι; is the law of the link known, and which divisor is used?"""

    c: float
    horizon: float
    delayed: float
    log_term: float
    known_law: bool
    printed: bool


class Estimates(NamedTuple):
    """The model that is planned for; axes as in `oldlight.kernels.delay`."""

    probability: np.ndarray
    count: np.ndarray
    bonus: np.ndarray
    std_coefficient: np.ndarray
    theta: np.ndarray
    theta_bonus: np.ndarray
    known: np.ndarray


@compiled
def count(states, actions, arrivals, protocol, counts, touched):
    """Take one revealed episode into the counts; touched[i] = (row, pair) of step i."""
    n = len(states)
    K = counts.event.shape[2]
    for i in range(n):
        row = 0 if protocol.pooled else i
        pair = states[i] * protocol.n_actions + actions[i]
        touched[i, 0] = row
        touched[i, 1] = pair
        if i + 1 == n:
            break  # what follows the last step is never seen
        counts.visits[row, pair] += 1
        k = 0
        while k < counts.count[row, pair] and counts.successor[row, pair, k] != states[i + 1]:
            k += 1
        if k == counts.count[row, pair]:
            counts.successor[row, pair, k] = states[i + 1]
            counts.count[row, pair] += 1
        counts.number[row, pair, k] += 1
        if protocol.warmup == 0:
            late = arrivals[i] - i  # d_i
            wait = arrivals[i + 1] - arrivals[i] - 1  # Δ_i, or a lower bound on it where the delay is capped
            capped = late + wait >= protocol.longest_delay
            for j in range(min(wait + (0 if capped else 1), K)):
                counts.risk[row, pair, j] += 1
            if not capped and wait < K:
                counts.event[row, pair, wait] += 1


@compiled
def estimate(touched, counts, bonus, estimates):
    """p̂, θ̂ and their bonuses for the pairs in `touched`."""
    K = counts.event.shape[2]
    scale = bonus.c * bonus.horizon
    for i in range(len(touched)):
        row, pair = touched[i]
        n = counts.visits[row, pair]
        if n == 0:
            continue
        estimates.known[row, pair] = True
        estimates.count[row, pair] = counts.count[row, pair]
        for k in range(counts.count[row, pair]):
            estimates.probability[row, pair, k] = counts.number[row, pair, k] / n
        if estimates.std_coefficient.shape[0] > 0:
            estimates.std_coefficient[row, pair] = bonus.c * np.sqrt(2.0 * bonus.log_term / n)
            estimates.bonus[row, pair] = scale * bonus.log_term / (3.0 * n)
        else:
            estimates.bonus[row, pair] = scale * np.sqrt(bonus.delayed / n)
        if bonus.known_law:
            continue
        for k in range(K):
            at_risk = counts.risk[row, pair, k]
            estimates.theta[row, pair, k] = counts.event[row, pair, k] / at_risk if at_risk > 0 else 1.0
            size = counts.event[row, pair, k] if bonus.printed else at_risk
            estimates.theta_bonus[row, pair, k] = (
                scale * np.sqrt(bonus.delayed / size) if size > 0 else 2.0 * bonus.horizon
            )
