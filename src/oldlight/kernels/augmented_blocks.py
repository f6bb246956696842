"""Blocks of episodes of the learners on the augmented table, compiled; `kernels.episode_blocks` has what blocks share.

A block ends early where the next episode could meet more cells, or outcomes, than there is room for: it returns how many episodes are done, and
the caller makes room and goes on from there.
"""

from typing import Any, NamedTuple

from oldlight.kernels.augmented_q_learning import Moves, start_value, update
from oldlight.kernels.augmented_ucbvi import count, plan, walk
from oldlight.kernels.cache import compiled
from oldlight.kernels.episode_blocks import keep_policy, play_one, room_for_one


class Table(NamedTuple):
    """The augmented table (`kernels.augmented_ucbvi`), with space for the moves and the path of one episode."""

    shape: Any
    cells: Any
    rules: Any
    moves: Any
    path: Any


class Model(NamedTuple):
    """What `AugmentedUCBVI` has learnt; full: does it plan after every episode?"""

    counts: Any
    work: Any
    bonus: Any
    plan: Any
    full: bool


class Going(NamedTuple):
    """How far a block is: episodes done, the last estimate, plans made, and whether one came after the last policy that was kept."""

    done: int
    estimate: float
    plans: int
    changed: bool


@compiled
def _has_room(table):
    """For all cells that one more episode can meet."""
    return table.cells.size[0] + 2 * len(table.moves) + 2 <= len(table.cells.group)


@compiled
def _walk(episode, table):
    return walk(
        episode.states,
        episode.actions,
        episode.arrivals,
        table.rules,
        table.shape,
        table.cells,
        table.moves,
        table.path,
    )


@compiled
def ucbvi_block(world, rule, played, table, model, rng, block, going):
    """Episodes of `AugmentedUCBVI` from going.done on."""
    episode = room_for_one(played.states.shape[0])
    e, estimated, plans, changed = going
    while (
        e < len(block.returns)
        and _has_room(table)
        and model.counts.size[0] + len(table.moves) <= len(model.counts.follow)
    ):
        changed = keep_policy(block, e, rule.table, changed)
        play_one(e, world, rule, block, played, episode)
        n = _walk(episode, table)
        doubled = count(table.moves, n, table.path, table.shape, table.cells, model.counts, model.work)
        if doubled or model.full:
            estimated = plan(
                table.shape, table.cells, model.counts, table.rules, model.work, model.bonus, model.plan, rng
            )
            changed = True
            plans += 1
        block.estimates[e] = estimated
        e += 1
    return Going(e, estimated, plans, changed)


@compiled
def q_block(world, rule, played, table, values, rng, block, going):
    """Episodes of `AugmentedQLearning` from going.done on; values: (its `Values`, c·√(H³·ι), space for the count of each move and for a value per cell)."""
    learnt, scale, times, now = values
    episode = room_for_one(played.states.shape[0])
    e, estimated, plans, changed = going
    while e < len(block.returns) and _has_room(table):
        changed = keep_policy(block, e, rule.table, changed)
        play_one(e, world, rule, block, played, episode)
        moves = Moves(table.moves, _walk(episode, table), table.path, times)
        update(table.shape, table.cells, table.rules, learnt, moves, scale, rng, rule.table)
        estimated = start_value(table.shape, table.cells, table.rules, learnt, now)
        changed = True
        plans += 1
        block.estimates[e] = estimated
        e += 1
    return Going(e, estimated, plans, changed)
