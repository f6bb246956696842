"""Deep learners behind a bad link: train PPO, DQN, SAC or RecurrentPPO on any environment, with four things to look at.

    observation = "full"        the environment itself, whatever the channel: what would be if nothing were impaired
    observation = "augmented"   newest observation, its age, whether it is fresh or anything was seen, and the actions since, as
                                one vector (`AugmentedObservation`): all that an agent behind the link knows
    observation = "newest"      the newest observation alone, as if it were the current one: what is usually tried
    observation = "forward"     the present observation as a learned model predicts it, for a policy that is trained without the link
                                (`oldlight.deep.forward_model`)

`train` is a task of a study (`docs/studies/deep.toml`) on an `Environment`, an id behind a channel. It returns the mean return of the greedy policy at `points` moments of the
training, each over `test_episodes` episodes of a separate environment behind the same link. On a process with a table that can be
planned it also returns the exact optimum behind that link and with full information (`oldlight.solve`), so that a learning curve
can be drawn under the value that no learner can exceed; elsewhere the task `plan_on_grid` gives something to compare with, once for each environment and
link (`oldlight.deep.grid_plan`). `train.refuse` lets a study find mistakes before it trains.

Tabular environments show the clock too: with a finite horizon the best action depends on the time that is left. Needs the extra
`deep` (stable-baselines3 with torch).
"""

from __future__ import annotations

import contextlib
from typing import Any, Literal, TypeAlias

import numpy as np

from oldlight import checks
from oldlight.deep.grid_plan import plan_on_grid as plan_on_grid
from oldlight.deep.link_log import link_callback as link_callback
from oldlight.model.channels import Channel
from oldlight.own_code import registered
from oldlight.studies.jobs import Environment

Algorithm: TypeAlias = Literal["DQN", "PPO", "RecurrentPPO", "SAC"]
Observation: TypeAlias = Literal["full", "augmented", "newest", "forward"]
OBSERVATIONS = ("full", "augmented", "newest", "forward")
SETTINGS: dict[str, dict[str, Any]] = {  # where they differ from the library's defaults: small problems, one core
    "PPO": {"n_steps": 512, "batch_size": 128, "n_epochs": 10, "gae_lambda": 0.95, "ent_coef": 0.01, "learning_rate": 1e-3},
    "DQN": {"learning_rate": 1e-3, "buffer_size": 50_000, "learning_starts": 500, "batch_size": 64, "train_freq": 4,
            "target_update_interval": 250, "exploration_fraction": 0.3, "exploration_final_eps": 0.02},
    "SAC": {"learning_rate": 1e-3, "buffer_size": 50_000, "learning_starts": 500, "batch_size": 256, "train_freq": 4, "gradient_steps": 2},
    "RecurrentPPO": {"n_steps": 512, "batch_size": 128, "n_epochs": 5, "ent_coef": 0.01, "learning_rate": 1e-3},
}  # fmt: skip


def make(
    env: str, channel: Channel | str, observation: Observation, *, seed: int | None = None, copies: int | None = None
) -> Any:
    """The environment `env` (an id of Gymnasium's registry) behind `channel`, as one vector; see the module's text.

    copies: so many tabular environments at once, whose episodes all end together.
    """
    import gymnasium as gym
    from gymnasium.vector import AutoresetMode

    from oldlight.deep.forward_model import Recorder
    from oldlight.envs import AugmentedObservation, AugmentedVectorObservation, ImpairedObservation

    checks.one_of("observation", observation, OBSERVATIONS)
    behind = "none" if observation in ("full", "forward") else channel
    made: Any
    if copies is not None:
        made = gym.make_vec(env, copies, channel=behind, autoreset_mode=AutoresetMode.DISABLED)
        keys = ["observation", "time"]
    elif tabular(env):
        made = gym.make(env, channel=behind)
        keys = ["observation", "time"]
    else:
        made = ImpairedObservation(gym.make(env), behind, hindsight=False)
        keys = ["observation"]
    if observation == "forward":
        made = Recorder(made)
    flat = AugmentedObservation if copies is None else AugmentedVectorObservation
    made = flat(made, keys=None if observation == "augmented" else keys)
    if seed is not None:
        made.reset(seed=seed)
        made.action_space.seed(seed)
    return made


@registered
def train(
    problem: Environment,
    seed: int,
    *,
    algorithm: Algorithm = "PPO",
    observation: Observation = "augmented",
    steps: int = 40_000,
    points: int = 20,
    test_episodes: int = 100,
    settings: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Train for `steps` steps; `settings` go to the algorithm. Returns at[k], returns[k] and optimum, full_optimum (NaN: unknown)."""
    _at_least_one(steps=steps, points=points, test_episodes=test_episodes)
    number = seed % 2**31
    model, world = _begun(problem, number, algorithm, observation, settings)

    import torch

    torch.set_num_threads(1)
    exam = Exam(problem, observation, test_episodes, number + 1, world)
    at, mean = [0], [exam.mean_return(model)]
    for k in range(1, points + 1):
        model.learn(steps * k // points - model.num_timesteps, reset_num_timesteps=k == 1, progress_bar=False)
        at.append(model.num_timesteps)
        mean.append(exam.mean_return(model))
    best, full = _optimum(world, problem)
    return {
        "at": np.array(at),
        "returns": np.array(mean),
        "optimum": best,
        "full_optimum": full,
        "final": float(np.mean(mean[-max(1, points // 5) :])),
    }


def refuse(
    problem: Any,
    *,
    algorithm: Algorithm = "PPO",
    observation: Observation = "augmented",
    settings: dict[str, Any] | None = None,
    **numbers: int,
) -> None:
    """Refuse, before any training, what `train` with these options would refuse: a study asks for it."""
    _at_least_one(**numbers)
    _, world = _begun(problem, None, algorithm, observation, settings)
    world.close()


train.refuse = refuse  # type: ignore[attr-defined]


def _at_least_one(**numbers: int) -> None:
    for name, value in numbers.items():
        checks.whole(name, value, least=1)


def _begun(
    problem: Any, seed: int | None, algorithm: Algorithm, observation: Observation, settings: dict[str, Any] | None
) -> tuple[Any, Any]:
    """A model that has learnt nothing yet, and its environment; without `seed` no generator is touched."""
    checks.one_of("algorithm", algorithm, tuple(SETTINGS))
    if not isinstance(problem, Environment):
        raise ValueError(
            f"oldlight.deep:train takes an environment by its id, not {type(problem).__name__}; as an instance: "
            '"env:CartPole-v1", or "env:oldlight/SensingChain-v0" for a process with a table'
        )
    world = make(problem.id, problem.channel, observation, seed=seed)
    try:
        if algorithm == "RecurrentPPO":
            import sb3_contrib as library
        else:
            import stable_baselines3 as library
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{error.name} is not installed; deep learners need: pip install 'oldlight[deep]'"
        ) from None
    network = "MlpLstmPolicy" if algorithm == "RecurrentPPO" else "MlpPolicy"
    kind, chosen = getattr(library, algorithm), SETTINGS[algorithm] | (settings or {})
    model = kind(network, world, seed=seed, device="cpu", verbose=0, **chosen)
    if "tensorboard_log" not in chosen:
        model.set_logger(_no_log())
    return model, world


def _no_log() -> Any:
    """Stable-Baselines3 would make an empty folder for temporary files at every call of `learn`."""
    from stable_baselines3.common.logger import Logger

    return Logger(folder=None, output_formats=[])


class Exam:
    """Episodes of the greedy policy behind the same link: of a tabular environment all at once, compiled; else one by one."""

    def __init__(self, problem: Environment, observation: Observation, episodes: int, seed: int, world: Any) -> None:
        self.episodes, self.seed, self.world = episodes, seed, world
        self.forward = observation == "forward"
        self.many = tabular(problem.id) and not self.forward
        copies = episodes if self.many else None
        self.env = make(
            problem.id, problem.channel, "augmented" if self.forward else observation, seed=seed, copies=copies
        )

    def mean_return(self, model: Any) -> float:
        if self.forward:
            return self._by_forecast(model)
        total = 0.0
        for _ in range(1 if self.many else self.episodes):
            seen, _ = self.env.reset()
            over, memory, first = False, None, np.ones(self.episodes if self.many else 1, dtype=bool)
            while not over:
                action, memory = model.predict(seen, state=memory, episode_start=first, deterministic=True)
                first = np.zeros_like(first)
                seen, reward, terminated, truncated, _ = self.env.step(action if np.ndim(action) else int(action))
                total += float(np.sum(reward))
                over = bool(np.all(np.logical_or(terminated, truncated)))
        return total / self.episodes

    def _by_forecast(self, model: Any) -> float:
        from oldlight.deep.forward_model import ForwardExam, fitted_model

        record = self.world.env
        if not record.steps:
            return float("nan")  # nothing has been learned yet, neither a policy nor a model
        inside = self.env.env
        raw, flattening = inside.observation_space["observation"], self.world._flattening
        forecast = fitted_model(record, raw, inside.action_space, self.seed)
        return ForwardExam(inside, flattening, self.episodes).mean_return(model, forecast)


def tabular(env: str) -> bool:
    """Is it one of this package's own environments?"""
    from oldlight.envs.registration import CLASSICS

    return env.startswith(("oldlight/", "oldlight:")) and not env.endswith(CLASSICS)


def _optimum(env: Any, environment: Environment) -> tuple[float, float]:
    """The exact values behind the link and with full information, where the environment has a table and can be planned; else NaN."""
    from oldlight.deep.forward_model import Recorder
    from oldlight.model.problem import ImpairedMDP
    from oldlight.planning.gap import gap

    with contextlib.suppress(ValueError):  # too large, or a link that is simulated only: the training still counts
        problem = getattr(env.unwrapped, "problem", None)
        if problem is not None:
            forward = isinstance(env.env, Recorder)  # trained without the link, examined behind it
            found = gap(ImpairedMDP(problem.mdp, environment.channel) if forward else problem)
            return found.impaired, found.full
    return float("nan"), float("nan")
