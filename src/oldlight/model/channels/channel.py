"""What all channels share: a control period, so that steps can be read as milliseconds."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Self

from oldlight import checks

if TYPE_CHECKING:
    from oldlight.model.channels.automaton import ChannelAutomaton


class Link:
    """Base of all channels. A channel may carry the control period, so that its steps can be read as milliseconds."""

    period_ms: float | None = None

    def automaton(self, horizon: int) -> ChannelAutomaton:
        """What an agent knows of the link within `horizon` steps."""
        raise TypeError(f"{type(self).__name__} does not define automaton(horizon)")

    def with_period(self, period_ms: float) -> Self:
        """The same channel with a control period of `period_ms` milliseconds a step."""
        same = copy.copy(self)
        object.__setattr__(same, "period_ms", checks.positive("period_ms", period_ms))
        return same


def steps_of(delay_ms: float, period_ms: float) -> int:
    """The steps after which something that takes `delay_ms` can be used: the first tick at or after its arrival."""
    late = checks.real("delay_ms", delay_ms)
    if late < 0:
        raise ValueError(f"delay_ms is {late:.12g}, expected a number ≥ 0")
    return math.ceil(late / checks.positive("period_ms", period_ms) - 1e-9)
