"""Transitions between two observations that are n > 1 steps apart: what was lost in between is filled in by expectation–maximisation.

Let s_t and s_{t+n} be revealed, a_t..a_{t+n−1} be done, and nothing between them be seen. Under a law p the expected number of transitions
(s, a_{t+j}, s2) at step t + j is

    f_j(s)·p_{t+j}(s2|s, a_{t+j})·g_{j+1}(s2) / Σ,        f_j(s) = P(s_{t+j} = s | s_t),    g_j(s) = P(s_{t+n} | s_{t+j} = s),

and the next p is made of the counts plus these. Each round raises the likelihood of everything that was revealed, with a Dirichlet prior that keeps every
successor possible that was ever revealed: a state that never was is not made up to explain what is hidden. Behind a slow sensor, where there are stretches alone, the likelihood can have
several maxima, and what is found may be another one than the truth. Stretches that are alike are counted once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oldlight.arrays import Floats
from oldlight.model.episode import Episode

ROUNDS = 5  # of expectation and maximisation, from where the last ones ended


class HiddenStretches:
    """Stretches (t, s_t, actions, s_{t+n}) of 2..longest steps, and how often each was met; t is 0 where all steps share their counts."""

    def __init__(self, longest: int, pooled: bool) -> None:
        self.longest, self.pooled = longest, pooled
        self.met: dict[tuple[int, ...], int] = {}  # (t, s, s2, actions ..)

    def add(self, episode: Episode) -> None:
        """Those of one episode (steps before step 0 are left out: they are seen, or stand for nothing)."""
        s, a = episode.states[episode.warmup :], episode.actions[episode.warmup :]
        seen = np.flatnonzero(s >= 0)
        for i, j in zip(seen[:-1].tolist(), seen[1:].tolist(), strict=True):
            if 1 < j - i <= self.longest:
                key = (0 if self.pooled else i, int(s[i]), int(s[j]), *a[i:j].tolist())
                self.met[key] = self.met.get(key, 0) + 1

    def expected(self, number: Floats, hidden: Floats) -> Floats:
        """The expected transitions, as `number` [1 or H, s, a, s2], from those of before."""
        if not self.met:
            return np.zeros_like(number)
        S = number.shape[3]
        seen = number.sum(axis=(0, 1, 2)) + number.sum(axis=(0, 2, 3)) > 0
        for _, first, last, *_ in self.met:
            seen[first] = seen[last] = True
        for _ in range(ROUNDS):
            total = number + hidden + seen / S
            rows = total / total.sum(axis=3, keepdims=True)
            hidden = np.zeros_like(number)
            for (t, first, last, *actions), times in self.met.items():
                _fill(rows, hidden, t, first, last, actions, times)
        return hidden

    def state(self) -> dict[str, Any]:
        table = np.full((len(self.met), self.longest + 5), -1, dtype=np.int64)
        for i, (key, times) in enumerate(self.met.items()):
            table[i, : len(key) + 1] = (times, *key)
        return {"stretches": table}

    def restore(self, state: dict[str, Any]) -> None:
        rows = [[x for x in row if x >= 0] for row in state["stretches"].tolist()]
        self.met = {tuple(row[1:]): row[0] for row in rows}


def _fill(rows: Floats, hidden: Floats, t: int, first: int, last: int, actions: list[int], times: int) -> None:
    """Add the expected transitions of one stretch."""
    n = len(actions)
    steps = [rows[min(t + j, len(rows) - 1), :, a] for j, a in enumerate(actions)]
    forward = [np.eye(rows.shape[1])[first]]
    for P in steps[:-1]:
        forward.append(forward[-1] @ P)
    back = np.eye(rows.shape[1])[last]
    for j in range(n - 1, -1, -1):
        joint = forward[j][:, None] * steps[j] * back[None, :]
        hidden[min(t + j, len(rows) - 1), :, actions[j]] += times * joint / joint.sum()
        back = steps[j] @ back
