"""What an agent knows of the link while a recording is played: which step it acts on, and how its policy calls the moment.

`late` are the runs of a recording put end to end (`oldlight.traces.ticks`), `begins` the places where episodes begin; the observation of
step i of episode e can be used at time h if i + late[begins[e] + i] ≤ h. `oldlight.traces.replay` says which view is for which policy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oldlight.arrays import Ints
from oldlight.model.channels.automaton import NOTHING_NEWER, ChannelAutomaton
from oldlight.model.information import Layout
from oldlight.traces.ticks import NEVER

NOTHING = -1  # of the episode has been seen


class View(NamedTuple):
    """Axes (h, episode): the step that is acted on (NOTHING), the node or the wait that goes with it, and whether the state of
    that step has to be counted along."""

    step: Ints
    tag: Ints
    guessed: NDArray[np.bool_]


def follow_deadline(d: int, horizon: int, late: Ints, begins: Ints) -> View:
    """Observations exactly d ticks old, or lost."""
    step, tag = np.full((2, horizon, len(begins)), NOTHING)
    newest = np.full(len(begins), NOTHING)
    for h in range(horizon):
        if h >= d:
            newest = np.where(late[begins + h - d] <= d, h - d, newest)
        step[h], tag[h] = newest, np.where(newest >= 0, h - newest - d, 0)
    return View(step, tag, np.zeros(step.shape, dtype=bool))


def follow_table(layout: Layout, horizon: int, late: Ints, begins: Ints) -> View:
    """The newest observation, at the nearest place that the table has: the nearest wait, else the nearest younger step, else the
    nearest older one."""
    step, tag = np.full((2, horizon, len(begins)), NOTHING)
    guessed = np.zeros(step.shape, dtype=bool)
    newest, came = np.full((2, len(begins)), NOTHING)
    for h in range(horizon):
        for i in range(h + 1):
            arrives = (i > newest) & (i + late[begins + i] == h)
            newest, came = np.where(arrives, i, newest), np.where(arrives, h, came)
        pairs, inverse = np.unique(np.stack([newest, np.where(newest < 0, 0, h - came)]), axis=1, return_inverse=True)
        for k, (t, waited) in enumerate(pairs.T.tolist()):
            who = np.flatnonzero(inverse.ravel() == k)
            step[h, who], tag[h, who] = place = _place(layout, h, t, waited)
            if place[0] >= 0:
                guessed[h, who] = place[0] + late[begins[who] + place[0]] > h
    return View(step, tag, guessed)


def _place(layout: Layout, h: int, t: int, waited: int) -> tuple[int, int]:
    """(step, wait) of the place nearest to step t after a wait; (NOTHING, 0) where the table is about nothing seen."""
    if t < 0 and layout.root[h] >= 0:
        return NOTHING, 0
    blocks = layout.offset[h]
    for i in (*range(max(t, 0), h + 1), *range(min(t, h) - 1, -1, -1)):
        waits = np.flatnonzero(blocks[h - i] >= 0) if h - i < len(blocks) else np.zeros(0)
        if len(waits):
            return i, int(waits[np.abs(waits - waited).argmin()])
    return NOTHING, 0


def follow_automaton(automaton: ChannelAutomaton, late: Ints, ages: Ints | None, begins: Ints) -> View:
    """The nodes of the automaton, by what arrives; for an age chain `ages` are those of the link at each place."""
    H, n = automaton.horizon, len(begins)
    step, tag = np.full((2, H, n), NOTHING)
    guessed = np.zeros(step.shape, dtype=bool)
    rows: dict[int, _Row] = {}
    at, newest = np.full(n, len(automaton.nodes)), np.full(n, NOTHING)
    for h in range(H):
        new_at, new_step, guess = at.copy(), newest.copy(), np.zeros(n, dtype=bool)
        for node in np.unique(at).tolist():
            if node not in rows:
                rows[node] = _Row(automaton, node)
            row = rows[node]
            left = np.flatnonzero(at == node)
            for k, target in row.newer:
                if k > h or not len(left):
                    break
                comes = (h - k > newest[left]) & (late[begins[left] + h - k] <= k)
                new_at[left[comes]], new_step[left[comes]] = target, h - k
                left = left[~comes]
            if not len(left):
                continue
            if len(row.older):
                new_at[left] = row.likeliest if ages is None else row.nearest(ages[begins[left] + h])
            else:  # the link always delivers, so the plan says, and did not
                k, target = row.newer[0] if row.newer[0][0] <= h else (h, row.newer[0][1])
                new_at[left], new_step[left], guess[left] = target, h - k, True
        at, newest = new_at, new_step
        step[h], tag[h] = newest, at
        guessed[h] = guess | ((newest >= 0) & (np.maximum(newest, 0) + late[begins + np.maximum(newest, 0)] > h))
    return View(step, tag, guessed)


class _Row:
    """The ticks of a node: (age, node) where something newer comes, by age, and the nodes where nothing does."""

    def __init__(self, automaton: ChannelAutomaton, node: int) -> None:
        ticks = automaton.row(node)
        best: dict[int, tuple[float, int]] = {}
        for p, target, age in ticks:
            if age != NOTHING_NEWER and p > best.get(age, (0.0, 0))[0]:
                best[age] = (p, target)
        self.newer = sorted((age, target) for age, (_, target) in best.items())
        older = [(p, target) for p, target, age in ticks if age == NOTHING_NEWER]
        self.older = np.array([target for _, target in older], dtype=np.int64)
        self.likeliest = max(older)[1] if older else -1
        names = [automaton.nodes[target] for target in self.older.tolist()]
        self.ages = np.array([name[1] if isinstance(name, tuple) else 0 for name in names])

    def nearest(self, ages: Ints) -> Ints:
        """Of an age chain's nodes (h, age) before anything of the episode is seen, those nearest to the ages of the link."""
        return np.asarray(self.older[np.abs(self.ages[None, :] - ages[:, None]).argmin(axis=1)])


__all__ = ["NEVER", "NOTHING", "View", "follow_automaton", "follow_deadline", "follow_table"]
