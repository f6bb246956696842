"""What an agent knows at time h, the belief that follows from it, and where it stands in a table.

The information state is τ_h = (t, s_t, queue a_t..a_{h−1}, δ): the newest visible step t, its state, the actions since,
and the number of steps δ waited since that observation arrived. When nothing has been seen yet there is no t and no state, and
the queue holds every action so far: the *root*. The best policy of τ_h is as good as the best policy of the whole history.

The belief: given τ_h, the current state has the law  b_h = e_{s_t} P_t(·|·, a_t) ··· P_{h−1}(·|·, a_{h−1}),  or rho in
place of e_{s_t} at the root. Waiting reveals nothing of the state: Δ_t is drawn from (s_t, a_t), both known.

**Codes.** A queue q1..qm (q1 the oldest) has the code Σ_i q_i·A^{i−1}: the newest action is the most significant digit.
So the newest action a is a slow axis of a value table and a maximum over it is an elementwise maximum of long vectors.

    append a:            code + a·A^m            drop the oldest:      code // A

**Layout.** All information states of one problem as one flat table: per time h one block for each feasible (m, δ), the
queue length and the wait, of S·A^m entries at offset[h, m, δ] + s·A^m + code; and one root block of A^h entries where
nothing can have been seen by time h.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oldlight.arrays import Floats
from oldlight.checks import TooLarge
from oldlight.machine import default_limit, format_bytes
from oldlight.model.channels.delay_law import DelayLaw, is_kept
from oldlight.model.held_steps import certain
from oldlight.model.link_information import LinkInformation, check_link, law_of_state
from oldlight.model.possible import check
from oldlight.model.problem import ImpairedMDP, checked_problem


class Information(NamedTuple):
    """τ_h, what an agent knows at time h.

    Parameters
    ----------
    h : int
        The step that the action chosen now acts on.
    t, state : int or None
        The newest visible step and its state; None when nothing has been seen.
    queue : tuple of int
        The actions since step t, oldest first.
    waited : int
        Steps since that observation arrived.

    Examples
    --------
    >>> import oldlight as ol
    >>> ol.Information.seen(t=1, state=4, queue=(0, 0))  # at time 3
    Information(h=3, t=1, state=4, queue=(0, 0), waited=0)
    """

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
        b = problem.mdp.advanced(b, max(t + i, 0), a)
    return b


def advance(B: Floats, acts: NDArray[Any], P: Any) -> Floats:
    """Each row's law one step on: B[i] @ P[:, acts[i], :], with P of axes (s, a, s2), or as `TabularMDP.matrix` has it."""
    P = P.reshape(-1, P.shape[-1]) if isinstance(P, np.ndarray) else P
    following, A = np.empty_like(B), P.shape[0] // P.shape[1]
    if len(B) == 1:
        return np.asarray(B @ P[int(acts[0]) :: A])
    for a in np.unique(acts):
        rows = acts == a
        following[rows] = B[rows] @ P[a::A]
    return following


def newest(problem: ImpairedMDP, info: Information) -> tuple[int, Floats]:
    """The newest step whose state is known, and its law: (t, e_{s_t}), or (0, rho) at the root."""
    if info.t is None or info.state is None:
        return 0, problem.initial
    return info.t, certain(problem.n_states, info.state)


def current(problem: ImpairedMDP, info: Information) -> Floats:
    """`belief` for an `info` that is known to be possible."""
    t, b = newest(problem, info)
    return push(problem, b, t, info.queue)


def belief(problem: ImpairedMDP, info: Any) -> Floats:
    """The distribution of the current state s_h given what the agent knows.

    Parameters
    ----------
    problem : ImpairedMDP
        The process and its channel.
    info : Information or LinkInformation
        What the agent knows at time h. One that no episode can lead to is refused.

    Returns
    -------
    ndarray, shape (S,)
        P(s_h = s | info).

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8, n_states=4), "constant:1")
    >>> ol.belief(problem, ol.Information.seen(t=0, state=1, queue=(0,))).round(6).tolist()  # "right" since then
    [0.2, 0.0, 0.8, 0.0]
    """
    checked_problem(problem, "belief")
    if not problem.has_delay_law or isinstance(info, LinkInformation):
        check_link(problem, info)
        return law_of_state(problem.mdp, info, len(info.queue), problem.initial)
    check(problem, info)
    if problem.arrival_probability is not None:
        settled_late(problem)  # a delay law that depends on hidden states makes a loss itself informative
    return current(problem, info)


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
        arrives = float(seen[u]) if u >= 0 else 0.0
        if arrives > 0:
            begin, b = newest(problem, info)
            b = push(problem, b, begin, longer[: u - begin])
            for s2 in np.flatnonzero(b > 0).tolist():
                yield arrives * float(b[s2]), Information(h + 1, u, s2, longer[u - begin :], 0)
        if arrives < 1:
            yield 1.0 - arrives, Information(h + 1, t, s, longer, waited + 1)
        return
    if t is None or s is None:
        theta = float(law.first_hazard[h + 1])
        following, row = np.arange(problem.n_states), problem.initial
        after = Information(h + 1, 0, 0, longer, 0)
    else:
        head = longer[0]
        forced = problem.warmup > 0 or h - t >= law.longest_delay
        table = law.at_step(law.hazard, t)
        theta = 1.0 if forced else float(table[min(s, table.shape[0] - 1), min(head, table.shape[1] - 1), waited])
        following, row = problem.mdp.row(max(t, 0), s, head)
        after = Information(h + 1, t + 1, 0, longer[1:], 0)
    if theta > 0:
        for s2, p in zip(following.tolist(), row.tolist(), strict=True):
            if p > 0:
                yield theta * p, after._replace(state=s2)
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
    """Where each information state of a delayed problem stands in a flat table (see the module's text).

    Parameters
    ----------
    horizon, n_states, n_actions : int
        H, S and A.
    offset : ndarray of int, shape (H, M + 1, M + 1)
        [h, m, δ]: where the block of queue length m and wait δ begins; −1 where there is none.
    root : ndarray of int, shape (H,)
        Where the block begins in which nothing has been seen; −1 where something always has.
    size : int
        Number of information states.

    Examples
    --------
    >>> import oldlight as ol
    >>> layout = ol.Layout.of(ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:2"))
    >>> layout
    Layout(H=10, S=20, A=5, 4,006 information states)
    >>> layout.index(ol.Information.seen(t=0, state=1, queue=(0, 0)))
    25
    """

    horizon: int
    n_states: int
    n_actions: int
    offset: NDArray[np.int64]  # [h, m, δ]; −1 where infeasible
    root: NDArray[np.int64]  # [h]; −1 where something has always been seen
    size: int

    @classmethod
    def of(cls, problem: ImpairedMDP) -> Layout:
        """Only feasible blocks. Sizes are exact whole numbers, however large; nothing of that size is made here. It is made once for a problem."""
        checked_problem(problem, "Layout.of")
        assert problem.horizon == problem.law.horizon
        if "layout" not in problem._made:
            if problem.arrival_probability is not None:
                raise ValueError(
                    f"{problem.channel!r} loses observations; a table of information states is for delay alone"
                )
            short = is_kept(problem.law) and problem.warmup <= problem.horizon
            make = _kept_layout if short else cls._of
            problem._made["layout"] = make(problem.law, problem.n_states, problem.n_actions, problem.warmup)
        found: Layout = problem._made["layout"]
        return found

    @classmethod
    def _of(cls, law: DelayLaw, S: int, A: int, warmup: int) -> Layout:
        H = law.horizon
        if warmup:
            h, roots = np.arange(H), np.zeros(0, np.int64)
            m, waited = np.full(H, warmup), np.zeros(H, np.int64)
        else:
            h, m, waited = _feasible(law)
            tail = np.append(np.cumsum(law.first[::-1])[::-1], 0.0)[1 : H + 1]
            roots = np.flatnonzero(tail > 0)
        longest = int(m.max(initial=0))
        _check_places(H, longest)
        offset = np.full((H, longest + 1, longest + 1), -1, dtype=np.int64)
        root = np.full(H, -1, dtype=np.int64)
        times = np.bincount(m).tolist()  # how many blocks have a queue of length m
        sizes = {n: S * A**n for n, k in enumerate(times) if k}
        total, largest = sum(size * times[n] for n, size in sizes.items()), 2**62
        if total < largest:
            each = np.array([sizes[n] for n in sorted(sizes)], dtype=np.int64)[np.searchsorted(sorted(sizes), m)]
            offset[h, m, waited] = np.cumsum(each) - each
        else:
            before = accumulate((sizes[n] for n in m.tolist()), initial=0)
            offset[h, m, waited] = [min(at, largest) for at, _ in zip(before, m, strict=False)]
        size = total
        for at in roots.tolist():
            root[at] = min(size, largest)
            size += A**at
        return cls(H, S, A, offset, root, size)

    def blocks(self, h: int) -> Iterator[Block]:
        """The feasible blocks of time h, shortest queue first."""
        for m, waited in np.argwhere(self.offset[h] >= 0):
            yield Block(h, int(m), int(waited), int(self.offset[h, m, waited]))

    def block_size(self, m: int) -> int:
        """S·A^m, the entries of a block of queue length m."""
        return int(self.n_states * self.n_actions**m)

    @cached_property
    def entries(self) -> list[int]:
        """Entries of all blocks of each time, with the root counted per start state."""
        counts = np.count_nonzero(self.offset >= 0, axis=2)  # [h, m]
        sizes = [self.block_size(m) if counts[:, m].any() else 0 for m in range(counts.shape[1])]
        rows, which = np.unique(counts, axis=0, return_inverse=True)
        totals = [sum(n * size for n, size in zip(row, sizes, strict=True)) for row in rows.tolist()]
        found = [totals[i] for i in which.reshape(-1).tolist()]
        for h in np.flatnonzero(self.root >= 0).tolist():
            found[h] += self.block_size(h)
        return found

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

    def __repr__(self) -> str:
        return f"Layout(H={self.horizon}, S={self.n_states}, A={self.n_actions}, {self.size:,} information states)"

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


_kept_layout = lru_cache(maxsize=64)(Layout._of)  # for the next problem with this law


def _check_places(horizon: int, longest: int) -> None:
    """Refuse queues so long that even the places of their blocks do not fit."""
    size = 8 * horizon * (longest + 1) ** 2
    if size > default_limit():
        raise TooLarge(
            f"queues of up to {longest:,} actions: even the places of the blocks of information states, one for each time, queue "
            f"length and wait, take {format_bytes(size)}. Cap the delay: channel.capped(k)"
        )


def _feasible(law: DelayLaw) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """All feasible (h, m, δ) of a cold start, in that order: step t = h − m came d = m − δ late, and the next has not come in δ steps."""
    H = law.horizon
    t, d = np.nonzero(law.possible_delays)
    waits = np.array([law.longest_wait(i) for i in range(len(law.interarrival))])
    longest = np.minimum(waits[np.minimum(t, len(waits) - 1)], np.minimum(law.longest_delay - d, H - 1 - t - d))
    t, d, longest = (x[longest >= 0] for x in (t, d, longest))
    _check_places(H, int((d + longest).max(initial=0)))
    waited = np.arange((longest + 1).sum()) - np.repeat(np.cumsum(longest + 1) - longest - 1, longest + 1)
    m = np.repeat(d, longest + 1) + waited
    h = np.repeat(t, longest + 1) + m
    order = np.lexsort((waited, m, h))
    return h[order], m[order], waited[order]


def same_layout(one: Layout, other: Layout) -> bool:
    """Do two tables index the same information states?"""
    if one is other:
        return True
    sizes = (one.horizon, one.n_states, one.n_actions) == (other.horizon, other.n_states, other.n_actions)
    return sizes and np.array_equal(one.offset, other.offset) and np.array_equal(one.root, other.root)
