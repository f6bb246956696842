"""Greedy planning: back up only the information states met along the episode, from a table that starts at the upper bound.

At each time the agent looks one step ahead with its estimates and the table, acts best, and writes the maximum back. After the
episode the open-loop rest (what the last actions earn, in the past-reward form) is backed up the same way. Efroni et al. (2019,
Tight Regret Bounds for Model-Based Reinforcement Learning with Greedy Policies, https://arxiv.org/abs/1905.11527)
prove that this keeps the regret of full planning in ordinary MDPs, up to a term for the states that must be met: here that
would be S·A^d. So a second optimistic bound is kept beside the table, that of somebody who sees everything from the next step
on; it needs no queue, and until the table knows better the agent acts on it. An episode costs O(H·(A + d)·successors) whatever
A^d is, and memory follows what was visited.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from oldlight.learners.optimistic_tables import Estimate, Tables
from oldlight.model.information import Information, encode
from oldlight.model.policies import FunctionPolicy
from oldlight.simulation import Draws, World

FIRST_SLOTS = 2**12


class GreedyTable:
    """A hash table of optimistic values, and the policy that looks one step ahead with it."""

    def __init__(self, tables: Tables, rng: np.random.Generator) -> None:
        self.tables, self.rng = tables, rng
        self.keys, self.values = np.zeros(FIRST_SLOTS, dtype=np.int64), np.zeros(FIRST_SLOTS)
        self.used = np.zeros(1, dtype=np.int64)
        self.plain = np.zeros((tables.setting.horizon + 1, tables.setting.n_states))

    def renew(self, model: Estimate) -> None:
        """The bound without delay, a new salt for the ties of the next episode, and more room if the table is half full."""
        from oldlight.kernels import greedy as kernels

        setting = self.tables.setting
        kernels.without_delay(self._arrays(model)[0], setting.horizon, setting.warmup)
        self.salt = np.uint64(self.rng.integers(2**63))
        self._make_room(0)

    def _make_room(self, more: int) -> None:
        """At most half of the table is taken after `more` entries."""
        from oldlight.kernels import greedy as kernels

        while 2 * (self.used[0] + more) > len(self.keys):
            keys, values = np.zeros(4 * len(self.keys), dtype=np.int64), np.zeros(4 * len(self.keys))
            kernels.rehash(self.keys, self.values, keys, values)
            self.keys, self.values = keys, values

    def _arrays(self, model: Estimate) -> tuple[Any, Any, Any]:
        """Model, places and slots, as the kernels read them."""
        from oldlight.kernels import greedy as kernels

        tables, setting, layout = self.tables, self.tables.setting, self.tables.layout
        estimates = kernels.Model(
            model.index, model.weight, model.n_next, model.bonus, model.theta, model.theta_bonus, model.known, model.first_theta,
            model.rho, model.root_bonus, tables.rewards, tables.remaining, self.plain,
        )  # fmt: skip
        horizon, warmup, longest_delay = setting.horizon, setting.warmup, setting.law.longest_delay
        places = kernels.Places(layout.offset, layout.root, tables.ends, tables.powers, horizon, warmup, longest_delay)
        return estimates, places, kernels.Slots(self.keys, self.values, self.used)

    def play(self, model: Estimate, world: World, draws: Draws) -> tuple[Any, ...]:
        """One episode in the world: returns, and states, actions, arrivals (step, 1)."""
        from oldlight.kernels import greedy as kernels

        pending = np.array(world.problem.pending[: world.problem.horizon], dtype=np.int64)
        played = world.played(1)
        kernels.episode(self.salt, *self._arrays(model), world.arrays, pending, draws.arrays(), played)
        return played.returns, played.states, played.actions, played.settles

    def play_block(self, model: Estimate, world: World, learnt: Any, block: Any) -> None:
        """Play the episodes of a block and learn from them; the table has room for all of them first."""
        from oldlight.kernels import delayed_ucbvi as kernels

        n = len(block.returns)
        block.which[:] = -1  # this policy cannot be kept
        self._make_room((n + 1) * (world.problem.horizon + len(self.tables.ends)))
        salts = np.append(self.salt, self.rng.integers(2**63, size=n).astype(np.uint64))
        pending = np.array(world.problem.pending[: world.problem.horizon], dtype=np.int64)
        kernels.greedy_block(world.arrays, pending, world.played(1), learnt, self._arrays(model), salts, block)
        self.salt = salts[-1]

    def choose(self, model: Estimate, info: Information) -> int:
        """What the agent does on `info`."""
        from oldlight.kernels import greedy as kernels

        A, warmup = self.tables.setting.n_actions, self.tables.setting.warmup
        q = np.empty(A)
        nothing = info.t is None or info.state is None
        t, s = (-warmup - 1, 0) if info.t is None or info.state is None else (info.t, info.state)
        known = kernels.Known(info.h, t, s, len(info.queue), encode(info.queue, A), 0 if nothing else info.waited)
        kernels.lookahead(known, q, *self._arrays(model))
        return int(kernels.best_of(q, self.tables.layout.index(info), self.salt))

    def policy(self, model: Estimate) -> FunctionPolicy:
        """The policy as an object (valid until the next episode is seen)."""
        return FunctionPolicy(partial(self.choose, model), self.tables.setting.n_actions)

    def state(self) -> dict[str, Any]:
        parts = {
            "plain": self.plain,
            "keys": self.keys,
            "values": self.values,
            "used": self.used,
            "salt": np.array(self.salt),
        }
        return {f"greedy.{name}": array for name, array in parts.items()}

    def restore(self, state: dict[str, Any]) -> None:
        self.keys, self.values = np.array(state["greedy.keys"]), np.array(state["greedy.values"])
        self.used[:], self.plain[:] = state["greedy.used"], state["greedy.plain"]
        self.salt = np.uint64(state["greedy.salt"])
