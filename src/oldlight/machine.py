"""What this machine offers: cores, memory, and sizes written for people."""

from __future__ import annotations

import math
import os
from functools import lru_cache


def thread_count() -> int:
    """Cores this process may use, or OLDLIGHT_THREADS."""
    wanted = os.environ.get("OLDLIGHT_THREADS", "")
    if wanted:
        if not wanted.isdecimal() or int(wanted) < 1:
            raise ValueError(f"OLDLIGHT_THREADS is {wanted!r}, expected a whole number ≥ 1")
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache
def default_limit() -> int:
    """Half of this machine's memory, in bytes."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 4 * 2**30


def power(base: int, exponent: int) -> int:
    """base^exponent, or 2^200 if it is more than that: a number that fits nowhere need not be exact."""
    if exponent * math.log2(max(base, 1)) >= 200:
        return int(2**200)
    return int(base**exponent)


def format_bytes(n: int) -> str:
    """A number of bytes as people write it."""
    size = float(n)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            return f"{size:.3g} {unit}" if size < 1000 else f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.3g} PiB" if size < 1000 else f"10^{math.log10(n):.0f} bytes"
