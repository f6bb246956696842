"""`ImpairedObservation` on environments of every kind: spaces, late actions, queues, clocks, refusals."""

from __future__ import annotations

import json
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import TimeLimit
from scipy import stats

import oldlight as ol
from counting_env import ACTIONS, SPACES, CountingEnv, assert_same, run, told, waiting
from oldlight.envs import AugmentedObservation, FixedLength, ImpairedObservation, TabularEnv

# -- every kind of space ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [k for k in SPACES if k != "Discrete from 5"])
def test_every_kind_of_observation_arrives_late_and_whole(kind: str) -> None:
    env = ImpairedObservation(CountingEnv(8, kind), "constant:3")
    for now, (shown, *_) in enumerate(run(env)):
        assert shown in env.observation_space
        assert told(shown) == (None if now < 3 else now - 3)
        assert shown["age"] == min(now, 3)
        assert shown["fresh"] == shown["seen"] == (now >= 3)
        assert not any(isinstance(space, spaces.Dict | spaces.Tuple) for space in env.observation_space.spaces.values())


@pytest.mark.parametrize("kind", ACTIONS)
def test_every_kind_of_action_is_in_the_queue(kind: str) -> None:
    """The newest action stands last; free places hold no action."""
    env = ImpairedObservation(CountingEnv(8, actions=kind), "constant:3")
    env.reset(seed=0)
    env.action_space.seed(3)
    empty = {k: v for k, v in env.reset(seed=0)[0].items() if k.startswith("actions")}
    done: list[Any] = []
    for _ in range(7):
        action = env.action_space.sample()
        done.append(action)
        shown = env.step(action)[0]
        assert shown in env.observation_space
        rows = {k: v for k, v in shown.items() if k.startswith("actions")}
        for name, row in rows.items():
            part = name.partition("/")[2]
            flat = [np.ravel(a[part] if isinstance(a, dict) else a[int(part)] if part else a) for a in done[-3:]]
            row = row.reshape(3, -1)
            assert np.array_equal(row[3 - len(flat) :], np.array(flat))
            free = empty[name].reshape(3, -1)[: 3 - len(flat)]
            assert np.array_equal(row[: 3 - len(flat)], free)
            if not isinstance(env.observation_space[name], spaces.Box):  # "no action" is not an action
                assert not any((np.array(a) == none).any() for a in flat for none in free)


def test_an_unknown_space_is_refused() -> None:
    env = CountingEnv()
    env.observation_space = spaces.Sequence(spaces.Discrete(2))
    with pytest.raises(TypeError, match="Sequence"):
        ImpairedObservation(env, "none")
    env = CountingEnv()
    env.action_space = spaces.Text(3)
    with pytest.raises(TypeError, match="queue=0"):
        ImpairedObservation(env, "constant:2")
    assert "actions" not in ImpairedObservation(env, "constant:2", queue=0).observation_space.spaces


@pytest.mark.parametrize("channel", ["constant:2", "geometric:0.5", "loss:0.4", "constant:1+bursty:0.3,0.4"])
def test_check_env_finds_nothing_new(channel: str) -> None:
    """Only that the environment is wrapped, which is so."""
    env = ImpairedObservation(gym.make("FrozenLake-v1", disable_env_checker=True), channel, queue=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*different from the unwrapped version.*")
        check_env(env, skip_render_check=True)
        check_env(AugmentedObservation(env), skip_render_check=True)


# -- late actions, out of order, queues, clocks -----------------------------------------------------------------------


def test_late_actions_act_late() -> None:
    inner = CountingEnv(6)
    env = ImpairedObservation(inner, "constant:1", actuation=2, pending=[2, 1], clock=True)
    shown, _ = env.reset(seed=0)
    assert (shown["age"], shown["time"]) == (2, 2)
    assert shown["actions"].tolist() == [3, 2, 1]  # no action, then those under way
    for a in (0, 1, 2, 0, 0):
        shown = env.step(a)[0]
    assert inner.acted == [2, 1, 0, 1, 2]
    assert (told(shown), shown["age"].item(), shown["time"].item()) == (4, 3, 7)
    assert shown["actions"].tolist() == [2, 0, 0]  # those that act at steps 4, 5 and 6
    info = env.step(0)[4]
    assert info["hindsight"]["actions"] == [2, 1, 0, 1, 2, 0]


@pytest.mark.parametrize("kind", ACTIONS)
def test_late_actions_of_every_kind(kind: str) -> None:
    env = ImpairedObservation(CountingEnv(6, actions=kind), "none", actuation=2)
    assert all(action in env.action_space for action in env.pending)
    assert all(step[0] in env.observation_space for step in run(env))


def test_observations_may_overtake_each_other() -> None:
    """Each has a delay of its own; only a newer one than the newest is shown; all are delivered."""
    env = ImpairedObservation(CountingEnv(400), ol.EmpiricalDelay({0: 0.3, 2: 0.3, 5: 0.4}), in_order=False)
    steps = run(env)
    when = np.array(steps[-1][4]["hindsight"]["arrivals"])
    late = when - np.arange(401)
    assert stats.chisquare(np.bincount(late)[[0, 2, 5]], 401 * np.array([0.3, 0.3, 0.4])).pvalue > 1e-4
    assert (np.diff(when) < 0).any(), "some overtook"
    overtaken = several = 0
    newest = -1
    for now, (shown, *_, info) in enumerate(steps[:-1]):
        arrived = [i for i, _ in info["arrivals"]]
        assert arrived == np.flatnonzero(when == now).tolist()
        assert shown["fresh"] == (max(arrived, default=-1) > newest)
        overtaken += sum(i < newest for i in arrived)
        several += len(arrived) > 1
        newest = max([newest, *arrived])
        assert told(shown) == (None if newest < 0 else newest)
        assert shown["age"] == (now - newest if newest >= 0 else now)
    assert overtaken > 10
    assert several > 10
    assert env.queue == 5


def test_the_queue_is_as_long_as_ages_that_occur() -> None:
    def places(channel: Any, length: int | None = 30, **how: Any) -> int:
        env: Any = CountingEnv(30) if length is None else TimeLimit(CountingEnv(30), length)
        return ImpairedObservation(env, channel, **how).queue

    assert places("none") == 0
    assert places("constant:4") == places("constant:4", None) == 4
    assert places("constant:4", actuation=3) == 7
    assert places("bernoulli:0.5,3") == places("bernoulli:0.5,3", None) == 3
    assert places("delays:1=0.5,6=0.5", None) == 6
    assert places("seen:0") == 30
    assert places("loss:0.1") == places("loss:0.1", None) == 2  # 0.1^3 = 0.001
    assert places("constant:4+loss:0.2", 1000) == places("constant:4+loss:0.2", None) == 8  # 0.2^5 < 0.001 < 0.2^4
    assert places("geometric:0.5+cap:5", None) == 5
    assert places("geometric:0.5", 1000) == places("geometric:0.5", 1000, actuation=3) == 64
    assert places("loss:0.1", None, queue=7) == 7
    env = ImpairedObservation(CountingEnv(30), "constant:9", queue=2)
    shown = run(env, action=1)[-1][0]
    assert (shown["age"].item(), shown["actions"].tolist()) == (9, [1, 1])


def test_long_episodes_of_images_need_not_be_kept() -> None:
    for in_order in (True, False):
        how: dict[str, Any] = {"in_order": in_order}
        kept = run(ImpairedObservation(CountingEnv(60, "image"), "delays:1=0.5,4=0.5", **how), 3)
        env = ImpairedObservation(CountingEnv(60, "image"), "delays:1=0.5,4=0.5", hindsight=False, **how)
        most = 0
        shown, info = env.reset(seed=3)
        for other, _, _, _, more in kept[1:]:
            shown, *_, info = env.step(env.action_space.sample() * 0)
            most = max(most, waiting(env))
            for name in ("observation", "age", "fresh", "seen"):
                assert np.array_equal(shown[name], other[name])
            assert [i for i, _ in info["arrivals"]] == [i for i, _ in more["arrivals"]]
        assert "hindsight" not in info
        assert most <= 7


def test_a_wrapped_environment_round_trips_through_its_spec() -> None:
    env: Any = gym.make("CartPole-v1")
    env = ImpairedObservation(
        env, ol.Lossy(ol.ConstantDelay(2), rate=0.2), rewards="delayed", actuation=1, pending=[np.int64(1)], queue=4
    )
    env = AugmentedObservation(env, keys=["observation", "actions"])
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert json.loads(again.spec.to_json()) == json.loads(env.spec.to_json())  # type: ignore[union-attr]
    assert_same([s[:4] for s in run(env, 2)], [s[:4] for s in run(again, 2)])


def test_refusals() -> None:
    by_state = ol.StochasticDelay(np.full((4, 2, 2), 0.5))
    with pytest.raises(ValueError, match="needs an environment with Discrete observations and actions"):
        ImpairedObservation(gym.make("CartPole-v1"), by_state)
    per_step = ol.StochasticDelay(np.full((7, 1, 1, 2), 0.5))
    with pytest.raises(ValueError, match="limit on its steps"):
        ImpairedObservation(CountingEnv(7), per_step)
    with pytest.raises(ValueError, match="steps do not fit"):
        ImpairedObservation(TimeLimit(CountingEnv(7), 8), per_step)
    assert len(run(ImpairedObservation(TimeLimit(CountingEnv(7), 7), per_step))) == 8
    with pytest.raises(ValueError, match="longer than the 7 steps"):
        run(ImpairedObservation(CountingEnv(9), per_step, horizon=7))
    with pytest.raises(ValueError, match="rates"):
        ImpairedObservation(TimeLimit(CountingEnv(7), 7), ol.Loss(seen=[0.5] * 6))
    with pytest.raises(ValueError, match="did you mean geometric"):
        ImpairedObservation(CountingEnv(), "geometrc:0.3")
    with pytest.raises(ValueError, match="'immediate', 'delayed'"):
        ImpairedObservation(CountingEnv(), "none", rewards="now")
    with pytest.raises(ValueError, match="one per step of actuation"):
        ImpairedObservation(CountingEnv(), "none", actuation=2, pending=[1])
    with pytest.raises(ValueError, match=r"pending\[0\] is 9"):
        ImpairedObservation(CountingEnv(), "none", actuation=1, pending=[9])
    with pytest.raises(TypeError, match="wraps one environment"):
        ImpairedObservation(gym.make_vec("CartPole-v1", num_envs=2), "none")  # type: ignore[arg-type]
    env = ImpairedObservation(CountingEnv(2), "none")
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)
    run(env)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)


@pytest.mark.parametrize("actuation", [0, 2])
def test_a_refused_action_leaves_no_trace(actuation: int) -> None:
    env, calm = (ImpairedObservation(gym.make("CartPole-v1"), "constant:2", actuation=actuation) for _ in range(2))
    for one in (env, calm):
        one.reset(seed=0)
        one.step(0)
    for wrong in (7, -1, 0.5, None, [1]):
        with pytest.raises(ValueError, match=r"action is .*, expected one in Discrete\(2\)"):
            env.step(wrong)
    for a in (1, np.int64(0), np.array(1)):
        shown, other = env.step(a)[0], calm.step(a)[0]
        assert shown in env.observation_space
        assert_same(shown, other)


@pytest.mark.parametrize("kind", ACTIONS)
def test_an_action_is_known_by_its_space(kind: str) -> None:
    """What the space samples is taken, as lists and in other number types too; what it does not hold is refused."""
    env = ImpairedObservation(CountingEnv(60, actions=kind), "constant:1")
    env.reset(seed=0)
    env.action_space.seed(1)
    inner = env.env.acted  # type: ignore[attr-defined]
    for n in range(5):
        action = env.action_space.sample()
        env.step(action)
        if isinstance(env.action_space, spaces.Box):
            env.step(action.astype(np.float64))
            env.step(action.tolist())
        done = len(inner)
        wrong = [None, "left", {}, (), np.full(7, 9.0), [[1], [1, 2]]]
        if isinstance(env.action_space, spaces.Box):
            wrong += [action + 100, action * np.nan]
        for x in wrong:
            with pytest.raises(ValueError, match=r"action(\[.+\])? is"):
                env.step(x)
        assert len(inner) == done > n


def test_the_environments_own_info_is_not_delayed() -> None:
    steps = run(ImpairedObservation(CountingEnv(8), "constant:3"))
    assert [info["step"] for *_, info in steps] == list(range(9))
    assert told(steps[5][0]) == 2


def test_an_error_of_the_environment_leaves_no_action_behind() -> None:
    class Fails(CountingEnv):
        def step(self, action: Any) -> Any:
            if action == 2 and self.i == 1:
                raise RuntimeError("not now")
            return super().step(action)

    env = ImpairedObservation(Fails(6), "constant:2")
    env.reset(seed=0)
    env.step(0)
    with pytest.raises(RuntimeError, match="not now"):
        env.step(2)
    assert env.step(1)[0]["actions"].tolist() == [0, 1]


@pytest.mark.parametrize("clock", [False, True])
def test_no_step_goes_beyond_the_horizon(clock: bool) -> None:
    env = ImpairedObservation(CountingEnv(9), "loss:1", horizon=3, clock=clock)
    shown, _ = env.reset(seed=0)
    for _ in range(3):
        shown = env.step(0)[0]
        assert shown in env.observation_space
    with pytest.raises(ValueError, match=r"longer than the 3 steps of its horizon; .*TimeLimit\(env, 3\)"):
        env.step(0)
    assert len(run(ImpairedObservation(CountingEnv(9), "none", horizon=9, clock=clock))) == 10


def test_the_longest_episode() -> None:
    inner = TabularEnv(ol.instances.sensing_chain(0.8, horizon=5))
    for env, steps in [
        (CountingEnv(7), None),
        (gym.make("CartPole-v1"), 500),
        (gym.make("CartPole-v1").unwrapped, None),  # without the limit that its spec names
        (TimeLimit(TimeLimit(CountingEnv(9), 4), 8), 4),
        (inner, 5),
        (TimeLimit(inner, 8), 5),
        (FixedLength(TimeLimit(inner, 8), 12), 12),
        (TimeLimit(FixedLength(inner, 12), 8), 8),
    ]:
        wrapped = ImpairedObservation(env, "none", clock=True)
        assert wrapped.horizon == steps
        if steps is not None and steps < 20:
            assert all(shown in wrapped.observation_space for shown, *_ in run(wrapped, action=0))
