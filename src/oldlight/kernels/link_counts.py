"""Counts of one-step transitions behind any link, compiled; `oldlight.learners.link_counts` says what is counted and what the test of shared counts is."""

import math
from typing import NamedTuple

import numpy as np

from oldlight.kernels.cache import compiled

APART, TOGETHER, AUTO = range(
    3
)  # each step by itself, all steps together, together until the test says that they differ


class LinkCounts(NamedTuple):
    """What was seen, axes [t, s, a, s2]."""

    number: np.ndarray  # [t, s, a, s2]
    hidden: np.ndarray  # [t or one, s, a, s2]: expected transitions between observations several steps apart
    paid: np.ndarray  # [t, s, a]
    paid_times: np.ndarray  # [t, s, a]
    split: np.ndarray  # [s, a]: does each step have counts of its own?
    evidence: np.ndarray  # [s, a]: of the last test
    tested: np.ndarray  # [s, a]: how often the pair was counted by then
    episodes: np.ndarray  # [0]: how many episodes
    pooled: int  # APART, TOGETHER or AUTO


@compiled
def count(episode, warmup, counts):
    """Take one revealed episode into the counts; states that were lost are negative."""
    states, actions, rewards = episode.states, episode.actions, episode.rewards
    counts.episodes[0] += 1
    for i in range(len(states)):
        s, a, t = states[i], actions[i], max(i - warmup, 0)
        if s < 0:
            continue
        if i + 1 < len(states) and states[i + 1] >= 0:
            counts.number[t, s, a, states[i + 1]] += 1.0
        if i >= warmup:
            counts.paid[t, s, a] += rewards[i]
            counts.paid_times[t, s, a] += 1.0


@compiled
def by_step(counts, out):
    """The counts that each step's estimate is made of, into out[t, s, a, s2]; returns how many t: one where all pairs share theirs."""
    number, hidden, split = counts.number, counts.hidden, counts.split
    H, S, A, _ = number.shape
    rows = H
    if counts.pooled != APART:
        rows = 1
        for s in range(S):
            for a in range(A):
                if split[s, a]:
                    rows = H
    for s in range(S):
        for a in range(A):
            apart = counts.pooled == APART or split[s, a]
            for s2 in range(S):
                extra = 0.0
                for t in range(len(hidden)):
                    extra += hidden[t, s, a, s2]
                together = extra
                for t in range(H):
                    together += number[t, s, a, s2]
                for t in range(rows):
                    if not apart:
                        out[t, s, a, s2] = together
                    elif counts.pooled == APART:
                        out[t, s, a, s2] = number[t, s, a, s2] + hidden[min(t, len(hidden) - 1), s, a, s2]
                    else:
                        out[t, s, a, s2] = number[t, s, a, s2]
    return rows


@compiled
def _log_mixture(number, rows):
    """Σ over the given rows of number[row, s] of the log-probability of these draws, in order, under a law from a Dirichlet with parameters 1/S."""
    S = number.shape[1]
    alone, found = math.lgamma(1.0 / S), 0.0
    for row in range(rows):
        n = 0.0
        for s in range(S):
            x = number[row, s]
            if x > 0.0:
                n += x
                found += math.lgamma(x + 1.0 / S) - alone
        if n > 0.0:
            found -= math.lgamma(n + 1.0)
    return found


@compiled
def log_evidence(number):
    """The logarithm of the ratio of `oldlight.learners.link_counts` for one pair, from its counts [t, s2]."""
    together = np.zeros((1, number.shape[1]))
    for t in range(len(number)):
        for s in range(number.shape[1]):
            together[0, s] += number[t, s]
    return _log_mixture(number, len(number)) - _log_mixture(together, 1)


@compiled
def test(counts, level):
    """Split the pairs whose steps differ; was there a new one?"""
    if counts.pooled != AUTO:
        return False
    H, S, A, _ = counts.number.shape
    every = 0.0
    for s in range(S):
        for a in range(A):
            n = 0.0
            for t in range(H):
                for s2 in range(S):
                    n += counts.number[t, s, a, s2]
            if n != counts.tested[s, a]:
                counts.tested[s, a] = n
                counts.evidence[s, a] = log_evidence(counts.number[:, s, a])
            every += counts.evidence[s, a]
    new, all_of_them = False, every > math.log(2.0 / level)
    for s in range(S):
        for a in range(A):
            found = all_of_them or counts.evidence[s, a] > math.log(2.0 * S * A / level)
            if found and not counts.split[s, a]:
                counts.split[s, a] = True
                new = True
    return new
