"""Channels that lose observations: one by one (`Loss`), in bursts (`BurstyLoss`), or beside a delay (`Lossy`). See `oldlight.model.channels`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oldlight import checks
from oldlight.arrays import Floats
from oldlight.model.channels.automaton import ChannelAutomaton
from oldlight.model.channels.channel import Channel
from oldlight.model.channels.delay_law import DelayLaw
from oldlight.model.channels.delays import ConstantDelay, DelayChannel
from oldlight.model.channels.in_order import in_order_automaton
from oldlight.model.channels.pmfs import drawn


class LossModes(NamedTuple):
    """How a loss channel loses: it is in a mode z that nobody sees, and an observation is seen with the probability of its mode.

    first[z] is the law of z_0, switch[z, z'] = P(z_{i+1} = z' | z_i = z), and seen[i, z] the arrival probability of step i in mode z; the
    last row of `seen` holds for all later steps. One mode: each observation is lost independently of the others.
    """

    first: Floats
    switch: Floats
    seen: Floats


class LossChannel(Channel):
    """Base of the channels that lose. A subclass defines `arrival_probabilities(horizon)`; where losses depend on each other it sets
    ``independent = False`` and defines `modes(horizon)` instead, or `lost`, which can be played but not planned.

    Examples
    --------
    >>> import oldlight as ol
    >>> ol.Loss(rate=0.2).independent, ol.BurstyLoss(0.1, 0.5).independent
    (True, False)
    """

    has_delay_law = True
    independent = True  # is each observation lost independently of the others?

    @property
    def delay(self) -> DelayChannel:
        """A delay of zero steps."""
        return ConstantDelay(0)

    @property
    def loss(self) -> LossChannel:
        """The channel itself."""
        return self

    def arrival_probabilities(self, horizon: int) -> Floats:
        """λ_h for h = 0..H−1."""
        if type(self).rates is not LossChannel.rates:  # a channel of one's own, written for the old name
            checks.renamed(f"{type(self).__name__}.rates", "arrival_probabilities")
            return self.rates(horizon)
        if type(self).modes is LossChannel.modes:
            raise TypeError(f"{type(self).__name__} does not define arrival_probabilities(horizon)")
        modes = self.modes(horizon)
        assert modes is not None
        law, out = modes.first, np.empty(horizon)
        for i in range(horizon):
            out[i] = law @ modes.seen[min(i, len(modes.seen) - 1)]
            law = law @ modes.switch
        return out

    def rates(self, horizon: int) -> Floats:
        """The old name of `arrival_probabilities`."""
        checks.renamed(f"{type(self).__name__}.rates", f"{type(self).__name__}.arrival_probabilities")
        return self.arrival_probabilities(horizon)

    def modes(self, horizon: int | None = None) -> LossModes | None:
        """The hidden modes of the channel; horizon: the steps of an episode, if that is known. None: where losses depend on each other and
        nothing but `lost` is defined, or where the arrival probabilities are known for a given horizon only."""
        if not self.independent or horizon is None or type(self).lost is not LossChannel.lost:
            return None
        return one_mode(self.arrival_probabilities(horizon))

    def automaton(self, horizon: int, merging: float = 0.0) -> ChannelAutomaton:
        """What an agent knows of the link; merging is for losses in bursts (`oldlight.model.channels.hidden`)."""
        return in_order_automaton(DelayLaw(horizon, np.ones(1), np.ones((1, 1, 1, 1)), horizon), self, merging)

    def lost(self, rng: np.random.Generator, horizon: int, n: int) -> NDArray[np.bool_]:
        """Draw what is lost in n episodes, axes (h, episode)."""
        modes = self.modes(horizon)
        if modes is None:
            raise TypeError(
                f"{type(self).__name__} says independent = False; it must define modes(horizon), or lost(rng, horizon, n)"
            )
        if len(modes.first) == 1:
            return rng.random((horizon, n)) >= self.arrival_probabilities(horizon)[:, None]
        change, draw = rng.random((horizon, n)), rng.random((horizon, n))
        mode, out = drawn(modes.first, change[0]), np.empty((horizon, n), dtype=bool)
        for h in range(horizon):
            mode = drawn(modes.switch[mode], change[h]) if h else mode
            out[h] = draw[h] >= modes.seen[min(h, len(modes.seen) - 1), mode]
        return out


def one_mode(seen: ArrayLike) -> LossModes:
    """Independent losses with these arrival probabilities."""
    return LossModes(np.ones(1), np.ones((1, 1)), np.atleast_1d(np.asarray(seen, dtype=np.float64))[:, None])


def arrival_probability_of(who: str, seen: ArrayLike | None, rate: ArrayLike | None) -> float | tuple[float, ...]:
    """λ from exactly one of seen = λ and rate = 1 − λ."""
    if (seen is None) == (rate is None):
        raise ValueError(f"{who} takes exactly one of seen=λ (arrival probability) and rate=1−λ (loss rate)")
    name, given = ("seen", seen) if rate is None else ("rate", rate)
    values = checks.numbers(f"{who}: {name}", given)  # type: ignore[arg-type]
    if values.ndim > 1 or values.size == 0:
        raise ValueError(f"{who}: {name} has shape {values.shape}; expected one number, or one per step")
    for h, value in enumerate(np.atleast_1d(values)):
        checks.probability(f"{who}: {name}" + (f"[h={h}]" if values.ndim else ""), value)
    seen = values if rate is None else 1.0 - values
    return float(seen) if values.ndim == 0 else tuple(float(x) for x in seen)


@dataclass(frozen=True, init=False, eq=False)
class Loss(LossChannel):
    """Each observation is seen at once with probability λ_h, or lost for good (and the agent knows).

    Parameters
    ----------
    seen : float or array_like of H floats
        λ, the arrival probability: one number, or one per step. Give exactly one of `seen` and `rate`, by name.
    rate : float or array_like of H floats
        1 − λ, the loss rate.

    Examples
    --------
    >>> from oldlight import Loss
    >>> Loss(rate=0.2)
    Loss(seen=0.8)
    >>> Loss(rate=0.2).arrival_probabilities(3).tolist()
    [0.8, 0.8, 0.8]
    """

    seen: float | tuple[float, ...]

    def __init__(self, *unnamed: object, seen: ArrayLike | None = None, rate: ArrayLike | None = None) -> None:
        if unnamed:
            given = repr(unnamed[0])
            raise TypeError(
                f"Loss({given}) does not say what {given} is; write Loss(rate={given}) for the loss rate, or "
                f"Loss(seen={given}) for the arrival probability"
            )
        object.__setattr__(self, "seen", arrival_probability_of("Loss", seen, rate))

    def arrival_probabilities(self, horizon: int) -> Floats:
        """λ_h for h = 0..H−1."""
        values = np.asarray(self.seen, dtype=np.float64)
        if values.ndim == 1 and len(values) != horizon:
            raise ValueError(f"Loss has {len(values)} rates, expected one per step: {horizon}")
        return checks.frozen(np.broadcast_to(values, (horizon,)))

    def modes(self, horizon: int | None = None) -> LossModes:
        """One mode, with one arrival probability or one for each step."""
        return one_mode(
            self.seen if horizon is None or isinstance(self.seen, float) else self.arrival_probabilities(horizon)
        )


@dataclass(frozen=True, eq=False)
class BurstyLoss(LossChannel):
    """Gilbert–Elliott: the link is good or bad, changes at random each step, and loses accordingly.

    What was lost tells the agent about the link, so a plan holds a belief over the link too (`oldlight.model.channels.hidden`). The episode
    starts with the link in its stationary distribution.

    Parameters
    ----------
    to_bad, to_good : float
        Probability to change from good to bad, and back, in a step.
    seen_good, seen_bad : float
        Arrival probability while the link is good, and bad.

    Examples
    --------
    >>> from oldlight import BurstyLoss
    >>> link = BurstyLoss(to_bad=0.1, to_good=0.4)
    >>> link.bad, link.arrival_probabilities(2).tolist()
    (0.2, [0.8, 0.8])
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
        """The stationary probability that the link is bad."""
        return self.to_bad / (self.to_bad + self.to_good)

    def arrival_probabilities(self, horizon: int) -> Floats:
        """The arrival probability of each step, on average over the link."""
        return np.full(horizon, self.bad * self.seen_bad + (1 - self.bad) * self.seen_good)

    def modes(self, horizon: int | None = None) -> LossModes:
        """Good, then bad."""
        switch = np.array([[1.0 - self.to_bad, self.to_bad], [self.to_good, 1.0 - self.to_good]])
        return LossModes(np.array([1.0 - self.bad, self.bad]), switch, np.array([[self.seen_good, self.seen_bad]]))

    def lost(self, rng: np.random.Generator, horizon: int, n: int) -> NDArray[np.bool_]:
        change, draw = rng.random((horizon, n)), rng.random((horizon, n))
        bad = change[0] < self.bad
        out = np.empty((horizon, n), dtype=bool)
        for h in range(horizon):
            if h:
                bad = np.where(bad, change[h] >= self.to_good, change[h] < self.to_bad)
            out[h] = draw[h] >= np.where(bad, self.seen_bad, self.seen_good)
        return out


@dataclass(frozen=True, init=False, eq=False)
class Lossy(Channel):
    """Late and lossy: each observation is lost, or travels with `delay`.

    Parameters
    ----------
    delay : DelayChannel
        How late an observation is that is not lost.
    seen, rate, loss : float or array_like, float or array_like, LossChannel
        Exactly one of the arrival probability λ, the loss rate 1 − λ, and a loss channel.

    Examples
    --------
    >>> from oldlight import ConstantDelay, Lossy
    >>> Lossy(ConstantDelay(2), rate=0.1)
    Lossy(delay=ConstantDelay(d=2), loss=Loss(seen=0.9))
    """

    delay: DelayChannel
    loss: LossChannel
    has_delay_law = True

    def __init__(
        self,
        delay: DelayChannel,
        *,
        seen: ArrayLike | None = None,
        rate: ArrayLike | None = None,
        loss: LossChannel | None = None,
    ) -> None:
        if not isinstance(delay, DelayChannel):
            hint = f"; did you mean ConstantDelay({delay})?" if isinstance(delay, int) else ""
            raise TypeError(f"Lossy: delay is of type {type(delay).__name__}, expected a delay channel{hint}")
        if sum(x is not None for x in (seen, rate, loss)) != 1:
            raise ValueError("Lossy takes exactly one of seen=λ, rate=1−λ and loss=Loss(...) or BurstyLoss(...)")
        if loss is None:
            loss = Loss(seen=arrival_probability_of("Lossy", seen, rate))
        elif not isinstance(loss, LossChannel):
            raise TypeError(f"Lossy: loss is of type {type(loss).__name__}, expected Loss(...) or BurstyLoss(...)")
        object.__setattr__(self, "delay", delay)
        object.__setattr__(self, "loss", loss)

    def automaton(self, horizon: int, merging: float = 0.0) -> ChannelAutomaton:
        """What an agent knows of the link: losses are announced, in order; merging as in `oldlight.model.channels.hidden`."""
        return in_order_automaton(self.delay.law(horizon, *self.delay._sizes()), self.loss, merging)
