"""The transitions that a policy carries along, to count laws of the state: in arrays that a file holds and that numpy alone reads.

    transitions[t, s, a, s2]                                              of a dense process
    first[t, s·A + a], successor[place], probability[place]               of a sparse one: the list of (s, a) goes from first[t, s·A + a] to the next entry

with one t where they do not change. A law is pushed on along the lists of the states that it holds, so nothing depends on S².
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.arrays import Floats, Ints

if TYPE_CHECKING:
    from oldlight import files
    from oldlight.model.mdp import TabularMDP

LISTS = ("first", "successor", "probability")


@dataclass(frozen=True, eq=False)
class HeldSteps:
    """See the module's text; of the two forms the other one's arrays are empty."""

    n_states: int
    n_actions: int
    transitions: Floats = field(default_factory=lambda: np.zeros((0, 0, 0, 0)))
    first: Ints = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    successor: NDArray[Any] = field(default_factory=lambda: np.zeros(0, np.int32))
    probability: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def sparse(self) -> bool:
        """Are these lists of successors?"""
        return len(self.first) > 0

    def __len__(self) -> int:
        """Steps that differ."""
        return len(self.first) or len(self.transitions)

    @classmethod
    def of(cls, mdp: TabularMDP) -> HeldSteps:
        """Those of a process, in its own form."""
        S, A, steps = mdp.n_states, mdp.n_actions, range(1 if mdp.stationary_transitions else mdp.finite_horizon)
        if not mdp.sparse:
            return cls(S, A, mdp.transitions[: len(steps)])
        lists = [mdp.matrix(t) for t in steps]
        begin = np.cumsum([0, *(step.nnz for step in lists[:-1])])
        first = np.stack([step.indptr.astype(np.int64) + at for step, at in zip(lists, begin.tolist(), strict=True)])
        successor = np.concatenate([step.indices for step in lists])
        return cls(S, A, first=first, successor=successor, probability=np.concatenate([step.data for step in lists]))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], n_states: int, n_actions: int) -> HeldSteps:
        """Out of what `to_arrays` gives, among other arrays; a dense array may lack its first axis."""
        if "first" in arrays:
            first, successor, probability = (arrays[name] for name in LISTS)
            return cls(n_states, n_actions, first=first, successor=successor, probability=probability)
        P = arrays["transitions"]
        return cls(n_states, n_actions, P if P.ndim == 4 else P[None])

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of the form that is used, by name."""
        if self.sparse:
            return {name: getattr(self, name) for name in LISTS}
        return {"transitions": self.transitions}

    @classmethod
    def read(cls, held: files.Arrays, prefix: str, sizes: tuple[int, int], steps: tuple[int, ...]) -> HeldSteps:
        """Out of an open file, where there are as many steps as one of `steps` says."""
        S, A = sizes
        if f"{prefix}first" not in held:
            P = held.array(f"{prefix}transitions", "f", *((n, S, A, S) for n in steps))
            checks.probability_rows(f"{prefix}transitions", P, ("h", "s", "a", "s2"))
            return cls(S, A, P)
        first = held.array(f"{prefix}first", "iu", *((n, S * A + 1) for n in steps)).astype(np.int64)
        successor = held.array(f"{prefix}successor", "iu", (None,))
        probability = held.array(f"{prefix}probability", "f", (len(successor),))
        found = cls(S, A, first=first, successor=successor, probability=probability)
        for name, good in found.parts():
            if not good:
                raise ValueError(f"{prefix + name!r} does not fit a process of {S} states and {A} actions")
        return found

    def parts(self) -> list[tuple[str, bool]]:
        """The arrays by name, and whether each holds what it must."""
        with np.errstate(over="ignore", invalid="ignore"):
            if not self.sparse:
                sums = self.transitions.sum(axis=3)
                good = bool((self.transitions >= 0).all() and (np.abs(sums - 1) <= checks.SUM_TOLERANCE).all())
                return [("transitions", good)]
            first, successor, p = self.first, self.successor, self.probability
            ends = first[0, 0] == 0 and first[-1, -1] == len(p) == len(successor)
            ends = bool(ends and np.array_equal(first[:-1, -1], first[1:, 0]) and (np.diff(first, axis=1) > 0).all())
            within = bool(len(p) and int(successor.min()) >= 0 and int(successor.max()) < self.n_states)
            if not (ends and within):
                return [("first", ends), ("successor", within)]
            sums = np.add.reduceat(p, first[:, :-1].reshape(-1))
            return [("probability", bool((p >= 0).all() and (np.abs(sums - 1) <= checks.SUM_TOLERANCE).all()))]

    def of_actions(self, kept: Ints) -> HeldSteps:
        """The same process with these actions alone."""
        S, A, K = self.n_states, self.n_actions, len(kept)
        if not self.sparse:
            return HeldSteps(S, K, np.array(self.transitions[:, :, kept]))
        rows = (np.arange(S)[:, None] * A + kept).reshape(-1)
        begin, count = self.first[:, rows], np.diff(self.first, axis=1)[:, rows]
        ends = np.cumsum(count.reshape(-1)).reshape(count.shape)
        first = np.concatenate([ends[:, :1] - count[:, :1], ends], axis=1)
        place = np.repeat((begin - (ends - count)).reshape(-1), count.reshape(-1)) + np.arange(int(ends[-1, -1]))
        return HeldSteps(S, K, first=first, successor=self.successor[place], probability=self.probability[place])

    def push(self, b: Floats, t: int, a: int) -> Floats:
        """The law of the state after step t, which had the law b, when a is done."""
        t = min(max(t, 0), len(self) - 1)
        if not self.sparse:
            return np.asarray(b @ self.transitions[t, :, a])
        return pushed(b, (self.first[t], self.successor, self.probability), a, self.n_actions)

    def expected(self, v: Floats, t: int = 0) -> Floats:
        """The mean of v[s2] after step t from each pair, axes (s, a)."""
        if not self.sparse:
            return np.asarray(self.transitions[t] @ v)
        row = self.first[t]
        part = slice(int(row[0]), int(row[-1]))
        sums = np.add.reduceat(self.probability[part] * v[self.successor[part]], row[:-1] - row[0])
        return sums.reshape(self.n_states, self.n_actions)


def pushed(b: Floats, lists: tuple[NDArray[Any], NDArray[Any], Floats], a: int, n_actions: int) -> Floats:
    """b·P(a) along the lists (first, successor, probability) of the states that b holds."""
    first, successor, probability = lists
    s = np.flatnonzero(b)
    row = s * n_actions + a
    begin, count = first[row], first[row + 1] - first[row]
    ends = np.cumsum(count)
    place = np.repeat(begin - (ends - count), count) + np.arange(int(ends[-1]) if len(ends) else 0)
    weights = np.repeat(b[s], count) * probability[place]
    return np.asarray(np.bincount(successor[place], weights, minlength=len(b)), dtype=np.float64)


def certain(n_states: int, s: int) -> Floats:
    """The law of a state that is known."""
    b = np.zeros(n_states)
    b[s] = 1.0
    return b
