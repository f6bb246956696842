"""Independent delays, delivered in order: jitter behind a queue (TCP, Wi-Fi head of line)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oldlight.arrays import Floats, Ints
from oldlight.model.channels.automaton import NOTHING_NEWER, ChannelAutomaton, Tick, hazards, tail
from oldlight.model.channels.messages import MessageLink
from oldlight.model.channels.pmfs import drawn, pmf_of, written


class FIFODelay(MessageLink):
    """Each observation takes a delay of its own, but none is delivered before those that were sent earlier.

    Several may be delivered at once, so the delay recovers. At age m the observation of step t + 1 is under way for m steps; with
    probability g = P(X = m | X ≥ m) it is there at the next tick, and with it every later one up to the first that is not: a node is an age.

    Parameters
    ----------
    delays : array_like or {steps: probability}
        The pmf of the delay X.

    Examples
    --------
    >>> from oldlight import FIFODelay
    >>> FIFODelay({0: 0.5, 2: 0.5}).automaton(horizon=10)
    ChannelAutomaton(3 nodes, 6 ticks, longest delay 2, horizon 10)
    """

    def __init__(self, delays: ArrayLike | Mapping[int, float]) -> None:
        self.delays = pmf_of("FIFODelay: delays", delays)

    def automaton(self, horizon: int) -> ChannelAutomaton:
        g, later = hazards(self.delays), tail(self.delays)  # P(X = m | X ≥ m), P(X > k)
        there = np.cumsum(self.delays)  # P(X ≤ k)
        there[later == 0] = 1.0

        def step(node: Any) -> list[Tick]:
            out: list[Tick] = [(float(1.0 - g[node]), node + 1, NOTHING_NEWER)] if g[node] < 1 else []
            rest = float(g[node])  # the probability that the steps from t + 1 to h + 1 − k are all there
            for k in range(node, 0, -1):
                out.append((rest * float(later[k - 1]), k, k))
                rest *= float(there[k - 1])
            return [*out, (rest, 0, 0)]

        first = [(float(self.delays[0]), 0, 0), (float(later[0]), 1, NOTHING_NEWER)]
        return ChannelAutomaton.explore(first, step, horizon)

    @property
    def longest(self) -> int:
        return len(self.delays) - 1

    @property
    def oldest(self) -> int | None:
        return self.longest

    def fate(self, i: Ints, link: Ints, u: Floats) -> tuple[Ints, Ints]:
        """The link's state is the arrival time of the message before."""
        when = np.maximum(link, i + drawn(self.delays, u[0]))
        return when - i, when

    def _parameters(self) -> tuple[Any, ...]:
        return (self.delays.tobytes(),)

    def _written(self) -> str:
        return f"{written(self.delays)}"
