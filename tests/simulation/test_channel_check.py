"""check_channel: all links of the package pass, one of one's own too, and a broken one is told what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oldlight as ol
from link_cases import BY_NODES, names
from oldlight.model.channels import NOTHING_NEWER, Channel, ChannelAutomaton
from oldlight.model.channels.messages import MessageLink
from oldlight.testing import check_channel

DELAYS = ["none", "constant:2", "geometric:.5", "heavy:1.5,2", "loss:.2", "constant:1+loss:.3", "delays:1=.3,2=.7", "interarrival:0=.9,3=.1"]  # fmt: skip


class Own(Channel):
    """A link of two nodes, as the tests want them."""

    def __init__(self, ticks: Any, start: Any = ((1.0, "a", 0),)) -> None:
        self.ticks, self.start = ticks, start

    def automaton(self, horizon: int) -> ChannelAutomaton:
        return ChannelAutomaton.explore(self.start, self.ticks.__getitem__, horizon)

    def __repr__(self) -> str:
        return "Own()"


GOOD = {"a": [(0.5, "a", 0), (0.5, "b", NOTHING_NEWER)], "b": [(1.0, "a", 0)]}


@pytest.mark.parametrize(
    "channel", [*BY_NODES, *DELAYS, Own(GOOD)], ids=lambda x: x if isinstance(x, str) else names(x)
)
def test_links_that_pass(channel: Any) -> None:
    check_channel(channel, horizon=4)


def test_a_row_that_does_not_sum_to_one_is_named() -> None:
    with pytest.raises(
        AssertionError, match=r"Own: automaton\(8\) is refused: .*the ticks of node 'b' sum to 0.9, expected 1"
    ):
        check_channel(Own(GOOD | {"b": [(0.9, "a", 0)]}))


def test_a_row_that_is_missing_is_named() -> None:
    class Short(Own):
        def automaton(self, horizon: int) -> ChannelAutomaton:
            return ChannelAutomaton(["a", "b"], [(1.0, "a", 0)], [GOOD["a"], []], horizon=horizon)

    with pytest.raises(AssertionError, match="the ticks of node 'b', which is met at time 1, sum to 0, expected 1"):
        check_channel(Short(GOOD))


def test_ages_that_cannot_be_are_named() -> None:
    old = {"a": [(1.0, "b", NOTHING_NEWER)], "b": [(0.5, "a", 1), (0.5, "a", 0)]}
    check_channel(Own(old))  # the observation that came after the one of node a
    with pytest.raises(AssertionError, match="older observation the newest"):
        check_channel(Own(old | {"b": [(0.5, "b", 2), (0.5, "a", 0)]}))
    with pytest.raises(
        AssertionError, match=r"at time 0 the start makes an observation of age 2 visible, expected one in 0\.\.0"
    ):
        check_channel(Own({"a": [(1.0, "a", 0)]}, [(1.0, "a", 2)]))


def test_what_is_heard_must_tell_the_next_node() -> None:
    silent = {"a": [(0.5, "b", NOTHING_NEWER), (0.5, "a", NOTHING_NEWER)], "b": [(1.0, "a", 0)]}
    with pytest.raises(
        AssertionError, match=r"node 'a' has ticks with nothing newer to the 2 nodes .*give each tick its News"
    ):
        check_channel(Own(silent))


def test_a_horizon_must_not_be_known_before() -> None:
    class Foresees(Own):
        def automaton(self, horizon: int) -> ChannelAutomaton:
            p = 1.0 / horizon
            ticks = {"a": [(p, "a", 0), (1 - p, "a", NOTHING_NEWER)]}
            return ChannelAutomaton.explore([(1.0, "a", 0)], ticks.__getitem__, horizon)  # type: ignore[arg-type]

    with pytest.raises(
        AssertionError, match=r"age .* at time 1 in automaton\(8\).*a longer horizon must change nothing"
    ):
        check_channel(Foresees(GOOD))
    with pytest.raises(AssertionError, match="expected a ChannelAutomaton of horizon 8"):
        check_channel(type("Wrong", (Own,), {"automaton": lambda self, horizon: Own.automaton(self, 3)})(GOOD))


def test_a_sampler_that_draws_another_law_is_found() -> None:
    class Liar(MessageLink):
        longest = 1  # type: ignore[assignment]

        def __init__(self, late: float) -> None:
            self.late = late

        def automaton(self, horizon: int) -> ChannelAutomaton:
            return ol.PacketChannel([0.8, 0.2]).automaton(horizon)

        def fate(self, i: Any, link: Any, u: Any) -> Any:
            return np.where(u[0] < self.late, 1, 0), link

    check_channel(Liar(0.2))
    with pytest.raises(AssertionError, match=r"do not have the automaton's law"):
        check_channel(Liar(0.27))
    with pytest.raises(
        AssertionError, match=r"the sampler draws the ages \(-1,.*, which the automaton says cannot be|do not have"
    ):
        check_channel(Liar(1.0))


def test_a_channel_shows_its_name_and_comes_back_from_its_data() -> None:
    with pytest.raises(AssertionError, match="repr is x, expected one that has the name of the class"):
        check_channel(type("Named", (Own,), {"__repr__": lambda self: "x"})(GOOD))
    with pytest.raises(AssertionError, match="must equal itself"):
        check_channel(
            type(
                "Odd",
                (Own,),
                {"__eq__": lambda self, other: False, "__hash__": lambda self: 0, "__repr__": lambda self: "Odd"},
            )(GOOD)
        )
