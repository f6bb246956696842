"""A simulation of a constant delay as one would write it out, in one loop: what `oldlight.simulate` is compared with.

The same random numbers (drawn by the same generator, chunk by chunk), the same running sums and the same table look-up: nothing is recorded, no
age is counted, no rewards are added up by step, no link is played, and the delay is a number that the loop knows. It is not the least time: the same work as
several short loops over fewer episodes takes half of its loop's time (`oldlight.kernels.independent_links`), with all of the above.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

import oldlight as ol
from oldlight.model.successors import successor_sums

CHUNK = 4096


@nb.njit(nogil=True)
def _play(successor, cumulative, rewards, table, offset, root, initial, u, begun, returns, A, d, warmup):  # type: ignore[no-untyped-def]
    """Episodes with the delay d; begun[i, e]: the actions before step 0 as random numbers. Column by column of `u`, a step at a time."""
    S = len(initial)
    n, K, steps = len(returns), successor.shape[1], u.shape[0]
    states = np.empty((steps, n), np.int32)
    code = np.zeros(n, np.int64)
    full = A**d
    for e in range(n):
        s = 0
        for k in range(S - 1):
            s += u[0, e] >= initial[k]
        states[0, e] = s
        returns[e] = 0.0
    for i in range(steps):
        h = i - warmup
        seen = i >= d
        for e in range(n):
            s = np.int64(states[i, e])
            if h < 0:
                a = np.int64(begun[i, e] * A)
            elif seen:
                a = np.int64(table[offset[h] + states[i - d, e] * full + code[e]])
            else:
                a = np.int64(table[root[h] + code[e]])
            if h >= 0:
                returns[e] += rewards[h, s, a]
            code[e] = (code[e] + a * full) // A if seen else code[e] + a * A**i
            if i + 1 < steps:
                row = s * A + a
                k = 0
                for j in range(K - 1):
                    k += u[i + 1, e] >= cumulative[row, j]
                states[i + 1, e] = successor[row, k]


class BareLoop:
    """Episodes of a problem with a constant delay and a policy that is a table."""

    def __init__(self, problem: ol.ImpairedMDP, policy: Any) -> None:
        index, sums = successor_sums(problem.mdp)
        layout, self.d, self.warmup = policy.layout, problem.law.constant, problem.warmup
        at = layout.offset[:, self.d, 0] if self.d < layout.offset.shape[1] else layout.root
        initial = np.cumsum(problem.initial)
        rewards = np.array(problem.mdp.rewards, order="C")
        self.parts = (index[0], sums[0], rewards, policy.actions, np.ascontiguousarray(at), layout.root, initial)
        self.horizon, self.n_actions = problem.horizon, problem.n_actions

    def play(self, episodes: int, seed: int) -> np.ndarray[Any, Any]:
        """Their returns, those of `oldlight.simulate`."""
        found = np.empty(-(-episodes // CHUNK) * CHUNK)
        steps = self.warmup + self.horizon
        for chunk in range(len(found) // CHUNK):
            rngs = [
                np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(chunk, purpose))))
                for purpose in (0, 2)
            ]
            u, begun = rngs[0].random((steps, CHUNK)), rngs[1].random((self.warmup, CHUNK))
            _play(
                *self.parts, u, begun, found[chunk * CHUNK : (chunk + 1) * CHUNK], self.n_actions, self.d, self.warmup
            )
        return found[:episodes]
