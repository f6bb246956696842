"""The augmented MDP of a constant delay, written out as sparse matrices that other solvers read.

Stationary process, delay d, warm start. An augmented state is (s_t, q1..qd): the newest visible state t = h − d and the
actions done since, q1 the oldest. In the *past-reward* form, acting a in it earns r(s_t, q1), the reward of the step that
is visible now, and leads to (s_{t+1}, q2..qd, a) with probability P(s_{t+1} | s_t, q1). With the index

    state   s·A^d + code,   code = q1·A^{d−1} + ... + qd         (q1 is the most significant digit)
    pair    state·A + a  =  (s·A + q1)·A^d + c,   c the code of (q2..qd, a)

pair (s, q1, c) goes to state (s2, c): Q = P ⊗ I, where P has the S·A rows (s, q1) and I has A^d rows. Nothing here uses
oldlight's planner, not even its order of codes.

**Which accounting.** H backward steps from the terminal value G, the open-loop value of d more steps:

    v_H = G,   v_h(x) = max_a r(s, q1) + Σ Q(x2|x, a)·v_{h+1}(x2),   G[s, q1..qd] = Σ_{i=1..d} E[ r(s_{t+i−1}, qi) ].

v_0 counts H + d rewards, all of them with one and the same R, so that a solver for stationary rewards does the whole job
in one call: this is the reading of "warm start over past-reward steps from 1−d on, every one of the H+d steps rewarded".
The d rewards of the steps before step 0 are those of the queue that the agent starts with. It cannot change them, and
their expectation given (s, q) is G[s, q] once more. A warm start as `oldlight.WarmStart` means it (no reward before
step 0) therefore has the values v_0 − G: same policy, same work, equal to the last bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import oldlight as ol


@dataclass(frozen=True)
class Augmented:
    """n states and L = n·A state-action pairs of the augmented MDP."""

    R: Any  # [pair]
    Q: sp.csr_matrix  # [pair, state]
    s_indices: Any  # [pair]
    a_indices: Any  # [pair]
    after: Any  # [state]: G, the terminal value, and also what the steps before step 0 are expected to earn
    n_states: int  # of the original process
    n_actions: int

    def quantecon(self) -> dict[str, Any]:
        """The arguments of `quantecon.markov.DiscreteDP`, apart from beta = 1."""
        return {"R": self.R, "Q": self.Q, "s_indices": self.s_indices, "a_indices": self.a_indices}

    def mdptoolbox(self) -> tuple[list[sp.csr_matrix], Any]:
        """transitions (one n × n matrix per action) and reward (n × A), as `mdptoolbox.mdp` takes them."""
        return [self.Q[a :: self.n_actions] for a in range(self.n_actions)], self.R.reshape(-1, self.n_actions)

    def warm(self, v_0: Any) -> Any:
        """Values of a warm start, [s, code], from v_0 (all H + d steps rewarded)."""
        return (np.asarray(v_0) - self.after).reshape(self.n_states, -1)


def augment(mdp: ol.TabularMDP, d: int) -> Augmented:
    """The augmented MDP of `mdp` behind a constant delay d; see the module's text."""
    if not mdp.stationary:
        raise ValueError(f"{mdp!r} changes with the step; the explicit model is written for a stationary process")
    P, r = np.ascontiguousarray(mdp.transitions[0]), np.ascontiguousarray(mdp.rewards[0])
    S, A = r.shape
    C = A**d  # codes
    rows = P.reshape(S * A, S)
    successors = [np.flatnonzero(row) for row in rows]
    counts = np.array([len(found) for found in successors])
    nnz = int(counts.sum()) * C
    wide = np.int32 if max(nnz, S * C) < 2**31 else np.int64
    indptr = np.zeros(S * A * C + 1, dtype=wide)
    np.cumsum(np.repeat(counts, C), out=indptr[1:])
    indices, data = np.empty(nnz, dtype=wide), np.empty(nnz)
    codes = np.arange(C, dtype=wide)
    for i, found in enumerate(successors):  # S·A blocks of C rows each
        here = slice(int(indptr[i * C]), int(indptr[(i + 1) * C]))
        np.add(codes[:, None], (found * C).astype(wide), out=indices[here].reshape(C, -1))
        data[here].reshape(C, -1)[:] = rows[i, found]
    Q = sp.csr_matrix((data, indices, indptr), shape=(S * A * C, S * C))
    pairs = np.arange(S * C * A)
    return Augmented(np.repeat(r.ravel(), C), Q, pairs // A, pairs % A, open_loop(P, r, d).ravel(), S, A)


def open_loop(P: Any, r: Any, d: int) -> Any:
    """G[s, code]: what d given actions are expected to earn from state s on."""
    S, A = r.shape
    G = np.zeros((S, 1))
    for m in range(d):  # G_{m+1}[s, q1, rest] = r(s, q1) + Σ_s2 P(s2|s, q1) G_m[s2, rest]
        G = (r[:, :, None] + (P.reshape(S * A, S) @ G).reshape(S, A, A**m)).reshape(S, A ** (m + 1))
    return G
