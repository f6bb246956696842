"""Laws of the state as rows of a matrix, dense or sparse: what bounds by products of matrices ask of either.

Row i of B is a law of s_u. One step on with the actions a_i it is row i of B', where column s of B stands at s·A + a_i of a wider matrix that is
multiplied by P_u (S·A × S): one product whatever the actions, and nothing of size S² where B and P_u are sparse.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oldlight.arrays import Floats, Ints
from oldlight.model.mdp import TabularMDP


def is_sparse(rows: Any) -> bool:
    """Is this matrix a sparse one?"""
    return hasattr(rows, "toarray")


def dense(rows: Any) -> Floats:
    return np.asarray(rows.toarray() if is_sparse(rows) else rows)


def sparse(rows: Any) -> Any:
    from scipy.sparse import csr_array

    return csr_array(rows)


def stacked(parts: list[Any]) -> Any:
    """The rows of all parts."""
    if not is_sparse(parts[0]):
        return np.concatenate(parts)
    from scipy.sparse import vstack

    return vstack(parts, format="csr")


def likeliest(B: Any) -> Ints:
    """The likeliest state of each row."""
    return np.asarray(B.argmax(axis=1)).reshape(-1).astype(np.int64)


def advanced(B: Any, matrix: Any, acts: Ints) -> Any:
    """Each law one step on, B[i]·P(acts[i]); matrix: P with the rows s·A + a."""
    A = matrix.shape[0] // matrix.shape[1]
    if is_sparse(B):
        from scipy.sparse import csr_array

        column = B.indices.astype(np.int64) * A + np.repeat(acts, np.diff(B.indptr))
        wide = csr_array((B.data, column, B.indptr), shape=(B.shape[0], matrix.shape[0]))
        return wide @ matrix
    out = np.empty_like(B)
    for a in np.unique(acts).tolist():
        rows = acts == a
        out[rows] = (matrix[a::A].T @ B[rows].T).T
    return out


def means(B: Any, table: Floats, columns: Ints) -> Floats:
    """Σ_s B[i, s]·table[s, columns[i]] for each row i."""
    if not is_sparse(B):
        return np.asarray(np.einsum("is,si->i", B, table[:, columns]))
    row = np.repeat(np.arange(B.shape[0]), np.diff(B.indptr))
    weights = B.data * table[B.indices, columns[row]]
    return np.asarray(np.bincount(row, weights, minlength=B.shape[0]), dtype=np.float64)


def likely_states(mdp: TabularMDP, initial: Floats) -> Floats:
    """The law of s_h under the plan of somebody who sees everything, [h, s]."""
    H, S = mdp.finite_horizon, mdp.n_states
    V, plan = np.zeros(S), np.empty((H, S), np.int64)
    for h in range(H - 1, -1, -1):
        x = mdp.rewards[h] + mdp.expected(V, h)
        plan[h], V = x.argmax(axis=1), x.max(axis=1)
    law = np.empty((H, S))
    law[0] = initial
    for h in range(H - 1):
        law[h + 1] = law[h] @ mdp.matrix(h)[np.arange(S) * mdp.n_actions + plan[h]]
    return law
