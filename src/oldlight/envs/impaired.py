"""`ImpairedObservation`: any Gymnasium environment behind a link that delays, loses, or both.

The timing is that of `oldlight.simulation`. The observation of step i (step 0 is that of `reset`) arrives at time i + d_i, before
the action of that time is chosen, in order and at most one a step; a lost one is known to be lost at the time when it would
have arrived. What the agent gets is the flat Dict of `oldlight.envs.view`: the newest observation that has come
through, its age, whether it is fresh, whether anything has been seen, the actions since.

**The end.** `terminated` and `truncated` are not delayed. The last Dict is shown through the link like every other: it holds the
newest observation that has come through by then, which is the last one only if nothing was late. Everything still under
way is delivered in `info`.

**Rewards** are immediate, or travel ("delayed"): the reward of a step goes with the observation that follows it, and what
arrives brings all rewards up to its own step that have not been paid (so those of lost observations come with the next). With the
end of the episode the rest is paid: the return is that of the wrapped environment.

**info** is the wrapped environment's own, which is *not* delayed, and with it at every step `arrivals`: a list of (step, observation),
or (step, None) for one that is now known to be lost. At the end it also has everything still under way, so that each step of
the episode occurs exactly once; and `hindsight`: `observations` (None: lost), `actions` by the step they acted on, `rewards`,
and `arrivals`, the times (−1: lost).

The link has a random generator of its own, seeded by `reset(seed=...)`; the wrapped environment sees the same seed, the same
actions and nothing else, so its trajectory is what it would be without the wrapper. Put the wrapper outside of a TimeLimit
(`gym.make` puts it inside of everything you add), or it will not see the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from oldlight import checks
from oldlight.channels import Channel
from oldlight.envs.fixed_length import FixedLength
from oldlight.envs.process import PLACES, REWARDS, as_data
from oldlight.envs.traffic import Traffic
from oldlight.envs.view import View, copied
from oldlight.words import channel_of

STREAM = 0x01D  # keeps the link's random numbers apart from the environment's


class ImpairedObservation(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """`env` behind `channel` (a channel, in words such as "constant:2+loss:0.2", or as data).

    rewards: "immediate" or "delayed" (travelling with their observations).
    actuation: the action chosen at time h acts at step h + actuation; `pending` are those under way at the start (the first action, or
    zeros, if None). The last ones chosen never act.
    in_order: False lets observations overtake each other: each has a delay of its own (see `oldlight.envs.traffic`).
    queue: how many of the actions since are shown; None: all that can matter, at most 64; 0: none.
    clock: show the time too. horizon: the longest episode, a step beyond it is refused; None: that of the environment's time
    limit, if it has one.
    hindsight: False forgets what has been delivered, for long episodes of images; then there is no info["hindsight"].
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        channel: Channel | Mapping[str, Any] | str,
        *,
        rewards: str = "immediate",
        actuation: int = 0,
        pending: Sequence[Any] | None = None,
        in_order: bool = True,
        queue: int | None = None,
        clock: bool = False,
        horizon: int | None = None,
        hindsight: bool = True,
    ) -> None:
        if isinstance(env, gym.vector.VectorEnv):
            raise TypeError(
                "ImpairedObservation wraps one environment: gym.make_vec(id, num_envs=N, vectorization_mode='sync', "
                "wrappers=[lambda env: ImpairedObservation(env, channel)])"
            )
        RecordConstructorArgs.__init__(
            self, channel=as_data(channel), rewards=rewards, actuation=actuation, pending=as_data(pending), in_order=in_order,
            queue=queue, clock=clock, horizon=horizon, hindsight=hindsight,
        )  # fmt: skip
        gym.Wrapper.__init__(self, env)
        self.channel = channel_of(channel)
        self.late_rewards = checks.one_of("rewards", rewards, REWARDS) == "delayed"
        self.actuation = checks.whole("actuation", actuation)
        self.horizon = longest_episode(env) if horizon is None else checks.whole("horizon", horizon, least=1)
        self.pending = self._under_way(pending)
        seen, done = env.observation_space, env.action_space
        self._tabular = isinstance(seen, spaces.Discrete) and isinstance(done, spaces.Discrete)
        sizes = (int(seen.n), int(done.n)) if self._tabular else None  # type: ignore[attr-defined]
        self._traffic = Traffic(self.channel, horizon=self.horizon, sizes=sizes, in_order=bool(in_order))
        self._keeps = bool(hindsight)
        places = self._places() if queue is None else checks.whole("queue", queue)
        self._view = View(seen, done, places=places, horizon=self.horizon, ahead=self.actuation, clock=bool(clock))
        self.observation_space = self._view.space
        self._rng: np.random.Generator | None = None
        self._playing = False

    @property
    def queue(self) -> int:
        """How many of the actions since are shown."""
        return self._view.places

    def _places(self) -> int:
        late = None if self._traffic.loss is not None else self._traffic.longest
        late = self.horizon if late is None else late
        return PLACES if late is None else min(late + self.actuation, PLACES)

    def _under_way(self, pending: Sequence[Any] | None) -> list[Any]:
        space, k = self.env.action_space, self.actuation
        if pending is None:
            return [_first_action(space) for _ in range(k)]
        if len(pending) != k:
            raise ValueError(f"pending has {len(pending)} actions, expected one per step of actuation delay: {k}")
        given = [_as_action(space, action) for action in pending]
        for i, action in enumerate(given):
            if action not in space:
                raise ValueError(f"pending[{i}] is {pending[i]!r}, expected an action in {space}")
        return given

    # -- episodes -----------------------------------------------------------------------------------------------

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """A new episode: nothing of the last one is left. A seed decides the link's luck too."""
        if seed is not None or self._rng is None:
            self._rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(STREAM,))))
        observation, info = self.env.reset(seed=seed, options=options)
        self._now, self._newest, self._heard = 0, -1, -1  # time, newest visible step, when it arrived
        self._sent: dict[int, Any] = {}  # observations by step
        self._due: dict[int, list[int]] = {}  # steps by the time at which they settle
        self._settles: list[int] = []
        self._lost: list[bool] = []
        self._chosen: list[Any] = [copied(action) for action in self.pending]
        self._rewards: list[float] = []
        self._paid = 0
        self._playing = True
        self._send(observation, *self._traffic.begin(self._rng))
        info = dict(info) | {"arrivals": self._deliver()}
        return self._shown(), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step. What the action space does not hold is refused, and so is a step beyond `horizon`; then nothing has changed."""
        if not self._playing:
            raise gym.error.ResetNeeded("the episode has ended, or never begun: call reset() first")
        if self._now == self.horizon:
            raise ValueError(
                f"the episode is longer than the {self.horizon} steps of its horizon; say how long it can be, horizon=..., or end it: "
                f"gymnasium.wrappers.TimeLimit(env, {self.horizon}) inside"
            )
        if not _holds(self.env.action_space, action):
            clip = ", e.g. by gymnasium.wrappers.ClipAction" if isinstance(self.env.action_space, spaces.Box) else ""
            raise ValueError(f"action is {action!r}, expected one in {self.env.action_space}{clip}")
        chosen = copied(action)
        acts = copied(self._chosen[self._now]) if self.actuation else action
        observation, reward, terminated, truncated, info = self.env.step(acts)
        self._chosen.append(chosen)
        where = (self._state, int(acts) - int(self.env.action_space.start)) if self._tabular else (0, 0)  # type: ignore[attr-defined]
        self._now += 1
        self._rewards.append(float(reward))
        self._send(observation, *self._traffic.send(*where))
        info = dict(info)
        info["arrivals"] = self._deliver()
        shown = self._shown()
        over = bool(terminated or truncated)
        if over:
            self._playing = False
            info["arrivals"] += self._deliver_the_rest()
            if self._keeps:
                info["hindsight"] = self._hindsight()
        return shown, self._pay(over), bool(terminated), bool(truncated), info

    def _send(self, observation: Any, settles: int, lost: bool) -> None:
        i = self._now
        if self._tabular:
            self._state = int(observation) - int(self.env.observation_space.start)  # type: ignore[attr-defined]
        self._sent[i] = None if lost else copied(observation)
        self._settles.append(settles)
        self._lost.append(lost)
        self._due.setdefault(settles, []).append(i)

    def _deliver(self) -> list[tuple[int, Any]]:
        """What settles now; the newest visible step moves on."""
        settled, before = self._due.pop(self._now, []), self._newest
        arrived = [(i, copied(self._sent[i])) for i in settled]
        for i in settled:
            if i > self._newest and not self._lost[i]:
                self._newest, self._heard = i, self._now
        if not self._keeps:
            for i in (before, *settled):
                if i != self._newest:
                    self._sent.pop(i, None)
        return arrived

    def _deliver_the_rest(self) -> list[tuple[int, Any]]:
        return [(i, copied(self._sent[i])) for i in sorted(i for steps in self._due.values() for i in steps)]

    def _shown(self) -> dict[str, Any]:
        seen = self._newest >= 0
        time = self._now + self.actuation
        age = time - self._newest if seen else time
        waited = self._now - self._heard if seen else age + 1
        since = self._chosen[max(len(self._chosen) - min(age, self._view.places), 0) :]
        return self._view.show(self._sent[self._newest] if seen else None, seen, age, waited, time, since)

    def _pay(self, over: bool) -> float:
        if not self.late_rewards:
            return self._rewards[-1]
        until = len(self._rewards) if over else max(self._newest, 0)
        due = self._rewards[self._paid : until]
        self._paid = max(self._paid, until)
        return float(sum(due))

    def _hindsight(self) -> dict[str, Any]:
        arrivals = [-1 if lost else when for when, lost in zip(self._settles, self._lost, strict=True)]
        observations = [copied(self._sent[i]) for i in range(self._now + 1)]
        actions = [copied(action) for action in self._chosen[: self._now]]
        return {"observations": observations, "actions": actions, "rewards": list(self._rewards), "arrivals": arrivals}


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


def _first_action(space: spaces.Space[Any]) -> Any:
    """The first action of a Discrete space; zeros elsewhere."""
    if isinstance(space, spaces.Discrete):
        return np.int64(space.start)
    if isinstance(space, spaces.MultiDiscrete):
        return np.array(space.start, dtype=space.dtype)
    if isinstance(space, spaces.MultiBinary):
        return np.zeros(space.shape, dtype=space.dtype)
    if isinstance(space, spaces.Box):
        return np.clip(np.zeros(space.shape), space.low, space.high).astype(space.dtype)
    if isinstance(space, spaces.Dict):
        return {key: _first_action(part) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_first_action(part) for part in space.spaces)
    raise ValueError(f"late actions in {space}: say which are under way at the start, pending=[...]")


def _holds(space: spaces.Space[Any], action: Any) -> bool:
    """Is this an action of the space? A Box need not be given numbers of exactly its type."""
    if isinstance(space, spaces.Dict):
        same = isinstance(action, Mapping) and action.keys() == space.spaces.keys()
        return same and all(_holds(part, action[key]) for key, part in space.spaces.items())
    if isinstance(space, spaces.Tuple):
        same = isinstance(action, tuple | list) and len(action) == len(space.spaces)
        return same and all(_holds(part, value) for part, value in zip(space.spaces, action, strict=True))
    try:
        if isinstance(space, spaces.Box):
            given = np.asarray(action)
            action = given.astype(space.dtype) if np.can_cast(given.dtype, space.dtype, "same_kind") else given
        return bool(space.contains(action))
    except (TypeError, ValueError):  # rows of different length, for example
        return False


def _as_action(space: spaces.Space[Any], given: Any) -> Any:
    """An action read from plain data (a spec that was written to a file holds lists)."""
    if isinstance(space, spaces.Dict):
        return {key: _as_action(part, given[key]) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_as_action(part, value) for part, value in zip(space.spaces, given, strict=True))
    if isinstance(space, spaces.Discrete | spaces.Text):
        return given
    return np.array(given, dtype=space.dtype)
