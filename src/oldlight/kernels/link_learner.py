"""`LinkLearner` behind a delay alone, compiled: what an episode reveals is counted, a process is made of the counts and planned for; and blocks of episodes.

`oldlight.learners.link_learner` has the algorithm. `due` says whether it is time to plan, `process` makes the process of the counts, and `prepare` writes it where the sweep reads it.
"""

from typing import Any, NamedTuple

import numpy as np

from oldlight.kernels.cache import compiled
from oldlight.kernels.delay import sweep
from oldlight.kernels.episode_blocks import keep_policy, play_one, room_for_one
from oldlight.kernels.link_counts import by_step, count, test
from oldlight.kernels.optimistic_model import BEST, POSTERIOR, PRIOR, break_ties, make
from oldlight.kernels.optimistic_tables import start_value

SELDOM = 50  # at most so many plans while the number of episodes grows by a factor e, apart from second looks
YOUNG = 10.0  # episodes after which a second look expects more
REWARD_VISITS = 0.15  # pseudo-visits of estimated rewards where those of the transitions are learnt


class Learnt(NamedTuple):
    """Everything that is learnt, and room for what is made of it."""

    counts: Any  # `kernels.link_counts`
    how: Any  # `kernels.optimistic_model.How`
    known: np.ndarray  # rewards [t, s, a]; empty where they are estimated
    level: float  # of the test of shared counts
    now: np.ndarray  # [t, s, a, s2]: the counts that the estimates are made of
    rewards: np.ndarray  # [t, s, a]: known or estimated
    planned: np.ndarray  # [t, s, a]: how often each pair had been counted at the last plan
    planned_at: (
        np.ndarray
    )  # [0]: after how many episodes that was; [1]: how many t of `planned` hold; [2], [3]: see `looks_again`
    transitions: np.ndarray  # [t, s, a, s2] of the process that is planned for, with the state that was added
    keep: (
        np.ndarray
    )  # rows (first place in the table that is played, first place in the planned one, how many); none: the two are one


@compiled
def looks_again(learnt):
    """Is the next plan one for a second look? planned_at[2]: after how many episodes the last one was made, [3]: is it the plan now?"""
    k, last, looks = learnt.counts.episodes[0], learnt.planned_at[2], learnt.how.looks
    return looks > 0 and learnt.planned_at[3] == 0 and k >= last + 1 + last / looks


@compiled
def due(learnt):
    """Is it time to plan?"""
    k, last = learnt.counts.episodes[0], learnt.planned_at[0]
    if learnt.planned_at[3] == 1 or looks_again(learnt):
        return True
    if k < last + 1 + last // SELDOM:
        return False
    if learnt.how.kind == POSTERIOR and k > last + np.sqrt(2.0 * last):
        return True
    if test(learnt.counts, learnt.level):
        return True
    rows = by_step(learnt.counts, learnt.now)
    if rows != learnt.planned_at[1]:
        return True
    _, S, A, _ = learnt.now.shape
    for t in range(rows):
        for s in range(S):
            for a in range(A):
                N = 0.0
                for s2 in range(S):
                    N += learnt.now[t, s, a, s2]
                if 2.0 * max(learnt.planned[t, s, a], 0.5) <= N:
                    return True
    return False


@compiled
def estimate_rewards(counts, how, known, out):
    """r̂ with its optimism, [t, s, a]; known rewards as they are."""
    H, S, A = out.shape
    visits = how.visits if how.visits > 0.0 else REWARD_VISITS
    for t in range(H):
        for s in range(S):
            for a in range(A):
                if len(known) > 0:
                    out[t, s, a] = known[t, s, a]
                    continue
                N = counts.paid_times[t, s, a]
                mean = counts.paid[t, s, a] / N if N > 0.0 else 1.0
                if how.kind in (PRIOR, BEST):
                    mean += visits / (N + visits) * (1.0 - mean)
                elif how.kind != POSTERIOR:
                    mean += how.c * np.sqrt(how.log_term / max(N, 1.0))
                out[t, s, a] = min(mean, 1.0)


@compiled
def process(learnt, rng, R):
    """Make the process of the counts now, and remember them: transitions into learnt.transitions, rewards into R. Returns how many t were filled."""
    rows = by_step(learnt.counts, learnt.now)
    k, again = learnt.counts.episodes[0], looks_again(learnt)
    learnt.planned_at[0], learnt.planned_at[1], learnt.planned_at[3] = k, rows, int(again)
    if again:
        learnt.planned_at[2] = k
    _, S, A, _ = learnt.now.shape
    for t in range(rows):
        for s in range(S):
            for a in range(A):
                learnt.planned[t, s, a] = 0.0
                for s2 in range(S):
                    learnt.planned[t, s, a] += learnt.now[t, s, a, s2]
    estimate_rewards(learnt.counts, learnt.how, learnt.known, learnt.rewards)
    times = np.sqrt(1.0 + k / YOUNG) if again else 1.0
    filled = make(learnt.now[:rows], learnt.rewards, learnt.how, times, rng, learnt.transitions, R)
    break_ties(R, rng)
    return filled


@compiled
def prepare(learnt, plan, rng):
    """The process of the counts now, as lists of successors where `kernels.delay` reads them."""
    filled = process(learnt, rng, plan.model.rewards)
    P, successor, probability = learnt.transitions, plan.model.successor, plan.model.probability
    H, S, A, _ = P.shape
    for t in range(H):
        for s in range(S):
            for a in range(A):
                first, n = plan.model.first[t, s * A + a], 0
                for s2 in range(S):
                    p = P[min(t, filled - 1), s, a, s2]
                    if p > 0.0:
                        successor[first + n], probability[first + n] = s2, p
                        n += 1
                plan.model.count[t, s * A + a] = n


@compiled
def keep(learnt, plan, table):
    """Into the table that is played: the planned actions of the states that there are."""
    for row in range(len(learnt.keep)):
        here, there = learnt.keep[row, 0], learnt.keep[row, 1]
        for i in range(learnt.keep[row, 2]):
            table[here + i] = plan.tables.actions[there + i]


@compiled
def block(world, rule, played, learnt, plan, estimated, rng, block):
    """A block of episodes; `estimated` is the estimate of the last plan. Returns that of the last one now, how many plans were made,
    and whether one came after the last policy that was kept."""
    episode = room_for_one(played.states.shape[0])
    changed, plans = False, 0
    for e in range(len(block.returns)):
        changed = keep_policy(block, e, rule.table, changed)
        play_one(e, world, rule, block, played, episode)
        count(episode, world.warmup, learnt.counts)
        if due(learnt):
            prepare(learnt, plan, rng)
            sweep(plan.model, plan.optimism, plan.tables, plan.mode, plan.begin, plan.end, plan.part, plan.parts)
            keep(learnt, plan, rule.table)
            estimated = start_value(plan)
            changed = True
            plans += 1
        block.estimates[e] = estimated
    return estimated, plans, changed
