"""A tabular process and its link from the keywords of an environment, and back into plain data for its spec."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Literal, NoReturn, TypeAlias, TypedDict

import numpy as np
from gymnasium import spaces

from oldlight import checks
from oldlight.envs.action_link import MISSING, ActionLinks, mixed_process, planned_link
from oldlight.envs.batch_simulator import BatchSimulator
from oldlight.envs.drawn_link import LinkPerEpisode
from oldlight.envs.observation_view import ObservationView
from oldlight.model.channels import Channel, ConstantDelay, Loss
from oldlight.model.mdp import TabularMDP
from oldlight.model.problem import ImpairedMDP, WarmStart
from oldlight.registry import called, channel_data, channel_of, mdp_of, nearest

REWARDS = ("immediate", "delayed")
STARTS = ("cold", "warm")
Rewards: TypeAlias = Literal["immediate", "delayed"]
PLACES = 64  # the most actions shown if nobody says how many


class LinkOptions(TypedDict, total=False):
    """The keywords of `TabularSetup`, for type checkers."""

    channel: Channel | Mapping[str, Any] | str | None
    start: Literal["cold", "warm"]
    rewards: Rewards
    actuation: int
    pending: Sequence[int] | None
    queue: int | None
    action_channel: Channel | Mapping[str, Any] | str | None
    missing: Literal["hold", "default"]
    default: int


LINK = tuple(LinkOptions.__annotations__)  # the keywords of `TabularSetup`


class TabularSetup:
    """The keywords that all tabular environments share; see docs/envs.md.

    channel: None (the state itself is seen), or a channel, as an object, text or data. start: "cold" or "warm". rewards: "immediate" or
    "delayed". actuation, pending: late actions. queue: how many actions are shown; None: all that can matter, at most 64.
    action_channel, missing, default: the link of the actions, and what is done where one is missing (`oldlight.envs.action_link`).

    `problem` is what is played; `planned` is the same for planners, or `unplanned` their refusal.
    """

    def __init__(
        self,
        mdp: TabularMDP | Mapping[str, Any] | str,
        *,
        channel: Channel | Mapping[str, Any] | str | None = None,
        start: Literal["cold", "warm"] = "cold",
        rewards: Rewards = "immediate",
        actuation: int = 0,
        pending: Sequence[int] | None = None,
        queue: int | None = None,
        action_channel: Channel | Mapping[str, Any] | str | None = None,
        missing: Literal["hold", "default"] = "hold",
        default: int = 0,
    ) -> None:
        self.mdp = read_mdp(mdp)
        self.plain = channel is None
        link = ConstantDelay(0) if channel is None else channel_of(channel)
        warm = WarmStart() if checks.one_of("start", start, STARTS) == "warm" else None
        self.default = checks.whole("default", default, most=self.mdp.n_actions - 1)
        self.holds = checks.one_of("missing", missing, MISSING) == "hold"
        self.problem = ImpairedMDP(self.mdp, link, start=warm, actuation=actuation, pending=pending)
        self.planned, self.unplanned = self.problem, ""
        self.action_channel: Channel | None = None  # what is left to play beside a constant delay
        if action_channel is not None:
            self._late_actions(channel_of(action_channel), missing)
        self.late_rewards = checks.one_of("rewards", rewards, REWARDS) == "delayed"
        longest = min(BatchSimulator.longest_queue(self.problem), PLACES)
        self.places = longest if queue is None else checks.whole("queue", queue)
        S, A = self.problem.n_states, self.problem.n_actions
        self.action_space = spaces.Discrete(A)
        self.observation_space: spaces.Space[Any] = spaces.Discrete(S)
        if self.plain:
            if (
                self.problem.actuation
                or action_channel is not None
                or self.late_rewards
                or self.problem.warmup
                or queue
            ):
                raise ValueError(
                    "without a channel the state itself is the observation; late or lost actions, a warm start, late rewards and a queue need "
                    'one: channel="none" shows the same Dict as any link, with nothing late or lost'
                )
            return
        view = ObservationView(self.observation_space, self.action_space, places=self.places, ages=self.places or longest,
                    horizon=self.problem.horizon, ahead=self.problem.actuation, clock=True)  # fmt: skip
        self.observation_space = view.space

    def _late_actions(self, link: Channel, missing: str) -> None:
        """The link of the actions as late actions where that is the same; what is left of it is played."""
        problem = self.problem
        try:
            late, lost = planned_link(link, missing)
        except ValueError as error:
            if problem.actuation:
                raise ValueError(
                    f"actuation is {problem.actuation} beside a link of the actions that is not a constant delay; put the delay into the link, for "
                    f"example packets:1=.5,2=.5+loss:0.1. The link is {link!r}"
                ) from None
            late, lost, self.unplanned, self.action_channel = 0, 0.0, str(error), link
        pending = (self.default,) * late + problem.pending
        how: dict[str, Any] = {"start": problem.start, "actuation": late + problem.actuation, "pending": pending}
        self.problem = ImpairedMDP(self.mdp, problem.channel, **how)
        self.planned = self.problem
        if lost:
            self.action_channel = Loss(rate=lost)
            self.planned = ImpairedMDP(mixed_process(self.mdp, self.default, lost), problem.channel, **how)

    def simulator(self, n: int) -> BatchSimulator:
        actions = None
        if self.action_channel is not None:
            actions = ActionLinks(self.action_channel, self.problem.horizon, n, holds=self.holds, default=self.default)
        return BatchSimulator(self.problem, n, late_rewards=self.late_rewards, places=self.places, actions=actions)


class OneProblem:
    """What tabular environments, single and vector, have in common: a problem that stays as it is, and a spec of plain data."""

    _setup: TabularSetup
    _spec: Any = None

    @property
    def problem(self) -> ImpairedMDP:
        """The process, the link and the start (of each copy), for planners; refused where a link of the actions cannot be planned."""
        if self._setup.unplanned:
            raise ValueError(self._setup.unplanned)
        return self._setup.planned

    @property
    def channel(self) -> Channel:
        """The link (of each copy), which cannot be changed."""
        return self._setup.problem.channel

    @channel.setter
    def channel(self, given: Any) -> None:
        refuse_channel(given)

    @property
    def spec(self) -> Any:
        """The spec of Gymnasium, with plain data only."""
        return self._spec

    @spec.setter
    def spec(self, value: Any) -> None:
        self._spec = plain_spec(value)


def refuse_channel(given: Any) -> NoReturn:
    """A tabular environment keeps its link: its problem, and every plan made of it, is for this one."""
    raise ValueError(
        f"channel = {given!r}: a tabular environment keeps the channel that it was made with. Make another one, gym.make(id, channel=...), "
        "or wrap one that was made without a channel: ImpairedObservation(gym.make(id), channel) takes a new one at each reset"
    )


def split_keywords(
    make: Callable[..., Any], given: Mapping[str, Any], others: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The keywords for `make`, and the `others`; one that neither knows is refused, with the nearest right one."""
    own = list(inspect.signature(make).parameters)
    for name in given:
        if name not in own and name not in others:
            raise TypeError(f"there is no keyword {name!r}{nearest(name, [*own, *others])}")
    return {k: v for k, v in given.items() if k in own}, {k: v for k, v in given.items() if k not in own}


def read_mdp(given: TabularMDP | Mapping[str, Any] | str) -> TabularMDP:
    """A process, its words, or its data: {"name": ...} or the arguments of `TabularMDP`."""
    if isinstance(given, Mapping) and "transitions" in given:
        made: TabularMDP = called("mdp", TabularMDP, (), given)
        return made
    return mdp_of(given)


def as_data(value: Any) -> Any:
    """A keyword as plain JSON values, so that a spec can be written to a file; what has no such form stays."""
    if isinstance(value, Channel):
        try:
            return channel_data(value)
        except TypeError:
            return value
    if isinstance(value, TabularMDP):
        parts = value.__getstate__() | ({"transitions": value.triples()} if value.sparse else {})
        return {name: as_data(part) for name, part in parts.items() if part is not None}
    if isinstance(value, LinkPerEpisode):
        return value.to_data()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: as_data(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_data(part) for part in value]
    return value


def plain_spec(spec: Any) -> Any:
    """The spec with plain keywords (a copy)."""
    if spec is None:
        return None
    same = copy.copy(spec)
    same.kwargs = as_data(spec.kwargs)
    return same
