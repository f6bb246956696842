"""`oldlight plan gym:ID --grid`: a continuous environment planned on a grid, and the plan played on the real one."""

from __future__ import annotations

import time
from typing import Any

import typer

from oldlight.cli.shared import said, show, tell


def plan_on_grid(
    process: str,
    channel: str,
    actuation: int,
    how: tuple[float | None, float, str | None, int],
    to: tuple[str | None, str | None, str | None],
) -> None:
    """how: discount, tolerance, bins, episodes; to: files for the controller, JSON and CSV."""
    import gymnasium as gym
    import numpy as np

    from oldlight.control import Controller
    from oldlight.envs import GridProcess, ImpairedObservation, play
    from oldlight.planning import solve
    from oldlight.registry import channel_of, permit_environment

    discount, tolerance, bins, episodes = how
    controller_file, as_json, as_csv = to
    kind, _, name = process.partition(":")
    if kind != "gym" or "@" in name:
        raise typer.BadParameter(f"{process!r}: --grid takes gym:ID, e.g. gym:CartPole-v1", param_hint="PROCESS")
    permit_environment(name)
    knots = None if bins is None else said("--bins", lambda: [int(n) for n in bins.split(",")])
    said("--channel", channel_of, channel)
    grid = said("PROCESS", GridProcess.from_env, gym.make(name), bins=knots, discount=discount)
    began = time.perf_counter()
    problem = grid.problem(channel, oldest=grid.oldest(channel, actuation), actuation=actuation)
    found = solve(problem, tolerance=tolerance or grid.tolerance)
    seconds = time.perf_counter() - began
    controller = Controller(problem, found.policy)
    env = ImpairedObservation(gym.make(name), channel, actuation=actuation, queue=0, hindsight=False)
    returns = play(env, controller, episodes, grid=grid)
    row: dict[str, Any] = {
        "process": process, "channel": channel, "cells": grid.axes.n, "coverage": grid.coverage, "value on the grid": found.value,
        "lower": found.lower, "upper": found.upper, "seconds": seconds, "mean return": float(returns.mean()),
        "± 95%": float(1.96 * returns.std(ddof=1) / np.sqrt(episodes)), "episodes": episodes,
    }  # fmt: skip
    show([row], f"{grid!r}, planned behind the link and played on the real environment", as_json, as_csv)
    if controller_file is not None:
        tell(f"The controller is in {controller.save(controller_file)}")
