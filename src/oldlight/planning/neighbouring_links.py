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
from functools import singledispatch
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


@singledispatch
def later(channel: Channel) -> Channel:
    """Every observation one step later."""
    return LaterLink(channel, 1)


@later.register
def _(channel: ConstantDelay) -> Channel:
    return ConstantDelay(channel.d + 1)


@later.register
def _(channel: LossChannel) -> Channel:
    return Lossy(ConstantDelay(1), loss=channel)


@later.register
def _(channel: Lossy) -> Channel:
    d = channel.delay.constant
    return LaterLink(channel, 1) if d is None else Lossy(ConstantDelay(d + 1), loss=channel.loss)


@later.register
def _(channel: PacketChannel) -> Channel:
    return PacketChannel(np.append(0.0, channel.delays), lost=channel.lost)


@later.register
def _(channel: Periodic) -> Channel:
    return Periodic(channel.every, channel.delay + 1, channel.offset)


@singledispatch
def earlier(channel: Channel) -> Channel | None:
    """Every observation one step earlier; None where that cannot be, or is not known."""
    return None


@earlier.register
def _(channel: ConstantDelay) -> Channel | None:
    return ConstantDelay(channel.d - 1) if channel.d else None


@earlier.register
def _(channel: Lossy) -> Channel | None:
    d = channel.delay.constant
    if d is None or d <= 1:
        return channel.loss if d else None
    return Lossy(ConstantDelay(d - 1), loss=channel.loss)


@earlier.register
def _(channel: PacketChannel) -> Channel | None:
    return PacketChannel(channel.delays[1:], lost=channel.lost) if channel.delays[0] == 0 else None


@earlier.register
def _(channel: Periodic) -> Channel | None:
    return Periodic(channel.every, channel.delay - 1, channel.offset) if channel.delay else None


@singledispatch
def lossier(channel: Channel, more: float) -> Channel | None:
    """The loss rate of each observation larger by `more`; None where that is not defined, or would leave [0, 1]."""
    return None


@lossier.register
def _(channel: Loss, more: float) -> LossChannel | None:
    seen = np.asarray(channel.seen) - more
    return Loss(seen=seen) if (seen >= 0).all() and (seen <= 1).all() else None


@lossier.register
def _(channel: BurstyLoss, more: float) -> LossChannel | None:
    """Thinned in both states, so that the rate on average grows by `more`."""
    rate = float(channel.arrival_probabilities(1)[0])
    share = (rate - more) / rate if rate > 0 else -1.0
    if not 0 <= share <= 1:
        return None
    return dataclasses.replace(channel, seen_good=share * channel.seen_good, seen_bad=share * channel.seen_bad)


@lossier.register
def _(channel: Lossy, more: float) -> Channel | None:
    loss = lossier(channel.loss, more)
    return None if loss is None else Lossy(channel.delay, loss=loss)  # type: ignore[arg-type]


@lossier.register
def _(channel: DelayChannel, more: float) -> Channel | None:
    if more < 0:
        return None
    return Loss(rate=more) if channel.constant == 0 else Lossy(channel, rate=more)


@lossier.register
def _(channel: PacketChannel, more: float) -> Channel | None:
    lost = channel.lost + more
    return PacketChannel(channel.delays, lost=lost) if 0 <= lost <= 1 else None


@lossier.register
def _(channel: HiddenLink, more: float) -> Channel | None:
    rates = channel.delays.sum(axis=1)
    kept = rates - more * (rates > 0)
    if (kept < 0).any() or (kept > 1).any():
        return None
    share = np.divide(kept, rates, out=np.zeros_like(rates), where=rates > 0)
    return HiddenLink(channel.switch, channel.delays * share[:, None], first=channel.first)


@lossier.register
def _(channel: Periodic, more: float) -> Channel | None:
    if more < 0 or channel.offset:
        return None
    return link_of({"sensor_period": channel.every, "delay": channel.delay, "loss": more})


@singledispatch
def slower(channel: Channel) -> Channel | None:
    """One more step between two readings of a sensor."""
    return None


@slower.register
def _(channel: Periodic) -> Channel:
    return Periodic(channel.every + 1, channel.delay, channel.offset)


@singledispatch
def longer_blackouts(channel: Channel) -> Channel | None:
    """Losses in bursts that are one step longer on average."""
    return None


@longer_blackouts.register
def _(channel: BurstyLoss) -> LossChannel | None:
    good = channel.to_good
    return dataclasses.replace(channel, to_good=1.0 / (1.0 / good + 1.0)) if good > 0 else None


@longer_blackouts.register
def _(channel: Lossy) -> Channel | None:
    loss = longer_blackouts(channel.loss)
    return None if loss is None else Lossy(channel.delay, loss=loss)  # type: ignore[arg-type]


@singledispatch
def jittery(channel: Channel) -> Channel | None:
    """Each delay one step shorter, the same, or one longer."""
    return None


@jittery.register
def _(channel: ConstantDelay) -> Channel | None:
    return jittery(PacketChannel({channel.d: 1.0}))


@jittery.register
def _(channel: Lossy) -> Channel | None:
    d, modes = channel.delay.constant, channel.loss.modes()
    if d is None or modes is None or modes.seen.shape != (1, 1):
        return None
    return jittery(PacketChannel({d: 1.0}, lost=1.0 - float(modes.seen[0, 0])))


@jittery.register
def _(channel: PacketChannel) -> Channel | None:
    if channel.delays[0] > 0:
        return None
    return PacketChannel(np.convolve(channel.delays, np.full(3, 1 / 3))[1:], lost=channel.lost)


__all__ = ["Neighbour", "earlier", "later", "lossier", "neighbours"]
