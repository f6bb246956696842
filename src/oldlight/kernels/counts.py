"""The compiled loops of learning under delay: counts, and the estimates that they make.

Steps t = −warmup..H−1 have their own rows of counts (row t + warmup), or one row for all of them when counts are pooled. A
state-action pair is the number s·A + a.
"""

from typing import NamedTuple

import numpy as np

from oldlight.kernels.cache import borrowing, compiled

_inner = borrowing(error_model="numpy")


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
    first: np.ndarray  # [d]: delays of the first observation, H for H and more
    starts: np.ndarray  # [s]: first states
    episodes: np.ndarray  # [0]: how many episodes


class Episode(NamedTuple):
    """What one episode reveals, for steps −warmup..H−1."""

    states: np.ndarray
    actions: np.ndarray
    arrivals: np.ndarray
    rewards: np.ndarray


class Bonus(NamedTuple):
    """c·H and the logarithms of the bonus: delayed = (H∧D)·ι, log_term = ι; is the law of the link known, and which divisor is used?
    (known_start: are the law of the first observation and the first state known?)"""

    c: float
    horizon: float
    delayed: float
    log_term: float
    known_law: bool
    printed: bool
    known_start: bool


class Estimates(NamedTuple):
    """The model that is planned for; axes as in `oldlight.kernels.delay`."""

    probability: np.ndarray
    count: np.ndarray
    bonus: np.ndarray
    std_coefficient: np.ndarray
    theta: np.ndarray
    theta_bonus: np.ndarray
    known: np.ndarray
    first_theta: np.ndarray
    initial: np.ndarray
    root_bonus: np.ndarray


class Paid(NamedTuple):
    """Rewards that are estimated: total[h, pair] and times[h, pair]; empty arrays where rewards are known. optimistic[h, s, a]: r̂ with its bonus."""

    total: np.ndarray
    times: np.ndarray
    optimistic: np.ndarray


@compiled
def count_one(episode, protocol, counts, touched):
    """`count`, for Python."""
    count(episode, protocol, counts, touched)


@_inner
def count(episode, protocol, counts, touched):
    """Take one revealed episode into the counts; touched[i] = (row, pair) of step i."""
    states, actions, arrivals = episode.states, episode.actions, episode.arrivals
    n = len(states)
    K = counts.event.shape[2]
    counts.episodes[0] += 1
    counts.starts[states[0]] += 1
    if protocol.warmup == 0:
        counts.first[min(arrivals[0], len(counts.first) - 1)] += 1
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


@_inner
def pay(episode, protocol, bonus, paid):
    """r̂ + c·√(ι/N), at most 1, for the pairs of one episode."""
    H, A = len(paid.total), protocol.n_actions
    for i in range(protocol.warmup, len(episode.states)):
        pair = episode.states[i] * A + episode.actions[i]
        paid.total[i - protocol.warmup, pair] += episode.rewards[i]
        paid.times[i - protocol.warmup, pair] += 1
    for i in range(protocol.warmup, len(episode.states)):
        s, a = episode.states[i], episode.actions[i]
        pair = s * A + a
        first, last = (0, H) if protocol.pooled else (i - protocol.warmup, i - protocol.warmup + 1)
        total, times = 0.0, 0
        for h in range(first, last):
            total += paid.total[h, pair]
            times += paid.times[h, pair]
        bound = min(total / times + bonus.c * np.sqrt(bonus.log_term / times), 1.0)
        for h in range(first, last):
            paid.optimistic[h, s, a] = bound


@_inner
def estimate(touched, counts, bonus, estimates):
    """p̂, θ̂ and their bonuses for the pairs in `touched`; and what is estimated of the start."""
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
    if not bonus.known_start:
        _estimate_start(counts, bonus, estimates)


@_inner
def _estimate_start(counts, bonus, estimates):
    """rho, and the hazard of the first observation with the bonus before anything is seen (unless steps before step 0 were seen: bonus.known_law)."""
    n = counts.episodes[0]
    for s in range(len(counts.starts)):
        estimates.initial[s] = counts.starts[s] / n
    if bonus.known_law:
        return
    scale = bonus.c * bonus.horizon * np.sqrt(bonus.delayed)
    waiting = 0  # episodes in which nothing was seen by time h
    for h in range(len(counts.first) - 1, -1, -1):
        if h < len(estimates.root_bonus):
            extra = scale * (1.0 / np.sqrt(n) + 1.0 / np.sqrt(waiting)) if waiting > 0 else bonus.horizon
            estimates.root_bonus[h] = extra
        waiting += counts.first[h]
        if h < len(estimates.first_theta):
            estimates.first_theta[h] = counts.first[h] / waiting if waiting > 0 else 1.0


@_inner
def doubled(touched, counts, planned_visits, planned_risk, with_risk):
    """Has a count of the last episode doubled since the last plan, or is it no longer 0?"""
    for i in range(len(touched)):
        row, pair = touched[i]
        n = counts.visits[row, pair]
        if n > 0 and n >= 2 * planned_visits[row, pair]:
            return True
        if with_risk:
            for k in range(counts.risk.shape[2]):
                n = counts.risk[row, pair, k]
                if n > 0 and n >= 2 * planned_risk[row, pair, k]:
                    return True
    return False
