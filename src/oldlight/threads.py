"""Threads that stay for the next plan or simulation: to start one, and to wait for its end, takes as long as a small plan."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_kept: list[tuple[int, ThreadPoolExecutor]] = []  # at most one, which nobody uses
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_kept.clear)  # a forked process has none of these threads


@contextmanager
def lent_threads(n: int) -> Iterator[ThreadPoolExecutor]:
    """At least n threads for one caller alone, who waits for all that they do; after an error they end.

    Examples
    --------
    >>> from oldlight.threads import lent_threads
    >>> with lent_threads(1) as pool:
    ...     print(pool.submit(sum, [1, 2]).result())
    3
    """
    from concurrent.futures import ThreadPoolExecutor  # small plans need none

    try:
        size, pool = _kept.pop()
    except IndexError:
        size, pool = n, ThreadPoolExecutor(n)
    if size < n:
        pool.shutdown(wait=False)
        size, pool = n, ThreadPoolExecutor(n)
    try:
        yield pool
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise
    if _kept:  # that of somebody who was quicker
        pool.shutdown(wait=False)
    else:
        _kept.append((size, pool))
