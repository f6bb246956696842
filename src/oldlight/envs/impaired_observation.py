"""`ImpairedObservation`: any Gymnasium environment behind a link that delays, loses, or both.

The timing is that of `oldlight.simulation`. Behind a delay law the observation of step i (step 0 is that of `reset`) arrives at time i + d_i, before
the action of that time is chosen, in order and at most one a step; a lost one is known to be lost at the time when it would have arrived. Other links
(`PacketChannel`, `FIFODelay`, ..) do what they say. The agent gets the Dict of `oldlight.envs.observation_view`.

**The end.** `terminated` and `truncated` are not delayed (but see `ends`). The last Dict is shown through the link like every other: its observation
is the last one only if nothing was late. Everything still under way is delivered in `info`.

**Rewards** are immediate, or travel ("delayed"): the reward of a step goes with the observation that follows it, and what arrives brings all rewards
up to its own step that have not been paid (so those of lost observations come with the next). With the end of the episode the rest is paid: the
return is that of the wrapped environment.

**info** is the wrapped environment's own, which is *not* delayed, and with it at every step `arrivals`: a list of (step, observation), or (step,
None) for one that is now known to be lost. At the end it also has everything still under way. So behind a delay law each step of the episode occurs
exactly once; a link that loses silently never speaks of what it lost, a `HeldLag` shows one observation several times, and an `AgeChain` that begins
with an old message speaks of it: (−2, None). At the end there is also `hindsight`: `observations` (None: lost), `actions` by the step they acted on,
`rewards`, and `arrivals`, the times (−1: lost): every message that was not lost, those included that were overtaken or arrive after the end.
`AgeChain` and `HeldLag` have no messages, only what they show: what they never showed counts as lost.

At the end `info["link"]` says what the link did in the episode (`oldlight.envs.link_statistics`). With `reveal=True` every `info` has `present`, the
true present observation: for a critic or a teacher, not for the agent.

**The channel** can be changed: `env.channel = ...`, `set_wrapper_attr("channel", ...)`, `set_attr` of a vector environment (on a wrapper further out
too: see `oldlight.envs.outside`) and `reset(options={"channel": ...})` take a channel, its text or its data. It is checked at once, holds from the
next reset on, and stays. The observation space does not change: a channel that would need a longer queue than the default that was chosen is refused.

The link has a random generator of its own, seeded by `reset(seed=...)`; the wrapped environment sees the same seed, the same actions and nothing
else, so its trajectory is what it would be without the wrapper. Put the wrapper outside of a TimeLimit (`gym.make` puts it inside of everything you
add), or it will not see the end, and rewards that travel are never paid.
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
from oldlight.envs.actions import fitted, under_way_at_start
from oldlight.envs.drawn_link import LinkPerEpisode, drawn_link
from oldlight.envs.fixed_length import longest_episode
from oldlight.envs.in_order_episode import InOrderEpisode
from oldlight.envs.link_statistics import LinkStatistics
from oldlight.envs.observation_view import ObservationView, Show, copied, plain_copy
from oldlight.envs.outside import take_channel, wrappers_around
from oldlight.envs.tabular_setup import REWARDS, Rewards, as_data
from oldlight.envs.typical_age import default_queue
from oldlight.model.channels import Channel
from oldlight.registry import channel_of
from oldlight.simulation.link_sampler import Delivery, LinkSampler

WHOLE = (int, np.int64)  # the types of most actions of a Discrete space
STREAM = 0x01D  # keeps the link's random numbers apart from the environment's

Link = Channel | LinkPerEpisode | Mapping[str, Any] | str


class ImpairedObservation(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Any Gymnasium environment behind a link: the newest observation that has come through, its age, and the actions since.

    Parameters
    ----------
    env : gymnasium.Env
        The environment.
    channel : Channel, LinkPerEpisode, str or mapping
        The link: a channel, its text ("constant:2+loss:0.2") or its data; several to draw one from for each episode ("constant:1 | constant:4"); or
        {"camera": .., "imu": ..}, a link for each part of the observation (`ImpairedParts`).
    rewards : "immediate" or "delayed"
        "delayed": they travel with their observations.
    actuation, pending : int, sequence of actions
        The action chosen at time h acts at step h + actuation; pending are those under way at the start (the first action, or zeros, if None).
    in_order : bool
        False lets observations overtake each other: each has a delay of its own (`oldlight.simulation.link_sampler`).
    queue : int, optional
        How many of the actions since are shown. None: as many as the newest observation is steps old in 99.9 % of an episode of `horizon` steps, or
        200, at most 64, with a note where it can be older (`oldlight.envs.typical_age`).
    clock : bool
        Show the time too.
    horizon : int, optional
        The longest episode; a step beyond it is refused. None: that of the environment's time limit, if it has one.
    hindsight : bool
        False forgets what has been delivered, so that memory grows only with what is under way; then there is no info["hindsight"].
    reveal : bool
        Show the true present observation in info["present"].
    ends : "immediate" or "delayed"
        "delayed" tells of `terminated` when the end has been seen, at the horizon at the latest; until then every step earns nothing.

    Examples
    --------
    >>> import gymnasium as gym
    >>> from oldlight.envs import ImpairedObservation
    >>> env = ImpairedObservation(gym.make("FrozenLake-v1"), "constant:2")
    >>> shown, _ = env.reset(seed=1)
    >>> later = [env.step(0)[0] for _ in range(2)][-1]  # the first state arrives after two steps
    >>> int(shown["seen"]), int(later["seen"]), int(later["observation"]), later["actions"].tolist()
    (0, 1, 0, [0, 0])
    """

    def __new__(cls, *given: Any, **how: Any) -> Any:
        channel = given[1] if len(given) > 1 else how.get("channel")
        if isinstance(channel, Mapping) and not {"kind", "links"} & channel.keys():
            from oldlight.envs.impaired_parts import ImpairedParts

            return ImpairedParts(*given, **how)
        return super().__new__(cls)

    def __init__(
        self,
        env: gym.Env[Any, Any],
        channel: Link,
        *,
        rewards: Rewards = "immediate",
        actuation: int = 0,
        pending: Sequence[Any] | None = None,
        in_order: bool = True,
        queue: int | None = None,
        clock: bool = False,
        horizon: int | None = None,
        hindsight: bool = True,
        reveal: bool = False,
        ends: Rewards = "immediate",
    ) -> None:
        if isinstance(env, gym.vector.VectorEnv):
            raise TypeError(
                "ImpairedObservation wraps one environment: gym.make_vec(id, num_envs=N, vectorization_mode='sync', "
                "wrappers=[lambda env: ImpairedObservation(env, channel)])"
            )
        RecordConstructorArgs.__init__(
            self, channel=as_data(channel), rewards=rewards, actuation=actuation, pending=as_data(pending), in_order=in_order,
            queue=queue, clock=clock, horizon=horizon, hindsight=hindsight, reveal=reveal, ends=ends,
        )  # fmt: skip
        gym.Wrapper.__init__(self, env)
        self.late_rewards = checks.one_of("rewards", rewards, REWARDS) == "delayed"
        self.actuation = checks.whole("actuation", actuation)
        self.horizon = longest_episode(env) if horizon is None else checks.whole("horizon", horizon, least=1)
        self.pending = under_way_at_start(env.action_space, pending, self.actuation)
        self._in_order, self._keeps, self._chosen_for_you = bool(in_order), bool(hindsight), queue is None
        seen, done = env.observation_space, env.action_space
        self._tabular = isinstance(seen, spaces.Discrete) and isinstance(done, spaces.Discrete)
        self._copy = plain_copy(seen)
        self._simple = isinstance(done, spaces.Discrete)
        self._actions = (int(done.start), int(done.start + done.n)) if isinstance(done, spaces.Discrete) else (0, 0)
        self._first_state = int(seen.start) if isinstance(seen, spaces.Discrete) else 0
        self._reveals, self._late_end = bool(reveal), checks.one_of("ends", ends, REWARDS) == "delayed"
        self._plain = self._simple and not (self.late_rewards or self.actuation or self._reveals or self._late_end)
        self._links = drawn_link(channel)
        self._coming = self._samplers(channel)
        self._sampler = self._coming[0]
        places = None if queue is None else checks.whole("queue", queue)
        needed = [places] if places else []
        for sampler in [] if places else self._coming:
            needed.append(default_queue(sampler, self.actuation, note=queue is None))
        ages = max(needed)
        places = ages if places is None else places
        self._view = ObservationView(seen, done, places=places, ages=ages, horizon=self.horizon, ahead=self.actuation, clock=bool(clock))  # fmt: skip
        self.observation_space = self._view.space
        self._rng: np.random.Generator | None = None
        self._playing = self._warned = self._playing_once = False
        self._episode: InOrderEpisode | None = None  # of most links, where all else is plain: played more quickly

    @property
    def queue(self) -> int:
        """How many of the actions since are shown."""
        return self._view.places

    @property
    def channel(self) -> Channel | LinkPerEpisode:
        """The link; a new one holds from the next reset on."""
        return self._links or self._coming[0].channel

    @channel.setter
    def channel(self, given: Link) -> None:
        samplers = self._samplers(given)
        needs = max(default_queue(link, self.actuation) for link in samplers) if self._chosen_for_you else 0
        if needs > self.queue:
            raise ValueError(
                f"channel = {given!r} needs a queue of {needs} actions, and {self.queue} are shown, the default for the channel that the "
                f"environment was made with. Its observation space cannot change: make it with queue={needs}"
            )
        self._coming, self._links = samplers, drawn_link(given)
        self._saved_kwargs = self._saved_kwargs | {"channel": as_data(given), "queue": self.queue}
        self._cached_spec = None

    def _samplers(self, given: Link) -> list[LinkSampler]:
        """One for the channel, or one for each that it is drawn from."""
        links = drawn_link(given)
        return [self._link(channel) for channel in ([given] if links is None else links.channels)]

    def _link(self, channel: Any) -> LinkSampler:
        seen, done = self.env.observation_space, self.env.action_space
        sizes = (int(seen.n), int(done.n)) if self._tabular else None  # type: ignore[attr-defined]
        made = channel_of(channel)
        if not self._in_order and not made.has_delay_law:
            raise ValueError(
                f"in_order=False is for a delay channel, whose observations it lets overtake each other; leave it out with {made!r}, which "
                "says itself what overtakes"
            )
        return LinkSampler(made, horizon=self.horizon, sizes=sizes, in_order=self._in_order)

    # -- episodes -----------------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None, show: Show | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """A new episode: nothing of the last one is left. A seed decides what the link draws too; options["channel"] is a new channel."""
        show = self._view.show if show is None else show
        self._heed(wrappers_around(self), options)
        if seed is not None or self._rng is None:
            self._rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(STREAM,))))
        others = {key: value for key, value in (options or {}).items() if key != "channel"}
        observation, info = self.env.reset(seed=seed, options=others or None)
        self._draw_link(info := dict(info))
        sampler, self._episode, self._playing = self._sampler, None, False
        if self._plain and sampler.law is not None and sampler.in_order:
            first = (self._first_state, self._actions[0]) if self._tabular else None
            self._episode = InOrderEpisode(self.queue, sampler, self._copy, keeps=self._keeps, first=first)
            shown, info["arrivals"] = self._episode.begin(self._rng, observation, show)
            return shown, info
        self._now, self._newest, self._heard = 0, -1, -1  # time, newest visible step, when it arrived
        self._sent: dict[int, Any] = {}  # observations by step: the newest one and those that may still come
        self._chosen = deque(map(copied, self.pending), maxlen=max(self.queue, self.actuation, 1))  # the newest actions
        self._unpaid: dict[int, float] = {}  # rewards by the step of the observation that brings them
        self._owed = 0.0  # rewards whose observations were lost
        self._record: dict[str, list[Any]] = {name: [] for name in ("observations", "actions", "rewards", "arrivals")}
        self._acted, self._earned = self._record["actions"], self._record["rewards"]
        self._revealed, self._arrived = self._record["observations"], self._record["arrivals"]
        self._playing, self._counts = True, LinkStatistics()
        self._over_at: int | None = None  # the step at which the environment ended, while the agent does not know
        info["arrivals"] = self._deliver(observation, self._sampler.begin(self._rng))
        if self._reveals:
            info["present"] = self._copy(observation)
        return self._shown(show), info

    def _draw_link(self, info: dict[str, Any]) -> None:
        """The link of this episode."""
        assert self._rng is not None
        links = self._links
        if links is None:
            self._sampler = self._coming[0]
            return
        if not (links.once and self._sampler in self._coming and self._playing_once):
            self._sampler = self._coming[links.number(self._rng)]
            self._playing_once = True
        info["channel"] = self._sampler.channel

    def _heed(self, wrappers: Sequence[Any], options: Mapping[str, Any] | None) -> None:
        """A channel given with the reset, or set on a wrapper outside; and a time limit there."""
        given = (options or {}).get("channel", take_channel(wrappers))
        if given is not None:
            self.channel = given
        outside = wrappers if self.late_rewards and not self._warned else []
        limits = [int(w._max_episode_steps) for w in outside if isinstance(w, gym.wrappers.TimeLimit)]
        if limits and min(limits) < (self.horizon or np.inf):
            self._warned = True
            gym.logger.warn(
                f"TimeLimit({min(limits)}) is outside of ImpairedObservation, which does not see the end that it makes: rewards that are "
                "under way then are never paid. Put it inside: ImpairedObservation(TimeLimit(env, "
                f'{min(limits)}), channel, rewards="delayed")'
            )

    def step(self, action: Any, *, show: Show | None = None) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step. What the action space does not hold is refused, and so is a step beyond `horizon`; then nothing has changed. `show` makes
        what is shown, instead of the Dict, of the same arguments as `ObservationView.show`."""
        episode, show = self._episode, self._view.show if show is None else show
        if not self._playing and (episode is None or episode.over):
            raise gym.error.ResetNeeded("the episode has ended, or never begun: call reset() first")
        if (self._now if episode is None else episode.now) == self.horizon:
            raise ValueError(
                f"the episode is longer than the {self.horizon} steps of its horizon; say how long it can be, horizon=..., or end it: "
                f"gymnasium.wrappers.TimeLimit(env, {self.horizon}) inside"
            )
        low, high = self._actions
        if not (self._simple and type(action) in WHOLE and low <= action < high):  # what a Discrete space holds
            action = fitted(self.env.action_space, action)
        if episode is not None:
            return episode.step(self.env, action, show)
        acts = self._chosen[-self.actuation] if self.actuation else action
        if self._simple:
            chosen, acted = action, acts
        else:
            chosen, acts = copied(action), copied(acts)
            acted = copied(acts)
        if self._over_at is None:
            observation, reward, terminated, truncated, info = self.env.step(acts)
        else:
            observation, reward, terminated, truncated, info = self._last, 0.0, True, False, {}
        self._chosen.append(chosen)
        now = self._sampler.send(self._state, int(acts) - low) if self._tabular else self._sampler.send()
        self._now += 1
        reward = float(reward)
        if self.late_rewards:
            self._unpaid[self._now] = reward
        if self._keeps:
            self._acted.append(acted)
            self._earned.append(reward)
        info = dict(info)
        info["arrivals"] = self._deliver(observation, now)
        if self._reveals:
            info["present"] = self._copy(observation)
        if self._late_end and terminated:
            terminated = self._known_end(observation)
        shown = self._shown(show)
        over = bool(terminated or truncated)
        if over:
            self._playing = False
            rest = self._deliver_the_rest()
            info["link"] = self._counts.summary(self._now + 1, sum(seen is not None for _, seen in rest))
            info["arrivals"] += rest
            if self._keeps:
                info["hindsight"] = self._record  # nobody else has any of it
        paid = self._pay(over) if self.late_rewards else reward
        return shown, paid, bool(terminated), bool(truncated), info

    def _known_end(self, observation: Any) -> bool:
        """The environment has ended: does the agent know?"""
        if self._over_at is None:
            self._over_at, self._last = self._now, self._copy(observation)
        return self._newest >= self._over_at or self._now == self.horizon

    def _deliver(self, observation: Any, now: Delivery) -> list[tuple[int, Any]]:
        """The newest observation is sent; what arrives now moves the newest visible step on. What can come no more is forgotten."""
        time, sent, copy, silent, newest = self._now, self._sent, self._copy, self._sampler.silent, self._newest
        if self._tabular:
            self._state = int(observation) - self._first_state
        sent[time] = copy(observation)
        if self._keeps:
            self._revealed.append(None)
            self._arrived.append(-1)
        news: list[tuple[int, Any]] = []
        for i in now.arrived:
            if i >= 0:
                self._reveal(i, time)
                news.append((i, copy(sent[i])))
                if silent:
                    self._counts.arrived(i)
                else:
                    self._counts.came += 1
            else:
                news.append((i, None))
            gone = newest if i > newest else i
            if i > newest:
                newest = self._newest = i
                self._heard = time
            if not silent:
                sent.pop(gone, None)
        for i in now.lost:
            news.append((i, None))
            sent.pop(i, None)
        if silent:
            for i in [i for i in sent if i != newest and not self._sampler.may_come(i)]:
                del sent[i]
                self._counts.pending.discard(i)
        return news

    def _reveal(self, i: int, when: int) -> None:
        """The observation of step i arrives at time `when`: keep both, if that is the first time."""
        if self._keeps and self._arrived[i] < 0:
            self._arrived[i], self._revealed[i] = when, self._sent[i]

    def _deliver_the_rest(self) -> list[tuple[int, Any]]:
        rest = self._sampler.under_way()
        for i, when, lost in rest:
            if not lost:
                self._reveal(i, when)
        return [(i, None if lost else copied(self._sent[i])) for i, _, lost in rest]

    def _shown(self, show: Show) -> Any:
        now, newest, ahead, counts = self._now, self._newest, self.actuation, self._counts
        seen = newest >= 0
        age = now - newest + ahead if seen else now + ahead
        waited = now - self._heard if seen else age + 1
        counts.ages += age
        counts.decisions += 1
        if waited > counts.longest:
            counts.longest = waited
        since = tuple(self._chosen)
        if len(since) > age:
            since = since[len(since) - age :]
        return show(self._sent[newest] if seen else None, seen, age, waited, now + ahead, since)

    def _pay(self, over: bool) -> float:
        """What is paid now where rewards travel: all that the newest observation brings; at the end the rest."""
        until = self._now if over else self._newest
        brought = [i for i in self._unpaid if i <= until]
        paid = 0.0
        if brought:
            paid, self._owed = self._owed, 0.0
            for i in brought:
                paid += self._unpaid.pop(i)
        for i in list(self._unpaid):
            if i in self._sent:  # under way: it, and those behind it, can still be brought by their own observations
                break
            self._owed += self._unpaid.pop(i)
        return paid
