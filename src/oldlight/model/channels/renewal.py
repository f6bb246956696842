"""Blackouts of any measured length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oldlight.arrays import Floats, Ints
from oldlight.model.channels.automaton import NOTHING_NEWER, ChannelAutomaton, Tick, hazards
from oldlight.model.channels.messages import MessageLink
from oldlight.model.channels.pmfs import pmf_of, written


class RenewalLoss(MessageLink):
    """Observations are seen at once or lost; the number lost between two seen ones is drawn independently.

    `Loss` is the case of geometric lengths. The episode begins as if the observation before s_0 had been seen.

    Parameters
    ----------
    lengths : array_like or {number: probability}
        The pmf of that number, 0 included.

    Examples
    --------
    >>> from oldlight import RenewalLoss
    >>> RenewalLoss({0: 0.9, 5: 0.1})  # now and then five in a row
    RenewalLoss({0: 0.9, 5: 0.1})
    """

    def __init__(self, lengths: ArrayLike | Mapping[int, float]) -> None:
        self.lengths = pmf_of("RenewalLoss: lengths", lengths)

    def automaton(self, horizon: int) -> ChannelAutomaton:
        end = hazards(self.lengths)  # the probability that a blackout of m observations is over

        def step(node: Any) -> list[Tick]:
            over: Tick = (float(end[node]), 0, 0)
            return [over] if end[node] == 1 else [over, (float(1.0 - end[node]), node + 1, NOTHING_NEWER)]

        return ChannelAutomaton.explore(step(0), step, horizon)

    @property
    def spacing(self) -> int:  # type: ignore[override]
        return int(np.flatnonzero(self.lengths)[0]) + 1

    @property
    def longest(self) -> int:
        return 0  # what is seen is seen at once

    @property
    def oldest(self) -> int | None:
        return len(self.lengths) - 1

    def fate(self, i: Ints, link: Ints, u: Floats) -> tuple[Ints, Ints]:
        """The link's state is how many were lost since the last one seen."""
        seen = u[0] < hazards(self.lengths)[link]
        return np.where(seen, 0, -1), np.where(seen, 0, link + 1)

    def _parameters(self) -> tuple[Any, ...]:
        return (self.lengths.tobytes(),)

    def _written(self) -> str:
        return f"{written(self.lengths)}"
