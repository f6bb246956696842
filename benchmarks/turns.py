"""Pieces of work timed in turn: a shared machine has slow seconds, and what is compared should meet the same ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

TURN = 0.15  # seconds that a piece of work is repeated for before the next has its turn: what is short is repeated as long as what is long


def best(repeats: int, **work: Callable[[], Any]) -> dict[str, float]:
    """The shortest time of each piece of work, in seconds: each is done in turn, `repeats` turns of once or of `TURN` seconds, after one round to warm up."""
    for do in work.values():
        do()
    times = dict.fromkeys(work, float("inf"))
    for _ in range(repeats):
        for name, do in work.items():
            turn = now = time.perf_counter()
            while now - turn < TURN:
                began = now
                do()
                now = time.perf_counter()
                times[name] = min(times[name], now - began)
    return times
