"""Long delays: the ladder's bounds hold wherever the optimum is known, and its numbers are the published ones."""

from __future__ import annotations

import numpy as np
import pytest

import oldlight as ol
from conftest import random_mdp
from oldlight.planning import heuristics, ladder
from oldlight.planning.ladder import Rung, rung
from oracle import random_law
from repeats import is_thorough, repeats
from test_numbers import late_after_the_first

TOLERANCE = 1e-10


def chain(d: int) -> ol.ImpairedMDP:
    mdp = ol.instances.sensing_chain(0.8, horizon=20, initial=np.eye(20)[4])
    return ol.ImpairedMDP(mdp, late_after_the_first(d, 20))


def test_the_rungs_at_delay_six() -> None:
    """What rungs 0..5 lose, in percent of the optimum (sensing chain, p = .8, H = 20, start known)."""
    problem = chain(6)
    best = ol.solve(problem).value
    lost = []
    for k in range(6):
        value = ol.evaluate(problem, ol.FunctionPolicy(Rung(problem, k).choose, 5))
        assert value.exact
        lost.append(100 * (1 - float(value) / best))
    assert np.round(lost, 2).tolist() == [12.47, 8.98, 2.33, 1.0, 0.32, 0.12]


@pytest.mark.parametrize("d", [4, 6] if is_thorough() else [4])  # what half of 6 loses: test_the_rungs_at_delay_six
def test_half_the_delay_is_within_two_percent(d: int) -> None:
    problem = chain(d)
    best = ol.solve(problem).value
    ladder = ol.solve(problem, depth=(d + 1) // 2)
    assert ladder.lower_certified
    assert ladder.lower - TOLERANCE <= best <= ladder.upper + TOLERANCE
    assert ladder.value > 0.98 * best


def test_a_delay_of_fifteen_has_both_bounds() -> None:
    ladder = ol.solve(chain(15), depth=5)
    assert 0 < ladder.lower <= ladder.value < ladder.upper < 12
    assert not ladder.exact
    assert ladder.depth is not None
    played = ol.simulate(ladder.problem, ladder.policy, repeats(1_000, 4_000), seed=9)
    assert abs(played.mean - ladder.value) < 4 * played.half_width / 1.96


@pytest.mark.parametrize("seed", range(repeats(12, 24)))  # 12: each kind of process behind each kind of link
def test_the_bounds_contain_the_optimum(seed: int) -> None:
    rng = np.random.default_rng([seed, 51])
    mdp = random_mdp(rng, 3, 2, 5, stationary=bool(seed % 2), sparse=bool(seed % 3 == 0))
    start = None
    if seed % 4 == 0:
        channel: ol.DelayChannel = ol.ConstantDelay(3)
        start = ol.WarmStart()
    elif seed % 4 == 1:
        channel = ol.ConstantDelay(4)
    elif seed % 4 == 2:
        channel = ol.GeometricDelay(0.4, first="same")
    else:
        first, inter = random_law(rng, 5, 3, 2, 4, kind="state_action")
        channel = ol.StochasticDelay(inter, first=first)
    late = seed % 3 == 0 and start is None
    problem = ol.ImpairedMDP(mdp, channel, start=start, actuation=int(late), pending=(1,) if late else ())
    best = ol.solve(problem)
    longest = problem.warmup or problem.law.max_delay
    previous = np.inf
    for k in range(int(late), longest + 1):
        ladder = ol.solve(problem, depth=k)
        assert ladder.lower - TOLERANCE <= best.value <= ladder.upper + TOLERANCE
        assert ladder.upper <= previous + TOLERANCE
        previous = ladder.upper
    assert ladder.exact
    assert ladder.value == best.value
    top = Rung(problem, longest)  # the whole delay: the ladder's policy is the optimal one, and its bound the optimum
    assert top.upper == pytest.approx(best.value, abs=TOLERANCE)
    assert float(ol.evaluate(problem, ol.FunctionPolicy(top.choose, 2))) == pytest.approx(best.value, abs=TOLERANCE)


@pytest.mark.parametrize("seed", range(repeats(4, 8)))  # 4: a warm start, both delays, both kinds of process
def test_a_rung_asked_for_many_at_once_is_the_rung_asked_one_by_one(seed: int) -> None:
    rng = np.random.default_rng([seed, 52])
    mdp = random_mdp(rng, 4, 3, 5, stationary=bool(seed % 2), sparse=bool(seed % 3 == 0))
    channels: list[ol.DelayChannel] = [ol.ConstantDelay(3), ol.GeometricDelay(0.4, first="same")]
    warm = seed % 4 == 0
    problem = ol.ImpairedMDP(mdp, channels[int(not warm and seed % 2)], start="warm" if warm else None)
    for k in range(3):
        plan, policy = rung(problem, k)
        alone = ol.FunctionPolicy(plan.choose, 3)
        assert ol.evaluate(problem, policy) == ol.evaluate(problem, alone)
        together, apart = (ol.simulate(problem, one, 40, seed=seed, record=True) for one in (policy, alone))
        np.testing.assert_array_equal(together.actions, apart.actions)


def test_sampled_lower_bound_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oldlight.planning.ladder.WALK", 10)
    problem = chain(4)
    ladder = ol.solve(problem, depth=2)
    assert not ladder.lower_certified
    assert "95% confidence" in repr(ladder)
    assert ladder.lower < ladder.value
    assert ladder.lower < ol.solve(problem).value < ladder.upper


def test_the_refusal_names_the_depth_that_fits() -> None:
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8, horizon=16, initial=np.eye(20)[4]), ol.ConstantDelay(12))
    with pytest.raises(ol.TooLarge, match=r"depth=(\d+)") as caught:
        ol.solve(problem, max_bytes=2**22)
    depth = int(str(caught.value).split("depth=")[1].split(")")[0])
    assert depth > 1
    assert ol.solve(problem, depth=depth, max_bytes=2**22).upper > 0


HEURISTICS = [heuristics.most_likely, heuristics.qmdp, heuristics.memoryless, heuristics.open_loop]


@pytest.mark.parametrize("make", HEURISTICS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "channel", [ol.ConstantDelay(2), ol.GeometricDelay(0.6).capped(3), ol.ConstantDelay(0)], ids=repr
)
def test_heuristics_are_executable_and_never_better(make: object, channel: ol.DelayChannel) -> None:
    mdp = ol.instances.sensing_chain(0.8, n_states=8, n_actions=3, horizon=8)
    problem = ol.ImpairedMDP(mdp, channel)
    policy = make(problem)  # type: ignore[operator]
    value = ol.evaluate(problem, policy)
    best = ol.solve(problem).value
    assert value.exact
    assert float(value) <= best + TOLERANCE
    played = ol.simulate(problem, policy, repeats(1_000, 4_000), seed=2)
    assert abs(played.mean - float(value)) < 4 * played.half_width / 1.96 + 1e-9
    if channel == ol.ConstantDelay(0) and make is not heuristics.open_loop:
        assert float(value) == pytest.approx(best, abs=TOLERANCE)  # nothing hidden: all of them are the plan


@pytest.mark.parametrize("seed", range(10))
def test_open_loop_is_the_blind_optimum(seed: int) -> None:
    rng = np.random.default_rng([seed, 61])
    mdp = random_mdp(rng, 3, 2, 5)
    problem = ol.ImpairedMDP(mdp, ol.ConstantDelay(1))
    blind = ol.solve(ol.ImpairedMDP(mdp, ol.ConstantDelay(5))).value
    assert float(ol.evaluate(problem, heuristics.open_loop(problem))) == pytest.approx(blind, abs=TOLERANCE)


def test_heuristics_under_loss() -> None:
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8, n_states=8, horizon=6), ol.Loss(seen=0.6))
    best = ol.solve(problem).value
    for make in (heuristics.most_likely, heuristics.memoryless, heuristics.open_loop, heuristics.qmdp):
        assert float(ol.evaluate(problem, make(problem))) <= best + TOLERANCE  # type: ignore[operator]


@pytest.mark.parametrize("seed", range(8))
def test_deterministic_processes_need_no_table(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng([seed, 71])
    S, A, H = 4, 2, 6
    P = np.eye(S)[rng.integers(0, S, (H, S, A))]
    known = ol.TabularMDP(P, rng.random((H, S, A)), horizon=H, initial=np.eye(S)[rng.integers(S)])
    problems = [
        ol.ImpairedMDP(known, ol.GeometricDelay(0.3, first="same")),
        ol.ImpairedMDP(known, ol.ConstantDelay(2), actuation=2, pending=(1, 0)),
        ol.ImpairedMDP(known.replace(initial=None), ol.ConstantDelay(3), start=ol.WarmStart()),
        ol.ImpairedMDP(known.replace(initial=None), ol.Lossy(ol.ConstantDelay(0), seen=[1, 0, 0.5, 0.5, 0, 1])),
    ]
    tabled = [ol.solve(p) for p in problems]
    monkeypatch.setattr("oldlight.planning.SMALL_TABLE", 0)
    for problem, slow in zip(problems, tabled, strict=True):
        quick = ol.solve(problem)
        assert quick.exact
        assert quick.work.information_states == S * H
        assert quick.value == pytest.approx(slow.value, abs=TOLERANCE)
        assert quick.value_by_start is not None
        assert slow.value_by_start is not None
        can = problem.initial > 0  # from a start that is ruled out there is nothing to count along
        assert quick.value_by_start[can] == pytest.approx(slow.value_by_start[can], abs=TOLERANCE)
        assert float(ol.evaluate(problem, quick.policy)) == pytest.approx(slow.value, abs=TOLERANCE)


def test_a_deterministic_process_behind_an_endless_delay() -> None:
    """20·5^40 queues: refused as a table, exact by counting along."""
    P = np.zeros((20, 5, 20))
    for a in range(5):
        P[np.arange(20), a, (np.arange(20) + a - 2) % 20] = 1.0
    mdp = ol.TabularMDP(P, np.eye(20)[:, :5], horizon=50, initial=np.eye(20)[7])
    problem = ol.ImpairedMDP(mdp, ol.ConstantDelay(40))
    assert ol.solve(problem).value == pytest.approx(ol.solve(ol.ImpairedMDP(mdp, ol.ConstantDelay(0))).value, abs=1e-9)


def test_long_delays_play_fewer_episodes() -> None:
    """Each decision counts a law along from the newest observation: the number of such steps is bounded, and short delays play as many as ever."""
    mdp = ol.instances.sensing_chain(0.8, horizon=100)
    slow = ol.ImpairedMDP(mdp, ol.ConstantDelay(35), start="warm")
    assert ladder._episodes(slow, 2) == 1_500_000 // (100 * 33)
    assert ladder._episodes(slow.behind(ol.ConstantDelay(90)), 2) == ladder.FEWEST
    assert ladder._episodes(slow.behind(ol.ConstantDelay(4)), 2) == ladder.EPISODES
    lossy = ol.ImpairedMDP(mdp, ol.PacketChannel({0: 0.5, 3: 0.5}, lost=0.1))
    assert ladder._episodes(lossy, 2) == ladder.EPISODES
