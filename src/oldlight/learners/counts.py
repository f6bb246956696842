"""Counts from hindsight, and the model they make: the one table that every learner under delay shares.

After an episode every delayed observation is revealed, so each step t gives one transition (s_t, a_t, s_{t+1}) of the original
process and one interarrival time Δ_t, whatever the agent knew when. The estimates are

    p̂_t(s2|s, a) = N_t(s, a, s2)/N_t(s, a),      θ̂_t(s, a, δ) = N_t(s, a, Δ=δ)/n_t(s, a, δ),   n = Σ_{δ' ≥ δ} N_t(s, a, Δ=δ'),

n the number at risk. Steps before step 0 (a warm start) are rows of their own, or transitions of step 0 when pooled: for a
stationary process pooling puts the counts of all steps together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.learners.base import Setting
from oldlight.model.episode import Episode

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class DelayCounts:
    """See the module's text and `kernels.counts` for the arrays."""

    def __init__(self, setting: Setting, pooled: bool) -> None:
        S, A, H, warmup = setting.n_states, setting.n_actions, setting.horizon, setting.warmup
        if pooled and not setting.stationary:
            raise ValueError(
                "pooled counts are for stationary transitions; this process has one law per step: pooled=False"
            )
        if setting.arrival_probability is not None:
            raise ValueError(f"{setting.channel!r} loses observations; this learner is for delay alone")
        self.setting, self.pooled = setting, pooled
        T, K = (1 if pooled else warmup + H), setting.law.interarrival.shape[-1]
        self.seen = np.zeros((T, S * A), dtype=np.int64)
        self.index = np.zeros((T, S * A, S), dtype=np.int32)
        self.number = np.zeros((T, S * A, S), dtype=np.int64)
        self.n_next = np.zeros((T, S * A), dtype=np.int64)
        self.event = np.zeros((T, S * A, K), dtype=np.int64)
        self.risk = np.zeros((T, S * A, K), dtype=np.int64)
        self.first = np.zeros(H + 1, dtype=np.int64)
        self.starts = np.zeros(S, dtype=np.int64)
        self.done = np.zeros(1, dtype=np.int64)
        self.touched = np.zeros((warmup + H, 2), dtype=np.int64)

    def add(self, episode: Episode) -> Ints:
        """Count one episode; returns the (row, pair) of each of its steps."""
        from oldlight.kernels import counts as kernels

        kernels.count_one(revealed(episode), self.protocol(), self.arrays(), self.touched)
        return self.touched

    @property
    def episodes(self) -> int:
        """How many were counted."""
        return int(self.done[0])

    def protocol(self) -> Any:
        """What is known of the problem, as the kernels read it."""
        from oldlight.kernels import counts as kernels

        setting = self.setting
        return kernels.Protocol(setting.warmup, setting.law.longest_delay, setting.n_actions, self.pooled)

    def arrays(self) -> Any:
        """The counts, as the kernels read them."""
        from oldlight.kernels import counts as kernels

        return kernels.Counts(
            self.seen, self.index, self.number, self.n_next, self.event, self.risk, self.first, self.starts, self.done
        )

    def state(self) -> dict[str, Any]:
        names = ("seen", "index", "number", "n_next", "event", "risk", "first", "starts")
        return {f"counts.{name}": getattr(self, name) for name in names} | {"counts.episodes": np.array(self.episodes)}

    def restore(self, state: dict[str, Any]) -> None:
        for key, value in state.items():
            if key == "counts.episodes":
                self.done[0] = value
            elif key.startswith("counts."):
                getattr(self, key.removeprefix("counts."))[...] = value


def revealed(episode: Episode) -> Any:
    """An episode, as the kernels read it: arrays of one kind, so that one loop is compiled."""
    from oldlight.kernels import counts as kernels

    parts = (episode.states, episode.actions, episode.arrivals, episode.rewards)
    return kernels.Episode(*(np.ascontiguousarray(part) for part in parts))
