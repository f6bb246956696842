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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.arrays import Floats, Ints, action_type
from oldlight.learners.base import Learner, Setting
from oldlight.learners.delayed_ucbvi import rewards_in_unit_interval
from oldlight.model.episode import Episode
from oldlight.model.information import Information
from oldlight.model.policies import FunctionPolicy, Policy, TablePolicy

TIE = 1e-12


class _Memoryless(Learner):
    """What both share: the newest visible states of an episode, and a policy of (h, o)."""

    estimate: float
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
        self.times = np.arange(H)
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
        self.q = np.broadcast_to(most[:H, None, None], (H, S + 1, A)).copy()
        self._begin()
        self._decide()

    def _begin(self) -> None:
        """The tables of the learner itself; each subclass has its own."""

    # -- acting ----------------------------------------------------------------------------------------------------

    def policy(self) -> Policy:
        return self._policy

    def act(self, info: Information) -> int:
        return _choose(self.greedy, info)

    def _decide(self) -> None:
        """The greedy policy of min(M, Q), ties at random."""
        q = np.minimum(self.q, self.remaining[:-1, None, None])
        ties = q >= q.max(axis=2, keepdims=True) - TIE
        lots = self.rng.random(ties.shape)
        self.greedy = np.where(ties, lots, -1.0).argmax(axis=2).astype(action_type(self.setting.n_actions))
        for h, a in enumerate(self.setting.pending[: self.setting.horizon]):
            self.greedy[h] = a
        self._publish()

    def _publish(self) -> None:
        setting = self.setting
        if setting.layout is not None and self.place is not None:
            self._policy: Policy = TablePolicy.trusted(setting.layout, self.greedy.reshape(-1)[self.place])
        else:
            self._policy = FunctionPolicy(partial(_choose, self.greedy), setting.n_actions)

    def _value(self, h: int) -> Floats:
        """V_h(o)."""
        if h == self.setting.horizon:
            return np.zeros(self.setting.n_states + 1)
        row = self.q[h]
        if h < len(self.setting.pending):
            return np.asarray(np.minimum(row[:, self.setting.pending[h]], self.remaining[h]))
        return np.asarray(np.minimum(row.max(axis=1), self.remaining[h]))

    def _start_value(self) -> float:
        """V_0 in expectation over o_0."""
        setting = self.setting
        first = self._value(0)
        if setting.warmup:
            return float(first[:-1].mean())
        arrives = float(setting.law.first[0]) * (
            1.0 if setting.arrival_probability is None else float(setting.arrival_probability[0])
        )
        return arrives * float(setting.initial @ first[:-1]) + (1.0 - arrives) * float(first[-1])

    # -- what an episode shows -------------------------------------------------------------------------------------

    def _read(self, episode: Episode) -> tuple[Ints, Ints, Ints]:
        """(x_h, a_h, s_h) for h = 0..H−1: the cell to learn on, the action, and the state; −1 if it was lost. Steps
        before 0 come first if they can be used: they are transitions of step 0."""
        warmup = episode.warmup
        if self.aligned and self.pooled:
            return episode.states, episode.actions, episode.states
        actions, states = episode.actions[warmup:], episode.states[warmup:]
        if self.aligned:
            return states, actions, states
        known = (episode.arrivals >= 0) & (episode.arrivals <= self.times[:, None])  # [h, step]
        last = known.shape[1] - 1 - known[:, ::-1].argmax(axis=1)
        return np.where(known.any(axis=1), episode.states[last], self.setting.n_states), actions, states

    def _blind(self, h: int) -> None:
        """Q_h(∅, ·) of somebody who learns from the states."""
        if self.aligned:
            self.q[h, -1] = self.setting.initial @ self.q[h, :-1]

    # -- checkpoints -----------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        kept = {name: getattr(self, name) for name in ("q", "greedy", *self._kept)}
        return kept | {"estimate": np.array(self.estimate)}

    def restore(self, state: dict[str, Any]) -> None:
        for name in ("q", *self._kept):
            getattr(self, name)[...] = state[name]
        self.greedy = np.array(state["greedy"])
        self.estimate = float(state["estimate"])
        self._publish()


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

    _kept = ("seen", "number", "paid", "paid_times")

    def __init__(self, c: float = 0.02, *, aligned: bool = False, pooled: bool = False) -> None:
        super().__init__(c, aligned, pooled)

    def _begin(self) -> None:
        H, S, A = self.setting.horizon, self.setting.n_states, self.setting.n_actions
        T = 1 if self.pooled else H
        self.seen = np.zeros((T, S + 1, A), dtype=np.int64)  # N_h(x, a)
        self.number = np.zeros((T, S + 1, A, S + 1))  # N_h(x, a, y)
        self.paid = np.zeros((H, S + 1, A))  # the sum of the rewards that time h would have paid
        self.paid_times = np.zeros((T, S + 1, A), dtype=np.int64)  # n_h(x, a)
        self._plan()

    def see(self, episode: Episode) -> None:
        x, a, s = self._read(episode)
        R = self.setting.rewards
        row = np.zeros(len(x), dtype=np.int64) if self.pooled else self.times
        h = np.flatnonzero((x[:-1] >= 0) & (x[1:] >= 0))
        np.add.at(self.seen, (row[h], x[h], a[h]), 1)
        np.add.at(self.number, (row[h], x[h], a[h], x[h + 1]), 1.0)
        if not self.pays_known:
            h = np.flatnonzero(s >= 0)
            np.add.at(self.paid_times, (row[h], x[h], a[h]), 1)
            if self.pooled:
                np.add.at(self.paid.transpose(1, 2, 0), (x[h], a[h]), R[:, s[h], a[h]].T)
            else:
                self.paid[h, x[h], a[h]] += R[h, s[h], a[h]]
        self._plan()
        self._decide()

    def _plan(self) -> None:
        setting, c = self.setting, self.c
        H, S, root = setting.horizon, setting.n_states, float(np.sqrt(setting.log_term))
        for h in range(H - 1, -1, -1):
            row = 0 if self.pooled else h
            N, n, most = self.seen[row], self.paid_times[row], self.remaining[h]
            if self.pays_known:
                q, unknown = np.full(N.shape, most), np.zeros(N.shape, dtype=np.bool_)
                q[:S] = setting.rewards[h]
            else:
                q, unknown = (self.paid[h] + c * root * np.sqrt(n)) / np.maximum(n, 1), n == 0
            if h < H - 1:
                ahead = self.number[row] @ self._value(h + 1)
                q = q + (ahead + c * H * root * np.sqrt(N)) / np.maximum(N, 1)
                unknown = unknown | (N == 0)
            self.q[h] = np.where(unknown, most, np.minimum(q, most))
            self._blind(h)
        self.estimate = self._start_value()


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

    _kept = ("seen",)

    def __init__(self, c: float = 0.01, *, aligned: bool = False, pooled: bool = False) -> None:
        super().__init__(c, aligned, pooled)

    def _begin(self) -> None:
        H, S, A = self.setting.horizon, self.setting.n_states, self.setting.n_actions
        self.seen = np.zeros((1 if self.pooled else H, S + 1, A), dtype=np.int64)  # N_h(x, a)
        if self.pays_known:
            self.q[H - 1, :S] = self.setting.rewards[H - 1]
            self._blind(H - 1)
        self.estimate = self._start_value()

    def see(self, episode: Episode) -> None:
        x, a, s = self._read(episode)
        H, R = self.setting.horizon, self.setting.rewards
        scale = self.c * float(np.sqrt(H**3 * self.setting.log_term))
        end = len(x) - 1  # the entry of step H−1: nothing is known of what followed it
        steps = [i for i in range(end - 1, -1, -1) if s[i] >= 0 and x[i + 1] >= 0]
        if not self.pays_known and s[end] >= 0:
            steps.insert(0, end)
        counts = {}
        for i in steps:
            row = 0 if self.pooled else i
            self.seen[row, x[i], a[i]] += 1
            counts[i] = int(self.seen[row, x[i], a[i]])
        for h in range(H - 2 if self.pays_known else H - 1, -1, -1):
            following = self._value(h + 1)
            for i in steps if self.pooled else [h] * (h in counts):
                if i == end and h < H - 1:
                    continue
                n = counts[i]
                ahead = float(following[x[i + 1]]) if h < H - 1 else 0.0
                target = float(R[h, s[i], a[i]]) + ahead + scale / np.sqrt(n)
                self.q[h, x[i], a[i]] += (H + 1) / (H + n) * (target - self.q[h, x[i], a[i]])
            self._blind(h)
        self.estimate = self._start_value()
        self._decide()
