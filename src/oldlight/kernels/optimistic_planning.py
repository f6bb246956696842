"""`OptimisticPlanning` between two plans, compiled: episodes are played and counted until one is due. `oldlight.learners.optimistic_planning` has the algorithm; a plan
is a search that Python leads."""

import numpy as np

from oldlight.kernels.cache import borrowing, compiled
from oldlight.kernels.episode_blocks import draws_of, keep_policy, play_blackout
from oldlight.kernels.loss_ucbvi import show


@borrowing
def _count(states, actions, counts, number, planned, always):
    """Count pairs of which both ends were seen: counts[t, s, a, s2], and number[t, s, a], their sum. Returns: is it time to plan, because one has doubled since it
    was `planned` for (or is no longer 0), or always?"""
    due = always
    for h in range(len(states) - 1):
        if states[h] >= 0 and states[h + 1] >= 0:
            t, s, a = min(h, len(counts) - 1), states[h], actions[h]
            counts[t, s, a, states[h + 1]] += 1
            number[t, s, a] += 1
            due = due or number[t, s, a] >= max(2 * planned[t, s, a], 1)
    return due


@compiled
def count(states, actions, counts, number, planned, always):
    """`_count`, for Python."""
    return _count(states, actions, counts, number, planned, always)


@compiled
def block(world, rule, played, learnt, estimate, block, e, changed):
    """A block of episodes, from its episode e on, until a plan is due; learnt = (counts, number, planned, always), estimate: that of the plan that is played, changed:
    has the policy since the last one that was kept? Returns whether a plan is due after the last episode that was played, the one behind it, and `changed`."""
    counts, number, planned, always = learnt
    H = len(played.states)
    states, actions = np.empty(H, np.int64), np.empty(H, np.int64)
    due = False
    while e < len(block.returns) and not due:
        changed = keep_policy(block, e, rule.table, changed)
        play_blackout(e, world, rule, block, played)
        show(draws_of(block, e).lost, played, states, actions)
        due = _count(states, actions, counts, number, planned, always)
        block.estimates[e] = estimate
        e += 1
    return due, e, changed
