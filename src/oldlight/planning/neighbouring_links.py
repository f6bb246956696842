"""The links next to a link: one step later or earlier, one percentage point lossier or better, a slower sensor, longer blackouts, more jitter.

`neighbours(channel)` lists those that are defined for its kind; each change is one function, with a rule per class of channels:

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
    for change, unit, amount, found in (
        ("one more step of delay", "step", 1, later(channel)),
        ("one step of delay less", "step", -1, earlier(channel)),
        ("one percent more lost", "percent", 1, lossier(channel, POINT)),
        ("one percent less lost", "percent", -1, lossier(channel, -POINT)),
        ("one more step between two readings", "step", 1, slower(channel)),
        ("blackouts one step longer on average", "step", 1, longer_blackouts(channel)),
        ("one step of jitter", "step", 1, jittery(channel)),
    ):
        if found is not None:
            yield Neighbour(change, unit, amount, found)


def later(channel: Channel) -> Channel:
    """Every observation one step later."""
    match channel:
        case ConstantDelay():
            return ConstantDelay(channel.d + 1)
        case LossChannel():
            return Lossy(ConstantDelay(1), loss=channel)
        case Lossy() if channel.delay.constant is not None:
            return Lossy(ConstantDelay(channel.delay.constant + 1), loss=channel.loss)
        case PacketChannel():
            return PacketChannel(np.append(0.0, channel.delays), lost=channel.lost)
        case Periodic():
            return Periodic(channel.every, channel.delay + 1, channel.offset)
    return LaterLink(channel, 1)


def earlier(channel: Channel) -> Channel | None:
    """Every observation one step earlier; None where that cannot be, or is not known."""
    match channel:
        case ConstantDelay() if channel.d:
            return ConstantDelay(channel.d - 1)
        case Lossy() if channel.delay.constant == 1:
            return channel.loss
        case Lossy() if channel.delay.constant:
            return Lossy(ConstantDelay(channel.delay.constant - 1), loss=channel.loss)
        case PacketChannel() if channel.delays[0] == 0:
            return PacketChannel(channel.delays[1:], lost=channel.lost)
        case Periodic() if channel.delay:
            return Periodic(channel.every, channel.delay - 1, channel.offset)
    return None


def lossier(channel: Channel, more: float) -> Channel | None:
    """The loss rate of each observation larger by `more`; None where that is not defined, or would leave [0, 1]."""
    match channel:
        case Loss():
            seen = np.asarray(channel.seen) - more
            return Loss(seen=seen) if (seen >= 0).all() and (seen <= 1).all() else None
        case BurstyLoss():  # thinned in both states, so that the rate on average grows by `more`
            rate = float(channel.arrival_probabilities(1)[0])
            share = (rate - more) / rate if rate > 0 else -1.0
            if not 0 <= share <= 1:
                return None
            return dataclasses.replace(channel, seen_good=share * channel.seen_good, seen_bad=share * channel.seen_bad)
        case Lossy():
            return _with_loss(channel, lossier(channel.loss, more))
        case DelayChannel() if more >= 0:
            return Loss(rate=more) if channel.constant == 0 else Lossy(channel, rate=more)
        case PacketChannel():
            lost = channel.lost + more
            return PacketChannel(channel.delays, lost=lost) if 0 <= lost <= 1 else None
        case HiddenLink():
            rates = channel.delays.sum(axis=1)
            kept = rates - more * (rates > 0)
            if (kept < 0).any() or (kept > 1).any():
                return None
            share_kept = np.divide(kept, rates, out=np.zeros_like(rates), where=rates > 0)
            return HiddenLink(channel.switch, channel.delays * share_kept[:, None], first=channel.first)
        case Periodic() if more >= 0 and not channel.offset:
            return link_of({"sensor_period": channel.every, "delay": channel.delay, "loss": more})
    return None


def _with_loss(channel: Lossy, loss: Channel | None) -> Channel | None:
    return Lossy(channel.delay, loss=loss) if isinstance(loss, LossChannel) else None


def slower(channel: Channel) -> Channel | None:
    """One more step between two readings of a sensor."""
    return Periodic(channel.every + 1, channel.delay, channel.offset) if isinstance(channel, Periodic) else None


def longer_blackouts(channel: Channel) -> Channel | None:
    """Losses in bursts that are one step longer on average."""
    if isinstance(channel, Lossy):
        return _with_loss(channel, longer_blackouts(channel.loss))
    if isinstance(channel, BurstyLoss) and channel.to_good > 0:
        return dataclasses.replace(channel, to_good=1.0 / (1.0 / channel.to_good + 1.0))
    return None


def jittery(channel: Channel) -> Channel | None:
    """Each delay one step shorter, the same, or one longer."""
    match channel:
        case ConstantDelay():
            return jittery(PacketChannel({channel.d: 1.0}))
        case Lossy():
            d, modes = channel.delay.constant, channel.loss.modes()
            if d is None or modes is None or modes.seen.shape != (1, 1):
                return None
            return jittery(PacketChannel({d: 1.0}, lost=1.0 - float(modes.seen[0, 0])))
        case PacketChannel() if channel.delays[0] == 0:
            return PacketChannel(np.convolve(channel.delays, np.full(3, 1 / 3))[1:], lost=channel.lost)
    return None
