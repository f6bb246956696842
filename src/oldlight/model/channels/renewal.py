"""Blackouts of any measured length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oldlight.model.channels.automaton import NOTHING_NEWER, ChannelAutomaton, Ints, Tick, hazards
from oldlight.model.channels.channel import Channel
from oldlight.model.channels.pmfs import pmf_of, written


class RenewalLoss(Channel):
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

    def arrivals(self, rng: np.random.Generator, horizon: int, episodes: int) -> Ints:
        """The arrival time of each observation, axes (step, episode); −1 where it is lost."""
        out = np.full((horizon, episodes), -1)
        left = rng.choice(len(self.lengths), p=self.lengths, size=episodes)
        for h in range(horizon):
            out[h, left == 0] = h
            left = np.where(left == 0, rng.choice(len(self.lengths), p=self.lengths, size=episodes), left - 1)
        return out

    def _parameters(self) -> tuple[Any, ...]:
        return (self.lengths.tobytes(),)

    def __repr__(self) -> str:
        return f"RenewalLoss({written(self.lengths)})"
