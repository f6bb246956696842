"""A controller on a real environment behind a link: what `play` does when it is given a `Controller`.

The controller hears what `info["arrivals"]` of `ImpairedObservation` says: an observation of a step, as the state that `grid.cell` makes of it (or
as it is, where observations are states), or that it is lost. Its action goes to the environment as `grid.action` says. The episode ends when
the environment's does; the controller of a plan for ever goes on as long as that takes.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from oldlight.control.controller import Controller
from oldlight.envs.grid import GridProcess
from oldlight.envs.impaired_observation import ImpairedObservation


def play_episode(
    env: ImpairedObservation, controller: Controller, grid: GridProcess | None, seed: int | None
) -> tuple[float, int]:
    """One episode: (its return, its steps)."""
    _, info = env.reset(seed=seed)
    controller.reset()
    earned, steps, over = 0.0, 0, False
    while not over:
        for step, seen in info["arrivals"]:
            if seen is not None:
                controller.observe(step, int(seen) if grid is None else grid.cell(seen))
            elif step >= 0:
                controller.lost(step)
        a = controller.act()
        _, reward, terminated, truncated, info = env.step(a if grid is None else grid.action(a))
        earned, steps, over = earned + float(reward), steps + 1, bool(terminated or truncated)
    return earned, steps


def play_controller(
    env: gym.Env[Any, Any], controller: Controller, episodes: int, seed: int, grid: GridProcess | None
) -> NDArray[np.float64]:
    """The return of each episode; refuses what a controller cannot hear or do."""
    if not isinstance(env, ImpairedObservation):
        raise TypeError(
            f"a controller hears what arrives, and {env} does not say: wrap it, ImpairedObservation(env, channel), as the outermost wrapper"
        )
    seen, done = env.env.observation_space, env.action_space
    if grid is None and not (isinstance(seen, spaces.Discrete) and isinstance(done, spaces.Discrete)):
        raise TypeError(
            f"the environment shows {seen} and takes {done}, and a controller knows states and actions by number: give grid=, a GridProcess"
        )
    states, actions = controller.tables.n_states, controller.tables.n_actions
    made_for = (int(seen.n), int(done.n)) if grid is None else (grid.mdp.n_states, grid.mdp.n_actions)  # type: ignore[attr-defined]
    if (states, actions) != made_for:
        raise ValueError(
            f"the controller was planned for {states} states and {actions} actions, and there are {made_for[0]} and {made_for[1]}"
        )
    return np.array([play_episode(env, controller, grid, seed if k == 0 else None)[0] for k in range(episodes)])
