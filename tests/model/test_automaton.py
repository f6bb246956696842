"""Automata of ages: what is refused, tails without residue, and the law of the messages that a channel really sends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oldlight as ol
from link_cases import CHANNELS, HORIZON, age_law, ages_of, assert_law
from oldlight.model import channels
from oldlight.model.channels.automaton import NOTHING_NEWER, ChannelAutomaton, hazards, tail
from oldlight.model.channels.fifo import FIFODelay
from oldlight.model.channels.hidden import HiddenLink
from oldlight.model.channels.messages import arrivals_of
from oldlight.model.channels.packets import PacketChannel
from oldlight.model.channels.periodic import Periodic
from oldlight.model.channels.renewal import RenewalLoss


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
def test_messages_and_automaton_have_one_law(channel: Any) -> None:
    automaton = channel.automaton(HORIZON)
    law = age_law(automaton)
    assert abs(sum(law.values()) - 1) < 1e-12
    assert_law(ages_of(arrivals_of(channel, np.random.default_rng(1), HORIZON, 40_000)), law)
    _, ages = automaton.sample(np.random.default_rng(2), 40_000)
    assert_law([tuple(column) for column in ages.T.tolist()], law)


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
def test_a_channel_is_equal_to_one_like_it_and_shows_itself(channel: Any) -> None:
    assert type(channel).__name__ in repr(channel)
    if not isinstance(channel, HiddenLink):
        assert eval(repr(channel), dict(vars(channels))) == channel


def test_tails_have_no_residue() -> None:
    tenth = np.full(10, 0.1)  # sums to 1 − 1.1e-16 from the left
    assert tail(tenth)[-1] == 0
    assert hazards(tenth)[-1] == 1
    for channel in (PacketChannel(tenth), FIFODelay(tenth), RenewalLoss(tenth)):
        automaton = channel.automaton(40)
        ages = {0}
        for n in range(len(automaton.nodes)):
            ages |= {age for _, _, age in automaton.row(n)}
        oldest = max(max(path) for path in [*automaton.sample(np.random.default_rng(0), 1000)[1].tolist()])
        assert oldest <= 9
        assert len(automaton.nodes) == 10


def test_memoryless_links_are_few_nodes() -> None:
    assert len(ol.Loss(seen=0.8).automaton(50).nodes) == 1
    assert (
        len(ol.Lossy(ol.ConstantDelay(3), rate=0.2).automaton(50).nodes) == 4
    )  # three times before the first can be seen
    assert len(PacketChannel([0.5, 0.5], lost=0.1).automaton(50).nodes) == 2
    assert len(ol.BurstyLoss(0.1, 0.3).automaton(50).nodes) == 2  # what is seen or lost reveals the mode


def test_one_delay_is_late_and_lossy_and_no_delay_is_loss() -> None:
    for d in range(4):
        one = age_law(PacketChannel({d: 1.0}, lost=0.25).automaton(6))
        other = age_law(ol.Lossy(ol.ConstantDelay(d), rate=0.25).automaton(6))
        assert one.keys() == other.keys()
        assert all(abs(one[k] - other[k]) < 1e-15 for k in one)
    geometric = RenewalLoss([0.75 * 0.25**k for k in range(30)] + [0.25**30])
    one, other = age_law(geometric.automaton(6)), age_law(ol.Loss(seen=0.75).automaton(6))
    assert all(abs(one[k] - other[k]) < 1e-12 for k in other)


def test_late_actions_shift_every_age() -> None:
    channel = PacketChannel([0.5, 0.5], lost=0.2)
    moved, law = age_law(channel.automaton(6).shifted(2)), age_law(channel.automaton(4))
    assert moved == {(-1, -1, *(a + 2 if a >= 0 else -1 for a in ages)): p for ages, p in law.items()}


@pytest.mark.parametrize(
    ("start", "ticks", "words"),
    [
        ([(0.5, "a", 0)], {"a": [(1.0, "a", 0)]}, "start sum to 0.5"),
        ([(1.0, "a", 0)], {"a": [(1.0, "b", 0)]}, "tick to 'b', which is not a node"),
        ([(1.0, "a", 0)], {"a": [(1.5, "a", 0)]}, "is 1.5, expected a number in"),
        ([(1.0, "a", 0)], {"a": [(1.0, "a", -2)]}, "the age of a tick is -2"),
        ([(1.0, "a", 0)], {"a": [(0.5, "a", 1), (0.5, "a", 0)]}, "older observation the newest"),
    ],
)
def test_refusals(start: Any, ticks: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ChannelAutomaton(ticks, start, ticks.values(), horizon=4)


def test_a_law_of_the_state_is_not_an_automaton() -> None:
    law = np.zeros((1, 2, 1, 2))
    law[0, 0, 0], law[0, 1, 0] = (1, 0), (0, 1)
    with pytest.raises(ValueError, match="waiting itself tells of the hidden state"):
        ol.StochasticDelay(law).automaton(5)
    with pytest.raises(ValueError, match="waiting itself tells of the hidden state"):
        ol.Lossy(ol.StochasticDelay(law), rate=0.1).automaton(5)


def test_one_s_own_link() -> None:
    """Every second observation is missing: two nodes."""
    ticks = {"now": [(1.0, "later", NOTHING_NEWER)], "later": [(1.0, "now", 0)]}
    own = ChannelAutomaton.explore([(1.0, "now", 0)], ticks.__getitem__, 6)
    assert age_law(own) == age_law(Periodic(2).automaton(6)) == {(0, 1, 0, 1, 0, 1): 1.0}
