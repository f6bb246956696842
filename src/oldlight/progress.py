"""A progress bar that appears only when somebody is waiting: on a terminal, after two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 2.0  # seconds


@contextmanager
def progress_bar(
    progress: bool | Callable[[int, int], None] | None, title: str
) -> Iterator[Callable[[int, int], None] | None]:
    """The callback(done, total), or None; a bar is drawn if wanted, and taken away at the end."""
    if progress is False or (progress is None and not sys.stderr.isatty()):
        yield None
        return
    if callable(progress):
        yield progress
        return
    began = time.perf_counter()
    bar: Any = None
    task: Any = None

    def callback(done: int, total: int) -> None:
        nonlocal bar, task
        if bar is None and time.perf_counter() - began >= (0 if progress else PATIENCE):
            from rich.console import Console
            from rich.progress import Progress

            bar = Progress(console=Console(stderr=True), transient=True)
            bar.start()
            task = bar.add_task(title, total=total)
        if bar is not None:
            bar.update(task, completed=done, total=total)

    try:
        yield callback
    finally:
        if bar is not None:
            bar.stop()
