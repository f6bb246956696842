"""Learners without memory: they take the newest visible state for the current one, and forget the actions since.

What they see at time h = 0..H−1 is o_h: the state of the newest visible step, or ∅ while nothing has been seen. They learn on a
table of H·(S + 1)·A cells (h, o, a) as if o were the state of a Markov process, which it is not: two information states with the
same o and different queues are one to them. Under delay the best policy of this kind is in general worse than the best
executable one, so their regret grows linearly in the end; what they learn even depends on how they act.

What they make of hindsight is what a person would: after the episode it is known what each action earned, so the reward of (h, o, a)
is the mean of r_h(s_h, a) over the times that a was done on o (lost observations: over those that were seen), and not r_h(o, a).
Where nothing is delayed or lost, o is the state and its reward is known. Transitions are those of o: N_h(o_h, a_h, o_{h+1}).

`MemorylessUCBVI`, with ι = log(S·A·H·K/γ), n_h(o, a) rewards and N_h(o, a) transitions counted, M_h = Σ_{i ≥ h} max r_i:

    Q_h(o, a) = min( M_h, r̂_h(o, a) + c·√(ι/n_h(o, a)) + c·H·√(ι/N_h(o, a)) + Σ_o' p̂_h(o'|o, a)·V_{h+1}(o') ),   V_h = max_a Q_h,

without the transition's terms at h = H−1, without the reward's bonus where rewards are known, and M_h where a count is zero. At no
delay this is AugmentedUCBVI.

`MemorylessQLearning` (Jin et al. 2018), after an episode and for its last step first, n = N_h(o, a) + 1, α = (H + 1)/(H + n):

    Q_h(o, a) ← (1 − α)·Q_h(o, a) + α·( r_h(s_h, a) + V_{h+1}(o_{h+1}) + c·√(H³·ι/n) ),    V_h = min( M_h, max_a Q_h ),   V_H = 0,

steps whose reward was lost are left out; at h = H−1 there is no bonus where the reward is known.

pooled: for stationary transitions, what was counted at one time serves all of them (the reward is then that of the other time at the
same s_h). Ties (closer than 1e-12) are broken at random by the run's generator. Rewards must be in [0, 1].
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.information import Information
from oldlight.learners.delayed_ucbvi import rewards_in_unit_interval
from oldlight.learners.protocol import Episode, Setting
from oldlight.planning.delay import action_type
from oldlight.policies import FunctionPolicy, Policy, TablePolicy

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
TIE = 1e-12


class _Memoryless:
    """What both share: the newest visible states of an episode, and a policy of (h, o)."""

    def __init__(self, c: float, pooled: bool) -> None:
        self.c = checks.real("c", c)
        if self.c < 0:
            raise ValueError(f"c is {self.c:.12g}, expected a number ≥ 0")
        self.pooled = bool(pooled)

    def start(self, setting: Setting, rng: np.random.Generator) -> None:
        rewards_in_unit_interval(setting)
        if self.pooled and not setting.stationary:
            name = type(self).__name__
            raise ValueError(f"{name}: pooled=True needs transitions that do not change from step to step")
        self.setting, self.rng = setting, rng
        H, S, A = setting.horizon, setting.n_states, setting.n_actions
        self.times = np.arange(H)
        self.sees_all = setting.seen is None and setting.law.constant == 0 and setting.lead == 0
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
        raise NotImplementedError

    # -- acting ----------------------------------------------------------------------------------------------------

    def policy(self) -> Policy:
        return self._policy

    def act(self, info: Information) -> int:
        return _choose(self.greedy, info)

    def _decide(self) -> None:
        """The greedy policy of Q, ties at random."""
        ties = self.q >= self.q.max(axis=2, keepdims=True) - TIE
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
            return np.minimum(row[:, self.setting.pending[h]], self.remaining[h])
        return np.asarray(np.minimum(row.max(axis=1), self.remaining[h]))

    def _start_value(self) -> float:
        """V_0 in expectation over o_0."""
        setting = self.setting
        first = self._value(0)
        if setting.lead:
            return float(first[:-1].mean())
        shown = float(setting.law.first[0]) * (1.0 if setting.seen is None else float(setting.seen[0]))
        return shown * float(setting.initial @ first[:-1]) + (1.0 - shown) * float(first[-1])

    # -- what an episode shows -------------------------------------------------------------------------------------

    def _read(self, episode: Episode) -> tuple[Ints, Ints, Ints]:
        """(o_h, a_h, s_h) for h = 0..H−1; s_h is −1 if it was lost."""
        known = (episode.arrivals >= 0) & (episode.arrivals <= self.times[:, None])  # [h, step]
        last = known.shape[1] - 1 - known[:, ::-1].argmax(axis=1)
        newest = np.where(known.any(axis=1), episode.states[last], self.setting.n_states)
        return newest, episode.actions[episode.lead :], episode.states[episode.lead :]

    # -- checkpoints -----------------------------------------------------------------------------------------------

    _kept: tuple[str, ...] = ()

    def state(self) -> dict[str, Any]:
        kept = {name: getattr(self, name) for name in ("q", "greedy", *self._kept)}
        return kept | {"estimate": np.array(self.estimate)}

    def restore(self, state: dict[str, Any]) -> None:
        for name in ("q", *self._kept):
            getattr(self, name)[...] = state[name]
        self.greedy = np.array(state["greedy"])
        self.estimate = float(state["estimate"])
        self._publish()

    estimate: float


def _choose(greedy: NDArray[Any], info: Information) -> int:
    return int(greedy[info.h, -1 if info.state is None else info.state])


class MemorylessUCBVI(_Memoryless):
    """UCBVI on the newest visible state; see the module's text."""

    _kept = ("seen", "number", "paid", "paid_times")

    def __init__(self, c: float = 0.02, *, pooled: bool = False) -> None:
        super().__init__(c, pooled)

    def _begin(self) -> None:
        H, S, A = self.setting.horizon, self.setting.n_states, self.setting.n_actions
        T = 1 if self.pooled else H
        self.seen = np.zeros((T, S + 1, A), dtype=np.int64)  # N_h(o, a)
        self.number = np.zeros((T, S + 1, A, S + 1))  # N_h(o, a, o')
        self.paid = np.zeros((H, S + 1, A))  # the sum of the rewards that time h would have paid
        self.paid_times = np.zeros((T, S + 1, A), dtype=np.int64)  # n_h(o, a)
        self._plan()

    def see(self, episode: Episode) -> None:
        o, a, s = self._read(episode)
        H, R = self.setting.horizon, self.setting.rewards
        row = np.zeros(H, dtype=np.int64) if self.pooled else self.times
        np.add.at(self.seen, (row[:-1], o[:-1], a[:-1]), 1)
        np.add.at(self.number, (row[:-1], o[:-1], a[:-1], o[1:]), 1.0)
        shown = s >= 0
        np.add.at(self.paid_times, (row[shown], o[shown], a[shown]), 1)
        if self.pooled:
            np.add.at(self.paid, (slice(None), o[shown], a[shown]), R[:, s[shown], a[shown]])
        else:
            h = self.times[shown]
            self.paid[h, o[shown], a[shown]] += R[h, s[shown], a[shown]]
        self._plan()
        self._decide()

    def _plan(self) -> None:
        setting, c = self.setting, self.c
        H, root = setting.horizon, float(np.sqrt(setting.log_term))
        for h in range(H - 1, -1, -1):
            row = 0 if self.pooled else h
            N, n, most = self.seen[row], self.paid_times[row], self.remaining[h]
            if self.sees_all:
                q, unknown = np.concatenate([setting.rewards[h], np.full((1, N.shape[1]), most)]), np.zeros(N.shape, bool)
            else:
                q = (self.paid[h] + c * root * np.sqrt(n)) / np.maximum(n, 1)
                unknown = n == 0
            if h < H - 1:
                ahead = self.number[row] @ self._value(h + 1)
                q = q + (ahead + c * H * root * np.sqrt(N)) / np.maximum(N, 1)
                unknown = unknown | (N == 0)
            self.q[h] = np.where(unknown, most, np.minimum(q, most))
        self.estimate = self._start_value()


class MemorylessQLearning(_Memoryless):
    """Optimistic Q-learning on the newest visible state; see the module's text."""

    _kept = ("seen",)

    def __init__(self, c: float = 0.01, *, pooled: bool = False) -> None:
        super().__init__(c, pooled)

    def _begin(self) -> None:
        H, S, A = self.setting.horizon, self.setting.n_states, self.setting.n_actions
        self.seen = np.zeros((1 if self.pooled else H, S + 1, A), dtype=np.int64)  # N_h(o, a)
        if self.sees_all:
            self.q[H - 1, :S] = self.setting.rewards[H - 1]
        self.estimate = self._start_value()

    def see(self, episode: Episode) -> None:
        o, a, s = self._read(episode)
        H, R = self.setting.horizon, self.setting.rewards
        scale = self.c * float(np.sqrt(H**3 * self.setting.log_term))
        steps = [h for h in range(H - 1, -1, -1) if s[h] >= 0 and (h < H - 1 or not self.sees_all)]
        counts = {}
        for h in steps:
            row = 0 if self.pooled else h
            self.seen[row, o[h], a[h]] += 1
            counts[h] = int(self.seen[row, o[h], a[h]])
        for u in range(H - 1, -1, -1):
            following = self._value(u + 1)
            if u == H - 1 and self.sees_all:
                continue
            for h in steps if self.pooled else [h for h in (u,) if h in counts]:
                if h == H - 1 and u < H - 1:
                    continue  # what followed the last step is not known
                n = counts[h]
                ahead = float(following[o[h + 1]]) if u < H - 1 else 0.0
                rate = (H + 1) / (H + n)
                target = float(R[u, s[h], a[h]]) + ahead + scale / np.sqrt(n)
                self.q[u, o[h], a[h]] += rate * (target - self.q[u, o[h], a[h]])
        self.estimate = self._start_value()
        self._decide()
