"""`GridProcess`: a continuous environment as a finite process on a grid of points, to be planned behind a link and played on the real one.

    grid = GridProcess.from_env(gym.make("CartPole-v1"))
    controller = grid.controller("constant:3")
    play(ImpairedObservation(gym.make("CartPole-v1"), "constant:3"), controller, 20, grid=grid)

**States** are the points of a grid (`oldlight.envs.grid_axes`), one more for "over", and where some pair was never met one more for "unknown".
From point x the action a leads to x' with the weights of the corners around x': the probabilities P(· | x, a), averaged over the
`samples` steps that were made from there. An end of the episode leads to "over", where nothing is earned. The reward is the mean of those seen.

**Where the environment can be put anywhere** (`place`, known for the classic ones) each point and action is stepped `samples` times from the
point itself; once is enough for an environment that draws nothing. **Elsewhere** episodes of random actions are played, `samples` steps
for each point and action on average. A step from y to y' counts at the point x nearest to y as one to x + (y' − y): it moves from the
point as it moved from its neighbourhood. A pair (x, a) that was never met leads to "unknown", which earns the lowest reward met at every
step: a plan avoids what nobody has seen. `coverage` is the share of the pairs that were met.

**For ever.** By default the process has no horizon and a discount of 0.99: one stationary policy then fits episodes of any length, and a time
limit that the observation does not show. `horizon=H` makes a process of H steps.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from oldlight import checks
from oldlight.arrays import Floats
from oldlight.control.controller import Controller
from oldlight.envs.grid_axes import GridAxes, spread_knots
from oldlight.envs.grid_recipes import GridRecipe, itself, recipe_of
from oldlight.envs.grid_steps import GridCounts, bounds_met, by_episodes, from_points
from oldlight.envs.tabular_setup import PLACES
from oldlight.envs.typical_age import typical_age
from oldlight.model.channels import Channel
from oldlight.model.channels.capped_link import CappedLink
from oldlight.model.mdp import TabularMDP
from oldlight.model.problem import ImpairedMDP
from oldlight.planning import solve
from oldlight.registry import channel_of
from oldlight.simulation.link_sampler import LinkSampler

MOST = 2_000_000  # points times actions
BINS = 9  # along each axis of an environment without a recipe
OFTEN = 0.99  # of the steps that a plan knows
ROOM = 2**20  # entries of a table of a plan
MANY = 4096  # steps after which an observation that can be so old can be of any age
RESETS = 256  # from which the law of the first state is counted


class GridProcess:
    """A continuous environment on a grid; made by `from_env`; see the module's text.

    Parameters
    ----------
    mdp : TabularMDP
        The process: the points of the grid, "over", and perhaps "unknown".
    axes : GridAxes
        The grid.
    actions : ndarray
        The action of the environment that each action of the process stands for, axes (a, ...).
    met : ndarray of bool, shape (points, A)
        The pairs that were stepped.
    recipe : GridRecipe
        Its coordinates.

    Examples
    --------
    >>> import gymnasium as gym
    >>> from oldlight.envs import GridProcess
    >>> grid = GridProcess.from_env(gym.make("MountainCar-v0"), bins=(15, 15))
    >>> grid
    GridProcess(15 × 15 points, A=3, every pair met)
    >>> grid.cell([-0.5, 0.0]), grid.mdp.n_states
    (82, 226)
    """

    def __init__(
        self, mdp: TabularMDP, axes: GridAxes, actions: NDArray[Any], met: NDArray[np.bool_], recipe: GridRecipe
    ) -> None:
        self.mdp, self.axes, self.actions, self.met, self.recipe = mdp, axes, actions, met, recipe

    @classmethod
    def from_env(
        cls,
        env: gym.Env[Any, Any],
        *,
        bins: int | Sequence[int] | None = None,
        samples: int | None = None,
        low: Sequence[float] | None = None,
        high: Sequence[float] | None = None,
        levels: int | None = None,
        horizon: int | None = None,
        discount: float | None = None,
        coordinates: Callable[[Floats], Floats] | None = None,
        place: Callable[[Any, Floats], None] | None = None,
        seed: int = 0,
        progress: bool | Callable[[int, int], None] | None = None,
    ) -> GridProcess:
        """The environment on a grid.

        Parameters
        ----------
        env : gymnasium.Env
            With a Box of observations, and Discrete actions or a Box of them.
        bins : int or sequence of int, optional
            Knots along each axis; by default what the recipe of the environment says, or 9.
        samples : int, optional
            Steps for each point and action (see the module's text); by default 1 where the environment can be put anywhere, 20 elsewhere.
        low, high : sequence of float, optional
            How far the grid reaches; by default the recipe's numbers, the bounds of the Box, or what the episodes show.
        levels : int, optional
            Values along each axis of a Box of actions; by default 3.
        horizon : int, optional
            H; by default the process runs for ever.
        discount : float, optional
            By default that of the recipe, 0.99 (Acrobot: 0.97), where there is no horizon.
        coordinates : callable, optional
            From observations, axes (row, entry), to places, axes (row, axis); by default the recipe's, or the observation itself.
        place : callable, optional
            place(env, place) puts the environment there; then every point is stepped.
        seed : int
            Random seed of the resets and the random actions.
        progress : bool or callable, optional
            As in `solve`.

        Returns
        -------
        GridProcess
            The process, its cells and their coverage.
        """
        known = recipe_of(env)
        recipe = _recipe(env, known, coordinates, place)
        actions = _actions(env.action_space, levels, recipe.levels)
        number = checks.whole("seed", seed)
        episodes = place is None and (known is None or coordinates is not None)
        each = checks.whole("samples", (20 if episodes else 1) if samples is None else samples, least=1)
        starts = recipe.coordinates(_resets(env, number))
        axes = _axes(env, recipe, (bins, low, high), starts, actions, number)
        if axes.n * len(actions) > MOST:
            raise ValueError(
                f"{axes!r} with {len(actions)} actions are {axes.n * len(actions):,} pairs, expected at most {MOST:,}; give fewer bins"
            )
        counts = GridCounts(axes, len(actions))
        if episodes:
            by_episodes(env, recipe, actions, counts, each * axes.n * len(actions), number, progress)
        else:
            from_points(env, recipe, actions, counts, each, progress)
        u = recipe.discount if horizon is None and discount is None else discount
        return cls(_process(counts, starts, horizon, u), axes, actions, counts.met, recipe)

    @property
    def coverage(self) -> float:
        """The share of the pairs of a point and an action that were met."""
        return float(self.met.mean())

    def cell(self, observation: Any) -> int:
        """The state of an observation: the nearest point."""
        return self.axes.cell(self._places(observation)[0].tolist())

    def weights(self, observation: Any) -> tuple[NDArray[np.int64], Floats]:
        """(states, probabilities): the corners around an observation."""
        corners, weight = self.axes.weights(self._places(observation))
        return corners[0], weight[0]

    def action(self, a: int) -> Any:
        """What the environment is given for action a."""
        chosen = self.actions[checks.whole("action", a, most=len(self.actions) - 1)]
        return int(chosen) if np.ndim(chosen) == 0 else chosen.copy()

    def problem(
        self,
        channel: Channel | str,
        *,
        oldest: int | None = None,
        actuation: int = 0,
        pending: Sequence[int] | None = None,
    ) -> ImpairedMDP:
        """The process behind a link; with `oldest` behind one that shows every observation at the latest when it is so old."""
        link = channel_of(channel)
        made = link if oldest is None else CappedLink(link, checks.whole("oldest", oldest))
        return ImpairedMDP(self.mdp, made, actuation=actuation, pending=pending)

    def oldest(self, channel: Channel | str, actuation: int = 0) -> int | None:
        """How old an observation may be in a plan behind this link: None where all ages that occur are few; else the age that is not exceeded
        in 99 % of the steps, or what tables of a million entries have room for."""
        sampler = LinkSampler(channel_of(channel))
        if sampler.oldest(MANY) < MANY:
            return None
        S, A = self.mdp.n_states, max(self.mdp.n_actions, 2)
        room = max(int(np.log(ROOM / S) / np.log(A)) - actuation, 0)
        return max(min(typical_age(sampler, PLACES, OFTEN)[0], room), _youngest(sampler))

    def controller(
        self,
        channel: Channel | str,
        *,
        oldest: int | None = None,
        actuation: int = 0,
        pending: Sequence[int] | None = None,
        tolerance: float | None = None,
        seed: int = 0,
        progress: bool | Callable[[int, int], None] | None = None,
    ) -> Controller:
        """A plan behind a link, ready to be played: `play(env, controller, 20, grid=grid)`.

        Parameters
        ----------
        channel : Channel or str
            The link.
        oldest : int, optional
            The oldest observation that the plan knows; by default as `oldest(channel)` says. Behind a link with older ones the controller counts
            along.
        actuation, pending
            Late actions, as in `ImpairedMDP`.
        tolerance : float, optional
            Of `solve`; by default a thousandth of the largest value that can be.
        seed : int
            Random seed of the controller.
        progress : bool or callable, optional
            As in `solve`.

        Returns
        -------
        Controller
            It decides by the state that `cell` makes of an observation.
        """
        k = self.oldest(channel, actuation) if oldest is None else oldest
        problem = self.problem(channel, oldest=k, actuation=actuation, pending=pending)
        wanted = self.tolerance if tolerance is None else tolerance
        return Controller(problem, solve(problem, tolerance=wanted, progress=progress).policy, seed=seed)

    @property
    def tolerance(self) -> float:
        """A thousandth of the largest value that can be; 0, exactly, with a horizon."""
        if self.mdp.discount is None:
            return 0.0
        return 1e-3 * float(np.abs(self.mdp.rewards).max()) / (1 - self.mdp.discount)

    def _places(self, observation: Any) -> Floats:
        row = np.asarray(observation, dtype=np.float64).reshape(1, -1)
        return self.recipe.coordinates(row)

    def __repr__(self) -> str:
        shape = " × ".join(str(n) for n in self.axes.shape)
        met = "every pair met" if self.met.all() else f"{100 * self.coverage:.1f} % of the pairs met"
        return f"GridProcess({shape} points, A={len(self.actions)}, {met})"


def _recipe(env: gym.Env[Any, Any], known: GridRecipe | None, coordinates: Any, place: Any) -> GridRecipe:
    """The recipe of the environment, with what the caller says instead."""
    seen = env.observation_space
    if not isinstance(seen, spaces.Box) or len(seen.shape) != 1:
        raise TypeError(
            f"a grid needs a Box of numbers in one row, and the environment shows {seen}; flatten it, gymnasium.wrappers.FlattenObservation, or "
            "use TabularMDP.from_gymnasium for one with a table"
        )
    if known is not None and coordinates is None:
        return known if place is None else known._replace(place=place)
    return GridRecipe(coordinates or itself, place, (), (), (), (), ())


def _actions(space: spaces.Space[Any], levels: int | None, usual: int) -> NDArray[Any]:
    """One row, or number, for each action of the process."""
    if isinstance(space, spaces.Discrete):
        return np.arange(int(space.n)) + int(space.start)
    n = checks.whole("levels", usual if levels is None else levels, least=2)
    if not isinstance(space, spaces.Box) or not bool(np.isfinite([space.low, space.high]).all()):
        raise TypeError(
            f"a grid needs Discrete actions or a Box of them with finite bounds, and the environment takes {space}"
        )
    each = [np.linspace(lo, hi, n) for lo, hi in zip(space.low.ravel(), space.high.ravel(), strict=True)]
    rows = np.stack([part.ravel() for part in np.meshgrid(*each, indexing="ij")], axis=1)
    return rows.reshape(-1, *space.shape).astype(space.dtype)


def _resets(env: gym.Env[Any, Any], seed: int) -> Floats:
    """What the environment shows at the beginning, axes (reset, entry)."""
    return np.array([env.reset(seed=seed if k == 0 else None)[0] for k in range(RESETS)], dtype=np.float64)


def _axes(
    env: gym.Env[Any, Any], recipe: GridRecipe, given: tuple[Any, Any, Any], starts: Floats, actions: Any, seed: int
) -> GridAxes:
    """The grid: what the caller says, else the recipe, else the bounds of the Box, else what random episodes show."""
    bins, low, high = given
    n = starts.shape[1]
    edges = {"low": low, "high": high}
    for name, row in edges.items():
        if row is not None and len(row) != n:
            raise ValueError(f"{name} has {len(row)} numbers, expected one for each axis: {n}")
    some = list(np.atleast_1d(recipe.bins or BINS if bins is None else bins))
    if len(some) not in (1, n):
        raise ValueError(f"bins has {len(some)} numbers, expected one, or one for each axis: {n}")
    counts = [checks.whole(f"bins[{d}]", some[d % len(some)], least=2) for d in range(n)]
    if not recipe.low and (low is None or high is None):
        found = bounds_met(env, recipe, actions, seed)
        low, high = (found[0] if low is None else low), (found[1] if high is None else high)
    low, high = (recipe.low if low is None else low), (recipe.high if high is None else high)
    focus, circles = recipe.focus or (1.0,) * n, recipe.circles or (False,) * n
    knots = []
    for d in range(n):
        if not low[d] < high[d]:
            raise ValueError(
                f"axis {d} reaches from {low[d]:.6g} to {high[d]:.6g}, expected low < high: give low= and high="
            )
        knots.append(spread_knots(float(low[d]), float(high[d]), counts[d], focus[d], circles[d]))
    return GridAxes(knots, circles)


def _process(counts: GridCounts, starts: Floats, horizon: int | None, discount: float | None) -> TabularMDP:
    """The counts as a process, with a warning for pairs that were never met."""
    missing = int((~counts.met).sum())
    if missing:
        warnings.warn(
            f"{missing:,} of {counts.met.size:,} pairs of a point and an action were never met ({int((~counts.met).all(axis=1).sum()):,} points not at "
            "all): a plan avoids them. Give more samples=, fewer bins=, or place=, a function that puts the environment at a point",
            stacklevel=3,
        )
    P, R = counts.tables()
    initial = np.zeros(len(R))
    corners, weight = counts.axes.weights(starts)
    np.add.at(initial, corners.ravel(), weight.ravel() / len(starts))
    dense = 8 * P.shape[0] * P.shape[1] <= 12 * P.nnz
    given = P.toarray().reshape(len(R), R.shape[1], -1) if dense else P
    return TabularMDP(given, R, horizon=horizon, discount=discount, initial=initial / initial.sum())


def _youngest(sampler: LinkSampler) -> int:
    """The smallest age that occurs once everything has settled."""
    return next(k for k in range(MANY) if typical_age(sampler, k, 0.0)[1] > 0)
