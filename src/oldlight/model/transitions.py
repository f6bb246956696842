"""How the transitions of a process are stored: a dense array, or for each step one sparse matrix with the rows s·A + a.

Both storages answer in the same way: `Transitions.matrix(h)` is a matrix of shape (S·A, S), a view of the array or a `scipy.sparse.csr_array`,
and everything else follows from products with it,

    Σ_s2 P_h(s2|s, a)·V(s2) = (matrix @ V)[s·A + a],        Σ_s b(s)·P_h(s2|s, a) = (b @ matrix[a::A])[s2].

Sparse transitions are given in one of these forms, and stored in one: compressed rows, sorted, without zeros, 12 bytes a successor.

    one matrix (S·A × S)                         rows s·A + a, for every step
    a list of A matrices (S × S)                 one for each action, for every step
    a list of H of either                        one for each step
    {"s": .., "a": .., "s2": .., "p": ..}        four lists of one length, a successor each; what is listed twice is added up.
                                                 With "h": .. as well they belong to that step. S and A are those of the rewards.

Where a list of matrices has the shape (S × S), they belong to actions; with one action, and a list as long as the horizon, to steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oldlight import checks, machine
from oldlight.arrays import Floats, Ints

NAME = "transitions"
DENSE_LIMIT = 2**28  # bytes of a dense array that is made of a sparse model on request
SMALL = 2**26  # bytes of a dense array that is not worth a sparse one
COLUMNS = ("s", "a", "s2", "p")


@dataclass(frozen=True, eq=False)
class Transitions:
    """The stored transitions: one matrix, or one for each step. `own` holds the same numbers for compiled code, which may not be written."""

    n_states: int
    n_actions: int
    stationary: bool
    steps: tuple[Any, ...]  # [h] (S·A, S), arrays or csr_array, read-only
    own: tuple[Any, ...]  # [h] the same with arrays that are not marked as read-only: one type for the compiler
    whole: Floats | None = None  # [h, s, a, s2] of a dense one, read-only; one h if stationary

    @property
    def sparse(self) -> bool:
        """Are the steps sparse matrices?"""
        return self.whole is None

    def matrix(self, h: int) -> Any:
        """P_h with the rows s·A + a."""
        return self.steps[0 if self.stationary else h]

    def dense(self, horizon: int) -> Floats:
        """Axes [h, s, a, s2]; made anew if the storage is sparse, and refused beyond `DENSE_LIMIT`."""
        S, A = self.n_states, self.n_actions
        if self.whole is not None:
            return np.broadcast_to(self.whole, (horizon, S, A, S)) if self.stationary else self.whole
        size = 8 * S * A * S * len(self.steps)
        if size > DENSE_LIMIT:
            raise checks.TooLarge(
                f"a dense array of this sparse process has {machine.format_bytes(size)}; it is made up to {machine.format_bytes(DENSE_LIMIT)}. "
                "Ask for one step, mdp.matrix(h): a sparse matrix with the rows s·A + a"
            )
        found = np.stack([step.toarray().reshape(S, A, S) for step in self.steps])
        found.setflags(write=False)
        return np.broadcast_to(found, (horizon, S, A, S))

    @property
    def nbytes(self) -> int:
        """What is held in memory."""
        if self.whole is not None:
            return int(self.whole.nbytes)
        return sum(int(step.data.nbytes + step.indices.nbytes + step.indptr.nbytes) for step in self.steps)

    def argument(self) -> Any:
        """What `TabularMDP` was given, without the repeated step axis."""
        if self.sparse:
            return self.steps[0] if self.stationary else list(self.steps)
        return self.dense(1)[0] if self.stationary else self.dense(len(self.steps))

    def same(self, other: Transitions) -> bool:
        """Are these the same probabilities, whatever the storage?"""
        if (self.n_states, self.n_actions) != (other.n_states, other.n_actions):
            return False
        if len(self.steps) != len(other.steps) and not (self.stationary or other.stationary):
            return False
        pairs = ((self.matrix(h), other.matrix(h)) for h in range(max(len(self.steps), len(other.steps))))
        return all(_same(one, two) for one, two in pairs)


def _same(one: Any, two: Any) -> bool:
    if not checks.is_sparse(one) and not checks.is_sparse(two):
        return bool(np.array_equal(one, two))
    from scipy.sparse import csr_array

    one, two = csr_array(one), csr_array(two)
    return all(np.array_equal(getattr(one, part), getattr(two, part)) for part in ("indptr", "indices", "data"))


def stored(values: Any, horizon: int | None, shape: tuple[int, ...]) -> Transitions:
    """The transitions that were given, in any of the forms of the module's text; `shape`: that of the rewards."""
    if checks.is_sparse(values):
        return _checked([_one_step(values, NAME)], True)
    if isinstance(values, Mapping):
        return _from_triples(values, horizon, shape)
    first = checks.first_sparse(values)
    if first is None:
        return _dense(values, horizon)
    return _from_list(list(values), horizon, shape)


def smaller(columns: Mapping[str, ArrayLike], n_states: int, n_actions: int) -> Any:
    """Triples {"s", "a", "s2", "p"} as an argument of `TabularMDP`: a dense array if that is small or no larger than the sparse form."""
    S, A = n_states, n_actions
    s, a, s2, p = (np.asarray(columns[name]) for name in COLUMNS)
    dense = 8 * S * A * S
    if dense > SMALL and 12 * len(p) + 4 * S * A < dense:
        return dict(columns)
    P = np.zeros((S, A, S))
    np.add.at(P, (s.astype(np.int64), a.astype(np.int64), s2.astype(np.int64)), p.astype(np.float64))
    return P


# -- dense ------------------------------------------------------------------------------------------------------------


def _dense(values: ArrayLike, horizon: int | None) -> Transitions:
    given = np.shape(values) if isinstance(values, np.ndarray) else ()
    size, limit = 8 * int(np.prod(given, dtype=object)), machine.default_limit()
    if size > limit:
        raise checks.TooLarge(
            f"{NAME} of shape {given} make a table of {machine.format_bytes(size)}; it may take {machine.format_bytes(limit)}, half of "
            "the memory. Where most entries are zero give scipy.sparse: one matrix with the rows s·A + a, or a list with one for each action"
        )
    P = checks.numbers(NAME, values)
    if P.ndim not in (3, 4):
        raise ValueError(f"{NAME} has shape {P.shape}; expected (S, A, S) or (H, S, A, S)")
    S, A = P.shape[-3], P.shape[-2]
    if P.shape[-1] != S:
        raise ValueError(
            f"{NAME} has shape {P.shape}: {S} states on axis {P.ndim - 3} but {P.shape[-1]} on the last axis; "
            "the axes are (s, a, s'), after an optional step axis"
        )
    if P.ndim == 4 and horizon is not None and P.shape[0] != horizon:
        raise ValueError(f"{NAME} has {P.shape[0]} steps on its first axis, expected horizon = {horizon}")
    axes = ("s", "a", "s'") if P.ndim == 3 else ("h", "s", "a", "s'")
    return trusted(np.array(checks.probability_rows(NAME, P, axes), order="C").reshape(-1, S, A, S), P.ndim == 3)


def trusted(own: Floats, stationary: bool) -> Transitions:
    """Dense ones that are known to be laws, axes [h, s, a, s2] (one h if stationary), contiguous: kept as they are."""
    _, S, A, _ = own.shape
    whole = own.view()
    whole.setflags(write=False)
    steps, own_steps = (tuple(each.reshape(-1, S * A, S)) for each in (whole, own))
    return Transitions(S, A, stationary, steps, own_steps, whole)


# -- sparse -----------------------------------------------------------------------------------------------------------


def _from_list(values: list[Any], horizon: int | None, shape: tuple[int, ...]) -> Transitions:
    """One matrix for each action, or one entry (matrix or list) for each step."""
    if not any(checks.is_sparse(each) for each in values):
        _expect_steps(values, horizon)
        return _checked([_one_step(_of_actions(each, f"{NAME}[{h}]"), f"{NAME}[{h}]") for h, each in enumerate(values)])
    for i, each in enumerate(values):
        if not checks.is_sparse(each):
            raise ValueError(f"{NAME}[{i}] is of type {type(each).__name__}, expected a sparse matrix like the others")
    square = all(each.shape[0] == each.shape[1] for each in values)
    steps = square and shape[-1:] == (1,) and len(values) == horizon  # one action: rows s·A + a are the states
    if square and not steps:
        return _checked([_one_step(_of_actions(values, NAME), NAME)], True)
    _expect_steps(values, horizon)
    return _checked([_one_step(each, f"{NAME}[{h}]") for h, each in enumerate(values)])


def _expect_steps(values: list[Any], horizon: int | None) -> None:
    if horizon is not None and len(values) != horizon:
        raise ValueError(
            f"{NAME} is a list of {len(values)}, expected one for each step: horizon = {horizon}; or one matrix (S × S) for each action"
        )


def _of_actions(matrices: Any, name: str) -> Any:
    """One matrix with the rows s·A + a from one (S × S) for each action."""
    from scipy.sparse import csr_array

    parts = [_compressed(each, f"{name}[{a}]") for a, each in enumerate(matrices)]
    S, A = parts[0].shape[1], len(parts)
    for a, part in enumerate(parts):
        if part.shape != (S, S):
            raise ValueError(f"{name}[{a}] has shape {part.shape}, expected one (S × S) for each action: {(S, S)}")
    counts = np.column_stack([np.diff(part.indptr) for part in parts]).astype(np.int64)
    begin = np.append(0, np.cumsum(counts.reshape(-1)))
    data, indices = np.empty(begin[-1]), np.empty(begin[-1], dtype=_index_type(begin[-1]))
    for a, part in enumerate(parts):
        place = np.arange(part.nnz) + np.repeat(begin[a : S * A : A] - part.indptr[:-1], counts[:, a])
        data[place], indices[place] = part.data, part.indices
    return csr_array((data, indices, begin.astype(indices.dtype)), shape=(S * A, S))


def _index_type(successors: int) -> type[np.signedinteger[Any]]:
    return np.int32 if successors < 2**31 else np.int64


def _compressed(matrix: Any, name: str) -> Any:
    """A private copy in compressed rows, sorted and without zeros."""
    from scipy.sparse import csr_array

    if not checks.is_sparse(matrix):
        raise ValueError(f"{name} is of type {type(matrix).__name__}, expected a sparse matrix like the others")
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise ValueError(f"{name} is a {matrix.ndim}-d sparse array of {matrix.dtype}, expected a matrix of numbers")
    found = csr_array(matrix, dtype=np.float64, copy=True)
    found.sum_duplicates()
    found.eliminate_zeros()
    return found


def _one_step(matrix: Any, name: str) -> Any:
    """A matrix (S·A × S) in the form that is stored."""
    found = _compressed(matrix, name)
    rows, S = found.shape
    if not S or not rows or rows % S:
        raise ValueError(
            f"{name} has shape {(rows, S)}; expected (S·A, S), the rows s·A + a: {rows} is not a multiple of {S}"
        )
    return found


def _from_triples(columns: Mapping[str, Any], horizon: int | None, shape: tuple[int, ...]) -> Transitions:
    from scipy.sparse import coo_array

    known = {*COLUMNS, "h"}
    wrong = [str(key) for key in columns if key not in known] + [key for key in COLUMNS if key not in columns]
    if wrong:
        raise ValueError(f"{NAME} as triples: {wrong[0]!r} is unknown or missing; expected s, a, s2, p and perhaps h")
    if len(shape) < 2:
        raise ValueError(
            f"rewards has shape {shape}; expected (S, A) or (H, S, A): triples take S and A from the rewards"
        )
    S, A = shape[-2:]
    p = checks.numbers(f"{NAME}['p']", columns["p"]).reshape(-1)
    place = {"s": S, "a": A, "s2": S} | ({"h": horizon or 0} if "h" in columns else {})
    found = {key: _places(key, columns[key], len(p), most) for key, most in place.items()}
    row = found["s"] * A + found["a"]
    if "h" not in columns:
        return _checked([_one_step(coo_array((p, (row, found["s2"])), shape=(S * A, S)), NAME)], True)
    order = np.argsort(found["h"], kind="stable")
    edges = np.searchsorted(found["h"][order], np.arange((horizon or 0) + 1))
    steps = []
    for h, (low, high) in enumerate(pairwise(edges.tolist())):
        i = order[low:high]
        steps.append(_one_step(coo_array((p[i], (row[i], found["s2"][i])), shape=(S * A, S)), f"{NAME}[h={h}]"))
    return _checked(steps)


def _places(key: str, values: Any, length: int, most: int) -> Ints:
    given = checks.numbers(f"{NAME}[{key!r}]", values).reshape(-1)
    if len(given) != length:
        raise ValueError(
            f"{NAME}[{key!r}] has {len(given)} entries, expected as many as there are probabilities: {length}"
        )
    bad = ~((given >= 0) & (given < most) & (given == np.floor(given)))
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        raise ValueError(f"{NAME}[{key!r}][{i}] is {given[i]:.12g}, expected a whole number in 0..{most - 1}")
    return given.astype(np.int64)


def _checked(steps: Sequence[Any], stationary: bool = False) -> Transitions:
    """The steps as a whole, if every row is a distribution."""
    rows, S = steps[0].shape
    A = rows // S
    for h, step in enumerate(steps):
        if step.shape != (rows, S):
            raise ValueError(f"{NAME}[{h}] has shape {step.shape}, expected that of the first step: {(rows, S)}")
        _check_rows(step, A, () if stationary else (h,))
    return Transitions(S, A, stationary, tuple(_read_only(step) for step in steps), tuple(steps))


def _check_rows(matrix: Any, A: int, step: tuple[int, ...]) -> None:
    """Are all rows distributions? Names the first offender, as `checks.probability_rows` does."""
    axes = (*(("h",) if step else ()), "s", "a", "s'")
    for bad, expected in (
        (~np.isfinite(matrix.data), "a finite number"),
        (matrix.data < 0, "a probability in [0, 1]"),
    ):
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            s, a = divmod(int(np.searchsorted(matrix.indptr, i, side="right")) - 1, A)
            where = checks.where(NAME, (*step, s, a, int(matrix.indices[i])), axes)
            raise ValueError(f"{where} is {matrix.data[i]:.12g}, expected {expected}")
    sums = matrix @ np.ones(matrix.shape[1])
    wrong = np.abs(sums - 1.0) > checks.SUM_TOLERANCE
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        where = checks.where(NAME, (*step, *divmod(row, A)), axes[:-1])
        raise ValueError(f"{where} sums to {sums[row]:.12g}, expected 1 ± {checks.SUM_TOLERANCE:g}")


def _read_only(matrix: Any) -> Any:
    """The same numbers, which cannot be written."""
    from scipy.sparse import csr_array

    parts = [part.view() for part in (matrix.data, matrix.indices, matrix.indptr)]
    for part in parts:
        part.setflags(write=False)
    found = csr_array(tuple(parts), shape=matrix.shape)
    found.has_canonical_format = True
    return found
