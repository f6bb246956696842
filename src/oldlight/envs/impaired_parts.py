"""`ImpairedParts`: a link for each part of the observation, as a camera and an inertial sensor have them.

    ImpairedObservation(env, {"camera": "periodic:5,2", "imu": "none"})                    parts of a Dict, by key
    ImpairedObservation(env, {"cart": "constant:3", "pole": "none"}, slices={"cart": [0, 1], "pole": [2, 3]})      parts of a Box

What is shown is one flat Dict. Part p has the entries `observation/p` (or `observation/p/..` for its own parts), `age/p`, `waited/p`, `fresh/p` and `seen/p`,
each as in `oldlight.envs.observation_view`; `actions` are those since the oldest of the parts, and with `clock=True` there is `time`. `info["arrivals"]` has a list
for each part, `info["link"]` at the end its statistics. Each link draws from a random stream of its own, seeded by `reset(seed=...)`: another
link for one part changes nothing in what the others do. Rewards, `terminated` and `truncated` are not delayed.

**Planning.** The planner's information is one newest state, the actions since and the wait. Where one part is seen later than another, all that the fresher part
has shown since belongs to it too: `learn_in` and `play` refuse. A process with a table of two components, one seen at once and one late by d steps, is planned
exactly as a process of what is known (`oldlight.envs.late_part`). If all parts have the same constant delay, use one link.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from oldlight import checks
from oldlight.envs.actions import fitted
from oldlight.envs.fixed_length import longest_episode
from oldlight.envs.link_statistics import LinkStatistics
from oldlight.envs.observation_view import LinkDict, ObservationView, copied
from oldlight.envs.tabular_setup import PLACES, as_data
from oldlight.envs.typical_age import typical_age
from oldlight.model.channels import Channel
from oldlight.random_streams import stream
from oldlight.registry import channel_of, nearest
from oldlight.simulation.link_sampler import Delivery, LinkSampler

STREAM = 0x9A7


class _Part:
    """One part: its link, what is under way of it, and what is visible."""

    def __init__(self, name: str, space: spaces.Space[Any], action: spaces.Space[Any], channel: Channel, horizon: int | None, places: int) -> None:  # fmt: skip
        self.name, self.channel = name, channel
        self.sampler = LinkSampler(channel, horizon=horizon)
        self.view = ObservationView(space, action, places=0, ages=max(places, 1), horizon=horizon)
        self.rng: np.random.Generator | None = None

    def begin(self, value: Any) -> list[tuple[int, Any]]:
        assert self.rng is not None
        self.now, self.newest, self.heard = 0, -1, -1
        self.sent: dict[int, Any] = {}
        self.counts = LinkStatistics()
        return self._deliver(value, self.sampler.begin(self.rng))

    def send(self, value: Any) -> list[tuple[int, Any]]:
        self.now += 1
        return self._deliver(value, self.sampler.send())

    def _deliver(self, value: Any, came: Delivery) -> list[tuple[int, Any]]:
        self.sent[self.now] = copied(value)
        news = [(i, copied(self.sent[i]) if i >= 0 else None) for i in came.arrived]
        for i in came.arrived:
            if i >= 0:
                self.counts.arrived(i)
            if i > self.newest:
                self.newest, self.heard = i, self.now
        for i in [i for i in self.sent if i != self.newest and not self.sampler.may_come(i)]:
            del self.sent[i]
            self.counts.pending.discard(i)
        return [*news, *((i, None) for i in came.lost)]

    def rest(self) -> list[tuple[int, Any]]:
        """Everything that is still under way."""
        return [(i, None if lost else copied(self.sent[i])) for i, _, lost in self.sampler.under_way()]

    @property
    def age(self) -> int:
        return self.now - self.newest if self.newest >= 0 else self.now

    def show(self) -> dict[str, Any]:
        seen, age = self.newest >= 0, self.age
        waited = self.now - self.heard if seen else age + 1
        self.counts.ages += age
        self.counts.decisions += 1
        self.counts.longest = max(self.counts.longest, waited)
        shown = self.view.show(self.sent[self.newest] if seen else None, seen, age, waited, self.now, [])
        return {named(key, self.name): value for key, value in shown.items()}


def named(key: str, part: str) -> str:
    """age of the part imu is age/imu, observation/x of it observation/imu/x."""
    first, _, rest = key.partition("/")
    return f"{first}/{part}/{rest}" if rest else f"{first}/{part}"


class ImpairedParts(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """An environment with a link for each part of its observation.

    Parameters
    ----------
    env : gymnasium.Env
        With a Dict of observations, or a Box in one row and `slices`.
    channels : mapping of str to Channel, str or mapping
        The link of each part.
    slices : mapping of str to sequence of int, optional
        The entries of a Box that belong to each part.
    queue : int, optional
        How many of the actions since the oldest part are shown; by default what 99.9 % of the steps of an episode need, at most 64.
    clock : bool
        Show the time too.
    horizon : int, optional
        The longest episode; by default the environment's time limit, if it has one.
    reveal : bool
        Show the true present observation in info["present"].

    Examples
    --------
    >>> import gymnasium as gym
    >>> from oldlight.envs import ImpairedObservation
    >>> parts = {"cart": [0, 1], "pole": [2, 3]}
    >>> env = ImpairedObservation(gym.make("CartPole-v1"), {"cart": "constant:3", "pole": "none"}, slices=parts)
    >>> shown, _ = env.reset(seed=0)
    >>> shown["seen/cart"].item(), shown["seen/pole"].item(), shown["observation/pole"].shape
    (0, 1, (2,))
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        channels: Mapping[str, Channel | Mapping[str, Any] | str],
        *,
        slices: Mapping[str, Sequence[int]] | None = None,
        queue: int | None = None,
        clock: bool = False,
        horizon: int | None = None,
        reveal: bool = False,
    ) -> None:
        RecordConstructorArgs.__init__(
            self,
            channels=as_data(channels),
            slices=as_data(slices),
            queue=queue,
            clock=clock,
            horizon=horizon,
            reveal=reveal,
        )
        gym.Wrapper.__init__(self, env)
        self.horizon = longest_episode(env) if horizon is None else checks.whole("horizon", horizon, least=1)
        self.slices = None if slices is None else {name: list(entries) for name, entries in slices.items()}
        parts = _spaces(env.observation_space, self.slices)
        _same_names(parts, channels)
        links = {name: channel_of(channels[name]) for name in parts}
        ages = [typical_age(LinkSampler(link, horizon=self.horizon), PLACES)[0] for link in links.values()]
        places = max(ages) if queue is None else checks.whole("queue", queue)
        self._parts = [
            _Part(name, space, env.action_space, links[name], self.horizon, places) for name, space in parts.items()
        ]
        self._queue = ObservationView(
            spaces.Discrete(1), env.action_space, places=places, ages=max(ages), horizon=self.horizon, clock=bool(clock)
        )
        self._extra = [key for key in self._queue.space.spaces if key.startswith("actions") or key == "time"]
        entries = {
            named(key, part.name): space for part in self._parts for key, space in part.view.space.spaces.items()
        }
        entries |= {key: self._queue.space[key] for key in self._extra}
        self.observation_space = LinkDict(entries, places, max(*ages, 1))
        self._reveals, self._seeded, self._playing = bool(reveal), False, False

    @property
    def channels(self) -> dict[str, Channel]:
        """The link of each part."""
        return {part.name: part.channel for part in self._parts}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """A new episode. A seed decides what all links draw."""
        if seed is not None or not self._seeded:
            for k, part in enumerate(self._parts):
                part.rng, self._seeded = stream(seed, STREAM, k), True
        seen, info = self.env.reset(seed=seed, options=options)
        self._chosen: deque[Any] = deque(maxlen=max(self._queue.places, 1))
        self._playing = True
        return self._told(seen, dict(info), [part.begin(value) for part, value in self._values(seen)])

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step; every part is sent over its link."""
        if not self._playing:
            raise gym.error.ResetNeeded("the episode has ended, or never begun: call reset() first")
        chosen = fitted(self.env.action_space, action)
        seen, reward, terminated, truncated, info = self.env.step(copied(chosen))
        self._chosen.append(copied(chosen))
        shown, info = self._told(seen, dict(info), [part.send(value) for part, value in self._values(seen)])
        if terminated or truncated:
            self._playing, info["link"] = False, {}
            for part in self._parts:
                rest = part.rest()
                under_way = sum(value is not None for _, value in rest)
                info["link"][part.name] = part.counts.summary(part.now + 1, under_way)
                info["arrivals"][part.name] += rest
        return shown, float(reward), bool(terminated), bool(truncated), info

    def _values(self, seen: Any) -> list[tuple[_Part, Any]]:
        if self.slices is None:
            return [(part, seen[part.name]) for part in self._parts]
        return [(part, np.asarray(seen)[self.slices[part.name]]) for part in self._parts]

    def _told(self, seen: Any, info: dict[str, Any], news: list[list[tuple[int, Any]]]) -> tuple[Any, dict[str, Any]]:
        info["arrivals"] = {part.name: list(what) for part, what in zip(self._parts, news, strict=True)}
        if self._reveals:
            info["present"] = copied(seen)
        shown = {key: value for part in self._parts for key, value in part.show().items()}
        since = min(max(part.age for part in self._parts), len(self._chosen))
        actions = list(self._chosen)[len(self._chosen) - since :]
        extra = self._queue.show(None, False, 0, 0, self._parts[0].now, actions)
        return shown | {key: extra[key] for key in self._extra}, info


def _spaces(space: spaces.Space[Any], slices: dict[str, list[int]] | None) -> dict[str, spaces.Space[Any]]:
    """The space of each part."""
    if isinstance(space, spaces.Dict) and slices is None:
        return dict(space.spaces)
    if not isinstance(space, spaces.Box) or len(space.shape) != 1 or slices is None:
        raise TypeError(
            f"a link for each part needs a Dict of observations, or a Box in one row with slices={{name: entries}}; the environment shows {space}"
        )
    taken = sorted(i for entries in slices.values() for i in entries)
    if taken != list(range(space.shape[0])):
        raise ValueError(f"slices has the entries {taken}, expected each of 0..{space.shape[0] - 1} once")
    return {
        name: spaces.Box(space.low[entries], space.high[entries], dtype=space.dtype.type)
        for name, entries in slices.items()
    }


def _same_names(parts: Mapping[str, Any], channels: Mapping[str, Any]) -> None:
    for name in channels:
        if name not in parts:
            raise ValueError(f"channels: there is no part {name!r}{nearest(name, parts)}")
    missing = [name for name in parts if name not in channels]
    if missing:
        raise ValueError(
            f'channels has no link for the part {missing[0]!r}; say that it has none: {{"{missing[0]}": "none"}}'
        )
