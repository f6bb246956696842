"""Every part of an answer, as plain data for JSON; runs in the worker process of a tab.

    answer = Answerer(menu)
    answer({"position": {...}, "parts": ["optimum", "prices", ...], ...}, report)     # report(part) for each, as soon as it is known

**Time.** Links that are planned by their automaton are first planned for `QUICK` seconds, which gives bounds on both sides, and reported; where
these do not meet, for `LONG` seconds. A delay without loss is planned to its end. Curves and maps plan each point for at most `POINT` seconds.
A `progress` report tells what is being done beyond `PATIENCE`. Ctrl-C (SIGINT) ends a job wherever it is: a newer position has come.

**Memory.** A plan beyond `Menu.max_bytes` is refused by the library in a sentence, and that is the answer.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.checks import TooLarge
from oldlight.explore import code_lines
from oldlight.explore.episode_view import LARGEST, episode_view
from oldlight.explore.menu import FIELDS, LINK_FIELDS, RECORDING, SLIDERS, Menu
from oldlight.explore.positions import Position, axis_levels, position_of, problem_at
from oldlight.model.mdp import TabularMDP
from oldlight.model.problem import ImpairedMDP
from oldlight.planning import Solution, solve
from oldlight.planning.evaluation import unimpaired
from oldlight.planning.gap import value_lost
from oldlight.planning.link_solution import planned_by_automaton
from oldlight.planning.requirement import requirement
from oldlight.simulation.episodes import Simulation, simulate

Report = Callable[[dict[str, Any]], None]
QUICK, LONG, POINT = 0.09, 8.0, 0.5  # seconds
SHOWN = 5e-4  # of the value with full information: bounds of the map that are further apart are marked
PATIENCE = 0.15  # seconds before a progress report, and between two
REMEMBERED = 8  # plans, and
NUMBERS = 5_000  # values of positions
MAP_DELAYS = tuple(range(7))
MAP_LOSSES = (0, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90)
ONE_MORE = {"delay": 1, "jitter": 1, "loss": 1, "burst": 1, "period": 1}
POLICY_STATES = 60  # rows of the picture of the policy: those that are seen most
CURVE_SECONDS = 20.0


class Answerer:
    """Answers the jobs of one tab, with the plans that it remembers."""

    def __init__(self, menu: Menu) -> None:
        self.menu = menu
        self._plans: OrderedDict[Position, Solution] = OrderedDict()
        self._values: OrderedDict[Position, tuple[float, float]] = OrderedDict()
        self._full: OrderedDict[Any, float] = OrderedDict()
        self._needs: OrderedDict[Any, dict[str, Any]] = OrderedDict()

    def __call__(self, job: Mapping[str, Any], report: Report) -> None:
        """Report every part that the job asks for; see the module's text."""
        try:
            position = position_of(self.menu, job["position"])
            for part in job["parts"]:
                getattr(self, f"_{part}")(position, job, report)
        except (ValueError, TypeError) as wrong:
            report({"part": "refused", "text": str(wrong), "large": isinstance(wrong, TooLarge)})
        except KeyboardInterrupt:  # a newer position has come; nobody waits for this one
            return

    # -- parts ----------------------------------------------------------------------------------------------------------

    def _optimum(self, position: Position, job: Mapping[str, Any], report: Report) -> None:
        began = time.perf_counter()
        problem = problem_at(self.menu, position)
        full = self._full_value(problem, position)

        def tell(found: Solution, seconds: float | None, final: bool) -> None:
            report({
                "part": "optimum",
                "final": final,
                "value": found.value,
                "lower": found.lower,
                "upper": found.upper,
                "exact": found.exact,
                "full": full,
                "price": value_lost(problem, full, found.value),
                "states": found.work.information_states,
                "seconds": time.perf_counter() - began,
                "link": repr(problem.channel),
                "code": code_lines.optimum_lines(self.menu, position, None if found.exact else seconds),
            })  # fmt: skip

        known = self._plans.get(position)
        if known is not None:
            return tell(known, LONG, True)
        if planned_by_automaton(problem):
            found = solve(problem, seconds=QUICK, max_bytes=self.menu.max_bytes, progress=False)
            if not found.exact:
                tell(found, QUICK, False)
                progress = Progress(report, "closing the bounds")
                found = solve(problem, seconds=LONG, max_bytes=self.menu.max_bytes, progress=progress)
        else:
            found = solve(problem, max_bytes=self.menu.max_bytes, progress=Progress(report, "planning"))
        self._remember(position, found)
        tell(found, LONG, True)

    def _prices(self, position: Position, job: Mapping[str, Any], report: Report) -> None:
        """What one more of everything costs."""
        rows: list[dict[str, Any]] = []
        if position.link == SLIDERS:
            here = self._value(position)
            for name, more in ONE_MORE.items():
                there = position.moved(name, getattr(position, name) + more)
                if getattr(there, name) > FIELDS[name].most or there.jitter > there.delay:
                    continue
                try:
                    found = self._value(there, report)
                except ValueError:  # too large, or a start that this link does not have: no price is shown
                    continue
                rows.append({"name": name, "cost": here[0] - found[0], "low": here[0] - found[1], "high": here[1] - found[0]})  # fmt: skip
        report({"part": "prices", "rows": rows})

    def _curve(self, position: Position, job: Mapping[str, Any], report: Report) -> None:
        """The value along one slider, points near the position first."""
        name = job.get("axis", "delay")
        if name not in FIELDS or (name in LINK_FIELDS and position.link != SLIDERS) or name == "period_ms":
            name = "horizon"
        levels, here = axis_levels(self.menu, position, name), getattr(position, name)
        code = code_lines.curve_lines(self.menu, position, name, levels)
        found: dict[float, dict[str, float]] = {}
        began, said, note = time.perf_counter(), 0.0, ""

        def tell(final: bool) -> None:
            points = [found[x] for x in sorted(found)]
            report({"part": "curve", "axis": name, "here": here, "points": points, "of": len(levels), "final": final, "note": note, "code": code})  # fmt: skip

        for x in sorted(levels, key=lambda x: abs(x - here)):
            there = position.moved(name, x)
            try:
                low, high = self._value(there, report)
                found[x] = {"x": x, "low": low, "high": high, "full": self._full_at(there)}
            except TooLarge:
                note = "Where the curve ends, a plan needs more memory than is allowed."
            except ValueError as wrong:
                note = str(wrong)
            if time.perf_counter() - began > CURVE_SECONDS:
                note = f"The points that took longer than {CURVE_SECONDS:g} seconds together are left out."
                break
            if time.perf_counter() - said > 2 * PATIENCE:
                said = time.perf_counter()
                tell(False)
        tell(True)

    def _policy(self, position: Position, job: Mapping[str, Any], report: Report) -> None:
        """The action that the optimum chooses most, by time and newest visible state, in played episodes."""
        solution = self._plan(position, report)
        problem = solution.problem
        played = simulate(problem, solution.policy, code_lines.POLICY_EPISODES, seed=0, record=True, threads=1)
        counts = actions_seen(played, problem.mdp)
        often = np.argsort(-counts.sum(axis=(0, 2)), kind="stable")[:POLICY_STATES]
        often = np.sort(often)
        few = counts[:, often]
        total = few.sum(axis=2)
        share = few.max(axis=2) / np.maximum(total, 1)
        ages = played.ages / played.ages.sum(axis=1, keepdims=True)
        report({
            "part": "policy",
            "states": often.tolist(),
            "all_states": problem.n_states <= POLICY_STATES,
            "actions": np.where(total > 0, few.argmax(axis=2), -1).tolist(),
            "share": share.round(4).tolist(),
            "visits": total.tolist(),
            "age": [float(row[:-1] @ np.arange(len(row) - 1) / max(row[:-1].sum(), 1e-12)) for row in ages],
            "ages": ages.round(5).tolist(),
            "episodes": code_lines.POLICY_EPISODES,
            "code": code_lines.policy_lines(self.menu, position),
        })  # fmt: skip

    def _episode(self, position: Position, job: Mapping[str, Any], report: Report) -> None:
        """One episode of the optimum, step by step."""
        seed = job.get("seed", 1)
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= LARGEST:
            raise ValueError(f"seed is {str(seed)[:40]!r}; allowed is a whole number from 0 to {LARGEST:,}")
        solution = self._plan(position, report)
        on = self.menu.trace if position.link == RECORDING else None
        view = episode_view(solution, seed, on, position.period_ms)
        report({"part": "episode", **view, "code": code_lines.episode_lines(self.menu, position, seed)})

    def _frontier(self, position: Position, job: Mapping[str, Any], report: Report) -> None:
        """The map of values over delay and loss, everything else as it is; row by row."""
        if position.link != SLIDERS:
            report({"part": "frontier", "rows": None})
            return
        delays = [d for d in MAP_DELAYS if d >= position.jitter]
        full = self._full_at(position)
        rows: list[list[float | None]] = [[None] * len(delays) for _ in MAP_LOSSES]
        apart: list[list[bool]] = [[False] * len(delays) for _ in MAP_LOSSES]  # where the bounds do not meet
        code = code_lines.frontier_lines(self.menu, position, list(delays), list(MAP_LOSSES))
        said, done = time.perf_counter(), 0

        def tell(final: bool) -> None:
            report({"part": "frontier", "delays": delays, "losses": MAP_LOSSES, "rows": rows, "open": apart, "full": full, "final": final,
                    "done": done, "of": len(delays) * len(MAP_LOSSES), "code": code})  # fmt: skip

        for j, d in enumerate(delays):
            for i, q in enumerate(MAP_LOSSES):
                there = position.moved("delay", d).moved("loss", q)
                try:
                    rows[i][j], upper = self._value(there, report)
                    apart[i][j] = not_met(rows[i][j], upper, full)
                except ValueError:
                    rows[i][j] = None
                done += 1
                if time.perf_counter() - said > 2 * PATIENCE:
                    said = time.perf_counter()
                    tell(False)
        tell(True)

    def _need(self, position: Position, job: Mapping[str, Any], report: Report) -> None:
        """The frontier, certified: for each delay of the map the largest loss rate that keeps the target, a share of full information."""
        target = job.get("target", 80)
        if isinstance(target, bool) or not isinstance(target, int) or not 1 <= target <= 100:
            raise ValueError(f"target is {str(target)[:40]!r}; allowed is a whole number from 1 to 100 %")
        if position.link != SLIDERS:
            return
        mdp = problem_at(self.menu, position.moved("delay", max(position.jitter, 0))).mdp
        others = {name: level for name, level in position.levels.items() if name not in ("delay", "loss")}
        points: list[dict[str, Any]] = []
        limits = {
            "seconds": POINT,
            "max_bytes": self.menu.max_bytes // 2,
            "progress": Progress(report, "certifying the frontier"),
        }
        for d in (d for d in MAP_DELAYS if d >= position.jitter):
            key = (position.moved("delay", d).moved("loss", 0), target)
            if key not in self._needs:
                at, start = others | {"delay": d}, None if position.start == "cold" else "warm"
                try:
                    found = requirement(mdp, target=f"{target}%", over="loss", at=at, start=start, **limits)  # type: ignore[call-overload]
                    self._needs[key] = {"delay": d, "loss": found.answer, "status": found.status}
                except ValueError:  # too large, or a start that this link does not have
                    self._needs[key] = {"delay": d, "loss": None, "status": "not decided"}
                while len(self._needs) > NUMBERS:
                    self._needs.popitem(last=False)
            points.append(self._needs[key])
            last = d == MAP_DELAYS[-1]
            report({"part": "need", "target": target, "points": points, "final": last, "code": code_lines.need_lines(self.menu, position, target, list(MAP_DELAYS))})  # fmt: skip

    # -- what they share ------------------------------------------------------------------------------------------------

    def _plan(self, position: Position, report: Report) -> Solution:
        found = self._plans.get(position)
        if found is None:
            problem = problem_at(self.menu, position)
            seconds = LONG if planned_by_automaton(problem) else None
            found = solve(
                problem, seconds=seconds, max_bytes=self.menu.max_bytes, progress=Progress(report, "planning")
            )
            self._remember(position, found)
        return found

    def _remember(self, position: Position, found: Solution) -> None:
        self._plans[position] = found
        self._keep(position, (found.lower, found.upper))
        while (
            len(self._plans) > REMEMBERED or sum(s.work.bytes for s in self._plans.values()) > 2 * self.menu.max_bytes
        ):
            if len(self._plans) == 1:
                break
            self._plans.popitem(last=False)

    def _keep(self, position: Position, bounds: tuple[float, float]) -> None:
        self._values[position] = bounds
        while len(self._values) > NUMBERS:
            self._values.popitem(last=False)

    def _value(self, position: Position, report: Report | None = None) -> tuple[float, float]:
        """Bounds on the optimum of a position, for a curve or a map: within `POINT` seconds where time can be limited."""
        known = self._values.get(position)
        if known is None:
            problem = problem_at(self.menu, position)
            seconds = POINT if planned_by_automaton(problem) else None
            tell = False if report is None else Progress(report, "planning the neighbours")
            found = solve(problem, seconds=seconds, max_bytes=self.menu.max_bytes // 2, progress=tell)
            known = (found.lower, found.upper)
            self._keep(position, known)
        return known

    def _full_at(self, position: Position) -> float:
        key = _full_key(position)
        known = self._full.get(key)
        return self._full_value(problem_at(self.menu, position), position) if known is None else known

    def _full_value(self, problem: ImpairedMDP, position: Position) -> float:
        """The value if everything were seen at once."""
        key = _full_key(position)
        if key not in self._full:
            self._full[key] = float(solve(unimpaired(problem), progress=False).value)
            while len(self._full) > NUMBERS:
                self._full.popitem(last=False)
        return self._full[key]


def not_met(lower: float | None, upper: float, full: float) -> bool:
    """Are the bounds of a value further apart than a map of shares of `full` shows?"""
    return lower is not None and upper - lower > SHOWN * abs(full)


def _full_key(position: Position) -> tuple[Any, ...]:
    warm = (position.delay, position.link) if position.start == "warm" else None  # a warm start runs before step 0
    return position.plant, position.horizon, position.discount, position.start, warm


class Progress:
    """A callback(done, total) that reports now and then what is being done."""

    def __init__(self, report: Report, what: str) -> None:
        self.report, self.what, self.said = report, what, time.perf_counter()

    def __call__(self, done: int, total: int) -> None:
        now = time.perf_counter()
        if now - self.said > PATIENCE:
            self.said = now
            self.report({"part": "progress", "what": self.what, "done": int(done), "total": int(total)})


def actions_seen(played: Simulation, mdp: TabularMDP) -> NDArray[np.int64]:
    """How often each action was chosen at each time when a state was the newest visible one, shape (H, S, A); from recorded episodes."""
    states, actions, arrivals = played.record
    H, w = len(played.mean_reward), played.warmup
    counts = np.zeros((H, mdp.n_states, mdp.n_actions), dtype=np.int64)
    n = np.arange(len(states))
    for h in range(H):
        come = (arrivals[:, : h + w + 1] >= 0) & (arrivals[:, : h + w + 1] <= h)
        newest = come.shape[1] - 1 - come[:, ::-1].argmax(axis=1)
        seen = come.any(axis=1)
        np.add.at(counts[h], (states[n, newest][seen], actions[n, h + w][seen]), 1)
    return counts
