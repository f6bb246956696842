"""`AugmentedObservation`: the flat Dict of a link as one vector that ordinary learners accept.

    kind="box"            every choice of one among n becomes n entries, one of them 1; numbers stay as they are; age and waited are
                          divided by the ages that occur (the length of the queue; without one, what would be its default), time by
                          its largest value where that is known. A Box of float32
    kind="multidiscrete"  every entry as a whole number from 0 on: for tables. Needs Discrete observations and actions and, for the
                          counts, an environment with a limit on its steps

`keys` says which entries are used, all if None: keys=["observation", "seen"] is an agent that ignores how old its information is and
what it has done since. An image is not made a vector: see `IMAGE`. Each class takes the same arguments; one is for single environments, the other for vector environments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from oldlight import checks
from oldlight.envs.impaired_observation import ImpairedObservation
from oldlight.envs.observation_view import COUNTERS, ENDLESS, LinkBox, LinkMultiDiscrete
from oldlight.envs.shown_rows import KNOWN, ShownRows
from oldlight.registry import nearest

KINDS = ("box", "multidiscrete")
FEW = 64  # columns that are made from a list
IMAGE = (
    64 * 64
)  # a Box with two axes or more and more numbers than this is an image, and belongs in a convolutional network

if TYPE_CHECKING:
    _VectorWrapper = VectorWrapper[Any, Any, Any, Any, Any]
else:
    _VectorWrapper = VectorWrapper  # generic in newer versions of Gymnasium only


class Flattening:
    """From a Dict space to one vector: `space`, and `rows(shown, n)` for n values at once, axes (n, entry)."""

    def __init__(self, space: spaces.Space[Any], kind: str, keys: Sequence[str] | None) -> None:
        if not isinstance(space, spaces.Dict) or not {"age", "seen"} <= {key.partition("/")[0] for key in space.spaces}:
            raise TypeError(
                f"AugmentedObservation needs the Dict of a link, not {space}; put ImpairedObservation(env, channel) inside"
            )
        self.kind = checks.one_of("kind", kind, KINDS)
        chosen = list(space.spaces) if keys is None else [keys] if isinstance(keys, str) else list(keys)
        for key in chosen:
            if key not in space.spaces:
                raise ValueError(f"keys: there is no entry {key!r}{nearest(key, space.spaces)}")
        ages, queue = getattr(space, "ages", None), getattr(space, "queue", 0)
        self._parts = [_Part(key, space[key], self.kind == "box", ages) for key in chosen]
        if not self._parts:
            raise ValueError("keys is empty, expected at least one entry")
        self._columns = 0
        for part in self._parts:
            self._columns = part.place(self._columns)
        lists = [(part.key, part.listed()) for part in self._parts]
        short = self.kind == "box" and self._columns <= FEW
        self._lists: list[tuple[str, Callable[[Any], list[float]]]] | None
        self._lists = [(key, way) for key, way in lists if way is not None]
        if not short or len(self._lists) < len(lists):
            self._lists = None
        plain = [part for part in self._parts if part.plain]
        repeats = all(part.plain or part.scale is not None or part.choices for part in self._parts)
        self._numbers = plain[0] if self._lists and len(plain) == 1 and repeats else None
        self._others = [part.key for part in self._parts if part is not self._numbers]
        self._rows_without: dict[tuple[bytes, ...], NDArray[np.float32]] = {}
        low = np.concatenate([part.low for part in self._parts])
        high = np.concatenate([part.high for part in self._parts])
        self.space: LinkBox | LinkMultiDiscrete
        if self.kind == "box":
            self.space = LinkBox(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)
        else:
            self.space = LinkMultiDiscrete((high - low + 1).astype(np.int64))
        self.space.queue = queue

    def row(self, shown: dict[str, Any]) -> NDArray[Any]:
        """One value, axes (entry,)."""
        if self._lists is None:
            row: NDArray[Any] = self.rows(shown, 1)[0]
            return row
        numbers = self._numbers
        if numbers is None:
            return self._listed(shown)
        name = tuple([shown[key].tobytes() for key in self._others])
        without = self._rows_without.get(name)
        if without is None:
            without = self._listed(shown)
            if len(self._rows_without) < KNOWN:
                self._rows_without[name] = without
        row = without.copy()
        row[numbers.columns[0] : numbers.columns[1]] = shown[numbers.key]
        return row

    def _listed(self, shown: dict[str, Any]) -> NDArray[np.float32]:
        assert self._lists is not None
        numbers: list[float] = []
        for key, listed in self._lists:
            numbers += listed(shown[key])
        return np.array(numbers, dtype=np.float32)

    def columns_of(self, key: str) -> slice | dict[int, int] | None:
        """Where an entry stands in a row: the columns of its numbers, or the column of each choice. None: neither of these, or the row is long."""
        for part in self._parts:
            if part.key == key and self._lists is not None:
                return slice(*part.columns) if part.plain else part.column_of_choice()
        return None

    def rows(self, shown: dict[str, Any], n: int) -> NDArray[Any]:
        flat = np.zeros((n, self._columns), dtype=np.float32 if self.kind == "box" else np.int64)
        for part in self._parts:
            part.fill(flat, shown[part.key])
        return flat


class _Part:
    """One entry of the Dict as columns: low[j] and high[j] of each, and `fill`. ages: those that occur, if known."""

    def __init__(self, key: str, space: spaces.Space[Any], as_box: bool, ages: int | None) -> None:
        self.key = key
        self.scale: float | None = None
        self.low: NDArray[np.floating[Any]]
        self.high: NDArray[np.floating[Any]]
        self.places: NDArray[np.int64] | None = None
        self.choices: list[int] = []  # how many each entry has
        self.starts_at_zero = True
        self.single = isinstance(space, spaces.Discrete)
        self.one_axis = space.shape is not None and len(space.shape) == 1
        self.plain = False  # numbers as they are
        if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
            n = np.atleast_1d(space.n if isinstance(space, spaces.Discrete) else space.nvec).ravel().astype(np.int64)
            self.start = np.atleast_1d(space.start).ravel()
            self.shifted = bool(self.start.any())
            self.choices, self.starts_at_zero = n.tolist(), not self.shifted and len(space.shape or ()) < 2
            if as_box:  # one column for each choice
                self.places = np.cumsum(n) - n - self.start
                self.low, self.high = np.zeros(int(n.sum())), np.ones(int(n.sum()))
            else:
                self.low, self.high = np.zeros(len(n)), n - 1.0
            return
        if not isinstance(space, spaces.Box):
            raise TypeError(f"{key} is a {type(space).__name__} space, expected Discrete, MultiDiscrete or Box")
        if len(space.shape) > 1 and space.low.size > IMAGE:
            raise ValueError(
                f"{key} is an image of shape {space.shape}, {space.low.size:,} numbers; one vector of it can hardly be learned from. Give the Dict "
                'itself to a learner with a convolutional network, e.g. PPO("MultiInputPolicy", ImpairedObservation(env, channel)) of '
                "stable-baselines3; or make it smaller or flat inside: gymnasium.wrappers.ResizeObservation, FlattenObservation"
            )
        self.shifted = False
        self.low, self.high = space.low.ravel().astype(np.float64), space.high.ravel().astype(np.float64)
        entry = key.partition("/")[0]  # age of a part is age/part
        known = entry in COUNTERS and self.high[0] < ENDLESS
        if as_box:
            if entry in ("age", "waited") and ages is not None:
                self.scale = float(ages)
            elif known:
                self.scale = float(self.high[0])
            if self.scale is not None:
                self.high = self.high / self.scale
            self.plain = self.one_axis and self.scale is None
        elif not known:
            why = "no limit on its steps is known" if entry in COUNTERS else "it holds numbers, not choices"
            raise ValueError(f'{key} cannot be part of a MultiDiscrete: {why}; use kind="box" or leave it out of keys')

    def place(self, first: int) -> int:
        """Take the columns from `first` on; the next free one."""
        self.columns = (first, first + len(self.low))
        if self.places is not None:
            self.places = self.places + first
        return self.columns[1]

    def column_of_choice(self) -> dict[int, int] | None:
        """The column of each choice where the entry is one of them; else None."""
        if self.places is None or not self.single:
            return None
        start, place = int(self.start[0]), int(self.places[0])
        return {k: place + k for k in range(start, start + self.choices[0])}

    def fill(self, flat: NDArray[Any], values: Any) -> None:
        """Write the columns of this entry into flat[n, column], where they are all 0."""
        n, (first, last) = len(flat), self.columns
        if self.places is None:
            rows = np.reshape(values, (n, -1))
            if self.scale is not None:
                rows = rows / self.scale
            elif self.shifted:
                rows = rows - self.start
            flat[:, first:last] = rows
        else:
            flat[np.arange(n)[:, None], self.places + np.reshape(values, (n, -1))] = 1

    def listed(self) -> Callable[[Any], list[float]] | None:
        """How one value of a Box is written as a list of numbers, which for a few takes less time than filling an array; None: it is not done."""
        if self.places is not None and self.starts_at_zero:
            rows = [[[float(i == k) for i in range(n)] for k in range(n)] for n in self.choices]
            if len(rows) == 1 and self.single:
                return partial(_one_choice, rows[0])
            return partial(_choices, rows)
        if self.places is not None or not self.one_axis:
            return None
        scale = self.scale
        if scale is not None:
            return partial(_scaled, scale)
        return _numbers


def _one_choice(rows: list[list[float]], value: Any) -> list[float]:
    return rows[value]


def _choices(rows: list[list[list[float]]], value: Any) -> list[float]:
    return [x for row, k in zip(rows, value.tolist(), strict=True) for x in row[k]]


def _scaled(scale: float, value: Any) -> list[float]:
    return [value.item() / scale]


def _numbers(value: Any) -> list[float]:
    found: list[float] = value.tolist()
    return found


class AugmentedObservation(gym.ObservationWrapper[Any, Any, Any], RecordConstructorArgs):
    """One environment's Dict as one vector; see the module's text.

    Parameters
    ----------
    env : gymnasium.Env
        An environment behind a link; its `channel` can be read and set here too.
    kind : "box" or "multidiscrete"
        The space of the vector.
    keys : sequence of str, optional
        The entries that are used; all if None.

    Examples
    --------
    >>> import oldlight as ol
    >>> inside = ol.envs.TabularEnv("sensing_chain:0.8", channel="constant:1")
    >>> ol.envs.AugmentedObservation(inside, keys=["observation", "seen"]).observation_space.shape
    (23,)
    """

    def __init__(
        self, env: gym.Env[Any, Any], kind: Literal["box", "multidiscrete"] = "box", keys: Sequence[str] | None = None
    ) -> None:
        if isinstance(env, VectorEnv):
            raise TypeError(
                "AugmentedObservation wraps one environment; for a vector there is AugmentedVectorObservation"
            )
        RecordConstructorArgs.__init__(self, kind=kind, keys=None if keys is None else list(keys))
        gym.ObservationWrapper.__init__(self, env)
        self._flattening = Flattening(env.observation_space, kind, keys)
        self.observation_space = self._flattening.space
        self._rows = ShownRows(env._view, self._flattening) if isinstance(env, ImpairedObservation) else None
        self._inside = env
        self._link = self._link_for_rows()

    def _link_for_rows(self) -> ImpairedObservation | None:
        """The link directly inside, which can show rows itself; None where a method that says what is shown is of the user's own making."""
        env = self.env
        if env is not self._inside or not isinstance(env, ImpairedObservation):
            return None
        ours = (AugmentedObservation.observation, ImpairedObservation.reset, ImpairedObservation.step)
        used = [getattr(method, "__func__", None) for method in (self.observation, env.reset, env.step)]
        return env if used == list(ours) else None

    @property
    def channel(self) -> Any:
        """That of the environment inside."""
        return self.env.get_wrapper_attr("channel")

    @channel.setter
    def channel(self, given: Any) -> None:
        self.env.set_wrapper_attr("channel", given)

    def observation(self, observation: Any) -> NDArray[Any]:
        return self._flattening.row(observation)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """A new episode."""
        self._link = self._link_for_rows()
        if self._link is None or self._rows is None:
            return super().reset(seed=seed, options=options)
        return self._link.reset(seed=seed, options=options, show=self._rows.show)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step."""
        link, rows = self._link, self._rows
        if link is not None and rows is not None and link is self.env:
            return link.step(action, show=rows.show)
        shown, reward, terminated, truncated, info = self.env.step(action)
        return self.observation(shown), reward, terminated, truncated, info


class AugmentedVectorObservation(_VectorWrapper, RecordConstructorArgs):
    """A vector environment's Dict as one matrix, in all three autoreset modes; see the module's text.

    Parameters
    ----------
    env : gymnasium.vector.VectorEnv
        A vector environment behind a link.
    kind : "box" or "multidiscrete"
        The space of each row.
    keys : sequence of str, optional
        The entries that are used; all if None.

    Examples
    --------
    >>> import oldlight as ol
    >>> inside = ol.envs.TabularVectorEnv("sensing_chain:0.8", num_envs=3, channel="constant:1")
    >>> ol.envs.AugmentedVectorObservation(inside, keys=["observation", "seen"]).observation_space.shape
    (3, 23)
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        kind: Literal["box", "multidiscrete"] = "box",
        keys: Sequence[str] | None = None,
    ) -> None:
        RecordConstructorArgs.__init__(self, kind=kind, keys=None if keys is None else list(keys))
        VectorWrapper.__init__(self, env)
        self._flattening = Flattening(env.single_observation_space, kind, keys)
        self.single_observation_space = self._flattening.space
        self.observation_space = batch_space(self._flattening.space, env.num_envs)

    def reset(self, **how: Any) -> tuple[Any, dict[str, Any]]:
        shown, infos = self.env.reset(**how)
        return self._flattening.rows(shown, self.num_envs), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        shown, rewards, terminated, truncated, infos = self.env.step(actions)
        if "final_obs" in infos:
            final = np.full(self.num_envs, None, dtype=object)
            for e in np.flatnonzero(infos["_final_obs"]):
                final[e] = self._flattening.rows(infos["final_obs"][e], 1)[0]
            infos = infos | {"final_obs": final}
        return self._flattening.rows(shown, self.num_envs), rewards, terminated, truncated, infos
