"""`FixedLength`: episodes of exactly H steps. One that ends before stays where it ended, with reward zero.

That is the process which `TabularMDP.from_gymnasium(env, H)` describes, where states that end the episode absorb. Planners and
learners of this package think in such processes; and behind a link it is the honest form of "the agent does not know yet
that it is over", because `terminated` is never delayed.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from oldlight import checks
from oldlight.envs.observation_view import copied


class FixedLength(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """An environment for `horizon` steps, whether or not it ends before.

    Parameters
    ----------
    env : gymnasium.Env
        The environment.
    horizon : int
        H.

    Examples
    --------
    >>> import gymnasium as gym
    >>> from oldlight.envs import FixedLength
    >>> env = FixedLength(gym.make("FrozenLake-v1"), horizon=3)
    >>> _ = env.reset(seed=0)
    >>> [env.step(0)[2] for _ in range(3)]
    [False, False, True]
    """

    def __init__(self, env: gym.Env[Any, Any], horizon: int) -> None:
        RecordConstructorArgs.__init__(self, horizon=horizon)
        gym.Wrapper.__init__(self, env)
        self.horizon = checks.whole("horizon", horizon, least=1)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._now, self._ended, self._last = 0, False, copied(observation)
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._now += 1
        over = self._now >= self.horizon
        if self._ended:
            return copied(self._last), 0.0, over, False, {}
        observation, reward, terminated, truncated, info = self.env.step(action)
        if truncated and not terminated and not over:
            raise ValueError(f"the environment was cut off after {self._now} steps, before horizon = {self.horizon}")
        self._ended, self._last = bool(terminated), copied(observation)
        return observation, float(reward), over, False, info


def longest_episode(env: gym.Env[Any, Any]) -> int | None:
    """The environment's limit on its steps, or None."""
    from oldlight.envs.tabular import TabularEnv

    if isinstance(env, FixedLength | TabularEnv):
        return env.horizon
    if not isinstance(env, gym.Wrapper):
        return None
    inside = longest_episode(env.env)
    if not isinstance(env, gym.wrappers.TimeLimit):
        return inside
    limit = int(env._max_episode_steps)
    return limit if inside is None else min(limit, inside)
