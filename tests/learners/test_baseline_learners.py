"""What people run instead of Algorithm 1, the augmented and the memoryless learners: contract, learning, refusals."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from baseline_cases import Random, problems, process, setting_of
from oldlight.learners import learn
from oldlight.learners.augmented_q_learning import AugmentedQLearning
from oldlight.learners.augmented_ucbvi import AugmentedUCBVI
from oldlight.learners.base import Episode
from oldlight.learners.memoryless import MemorylessQLearning, MemorylessUCBVI
from oldlight.model.information import Information
from repeats import repeats

AUGMENTED = [AugmentedUCBVI, AugmentedQLearning]


MEMORYLESS = [MemorylessUCBVI, MemorylessQLearning]


# -- every baseline keeps the contract --------------------------------------------------------------------------------


KINDS: list[tuple[type[Any], dict[str, Any]]] = [
    *((make, {"pooled": pooled}) for make in AUGMENTED for pooled in (False, True)),
    (AugmentedUCBVI, {"bonus": "bernstein", "planning": "doubling"}),
    *((make, {"pooled": p, "aligned": x}) for make in MEMORYLESS for p in (False, True) for x in (False, True)),
]


ALL = [pytest.param(partial(make, **how), id=f"{make.__name__} {how}") for make, how in KINDS]


@pytest.mark.crossed("make", "name")
@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("name", ["warm", "by pair", "late actions"])
def test_the_same_seed_gives_the_same_run_and_another_does_not(make: Any, name: str) -> None:
    one, again, other = (learn(problems(name), make(), 60, seed=s) for s in (3, 3, 4))
    for column in ("values", "returns", "estimates"):
        np.testing.assert_array_equal(getattr(one, column), getattr(again, column))
    assert not np.array_equal(one.values, other.values)


@pytest.mark.crossed("make", "name")
@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("name", ["warm", "by pair"])
def test_a_checkpoint_continues_to_the_same_result(make: Any, name: str, tmp_path: Path) -> None:
    problem, whole = problems(name), learn(problems(name), make(), 60, seed=5)
    learner = make()
    kind = type(learner)

    def see(self: Any, episode: Episode) -> None:
        if self.patience == 0:
            raise KeyboardInterrupt
        self.patience -= 1
        kind.see(self, episode)

    stopping = type(kind.__name__, (kind,), {"see": see, "patience": 25})
    learner.__class__ = stopping
    with pytest.raises(KeyboardInterrupt) as stop:
        learn(problem, learner, 60, seed=5, checkpoint=tmp_path / "run.npz")
    assert stop.value.partial.interrupted
    assert len(stop.value.partial.values) == 25
    rest = learn(problem, make(), 60, seed=5, checkpoint=tmp_path / "run.npz")
    for column in ("values", "returns", "estimates"):
        np.testing.assert_array_equal(getattr(whole, column), getattr(rest, column))


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("name", ["cold", "warm, long", "two or none", "late actions"])
def test_the_policy_answers_everywhere(make: Any, name: str) -> None:
    problem = problems(name)
    learner, played = make(), Random(problem, 30, seed=3)
    learner.start(played.setting, np.random.default_rng(1))
    before = learner.policy()
    assert learner.policy() is before
    kept = before.actions.copy()
    for episode in played.episodes:
        learner.see(episode)
    np.testing.assert_array_equal(before.actions, kept)  # a policy that was given out does not change
    for info in ol.Layout.of(problem):
        a = learner.policy().action(info)
        assert 0 <= a < problem.n_actions
        assert learner.act(info) == a
        if info.h < problem.actuation:
            assert a == problem.pending[info.h]
    assert float(ol.evaluate(problem, learner.policy())) <= ol.solve(problem).value + 1e-12


@pytest.mark.parametrize("make", ALL)
def test_estimates_begin_at_what_can_be_earned(make: Any) -> None:
    problem = problems("warm")
    learner = make()
    learner.start(setting_of(problem, 10), np.random.default_rng(0))
    assert learner.estimate == pytest.approx(problem.mdp.rewards.max(axis=(1, 2)).sum(), abs=1e-12)


@pytest.mark.parametrize("make", [*AUGMENTED, *MEMORYLESS])
def test_ties_are_broken_evenly(make: Any) -> None:
    """Before anything is seen all actions are equal: each is taken equally often (χ² with 4 degrees, p = 1e-6)."""
    mdp = ol.TabularMDP(np.full((4, 5, 4), 0.25), np.ones((4, 5)), horizon=3)
    problem = ol.ImpairedMDP(mdp, ol.ConstantDelay(1), start=ol.WarmStart())
    seen, later = np.zeros(5), np.zeros(5)
    for seed in range(40):
        learner = make()
        learner.start(setting_of(problem, 10), np.random.default_rng(seed))
        infos = [Information(0, -1, s, (q,)) for s in range(4) for q in range(5)]
        # a memoryless policy has one choice per state, whatever the queue
        for info in infos if make in AUGMENTED else infos[::5]:
            seen[learner.policy().action(info)] += 1
        learner.see(Random(problem, 1, seed).episodes[0])
        if make is AugmentedUCBVI:  # the met cell of time 0 has four actions that were not tried
            later[np.flatnonzero([learner.visited(i, a) for i in infos for a in range(5)])[0] % 5] += 1
    expected = seen.sum() / 5
    assert ((seen - expected) ** 2 / expected).sum() < 33.4
    if make is AugmentedUCBVI:
        assert ((later - 8) ** 2 / 8).sum() < 33.4


# -- they learn what they can -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize(("make", "c", "K"), [(AugmentedUCBVI, 0.01, 2000), (AugmentedQLearning, 0.002, 4000)])
@pytest.mark.parametrize("name", ["cold", "warm", "two or none"])
def test_augmented_learners_come_near_the_best(make: Any, c: float, K: int, name: str, pooled: bool) -> None:
    run = learn(problems(name), make(c, pooled=pooled), K, seed=1, every=20)
    assert run.shortfalls.min() >= -1e-12
    assert run.shortfalls[-K // 10 :].mean() < 0.02 * run.best


def blinking(H: int) -> ol.ImpairedMDP:
    """Memory matters: action 1 flips the state, action 0 keeps it, state 0 earns 1, and all is seen one step late."""
    P = np.zeros((2, 2, 2))
    P[[0, 1], 0, [0, 1]] = 1.0
    P[[0, 1], 1, [1, 0]] = 1.0
    mdp = ol.TabularMDP(P, np.array([[1.0, 1.0], [0.0, 0.0]]), horizon=H)
    return ol.ImpairedMDP(mdp, ol.ConstantDelay(1), start=ol.WarmStart())


def best_without_memory(H: int) -> float:
    """The best of all 4^H policies a_h = choice[h][s_{h−1}] of that process, by playing each from each start."""
    policies = np.arange(4**H)
    total = np.zeros(len(policies))
    for older in (0, 1):
        for action in (0, 1):
            o, s = np.full(len(policies), older), np.full(len(policies), older ^ action)
            for h in range(H):
                total += (s == 0) / 4
                o, s = s, s ^ (policies // 2 ** (2 * h + o) % 2)
    return float(total.max())


def test_memoryless_learners_stay_below_the_best_where_memory_matters() -> None:
    """Whoever sees the last state but not what was done since cannot know whether to flip."""
    H, n = 6, repeats(300, 600)
    problem, without = blinking(H), best_without_memory(H)
    best = ol.solve(problem).value
    # s_0 follows from what is known of the past; half of the time it is 1 and costs a step
    assert best == pytest.approx(H - 0.5, abs=1e-12)
    assert without < best - 0.4
    for learner in (
        MemorylessUCBVI(0.01), MemorylessUCBVI(0.01, pooled=True), MemorylessUCBVI(0.01, aligned=True),
        MemorylessQLearning(0.003), MemorylessQLearning(0.003, pooled=True), MemorylessQLearning(0.003, aligned=True),
    ):  # fmt: skip
        run = learn(problem, learner, n, seed=1, best=best)
        assert run.values.max() <= without + 1e-12
    for other in (AugmentedUCBVI(0.01), AugmentedQLearning(0.003)):
        assert learn(problem, other, n, seed=1, best=best).shortfalls[-100:].mean() < 0.05


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("pooled", [False, True])
def test_without_delay_all_ucbvi_are_one(aligned: bool, pooled: bool) -> None:
    """Fed the same episodes, the memoryless learner's plan is that of the augmented one at every time."""
    problem = problems("none")
    played = Random(problem, 60, seed=7)
    one, other = AugmentedUCBVI(0.02, pooled=pooled), MemorylessUCBVI(0.02, aligned=aligned, pooled=pooled)
    q, jin = MemorylessQLearning(0.02, aligned=aligned, pooled=pooled), AugmentedQLearning(0.02, pooled=pooled)
    for learner in (one, other, q, jin):
        learner.start(played.setting, np.random.default_rng(0))
    for episode in played.episodes:
        for learner in (one, other, q, jin):
            learner.see(episode)
        assert other.estimate == pytest.approx(one.estimate, abs=1e-9)
        assert q.estimate == pytest.approx(jin.estimate, abs=1e-9)


@pytest.mark.parametrize("make", MEMORYLESS)
@pytest.mark.parametrize("aligned", [False, True])
def test_memoryless_learners_run_under_loss(make: Any, aligned: bool) -> None:
    problem = ol.ImpairedMDP(process(12, 3, 2, 4), ol.Loss(seen=0.7))
    run = learn(problem, make(0.01, aligned=aligned), repeats(200, 400), seed=1)
    assert run.shortfalls[-50:].mean() < 0.5 * run.shortfalls[:20].mean()
    assert run.shortfalls.min() >= -1e-9


def test_memoryless_counts_by_hand() -> None:
    """What was on the screen under delay 1 (warm), and what was so: s = 0, 1, 1, 0 at steps −1..2, a = 1, 0, 1, 1."""
    problem = ol.ImpairedMDP(process(1, 2, 2, 3), ol.ConstantDelay(1), start=ol.WarmStart())
    states, actions = np.array([0, 1, 1, 0]), np.array([1, 0, 1, 1])
    episode = Episode(states, actions, np.array([0, 1, 2, 3]), np.zeros(4), 1)
    setting, R = setting_of(problem, 10), np.array(problem.mdp.rewards)
    screen, truth = MemorylessUCBVI(aligned=False), MemorylessUCBVI(aligned=True)
    for learner in (screen, truth):
        learner.start(setting, np.random.default_rng(0))
        learner.see(episode)
    # o_0, o_1, o_2 = 0, 1, 1 with a = 0, 1, 1; the rewards are those of s = 1, 1, 0
    assert screen.number[0, 0, 0, 1] == 1
    assert screen.number[1, 1, 1, 1] == 1
    assert screen.number.sum() == 2
    assert screen.paid[0, 0, 0] == R[0, 1, 0]
    assert screen.paid[2, 1, 1] == R[2, 0, 1]
    assert screen.paid_times.sum() == 3
    # s_0, s_1, s_2 = 1, 1, 0
    assert truth.number[0, 1, 0, 1] == 1
    assert truth.number[1, 1, 1, 0] == 1
    assert truth.number.sum() == 2
    pooled = MemorylessUCBVI(aligned=True, pooled=True)  # the step before step 0 is one of step 0
    pooled.start(setting, np.random.default_rng(0))
    pooled.see(episode)
    assert pooled.number[0, 0, 1, 1] == pooled.number[0, 1, 0, 1] == pooled.number[0, 1, 1, 0] == 1
    assert pooled.number.sum() == 3
    # Q-learning from the screen, the last step first; the first visit has α = 1, the second (H + 1)/(H + 2)
    b, most = 0.01 * math.sqrt(27 * setting.log_term), [sum(r.max() for r in R[h:]) for h in range(3)]
    q = MemorylessQLearning(0.01)
    q.start(setting, np.random.default_rng(0))
    q.see(episode)
    last = R[2, 0, 1] + b
    assert q.q[2, 1, 1] == pytest.approx(last, abs=1e-12)
    middle = R[1, 1, 1] + max(min(last, most[2]), most[2]) + b  # the other action was not met
    assert q.q[1, 1, 1] == pytest.approx(middle, abs=1e-12)
    q.see(episode)
    assert q.q[2, 1, 1] == pytest.approx(last / 5 + 4 / 5 * (R[2, 0, 1] + b / math.sqrt(2)), abs=1e-12)


# -- what they refuse -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [*AUGMENTED, *MEMORYLESS])
def test_refusals(make: Any) -> None:
    for c in (-1, math.nan, "much"):
        with pytest.raises(ValueError, match="c is"):
            make(c)
    with pytest.raises(ValueError, match="pooled=True needs transitions"):
        learn(problems("changing"), make(pooled=True), 5, seed=1)
    large = ol.TabularMDP(np.ones((1, 2, 1)), np.array([[2.0, 0.0]]), horizon=2)
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        learn(ol.ImpairedMDP(large, ol.ConstantDelay(1)), make(), 5, seed=1)


@pytest.mark.parametrize("make", AUGMENTED)
def test_augmented_learners_refuse_loss_and_tables_that_do_not_fit(make: Any) -> None:
    lossy = ol.ImpairedMDP(process(1, 2, 2, 3), ol.Loss(seen=0.5))
    with pytest.raises(ValueError, match="delay alone"):
        make().start(setting_of(lossy, 5), np.random.default_rng(0))
    long = ol.ImpairedMDP(ol.instances.sensing_chain(0.8, horizon=20), ol.ConstantDelay(18), start=ol.WarmStart())
    with pytest.raises(ol.TooLarge, match="information states"):
        make().start(setting_of(long, 5), np.random.default_rng(0))


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="bonus is 'none'"):
        AugmentedUCBVI(bonus="none")
    with pytest.raises(ValueError, match="planning is 'never'"):
        AugmentedUCBVI(planning="never")
