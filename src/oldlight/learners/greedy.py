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
from numpy.typing import NDArray

from oldlight.information import Information, encode
from oldlight.learners.tables import Estimate, Tables
from oldlight.policies import FunctionPolicy
from oldlight.simulation import Draws, World

Floats = NDArray[np.float64]
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
        from oldlight.learners import greedy_kernels as kernels

        setting, tables = self.tables.setting, self.tables
        kernels.without_delay(
            self.plain, setting.horizon, setting.lead, tables.rewards, tables.remaining, model.index, model.weight,
            model.n_next, model.bonus, model.known,
        )  # fmt: skip
        self.salt = np.uint64(self.rng.integers(2**63))
        if 2 * self.used[0] > len(self.keys):
            keys, values = np.zeros(4 * len(self.keys), dtype=np.int64), np.zeros(4 * len(self.keys))
            kernels.rehash(self.keys, self.values, keys, values)
            self.keys, self.values = keys, values

    def _context(self, model: Estimate) -> tuple[Any, ...]:
        tables, setting = self.tables, self.tables.setting
        layout = tables.layout
        return (
            self.plain, layout.offset, layout.root, tables.ends, self.keys, self.values, setting.horizon, setting.lead,
            setting.law.cap, tables.powers, tables.rewards, tables.remaining, model.index, model.weight, model.n_next,
            model.bonus, model.theta, model.theta_bonus, model.known, model.first_theta, model.rho, model.root_bonus,
        )  # fmt: skip

    def play(self, model: Estimate, world: World, luck: Draws) -> tuple[Any, ...]:
        """One episode in the world: returns, and states, actions, arrivals (step, 1)."""
        from oldlight.learners import greedy_kernels as kernels

        problem = world.problem
        H, lead = problem.horizon, problem.lead
        states, actions, settles = np.zeros((3, lead + H, 1), dtype=np.int32)
        agent, ages = np.zeros((5, 1), dtype=np.int64), np.zeros((H, lead + H + 1), dtype=np.int64)
        returns, earned = np.zeros(1), np.zeros(H)
        kernels.episode(  # type: ignore[call-arg]
            self.salt, self.used, *self._context(model), world.initial, world.index, world.cumulative, world.first,
            world.rewards, world.links, world.powers, np.array(problem.pending[:H], dtype=np.int64), luck.lost, luck.state,
            luck.link, luck.action, states, actions, settles, agent, returns, earned, ages,
        )  # fmt: skip
        return returns, states, actions, settles

    def choose(self, model: Estimate, info: Information) -> int:
        """What the agent does on `info`."""
        from oldlight.learners import greedy_kernels as kernels

        A, lead = self.tables.setting.n_actions, self.tables.setting.lead
        q = np.empty(A)
        nothing = info.t is None or info.state is None
        t, s = (-lead - 1, 0) if info.t is None or info.state is None else (info.t, info.state)
        code, m = encode(info.queue, A), len(info.queue)
        context = self._context(model)
        waited = 0 if nothing else info.waited
        kernels.lookahead(info.h, t, s, m, code, waited, q, *context)
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
