"""Plans for estimated processes behind a delay alone whose law is known, as tables, by one compiled sweep (`oldlight.kernels.delay`).

The process may have one state more than the true one (`learners.optimistic_model`), which is never seen: the planned table has its entries, and the
table that is played, of the true problem's layout, is made of the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oldlight.arrays import Ints
from oldlight.learners.base import Setting
from oldlight.learners.optimistic_tables import Estimate, Tables
from oldlight.model.channels import StochasticDelay
from oldlight.model.information import Layout
from oldlight.model.mdp import TabularMDP
from oldlight.model.policies import TablePolicy
from oldlight.model.problem import ImpairedMDP, WarmStart


class LearntTable:
    """The tables of a setting. extra: how many states the processes have more."""

    def __init__(self, setting: Setting, extra: int) -> None:
        assert setting.layout is not None
        self.layout, wide = setting.layout, with_more_states(setting, extra) if extra else setting
        H, S, A = wide.horizon, wide.n_states, wide.n_actions
        self.tables = Tables(wide, np.zeros((H, S, A)), bonuses=False)
        theta = np.ones((1, S * A, 1))
        if not setting.warmup:
            hazard = wide.law.hazard
            theta = np.array(np.broadcast_to(hazard, (len(hazard), S, A, hazard.shape[3])), order="C")
            theta = theta.reshape(len(hazard), S * A, -1)
        first = np.array(wide.law.first_hazard) if setting.warmup == 0 else np.zeros(H + 1)
        self.model = Estimate(
            np.zeros((H, S * A, S), dtype=np.int32), np.zeros((H, S * A, S)), np.zeros((H, S * A), dtype=np.int64),
            np.zeros((1, 0)), np.zeros((0, 0)), theta, np.zeros((1, 0, 0)), np.zeros((1, 0), dtype=np.bool_), first,
            np.array(wide.initial), np.zeros(H),
        )  # fmt: skip
        self.keep = places_kept(self.layout, self.tables.layout) if extra else np.zeros((0, 3), dtype=np.int64)
        self.actions = np.zeros(self.layout.size, dtype=self.tables.actions.dtype) if extra else self.tables.actions

    @property
    def plan(self) -> Any:
        """What the sweep reads and writes; its arrays change in place."""
        return self.tables.plan(self.model)

    def policy(self) -> TablePolicy:
        """The policy that is played, as an object of its own."""
        return TablePolicy.trusted(self.layout, self.actions.copy())


def with_more_states(setting: Setting, extra: int) -> Setting:
    """The same setting with states that are never seen; where the link's law depends on the state, theirs, which does not matter, is that of the first."""
    H, S, A = setting.horizon, setting.n_states + extra, setting.n_actions
    channel: Any = setting.channel
    law = channel.delay.law(H, setting.n_states, A)
    if law.interarrival.shape[1] > 1:
        channel = StochasticDelay(
            np.concatenate([law.interarrival, law.interarrival[:, :extra]], axis=1), first=law.first
        )
    rest = np.broadcast_to(np.eye(S)[:, None], (S, A, S))
    mdp = TabularMDP(rest, np.zeros((S, A)), horizon=H, initial=np.append(setting.initial, np.zeros(extra)))
    start = WarmStart() if setting.warmup else None
    problem = ImpairedMDP(mdp, channel, start=start, actuation=setting.actuation, pending=setting.pending)
    return Setting.of(problem, setting.episodes, setting.failure, Layout.of(problem))


def places_kept(layout: Layout, more: Layout) -> Ints:
    """Where the places of a layout stand in one of the same problem with more states: rows (first place here, first place there, how many)."""
    S, A = layout.n_states, layout.n_actions
    blocks = np.argwhere(layout.offset >= 0).tolist()
    rows = [(layout.offset[h, m, waited], more.offset[h, m, waited], S * A**m) for h, m, waited in blocks]
    rows += [(layout.root[h], more.root[h], A**h) for h in np.flatnonzero(layout.root >= 0).tolist()]
    return np.array(rows, dtype=np.int64)
