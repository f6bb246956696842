"""Cassandra's format for decision processes (``.mdp``, ``.pomdp``), as the arguments of `TabularMDP`.

    discount: 0.95          values: reward | cost          states: 3 | left right ...          actions: ...          observations: ...
    start: uniform | a state | S probabilities         start include: states ...         start exclude: states ...
    T: action : state : next p          T: action : state  followed by S numbers, or uniform       T: action  followed by S·S numbers, identity, uniform
    O: action : next : observation p    (and alike)        R: action : state : next [: observation] r        (and alike)

A name is a number or a word of the list before; ``*`` is all of them; ``#`` begins a comment; later lines overwrite earlier ones.
The process is T, R and start. Rewards are averaged over next states, and over observations (O) where they depend on them:

    R(s, a) = Σ_s2 T(s2|s, a)·Σ_o O(o|a, s2)·r(a, s, s2, o).

Costs become negative rewards. With discount u the reward of step h is u^h·R.
"""

from __future__ import annotations

import os
from typing import Any, NoReturn

import numpy as np

from oldlight import checks, files
from oldlight.arrays import Floats
from oldlight.model.table_size import check_room

HEADS = ("discount", "values", "states", "actions", "observations", "start", "T", "O", "R")


def cassandra_table(
    path: str | os.PathLike[str], horizon: int | None, discount: float | None, average: bool = False
) -> dict[str, Any]:
    """The process of a file; see the module's text."""
    H = None if horizon is None else checks.whole("horizon", horizon, least=1)
    return _Reader(path).read().arguments(H, discount, average)


class _Reader:
    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self.tokens: list[tuple[str, int]] = []
        for number, line in enumerate(files.read_text(path).splitlines(), start=1):
            self.tokens += [(word, number) for word in line.partition("#")[0].replace(":", " : ").split()]
        self.at = 0
        self.names: dict[str, list[str]] = {}
        self.discount, self.sign = 1.0, 1.0
        self.start: Floats | None = None
        self.tables: dict[str, Floats] = {}
        self.index: dict[str, dict[str, int]] = {}

    # -- words ------------------------------------------------------------------------------------------------------

    def wrong(self, words: str, line: int | None = None) -> NoReturn:
        """The one refusal of such a file."""
        number = self.tokens[min(self.at, len(self.tokens) - 1)][1] if self.tokens else 1
        raise ValueError(f"{self.path}, line {number if line is None else line}: {words}")

    def peek(self, ahead: int = 0) -> str:
        i = self.at + ahead
        return self.tokens[i][0] if i < len(self.tokens) else ""

    def heading(self) -> bool:
        """Does a new statement begin here?"""
        words = (self.peek(), self.peek(1), self.peek(2))
        return words[0] == "" or (words[0] in HEADS and (words[1] == ":" or (words[0] == "start" and words[2] == ":")))

    def colon(self) -> None:
        if self.peek() != ":":
            self.wrong(f"{self.peek()!r}, expected a colon")
        self.at += 1

    def number(self) -> float:
        word = self.peek()
        try:
            value = float(word)
        except ValueError:
            self.wrong(f"{word!r} is not a number" if word else "the file ends where a number should be")
        if not np.isfinite(value):
            self.wrong(f"{word!r}, expected a finite number")
        self.at += 1
        return value

    def numbers(self, count: int, what: str) -> Floats:
        words = [word for word, _ in self.tokens[self.at : self.at + count]]
        try:
            values = np.array(words, dtype=np.float64)
        except ValueError:
            values = np.full(1, np.nan)
        if len(values) < count or not np.isfinite(values).all():  # find the offender
            for i in range(count):
                if self.heading():
                    self.wrong(f"{what} has {i} numbers, expected {count}")
                self.number()
        self.at += count
        return values

    def which(self, kind: str) -> slice | int:
        """The number of a name, or all of them."""
        word, names = self.peek(), self.names.get(kind)
        if names is None:
            self.wrong(f"{kind} must be listed before they are used")
        self.at += 1
        if word == "*":
            return slice(None)
        if word in self.index[kind]:
            return self.index[kind][word]
        if word.isdigit() and int(word) < len(names):
            return int(word)
        self.at -= 1
        self.wrong(f"{word!r} is not one of the {len(names)} {kind}{checks.nearest(word, names)}")

    # -- statements -------------------------------------------------------------------------------------------------

    def read(self) -> _Reader:
        while self.at < len(self.tokens):
            if not self.heading():
                self.wrong(f"{self.peek()!r}, expected one of {', '.join(head + ':' for head in HEADS)}")
            head = self.peek()
            self.at += 1
            if head == "start":
                self._start()
                continue
            self.colon()
            if head in ("states", "actions", "observations"):
                self._list(head)
            elif head == "discount":
                self.discount = checks.probability(
                    f"{self.path}, line {self.tokens[self.at - 1][1]}: discount", self.number()
                )
            elif head == "values":
                if self.peek() not in ("reward", "cost"):
                    self.wrong(f"values is {self.peek()!r}, expected reward or cost")
                self.sign = 1.0 if self.peek() == "reward" else -1.0
                self.at += 1
            elif head == "R":
                self._rewards()
            else:
                self._probabilities(head)
        for kind in ("states", "actions"):
            if kind not in self.names:
                self.wrong(f"there are no {kind}; expected a line such as {kind}: 3")
        return self

    def _list(self, kind: str) -> None:
        words = []
        while not self.heading():
            words.append(self.peek())
            self.at += 1
        if len(words) == 1 and words[0].isdigit() and int(words[0]) > 0:
            words = [str(i) for i in range(int(words[0]))]
        if not words or len(set(words)) < len(words):
            self.wrong(f"{kind}: expected a number or different names", self.tokens[self.at - 1][1])
        self.names[kind] = words
        self.index[kind] = {word: i for i, word in enumerate(words)}

    def _start(self) -> None:
        how = self.peek() if self.peek() in ("include", "exclude") else ""
        self.at += bool(how)
        self.colon()
        if "states" not in self.names:
            self.wrong("states must be listed before start")
        S = len(self.names["states"])
        weights = np.zeros(S)
        if how:
            while not self.heading():
                weights[self.which("states")] = 1.0
            weights = weights if how == "include" else 1.0 - weights
        elif self.peek() == "uniform":
            self.at += 1
            weights[:] = 1.0
        elif self.peek() in self.index["states"] if S == 1 else self._alone():
            weights[self.which("states")] = 1.0
        else:
            weights = self.numbers(S, "start")
            total = float(weights.sum())
            if (weights < 0).any() or abs(total - 1) > 1e-4:
                self.wrong(
                    f"start sums to {total:.9g}, expected probabilities that sum to 1", self.tokens[self.at - 1][1]
                )
        if not weights.any():
            self.wrong("start leaves no state", self.tokens[self.at - 1][1])
        self.start = weights / weights.sum()

    def _alone(self) -> bool:
        """Is there one word before the next statement?"""
        self.at += 1
        alone = self.heading()
        self.at -= 1
        return alone

    def _array(self, name: str, shape: tuple[int, ...]) -> Floats:
        """The table so far, grown along axes that were all alike (length 1) until now."""
        table = self.tables.get(name)
        check_room(self.path, f"the table of {name}", *shape)
        if table is None:
            table = np.zeros(shape)
        elif table.shape != shape:
            table = np.array(np.broadcast_to(table, shape))
        self.tables[name] = table
        return table

    def _sizes(self, *kinds: str) -> tuple[int, ...]:
        for kind in kinds:
            if kind not in self.names:
                self.wrong(f"{kind} must be listed before they are used")
        return tuple(len(self.names[kind]) for kind in kinds)

    def _place(self, kinds: tuple[str, ...], sizes: tuple[int, ...]) -> tuple[list[slice | int], tuple[int, ...], int]:
        """What stands between colons, the sizes of what follows it, and the line."""
        place = [self.which(kinds[0])]
        while self.peek() == ":" and len(place) < len(kinds):
            self.at += 1
            place.append(self.which(kinds[len(place)]))
        return place, sizes[len(place) :], self.tokens[self.at - 1][1]

    def _probabilities(self, name: str) -> None:
        """T: action : state : next, or O: action : next : observation; the rest of the axes follows as numbers."""
        kinds = ("actions", "states", "states" if name == "T" else "observations")
        sizes = self._sizes(*kinds)
        table = self._array(name, sizes)
        place, left, line = self._place(kinds, sizes)
        if self.peek() == "uniform":
            self.at += 1
            values: Any = 1.0 / sizes[2]
        elif self.peek() == "identity" and len(left) == 2 and left[0] == left[1]:
            self.at += 1
            values = np.eye(left[0])
        else:
            values = self.numbers(int(np.prod(left)), f"{name} of line {line}").reshape(left)
        if np.min(values) < 0 or np.max(values) > 1 + checks.SUM_TOLERANCE:
            self.wrong(f"{name} has a number outside [0, 1]", line)
        table[tuple(place)] = values

    def _rewards(self) -> None:
        """R: action : state : next : observation; what is ``*`` to all stays an axis of length 1."""
        kinds = ("actions", "states", "states", *(("observations",) if "observations" in self.names else ()))
        sizes = self._sizes(*kinds)
        place, left, line = self._place(kinds, sizes)
        values = self.numbers(int(np.prod(left)), f"R of line {line}").reshape(left)
        needed = [1 if isinstance(x, slice) else n for x, n in zip(place, sizes, strict=False)] + list(left)
        before = self.tables.get("R")
        shape = tuple(needed if before is None else map(max, needed, before.shape))
        self._array("R", shape)[tuple(place)] = values

    # -- the result -------------------------------------------------------------------------------------------------

    def arguments(self, H: int | None, discount: float | None, average: bool) -> dict[str, Any]:
        A, S = self._sizes("actions", "states")
        T = self._array("T", (A, S, S))
        self._check("T", T, "state")
        R = self.tables.get("R", np.zeros((1, 1, 1)))
        if R.ndim == 4 and R.shape[3] > 1:
            O = self._array("O", (A, S, len(self.names["observations"])))
            self._check("O", O, "next state")
            R = np.einsum("aijo,ajo->aij", np.broadcast_to(R, (A, S, S, R.shape[3])), O)
        elif R.ndim == 4:
            R = R[..., 0]
        mean = (
            np.broadcast_to(R[..., 0], (A, S))
            if R.shape[2] == 1
            else np.einsum("aij,aij->ai", T, np.broadcast_to(R, T.shape))
        )
        rewards = self.sign * mean.T
        u = self.discount if discount is None else checks.probability("discount", discount)
        how: dict[str, Any] = {"horizon": H, "average": average}
        if u < 1.0 and H is not None:
            rewards = (u ** np.arange(H))[:, None, None] * rewards
        elif H is None and not average:
            if u == 1.0:
                raise ValueError(
                    f"{self.path}: horizon=None needs a discount below 1, and here it is 1: give discount=u, "
                    "average=True for the reward per step, or a number of steps as the horizon"
                )
            how["discount"] = u
        names = {
            kind: None if self.names[kind] == [str(i) for i in range(n)] else self.names[kind]
            for kind, n in (("states", S), ("actions", A))
        }
        return {"transitions": T.transpose(1, 0, 2), "rewards": rewards, "initial": self.start, **how, **names}

    def _check(self, name: str, table: Floats, of: str) -> None:
        """Rows sum to one, to the five digits that such files have; then they are made to, exactly."""
        totals = table.sum(axis=-1)
        wrong = np.argwhere(np.abs(totals - 1.0) > 1e-4)
        if len(wrong):
            a, s = wrong[0]
            self.wrong(
                f"{name} of action {self.names['actions'][a]}, {of} {self.names['states'][s]} sums to {totals[a, s]:.9g}, expected 1",
                self.tokens[-1][1],
            )
        table /= totals[..., None]
