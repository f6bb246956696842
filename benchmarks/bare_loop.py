"""Simulations of one link each as one would write them out, in one loop: what `oldlight.simulate` is compared with.

The same random numbers (drawn by NumPy, chunk by chunk), the same running sums and the same table look-up: nothing is recorded, no
age is counted, no rewards are added up by step, and the loop knows its link: a constant delay, a random one that does not look at the process, or losses
without a delay. It is not the least time: the same work as several short loops over fewer episodes takes half of its loop's time
(`oldlight.kernels.independent_links`), with all of the above.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

import oldlight as ol
from oldlight.kernels.random_numbers import begin, fill
from oldlight.model.successors import successor_sums
from oldlight.random_streams import words

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


@nb.njit(nogil=True)
def _play_random(
    successor, cumulative, rewards, table, offset, root, initial, u, link, first, waits, longest, returns, A
):  # type: ignore[no-untyped-def]
    """Episodes behind a random delay, in order and at most one observation a time; link[i, e]: when observation i comes, as a random number; waits[i]: running sums of how
    long after i the next one comes."""
    n, K, H = len(returns), successor.shape[1], u.shape[0]
    states, comes = np.empty((H, n), np.int32), np.empty((H, n), np.int32)
    code, newest, weight, waited = np.zeros(n, np.int64), np.full(n, -1), np.ones(n, np.int64), np.zeros(n, np.int64)
    for e in range(n):
        s = 0
        for k in range(len(initial) - 1):
            s += u[0, e] >= initial[k]
        when = 0
        for k in range(len(first) - 1):
            when += link[0, e] >= first[k]
        states[0, e], comes[0, e], returns[e] = s, min(when, longest), 0.0
    for h in range(H):
        for e in range(n):
            t = newest[e] + 1
            waited[e] += 1
            if t <= h and comes[t, e] == h:
                if t > 0:
                    code[e] //= A
                    weight[e] //= A
                newest[e], waited[e] = t, 0
            s, t = np.int64(states[h, e]), newest[e]
            if t < 0:
                a = np.int64(table[root[h] + code[e]])
            else:
                m = h - t
                a = np.int64(
                    table[offset[min(h, len(offset) - 1), m, min(waited[e], m)] + states[t, e] * weight[e] + code[e]]
                )
            returns[e] += rewards[h, s, a]
            code[e] += a * weight[e]
            weight[e] *= A
            if h + 1 < H:
                row = s * A + a
                k = 0
                for j in range(K - 1):
                    k += u[h + 1, e] >= cumulative[row, j]
                states[h + 1, e] = successor[row, k]
                more = 0
                for j in range(waits.shape[1] - 1):
                    more += link[h + 1, e] >= waits[min(h, len(waits) - 1), j]
                comes[h + 1, e] = min(comes[h, e] + 1 + more, h + 1 + longest)


@nb.njit(nogil=True)
def _play_lost(successor, cumulative, rewards, sequences, initial, u, lost, returns, A):  # type: ignore[no-untyped-def]
    """Episodes behind losses, never late: the policy follows the sequence of the newest state that was seen, sequences[t + 1, s, 0, h − t]."""
    n, K, H = len(returns), successor.shape[1], u.shape[0]
    now, newest, then = np.empty(n, np.int64), np.full(n, -1), np.zeros(n, np.int64)
    for e in range(n):
        s = 0
        for k in range(len(initial) - 1):
            s += u[0, e] >= initial[k]
        now[e], returns[e] = s, 0.0
    for h in range(H):
        for e in range(n):
            s = now[e]
            if not lost[h, e]:
                newest[e], then[e] = h, s
            t = newest[e]
            a = np.int64(sequences[t + 1, then[e], 0, h - max(t, 0)])
            returns[e] += rewards[h, s, a]
            if h + 1 < H:
                row = s * A + a
                k = 0
                for j in range(K - 1):
                    k += u[h + 1, e] >= cumulative[row, j]
                now[e] = successor[row, k]


class BareLoop:
    """Episodes of a problem behind one of these links, with the policy that a plan has there."""

    def __init__(self, problem: ol.ImpairedMDP, policy: Any) -> None:
        self.problem, self.policy = problem, policy
        index, sums = successor_sums(problem.mdp)
        self.process = (index[0], sums[0], np.array(problem.mdp.rewards, order="C"))
        self.initial = np.cumsum(problem.initial)
        law = problem.law
        self.first, self.waits = np.cumsum(law.first), np.cumsum(law.interarrival[:, 0, 0], axis=1)

    def play(self, episodes: int, seed: int) -> np.ndarray[Any, Any]:
        """Their returns, those of `oldlight.simulate`."""
        found = np.empty(-(-episodes // CHUNK) * CHUNK)
        for chunk in range(len(found) // CHUNK):
            self._chunk(seed, chunk, found[chunk * CHUNK : (chunk + 1) * CHUNK])
        return found[:episodes]

    def _chunk(self, seed: int, chunk: int, found: np.ndarray[Any, Any]) -> None:
        problem, policy, A = self.problem, self.policy, self.problem.n_actions
        H, warmup, d = problem.horizon, problem.warmup, problem.law.constant
        u = _generator(seed, chunk, 0).random((warmup + H, CHUNK))
        if problem.loss is not None:
            lost = problem.loss.lost(_generator(seed, chunk, 1), H, CHUNK)
            _play_lost(*self.process, policy.sequences, self.initial, u, lost, found, A)
            return
        table, layout = policy.actions, policy.layout
        if d is None:
            link = np.zeros((H, CHUNK))
            _generator(seed, chunk, 1).random(out=link[: problem.law.uncertain_steps])
            law = (self.first, self.waits, problem.law.longest_delay)
            _play_random(*self.process, table, layout.offset, layout.root, self.initial, u, link, *law, found, A)
            return
        begun = _generator(seed, chunk, 2).random((warmup, CHUNK))
        at = layout.offset[:, d, 0] if d < layout.offset.shape[1] else layout.root
        parts = (table, np.ascontiguousarray(at), layout.root, self.initial)
        _play(*self.process, *parts, u, begun, found, A, d, warmup)


def _generator(seed: int, chunk: int, purpose: int) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(chunk, purpose))))


def draw_numbers(episodes: int, horizon: int) -> None:
    """The random numbers of the process alone, of these episodes, by NumPy."""
    room = np.empty((horizon, CHUNK))
    for chunk in range(-(-episodes // CHUNK)):
        _generator(seed=1, chunk=chunk, purpose=0).random(out=room)


def our_numbers(episodes: int, horizon: int) -> None:
    """The same numbers by the compiled loop that a simulation uses."""
    room, state = np.empty((horizon, CHUNK)), np.empty(4, np.uint64)
    for chunk in range(-(-episodes // CHUNK)):
        begin(words(1), chunk, 0, state)
        fill(state, room)
