"""Ctrl-C belongs to the caller: a run stops with its complete episodes attached, and its checkpoint is of the last one kept."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.learners import DelayedUCBVI, learn, learn_seeds
from oldlight.learners.run import LearningRun

PROBLEM = ol.ImpairedMDP(ol.instances.sensing_chain(0.8, horizon=4), ol.ConstantDelay(1))
BEST = ol.solve(PROBLEM).value


class InterruptedInTheMiddle(DelayedUCBVI):
    """Counts an episode and is interrupted before it has planned: half updated."""

    def see(self, episode: Any) -> None:
        if self.counts.episodes == 12:
            self.counts.add(episode)
            self.rng.random(5)
            raise KeyboardInterrupt
        super().see(episode)


InterruptedInTheMiddle.__name__ = "DelayedUCBVI"  # so that its checkpoint is of the same run


def test_an_interrupted_episode_leaves_no_trace(tmp_path: Path) -> None:
    """The interrupt comes in the middle of an episode, long before the next checkpoint would have been due."""
    path = tmp_path / "run.npz"
    whole = learn(PROBLEM, DelayedUCBVI(), 30, seed=3, best=BEST)
    with pytest.raises(KeyboardInterrupt) as stop:
        learn(PROBLEM, InterruptedInTheMiddle(), 30, seed=3, best=BEST, checkpoint=path, checkpoint_every=1e6)
    part = stop.value.partial
    assert (part.interrupted, part.done) == (True, 12)
    for column in ("values", "returns", "estimates"):
        assert np.array_equal(getattr(part, column), getattr(whole, column)[:12]), column
    assert 1 <= LearningRun.load(path).done <= 12
    rest = learn(PROBLEM, DelayedUCBVI(), 30, seed=3, best=BEST, checkpoint=path)
    for column in ("values", "returns", "estimates"):
        assert np.array_equal(getattr(rest, column), getattr(whole, column)), column


def test_an_interrupt_between_two_episodes_is_passed_on_with_the_run() -> None:
    def callback(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stop:
        learn(PROBLEM, DelayedUCBVI(), 30, seed=3, best=BEST, progress=callback)
    assert stop.value.partial.done == len(stop.value.partial.values) == 1


def test_a_loop_over_seeds_stops() -> None:
    """The second of four seeds is interrupted: no third one is begun."""
    made: list[DelayedUCBVI] = []

    def make() -> DelayedUCBVI:
        made.append(DelayedUCBVI() if len(made) != 1 else InterruptedInTheMiddle())
        return made[-1]

    with pytest.raises(KeyboardInterrupt) as stop:
        learn_seeds(PROBLEM, make, 20, seeds=range(4))
    assert [(run.seed, run.done, run.interrupted) for run in stop.value.partial] == [(0, 20, False), (1, 12, True)]


def test_workers_that_are_interrupted_end_the_others() -> None:
    """Each worker sees its own run only; the caller gets what all of them have done, and no further seed is begun."""
    with pytest.raises(KeyboardInterrupt) as stop:
        learn_seeds(PROBLEM, InterruptedInTheMiddle, 20, seeds=range(6), workers=2)
    assert 1 <= len(stop.value.partial) <= 2
    assert all(run.done <= 12 and run.interrupted for run in stop.value.partial)


def test_the_callers_signal_handlers_are_left_alone() -> None:
    handlers = []

    class Looks(DelayedUCBVI):
        def see(self, episode: Any) -> None:
            handlers.append(signal.getsignal(signal.SIGINT))
            super().see(episode)

    learn(PROBLEM, Looks(), 1, seed=0, best=BEST)
    assert handlers == [signal.getsignal(signal.SIGINT)]


def test_an_interrupt_while_the_optimum_is_computed_has_no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that is interrupted carries its own partial, which is not a run."""
    from oldlight.learners import loop

    def interrupted(problem: ol.ImpairedMDP) -> None:
        stop = KeyboardInterrupt()
        stop.partial = "a plan"  # type: ignore[attr-defined]
        raise stop

    monkeypatch.setattr(loop, "solve", interrupted)
    problem = ol.ImpairedMDP(ol.instances.center_chain(0.8), "constant:1")
    with pytest.raises(KeyboardInterrupt) as stop:
        ol.learners.learn_seeds(problem, ol.learners.UniformRandom, 5, seeds=range(2))
    assert stop.value.partial == []  # type: ignore[attr-defined]
    with pytest.raises(KeyboardInterrupt) as stop:
        ol.learn(problem, ol.learners.UniformRandom(), 5)
    assert stop.value.partial is None  # type: ignore[attr-defined]
