"""What a policy earns for ever: the Markov chain of the information states that it reaches, and its value between two bounds.

A state of the chain is what the agent knows, (node, s_t, actions since), with the reward that is expected of the action taken there; what
follows is the tick of the link and the law of the state that it makes visible. A deterministic policy reaches few. A silence has no end, so from
age `reach` on the agent is taken to do one action, `rest`, whatever it has seen, until something newer arrives: such a state is (node, s, queue) of
the step that may still become visible next, s being hidden from the agent. (Behind a link whose delays only grow it does so for ever.) So the chain
is finite and closed, and its value that of one executable policy.

With the chain's rewards R and transitions Q, whatever v is (MacQueen):

    discount u    R + u·Qv + u/(1−u)·[min, max](R + u·Qv − v)          average    [min, max](R + Qv − v)

so v comes from any solver, and the bounds are certified by one more product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.arrays import Floats
from oldlight.model.channels.automaton import NOTHING_NEWER, ChannelAutomaton
from oldlight.model.held_steps import certain
from oldlight.model.link_information import LinkInformation
from oldlight.model.mdp import TabularMDP
from oldlight.planning.stationary_tables import Extrapolation, strong_classes

DIRECT = 2_000  # states up to which the chain is solved at once
SWEEPS = 5_000
END = "end"
# (what is known, ticks since anything newer) -> (action, probability) pairs
Choice = Callable[[LinkInformation, int], Any]


@dataclass
class PolicyChain:
    """The chain of `choose` on a process behind a closed automaton.

    growing: beyond `reach` the agent rests for ever. stops: the chain ends there, in state `end` that keeps to itself. waits: whether the policy is told how long nothing newer has come.
    """

    mdp: TabularMDP
    link: ChannelAutomaton
    choose: Choice
    reach: int
    rest: int
    growing: bool = False
    waits: bool = False
    stops: bool = False
    max_states: int = 200_000
    number: dict[Any, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        A, matrix = self.mdp.n_actions, self.mdp.matrix(0)
        self._by_action = [matrix[a::A] if self.mdp.sparse else np.ascontiguousarray(matrix[a::A]) for a in range(A)]
        self.R = self.mdp.rewards[0]
        self._todo: list[tuple[Any, list[Floats]]] = []
        self._rows: list[int] = []
        self._columns: list[int] = []
        self._mass: list[float] = []
        self._reward: list[float] = []
        self.full = False

    def run(
        self, start: list[tuple[float, int, int, tuple[int, ...]]], initial: Floats
    ) -> tuple[Any, Floats, Floats] | None:
        """(Q, R, law of the first state of the chain); None where it has more than `max_states`. start: (probability, node, state or −1 where nothing is seen, queue)."""
        from scipy.sparse import csr_array

        self._initial = initial
        begin: dict[int, float] = {}
        for p, n, s, queue in start:
            i = self._known(n, s, queue, 0)
            begin[i] = begin.get(i, 0.0) + p
        done = 0
        while done < len(self._todo):
            key, laws = self._todo[done]
            self._todo[done] = (key, [])
            self._expand(done, key, laws)
            done += 1
            if self.full:
                return None
        N = len(self._todo)
        law = np.zeros(N)
        for i, p in begin.items():
            law[i] = p
        Q = csr_array((self._mass, (self._rows, self._columns)), shape=(N, N))
        return Q, np.array(self._reward), law

    def _place(self, key: Any, laws: Callable[[], list[Floats]]) -> int:
        i = self.number.get(key)
        if i is None:
            if len(self._todo) >= self.max_states:
                self.full = True
                return 0
            i = self.number[key] = len(self._todo)
            self._todo.append((key, laws()))
            self._reward.append(0.0)
        return i

    def _known(self, n: int, s: int, queue: tuple[int, ...], wait: int) -> int:
        """The place of an information state, with the laws of the states of steps t, t + 1, .. up to now."""

        def laws() -> list[Floats]:
            out = [self._initial if s < 0 else certain(len(self.R), s)]
            for a in queue:
                out.append(out[-1] @ self._by_action[a])
            return out

        return self._place((n, s, queue, wait if self.waits else 0), laws)

    def _expand(self, i: int, key: Any, laws: list[Floats]) -> None:
        if key == END:
            self._add(i, i, 1.0)
            return
        if len(key) == 3:
            self._rests(i, *key)
            return
        n, s, queue, wait = key
        m = len(queue)
        info = LinkInformation(m, self.link.nodes[n], None if s < 0 else 0, None if s < 0 else s, queue)
        for a, share in self.choose(info, wait):
            self._reward[i] += share * float(laws[m] @ self.R[:, a])
            after, longer = [*laws, laws[m] @ self._by_action[a]], (*queue, a)
            for p, to, age in self.link.row(n):
                if age != NOTHING_NEWER:
                    self._seen(i, share * p, to, after[m + 1 - age], longer[m + 1 - age :])
                elif m + 1 <= self.reach:
                    here = (to, s, longer, wait + 1 if self.waits else 0)
                    self._add(i, self._place(here, partial(_same, after)), share * p)
                elif self.stops:
                    self._add(i, self._place(END, list), share * p)
                elif self.growing:
                    self._hidden(i, share * p, -1, after[m + 1], ())
                else:
                    d = min(self.link.longest, m + 1)
                    self._hidden(i, share * p, to, after[m + 1 - d], longer[m + 1 - d :])

    def _rests(self, i: int, n: int, s: int, queue: tuple[int, ...]) -> None:
        d, longer = len(queue), (*queue, self.rest)
        laws = [certain(len(self.R), s)]
        for a in longer:
            laws.append(laws[-1] @ self._by_action[a])
        self._reward[i] = float(laws[d] @ self.R[:, self.rest])
        if n < 0:
            self._hidden(i, 1.0, -1, laws[1], ())
            return
        for p, to, age in self.link.row(n):
            if age != NOTHING_NEWER:
                self._seen(i, p, to, laws[d + 1 - age], longer[d + 1 - age :])
            else:
                keep = min(self.link.longest, d + 1)
                self._hidden(i, p, to, laws[d + 1 - keep], longer[d + 1 - keep :])

    def _seen(self, i: int, p: float, n: int, law: Floats, queue: tuple[int, ...]) -> None:
        for s in np.flatnonzero(law > 0).tolist():
            self._add(i, self._known(n, s, queue, 0), p * float(law[s]))

    def _hidden(self, i: int, p: float, n: int, law: Floats, queue: tuple[int, ...]) -> None:
        for s in np.flatnonzero(law > 0).tolist():
            self._add(i, self._place((n, s, queue), list), p * float(law[s]))

    def _add(self, i: int, j: int, p: float) -> None:
        self._rows.append(i)
        self._columns.append(j)
        self._mass.append(p)


def _same(laws: list[Floats]) -> list[Floats]:
    return laws


def chain_value(Q: Any, R: Floats, law: Floats, discount: float | None, tolerance: float) -> tuple[float, float]:
    """Bounds on the value of a chain from its first law, at most `tolerance` apart where that can be had; for the average of a chain of several
    closed classes, the mean of theirs by the probability to end in each."""
    if discount is not None:
        return _bounded(Q, R, law, discount, tolerance)
    label = strong_classes(Q)
    rows = Q.tocoo()
    leaves = np.unique(label[rows.row[label[rows.row] != label[rows.col]]])
    closed = np.setdiff1d(np.unique(label), leaves)
    if len(closed) == 1:
        return _bounded(Q, R, law, None, tolerance)
    within = np.isin(label, closed)
    lower = upper = 0.0
    for c in closed.tolist():
        inside = np.flatnonzero(label == c)
        ends = _bounded(Q[inside][:, inside], R[inside], np.zeros(len(inside)), None, tolerance)
        share = float(law @ _absorbed(Q, within, label == c))
        lower, upper = lower + share * ends[0], upper + share * ends[1]
    return lower, upper


def _absorbed(Q: Any, within: NDArray[np.bool_], there: NDArray[np.bool_]) -> Floats:
    """The probability to end in the class `there`, from each state."""
    from scipy.sparse import identity
    from scipy.sparse.linalg import spsolve

    out, inside = there.astype(np.float64), np.flatnonzero(~within)
    if len(inside):
        left = Q[inside]
        system = identity(len(inside), format="csc") - left[:, inside].tocsc()
        out[inside] = spsolve(system.tocsc(), np.asarray(left[:, np.flatnonzero(there)].sum(axis=1)).reshape(-1))
    return out


def _bounded(Q: Any, R: Floats, law: Floats, discount: float | None, tolerance: float) -> tuple[float, float]:
    u = 1.0 if discount is None else discount
    factor = 1.0 if discount is None else u / (1.0 - u)

    def bounds(v: Floats, after: Floats) -> tuple[float, float]:
        low, high = float((after - v).min()), float((after - v).max())
        at = 0.0 if discount is None else float(law @ after)
        return at + factor * low, at + factor * high

    v = _direct(Q, R, u, discount is None) if len(R) <= DIRECT else np.zeros(len(R))
    after = R + u * (Q @ v)
    lower, upper = bounds(v, after)
    guess = Extrapolation()
    for _ in range(SWEEPS):
        if upper - lower <= tolerance:
            break
        v = guess.next(v, v + 0.5 * (after - v), upper - lower)
        if discount is None:
            v = v - v[0]
        after = R + u * (Q @ v)
        low, high = bounds(v, after)
        lower, upper = max(lower, low), min(upper, high)
    return lower, max(upper, lower)


def _direct(Q: Any, R: Floats, u: float, average: bool) -> Floats:
    """The chain's values by a linear system: v = R + u·Qv, or with the gain g as one more unknown and v_0 = 0."""
    import warnings

    from scipy.sparse import bmat, csc_array, identity
    from scipy.sparse.linalg import spsolve

    N = len(R)
    system = identity(N, format="csr") - u * Q
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if average:
            ones, first = csc_array(np.ones((N, 1))), csc_array(np.eye(1, N))
            v = spsolve(bmat([[system, ones], [first, None]], format="csc"), np.append(R, 0.0))[:-1]
        else:
            v = spsolve(system.tocsc(), R)
    v = np.atleast_1d(np.asarray(v))
    return v if np.isfinite(v).all() else np.zeros(N)


def silence(link: ChannelAutomaton, u: float, most: int, small: float) -> int:
    """The number of ticks in a row without anything newer whose discounted probability is below `small` from every node; at most `most`."""
    N = len(link.nodes)
    steps = np.zeros((N, N))
    for n in range(N):
        for p, to, age in link.row(n):
            if age == NOTHING_NEWER:
                steps[n, to] += u * p
    f = np.ones(N)
    for j in range(most):
        if f.max() <= small:
            return j
        f = steps @ f
    return most
