"""The protocol of a run, one episode or one block of episodes at a time: fix the policy, value it, play it, show the learner what it reveals, record.

`run.done` is raised at the very end of an episode or block: one that is interrupted leaves no trace in what counts as done.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.learners.base import current_policy, has_hook
from oldlight.learners.episode_blocks import SECONDS, EpisodeBlock, plays_blocks
from oldlight.learners.policy_evaluator import PolicyEvaluator
from oldlight.learners.run import LearningRun, valued
from oldlight.model.episode import Episode
from oldlight.model.policies import Policy
from oldlight.model.problem import ImpairedMDP
from oldlight.simulation import CHUNK


class EpisodeLoop:
    """The episodes of one run, in a `World`, or in a `LinkWorld` where the learner acts on the nodes of a link."""

    def __init__(self, world: Any, learner: Any, evaluator: PolicyEvaluator, run: LearningRun) -> None:
        self.world, self.learner, self.evaluator, self.run = world, learner, evaluator, run
        self._plays_itself = has_hook(learner, "play_episode")  # in compiled code of its own
        self._plays_blocks = plays_blocks(learner)
        self._length = 1  # episodes of the next block
        self._played: Policy | None = None  # the policy that `_player` plays
        self._player: Any = None
        self._chunk, self._draws = -1, None  # type: int, Any

    def some(self) -> None:
        """The next episode, or the next block of them."""
        if self._plays_blocks:
            self._block(self.run.done)
        else:
            self._one(self.run.done)

    # -- blocks ----------------------------------------------------------------------------------------------------

    def _block(self, k: int) -> None:
        """Episodes k, k + 1, .., as many as take about `SECONDS`."""
        run, learner = self.run, self.learner
        n = min(self._length, learner.episodes_per_block, run.episodes - k, CHUNK - k % CHUNK)
        if learner.policies_expire:
            n = 1 + int(np.argmax(np.append(valued(run.every, np.arange(k + 1, k + n)), True)))
        began = time.perf_counter()
        wanted = valued(run.every, np.arange(k, k + n))
        evaluation, now = 0.0, (run.values[k - 1], run.half_widths[k - 1])
        if learner.policies_expire and wanted[0]:
            now = self.evaluator.value(learner.policy(), k)
            evaluation = time.perf_counter() - began
            wanted[:] = False
        draws = self._random_numbers(k)
        block: EpisodeBlock = learner.play_block(self.world, draws, k % CHUNK, wanted)
        evaluation_began = time.perf_counter()
        self._value_block(k, block, now)
        evaluation += time.perf_counter() - evaluation_began
        run.returns[k : k + n], run.estimates[k : k + n] = block.returns, block.estimates
        took = time.perf_counter() - began
        run.seconds[k : k + n] = (took - evaluation) / n
        self._length = max(1, min(4 * n, int(SECONDS * n / took)))
        run.done = k + n

    def _value_block(self, k: int, block: EpisodeBlock, now: tuple[float, float]) -> None:
        """Values of the policies of a block; an episode whose policy is not valued takes the value before it, at first `now`."""
        run, n = self.run, len(block.returns)
        which = np.maximum.accumulate(block.which)
        before = self.evaluator.starts.copy()
        first = k + np.searchsorted(which, np.arange(len(block.policies)))
        values, half_widths, by_start = self.evaluator.values(block.policies, first.tolist())
        run.values[k : k + n] = np.append(now[0], values)[which + 1]
        run.half_widths[k : k + n] = np.append(now[1], half_widths)[which + 1]
        if run.starts is not None and run.start_values is not None:
            run.starts[k : k + n] = block.starts
            rows = np.concatenate([before[None], by_start])[which + 1]
            run.start_values[k : k + n] = rows[np.arange(n), block.starts]

    # -- one by one ------------------------------------------------------------------------------------------------

    def _one(self, k: int) -> None:
        """Episode k."""
        run, learner = self.run, self.learner
        wanted = bool(valued(run.every, k))
        began = time.perf_counter()
        draws = self._random_numbers(k).one(k % CHUNK)
        policy = current_policy(learner, self.world.problem.n_actions) if wanted or not self._plays_itself else None
        evaluation_began = time.perf_counter()
        if wanted and policy is not None:
            run.values[k], run.half_widths[k] = self.evaluator.value(policy, k)
        else:
            run.values[k], run.half_widths[k] = run.values[k - 1], run.half_widths[k - 1]
        evaluation = time.perf_counter() - evaluation_began
        returns, states, actions, arrivals = self._play(policy, draws)
        learner.see(_episode(self.world.problem, states[:, 0], actions[:, 0], arrivals[:, 0]))
        run.returns[k] = returns[0]
        if run.starts is not None and run.start_values is not None:
            run.starts[k], run.start_values[k] = states[0, 0], self.evaluator.starts[states[0, 0]]
        run.estimates[k] = getattr(learner, "estimate", np.nan)
        run.seconds[k] = time.perf_counter() - began - evaluation
        run.done = k + 1

    def _random_numbers(self, k: int) -> Any:
        """Those of the chunk of episodes that episode k belongs to."""
        if self._draws is None or k // CHUNK != self._chunk:
            self._chunk, self._draws = k // CHUNK, self.world.draw(self.run.seed, k // CHUNK)
        return self._draws

    def _play(self, policy: Policy | None, draws: Any) -> tuple[Any, ...]:
        """Returns, states, actions and arrivals of one played episode."""
        if self._plays_itself:
            played: tuple[Any, ...] = self.learner.play_episode(self.world, draws)
            return played
        assert policy is not None
        if self._player is None or policy is not self._played:
            self._played, self._player = policy, self.world.player(policy)
        returns, _, _, states, actions, arrivals = self.world.play(self._player, draws, 1)
        return returns, states, actions, arrivals


def _episode(problem: ImpairedMDP, states: Any, actions: Any, arrivals: Any) -> Episode:
    warmup, H = problem.warmup, problem.horizon
    paid = np.zeros(warmup + H)
    paid[warmup:] = problem.mdp.rewards[_steps(H), states[warmup:], actions[warmup:]]
    lost = arrivals == -1
    if lost.any():
        states, paid[lost] = np.where(lost, -1, states), np.nan
    return Episode(states.astype(np.int64), actions.astype(np.int64), arrivals.astype(np.int64), paid, warmup)


@lru_cache
def _steps(H: int) -> NDArray[np.int64]:
    return np.arange(H)
