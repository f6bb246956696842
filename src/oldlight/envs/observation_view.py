"""What the agent is shown: one flat Dict, the same for every environment behind a link.

    observation   the newest observation that has come through. "Nothing yet" is a value of its own, one more than the largest,
                  for Discrete, MultiDiscrete and MultiBinary (which becomes a MultiDiscrete of 0, 1 and 2); a Box shows zeros and
                  a Text nothing, and `seen` says so. Parts of a Dict or Tuple are entries of their own: observation/position
    age           how many actions lie between it and the action to be chosen now (those since the start if nothing was seen)
    waited        the steps since it arrived; age + 1 if nothing was seen
    fresh         1 if it arrived just now
    seen          0 as long as nothing has been seen
    actions       the actions since, oldest first, at the right end; free places hold "no action", one more than the largest action
                  (zeros for a Box: `age` says how many count). One flat row: places × the size of an action
    time          the step that the action chosen now will act on (only with a clock)

Age, actions and time count an action by the step that it acts on; so with late actions the ones under way are among them.
Everything shown is a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy import ndarray

COUNTERS = ("age", "waited", "time")  # entries that count steps
ENDLESS = 2**31 - 1  # the largest count where no horizon is known
# what is known at some time as it is shown, a Dict or a row: newest, seen, age, waited, time, actions
Show = Callable[[Any, bool, int, int, int, Sequence[Any]], Any]
KNOWN = "Discrete, MultiDiscrete, MultiBinary, Box and Text, and Dict and Tuple of these"


def leaves(space: spaces.Space[Any], name: str) -> dict[str, spaces.Space[Any]]:
    """The parts of a nested space by name: position of a Dict is name/position, the first of a Tuple name/0."""
    if isinstance(space, spaces.Dict):
        inner = [leaves(part, f"{name}/{key}") for key, part in space.spaces.items()]
    elif isinstance(space, spaces.Tuple):
        inner = [leaves(part, f"{name}/{i}") for i, part in enumerate(space.spaces)]
    else:
        return {name: space}
    return {key: part for parts in inner for key, part in parts.items()}


def parts_of(space: spaces.Space[Any], value: Any) -> list[Any]:
    """The values of the parts, in the order of `leaves`."""
    if isinstance(space, spaces.Dict):
        return [x for key, part in space.spaces.items() for x in parts_of(part, value[key])]
    if isinstance(space, spaces.Tuple):
        return [x for part, inner in zip(space.spaces, value, strict=True) for x in parts_of(part, inner)]
    return [value]


def copied(value: Any) -> Any:
    """A copy that shares no array with `value`."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, dict):
        return {key: copied(x) for key, x in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(copied(x) for x in value)
    return value


def plain_copy(space: spaces.Space[Any]) -> Callable[[Any], Any]:
    """`copied` for values of a space: a number needs none, and for an array it is known beforehand."""
    if isinstance(space, spaces.Discrete | spaces.Text):
        return _itself_or_copied
    if isinstance(space, spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary):
        return _array_or_copied
    return copied


def _itself_or_copied(value: Any) -> Any:
    return copied(value) if isinstance(value, np.ndarray) else value


def _array_or_copied(value: Any) -> Any:
    return value.copy() if type(value) is np.ndarray else copied(value)


def with_nothing(name: str, space: spaces.Space[Any]) -> tuple[spaces.Space[Any], Any]:
    """A space with room for "nothing yet", and what stands for it."""
    if isinstance(space, spaces.Discrete):
        start = int(space.start)
        return spaces.Discrete(int(space.n) + 1, start=start), np.int64(start + int(space.n))
    if isinstance(space, spaces.MultiDiscrete):
        return spaces.MultiDiscrete(space.nvec + 1, start=space.start), np.asarray(space.start + space.nvec)
    if isinstance(space, spaces.MultiBinary):
        return spaces.MultiDiscrete(np.full(space.shape, 3)), np.full(space.shape, 2, dtype=np.int64)
    if isinstance(space, spaces.Box):
        return space, np.clip(np.zeros(space.shape), space.low, space.high).astype(space.dtype)
    if isinstance(space, spaces.Text):
        return spaces.Text(space.max_length, min_length=0, charset=space.characters), ""
    raise TypeError(f"{name} is a {type(space).__name__} space; what can be shown through a link is {KNOWN}")


def as_shown(space: spaces.Space[Any]) -> Callable[[Any], Any]:
    """How a value of the (widened) space is shown: a copy of the type that the space holds."""
    if isinstance(space, spaces.Discrete):
        return np.int64
    if isinstance(space, spaces.Text):
        return str
    return partial(_shown_array, np.dtype(space.dtype))


def _shown_array(kind: np.dtype[Any], value: Any) -> Any:
    if type(value) is np.ndarray and value.dtype is kind:
        return value.copy()
    return np.array(value, dtype=kind)


def queue_of(name: str, space: spaces.Space[Any], places: int) -> tuple[spaces.Space[Any], Any]:
    """The space of a row of `places` actions, and a row without any."""
    if isinstance(space, spaces.Text):
        raise TypeError(f"{name} is a Text space; actions that can be shown are {KNOWN} without Text. Use queue=0")
    wide, nothing = with_nothing(name, space)
    row = np.tile(np.atleast_1d(nothing).ravel(), places)
    if isinstance(wide, spaces.Box):
        return spaces.Box(
            np.tile(wide.low.ravel(), places), np.tile(wide.high.ravel(), places), dtype=wide.dtype.type
        ), row
    if isinstance(wide, spaces.Discrete):
        return spaces.MultiDiscrete(np.full(places, wide.n), start=np.full(places, wide.start)), row
    assert isinstance(wide, spaces.MultiDiscrete)
    return spaces.MultiDiscrete(np.tile(wide.nvec.ravel(), places), start=np.tile(wide.start.ravel(), places)), row


ZERO, ONE = np.int64(0), np.int64(1)
_COUNT_OF = [count.copy for count in np.arange(256).reshape(-1, 1)]  # copies, which takes less time than making one
QUEUES = 4096  # rows of actions that are kept to be copied


def count_array(n: int) -> Any:
    """A new array that holds this one count."""
    return _COUNT_OF[n]() if 0 <= n < 256 else np.array([n])


class OfLink:
    """Says in a space's repr how many actions it shows: Gymnasium prints both spaces when those of one vector differ."""

    queue = 0

    def __repr__(self) -> str:
        return f"{super().__repr__()} with queue={self.queue} (all environments of a vector need the same queue=)"


class LinkDict(OfLink, spaces.Dict):
    """The Dict behind a link. queue: how many actions it shows; ages: those that occur, by which counts of steps are scaled."""

    def __init__(self, entries: dict[str, spaces.Space[Any]], queue: int, ages: int) -> None:
        spaces.Dict.__init__(self, entries)
        self.queue, self.ages = queue, ages


class LinkBox(OfLink, spaces.Box):
    """The same as one vector of numbers."""


class LinkMultiDiscrete(OfLink, spaces.MultiDiscrete):
    """The same as one vector of whole numbers."""


class ObservationView:
    """The Dict for one environment: `space`, and `show(...)`, one value of it.

    places: how many actions are shown; ages: the largest age that usually occurs; horizon: the longest episode, or None; ahead: how
    late actions are.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        *,
        places: int,
        ages: int,
        horizon: int | None,
        ahead: int = 0,
        clock: bool = False,
    ) -> None:
        self._observation, self._action = observation_space, action_space
        self.places, self.clock = places, clock
        most = ENDLESS if horizon is None else horizon + ahead
        wide = {name: with_nothing(name, space) for name, space in leaves(observation_space, "observation").items()}
        self._shown = [(name, as_shown(space)) for name, (space, _) in wide.items()]
        self._nothing = [nothing for _, nothing in wide.values()]
        self.nothing = self._nothing[0] if self._nothing else None
        entries: dict[str, spaces.Space[Any]] = {name: space for name, (space, _) in wide.items()}
        entries["age"] = _count(most)
        entries["waited"] = _count(most + 1)
        entries["fresh"] = spaces.Discrete(2)
        entries["seen"] = spaces.Discrete(2)
        self._flat = len(self._shown) == 1 and not isinstance(observation_space, spaces.Dict | spaces.Tuple)
        self.kind = np.dtype(observation_space.dtype) if isinstance(observation_space, spaces.Box) else None
        self._queues: dict[Sequence[Any], Callable[[], Any]] = {}
        self._one_number = isinstance(action_space, spaces.Discrete)
        self._rows: list[tuple[str, Any]] = []
        if places:
            for name, space in leaves(action_space, "actions").items():
                entries[name], row = queue_of(name, space, places)
                self._rows.append((name, row))
        self._blank: list[int] = self._rows[0][1].tolist() if places and self._one_number else []
        # are the age, the wait and the actions, each one number, all that is shown beside one observation?
        self.repeats = self._flat and self._one_number and not clock
        self._common = self.repeats and places > 0  # most: quicker
        if clock:
            entries["time"] = _count(most)
        self.space = LinkDict(entries, places, max(ages, 1))

    def show(self, newest: Any, seen: bool, age: int, waited: int, time: int, actions: Sequence[Any]) -> dict[str, Any]:
        """The Dict; `newest` is ignored if nothing was seen; `actions` are those since, oldest first (or the newest places)."""
        if self._flat:
            value = newest if seen else self._nothing[0]
            plain = type(value) is ndarray and value.dtype is self.kind
            observation = value.copy() if plain else self._shown[0][1](value)
            if self._common:
                try:
                    return {
                        "observation": observation,
                        "age": _COUNT_OF[age](),
                        "waited": _COUNT_OF[waited](),
                        "fresh": ONE if seen and waited == 0 else ZERO,
                        "seen": ONE if seen else ZERO,
                        "actions": self._queues[actions](),
                    }
                except (LookupError, TypeError):  # long ago, or actions that are not kept
                    pass
            shown: dict[str, Any] = {"observation": observation}
        else:
            values = parts_of(self._observation, newest) if seen else self._nothing
            shown = {name: make(value) for (name, make), value in zip(self._shown, values, strict=True)}
        shown["age"] = _COUNT_OF[age]() if age < 256 else np.array([age])
        shown["waited"] = _COUNT_OF[waited]() if waited < 256 else np.array([waited])
        shown["fresh"] = ONE if seen and waited == 0 else ZERO
        shown["seen"] = ONE if seen else ZERO
        places = self.places
        if places:
            last = actions if len(actions) <= places else actions[len(actions) - places :]
            if self._one_number:
                try:
                    row_of = self._queues[last]
                except (KeyError, TypeError):  # not kept, or a list, or arrays of one number each
                    row_of = self._queue(tuple(int(a) for a in last))
                shown["actions"] = row_of()
            else:
                given = [parts_of(self._action, action) for action in last]
                for j, (name, row) in enumerate(self._rows):
                    shown[name] = self._filled(row, [x for parts in given for x in np.ravel(parts[j])])
        if self.clock:
            shown["time"] = count_array(time)
        return shown

    def _queue(self, last: tuple[int, ...]) -> Callable[[], Any]:
        """What copies the row of these actions, each one number; kept, since most are shown again."""
        row_of = self._queues.get(last)
        if row_of is None:
            row_of = np.array(self._blank[len(last) :] + list(last), dtype=np.int64).copy
            if len(self._queues) < QUEUES:
                self._queues[last] = row_of
        return row_of

    @staticmethod
    def _filled(row: Any, values: Sequence[Any]) -> Any:
        filled = row.copy()
        if values:
            filled[len(row) - len(values) :] = values
        return filled


def _count(most: int) -> spaces.Box:
    return spaces.Box(0, most, (1,), np.int64)
