"""The three processes of a testbed: a plant, a relay, a controller; in lock-step, or by the wall clock.

**Lock-step.** For each tick h the plant sends the relay its new observations; the relay draws when each arrives, sends those that are
due at h to the controller, then the tick with a list of what is due and its news: which observations are announced as lost, and which
messages of before the episode are heard of. The controller waits for all of that, acts, and sends the action
to the plant, which moves on. A tick without an answer is sent again: the relay repeats what it sent, the controller meets
duplicates and a repeated tick, and answers the same. So the seed alone decides the result.

**By the wall clock.** Tick h of an episode is at its time on the clock that all processes of a machine share. At that time the plant
sends its observation; the relay holds it for as long as it is late; half a tick later the controller acts on what has come, and sends
the action; at nine tenths the plant does what has come, or again what it did before. The next observation tells what was done. What
comes at another tick than it should, and an action that comes too late, make a *disturbed* episode, and are counted.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from oldlight.testbed.wire import CONTROLLER, PLANT, RELAY, Delays, Message, Port, Setup

Counts = dict[str, Any]
LET_GO_BY, ACT_AT, DO_AT = 0.45, 0.5, 0.9  # of a tick


class Plant:
    """The process itself: states, rewards, and what is done."""

    def __init__(self, setup: Setup) -> None:
        self.problem, self.setup = setup.problem, setup
        self.returns = np.zeros(setup.episodes)

    def begin(self, episode: int) -> None:
        problem = self.problem
        self.episode, self.rng = episode, self.setup.generator(0, episode)
        self.past = self.rng.integers(0, problem.n_actions, problem.warmup).tolist()
        self.states = [int(self.rng.choice(problem.n_states, p=problem.initial))]
        for a in self.past:
            self._move(0, a)
        self.done = list(self.past)

    def _move(self, h: int, a: int) -> None:
        following, p = self.problem.mdp.row(h, self.states[-1], a)
        self.states.append(int(following[self.rng.choice(len(p), p=p)]))

    def observations(self, h: int) -> list[list[int | None]]:
        """[step, state, state before, action before] of what is new at tick h."""
        warmup = self.problem.warmup
        rows: list[list[int | None]] = []
        for i in range(0 if h == 0 else h + warmup, h + warmup + 1):
            before = [self.states[i - 1], self.done[i - 1]] if i else [None, None]
            rows.append([i - warmup, self.states[i], *before])
        return rows

    def do(self, h: int, a: int) -> None:
        self.returns[self.episode] += float(self.problem.mdp.rewards[h, self.states[-1], a])
        self.done.append(a)
        if h + 1 < self.problem.horizon:
            self._move(h, a)


# -- lock-step --------------------------------------------------------------------------------------------------------


def plant_in_step(port: Port, setup: Setup, begin: float, counts: Counts) -> None:
    plant, problem = Plant(setup), setup.problem
    counts["repeated"] = 0
    for e in range(setup.episodes):
        plant.begin(e)
        planned = list(problem.pending)
        for h in range(problem.horizon):
            if h + problem.actuation < problem.horizon:
                tick: Message = {"kind": "tick", "e": e, "h": h, "new": plant.observations(h), "past": plant.past}
                for _ in range(setup.tries):
                    port.send(RELAY, tick)
                    answer = _answer(port, e, h, time.monotonic() + setup.patience)
                    if answer is not None:
                        break
                    counts["repeated"] += 1
                else:
                    raise TimeoutError(f"no action for tick {h} of episode {e} after {setup.tries} tries")
                planned.append(answer)
            plant.do(h, planned[h])
    counts["returns"] = plant.returns


def _answer(port: Port, e: int, h: int, until: float) -> int | None:
    while (message := port.receive(until, {"act": ("e", "h", "a")})) is not None:
        if (message["e"], message["h"]) == (e, h):
            return int(message["a"])
    return None


def relay_in_step(port: Port, setup: Setup, begin: float, counts: Counts) -> None:
    delays = Delays(setup)
    counts |= {"observations": 0, "dropped": 0, "forwarded": 0}
    episode, newest = -1, -1
    due: dict[int, list[Message]] = {}  # tick -> what arrives then
    news: dict[int, list[int]] = {}  # tick -> steps that are announced as lost, or of before the episode
    while True:
        message = port.receive(time.monotonic() + 1.0, {"tick": ("e", "h", "new", "past")})
        if message is None:
            continue
        e, h = message["e"], message["h"]
        if e != episode:
            episode, newest, due = e, -1, {}
            delays.begin(e)
            news = {tick: list(steps) for tick, steps in delays.before.items()}
        if h > newest:  # else it is sent again
            newest = h
            for step, state, s, a in message["new"]:
                counts["observations"] += 1
                fate = delays.of(step, s, a)
                counts["dropped"] += not fate.late
                for late in fate.late:
                    due.setdefault(max(step + late, h), []).append(
                        {"kind": "seen", "e": e, "step": step, "state": state}
                    )
                if fate.announced is not None:
                    news.setdefault(step + fate.announced, []).append(step)
            counts["forwarded"] += len(due.get(h, []))
        for seen in due.get(h, []):
            port.send(CONTROLLER, seen)
        steps = [seen["step"] for seen in due.get(h, [])]
        tick = {"kind": "tick", "e": e, "h": h, "past": message["past"], "steps": steps, "news": news.get(h, [])}
        port.send(CONTROLLER, tick)


def controller_in_step(port: Port, setup: Setup, begin: float, counts: Counts) -> None:
    controller = setup.controller
    forms = {"seen": ("e", "step", "state"), "tick": ("e", "h", "past", "steps", "news")}
    episode, seen = -1, dict[tuple[int, int], int]()
    tick: Message | None = None
    while True:
        message = port.receive(time.monotonic() + 1.0, forms)
        if message is None:
            continue
        if message["kind"] == "seen":
            seen[message["e"], message["step"]] = message["state"]
        else:
            tick = message
        if tick is None or any((tick["e"], step) not in seen for step in tick["steps"]):
            continue
        e, h = tick["e"], tick["h"]
        if e != episode:
            episode, seen = e, {key: state for key, state in seen.items() if key[0] == e}
            controller.reset(tick["past"])
        controller.tick(h)
        for step in tick["steps"]:
            controller.observe(step, seen[e, step])
        _tell_news(controller, tick["news"])
        port.send(PLANT, {"kind": "act", "e": e, "h": h, "a": controller.act()})
        tick = None


def _tell_news(controller: Any, news: list[int]) -> None:
    for step in news:
        if step >= 0:
            controller.lost(step)
        else:
            controller.observe(step, 0)


# -- by the wall clock ------------------------------------------------------------------------------------------------


def plant_in_time(port: Port, setup: Setup, begin: float, counts: Counts) -> None:
    plant, problem = Plant(setup), setup.problem
    counts |= {"missed": 0, "disturbed": set()}
    for e in range(setup.episodes):
        plant.begin(e)
        planned = dict(enumerate(problem.pending))
        for h in range(problem.horizon):
            _listen(port, e, planned, setup.tick_time(begin, e, h))
            if h == 0:
                port.send(CONTROLLER, {"kind": "start", "e": e, "past": plant.past})
            for step, state, s, a in plant.observations(h):
                port.send(RELAY, {"kind": "seen", "e": e, "step": step, "state": state, "before": [s, a]})
            _listen(port, e, planned, setup.tick_time(begin, e, h + DO_AT))
            if h not in planned:
                counts["missed"] += 1
                counts["disturbed"].add(e)
                planned[h] = plant.done[-1] if plant.done else 0
            plant.do(h, planned[h])
    counts["returns"] = plant.returns


def _listen(port: Port, e: int, planned: dict[int, int], until: float) -> None:
    """Take actions until then; one that comes after its step was done is too late."""
    while (message := port.receive(until, {"act": ("e", "step", "a")})) is not None:
        if message["e"] == e:
            planned.setdefault(message["step"], message["a"])


def relay_in_time(port: Port, setup: Setup, begin: float, counts: Counts) -> None:
    delays, period = Delays(setup), setup.period_s
    assert period is not None
    counts |= {"observations": 0, "dropped": 0, "forwarded": 0, "disturbed": set()}
    episode, pushed = -1, 0
    held: list[tuple[float, int, Message]] = []  # when to let go, a number, what
    forms = {"seen": ("e", "step", "state", "before")}
    while True:
        message = port.receive(min(held[0][0] if held else np.inf, time.monotonic() + 1.0), forms)
        while held and held[0][0] <= time.monotonic():
            gone = heapq.heappop(held)[2]
            port.send(CONTROLLER, gone)
            counts["forwarded"] += gone["kind"] == "seen"
            if time.monotonic() > setup.tick_time(begin, gone["e"], gone["due"] + LET_GO_BY):
                counts["disturbed"].add(gone["e"])
        if message is None:
            continue
        counts["observations"] += 1
        if message["e"] != episode:
            episode = message["e"]
            delays.begin(episode)
        step = message["step"]
        fate = delays.of(step, *message["before"])
        counts["dropped"] += not fate.late
        coming = [(late, message | {"due": step + late}) for late in fate.late]
        if fate.announced is not None:
            late = fate.announced
            coming.append((late, {"kind": "news", "e": episode, "news": [step], "due": step + late}))
        if delays.before.get(step):
            coming.append((0, {"kind": "news", "e": episode, "news": delays.before[step], "due": step}))
        for late, gone in coming:
            ticks = min(step, 0) + late  # what lies before tick 0 was sent at tick 0
            pushed += 1
            heapq.heappush(held, (time.monotonic() + ticks * period, pushed, gone))


def controller_in_time(port: Port, setup: Setup, begin: float, counts: Counts) -> None:
    controller, problem = setup.controller, setup.problem
    counts |= {"mistimed": 0, "disturbed": set()}
    forms = {"start": ("e", "past"), "seen": ("e", "step", "state", "before", "due"), "news": ("e", "news", "due")}
    period = setup.period_s
    assert period is not None
    for e in range(setup.episodes):
        past: list[int] | None = None
        waiting: list[Message] = []
        for h in range(problem.horizon - problem.actuation):
            at = setup.tick_time(begin, e, h + ACT_AT)
            while (message := port.receive(at, forms)) is not None:
                if message["e"] != e:
                    continue
                if message["kind"] == "start":
                    past = message["past"]
                else:
                    waiting.append(message)
            if h == 0:
                if past is None:
                    counts["disturbed"].add(e)
                controller.reset(past or [0] * problem.warmup)
            if time.monotonic() > at + (DO_AT - ACT_AT) * period:  # too late for this tick
                counts["disturbed"].add(e)
                continue
            controller.tick(h)
            for message in waiting:
                if message["due"] != h:
                    counts["mistimed"] += 1
                    counts["disturbed"].add(e)
                if message["kind"] == "news":
                    _tell_news(controller, message["news"])
                    continue
                before = message["before"][1]
                if before is not None and message["step"] > -problem.warmup:
                    controller.did(message["step"] - 1, before)
                controller.observe(message["step"], message["state"])
            waiting = []
            port.send(PLANT, {"kind": "act", "e": e, "step": h + problem.actuation, "a": controller.act()})
    while True:  # until all is over
        port.receive(time.monotonic() + 1.0, {})


Work = Callable[[Port, Setup, float, Counts], None]  # the relay and the controller work until they are stopped
IN_STEP: dict[str, Work] = {PLANT: plant_in_step, RELAY: relay_in_step, CONTROLLER: controller_in_step}
IN_TIME: dict[str, Work] = {PLANT: plant_in_time, RELAY: relay_in_time, CONTROLLER: controller_in_time}
