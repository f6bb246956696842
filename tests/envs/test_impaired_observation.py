"""`ImpairedObservation` and `AugmentedObservation` on environments of every kind: the bugs that others had, by name; timing;
and the link's delays and losses against their laws."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import DelayObservation, TimeLimit
from scipy import stats

import oldlight as ol
from conftest import arrays, random_mdp
from oldlight.envs import AugmentedObservation, AugmentedVectorObservation, FixedLength, ImpairedObservation, TabularEnv
from oracle import arrival_law, random_law, return_law
from played import chi_square

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


# -- bugs that others had ---------------------------------------------------------------------------------------------


def test_bug_zeros_for_nothing_yet() -> None:
    """Gymnasium's DelayObservation shows state 0 before anything has arrived. Here no observation that was made can look like it."""
    lake = gym.make("FrozenLake-v1")
    assert DelayObservation(lake, 2).reset(seed=0)[0] == 0  # the bug
    nothing = ImpairedObservation(lake, "constant:2").reset(seed=0)[0]
    assert nothing["observation"] == 16
    assert nothing["seen"] == 0
    for kind in SPACES:
        if kind == "Discrete from 5":
            continue
        steps = run(ImpairedObservation(CountingEnv(8, kind), "constant:2"))
        names = [k for k in steps[0][0] if k.startswith("observation")]
        for shown, *_ in steps[2:]:
            assert any(not np.array_equal(shown[k], steps[0][0][k]) for k in [*names, "seen"])
            if not isinstance(SPACES[kind], spaces.Box | spaces.Dict):
                assert any(not np.array_equal(shown[k], steps[0][0][k]) for k in names)


def test_bug_the_last_observations_are_never_delivered() -> None:
    for channel in ("constant:3", "geometric:0.3", "constant:2+loss:0.4", "loss:0.5"):
        env = ImpairedObservation(CountingEnv(8), channel)
        for seed in range(5):
            steps = run(env, seed)
            arrived = [arrival for *_, info in steps for arrival in info["arrivals"]]
            assert sorted(i for i, _ in arrived) == list(range(9)), "each step exactly once"
            assert all(value is None or value == i for i, value in arrived)
            revealed = steps[-1][4]["hindsight"]
            when = revealed["arrivals"]
            assert [o for o in revealed["observations"] if o is not None] == [i for i in range(9) if when[i] >= 0]
            assert revealed["rewards"] == [2.0**i for i in range(8)]
            assert len(revealed["actions"]) == 8
            for now, (*_, info) in enumerate(steps[:-1]):
                assert "hindsight" not in info
                for i, value in info["arrivals"]:
                    assert when[i] == (-1 if value is None else now)


def test_bug_buffers_survive_the_reset() -> None:
    env = ImpairedObservation(CountingEnv(50, "Box"), "geometric:0.4", rewards="delayed", actuation=1)
    first = run_some(env, 7)
    for played in (1, 3, 20):
        env.reset(seed=9)
        for _ in range(played):
            env.step(2)
        assert_same(run_some(env, 7), first)


def run_some(env: Any, seed: int) -> list[Any]:
    shown, info = env.reset(seed=seed)
    return [(shown, info), *(env.step(k % 3) for k in range(12))]


def assert_same(one: Any, other: Any) -> None:
    from gymnasium.utils.env_checker import data_equivalence

    assert data_equivalence(one, other, exact=True)


@pytest.mark.parametrize("end", ["terminated", "truncated"])
@pytest.mark.parametrize("channel", ["constant:3", "geometric:0.3", "loss:0.6", "constant:2+loss:0.4", "constant:99"])
def test_bug_reward_lost_at_the_end(channel: str, end: str) -> None:
    """Travelling rewards: each binary digit is one step's reward, so the sum shows whether each was paid exactly once."""
    for seed in range(6):
        steps = run(ImpairedObservation(CountingEnv(12, end=end), channel, rewards="delayed"), seed)
        assert sum(step[1] for step in steps[1:]) == 2.0**12 - 1
        # and none before its observation: the reward of step i − 1 comes with observation i
        paid = np.cumsum([step[1] for step in steps[1:-1]])
        for (shown, *_), total in zip(steps[1:-1], paid, strict=True):
            newest = told(shown)
            assert total == 2.0 ** (newest or 0) - 1


def test_bug_the_seed_is_ignored() -> None:
    env = ImpairedObservation(CountingEnv(60), "geometric:0.5+loss:0.3")

    def when(seed: int | None) -> list[int]:
        arrivals: list[int] = run(env, seed)[-1][4]["hindsight"]["arrivals"]
        return arrivals

    assert when(1) == when(1)
    assert when(1) != when(2)
    when(1)
    after = [when(None), when(None)]
    when(1)
    assert after == [when(None), when(None)]
    assert after[0] != after[1], "without a seed the luck goes on"
    fresh = [
        run(ImpairedObservation(CountingEnv(60), "geometric:0.5"), None)[-1][4]["hindsight"]["arrivals"]
        for _ in range(2)
    ]
    assert fresh[0] != fresh[1]


@pytest.mark.parametrize("channel", ["constant:3", "geometric:0.5", "bursty:0.3,0.3", "heavy:1.2+loss:0.5"])
@pytest.mark.parametrize("name", ["CartPole-v1", "FrozenLake-v1", "Pendulum-v1", "MountainCar-v0"])
def test_bug_the_wrapper_changes_the_trajectory(name: str, channel: str) -> None:
    bare, wrapped = gym.make(name), ImpairedObservation(gym.make(name), channel)
    for seed in (3, None, 4):  # None: both go on from where their generators are
        observations = [bare.reset(seed=seed)[0]]
        wrapped.reset(seed=seed)
        bare.action_space.seed(1)
        rewards, over, info = [], False, {}
        while not over:
            action = bare.action_space.sample()
            observation, reward, *ends, _ = bare.step(action)
            _, same_reward, *same_ends, info = wrapped.step(action)
            assert ends == same_ends
            observations.append(observation)
            rewards.append((reward, same_reward))
            over = any(ends)
        assert all(one == other for one, other in rewards)
        for truth, seen in zip(observations, info["hindsight"]["observations"], strict=True):
            assert seen is None or np.array_equal(truth, seen)
        assert bare.unwrapped.np_random.bit_generator.state == wrapped.unwrapped.np_random.bit_generator.state


@pytest.mark.parametrize("kind", ["Box", "image", "MultiDiscrete", "Dict"])
def test_bug_arrays_are_shared_with_the_caller(kind: str) -> None:
    """Neither can a caller change what is shown later, nor does what was shown change by itself."""
    env = ImpairedObservation(CountingEnv(9, kind, "Box"), "constant:2", actuation=1)

    def play(meddle: bool) -> list[Any]:
        out = []
        shown, info = env.reset(seed=0)
        for k in range(9):
            out.append([_frozen(shown), _frozen(info["arrivals"])])
            if meddle:
                _scribble(shown)
                _scribble(info)
            action = np.full(2, k / 9, dtype=np.float32)
            shown, _, _, _, info = env.step(action)
            if meddle:
                _scribble(action)
        out.append([_frozen(shown), _frozen(info["hindsight"])])
        return out

    assert play(False) == play(True)


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _frozen(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_frozen(v) for v in value]
    return np.asarray(value).tolist() if value is not None else None


def _scribble(value: Any) -> None:
    if isinstance(value, dict):
        for inner in value.values():
            _scribble(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            _scribble(inner)
    elif isinstance(value, np.ndarray):
        value[...] = 77


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
            most = max(most, len(env._sent))
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


# -- delays and losses against their laws -----------------------------------------------------------------------------

STEPS = 4000


def interarrivals(channel: Any, seed: int, steps: int = STEPS) -> tuple[int, Any]:
    """d_0 and Δ_0, Δ_1, ... of one long episode of an environment without any limit."""
    env = ImpairedObservation(CountingEnv(steps), channel, queue=0)
    when = np.array(run(env, seed)[-1][4]["hindsight"]["arrivals"])
    delays = when - np.arange(steps + 1)
    return int(delays[0]), np.diff(delays)


@pytest.mark.parametrize(
    "channel",
    [
        ol.GeometricDelay(0.3),
        ol.HeavyTailedDelay(0.8),
        ol.HeavyTailedDelay(2.0, 3.0),
        ol.EmpiricalDelay(interarrival={0: 0.6, 1: 0.3, 90: 0.1}),
        ol.StochasticDelay([0.5, 0.0, 0.25, 0.25]),
    ],
    ids=repr,
)
def test_interarrival_times_follow_the_law_without_a_horizon(channel: Any) -> None:
    """χ² against a law written out far beyond what the wrapper begins with; heavy tails included."""
    law = channel.law(5000, 1, 1).interarrival[0, 0, 0]
    _, found = interarrivals(channel, 1)
    assert found.min() >= 0
    seen = Counter(np.minimum(found, len(law) - 1).tolist())
    assert chi_square(seen, {k: float(p) for k, p in enumerate(law) if p > 0}) > 1e-4
    assert abs(np.corrcoef(np.minimum(found[:-1], 3), np.minimum(found[1:], 3))[0, 1]) < 4 / np.sqrt(STEPS)


def test_a_heavy_tail_is_not_cut_off() -> None:
    """P(Δ ≥ k) = (1 + k)^−0.8 well beyond the 64 steps that a law is first written out for (exact binomial tests)."""
    _, found = interarrivals(ol.HeavyTailedDelay(0.8), 5)
    for k in (64, 65, 128, 500, 2000):
        assert stats.binomtest(int((found >= k).sum()), STEPS, (1 + k) ** -0.8).pvalue > 1e-4
    assert found.max() > 2000


@pytest.mark.parametrize("first", [None, "same", [0.2, 0.3, 0.5]], ids=str)
def test_the_first_delay_follows_its_law(first: Any) -> None:
    env = ImpairedObservation(CountingEnv(1), ol.GeometricDelay(0.4, first=first), queue=0)
    law = {None: [1.0], "same": None}.get(first, first) if not isinstance(first, list) else first
    pmf = 0.4 * 0.6 ** np.arange(60) if law is None else np.array(law)
    found = Counter(run(env, seed)[-1][4]["hindsight"]["arrivals"][0] for seed in range(1500))
    assert chi_square(found, {k: float(p) for k, p in enumerate(pmf) if p > 0}) > 1e-4


def test_bernoulli_delays_stop_growing() -> None:
    env = ImpairedObservation(CountingEnv(200), ol.BernoulliDelay(0.3, steps=100))
    grown = []
    for seed in range(60):
        delays = np.array(run(env, seed, action=0)[-1][4]["hindsight"]["arrivals"]) - np.arange(201)
        assert delays[0] == 0
        assert set(np.diff(delays[:101])) <= {0, 1}
        assert (np.diff(delays[100:]) == 0).all()
        grown.append(int(delays[-1]))
    assert stats.binomtest(sum(grown), 6000, 0.7).pvalue > 1e-4


def test_a_cap_holds_for_ever() -> None:
    d0, found = interarrivals(ol.HeavyTailedDelay(0.8).capped(100), 2)
    delays = d0 + np.cumsum(found)
    assert delays.max() == 100
    assert (delays[-100:] == 100).all()
    assert interarrivals(ol.ConstantDelay(200), 0, 300)[0] == 200


def lost(channel: Any, seed: int, steps: int = STEPS) -> Any:
    env = ImpairedObservation(CountingEnv(steps), channel, queue=0)
    return np.array(run(env, seed)[-1][4]["hindsight"]["arrivals"]) == -1


def test_losses_follow_their_rate_one_by_one() -> None:
    for channel in (ol.Loss(rate=0.3), ol.Lossy(ol.ConstantDelay(2), rate=0.3)):
        gone = lost(channel, 3)
        assert stats.binomtest(int(gone.sum()), len(gone), 0.3).pvalue > 1e-4
        assert abs(np.corrcoef(gone[:-1], gone[1:])[0, 1]) < 4 / np.sqrt(STEPS)
    rates = np.linspace(0, 1, 20)
    env = ImpairedObservation(TimeLimit(CountingEnv(99), 20), ol.Loss(seen=rates))
    share = np.mean([np.array(run(env, s)[-1][4]["hindsight"]["arrivals"][:20]) >= 0 for s in range(400)], axis=0)
    assert np.abs(share - rates).max() < 4.5 * 0.5 / np.sqrt(400)
    assert share[0] == 0
    assert share[-1] == 1


def test_bursts_follow_the_link() -> None:
    """A link that loses all or nothing: the losses are the two-state chain itself, from its stationary law on."""
    gone = lost(ol.BurstyLoss(0.1, 0.4), 4)
    before, after = gone[:-1], gone[1:]
    assert stats.binomtest(int((~before & after).sum()), int((~before).sum()), 0.1).pvalue > 1e-4
    assert stats.binomtest(int((before & ~after).sum()), int(before.sum()), 0.4).pvalue > 1e-4
    first = sum(int(lost(ol.BurstyLoss(0.1, 0.4), s, 1)[0]) for s in range(1000))
    assert stats.binomtest(first, 1000, 0.2).pvalue > 1e-4
    half = lost(ol.BurstyLoss(0.2, 0.3, seen_good=0.9, seen_bad=0.25), 6)
    assert (
        stats.binomtest(int(half.sum()), len(half), 0.6 * 0.1 + 0.4 * 0.75).pvalue > 1e-6
    )  # correlated: a wider bound


def test_a_loss_is_known_when_the_observation_would_have_arrived() -> None:
    steps = run(ImpairedObservation(CountingEnv(40), "constant:3+loss:0.5"))
    when = steps[-1][4]["hindsight"]["arrivals"]
    for now, (*_, info) in enumerate(steps[:-1]):
        expected = [(now - 3, None if when[now - 3] == -1 else now - 3)] if now >= 3 else []
        assert info["arrivals"] == expected


# -- the same thing as the compiled simulator -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["state and action", "geometric", "loss", "late and lossy", "late actions"])
def test_agrees_with_the_compiled_simulator_and_the_exact_law(kind: str) -> None:
    """`oldlight/Tabular-v0` inside the wrapper, `simulate`, and the exact law: arrivals and returns under the same policy."""
    rng = np.random.default_rng([3, len(kind)])
    mdp = random_mdp(rng, 2, 2, 4)
    law: dict[str, Any] = {}
    how: dict[str, Any] = {}
    if kind == "state and action":
        law["first"], law["inter"] = random_law(rng, 4, 2, 2, 3, kind="state_action")
        channel: Any = ol.StochasticDelay(law["inter"], first=law["first"])
    elif kind == "geometric":
        pmf = np.append(0.6 * 0.4 ** np.arange(4), 0.4**4)
        law = {"first": pmf, "inter": np.broadcast_to(pmf, (4, 2, 2, 5))}
        channel = ol.GeometricDelay(0.6, first="same")
    elif kind == "loss":
        law["seen"] = rng.random(4)
        channel = ol.Loss(seen=law["seen"])
    elif kind == "late and lossy":
        law = {"first": [0.5, 0.5], "seen": np.full(4, 0.4)}
        channel = ol.Lossy(ol.EmpiricalDelay([0, 1]), seen=0.4)
    else:
        law = {"first": [0, 1], "actuation": 1, "initial_actions": (1,)}
        channel, how = ol.ConstantDelay(1), {"actuation": 1, "pending": [1]}
    ahead = how.get("actuation", 0)
    problem = ol.ImpairedMDP(mdp, channel, **how)
    env = ImpairedObservation(gym.make("oldlight/Tabular-v0", mdp=mdp, disable_env_checker=True), channel, **how)
    n, luck = 2500, np.random.default_rng(1)
    patterns, returns = [], np.zeros(n)
    for e in range(n):
        env.reset(seed=0 if e == 0 else None)
        over, info = False, {}
        while not over:
            _, reward, over, _, info = env.step(int(luck.integers(2)))
            returns[e] += reward
        patterns.append(tuple(min(t, 4) for t in info["hindsight"]["arrivals"][:4]))

    def half(_: Any) -> Any:
        return [0.5, 0.5]

    played = ol.simulate(problem, ol.FunctionPolicy(half, 2), 20_000, seed=1, record=True)
    assert played.arrivals is not None
    theirs = Counter(tuple(int(min(t - ahead, 4)) if t >= 0 else -1 for t in row) for row in played.arrivals)
    P, R, rho = arrays(mdp)
    exact = {tuple(int(x) for x in key): p for key, p in arrival_law(P, rho, half, **law).items()}
    assert chi_square(Counter(patterns), exact) > 1e-4
    both = sorted(set(patterns) | set(theirs))
    table = np.array([[Counter(patterns)[key] for key in both], [theirs[key] for key in both]])
    table = table[:, table.sum(axis=0) >= 20]
    assert stats.chi2_contingency(table).pvalue > 1e-4
    exact_returns = return_law(P, R, rho, half, **law)
    near = np.array(sorted(exact_returns))
    index = np.abs(returns[:, None] - near).argmin(axis=1)
    assert np.abs(returns - near[index]).max() < 1e-8
    assert chi_square({near[i]: c for i, c in Counter(index.tolist()).items()}, exact_returns) > 1e-4
    assert stats.ks_2samp(returns, played.returns).pvalue > 1e-4


CAPPED = ol.StochasticDelay([0, 1]).capped(2)  # delays 0, 1, 2, 2, ...


@pytest.mark.parametrize("channel", ["constant:2", "none", "seen:0", CAPPED], ids=str)
def test_the_wrapper_and_the_native_environment_show_the_same_dict(channel: Any) -> None:
    """The same space; and with nothing random, the same episode."""
    mdp = ol.instances.sensing_chain(1.0, n_states=6, horizon=8, initial=np.eye(6)[0])
    how: dict[str, Any] = {"channel": channel, "actuation": 1, "pending": [1], "rewards": "delayed"}
    native = gym.make("oldlight/Tabular-v0", mdp=mdp, **how)
    wrapped = ImpairedObservation(gym.make("oldlight/Tabular-v0", mdp=mdp), clock=True, **how)
    assert native.observation_space == wrapped.observation_space
    for one, other in zip(run(native), run(wrapped), strict=True):
        assert_same({k: np.asarray(v) for k, v in one[0].items()}, {k: np.asarray(v) for k, v in other[0].items()})
        assert one[1:4] == other[1:4]


# -- inside vector environments ---------------------------------------------------------------------------------------


def wrapped_counter() -> Any:
    return ImpairedObservation(CountingEnv(4), "constant:2", rewards="delayed")


@pytest.mark.parametrize("make", [SyncVectorEnv, AsyncVectorEnv])
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_inside_vectors_each_episode_starts_clean(make: Any, mode: AutoresetMode) -> None:
    """Times 0..4 of two episodes in each autoreset mode: nothing of the first is left in the second, and no reward is lost."""
    envs = make([wrapped_counter] * 2, autoreset_mode=mode)
    seen, rewards, final = [], [], []
    shown, _ = envs.reset(seed=1)
    try:
        for _ in range(12):
            seen.append([None if s == 0 else int(o) for s, o in zip(shown["seen"], shown["observation"], strict=True)])
            shown, reward, over, _, info = envs.step(np.zeros(2, dtype=np.int64))
            rewards.append(reward.tolist())
            if over.any() and mode is AutoresetMode.SAME_STEP:
                final.append(int(info["final_obs"][0]["observation"]))
                assert info["final_info"]["hindsight"]["observations"][0] == [0, 1, 2, 3, 4]
            elif over.any():
                final.append(int(shown["observation"][0]))
                assert info["hindsight"]["observations"][0] == [0, 1, 2, 3, 4]
            if over.any() and mode is AutoresetMode.DISABLED:
                shown, _ = envs.reset(options={"reset_mask": over})
    finally:
        envs.close()
    assert set(final) == {2}
    once = [None, None, 0, 1] if mode is not AutoresetMode.NEXT_STEP else [None, None, 0, 1, 2]
    paid = [0.0, 0.0, 1.0, 14.0] if mode is not AutoresetMode.NEXT_STEP else [0.0, 0.0, 1.0, 14.0, 0.0]
    assert [row[0] for row in seen] == [row[1] for row in seen] == (once * 3)[:12]
    assert [row[0] for row in rewards] == [row[1] for row in rewards] == (paid * 3)[:12]


def test_a_partial_reset_leaves_the_other_environments_where_they_are() -> None:
    def made() -> Any:
        return SyncVectorEnv(
            [lambda: ImpairedObservation(CountingEnv(30), "geometric:0.5")] * 3, autoreset_mode=AutoresetMode.DISABLED
        )

    one, other = made(), made()
    one.reset(seed=5)
    other.reset(seed=5)
    for k in range(20):
        if k == 6:
            mask = np.array([False, True, False])
            shown, _ = other.reset(seed=[None, 77, None], options={"reset_mask": mask})
            assert shown["age"][1] == 0
        a, b = one.step(np.zeros(3, dtype=int))[0], other.step(np.zeros(3, dtype=int))[0]
        for name in a:
            assert np.array_equal(a[name][[0, 2]], b[name][[0, 2]])
    assert a["age"][1] != b["age"][1] or a["observation"][1] != b["observation"][1]


# -- one flat vector --------------------------------------------------------------------------------------------------


def test_the_flat_box_by_hand() -> None:
    inner = TimeLimit(CountingEnv(5), 4)
    inner.unwrapped.observation_space = spaces.Discrete(4)
    env = AugmentedObservation(ImpairedObservation(inner, "constant:1"))
    first, *_ = env.reset(seed=0)
    assert first.dtype == np.float32
    # entries by name: actions (0, 1, 2, none), age, fresh (no, yes), observation (0..3, nothing), seen (no, yes), waited
    assert first.tolist() == pytest.approx([0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 1, 0, 1])
    env.step(2)
    shown = env.step(1)[0]
    assert shown.tolist() == pytest.approx([0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0])
    assert shown in env.observation_space
    numbers = AugmentedObservation(ImpairedObservation(inner, "constant:1"), "multidiscrete")
    assert numbers.observation_space == spaces.MultiDiscrete([4, 5, 2, 5, 2, 6])
    assert numbers.reset(seed=0)[0].tolist() == [3, 0, 0, 4, 0, 1]
    numbers.step(2)
    assert numbers.step(1)[0].tolist() == [1, 1, 1, 1, 1, 0]


@pytest.mark.parametrize("kind", [k for k in SPACES if k != "Text"])
@pytest.mark.parametrize("actions", ACTIONS)
def test_the_flat_box_loses_nothing(kind: str, actions: str) -> None:
    """Different Dicts have different vectors, all in the space; a vector environment flattens the same way."""
    inner = ImpairedObservation(CountingEnv(7, kind, actions), "geometric:0.5", queue=3)
    env = AugmentedObservation(inner)
    raw, flat = run(inner, 1), run(env, 1)
    assert all(step[0] in env.observation_space for step in flat)
    for (one, *_), (vector, *_) in zip(raw, flat, strict=True):
        for (other, *_), (vector2, *_) in zip(raw, flat, strict=True):
            assert (_frozen(one) == _frozen(other)) == np.array_equal(vector, vector2)


def test_the_flat_vector_of_a_vector_environment() -> None:
    for mode in AutoresetMode:
        envs = gym.make_vec(
            "oldlight/SensingChain-v0", num_envs=3, horizon=4, channel="geometric:0.5", autoreset_mode=mode
        )
        single = AugmentedObservation(gym.make("oldlight/SensingChain-v0", horizon=4, channel="geometric:0.5"))
        flat = AugmentedVectorObservation(envs)
        assert flat.single_observation_space == single.observation_space
        shown, _ = flat.reset(seed=8)
        assert shown in flat.observation_space
        mine, _ = single.reset(seed=9)
        for k in range(4):
            assert np.array_equal(shown[1], mine)
            shown, *_, info = flat.step(np.full(3, k))
            mine = single.step(k)[0]
        assert np.array_equal(info["final_obs"][1] if mode is AutoresetMode.SAME_STEP else shown[1], mine)


def test_flat_refusals_and_choices() -> None:
    env = ImpairedObservation(gym.make("CartPole-v1"), "constant:2")
    assert AugmentedObservation(env, keys=["observation", "seen"]).observation_space.shape == (4 + 2,)
    with pytest.raises(ValueError, match="did you mean observation"):
        AugmentedObservation(env, keys=["observatoin"])
    with pytest.raises(ValueError, match="numbers, not choices"):
        AugmentedObservation(env, "multidiscrete")
    with pytest.raises(TypeError, match="ImpairedObservation"):
        AugmentedObservation(gym.make("CartPole-v1"))
    with pytest.raises(ValueError, match="no limit on its steps"):
        AugmentedObservation(ImpairedObservation(CountingEnv(), "constant:2"), "multidiscrete")
    with pytest.raises(ValueError, match="'box', 'multidiscrete'"):
        AugmentedObservation(env, "list")
    with pytest.raises(TypeError, match="AugmentedVectorObservation"):
        AugmentedObservation(gym.make_vec("CartPole-v1"))  # type: ignore[arg-type]
