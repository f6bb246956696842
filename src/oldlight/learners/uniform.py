"""`UniformRandom`: every action equally likely, nothing learnt. What any learner must beat."""

from __future__ import annotations

from typing import Any

import numpy as np

from oldlight.learners.base import Learner, Setting
from oldlight.model.episode import Episode
from oldlight.model.information import Information
from oldlight.model.policies import FunctionPolicy


class UniformRandom(Learner):
    """Acts at random: what any learner must beat.

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.center_chain(0.8), "constant:1")
    >>> ol.learn(problem, ol.learners.UniformRandom(), 20)
    LearningRun(UniformRandom, 20 episodes, regret 56.4138)
    """

    def start(self, setting: Setting, rng: np.random.Generator) -> None:
        self.even = np.full(setting.n_actions, 1.0 / setting.n_actions)
        self._policy = FunctionPolicy(self.act, setting.n_actions)

    def policy(self) -> FunctionPolicy:
        """Always the same one, so that it is valued once."""
        return self._policy

    def act(self, info: Information) -> Any:
        return self.even

    def see(self, episode: Episode) -> None:
        """Nothing is learnt."""

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing to restore."""
