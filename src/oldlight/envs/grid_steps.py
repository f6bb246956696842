"""The steps that a grid is counted from: from every point, or along episodes of random actions; see `oldlight.envs.grid`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from oldlight.arrays import Floats
from oldlight.envs.grid_axes import GridAxes
from oldlight.envs.grid_recipes import GridRecipe, itself
from oldlight.progress import progress_bar

Progress = bool | Callable[[int, int], None] | None
CHUNK = 4096  # steps that are counted at once
ENDLESS = 1e6  # a bound that is no bound
LOOK = 2000  # steps by which the reach of an unbounded axis is found


class GridCounts:
    """Steps by the point that they are counted at: their number, their rewards, and the weights of where they led."""

    def __init__(self, axes: GridAxes, n_actions: int) -> None:
        self.axes, self.n_actions = axes, n_actions
        self.steps = np.zeros((axes.n, n_actions))
        self.rewards = np.zeros((axes.n, n_actions))
        self.lowest = np.inf
        self._parts: list[tuple[NDArray[np.int64], NDArray[np.int64], Floats]] = []

    @property
    def met(self) -> NDArray[np.bool_]:
        """The pairs that were stepped."""
        return self.steps > 0

    def add(
        self, points: NDArray[np.int64], actions: NDArray[np.int64], places: Floats, rewards: Floats, over: Any
    ) -> None:
        """Steps from `points` that led to `places`, or to the end where `over`."""
        np.add.at(self.steps, (points, actions), 1.0)
        np.add.at(self.rewards, (points, actions), rewards)
        self.lowest = min(self.lowest, float(rewards.min()))
        corners, weight = self.axes.weights(places)
        ended = np.asarray(over, dtype=bool)[:, None]
        rows = (points * self.n_actions + actions)[:, None]
        goes = np.where(ended, self.axes.n, corners)
        weight = np.where(ended, 1.0 / weight.shape[1], weight)
        self._parts.append((np.broadcast_to(rows, goes.shape).ravel(), goes.ravel(), weight.ravel()))

    def tables(self) -> tuple[Any, Floats]:
        """(transitions, a sparse matrix with the rows s·A + a; rewards): the points, "over", and "unknown" if a pair was never met."""
        from scipy.sparse import coo_array

        N, A, met = self.axes.n, self.n_actions, self.met
        S = N + 1 + int(not met.all())
        R = np.zeros((S, A))
        R[:N] = np.divide(self.rewards, self.steps, out=np.full((N, A), self.lowest), where=met)
        if S > N + 1:
            R[N + 1] = self.lowest
        rows = [rows for rows, _, _ in self._parts]
        goes = [goes for _, goes, _ in self._parts]
        weight = [w / self.steps.ravel()[rows] for rows, _, w in self._parts]
        never = np.flatnonzero(~met.ravel())
        stay = np.arange(N * A, S * A)  # what is over, or unknown, stays so
        rows += [never, stay]
        goes += [np.full(len(never), N + 1), stay // A]
        weight += [np.ones(len(never) + len(stay))]
        P = coo_array((np.concatenate(weight), (np.concatenate(rows), np.concatenate(goes))), shape=(S * A, S)).tocsr()
        P.eliminate_zeros()
        return P, R


def from_points(
    env: gym.Env[Any, Any],
    recipe: GridRecipe,
    actions: NDArray[Any],
    counts: GridCounts,
    samples: int,
    progress: Progress,
) -> None:
    """`samples` steps from every point by every action."""
    points, A = counts.axes.points(), len(actions)
    total = len(points) * A * samples
    given = [int(a) if np.ndim(a) == 0 else a for a in actions]
    with progress_bar(progress, "stepping every point") as callback:
        taken = ((k // (A * samples), k // samples % A) for k in range(total))

        def made() -> Iterator[tuple[int, int, Any, float, bool]]:
            for k, (point, a) in enumerate(taken):
                recipe.place(env, points[point])
                seen, reward, terminated, _, _ = env.step(given[a])
                yield point, a, seen, float(reward), bool(terminated)
                if callback is not None and k % CHUNK == 0:
                    callback(k, total)

        for point, a, seen, reward, over in _chunks(made()):
            counts.add(point, a, recipe.coordinates(seen.astype(float)), reward, over)


def by_episodes(
    env: gym.Env[Any, Any],
    recipe: GridRecipe,
    actions: NDArray[Any],
    counts: GridCounts,
    steps: int,
    seed: int,
    progress: Progress,
) -> None:
    """`steps` steps of random actions; each counts at the nearest point, moved there."""
    points = counts.axes.points()
    with progress_bar(progress, "playing episodes") as callback:
        for k, chunk in enumerate(_chunks(random_steps(env, actions, steps, seed))):
            a, before, after, reward, over = chunk
            y, moved = recipe.coordinates(before.astype(float)), recipe.coordinates(after.astype(float))
            nearest = counts.axes.nearest(y)
            counts.add(nearest, a, points[nearest] + (moved - y), reward, over)
            if callback is not None:
                callback(min((k + 1) * CHUNK, steps), steps)


def random_steps(
    env: gym.Env[Any, Any], actions: NDArray[Any], steps: int, seed: int
) -> Iterator[tuple[int, Any, Any, float, bool]]:
    """(action, observation, the next one, reward, terminated) of so many steps of random actions."""
    rng = np.random.default_rng([seed, 1])
    seen, _ = env.reset(seed=seed)
    for _ in range(steps):
        a = int(rng.integers(len(actions)))
        after, reward, terminated, truncated, _ = env.step(int(actions[a]) if actions.ndim == 1 else actions[a])
        yield a, np.array(seen), np.array(after), float(reward), bool(terminated)
        seen = env.reset()[0] if terminated or truncated else after


def bounds_met(env: gym.Env[Any, Any], recipe: GridRecipe, actions: NDArray[Any], seed: int) -> tuple[Floats, Floats]:
    """(low, high) along each axis: the bounds of a Box whose numbers are the places, where they are finite; else what random episodes show."""
    places = recipe.coordinates(
        np.array([after for _, _, after, _, _ in random_steps(env, actions, LOOK, seed)], dtype=float)
    )
    low, high = places.min(axis=0), places.max(axis=0)
    space = env.observation_space
    assert isinstance(space, spaces.Box)
    if recipe.coordinates is itself:
        bounded = (np.abs(space.low) < ENDLESS) & (np.abs(space.high) < ENDLESS)
        low, high = np.where(bounded, space.low, low), np.where(bounded, space.high, high)
    return low, high


def _chunks(steps: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """The steps as arrays, some at a time."""
    held: list[tuple[Any, ...]] = []
    for step in steps:
        held.append(step)
        if len(held) == CHUNK:
            yield tuple(np.array(column) for column in zip(*held, strict=True))
            held = []
    if held:
        yield tuple(np.array(column) for column in zip(*held, strict=True))
