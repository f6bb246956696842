"""Blocks of the baselines and of the paper's algorithms for losses do what their three methods do, episode by episode: the same numbers from the same seed."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.learners import LearningRun, learn
from oldlight.learners.episode_blocks import plays_blocks
from oldlight.learners.loss_ucbvi import FIRST

COLUMNS = ("values", "half_widths", "returns", "estimates", "starts", "start_values")


def process(seed: int, stationary: bool = True, S: int = 4, A: int = 2, H: int = 5) -> ol.TabularMDP:
    rng = np.random.default_rng([seed, 77])
    P = rng.dirichlet(0.4 * np.ones(S), size=(S, A) if stationary else (H, S, A))
    return ol.TabularMDP(P, rng.random((H, S, A)), horizon=H, initial=rng.dirichlet(np.ones(S)))


LATE = {
    "no delay": ol.ImpairedMDP(process(1), "constant:0"),
    "delay 2, warm": ol.ImpairedMDP(process(2), "constant:2", start="warm"),
    "delay 2, transitions by step": ol.ImpairedMDP(process(3, stationary=False), "constant:2"),
    "random delay": ol.ImpairedMDP(process(4), ol.BernoulliDelay(0.4, steps=2)),
    "late actions": ol.ImpairedMDP(process(5), "constant:1", actuation=1),
    "delay beyond the horizon": ol.ImpairedMDP(process(6, H=3), "constant:4"),
}
LOST = {
    "half lost": ol.ImpairedMDP(process(7), "loss:0.5"),
    "half lost, transitions by step": ol.ImpairedMDP(process(8, stationary=False), "loss:0.5"),
    "the first is always seen": ol.ImpairedMDP(process(9), ol.Loss(seen=[1.0, 0.3, 0.6, 0.3, 0.3])),
    "one step": ol.ImpairedMDP(process(10, H=1), "loss:0.5"),
}
BOTH = {
    "late and lost": ol.ImpairedMDP(process(11), "constant:1+loss:0.3"),
    "lost in bursts": ol.ImpairedMDP(process(12, S=5, A=3), ol.BurstyLoss(0.2, 0.4)),
}
L = ol.learners
MEMORYLESS: dict[str, Any] = {
    "UCBVI": lambda: L.MemorylessUCBVI(),
    "UCBVI, pooled": lambda: L.MemorylessUCBVI(pooled=True),
    "UCBVI, aligned": lambda: L.MemorylessUCBVI(aligned=True),
    "UCBVI, aligned, pooled": lambda: L.MemorylessUCBVI(aligned=True, pooled=True),
    "Q": lambda: L.MemorylessQLearning(),
    "Q, pooled": lambda: L.MemorylessQLearning(pooled=True),
    "Q, aligned": lambda: L.MemorylessQLearning(aligned=True),
    "Q, aligned, pooled": lambda: L.MemorylessQLearning(aligned=True, pooled=True),
    "at random": lambda: L.UniformRandom(),
}
FOR_LOSS: dict[str, Any] = {
    "LossUCBVI": lambda: L.LossUCBVI(),
    "LossUCBVI, greedy": lambda: L.LossUCBVI(replan="greedy", clip="H"),
    "OptimisticPlanning": lambda: L.OptimisticPlanning(),
    "OptimisticPlanning, pooled, not clipped": lambda: L.OptimisticPlanning(pooled=True, clip="none"),
    "OptimisticPlanning, always": lambda: L.OptimisticPlanning(replan="full"),
    "OptimisticPlanning, alternating": lambda: L.OptimisticPlanning("alternating", starts=2),
}


def check(problem: ol.ImpairedMDP, make: Any, episodes: int, **options: Any) -> list[LearningRun]:
    """The same run twice: in blocks, and by the three methods."""
    learners = [make(), make()]
    see = learners[1].see
    learners[1].see = lambda episode: see(episode)
    runs = [learn(problem, learner, episodes, seed=3, best=9.0, progress=False, **options) for learner in learners]
    assert [plays_blocks(learner) for learner in learners] == [True, False]
    for column in COLUMNS:
        a, b = (getattr(run, column) for run in runs)
        assert (a is None and b is None) or np.array_equal(a, b, equal_nan=True), column
    one, other = (learner.state() for learner in learners)
    assert one.keys() == other.keys()
    for key, array in one.items():
        np.testing.assert_array_equal(array, other[key], err_msg=key)
    info = ol.Information.nothing_seen(()) if problem.warmup == 0 else None
    if info is not None:
        assert np.array_equal(learners[0].act(info), learners[1].act(info))
    return runs


@pytest.mark.crossed("name", "who")
@pytest.mark.parametrize("who", MEMORYLESS)
@pytest.mark.parametrize("name", [*LATE, *LOST, *BOTH])
def test_learners_on_the_newest_observation(name: str, who: str) -> None:
    problem = (LATE | LOST | BOTH)[name]
    if "pooled" in who and not problem.mdp.stationary_transitions:
        pytest.skip("pooled counts are for stationary transitions")
    every = 1 if name in LATE else 20  # elsewhere the policy is asked wherever it leads
    run = check(problem, MEMORYLESS[who], 100, every=every, by_start=name in LATE)[0]
    assert len(set(run.returns.tolist())) > 5  # something happened
    if who != "at random" and problem.horizon > 1:
        assert len(set(run.estimates.tolist())) > 5


@pytest.mark.parametrize("who", FOR_LOSS)
@pytest.mark.parametrize("name", LOST)
def test_learners_for_losses(name: str, who: str) -> None:
    problem = LOST[name]
    if "pooled" in who and not problem.mdp.stationary_transitions:
        pytest.skip("pooled counts are for stationary transitions")
    run = check(problem, FOR_LOSS[who], 40 if "alternating" in who else 100, by_start=True)[0]
    assert len(set(run.returns.tolist())) > 5
    if problem.horizon > 1:
        assert len(set(run.values.tolist())) > 1


def test_a_block_makes_room_for_what_it_meets() -> None:
    """More nodes than the first room has."""
    learner = L.LossUCBVI(replan="greedy")
    problem = ol.ImpairedMDP(process(13, S=5, A=3, H=9), "loss:0.8")
    learn(problem, learner, 400, seed=3, best=9.0, every=400, progress=False)
    assert learner.sizes[0] > FIRST
    check(problem, lambda: L.LossUCBVI(replan="greedy"), 400, every=400)


@pytest.mark.parametrize(
    ("problem", "make", "every"),
    [
        (LATE["delay 2, warm"], MEMORYLESS["Q"], 2),
        (LOST["half lost"], MEMORYLESS["UCBVI, pooled"], 3),
        (LOST["half lost"], FOR_LOSS["LossUCBVI, greedy"], 2),
        (LOST["half lost"], FOR_LOSS["OptimisticPlanning, pooled, not clipped"], 2),
        (LOST["half lost"], MEMORYLESS["at random"], 2),
    ],
    ids=["Q", "UCBVI", "LossUCBVI", "OptimisticPlanning", "at random"],
)
def test_a_policy_that_stays_the_same_is_sampled_once(problem: ol.ImpairedMDP, make: Any, every: int) -> None:
    """Its sampled value is drawn with the seed of its first episode, in blocks and one by one."""
    check(problem, make, 30, every=every, evaluate="sampled")


@pytest.mark.parametrize("who", ["LossUCBVI", "OptimisticPlanning"])
def test_ctrl_c_within_a_block(who: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run that goes on from the checkpoint is the one that was not interrupted."""
    problem, make, path = LOST["half lost"], FOR_LOSS[who], tmp_path / "run.npz"
    whole = learn(problem, make(), 200, seed=5, best=9.0, progress=False)
    play, blocks = type(make()).play_block, []

    def interrupted(learner: Any, *given: Any) -> Any:
        found = play(learner, *given)
        blocks.append(len(found.returns))
        if len(blocks) == 3:
            signal.raise_signal(signal.SIGINT)
        return found

    monkeypatch.setattr(type(make()), "play_block", interrupted)
    with pytest.raises(KeyboardInterrupt) as stop:
        learn(problem, make(), 200, seed=5, best=9.0, checkpoint=path, checkpoint_every=0.0, progress=False)
    monkeypatch.undo()
    part = stop.value.partial  # type: ignore[attr-defined]
    assert 0 < part.done == sum(blocks[:2]) < 200
    rest = learn(problem, make(), 200, seed=5, best=9.0, checkpoint=path, progress=False)
    for column in ("values", "returns", "estimates"):
        assert np.array_equal(getattr(whole, column), getattr(rest, column)), column
