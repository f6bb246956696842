"""What the processes of a testbed share: datagrams, a watchdog, and how the relay delays and drops.

A datagram is one JSON object on loopback UDP. A process listens on a port that the system chose. It looks at the sender first, and
reads nothing from anybody but its peers; of those it ignores what it cannot read, and what is not of a form that it waits for
(`FIELDS`: whole numbers in their ranges). Every wait is short, and between waits a process looks at its watchdog: the pipe from the
process that started it (a word on it, or its end, means stop) and the time by which all must be over.
"""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oldlight import files
from oldlight.model.channels import Channel
from oldlight.model.problem import ImpairedMDP
from oldlight.simulation.link_sampler import LinkSampler

Message = dict[str, Any]
Forms = Mapping[str, tuple[str, ...]]  # of each kind of message the fields that it has
GLANCE = 0.05  # seconds between two looks at the watchdog
PLANT, RELAY, CONTROLLER = "plant", "relay", "controller"


class Stopped(Exception):
    """The run is over: the parent is gone, or its time is."""


@dataclass(frozen=True, eq=False)
class Recorded:
    """A trace in ticks: late[i] and lost[i] of each message, whether they are to be put in order, where episodes may begin, and, for a plan
    behind an age chain, the age of the link at each tick."""

    late: NDArray[np.int64]
    lost: NDArray[np.bool_]
    in_order: bool
    starts: NDArray[np.int64]
    ages: NDArray[np.int64] | None = None

    def before(self, start: int, horizon: int) -> dict[int, list[int]]:
        """Messages of before an episode that are the newest at one of its ticks, as negative steps, by the tick."""
        if self.ages is None:
            return {}
        ages = self.ages[start : start + horizon].tolist()
        news = [h for h, age in enumerate(ages) if age > h and (h == 0 or age <= ages[h - 1])]
        return {h: [h - ages[h]] for h in news}


@dataclass(frozen=True, eq=False)
class Setup:
    """What every process is told. period_s: seconds of a tick of the wall clock, or None for lock-step."""

    problem: ImpairedMDP
    controller: Any
    link: Channel | Recorded
    episodes: int
    seed: int
    period_s: float | None
    deadline: float  # time.monotonic() by which all must be over
    patience: float = 0.25  # seconds before a tick without an answer is sent again
    tries: int = 40

    def generator(self, purpose: int, episode: int) -> np.random.Generator:
        """The random stream of one process in one episode."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(purpose, episode)))

    def tick_time(self, begin: float, episode: int, h: float) -> float:
        """When tick h of an episode is, in real time; a tick of rest stands between episodes."""
        assert self.period_s is not None
        return begin + (episode * (self.problem.horizon + 1) + h) * self.period_s


def _in(value: Any, low: int, high: int) -> bool:
    return type(value) is int and low <= value < high


def _before(row: Any, setup: Setup) -> bool:
    """[state, action] of the step before, or [None, None]."""
    problem = setup.problem
    sizes = (problem.n_states, problem.n_actions)
    return (
        isinstance(row, list)
        and len(row) == 2
        and all(x is None or _in(x, 0, n) for x, n in zip(row, sizes, strict=True))
    )


def _seen(row: Any, setup: Setup) -> bool:
    """[step, state, state before, action before]."""
    good = isinstance(row, list) and len(row) == 4 and FIELDS["step"](row[0], setup) and FIELDS["state"](row[1], setup)
    return good and _before(row[2:], setup)


def _each(good: Callable[[Any, Setup], bool]) -> Callable[[Any, Setup], bool]:
    return lambda value, setup: isinstance(value, list) and all(good(each, setup) for each in value)


_actions = _each(lambda value, setup: _in(value, 0, setup.problem.n_actions))
FIELDS: dict[str, Callable[[Any, Setup], bool]] = {  # of each field of a message: is it what it should be?
    "e": lambda value, setup: _in(value, 0, setup.episodes),
    "h": lambda value, setup: _in(value, 0, setup.problem.horizon),
    "a": lambda value, setup: _in(value, 0, setup.problem.n_actions),
    "step": lambda value, setup: _in(value, -setup.problem.warmup, setup.problem.horizon),
    "state": lambda value, setup: _in(value, 0, setup.problem.n_states),
    "before": _before,
    "new": _each(_seen),
    "past": lambda value, setup: _actions(value, setup) and len(value) == setup.problem.warmup,
    "steps": _each(lambda value, setup: _in(value, -setup.problem.warmup, setup.problem.horizon)),
    "news": _each(lambda value, setup: type(value) is int and value < setup.problem.horizon),
    "due": lambda value, setup: type(value) is int,
}


class Watchdog:
    """The pipe to the process that started this one, and the time by which all must be over."""

    def __init__(self, pipe: Any, deadline: float) -> None:
        self.pipe, self.deadline = pipe, deadline

    def check(self) -> None:
        if time.monotonic() > self.deadline:
            raise TimeoutError("the time for the whole run is over")
        if self.pipe.poll(0):
            raise Stopped


class Port:
    """A UDP socket on loopback, and the addresses of its peers by name."""

    def __init__(self, watchdog: Watchdog, setup: Setup) -> None:
        self.watchdog, self.setup = watchdog, setup
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**20)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.setblocking(False)
        self.number = int(self.socket.getsockname()[1])
        self.peers: dict[str, int] = {}
        self.sent = 0

    def send(self, peer: str, message: Message) -> None:
        self.socket.sendto(json.dumps(message, separators=(",", ":")).encode(), ("127.0.0.1", self.peers[peer]))
        self.sent += 1

    def receive(self, until: float, forms: Forms) -> Message | None:
        """The next message from a peer of one of these forms, or None when it is `until` (time.monotonic())."""
        while True:
            self.watchdog.check()
            left = until - time.monotonic()
            if select.select([self.socket], [], [], min(max(left, 0.0), GLANCE))[0]:
                message = self._taken(forms)
                if message is not None:
                    return message
            if left <= 0:  # also while strangers send one datagram after the other
                return None

    def _taken(self, forms: Forms) -> Message | None:
        try:
            data, (host, number) = self.socket.recvfrom(65536)
            if host != "127.0.0.1" or number not in self.peers.values():
                return None
            message = files.json_of(data)
        except (OSError, ValueError):
            return None
        kind = message.get("kind") if isinstance(message, dict) else None
        if not isinstance(kind, str) or kind not in forms:
            return None
        good = all(FIELDS[name](message.get(name), self.setup) for name in forms[kind])
        return message if good else None

    def close(self) -> None:
        self.socket.close()


class Fate(NamedTuple):
    """What becomes of one observation: the ticks after which it arrives (none: it is lost; several: it is shown again), and those after
    which it is announced as lost, if it is."""

    late: tuple[int, ...]
    announced: int | None = None


class Delays:
    """What becomes of the observations of an episode: drawn from the link by its sampler, or as recorded.

    before[h]: messages of before the episode that are heard at tick h, as negative steps (`AgeChain` alone has them).
    """

    def __init__(self, setup: Setup) -> None:
        self.setup, problem, link = setup, setup.problem, setup.link
        self.before: dict[int, list[int]] = {}
        if not isinstance(link, Recorded):
            sizes = (problem.n_states, problem.n_actions)
            self.sampler = LinkSampler(link, horizon=problem.horizon, sizes=sizes)

    def begin(self, episode: int) -> None:
        setup, H = self.setup, self.setup.problem.horizon
        self.rng = setup.generator(1, episode)
        self.d = 0
        if isinstance(setup.link, Recorded):
            self.start = int(setup.link.starts[self.rng.integers(0, len(setup.link.starts))])
            self.before = setup.link.before(self.start, H)
        elif self.sampler.law is None:
            self._draw(H)

    def _draw(self, H: int) -> None:
        """A whole episode of a link that does not depend on the process."""
        self.before = {}
        self.late: list[list[int]] = [[] for _ in range(H)]
        for h in range(H):
            arrived = (self.sampler.send() if h else self.sampler.begin(self.rng)).arrived
            for i in arrived:
                if i >= 0:
                    self.late[i].append(h - i)
            self.before[h] = [i for i in arrived if i < 0]
        for i, when, _ in self.sampler.under_way():
            self.late[i].append(when - i)

    def of(self, step: int, state_before: int | None, action_before: int | None) -> Fate:
        """The fate of the next step in order; what the process was in and did the step before decides a delay law."""
        link, warmup = self.setup.link, self.setup.problem.warmup
        if isinstance(link, Recorded):
            i = self.start + step
            self.d = max(self.d, int(link.late[i])) if link.in_order else int(link.late[i])
            return Fate(() if link.lost[i] else (self.d,))
        if self.sampler.law is None:
            return Fate(tuple(self.late[step]))
        if warmup:
            return Fate((warmup,))
        law = self.sampler.law
        settles, lost = law.send(state_before or 0, action_before or 0) if step else law.begin(self.rng)
        return Fate((), settles - step) if lost else Fate((settles - step,))
