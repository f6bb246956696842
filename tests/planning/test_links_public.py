"""Channels that are planned by their automaton, by the public calls: solve, q, evaluate, simulate, gap, sweep, belief."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import oldlight as ol
from oldlight.model.link_information import NodeFollower, ages_of
from oldlight.planning import heuristics
from oldlight.planning.link_plan import LinkPlan
from oldlight.planning.link_solution import QValues
from oldlight.planning.link_walk import reached
from repeats import repeats

TOLERANCE = 1e-10
LINKS = {
    "packets": ol.PacketChannel({0: 0.3, 1: 0.4, 2: 0.3}, lost=0.2),
    "fifo": ol.FIFODelay([0.5, 0.3, 0.2]),
    "ages": ol.AgeChain([[0.7, 0.3], [0.4, 0.3, 0.3]], first={0: 0.5, 2: 0.5}),
    "renewal": ol.RenewalLoss({0: 0.7, 2: 0.3}),
    "periodic": ol.Periodic(3, delay=1, offset=1),
    "held": ol.HeldLag({0: 0.5, 2: 0.5}, hold=0.6),
    "hidden": ol.HiddenLink([[0.8, 0.2], [0.4, 0.6]], [[0.7, 0.2], [0.1, 0.3]]),
    "bursty": ol.BurstyLoss(0.2, 0.4, seen_bad=0.1),
    "lossy": ol.Lossy(ol.StochasticDelay([0.6, 0.4]).capped(2), rate=0.3),
}


def process(seed: int, S: int = 3, A: int = 2, H: int = 5) -> ol.TabularMDP:
    """One in which what is known matters: the action has to fit the state."""
    rng = np.random.default_rng([seed, 91])
    P = rng.dirichlet(0.5 * np.ones(S), size=(S, A) if seed % 2 == 0 else (H, S, A))
    R = 0.2 * rng.random((S, A)) + 0.8 * (np.arange(S)[:, None] % A == np.arange(A))
    return ol.TabularMDP(P, R, horizon=H, initial=rng.dirichlet(np.ones(S)))


@pytest.mark.parametrize("channel", LINKS.values(), ids=LINKS)
def test_a_plan_its_value_and_its_q_values(channel: Any) -> None:
    """The policy earns exactly what the plan says, and the best Q-values of time 0 and of a later time add up to it."""
    for late in (0, 1):
        problem = ol.ImpairedMDP(process(late), channel, actuation=late, pending=(1,) * late)
        plan = ol.solve(problem)
        assert plan.exact
        assert plan.lower == plan.value == plan.upper
        worth = ol.evaluate(problem, plan.policy)
        assert worth.exact
        assert abs(worth.value - plan.value) < TOLERANCE
        assert plan.value_by_start is not None
        assert abs(problem.initial @ plan.value_by_start - plan.value) < TOLERANCE
        earned = 0.0
        for h, at in enumerate(reached(problem.mdp, problem.automaton, plan.policy)):  # type: ignore[arg-type]
            assert at is not None
            if h in (0, 3):
                assert abs(earned + sum(p * plan.value_at(info) for info, p in at.items()) - plan.value) < TOLERANCE
            for info, p in at.items():
                action: int = plan.policy.action(info)  # type: ignore[attr-defined]
                earned += p * float(ol.belief(problem, info) @ problem.mdp.rewards[h][:, action])


def test_q_values_are_those_of_the_delay_planner() -> None:
    problem = ol.ImpairedMDP(process(1), ol.ConstantDelay(2))
    node = next(n for n, age in ages_of(problem.automaton, 3) if age == 2)
    plan = LinkPlan(problem.mdp, problem.automaton).run()
    for s in range(3):
        old = ol.solve(problem).q(ol.Information.seen(1, s, (0, 1)))
        info = ol.LinkInformation(3, problem.automaton.nodes[node], 1, s, (0, 1))
        assert np.abs(QValues(problem, plan, 0.0, np.inf)(info) - old).max() < TOLERANCE


@pytest.mark.parametrize(("d", "late"), [(0, 0), (1, 0), (2, 0), (1, 2)])
def test_packets_with_one_delay_are_a_constant_delay(d: int, late: int) -> None:
    options: Any = {"actuation": late, "pending": (1,) * late}
    old, new = (ol.ImpairedMDP(process(d), c, **options) for c in (ol.ConstantDelay(d), ol.PacketChannel({d: 1.0})))
    assert abs(ol.solve(old).value - ol.solve(new).value) < TOLERANCE
    for make in (heuristics.most_likely, heuristics.memoryless, heuristics.open_loop, heuristics.full_information):
        assert abs(float(ol.evaluate(old, make(old))) - float(ol.evaluate(new, make(new)))) < TOLERANCE  # type: ignore[operator]
        one, two = (ol.simulate(x, make(x), repeats(1500, 5000), seed=3, record=True) for x in (old, new))  # type: ignore[operator]
        assert np.array_equal(one.states, two.states)  # type: ignore[arg-type]
        assert np.array_equal(one.actions, two.actions)  # type: ignore[arg-type]
        assert np.array_equal(one.ages, two.ages)
        assert np.abs(one.returns - two.returns).max() < TOLERANCE


def test_a_warm_start_behind_silent_loss_is_that_behind_loss() -> None:
    old, new = (
        ol.ImpairedMDP(process(4), c, start=ol.WarmStart())
        for c in (ol.Loss(rate=0.3), ol.PacketChannel({0: 1.0}, lost=0.3))
    )
    assert abs(ol.solve(old).value - ol.solve(new).value) < TOLERANCE


def known(arrivals: Any, states: Any, actions: Any, h: int) -> tuple[Any, ...]:
    """(t, state, queue) at time h of a recorded episode."""
    seen = [i for i in range(h + 1) if 0 <= arrivals[i] <= h]
    t = seen[-1] if seen else None
    return t, None if t is None else int(states[t]), tuple(actions[t or 0 : h].tolist())


def sure_start(seed: int, channel: Any) -> ol.ImpairedMDP:
    """A process with few successors that begins in state 0, as everybody knows."""
    rng = np.random.default_rng([seed, 92])
    P = rng.dirichlet(np.ones(2), size=(5, 2, 2)) * (rng.random((5, 2, 2, 2)) > 0.4)
    P[P.sum(axis=-1) == 0] = [0.5, 0.5]
    R = rng.normal(size=(5, 2, 2)) + np.eye(2)
    return ol.ImpairedMDP(ol.TabularMDP(P / P.sum(axis=-1, keepdims=True), R, horizon=5, initial=[1.0, 0.0]), channel)


@pytest.mark.parametrize(
    ("channel", "seeds"),
    [
        (ol.PacketChannel([0.2, 0.3, 0.5], lost=0.5), range(10)),
        (ol.HiddenLink([[0.8, 0.2], [0.4, 0.6]], [[0.0, 0.5], [0.1, 0.3]]), (19, 133, *range(8))),
    ],
    ids=["packets", "hidden"],
)
def test_a_start_that_is_certain(channel: Any, seeds: Any) -> None:
    """The policy earns what the plan says while nothing has been seen and the first state is known all the same; so does a controller."""
    for seed in seeds:
        problem = sure_start(seed, channel)
        plan = ol.solve(problem)
        assert abs(float(ol.evaluate(problem, plan.policy)) - plan.value) < TOLERANCE, seed
        controller, follower = ol.Controller(problem, plan.policy), NodeFollower(problem.automaton)  # type: ignore[arg-type]
        queue: tuple[int, ...] = ()
        controller.reset()
        for h in range(5):
            info = ol.LinkInformation(h, problem.automaton.nodes[follower.hear([])], None, None, queue)
            queue = (*queue, controller.act())
            assert queue[-1] == plan.policy.action(info), (seed, h)  # type: ignore[attr-defined]


@pytest.mark.parametrize("channel", LINKS.values(), ids=LINKS)
def test_played_episodes_follow_the_exact_law(channel: Any) -> None:
    """What is known at times 2 and 4, and the mean return: χ² below its 1 − 1e-6 quantile, and within 5 standard errors."""
    problem, n = ol.ImpairedMDP(process(6), channel), repeats(6_000, 20_000)
    policy = ol.FunctionPolicy(lambda info: [0.3, 0.7] if info.h % 2 else [0.6, 0.4], 2)
    by_nodes = ol.solve(problem).policy
    for chosen in (by_nodes,) if problem.has_delay_law else (by_nodes, policy):
        played = ol.simulate(problem, chosen, n, seed=8, record=True)
        laws = list(reached(problem.mdp, problem.automaton, chosen.probabilities))
        for h in (2, 4):
            expected: Counter[Any] = Counter()
            for info, p in (laws[h] or {}).items():
                expected[info.t, info.state, info.queue] += n * p  # type: ignore[assignment]
            rows = zip(played.arrivals, played.states, played.actions, strict=True)  # type: ignore[arg-type]
            counted = Counter(known(*row, h) for row in rows)
            assert set(counted) <= set(expected)
            often = [key for key, e in expected.items() if e >= 5]
            cells = [(counted[key], expected[key]) for key in often]
            rare = (n - sum(c for c, _ in cells), n - sum(e for _, e in cells))
            cells += [rare] if rare[1] >= 5 else []
            statistic = sum((c - e) ** 2 / e for c, e in cells)
            assert statistic <= chi2.isf(1e-6, max(len(cells) - 1, 1))
        error = played.returns.std() / np.sqrt(n)
        assert abs(played.mean - float(ol.evaluate(problem, chosen))) <= 5 * error + TOLERANCE


@pytest.mark.parametrize(
    ("planned", "other"),
    [
        (ol.PacketChannel([0.3, 0.4, 0.3], lost=0.4), ol.PacketChannel([0.3, 0.4, 0.3])),
        (ol.Lossy(ol.GeometricDelay(0.5), seen=0.5), ol.Lossy(ol.GeometricDelay(0.9), seen=0.9)),
    ],
    ids=["packets", "late and lossy"],
)
def test_a_plan_is_valued_on_the_link_that_is_asked_about(planned: Any, other: Any) -> None:
    """Not on the one that it was made for: `evaluate`, `simulate` and the same actions as a function of what is known agree."""
    here, there = (ol.ImpairedMDP(process(4), channel) for channel in (planned, other))
    plan = ol.solve(here)
    worth, played = ol.evaluate(there, plan.policy), ol.simulate(there, plan.policy, 20_000, seed=3)
    assert worth.exact
    by_hand = 0.0
    for h, at in enumerate(reached(there.mdp, there.automaton, plan.policy)):  # type: ignore[arg-type]
        assert at is not None
        for info, p in at.items():
            by_hand += p * float(ol.belief(there, info) @ there.mdp.rewards[h][:, plan.policy.action(info)])  # type: ignore[attr-defined]
    assert abs(worth.value - by_hand) < TOLERANCE
    error = played.returns.std() / np.sqrt(20_000)
    assert abs(played.mean - by_hand) <= 5 * error
    assert abs(plan.value - by_hand) > 20 * error  # the two links are far apart


def test_a_plan_is_refused_on_a_link_that_can_do_more() -> None:
    """Behind loss an observation grows older than the tables of a plan without loss know."""
    plan = ol.solve(ol.ImpairedMDP(process(4), ol.PacketChannel([0.3, 0.4, 0.3])))
    lossy = ol.ImpairedMDP(process(4), ol.PacketChannel([0.3, 0.4, 0.3], lost=0.4))
    for ask in (lambda: ol.evaluate(lossy, plan.policy), lambda: ol.simulate(lossy, plan.policy, 10, seed=0)):
        with pytest.raises(ValueError, match="was made for another problem"):
            ask()


def test_a_plan_for_merged_laws_belongs_to_its_link(tmp_path: Any) -> None:
    """It is valued, played and loaded behind the link whose laws were merged, and refused behind another."""
    here = ol.ImpairedMDP(process(4, H=6), LINKS["hidden"])
    plan = ol.solve(here, tolerance=2.0)
    assert plan.policy.automaton.merging > 0  # type: ignore[attr-defined]
    assert len(plan.policy.automaton.nodes) < len(here.automaton.nodes)  # type: ignore[attr-defined]
    worth = ol.evaluate(here, plan.policy)
    plan.policy.save(tmp_path / "plan.npz")  # type: ignore[attr-defined]
    assert ol.evaluate(here, ol.load_policy(tmp_path / "plan.npz")).value == worth.value
    env = ol.envs.TabularEnv(here.mdp, channel=here.channel)
    n = repeats(120, 300)
    returns = ol.envs.play(env, plan.policy, n, seed=0)
    assert abs(returns.mean() - worth.value) <= 5 * returns.std() / np.sqrt(n)
    other = here.behind(ol.HiddenLink([[0.9, 0.1], [0.6, 0.4]], [[0.9, 0.1], [0.2, 0.7]]))
    with pytest.raises(ValueError, match="was made for another problem"):
        ol.evaluate(other, plan.policy)


def test_what_is_too_much_to_walk_is_played() -> None:
    problem = ol.ImpairedMDP(process(2), LINKS["packets"])
    policy = ol.solve(problem).policy
    exact, sampled = ol.evaluate(problem, policy), ol.evaluate(problem, policy, max_states=3, episodes=20_000)
    assert exact.exact
    assert not sampled.exact
    assert abs(sampled.value - exact.value) <= 3 * sampled.half_width


def test_certificates_gaps_and_sweeps() -> None:
    chain = ol.instances.sensing_chain(0.8)
    problem = ol.ImpairedMDP(chain, ol.PacketChannel({0: 0.5, 1: 0.5}, lost=0.2))
    best = ol.solve(problem)
    for options in ({"tolerance": 1e-2}, {"seconds": 1e-3}, {"tolerance": 1e-2, "depth": 2}):
        plan = ol.solve(problem, **options)  # type: ignore[arg-type]
        assert plan.lower <= best.value + TOLERANCE <= plan.upper + 2 * TOLERANCE
        assert plan.upper - plan.lower <= options.get("tolerance", np.inf)
        assert plan.lower - TOLERANCE <= float(ol.evaluate(problem, plan.policy)) <= plan.upper + TOLERANCE
    price = ol.gap(problem, tolerance=1e-2)
    full = ol.solve(ol.ImpairedMDP(chain, ol.ConstantDelay(0))).value
    assert abs(price.full - full) < TOLERANCE
    assert full - best.value - TOLERANCE <= price.gap <= full - best.value + 1e-2
    links = [ol.ConstantDelay(1), problem.channel, ol.Periodic(2)]
    swept = ol.sweep(chain, channels=links, tolerance=1e-2)
    assert swept.gaps[1].gap == price.gap


@pytest.mark.parametrize("channel", LINKS.values(), ids=LINKS)
def test_what_needs_a_delay_law_says_so(channel: Any) -> None:
    problem = ol.ImpairedMDP(process(0), channel)
    with pytest.raises(ValueError, match=type(channel).__name__):
        ol.Layout.of(problem)
    with pytest.raises(ValueError, match=type(channel).__name__):
        ol.gap(problem).proposition4  # noqa: B018
    with pytest.raises(ValueError, match=type(channel).__name__):
        ol.learn(problem, ol.learners.DelayedUCBVI(), 3, seed=0)
    if problem.has_delay_law:
        return
    # one that needs no law learns behind every link
    assert ol.learn(problem, ol.learners.UniformRandom(), 3, seed=0).done == 3
