"""One step's transitions as the compiled loops read them: a list of successors for each (s, a), or a matrix where a product is cheaper.

Row s·A + a of step h has the successors index[first[row] + k], k = 0..count[row]−1, in rising order, with the probabilities weight[..]. The lists
of a sparse process are its own arrays, not copies; nothing here depends on S² unless the matrix is full.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oldlight.arrays import Floats, Ints
from oldlight.checks import TooLarge
from oldlight.machine import default_limit, format_bytes
from oldlight.model.channels.pmfs import running_sums
from oldlight.model.mdp import TabularMDP


@dataclass(frozen=True, eq=False)
class Successors:
    """One step's transitions, ready for the kernels: lists of successors, and the matrix if a product is cheaper."""

    n_states: int
    first: Ints  # [s·A + a]
    count: Ints  # [s·A + a]
    index: NDArray[np.int32]  # [place]
    weight: Floats  # [place]
    matrix: Floats  # [s·A + a, s2]; empty, (0, S), unless `dense`

    @property
    def dense(self) -> bool:
        """Is a product of matrices cheaper than the lists?"""
        return len(self.matrix) > 0

    @cached_property
    def width(self) -> int:
        """The longest list."""
        return int(self.count.max())

    @classmethod
    def of(cls, matrix: Any) -> Successors:
        """From a matrix with the rows s·A + a, dense or sparse."""
        rows, S = matrix.shape
        if isinstance(matrix, np.ndarray) and matrix.all():
            count, index = np.full(rows, S), np.tile(np.arange(S, dtype=np.int32), rows)
            first, weight = np.arange(0, rows * S, S), matrix.flatten()
        elif isinstance(matrix, np.ndarray):
            row, index = np.nonzero(matrix)
            weight = matrix[row, index]
            count = np.bincount(row, minlength=rows)
            first = np.cumsum(count) - count
        else:
            first, index, weight = matrix.indptr[:-1], matrix.indices, matrix.data
            count = np.subtract(matrix.indptr[1:], matrix.indptr[:-1], dtype=np.int64)
        product = np.empty((0, S))
        if len(index) > max(6.0, 0.3 * S) * rows:
            product = np.ascontiguousarray(matrix if isinstance(matrix, np.ndarray) else matrix.toarray())
        return cls(
            S, first.astype(np.int64), count.astype(np.int64), index.astype(np.int32, copy=False), weight, product
        )

    def full(self) -> Floats:
        """The matrix, made from the lists where they are cheaper."""
        if self.dense:
            return self.matrix
        out = np.zeros((len(self.count), self.n_states))
        out[np.repeat(np.arange(len(self.count)), self.count), self.index] = self.weight
        return out

    def padded(self) -> tuple[Ints, Floats]:
        """index[s·A + a, k] and weight[s·A + a, k], as wide as the longest list; what is beyond a list has the weight 0."""
        if len(self.index) == len(self.count) * self.width:  # all lists are as long as the longest
            return self.index.reshape(-1, self.width).astype(np.int64), self.weight.reshape(-1, self.width)
        k = np.arange(self.width)
        inside = k < self.count[:, None]
        place = np.where(inside, self.first[:, None] + k, 0)
        return np.where(inside, self.index[place], 0).astype(np.int64), np.where(inside, self.weight[place], 0.0)


def successors_at(mdp: TabularMDP, h: int) -> Successors:
    """Those of step h, made once for a process (once for all steps if they do not change with time)."""
    key = ("successors", 0 if mdp.stationary_transitions else h)
    if key not in mdp._cache:
        mdp._cache[key] = Successors.of(mdp._stored.own[key[1]])
    found: Successors = mdp._cache[key]
    return found


def all_successors(mdp: TabularMDP) -> list[Successors]:
    """Those of every step; of one if they do not change with time."""
    return [successors_at(mdp, h) for h in range(1 if mdp.stationary_transitions else mdp.finite_horizon)]


def padded_width(steps: list[Successors]) -> int:
    """The longest list of all steps; refused where lists as wide as that do not fit into memory."""
    width = max(step.width for step in steps)
    need, limit = 16 * len(steps) * len(steps[0].count) * width, default_limit()
    if need > limit:
        row = next(int(step.count.argmax()) for step in steps if step.width == width)
        A = len(steps[0].count) // steps[0].n_states
        raise TooLarge(
            f"lists of successors as wide as the longest, {width:,} after (s={row // A}, a={row % A}), take {format_bytes(need)}; the limit is "
            f"{format_bytes(limit)}, half of the memory. Way out: leave out successors of negligible probability there"
        )
    return width


def likely_successors(mdp: TabularMDP) -> NDArray[Any]:
    """The most likely successor (of several: the lowest) [h, s, a]; one h if they do not change with time."""
    found = []
    for step in all_successors(mdp):
        largest = np.repeat(np.maximum.reduceat(step.weight, step.first), step.count)
        row, at = np.unique(
            np.repeat(np.arange(len(step.count)), step.count)[step.weight == largest], return_index=True
        )
        assert len(row) == len(step.count)
        found.append(step.index[step.weight == largest][at].reshape(mdp.n_states, mdp.n_actions))
    return np.stack(found)


class SuccessorSums(NamedTuple):
    """Successors [h, s·A + a, k] and the running sums of their probabilities; one h if they do not change with time."""

    following: Ints
    cumulative: Floats

    def drawn(self, h: int, pair: Ints, u: Floats) -> Ints:
        """The next state of each s·A + a in `pair`, by a uniform number each."""
        i = min(h, len(self.following) - 1)
        place = (self.cumulative[i, pair] <= u[:, None]).sum(axis=1)
        found: Ints = self.following[i, pair, np.minimum(place, self.following.shape[2] - 1)]
        return found


def successor_sums(mdp: TabularMDP, *, likely_first: bool = True) -> SuccessorSums:
    """The transitions as they are drawn. likely_first: likely successors come first, so that they are found soon; else they rise."""
    steps = all_successors(mdp)
    shape = (len(steps), mdp.n_states * mdp.n_actions, padded_width(steps))
    found, cumulative = np.zeros(shape, dtype=np.int64), np.full(shape, 2.0)
    for i, step in enumerate(steps):
        index, weight = step.padded()
        n = step.width
        if likely_first:
            order = np.argsort(-weight, axis=1, kind="stable")
            index, weight = np.take_along_axis(index, order, axis=1), np.take_along_axis(weight, order, axis=1)
        found[i, :, :n] = index
        cumulative[i, :, :n] = running_sums(weight)
    return SuccessorSums(found, cumulative)
