"""`ImpairedAction`: actions travel over a link too, late or lost on the way to the environment.

The action chosen at time h is sent at h and arrives as the channel says, like an observation the other way round. At step h the
environment does the newest action that has arrived by then (newest by when it was chosen). Where nothing newer has arrived at this step

    missing="hold"       it does again what it did before (a motor keeps its set point)
    missing="default"    it does `default` (a brake falls in)

and before anything has arrived it does `default`, which is the first action of a Discrete space, zeros elsewhere, unless it is given.

`info["acted"]` is what was really done, `info["acted_from"]` the time when it was chosen (−1: the default). Put the wrapper inside that of the observations:
`ImpairedObservation(ImpairedAction(env, "constant:1+loss:0.1"), "constant:2")`. The agent's queue then holds what it chose.

**Planning.** Actions that are all late by the same d are the same as `actuation=d` (with `pending=[default] * d`), which is planned exactly: as the information
of a delay longer by d. Where the delay of actions is random, or one can be lost, the agent does not know what was done: its information is then no newest
state and queue, and the planner refuses (`planned_actuation`). Such a link is simulated and learned behind only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from oldlight import checks
from oldlight.envs.actions import as_action, first_action, fitted
from oldlight.envs.fixed_length import longest_episode
from oldlight.envs.observation_view import copied
from oldlight.envs.tabular_setup import as_data
from oldlight.model.channels import Channel, ConstantDelay
from oldlight.registry import channel_of
from oldlight.simulation.link_sampler import Delivery, LinkSampler

STREAM = 0xAC7  # keeps this link's random numbers apart from those of the environment and of the observations
MISSING = ("hold", "default")


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
        self.holds = checks.one_of("missing", missing, MISSING) == "hold"
        space = env.action_space
        self.default = first_action(space) if default is None else fitted(space, as_action(space, default), "default")
        self.horizon = longest_episode(env) if horizon is None else checks.whole("horizon", horizon, least=1)
        self.channel = channel_of(channel)
        self._sampler = LinkSampler(self.channel, horizon=self.horizon)
        self._rng: np.random.Generator | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """A new episode, with nothing under way."""
        if seed is not None or self._rng is None:
            self._rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(STREAM,))))
        self._now, self._newest = 0, -1
        self._sent: dict[int, Any] = {}  # by the time at which they were chosen
        self._current = copied(self.default)
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step: the action is sent, and what has arrived acts."""
        self._sent[self._now] = copied(fitted(self.env.action_space, action))
        assert self._rng is not None
        came: Delivery = self._sampler.begin(self._rng) if self._now == 0 else self._sampler.send()
        newer = [i for i in came.arrived if i > self._newest]
        source = self._newest
        if newer:
            source = self._newest = max(newer)
            self._current = self._sent[source]
        elif not self.holds:
            self._current, source = self.default, -1
        for i in [i for i in self._sent if i < self._newest]:
            del self._sent[i]
        self._now += 1
        acted = copied(self._current)
        seen, reward, terminated, truncated, info = self.env.step(copied(acted))
        return (
            seen,
            float(reward),
            bool(terminated),
            bool(truncated),
            dict(info) | {"acted": acted, "acted_from": source},
        )

    @property
    def planned_actuation(self) -> int:
        """d where all actions are late by the same d, as `ImpairedMDP(.., actuation=d)` plans it; else refused with the reason."""
        if isinstance(self.channel, ConstantDelay):
            return int(self.channel.d)
        raise ValueError(
            "behind a link that loses actions, or delays them at random, the agent does not know what was done, so its information is no newest state and "
            f"queue of actions: this is simulated and not planned. A constant delay of actions is planned, as actuation=; the link is {self.channel!r}"
        )
