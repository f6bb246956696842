"""One tab of the browser: a worker process of its own, and only its last position is answered.

A tab sends jobs, each with a number; a newer one takes the place of all older ones. While the worker is busy with an older one it is
interrupted (SIGINT, as `oldlight.workers` has it: the plan ends at once), and what it still says about it is dropped. A worker that does not hear
within `DEAF` seconds is killed, and another takes its place. When the tab closes, its worker is stopped, whatever it is doing.

One worker more than there are tabs is kept ready (`TabWorkers`), with compiled code loaded, so that a new tab is answered at once.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from oldlight.explore.menu import SLIDERS, SMALL, Menu
from oldlight.workers import Worker, serve, stop

Send = Callable[[dict[str, Any]], Awaitable[None]]
DEAF = 5.0  # seconds in which an interrupted worker has to be heard of
AGAIN = 0.1  # seconds between two interruptions
MOST_TABS = 8


class FirstWarm:
    """An `Answerer` that is made in the worker, when the first job comes: a small one that loads compiled code."""

    def __init__(self, menu: Menu) -> None:
        self.menu = menu
        self._answerer: Any = None

    def __call__(self, job: dict[str, Any], report: Callable[[Any], None]) -> None:
        from oldlight.explore.answers import Answerer

        if self._answerer is None:
            self._answerer = Answerer(self.menu)
        if job.get("warm"):
            small = {"plant": SMALL, "link": SLIDERS, "start": "cold", "horizon": 3, "delay": 1}
            for change in ({"loss": 0}, {"loss": 10}, {"loss": 10, "jitter": 1}):
                Answerer(self.menu)(
                    {"position": small | change, "parts": ["optimum", "policy", "episode"]}, lambda part: None
                )
            return
        self._answerer(job, report)


class TabWorkers:
    """Workers: one for each tab, and one that waits."""

    def __init__(self, menu: Menu) -> None:
        self.menu = menu
        self._waiting: Worker | None = None
        self._all: list[Worker] = []
        self._lock = threading.Lock()

    def prepare(self) -> None:
        """Have one worker waiting."""
        with self._lock:
            if self._waiting is None:
                self._waiting = self._made()

    def take(self) -> Worker:
        """A worker for a tab."""
        with self._lock:
            worker, self._waiting = self._waiting or self._made(), None
        threading.Thread(target=self.prepare, daemon=True).start()
        return worker

    def dismiss(self, worker: Worker) -> None:
        """Stop a worker at once."""
        with self._lock:
            if worker not in self._all:
                return
            self._all.remove(worker)
        worker.process.kill()
        worker.process.join()
        worker.job = None
        stop([worker])

    def close(self) -> None:
        """Stop them all."""
        for worker in list(self._all):
            self.dismiss(worker)

    def _made(self) -> Worker:
        worker = Worker(serve, FirstWarm(self.menu), name="oldlight-explore")
        self._all.append(worker)
        worker.job = -1
        worker.send((-1, {"warm": True}))
        return worker


class Session:
    """One tab: what it wants, and what its worker is doing."""

    def __init__(self, workers: TabWorkers, send: Send) -> None:
        self.workers, self._send = workers, send
        self.newest = 0  # the number of the last job
        self._wanted: tuple[int, dict[str, Any]] | None = None
        # what a worker said; None: a new job, or the end
        self._news: asyncio.Queue[tuple[Worker, Any] | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._open = True
        self._worker = self._started()

    def ask(self, n: int, job: dict[str, Any]) -> None:
        """A new job, in the place of all older ones."""
        self.newest, self._wanted = n, (n, job)
        self._news.put_nowait(None)

    async def run(self) -> None:
        """Give jobs to the worker and pass on what it says, until the tab closes."""
        deaf_since: float | None = None
        while self._open:
            worker = self._worker
            if worker.job is None and self._wanted is not None:
                (number, job), self._wanted, deaf_since = self._wanted, None, None
                worker.job = number
                worker.send((number, job))
            stale = worker.job is not None and worker.job >= 0 and self._wanted is not None
            if stale:
                now = time.monotonic()
                deaf_since = now if deaf_since is None else deaf_since
                if now - deaf_since > DEAF:
                    self._replace()
                    continue
                worker.interrupt()
            await self._next(AGAIN if stale else None)

    async def _next(self, timeout: float | None) -> None:
        """Wait for the worker or for the tab, and pass on what the worker says."""
        try:
            async with asyncio.timeout(timeout):
                news = await self._news.get()
        except TimeoutError:
            return
        if news is None:
            return
        worker, message = news
        if worker is not self._worker:
            return
        if message is None:
            await self._tell(
                worker.job, {"part": "died", "text": "The process that was planning has ended; it is started again."}
            )
            self._replace()
            return
        kind, number, what = message
        if kind == "ready":
            return
        if kind != "reported":
            worker.job = None
        if kind == "reported":
            await self._tell(number, what)
        elif kind == "failed":
            await self._tell(number, {"part": "refused", "text": f"{type(what).__name__}: {what}"})
        else:
            await self._tell(number, {"part": "done"})

    async def _tell(self, number: int | None, part: dict[str, Any]) -> None:
        if number == self.newest and self._open:
            await self._send({"n": number, **part})

    def _started(self) -> Worker:
        worker = self.workers.take()
        threading.Thread(target=self._listen, args=(worker,), daemon=True).start()
        return worker

    def _listen(self, worker: Worker) -> None:
        """What the worker says, into the queue; None when it has ended."""
        while True:
            try:
                message = worker.receive()
            except (TypeError, ValueError):  # its pipe was closed while this was reading
                message = None
            try:
                self._loop.call_soon_threadsafe(self._news.put_nowait, (worker, message))
            except RuntimeError:  # the server has ended
                return
            if message is None:
                return

    def _replace(self) -> None:
        old, self._worker = self._worker, self._started()
        threading.Thread(target=self.workers.dismiss, args=(old,), daemon=True).start()

    def close(self) -> None:
        """The tab is closed: stop its work."""
        self._open = False
        self._news.put_nowait(None)
        threading.Thread(target=self.workers.dismiss, args=(self._worker,), daemon=True).start()
