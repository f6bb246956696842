"""What every learner of the package promises (`oldlight.learners.base`), on every kind of link that it is made for.

A new learner is added to `MADE_FOR`, with variants of its options in `VARIANTS`. What it is made for it learns as promised, and
anything else it refuses before the first episode.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.learners import LearningRun, Setting, learn
from oldlight.planning import evaluation
from oldlight.registry import learner_names, learner_of
from oldlight.testing import check_learner
from repeats import is_thorough

K, STOP = (16, 6) if is_thorough() else (8, 3)  # episodes, and those before an interruption


def small(seed: int, H: int = 4) -> ol.TabularMDP:
    """Dense: every state can follow every other, so two of them differ in no possibility."""
    rng = np.random.default_rng([seed, 81])
    return ol.TabularMDP(0.9 * rng.dirichlet(0.5 * np.ones(3), size=(3, 2)) + 0.1 / 3, rng.random((3, 2)), horizon=H)


PROBLEMS: dict[str, ol.ImpairedMDP] = {
    "delay: none": ol.ImpairedMDP(small(0), ol.ConstantDelay(0)),
    "delay: constant, cold": ol.ImpairedMDP(small(1), ol.ConstantDelay(2)),
    "delay: constant, warm": ol.ImpairedMDP(small(2), ol.ConstantDelay(1), start=ol.WarmStart()),
    "delay: geometric": ol.ImpairedMDP(small(3), ol.GeometricDelay(0.6, first="same")),
    "delay: capped": ol.ImpairedMDP(small(4), ol.GeometricDelay(0.5).capped(2)),
    "delay: late actions": ol.ImpairedMDP(small(5), ol.ConstantDelay(1), actuation=1, pending=(1,)),
    "loss: cold": ol.ImpairedMDP(small(6), ol.Loss(seen=0.7)),
    "loss: warm, by step": ol.ImpairedMDP(small(7), ol.Loss(seen=[1.0, 0.5, 0.0, 0.9]), start=ol.WarmStart()),
    "both: constant": ol.ImpairedMDP(small(8), ol.Lossy(ol.ConstantDelay(1), rate=0.2)),
    "both: late actions": ol.ImpairedMDP(small(9), ol.Loss(rate=0.2), actuation=1, pending=(1,)),
}
MADE_FOR = {
    "AugmentedQLearning": ("delay",),
    "AugmentedUCBVI": ("delay",),
    "DelayedUCBVI": ("delay",),
    "LinkLearner": ("delay", "loss", "both"),  # and every other link: test_link_learner.py
    "LossUCBVI": ("loss",),
    "MemorylessQLearning": ("delay", "loss", "both"),
    "MemorylessUCBVI": ("delay", "loss", "both"),
    "OptimisticPlanning": ("loss",),
    "PosteriorSampling": ("delay", "loss", "both"),
    "UniformRandom": ("delay", "loss", "both"),
}
VARIANTS: dict[str, list[dict[str, Any]]] = {  # besides the defaults
    "AugmentedQLearning": [{"pooled": True}],
    "AugmentedUCBVI": [{"pooled": True}, {"bonus": "bernstein", "planning": "doubling"}],
    "DelayedUCBVI": [
        {"bonus": "hoeffding"},
        {"planning": "doubling"},
        {"planning": "greedy"},
        {"pooled": True},
        {"law": "estimated"},
        {"rewards": "estimated"},
        {"c": 1.0, "clip": "H", "law": "estimated", "bonus": "hoeffding"},
    ],
    "LinkLearner": [
        {"optimism": "bernstein", "pooled": True},
        {"optimism": "posterior", "draws": 3},
        {"pooled": "auto", "rewards": "estimated"},
        {"hidden_steps": 3, "optimism": "hoeffding"},
    ],
    "LossUCBVI": [{"replan": "greedy"}, {"clip": "H"}],
    "MemorylessQLearning": [{"aligned": True}],
    "MemorylessUCBVI": [{"aligned": True, "pooled": True}],
    "OptimisticPlanning": [{"replan": "full", "clip": "none"}, {"oracle": "alternating"}],
    "PosteriorSampling": [{"pooled": True}],
}
CASES = [
    pytest.param(name, options, where, id=f"{name}{options or ''} {where}")
    for name in MADE_FOR
    for options in [{}, *VARIANTS.get(name, [])]
    for where in PROBLEMS
    if where.partition(":")[0] in MADE_FOR[name]
]
ONCE_FOR = {name: "delay: geometric" if "delay" in kinds else "loss: cold" for name, kinds in MADE_FOR.items()}
ONE_OF_EACH = ("delay: geometric", "delay: constant, warm", "loss: cold", "both: constant")
FEWER = [case for case in CASES if case.values[1] == {} or case.values[2] in ONE_OF_EACH]  # variants: not everywhere
DAILY = [case for case in FEWER if case.values[1] == {} or case.values[2] in ("delay: geometric", "loss: cold")]
ONCE = [
    case
    for case in FEWER
    if case.values[2] in (ONCE_FOR[case.values[0]], *(() if case.values[1] else ("both: constant",)))
]  # what users can check by themselves too: variants behind one link each
if not is_thorough():
    CASES = DAILY


@cache
def best_of(where: str) -> float:
    return ol.solve(PROBLEMS[where]).value


def started(name: str, options: dict[str, Any], problem: ol.ImpairedMDP, seed: int = 0) -> tuple[Any, Any]:
    learner, rng = learner_of(name, **options), np.random.default_rng(seed)
    layout = ol.Layout.of(problem) if problem.arrival_probability is None else None
    learner.start(Setting.of(problem, K, 0.1, layout), rng)
    return learner, rng


def chances(answer: Any, n_actions: int) -> Any:
    """An action or the chances of all, as chances."""
    return np.eye(n_actions)[answer] if np.ndim(answer) == 0 else np.asarray(answer)


def answers(problem: ol.ImpairedMDP, learner: Any) -> Iterator[tuple[ol.Information, Any]]:
    """What the learner does wherever it can come by its own actions."""
    A = problem.n_actions
    policy = ol.FunctionPolicy(lambda info: chances(learner.act(info), A), A)
    for reached in evaluation.visits(problem, policy, 10**6):
        assert reached is not None
        for info in reached:
            yield info, chances(learner.act(info), A)


def other(problem: ol.ImpairedMDP) -> ol.ImpairedMDP:
    """The same problem with other transitions: what a learner is not told."""
    mdp = problem.mdp.replace(transitions=small(99).transitions[0])
    return ol.ImpairedMDP(
        mdp, problem.channel, start=problem.start, actuation=problem.actuation, pending=problem.pending
    )


def test_every_learner_is_here() -> None:
    assert set(MADE_FOR) == set(learner_names())


@pytest.mark.parametrize(("name", "options", "where"), CASES)
def test_contract(name: str, options: dict[str, Any], where: str, tmp_path: Path) -> None:
    problem, path = PROBLEMS[where], tmp_path / "run.npz"
    best = best_of(where)

    def run(learner: Any = None, seed: int = 3, **more: Any) -> LearningRun:
        return learn(problem, learner or learner_of(name, **options), K, seed=seed, best=best, **more)

    # every value is exact and none is above the best executable one; another seed is another run
    one = run()
    assert one.exact
    assert not np.array_equal(one.returns, run(seed=4, every=K).returns)
    assert (one.values <= best + 1e-10).all()

    # what the protocol hides is hidden; what it reveals is what was acted on, and was earned
    learner = learner_of(name, **options)
    see, seen = learner.see, []

    def spied(episode: Any) -> None:
        if len(seen) == STOP:
            raise KeyboardInterrupt
        seen.append(episode)
        see(episode)

    learner.see = spied
    with pytest.raises(KeyboardInterrupt) as interrupt:
        run(learner, checkpoint=path, checkpoint_every=0.0)
    part = interrupt.value.partial
    for k, episode in enumerate(seen):
        lost = episode.arrivals < 0
        assert (episode.states[lost] == -1).all()
        assert np.isnan(episode.rewards[lost]).all()
        assert ((episode.states[~lost] >= 0) & np.isfinite(episode.rewards[~lost])).all()
        if not lost.any():
            assert episode.rewards.sum() == pytest.approx(one.returns[k], abs=1e-12)
        assert problem.arrival_probability is not None or not lost.any()

    # one seed decides: stopped in the middle it goes on from its checkpoint, without pickle, to the identical run
    assert part.interrupted
    assert part.done == len(part.values) == STOP
    rest = run(checkpoint=path)
    for column in ("values", "returns", "estimates"):
        assert np.array_equal(getattr(rest, column), getattr(one, column), equal_nan=True), column
    with np.load(path, allow_pickle=False) as data:
        assert "generator" in data.files
    with pytest.raises(ValueError, match="another run"):
        run(seed=4, checkpoint=path)


@pytest.mark.parametrize(("name", "options", "where"), FEWER if is_thorough() else ONCE)
def test_between_two_episodes_the_answers_are_one_policy(
    name: str, options: dict[str, Any], where: str, fewer_episodes: None
) -> None:
    """And one seed gives one run, and a run continues from its checkpoint: the checks that users have too."""
    check_learner(learner_of(name, **options), PROBLEMS[where])


@pytest.mark.parametrize(("name", "options", "where"), CASES)
def test_a_learner_knows_the_transitions_from_episodes_alone(name: str, options: dict[str, Any], where: str) -> None:
    """Before the first episode it does the same whatever the transitions are; and for ever, where every state is lost."""
    problem = PROBLEMS[where]
    if problem.arrival_probability is not None:
        lost = ol.Loss(seen=0.0)
        channel = ol.Lossy(problem.channel.delay, loss=lost) if isinstance(problem.channel, ol.Lossy) else lost
        blind = ol.ImpairedMDP(
            problem.mdp, channel, start=problem.start, actuation=problem.actuation, pending=problem.pending
        )
        runs = [learn(x, learner_of(name, **options), K, seed=2, best=0.0, every=K) for x in (blind, other(blind))]
        assert np.array_equal(runs[0].estimates, runs[1].estimates, equal_nan=True)
        assert not np.array_equal(runs[0].returns, runs[1].returns)  # so the transitions did matter
    here, _ = started(name, options, problem)
    there, _ = started(name, options, other(problem))
    found = list(answers(problem, here))
    assert len(found) > problem.horizon
    for info, x in found:
        assert np.array_equal(x, chances(there.act(info), problem.n_actions)), info
    assert np.array_equal(getattr(here, "estimate", 0.0), getattr(there, "estimate", 0.0), equal_nan=True)


@pytest.mark.parametrize("where", PROBLEMS)
@pytest.mark.parametrize("name", MADE_FOR)
def test_what_a_learner_is_not_made_for_it_refuses_at_once(name: str, where: str) -> None:
    learner, problem = learner_of(name), PROBLEMS[where]
    seen: list[Any] = []
    see = learner.see
    learner.see = lambda episode: (seen.append(episode), see(episode))[1]
    if where.partition(":")[0] in MADE_FOR[name]:
        learn(problem, learner, 1, seed=0, best=0.0)
        assert len(seen) == 1
        return
    with pytest.raises(ValueError, match=r"loses observations|loss|delay alone|without delay"):
        learn(problem, learner, 5, seed=0, best=0.0)
    assert not seen


@pytest.mark.parametrize("channel", [ol.Lossy(ol.GeometricDelay(0.5), rate=0.2), ol.BurstyLoss(0.1, 0.5)], ids=repr)
def test_posterior_sampling_refuses_links_that_cannot_be_planned(channel: Any) -> None:
    problem = ol.ImpairedMDP(small(1), channel)
    with pytest.raises(ValueError, match="independent losses with a constant delay"):
        learn(problem, learner_of("PosteriorSampling"), 5, seed=0, best=1.0)


def test_posterior_sampling_learns_behind_a_late_and_lossy_link() -> None:
    problem = PROBLEMS["both: constant"]
    run = learn(problem, learner_of("PosteriorSampling", pooled=True), 500, seed=1, every=20)
    chance = learn(problem, learner_of("UniformRandom"), 1, seed=0).shortfalls[0]
    assert run.shortfalls[-100:].mean() < 0.05 * chance
    assert (
        abs(run.estimates[-100:].mean() - run.best) < 0.05 * run.best
    )  # the drawn process is near the true one by then


# -- what a run leaves -----------------------------------------------------------------------------------------------


def test_a_file_says_that_its_run_was_stopped(tmp_path: Path) -> None:
    learner = learner_of("UniformRandom")

    def stop(episode: Any) -> None:
        raise KeyboardInterrupt

    whole = learn(PROBLEMS["delay: none"], learner, 5, seed=1)
    learner.see = stop
    with pytest.raises(KeyboardInterrupt) as interrupt:
        learn(PROBLEMS["delay: none"], learner, 5, seed=1)
    part = interrupt.value.partial
    for run, stopped in ((whole, False), (part, True)):
        run.save(tmp_path / "run.npz")
        again = LearningRun.load(tmp_path / "run.npz")
        assert (again.interrupted, again.done) == (run.interrupted, run.done) == (stopped, 0 if stopped else 5)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("episodes", [1, 2, 3, 4, 64])
def test_growth_needs_two_octaves(episodes: int) -> None:
    """UniformRandom loses the same in every episode: R(2k) − R(k) ~ k¹."""
    run = learn(PROBLEMS["delay: constant, cold"], learner_of("UniformRandom"), episodes, seed=1)
    assert run.growth() == pytest.approx(1.0 if episodes >= 4 else np.nan, abs=1e-9, nan_ok=True)
