"""Delays as they were measured: a histogram in whole steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from oldlight import checks
from oldlight.arrays import Floats
from oldlight.model.channels.channel import steps_of
from oldlight.model.channels.delay_law import DelayLaw
from oldlight.model.channels.delays import DelayChannel, write_out

LONGEST = 10**6  # steps: a longer measured delay is a mistake of units


class EmpiricalDelay(DelayChannel):
    """Laws read off measurements, in whole steps.

    Parameters
    ----------
    delays : iterable of int or {int: float}, optional
        Measured delays of a first observation: samples ``[1, 2, 2, 3]`` or weights ``{1: .31, 2: .59, 3: .10}``. If None, the first state is
        seen at once.
    interarrival : iterable of int or {int: float}, optional
        Measured interarrival times Δ, in the same two forms. If None, the delay of an episode stays as it began.

    Examples
    --------
    >>> from oldlight import EmpiricalDelay
    >>> EmpiricalDelay([1, 2, 2, 3])
    EmpiricalDelay({1: 0.25, 2: 0.5, 3: 0.25}, interarrival={0: 1})
    """

    def __init__(
        self,
        delays: Iterable[int] | Mapping[int, float] | None = None,
        *,
        interarrival: Iterable[int] | Mapping[int, float] | None = None,
    ) -> None:
        if delays is None and interarrival is None:
            raise ValueError(
                "EmpiricalDelay needs measured delays or interarrival times, e.g. EmpiricalDelay([1, 2, 2])"
            )
        self.first = _histogram("delays", [0] if delays is None else delays)
        self.interarrival = _histogram("interarrival", [0] if interarrival is None else interarrival)

    @classmethod
    def from_ms(cls, delays_ms: Iterable[float] | Mapping[float, float], *, period_ms: float) -> EmpiricalDelay:
        """Measured delays in milliseconds, samples or weights, at a control period of `period_ms`: rounded up to steps."""
        weights: dict[int, float] = {}
        for delay, weight in _pairs("delays_ms", delays_ms):
            late = steps_of(delay, period_ms)
            weights[late] = weights.get(late, 0.0) + weight
        return cls(weights).with_period(period_ms)

    def law(self, horizon: int, n_states: int, n_actions: int) -> DelayLaw:
        return write_out(self.first, self.interarrival, horizon, n_states, n_actions, who="EmpiricalDelay")

    def _parameters(self) -> tuple[Any, ...]:
        return (self.interarrival.shape, self.interarrival.tobytes(), self.first.tobytes())

    def _written(self) -> str:
        shown = [
            "{" + ", ".join(f"{k}: {p:.6g}" for k, p in enumerate(pmf) if p > 0) + "}"
            for pmf in (self.first, self.interarrival)
        ]
        return f"{shown[0]}, interarrival={shown[1]}"


def _pairs(name: str, values: Any) -> list[tuple[Any, float]]:
    """Samples or weights as (value, weight) pairs."""
    if not isinstance(values, Iterable):
        raise ValueError(
            f"EmpiricalDelay: {name} is {values!r}, expected samples [1, 2, 2] or weights {{1: .3, 2: .7}}"
        )
    pairs = list(values.items()) if isinstance(values, Mapping) else [(v, 1.0) for v in values]
    if not pairs:
        raise ValueError(f"EmpiricalDelay: {name} is empty; expected at least one measurement")
    return [(k, checks.real(f"EmpiricalDelay: {name}[{k}]", w)) for k, w in pairs]


def _histogram(name: str, values: Iterable[int] | Mapping[int, float]) -> Floats:
    pairs = _pairs(name, values)
    steps = [checks.whole(f"EmpiricalDelay: {name}: a measured value", k, most=LONGEST) for k, _ in pairs]
    weights = [w for _, w in pairs]
    if min(weights) < 0 or sum(weights) <= 0:
        raise ValueError(f"EmpiricalDelay: {name}: weights {weights[:6]} must be ≥ 0 and not all 0")
    return checks.frozen(np.bincount(steps, weights) / sum(weights))
