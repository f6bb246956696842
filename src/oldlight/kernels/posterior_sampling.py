"""Posterior sampling under delay, compiled: one draw from the posterior, and blocks of episodes. `oldlight.learners.posterior_sampling` has the algorithm."""

import numpy as np

from oldlight.kernels.cache import compiled
from oldlight.kernels.counts import count
from oldlight.kernels.delay import sweep
from oldlight.kernels.episode_blocks import keep_policy, play_one, room_for_one
from oldlight.kernels.optimistic_tables import draw_noise, start_value


@compiled
def draw_process(counts, alpha, rng, weight):
    """weight[row, pair, s]: Dirichlet with the parameters alpha + N(row, pair, s), made from gamma variates; uniform where those are all too small."""
    rows, pairs, S = weight.shape
    parameter = np.empty(S)
    for row in range(rows):
        for pair in range(pairs):
            for s in range(S):
                parameter[s] = alpha
            for k in range(counts.count[row, pair]):
                parameter[counts.successor[row, pair, k]] += counts.number[row, pair, k]
            total = 0.0
            for s in range(S):
                weight[row, pair, s] = rng.standard_gamma(parameter[s])
                total += weight[row, pair, s]
            for s in range(S):
                weight[row, pair, s] = weight[row, pair, s] / total if total > 0.0 else 1.0 / S


@compiled
def block(world, rule, played, learnt, plan, estimated, rng, block):
    """A block of episodes; learnt: (protocol, counts, touched, alpha, weight). Returns the last estimate."""
    protocol, counts, touched, alpha, weight = learnt
    episode = room_for_one(played.states.shape[0])
    for e in range(len(block.returns)):
        keep_policy(block, e, rule.table, e > 0)
        play_one(e, world, rule, block, played, episode)
        count(episode, protocol, counts, touched)
        draw_process(counts, alpha, rng, weight)
        draw_noise(plan.optimism.noise, rng)
        sweep(plan.model, plan.optimism, plan.tables, plan.mode, plan.begin, plan.end, plan.part, plan.parts)
        estimated = start_value(plan)
        block.estimates[e] = estimated
    return estimated
