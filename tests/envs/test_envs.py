"""The registered environments: registration, Gymnasium's own checks, specs, pictures, and the process behind them against
exact laws, exact plans and the package's own agents."""

from __future__ import annotations

import copy
import json
import pickle
import re
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env, data_equivalence
from scipy import stats

import oldlight as ol
from conftest import arrays, random_mdp
from oldlight.envs import (
    AugmentedObservation,
    FixedLength,
    ImpairedObservation,
    TabularEnv,
    information,
    learn_in,
    play,
)
from oracle import arrival_law, random_law, return_law
from played import chi_square

IDS = [f"oldlight/{name}-v0" for name in ("CenterChain", "SensingChain", "Dichotomy", "HardTree", "Tabular")]
LINKS: list[dict[str, Any]] = [
    {},
    {"channel": "constant:2"},
    {"channel": "geometric:0.6", "rewards": "delayed"},
    {"channel": "constant:1+loss:0.3"},
    {"channel": "bursty:0.2,0.5"},
    {"channel": "constant:2", "start": "warm"},
    {"channel": "constant:1", "actuation": 2, "pending": [1, 0]},
]


# -- documentation ----------------------------------------------------------------------------------------------------

HEADINGS = ["Description", "Action Space", "Observation Space", "Rewards", "Starting State", "Episode End", "Information",
            "Arguments", "Version History"]  # fmt: skip


def test_the_documentation_has_gymnasiums_headings_and_its_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[2] / "docs" / "envs.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", text, re.M) == HEADINGS
    assert all(f"`{name}`" in text for name in IDS)
    env = gym.make("oldlight/SensingChain-v0", channel="constant:2")
    assert all(f"| `{entry}` |" in text for entry in env.observation_space.spaces)  # type: ignore[attr-defined]
    code = re.findall(r"```python\n(.*?)```", text, re.S)
    assert len(code) == 1
    exec(compile(code[0], "docs/envs.md", "exec"), {})
    assert "agent sees    nothing yet" in capsys.readouterr().out


# -- registration and Gymnasium's checks ------------------------------------------------------------------------------


def fresh(code: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_made_by_name_without_importing_the_package() -> None:
    code = 'import gymnasium as gym; print(gym.make("oldlight:oldlight/SensingChain-v0").unwrapped.horizon)'
    assert fresh(code) == "10"


@pytest.mark.parametrize("order", ["oldlight, gymnasium", "gymnasium, oldlight"])
def test_the_order_of_imports_does_not_matter(order: str) -> None:
    code = f'import {order}; print(len([i for i in gymnasium.registry if i.startswith("oldlight/")]), '
    code += 'gymnasium.make_vec("oldlight:oldlight/Dichotomy-v0", num_envs=3).num_envs)'
    assert fresh(code) == "5 3"


def test_looking_for_gymnasium_is_not_importing_it() -> None:
    code = "import sys, importlib.util, oldlight; before = len(sys.meta_path); importlib.util.find_spec('gymnasium'); import gymnasium; "
    code += "print('oldlight/Tabular-v0' in gymnasium.registry, len(sys.meta_path) - before, type(gymnasium.__loader__).__name__)"
    assert fresh(code) == "True -1 SourceFileLoader"


def test_importing_the_package_does_not_import_gymnasium() -> None:
    assert (
        fresh("import sys, oldlight; print([m for m in ('gymnasium', 'matplotlib', 'numba') if m in sys.modules])")
        == "[]"
    )


@pytest.mark.parametrize("link", LINKS, ids=str)
@pytest.mark.parametrize("name", IDS)
def test_check_env_finds_nothing(name: str, link: dict[str, Any]) -> None:
    if "channel" in link and link != LINKS[1]:
        env = gym.make(name, **link)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_env(env.unwrapped, skip_render_check=True)
        return
    import matplotlib.figure  # noqa: F401  (an old release warns while it is imported)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(name, **link).unwrapped)


CHANNELS = [
    "constant:2",
    "geometric:0.5+cap:3+loss:0.1",
    {"kind": "bernoulli", "p_zero": 0.5, "steps": 2},
    ol.EmpiricalDelay({1: 0.5, 3: 0.5}),
    ol.Lossy(ol.HeavyTailedDelay(1.5), loss=ol.BurstyLoss(0.2, 0.4)),
]


@pytest.mark.parametrize("channel", CHANNELS, ids=str)
def test_specs_go_through_json(channel: Any) -> None:
    """A channel object or a process object becomes data in the spec; what comes back plays the same episode."""
    mdp = random_mdp(np.random.default_rng(1), 3, 2, 6)
    for env in (
        gym.make("oldlight/SensingChain-v0", p=0.7, horizon=6, channel=channel),
        gym.make("oldlight/Tabular-v0", mdp=mdp, channel=channel, rewards="delayed"),
    ):
        assert env.spec is not None
        text = env.spec.to_json()
        again, same = gym.make(EnvSpec.from_json(text)), gym.make(env.spec)
        assert json.loads(again.spec.to_json()) == json.loads(text)  # type: ignore[union-attr]
        assert again.unwrapped.problem.mdp == env.unwrapped.problem.mdp  # type: ignore[attr-defined]
        assert episode(env, 5) == episode(again, 5) == episode(same, 5)


def test_a_vector_spec_makes_the_same_vector() -> None:
    envs = gym.make_vec("oldlight/SensingChain-v0", num_envs=3, channel=ol.ConstantDelay(1), autoreset_mode="SameStep")
    assert envs.spec is not None
    again = gym.make_vec(EnvSpec.from_json(envs.spec.to_json()))
    assert (again.num_envs, again.metadata, again.unwrapped.problem.channel) == (  # type: ignore[attr-defined]
        3,
        envs.metadata,
        ol.ConstantDelay(1),
    )


def episode(env: Any, seed: int) -> list[Any]:
    """One episode under fixed actions, as plain numbers."""
    rng = np.random.default_rng(seed)
    shown, _ = env.reset(seed=seed)
    out = [_plain(shown)]
    over = False
    while not over:
        shown, reward, terminated, truncated, _ = env.step(int(rng.integers(env.action_space.n)))
        over = terminated or truncated
        out.append((_plain(shown), float(reward), over))
    return out


def _plain(shown: Any) -> Any:
    return {k: np.asarray(v).tolist() for k, v in shown.items()} if isinstance(shown, dict) else int(shown)


@pytest.mark.parametrize("name", IDS)
def test_the_seed_decides_everything(name: str) -> None:
    for link in ({}, {"channel": "geometric:0.5+loss:0.3"}):
        env = gym.make(name, **link)
        first = [episode(env, 3), [episode_without_seed(env) for _ in range(3)]]
        assert first == [episode(env, 3), [episode_without_seed(env) for _ in range(3)]]
        assert episode(env, 4) != first[0] or name == "oldlight/HardTree-v0"
        assert len({str(run) for run in first[1]}) > 1, "episodes without a seed must go on, not repeat"


def episode_without_seed(env: Any) -> list[Any]:
    env.reset()
    return [_plain(env.step(0)[0]) for _ in range(env.unwrapped.horizon)]


@pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copied", "pickled"]
)
def test_a_copy_goes_on_from_the_middle_of_an_episode(again: Any) -> None:
    for env in (
        gym.make("oldlight/SensingChain-v0", channel="geometric:0.5+loss:0.2").unwrapped,
        gym.make_vec("oldlight/SensingChain-v0", num_envs=2, channel="geometric:0.5"),
        ImpairedObservation(gym.make("CartPole-v1"), "geometric:0.5+loss:0.2", rewards="delayed"),
        AugmentedObservation(ImpairedObservation(gym.make("CartPole-v1"), "constant:2")),
    ):
        action: Any = np.zeros(2, dtype=int) if hasattr(env, "num_envs") else 0
        env.reset(seed=1)
        for _ in range(4):
            env.step(action)
        other = again(env)
        for _ in range(4):
            assert data_equivalence(env.step(action), other.step(action), exact=True)


def test_nothing_is_stepped_before_a_reset_or_after_the_end() -> None:
    env = gym.make("oldlight/Dichotomy-v0", d=1).unwrapped
    with pytest.raises(gym.error.ResetNeeded, match="reset"):
        env.step(0)
    env.reset()
    for _ in range(3):
        *_, terminated, truncated, _ = env.step(0)
    assert (terminated, truncated) == (True, False)
    with pytest.raises(gym.error.ResetNeeded, match="reset"):
        env.step(0)


def test_refusals() -> None:
    def make(**link: Any) -> Any:
        return TabularEnv(ol.instances.sensing_chain(), **link)

    with pytest.raises(ValueError, match="did you mean constant"):
        make(channel="constnat:2")
    with pytest.raises(ValueError, match="need one"):
        make(actuation=1)
    with pytest.raises(TypeError, match="no keyword 'chanel'; did you mean channel"):
        make(chanel="none")
    for make_it in (gym.make, gym.make_vec):
        with pytest.raises(TypeError, match="no keyword 'horizn'; did you mean horizon"):
            make_it("oldlight/SensingChain-v0", horizn=3)
        for mdp, kind, says in [
            (3, TypeError, r"a process is given by name \(.*sensing_chain.*; not 3"),
            ({"transitions": [[[1.0]]], "rewrds": [[0.0]]}, ValueError, "no option 'rewrds'; did you mean rewards"),
            ({"transitions": [[[1.0]]]}, ValueError, "missing a required argument: 'rewards'"),
        ]:
            with pytest.raises(kind, match=says):
                make_it("oldlight/Tabular-v0", mdp=mdp)
    with pytest.raises(ValueError, match="'cold', 'warm'"):
        make(channel="none", start="hot")
    with pytest.raises(ValueError, match="'immediate', 'delayed'"):
        make(channel="none", rewards="late")
    with pytest.raises(ValueError, match="render_mode"):
        make(render_mode="human")
    env = make(channel="none")
    env.reset()
    for wrong in (5, -1, 1.5, None):
        with pytest.raises(ValueError, match=r"action is .*expected a"):
            env.step(wrong)
    with pytest.raises(ValueError, match="no link"):
        play(make(), ol.FunctionPolicy(lambda info: 0, 5), 1, seed=0)
    with pytest.raises(TypeError, match="outermost"):
        play(gym.make("FrozenLake-v1"), ol.FunctionPolicy(lambda info: 0, 4), 1, seed=0)
    with pytest.raises(ValueError, match="no transition table"):
        play(ImpairedObservation(gym.make("CartPole-v1"), "none"), ol.FunctionPolicy(lambda info: 0, 2), 1, seed=0)
    with pytest.raises(ValueError, match="queue="):
        play(make(channel="constant:3", queue=2), ol.FunctionPolicy(lambda info: 0, 5), 1, seed=0)


# -- pictures ---------------------------------------------------------------------------------------------------------


def test_text_shows_truth_sight_traffic_and_queue() -> None:
    env = gym.make(
        "oldlight/SensingChain-v0", p=1.0, initial=np.eye(20)[4].tolist(), channel="constant:2", render_mode="ansi"
    )
    env.reset(seed=0)
    assert "agent sees    nothing yet" in str(env.render())
    for a in (0, 0, 1):
        env.step(a)
    assert str(env.render()).splitlines() == [
        "time 3 of 10   reward so far 0   ConstantDelay(d=2)",
        "[.....@...$$.........]   X true, o seen, @ both, $ reward",
        "true state    5",
        "agent sees    state 5, as it was 2 steps ago (step 1)",
        "under way     step 2 (arrives at 4), step 3 (arrives at 5)",
        "action queue  right, left",
    ]


@pytest.mark.parametrize("name", IDS)
def test_pictures_follow_the_process(name: str) -> None:
    """A picture of the right kind that changes when something changes, and does not when nothing does."""
    env = gym.make(name, channel="constant:1+loss:0.5", render_mode="rgb_array")
    env.reset(seed=0)
    before, same = np.asarray(env.render()), np.asarray(env.render())
    env.step(0)
    after = np.asarray(env.render())
    assert before.shape == (600, 960, 3)
    assert before.dtype == np.uint8
    assert np.array_equal(before, same)
    assert (before != after).any()
    assert len(np.unique(before[::7, ::7].reshape(-1, 3), axis=0)) > 5


# -- the process behind it, against exact laws ------------------------------------------------------------------------


def cases(kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A process with a link, and the same in the oracle's words."""
    rng = np.random.default_rng([7, len(kind)])
    mdp = random_mdp(rng, 2, 2, 4)
    if kind == "warm":
        return {"mdp": mdp, "channel": "constant:2", "start": "warm"}, {"warm_delay": 2}
    if kind == "by state and action":
        first, inter = random_law(rng, 4, 2, 2, 3, kind="state_action")
        return {"mdp": mdp, "channel": ol.StochasticDelay(inter, first=first)}, {"first": first, "inter": inter}
    if kind == "geometric":
        pmf = np.append(0.6 * 0.4 ** np.arange(4), 0.4**4)
        law = {"first": pmf, "inter": np.broadcast_to(pmf, (4, 2, 2, 5))}
        return {"mdp": mdp, "channel": ol.GeometricDelay(0.6, first="same")}, law
    if kind == "loss":
        seen = rng.random(4)
        return {"mdp": mdp, "channel": ol.Loss(seen=seen)}, {"seen": seen}
    assert kind == "late and lossy"
    return {"mdp": mdp, "channel": "constant:1+seen:0.4"}, {"first": [0, 1], "seen": np.full(4, 0.4)}


KINDS = ["warm", "by state and action", "geometric", "loss", "late and lossy"]


def uniform_episodes(link: dict[str, Any], n: int, seed: int) -> dict[str, Any]:
    """The hindsight of n episodes under uniform actions, and their returns."""
    envs = gym.make_vec("oldlight/Tabular-v0", num_envs=n, autoreset_mode="Disabled", **link)
    envs.reset(seed=seed)
    rng, returns = np.random.default_rng(seed), np.zeros(n)
    over = np.zeros(n, dtype=bool)
    while not over.any():
        _, rewards, over, _, infos = envs.step(rng.integers(2, size=n))
        returns += rewards
    assert over.all()
    return {**infos["hindsight"], "returns": returns}


@pytest.mark.parametrize("rewards", ["immediate", "delayed"])
@pytest.mark.parametrize("kind", KINDS)
def test_arrivals_and_returns_follow_their_exact_law(kind: str, rewards: str) -> None:
    link, law = cases(kind)
    found = uniform_episodes({**link, "rewards": rewards}, 20_000, seed=11)
    P, R, rho = arrays(link["mdp"])
    warmup = law.get("warm_delay", 0)

    def uniform(history: Any) -> Any:
        return [0.5, 0.5]

    seen = Counter(map(tuple, np.minimum(found["arrivals"][:, warmup:], 4).tolist()))
    exact = {tuple(int(x) for x in key): p for key, p in arrival_law(P, rho, uniform, **law).items()}
    assert chi_square(seen, exact) > 1e-4
    exact_returns = return_law(P, R, rho, uniform, **law)
    near = np.array(sorted(exact_returns))
    index = np.abs(found["returns"][:, None] - near).argmin(axis=1)
    assert np.abs(found["returns"] - near[index]).max() < 1e-8
    assert chi_square({near[i]: n for i, n in Counter(index.tolist()).items()}, exact_returns) > 1e-4


def test_bursts_follow_the_link() -> None:
    """A link that loses all or nothing: the losses are the two-state chain itself, from its stationary law on."""
    mdp = ol.instances.sensing_chain(0.8, n_states=4, n_actions=2, horizon=12)
    gone = uniform_episodes({"mdp": mdp, "channel": ol.BurstyLoss(0.1, 0.4)}, 3000, seed=2)["arrivals"] == -1
    before, after = gone[:, :-1], gone[:, 1:]
    assert stats.binomtest(int(gone[:, 0].sum()), 3000, 0.2).pvalue > 1e-4
    assert stats.binomtest(int((~before & after).sum()), int((~before).sum()), 0.1).pvalue > 1e-4
    assert stats.binomtest(int((before & ~after).sum()), int(before.sum()), 0.4).pvalue > 1e-4


class EverySecond(ol.model.channels.LossChannel):
    """A loss of one's own: draws a whole episode at once."""

    independent = False

    def arrival_probabilities(self, horizon: int) -> Any:
        return np.full(horizon, 0.5)

    def lost(self, rng: np.random.Generator, horizon: int, n: int) -> Any:
        return (np.arange(horizon)[:, None] + rng.integers(2, size=n)) % 2 == 0


def test_a_loss_of_ones_own_runs_in_the_wrapper() -> None:
    with pytest.raises(TypeError, match="EverySecond is not compiled here"):
        gym.make("oldlight/SensingChain-v0", channel=EverySecond())
    with pytest.raises(ValueError, match="horizon"):
        ImpairedObservation(gym.make("CartPole-v1", max_episode_steps=-1).unwrapped, EverySecond())
    env = ImpairedObservation(gym.make("oldlight/SensingChain-v0"), EverySecond())
    starts = set()
    for seed in range(8):
        env.reset(seed=seed)
        for _ in range(10):
            info = env.step(0)[4]
        gone = np.array(info["hindsight"]["arrivals"][:10]) == -1
        assert (gone[1:] != gone[:-1]).all()
        starts.add(bool(gone[0]))
    assert starts == {True, False}


def test_the_copies_of_a_vector_are_independent() -> None:
    """States of neighbouring copies at the same step: no correlation (4 standard errors), in the process and in the link."""
    link, _ = cases("geometric")
    found = uniform_episodes(link, 20_000, seed=3)
    for name in ("observations", "arrivals"):
        x = found[name][:, 2].astype(float)
        assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 4 / np.sqrt(len(x))


@pytest.mark.parametrize(
    "link",
    [
        {"channel": "constant:2", "start": "warm"},
        {"channel": "bernoulli:0.5"},
        {"channel": "constant:1+loss:0.3"},
        {"channel": "constant:1", "actuation": 2, "pending": [0, 1], "rewards": "delayed"},
    ],
    ids=str,
)
def test_the_best_policy_earns_its_exact_value(link: dict[str, Any]) -> None:
    """Within 4 standard errors; so observations, queue, wait and time in the Dict are those that the plan is about."""
    env = gym.make("oldlight/SensingChain-v0", n_states=6, n_actions=3, horizon=6, disable_env_checker=True, **link)
    best = ol.solve(env.unwrapped.problem)  # type: ignore[attr-defined]
    earned = play(env, best.policy, 1500, seed=2)
    assert abs(earned.mean() - best.value) < 4 * earned.std() / np.sqrt(len(earned))


def test_the_dichotomy_is_seen_in_time_or_not_at_all() -> None:
    for late, value in ((2, 1.0), (3, 0.5)):
        env = gym.make("oldlight/Dichotomy-v0", d=2, channel=ol.ConstantDelay(late))
        policy = ol.solve(env.unwrapped.problem).policy  # type: ignore[attr-defined]
        earned = play(env, policy, 300, seed=late)
        assert earned.mean() == 1.0 if value == 1.0 else abs(earned.mean() - 0.5) < 4 * 0.5 / np.sqrt(300)


# -- the package's own agents -----------------------------------------------------------------------------------------


class Witness:
    """A learner that acts at random and compares what it was told when it acted with what the episode says it knew."""

    def start(self, setting: Any, rng: np.random.Generator) -> None:
        self.setting, self.rng, self.told, self.episodes = setting, rng, {}, 0
        self.salt = 0

    def act(self, info: ol.Information) -> Any:
        self.told[info.h] = info
        return np.random.default_rng([self.salt, info.h]).dirichlet(np.ones(self.setting.n_actions))

    def see(self, episode: Any) -> None:
        for h, info in self.told.items():
            assert episode.information(h) == info
        assert sorted(self.told) == list(range(self.setting.actuation, self.setting.horizon))
        H, warmup = self.setting.horizon, self.setting.warmup
        assert len(episode.states) == H + warmup
        known = episode.states[warmup:] >= 0
        paid = self.setting.rewards[np.arange(H), episode.states[warmup:], episode.actions[warmup:]]
        if self.check_rewards:
            assert np.allclose(episode.rewards[warmup:][known], paid[known])
        assert np.isnan(episode.rewards[warmup:][~known]).all()
        assert ((episode.arrivals == -1) == (episode.states == -1)).all()
        assert tuple(episode.actions[: self.setting.actuation]) == self.setting.pending
        self.told, self.episodes, self.salt = {}, self.episodes + 1, self.salt + 1

    check_rewards = True


AGENT_LINKS = [
    *LINKS[1:],
    {"channel": "geometric:0.5"},
    {"channel": "heavy:0.7"},
    {"channel": "bernoulli:0.4+loss:0.5"},
]


@pytest.mark.parametrize("link", AGENT_LINKS, ids=str)
def test_what_a_learner_is_told_is_what_the_episode_says_it_knew(link: dict[str, Any]) -> None:
    witness = Witness()
    env = gym.make("oldlight/SensingChain-v0", n_states=4, n_actions=3, horizon=7, **link)
    learn_in(env, witness, 40, seed=1)
    assert witness.episodes == 40
    if link.get("start") != "warm":  # the wrapper starts cold
        witness = Witness()
        inner = gym.make("oldlight/SensingChain-v0", n_states=4, n_actions=3, horizon=7)
        learn_in(ImpairedObservation(inner, **link), witness, 40, seed=1)
        assert witness.episodes == 40


@pytest.mark.parametrize("link", [{"channel": "constant:2"}, {"channel": "loss:0.4", "queue": 12}], ids=str)
def test_a_learner_on_frozen_lake_behind_the_wrapper(link: dict[str, Any]) -> None:
    """The ends of the lake absorb; what a learner is told still agrees with the episode."""
    witness = Witness()
    witness.check_rewards = False  # the table holds mean rewards, the lake pays what happens
    env = ImpairedObservation(gym.make("FrozenLake-v1", max_episode_steps=12), **link)
    learn_in(env, witness, 60, seed=1)
    assert witness.episodes == 60


@pytest.mark.parametrize(
    "name",
    [
        "AugmentedQLearning",
        "AugmentedUCBVI",
        "DelayedUCBVI",
        "MemorylessQLearning",
        "MemorylessUCBVI",
        "PosteriorSampling",
    ],
)
def test_every_delay_learner_runs(name: str) -> None:
    small = gym.make("oldlight/SensingChain-v0", n_states=4, n_actions=2, horizon=5, channel="constant:1")
    lake = ImpairedObservation(gym.make("FrozenLake-v1", max_episode_steps=8), "constant:1")
    for env, most in ((small, 5.0), (lake, 1.0)):
        earned = learn_in(env, getattr(ol.learners, name)(), 30, seed=0)
        assert earned.shape == (30,)
        assert (earned >= 0).all()
        assert (earned <= most).all()


@pytest.mark.parametrize("name", ["LossUCBVI", "OptimisticPlanning"])
def test_every_loss_learner_runs(name: str) -> None:
    env = gym.make("oldlight/SensingChain-v0", n_states=4, n_actions=2, horizon=4, channel="loss:0.3")
    assert learn_in(env, getattr(ol.learners, name)(), 15, seed=0).shape == (15,)


def test_a_learner_learns() -> None:
    """On a small chain behind a delay of one, the last episodes of Algorithm 1 earn what the best policy earns, within 4 standard
    errors, and more than acting at random does."""
    env = gym.make(
        "oldlight/SensingChain-v0",
        p=1.0,
        n_states=4,
        n_actions=2,
        horizon=6,
        channel="constant:1",
        disable_env_checker=True,
    )
    best = ol.solve(env.unwrapped.problem).value  # type: ignore[attr-defined]
    earned = learn_in(env, ol.learners.PosteriorSampling(), 600, seed=3)
    last = earned[-300:]
    assert abs(last.mean() - best) < 4 * last.std() / np.sqrt(len(last))
    chance = play(env, ol.FunctionPolicy(lambda info: [0.5, 0.5], 2), 300, seed=4)
    assert last.mean() > chance.mean() + 4 * chance.std() / np.sqrt(300)


def test_the_best_policy_on_frozen_lake_earns_its_exact_value() -> None:
    """The lake's own table, planned exactly behind a delay of two, and played on the lake itself."""
    lake = gym.make("FrozenLake-v1", max_episode_steps=20, disable_env_checker=True)
    problem = ol.ImpairedMDP(ol.TabularMDP.from_gymnasium(lake, 20), ol.ConstantDelay(2))
    best = ol.solve(problem)
    earned = play(ImpairedObservation(lake, "constant:2"), best.policy, 800, seed=5)
    assert abs(earned.mean() - best.value) < 4 * earned.std() / np.sqrt(len(earned))


def test_fixed_length_stays_where_it_ended() -> None:
    env = FixedLength(gym.make("FrozenLake-v1", is_slippery=False), 9)
    env.reset(seed=0)
    ways = [env.step(a) for a in (2, 1, 0, 0, 0, 0, 0, 0, 0)]  # right, down: into the hole at 5
    assert [w[0] for w in ways] == [1, 5] + [5] * 7
    assert [w[2] for w in ways] == [False] * 8 + [True]
    assert not any(w[3] for w in ways)
    short = FixedLength(gym.make("CartPole-v1", max_episode_steps=3), 9)
    short.reset(seed=0)
    for _ in range(2):
        short.step(0)
    with pytest.raises(ValueError, match="cut off after 3"):
        short.step(0)


def test_information_from_the_dict() -> None:
    env = gym.make("oldlight/SensingChain-v0", p=1.0, initial=np.eye(20)[4].tolist(), channel="constant:2")
    shown, _ = env.reset(seed=0)
    assert information(shown, 0) == ol.Information.nothing_seen()
    shown = env.step(0)[0]
    assert information(shown, 1) == ol.Information.nothing_seen((0,))
    env.step(3)
    shown = env.step(1)[0]
    assert information(shown, 3) == ol.Information.seen(1, 5, (3, 1))
