"""Posterior sampling, compiled: one draw from the posterior, and blocks of episodes. `oldlight.learners.posterior_sampling` has the algorithm.

Under delay a plan is a sweep (`oldlight.kernels.delay`); under loss alone it is a search (`oldlight.kernels.corners`), which comes back to Python in the middle of an
episode where its graph needs more room.
"""

import numpy as np

from oldlight.kernels.cache import borrowing, compiled
from oldlight.kernels.copying import copy_into
from oldlight.kernels.corners import settle_all
from oldlight.kernels.counts import count
from oldlight.kernels.delay import sweep
from oldlight.kernels.dirichlet import draw_prior, draw_rows, share_out
from oldlight.kernels.episode_blocks import draws_of, keep_policy, play_blackout, play_one, room_for_one
from oldlight.kernels.optimistic_tables import draw_noise, start_value
from oldlight.kernels.settling import DONE


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


@borrowing
def _count_seen(lost, played, number):
    """number[row, s·A + a, s2] of an episode under loss: only where a state and the next one were both seen."""
    states, actions = played.states, played.actions
    S = number.shape[2]
    A = number.shape[1] // S
    for h in range(len(states) - 1):
        if not lost[h, 0] and not lost[h + 1, 0]:
            number[min(h, len(number) - 1), states[h, 0] * A + actions[h, 0], states[h + 1, 0]] += 1.0


@borrowing
def _list_successors(drawn, process):
    """The lists of the drawn process: what is possible of each row, in the order of the states."""
    rows, pairs, S = drawn.shape
    for row in range(rows):
        process.full[row] = True
        for pair in range(pairs):
            index, weight, n = process.index[row, pair], process.weight[row, pair], 0
            for s in range(S):
                if drawn[row, pair, s] > 0.0:
                    index[n], weight[n] = s, drawn[row, pair, s]
                    n += 1
            process.count[row, pair] = n
            process.full[row] = process.full[row] and n == S
            for k in range(n, S):
                index[k], weight[k] = 0, 0.0


@compiled
def block_under_loss(process, link, tables, graph, settled, what, place, limits):
    """A block of episodes under loss alone; what = (world, rule, played, (number, alpha, drawn), rng, block). place = (episode, then where its plan stands, as
    `settle_all` has it; −2 before the episode is played): returns that of the end, whose episode is −1, and DONE; or where to go on, and GROW or PAUSE."""
    world, rule, played, learnt, rng, block = what
    number, alpha, drawn = learnt
    e, c, i = place
    H, S = len(played.states), drawn.shape[2]
    last = np.int64(0)
    for j in range(len(link.time)):
        last = j if link.time[j] < link.time[-1] else last
    while e < len(block.returns):
        if c < -1:
            keep_policy(block, e, rule.table, e > 0)
            play_blackout(e, world, rule, block, played)
            _count_seen(draws_of(block, e).lost, played, number)
            draw_rows(number.reshape(-1, S), alpha, rng, drawn.reshape(-1, S))
            _list_successors(drawn, process)
            graph.count[:] = 0
            graph.slots[:] = 0
            c, i = last, np.int64(0)
        (c, i), status = settle_all(process, link, tables, graph, settled, (c, i), limits)
        if status != DONE:
            return (e, c, i), status
        copy_into(rule.table[:H], settled.start_sequence)
        copy_into(rule.table[S * H :], settled.sequence.reshape(-1))
        block.estimates[e] = settled.start_bounds[0]
        e += 1
    return (np.int64(-1), c, i), DONE
