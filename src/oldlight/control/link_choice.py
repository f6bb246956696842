"""What a controller does behind a link that is planned by its automaton: follow the node, look the action up.

At each tick the messages that came say which node of the automaton the link is in now (`LinkMemory`). The action is that of the
information state (node, newest state seen, actions since): in the table while the observation is at most as old as the plan's tables go,
else on the law of the state, counted along. Where the link does what the plan did not expect, the choice is made as
`oldlight.control` says, and counted: another node of the same age (`nearest_wait`), a state counted along, an observation held back.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oldlight.control.memory import Memory
from oldlight.control.report import Report
from oldlight.model.channels.automaton import NOTHING_NEWER, ChannelAutomaton, News
from oldlight.model.channels.pmfs import running_sums
from oldlight.model.held_steps import certain
from oldlight.model.link_tables import ROOT, SAME, LinkTables, heard_of, link_arrays

if TYPE_CHECKING:
    from oldlight.model.link_information import LinkInformation
    from oldlight.model.stationary_policy import StationaryPolicy

LOST_TRACK = -1
KNOWN_LAWS = 100_000  # decisions on laws that are kept


class LinkMemory(Memory):
    """A memory that also follows the node of the link's automaton; LOST_TRACK after what the link cannot do."""

    def __init__(self, tables: Any, longest: int, arrays: dict[str, Any], nodes: int) -> None:
        self._start = nodes
        self._by_age = {(n, age): target for n, age, target in arrays["ticks"].tolist()}
        news, said = arrays["news"].tolist(), arrays["said"].tolist()
        self._by_news = {(row[0], heard_of(said[row[2] : after[2]])): row[1] for row, after in pairwise(news)}
        super().__init__(tables, longest, 0)

    def begin(self, actions: list[int]) -> None:
        super().begin(actions)
        self.node = self._start
        self._arrived: list[int] = []
        self._gone: list[int] = []
        for h in range(self.h):  # nothing is seen while the first actions are under way
            self._follow(h)

    def hear(self, i: int, lost: bool = False) -> None:
        (self._gone if lost else self._arrived).append(i)

    def follow(self) -> None:
        """The node of the present tick, from what was heard at it."""
        self._follow(self.h)
        self._arrived.clear()
        self._gone.clear()

    def skip(self, a: int | None, n: int) -> None:
        for j in range(n):
            self._follow(self.h + j)
            self._arrived.clear()
            self._gone.clear()
        super().skip(a, n)

    def _follow(self, h: int) -> None:
        new = not self.nothing and self.arrived == h
        if self._by_news:
            heard = News(tuple(sorted(h - i for i in self._arrived)), tuple(sorted(h - i for i in self._gone)))
            found = self._by_news.get((self.node, heard))
            if found is not None:
                self.node = found
                return
        self.node = self._by_age.get((self.node, h - self.t if new else NOTHING_NEWER), LOST_TRACK)


class FromLink:
    """The tables of a policy of nodes."""

    def __init__(self, tables: Any, link: LinkTables, report: Report) -> None:
        self.link, self.report = link, report
        self.depth, nodes = link.sizes.tolist()
        self.A = len(link.kept)
        self.powers = [self.A**m for m in range(max(self.depth, 1) + 1)]
        self.number, self.kept = link.number.tolist(), link.kept.tolist()
        self.blind = link.blocks[:, 4].tolist()
        self.place: dict[tuple[int, int, int], int] = {}
        self.likely: dict[int, dict[int, tuple[float, int]]] = {}  # time -> length or ROOT -> (probability, node)
        for b, (h, node, length, _, _) in enumerate(link.blocks.tolist()):
            self.place[h, node, length] = b
            row = self.likely.setdefault(h, {})
            row[length] = max(row.get(length, (-1.0, 0)), (float(link.prior[b]), node))
        self.laws: dict[tuple[int, int], list[tuple[NDArray[np.float64], int]]] = {}
        S = len(link.initial)
        for (b, code, action, first), (*_, end) in pairwise(link.beliefs.tolist()):
            law = np.zeros(S)
            law[link.support[first:end]] = link.mass[first:end]
            self.laws.setdefault((b, code), []).append((law, action))
        self.decided: dict[Any, int] = {}
        arrays = {"ticks": link.ticks, "news": link.news, "said": link.said}
        self.memory = LinkMemory(tables, self.depth, arrays, nodes)

    def choose(self) -> int:
        memory = self.memory
        memory.follow()
        h, D, nothing = memory.h, self.depth, memory.nothing
        length = h if nothing else h - memory.t
        key = ROOT if nothing and length < D else min(length, D)
        on_a_law = nothing or length > D
        b = self.place.get((h, memory.node, key), -1)
        if b < 0 or (on_a_law and self.blind[b] < 0):
            b = self._another_node(key, on_a_law)
            if b < 0:
                return self._another_step(length)
        queue = memory.actions[max(memory.t - memory.base, 0) if not nothing else 0 :]
        if on_a_law:
            return self._on_a_law(b, queue)
        return self._corner(b, memory.s, self._code(queue))

    def _code(self, queue: list[int]) -> int:
        return sum(self.number[a] * p for a, p in zip(queue, self.powers, strict=False))

    def _corner(self, b: int, s: int, code: int) -> int:
        _, _, length, offset, _ = self.link.blocks[b].tolist()
        return self.kept[self.link.actions.item(offset + s * self.powers[length] + code)]  # type: ignore[no-any-return]

    def _on_a_law(self, b: int, queue: list[int]) -> int:
        """The action where the state of the step that the block is about is known by its law only."""
        memory = self.memory
        beyond = max(len(queue) - self.depth, 0)
        case = (b, memory.t if not memory.nothing else None, memory.s, tuple(queue))
        found = self.decided.get(case)
        if found is not None:
            return found
        law = self.link.initial if memory.nothing else certain(len(self.link.initial), memory.s)
        step = 0 if memory.nothing else memory.t
        for i, a in enumerate(queue[:beyond]):
            law = self.link.steps.push(law, step + i, self.number[a])
        code = self._code(queue[beyond:])
        one = np.flatnonzero(law > 0)
        if len(one) == 1 and not (memory.nothing and beyond == 0):
            a = self._corner(b, int(one[0]), code)
        else:
            near = [(float(np.abs(law - known).max()), action) for known, action in self.laws.get((b, code), ())]
            best = min(near, default=(np.inf, 0))
            a = self.kept[best[1] if best[0] <= SAME else self.link.blind.item(self.blind[b] + code)]
        if len(self.decided) >= KNOWN_LAWS:
            self.decided.clear()
        self.decided[case] = a
        return a

    def _another_node(self, key: int, on_a_law: bool) -> int:
        """The likeliest block of this time with this age; −1 where there is none, or none for a law."""
        found = self.likely[self.memory.h].get(key)
        b = -1 if found is None else self.place[self.memory.h, found[1], key]
        if found is None or (on_a_law and self.blind[b] < 0):
            return -1
        self.report.nearest_wait += 1
        self.memory.node = found[1]
        return b

    def _another_step(self, length: int) -> int:
        """The nearest younger step that has a place, its state counted along; else the nearest older one."""
        memory, places = self.memory, self.likely[self.memory.h]
        h = memory.h
        ages = sorted(age for age in places if age != ROOT)
        younger, older = [age for age in ages if age < length], [age for age in ages if age >= length]
        if not ages:
            self.report.held_back += 1
            memory.node = places[ROOT][1]
            b = self.place[h, memory.node, ROOT]
            return self.kept[self.link.blind.item(self.blind[b] + self._code(memory.actions))]  # type: ignore[no-any-return]
        L = younger[-1] if younger else older[0]
        if younger:
            self.report.counted_along += 1
        else:
            self.report.held_back += 1
        memory.node = places[L][1]
        return self._corner(self.place[h, memory.node, L], memory.state_of(h - L), self._code(memory.queue(h - L)))


class FromStationary:
    """The plan of a process that runs for ever (`StationaryPolicy`)."""

    def __init__(self, tables: Any, policy: StationaryPolicy, report: Report) -> None:
        self.policy, self.report, self.warmup = policy, report, tables.warmup
        self.memory = LinkMemory(
            tables, policy.reach + policy.depth + 1, link_arrays(policy.automaton), len(policy.automaton.nodes)
        )

    def choose(self) -> int:
        memory, policy = self.memory, self.policy
        memory.follow()
        nothing = memory.nothing
        age = memory.h if nothing else memory.h - memory.t
        if memory.node == LOST_TRACK:
            node = policy.node_of_age(age, nothing)
            if not policy.growing and not self.warmup:
                self.report.nearest_wait += 1
            memory.node = node
        if (
            not policy.beyond and age > policy.depth - nothing
        ):  # the plan knows no silence: hold the information as old as it allows
            self.report.counted_along += 1
            t = memory.h - policy.depth
            return policy.choose(memory.node, memory.state_of(t), tuple(memory.queue(t)))
        if age > max(policy.reach, policy.depth):
            return policy.rest
        queue = tuple(memory.queue(0 if nothing else memory.t))
        return policy.choose(memory.node, None if nothing else memory.s, queue)


class AskedByNode:
    """Any policy of `LinkInformation`, asked at every tick."""

    def __init__(
        self,
        tables: Any,
        automaton: ChannelAutomaton,
        arrays: Any,
        policy: Any,
        report: Report,
        generator: random.Random,
    ) -> None:
        self.policy, self.names, self.report, self.generator = policy, automaton.nodes, report, generator
        self.n_actions = tables.n_actions
        self.memory = LinkMemory(tables, tables.horizon, arrays, len(automaton.nodes))
        self.likely = likeliest_nodes(automaton)

    @property
    def information(self) -> LinkInformation:
        """What the next action is chosen on, at the node of the last tick followed."""
        from oldlight.model.link_information import LinkInformation

        memory = self.memory
        t, s = (None, None) if memory.nothing else (memory.t, memory.s)
        return LinkInformation(memory.h, self.names[memory.node], t, s, tuple(memory.queue(t or 0)))

    def choose(self) -> int:
        from oldlight.model.policies import as_probabilities

        memory = self.memory
        memory.follow()
        if memory.node == LOST_TRACK:
            self.report.nearest_wait += 1
            here = self.likely[memory.h]
            age = None if memory.nothing else memory.h - memory.t
            memory.node = here.get(age, here["any"])[1]
        info = self.information
        law = as_probabilities(self.policy.probabilities(info), self.n_actions, f"the policy at {tuple(info)}")
        return bisect_right(running_sums(law).tolist(), self.generator.random())


def likeliest_nodes(automaton: ChannelAutomaton) -> list[dict[Any, tuple[float, int]]]:
    """For each time the likeliest node of each age (None: nothing seen), with its probability, and the likeliest of all ("any")."""
    out: list[dict[Any, tuple[float, int]]] = []
    for at in automaton.age_laws():
        row: dict[Any, tuple[float, int]] = {"any": max((p, n) for (n, _), p in at.items())}
        for (n, now), p in at.items():
            row[now] = max(row.get(now, (-1.0, 0)), (p, n))
        out.append(row)
    return out
