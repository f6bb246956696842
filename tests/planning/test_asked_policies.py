"""Policies that have to be asked: walked along exactly on what they reach, sampled (and it says so) where that is too much."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from conftest import random_mdp
from oldlight.learners import LossUCBVI, OptimisticPlanning, PosteriorSampling, UniformRandom, learn
from oldlight.learners.base import Setting
from oldlight.learners.policy_evaluator import QUESTIONS
from oldlight.model.information import beginnings, current, moves
from oldlight.model.policies import probabilities_at
from oldlight.planning.evaluation import play, visits
from oldlight.simulation import World
from oracle import random_law
from played import random_policy


def reachable(problem: ol.ImpairedMDP) -> Iterator[ol.Information]:
    """Every information state that some way of acting leads to."""
    now = {info for _, info in beginnings(problem)}
    for h in range(problem.horizon):
        yield from now
        if h + 1 < problem.horizon:
            now = {after for info in now for a in range(problem.n_actions) for _, after in moves(problem, info, a)}


def by_moves(problem: ol.ImpairedMDP, policy: Any) -> tuple[float, list[dict[ol.Information, float]]]:
    """The value and ρ_h of a policy from the definition: one information state after the other, rewards expected under the belief."""
    now = {info: p for p, info in beginnings(problem)}
    value, measures = 0.0, []
    for h in range(problem.horizon):
        measures.append(now)
        after: dict[ol.Information, float] = {}
        for info, weight in now.items():
            chances = probabilities_at(problem, policy, info)
            value += weight * float(current(problem, info) @ problem.mdp.rewards[h] @ chances)
            for a in np.flatnonzero(chances).tolist() if h + 1 < problem.horizon else []:
                for p, info2 in moves(problem, info, a):
                    after[info2] = after.get(info2, 0.0) + weight * float(chances[a]) * p
        now = after
    return value, measures


def problems(seed: int) -> dict[str, ol.ImpairedMDP]:
    rng = np.random.default_rng([seed, 77])
    mdp = random_mdp(rng, 3, 2, 5)
    first, inter = random_law(rng, 5, 3, 2, 3, kind="state_action")
    late = ol.Lossy(ol.ConstantDelay(2), seen=rng.random(5))
    return {
        "loss": ol.ImpairedMDP(mdp, ol.Loss(seen=rng.random(5))),
        "never and always seen": ol.ImpairedMDP(mdp, ol.Loss(seen=[0.5, 0.0, 1.0, 0.3, 0.0])),
        "late and lossy": ol.ImpairedMDP(mdp, late),
        "late, lossy, late actions": ol.ImpairedMDP(mdp, late, actuation=1, pending=[1]),
        "later than the episode": ol.ImpairedMDP(mdp, ol.Lossy(ol.ConstantDelay(5), rate=0.5)),
        "random delay": ol.ImpairedMDP(mdp, ol.StochasticDelay(inter, first=first)),
        "late actions": ol.ImpairedMDP(mdp, ol.StochasticDelay(inter, first=first), actuation=2),
        "warm": ol.ImpairedMDP(mdp, ol.ConstantDelay(2), start=ol.WarmStart()),
    }


@pytest.mark.parametrize("name", problems(0))
@pytest.mark.parametrize("seed", range(3))
def test_the_walk_in_groups_is_the_walk_by_definition(seed: int, name: str) -> None:
    problem = problems(seed)[name]
    drawn = random_policy(problem, seed)

    def sometimes_certain(info: ol.Information) -> Any:
        chances = drawn.probabilities(info)
        return int(chances.argmax()) if chances.max() > 0.7 else chances

    policy = ol.FunctionPolicy(sometimes_certain, 2)
    value, measures = by_moves(problem, policy)
    found = ol.evaluate(problem, policy)
    assert found.exact
    # rewards in [0, 1]: sums of at most 3 products, 5 steps deep, each rounded to 2^-53 of at most 5
    assert found.value == pytest.approx(value, abs=1e-13)
    assert found.size == sum(map(len, measures))
    for mine, theirs in zip(visits(problem, policy, 10**6), measures, strict=True):
        assert mine == pytest.approx(theirs, abs=1e-14)


class Randomises:
    """Answers with chances, and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def start(self, setting: Setting, rng: np.random.Generator) -> None:
        self.setting = setting

    def act(self, info: ol.Information) -> Any:
        self.asked += 1
        chances = np.full(self.setting.n_actions, 0.3 / self.setting.n_actions)
        chances[(info.state or 0) % self.setting.n_actions] += 0.7
        return chances

    def see(self, episode: Any) -> None: ...


class Decides(Randomises):
    """Answers with an action."""

    def act(self, info: ol.Information) -> int:
        return int(super().act(info).argmax())


def large(S: int, A: int, H: int) -> ol.ImpairedMDP:
    return ol.ImpairedMDP(random_mdp(np.random.default_rng(5), S, A, H), ol.Loss(seen=0.5))


def test_a_learner_that_randomises_behind_loss_is_sampled_and_says_so() -> None:
    problem, learner = large(4, 3, 8), Randomises()
    learner.start(Setting.of(problem, 3, 0.1, None), np.random.default_rng(1))
    exact = ol.evaluate(problem, ol.FunctionPolicy(learner.act, 3))
    assert exact.exact
    assert exact.size > 2 * QUESTIONS  # a walk to the end for each episode would have asked 3 times this
    learner = Randomises()
    run = learn(problem, learner, 3, seed=1)
    assert learner.asked <= 3 * (2 * QUESTIONS + problem.horizon)  # by the walk, in play, and in the episode itself
    assert run.sampled == 3
    assert not run.exact
    assert (run.half_widths > 0).all()
    assert "3 values sampled" in repr(run)
    assert (np.abs(run.values - exact.value) < 4 * run.half_widths / 1.96).all()
    assert len(set(run.values)) == 3  # each from episodes of its own, so that the errors do not add up


def test_a_policy_that_does_not_randomise_is_exact_however_much_it_reaches() -> None:
    problem = large(25, 2, 30)
    run = learn(problem, Decides(), 1, seed=1, best=30.0)
    found = ol.evaluate(problem, ol.FunctionPolicy(lambda info: (info.state or 0) % 2, 2))
    assert found.size > QUESTIONS
    assert run.exact
    assert run.sampled == 0
    assert run.values[0] == pytest.approx(found.value, abs=1e-13)


def test_a_walk_that_is_too_wide_is_played_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = large(4, 3, 5)
    policy = random_policy(problem, 1)
    exact = ol.evaluate(problem, policy)
    assert exact.exact
    monkeypatch.setattr("oldlight.planning.walk.LARGEST", 4 * 50)
    found = ol.evaluate(problem, policy, episodes=4_000)
    assert not found.exact
    assert abs(found.value - exact.value) < 4 * found.half_width / 1.96


def test_pieces_of_the_work_do_not_change_it(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problems(1)["random delay"]
    policy = random_policy(problem, 1)
    exact = ol.evaluate(problem, policy)
    monkeypatch.setattr("oldlight.planning.walk.LARGEST", 12)
    again = ol.evaluate(problem, policy)
    assert again.exact
    assert again.value == pytest.approx(exact.value, abs=1e-13)


class Stopped(UniformRandom):
    """Stops the run in the middle of its third episode, the first time."""

    stop = True

    def see(self, episode: Any) -> None:
        self.seen = getattr(self, "seen", 0) + 1
        if self.stop and self.seen == 3:
            raise KeyboardInterrupt


def test_a_sampled_run_continues_to_the_identical_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, file = large(4, 3, 8), tmp_path / "run.npz"
    with pytest.raises(KeyboardInterrupt) as stop:
        learn(problem, Stopped(), 5, seed=1, checkpoint=file, checkpoint_every=0)
    assert stop.value.partial.interrupted
    monkeypatch.setattr(Stopped, "stop", False)
    whole = learn(problem, Stopped(), 5, seed=1)
    continued = learn(problem, Stopped(), 5, seed=1, checkpoint=file)
    assert continued.sampled == whole.sampled == 5
    assert continued.values.tolist() == whole.values.tolist()
    assert continued.half_widths.tolist() == whole.half_widths.tolist()


def test_equal_returns_are_not_taken_for_certainty() -> None:
    """A reward that ten episodes do not show: their spread is 0, the half-width is not."""
    P = np.zeros((2, 1, 2))
    P[:, 0] = [[1 - 1e-9, 1e-9], [0, 1]]
    mdp = ol.TabularMDP(P, [[0.0], [1.0]], horizon=2, initial=[1, 0])
    policy = ol.FunctionPolicy(lambda info: 0, 1)
    found = play(ol.ImpairedMDP(mdp, ol.Loss(rate=0.5)), policy, 10, 0)
    assert found.value == 0
    assert found.half_width == pytest.approx(3 / 10 * 2)


@pytest.mark.parametrize("channel", [ol.Loss(rate=0.4), ol.Lossy(ol.ConstantDelay(1), rate=0.4)], ids=repr)
@pytest.mark.parametrize("make", [PosteriorSampling, LossUCBVI, OptimisticPlanning])
def test_policies_under_loss_answer_at_every_information_state(make: Any, channel: Any) -> None:
    problem = ol.ImpairedMDP(random_mdp(np.random.default_rng(3), 3, 2, 4), channel)
    if make is not PosteriorSampling and isinstance(channel, ol.Lossy):
        with pytest.raises(ValueError, match="alone, without delay"):
            learn(problem, make(), 1, seed=1)
        return
    learner = make()
    learn(problem, learner, 4, seed=1)
    again = make()
    again.start(Setting.of(problem, 4, 0.1, World(problem).layout), np.random.default_rng(9))
    again.restore({key: np.array(value) for key, value in learner.state().items()})
    infos = list(reachable(problem))
    assert len(infos) > 20
    for info in infos:
        chances = learner.policy().probabilities(info)
        assert sorted(chances.tolist()) == [0.0, 1.0]
        assert again.policy().probabilities(info).tolist() == chances.tolist()
        assert np.atleast_1d(learner.act(info)).tolist() in (chances.tolist(), [int(chances.argmax())])
    assert again.estimate == learner.estimate


@pytest.fixture
def my_learner(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    path = Path(__file__).parents[2] / "docs" / "guides" / "my_learner.py"
    spec = importlib.util.spec_from_file_location("my_learner", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "my_learner", module)
    spec.loader.exec_module(module)
    return module


def test_the_learner_of_the_guide_behind_loss(my_learner: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost state is no state, the start is the setting's, and what it plans is valued once."""
    mdp = random_mdp(np.random.default_rng(8), 4, 2, 5).replace(initial=[0.0, 1.0, 0.0, 0.0])
    problem = ol.ImpairedMDP(mdp, ol.Loss(rate=0.5))
    learner = my_learner.EpsilonGreedy(0.2)
    solved: list[ol.ImpairedMDP] = []
    monkeypatch.setattr(ol, "solve", lambda problem: solved.append(problem) or solve(problem))
    episodes: list[Any] = []
    see = learner.see
    learner.see = lambda episode: (episodes.append(episode), see(episode))
    run = learn(problem, learner, 20, seed=2)
    assert run.exact
    counts = np.zeros_like(learner.counts)
    for episode in episodes:
        for s, a, s2 in zip(episode.states[:-1], episode.actions[:-1], episode.states[1:], strict=True):
            if s >= 0 and s2 >= 0:
                counts[s, a, s2] += 1
    assert any((episode.states == -1).any() for episode in episodes)
    assert learner.counts.tolist() == counts.tolist()
    assert len(solved) == 5  # after 1, 2, 4, 8 and 16 episodes
    for planned in solved:
        assert planned.mdp.initial.tolist() == [0.0, 1.0, 0.0, 0.0]
    assert len(set(run.values)) <= 6
    held = learner.policy()
    see(episodes[0])
    assert learner.policy() is held


solve = ol.solve
