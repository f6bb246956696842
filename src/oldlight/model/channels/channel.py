"""What all channels share: a delay part, a loss part, and a control period, so that steps can be read as milliseconds."""

from __future__ import annotations

import copy
import dataclasses
import math
from typing import TYPE_CHECKING, Any, Self

from oldlight import checks

if TYPE_CHECKING:
    from oldlight.model.channels.automaton import ChannelAutomaton
    from oldlight.model.channels.delays import DelayChannel
    from oldlight.model.channels.losses import LossChannel


class Channel:
    """Base of all channels: `delay` is how late observations are, `loss` which of them are lost (None: none is).

    A channel may carry the control period, so that its steps can be read as milliseconds. Two channels are equal if they are of one
    class with the same parameters and the same control period. Derive a channel of your own from `DelayChannel` or `LossChannel`; as
    a ``dataclass(frozen=True, eq=False)`` it is compared in this way, otherwise as you define it (by default it equals itself only).

    Examples
    --------
    >>> import oldlight as ol
    >>> ol.Lossy(ol.ConstantDelay(2), rate=0.1).delay
    ConstantDelay(d=2)
    >>> ol.ConstantDelay(2) == ol.ConstantDelay(2).with_period(20)
    False
    >>> ol.ConstantDelay(2).with_period(20)
    ConstantDelay(d=2).with_period(20)
    """

    period_ms: float | None = None
    has_delay_law = False  # are observations settled in order, at most one a step, losses announced?
    spacing = 1  # steps between two states that are ever observed, at least: a slow sensor's period
    begins_before = False  # may the link begin with messages of before the episode, of which the agent hears?

    if TYPE_CHECKING:

        @property
        def delay(self) -> DelayChannel:
            """The delay part; a delay of zero steps for a channel that only loses."""

        @property
        def loss(self) -> LossChannel | None:
            """The loss part, or None for a channel that loses nothing."""

    def __getattr__(self, name: str) -> Any:
        if name in ("delay", "loss"):
            from oldlight.model.channels.without_law import no_delay_law

            raise no_delay_law(self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def constant(self) -> int | None:
        """The delay where it is the same number of steps at every horizon; None for every other channel."""
        return None

    def automaton(self, horizon: int) -> ChannelAutomaton:
        """What an agent knows of the link within `horizon` steps."""
        raise TypeError(f"{type(self).__name__} does not define automaton(horizon)")

    def with_period(self, period_ms: float | None) -> Self:
        """The same channel with a control period of `period_ms` milliseconds a step, or with none."""
        same = copy.copy(self)
        object.__setattr__(same, "period_ms", None if period_ms is None else checks.positive("period_ms", period_ms))
        return same

    def _fields(self) -> dict[str, Any]:
        """The fields of a dataclass, parts without a control period: it is that of the whole channel."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        return {
            name: value.with_period(None) if isinstance(value, Channel) else value for name, value in values.items()
        }

    def _parameters(self) -> tuple[Any, ...]:
        """What two equal channels of one class have in common, beside the control period."""
        return tuple(self._fields().values()) if dataclasses.is_dataclass(self) else (id(self),)

    def _written(self) -> str:
        """What stands between the parentheses of its repr."""
        parts: dict[str, Any] = self._fields() if dataclasses.is_dataclass(self) else {}
        return ", ".join(f"{name}={value!r}" for name, value in parts.items())

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__repr__ = cls.__repr__  # type: ignore[method-assign]  # which a dataclass would replace where it is inherited

    def __repr__(self) -> str:
        period = "" if self.period_ms is None else f".with_period({self.period_ms:g})"
        return f"{type(self).__name__}({self._written()}){period}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Channel) or type(self) is not type(other):
            return NotImplemented
        return self.period_ms == other.period_ms and self._parameters() == other._parameters()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.period_ms, self._parameters()))


def steps_of(delay_ms: float, period_ms: float) -> int:
    """The steps after which something that takes `delay_ms` can be used: the first tick at or after its arrival."""
    late = checks.at_least("delay_ms", delay_ms, 0)
    return math.ceil(late / checks.positive("period_ms", period_ms) - 1e-9)
