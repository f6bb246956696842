"""Grids: weights against closed forms, tables against processes that are known, plans on the real environments."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import oldlight as ol
from oldlight.envs import GridProcess, ImpairedObservation, play
from oldlight.envs.grid_axes import GridAxes, spread_knots


class Drift(gym.Env[Any, Any]):
    """A place on a line in [0, 4]: action 1 goes `pace` right, action 0 left, each fails with probability `slip`; over beyond 3.5."""

    def __init__(self, pace: float = 1.0, slip: float = 0.0, actions: spaces.Space[Any] | None = None) -> None:
        self.observation_space = spaces.Box(0.0, 4.0, (1,), np.float64)
        self.action_space = spaces.Discrete(2) if actions is None else actions
        self.pace, self.slip = pace, slip

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.x = 0.0
        return np.array([self.x]), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        move = self.pace * (2 * int(action) - 1 if np.ndim(action) == 0 else float(action[0]))
        before = self.x
        if self.np_random.random() >= self.slip:
            self.x = min(max(self.x + move, 0.0), 4.0)
        return np.array([self.x]), before, self.x > 3.5, False, {}


class Discounted(gym.Wrapper[Any, Any, Any, Any]):
    """Rewards of step h times u^h."""

    def __init__(self, env: gym.Env[Any, Any], u: float) -> None:
        super().__init__(env)
        self.u, self.left = u, 1.0

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        seen, reward, over, cut, info = self.env.step(action)
        paid, self.left = float(reward) * self.left, self.left * self.u
        return seen, paid, over, cut, info


class Anywhere(Drift):
    """Goes to any place."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.x = float(self.np_random.uniform(0, 4))
        return np.array([self.x]), 0.0, self.x > 3.5, False, {}


def put(env: Any, place: Any) -> None:
    env.unwrapped.x = float(place[0])


def test_weights_are_probabilities_whose_mean_is_the_place() -> None:
    rng = np.random.default_rng(0)
    axes = GridAxes([np.sort(rng.normal(size=5)), np.sort(rng.normal(size=3)), spread_knots(-1.0, 2.0, 4, 1.5)])
    low, high = axes.points().min(axis=0), axes.points().max(axis=0)
    places = low + (high - low) * rng.random((200, 3))
    corners, weight = axes.weights(places)
    assert (weight >= 0).all()
    assert weight.sum(axis=1) == pytest.approx(np.ones(200))
    mean = (weight[:, :, None] * axes.points()[corners]).sum(axis=1)
    assert mean == pytest.approx(places, abs=1e-12)
    corners, weight = axes.weights(places + 100.0)
    assert (axes.points()[corners[np.arange(200), weight.argmax(axis=1)]] == high).all()


def test_the_nearest_point_is_the_nearest_point() -> None:
    """By brute force over all points, each axis measured in its own cells; and the quick form agrees, on circles too."""
    rng = np.random.default_rng(1)
    axes = GridAxes([spread_knots(-1, 1, 5), spread_knots(-np.pi, np.pi, 6, circle=True)], [False, True])
    places = np.stack([rng.uniform(-1.5, 1.5, 300), rng.uniform(-9, 9, 300)], axis=1)
    points = axes.points()
    turned = np.angle(np.exp(1j * (places[:, None, 1] - points[None, :, 1])))
    away = (np.abs(places[:, None, 0] - points[None, :, 0]) / 0.5) ** 2 + (turned / (np.pi / 3)) ** 2
    assert (axes.nearest(places) == away.argmin(axis=1)).all()
    assert [axes.cell(place) for place in places.tolist()] == axes.nearest(places).tolist()


def test_a_circle_has_no_end() -> None:
    axes = GridAxes([spread_knots(-np.pi, np.pi, 4, circle=True)], [True])
    corners, weight = axes.weights(
        np.array([[np.pi - np.pi / 8]])
    )  # a quarter of the way from the last knot, π/2, .. to −π
    assert dict(zip(corners[0].tolist(), weight[0].tolist(), strict=True)) == pytest.approx({3: 0.25, 0: 0.75})


@pytest.mark.filterwarnings("ignore:.*never met")  # what is over is nowhere stepped from
@pytest.mark.parametrize("placed", [True, False])
def test_the_table_of_a_walk_is_the_walk(placed: bool) -> None:
    """On a grid that the process never leaves, the table is the process: stepped from each point, or met in episodes."""
    env = Drift()
    grid = GridProcess.from_env(env, bins=5, horizon=6, place=put if placed else None, samples=None if placed else 200)
    P, R = np.asarray(grid.mdp.transitions)[0], grid.mdp.rewards[0]
    for x in range(4):
        assert P[x, 0, max(x - 1, 0)] == pytest.approx(1.0)
        assert P[x, 1, x + 1 if x < 3 else 5] == pytest.approx(1.0)  # over beyond 3.5
        assert R[x].tolist() == pytest.approx([x, x])
    assert P[5, :, 5].tolist() == [1.0, 1.0]
    assert grid.cell([1.4]) == 1
    assert grid.coverage == (1.0 if placed else 0.8)


def test_interpolation_keeps_the_expected_place() -> None:
    """Steps of a third of a cell: the nearest point would stand still; the weights move on as the process does."""
    grid = GridProcess.from_env(Drift(pace=1 / 3), bins=5, place=put)
    assert np.asarray(grid.mdp.transitions)[0, 1, 1, :3].tolist() == pytest.approx([0.0, 2 / 3, 1 / 3])


def test_random_steps_are_sampled_in_proportion() -> None:
    """χ² of one pair: a slip of 0.3, 2,000 samples from each point."""
    grid = GridProcess.from_env(Drift(slip=0.3), bins=5, place=put, samples=2000)
    P = np.asarray(grid.mdp.transitions)[0]
    stays = 2000 * P[1, 1, 1]
    assert (stays - 600) ** 2 / 600 + (
        stays - 600
    ) ** 2 / 1400 < 10.83  # the 99.9 % point of χ² with one degree of freedom


def test_what_nobody_has_met_is_known_and_avoided() -> None:
    with pytest.warns(UserWarning, match="never met"):
        grid = GridProcess.from_env(Drift(pace=0.02), bins=5, samples=3)
    assert 0 < grid.coverage < 1
    unknown = grid.mdp.n_states - 1
    missing = np.argwhere(~grid.met)[0]
    assert np.asarray(grid.mdp.transitions)[0][*missing].argmax() == unknown
    assert grid.mdp.rewards[0, unknown].max() <= grid.mdp.rewards[0, :5][grid.met].min()
    assert "% of the pairs met" in repr(grid)


def test_a_box_of_actions_in_levels() -> None:
    grid = GridProcess.from_env(Drift(actions=spaces.Box(-1.0, 1.0, (1,))), bins=5, place=put, levels=3)
    assert [grid.action(a).tolist() for a in range(3)] == [[-1.0], [0.0], [1.0]]
    assert np.asarray(grid.mdp.transitions)[0, 2].argmax(axis=1).tolist() == [1, 2, 3]


def test_the_sparse_form_is_taken_where_it_is_smaller() -> None:
    assert GridProcess.from_env(Drift(), bins=40, place=put).mdp.sparse
    assert not GridProcess.from_env(Anywhere(), bins=2, place=put, samples=50).mdp.sparse


@pytest.mark.parametrize("d", [0, 1, 3])
def test_a_plan_on_the_grid_earns_its_value_on_the_real_walk(d: int) -> None:
    """Where the grid is the process itself and nothing is drawn, the controller earns what `solve` says, to the last digit."""
    grid = GridProcess.from_env(Drift(), bins=5, place=put, discount=0.9)
    problem = grid.problem(f"constant:{d}")
    best = ol.solve(problem)
    behind = ImpairedObservation(gym.wrappers.TimeLimit(Discounted(Drift(), 0.9), 400), f"constant:{d}", queue=0)
    (earned,) = play(behind, ol.Controller(problem, best.policy), 1, grid=grid)
    assert earned == pytest.approx(best.value, abs=1e-7)


def test_cartpole_balances_behind_delay_and_loss() -> None:
    """A small grid on the real environment: the mean return of a few episodes is far from that of random actions (about 20)."""
    grid = GridProcess.from_env(gym.make("CartPole-v1"), bins=(3, 7, 9, 9), discount=0.97)
    assert grid.mdp.sparse
    for channel in ("constant:1", "loss:0.2"):
        controller = grid.controller(channel, oldest=None if channel == "constant:1" else 1, progress=False)
        returns = play(ImpairedObservation(gym.make("CartPole-v1"), channel, queue=0), controller, 4, seed=3, grid=grid)
        assert returns.mean() > 100


def test_how_old_a_plan_lets_observations_be() -> None:
    grid = GridProcess.from_env(Drift(), bins=5, place=put)
    assert grid.oldest("constant:3") is None
    assert grid.oldest("packets:0=.5,2=.5") is None
    # 1 − 0.2^(m+1) ≥ 0.99 from m = 2 on, two steps later behind a delay of two
    assert grid.oldest("loss:0.2") == 2
    assert grid.oldest("constant:2+loss:0.2") == 4


def test_refusals() -> None:
    with pytest.raises(TypeError, match="Box of numbers"):
        GridProcess.from_env(gym.make("FrozenLake-v1"))
    with pytest.raises(ValueError, match="bins has 3 numbers"):
        GridProcess.from_env(Drift(), bins=(3, 3, 3))
    with pytest.raises(ValueError, match="low has 2 numbers"):
        GridProcess.from_env(Drift(), low=(0, 0))
    with pytest.raises(ValueError, match="fewer bins"):
        GridProcess.from_env(gym.make("CartPole-v1"), bins=60)
    with pytest.raises(TypeError, match="finite bounds"):
        GridProcess.from_env(Drift(actions=spaces.Box(-np.inf, np.inf, (1,))))
    grid = GridProcess.from_env(Drift(), bins=5, place=put)
    controller = grid.controller("constant:1")
    with pytest.raises(TypeError, match="outermost"):
        play(Drift(), controller, 1, grid=grid)
    with pytest.raises(TypeError, match="give grid="):
        play(ImpairedObservation(Drift(), "constant:1"), controller, 1)
    other = GridProcess.from_env(Drift(), bins=7, place=put)
    with pytest.raises(ValueError, match="6 states"):
        play(ImpairedObservation(Drift(), "constant:1"), controller, 1, grid=other)
