"""What a plan's tables earn, exactly, without tables of lower bounds: a compiled walk over the information states that their actions reach.

The policy acts on a known state by the upper tables, and beyond their depth on the queue alone. So laws of the state that share block and
queue need not be told apart: their weights are added up, and one time of the walk is linear in the weights,

    w_{h+1}[age k: s2, q_{j+1}.. a] += p(k)·Σ_s w_h[s, q1..qL]·(P(q1)···P(qj))(s2|s),   j = L + 1 − k,    a = action[s, q1..qL],

and alike for ticks without anything newer. A policy that does not draw reaches few queues: the others are not looked at.

One law is told apart: a law of one state only is as good as that state, and the plan acts on it by the tables. A law of several states
becomes one of a single state only where two states have the same certain successor under the same action; such processes are not walked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oldlight.arrays import Floats
from oldlight.model.age_layers import Layers
from oldlight.model.channels.automaton import NOTHING_NEWER
from oldlight.model.held_steps import certain
from oldlight.planning.ages import AgeTables, Plant
from oldlight.planning.flat_link import flat_link


def can_be_walked(plant: Plant, layers: Layers) -> bool:
    """Does a law of several states never become one of a single state?"""
    ages = [age for _, _, age in layers.start]
    if NOTHING_NEWER in ages and max(ages) > 0:  # laws of the first state and of earlier ones would be added up
        return False
    index, _, count, *_ = plant.lists
    A = layers.n_actions
    for successors, n in zip(index, count, strict=True):
        certain = np.flatnonzero(n == 1)
        pairs = certain % A * layers.n_states + successors[certain, 0]
        if len(np.unique(pairs)) < len(pairs):
            return False
    return True


def value_of_actions(tables: AgeTables, initial: Floats | None = None) -> float:
    """The value at the start of the policy that acts by the tables; initial: the law of the first state, if it is not the plant's."""
    from oldlight.kernels import ages as kernels

    plant, layers = tables.plant, tables.layers
    link, D = flat_link(layers), layers.depth
    process = (*plant.lists[:4], layers.n_actions ** np.arange(D + 2), D)
    begin = np.cumsum([0, *(len(row) for row in layers.blocks)])
    now = _start(layers, plant.initial if initial is None else initial)
    value = 0.0
    for h in range(plant.mdp.finite_horizon):
        after, blocks = _room(layers, h + 1), (int(begin[h]), int(begin[h + 1]))
        value += kernels.walk(process, link, tables.actions, tables.blind_actions, blocks, now, after)
        now = after
    return value


def value_by_start(tables: AgeTables) -> Floats | None:
    """The same from each first state that can be, 0 from the others; None where the first state may be unknown at time 0."""
    if any(age == NOTHING_NEWER for _, _, age in tables.layers.start):
        return None
    out = np.zeros(tables.layers.n_states)
    for s in np.flatnonzero(tables.plant.initial > 0).tolist():
        out[s] = value_of_actions(tables, certain(len(out), s))
    return out


def _room(layers: Layers, h: int) -> tuple[Any, Any]:
    """Places for the weights of all information states of time h, of states and of laws, none of them live."""
    from oldlight.kernels.ages import Occupied

    S, A, row = layers.n_states, layers.n_actions, layers.blocks[h]
    rows = sum(A**block.length for block in row)
    blind = [block for block in row if block.blind_offset >= 0]
    blind_rows = sum(A**block.length for block in blind)
    return (
        Occupied(np.empty(rows * S), np.zeros(rows, np.bool_), row[0].offset),
        Occupied(np.empty(blind_rows * S), np.zeros(blind_rows, np.bool_), blind[0].blind_offset if blind else 0),
    )


def _start(layers: Layers, initial: Floats) -> tuple[Any, Any]:
    """The weights of time 0."""
    S = layers.n_states
    states, laws = _room(layers, 0)
    for p, i, age in layers.start:
        block = layers.blocks[0][i]
        place, offset = (laws, block.blind_offset) if age == NOTHING_NEWER else (states, block.offset)
        first, queues = (offset - place.begin) // S, layers.n_actions**block.length
        rows = slice(first, first + queues)
        weight = place.weight.reshape(-1, S)[rows]
        weight[~place.live[rows]] = 0.0
        weight += p * initial / queues
        place.live[rows] = True
    return states, laws
