"""What an agent knows of a link that does not depend on the process: an automaton of ages.

At time h = 0..H−1, before it acts, the agent has seen some observations. Because a state is seen whole, the newest visible
state s_t and the actions since hold all that older messages reveal of the process; h − t is its **age**. What the agent
knows of the link itself is a *node* of the automaton. With the tick from time h to h + 1 the next node is drawn with the
probabilities of the present one, and the tick carries what became visible:

    an age k ≥ 0       the observation of step h + 1 − k is now the newest visible one; it is newer than the one before
    `NOTHING_NEWER`    no newer observation: the age grows by one, or still nothing has been seen

and what the agent sees determines the next node. Where the age alone does not (several nodes share it), a tick also has its `News`: the
ages of all observations that arrive with it, and of those that are now known to be lost; `follow` finds the node from them. Several
nodes may share an age (a late, older message leaves the age alone and still reveals something of the link), and one node may
stand for all ages from some age on (a memoryless link whose newest message is
older than its longest delay). Before anything of the episode is seen the age counts from 1 at time 0: an arrival with age k
at time h + 1 must satisfy k ≤ h + 1 then. `start` is the tick into time 0, from a virtual node before the episode.

Announced or silent makes no difference here: a loss is a tick without anything newer.

`ChannelAutomaton.explore` builds one from a function that gives the ticks of a node; that is all that a channel of one's own
needs. The arrays (`Ticks`, row n of `first` .. as in a compressed sparse matrix) are what planners and samplers read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from oldlight import checks
from oldlight.arrays import Floats, Ints

NOTHING_NEWER = -1


class News(NamedTuple):
    """What the agent hears with one tick: the ages of the observations that arrive, youngest first, and of those announced as lost."""

    arrived: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()

    def later(self, k: int) -> News:
        """The same with every age longer by k."""
        return News(tuple(age + k for age in self.arrived), tuple(age + k for age in self.lost))


SILENCE = News()
# (probability, next node, age or NOTHING_NEWER), and its news where the age alone does not tell the next node
Tick = tuple[float, Hashable, int] | tuple[float, Hashable, int, News]


class Ticks(NamedTuple):
    """The ticks of all nodes: those of node n are the entries first[n]..first[n + 1] − 1; the last row is the start."""

    first: Ints  # [node + 1]
    node: Ints  # [tick] the next node
    age: Ints  # [tick] the age that became visible, or NOTHING_NEWER
    probability: Floats  # [tick]


class ChannelAutomaton:
    """What an agent knows of a link that does not depend on the process, for `horizon` steps; see the module's text.

    Parameters
    ----------
    nodes : iterable of hashable
        The names of the nodes, each once.
    start : iterable of (probability, node, age)
        The ticks into time 0. The age is 0, or NOTHING_NEWER when s_0 is not seen at once. (An age m > 0 means that s_{−m} and the
        actions since are known: a warm start.)
    ticks : iterable of iterables of (probability, node, age)
        The ticks of each node; empty for a node that is only reached at the last time.
    horizon : int
        H.
    merging : float
        0, or the total variation within which nodes were merged (see `oldlight.model.channels.hidden`).

    Examples
    --------
    >>> from oldlight.model.channels import NOTHING_NEWER, ChannelAutomaton
    >>> every_second = {"now": [(1.0, "later", NOTHING_NEWER)], "later": [(1.0, "now", 0)]}
    >>> ChannelAutomaton.explore([(1.0, "now", 0)], every_second.__getitem__, horizon=10)
    ChannelAutomaton(2 nodes, 2 ticks, longest delay 0, horizon 10)
    """

    def __init__(
        self,
        nodes: Iterable[Hashable],
        start: Iterable[Tick],
        ticks: Iterable[Iterable[Tick]],
        *,
        horizon: int,
        merging: float = 0.0,
    ) -> None:
        self.horizon = checks.whole("ChannelAutomaton: horizon", horizon, least=1)
        self.unrolled: Any = None  # the last blocks that `oldlight.model.age_layers` made of it, and their sizes
        self.nodes = tuple(nodes)
        self.merging = float(merging)
        number = {name: n for n, name in enumerate(self.nodes)}
        if len(number) < len(self.nodes):
            raise ValueError("ChannelAutomaton: two nodes have the same name; every name must be different")
        rows = [*map(list, ticks), list(start)]
        if len(rows) != len(self.nodes) + 1:
            raise ValueError(f"ChannelAutomaton: {len(rows) - 1} lists of ticks for {len(self.nodes)} nodes")
        first, to, age, probability = [0], [], [], []
        self._news: list[dict[News, tuple[float, int, int]]] = []
        for n, row in enumerate(rows):
            name = "start" if n == len(self.nodes) else f"node {self.nodes[n]!r}"
            found, news = _checked_row(name, row, number, may_be_empty=n < len(self.nodes))
            self._news.append(news)
            for (target, k), p in found.items():
                to.append(target)
                age.append(k)
                probability.append(p)
            first.append(len(to))
        self.ticks = Ticks(np.array(first), np.array(to), np.array(age), np.array(probability, dtype=np.float64))
        for array in self.ticks:
            array.setflags(write=False)
        self._check_ages()

    @classmethod
    def explore(
        cls,
        start: Iterable[Tick],
        step: Callable[[Any], Iterable[Tick]],
        horizon: int,
        *,
        merging: float = 0.0,
    ) -> ChannelAutomaton:
        """The nodes that can be met within the horizon, from the ticks into time 0 and `step(node)`, the ticks of a node."""
        begin = [tick for tick in start if tick[0] > 0]
        known: dict[Hashable, list[Tick]] = {}
        frontier = list(dict.fromkeys(tick[1] for tick in begin))
        for h in range(horizon):
            following: dict[Hashable, None] = {}
            for name in frontier:
                row = [tick for tick in step(name) if tick[0] > 0] if h + 1 < horizon else []
                known[name] = row
                following.update(dict.fromkeys(tick[1] for tick in row))
            frontier = [name for name in following if name not in known]
        return cls(known, begin, known.values(), horizon=horizon, merging=merging)

    def row(self, n: int) -> list[tuple[float, int, int]]:
        """The ticks (probability, next node, age) of node number n; n = len(nodes), or −1, is the start."""
        n = len(self.nodes) if n < 0 else n
        here = slice(int(self.ticks.first[n]), int(self.ticks.first[n + 1]))
        columns = (self.ticks.probability[here], self.ticks.node[here], self.ticks.age[here])
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def news(self, n: int) -> dict[News, tuple[float, int, int]]:
        """The ticks of node number n by what is heard with them, {} where the age alone tells the next node; n as in `row`."""
        return self._news[n]

    @property
    def tells_by_age(self) -> bool:
        """Does the age of the newest observation alone tell the next node, everywhere?"""
        return not any(self._news)

    def follow(self, n: int, age: int, news: News) -> int | None:
        """The node after node number n (−1: the start) when this was heard; None where no tick fits.

        age: that of the newest observation, if it is newer than what was visible, else NOTHING_NEWER. Where the news are not those
        of any tick, the most likely tick with this age is taken.
        """
        known = self._news[n].get(news)
        if known is not None:
            return known[1]
        fitting = [(p, target) for p, target, k in self.row(n) if k == age]
        return max(fitting)[1] if fitting else None

    @cached_property
    def longest(self) -> int:
        """The largest age that a tick can make visible."""
        return max(int(self.ticks.age.max()), 0)

    def shifted(self, k: int) -> ChannelAutomaton:
        """The same link in front of actions that act k steps later: every age is longer by k, and for the first k steps of
        the process, whose actions were chosen before the start, nothing is seen."""
        if k == 0:
            return self

        def later(name: int) -> list[Tick]:
            news = self.news(name)
            heard = [(*tick, said.later(k)) for said, tick in news.items()] if news else self.row(name)
            return [(p, n, NOTHING_NEWER if age == NOTHING_NEWER else age + k, *more) for p, n, age, *more in heard]  # type: ignore[misc]

        def step(name: Any) -> list[Tick]:
            if isinstance(name, tuple):
                return [(1.0, ("ahead", name[1] + 1), NOTHING_NEWER)] if name[1] + 1 < k else later(-1)
            return later(name)

        moved = ChannelAutomaton.explore([(1.0, ("ahead", 0), NOTHING_NEWER)], step, self.horizon, merging=self.merging)
        moved.nodes = tuple(name if isinstance(name, tuple) else self.nodes[name] for name in moved.nodes)  # type: ignore[call-overload]
        return moved

    def age_laws(self) -> Iterator[dict[tuple[int, int | None], float]]:
        """At each time the probability of each (node, age of the newest visible observation; None: nothing is seen)."""
        at: dict[tuple[int, int | None], float] = {(-1, None): 1.0}
        for _ in range(self.horizon):
            after: dict[tuple[int, int | None], float] = {}
            for (n, m), weight in at.items():
                for p, target, age in self.row(n):
                    now = (None if m is None else m + 1) if age == NOTHING_NEWER else age
                    after[target, now] = after.get((target, now), 0.0) + weight * p
            yield after
            at = after

    def sample(self, rng: np.random.Generator, episodes: int) -> tuple[Ints, Ints]:
        """Draw `episodes` runs of the link: the node and the age of the newest visible step, axes (h, episode).

        The age is −1 where nothing has been seen yet.
        """
        H, first = self.horizon, self.ticks.first
        cumulative = np.cumsum(self.ticks.probability)
        nodes, ages = np.empty((H, episodes), np.int64), np.empty((H, episodes), np.int64)
        at, age = np.full(episodes, len(self.nodes)), np.full(episodes, -1)
        for h in range(H):
            below = np.where(first[at] > 0, cumulative[first[at] - 1], 0.0)
            total = cumulative[first[at + 1] - 1] - below
            drawn = np.searchsorted(cumulative, below + total * rng.random(episodes), side="right")
            drawn = np.clip(drawn, first[at], first[at + 1] - 1)
            new = self.ticks.age[drawn]
            age = np.where(new >= 0, new, np.where(age >= 0, age + 1, -1))
            at = self.ticks.node[drawn]
            nodes[h], ages[h] = at, age
        return nodes, ages

    def _check_ages(self) -> None:
        """An observation that becomes visible must be newer than the one before: its age is at most the age before."""
        N = len(self.nodes)
        least = np.full(N, -1)
        queue = []
        for _, n, age in self.row(N):
            reached = age if age >= 0 else 1
            if least[n] < 0 or reached < least[n]:
                least[n] = reached
                queue.append(n)
        while queue:
            n = queue.pop()
            for _, target, age in self.row(n):
                if age > least[n]:
                    raise ValueError(
                        f"ChannelAutomaton: node {self.nodes[n]!r} can be met with age {least[n]}, and then a tick to age {age} "
                        f"would make an older observation the newest one; expected an age in 0..{least[n]} or NOTHING_NEWER"
                    )
                reached = age if age >= 0 else least[n] + 1
                if least[target] < 0 or reached < least[target]:
                    least[target] = reached
                    queue.append(target)

    def __repr__(self) -> str:
        merged = f", merged within {self.merging:g}" if self.merging else ""
        return (
            f"ChannelAutomaton({len(self.nodes)} nodes, {int(self.ticks.first[-2])} ticks, longest delay {self.longest}, "
            f"horizon {self.horizon}{merged})"
        )


def _checked_row(
    name: str, row: list[Tick], number: dict[Hashable, int], *, may_be_empty: bool
) -> tuple[dict[tuple[int, int], float], dict[News, tuple[float, int, int]]]:
    """One node's ticks by (next node, age), with equal ones added up; and by their news, if they have any."""
    out: dict[tuple[int, int], float] = {}
    news: dict[News, tuple[float, int, int]] = {}
    for p, target, age, *said in row:
        checks.probability(f"ChannelAutomaton: {name}: the probability of a tick", p)
        if target not in number:
            raise ValueError(f"ChannelAutomaton: {name} has a tick to {target!r}, which is not a node")
        k = checks.whole(f"ChannelAutomaton: {name}: the age of a tick", age, least=NOTHING_NEWER)
        if p > 0:
            out[number[target], k] = out.get((number[target], k), 0.0) + float(p)
            for heard in said:
                if heard in news:
                    raise ValueError(
                        f"ChannelAutomaton: {name} has two ticks that look the same to the agent, {tuple(heard)}; what is heard must determine the next node"
                    )
                news[News(*heard)] = (float(p), number[target], k)
    total = sum(out.values())
    if abs(total - 1.0) > checks.SUM_TOLERANCE and not (may_be_empty and not row):
        raise ValueError(
            f"ChannelAutomaton: the ticks of {name} sum to {total:.12g}, expected 1 ± {checks.SUM_TOLERANCE:g}"
        )
    return out, news


def tail(pmf: Floats) -> Floats:
    """P(X > k) for k = 0..len(pmf) − 1, without rounding residue: exactly 0 where no later entry is positive."""
    return np.append(np.cumsum(pmf[::-1])[::-1][1:], 0.0)


def hazards(pmf: Floats) -> Floats:
    """P(X = k | X ≥ k); exactly 1 at the last possible value and beyond."""
    beyond = tail(pmf)
    return np.where(beyond == 0, 1.0, pmf / np.where(beyond == 0, 1.0, pmf + beyond))
