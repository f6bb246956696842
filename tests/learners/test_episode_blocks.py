"""Blocks of episodes do what the three methods do, episode by episode: the same numbers from the same seed."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.learners import DelayedUCBVI, LearningRun, learn
from oldlight.learners.episode_blocks import plays_blocks
from oldlight.learners.episode_loop import EpisodeLoop
from oldlight.model.information import Layout
from oldlight.planning.delay import DelayModel
from oldlight.planning.table_values import TableValues

COLUMNS = ("values", "half_widths", "returns", "estimates", "starts", "start_values")


def process(seed: int, stationary: bool = True, S: int = 4, A: int = 2, H: int = 5) -> ol.TabularMDP:
    rng = np.random.default_rng(seed)
    shape = (S, A) if stationary else (H, S, A)
    P = rng.dirichlet(0.4 * np.ones(S), size=shape)
    return ol.TabularMDP(P, rng.random((H, S, A)), horizon=H, initial=rng.dirichlet(np.ones(S)))


PROBLEMS = {
    "no delay": ol.ImpairedMDP(process(1), "constant:0"),
    "delay 2, warm": ol.ImpairedMDP(process(2), "constant:2", start="warm"),
    "delay 2, cold, transitions by step": ol.ImpairedMDP(process(3, stationary=False), "constant:2"),
    "random delay": ol.ImpairedMDP(process(4), ol.BernoulliDelay(0.4, steps=2)),
    "late actions": ol.ImpairedMDP(process(5), "constant:1", actuation=1),
    "delay beyond the horizon": ol.ImpairedMDP(process(6, H=3), "constant:4"),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "bernstein": {},
    "hoeffding": {"bonus": "hoeffding"},
    "doubling": {"planning": "doubling"},
    "greedy": {"planning": "greedy"},
    "everything estimated": {"law": "estimated", "rewards": "estimated", "planning": "doubling"},
    "printed": {"law": "estimated", "divisor": "printed", "clip": "H", "bonus": "hoeffding"},
    "pooled": {"pooled": True, "rewards": "estimated", "law": "estimated"},
}


class OneByOne(DelayedUCBVI):
    """The same learner with a method of its own: it is played by its three methods."""

    def see(self, episode: Any) -> None:
        super().see(episode)


def assert_same(one: LearningRun, other: LearningRun, n: int | None = None) -> None:
    for column in COLUMNS:
        a, b = getattr(one, column), getattr(other, column)
        assert (a is None and b is None) or np.array_equal(a[:n], b[:n], equal_nan=True), column


@pytest.mark.crossed("name", "options")
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_blocks_and_single_episodes_give_the_same_numbers(name: str, options: str) -> None:
    problem, chosen = PROBLEMS[name], OPTIONS[options]
    if chosen.get("pooled") and not problem.mdp.stationary_transitions:
        pytest.skip("pooled counts are for stationary transitions")
    by_start = options != "greedy"  # its policy has to be asked, once more for each start
    every = 7 if options in ("greedy", "doubling") else 1
    runs = [
        learn(problem, make(**chosen), 150, seed=3, best=9.0, every=every, by_start=by_start, progress=False)
        for make in (DelayedUCBVI, OneByOne)
    ]
    assert_same(*runs)
    assert len(set(runs[0].returns.tolist())) > 10  # something happened


OTHERS: dict[str, Any] = {
    "augmented UCBVI": lambda: ol.learners.AugmentedUCBVI(),
    "the same, pooled, Bernstein": lambda: ol.learners.AugmentedUCBVI(pooled=True, bonus="bernstein"),
    "the same, on doubling": lambda: ol.learners.AugmentedUCBVI(planning="doubling"),
    "augmented Q-learning": lambda: ol.learners.AugmentedQLearning(),
    "the same, pooled": lambda: ol.learners.AugmentedQLearning(pooled=True),
    "posterior sampling": lambda: ol.learners.PosteriorSampling(),
    "the same, pooled counts": lambda: ol.learners.PosteriorSampling(pooled=True),
}


def one_by_one(learner: Any) -> Any:
    """The same learner, played by its three methods."""
    see = learner.see
    learner.see = lambda episode: see(episode)
    return learner


@pytest.mark.crossed("name", "who")
@pytest.mark.parametrize("who", OTHERS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_blocks_of_the_other_learners_give_the_same_numbers(name: str, who: str) -> None:
    problem, make = PROBLEMS[name], OTHERS[who]
    changes = not problem.mdp.stationary_transitions or ("counts" in who and len(problem.law.hazard) > 1)
    if "pooled" in who and changes:
        pytest.skip("pooled counts are for transitions, and a delay law, that do not change with time")
    every, learners = (3 if "doubling" in who else 1), [make(), one_by_one(make())]
    runs = [
        learn(problem, learner, 150, seed=3, best=9.0, every=every, by_start=True, progress=False)
        for learner in learners
    ]
    assert_same(*runs)
    assert [plays_blocks(learner) for learner in learners] == [True, False]
    assert len(set(runs[0].returns.tolist())) > 10  # something happened
    assert len(set(runs[0].values.tolist())) > 1
    one, other = (learner.state() for learner in learners)
    assert one.keys() == other.keys()
    for key, array in one.items():
        np.testing.assert_array_equal(array, other[key], err_msg=key)


LOSSES: dict[str, tuple[ol.ImpairedMDP, dict[str, Any]]] = {
    "half lost": (ol.ImpairedMDP(process(1), "loss:0.5"), {}),
    "half lost, pooled": (ol.ImpairedMDP(process(2), "loss:0.5"), {"pooled": True}),
    "the first is always seen": (ol.ImpairedMDP(process(3), ol.Loss(seen=[1.0, 0.3, 0.6, 0.3, 0.3])), {}),
    "the first state is certain": (ol.ImpairedMDP(process(4).replace(initial=np.eye(4)[1]), "loss:0.7"), {}),
    "impossible successors": (ol.ImpairedMDP(process(5), "loss:0.4"), {"prior": 0.002}),
    "other transitions in every step": (ol.ImpairedMDP(process(6, stationary=False), "loss:0.4"), {}),
}


@pytest.mark.parametrize("room", [2**25, 2**13], ids=["as much room as it likes", "little room"])
@pytest.mark.parametrize("name", LOSSES)
def test_blocks_under_loss_give_the_same_numbers(name: str, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the search comes back in the middle of an episode, for more room or because it has to forget."""
    monkeypatch.setattr("oldlight.learners.search_memory.LEAST_ROOM", room)
    monkeypatch.setattr("oldlight.planning.settling.FEWEST", 4)
    monkeypatch.setattr("oldlight.planning.settling.ENOUGH", 1)
    problem, options = LOSSES[name]
    learners = [ol.learners.PosteriorSampling(**options), one_by_one(ol.learners.PosteriorSampling(**options))]
    runs = [learn(problem, learner, 60, seed=3, best=9.0, by_start=True, progress=False) for learner in learners]
    assert_same(*runs)
    assert [plays_blocks(learner) for learner in learners] == [True, False]
    assert len(set(runs[0].returns.tolist())) > 10  # something happened
    one, other = (learner.state() for learner in learners)
    for key, array in one.items():
        np.testing.assert_array_equal(array, other[key], err_msg=key)
    for queue in ((0, 0, 0), (1, 1, 1)):  # at least one of them is off the plan
        info = ol.Information.seen(t=0, state=1, queue=queue)
        assert learners[0].policy().action(info) == learners[1].policy().action(info)  # type: ignore[attr-defined]


def test_a_block_makes_room_for_the_cells_that_it_meets() -> None:
    """More cells than the first room holds, in blocks that are long before that."""
    problem = ol.ImpairedMDP(process(11, S=6, A=3, H=6), "constant:3")
    one, other = (
        learn(problem, learner, 600, seed=1, best=9.0, every=600, progress=False)
        for learner in (ol.learners.AugmentedUCBVI(), one_by_one(ol.learners.AugmentedUCBVI()))
    )
    assert_same(one, other)


LATE, LOSSY = PROBLEMS["delay 2, warm"], LOSSES["half lost"][0]


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (DelayedUCBVI, LATE),
        (ol.learners.AugmentedQLearning, LATE),
        (ol.learners.PosteriorSampling, LATE),
        (ol.learners.PosteriorSampling, LOSSY),
    ],
    ids=["DelayedUCBVI", "AugmentedQLearning", "PosteriorSampling", "PosteriorSampling, lost"],
)
def test_ctrl_c_within_a_block(
    make: Any, problem: ol.ImpairedMDP, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal comes while a block runs, and is heard when its compiled call ends: the block is not counted, the run so far is attached, a checkpoint is
    written, and the run that goes on from it is the one that was not interrupted."""
    path = tmp_path / "run.npz"
    whole = learn(problem, make(), 500, seed=5, best=9.0, progress=False)
    play, blocks = make.play_block, []

    def interrupted(learner: Any, *given: Any) -> Any:
        found = play(learner, *given)
        blocks.append(len(found.returns))
        if len(blocks) == 4:
            signal.raise_signal(signal.SIGINT)
        return found

    monkeypatch.setattr(make, "play_block", interrupted)
    with pytest.raises(KeyboardInterrupt) as stop:
        learn(problem, make(), 500, seed=5, best=9.0, checkpoint=path, checkpoint_every=0.0, progress=False)
    monkeypatch.undo()
    part = stop.value.partial  # type: ignore[attr-defined]
    assert part.interrupted
    assert 0 < part.done == sum(blocks[:3]) < 500
    assert_same(whole, part, part.done)
    assert LearningRun.load(path).done == part.done
    assert_same(whole, learn(problem, make(), 500, seed=5, best=9.0, checkpoint=path, progress=False))


def test_values_that_are_sampled_are_sampled_once_for_each_policy() -> None:
    """Planning on doubling keeps a policy over many episodes and blocks; its sampled value is drawn with the seed of its first episode."""
    problem = PROBLEMS["delay 2, warm"]
    one, other = (
        learn(problem, make(planning="doubling"), 60, seed=4, best=9.0, evaluate="sampled", every=2, progress=False)
        for make in (DelayedUCBVI, OneByOne)
    )
    assert_same(one, other)
    assert 1 < len(set(one.values.tolist())) < 30


def test_who_plays_blocks() -> None:
    problem = PROBLEMS["no delay"]

    def played(learner: Any) -> Any:
        learn(problem, learner, 2, seed=0, best=9.0, progress=False)
        return learner

    assert plays_blocks(played(DelayedUCBVI()))
    assert plays_blocks(played(DelayedUCBVI(planning="greedy")))
    assert not plays_blocks(played(OneByOne()))
    shown = played(DelayedUCBVI())
    shown.see = lambda episode: None
    assert not plays_blocks(shown)
    assert plays_blocks(played(ol.learners.UniformRandom()))

    class Passes:  # a learner around another
        def __init__(self, learner: Any) -> None:
            self._learner = learner

        def __getattr__(self, name: str) -> Any:
            return getattr(self._learner, name)

        def see(self, episode: Any) -> None:
            self._learner.see(episode)

    assert not plays_blocks(Passes(played(DelayedUCBVI())))


def test_a_run_is_continued_after_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted after some blocks, whose lengths differ from those of the other runs; the rest is that of the run that was not interrupted."""
    problem, path = PROBLEMS["random delay"], tmp_path / "run.npz"
    whole = learn(problem, DelayedUCBVI(), 400, seed=5, best=9.0, progress=False)
    some, lengths = EpisodeLoop.some, []

    def interrupted(loop: EpisodeLoop) -> None:
        if len(lengths) == 5:
            raise KeyboardInterrupt
        before, loop._length = loop.run.done, 2 ** len(lengths)
        some(loop)
        lengths.append(loop.run.done - before)

    monkeypatch.setattr(EpisodeLoop, "some", interrupted)
    with pytest.raises(KeyboardInterrupt) as stop:
        learn(problem, DelayedUCBVI(), 400, seed=5, best=9.0, checkpoint=path, checkpoint_every=0.0, progress=False)
    monkeypatch.undo()
    part = stop.value.partial  # type: ignore[attr-defined]
    assert (lengths, part.done) == ([1, 2, 4, 8, 16], 31)
    assert_same(whole, part, part.done)
    rest = learn(problem, DelayedUCBVI(), 400, seed=5, best=9.0, checkpoint=path, progress=False)
    assert_same(whole, rest)


# -- the values of tables --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
def test_values_of_tables_that_follow_each_other(name: str) -> None:
    """Each against `evaluate`, which walks forward along the policy: all different, a few entries different, none."""
    problem, rng = PROBLEMS[name], np.random.default_rng(8)
    layout, A = Layout.of(problem), problem.n_actions
    values = TableValues(DelayModel(problem, layout))
    table = rng.integers(A, size=layout.size)
    tables = [table.copy()]
    for changes in (layout.size, 3, 1, 1, 0):
        places = rng.integers(layout.size, size=changes)
        table[places] = rng.integers(A, size=changes)
        tables.append(table.copy())
    found = values.by_start(np.array(tables))
    for row, actions in zip(found, tables, strict=True):
        policy = ol.TablePolicy(layout, actions.astype(np.int64))
        walked = ol.evaluate(problem, ol.FunctionPolicy(policy.probabilities, A)).value
        assert problem.initial @ row == pytest.approx(walked, abs=1e-12)


def test_only_what_changed_is_computed() -> None:
    problem = PROBLEMS["delay 2, warm"]
    layout = Layout.of(problem)
    values = TableValues(DelayModel(problem, layout))
    table = np.zeros(layout.size, dtype=np.uint8)
    values.by_start(table[None])
    assert values.computed == values.cells
    values.by_start(np.array([table, table]))
    assert values.computed == values.cells
    table[0] = 1  # an information state of time 0: nobody reads it
    values.by_start(table[None])
    assert values.computed == values.cells + 1
