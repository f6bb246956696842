"""Learners without memory: they take the newest visible state for the current one, and forget the actions since.

What they act on at time h = 0..H−1 is o_h: the state of the newest visible step, or ∅ while nothing has been seen. They
learn on a table of H·(S + 1)·A cells (h, x, a), x a state or ∅, as if o were the state of a Markov process, which it is
not: two information states with the same o and different queues are one to them. The best policy of this kind is in
general worse than the best executable one, and then their regret grows linearly. What they make of hindsight is what
a person would:

    aligned=False   one learns from what was on the screen, (o_h, a_h, o_{h+1}), like any learner that is put behind a
                    delay without knowing it. The reward of (h, o, a) is what it earned: the mean of r_h(s_h, a) over
                    the times that a was done on o and s_h was revealed. Behind a delay, o_{h+1} does not depend on a_h.
    aligned=True    after the episode the states are known, so one learns from (s_h, a_h, s_{h+1}) with the known reward
                    r_h(s_h, a_h), as if nothing had been late, and then acts on o_h (as dQ of Schuitema et al. 2010
                    does: Control Delay in Reinforcement Learning for Real-Time Dynamic Systems: A Memoryless
                    Approach, https://doi.org/10.1109/IROS.2010.5650345). Where two states in a row were not both seen nothing is learnt. For ∅ one takes
                    Q_h(∅, a) = Σ_s rho(s)·Q_h(s, a).

Where the state changes slowly, as on a chain, the second is the better one; where the newest visible state predicts little
of the current one, the first. Where nothing is delayed or lost, o is the state and both are the same.

`MemorylessUCBVI`, with ι = log(S·A·H·K/γ), N_h(x, a) transitions and n_h(x, a) rewards counted, M_h = Σ_{i≥h} max r_i:

    Q_h(x, a) = min( M_h, r̂_h(x, a) + c·√(ι/n_h(x, a)) + c·H·√(ι/N_h(x, a)) + Σ_y p̂_h(y|x, a)·V_{h+1}(y) ),
    V_h = max_a Q_h,

without the transition's terms at h = H−1, with r_h(x, a) itself where rewards are known, and M_h where a count is zero.
At no delay this is AugmentedUCBVI.

`MemorylessQLearning` (Jin et al. 2018, see `learners.augmented_q_learning`), after an episode, the last step first, n = N_h(x, a) + 1, α = (H + 1)/(H + n):

    Q_h(x, a) ← (1 − α)·Q_h(x, a) + α·( r_h(s_h, a) + V_{h+1}(y) + c·√(H³·ι/n) ),
    V_h = max_a min( M_h, Q_h ),   V_H = 0,

leaving out steps whose reward was lost; at h = H−1, Q = r_h where rewards are known.

pooled: for stationary transitions, what was counted at one time serves all of them (with the reward that the other
time pays at the same s_h), steps before 0 included if aligned. Ties (closer than 1e-12) are broken at random by the
run's generator, anew after every episode. Rewards must be in [0, 1]. These learners run behind delay and behind loss.

**The default c** was chosen by docs/scripts/tune.py, like that of every learner here; docs/learning.md has the figures, with and
without `aligned`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.arrays import Floats, Ints, action_type
from oldlight.learners.base import Learner, Setting
from oldlight.learners.delayed_ucbvi import rewards_in_unit_interval
from oldlight.learners.episode_blocks import EpisodeBlock, episodes_that_fit, played_block, room_for
from oldlight.model.episode import Episode
from oldlight.model.information import Information
from oldlight.model.policies import FunctionPolicy, Policy, TablePolicy

if TYPE_CHECKING:
    from oldlight.simulation import Draws, World


class _Memoryless(Learner):
    """What both share: the cells, and a policy of (h, o). The recursions are those of `oldlight.kernels.memoryless`."""

    estimate: float
    _policy: Policy | None = None  # made when it is asked for
    _kind: int  # as there
    _kept: tuple[str, ...] = ()  # the arrays of a checkpoint

    def __init__(self, c: float, aligned: bool, pooled: bool) -> None:
        self.aligned = bool(aligned)
        self.c = checks.at_least("c", c, 0)
        self.pooled = bool(pooled)

    def start(self, setting: Setting, rng: np.random.Generator) -> None:
        rewards_in_unit_interval(setting)
        if self.pooled and not setting.stationary:
            name = type(self).__name__
            raise ValueError(f"{name}: pooled=True needs transitions that do not change from step to step")
        self.setting, self.rng = setting, rng
        H, S, A = setting.horizon, setting.n_states, setting.n_actions
        sees_all = setting.arrival_probability is None and setting.law.constant == 0 and setting.warmup == 0
        self.pays_known = sees_all or self.aligned  # is the reward of a cell known?
        most = np.append(np.cumsum(setting.rewards.max(axis=(1, 2))[::-1])[::-1], 0.0)
        self.remaining: Floats = most
        self.place: Ints | None = None  # [information state] → h·(S + 1) + o
        if setting.layout is not None:
            layout = setting.layout
            self.place = np.zeros(layout.size, dtype=np.int64)
            for h in range(H):
                for block in layout.blocks(h):
                    here = slice(block.offset, block.offset + layout.block_size(block.m))
                    self.place[here] = h * (S + 1) + np.repeat(np.arange(S), A**block.m)
                if layout.root[h] >= 0:
                    self.place[layout.root[h] : layout.root[h] + A**h] = h * (S + 1) + S
        T = 1 if self.pooled else H
        self.q = np.broadcast_to(most[:H, None, None], (H, S + 1, A)).copy()
        self.greedy = np.zeros((H, S + 1), dtype=action_type(A))
        self.visits = np.zeros((T, S + 1, A), dtype=np.int64)  # N_h(x, a)
        self.number, self.paid = np.zeros((0, 0, 0, 0)), np.zeros((0, 0, 0))
        self.paid_times = np.zeros((0, 0, 0), dtype=np.int64)
        self.episodes_per_block = episodes_that_fit(self.greedy.size, self.greedy.dtype)
        self._begin()
        self._decide()

    def _begin(self) -> None:
        """The tables of the learner itself; each subclass has its own."""
        raise NotImplementedError

    def _arrays(self) -> tuple[Any, Any]:
        """What is known beforehand and what is learnt, as `oldlight.kernels.memoryless` reads them."""
        from oldlight.kernels import memoryless as kernels

        setting = self.setting
        seen = setting.arrival_probability
        arrives = 1.0 if setting.warmup else float(setting.law.first[0]) * (1.0 if seen is None else float(seen[0]))
        rules = kernels.Rules(
            self._kind, self.aligned, self.pooled, self.pays_known, setting.warmup, arrives, float(self.c), float(setting.log_term),
            np.ascontiguousarray(setting.rewards), self.remaining, np.array(setting.initial),
            np.array(setting.pending[: setting.horizon], dtype=np.int64),
        )  # fmt: skip
        return rules, kernels.Cells(self.q, self.greedy, self.visits, self.number, self.paid, self.paid_times)

    # -- acting ----------------------------------------------------------------------------------------------------

    def policy(self) -> Policy:
        if self._policy is None:
            self._policy = self._as_policy(self.greedy)
        return self._policy

    def act(self, info: Information) -> int:
        return _choose(self.greedy, info)

    def _as_policy(self, greedy: NDArray[Any]) -> Policy:
        """The policy of a table [h, o], which may change afterwards."""
        setting = self.setting
        if setting.layout is not None and self.place is not None:
            return TablePolicy.trusted(setting.layout, greedy.reshape(-1)[self.place])
        mine = greedy.reshape(setting.horizon, -1).copy()
        return FunctionPolicy(partial(_choose, mine), setting.n_actions)

    def _decide(self) -> None:
        """The greedy policy of min(M, Q), ties at random."""
        from oldlight.kernels import memoryless as kernels

        rules, cells = self._arrays()
        if kernels.decide(cells, rules, self.rng):
            self._policy = None

    # -- learning --------------------------------------------------------------------------------------------------

    def see(self, episode: Episode) -> None:
        from oldlight.kernels import memoryless as kernels
        from oldlight.kernels.counts import Episode as Revealed

        rules, cells = self._arrays()
        shown = Revealed(episode.states, episode.actions, episode.arrivals, episode.rewards)
        self.estimate = kernels.learn(shown, rules, cells)
        self._decide()

    def play_block(self, world: World, draws: Draws, first: int, wanted: NDArray[np.bool_]) -> EpisodeBlock:
        from oldlight.kernels import memoryless as kernels
        from oldlight.kernels.episodes import Rule

        H, before = self.setting.horizon, self.policy()
        rules, cells = self._arrays()
        block = room_for(draws, first, wanted, self.greedy.size, self.greedy.dtype)
        no_place = np.zeros((1, 1, 1), dtype=np.int64), np.zeros(H, dtype=np.int64)
        rule = Rule(self.greedy.reshape(-1), np.zeros((0, 0)), *no_place, rules.pending)
        self.estimate, changed = kernels.block(world.arrays, rule, world.played(1), rules, cells, self.rng, block)
        found = played_block(block, self._as_policy, before)
        if changed:
            self._policy = None
        elif found.policies:
            self._policy = found.policies[-1]
        return found

    # -- checkpoints -----------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        kept = {name: getattr(self, attribute) for name, attribute in self._saved().items()}
        return kept | {"estimate": np.array(self.estimate)}

    def restore(self, state: dict[str, Any]) -> None:
        for name, attribute in self._saved().items():
            getattr(self, attribute)[...] = state[name]
        self.estimate, self._policy = float(state["estimate"]), None

    def _saved(self) -> dict[str, str]:
        """Names in a checkpoint and the attributes they belong to; "seen" is an older name of the visits."""
        return {"q": "q", "greedy": "greedy", "seen": "visits"} | {name: name for name in self._kept}


def _choose(greedy: NDArray[Any], info: Information) -> int:
    return int(greedy[info.h, -1 if info.state is None else info.state])


class MemorylessUCBVI(_Memoryless):
    """UCBVI on the newest visible state; see the module's text.

    Parameters
    ----------
    c : float
        Bonus constant, ≥ 0.
    aligned : bool
        Learn from the true states once they are known, and still act on the newest visible one.
    pooled : bool
        For stationary transitions: what was counted at one time serves all of them.

    Examples
    --------
    >>> import oldlight as ol
    >>> ol.learners.MemorylessUCBVI(aligned=True)
    MemorylessUCBVI(c=0.02, aligned=True, pooled=False)
    """

    _kind = 0
    _kept = ("number", "paid", "paid_times")

    def __init__(self, c: float = 0.02, *, aligned: bool = False, pooled: bool = False) -> None:
        super().__init__(c, aligned, pooled)

    def _begin(self) -> None:
        from oldlight.kernels import memoryless as kernels

        H, S, A = self.setting.horizon, self.setting.n_states, self.setting.n_actions
        self.number = np.zeros((*self.visits.shape, S + 1))  # N_h(x, a, y)
        self.paid = np.zeros((H, S + 1, A))  # the sum of the rewards that time h would have paid
        self.paid_times = np.zeros_like(self.visits)  # n_h(x, a)
        rules, cells = self._arrays()
        self.estimate = kernels.plan(cells, rules)


class MemorylessQLearning(_Memoryless):
    """Optimistic Q-learning on the newest visible state; see the module's text.

    Parameters
    ----------
    c : float
        Bonus constant, ≥ 0.
    aligned : bool
        Learn from the true states once they are known, and still act on the newest visible one.
    pooled : bool
        For stationary transitions: what was counted at one time serves all of them.

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.center_chain(0.8), "loss:0.2")
    >>> ol.learn(problem, ol.learners.MemorylessQLearning(), 20).done
    20
    """

    _kind = 1

    def __init__(self, c: float = 0.01, *, aligned: bool = False, pooled: bool = False) -> None:
        super().__init__(c, aligned, pooled)

    def _begin(self) -> None:
        from oldlight.kernels import memoryless as kernels

        last = self.setting.horizon - 1
        if self.pays_known:
            self.q[last, :-1] = self.setting.rewards[last]
            if self.aligned:
                self.q[last, -1] = self.setting.initial @ self.q[last, :-1]
        rules, cells = self._arrays()
        self.estimate = kernels.start_value(cells, rules)
