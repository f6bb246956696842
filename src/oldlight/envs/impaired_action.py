"""`ImpairedAction`: actions travel over a link too, late or lost on the way to the environment.

What is done where an action is late or lost, and what of it can be planned, says `oldlight.envs.action_link`. `default` is the first action of a Discrete space,
zeros elsewhere, unless it is given.

`info["acted"]` is what was really done, `info["acted_from"]` the time when it was chosen (−1: the default). Put the wrapper inside that of the observations:
`ImpairedObservation(ImpairedAction(env, "constant:1+loss:0.1"), "constant:2")`. The agent's queue then holds what it chose. The tabular environments of
this package take the same link as keywords: `gym.make("oldlight/SensingChain-v0", channel="constant:2", action_channel="loss:0.1")`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from oldlight import checks
from oldlight.envs.action_link import MISSING, ActionLink, planned_link
from oldlight.envs.actions import as_action, first_action, fitted
from oldlight.envs.fixed_length import longest_episode
from oldlight.envs.observation_view import copied
from oldlight.envs.tabular_setup import as_data
from oldlight.model.channels import Channel
from oldlight.random_streams import stream
from oldlight.registry import channel_of

STREAM = 0xAC7  # keeps this link's random numbers apart from those of the environment and of the observations


class ImpairedAction(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """An environment whose actions come late or never.

    Parameters
    ----------
    env : gymnasium.Env
        Any environment.
    channel : Channel, str or mapping
        The link of the actions.
    missing : "hold" or "default"
        What is done at a step at which no newer action has arrived.
    default : action, optional
        See the module's text.
    horizon : int, optional
        The longest episode; by default the environment's time limit, if it has one.

    Examples
    --------
    >>> import gymnasium as gym
    >>> from oldlight.envs import ImpairedAction
    >>> env = ImpairedAction(gym.make("CartPole-v1"), "constant:2", default=1)
    >>> _ = env.reset(seed=0)
    >>> [env.step(0)[4]["acted"] for _ in range(4)]
    [1, 1, 0, 0]
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        channel: Channel | Mapping[str, Any] | str,
        *,
        missing: Literal["hold", "default"] = "hold",
        default: Any = None,
        horizon: int | None = None,
    ) -> None:
        RecordConstructorArgs.__init__(
            self, channel=as_data(channel), missing=missing, default=as_data(default), horizon=horizon
        )
        gym.Wrapper.__init__(self, env)
        self.missing = checks.one_of("missing", missing, MISSING)
        space = env.action_space
        self.default = first_action(space) if default is None else fitted(space, as_action(space, default), "default")
        self.horizon = longest_episode(env) if horizon is None else checks.whole("horizon", horizon, least=1)
        # not `channel`: that is what the wrapper of the observations is given (envs/outside.py)
        self.action_channel = channel_of(channel)
        self._link = ActionLink(self.action_channel, self.horizon, holds=missing == "hold", default=self.default)
        self._rng: np.random.Generator | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """A new episode, with nothing under way."""
        if seed is not None or self._rng is None:
            self._rng = stream(seed, STREAM)
        self._link.begin(self._rng)
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step: the action is sent, and what has arrived acts."""
        done, source = self._link.arrives(copied(fitted(self.env.action_space, action)))
        acted = copied(done)
        seen, reward, terminated, truncated, info = self.env.step(copied(acted))
        return (
            seen,
            float(reward),
            bool(terminated),
            bool(truncated),
            dict(info) | {"acted": acted, "acted_from": source},
        )

    @property
    def planned(self) -> tuple[int, float]:
        """(d, ρ) of `oldlight.envs.action_link.planned_link`, or its refusal."""
        return planned_link(self.action_channel, self.missing)
