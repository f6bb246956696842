"""How a link without a delay law is played: step by step, for many runs at once, from given uniform draws.

Two kinds of links. One sends *messages*: the observation of step i takes so many steps, or is lost silently, and that is settled
when it is sent (`MessageLink.fate`). The other *shows* an observation of some age at each time (`AgeLink.shown`): a buffer that is
read, or an age that was counted; nothing is known of messages that it never shows.

Both `tell` at time i one step and the time at which its observation arrives; the state of the link is one whole number per run, 0 before
step 0. The draws are given, so that a run does the same alone, among others, and on every machine; no horizon is needed.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from oldlight.arrays import Floats, Ints
from oldlight.model.channels.automaton import NOTHING_NEWER
from oldlight.model.channels.channel import Channel

NEVER = -1  # the arrival time of what is lost


class SteppedLink(Channel):
    """What both kinds have in common. draws: uniform numbers that a run takes at each time."""

    draws = 1
    sends_messages = True  # is what becomes of an observation settled when it is sent?

    @property
    @abstractmethod
    def longest(self) -> int:
        """The largest age with which an observation can arrive."""

    @property
    def oldest(self) -> int | None:
        """The largest age that the newest visible observation can have; None where it can grow without end."""
        return None

    @abstractmethod
    def tell(self, i: Ints, link: Ints, u: Floats) -> tuple[Ints, Ints, Ints]:
        """At time i of each run, u[draw, run]: (step, when, link): the observation of `step` arrives at time `when`, or NEVER; and the
        link's state after that."""


class MessageLink(SteppedLink):
    """Observations are messages: what becomes of one is settled when it is sent."""

    @abstractmethod
    def fate(self, i: Ints, link: Ints, u: Floats) -> tuple[Ints, Ints]:
        """(delay, link) of the message of step i in each run: how many steps it takes, −1 if it is lost silently."""

    def tell(self, i: Ints, link: Ints, u: Floats) -> tuple[Ints, Ints, Ints]:
        delay, after = self.fate(i, link, u)
        return i, np.where(delay < 0, NEVER, i + delay), after


class AgeLink(SteppedLink):
    """Each time shows the observation of some age, or nothing new."""

    sends_messages = False

    @abstractmethod
    def shown(self, h: Ints, link: Ints, u: Floats) -> tuple[Ints, Ints]:
        """(age, link): the age of the observation that is shown at time h (more than h: one of before the episode), or NOTHING_NEWER."""

    def tell(self, i: Ints, link: Ints, u: Floats) -> tuple[Ints, Ints, Ints]:
        age, after = self.shown(i, link, u)
        nothing = age == NOTHING_NEWER
        return np.where(nothing, i, i - age), np.where(nothing, NEVER, i), after


def arrivals_of(link: SteppedLink, rng: np.random.Generator, horizon: int, runs: int) -> Ints:
    """When the observation of each step 0..horizon − 1 arrives first, axes (step, run); NEVER where it does not."""
    out, at = np.full((horizon, runs), NEVER), np.zeros(runs, dtype=np.int64)
    each = np.arange(runs)
    for i in range(horizon):
        step, when, at = link.tell(np.full(runs, i), at, rng.random((link.draws, runs)))
        told = (step >= 0) & (when >= 0)
        told[told] &= out[step[told], each[told]] < 0
        out[step[told], each[told]] = when[told]
    return out
