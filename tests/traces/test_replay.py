"""Policies on the recording itself: against exact values where the recording is regular, against brute force, and the interval."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student

import oldlight as ol
from oldlight.model.information import Layout
from oldlight.traces import Trace, replay
from oldlight.traces.following import NOTHING, follow_automaton, follow_deadline, follow_table
from oldlight.traces.replay import interval, starting_points
from oldlight.traces.ticks import NEVER, Run, ages_of, runs_of
from trace_cases import NAN

MDP = ol.instances.sensing_chain(0.8, n_states=6)
H = MDP.horizon


def regular(late: int, n: int = 300) -> Trace:
    return Trace(np.full(n, 20.0 * late), sent_ms=20.0 * np.arange(n))


@pytest.mark.parametrize("late", [0, 1, 2])
def test_a_constant_delay_is_worth_its_exact_value(late: int) -> None:
    """A table, the same delay as packets and as an age chain: on a recording of that delay each earns its exact value."""
    rows = [np.eye(m + 2)[min(m + 1, late) if m >= late else m + 1] for m in range(late + 1)]
    chain = ol.AgeChain(rows, first={late: 1.0})
    for channel in (ol.ConstantDelay(late), ol.PacketChannel({late: 1.0}), chain):
        problem = ol.ImpairedMDP(MDP, channel)
        best = ol.solve(problem)
        found = replay(problem, best.policy, regular(late), period_ms=20, episodes=8_000, per_tick=True)
        error = 4 * found.returns.std() / np.sqrt(len(found.returns))
        assert found.value == pytest.approx(best.value, abs=error)
        assert found.guessed == 0


def test_packets_of_known_law() -> None:
    """A recording of independent packets is worth what the exact walk says, and the interval covers it."""
    rng, n = np.random.default_rng(0), 20_000
    late = rng.choice(4, p=[0.2, 0.5, 0.2, 0.1], size=n)
    trace = Trace(np.where(late == 3, NAN, 20.0 * late), sent_ms=20.0 * np.arange(n))
    problem = ol.ImpairedMDP(MDP, ol.PacketChannel({0: 2 / 9, 1: 5 / 9, 2: 2 / 9}, lost=0.1))
    policy = ol.solve(problem, tolerance=0.02).policy
    found = replay(problem, policy, trace, period_ms=20, episodes=10_000, per_tick=True)
    exact = ol.evaluate(problem, policy).value
    assert abs(found.value - exact) < found.half_width < 0.1
    deadline = ol.ImpairedMDP(MDP, ol.Lossy(ol.ConstantDelay(1), rate=0.3))
    plan = ol.solve(deadline)
    found = replay(deadline, plan.policy, trace, period_ms=20, episodes=10_000, per_tick=True)
    assert abs(found.value - plan.value) < found.half_width


def by_hand(late: Any, h: int) -> int:
    return max((i for i in range(h + 1) if i + late[i] <= h), default=NOTHING)


def test_what_an_agent_knows_against_the_definition() -> None:
    rng = np.random.default_rng(1)
    late = np.where(rng.random(80) < 0.2, NEVER, rng.integers(0, 5, 80))
    begins = np.arange(70)
    chain = (
        Trace(np.where(late == NEVER, NAN, 20.0 * late), sent_ms=20.0 * np.arange(80))
        .fit(20, per_tick=True)
        .age_chain(horizon=10)
    )
    link = ol.ImpairedMDP(MDP, chain).automaton
    ages = ages_of(late)
    view = follow_automaton(link, late, ages, begins)
    kernel = len(chain.kernel) - 1
    for e in begins.tolist():
        for h in range(10):
            t = by_hand(late[e:], h)
            assert view.step[h, e] == t
            node = link.nodes[view.tag[h, e]]
            if t >= 0:
                assert node == min(h - t, kernel)
            else:
                assert node == kernel if h >= kernel else node[0] == h  # type: ignore[index]
    assert not view.guessed.any()
    d = 2
    view = follow_deadline(d, 10, late, begins)
    for e in begins.tolist():
        for h in range(10):
            wanted = max((i for i in range(h - d + 1) if late[e + i] <= d), default=NOTHING)
            assert view.step[h, e] == wanted


def test_a_plan_without_a_place_counts_along() -> None:
    """A plan for a constant delay of 1 while messages are lost: the state of the step before is counted along."""
    layout = Layout.of(ol.ImpairedMDP(MDP, ol.ConstantDelay(1)))
    late = np.array([1, NEVER, NEVER, 1, 0, 1, 1, 1, 1, 1, 1, 1])
    view = follow_table(layout, H, late, np.array([0]))
    assert view.step[:6, 0].tolist() == [NOTHING, 0, 1, 2, 3, 4]  # never older than the table has, never younger
    assert view.guessed[:6, 0].tolist() == [False, False, True, True, False, False]
    fifo = ol.ImpairedMDP(MDP, ol.FIFODelay({1: 1.0})).automaton
    view = follow_automaton(fifo, late, None, np.array([0]))
    assert view.guessed[:5, 0].tolist() == [False, False, True, True, False]
    sure = ol.TabularMDP(
        [[[0, 1], [1, 0]], [[1, 0], [0, 1]]], np.array([[0.0, 0.0], [1.0, 1.0]]), horizon=8, initial=[1.0, 0.0]
    )
    problem = ol.ImpairedMDP(sure, ol.ConstantDelay(1))
    trace = Trace([20.0, NAN] * 40, sent_ms=20.0 * np.arange(80))
    found = replay(problem, ol.solve(problem).policy, trace, period_ms=20, episodes=60, per_tick=True)
    assert found.value == ol.solve(problem).value == 7.0  # transitions are certain, so counting along is seeing
    assert 0.3 < found.guessed < 0.6


def test_starting_points() -> None:
    runs = [Run(np.full(12, 2), 0.25, 0.25), Run(np.full(5, 2), 12.25, 0.25), Run(np.full(11, 2), 0.75, 0.75)]
    begins, at = starting_points(runs, 10, "link", 20.0)
    assert at.tolist() == [2.25]  # two ticks are skipped at the beginning of each: nothing can have arrived
    assert begins.tolist() == [2]
    begins, at = starting_points(runs, 8, "link", 20.0)
    assert at.tolist() == [2.25, 2.75, 3.25, 3.75, 4.25]
    assert begins.tolist() == [2, 19, 3, 20, 4]
    with pytest.raises(
        ValueError, match="link has at most 12 ticks of 20 ms in a session, fewer than an episode of 20"
    ):
        starting_points(runs, 20, "link", 20.0)


def test_the_interval_respects_that_windows_overlap() -> None:
    """Means of windows of 20 ticks of an independent series: the interval covers the mean about as often as it says, which one
    that takes the windows for independent does not."""
    rng, n, length = np.random.default_rng(2), 2000, 20
    inside, naive = [], []
    for _ in range(200):
        series = rng.normal(size=n)
        returns = np.convolve(series, np.ones(length), "valid")
        half_width, block = interval(returns, np.arange(len(returns), dtype=float), length)
        assert block % length == 0
        inside.append(abs(returns.mean()) <= half_width)
        naive.append(abs(returns.mean()) <= 1.96 * returns.std() / np.sqrt(len(returns)))
    assert np.mean(inside) > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 200)
    assert np.mean(naive) < 0.5
    assert interval(np.ones(50), np.arange(50.0), 20)[0] == np.inf  # fewer than eight windows


def test_blocks_by_hand() -> None:
    returns = np.array([1.0, 3, 2, 2, 5, 1, 0, 2, 4] * 2)
    half_width, block = interval(returns, np.arange(18.0), 2)
    sums = (returns - returns.mean()).reshape(9, 2).sum(axis=1)
    assert block == 2  # blocks of four ticks would be fewer than eight
    assert half_width == pytest.approx(student.ppf(0.975, 8) * np.sqrt(9 / 8 * (sums**2).sum()) / 18, rel=1e-12)


def test_the_interval_is_that_of_resampled_recordings() -> None:
    """Blocks of the recording drawn with replacement, again and again: the spread of the mean is that of the closed form."""
    rng, length, B = np.random.default_rng(5), 4, 12
    returns = np.repeat(rng.normal(size=B), length) + 0.1 * rng.normal(size=B * length)
    wide, block = interval(returns, np.arange(1.0 * B * length), length)
    assert block == length
    blocks = returns.reshape(B, length).mean(axis=1)
    means = blocks[rng.integers(B, size=(20_000, B))].mean(axis=1)
    assert wide == pytest.approx(
        student.ppf(0.975, B - 1) * np.sqrt(B / (B - 1)) * means.std(), rel=0.03
    )  # 6 standard errors


def test_the_same_seed_gives_the_same_and_the_stride_is_stated() -> None:
    problem = ol.ImpairedMDP(MDP, ol.PacketChannel({1: 1.0}, lost=0.1))
    policy = ol.solve(problem, tolerance=0.1).policy
    trace = Trace(np.where(np.arange(500) % 7 == 3, NAN, 15.0), sent_ms=20.0 * np.arange(500))
    one, two = (
        replay(problem, policy, trace, period_ms=20, episodes=400, seed=s) for s in (1, np.random.SeedSequence(1))
    )
    assert (one.returns == two.returns).all()
    starts = sum(len(run) - H + 1 - run.skip for run in runs_of(trace, 20.0)[0])
    assert one.stride == pytest.approx(starts / 400 / 8)
    assert len(np.unique(one.at)) == 400
    assert repr(one).startswith("Replay(")
    assert one.to_dict()["episodes"] == 400
    assert one.plot() is not None
    many = replay(problem, policy, trace, period_ms=20, episodes=2 * starts)
    assert np.unique(many.at, return_counts=True)[1].tolist() == [2] * len(np.unique(many.at))


def test_refusals() -> None:
    packets = ol.ImpairedMDP(MDP, ol.PacketChannel({1: 1.0}))
    policy = ol.solve(packets).policy
    trace = regular(1)
    warm = ol.ImpairedMDP(MDP, ol.ConstantDelay(1), start=ol.WarmStart())
    late = ol.ImpairedMDP(MDP, ol.ConstantDelay(1), actuation=1)
    random = ol.ImpairedMDP(MDP, ol.Lossy(ol.GeometricDelay(0.5), rate=0.1))
    anything = ol.FunctionPolicy(lambda info: 0, MDP.n_actions)
    seeing = ol.MarkovPolicy(np.zeros((H, 6), dtype=int), MDP.n_actions)
    cases: list[tuple[Any, Any, dict[str, Any], str]] = [
        (warm, anything, {}, "a warm start knows a past"),
        (late, anything, {}, "actions take effect 1 steps late"),
        (random, anything, {}, "announces losses, which no recording does"),
        (packets, seeing, {}, "a MarkovPolicy sees the current state"),
        (packets, object(), {}, "without probabilities"),
        (packets, policy, {"episodes": 1}, "episodes is 1"),
        (packets, policy, {"period_ms": 1000}, "fewer than an episode of 10"),
        (ol.ImpairedMDP(MDP, ol.PacketChannel({2: 1.0})), policy, {}, "was made for another problem"),
    ]
    for problem, chosen, options, says in cases:
        with pytest.raises((ValueError, TypeError), match=says):
            replay(problem, chosen, trace, **({"period_ms": 20} | options))
