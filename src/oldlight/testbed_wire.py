"""What the processes of a testbed share: datagrams, a leash, and how the relay delays and drops.

A datagram is one JSON object on loopback UDP. A process listens on a port that the system chose and takes datagrams from its
peers only; what it cannot read it ignores. Every wait is short, and between waits a process looks at its leash: the pipe from the
process that started it (a word on it, or its end, means stop) and the time by which all must be over.
"""

from __future__ import annotations

import json
import select
import socket
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.channels import Channel, ConstantDelay, LossChannel, Lossy
from oldlight.problem import ImpairedMDP

Message = dict[str, Any]
GLANCE = 0.05  # seconds between two looks at the leash
PLANT, RELAY, CONTROLLER = "plant", "relay", "controller"


class Stopped(Exception):
    """The leash was pulled."""


@dataclass(frozen=True, eq=False)
class Recorded:
    """A trace in ticks: late[i] and lost[i] of each message, and whether they are to be put in order."""

    late: NDArray[np.int64]
    lost: NDArray[np.bool_]
    in_order: bool


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
        """The luck of one process in one episode."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(purpose, episode)))

    def tick_time(self, begin: float, episode: int, h: float) -> float:
        """When tick h of an episode is, in real time; a tick of rest stands between episodes."""
        assert self.period_s is not None
        return begin + (episode * (self.problem.horizon + 1) + h) * self.period_s


class Leash:
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

    def __init__(self, leash: Leash) -> None:
        self.leash = leash
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

    def receive(self, until: float) -> Message | None:
        """The next datagram from a peer, or None when it is `until` (time.monotonic())."""
        while True:
            self.leash.check()
            left = until - time.monotonic()
            if select.select([self.socket], [], [], min(max(left, 0.0), GLANCE))[0]:
                message = self._taken()
                if message is not None:
                    return message
            elif left <= 0:
                return None

    def _taken(self) -> Message | None:
        try:
            data, (host, number) = self.socket.recvfrom(65536)
            message = json.loads(data)
        except (OSError, ValueError):
            return None
        known = host == "127.0.0.1" and number in self.peers.values() and isinstance(message, dict)
        return message if known else None

    def close(self) -> None:
        self.socket.close()


class Delays:
    """How late each observation of an episode is, in ticks, or None if it is lost: drawn from the link's law, or as recorded."""

    def __init__(self, setup: Setup) -> None:
        self.setup, problem, link = setup, setup.problem, setup.link
        if isinstance(link, Recorded):
            return
        delay = link.delay if isinstance(link, Lossy) else ConstantDelay(0) if isinstance(link, LossChannel) else link
        self.loss = link.loss if isinstance(link, Lossy) else link if isinstance(link, LossChannel) else None
        self.law = delay.law(problem.horizon, problem.n_states, problem.n_actions)

    def begin(self, episode: int) -> None:
        setup, H = self.setup, self.setup.problem.horizon
        self.rng = setup.generator(1, episode)
        self.d = 0
        if isinstance(setup.link, Recorded):
            self.start = int(self.rng.integers(0, len(setup.link.late) - H + 1))
        else:
            self.lost = np.zeros(H, dtype=bool) if self.loss is None else self.loss.lost(self.rng, H, 1)[:, 0]

    def of(self, step: int, state_before: int | None, action_before: int | None) -> int | None:
        """The delay of the next step in order; what the process was in and did the step before decides the law."""
        link, lead = self.setup.link, self.setup.problem.lead
        if isinstance(link, Recorded):
            i = self.start + step
            self.d = max(self.d, int(link.late[i])) if link.in_order else int(link.late[i])
            return None if link.lost[i] else self.d
        if step == -lead:
            self.d = min(int(self.rng.choice(len(self.law.first), p=self.law.first)), self.law.cap)
        if step <= 0:
            return lead if lead else None if self.lost[0] else self.d
        if not lead:
            row = self.law.at_step(self.law.interarrival, step - 1)
            s, a = state_before or 0, action_before or 0
            pmf = row[min(s, row.shape[0] - 1), min(a, row.shape[1] - 1)]
            self.d = min(self.d + int(self.rng.choice(len(pmf), p=pmf)), self.law.cap)
        return None if self.lost[step] else lead or self.d
