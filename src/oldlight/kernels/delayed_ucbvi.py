"""Algorithm 1, compiled: what an episode reveals is counted and estimated, and planned for; and blocks of episodes.

`oldlight.learners.delayed_ucbvi` has the algorithm. `take` is its parts 2 to 4 for one episode; `block` plays, takes and plans, one episode
after the other, and `greedy_block` does the same with the table of `kernels.greedy`.
"""

from typing import Any, NamedTuple

import numpy as np

from oldlight.kernels.cache import borrowing, compiled
from oldlight.kernels.counts import count, doubled, estimate, pay
from oldlight.kernels.delay import sweep
from oldlight.kernels.episode_blocks import draws_of, keep_policy, play_one, reveal, room_for_one
from oldlight.kernels.greedy import episode as greedy_episode
from oldlight.kernels.greedy import without_delay
from oldlight.kernels.optimistic_tables import draw_noise, start_value


class Learnt(NamedTuple):
    """Everything that is learnt, as `kernels.counts` has it; touched[i]: (row, pair) of step i of the last episode; the counts at the last plan,
    for planning on doubling."""

    protocol: Any
    counts: Any
    bonus: Any
    estimates: Any
    paid: Any
    touched: np.ndarray
    planned_visits: np.ndarray
    planned_risk: np.ndarray
    on_doubling: bool


@compiled
def take(episode, learnt):
    """`_take`, for Python."""
    return _take(episode, learnt)


@borrowing
def _take(episode, learnt):
    """Count an episode and estimate anew what it touched. Returns: is it time to plan?"""
    count(episode, learnt.protocol, learnt.counts, learnt.touched)
    if len(learnt.paid.total) > 0:
        pay(episode, learnt.protocol, learnt.bonus, learnt.paid)
    estimate(learnt.touched, learnt.counts, learnt.bonus, learnt.estimates)
    if not learnt.on_doubling:
        return True
    with_risk = not learnt.bonus.known_start
    return doubled(learnt.touched, learnt.counts, learnt.planned_visits, learnt.planned_risk, with_risk)


@compiled
def planned(learnt):
    """Remember the counts of this plan."""
    if learnt.on_doubling:
        visits, risk = (
            learnt.counts.visits,
            learnt.counts.risk,
        )  # loops: `[:] =` makes the compiler take three times as long
        for row in range(visits.shape[0]):
            for pair in range(visits.shape[1]):
                learnt.planned_visits[row, pair] = visits[row, pair]
                for k in range(risk.shape[2]):
                    learnt.planned_risk[row, pair, k] = risk[row, pair, k]


@compiled
def block(world, rule, played, learnt, plan, estimated, rng, block):
    """A block of episodes; `estimated` is the estimate of the last plan. Returns that of the last one now, how many plans were made,
    and whether one came after the last policy that was kept."""
    episode = room_for_one(played.states.shape[0])
    changed, plans = False, 0
    for e in range(len(block.returns)):
        changed = keep_policy(block, e, rule.table, changed)
        play_one(e, world, rule, block, played, episode)
        if _take(episode, learnt):
            # not in a function of its own: the compiler would go over the whole sweep once more
            draw_noise(plan.optimism.noise, rng)
            sweep(plan.model, plan.optimism, plan.tables, plan.mode, plan.begin, plan.end, plan.part, plan.parts)
            estimated = start_value(plan)
            planned(learnt)
            changed = True
            plans += 1
        block.estimates[e] = estimated
    return estimated, plans, changed


@compiled
def greedy_block(world, pending, played, learnt, planner, salts, block):
    """A block of episodes of greedy planning; planner: model, places and slots; salts[e]: that of episode e, one more for the episode after the
    last."""
    model, places, slots = planner
    episode = room_for_one(played.states.shape[0])
    for e in range(len(block.returns)):
        played.returns[0] = 0.0
        greedy_episode(salts[e], model, places, slots, world, pending, draws_of(block, e), played)
        reveal(e, world, block, played, episode)
        _take(episode, learnt)
        without_delay(model, places.horizon, places.warmup)
        block.estimates[e] = np.nan
