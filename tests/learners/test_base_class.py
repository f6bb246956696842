"""The base class declares the optional methods; a learner has one only if it, or a class of its own, does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.learners import DelayedUCBVI, Learner, learn
from oldlight.learners.base import has_hook
from oldlight.registry import learner_names, learner_of

PROBLEM = ol.ImpairedMDP(ol.instances.sensing_chain(0.8, horizon=4), ol.ConstantDelay(1))
HOOKS = ("policy", "state", "restore", "play_episode")


class Inherits(Learner):
    def __init__(self, action: int = 0) -> None:
        self.action = action

    def start(self, setting: Any, rng: Any) -> None: ...

    def act(self, info: ol.Information) -> int:
        return self.action

    def see(self, episode: Any) -> None: ...


class Alone:
    start, act, see = Inherits.start, Inherits.act, Inherits.see
    action = 0


def test_a_learner_that_inherits_runs_as_one_that_does_not() -> None:
    runs = [learn(PROBLEM, learner, 5, seed=2, best=1.0) for learner in (Inherits(), Alone())]
    assert np.array_equal(runs[0].values, runs[1].values)
    assert np.array_equal(runs[0].returns, runs[1].returns)
    assert np.isnan(runs[0].estimates).all()


@pytest.mark.parametrize("learner", [Inherits(), Alone()])
def test_what_the_base_class_declares_is_not_a_hook(learner: Any, tmp_path: Any) -> None:
    assert not any(has_hook(learner, name) for name in HOOKS)
    with pytest.raises(TypeError, match=r"has no state\(\) and restore\(\)"):
        learn(PROBLEM, learner, 5, seed=2, best=1.0, checkpoint=tmp_path / "run.npz")


def test_hooks_of_a_class_or_of_an_object_count() -> None:
    learner = DelayedUCBVI(planning="greedy")
    assert all(has_hook(learner, name) for name in HOOKS[:3])
    assert not has_hook(learner, "play_episode")  # it is made in `start`
    learn(PROBLEM, learner, 1, seed=0, best=1.0)
    assert has_hook(learner, "play_episode")


def test_a_repr_names_the_options() -> None:
    assert repr(Inherits(1)) == "Inherits(action=1)"
    assert repr(DelayedUCBVI(planning="greedy", c=0.5)) == (
        "DelayedUCBVI(c=0.5, bonus='hoeffding', planning='greedy', pooled=False, law='known', rewards='known', "
        "divisor='at risk', clip='remaining')"
    )
    for name in learner_names():  # each is an expression that makes the same learner
        learner = learner_of(name)
        again = eval(repr(learner), {name: type(learner)})
        assert repr(again) == repr(learner)
