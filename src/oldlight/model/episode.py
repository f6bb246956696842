"""One episode, as the protocol reveals it when it is over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oldlight import checks
from oldlight.arrays import Floats, Ints
from oldlight.model.information import Information


@dataclass(frozen=True, eq=False)
class Episode:
    """What the protocol reveals after an episode, for the steps −warmup..H−1: entry i is step i − warmup, each array has shape (warmup + H,).

    Parameters
    ----------
    states : ndarray of int
        The state, or −1 if its observation was lost.
    actions : ndarray of int
        What was done.
    arrivals : ndarray of int
        When the observation arrived (H or later: only after the episode; −1: lost).
    rewards : ndarray
        The reward of (states[i], actions[i]); NaN where the observation was lost, zero before step 0.
    warmup : int
        Steps before step 0.

    Examples
    --------
    >>> import numpy as np
    >>> from oldlight.learners import Episode
    >>> late = Episode(np.array([0, 1, 1]), np.array([1, 0, 0]), np.array([1, 2, 3]), np.zeros(3), 0)
    >>> late.information(2)
    Information(h=2, t=1, state=1, queue=(0,), waited=0)
    """

    states: Ints
    actions: Ints
    arrivals: Ints
    rewards: Floats
    warmup: int

    lead = checks.renamed_property("lead", "warmup")

    def __repr__(self) -> str:
        lost = int(np.count_nonzero(self.arrivals < 0))
        return f"Episode({len(self.states)} steps, {self.warmup} of warm-up, {lost} lost)"

    def information(self, h: int) -> Information:
        """What the agent knew at time h of this episode (as it knew it then)."""
        known = [i for i in range(h + self.warmup + 1) if 0 <= self.arrivals[i] <= h]
        queue = tuple(self.actions.tolist())
        if not known:
            return Information.nothing_seen(queue[: h + self.warmup])
        i = known[-1]
        return Information(
            h, i - self.warmup, int(self.states[i]), queue[i : h + self.warmup], h - int(self.arrivals[i])
        )
