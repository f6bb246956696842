"""Optimistic Q-learning on the augmented table (Jin et al. 2018, Is Q-learning Provably Efficient?,
https://arxiv.org/abs/1807.03765, UCB-Hoeffding): no model, one number per pair.

Cells, rewards and ties are those of `learners.augmented_ucbvi`: one cell per information state τ_h, the root while
nothing has been seen, and after the last action one per (s_t, what is left of the queue); steps t and times h are
0..H−1; the reward of step t is paid where step t is the newest visible one and has just arrived. After an episode, for
each of its moves (τ_h, a, τ_{h+1}), the last first, so that what is learnt at the end reaches the beginning at once,

    n = N(τ, a) + 1,     α = (H + 1)/(H + n),     b = c·√(H³·ι/n),     ι = log(S·A·H·K/γ),
    Q_h(τ, a) ← (1 − α)·Q_h(τ, a) + α·( 1{δ=0}·r_t(s_t, head) + V_{h+1}(τ_{h+1}) + b ),
    V_h(τ) = max_a min( M_τ, Q_h(τ, a) ),

and the same for G(s, q1..qj), where there is nothing to choose: G(s, q1) = r_{H−1}(s, q1) is known, and at the last
time Q(τ, a) is G of the queue with a at its end. M_τ is what can still be earned, and the value of a pair that was
never met. Where by the support of the delay law nothing can arrive yet, Q is V of what follows, without bonus.
(Jin et al. go through an episode forwards; their optimism rests on V* alone, so the order is free. They clip at H.)

pooled: for stationary transitions, every move is taken as one of every time h at which its cell can stand, with the
reward of that time, and N counts them all: each sample serves H tables of values.

**The default c** was chosen by docs/scripts/tune.py, like that of every learner here; docs/learning.md has the figures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.learners.augmented_table import AugmentedLearner, AugmentedTable, grown
from oldlight.learners.base import Setting
from oldlight.learners.episode_blocks import EpisodeBlock, episodes_that_fit
from oldlight.model.episode import Episode

if TYPE_CHECKING:
    from oldlight.simulation import Draws, World


class AugmentedQLearning(AugmentedLearner):
    """Optimistic Q-learning on the augmented table; see the module's text.

    Parameters
    ----------
    c : float
        Bonus constant, ≥ 0.
    pooled : bool
        For stationary transitions: each sample serves the tables of all times.

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.center_chain(0.8, n_states=4, n_actions=2), "constant:1")
    >>> ol.learn(problem, ol.learners.AugmentedQLearning(), 20).done
    20
    """

    def __init__(self, c: float = 0.005, *, pooled: bool = False) -> None:
        self.c = checks.at_least("c", c, 0)
        self.pooled = bool(pooled)

    def start(self, setting: Setting, rng: np.random.Generator) -> None:
        self.setting = setting
        self.table = AugmentedTable(setting, rng, self.pooled, type(self).__name__)
        A = setting.n_actions
        self.visits = np.zeros((0, A), dtype=np.int64)
        self.q = np.zeros((setting.horizon if self.pooled else 1, 0, A))  # [h, cell, a] or [0, cell, a]
        self.left = np.zeros(0)  # [cell]: G
        self.times = np.zeros(len(self.table.moves), dtype=np.int64)
        self.estimate = float(self.table.rules.remaining[0])
        self._policy = self.table.policy()
        self.episodes_per_block = episodes_that_fit(len(self.table.actions), self.table.actions.dtype)
        self._make_room()

    # -- the three parts of an episode ------------------------------------------------------------------------------

    def play_block(self, world: World, draws: Draws, first: int, wanted: NDArray[np.bool_]) -> EpisodeBlock:
        return self._block(world, draws, first, wanted)

    def _play_some(self, front: tuple[Any, ...], block: Any, going: Any) -> Any:
        from oldlight.kernels import augmented_blocks
        from oldlight.kernels.augmented_q_learning import Values

        values = (Values(self.visits, self.q, self.left), self._scale(), self.times, self.now)
        return augmented_blocks.q_block(*front, values, self.table.rng, block, going)

    def _scale(self) -> float:
        """c·√(H³·ι)."""
        return self.c * float(np.sqrt(self.setting.horizon**3 * self.setting.log_term))

    def see(self, episode: Episode) -> None:
        from oldlight.kernels import augmented_q_learning as kernels

        self._make_room()
        table = self.table
        n = table.walk(episode)
        values = (table.shape, table.cells(), table.rules, kernels.Values(self.visits, self.q, self.left))
        moves = kernels.Moves(table.moves, n, table.path, self.times)
        kernels.update(*values, moves, self._scale(), table.rng, table.actions)
        self.estimate = kernels.start_value(*values, self.now)
        self._policy = table.policy()

    def _make_room(self) -> None:
        if self.table.make_room():
            room = self.table.room
            self.visits, self.left, self.now = grown(self.visits, room), grown(self.left, room), np.zeros(room)
            self.q = np.stack([grown(x, room) for x in self.q])

    # -- checkpoints -----------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        n = int(self.table.met[0])
        learnt = {"visits": self.visits[:n], "q": self.q[:, :n], "left": self.left[:n]}
        return self.table.state() | learnt | {"estimate": np.array(self.estimate)}

    def restore(self, state: dict[str, Any]) -> None:
        self.table.restore(state)
        room = self.table.room
        self.visits, self.left, self.now = grown(state["visits"], room), grown(state["left"], room), np.zeros(room)
        self.q = np.stack([grown(x, room) for x in state["q"]])
        self.estimate = float(state["estimate"])
        self._policy = self.table.policy()
