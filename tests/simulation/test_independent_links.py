"""The loops for links that do not look at the process play what the general loop plays, number for number."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.kernels import independent_links, random_delays
from oldlight.planning.heuristics import full_information
from oldlight.random_streams import stream
from oldlight.simulation import spans
from oldlight.simulation.link_episodes import by_automaton
from oldlight.simulation.world import CHUNK, Room, World

EPISODES = 2 * 4_096 + 300  # whole chunks and a part of one, which ends within a tile
SPARSE = ol.instances.sensing_chain(0.8, n_states=4, horizon=6)  # two successors


def dense(successors: int = 4) -> ol.TabularMDP:
    rng = np.random.default_rng(3)
    laws = np.zeros((5, 4, 2, 4))
    laws[..., :successors] = rng.dirichlet(np.ones(successors), size=(5, 4, 2))
    return ol.TabularMDP(laws, rng.random((5, 4, 2)), horizon=5)


CASES: list[tuple[str, Any, dict[str, Any]]] = [
    ("play_late", "constant:2", {}),
    ("play_late", "constant:2", {"start": "warm"}),
    ("play_random", "bernoulli:0.4", {}),
    ("play_random", "geometric:0.5", {}),
    ("play_random", ol.StochasticDelay([0.2, 0.5, 0.3], first=[0.1, 0.3, 0.6]), {}),
    ("play_random", "bernoulli:0.4", {"actuation": 1}),
    ("play_blackouts", "loss:0.4", {}),
    ("play_blackouts", "constant:2+loss:0.4", {}),
    ("play_blackouts", "constant:1+loss:0.3", {"actuation": 1}),
]


@pytest.mark.crossed("mdp", "loop")
@pytest.mark.parametrize("mdp", [SPARSE, dense(), dense(1)], ids=["two successors", "four successors", "one successor"])
@pytest.mark.parametrize(("loop", "channel", "how"), CASES)
def test_the_same_episodes_as_by_the_general_loop(
    mdp: ol.TabularMDP, loop: str, channel: Any, how: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = ol.ImpairedMDP(mdp, channel, **how)
    policy = ol.solve(problem).policy
    if loop == "play_blackouts" and not isinstance(policy, ol.BlackoutPolicy):
        pytest.skip("planned by the nodes of its link")
    world = World(problem)
    assert world._loop_of(world.player(policy)) is getattr(
        random_delays if loop == "play_random" else independent_links, loop
    )
    fast = ol.simulate(problem, policy, EPISODES, seed=5, record=True)
    asked = ol.FunctionPolicy(policy.action, problem.n_actions)
    assert world._loop_of(world.player(asked)) is None
    slow = ol.simulate(problem, asked, EPISODES, seed=5, record=True)
    for name in ("returns", "mean_reward", "ages", "states", "actions", "arrivals"):
        assert np.array_equal(getattr(fast, name), getattr(slow, name)), name
    monkeypatch.setattr(spans, "FEW", 0)
    for threads in (1, 2):  # several chunks in one call, and shared
        kept = ol.simulate(problem, policy, EPISODES, seed=5, threads=threads)
        for name in ("returns", "mean_reward", "ages"):
            assert np.array_equal(getattr(kept, name), getattr(fast, name)), name


@pytest.mark.parametrize("channel", ["loss:0.9", ol.EmpiricalDelay({0: 0.3, 15: 0.7})], ids=["blackouts", "delays"])
def test_ages_beyond_those_that_are_counted_at_once(channel: Any) -> None:
    """In long episodes, beside the general loop."""
    mdp = ol.instances.sensing_chain(0.8, n_states=2, n_actions=2, horizon=18)
    problem = ol.ImpairedMDP(mdp, channel)
    if problem.loss is not None:
        policy: Any = ol.solve(problem).policy
    else:
        layout = ol.Layout.of(problem)
        policy = ol.TablePolicy(layout, np.random.default_rng(1).integers(2, size=layout.size).astype(np.uint8))
    fast, slow = (ol.simulate(problem, which, 1_500, seed=2) for which in (policy, ol.FunctionPolicy(policy.action, 2)))
    assert np.array_equal(fast.ages, slow.ages)
    assert (fast.ages[:, independent_links.YOUNG + 2 : -1] > 0).any()


@pytest.mark.parametrize(
    ("law", "few"),
    [
        (ol.EmpiricalDelay({0: 0.3, 1: 0.2, 2: 0.1, 4: 0.2, 6: 0.2}), {True}),
        (ol.StochasticDelay([1.0], first=[0.2, 0.3, 0, 0, 0, 0.1, 0, 0, 0.4]), {True}),
        (ol.StochasticDelay([1.0], first=[0.0, 0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0.5]), {True}),  # long without any, or soon
        (ol.GeometricDelay(0.5), {True, False}),
    ],
    ids=["few", "a first one that is late", "a first one that may not come", "many"],
)
def test_few_blocks_of_a_time_and_many(law: ol.DelayLaw, few: set[bool]) -> None:
    """A table whose times have few blocks, which are gone through for all episodes, and one with times that have more; beside the general loop."""
    mdp = ol.instances.sensing_chain(0.8, n_states=4, n_actions=2, horizon=9)
    problem = ol.ImpairedMDP(mdp, law)
    layout = ol.Layout.of(problem)
    blocks = [len(list(layout.blocks(h))) for h in range(9)]
    assert {n <= random_delays.BLOCKS for n in blocks} == few
    policy = ol.TablePolicy(layout, np.random.default_rng(1).integers(2, size=layout.size).astype(np.uint8))
    assert World(problem)._loop_of(World(problem).player(policy)) is random_delays.play_random
    asked = ol.FunctionPolicy(policy.action, 2)
    fast, slow = (ol.simulate(problem, which, EPISODES, seed=2, record=True) for which in (policy, asked))
    for name in ("returns", "ages", "states", "actions"):
        assert np.array_equal(getattr(fast, name), getattr(slow, name)), name


def late_rule(horizon: int) -> tuple[ol.ImpairedMDP, ol.TablePolicy]:
    """A process behind short random delays, and some policy."""
    mdp = ol.instances.sensing_chain(0.8, n_states=4, n_actions=2, horizon=horizon)
    problem = ol.ImpairedMDP(mdp, ol.EmpiricalDelay({0: 0.4, 1: 0.3, 3: 0.3}))
    layout = ol.Layout.of(problem)
    return problem, ol.TablePolicy(layout, np.random.default_rng(1).integers(2, size=layout.size).astype(np.uint8))


@pytest.mark.parametrize("horizon", [62, 63, 64, 65, 130])
def test_arrivals_of_episodes_longer_than_one_number_has_bits(horizon: int) -> None:
    problem, policy = late_rule(horizon)
    world = World(problem)
    assert world._loop_of(world.player(policy)) is random_delays.play_random
    fast, slow = (ol.simulate(problem, which, 1_100, seed=2) for which in (policy, ol.FunctionPolicy(policy.action, 2)))
    assert np.array_equal(fast.returns, slow.returns)
    assert np.array_equal(fast.ages, slow.ages)


def test_a_table_whose_codes_are_too_large_is_played_by_the_general_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, policy = late_rule(6)
    fast = ol.simulate(problem, policy, EPISODES, seed=2)
    monkeypatch.setattr(random_delays, "CODES", 2 * policy.layout.size)
    world = World(problem)
    assert world._loop_of(world.player(policy)) is None
    assert np.array_equal(ol.simulate(problem, policy, EPISODES, seed=2).returns, fast.returns)


CERTAIN_FROM = [
    ("bernoulli:0.5", 4),  # d_0 is certain, and numbers are drawn in order
    ("constant:2", 0),
    ("geometric:0.5", 6),
    (ol.StochasticDelay([1.0], first=[0.5, 0.5]), 1),
    (ol.StochasticDelay([0.0, 1.0]), 0),
]


@pytest.mark.parametrize(("channel", "steps"), CERTAIN_FROM)
def test_no_numbers_are_drawn_where_delays_are_certain(
    channel: Any, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = ol.ImpairedMDP(SPARSE, channel)
    assert problem.law.uncertain_steps == steps
    policy = ol.solve(problem).policy
    fewer = ol.simulate(problem, policy, EPISODES, seed=5, record=True)
    monkeypatch.setattr(type(problem.law), "uncertain_steps", problem.horizon)
    for name in ("returns", "ages", "states", "actions", "arrivals"):
        every = ol.simulate(problem, policy, EPISODES, seed=5, record=True)
        assert np.array_equal(getattr(fewer, name), getattr(every, name)), name


def test_a_law_that_looks_at_the_process_is_played_by_the_general_loop() -> None:
    law = np.random.default_rng(0).dirichlet(np.ones(2), size=(4, 2))
    problem = ol.ImpairedMDP(dense(), ol.StochasticDelay(law))
    world = World(problem)
    assert world._loop_of(world.player(ol.solve(problem).policy)) is None


class Twice(ol.Loss):
    """Losses with a draw of their own: what the first of two streams of numbers says."""

    def lost(self, rng: np.random.Generator, horizon: int, n: int) -> Any:
        return rng.random((2, horizon, n))[0] >= 0.5


@pytest.mark.parametrize("H", [1, 4])
@pytest.mark.parametrize(
    "channel",
    [
        ol.Loss(seen=0.5),
        ol.Loss(seen=[0.9, 0.1, 0.5, 1.0]),
        ol.BurstyLoss(0.2, 0.5),
        ol.Lossy(ol.BernoulliDelay(0.5, steps=2), seen=0.3),
        Twice(seen=0.5),
    ],
    ids=repr,
)
def test_losses_are_those_that_the_channel_draws(channel: Any, H: int) -> None:
    """Independent losses are drawn into memory that is there; the numbers, and what they mean, are the channel's own."""
    if H == 1 and isinstance(channel, ol.Loss) and np.ndim(channel.seen) > 0:
        channel = ol.Loss(seen=[0.9])
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8, n_states=4, horizon=H), channel)
    world = World(problem)
    drawn = world.draw(5, 2)
    rng = stream(5, 2, 1)
    if world.draws_link:
        np.testing.assert_array_equal(drawn.link, rng.random(drawn.link.shape))
    expected = channel.loss.lost(rng, H, CHUNK)
    np.testing.assert_array_equal(drawn.lost[:H], expected)
    assert expected.any()
    assert not expected.all()


def test_memory_that_one_simulation_leaves_changes_nothing_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same episodes in memory of their own, and in what another link, another number of threads or another process of the same size has left."""
    problems = [
        ol.ImpairedMDP(SPARSE, channel) for channel in ("bernoulli:0.4", "constant:2", "loss:0.4", "geometric:0.5")
    ]
    played = [(problem, ol.solve(problem).policy) for problem in problems]

    monkeypatch.setattr(spans, "FEW", 0)

    def alone(problem: ol.ImpairedMDP, policy: Any) -> ol.Simulation:
        Room._left.clear()
        return ol.simulate(problem, policy, 2 * CHUNK + 10, seed=3, threads=1)

    expected = [alone(*case) for case in played]
    for threads in (1, 2, 1):
        for case, first in zip(played, expected, strict=True):
            again = ol.simulate(*case, 2 * CHUNK + 10, seed=3, threads=threads)
            assert Room._left
            for name in ("returns", "mean_reward", "ages"):
                assert np.array_equal(getattr(again, name), getattr(first, name)), name


@pytest.mark.parametrize("kind", ["planned", "sees the current state", "randomises"])
@pytest.mark.parametrize("channel", ["constant:2", "bernoulli:0.4", "loss:0.4", "bursty:0.2,0.5"])
def test_chunks_in_one_call_are_those_that_are_drawn_and_played_one_by_one(channel: str, kind: str) -> None:
    problem = ol.ImpairedMDP(SPARSE, channel)
    policy = {"planned": ol.solve(problem).policy, "sees the current state": full_information(problem)}.get(kind)
    if policy is None and problem.loss is not None:
        pytest.skip("no table behind losses")
    if policy is None:
        layout = ol.Layout.of(problem)
        laws = np.random.default_rng(1).dirichlet(np.ones(problem.n_actions), size=layout.size)
        policy = ol.TablePolicy(layout, action_probabilities=laws)
    if by_automaton(problem, policy):
        pytest.skip("played by its nodes")
    together = ol.simulate(problem, policy, EPISODES, seed=7, threads=1)
    world = World(problem)
    player, returns, ages = world.player(policy), [], 0
    for chunk in range(3):
        played = world.play(player, world.draw(7, chunk, player), min(CHUNK, EPISODES - chunk * CHUNK))
        returns.append(played[0])
        ages = ages + played[2]
    np.testing.assert_array_equal(together.returns, np.concatenate(returns))
    np.testing.assert_array_equal(together.ages, ages)


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("number", [1, 2, 49, 300])
def test_every_chunk_is_in_one_span(number: int, workers: int) -> None:
    problem = ol.ImpairedMDP(SPARSE, "constant:2")
    found = spans.Spans(problem, ol.solve(problem).policy, 1, number * CHUNK, record=False).spans(workers)
    assert [c for first, end in found for c in range(first, end)] == list(range(number))
    assert max(end - first for first, end in found) <= max(1, -(-number // workers))


def test_what_goes_wrong_in_another_thread_is_raised_here(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, policy = late_rule(6)
    here, play = threading.get_ident(), spans.Spans._play

    def span(self: Any, which: Any, room: Any) -> Any:
        if threading.get_ident() != here:
            raise MemoryError("in the other thread")
        time.sleep(0.01)
        return play(self, which, room)

    monkeypatch.setattr(spans, "FEW", 0)
    monkeypatch.setattr(spans.Spans, "_play", span)
    with pytest.raises(MemoryError, match="in the other thread"):
        ol.simulate(problem, policy, 100 * CHUNK, seed=2, threads=2)
