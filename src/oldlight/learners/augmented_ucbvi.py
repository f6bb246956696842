"""UCBVI on the augmented table: what one gets by calling the information state a state and learning it as a black box.

The table has one cell per information state τ_h = (t, s_t, queue a_t..a_{h−1}, δ), the root while nothing has been
seen, and after the last action one per (s_t, what is left of the queue): the past-reward model with 2H steps
(`oldlight.planning.delay`). Steps t and times h are 0..H−1. For each episode:

  1. play the greedy policy of the last plan;
  2. count N_h(τ, a, τ'): τ' is the arrival of some s_{t+1}, or no arrival. That s_{t+1} depends on (s_t, a_t) alone,
     and not on the rest of the queue, is what this learner does not know: it pays for S·A^d cells;
  3. p̂ = N(τ, a, τ')/N(τ, a), with the bonus  b = c·H·√(ι/N_h(τ, a)),  ι = log(S·A·H·K/γ);
  4. from the last time to the first,

       X_h(τ, a) = min( M_τ, 1{δ=0}·r_t(s_t, head) + b + Σ_τ' p̂(τ'|τ, a)·U_{h+1}(τ') ),   U_h(τ) = max_a X_h(τ, a),
       G(s, q1..qj) = min( M, r_{H−j}(s, q1) + b + Σ_s' p̂(s'|s, q1..qj)·G(s', q2..qj) ),  G(s, q1) = r_{H−1}(s, q1).

     At the last time X(τ, a) is G of the queue with a at its end, less the reward of step t if δ > 0, which is then
     behind. The head is the oldest action of the queue, or a itself if the queue is empty. M_τ = Σ_{i ≥ t} max r_i
     (from t + 1 on if δ > 0) is what can still be earned, and what a pair is worth that was never met.

Only cells that were met take any work, and of those only the ones whose counts or successors' values have changed
since the last plan: the others would come out the same.

Rewards are known, and zero before step 0. Where nothing has to be learned there is no bonus: at the last step of all,
and where by the support of the delay law nothing can arrive yet. Ties (closer than 1e-12) are broken at random
by the run's generator, whenever a cell is computed. A cell that was not met keeps a draw from the start, and a cell
that was not computed again its last one: nobody has acted on it since, so that has the same law as a fresh draw.

**The default c** was chosen by docs/scripts/tune.py, like that of every learner here; docs/learning.md has the figures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.learners.augmented_table import AugmentedLearner, AugmentedTable, grown
from oldlight.learners.base import Setting
from oldlight.learners.episode_blocks import EpisodeBlock, episodes_that_fit
from oldlight.model.episode import Episode

if TYPE_CHECKING:
    from oldlight.simulation import Draws, World


_OUTCOMES = ("owner", "follow", "times", "link", "back")


class AugmentedUCBVI(AugmentedLearner):
    """UCBVI on the augmented table; see the module's text.

    Parameters
    ----------
    c : float, optional
        Bonus constant, ≥ 0; 0.01 if None.
    pooled : bool
        For stationary transitions: one count for the same (s, queue, δ, a) at all times from which on the delay law no longer changes,
        steps before 0 included; and for the queues that are left after the last action one count for all steps t, provided that
        s_{t+1} was not yet seen when the last of these actions was chosen (otherwise the action reveals it).
    bonus : "hoeffding" or "bernstein"
        c·H·√(ι/N), or c·( √(2·Var_p̂(U)·ι/N) + H·ι/(3N) ).
    planning : "full" or "doubling"
        After every episode, or only when some N(τ, a) has come to a power of two.

    Examples
    --------
    >>> import oldlight as ol
    >>> ol.learners.AugmentedUCBVI(planning="doubling")
    AugmentedUCBVI(c=0.01, pooled=False, bonus='hoeffding', planning='doubling')
    """

    def __init__(
        self,
        c: float | None = None,
        *,
        pooled: bool = False,
        bonus: Literal["hoeffding", "bernstein"] = "hoeffding",
        planning: Literal["full", "doubling"] = "full",
    ) -> None:
        self.bonus = checks.one_of("bonus", bonus, ("hoeffding", "bernstein"))
        self.c = checks.at_least("c", 0.01 if c is None else c, 0)
        self.pooled = bool(pooled)
        self.planning = checks.one_of("planning", planning, ("full", "doubling"))

    def start(self, setting: Setting, rng: np.random.Generator) -> None:
        self.setting = setting
        self.table = AugmentedTable(setting, rng, self.pooled, type(self).__name__)
        H, A = setting.horizon, setting.n_actions
        self.visits, self.first = np.zeros((2, 0, A), dtype=np.int64)
        self.into = np.zeros(0, dtype=np.int64)
        self.owner, self.follow, self.times, self.link, self.back = np.zeros((5, 0), dtype=np.int64)
        self.outcomes = np.zeros(1, dtype=np.int64)  # how many
        rows = H + 1 if self.pooled else 1
        self.values = np.zeros((rows, 0))
        self.after, self.queued = np.zeros((rows, 0), dtype=np.int64), np.zeros((rows, 0), dtype=np.bool_)
        self.head = np.full(H + len(self.table.shape.rest), -1, dtype=np.int64)
        self.estimate = float(self.table.rules.remaining[0])
        self._policy = self.table.policy()
        self.episodes_per_block = episodes_that_fit(len(self.table.actions), self.table.actions.dtype)
        self._make_room()

    # -- the three parts of an episode ------------------------------------------------------------------------------

    def see(self, episode: Episode) -> None:
        from oldlight.kernels import augmented_ucbvi as kernels

        self._make_room()
        table = self.table
        n = table.walk(episode)
        doubled = kernels.count(
            table.moves, n, table.path, table.shape, table.cells(), self._counts(), self._work()
        )  # fmt: skip
        if doubled or self.planning == "full":
            self._plan()

    def play_block(self, world: World, draws: Draws, first: int, wanted: NDArray[np.bool_]) -> EpisodeBlock:
        return self._block(world, draws, first, wanted)

    def _play_some(self, front: tuple[Any, ...], block: Any, going: Any) -> Any:
        from oldlight.kernels import augmented_blocks, augmented_ucbvi

        plan = augmented_ucbvi.Plan(self.values, self.table.actions)
        full = self.planning == "full"
        model = augmented_blocks.Model(self._counts(), self._work(), self._bonus(), plan, full)
        return augmented_blocks.ucbvi_block(*front, model, self.table.rng, block, going)

    def _plan(self) -> None:
        from oldlight.kernels import augmented_ucbvi as kernels

        table = self.table
        plan = kernels.Plan(self.values, table.actions)
        self.estimate = kernels.plan(
            table.shape, table.cells(), self._counts(), table.rules, self._work(), self._bonus(), plan, table.rng
        )
        self._policy = table.policy()

    def _bonus(self) -> Any:
        from oldlight.kernels import augmented_ucbvi as kernels

        return kernels.Bonus(self.c, self.setting.log_term, self.bonus == "bernstein")

    def _counts(self) -> Any:
        from oldlight.kernels import augmented_ucbvi as kernels

        return kernels.Counts(
            self.visits, self.first, self.into, self.owner, self.follow, self.times, self.link, self.back, self.outcomes
        )

    def _work(self) -> Any:
        from oldlight.kernels import augmented_ucbvi as kernels

        return kernels.Work(self.head, self.after, self.queued)

    def _make_room(self) -> None:
        if self.table.make_room():
            self._lengthen_cells()
        need = int(self.outcomes[0]) + len(self.table.moves)
        if need > len(self.follow):
            for name in _OUTCOMES:
                setattr(self, name, grown(getattr(self, name), max(1024, 2 * need)))

    def _lengthen_cells(self) -> None:
        room = self.table.room
        self.visits, self.first, self.into = (
            grown(self.visits, room),
            grown(self.first, room, -1),
            grown(self.into, room, -1),
        )
        self.values = np.stack([grown(x, room, np.nan) for x in self.values])
        self.after, self.queued = (np.stack([grown(x, room) for x in rows]) for rows in (self.after, self.queued))

    # -- checkpoints -----------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        n, k = int(self.table.met[0]), int(self.outcomes[0])
        cells = {name: getattr(self, name)[:n] for name in ("visits", "first", "into")}
        rows = {name: getattr(self, name)[:, :n] for name in ("values", "after", "queued")}
        outcomes = {name: getattr(self, name)[:k] for name in _OUTCOMES}
        return self.table.state() | cells | rows | outcomes | {"head": self.head, "estimate": np.array(self.estimate)}

    def restore(self, state: dict[str, Any]) -> None:
        self.table.restore(state)
        for name in ("visits", "first", "into", "values", "after", "queued", "head", *_OUTCOMES):
            setattr(self, name, np.array(state[name]))
        self._lengthen_cells()
        self.outcomes[0] = len(self.follow)
        self.estimate = float(state["estimate"])
        self._policy = self.table.policy()
