"""The tables of one layout that optimistic planning fills: values and a policy, by the sweep of `oldlight.kernels.delay`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.arrays import Floats, Ints, action_type
from oldlight.learners.base import Setting
from oldlight.model.policies import TablePolicy
from oldlight.planning.blocks import Schedule, run_calls


@dataclass
class Estimate:
    """A model with bonuses. Row of step t: t + warmup, or one row for all steps when counts are pooled; pair = s·A + a."""

    index: NDArray[np.int32]  # [row, pair, k]: successors
    weight: Floats  # [row, pair, k]: their probabilities
    n_next: Ints  # [row, pair]: how many there are
    bonus: Floats  # [row, pair]
    spread: Floats  # [row, pair]: the coefficient of the standard deviation; (0, 0) for none
    theta: Floats  # [row, pair, δ]
    theta_bonus: Floats  # [row, pair, δ]
    known: NDArray[np.bool_]  # [row, pair]: is anything known of it?
    first_theta: Floats  # [h]
    rho: Floats  # [s]
    root_bonus: Floats  # [h]: added before anything is seen


class Tables:
    """Values and policy over a layout. remaining[t]: the most that steps t, t + 1, .. can earn; ends[m]: where the values of the last m
    actions, from the state where they began, stand."""

    def __init__(self, setting: Setting, rewards: Floats, dense: bool = True, bonuses: bool = True) -> None:
        """dense=False: only the places, without values (a greedy learner keeps its own); bonuses=False: the model has none, and ties are the caller's."""
        layout = setting.layout
        assert layout is not None
        self.setting, self.layout, self.bonuses = setting, layout, bonuses
        self.schedule = Schedule(layout, warmup=setting.warmup, longest_delay=setting.law.longest_delay, values="table")
        self.ends, self.powers = self.schedule.ends, self.schedule.powers
        self.values = np.zeros(self.schedule.size if dense else 0)
        self.actions = np.zeros(layout.size if dense else 0, dtype=action_type(setting.n_actions))
        self.rewards = np.ascontiguousarray(rewards)
        self.remaining = np.append(np.cumsum(rewards.max(axis=(1, 2))[::-1])[::-1], 0.0)
        self._noise = np.empty((setting.n_actions, 64 + min(512, setting.n_actions ** max(len(self.ends) - 2, 0))))
        self._planned: Estimate | None = None
        self._plan: Any = None
        self._calls, self._turns = list(self.schedule.calls()), self.schedule.turns()

    def sweep(self, model: Estimate, rng: np.random.Generator) -> float:
        """One optimistic pass; ties are broken at random. Returns the estimate of the optimal value."""
        from oldlight.kernels import delay as kernels
        from oldlight.kernels.optimistic_tables import draw_noise, start_value

        plan = self.plan(model)
        if self.bonuses:
            draw_noise(self._noise, rng)
        run_calls(partial(kernels.sweep, plan.model, plan.optimism, plan.tables, plan.mode), self._calls, self._turns)
        return float(start_value(plan))

    @property
    def one_call(self) -> bool:
        """Is a pass so small that one compiled call does it?"""
        return len(self._calls) == 1 and self._calls[0][3] == 1

    def plan(self, model: Estimate) -> Any:
        """What a pass for this model reads and writes (`kernels.optimistic_tables.Plan`); its arrays change in place."""
        if model is not self._planned:
            self._planned, self._plan = model, self._prepared(model)
        return self._plan

    def _prepared(self, model: Estimate) -> Any:
        from oldlight.kernels import block
        from oldlight.kernels import delay as kernels
        from oldlight.kernels.optimistic_tables import Plan

        setting = self.setting
        H, S, A = setting.horizon, setting.n_states, setting.n_actions
        T, _, K = model.index.shape
        begin = np.arange(0, T * S * A * K, K).reshape(T, S * A)
        estimates = kernels.Model(
            model.index.reshape(-1), model.weight.reshape(-1), begin, model.n_next, np.empty((0, S * A, S)), self.rewards,
            model.theta.reshape(-1, S, A, model.theta.shape[2]), model.first_theta, model.rho,
        )  # fmt: skip
        optimism = kernels.Optimism(
            model.bonus, model.theta_bonus, model.spread, model.known, self.remaining, model.root_bonus, self._noise
        )
        pending = np.array(setting.pending[:H], dtype=np.int64)
        tables = kernels.Tables(
            self.schedule.blocks,
            self.powers,
            self.values,
            self.actions,
            np.empty((0, A)),
            pending,
            self._turns,
            H,
            False,
        )
        start = int(self.layout.offset[0, setting.warmup, 0])
        whole = (block.OPTIMISTIC if self.bonuses else block.BEST, 0, len(self.schedule.blocks), 0, 1)
        return Plan(estimates, optimism, tables, start, int(self.layout.root[0]), setting.warmup, *whole)

    def policy(self) -> TablePolicy:
        """The policy of the last pass, as an object of its own."""
        return TablePolicy.trusted(self.layout, self.actions.copy())
