"""Exact planning under delay: one backward induction on blocks of information states.

At time h with newest visible step t = h − m, wait δ and queue q1..qm, account for a reward when its step becomes visible
(the paper's second model), so that no belief is needed. U counts the reward of step t if δ = 0, and every later one:

    X_h[s, q1..qm, a]  = 1{δ=0}·r_t(s, q1) + θ_t(s, q1, δ)·Σ_s2 P_t(s2|s, q1)·U_{h+1}^{(m, 0)}[s2, q2..qm, a]
                                          + (1 − θ_t(s, q1, δ))·U_{h+1}^{(m+1, δ+1)}[s, q1..qm, a]
    U_h^{(m, δ)}[s, q1..qm] = max_a X_h[s, q1..qm, a]

The max stands outside the sum: the agent acts before it sees s2. For m = 0 the head q1 is the action a itself. After the
last action nothing is left to decide, and arrival is forced one step at a time:

    U_H^{(m, 0)} = G_{H−m},   G_t[s, q1..] = r_t(s, q1) + Σ_s2 P_t(s2|s, q1)·G_{t+1}[s2, q2..],   G_H = 0.

Before anything is seen (the root, with queue a_0..a_{h−1}), rho plays the part of the transition and the law of d_0 that
of the hazard; the start state is kept as an axis so that the result is known per start:

    X_h[·, a] = θ0·U_{h+1}^{(h+1, 0)}[s, ·, a] + (1 − θ0)·Root_{h+1}[s, ·, a],    a maximises Σ_s rho(s)·X_h[s, ·, a].

Cost per block: a product of P_t (S·A × S) with a value block (S × A^m) and a running maximum; no augmented transition
matrix exists. The same induction follows a given policy instead of the maximum: that is exact evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oldlight.arrays import Floats, action_type
from oldlight.checks import TooLarge
from oldlight.machine import default_limit, format_bytes, power
from oldlight.model.information import Block, Layout
from oldlight.model.mdp import TabularMDP
from oldlight.model.problem import ImpairedMDP
from oldlight.model.successors import Successors, all_successors, successors_at
from oldlight.planning.blocks import SMALL, Schedule, run_calls
from oldlight.planning.blocks import Stage as Stage
from oldlight.planning.scratch import empty, refuse_full

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Values = Literal["two times", "all times"]
KEPT = 100_000  # places of a layout up to which its schedule is kept for the next problem with that layout; entries of lists that are kept with a process
UNIT = 64  # threads share w in multiples of this
MOST_ON_DISK = 10**13  # bytes of tables up to which a refusal offers files instead of memory
SHORT = 32  # up to this many w a block with dense successors is not shared


class DelayModel:
    """A delayed problem as the induction reads it: its arrays for the kernel, made once."""

    def __init__(self, problem: ImpairedMDP, layout: Layout) -> None:
        law = problem.law
        self.problem, self.layout, self.law = problem, layout, law
        self._schedules: dict[str, Schedule] = {}

    @classmethod
    def of(cls, problem: ImpairedMDP) -> DelayModel:
        """That of the problem's own layout, made once: planning the same problem again, or valuing its policies, takes the sweep alone."""
        if "delay model" not in problem._made:
            problem._made["delay model"] = cls(problem, Layout.of(problem))
        found: DelayModel = problem._made["delay model"]
        return found

    def successors(self, t: int) -> Successors:
        """P_t, for t = −warmup..H−1."""
        return successors_at(self.problem.mdp, max(t, 0))

    def reward(self, t: int, waited: int) -> Floats:
        """What is earned when an agent with newest step t, wait δ and head q1 acts: [s, q1]."""
        r = self.problem.rewards_at(t)
        return np.ascontiguousarray(r) if waited == 0 else np.zeros_like(r)

    def theta(self, t: int, m: int, waited: int) -> Floats:
        """The probability that step t + 1 is the next to arrive: [s, q1]."""
        S, A = self.layout.n_states, self.layout.n_actions
        if m >= self.law.longest_delay or self.problem.warmup:
            return np.ones((S, A))
        return np.ascontiguousarray(np.broadcast_to(self.law.at_step(self.law.hazard, t)[..., waited], (S, A)))

    def first_theta(self, h: int) -> float:
        """The probability that the first observation arrives at time h + 1, given that it has not by time h."""
        return float(self.law.first_hazard[h + 1])

    @cached_property
    def arrays(self) -> Any:
        """The process and the link as `oldlight.kernels.delay` reads them."""
        from oldlight.kernels import delay as kernels

        law, mdp = self.law, self.problem.mdp
        if "process" not in mdp._cache:
            mdp._cache["process"] = _process_arrays(mdp)
        own = (_own(x) for x in (law.hazard, law.first_hazard, self.problem.initial))
        return kernels.Model(*mdp._cache["process"], *own)

    def schedule(self, values: Values) -> Schedule:
        """The order of the blocks, and where their values stand."""
        if values not in self._schedules:
            steps = all_successors(self.problem.mdp)
            mean = sum(len(step.index) for step in steps) // (len(steps) * len(steps[0].count))
            width = self.arrays.matrix.shape[2] if len(self.arrays.matrix) else max(1, mean)
            make = _kept_schedule if self.layout.offset.size <= KEPT else _schedule
            longest = self.law.longest_delay if self.law.constant is None else self.law.constant
            self._schedules[values] = make(self.layout, self.problem.warmup, longest, values, width)
        return self._schedules[values]


def _own(array: Floats) -> Floats:
    """A copy, so that all arrays have one type for the compiler: those of a problem cannot be written."""
    return np.array(array, order="C")


def _process_arrays(mdp: TabularMDP) -> tuple[NDArray[Any], ...]:
    """The process as `oldlight.kernels.delay` reads it: lists of successors, the matrix, rewards. Those of one step are not copied."""
    steps, S, A = all_successors(mdp), mdp.n_states, mdp.n_actions
    matrix, index, weight = np.empty((0, S * A, S)), steps[0].index, steps[0].weight
    if 2 * sum(step.dense for step in steps) > len(steps):
        matrix = steps[0].full()[None] if len(steps) == 1 else np.stack([step.full() for step in steps])
        index, weight = np.empty(0, np.int32), np.empty(0)
    elif len(steps) > 1:
        index, weight = (np.concatenate([getattr(step, name) for step in steps]) for name in ("index", "weight"))
    first, count = steps[0].first[None], steps[0].count[None]
    if len(steps) > 1:
        begin = np.cumsum([0, *(len(step.index) for step in steps[:-1])])
        first = np.stack([step.first + at for step, at in zip(steps, begin.tolist(), strict=True)])
        count = np.stack([step.count for step in steps])
    return index, weight, first, count, matrix, _own(mdp.rewards[:1] if mdp.stationary_rewards else mdp.rewards)


def _schedule(layout: Layout, warmup: int, longest_delay: int, values: Values, width: int) -> Schedule:
    return Schedule(layout, warmup=warmup, longest_delay=longest_delay, values=values, width=width)


_kept_schedule = lru_cache(maxsize=64)(_schedule)  # for the next problem with the same layout


@dataclass
class Induction:
    """One backward induction. `given` (chosen actions) or `mix` (their probabilities) follow a policy; else the best is taken."""

    model: DelayModel
    given: NDArray[Any] | None = None  # [information state]
    mix: Floats | None = None  # [information state, a]
    table: NDArray[Any] | None = None  # out: the best actions
    kept: list[Stage] | None = None  # out: every stage, if a list is given
    progress: Callable[[int, int], None] | None = None
    scratch: Path | None = None  # a folder for the values, where memory does not hold them

    def run(self, stop: int = 0) -> Stage:
        """The stage of time `stop` (H gives what follows the last action)."""
        from oldlight.kernels import block
        from oldlight.kernels import delay as kernels

        layout, problem = self.model.layout, self.model.problem
        A, H = layout.n_actions, layout.horizon
        schedule = self.model.schedule("two times" if self.kept is None else "all times")
        values = empty(schedule.size, np.float64, self.scratch)
        values[schedule.ends[0] : schedule.ends[0] + layout.n_states] = 0.0  # G_H
        mode, actions, probabilities = block.BEST, np.empty(0, action_type(A)), np.empty((0, A))
        if self.given is not None:
            mode, actions = block.FOLLOW, _writable(self.given, action_type(A))
        elif self.mix is not None:
            mode, probabilities = block.MIX, _writable(self.mix, np.dtype(np.float64))
        elif self.table is not None:
            actions = self.table
        pending = np.array(problem.pending[:H], dtype=np.int64)
        turns = schedule.turns()
        tables = kernels.Tables(
            schedule.blocks, schedule.powers, values, actions, probabilities, pending, turns, H, True
        )
        plain = (
            mode == block.BEST and schedule.certain and (schedule.shortest > 0 or len(self.model.arrays.matrix) == 0)
        )
        front = (self.model.arrays, None if plain else kernels.NO_OPTIMISM, tables, mode)
        tell = None if self.progress is None else partial(_tell, self.progress, H, stop)
        calls = schedule.calls(stop=stop)
        run_calls(partial(kernels.sweep, *front), calls, turns, tell)
        if self.kept is not None:
            self.kept.extend(schedule.stage(h, values) for h in range(stop, H + 1))
        return schedule.stage(stop, values)


def _tell(progress: Callable[[int, int], None], horizon: int, stop: int, time: int) -> None:
    if time < horizon:
        progress(horizon - time, horizon - stop)


def _writable(array: NDArray[Any], kind: np.dtype[Any]) -> NDArray[Any]:
    """The array, or a copy of the type that the kernels are compiled for (they are compiled anew for arrays that cannot be written)."""
    found = np.ascontiguousarray(array, dtype=kind)
    return found if found.flags.writeable else found.copy()


@dataclass
class SingleBlocks:
    """Blocks of the recursion one by one, for links whose blocks are not those of a layout (`oldlight.planning.ages`)."""

    model: DelayModel
    table: NDArray[Any]  # out: the best actions
    pool: ThreadPoolExecutor
    threads: int
    scratch: Path | None = None  # a folder for blocks that memory does not hold
    _spare: dict[int, list[Floats]] = field(default_factory=dict)
    _theta: dict[float, Floats] = field(default_factory=dict)

    def reuse(self, arrays: Iterable[Floats]) -> None:
        """These blocks are not needed any more: their memory is."""
        for array in arrays:
            self._spare.setdefault(array.size, []).append(array.reshape(-1))

    def empty(self, size: int) -> Floats:
        spare = self._spare.get(size)
        return spare.pop() if spare else empty(size, np.float64, self.scratch)

    def back_up(
        self, t: int, m: int, arrival: Floats, wait: Floats | None, share_seen: float, block: Block | None = None
    ) -> Floats:
        """One block: [s, code], θ = share_seen everywhere. With block = None there is nothing to choose: one step of G."""
        from oldlight.kernels import block as kernels

        S, A, successors = self.model.layout.n_states, self.model.layout.n_actions, self.model.successors(t)
        parts, values = self.parts(t, m, arrival, wait, share_seen, block)
        if m == 0:
            kernels.back_up_now(*parts, 0, S)
            return values.reshape(S, 1)
        threads, W, choices = self.threads, A ** (m - 1), 1 if block is None else A
        if values.size * choices * successors.width < SMALL or (successors.dense and W <= SHORT):
            kernels.back_up(*parts, 0, S, 0, W)
            return values.reshape(S, A**m)
        cuts = [min(-(-W // UNIT) * i // threads * UNIT, W) for i in range(threads + 1)]
        share(self.pool, kernels.back_up, [(*parts, 0, S, i, j) for i, j in pairwise(cuts) if j > i])
        return values.reshape(S, A**m)

    def parts(
        self, t: int, m: int, arrival: Floats, wait: Floats | None, share_seen: float, block: Block | None
    ) -> tuple[tuple[Any, Any, Any], Floats]:
        """The step, the tables and the choice of one block as the kernels read them; and its values, which they make, flat."""
        from oldlight.kernels import block as kernels

        S, A = self.model.layout.n_states, self.model.layout.n_actions
        successors, reward = self.model.successors(t), self.model.reward(t, 0)
        if share_seen not in self._theta:
            self._theta[share_seen] = np.full((S, A), share_seen)
        theta = self._theta[share_seen]
        size, heads, W = S * A**m, A if m else 1, A ** max(m - 1, 0)
        choices = 1 if block is None or m == 0 else A
        lists = (successors.index, successors.weight, successors.first, successors.count, successors.matrix)
        step = kernels.Step(*lists, reward, theta, _NO_NOISE, _NO_NOISE, np.inf)
        v_wait = _NO_WAIT if wait is None else np.ascontiguousarray(wait).reshape(S, -1, W, heads)
        values = self.empty(size)
        blocks = kernels.Block(
            np.ascontiguousarray(arrival).reshape(S, choices, W), v_wait, values.reshape(S, W, heads)
        )
        if block is None:
            action = self.table[:0].reshape(0, 0, 0)
        else:
            action = self.table[block.offset : block.offset + size].reshape(S, W, heads)
        return (step, blocks, kernels.Choice(kernels.BEST, action, _NO_WAIT)), values


_NO_NOISE, _NO_WAIT = np.empty((0, 0)), np.empty((0, 0, 0, 0))


def share(pool: ThreadPoolExecutor, work: Callable[..., None], tasks: list[tuple[Any, ...]]) -> None:
    """Do the tasks; this thread does the first itself."""
    jobs = [pool.submit(work, *task) for task in tasks[1:]]
    work(*tasks[0])
    for job in jobs:
        job.result()


def by_start(problem: ImpairedMDP, first: Stage) -> Floats:
    """The value per state of the first step (step −warmup), from the stage of time 0."""
    if problem.warmup:
        values = first.values[problem.warmup, 0]
        return np.asarray(
            np.add.reduce(values, axis=1) / values.shape[1]
        )  # the mean; its own function takes longer than this
    at_once = float(problem.law.first[0])
    value = np.zeros(problem.n_states)
    if at_once > 0:
        value += at_once * first.values[0, 0][:, 0]
    if first.root is not None:
        value += (1.0 - at_once) * first.root[:, 0]
    return value


# -- sizes --------------------------------------------------------------------------------------------------------


class Room(NamedTuple):
    """What the tables of a plan need, and where they stand."""

    layout: Layout
    bytes: int
    folder: Path | None  # None: in memory


def checked_layout(
    problem: ImpairedMDP,
    max_bytes: int | None,
    *,
    policy: bool = True,
    kept: bool = False,
    scratch: Path | None = None,
) -> Room:
    """The layout and the bytes of a plan, with its policy or with all of its values kept; refused with the numbers if that is over the
    limit, unless there is a folder for what memory does not hold."""
    limit = default_limit() if max_bytes is None else int(max_bytes)
    layout, states, need = _needs(problem, limit, policy, kept)
    if layout is not None and need <= limit:
        return Room(layout, need, None)
    if scratch is None:
        raise _too_large(problem, states, need, limit, at_least=layout is None)
    refuse_full(scratch, need)
    if layout is None:
        layout, states, need = _needs(problem, need, policy, kept)
        assert layout is not None
        refuse_full(scratch, need)
    return Room(layout, need, scratch)


def _needs(problem: ImpairedMDP, limit: int, policy: bool, kept: bool) -> tuple[Layout | None, int, int]:
    """(layout, information states, bytes); the layout is None, and the rest a lower bound, if one block is over the limit."""
    S, A, H = problem.n_states, problem.n_actions, problem.horizon
    longest = problem.warmup or min(problem.law.max_delay, H - 1)
    if 8 * S * power(A, longest) > limit:  # refuse before anything of that size is even listed
        return None, S * power(A, longest), 8 * S * power(A, longest)
    layout = Layout.of(problem)
    sizes = layout.entries
    after = S * A ** (H if layout.root[H - 1] >= 0 else longest)
    need = 8 * max(x + y for x, y in zip(sizes, [*sizes[1:], after], strict=True))
    if kept:
        need = max(need, 8 * (sum(sizes) + after))
    return layout, layout.size, need + (layout.size * action_type(A).itemsize if policy else 0)


def _too_large(problem: ImpairedMDP, states: int, need: int, limit: int, at_least: bool) -> TooLarge:
    word = "at least " if at_least else ""
    S, A = problem.n_states, problem.n_actions
    fits = None
    if problem.loss is None:
        longest = (problem.warmup or problem.law.max_delay) - 1
        if problem.n_actions > 1:  # deeper blocks are over the limit by themselves
            longest = min(longest, int(math.log(max(limit / S, 1), A)))
        for k in range(longest, problem.actuation - 1, -1):
            shorter = problem.behind(problem.channel.delay.capped(k - problem.actuation))
            layout, _, bytes_there = _needs(shorter, limit, policy=False, kept=True)
            if layout is not None and bytes_there <= limit:
                fits = k
                break
    ladder = "" if fits is None else (
        f"oldlight.solve(problem, depth={fits}) fits and gives a policy with bounds on both sides; "
        "oldlight.truncate(problem, probability=...) computes what a shorter delay costs; "
    )  # fmt: skip
    disk = (
        f"scratch=FOLDER keeps the tables in files of a disk with {format_bytes(need)} left; "
        if need < MOST_ON_DISK
        else ""
    )
    count = f"{states:,}" if states < 10**15 else f"10^{math.log10(states):.0f}"
    return TooLarge(
        f"an exact plan for {problem.channel!r} on S={S}, A={A}, H={problem.horizon} has {word}{count} information "
        f"states and needs {word}{format_bytes(need)}; the limit is {format_bytes(limit)}. Ways out: {ladder}{disk}raise max_bytes"
    )
