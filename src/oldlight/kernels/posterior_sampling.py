"""Posterior sampling under delay, compiled: one draw from the posterior, and blocks of episodes. `oldlight.learners.posterior_sampling` has the algorithm."""

from oldlight.kernels.cache import compiled
from oldlight.kernels.counts import count
from oldlight.kernels.delay import sweep
from oldlight.kernels.dirichlet import draw_prior, share_out
from oldlight.kernels.episode_blocks import keep_policy, play_one, room_for_one
from oldlight.kernels.optimistic_tables import draw_noise, start_value


@compiled
def draw_process(counts, alpha, rng, weight):
    """weight[row, pair, s]: Dirichlet with the parameters alpha + N(row, pair, s), as `oldlight.kernels.dirichlet` draws it."""
    rows, pairs, _ = weight.shape
    for row in range(rows):
        for pair in range(pairs):
            drawn = weight[row, pair]
            draw_prior(alpha, rng, drawn)
            for k in range(counts.count[row, pair]):
                drawn[counts.successor[row, pair, k]] += rng.standard_gamma(counts.number[row, pair, k])
            share_out(drawn)


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
