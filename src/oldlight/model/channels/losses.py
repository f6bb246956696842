"""Channels that lose observations: one by one (`Loss`), or in bursts (`BurstyLoss`). See `oldlight.model.channels`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oldlight import checks
from oldlight.model.channels.automaton import ChannelAutomaton
from oldlight.model.channels.channel import Link
from oldlight.model.channels.delay_law import DelayLaw
from oldlight.model.channels.in_order import in_order_automaton

Floats = NDArray[np.float64]


class LossChannel(Link):
    """Base of the channels that lose: `arrival_probabilities(H)` are the chances to be seen, `lost` draws what is lost in n episodes."""

    independent = True  # is each observation lost independently of the others?

    def arrival_probabilities(self, horizon: int) -> Floats:
        raise TypeError(f"{type(self).__name__} does not define rates(horizon)")

    def automaton(self, horizon: int, merging: float = 0.0) -> ChannelAutomaton:
        """What an agent knows of the link; merging is for losses in bursts (`oldlight.model.channels.hidden`)."""
        return in_order_automaton(DelayLaw(horizon, np.ones(1), np.ones((1, 1, 1, 1)), horizon), self, merging)

    def lost(self, rng: np.random.Generator, horizon: int, n: int) -> NDArray[np.bool_]:
        """Axes (h, episode)."""
        return rng.random((horizon, n)) >= self.arrival_probabilities(horizon)[:, None]


def chances(who: str, seen: ArrayLike | None, rate: ArrayLike | None) -> float | tuple[float, ...]:
    """λ from exactly one of seen = λ and rate = 1 − λ."""
    if (seen is None) == (rate is None):
        raise ValueError(f"{who} takes exactly one of seen=λ (chance to be seen) and rate=1−λ (chance to be lost)")
    name, given = ("seen", seen) if rate is None else ("rate", rate)
    values = checks.numbers(f"{who}: {name}", given)  # type: ignore[arg-type]
    if values.ndim > 1 or values.size == 0:
        raise ValueError(f"{who}: {name} has shape {values.shape}; expected one number, or one per step")
    for h, value in enumerate(np.atleast_1d(values)):
        checks.probability(f"{who}: {name}" + (f"[h={h}]" if values.ndim else ""), value)
    chance = values if rate is None else 1.0 - values
    return float(chance) if values.ndim == 0 else tuple(float(x) for x in chance)


@dataclass(frozen=True, init=False)
class Loss(LossChannel):
    """Each observation is seen at once with probability λ_h, or lost for good (and the agent knows).

    Exactly one of, by name: seen = λ, the chance to be seen; rate = 1 − λ, the chance to be lost. One number, or one per step.
    """

    seen: float | tuple[float, ...]

    def __init__(self, *unnamed: object, seen: ArrayLike | None = None, rate: ArrayLike | None = None) -> None:
        if unnamed:
            given = repr(unnamed[0])
            raise TypeError(
                f"Loss({given}) does not say what {given} is; write Loss(rate={given}) for the chance to be lost, or "
                f"Loss(seen={given}) for the chance to be seen"
            )
        object.__setattr__(self, "seen", chances("Loss", seen, rate))

    def arrival_probabilities(self, horizon: int) -> Floats:
        """λ_h for h = 0..H−1."""
        values = np.asarray(self.seen, dtype=np.float64)
        if values.ndim == 1 and len(values) != horizon:
            raise ValueError(f"Loss has {len(values)} rates, expected one per step: {horizon}")
        return checks.frozen(np.broadcast_to(values, (horizon,)))


@dataclass(frozen=True)
class BurstyLoss(LossChannel):
    """Gilbert–Elliott: the link is good or bad, changes with the given chances each step, and loses accordingly.

    to_bad, to_good: the chance to change from good to bad and back; seen_good, seen_bad: the chance to be seen in each. The
    episode starts with the link in its stationary law. Simulated only: what was lost tells the agent about the link, so the
    plan would need a belief over the link too.
    """

    to_bad: float
    to_good: float
    seen_good: float = 1.0
    seen_bad: float = 0.0
    independent = False

    def __post_init__(self) -> None:
        for name in ("to_bad", "to_good", "seen_good", "seen_bad"):
            object.__setattr__(self, name, checks.probability(f"BurstyLoss: {name}", getattr(self, name)))
        if self.to_bad + self.to_good <= 0:
            raise ValueError("BurstyLoss: to_bad and to_good are both 0; a link that never changes is Loss(seen=...)")

    @property
    def bad(self) -> float:
        """How often the link is bad."""
        return self.to_bad / (self.to_bad + self.to_good)

    def arrival_probabilities(self, horizon: int) -> Floats:
        """The chance to be seen at each step, on average over the link."""
        return np.full(horizon, self.bad * self.seen_bad + (1 - self.bad) * self.seen_good)

    def lost(self, rng: np.random.Generator, horizon: int, n: int) -> NDArray[np.bool_]:
        change, draw = rng.random((horizon, n)), rng.random((horizon, n))
        bad = change[0] < self.bad
        out = np.empty((horizon, n), dtype=bool)
        for h in range(horizon):
            if h:
                bad = np.where(bad, change[h] >= self.to_good, change[h] < self.to_bad)
            out[h] = draw[h] >= np.where(bad, self.seen_bad, self.seen_good)
        return out
