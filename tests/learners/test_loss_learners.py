"""`OptimisticPlanning` and `LossUCBVI` (Algorithms 2 and 3): the protocol, optimism, learning."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

import oldlight as ol
from loss_cases import at_random, begun, episode, everything_known, tiny
from oldlight.learners import Episode, UniformRandom, learn
from oldlight.learners import loss_ucbvi as algorithm_3
from oldlight.learners import optimistic_planning as algorithm_2
from oldlight.learners.loss_ucbvi import LossUCBVI
from oldlight.learners.optimistic_planning import OptimisticPlanning
from oldlight.model.information import Information
from oldlight.paper.counterexamples import hidden_action
from repeats import repeats

LEARNERS: dict[str, Any] = {
    "bonus": OptimisticPlanning,
    "bonus, full": partial(OptimisticPlanning, replan="full", clip="none"),
    "alternating": partial(OptimisticPlanning, "alternating"),
    "multi-step": LossUCBVI,
    "multi-step, greedy": partial(LossUCBVI, replan="greedy"),
    "multi-step, as printed": partial(LossUCBVI, clip="H"),
}


each_learner = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)


# -- the protocol ---------------------------------------------------------------------------------------------------


@each_learner
def test_one_seed_decides_everything(make: Any) -> None:
    problem, n = tiny(), repeats(30, 60)
    one, same, other = (learn(problem, make(), n, seed=seed) for seed in (1, 1, 2))
    for name in ("values", "returns", "estimates"):
        assert np.array_equal(getattr(one, name), getattr(same, name))
    assert not np.array_equal(one.values, other.values)
    assert one.exact


@each_learner
def test_a_checkpoint_continues_to_the_identical_result(make: Any, tmp_path: Path) -> None:
    problem, file, n = tiny(), tmp_path / "run.npz", repeats(36, 60)
    whole = learn(problem, make(), n, seed=3)
    learner = make()
    see, met = learner.see, Counter[str]()

    def until_the_25th(played: Episode) -> None:
        met["episodes"] += 1
        if met["episodes"] == 25:
            raise KeyboardInterrupt
        see(played)

    learner.see = until_the_25th
    with pytest.raises(KeyboardInterrupt) as stop:
        learn(problem, learner, n, seed=3, checkpoint=file, checkpoint_every=0)
    assert len(stop.value.partial.values) == 24
    again = learn(problem, make(), n, seed=3, checkpoint=file)
    for name in ("values", "returns", "estimates"):
        assert np.array_equal(getattr(whole, name), getattr(again, name))


@each_learner
def test_an_action_for_everything_that_can_be_known(make: Any) -> None:
    problem = tiny()
    learner = begun(make(), problem)
    for played in [None, *at_random(problem, repeats(20, 40), seed=1)]:
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
    """Each seed begins a learner that has seen nothing. With 60 of them, an action that is never taken gives a
    p-value below 1e-6, one that is always taken a smaller one."""
    mdp = ol.TabularMDP(np.full((2, 3, 2), 0.5), np.zeros((2, 3)), horizon=2)
    problem = ol.ImpairedMDP(mdp, ol.Loss(seen=0.5))
    asked = (Information.nothing_seen(), Information.seen(1, 1))
    learners = [begun(make(), problem, seed=seed) for seed in range(repeats(60, 300))]
    chosen = Counter((info, learner.act(info)) for learner in learners for info in asked)
    for info in asked:
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
    assert (run.shortfalls >= -1e-9).all()


# -- what the theory says -------------------------------------------------------------------------------------------


def test_optimism_holds_with_the_constant_of_the_theory_and_fails_with_a_tiny_one() -> None:
    problem = tiny(5, S=2, H=2)
    best = ol.solve(problem).value
    most = float(problem.mdp.rewards.max(axis=(1, 2)).sum())
    n = repeats(2000, 4000)
    for seed in range(repeats(1, 3)):
        run = learn(problem, OptimisticPlanning(c=algorithm_2.THEORY), n, seed=seed, every=n)
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
    n = repeats(10_000 if c > 0.01 else 1_000, 20_000)  # bonuses say something after many; too small ones fail early
    learner = begun(LossUCBVI(c=c, clip="H"), problem, episodes=n)
    for k, played in enumerate(at_random(problem, n, seed=1)):
        learner.see(played)
        if k < 100 or k % 400 == 0 or k == n - 1:
            for info, best in truth.items():
                i = learner.node(info)
                if i < 0:
                    continue
                q = learner.q_values(i)
                below += int((q < best - 1e-12).sum())
                told += int((q < 2.0).sum()) if k == n - 1 else 0
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
    assert literal.shortfalls == pytest.approx(0.4 / 4)  # Proposition 6 is false: the same loss in every episode
    assert bonus.shortfalls[-500:].max() < 1e-12
    assert three.shortfalls[-500:].max() < 1e-12


def test_the_bonus_oracle_can_be_caught_too() -> None:
    R = np.zeros((3, 2, 3))
    R[1] = [[1.0, 0.0, 0.1], [0.0, 1.0, 0.1]]  # action 2 is never wanted where the state is seen
    mdp = ol.TabularMDP(np.full((3, 2, 3, 2), 0.5), R, horizon=3, initial=[1.0, 0.0])
    problem = ol.ImpairedMDP(mdp, ol.Loss(seen=[1.0, 0.5, 1.0]))
    run = learn(problem, OptimisticPlanning(c=0.05), 20_000, seed=1, every=50)
    assert run.shortfalls[-5000:] == pytest.approx(0.5 * 0.4)  # hidden, it plays action 2: 0.1 instead of 1/2
    assert learn(problem, LossUCBVI(), 2000, seed=1, every=50).shortfalls[-500:].max() < 1e-12


@each_learner
def test_near_optimal_on_a_tiny_process(make: Any) -> None:
    problem, n = tiny(), repeats(600, 1500)
    runs = [learn(problem, make(), n, seed=seed, every=10) for seed in range(repeats(1, 3))]
    random = learn(problem, UniformRandom(), n, seed=0, every=n)
    assert np.mean([run.regret[-1] for run in runs]) < 0.3 * random.regret[-1]
    assert np.median([run.shortfalls[-100:].mean() for run in runs]) < 0.02 * random.best


@pytest.mark.parametrize("link", ["loss:0.2", "constant:1+loss:0.2"])
def test_posterior_sampling_settles_every_corner_however_many(link: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that went where the policy goes was one of nodes, which this learner could not play."""
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8, n_states=4, n_actions=2, horizon=5), link)
    expected = ol.learn(problem, ol.learners.PosteriorSampling(), 6, seed=2)
    for name in ("ALONE", "CORNERS", "AT_ONCE", "HEAVY", "LIGHT"):
        monkeypatch.setattr(f"oldlight.planning.link_plan.{name}", 0)
    monkeypatch.setattr("oldlight.planning.link_solution.SEQUENCES", 0)
    found = ol.learn(problem, ol.learners.PosteriorSampling(), 6, seed=2, best=expected.best)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-12)
