"""Algorithm 1 and its relatives under delay: counts and learning (contract: test_contract.py, optimism: test_optimism.py)."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from conftest import random_mdp
from oldlight.learners import LearningRun, UniformRandom, compare, learn, learn_seeds
from oldlight.learners.delayed_ucbvi import DelayedUCBVI
from oldlight.learners.posterior_sampling import PosteriorSampling


def small(seed: int = 0, H: int = 4) -> ol.TabularMDP:
    rng = np.random.default_rng([seed, 81])
    return ol.TabularMDP(rng.dirichlet(0.5 * np.ones(3), size=(3, 2)), rng.random((3, 2)), horizon=H)


PROBLEMS: dict[str, ol.ImpairedMDP] = {
    "none": ol.ImpairedMDP(small(), ol.ConstantDelay(0)),
    "constant, cold": ol.ImpairedMDP(small(1), ol.ConstantDelay(2)),
    "constant, warm": ol.ImpairedMDP(small(2), ol.ConstantDelay(1), start=ol.WarmStart()),
    "geometric": ol.ImpairedMDP(small(3), ol.GeometricDelay(0.6, first="same")),
    "late actions": ol.ImpairedMDP(small(5), ol.ConstantDelay(1), actuation=1, pending=(1,)),
}
LEARNERS: dict[str, Any] = {
    "hoeffding": partial(DelayedUCBVI, bonus="hoeffding"),
    "bernstein": DelayedUCBVI,
    "doubling": partial(DelayedUCBVI, planning="doubling"),
    "greedy": partial(DelayedUCBVI, planning="greedy"),
    "pooled": partial(DelayedUCBVI, pooled=True),
    "law estimated": partial(DelayedUCBVI, law="estimated"),
    "rewards estimated": partial(DelayedUCBVI, rewards="estimated"),
    "posterior": PosteriorSampling,
}


def test_a_learner_of_ones_own_in_a_few_lines() -> None:
    class NewestState:
        def start(self, setting: Any, rng: np.random.Generator) -> None:
            self.best = setting.rewards[0].argmax(axis=1)

        def act(self, info: ol.Information) -> int:
            return 0 if info.state is None else int(self.best[info.state])

        def see(self, episode: Any) -> None:
            assert episode.information(2).h == 2

    run = learn(PROBLEMS["constant, cold"], NewestState(), 5, seed=0)
    assert len(run.regret) == 5
    with pytest.raises(TypeError, match="has no state"):
        learn(PROBLEMS["constant, cold"], NewestState(), 5, seed=0, checkpoint="nowhere.npz", checkpoint_every=0)


def test_seeds_in_processes_are_the_same_as_one_after_the_other() -> None:
    problem = PROBLEMS["constant, warm"]
    serial = learn_seeds(problem, DelayedUCBVI, 40, seeds=[1, 2], workers=1)
    parallel = learn_seeds(problem, DelayedUCBVI, 40, seeds=[1, 2], workers=2)
    for a, b in zip(serial, parallel, strict=True):
        assert np.array_equal(a.values, b.values)
    assert not np.array_equal(serial[0].values, serial[1].values)


def test_runs_are_saved_loaded_and_drawn(tmp_path: Path) -> None:
    runs = learn_seeds(PROBLEMS["none"], DelayedUCBVI, 50, seeds=[1, 2, 3])
    runs[0].save(tmp_path / "run.npz")
    loaded = LearningRun.load(tmp_path / "run.npz")
    assert np.array_equal(loaded.regret, runs[0].regret)
    assert repr(loaded) == repr(runs[0])
    axes = compare(runs)
    assert axes.lines[0].get_ydata()[-1] == pytest.approx(np.mean([r.regret[-1] for r in runs]))
    assert len(axes.collections) == 1  # the band over seeds
    assert runs[0].plot().lines


def test_counts_from_hindsight() -> None:
    """Every transition and interarrival time of a played run, counted by hand."""
    problem = PROBLEMS["geometric"]
    learner = DelayedUCBVI(law="estimated")
    episodes = []
    see = learner.see
    learner.see = lambda episode: (episodes.append(episode), see(episode))[1]  # type: ignore[method-assign]
    learn(problem, learner, 200, seed=5)
    H, A = problem.horizon, problem.n_actions
    N = np.zeros((H, 3 * A, 3))
    waits = np.zeros((H, 3 * A, H + 1))
    for e in episodes:
        for t in range(H - 1):
            sa = e.states[t] * A + e.actions[t]
            N[t, sa, e.states[t + 1]] += 1
            late, later = e.arrivals[t] - t, e.arrivals[t + 1] - (t + 1)
            if later < H:
                waits[t, sa, later - late] += 1
    counts = learner.counts
    assert np.array_equal(counts.seen, N.sum(axis=-1))
    rebuilt = np.zeros_like(N)
    for k in range(3):
        t, sa = np.nonzero(counts.n_next > k)
        rebuilt[t, sa, counts.index[t, sa, k]] = counts.number[t, sa, k]
    assert np.array_equal(rebuilt, N)
    assert np.array_equal(counts.event, waits)
    p = learner.model.weight
    assert np.allclose(p.sum(axis=-1)[counts.seen > 0], 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_estimates_converge_at_the_stated_rate(seed: int) -> None:
    """√N·|p̂ − p| and √n·|θ̂ − θ| stay within five standard deviations of a fair coin, for every pair and wait."""
    problem = PROBLEMS["geometric"]
    learner = DelayedUCBVI(law="estimated", c=0.5)
    learn(problem, learner, 4_000, seed=seed, every=4_000)
    counts, model = learner.counts, learner.model
    P = np.array(problem.mdp.transitions).reshape(4, 6, 3)
    for t in range(3):
        for sa in range(6):
            n = counts.seen[t, sa]
            p = np.zeros(3)
            p[counts.index[t, sa, : counts.n_next[t, sa]]] = model.weight[t, sa, : counts.n_next[t, sa]]
            assert (np.abs(p - P[t, sa]) <= 5 * 0.5 / np.sqrt(max(n, 1)) + (n == 0)).all()
            at_risk = np.maximum(counts.risk[t, sa], 1)
            hazard = np.broadcast_to(problem.law.hazard, (4, 3, 2, 5))[t].reshape(6, 5)[sa]
            wrong = np.abs(model.theta[t, sa] - hazard)
            assert (wrong[counts.risk[t, sa] > 0] <= (5 * 0.5 / np.sqrt(at_risk))[counts.risk[t, sa] > 0]).all()


def test_the_printed_divisor_never_learns_where_nothing_arrives_at_once() -> None:
    """Δ_0 = 2 surely: the count at δ = 0 stays zero, its bonus never shrinks, and regret stays linear; at risk, it falls."""
    rng = np.random.default_rng(5)
    P = rng.dirichlet(0.2 * np.ones(3), size=(3, 2))
    mdp = ol.TabularMDP(P, np.eye(3)[:, :2] * 0.9, horizon=5)
    law = np.zeros((5, 1, 1, 3))
    law[..., 0] = 1.0
    law[0] = [0, 0, 1]
    problem = ol.ImpairedMDP(mdp, ol.StochasticDelay(law))
    K = 3_000
    at_risk = learn(problem, DelayedUCBVI(law="estimated"), K, seed=1, every=5)
    printed = learn(problem, DelayedUCBVI(law="estimated", divisor="printed"), K, seed=1, every=5)
    assert at_risk.shortfalls[-500:].mean() < 0.02 * at_risk.best
    assert printed.shortfalls[-500:].mean() > 5 * at_risk.shortfalls[-500:].mean()
    assert printed.shortfalls[-500:].mean() > 0.6 * printed.shortfalls[500:1000].mean()


@pytest.mark.crossed("who", "where")
@pytest.mark.parametrize(
    "who", ["hoeffding", "bernstein", "doubling", "greedy", "pooled", "law estimated", "rewards estimated", "posterior"]
)
@pytest.mark.parametrize("where", ["none", "constant, cold", "constant, warm", "geometric", "late actions"])
def test_every_learner_learns(who: str, where: str) -> None:
    problem = PROBLEMS[where]
    run = learn(problem, LEARNERS[who](), 2_500, seed=2, every=25)
    chance = learn(problem, UniformRandom(), 1, seed=0).shortfalls[0]
    assert run.shortfalls[-500:].mean() < 0.35 * chance
    if who != "greedy":
        assert run.shortfalls[-500:].mean() < 0.15 * chance


def test_dichotomy() -> None:
    """At delay d the learner reaches value 1, at d + 1 it stays at 1/2: exactly as the optimal values do."""
    for late, value in ((2, 1.0), (3, 0.5)):
        problem = ol.ImpairedMDP(ol.instances.dichotomy(2), ol.ConstantDelay(late))
        run = learn(problem, DelayedUCBVI(), 1_500, seed=1, every=10)
        assert run.best == value
        assert run.values[-1] == pytest.approx(value, abs=1e-12)


def test_discounted_processes_run_through_the_effective_horizon() -> None:
    rng = np.random.default_rng(3)
    mdp = ol.TabularMDP.discounted(
        rng.dirichlet(np.ones(3), size=(3, 2)), rng.random((3, 2)), discount=0.7, tolerance=0.05
    )
    problem = ol.ImpairedMDP(mdp, ol.ConstantDelay(1))
    run = learn(problem, DelayedUCBVI(pooled=True), 1_500, seed=1, every=15)
    assert run.shortfalls[-1] < 0.05 * run.best


def test_what_is_refused() -> None:
    problem = PROBLEMS["none"]
    with pytest.raises(ValueError, match=r"bonuses assume \[0, 1\]"):
        learn(
            ol.ImpairedMDP(small().replace(rewards=2 * np.ones((3, 2))), ol.ConstantDelay(0)), DelayedUCBVI(), 5, seed=0
        )
    with pytest.raises(ValueError, match="expected one of 'hoeffding', 'bernstein'"):
        DelayedUCBVI(bonus="freedman")
    with pytest.raises(ValueError, match="stationary"):
        learn(
            ol.ImpairedMDP(random_mdp(np.random.default_rng(1), 2, 2, 3), ol.ConstantDelay(1)),
            DelayedUCBVI(pooled=True),
            5,
            seed=0,
        )
    with pytest.raises(ValueError, match="loses observations"):
        learn(ol.ImpairedMDP(small(), ol.Loss(seen=0.5)), DelayedUCBVI(), 5, seed=0)
    with pytest.raises(ValueError, match="sampled"):
        learn(problem, DelayedUCBVI(), 5, seed=0, evaluate="guess")
    with pytest.raises(TypeError, match="not a learner"):
        learn(problem, object(), 5, seed=0)  # type: ignore[arg-type]
    sampled = learn(problem, DelayedUCBVI(), 3, seed=0, evaluate="sampled")
    assert not sampled.exact
    assert (sampled.half_widths > 0).all()


def test_doubling_plans_after_a_first_visit_and_when_the_number_at_risk_has_doubled() -> None:
    """With Δ ∈ {0, 3}, n(s, a, 3) grows apart from N(s, a): both are watched."""
    mdp = ol.TabularMDP(np.ones((1, 1, 1)), np.ones((1, 1)), horizon=6)
    problem = ol.ImpairedMDP(mdp, ol.StochasticDelay([0.97, 0, 0, 0.03]))
    learner = DelayedUCBVI(planning="doubling", pooled=True, law="estimated")
    plans: list[tuple[int, int]] = []
    plan = learner._plan

    def watched() -> None:
        plan()
        plans.append((int(learner.counts.seen.max()), int(learner.counts.risk[0, 0, 3])))

    learner._plan = watched  # type: ignore[method-assign]
    learner.see = partial(DelayedUCBVI.see, learner)  # type: ignore[method-assign]  # not in compiled blocks, so that it can be watched
    ol.learn(problem, learner, 400, seed=1, every=400, progress=False)
    assert plans[0] == (0, 0)
    assert plans[1][0] > 0  # after the first episode
    for (seen, risk), (more, at_risk) in pairwise(plans[1:]):
        assert more >= 2 * seen or at_risk >= max(2 * risk, 1)
    assert any(more < 2 * seen for (seen, _), (more, _) in pairwise(plans[1:]))  # the number at risk alone did it


@pytest.mark.parametrize("make", [DelayedUCBVI, partial(DelayedUCBVI, law="estimated"), PosteriorSampling])
def test_a_delay_so_long_that_nothing_is_seen(make: Any) -> None:
    mdp = random_mdp(np.random.default_rng(4), S=2, A=2, H=3)
    problem = ol.ImpairedMDP(mdp, ol.ConstantDelay(3))
    run = learn(problem, make(), 300, seed=1, progress=False)
    assert run.values[-1] == pytest.approx(
        run.best, abs=1e-9
    )  # hindsight still shows the process; the best plan is blind


def test_doubling_does_not_plan_every_episode() -> None:
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.ConstantDelay(1))
    learner = DelayedUCBVI(planning="doubling")
    plans = 0
    plan = learner._plan

    def counted() -> None:
        nonlocal plans
        plans += 1
        plan()

    learner._plan = counted  # type: ignore[method-assign]
    learn(problem, learner, 3000, seed=1, every=3000, progress=False)
    assert plans < 1500
