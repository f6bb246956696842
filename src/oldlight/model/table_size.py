"""Is there room for a table that a file asks for? Asked before it is made."""

from __future__ import annotations

import math

from oldlight import machine
from oldlight.checks import TooLarge


def check_room(source: object, what: str, *shape: int) -> None:
    """Refuse a table of numbers that takes more than half of the memory."""
    size, limit = 8 * math.prod(shape), machine.default_limit()
    if size > limit:
        raise TooLarge(
            f"{source}: {what} takes {machine.format_bytes(size)}; it may take {machine.format_bytes(limit)}, half of the memory"
        )
