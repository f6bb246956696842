"""The yardstick: forward models, recurrent and soft learners, plans on a grid, the log of the link. `make test-deep`; skipped without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import oldlight as ol

pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed: make test-deep")

from oldlight.deep import link_callback, plan_on_grid, train
from oldlight.deep.forward_model import CountModel, ForwardExam, NetworkModel, Recorder, predicted
from oldlight.envs import AugmentedObservation, ImpairedObservation, ImpairedParts, policy_of
from oldlight.studies import Environment, load_study

ROOT = Path(__file__).parents[2]
SHORT = {"steps": 300, "points": 1, "test_episodes": 2}


def recorded(env: Any, steps: int) -> Recorder:
    record = Recorder(env)
    record.action_space.seed(0)
    record.reset(seed=0)
    for _ in range(steps):
        _, _, over, cut, _ = record.step(record.action_space.sample())
        if over or cut:
            record.reset()
    return record


def test_a_network_predicts_the_real_present() -> None:
    """Behind a delay of 3: the predicted CartPole is nearer to the present than the newest one, by far."""
    model = NetworkModel(
        recorded(ImpairedObservation(gym.make("CartPole-v1"), "none"), 3000),
        gym.make("CartPole-v1").observation_space,
        spaces.Discrete(2),
        0,
    )  # type: ignore[arg-type]
    env = ImpairedObservation(gym.make("CartPole-v1"), "constant:3", reveal=True)
    env.action_space.seed(4)
    env.reset(seed=4)
    off, stale = [], []
    for _ in range(8):
        shown, *_, info = env.step(env.action_space.sample())
        off.append(np.abs(predicted(shown, model, env.action_space) - info["present"]).sum())
        stale.append(np.abs(shown["observation"] - info["present"]).sum())
    assert np.mean(off[3:]) < 0.3 * np.mean(stale[3:])


def test_a_count_model_of_a_certain_process_is_the_process() -> None:
    mdp = ol.instances.sensing_chain(1.0)
    env = ol.envs.TabularEnv(mdp, channel="none")
    model = CountModel(recorded(env, 4000), mdp.n_states, mdp.n_actions)
    likely = np.asarray(mdp.transitions)[0].argmax(axis=2)
    assert np.mean(model.successor == likely) > 0.98
    shown = {"observation": np.int64(3), "seen": 1, "age": np.array([2]), "actions": np.array([5, 0, 0])}
    assert predicted(shown, model, spaces.Discrete(5)) == likely[likely[3, 0], 0]


def test_a_forward_exam_asks_the_policy_for_the_prediction() -> None:
    """With a model that knows the certain chain, the undelayed optimum on predictions earns what is optimal behind the delay."""
    mdp = ol.instances.sensing_chain(1.0)
    model = CountModel(recorded(ol.envs.TabularEnv(mdp, channel="none"), 6000), mdp.n_states, mdp.n_actions)
    full = AugmentedObservation(ol.envs.TabularEnv(mdp, channel="none"), keys=["observation", "time"])
    best = ol.solve(ol.ImpairedMDP(mdp, "none")).policy

    class Optimal:
        def predict(self, row: Any, deterministic: bool = True) -> Any:
            state, time = int(row[: mdp.n_states + 1].argmax()), round(float(row[-1]) * mdp.horizon)
            return best.action(ol.Information.seen(time, state, (), 0)), None

    behind = ol.envs.TabularEnv(mdp, channel="constant:2")
    behind.reset(seed=1)
    earned = ForwardExam(behind, full._flattening, 400).mean_return(Optimal(), model)
    assert earned > 0.8 * ol.solve(behind.problem).value


@pytest.mark.parametrize(("env", "algorithm", "observation"), [("Pendulum-v1", "SAC", "augmented"), ("CartPole-v1", "RecurrentPPO", "newest"), ("oldlight/SensingChain-v0", "RecurrentPPO", "newest"), ("Pendulum-v1", "SAC", "forward")])  # fmt: skip
def test_a_short_training_of_the_others(env: str, algorithm: Any, observation: Any) -> None:
    if algorithm == "RecurrentPPO":
        pytest.importorskip("sb3_contrib")
    settings = {"n_steps": 128} if algorithm == "RecurrentPPO" else {"learning_starts": 100}
    found = train(
        Environment(env, ol.ConstantDelay(1)),
        1,
        algorithm=algorithm,
        observation=observation,
        settings=settings,
        **SHORT,
    )
    assert np.isfinite(found["returns"][-1])


def test_the_yardstick_of_a_continuous_environment() -> None:
    found = plan_on_grid(Environment("MountainCar-v0", ol.ConstantDelay(1)), test_episodes=3)
    assert -140 < found["mean"] < -80
    assert found["random"] == -200  # random actions never reach the goal
    assert found["half_width"] == pytest.approx(1.96 * np.std(found["returns"], ddof=1) / np.sqrt(3))
    with pytest.raises(ValueError, match='by the task "solve"'):
        plan_on_grid(ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "none"))


def test_a_plan_is_made_once_for_each_environment_and_link() -> None:
    jobs = load_study(ROOT / "docs" / "studies" / "yardstick_quick.toml").jobs()
    plans = [(job.instance, job.channel) for job in jobs if job.label == "plan on a grid"]
    assert len(plans) == len(set(plans)) == 2 * 2
    assert {job.channel for job in jobs} == {"packets, 10% lost", "bursts"}
    assert max(job.replicate for job in jobs) == 2


def test_the_link_in_the_log() -> None:
    from stable_baselines3 import PPO

    for env in (
        ImpairedObservation(gym.make("CartPole-v1"), "constant:2", queue=2),
        ImpairedParts(
            gym.make("CartPole-v1"), {"cart": "constant:2", "pole": "none"}, slices={"cart": [0, 1], "pole": [2, 3]}
        ),
    ):
        log = link_callback()
        PPO("MlpPolicy", AugmentedObservation(env), n_steps=128, batch_size=64, n_epochs=1, seed=0).learn(
            128, callback=log
        )
        (means,) = log.history
        name = "link/mean_age" if "link/mean_age" in means else "link/cart/mean_age"
        assert 1.5 < means[name] < 2.0


def test_a_trained_model_is_a_policy() -> None:
    from stable_baselines3 import PPO

    env = AugmentedObservation(
        ol.envs.TabularEnv("sensing_chain:n_states=6,n_actions=3,horizon=4", channel="constant:1")
    )
    problem = env.unwrapped.problem  # type: ignore[attr-defined]
    model = PPO("MlpPolicy", env, n_steps=64, batch_size=64, n_epochs=1, seed=0).learn(64)
    value = ol.evaluate(problem, policy_of(model, env)).value
    assert 0 <= value <= ol.solve(problem).value + 1e-12
    mixed = policy_of(model, env, deterministic=False)
    played = ol.simulate(problem, mixed, 2000, seed=0)
    assert abs(played.mean - ol.evaluate(problem, mixed).value) < 4 / 1.96 * played.half_width
    assert ol.Controller(problem, mixed).act() in range(3)


@pytest.mark.parametrize("setting", ["quick", "full"])
def test_the_study_is_readable(setting: str) -> None:
    study = load_study(ROOT / "docs" / "studies" / f"yardstick_{setting}.toml")
    assert study is not None
