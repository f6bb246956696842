"""Policies in Python that answer for many information states at once (`actions_at`, as the rungs of `oldlight.planning.ladder` do), asked for a chunk of
episodes: one call for each newest visible step and wait, and each different (state, queue) of them once."""

from __future__ import annotations

from typing import Any

import numpy as np

from oldlight.arrays import Ints


def ask_at_once(policy: Any, h: int, warmup: int, states: Any, actions: Any, agent: Ints) -> Ints:
    """The action of each episode at time h; states and actions: axes (step, episode), agent[:4]: newest step, queue length, code, wait."""
    chosen = np.empty(agent.shape[1], dtype=np.int64)
    kinds, which = np.unique(agent[[0, 1, 3]], axis=1, return_inverse=True)
    for kind, (t, m, waited) in enumerate(kinds.T.tolist()):
        rows = np.flatnonzero(which.reshape(-1) == kind)
        seen = t >= -warmup
        state = states[warmup + t, rows] if seen else np.zeros(len(rows), np.int64)
        queue = actions[warmup + h - m : warmup + h, rows].T
        different, back = np.unique(np.column_stack([state, queue]), axis=0, return_inverse=True)
        wait = waited if seen else h + 1
        answers = policy.actions_at(h, t if seen else None, wait, different[:, 0].astype(np.int64), different[:, 1:])
        chosen[rows] = answers[back.reshape(-1)]
    return chosen
