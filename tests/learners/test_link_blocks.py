"""`LinkLearner` behind a delay alone: blocks of episodes do what its three methods do, and what they plan is the plan of `solve` for the process they made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.learners import LearningRun, LinkLearner, default, learn
from oldlight.learners.episode_blocks import plays_blocks
from oldlight.learners.episode_loop import EpisodeLoop
from oldlight.model.channels import StochasticDelay

COLUMNS = ("values", "half_widths", "returns", "estimates", "starts", "start_values")


def process(seed: int, stationary: bool = True, S: int = 4, A: int = 2, H: int = 5) -> ol.TabularMDP:
    rng = np.random.default_rng([seed, 31])
    P = rng.dirichlet(0.4 * np.ones(S), size=(S, A) if stationary else (H, S, A))
    return ol.TabularMDP(P, rng.random((H, S, A)), horizon=H, initial=rng.dirichlet(np.ones(S)))


def by_state(S: int = 4, A: int = 2) -> StochasticDelay:
    """Interarrival times whose law depends on state and action."""
    law = np.random.default_rng(5).dirichlet(np.ones(3), size=(1, S, A))
    return StochasticDelay(law, first=np.array([0.5, 0.3, 0.2]))


def changing(H: int = 6) -> ol.TabularMDP:
    """The actions change their places at every step: counts must be taken apart."""
    P = np.stack([np.eye(2)[[[0, 1], [0, 1]]], np.eye(2)[[[1, 0], [1, 0]]]] * (H // 2))
    return ol.TabularMDP(0.9 * P + 0.05, np.array([[0.0, 0.0], [1.0, 1.0]]), horizon=H)


PROBLEMS = {
    "no delay": ol.ImpairedMDP(process(1), "none"),
    "delay 2, warm": ol.ImpairedMDP(process(2), "constant:2", start="warm"),
    "delay 2, cold, transitions by step": ol.ImpairedMDP(process(3, stationary=False), "constant:2"),
    "random delay": ol.ImpairedMDP(process(4), ol.BernoulliDelay(0.4, steps=2)),
    "random delay by state": ol.ImpairedMDP(process(5), by_state()),
    "late actions": ol.ImpairedMDP(process(6), "constant:1", actuation=1),
    "delay beyond the horizon": ol.ImpairedMDP(process(7, H=3), "constant:4"),
    "another law at every step": ol.ImpairedMDP(changing(), "constant:1"),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {"optimism": "best", "visits": "learnt", "sharpness": 10.0, "looks": 8, "pooled": "auto"},
    "best, given visits": {"optimism": "best", "visits": 0.15, "sharpness": 3.0, "pooled": "auto"},
    "prior": {},
    "prior, visits learnt, looks": {"visits": "learnt", "looks": 2},
    "bernstein, rewards estimated": {"optimism": "bernstein", "rewards": "estimated", "pooled": "auto"},
    "hoeffding": {"optimism": "hoeffding"},
    "posterior": {"optimism": "posterior", "pooled": "auto"},
    "posterior, three draws, rewards estimated": {"optimism": "posterior", "draws": 3, "rewards": "estimated"},
    "best, rewards estimated": {"optimism": "best", "rewards": "estimated"},
}


class OneByOne(LinkLearner):
    """The same learner with a method of its own: it is played by its three methods."""

    def see(self, episode: Any) -> None:
        super().see(episode)


def assert_same(one: LearningRun, other: LearningRun) -> None:
    for column in COLUMNS:
        a, b = getattr(one, column), getattr(other, column)
        assert (a is None and b is None) or np.array_equal(a, b, equal_nan=True), column


@pytest.mark.crossed("name", "options")
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_blocks_and_single_episodes_give_the_same_numbers(name: str, options: str) -> None:
    problem, learners = PROBLEMS[name], [make(**OPTIONS[options]) for make in (LinkLearner, OneByOne)]
    runs = [learn(problem, x, 120, seed=3, best=9.0, every=2, by_start=True, progress=False) for x in learners]
    assert_same(*runs)
    assert [plays_blocks(learner) for learner in learners] == [True, False]
    assert len(set(runs[0].returns.tolist())) > (3 if "another" in name else 10)
    assert len(set(runs[0].values.tolist())) > 1
    one, other = (learner.state() for learner in learners)
    assert one.keys() == other.keys()
    for key, array in one.items():
        np.testing.assert_array_equal(array, other[key], err_msg=key)
    if "another" in name and OPTIONS[options].get("pooled") == "auto":
        assert learners[0].counts.split.any()  # the test spoke within a block


@pytest.mark.crossed("name", "options")
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_plan_is_that_of_solve_for_the_process_that_was_made(name: str, options: str) -> None:
    """The lists that the sweep reads, as a process (with the state that was added), behind the same link: `solve` finds the learner's estimate."""
    problem, learner = PROBLEMS[name], LinkLearner(**OPTIONS[options])
    learn(problem, learner, 30, seed=4, best=9.0, every=30, progress=False)
    assert learner.table is not None
    model, H, A = learner.table.plan.model, problem.horizon, problem.n_actions
    S = len(model.initial)
    extra = S - problem.n_states
    assert extra == (learner.optimism in ("prior", "bernstein", "hoeffding"))
    P = np.zeros((H, S, A, S))
    for t in range(H):
        for pair in range(S * A):
            first = model.first[t, pair]
            for i in range(first, first + model.count[t, pair]):
                P[t, pair // A, pair % A, model.successor[i]] += model.probability[i]
    channel: Any = problem.channel
    if extra and "by state" in name:
        law = channel.law(H, problem.n_states, A).interarrival
        channel = StochasticDelay(np.concatenate([law, law[:, :1]], axis=1), first=channel.law(H, 4, A).first)
    initial = np.append(problem.initial, np.zeros(extra))
    mdp = ol.TabularMDP(P, np.array(model.rewards), horizon=H, initial=initial)
    start = "warm" if problem.warmup else None
    made = ol.ImpairedMDP(mdp, channel, start=start, actuation=problem.actuation, pending=problem.pending)
    plan = ol.solve(made, progress=False)
    assert learner.estimate == pytest.approx(plan.value, abs=1e-10)
    if not extra:
        assert ol.evaluate(made, learner.policy()).value == pytest.approx(plan.value, abs=1e-10)


@pytest.mark.parametrize("make", [default, LinkLearner, lambda: LinkLearner(optimism="posterior", pooled="auto")])
@pytest.mark.parametrize("name", ["random delay", "another law at every step"])
def test_a_run_is_continued_after_a_block(
    make: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted after some blocks; the rest is that of the run that was not interrupted, splits of counts included."""
    problem, path = PROBLEMS[name], tmp_path / "run.npz"
    whole = learn(problem, make(), 300, seed=5, best=9.0, progress=False)
    some, lengths = EpisodeLoop.some, []

    def interrupted(loop: EpisodeLoop) -> None:
        if len(lengths) == 6:
            raise KeyboardInterrupt
        before, loop._length = loop.run.done, 2 ** len(lengths)
        some(loop)
        lengths.append(loop.run.done - before)

    monkeypatch.setattr(EpisodeLoop, "some", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learn(problem, make(), 300, seed=5, best=9.0, checkpoint=path, checkpoint_every=0.0, progress=False)
    monkeypatch.undo()
    assert lengths == [1, 2, 4, 8, 16, 32]
    assert_same(whole, learn(problem, make(), 300, seed=5, best=9.0, checkpoint=path, progress=False))


def test_who_plays_blocks() -> None:
    def played(learner: Any, problem: ol.ImpairedMDP) -> bool:
        learn(problem, learner, 2, seed=0, best=9.0, progress=False)
        return plays_blocks(learner)

    assert played(default(), PROBLEMS["random delay"])
    assert not played(default(law="estimated"), PROBLEMS["random delay"])  # a chain of ages: a plan is a search
    assert not played(default(), ol.ImpairedMDP(process(1), "loss:0.2"))
    assert not played(default(), ol.ImpairedMDP(process(1), "packets:0=0.5,1=0.5"))
    assert not played(default(hidden_steps=2), PROBLEMS["random delay"])
