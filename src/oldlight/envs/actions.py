"""Actions given to a wrapped environment: taken, clipped or refused by its action space.

**Rounding.** What scales an action from [−1, 1] to the space's own numbers (stable-baselines3's `unscale_action`, Gymnasium's
`RescaleAction`) meets the bounds up to rounding only: low + 1·(high − low) need not be high. With M = max(|low|, |high|), ε of the
coarser of the two number types and u = ε/2, the first errs by at most 3uM (one rounding of high − low ≤ 2M, one of the sum), the second,
for targets such as [−1, 1] or [0, 1], by at most ten roundings of numbers up to M. So an action of a Box is taken if it is
outside by at most 8·ε·M, and clipped; what is further outside is a mistake, and refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

ROUNDINGS = 8  # in units of ε·M; see the module's text


def fitted(space: spaces.Space[Any], action: Any, name: str = "action") -> Any:
    """The action as it is if the space holds it, the nearest one of the space if rounding made the difference; else ValueError.

    A Box need not be given numbers of exactly its type.
    """
    if isinstance(space, spaces.Dict):
        if isinstance(action, Mapping) and action.keys() == space.spaces.keys():
            return {key: fitted(part, action[key], f"{name}[{key!r}]") for key, part in space.spaces.items()}
    elif isinstance(space, spaces.Tuple):
        if isinstance(action, tuple | list) and len(action) == len(space.spaces):
            pairs = zip(space.spaces, action, strict=True)
            return tuple(fitted(part, value, f"{name}[{i}]") for i, (part, value) in enumerate(pairs))
    else:
        try:
            if isinstance(space, spaces.Box):
                return _in_box(space, action)
            if space.contains(action):
                return action
        except (TypeError, ValueError):  # rows of different length, for example
            pass
    clip = ", e.g. by gymnasium.wrappers.ClipAction" if isinstance(space, spaces.Box) else ""
    raise ValueError(f"{name} is {action!r}, expected one in {space}{clip}")


def _in_box(space: spaces.Box, action: Any) -> Any:
    given = np.asarray(action)
    if given.shape != space.shape or not np.can_cast(given.dtype, space.dtype, "same_kind"):
        raise ValueError
    low, high = space.low, space.high
    if bool(np.all((given >= low) & (given <= high))):
        return action
    slack = _slack(space, given)
    if not bool(np.all((given >= low - slack) & (given <= high + slack))):
        raise ValueError
    return np.clip(given, low, high).astype(space.dtype)


def _slack(space: spaces.Box, given: NDArray[Any]) -> NDArray[np.float64]:
    """How far outside rounding may put an action; 0 for whole numbers."""
    types = [kind for kind in (space.dtype, given.dtype) if np.issubdtype(kind, np.floating)]
    if not np.issubdtype(space.dtype, np.floating):
        return np.zeros(space.shape)
    bounds = np.abs(np.stack([space.low, space.high]).astype(np.float64))
    largest = np.where(np.isfinite(bounds), bounds, 0.0).max(axis=0)
    slack: NDArray[np.float64] = ROUNDINGS * max(float(np.finfo(kind).eps) for kind in types) * largest
    return slack


def first_action(space: spaces.Space[Any]) -> Any:
    """The first action of a Discrete space; zeros elsewhere."""
    if isinstance(space, spaces.Discrete):
        return np.int64(space.start)
    if isinstance(space, spaces.MultiDiscrete):
        return np.array(space.start, dtype=space.dtype)
    if isinstance(space, spaces.MultiBinary):
        return np.zeros(space.shape, dtype=space.dtype)
    if isinstance(space, spaces.Box):
        return np.clip(np.zeros(space.shape), space.low, space.high).astype(space.dtype)
    if isinstance(space, spaces.Dict):
        return {key: first_action(part) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(first_action(part) for part in space.spaces)
    raise ValueError(f"late actions in {space}: say which are under way at the start, pending=[...]")


def under_way_at_start(space: spaces.Space[Any], pending: Sequence[Any] | None, late: int) -> list[Any]:
    """The actions under way at the start where actions are late by so many steps: those given, the first ones of the space if None."""
    if pending is None:
        return [first_action(space) for _ in range(late)]
    if len(pending) != late:
        raise ValueError(f"pending has {len(pending)} actions, expected one per step of actuation delay: {late}")
    return [fitted(space, as_action(space, action), f"pending[{i}]") for i, action in enumerate(pending)]


def as_action(space: spaces.Space[Any], given: Any) -> Any:
    """An action read from plain data (a spec that was written to a file holds lists)."""
    if isinstance(space, spaces.Dict):
        return {key: as_action(part, given[key]) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(as_action(part, value) for part, value in zip(space.spaces, given, strict=True))
    if isinstance(space, spaces.Discrete | spaces.Text):
        return given
    return np.array(given, dtype=space.dtype)
