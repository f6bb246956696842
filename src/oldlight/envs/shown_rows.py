"""`ShownRows`: the rows of `AugmentedObservation`, made of what a link knows and not of the Dict that it shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from numpy import ndarray
from numpy.typing import NDArray

from oldlight.envs.impaired_observation import WHOLE
from oldlight.envs.observation_view import ObservationView

KNOWN = 4096  # different ages, waits and queues whose rows are kept; of them only the observation is written anew


class Flat(Protocol):
    """From a Dict to a row: `oldlight.envs.augmented_observation.Flattening`."""

    def row(self, shown: dict[str, Any]) -> NDArray[Any]: ...

    def columns_of(self, key: str) -> slice | dict[int, int] | None: ...


class ShownRows:
    """What a link shows as a row: `show(...)` is `flattening.row(view.show(...))`, most often without the Dict in between.

    Rows are kept by all that they hold but the observation, with zeros in its place; one is copied, and the observation is written into the copy.
    """

    def __init__(self, view: ObservationView, flattening: Flat) -> None:
        self._view, self._flattening, self._kind, self._nothing = view, flattening, view.kind, view.nothing
        self._columns: Any = flattening.columns_of("observation") if view.repeats else None
        self._kept: dict[tuple[Any, ...], Callable[[], NDArray[Any]]] = {}

    def show(self, newest: Any, seen: bool, age: int, waited: int, time: int, actions: Sequence[Any]) -> NDArray[Any]:
        """The row of what the view would show."""
        columns = self._columns
        if columns is not None:
            value = newest if seen else self._nothing
            try:
                row = self._kept[seen, age, waited, actions]()
                if type(value) is ndarray and value.dtype is self._kind:
                    row[columns] = value
                    return row
                if type(value) in WHOLE:
                    row[columns[value]] = 1.0
                    return row
            except (LookupError, TypeError):  # not kept, no such choice, or an action that is an array of one number
                pass
        row = self._flattening.row(self._view.show(newest, seen, age, waited, time, actions))
        if columns is not None and len(self._kept) < KNOWN:
            without = row.copy()
            without[columns if self._kind is not None else list(columns.values())] = 0.0
            self._kept[seen, age, waited, tuple([int(a) for a in actions])] = without.copy
        return row
