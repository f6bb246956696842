"""A delay channel written out for one process: laws, hazards, and what can happen at all.

The symbols are those of `oldlight.model.channels`: d_0 ~ first, d_{i+1} = d_i + Δ_i, Δ_i ~ interarrival[i, s_i, a_i, :], and the
hazard θ_i(s, a, δ) = P(Δ_i = δ | Δ_i ≥ δ, s, a), which is 1 where nobody waits that long.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.arrays import Floats
from oldlight.checks import TooLarge
from oldlight.machine import default_limit, format_bytes

KEPT = 2_000  # places (step, delay) up to which the law of a constant delay, and what follows from it, is kept for the next problem


@dataclass(frozen=True, eq=False)
class DelayLaw:
    """A delay channel written out for a process with H steps, S states, A actions.

    first: pmf of d_0, shape (≤ H+1,).
    interarrival: pmf of Δ_i, shape (1 or H, 1 or S, 1 or A, K ≤ H+1): axes (i, s, a, δ); a 1 stands for "does not matter".
    longest_delay: no delay is longer than this (H if nothing caps it before).
    """

    horizon: int
    first: Floats
    interarrival: Floats
    longest_delay: int

    cap = checks.renamed_property("cap", "longest_delay")

    @cached_property
    def at_risk(self) -> Floats:
        """P(Δ_i ≥ δ | s, a), axes (i, s, a, δ)."""
        return np.minimum(np.cumsum(self.interarrival[..., ::-1], axis=-1)[..., ::-1], 1.0)

    @cached_property
    def hazard(self) -> Floats:
        """θ_i(s, a, δ), axes (i, s, a, δ); 1 where nobody waits that long."""
        last = np.concatenate([self.at_risk[..., 1:], np.zeros_like(self.at_risk[..., :1])], axis=-1) == 0
        return np.where(last, 1.0, np.minimum(self.interarrival / np.where(last, 1.0, self.at_risk), 1.0))

    @cached_property
    def first_hazard(self) -> Floats:
        """P(d_0 = δ | d_0 ≥ δ) for δ = 0..H; 1 where nobody waits that long."""
        pmf = np.zeros(self.horizon + 1)
        pmf[: len(self.first)] = self.first
        tail = np.cumsum(pmf[::-1])[::-1]
        last = np.append(tail[1:], 0.0) == 0
        return np.where(last, 1.0, pmf / np.where(last, 1.0, tail))

    @cached_property
    def uncertain_steps(self) -> int:
        """From this step on it is certain how long after the one before an observation arrives: there no random number is needed."""
        drawn = np.append((self.first > 0).sum() > 1, (self.interarrival > 0).sum(axis=-1).max(axis=(1, 2)) > 1)
        return self.horizon if drawn[-1] else int(np.flatnonzero(drawn).max(initial=-1)) + 1

    def at_step(self, table: Floats, i: int) -> Floats:
        """The rows of step i of `hazard`, `at_risk` or `interarrival`, axes (s, a, δ)."""
        row: Floats = table[min(max(i, 0), table.shape[0] - 1)]
        return row

    @property
    def feasible_delays(self) -> NDArray[np.bool_]:
        """Axes (i, d): can the observation of step i be delayed by exactly d (d = 0..cap)?"""
        found = self.possible_delays
        return np.pad(found, ((0, 0), (0, self.longest_delay + 1 - found.shape[1])))

    @cached_property
    def possible_delays(self) -> NDArray[np.bool_]:
        """`feasible_delays` up to the longest delay that the increments could add up to; linear in H where they are few."""
        H, T = self.horizon, len(self.interarrival)
        supports = [np.flatnonzero((table > 0).any(axis=(0, 1))) for table in self.interarrival]
        most = [int(support[-1]) for support in supports]
        widest = len(self.first) - 1 + (most[0] * (H - 1) if T == 1 else sum(most[: H - 1]))
        widest = min(widest, self.longest_delay)
        if H * (widest + 1) > default_limit():
            raise TooLarge(
                f"delays of up to {widest:,} steps on a horizon of {H:,}: even the table of which can occur takes {format_bytes(H * (widest + 1))}. "
                "Cap the delay: channel.capped(k)"
            )
        possible = np.zeros((H, widest + 1), dtype=bool)
        possible[0, np.minimum(np.flatnonzero(self.first > 0), widest)] = True
        for i in range(H - 1):
            if T == 1 and i > 0 and np.array_equal(possible[i], possible[i - 1]):
                possible[i + 1 :] = possible[i]
                break
            reached = np.flatnonzero(possible[i])[:, None] + supports[min(i, T - 1)]
            possible[i + 1, np.minimum(reached, widest)] = True
        return possible

    @cached_property
    def max_delay(self) -> int:
        """The longest delay that can occur (the paper's D − 1)."""
        return int(np.flatnonzero(self.possible_delays.any(axis=0))[-1])

    @cached_property
    def constant(self) -> int | None:
        """d if every observation is exactly d late, else None."""
        once = np.flatnonzero(self.possible_delays.any(axis=0))
        return int(once[0]) if len(once) == 1 else None

    def shifted(self, k: int) -> DelayLaw:
        """The same law with every delay longer by k."""
        first = fold(np.concatenate([np.zeros(min(k, self.horizon)), self.first]), self.horizon)
        return DelayLaw(self.horizon, first, self.interarrival, min(self.longest_delay + k, self.horizon))

    def longest_wait(self, i: int) -> int:
        """The largest δ that an agent can meet while it waits for the observation of step i + 1."""
        return int(np.flatnonzero((self.at_step(self.interarrival, i) > 0).any(axis=(0, 1)))[-1])

    def probability_longer(self, k: int) -> float:
        """The largest probability, over all ways of acting, that a cap at k changes what the agent sees."""
        H = self.horizon
        if k >= self.max_delay or k >= H:
            return 0.0
        # worst[d] = the largest probability that some later observation that could still be seen is more than k late
        worst = np.zeros(k + 1)
        for i in range(H - 2 - k, -1, -1):
            pmf = self.at_step(self.interarrival, i)
            K = pmf.shape[-1]
            now = np.empty(k + 1)
            for d in range(k + 1):
                stay = pmf[..., : max(0, k - d + 1)]
                beyond = pmf[..., max(0, k - d + 1) :].sum(axis=-1)
                now[d] = (beyond + stay @ worst[d : d + stay.shape[-1]]).max() if K else 0.0
            worst = now
        start = self.first[: k + 1]
        return float(min(1.0, start @ worst[: len(start)] + self.first[k + 1 :].sum()))


def fold(pmf: Floats, H: int) -> Floats:
    """Put what exceeds H at H: it is only seen after the episode."""
    if pmf.shape[-1] > H + 1:
        pmf = np.concatenate([pmf[..., :H], pmf[..., H:].sum(axis=-1, keepdims=True)], axis=-1)
    return checks.frozen(pmf)


def is_kept(law: DelayLaw) -> bool:
    """Is this a law that problems of the same delay and horizon share?"""
    late = law.constant
    return late is not None and law.horizon * (late + 1) <= KEPT
