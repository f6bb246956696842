"""`UniformRandom`: every action equally likely, nothing learnt. What any learner must beat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oldlight.learners.base import Learner, Setting
from oldlight.learners.episode_blocks import EpisodeBlock
from oldlight.model.episode import Episode
from oldlight.model.information import Information
from oldlight.model.policies import FunctionPolicy, Policy
from oldlight.simulation.simulated_bytes import CHUNK

if TYPE_CHECKING:
    from oldlight.simulation import Draws, World


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
        self.episodes_per_block = CHUNK if setting.channel.has_delay_law else 0

    def policy(self) -> FunctionPolicy:
        """Always the same one, so that it is valued once."""
        return self._policy

    def act(self, info: Information) -> Any:
        return self.even

    def see(self, episode: Episode) -> None:
        """Nothing is learnt."""

    def play_block(self, world: World, draws: Draws, first: int, wanted: NDArray[np.bool_]) -> EpisodeBlock:
        """One policy for all: the episodes are played side by side."""
        n = len(wanted)
        returns, _, _, states, _, _ = world.play(world.player(self._policy), draws.some(first, n), n)
        policies: list[Policy] = [self._policy] if wanted.any() else []
        return EpisodeBlock(returns, states[0].astype(np.int64), np.full(n, np.nan), np.where(wanted, 0, -1), policies)

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing to restore."""
