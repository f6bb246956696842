"""`oldlight.testing` finds what is wrong with a learner or a policy, and passes what is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.learners import DelayedUCBVI, Learner
from oldlight.testing import check_learner, check_policy

PROBLEM = ol.ImpairedMDP(ol.instances.sensing_chain(0.8, horizon=4), ol.ConstantDelay(1))


class Steady(Learner):
    """Does what it did most often, and can be saved."""

    def start(self, setting: Any, rng: Any) -> None:
        self.setting, self.rng, self.counts = setting, rng, np.zeros(setting.n_actions)

    def act(self, info: ol.Information) -> Any:
        return int(self.counts.argmax())

    def see(self, episode: Any) -> None:
        np.add.at(self.counts, episode.actions, 1.0)
        self.counts += self.rng.random(len(self.counts))
        self.estimate = float(self.counts.sum())

    def state(self) -> dict[str, Any]:
        return {"counts": self.counts}

    def restore(self, state: dict[str, Any]) -> None:
        self.counts = np.array(state["counts"])


class Forgets(Steady):
    def restore(self, state: dict[str, Any]) -> None: ...


class Unseeded(Steady):
    def see(self, episode: Any) -> None:
        self.counts = np.random.default_rng().random(len(self.counts))


class Disagrees(Steady):
    def policy(self) -> Any:
        return ol.FunctionPolicy(lambda info: 1 - self.act(info), self.setting.n_actions)


class Counts(Steady):
    """Answers the action 2 where there are two."""

    def act(self, info: ol.Information) -> Any:
        return self.setting.n_actions


def test_what_is_right_passes() -> None:
    check_learner(Steady())
    check_learner(DelayedUCBVI(planning="greedy"), PROBLEM)
    check_policy(ol.solve(PROBLEM).policy, PROBLEM)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (Forgets(), r"Forgets: a run that continues from state\(\) and restore\(\) differs: estimates\["),
        (Unseeded(), "Unseeded: two runs with the same seed differ"),
        (Disagrees(), "Disagrees: between two episodes act.* expected one policy"),
        (Counts(), "2"),
    ],
)
def test_what_is_wrong_is_named(learner: Any, message: str) -> None:
    with pytest.raises((AssertionError, ValueError), match=message):
        check_learner(learner)


def test_a_policy_that_changes_is_named() -> None:
    class Wavers:
        calls = 0

        def probabilities(self, info: ol.Information) -> Any:
            self.calls += 1
            return np.eye(PROBLEM.n_actions)[int(self.calls % 3 == 0)]

    with pytest.raises(AssertionError, match="change from one call to the next"):
        check_policy(Wavers(), PROBLEM)
