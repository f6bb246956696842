"""Packets that travel on their own: jitter, reordering and silent loss (UDP, ROS 2 best effort)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oldlight import checks
from oldlight.arrays import Floats, Ints
from oldlight.model.channels.automaton import NOTHING_NEWER, ChannelAutomaton, Tick, tail
from oldlight.model.channels.messages import MessageLink
from oldlight.model.channels.pmfs import drawn, pmf_of, written


class PacketChannel(MessageLink):
    """Each observation travels on its own; packets may overtake each other, and the newest counts.

    The next age is min(K, m + 1) with K drawn afresh from (1 − lost)·delays, whatever the age m: a node is an age, and all
    ages from the longest delay on are one node.

    Parameters
    ----------
    delays : array_like or {steps: probability}
        The pmf of the delay of an observation that arrives.
    lost : float
        Probability that it never does; a loss is not announced.

    Examples
    --------
    >>> from oldlight import PacketChannel
    >>> PacketChannel([0.2, 0.6, 0.2], lost=0.1)
    PacketChannel({0: 0.2, 1: 0.6, 2: 0.2}, lost=0.1)
    """

    def __init__(self, delays: ArrayLike | Mapping[int, float], lost: float = 0.0) -> None:
        self.delays = pmf_of("PacketChannel: delays", delays)
        self.lost = checks.probability("PacketChannel: lost", lost)

    def automaton(self, horizon: int) -> ChannelAutomaton:
        f = (1.0 - self.lost) * self.delays
        beyond, longest = self.lost + (1.0 - self.lost) * tail(self.delays), len(f) - 1

        def step(node: Any) -> list[Tick]:
            arrivals: list[Tick] = [(float(f[k]), k, k) for k in range(node + 1)]
            return [*arrivals, (float(beyond[node]), min(node + 1, longest), NOTHING_NEWER)]

        first = [(float(f[0]), 0, 0), (float(beyond[0]), min(1, longest), NOTHING_NEWER)]
        return ChannelAutomaton.explore(first, step, horizon)

    @property
    def longest(self) -> int:
        return len(self.delays) - 1

    @property
    def oldest(self) -> int | None:
        return None if self.lost else self.longest

    def fate(self, i: Ints, link: Ints, u: Floats) -> tuple[Ints, Ints]:
        k = drawn(np.append((1.0 - self.lost) * self.delays, self.lost), u[0])
        return np.where(k == len(self.delays), -1, k), link

    def _parameters(self) -> tuple[Any, ...]:
        return (self.delays.tobytes(), self.lost)

    def _written(self) -> str:
        return f"{written(self.delays)}, lost={self.lost:g}"
