"""One sampler for all links: messages, what is delivered when, hindsight; and simulate draws the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oldlight as ol
from link_cases import BY_NODES, CHANNELS, HORIZON, age_law, ages_of, assert_law, guessing, names
from oldlight.model.channels import Channel, ChannelAutomaton, FIFODelay, HeldLag, PacketChannel, Periodic
from oldlight.model.channels.automaton import NOTHING_NEWER
from oldlight.model.channels.messages import arrivals_of
from oldlight.model.link_information import NodeFollower
from oldlight.simulation.link_sampler import ByAutomaton, LinkSampler, ManyLinks
from repeats import repeats


class EverySecond(Channel):
    """A link of one's own that has nothing but an automaton."""

    def automaton(self, horizon: int) -> ChannelAutomaton:
        ticks = {"now": [(0.5, "now", 0), (0.5, "later", NOTHING_NEWER)], "later": [(1.0, "now", 0)]}
        return ChannelAutomaton.explore([(1.0, "now", 0)], ticks.__getitem__, horizon)  # type: ignore[arg-type]


def arrivals_by_step(channel: Any, runs: int, seed: int) -> Any:
    """Arrival times [step, run], from the sampler that plays one run at a time."""
    sampler, rng = LinkSampler(channel, horizon=HORIZON), np.random.default_rng(seed)
    out = np.full((HORIZON, runs), -1)
    for e in range(runs):
        for h in range(HORIZON):
            told = sampler.send() if h else sampler.begin(rng)
            for i in told.arrived:
                if i >= 0 and out[i, e] < 0:
                    out[i, e] = h
    return out


@pytest.mark.parametrize("channel", [*BY_NODES, EverySecond()], ids=names)
def test_the_ages_of_single_runs_have_the_exact_law(channel: Any) -> None:
    assert_law(ages_of(arrivals_by_step(channel, 600, 3)), age_law(channel.automaton(HORIZON)))


@pytest.mark.parametrize("channel", [*CHANNELS, EverySecond()], ids=names)
def test_many_runs_at_once_are_single_runs(channel: Any) -> None:
    """Each run has a random stream of its own, wherever it stands among the others, and its own clock."""
    streams = np.arange(100, 108, dtype=np.uint64)

    def played(order: list[int], late: int) -> dict[int, list[tuple[int, ...]]]:
        own = streams[order].copy()
        links = ManyLinks(channel, HORIZON, len(order))
        everyone, one = np.ones(len(order), dtype=bool), np.arange(len(order)) == late
        links.begin(everyone, own)
        told = {k: [tuple(links.told[:, j])] for j, k in enumerate(order)}
        for _ in range(HORIZON):
            links.step(one, own)
            for j, k in enumerate(order):
                if not one[j]:
                    told[k].append(tuple(links.told[:, j]))
            one[:] = False  # the late one waits once
        return told

    alone = [played([k], -1)[k] for k in range(8)]
    among = played([5, 1, 7, 0, 2, 3, 6, 4], 2)
    for k in range(8):
        assert alone[k][: len(among[k])] == among[k]
        assert len(among[k]) == HORIZON + (k != 7)


def test_deliveries_of_a_few_links() -> None:
    def told(channel: Any, times: int) -> list[tuple[list[int], list[int]]]:
        sampler = LinkSampler(channel)
        first = sampler.begin(np.random.default_rng(0))
        return [tuple(first), *(tuple(sampler.send()) for _ in range(times - 1))]  # type: ignore[misc]

    assert told(PacketChannel({1: 1.0}), 4) == [([], []), ([0], []), ([1], []), ([2], [])]
    assert told(PacketChannel({0: 1.0}, lost=1.0), 3) == [([], [])] * 3, "nobody announces it"
    assert told(ol.Loss(seen=0.0), 3) == [([], [0]), ([], [1]), ([], [2])], "announced"
    assert told(Periodic(3, delay=1), 5) == [([], []), ([0], []), ([], []), ([], []), ([3], [])]
    assert told(HeldLag({2: 1.0}), 4) == [([0], []), ([0], []), ([0], []), ([1], [])], (
        "the oldest entry of the buffer, again"
    )


def test_what_is_under_way_at_the_end_is_known() -> None:
    sampler = LinkSampler(FIFODelay({0: 0.5, 3: 0.5}))
    rng = np.random.default_rng(0)
    for _ in range(50):
        found: dict[int, int] = {}
        for h in range(6):
            told = sampler.send() if h else sampler.begin(rng)
            found |= dict.fromkeys(told.arrived, h)
        found |= {i: when for i, when, lost in sampler.under_way() if not lost}
        assert sorted(found) == list(range(6)), "nothing is lost"
        assert all(0 <= when - i <= 3 for i, when in found.items())
        assert [found[i] for i in range(6)] == sorted(found.values()), "in order"


def test_a_link_of_one_s_own_has_no_end() -> None:
    link, i, state = ByAutomaton(EverySecond(), None), np.zeros(1, np.int64), np.zeros(1, np.int64)
    rng, missing = np.random.default_rng(0), 0
    for h in range(200):
        _, when, state = link.tell(i + h, state, rng.random((1, 1)))
        assert when[0] in (-1, h)
        missing = missing + 1 if when[0] < 0 else 0
        assert missing <= 1


@pytest.mark.crossed("channel", "actuation")
@pytest.mark.parametrize("actuation", [0, 2])
@pytest.mark.parametrize("channel", BY_NODES, ids=names)
def test_a_simulated_plan_earns_its_value(channel: Any, actuation: int) -> None:
    problem = ol.ImpairedMDP(guessing(), channel, actuation=actuation, pending=[1] * actuation)
    solution = ol.solve(problem)
    played = ol.simulate(problem, solution.policy, repeats(6_000, 20_000), seed=len(repr(channel)) + actuation)
    assert abs(played.mean - solution.value) < 4.2 * played.half_width / 1.96


@pytest.mark.parametrize("channel", CHANNELS, ids=names)
def test_simulate_records_every_message(channel: Any) -> None:
    problem = ol.ImpairedMDP(guessing(), channel)
    played = ol.simulate(problem, ol.FunctionPolicy(lambda info: 0, 3), 4096, seed=5, record=True)
    assert played.arrivals is not None
    assert_law(ages_of(played.arrivals.T), age_law(channel.automaton(HORIZON)))
    drawn = arrivals_of(channel, np.random.default_rng(9), HORIZON, 4096)
    for i in range(HORIZON):  # the same share is lost, the same share arrives after the end
        for one, other in (
            ((played.arrivals[:, i] < 0), drawn[i] < 0),
            (played.arrivals[:, i] >= HORIZON, drawn[i] >= HORIZON),
        ):
            assert abs(one.mean() - other.mean()) < 5 * np.sqrt(0.5 / 4096)


def test_nodes_that_are_followed() -> None:
    """The node decides what follows: along sampled runs each tick has the probability of the automaton's row."""
    link = BY_NODES[8]  # hidden modes: several nodes share an age
    automaton = link.automaton(HORIZON)
    assert not automaton.tells_by_age
    sampler, follower, rng = LinkSampler(link), NodeFollower(automaton), np.random.default_rng(1)
    counts: dict[int, dict[int, int]] = {}
    for _ in range(600):
        follower.begin()
        for h in range(HORIZON):
            before, told = follower.node, sampler.send() if h else sampler.begin(rng)
            after = follower.hear(told.arrived, told.lost)
            row = counts.setdefault(before, {})
            row[after] = row.get(after, 0) + 1
    for n, row in counts.items():
        law: dict[int, float] = {}
        for p, target, _ in automaton.row(n):
            law[target] = law.get(target, 0.0) + p
        assert_law([k for k, count in row.items() for _ in range(count)], law)  # type: ignore[arg-type, misc]
    late = NodeFollower(FIFODelay([0.5, 0.5]).automaton(4))
    late.hear([])
    with pytest.raises(ValueError, match="is this the link that was planned for"):
        late.hear([])  # nothing is under way for two steps
