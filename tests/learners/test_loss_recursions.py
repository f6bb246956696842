"""`OptimisticPlanning` and `LossUCBVI` (Algorithms 2 and 3): counts and recursions against plain ones."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import oldlight as ol
from conftest import random_mdp
from loss_cases import at_random, begun, episode, everything_known, tiny
from oldlight.learners import Episode
from oldlight.learners.loss_ucbvi import LossUCBVI
from oldlight.learners.optimistic_planning import OptimisticPlanning, best_model, furthest
from oldlight.model.information import Information

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
