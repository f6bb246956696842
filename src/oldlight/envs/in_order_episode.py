"""One episode behind a link that delivers in order: the quick way of `ImpairedObservation`, with the same results.

Most episodes are like this: observations arrive in order and at most one a step (`oldlight.simulation.link_sampler`: a delay law), an action is one
number and acts at once, rewards and ends are told at once. When an observation is sent it is known when it settles and whether it is lost. So what
is under way is a queue whose first entry is the only one that can settle now, and what hindsight will say of a step is written down when it is sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from numpy import ndarray

from oldlight.envs.link_statistics import summary
from oldlight.envs.observation_view import Show
from oldlight.simulation.link_sampler import LinkSampler


class InOrderEpisode:
    """`begin(rng, observation, show)` and `step(env, action, show)`: what `ImpairedObservation` returns, the environment's own `info` of the reset apart.

    places: how many actions are shown; sampler: the link, a delay law in order; copy: how an observation is copied; keeps: is hindsight kept;
    first: the first state and the first action where both are numbers, since a law may depend on them.
    """

    def __init__(
        self,
        places: int,
        sampler: LinkSampler,
        copy: Callable[[Any], Any],
        *,
        keeps: bool,
        first: tuple[int, int] | None,
    ) -> None:
        assert sampler.law is not None
        self._copy, self._keeps = copy, keeps
        self._law, self._late, self._first = sampler.law, sampler.late, first
        self.now, self.over = 0, False
        self._newest = self._heard = -1  # the newest visible step, and when it arrived
        self._seen: Any = None  # its observation
        # (when it settles, the observation; None: lost) of each step, the last is `now`
        self._under_way: deque[tuple[int, Any]] = deque()
        self._chosen: deque[Any] = deque(maxlen=places or 1)  # the newest actions
        self._came = self._ages = self._longest = 0  # for the summary
        self._observations: list[Any] = []
        self._acted: list[Any] = []
        self._earned: list[float] = []
        self._arrived: list[int] = []

    def begin(self, rng: np.random.Generator, observation: Any, show: Show) -> tuple[Any, list[tuple[int, Any]]]:
        """(what is shown, what arrives) at time 0."""
        when, lost = (self._late, False) if self._late is not None else self._law.begin(rng)
        return self._shown(observation, when, lost, show)

    def step(self, env: gym.Env[Any, Any], action: Any, show: Show) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step with an action of the environment's space."""
        observation, reward, terminated, truncated, info = env.step(action)
        self._chosen.append(action)
        self.now = now = self.now + 1
        if type(reward) is not float:
            reward = float(reward)
        if self._keeps:
            self._acted.append(action)
            self._earned.append(reward)
        if self._late is not None:
            when, lost = now + self._late, False
        elif self._first is None:
            when, lost = self._law.send()
        else:
            when, lost = self._law.send(self._state, int(action) - self._first[1])
        shown, news = self._shown(observation, when, lost, show)
        info = dict(info)
        info["arrivals"] = news
        if terminated or truncated:
            self._end(info)
            return shown, reward, bool(terminated), bool(truncated), info
        return shown, reward, False, False, info

    def _shown(self, observation: Any, when: int, lost: bool, show: Show) -> tuple[Any, list[tuple[int, Any]]]:
        """The present observation is sent, and settles at `when`; what the agent is shown now, and what settles now."""
        now, under_way = self.now, self._under_way
        if self._first is not None:
            self._state = int(observation) - self._first[0]
        sent = None if lost else observation.copy() if type(observation) is ndarray else self._copy(observation)
        under_way.append((when, sent))
        if self._keeps:
            self._observations.append(sent)
            self._arrived.append(-1 if lost else when)
        news: list[tuple[int, Any]] = []
        if under_way[0][0] == now:
            came = under_way.popleft()[1]
            i = now - len(under_way)
            if came is None:
                news.append((i, None))
            else:
                news.append((i, came.copy() if type(came) is ndarray else self._copy(came)))
                self._newest, self._heard, self._seen = i, now, came
                self._came += 1
        newest = self._newest
        if newest >= 0:
            seen, age, waited = True, now - newest, now - self._heard
        else:
            seen, age, waited = False, now, now + 1
        self._ages += age
        if waited > self._longest:
            self._longest = waited
        since = tuple(self._chosen)
        if len(since) > age:
            since = since[len(since) - age :]
        return show(self._seen, seen, age, waited, now, since), news

    def _end(self, info: dict[str, Any]) -> None:
        """Everything under way is delivered, and what the link did is told."""
        self.over, sent = True, self.now + 1
        rest = [None if found is None else self._copy(found) for _, found in self._under_way]
        info["arrivals"] += enumerate(rest, sent - len(rest))
        under_way = sum([found is not None for found in rest])
        info["link"] = summary(self._ages, sent, sent - self._came - under_way, sent, self._longest)
        if self._keeps:
            info["hindsight"] = {
                "observations": self._observations,
                "actions": self._acted,
                "rewards": self._earned,
                "arrivals": self._arrived,
            }
