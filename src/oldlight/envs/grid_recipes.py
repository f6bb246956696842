"""What a grid needs to know of an environment: its coordinates, how far they reach, and how the environment is put somewhere.

The classic environments have a recipe each, found by `recipe_of`. The numbers were chosen by playing on the real environments behind
delays of 0 to 5 steps (docs/grid.md).

    CartPole       position, velocity, angle, angular velocity; knots closer together around the upright pole
    MountainCar    position, velocity
    Pendulum       angle (a circle), angular velocity; its torque in three steps
    Acrobot        two angles (circles), two angular velocities

Any other environment with a Box has its coordinates as they are, the bounds of the Box where they are finite, and what episodes show where
they are not; it cannot be put anywhere unless `place` says how.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from oldlight.arrays import Floats


class GridRecipe(NamedTuple):
    """coordinates(observations), axes (row, entry), to places, axes (row, axis); place(env, place) puts the environment there; low, high,
    bins, focus and circles for each axis; levels: how many values an action of a Box has along
    each of its axes; discount: for a plan without a horizon."""

    coordinates: Callable[[Floats], Floats]
    place: Callable[[Any, Floats], None]
    low: tuple[float, ...]
    high: tuple[float, ...]
    bins: tuple[int, ...]
    focus: tuple[float, ...]
    circles: tuple[bool, ...]
    levels: int = 3
    discount: float = 0.99


def itself(observations: Floats) -> Floats:
    """An observation that is the place."""
    return observations


def _one_angle(observations: Floats) -> Floats:
    return np.stack([np.arctan2(observations[:, 1], observations[:, 0]), observations[:, 2]], axis=1)


def _two_angles(observations: Floats) -> Floats:
    x = observations
    return np.stack([np.arctan2(x[:, 1], x[:, 0]), np.arctan2(x[:, 3], x[:, 2]), x[:, 4], x[:, 5]], axis=1)


def _state(env: Any, place: Floats) -> None:
    """As most classic environments keep it."""
    env.unwrapped.state = np.array(place)


def _cart(env: Any, place: Floats) -> None:
    base = env.unwrapped
    base.state, base.steps_beyond_terminated = np.array(place), None


TURN = np.pi
CARTPOLE = GridRecipe(
    itself, _cart, (-2.4, -2.5, -0.2095, -2.8), (2.4, 2.5, 0.2095, 2.8), (9, 9, 13, 13), (1.5,) * 4, (False,) * 4
)
MOUNTAIN_CAR = GridRecipe(itself, _state, (-1.2, -0.07), (0.6, 0.07), (61, 61), (1.0, 1.0), (False, False))
PENDULUM = GridRecipe(_one_angle, _state, (-TURN, -8.0), (TURN, 8.0), (45, 41), (1.0, 1.0), (True, False))
ACROBOT = GridRecipe(
    _two_angles, _state, (-TURN, -TURN, -9.0, -16.0), (TURN, TURN, 9.0, 16.0), (12, 12, 13, 13), (1.0, 1.0, 2.0, 2.0),
    (True, True, False, False), discount=0.97,
)  # fmt: skip
RECIPES = {
    "CartPoleEnv": CARTPOLE,
    "MountainCarEnv": MOUNTAIN_CAR,
    "Continuous_MountainCarEnv": MOUNTAIN_CAR,
    "PendulumEnv": PENDULUM,
    "AcrobotEnv": ACROBOT,
}


def recipe_of(env: gym.Env[Any, Any]) -> GridRecipe | None:
    """The recipe of a classic environment that shows its own observations; None for any other."""
    base = env.unwrapped
    if not type(base).__module__.startswith("gymnasium.envs.classic_control."):
        return None
    return RECIPES.get(type(base).__name__) if env.observation_space == base.observation_space else None
