"""What an agent knows at time h, the belief that follows from it, and where it stands in a table.

The information state is τ_h = (t, s_t, queue a_t..a_{h−1}, δ): the newest visible step t, its state, the actions since,
and the number of steps δ waited since that observation arrived. When nothing has been
seen yet there is no t and no state, and the queue holds every action so far: the *root*. Policies that are functions of
τ_h lose nothing against policies of the whole history.

The belief: given τ_h, the current state has the law  b_h = e_{s_t} P_t(·|·, a_t) ··· P_{h−1}(·|·, a_{h−1}),  or rho in
place of e_{s_t} at the root. Waiting carries no news of the state: Δ_t is drawn from (s_t, a_t), both known.

**Codes.** A queue q1..qm (q1 the oldest) has the code Σ_i q_i·A^{i−1}: the newest action is the most significant digit.
So the newest action a is a slow axis of a value table and a maximum over it is an elementwise maximum of long vectors.

    append a:            code + a·A^m            drop the oldest:      code // A

**Layout.** All information states of one problem as one flat table: per time h one block for each feasible (m, δ), the
queue length and the wait, of S·A^m entries at offset[h, m, δ] + s·A^m + code; and one root block of A^h entries where
nothing can have been seen by time h.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oldlight.model.link_information import LinkInformation, check_link, law_of_state
from oldlight.model.problem import ImpairedMDP, checked_problem

Floats = NDArray[np.float64]


class Information(NamedTuple):
    """τ_h. `t` and `state` are None when nothing has been seen; `queue` is the actions since, oldest first."""

    h: int
    t: int | None
    state: int | None
    queue: tuple[int, ...]
    waited: int = 0

    @classmethod
    def nothing_seen(cls, queue: tuple[int, ...] = ()) -> Information:
        """The root at time h = len(queue)."""
        return cls(len(queue), None, None, tuple(queue), len(queue) + 1)

    @classmethod
    def seen(cls, t: int, state: int, queue: tuple[int, ...] = (), waited: int = 0) -> Information:
        """State `state` of step t is the newest seen, and `queue` was done since; so it is time t + len(queue)."""
        return cls(t + len(queue), t, state, tuple(queue), waited)


def encode(queue: tuple[int, ...], n_actions: int) -> int:
    """The code of a queue, oldest action first."""
    return sum(a * n_actions**i for i, a in enumerate(queue))


def decode(code: int, length: int, n_actions: int) -> tuple[int, ...]:
    """The queue with that code."""
    return tuple(code // n_actions**i % n_actions for i in range(length))


def push(problem: ImpairedMDP, b: Floats, t: int, queue: tuple[int, ...]) -> Floats:
    """The law of s_{t + len(queue)} when s_t ~ b and `queue` is done from step t on."""
    for i, a in enumerate(queue):
        b = b @ problem.transitions_at(t + i)[:, a, :]
    return b


def newest(problem: ImpairedMDP, info: Information) -> tuple[int, Floats]:
    """The newest step whose state is known, and its law: (t, e_{s_t}), or (0, rho) at the root."""
    if info.t is None:
        return 0, problem.initial
    corner = np.zeros(problem.n_states)
    corner[info.state] = 1.0
    return info.t, corner


def current(problem: ImpairedMDP, info: Information) -> Floats:
    """`belief` for an `info` that is known to be possible."""
    t, b = newest(problem, info)
    return push(problem, b, t, info.queue)


def belief(problem: ImpairedMDP, info: Any) -> Floats:
    """The law of the current state s_h given what the agent knows. An impossible `info` raises and says why."""
    checked_problem(problem, "belief")
    if not problem.has_delay_law or isinstance(info, LinkInformation):
        check_link(problem, info)
        return law_of_state(problem.mdp, info, len(info.queue), problem.initial)
    check(problem, info)
    if problem.arrival_probability is not None:
        settled_late(problem)  # a delay law that depends on hidden states makes a loss itself informative
    return current(problem, info)


def check(problem: ImpairedMDP, info: Information) -> None:
    """Raise ValueError if no episode of `problem` can lead to `info`."""
    h, t, s, queue, waited = info
    H, S, A = problem.horizon, problem.n_states, problem.n_actions

    def no(why: str) -> ValueError:
        return ValueError(f"impossible information {tuple(info)}: {why}")

    if not 0 <= h < H:
        raise no(f"time h = {h} is outside 0..{H - 1}")
    for a in queue:
        if not 0 <= a < A:
            raise no(f"action {a} in the queue is outside 0..{A - 1}")
    law, seen = problem.law, problem.arrival_probability
    for i, a in enumerate(problem.pending[:h]):
        j = i - (t or 0)
        if 0 <= j < len(queue) and queue[j] != a:
            raise no(f"the action of step {i} was under way before the start: it is {a}, not {queue[j]}")
    if t is None or s is None:
        if t is not None or s is not None:
            raise no("t and state must both be given, or both be None when nothing has been seen")
        if len(queue) != h:
            raise no(f"nothing seen by time {h} means {h} actions in the queue, not {len(queue)}")
        if problem.warmup:
            raise no("after a warm start something has always been seen")
        if seen is None:
            if law.first[h + 1 :].sum() <= 0:
                raise no(f"the first observation has always arrived by time {h}")
        elif law.constant is not None:
            _check_lost(seen, 0, h - law.constant, no)
        return
    if not -problem.warmup <= t <= h:
        raise no(f"the newest visible step t = {t} is outside {-problem.warmup}..{h}")
    if not 0 <= s < S:
        raise no(f"state {s} is outside 0..{S - 1}")
    if len(queue) != h - t:
        raise no(f"from step t = {t} to time h = {h} there are {h - t} actions, not {len(queue)}")
    reached = _reachable(problem, t)
    if not reached[s].any():
        raise no(f"no way of acting reaches state {s} at step {t}")
    m = h - t
    if problem.warmup:
        if m != problem.warmup or waited:
            raise no(
                f"with a constant delay {problem.warmup} the newest visible step at time {h} is {h - problem.warmup}"
            )
        return
    if not 0 <= waited <= m:
        raise no(f"waited = {waited} is outside 0..{m}, the steps since step {t}")
    if m - waited > law.longest_delay or not reached[s, m - waited]:
        raise no(f"the observation of step {t} in state {s} cannot be exactly {m - waited} late")
    if seen is not None:
        if seen[t] <= 0:
            raise no(f"the observation of step {t} is never seen")
        if law.constant is not None:
            _check_lost(seen, t + 1, h - law.constant, no)
    elif waited:
        risk = law.at_step(law.at_risk, t)
        row = risk[min(s, risk.shape[0] - 1), min(queue[0], risk.shape[1] - 1)]
        if m > law.longest_delay or waited >= len(row) or row[waited] <= 0:
            raise no(f"after state {s} and action {queue[0]} the next observation never takes {waited} steps more")


def _check_lost(seen: Floats, first: int, last: int, no: Callable[[str], ValueError]) -> None:
    """Steps first..last are settled and none of them was seen: is that possible?"""
    always = np.flatnonzero(seen[first : last + 1] >= 1) if last >= first else np.zeros(0)
    if len(always):
        raise no(f"the observation of step {first + int(always[0])} is always seen")


def _reachable(problem: ImpairedMDP, t: int) -> NDArray[np.bool_]:
    """Axes (s, d): can step t be in state s with an observation that is d late? (One column after a warm start.)"""
    law, S = problem.law, problem.n_states
    if problem.warmup:
        mask = problem.initial > 0
        for i in range(-problem.warmup, t):
            mask = np.asarray((problem.transitions_at(i)[mask] > 0).any(axis=(0, 1)))
        return np.asarray(mask[:, None])
    reached = np.zeros((S, law.longest_delay + 1), dtype=bool)
    reached[:, : len(law.first)] = (problem.initial > 0)[:, None] & (law.first[: law.longest_delay + 1] > 0)
    for i in range(t):
        can = np.broadcast_to(law.at_step(law.interarrival, i) > 0, (S, problem.n_actions, law.interarrival.shape[-1]))
        moves_to = problem.transitions_at(i) > 0  # [s, a, s2]
        after = np.zeros_like(reached)
        for k in range(can.shape[-1]):
            to = np.asarray((moves_to & can[:, :, k, None]).any(axis=1))  # [s, s2]
            late = np.asarray((reached[:, :, None] & to[:, None, :]).any(axis=0)).T  # [s2, d]
            for d in np.flatnonzero(late.any(axis=0)).tolist():
                after[:, min(d + k, law.longest_delay)] |= late[:, d]
        reached = after
    return reached


def beginnings(problem: ImpairedMDP) -> Iterator[tuple[float, Information]]:
    """What the agent can know at time 0, and how likely."""
    S, A, warmup = problem.n_states, problem.n_actions, problem.warmup
    if warmup:
        for s in range(S):
            for code in range(A**warmup):
                yield 1.0 / (S * A**warmup), Information(0, -warmup, s, decode(code, warmup, A), 0)
        return
    at_once = float(problem.law.first[0]) * (
        1.0 if problem.arrival_probability is None else float(problem.arrival_probability[0])
    )
    for first in np.flatnonzero(problem.initial > 0).tolist():
        if at_once > 0:
            yield at_once * float(problem.initial[first]), Information(0, 0, first, (), 0)
    if at_once < 1:
        yield 1.0 - at_once, Information.nothing_seen()


def settled_late(problem: ImpairedMDP) -> int:
    """Under loss with a constant delay: how late an observation is seen or known to be lost. Refused for other laws."""
    if problem.law.constant is None or not (problem.loss and problem.loss.independent):
        raise ValueError(
            f"{problem.channel!r}: loss is planned and valued exactly for independent losses with a constant delay; this "
            "channel can be simulated: oldlight.simulate(problem, policy, episodes, seed=...). To plan, hold every observation until "
            "it is d steps old and count later ones as lost: Lossy(ConstantDelay(d), rate=...); for a measured link "
            "fit.with_deadline(d), or oldlight trace --deadline d"
        )
    return problem.law.constant


def moves(problem: ImpairedMDP, info: Information, a: int) -> Iterator[tuple[float, Information]]:
    """What the agent can know one step after acting a on `info`, and how likely (the paper's p_aug), for h < H − 1."""
    h, t, s, queue, waited = info
    longer = (*queue, a)
    law, seen = problem.law, problem.arrival_probability
    if seen is not None:
        u = h + 1 - settled_late(problem)  # the step that is settled at time h + 1
        chance = float(seen[u]) if u >= 0 else 0.0
        if chance > 0:
            begin, b = newest(problem, info)
            b = push(problem, b, begin, longer[: u - begin])
            for s2 in np.flatnonzero(b > 0).tolist():
                yield chance * float(b[s2]), Information(h + 1, u, s2, longer[u - begin :], 0)
        if chance < 1:
            yield 1.0 - chance, Information(h + 1, t, s, longer, waited + 1)
        return
    if t is None or s is None:
        theta = float(law.first_hazard[h + 1])
        row, after = problem.initial, Information(h + 1, 0, 0, longer, 0)
    else:
        head = longer[0]
        forced = problem.warmup > 0 or h - t >= law.longest_delay
        table = law.at_step(law.hazard, t)
        theta = 1.0 if forced else float(table[min(s, table.shape[0] - 1), min(head, table.shape[1] - 1), waited])
        row, after = problem.transitions_at(t)[s, head], Information(h + 1, t + 1, 0, longer[1:], 0)
    if theta > 0:
        for s2 in np.flatnonzero(row > 0).tolist():
            yield theta * float(row[s2]), after._replace(state=s2)
    if theta < 1:
        yield 1.0 - theta, Information(h + 1, t, s, longer, waited + 1)


class Block(NamedTuple):
    """The information states of time h with queue length m and wait δ: entries [s, code], t = h − m."""

    h: int
    m: int
    waited: int
    offset: int


@dataclass(frozen=True, eq=False)
class Layout:
    """Where each information state of a delayed problem stands in a flat table (see the module's text)."""

    horizon: int
    n_states: int
    n_actions: int
    offset: NDArray[np.int64]  # [h, m, δ]; −1 where infeasible
    root: NDArray[np.int64]  # [h]; −1 where something has always been seen
    size: int

    @classmethod
    def of(cls, problem: ImpairedMDP) -> Layout:
        """Only feasible blocks. Sizes are exact whole numbers, however large; nothing of that size is made here."""
        checked_problem(problem, "Layout.of")
        law = problem.law
        if problem.arrival_probability is not None:
            raise ValueError(
                f"{problem.channel!r} loses observations; a table of information states is for delay alone"
            )
        H, S, A = problem.horizon, problem.n_states, problem.n_actions
        keys: list[tuple[int, int, int]] = []
        roots: list[int] = []
        if problem.warmup:
            keys = [(h, problem.warmup, 0) for h in range(H)]
        else:
            alive = np.append(np.cumsum(law.first[::-1])[::-1], 0.0)
            waits = [law.longest_wait(i) for i in range(H)]
            for h in range(H):
                if h + 1 < len(alive) and alive[h + 1] > 0:
                    roots.append(h)
                for m in range(min(h, law.longest_delay) + 1):
                    t = h - m
                    keys += [(h, m, w) for w in range(min(m, waits[t]) + 1) if law.feasible_delays[t, m - w]]
        longest = max((m for _, m, _ in keys), default=0)
        offset = np.full((H, longest + 1, longest + 1), -1, dtype=np.int64)
        root = np.full(H, -1, dtype=np.int64)
        size = 0
        largest = np.iinfo(np.int64).max
        for key in keys:
            offset[key] = min(size, largest)
            size += S * A ** key[1]
        for h in roots:
            root[h] = min(size, largest)
            size += A**h
        return cls(H, S, A, offset, root, size)

    def blocks(self, h: int) -> Iterator[Block]:
        """The feasible blocks of time h, shortest queue first."""
        for m, waited in np.argwhere(self.offset[h] >= 0):
            yield Block(h, int(m), int(waited), int(self.offset[h, m, waited]))

    def block_size(self, m: int) -> int:
        return int(self.n_states * self.n_actions**m)

    def largest_at(self, h: int) -> int:
        """Entries of all blocks of time h, with the root counted per start state."""
        total = sum(self.block_size(b.m) for b in self.blocks(h))
        return total + (self.block_size(h) if self.root[h] >= 0 else 0)

    def index(self, info: Information) -> int:
        """Where `info` stands in the flat table; raises KeyError where it has no place."""
        code, m = encode(info.queue, self.n_actions), len(info.queue)
        h, S, A = info.h, self.n_states, self.n_actions
        if not (0 <= h < self.horizon and all(0 <= a < A for a in info.queue)):
            raise KeyError(f"no information state {tuple(info)} in this problem")
        if info.t is None or info.state is None:
            start = int(self.root[info.h])
            if start >= 0 and m == info.h:
                return start + code
        elif (
            info.t + m == h
            and 0 <= info.state < S
            and m < self.offset.shape[1]
            and 0 <= info.waited < self.offset.shape[2]
        ):
            start = int(self.offset[info.h, m, info.waited])
            if start >= 0:
                return int(start + info.state * self.n_actions**m + code)
        raise KeyError(f"no information state {tuple(info)} in this problem")

    def __iter__(self) -> Iterator[Information]:
        """Every information state, in the order of the flat table."""
        A = self.n_actions
        for h in range(self.horizon):
            for _, m, waited, _ in self.blocks(h):
                for s in range(self.n_states):
                    for code in range(A**m):
                        yield Information(h, h - m, s, decode(code, m, A), waited)
        for h in np.flatnonzero(self.root >= 0).tolist():
            for code in range(A**h):
                yield Information.nothing_seen(decode(code, h, A))
