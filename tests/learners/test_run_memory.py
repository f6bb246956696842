"""The bytes that a learning run, a plan and a simulation announce are those that they hold."""

from __future__ import annotations

import functools
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import oldlight as ol
from oldlight.learners.run_memory import run_bytes
from oldlight.planning import evaluation
from oldlight.simulation.simulated_bytes import simulated_bytes
from oldlight.simulation.world import Room
from repeats import is_thorough, repeats

LEARNERS = ["DelayedUCBVI", "PosteriorSampling", "AugmentedUCBVI", "AugmentedQLearning", "MemorylessQLearning"]
LEARNERS += ["MemorylessUCBVI", "LinkLearner"]
WITHIN = 0.2  # what is promised


def late(d: int, **options: Any) -> ol.ImpairedMDP:
    return ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.ConstantDelay(d), **options)


def peak(do: Callable[[], object]) -> int:
    """Bytes of arrays and objects held at once while it is done."""
    tracemalloc.start()
    try:
        do()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.crossed("name", "start")
@pytest.mark.parametrize("start", ["warm", None], ids=str)
@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_holds_what_it_announces(name: str, start: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    make = getattr(ol.learners, name)
    ol.learn(late(2, start=start), make(), 1, seed=0, progress=False)  # compiles
    for most in (2**22, 0):  # the values of all times are kept, or those of two
        monkeypatch.setattr("oldlight.learners.policy_evaluator.TABLE", most)
        monkeypatch.setattr("oldlight.learners.run_memory.TABLE", most)
        problem = late(6, start=start)
        held = peak(
            lambda problem=problem: ol.learn(problem, make(), 3, seed=0, best=4.0, progress=False)
        )  # the policy before is held, too
        assert run_bytes(problem, make()) == pytest.approx(held, rel=WITHIN), most


@pytest.mark.parametrize("start", ["warm", None], ids=str)
def test_a_plan_holds_what_it_announces(start: str | None) -> None:
    ol.solve(late(2, start=start))
    found: list[ol.Solution] = []
    held = peak(lambda: found.append(ol.solve(late(6, start=start), progress=False)))
    assert found[0].work.bytes == pytest.approx(held, rel=WITHIN)


@pytest.mark.parametrize("record", [False, True])
def test_a_simulation_holds_what_it_announces(record: bool) -> None:
    problem = late(2)
    policy = ol.solve(problem).policy
    ol.simulate(problem, policy, 10, record=record)
    Room._left.clear()
    held = peak(lambda: ol.simulate(problem, policy, 200_000, seed=1, record=record))
    assert simulated_bytes(problem, 200_000, record) == pytest.approx(held, rel=WITHIN)


def test_what_is_too_large_is_refused_before_anything_is_made() -> None:
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8, horizon=100), ol.ConstantDelay(63), start="warm")
    for name in LEARNERS:
        with pytest.raises(ol.TooLarge, match=f"{name} behind .* needs 10\\^4[78] bytes"):
            ol.learn(problem, getattr(ol.learners, name)(), 3, seed=0, best=1.0, evaluate="sampled")
    with pytest.raises(ol.TooLarge, match="recorded of 1,000,000,000,000 episodes takes"):
        ol.learn(late(1), ol.learners.UniformRandom(), 10**12, seed=0)
    with pytest.raises(ol.TooLarge, match=r"simulate: 1,000,000,000,000 episodes of 10 steps take 7\.29 TiB"):
        ol.simulate(late(1), ol.solve(late(1)).policy, 10**12)
    endless = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.ConstantDelay(10**6), start="warm")
    with pytest.raises(ol.TooLarge, match="even the places of the blocks"):
        ol.Layout.of(endless)
    with pytest.raises(ol.TooLarge, match="delays of up to 1,000,000 steps on a horizon of 1,000,000"):
        ol.solve(ol.ImpairedMDP(ol.instances.sensing_chain(0.8, horizon=10**6), ol.GeometricDelay(0.5)))


def test_a_policy_that_would_be_asked_too_often_is_sampled_with_fewer_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert evaluation.QUESTIONS == 250_000
    monkeypatch.setattr(evaluation, "QUESTIONS", repeats(66_000, 250_000))
    mdp = ol.instances.sensing_chain(0.8, n_states=4, n_actions=2, horizon=60)
    problem = ol.ImpairedMDP(mdp, ol.ConstantDelay(30), start="warm")
    right = ol.FunctionPolicy(lambda info: 0, 2)
    found = ol.evaluate(problem, right, episodes=None)
    assert (found.method, found.size) == ("play", evaluation.QUESTIONS // 60)  # 60 questions in each episode
    exact = np.mean([float(ol.evaluate(ol.ImpairedMDP(mdp.replace(initial=problem.state_at_zero), "none"), right))])
    assert abs(found.value - exact) < 4 * found.half_width / 1.96


ALTERNATING = (60, 10) if is_thorough() else (80, 4)  # a third of the work, and the tables are as much of what is held
LOSSY: list[
    tuple[str, dict[str, Any], str, int, int]
] = [  # the learner, its options, the link, states enough for its tables to be most of what is held, and steps
    ("PosteriorSampling", {}, "loss:0.02", 70, 10),
    ("OptimisticPlanning", {}, "loss:0.02", 80, 10),
    ("OptimisticPlanning", {"oracle": "alternating"}, "loss:0.02", *ALTERNATING),
    ("LossUCBVI", {}, "loss:0.2", 8000, 10),
    ("LinkLearner", {}, "loss:0.1", 100, 10),
    ("LinkLearner", {}, "packets:0=.8,1=.2+loss:0.1", 100, 10),
    ("LinkLearner", {}, "constant:1+loss:0.1", 100, 10),
]


def spread(S: int, horizon: int = 10) -> ol.TabularMDP:
    """Three successors for each pair."""
    rng = np.random.default_rng(S)
    columns = np.concatenate([rng.choice(S, 3, replace=False) for _ in range(3 * S)])
    P = sparse.csr_array(
        (rng.dirichlet(np.ones(3), 3 * S).ravel(), (np.repeat(np.arange(3 * S), 3), columns)), shape=(3 * S, S)
    )
    return ol.TabularMDP(P if S > 1000 else P.toarray().reshape(S, 3, S), rng.random((S, 3)), horizon=horizon)


@pytest.mark.parametrize(("name", "options", "link", "S", "horizon"), LOSSY, ids=lambda x: str(x) if x else "")
def test_what_is_announced_behind_loss_is_held(
    name: str, options: dict[str, Any], link: str, S: int, horizon: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without what hides the tables where they are small: the room that is there for every search, and many played episodes."""
    monkeypatch.setattr("oldlight.learners.search_memory.LEAST_ROOM", 2**16)
    monkeypatch.setattr("oldlight.planning.settling.ENOUGH", 1)
    monkeypatch.setattr("oldlight.learners.policy_evaluator.EPISODES", 200)
    make = getattr(ol.learners, name)
    run = functools.partial(ol.learn, episodes=2, seed=0, best=1.0, progress=False, evaluate="sampled")
    run(ol.ImpairedMDP(spread(4, horizon), link), make(**options))  # compiles
    problem = ol.ImpairedMDP(spread(S, horizon), link)
    held = peak(lambda: run(problem, make(**options)))
    assert run_bytes(problem, make(**options), "sampled", 2) == pytest.approx(held, rel=WITHIN)


def test_a_tree_has_no_more_nodes_than_are_announced() -> None:
    problem = ol.ImpairedMDP(spread(30), "loss:0.3")
    for K in (20, 400):
        learner = ol.learners.LossUCBVI()
        few, many = (run_bytes(problem, learner, "sampled", n) for n in (None, K))
        ol.learn(problem, learner, K, seed=0, best=1.0, evaluate="sampled", every=K, progress=False)
        nodes, entries = learner.sizes.tolist()
        assert 0.3 * (many - few) < 8 * (7 + 3 * 3) * nodes + 24 * entries < 1.2 * many - few


@pytest.mark.parametrize("name", ["PosteriorSampling", "OptimisticPlanning", "LinkLearner"])
def test_counts_of_a_large_process_are_refused_before_it_is_planned(name: str) -> None:
    S = 20_000
    P = sparse.csr_array((np.ones(2 * S), (np.arange(2 * S), np.arange(2 * S) // 2)), shape=(2 * S, S))
    problem = ol.ImpairedMDP(ol.TabularMDP(P, np.zeros((S, 2)), horizon=100), "loss:0.1")
    with pytest.raises(ol.TooLarge, match=f"{name} behind Loss.* needs .* [GT]iB for its tables"):
        ol.learn(problem, getattr(ol.learners, name)(), 3, seed=0)
