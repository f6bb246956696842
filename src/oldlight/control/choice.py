"""Where a controller looks up what to do: a table, sequences, or a policy that is asked; `link_choice` has what follows nodes.

Each has `choose()`, the action at the information state of its memory. `oldlight.control.controller` describes what is done where the plan has
no place for that state; here the three cases are counted: the nearest wait, a state counted along, an observation held back.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

import numpy as np

from oldlight.control.link_choice import AskedByNode, FromLink, FromStationary
from oldlight.control.memory import Memory
from oldlight.control.plan_tables import ACTIONS, ASKED, NODES, PROBABILITIES, SEQUENCES, STATIONARY, Tables
from oldlight.control.report import Report
from oldlight.model.channels.pmfs import running_sums
from oldlight.model.link_tables import link_arrays


class FromTable:
    """One action, or one law of actions, for each information state of a delayed problem."""

    def __init__(self, tables: Tables, report: Report, generator: random.Random) -> None:
        self.tables, self.report, self.generator = tables, report, generator
        self.offset: list[list[list[int]]] = tables.offset.tolist()  # [h][m][δ]
        self.root: list[int] = tables.root.tolist()
        self.hold = len(self.root) - 1
        self.table = tables.table
        self.randomises = tables.kind == PROBABILITIES
        if self.randomises:
            self.table = running_sums(tables.table)
        longest = max(tables.offset.shape[1] - 1, int(np.flatnonzero(tables.root >= 0).max(initial=0)))
        self.memory = Memory(tables, longest, longest)

    def choose(self) -> int:
        memory = self.memory
        h = memory.h
        try:
            if memory.nothing:
                index = self.root[h]
                if index >= 0:
                    index += memory.code
            else:
                m = h - memory.t
                index = self.offset[h if h < self.hold else self.hold][m][h - memory.arrived]
                if index >= 0:
                    index += memory.s * memory.powers[m] + memory.code
        except IndexError:
            index = -1
        if index < 0:
            index = self._unplanned()
        if self.randomises:
            return bisect_right(self.table[index].tolist(), self.generator.random())
        return self.table.item(index)  # type: ignore[no-any-return]

    def _unplanned(self) -> int:
        """The nearest wait, else the nearest younger step, else the nearest older one that has a place."""
        memory, report, warmup = self.memory, self.report, self.tables.warmup
        h = memory.h
        blocks = self.offset[min(h, self.hold)]
        newest = -warmup - 1 if memory.nothing else memory.t
        lowest = max(h - memory.longest, -warmup)
        for t in (*range(max(newest, lowest), h + 1), *range(min(newest, h) - 1, lowest - 1, -1)):
            waits = [w for w, start in enumerate(blocks[h - t]) if start >= 0] if h - t < len(blocks) else []
            if waits:
                waited = h - (memory.seen[t][1] if t in memory.seen else memory.arrived)
                nearest = min((abs(w - waited), w) for w in waits)[1]
                if t == newest:
                    report.nearest_wait += 1
                elif t > newest:
                    report.counted_along += 1
                else:
                    report.held_back += 1
                place: int = blocks[h - t][nearest] + memory.state_of(t) * memory.powers[h - t]
                return place + memory.encoded(memory.queue(t))
        report.held_back += 1
        return self.root[h] + memory.encoded(memory.actions)  # only "nothing seen yet" has a place at this time


class FromSequences:
    """After each observation a sequence of actions, followed until the next one."""

    def __init__(self, tables: Tables, report: Report) -> None:
        self.tables, self.report = tables, report
        self.table = tables.table.reshape(-1)
        self.endless = tables.hold >= 0
        self.memory = Memory(tables, tables.horizon - 1, tables.late)
        self.row = 0  # the sequence that is followed

    def choose(self) -> int:
        memory, late = self.memory, self.tables.late
        m = memory.h - memory.t
        if m == late and not memory.nothing:
            self.row, memory.disturbed = self._row(memory.t, memory.s, memory.code), False
            return self.table.item(self.row)  # type: ignore[no-any-return]
        if memory.nothing:
            if not memory.disturbed and m < self.tables.horizon:
                return self.table.item(m)  # type: ignore[no-any-return]
        elif not memory.disturbed and m < late + self._room(memory.t):
            return self.table.item(self.row + m - late)  # type: ignore[no-any-return]
        return self.table.item(self._unplanned())  # type: ignore[no-any-return]

    def _row(self, t: int, s: int, code: int) -> int:
        """Where the sequence of step t begins; an endless plan has one for all steps."""
        row = 1 if self.endless else t + 1
        return int(((row * self.tables.n_states + s) * self.memory.powers[-1] + code) * self.tables.horizon)

    def _room(self, t: int) -> int:
        """How many actions that sequence has."""
        return self.tables.horizon - self.tables.late - (0 if self.endless else t)

    def _unplanned(self) -> int:
        """The sequence of the newest step that is due, or of the nearest younger one (its state counted along), whose actions so
        far are what was done; one that begins now always is."""
        memory, late, report = self.memory, self.tables.late, self.report
        h = memory.h
        lowest, due = max(h - memory.longest, 0), h - late
        early = not memory.nothing and memory.t > due
        if memory.nothing or early:
            newest = next((t for t in range(due, lowest - 1, -1) if t in memory.seen), -1)
        else:
            newest = memory.t
        report.held_back += early
        if newest < 0 and h <= memory.longest:  # nothing is due: what is done then, if it was done so far
            if self.table[:h].tolist() == memory.actions[:h]:
                return h
            if due < 0:
                report.counted_along += not early
                return h
        for t in range(max(newest, lowest), due + 1):
            queue = memory.queue(t)
            row, done = self._row(t, memory.state_of(t), memory.encoded(queue[:late])), queue[late:]
            if len(done) < self._room(t) and self.table[row : row + len(done)].tolist() == done:
                break
        report.counted_along += t > newest and not early
        return row + len(done)


class Asked:
    """Any executable policy, asked at every tick."""

    def __init__(self, tables: Tables, policy: Any, generator: random.Random) -> None:
        self.policy, self.generator, self.n_actions = policy, generator, tables.n_actions
        self.memory = Memory(tables, tables.warmup + tables.horizon, 0)

    def choose(self) -> int:
        from oldlight.model.policies import as_probabilities

        info = self.memory.information
        mix = as_probabilities(self.policy.probabilities(info), self.n_actions, f"the policy at {tuple(info)}")
        return bisect_right(running_sums(mix).tolist(), self.generator.random())


Chooser = FromTable | FromSequences | Asked | FromLink | AskedByNode | FromStationary


def chooser(tables: Tables, policy: Any, report: Report, generator: random.Random) -> Chooser:
    """The one for this kind of policy."""

    def asked() -> Chooser:
        if tables.automaton is None:
            return Asked(tables, policy, generator)
        return AskedByNode(tables, tables.automaton, link_arrays(tables.automaton), policy, report, generator)

    def of_nodes() -> Chooser:
        assert tables.link is not None
        return FromLink(tables, tables.link, report)

    def stationary() -> Chooser:
        assert tables.stationary is not None
        return FromStationary(tables, tables.stationary, report)

    made: dict[str, Callable[[], Chooser]] = {
        ACTIONS: lambda: FromTable(tables, report, generator),
        PROBABILITIES: lambda: FromTable(tables, report, generator),
        SEQUENCES: lambda: FromSequences(tables, report),
        NODES: of_nodes,
        STATIONARY: stationary,
        ASKED: asked,
    }
    return made[tables.kind]()
