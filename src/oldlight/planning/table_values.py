"""Values of many tables of actions under delay, one after the other: only what differs from the table before is computed anew.

The recursion and the rule what is computed anew stand in `oldlight.kernels.policy_value`. Policies of a learner follow each other: where the last episode
changed no estimate, the plan is the same, and so is its value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.arrays import Floats, action_type
from oldlight.model.successors import all_successors
from oldlight.planning.blocks import NODE, REST, run_calls
from oldlight.planning.delay import DelayModel


class TableValues:
    """The table that was valued last, with its values of all times. computed: how many cells (a block with one newest state) were computed so far."""

    def __init__(self, model: DelayModel) -> None:
        from oldlight.kernels import policy_value as kernels

        self.problem, self.layout = model.problem, model.layout
        schedule = model.schedule("all times")
        problem, law = self.problem, model.law
        H, S = problem.horizon, problem.n_states
        self.actions = np.zeros(self.layout.size, dtype=action_type(self.layout.n_actions))
        blocks, values = schedule.blocks, np.empty(schedule.size)
        values[schedule.ends[0] : schedule.ends[0] + S] = 0.0
        self._held = kernels.Held(self.actions, values, np.zeros(1, np.bool_), np.zeros((len(blocks), S), np.bool_))
        _finish(model, schedule, values)
        mdp = problem.mdp
        steps = all_successors(mdp)
        width = max(step.width for step in steps)
        lists = [step.padded() for step in steps]
        successor = np.array([_wide(index, width) for index, _ in lists])
        probability = np.array([_wide(weight, width) for _, weight in lists])
        count = np.array([step.count for step in steps])
        rewards = mdp.rewards[:1] if mdp.stationary_rewards else mdp.rewards
        own = (np.array(rewards, order="C"), np.array(law.hazard, order="C"), np.array(law.first_hazard, order="C"))
        pending = np.array(problem.pending[:H], dtype=np.int64)
        after, later = _rows_read(blocks)
        self._truth = kernels.Truth(
            successor, probability, count, *own, blocks, schedule.powers, pending, after, later, H
        )
        seen, at_once = int(schedule.node[0, problem.warmup, 0]), 1.0 if problem.warmup else float(law.first[0])
        self._start = (seen, problem.n_actions**problem.warmup, int(schedule.root[0]), at_once)
        self.computed, self.cells = 0, S * int(np.count_nonzero(blocks[:, 0] != REST))

    def by_start(self, tables: NDArray[Any] | Sequence[NDArray[Any]]) -> Floats:
        """The value of each table per state of the first step (step −warmup): shape (n, S)."""
        from oldlight.kernels import policy_value as kernels

        rows = np.ascontiguousarray(tables, dtype=self.actions.dtype)
        found = np.empty((len(rows), self.problem.n_states))
        self.computed += kernels.value_policies(self._truth, self._held, rows, self._start, found)
        return found


def _finish(model: DelayModel, schedule: Any, values: Floats) -> None:
    """What follows the last action, which no policy changes."""
    from functools import partial

    from oldlight.kernels import block
    from oldlight.kernels import delay as kernels

    A, H = model.layout.n_actions, model.layout.horizon
    none, pending, turns = np.empty((0, A)), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    tables = kernels.Tables(
        schedule.blocks, schedule.powers, values, np.empty(0, action_type(A)), none, pending, turns, H, True
    )
    work = partial(kernels.sweep, model.arrays, kernels.NO_OPTIMISM, tables, block.BEST)
    run_calls(work, schedule.calls(1, stop=H), turns)


def _wide(array: NDArray[Any], width: int) -> NDArray[Any]:
    wide = np.zeros((len(array), width), dtype=array.dtype)
    wide[:, : array.shape[1]] = array
    return wide


def _rows_read(blocks: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each row, those whose values it reads after an arrival and after a wait; −1 where none depends on the policy."""
    time, kind, values, arrival, wait = blocks[:, 1], blocks[:, 0], blocks[:, 5], blocks[:, 6], blocks[:, 7]
    chosen = {(int(time[i]), int(values[i])): i for i in np.flatnonzero(kind >= NODE) if kind[i] != REST}
    found = np.array(
        [
            [chosen.get((int(t) + 1, int(place)), -1) for place in (a, w)]
            for t, a, w in zip(time, arrival, wait, strict=True)
        ]
    )
    return np.ascontiguousarray(found[:, 0]), np.ascontiguousarray(found[:, 1])
