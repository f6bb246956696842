"""`OptimisticPlanning` and `LossUCBVI` (Algorithms 2 and 3): counts, recursions against plain ones, optimism."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import chisquare

import oldlight as ol
from conftest import random_mdp
from oldlight.learners import Episode, Setting, UniformRandom, learn
from oldlight.learners import loss_ucbvi as algorithm_3
from oldlight.learners import optimistic_planning as algorithm_2
from oldlight.learners.loss_ucbvi import LossUCBVI
from oldlight.learners.optimistic_planning import OptimisticPlanning, best_model, furthest
from oldlight.model.information import Information
from oldlight.paper.counterexamples import hidden_action

LEARNERS: dict[str, Any] = {
    "bonus": OptimisticPlanning,
    "bonus, full": partial(OptimisticPlanning, replan="full", clip="none"),
    "alternating": partial(OptimisticPlanning, "alternating"),
    "multi-step": LossUCBVI,
    "multi-step, greedy": partial(LossUCBVI, replan="greedy"),
    "multi-step, as printed": partial(LossUCBVI, clip="H"),
}
each_learner = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)


def tiny(seed: int = 7, *, S: int = 3, A: int = 2, H: int = 3, seen: Any = 0.8) -> ol.ImpairedMDP:
    rng = np.random.default_rng(seed)
    mdp = ol.TabularMDP(rng.dirichlet(np.full(S, 0.5), size=(H, S, A)), rng.random((H, S, A)), horizon=H)
    return ol.ImpairedMDP(mdp, ol.Loss(seen=seen))


def begun(learner: Any, problem: ol.ImpairedMDP, episodes: int = 1000, seed: int = 0) -> Any:
    learner.start(Setting.of(problem, episodes, 0.1, None), np.random.default_rng(seed))
    return learner


def episode(states: list[int], actions: list[int]) -> Episode:
    s = np.array(states)
    arrivals = np.where(s >= 0, np.arange(len(s)), -1)
    return Episode(s, np.array(actions), arrivals, np.zeros(len(s)), 0)


def at_random(problem: ol.ImpairedMDP, n: int, seed: int) -> list[Episode]:
    """Episodes of acting at random."""
    A = problem.n_actions
    played = ol.simulate(problem, ol.FunctionPolicy(lambda _: np.full(A, 1 / A), A), n, seed=seed, record=True)
    assert played.actions is not None
    pairs = zip(played.revealed, played.actions, strict=True)
    return [episode(states.tolist(), actions.tolist()) for states, actions in pairs]


def everything_known(problem: ol.ImpairedMDP) -> Iterator[Information]:
    H, S, A = problem.horizon, problem.n_states, problem.n_actions
    for h in range(H):
        for queue in product(range(A), repeat=h):
            yield Information.nothing_seen(queue)
        for t, s in product(range(h + 1), range(S)):
            for queue in product(range(A), repeat=h - t):
                yield Information.seen(t, s, queue, h - t)


# -- the protocol ---------------------------------------------------------------------------------------------------


@each_learner
def test_one_seed_decides_everything(make: Any) -> None:
    problem = tiny()
    one, same, other = (learn(problem, make(), 60, seed=seed) for seed in (1, 1, 2))
    for name in ("values", "returns", "estimates"):
        assert np.array_equal(getattr(one, name), getattr(same, name))
    assert not np.array_equal(one.values, other.values)
    assert one.exact


@each_learner
def test_a_checkpoint_continues_to_the_identical_result(make: Any, tmp_path: Path) -> None:
    problem, file = tiny(), tmp_path / "run.npz"
    whole = learn(problem, make(), 60, seed=3)
    learner = make()
    see, met = learner.see, Counter[str]()

    def until_the_25th(played: Episode) -> None:
        met["episodes"] += 1
        if met["episodes"] == 25:
            raise KeyboardInterrupt
        see(played)

    learner.see = until_the_25th
    with pytest.raises(KeyboardInterrupt) as stop:
        learn(problem, learner, 60, seed=3, checkpoint=file, checkpoint_every=0)
    assert len(stop.value.partial.values) == 24
    again = learn(problem, make(), 60, seed=3, checkpoint=file)
    for name in ("values", "returns", "estimates"):
        assert np.array_equal(getattr(whole, name), getattr(again, name))


@each_learner
def test_an_action_for_everything_that_can_be_known(make: Any) -> None:
    problem = tiny()
    learner = begun(make(), problem)
    for played in [None, *at_random(problem, 40, seed=1)]:
        if played is not None:
            learner.see(played)
        policy = learner.policy()
        assert policy.fits(problem)
        assert policy is learner.policy()
        for info in everything_known(problem):
            a = learner.act(info)
            assert 0 <= a < 2
            assert a == learner.act(info) == policy.action(info)


@each_learner
def test_ties_are_broken_uniformly(make: Any) -> None:
    mdp = ol.TabularMDP(np.full((2, 3, 2), 0.5), np.zeros((2, 3)), horizon=2)
    problem = ol.ImpairedMDP(mdp, ol.Loss(seen=0.5))
    chosen = Counter(
        (info, begun(make(), problem, seed=seed).act(info))
        for seed in range(300)
        for info in (Information.nothing_seen(), Information.seen(1, 1))
    )
    for info in (Information.nothing_seen(), Information.seen(1, 1)):
        assert chisquare([chosen[info, a] for a in range(3)]).pvalue > 1e-4


def test_ties_between_tried_actions_are_broken_anew_at_each_back_up() -> None:
    mdp = ol.TabularMDP(np.full((2, 3, 2), 0.5), np.zeros((2, 3)), horizon=1)
    problem = ol.ImpairedMDP(mdp, ol.Loss(seen=1.0))
    learner = begun(LossUCBVI(), problem)
    chosen = Counter[int]()
    for _ in range(300):
        learner.see(episode([0], [0]))
        chosen[learner.act(Information.seen(0, 0))] += 1
    assert chisquare([chosen[a] for a in range(3)]).pvalue > 1e-4


@each_learner
def test_what_it_cannot_learn_is_refused(make: Any) -> None:
    mdp = ol.TabularMDP(np.full((2, 2, 2), 0.5), [[0.0, 1.5], [0.0, 0.0]], horizon=3)
    with pytest.raises(ValueError, match=r"rewards are in \[0, 1.5\]"):
        begun(make(), ol.ImpairedMDP(mdp, ol.Loss(seen=0.5)))
    fine = mdp.replace(rewards=np.eye(2))
    for channel in (ol.ConstantDelay(1), ol.Lossy(ol.ConstantDelay(1), seen=0.5)):
        with pytest.raises(ValueError, match="without delay"):
            begun(make(), ol.ImpairedMDP(fine, channel))
    with pytest.raises(ValueError, match="without delay"):
        begun(make(), ol.ImpairedMDP(fine, ol.Loss(seen=0.5), actuation=1))
    with pytest.raises(ValueError, match="independent losses"):
        begun(make(), ol.ImpairedMDP(fine, ol.BurstyLoss(0.1, 0.5)))


def test_wrong_options_are_refused() -> None:
    with pytest.raises(ValueError, match="oracle is"):
        OptimisticPlanning("magic")
    with pytest.raises(ValueError, match="replan is"):
        OptimisticPlanning(replan="greedy")
    with pytest.raises(ValueError, match="clip is"):
        OptimisticPlanning(clip="H")
    with pytest.raises(ValueError, match="c is"):
        OptimisticPlanning(c=0)
    with pytest.raises(ValueError, match="replan is"):
        LossUCBVI(replan="doubling")
    with pytest.raises(ValueError, match="clip is"):
        LossUCBVI(clip="none")
    with pytest.raises(ValueError, match="stationary transitions"):
        begun(OptimisticPlanning(pooled=True), tiny())


@each_learner
@pytest.mark.parametrize("seen", [1.0, 0.0, [0.5, 0.0, 1.0]])
def test_rates_of_zero_and_one(make: Any, seen: Any) -> None:
    run = learn(tiny(seen=seen), make(), 30, seed=0)
    assert np.isfinite(run.values).all()
    assert (run.gaps >= -1e-9).all()


# -- counts and estimates -------------------------------------------------------------------------------------------

BY_HAND = [
    episode([0, 1, 2], [1, 0, 1]),
    episode([0, -1, 2], [1, 0, 0]),
    episode([0, -1, 1], [1, 0, 0]),
    episode([-1, 1, -1], [0, 1, 1]),
    episode([0, 1, -1], [1, 0, 1]),
]


def test_pairs_are_counted_where_both_ends_were_seen() -> None:
    one, pooled = (begun(OptimisticPlanning(pooled=p), tiny() if not p else chain()) for p in (False, True))
    for played in BY_HAND:
        one.see(played)
        pooled.see(played)
    expected = np.zeros((2, 3, 2, 3), dtype=int)
    expected[0, 0, 1, 1] = 2  # the first and the last episode
    expected[1, 1, 0, 2] = 1
    assert np.array_equal(one.counts, expected)
    assert np.array_equal(pooled.counts, expected.sum(axis=0, keepdims=True))
    p, radius = one.model()
    assert p[0, 0, 1].tolist() == [0, 1, 0]
    assert p[1, 0, 0].tolist() == pytest.approx([1 / 3] * 3)
    assert radius[0, 0, 1] == pytest.approx(min(1, one.c * np.sqrt(3 * one.setting.log_term / 2)))
    assert radius[1, 0, 0] == 1


def chain() -> ol.ImpairedMDP:
    rng = np.random.default_rng(0)
    mdp = ol.TabularMDP(rng.dirichlet(np.ones(3), size=(3, 2)), rng.random((3, 2)), horizon=3)
    return ol.ImpairedMDP(mdp, ol.Loss(seen=0.8))


def test_many_steps_are_counted_at_once_and_the_rate_is_that_of_the_seen_ones() -> None:
    learner = begun(LossUCBVI(), tiny())
    for played in BY_HAND:
        learner.see(played)
    seen, blind = Information.seen, Information.nothing_seen
    assert learner.next_states(None).tolist() == [4, 0, 0]
    assert learner.next_states(seen(0, 0), 1).tolist() == [0, 2, 0]
    assert learner.next_states(seen(0, 0, (1,), 1), 0).tolist() == [0, 1, 1]  # one observation between was lost
    assert learner.next_states(seen(1, 1), 0).tolist() == [0, 0, 1]
    assert learner.next_states(blind(), 0).tolist() == [0, 1, 0]
    assert learner.next_states(seen(1, 2), 0).tolist() == [0, 0, 0]  # never visited
    assert learner.seen_rate.tolist() == [0.8, 0.6, 0.6]
    assert learner.node(seen(2, 0)) == -1


def test_the_estimates_converge() -> None:
    problem = tiny(seen=[0.9, 0.7, 0.8])
    two, three = begun(OptimisticPlanning(), problem), begun(LossUCBVI(), problem)
    for played in at_random(problem, 6000, seed=5):
        two.see(played)
        three.see(played)
    z = 4.5  # standard deviations: 7e-6 a piece
    assert (np.abs(three.seen_rate - [0.9, 0.7, 0.8]) < z * np.sqrt([0.09 / 6000, 0.21 / 6000, 0.16 / 6000])).all()
    p, n = two.model()[0], two.counts.sum(axis=3)[..., None]
    truth = problem.mdp.transitions[:2]
    assert n.min() > 100
    assert (np.abs(p - truth) < z * np.sqrt(truth * (1 - truth) / n) + 1 / n).all()
    met = 0
    for info in everything_known(problem):
        if info.h == 0 or not info.queue:
            continue
        parent = info._replace(h=info.h - 1, queue=info.queue[:-1], waited=info.waited - 1)
        n = three.next_states(parent, info.queue[-1]).sum()
        if n < 30:
            continue
        b, estimate = ol.belief(problem, info), three.next_states(parent, info.queue[-1]) / n
        assert (np.abs(estimate - b) < z * np.sqrt(b * (1 - b) / n) + 1 / n).all()
        met += 1
    assert met > 10
    start = three.next_states(None)
    assert np.abs(start / start.sum() - problem.initial).max() < z * np.sqrt(0.25 / start.sum())


# -- the recursions, against plain ones -----------------------------------------------------------------------------


def plainly(problem: ol.ImpairedMDP, episodes: list[Episode], c: float, iota: float, top: Any) -> tuple[Any, Any]:
    """Algorithm 3's value iteration from a list of episodes, with dictionaries: V of each τ, and of the start."""
    H, R, k = problem.horizon, problem.mdp.rewards, len(episodes)
    counts: dict[Any, Counter[int]] = {}
    visited: set[Information] = set()
    for e in episodes:
        taus = [e.information(h) for h in range(H)]
        visited.update(taus)
        for h in range(-1, H - 1):
            if e.states[h + 1] >= 0:
                key = (taus[h], int(e.actions[h])) if h >= 0 else "start"
                counts.setdefault(key, Counter())[int(e.states[h + 1])] += 1
    rate = [np.mean([e.states[h] >= 0 for e in episodes]) for h in range(H)]
    V: dict[Information, float] = {}

    def ahead(key: Any, h: int, lost: Information) -> float:
        n = counts[key].total()
        known = sum(m * V[Information.seen(h + 1, s)] for s, m in counts[key].items()) / n
        bonus = c * H * (np.sqrt(H * iota / n) + np.sqrt(iota / k))
        return float(rate[h + 1] * known + (1 - rate[h + 1]) * V.get(lost, top(h + 1)) + bonus)

    def q(tau: Information, a: int) -> float:
        h, t, s, queue, waited = tau
        if queue or t is None:
            before = (tau._replace(h=h - 1, queue=queue[:-1], waited=waited - 1), queue[-1]) if queue else "start"
            if before not in counts:
                return float(top(h))
            n = counts[before].total()
            r = sum(m * R[h, x, a] for x, m in counts[before].items()) / n + c * np.sqrt(H * iota / n)
        else:
            r = R[h, s, a]
        if h == H - 1:
            return float(min(r, top(h)))
        if (tau, a) not in counts:
            return float(top(h))
        lost = Information(h + 1, t, s, (*queue, a), waited + 1)
        return float(min(r + ahead((tau, a), h, lost), top(h)))

    for tau in sorted(visited, key=lambda tau: -tau.h):
        V[tau] = max(q(tau, a) for a in range(problem.n_actions))
    if "start" not in counts:
        return V, float(H)
    return V, min(ahead("start", -1, Information.nothing_seen()), float(H))


@pytest.mark.parametrize("clip", ["H", "remaining"])
@pytest.mark.parametrize("c", [0.001, 0.02, 0.1])
def test_algorithm_3_is_its_recursion(clip: str, c: float) -> None:
    problem = tiny(11, H=4, seen=[0.7, 0.9, 0.5, 0.8])
    episodes = at_random(problem, 400, seed=2)
    learner = begun(LossUCBVI(c=c, clip=clip), problem)
    for played in episodes:
        learner.see(played)
    most = problem.mdp.rewards.max(axis=(1, 2))
    V, value = plainly(problem, episodes, c, learner.iota, lambda h: 4.0 if clip == "H" else most[h:].sum())
    assert learner.estimate == pytest.approx(value, abs=1e-12)
    assert len(V) == learner.sizes[0] - 1
    for tau, v in V.items():
        assert learner.value[learner.node(tau)] == pytest.approx(v, abs=1e-12)
    assert value < 4.0 or c > 0.01


def test_greedy_backs_up_what_was_met_and_values_never_rise() -> None:
    problem = tiny(11, H=4)
    learner = begun(LossUCBVI(replan="greedy"), problem)
    for played in at_random(problem, 200, seed=2):
        before = learner.value.copy()
        learner.see(played)
        met = [0, *(learner.node(played.information(h)) for h in range(4))]
        same = np.delete(np.arange(len(before)), met)
        assert np.array_equal(learner.value[same], before[same])
        old = [i for i in met[1:] if learner.nodes[i, 0] >= 0 and before[i] >= 0]
        assert (learner.value[old] <= before[old] + 1e-15).all()


@pytest.mark.parametrize("pooled", [False, True])
def test_the_bonus_oracle_plans_for_the_estimate_plus_the_bonus(pooled: bool) -> None:
    problem = chain()
    learner = begun(OptimisticPlanning(c=0.01, clip="none", replan="full", pooled=pooled), problem)
    clipped = begun(OptimisticPlanning(c=0.01, replan="full", pooled=pooled), problem)
    cut = 0
    for played in at_random(problem, 60, seed=4):
        learner.see(played)
        clipped.see(played)
        p, radius = (np.broadcast_to(x, (2, *x.shape[1:])) for x in learner.model())
        n = learner.counts.sum(axis=3)
        bonus = np.where(n > 0, np.minimum(3, 0.01 * 3 * np.sqrt(3 * learner.setting.log_term / np.maximum(n, 1))), 3)
        assert np.allclose(3 * radius, bonus)
        rewards = np.array(problem.mdp.rewards)
        rewards[:2] += bonus
        imagined = ol.ImpairedMDP(ol.TabularMDP(np.concatenate([p, p[:1]]), rewards, horizon=3), ol.Loss(seen=0.8))
        plan = ol.solve(imagined)
        assert learner.estimate == pytest.approx(min(plan.value, 3.0), abs=1e-10)
        assert float(ol.evaluate(imagined, learner.policy())) == pytest.approx(plan.value, abs=1e-10)
        assert clipped.estimate <= learner.estimate + 1e-10
        cut += clipped.estimate < learner.estimate - 1e-6
    assert cut > 0


def test_doubling_plans_when_a_count_has_doubled() -> None:
    problem = tiny()
    learner = begun(OptimisticPlanning(), problem)
    plans = 0
    for played in at_random(problem, 300, seed=9):
        before = learner.planned
        learner.see(played)
        n = learner.counts.sum(axis=3)
        assert (n < np.maximum(2 * learner.planned, 1)).all()
        plans += learner.planned is not before
    assert 10 < plans < 100


def test_the_furthest_point_of_a_ball() -> None:
    rng = np.random.default_rng(3)
    for _ in range(40):
        S = int(rng.integers(1, 6))
        p = rng.dirichlet(np.full(S, 0.5))
        radius, direction = rng.random() * rng.integers(0, 2), rng.normal(size=S).round(1)
        x = furthest(p, np.array(radius), direction)
        assert x.sum() == pytest.approx(1)
        assert x.min() >= 0
        assert np.abs(x - p).sum() / 2 <= radius + 1e-12
        # max x·d with x = p + up − down, up and down ≥ 0, Σ up = Σ down ≤ radius, down ≤ p
        found = linprog(
            -np.concatenate([direction, -direction]),
            A_ub=[[1.0] * S + [0.0] * S],
            b_ub=[radius],
            A_eq=[[1.0] * S + [-1.0] * S],
            b_eq=[0.0],
            bounds=[(0, None)] * S + [(0, x) for x in p],
        )
        assert x @ direction == pytest.approx(p @ direction - found.fun, abs=1e-9)


def random_counts(rng: np.random.Generator, problem: ol.ImpairedMDP) -> Any:
    """Counts as some episodes might have left them, with rows never visited."""
    H, S, A = problem.horizon, problem.n_states, problem.n_actions
    n = rng.poisson(rng.choice([1, 5, 50]), size=(H - 1, S, A))
    return np.array([rng.multinomial(n[i], problem.mdp.transitions[i]) for i in np.ndindex(n.shape)]).reshape(
        H - 1, S, A, S
    )


@pytest.mark.parametrize("seed", range(12))
def test_alternating_lies_between_its_policy_at_the_estimate_and_the_bonus_oracle(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 3, 2, 4)
    R = (mdp.rewards - mdp.rewards.min()) / (mdp.rewards.max() - mdp.rewards.min())
    problem = ol.ImpairedMDP(mdp.replace(rewards=R), ol.Loss(seen=rng.uniform(0.2, 1.0, size=4)))
    counts, c = random_counts(rng, problem), float(rng.choice([0.05, 0.2, 0.7]))
    found = {}
    for name in ("alternating", "bonus", "unclipped"):
        oracle, clip = (
            ("alternating" if name == "alternating" else "bonus"),
            ("none" if name == "unclipped" else "remaining"),
        )
        learner = OptimisticPlanning(oracle, c=c, clip=clip)
        found[name] = begun(learner, problem)
        learner.counts[:] = counts
        learner._plan()
    p = found["alternating"].model()[0]
    estimated = ol.ImpairedMDP(
        problem.mdp.replace(transitions=np.concatenate([p, p[:1]])), problem.channel, start=problem.start
    )
    own = float(ol.evaluate(estimated, found["alternating"].policy()))
    assert own <= ol.solve(estimated).value + 1e-12 <= found["alternating"].estimate + 2e-9
    assert found["alternating"].estimate <= found["bonus"].estimate + 1e-9
    assert found["bonus"].estimate <= found["unclipped"].estimate + 1e-12


def test_the_model_step_climbs_and_stays_in_the_balls() -> None:
    rng = np.random.default_rng(8)
    for _ in range(10):
        problem = tiny(int(rng.integers(1000)), H=4, seen=rng.uniform(0.2, 1.0, size=4))
        p = rng.dirichlet(np.ones(3), size=(3, 3, 2))
        radius = rng.random((3, 3, 2)) * 0.5
        table = rng.integers(2, size=(5, 3, 1, 4))
        policy, theta, best = ol.BlackoutPolicy(table, 2), p, -np.inf
        for _ in range(4):
            theta, value = best_model(
                table,
                theta,
                p,
                radius,
                np.array(problem.mdp.rewards),
                np.array(problem.arrival_probability),
                problem.initial,
            )
            moved = ol.ImpairedMDP(problem.mdp.replace(transitions=np.concatenate([theta, p[:1]])), problem.channel)
            assert float(ol.evaluate(moved, policy)) == pytest.approx(value, abs=1e-12)
            assert (np.abs(theta - p).sum(axis=-1) / 2 <= radius + 1e-12).all()
            assert value >= best - 1e-12
            best = value
        there = ol.ImpairedMDP(problem.mdp.replace(transitions=np.concatenate([p, p[:1]])), problem.channel)
        assert best >= float(ol.evaluate(there, policy)) - 1e-12


# -- what the theory says -------------------------------------------------------------------------------------------


def test_optimism_holds_with_the_constant_of_the_theory_and_fails_with_a_tiny_one() -> None:
    problem = tiny(5, S=2, H=2)
    best = ol.solve(problem).value
    most = float(problem.mdp.rewards.max(axis=(1, 2)).sum())
    for seed in range(3):
        run = learn(problem, OptimisticPlanning(c=algorithm_2.THEORY), 4000, seed=seed, every=4000)
        assert (run.estimates >= best).all()
        assert run.estimates[-1] < most - 0.1  # and it says something: it is below what the rewards alone say
    below = [
        learn(problem, OptimisticPlanning(c=1e-4), 300, seed=seed, every=300).estimates.min() < best
        for seed in range(5)
    ]
    assert sum(below) >= 3


@pytest.mark.parametrize("c", [algorithm_3.THEORY, 1e-4])
def test_every_q_of_algorithm_3_is_optimistic_with_the_constant_of_the_theory(c: float) -> None:
    problem = tiny(5, S=2, H=2)
    plan, below, told = ol.solve(problem), 0, 0
    truth = {info: plan.q(info) for info in everything_known(problem)}
    learner = begun(LossUCBVI(c=c, clip="H"), problem, episodes=20_000)
    for k, played in enumerate(at_random(problem, 20_000, seed=1)):
        learner.see(played)
        if k < 100 or k % 400 == 0 or k == 19_999:
            for info, best in truth.items():
                i = learner.node(info)
                if i < 0:
                    continue
                q = learner.q_values(i)
                below += int((q < best - 1e-12).sum())
                told += int((q < 2.0).sum()) if k == 19_999 else 0
    if c < 0.01:
        assert below > 0
    else:
        assert below == 0
        assert told > len(truth)  # at least half of the 2·14 Q are below H: the bonuses say something by then


def test_what_is_wanted_only_while_the_state_is_hidden_is_never_counted() -> None:
    problem = hidden_action(0.6)
    literal, bonus, three = (
        learn(problem, make(), 1500, seed=0, every=10)
        for make in (partial(OptimisticPlanning, "alternating"), OptimisticPlanning, LossUCBVI)
    )
    assert literal.gaps == pytest.approx(0.4 / 4)  # Proposition 6 is false: the same loss in every episode
    assert bonus.gaps[-500:].max() < 1e-12
    assert three.gaps[-500:].max() < 1e-12


def test_the_bonus_oracle_can_be_caught_too() -> None:
    R = np.zeros((3, 2, 3))
    R[1] = [[1.0, 0.0, 0.1], [0.0, 1.0, 0.1]]  # action 2 is never wanted where the state is seen
    mdp = ol.TabularMDP(np.full((3, 2, 3, 2), 0.5), R, horizon=3, initial=[1.0, 0.0])
    problem = ol.ImpairedMDP(mdp, ol.Loss(seen=[1.0, 0.5, 1.0]))
    run = learn(problem, OptimisticPlanning(c=0.05), 20_000, seed=1, every=50)
    assert run.gaps[-5000:] == pytest.approx(0.5 * 0.4)  # hidden, it plays action 2: 0.1 instead of 1/2
    assert learn(problem, LossUCBVI(), 2000, seed=1, every=50).gaps[-500:].max() < 1e-12


@each_learner
def test_near_optimal_on_a_tiny_process(make: Any) -> None:
    problem = tiny()
    runs = [learn(problem, make(), 1500, seed=seed, every=10) for seed in range(3)]
    random = learn(problem, UniformRandom(), 1500, seed=0, every=1500)
    assert np.mean([run.regret[-1] for run in runs]) < 0.3 * random.regret[-1]
    assert np.median([run.gaps[-100:].mean() for run in runs]) < 0.02 * random.best
