"""A lag that holds with a probability, as the delay buffers of robot simulators have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oldlight import checks
from oldlight.arrays import Floats, Ints
from oldlight.model.channels.automaton import ChannelAutomaton
from oldlight.model.channels.hidden import Delivery, filtered
from oldlight.model.channels.messages import AgeLink
from oldlight.model.channels.pmfs import drawn, pmf_of, written


class HeldLag(AgeLink):
    """At each time h the agent is given the observation of step h − lag, with its time stamp, as the delay buffers of robot simulators do it.

    While the episode is younger than the lag the buffer gives its oldest entry, s_0, and the lag is known only to be at least h. An old
    observation that is given again reveals the lag, so several nodes share an age.

    Parameters
    ----------
    lags : array_like or {steps: probability}
        The pmf from which the lag is drawn.
    hold : float
        Probability that the lag stays as it was; otherwise it is drawn anew.

    Examples
    --------
    >>> from oldlight import HeldLag
    >>> HeldLag({0: 0.5, 2: 0.5}, hold=0.9)
    HeldLag({0: 0.5, 2: 0.5}, hold=0.9)
    """

    draws = 2

    def __init__(self, lags: ArrayLike | Mapping[int, float], hold: float = 0.0) -> None:
        self.lags = pmf_of("HeldLag: lags", lags)
        self.hold = checks.probability("HeldLag: hold", hold)

    def automaton(self, horizon: int) -> ChannelAutomaton:
        longest = len(self.lags) - 1

        def tick(g: Any) -> list[Delivery]:
            h, lag = g  # h counts up to the longest lag only
            now = min(h + 1, longest)
            laws = ((1.0 - self.hold) * self.lags).tolist()
            laws[lag] += self.hold
            return [(p, (now, new), (min(new, now),)) for new, p in enumerate(laws)]

        start: list[Delivery] = [(float(p), (0, lag), (0,)) for lag, p in enumerate(self.lags)]
        return filtered(start, tick, horizon, longest)[0]

    @property
    def longest(self) -> int:
        return len(self.lags) - 1

    @property
    def oldest(self) -> int | None:
        return self.longest

    def shown(self, h: Ints, link: Ints, u: Floats) -> tuple[Ints, Ints]:
        """The link's state is the lag."""
        lag = np.where((h > 0) & (u[1] < self.hold), link, drawn(self.lags, u[0]))
        return np.minimum(lag, h), lag

    def _parameters(self) -> tuple[Any, ...]:
        return (self.lags.tobytes(), self.hold)

    def _written(self) -> str:
        return f"{written(self.lags)}, hold={self.hold:g}"
