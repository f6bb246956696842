"""The links next to a link: one step later or earlier, one percentage point lossier or better, a slower sensor, longer blackouts, more jitter.

`neighbours(channel)` lists those that are defined for its kind:

    a step later        every observation is held one step longer: any link (`LaterLink` where the kind has no parameter for it)
    a step earlier      where no observation comes at once
    a percent lossier   the loss rate of each observation grows by 0.01: constant and in-order delays, losses, packets, hidden links, periodic
                        sensing. (In a queue that delivers in order a lost packet blocks for ever, and a counted age chain has no messages: not defined.)
    a percent better    where the loss rate is at least 0.01
    a slower sensor     one more step between two readings of a periodic sensor
    longer blackouts    one more step on average, of losses in bursts
    more jitter         each delay one step shorter, the same, or one longer, with probability 1/3: constant delays and packets that are never at once
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oldlight.model.channels import (
    BurstyLoss,
    Channel,
    ConstantDelay,
    DelayChannel,
    HiddenLink,
    Loss,
    Lossy,
    PacketChannel,
    Periodic,
)
from oldlight.model.channels.later_link import LaterLink
from oldlight.model.channels.losses import LossChannel
from oldlight.planning.impairments import link_of

Floats = NDArray[np.float64]
POINT = 0.01  # a percentage point


class Neighbour(NamedTuple):
    """A link next to another: what was changed, in which unit ("step" or "percent"), by how many of them (negative: less), and the link."""

    change: str
    unit: str
    amount: float
    channel: Channel


def neighbours(channel: Channel) -> Iterator[Neighbour]:
    """The links of the module's text, those that are defined for this one."""
    period = channel.period_ms
    for found in _neighbours(channel):
        yield found._replace(channel=found.channel.with_period(period))


def _neighbours(channel: Channel) -> Iterator[Neighbour]:
    yield Neighbour("one more step of delay", "step", 1, later(channel))
    if (sooner := earlier(channel)) is not None:
        yield Neighbour("one step of delay less", "step", -1, sooner)
    if (worse := lossier(channel, POINT)) is not None:
        yield Neighbour("one percent more lost", "percent", 1, worse)
    if (better := lossier(channel, -POINT)) is not None:
        yield Neighbour("one percent less lost", "percent", -1, better)
    if isinstance(channel, Periodic):
        slower = Periodic(channel.every + 1, channel.delay, channel.offset)
        yield Neighbour("one more step between two readings", "step", 1, slower)
    if (longer := _longer_blackouts(channel)) is not None:
        yield Neighbour("blackouts one step longer on average", "step", 1, longer)
    if (jittery := _jittery(channel)) is not None:
        yield Neighbour("one step of jitter", "step", 1, jittery)


def later(channel: Channel) -> Channel:
    """Every observation one step later."""
    if isinstance(channel, ConstantDelay):
        return ConstantDelay(channel.d + 1)
    if isinstance(channel, LossChannel):
        return Lossy(ConstantDelay(1), loss=channel)
    if isinstance(channel, Lossy) and isinstance(channel.delay, ConstantDelay):
        return Lossy(ConstantDelay(channel.delay.d + 1), loss=channel.loss)
    if isinstance(channel, PacketChannel):
        return PacketChannel(np.append(0.0, channel.delays), lost=channel.lost)
    if isinstance(channel, Periodic):
        return Periodic(channel.every, channel.delay + 1, channel.offset)
    return LaterLink(channel, 1)


def earlier(channel: Channel) -> Channel | None:
    """Every observation one step earlier; None where that cannot be, or is not known."""
    if isinstance(channel, ConstantDelay):
        return ConstantDelay(channel.d - 1) if channel.d else None
    if isinstance(channel, Lossy) and isinstance(channel.delay, ConstantDelay):
        d = channel.delay.d
        return None if d == 0 else Lossy(ConstantDelay(d - 1), loss=channel.loss) if d > 1 else channel.loss
    if isinstance(channel, PacketChannel) and channel.delays[0] == 0:
        return PacketChannel(channel.delays[1:], lost=channel.lost)
    if isinstance(channel, Periodic) and channel.delay:
        return Periodic(channel.every, channel.delay - 1, channel.offset)
    return None


def lossier(channel: Channel, more: float) -> Channel | None:
    """The loss rate of each observation larger by `more`; None where that is not defined, or would leave [0, 1]."""
    if isinstance(channel, Loss | BurstyLoss):
        return _lossier_loss(channel, more)
    if isinstance(channel, Lossy):
        loss = _lossier_loss(channel.loss, more)
        return None if loss is None else Lossy(channel.delay, loss=loss)
    if isinstance(channel, DelayChannel):
        if more < 0:
            return None
        never_late = isinstance(channel, ConstantDelay) and channel.d == 0
        return Loss(rate=more) if never_late else Lossy(channel, rate=more)
    if isinstance(channel, PacketChannel):
        lost = channel.lost + more
        return PacketChannel(channel.delays, lost=lost) if 0 <= lost <= 1 else None
    if isinstance(channel, HiddenLink):
        rates = channel.delays.sum(axis=1)
        kept = rates - more * (rates > 0)
        if (kept < 0).any() or (kept > 1).any():
            return None
        share = np.divide(kept, rates, out=np.zeros_like(rates), where=rates > 0)
        return HiddenLink(channel.switch, channel.delays * share[:, None], first=channel.first)
    if isinstance(channel, Periodic) and more > 0 and channel.offset == 0:
        return link_of({"sensor_period": channel.every, "delay": channel.delay, "loss": more})
    return None


def _lossier_loss(loss: LossChannel, more: float) -> LossChannel | None:
    if isinstance(loss, Loss):
        seen = np.asarray(loss.seen) - more
        return Loss(seen=seen) if (seen >= 0).all() and (seen <= 1).all() else None
    if isinstance(loss, BurstyLoss):  # thinned in both states, so that the rate on average grows by `more`
        rate = float(loss.arrival_probabilities(1)[0])
        share = (rate - more) / rate if rate > 0 else -1.0
        if not 0 <= share <= 1:
            return None
        return BurstyLoss(loss.to_bad, loss.to_good, share * loss.seen_good, share * loss.seen_bad)
    return None


def _longer_blackouts(channel: Channel) -> Channel | None:
    if isinstance(channel, BurstyLoss) and channel.to_good > 0:
        return dataclasses.replace(channel, to_good=1.0 / (1.0 / channel.to_good + 1.0))
    if isinstance(channel, Lossy):
        loss = _longer_blackouts(channel.loss)
        return None if loss is None else Lossy(channel.delay, loss=loss)  # type: ignore[arg-type]
    return None


def _jittery(channel: Channel) -> Channel | None:
    delays, lost = None, 0.0
    if isinstance(channel, ConstantDelay):
        delays = np.eye(channel.d + 1)[channel.d]
    elif isinstance(channel, Lossy) and isinstance(channel.delay, ConstantDelay) and isinstance(channel.loss, Loss):
        if np.ndim(channel.loss.seen) == 0:
            delays, lost = np.eye(channel.delay.d + 1)[channel.delay.d], 1.0 - float(channel.loss.seen)  # type: ignore[arg-type]
    elif isinstance(channel, PacketChannel):
        delays, lost = channel.delays, channel.lost
    if delays is None or delays[0] > 0:
        return None
    return PacketChannel(np.convolve(delays, np.full(3, 1 / 3))[1:], lost=lost)


__all__ = ["Neighbour", "earlier", "later", "lossier", "neighbours"]
