"""An environment that counts its steps in observations of every kind of space."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

SPACES: dict[str, spaces.Space[Any]] = {
    "Discrete": spaces.Discrete(1000),
    "Discrete from 5": spaces.Discrete(1000, start=5),
    "MultiDiscrete": spaces.MultiDiscrete([1000, 3]),
    "MultiBinary": spaces.MultiBinary(10),
    "Box": spaces.Box(-1000, 1000, (3,), np.float32),
    "image": spaces.Box(0, 255, (4, 5, 3), np.uint8),
    "Dict": spaces.Dict({"a": spaces.Discrete(1000), "b": spaces.Dict({"c": spaces.Box(-9, 1000, (2,), np.float64)})}),
    "Tuple": spaces.Tuple((spaces.Discrete(1000), spaces.MultiBinary(10))),
    "Text": spaces.Text(6, charset="0123456789"),
}


ACTIONS: dict[str, spaces.Space[Any]] = {
    "Discrete": spaces.Discrete(3),
    "Discrete from 5": spaces.Discrete(3, start=5),
    "MultiDiscrete": spaces.MultiDiscrete([3, 2]),
    "MultiBinary": spaces.MultiBinary(4),
    "Box": spaces.Box(-1, 1, (2,), np.float32),
    "Dict": spaces.Dict({"a": spaces.Discrete(3), "b": spaces.Box(-1, 1, (2,), np.float32)}),
    "Tuple": spaces.Tuple((spaces.Discrete(3), spaces.Discrete(2))),
}


class CountingEnv(gym.Env[Any, Any]):
    """The observation of step i says i, the reward of step i < 40 is 2^i; arrays are reused from step to step, which is allowed."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self, length: int = 6, kind: str = "Discrete", actions: str = "Discrete", end: str = "terminated"
    ) -> None:
        self.length, self.end = length, end
        self.observation_space, self.action_space = SPACES[kind], ACTIONS[actions]
        self._buffers: dict[int, Any] = {}
        self.acted: list[Any] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.i, self.acted, self.luck = 0, [], []
        return self.say(self.observation_space), {"step": 0}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.acted.append(np.array(action).tolist() if not isinstance(action, dict) else dict(action))
        self.luck.append(float(self.np_random.random()))
        self.i += 1
        over = self.i >= self.length
        ends = (over and self.end == "terminated", over and self.end == "truncated")
        return self.say(self.observation_space), 2.0 ** ((self.i - 1) % 40), *ends, {"step": self.i}

    def say(self, space: Any) -> Any:
        i = self.i
        if isinstance(space, spaces.Discrete):
            return np.int64(space.start + i)
        if isinstance(space, spaces.Text):
            return str(i)
        if isinstance(space, spaces.Dict):
            return {key: self.say(part) for key, part in space.spaces.items()}
        if isinstance(space, spaces.Tuple):
            return tuple(self.say(part) for part in space.spaces)
        array = self._buffers.setdefault(id(space), np.zeros(space.shape, dtype=space.dtype))
        if isinstance(space, spaces.MultiBinary):
            array[:] = [i >> j & 1 for j in range(10)]
        elif isinstance(space, spaces.MultiDiscrete):
            array[:] = i, i % 3
        else:
            array[...] = i
        return array


def told(shown: dict[str, Any]) -> int | None:
    """The step that the Dict's observation says, or None for nothing."""
    if not shown["seen"]:
        return None
    found = {}
    for name, value in shown.items():
        if name.startswith("observation"):
            flat = np.asarray(value).ravel()
            if name.endswith("/1") or (flat.shape == (10,) and flat.max() < 2):
                found[name] = int((flat << np.arange(10)).sum())
            else:
                found[name] = int(flat[0])
    assert len(set(found.values())) == 1
    return next(iter(found.values()))


def run(env: Any, seed: int | None = 0, action: Any = None) -> list[tuple[Any, ...]]:
    """One episode: (shown, reward, terminated, truncated, info) of each time; None for what reset does not give."""
    shown, info = env.reset(seed=seed)
    out: list[tuple[Any, ...]] = [(shown, None, False, False, info)]
    env.action_space.seed(seed)
    while not (out[-1][2] or out[-1][3]):
        out.append(env.step(env.action_space.sample() if action is None else action))
    return out


def assert_same(one: Any, other: Any) -> None:
    from gymnasium.utils.env_checker import data_equivalence

    assert data_equivalence(one, other, exact=True)


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _frozen(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_frozen(v) for v in value]
    return np.asarray(value).tolist() if value is not None else None


def count(value: Any, known: set[int] | None = None) -> int:
    """The objects that can be reached through containers and the wrapper's own objects."""
    known = set() if known is None else known
    if id(value) in known:
        return 0
    known.add(id(value))
    inner: list[Any] = []
    if isinstance(value, dict):
        inner = [*value, *value.values()]
    elif isinstance(value, list | tuple | set) or type(value).__name__ == "deque":
        inner = list(value)
    elif type(value).__module__.startswith("oldlight"):
        inner = list(vars(value).values())
    return 1 + sum(count(x, known) for x in inner)


def waiting(env: Any) -> int:
    """How many observations an `ImpairedObservation` holds."""
    return len(env._sent if env._episode is None else env._episode._under_way) + (env._episode is not None)
