"""The tables of one layout that a pass of value iteration fills: blocks, where they stand, values and a policy.

`Tables.sweep` runs `delay_kernels.sweep` on a model given as arrays; `true_value` runs it on the true problem to value the
policy (for the tests and for learners' own bookkeeping: `oldlight.learn` values policies by `oldlight.evaluate`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.learners.base import Setting
from oldlight.model.information import Layout
from oldlight.model.policies import TablePolicy
from oldlight.planning.delay import action_type

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NOISE = 1e-12  # ties are values closer than this


@dataclass
class Estimate:
    """A model with bonuses, as `delay_kernels.sweep` reads it (axes as there)."""

    index: Ints
    weight: Floats
    n_next: Ints
    bonus: Floats
    spread: Floats  # (0, 0) for none
    theta: Floats
    theta_bonus: Floats
    known: NDArray[np.bool_]
    first_theta: Floats
    rho: Floats
    root_bonus: Floats


class Tables:
    """Values and policy over a layout."""

    def __init__(self, setting: Setting, rewards: Floats, dense: bool = True) -> None:
        """dense=False: only the places, without values (a greedy learner keeps its own)."""
        layout = setting.layout
        assert layout is not None
        self.setting, self.layout = setting, layout
        H, S, A = setting.horizon, setting.n_states, setting.n_actions
        blocks = [list(b) for h in range(H - 1, -1, -1) for b in layout.blocks(h)]
        self.blocks = np.array(blocks, dtype=np.int64).reshape(-1, 4)  # none if nothing is ever seen
        longest = max([b.m for b in layout.blocks(H - 1)] + ([H] if layout.root[H - 1] >= 0 else []))
        sizes = [S * A**m for m in range(longest + 1)]
        self.ends = layout.size + np.concatenate([[0], np.cumsum(sizes[:-1])]).astype(np.int64)
        self.values = np.zeros(layout.size + sum(sizes) if dense else 0)
        self.zeros = np.zeros(max(sizes) * A if dense else 0)
        self.powers = A ** np.arange(max(longest, H if layout.root.max() >= 0 else 0) + 2, dtype=np.int64)
        self.actions = np.zeros(layout.size if dense else 0, dtype=action_type(A))
        self.rewards = rewards
        self._noisy = 64 + min(512, A ** max(longest - 1, 0))
        most = np.append(np.cumsum(rewards.max(axis=(1, 2))[::-1])[::-1], 0.0)
        self.remaining = most

    def sweep(self, model: Estimate, rng: np.random.Generator) -> float:
        """One optimistic pass; ties are broken at random. Returns the estimate of the optimal value."""
        noise = rng.random((self.setting.n_actions, self._noisy)) * NOISE
        self._run(model, noise, 3, self.actions)
        return self._start(model.rho, model.first_theta)

    def _run(self, model: Estimate, noise: Floats, mode: int, table: NDArray[Any]) -> None:
        from oldlight.kernels import counts as kernels

        setting = self.setting
        kernels.sweep(
            self.blocks, self.layout.offset, self.layout.root, self.ends, self.values, self.zeros, setting.horizon,
            setting.warmup, setting.law.longest_delay, self.powers, self.rewards, self.remaining, model.index, model.weight, model.n_next,
            model.bonus, model.spread, model.theta, model.theta_bonus, model.known, model.first_theta, model.rho,
            model.root_bonus, noise, mode, table,
        )  # fmt: skip

    def _start(self, rho: Floats, first_theta: Floats) -> float:
        """The value of time 0, from the values just computed."""
        layout, setting = self.layout, self.setting
        if setting.warmup:
            S, Q = setting.n_states, setting.n_actions**setting.warmup
            here = int(layout.offset[0, setting.warmup, 0])
            return float(rho @ self.values[here : here + S * Q].reshape(S, Q).mean(axis=1))
        value, at_once = 0.0, float(first_theta[0])
        if at_once > 0 and layout.offset[0, 0, 0] >= 0:
            here = int(layout.offset[0, 0, 0])
            value += at_once * float(rho @ self.values[here : here + setting.n_states])
        if layout.root[0] >= 0:
            value += (1 - at_once) * float(self.values[layout.root[0]])
        return value

    def policy(self) -> TablePolicy:
        """The policy of the last pass, as an object of its own."""
        return TablePolicy.trusted(self.layout, self.actions.copy())


def layout_of(setting: Setting) -> Layout:
    """The layout, for learners that need one."""
    assert setting.layout is not None
    return setting.layout
