"""Delays in milliseconds in a channel as text: constant:40ms@20, packets:10ms=.5,30ms=.5@20.

The number after "@" is the period, how many milliseconds a step has. A delay is rounded up to whole steps, because an observation that
arrives within a step is seen at the next: 30 ms at a period of 20 ms are two steps. The channel keeps the period (`Channel.period_ms`).
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

MILLISECONDS = re.compile(r"(\d+(?:\.\d+)?)ms\b")


def in_steps(text: str, rest: str, before: float | None) -> tuple[str, float]:
    """(what follows the colon of a part of a channel, with steps for milliseconds; the period, by default that of the part before)."""
    numbers, at, given = rest.partition("@")
    if not at and before is None:
        raise ValueError(f"channel {text!r}: {rest} is in milliseconds; say how many a step has, {rest}@20")
    try:
        period = Fraction(given) if at else Fraction(str(before))
    except ValueError:
        period = Fraction(0)
    if period <= 0:
        raise ValueError(
            f"channel {text!r}: {given!r} is no period; expected a number of milliseconds > 0, {numbers}@20"
        )

    def steps(found: re.Match[str]) -> str:
        return str(math.ceil(Fraction(found[1]) / period))

    return MILLISECONDS.sub(steps, numbers), float(period)
