"""One `Channel` with a delay part and a loss part; two channels with different control periods are not equal."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import numpy as np
import pytest

import oldlight as ol
from link_cases import CHANNELS, names
from oldlight.model.channels import Channel, LossChannel
from oldlight.model.channels.delay_law import DelayLaw
from oldlight.model.channels.text import channel_data, channel_of

DELAYS = (
    ol.ConstantDelay(2),
    ol.StochasticDelay([0.7, 0.3]),
    ol.GeometricDelay(0.3),
    ol.HeavyTailedDelay(1.5),
    ol.BernoulliDelay(0.7),
    ol.EmpiricalDelay([1, 2]),
    ol.GeometricDelay(0.3).capped(4),
)
LOSSES = (ol.Loss(rate=0.2), ol.BurstyLoss(0.1, 0.5))
BOTH = ol.Lossy(ol.GeometricDelay(0.3), rate=0.2)


@pytest.mark.parametrize("channel", DELAYS, ids=repr)
def test_a_delay_is_its_own_delay_part_and_loses_nothing(channel: ol.DelayChannel) -> None:
    assert isinstance(channel, Channel)
    assert channel.delay is channel
    assert channel.loss is None


@pytest.mark.parametrize("channel", LOSSES, ids=repr)
def test_a_loss_is_its_own_loss_part_and_nothing_is_late(channel: LossChannel) -> None:
    assert isinstance(channel, Channel)
    assert channel.delay == ol.ConstantDelay(0)
    assert channel.loss is channel


def test_lossy_has_both_parts() -> None:
    assert isinstance(BOTH, Channel)
    assert BOTH.delay == ol.GeometricDelay(0.3)
    assert BOTH.loss == ol.Loss(rate=0.2)


@pytest.mark.parametrize("channel", [*DELAYS, *LOSSES, BOTH], ids=repr)
def test_the_control_period_is_part_of_what_a_channel_is(channel: Channel) -> None:
    every_20, every_10 = channel.with_period(20), channel.with_period(10)
    assert every_20 == channel.with_period(20.0)
    assert hash(every_20) == hash(channel.with_period(20.0))
    assert len({channel, every_20, every_10, channel.with_period(20)}) == 3
    assert every_20 != every_10
    assert channel not in (every_20, every_10)
    assert every_20.with_period(None) == channel
    assert channel_of(channel_data(every_20)) == every_20
    assert pickle.loads(pickle.dumps(every_20)) == every_20
    assert repr(every_20) == f"{channel!r}.with_period(20)"


def test_the_control_period_of_a_whole_is_that_of_the_whole() -> None:
    timed = ol.Lossy(ol.GeometricDelay(0.3).with_period(20), rate=0.2).with_period(20)
    assert timed == BOTH.with_period(20) != BOTH
    assert hash(timed) == hash(BOTH.with_period(20))
    assert repr(timed) == "Lossy(delay=GeometricDelay(p=0.3, first=None), loss=Loss(seen=0.8)).with_period(20)"


@pytest.mark.parametrize("channel", CHANNELS, ids=names)
def test_links_without_a_delay_law_print_their_period(channel: Channel) -> None:
    assert repr(channel.with_period(2.5)) == f"{channel!r}.with_period(2.5)"


def test_channels_of_different_classes_are_not_equal() -> None:
    assert ol.StochasticDelay([1.0]) != ol.ConstantDelay(0)
    assert ol.StochasticDelay([0.7, 0.3]) != ol.StochasticDelay([[0.7, 0.3]])
    assert len({*DELAYS, *LOSSES, BOTH}) == len(DELAYS) + len(LOSSES) + 1


@dataclass(frozen=True, eq=False)
class Slow(ol.DelayChannel):
    d: int

    def law(self, horizon: int, n_states: int, n_actions: int) -> DelayLaw:
        return ol.ConstantDelay(self.d).law(horizon, n_states, n_actions)


class Plain(ol.DelayChannel):
    pass


def test_a_channel_of_ones_own_is_compared_in_the_same_way() -> None:
    assert Slow(2) == Slow(2)
    assert Slow(2) != Slow(3)
    assert Slow(2) != Slow(2).with_period(20)
    assert repr(Slow(2).with_period(20)) == "Slow(d=2).with_period(20)"
    plain = Plain()
    assert plain == plain
    assert plain != Plain()
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), Slow(2))
    assert problem.loss is None
    assert np.array_equal(problem.law.first, [0, 0, 1])
