"""A sensor that is slower than the loop: polling, a camera at a third of the control rate."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from oldlight import checks
from oldlight.arrays import Floats, Ints
from oldlight.model.channels.automaton import NOTHING_NEWER, ChannelAutomaton, Tick
from oldlight.model.channels.messages import MessageLink


@dataclass(frozen=True, eq=False)
class Periodic(MessageLink):
    """The steps offset, offset + every, offset + 2·every, .. are observed, each `delay` steps late; the others never.

    Parameters
    ----------
    every : int
        Period of the sensor in steps, ≥ 1.
    delay : int
        In steps.
    offset : int
        The first step that is observed, in 0..every − 1.

    Examples
    --------
    >>> import numpy as np
    >>> from oldlight import Periodic
    >>> from oldlight.model.channels.messages import arrivals_of
    >>> arrivals_of(Periodic(3, delay=1), np.random.default_rng(0), horizon=7, runs=1)[:, 0].tolist()
    [1, -1, -1, 4, -1, -1, 7]
    """

    every: int
    delay: int = 0  # type: ignore[assignment]  # steps, not the delay part of a channel: it has no delay law
    offset: int = 0
    draws = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "every", checks.whole("Periodic: every", self.every, least=1))
        object.__setattr__(self, "delay", checks.whole("Periodic: delay", self.delay))
        object.__setattr__(self, "offset", checks.whole("Periodic: offset", self.offset, most=self.every - 1))

    def automaton(self, horizon: int) -> ChannelAutomaton:
        d, n, begin = self.delay, self.every, self.offset

        def into(h: int) -> list[Tick]:
            """The tick into time h: nodes are times until the first observation arrives, then phases."""
            node: Hashable = ("before", h) if h < begin + d else (h - begin - d) % n
            return [(1.0, node, d if node == 0 else NOTHING_NEWER)]

        def step(node: Any) -> list[Tick]:
            return into((node[1] if isinstance(node, tuple) else begin + d + node) + 1)

        return ChannelAutomaton.explore(into(0), step, horizon)

    @property
    def spacing(self) -> int:  # type: ignore[override]
        return self.every

    @property
    def longest(self) -> int:
        return self.delay

    @property
    def oldest(self) -> int | None:
        return self.every - 1 + self.delay

    def fate(self, i: Ints, link: Ints, u: Floats) -> tuple[Ints, Ints]:
        return np.where((i - self.offset) % self.every == 0, self.delay, -1), link
