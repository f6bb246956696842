"""`plan_on_grid`: what a plan on a grid earns on the real environment, as a task of a study: the yardstick where there is no table.

A continuous environment has no exact optimum to compare with. A plan on a grid of points (`oldlight.envs.GridProcess`), played behind the same link, is
no bound either, but it is what can be had without training. It is made once for each environment and link, whatever the number of learners and
seeds: a job of its own. Beside it stands what uniformly random actions earn: where all returns are negative, as on Pendulum, shares are counted from there.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.own_code import registered
from oldlight.studies.jobs import Environment

SEED = 18  # of the grid, of the episodes, of the random actions
NORMAL = 1.96  # half of a 95 % interval, in standard errors


@registered
def plan_on_grid(problem: Environment, *, test_episodes: int = 50) -> dict[str, Any]:
    """Plan on a grid, play on the real environment behind the link. Returns returns[k], mean, half_width (95 %), random (the mean return of random actions),
    states, and the times of sampling and planning."""
    import gymnasium as gym

    from oldlight.envs import GridProcess, ImpairedObservation, play

    refuse(problem, test_episodes=test_episodes)
    began = time.perf_counter()
    grid = GridProcess.from_env(gym.make(problem.id), progress=False)
    sampled = time.perf_counter()
    controller = grid.controller(problem.channel, progress=False)
    planned = time.perf_counter()
    behind = ImpairedObservation(gym.make(problem.id), problem.channel, queue=0, hindsight=False)
    returns = play(behind, controller, test_episodes, seed=SEED, grid=grid)
    return {
        "returns": returns,
        "mean": float(returns.mean()),
        "half_width": half_width(returns),
        "random": float(random_returns(problem.id, test_episodes).mean()),
        "states": grid.mdp.n_states,
        "sampling_seconds": sampled - began,
        "planning_seconds": planned - sampled,
    }


def refuse(problem: Any, *, test_episodes: int = 50) -> None:
    """Refuse, before any work, what `plan_on_grid` would refuse: a study asks for it."""
    checks.whole("test_episodes", test_episodes, least=1)
    if not isinstance(problem, Environment):
        raise ValueError(
            f"oldlight.deep:plan_on_grid takes an environment by its id, not {type(problem).__name__}; a process with a table is planned by the task "
            '"solve"; as an instance: "env:CartPole-v1"'
        )


plan_on_grid.refuse = refuse  # type: ignore[attr-defined]


def half_width(values: NDArray[np.float64]) -> float:
    """Half of a 95 % interval for the mean of independent episodes; NaN for one."""
    n = len(values)
    return float(NORMAL * np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else float("nan")


def random_returns(env: str, episodes: int) -> NDArray[np.float64]:
    """The returns of uniformly random actions, which no link changes."""
    import gymnasium as gym

    world = gym.make(env)
    world.action_space.seed(SEED)
    returns = np.zeros(episodes)
    for k in range(episodes):
        world.reset(seed=SEED if k == 0 else None)
        over = False
        while not over:
            _, reward, terminated, truncated, _ = world.step(world.action_space.sample())
            returns[k] += float(reward)
            over = bool(terminated or truncated)
    return returns
