"""A link for each part, and a link for the actions: equality with the single link, laws by χ², refusals."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from scipy.stats import chi2

import oldlight as ol
from counting_env import CountingEnv, run
from oldlight.envs import (
    AugmentedObservation,
    ImpairedAction,
    ImpairedObservation,
    ImpairedParts,
    TabularEnv,
    learn_in,
    play,
)
from repeats import repeats

HALVES = {"cart": [0, 1], "pole": [2, 3]}


def test_equal_links_show_what_one_link_shows() -> None:
    """A constant delay for each part is the delay of the whole: every entry, at every step, in two episodes."""
    one = ImpairedObservation(gym.make("CartPole-v1"), "constant:3")
    parts = ImpairedObservation(gym.make("CartPole-v1"), {"cart": "constant:3", "pole": "constant:3"}, slices=HALVES)
    assert isinstance(parts, ImpairedParts)
    for (whole, *_), (shown, *_) in zip(run(one, 4), run(parts, 4), strict=True):
        assert np.array_equal(whole["observation"], [*shown["observation/cart"], *shown["observation/pole"]])
        assert np.array_equal(whole["actions"], shown["actions"])
        for name in HALVES:
            assert all(np.array_equal(whole[key], shown[f"{key}/{name}"]) for key in ("age", "waited", "fresh", "seen"))
        assert shown in parts.observation_space


def test_each_part_has_an_age_of_its_own() -> None:
    env = ImpairedObservation(
        CountingEnv(9, "Dict"), {"a": "periodic:3,1", "b": "none"}, clock=True, reveal=True, horizon=9
    )
    shown, info = env.reset(seed=0)
    assert (shown["seen/a"], shown["seen/b"]) == (0, 1)
    for i in range(1, 9):
        shown, _, over, _, info = env.step(i % 3)
        newest = (i - 1) // 3 * 3  # sent at 0, 3, 6, .. and a step later
        assert (shown["observation/a"], shown["age/a"][0]) == (newest, i - newest)
        assert shown["observation/b/c"].tolist() == [i, i]
        assert shown["age/b"][0] == 0
        assert shown["time"][0] == i
        assert shown["actions"][len(shown["actions"]) - (i - newest) :].tolist() == [
            k % 3 for k in range(newest + 1, i + 1)
        ]
        assert info["present"]["a"] == i
        assert not over
    *_, info = env.step(0)
    assert info["link"]["b"] == {"mean_age": 0.0, "lost": 0.0, "longest_blackout": 0.0}
    assert info["link"]["a"]["lost"] == pytest.approx(1 - 4 / 10)  # 0, 3 and 6 came, 9 is under way


def test_the_links_of_the_parts_draw_apart() -> None:
    """Another link for one part changes nothing for the other; the age of a lossy part has its law: P(age ≥ m) = 0.3^m."""
    ages: dict[str, list[int]] = {}
    for other in ("none", "loss:0.5"):
        env = ImpairedParts(
            CountingEnv(4001, "Box"),
            {"x": "loss:0.3", "y": other},
            slices={"x": [0], "y": [1, 2]},
            queue=0,
            horizon=4001,
        )
        env.reset(seed=7)
        ages[other] = [int(env.step(0)[0]["age/x"][0]) for _ in range(4000)]
    assert ages["none"] == ages["loss:0.5"]
    apart = np.array(ages["none"][::8])  # ages so far apart are all but independent
    seen = np.array([(apart == m).sum() for m in range(3)] + [(apart >= 3).sum()])
    expected = len(apart) * np.array([0.7, 0.21, 0.063, 0.027])
    assert ((seen - expected) ** 2 / expected).sum() < chi2.ppf(0.999, 3)


def test_parts_as_one_vector() -> None:
    env = AugmentedObservation(
        ImpairedObservation(gym.make("CartPole-v1"), {"cart": "constant:2", "pole": "none"}, slices=HALVES)
    )
    shown, _ = env.reset(seed=0)
    assert shown in env.observation_space
    assert env.observation_space.shape == (4 + 2 * (1 + 1 + 2 + 2) + 2 * 3,)


def test_parts_that_are_wrong_are_refused() -> None:
    for how, word in (
        ({"cart": "none", "pole": "none"}, "slices="),
        ({"cart": "none"}, "slices="),
    ):
        with pytest.raises(TypeError, match=word):
            ImpairedObservation(gym.make("CartPole-v1"), how)
    with pytest.raises(ValueError, match=r"each of 0\.\.3 once"):
        ImpairedObservation(gym.make("CartPole-v1"), {"cart": "none"}, slices={"cart": [0, 1]})
    with pytest.raises(ValueError, match="no link for the part 'pole'"):
        ImpairedObservation(gym.make("CartPole-v1"), {"cart": "none"}, slices=HALVES)
    with pytest.raises(ValueError, match="did you mean pole"):
        ImpairedObservation(gym.make("CartPole-v1"), {"cart": "none", "pol": "none"}, slices=HALVES)
    with pytest.raises(ValueError, match="not planned"):
        ol.ImpairedMDP(ol.instances.sensing_chain(0.8), {"camera": "constant:2", "imu": "none"})  # type: ignore[arg-type]


# -- the link of the actions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("actions", ["Discrete", "Box", "Dict"])
def test_a_constant_delay_of_actions_is_the_actuation(actions: str) -> None:
    """What acts, and all that follows from it, step by step."""
    inner = CountingEnv(8, "Discrete", actions), CountingEnv(8, "Discrete", actions)
    one = ImpairedObservation(inner[0], "none", actuation=2)
    other = ImpairedAction(inner[1], "constant:2")
    for env in (one, other):
        env.reset(seed=3)
        env.action_space.seed(5)
        for _ in range(8):
            env.step(env.action_space.sample())
    assert str(inner[0].acted) == str(inner[1].acted)


@pytest.mark.parametrize(("missing", "expected"), [("hold", [7, 0, 0, 2, 3, 3, 3]), ("default", [7, 0, 7, 2, 3, 7, 7])])
def test_what_is_done_where_an_action_is_missing(missing: Any, expected: list[int]) -> None:
    """A link that shows what it was told to, by hand: action i is i; the newest arrives at 1 (0), 3 (2), 4 (3), and never after."""

    class Told:
        def __init__(self) -> None:
            self.at = {1: [0], 3: [2, 1], 4: [3]}

        def begin(self, rng: Any) -> Any:
            self.now = -1
            return self.send()

        def send(self) -> Any:
            from oldlight.simulation.link_sampler import Delivery

            self.now += 1
            return Delivery(self.at.get(self.now, []), [])

    inner = CountingEnv(7)
    inner.action_space = spaces.Discrete(8)
    env = ImpairedAction(inner, "none", missing=missing, default=7)
    env._link.sampler = Told()  # type: ignore[assignment]
    env.reset(seed=0)
    infos = [env.step(i)[4] for i in range(7)]
    assert [info["acted"] for info in infos] == inner.acted == expected
    sources = [info["acted_from"] for info in infos]
    assert sources == ([-1, 0, 0, 2, 3, 3, 3] if missing == "hold" else [-1, 0, -1, 2, 3, -1, -1])


def test_lost_actions_are_lost_in_proportion() -> None:
    env = ImpairedAction(CountingEnv(2001), "loss:0.3", missing="default", default=2)
    env.reset(seed=1)
    missing = sum(env.step(0)[4]["acted"] == 2 for _ in range(2000))
    assert (missing - 600) ** 2 / 420 < chi2.ppf(0.999, 1)


def test_a_constant_action_link_is_planned_and_others_are_refused() -> None:
    """Planned as late actions: the controller earns what the plan says, within four standard errors, and more than one that ignores it."""
    chain = "sensing_chain:0.8"
    env = ImpairedObservation(ImpairedAction(TabularEnv(chain), "constant:1", default=2), "constant:1")
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:1", actuation=1, pending=[2])
    best = ol.solve(problem)
    returns = play(env, best.policy, repeats(300, 1500), seed=2)
    assert abs(returns.mean() - best.value) < 4 * returns.std(ddof=1) / np.sqrt(1500)
    lossy = ImpairedObservation(ImpairedAction(TabularEnv(chain), "loss:0.1"), "constant:1")
    with pytest.raises(ValueError, match="does not know what was done"):
        learn_in(lossy, ol.learners.DelayedUCBVI(), 2)
    limited = ImpairedObservation(
        gym.wrappers.TimeLimit(ImpairedAction(TabularEnv(chain), "constant:1"), 10), "constant:1"
    )
    with pytest.raises(ValueError, match="directly inside"):
        learn_in(limited, ol.learners.DelayedUCBVI(), 2)
    with pytest.raises(ValueError, match="missing is 'wait'"):
        ImpairedAction(CountingEnv(), "none", missing="wait")  # type: ignore[arg-type]
