"""A forward-model learner: predict the present observation from the newest one and the actions since, and act with an undelayed policy.

1. The policy is trained on the environment itself, nothing late or lost; `Recorder` keeps the steps that it makes.
2. A model of one step is fitted to them: the most frequent successor of a state and action where observations are Discrete, else a small network
   for the change of the observation, (x, a) → x' − x, on standardised numbers.
3. Behind the link the newest observation is moved along the actions since by that model, one step for each, and the policy is asked as if the
   result were the present. Before anything is seen it starts from the mean (or most frequent) first observation.

What is lost against the optimum is the error of the model and everything that a single predicted observation does not say.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from oldlight.envs.augmented_observation import Flattening

EPOCHS, BATCH, WIDTH = 30, 256, 64


class Recorder(gym.Wrapper[Any, Any, Any, Any]):
    """Keeps (observation, action, next observation) of every step, and the first observations, of an environment behind "none"."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.steps: list[tuple[Any, Any, Any]] = []
        self.first: list[Any] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        shown, info = self.env.reset(seed=seed, options=options)
        self._last = np.array(shown["observation"])
        self.first.append(self._last)
        return shown, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        shown, reward, terminated, truncated, info = self.env.step(action)
        after = np.array(shown["observation"])
        self.steps.append((self._last, np.array(action), after))
        self._last = after
        return shown, reward, terminated, truncated, info


class CountModel:
    """The most frequent successor; a pair that was never met stays where it is."""

    def __init__(self, record: Recorder, n_states: int, n_actions: int) -> None:
        counts = np.zeros((n_states, n_actions, n_states), dtype=np.int64)
        for s, a, after in record.steps:
            counts[int(s), int(a), int(after)] += 1
        never = counts.sum(axis=2) == 0
        self.successor = np.where(never, np.arange(n_states)[:, None], counts.argmax(axis=2))
        self.start = int(np.bincount([int(s) for s in record.first], minlength=n_states).argmax())

    def after(self, x: Any, action: Any) -> Any:
        return int(self.successor[int(x), int(action)])


class NetworkModel:
    """The change of the observation by a network of two layers; see the module's text."""

    def __init__(self, record: Recorder, space: spaces.Box, action: spaces.Space[Any], seed: int) -> None:
        import torch

        self.space, self.action = space, action
        x = np.array([step[0] for step in record.steps], dtype=np.float32)
        a = np.array([self._coded(step[1]) for step in record.steps], dtype=np.float32)
        change = np.array([step[2] for step in record.steps], dtype=np.float32) - x
        self.mean, self.std = x.mean(axis=0), x.std(axis=0) + 1e-6
        self.shift, self.scale = change.mean(axis=0), change.std(axis=0) + 1e-6
        self.start = np.array(record.first, dtype=np.float32).mean(axis=0)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            n, m = x.shape[1] + a.shape[1], x.shape[1]
            layers = [
                torch.nn.Linear(n, WIDTH),
                torch.nn.Tanh(),
                torch.nn.Linear(WIDTH, WIDTH),
                torch.nn.Tanh(),
                torch.nn.Linear(WIDTH, m),
            ]
            self.network = torch.nn.Sequential(*layers)
        inputs = torch.as_tensor(np.concatenate([(x - self.mean) / self.std, a], axis=1))
        wanted = torch.as_tensor((change - self.shift) / self.scale)
        rng, best = np.random.default_rng(seed), torch.optim.Adam(self.network.parameters(), lr=1e-3)
        for _ in range(EPOCHS):
            for rows in np.array_split(rng.permutation(len(x)), max(len(x) // BATCH, 1)):
                loss = ((self.network(inputs[rows]) - wanted[rows]) ** 2).mean()
                best.zero_grad()
                loss.backward()
                best.step()

    def _coded(self, action: Any) -> NDArray[np.float32]:
        if isinstance(self.action, spaces.Discrete):
            return np.asarray(np.eye(int(self.action.n), dtype=np.float32)[int(action) - int(self.action.start)])
        return np.asarray(action, dtype=np.float32).ravel()

    def after(self, x: Any, action: Any) -> Any:
        import torch

        row = np.concatenate([(x - self.mean) / self.std, self._coded(action)]).astype(np.float32)
        with torch.no_grad():
            change = self.network(torch.as_tensor(row)).numpy()
        moved = np.asarray(x, dtype=np.float32) + self.shift + self.scale * change
        return np.clip(moved, self.space.low, self.space.high).astype(self.space.dtype)


def fitted_model(
    record: Recorder, raw: spaces.Space[Any], action: spaces.Space[Any], seed: int
) -> CountModel | NetworkModel:
    """The model of one step for observations of this space."""
    if isinstance(raw, spaces.Discrete) and isinstance(action, spaces.Discrete):
        return CountModel(record, int(raw.n) - 1, int(action.n))  # one more for "nothing yet"
    if not isinstance(raw, spaces.Box):
        raise ValueError(f"a forward model predicts Discrete observations with Discrete actions, or a Box; not {raw}")
    return NetworkModel(record, raw, action, seed)


def predicted(shown: dict[str, Any], model: CountModel | NetworkModel, action: spaces.Space[Any]) -> Any:
    """The newest observation moved along the actions since."""
    x: Any = shown["observation"] if shown["seen"] else model.start
    age = int(shown["age"][0])
    size = 1 if isinstance(action, spaces.Discrete) else int(np.prod(action.shape or (1,)))
    queue = np.reshape(shown.get("actions", ()), (-1, size))
    for a in queue[max(len(queue) - age, 0) :]:
        x = model.after(x, a[0] if isinstance(action, spaces.Discrete) else a)
    return x


class ForwardExam:
    """Episodes behind the link, acted by the undelayed policy on what the model predicts."""

    def __init__(self, env: gym.Env[Any, Any], flattening: Flattening, episodes: int) -> None:
        self.env, self.flattening, self.episodes = env, flattening, episodes

    def mean_return(self, policy: Any, model: CountModel | NetworkModel) -> float:
        total, action = 0.0, self.env.action_space
        for _ in range(self.episodes):
            shown, _ = self.env.reset()
            over = False
            while not over:
                now = predicted(shown, model, action)
                row = self.flattening.row(shown | {"observation": np.int64(now) if isinstance(now, int) else now})
                a, _ = policy.predict(row, deterministic=True)
                shown, reward, terminated, truncated, _ = self.env.step(a if np.ndim(a) else int(a))
                total, over = total + float(reward), bool(terminated or truncated)
        return total / self.episodes
