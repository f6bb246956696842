"""A link whose observations are shown at the latest when they are k steps old: what the agent knows behind it is never less.

A node is that of the link itself together with the age of what is shown, min(age, k): the rung k of the ladder for long delays, and what
`oldlight.truncate` makes of a link.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oldlight import checks
from oldlight.model.channels.automaton import NOTHING_NEWER, ChannelAutomaton, Tick
from oldlight.model.channels.channel import Channel


def capped(link: ChannelAutomaton, k: int) -> ChannelAutomaton:
    """`link` with every age at most k. Nodes are (number of the link's node, age), or (number, "none", h) before anything is shown."""

    def after(h: int | None, age: int | None, ticks: list[tuple[float, int, int]]) -> list[Tick]:
        """The ticks into the next time: at time h while nothing is shown, else from this age."""
        out: list[Tick] = []
        for p, n, new in ticks:
            if new != NOTHING_NEWER and new <= k:
                out.append((p, (n, new), new))
            elif age is None:
                assert h is not None
                out.append((p, (n, k), k) if h >= k else (p, (n, "none", h), NOTHING_NEWER))
            elif age < k:
                out.append((p, (n, age + 1), NOTHING_NEWER))
            else:
                out.append((p, (n, k), k))
        return out

    def step(node: Any) -> list[Tick]:
        if len(node) == 3:
            return after(node[2] + 1, None, link.row(node[0]))
        return after(None, node[1], link.row(node[0]))

    return ChannelAutomaton.explore(after(0, None, link.row(-1)), step, link.horizon, merging=link.merging)


def probability_older(link: ChannelAutomaton, k: int) -> float:
    """The probability that within the horizon some observation is not shown when it is k steps old."""
    at: dict[tuple[int, int | None], float] = {(-1, None): 1.0}
    late = 0.0
    for h in range(link.horizon):
        following: dict[tuple[int, int | None], float] = {}
        for (n, age), weight in at.items():
            for p, target, new in link.row(n):
                now = new if new != NOTHING_NEWER else None if age is None else age + 1
                if (h >= k) if now is None else (now > k):
                    late += weight * p
                else:
                    following[target, now] = following.get((target, now), 0.0) + weight * p
        at = following
    return late


@dataclass(frozen=True, eq=False)
class CappedLink(Channel):
    """`link`, but an observation is shown at the latest when it is k steps old, lost or not.

    Parameters
    ----------
    link : Channel
        Any channel with an automaton.
    k : int
        The largest age.

    Examples
    --------
    >>> from oldlight import PacketChannel
    >>> from oldlight.model.channels.capped_link import CappedLink
    >>> CappedLink(PacketChannel({0: 0.5, 3: 0.5}), 1).automaton(10).longest
    1
    """

    link: Channel
    k: int

    def __post_init__(self) -> None:
        checks.whole("CappedLink: k", self.k)

    @property
    def spacing(self) -> int:  # type: ignore[override]
        return self.link.spacing

    def automaton(self, horizon: int) -> ChannelAutomaton:
        return capped(self.link.automaton(horizon), self.k)
