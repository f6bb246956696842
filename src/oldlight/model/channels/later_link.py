"""A link whose observations are all held back for k more steps: what one more step of delay is, for any link."""

from __future__ import annotations

from dataclasses import dataclass

from oldlight import checks
from oldlight.model.channels.automaton import ChannelAutomaton
from oldlight.model.channels.channel import Channel


@dataclass(frozen=True, eq=False)
class LaterLink(Channel):
    """`link`, every observation k steps later: each age is longer by k, and nothing is seen before step k.

    Parameters
    ----------
    link : Channel
        Any channel with an automaton.
    k : int
        How many steps more.

    Examples
    --------
    >>> from oldlight import PacketChannel
    >>> from oldlight.model.channels.later_link import LaterLink
    >>> LaterLink(PacketChannel({0: 0.5, 1: 0.5}), 2).automaton(10).longest
    3
    """

    link: Channel
    k: int

    def __post_init__(self) -> None:
        checks.whole("LaterLink: k", self.k)

    @property
    def spacing(self) -> int:  # type: ignore[override]
        return self.link.spacing

    def automaton(self, horizon: int) -> ChannelAutomaton:
        return self.link.automaton(horizon).shifted(self.k)
