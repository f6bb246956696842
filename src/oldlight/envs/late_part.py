"""`LatePart`: a process of two components, one seen at once and one late by d steps, planned exactly as a process of what is known.

A state is a pair s = (x, y), numbered x·Y + y. At time h the agent has seen x_0, .., x_h and y_0, .., y_{h−d}. Because (x, y) is a Markov chain
once the actions are given, everything before the newest whole pair is of no use, and what is known is

    κ = (y_{h−d}, x_{h−d}, .., x_h, a_{h−d}, .., a_{h−1}),        before step d:  (nothing, x_0, .., x_h, a_0, .., a_{h−1})

What the fresher component has shown since tells of the other one: that is why no newest state and queue of actions will do. With
f_0(y) = 1 for the y that was seen (the law of y_0 given x_0 before step d) and, along the path,

    f_{j+1}(y') = Σ_y f_j(y)·P(x_{j+1}, y' | x_j, y, a_j)

the law of the present y is f, normalised, the mean reward of an action is that under this law, and the next κ is drawn by keeping the value of
y_{h−d+1} apart while going along the path: P(y_{h−d+1} = z, x_{h+1} | κ, a) is the share of the weight that goes through z and ends in x_{h+1}. So the κ are the
states of a process with full information, whose plan is the exact optimum: `solve(ImpairedMDP(part.mdp, "none"))`. There are at most
Y·X^(d+1)·A^d of them after step d, those that cannot be reached left out; a longer delay than that allows is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from oldlight import checks
from oldlight.arrays import Floats
from oldlight.model.mdp import TabularMDP

MOST = 200_000  # pairs of something known and an action
Known = tuple[int, tuple[int, ...], tuple[int, ...]]  # (y or −1, the x since, the actions since)


class LatePart:
    """What is known of a process of two components, one of them late, as a process.

    Parameters
    ----------
    mdp : TabularMDP
        The process, the same at every step; its state is x·Y + y.
    at_once : int
        X, the number of values of the component that is seen at once.
    delay : int
        d, how late the other component is seen.

    Examples
    --------
    >>> import oldlight as ol
    >>> from oldlight.envs import LatePart
    >>> chain = ol.instances.sensing_chain(0.8, n_states=12, horizon=6)  # as 3 rooms of 4 places: the room is seen at once, the place 2 steps later
    >>> part = LatePart(chain, at_once=3, delay=2)
    >>> both_late, none_late = (ol.solve(ol.ImpairedMDP(chain, link)).value for link in ("constant:2", "none"))
    >>> round(both_late, 3), round(ol.solve(ol.ImpairedMDP(part.mdp, "none")).value, 3), round(none_late, 3)
    (1.699, 2.404, 2.721)
    """

    def __init__(self, mdp: TabularMDP, *, at_once: int, delay: int) -> None:
        X, self.delay = checks.whole("at_once", at_once, least=1), checks.whole("delay", delay)
        if mdp.n_states % X:
            raise ValueError(
                f"at_once is {X}, expected a divisor of the {mdp.n_states} states, which are numbered x·Y + y"
            )
        if not (mdp.stationary_transitions and mdp.stationary_rewards):
            raise ValueError(
                "the process changes with the step, expected one that is the same at every step; put the step into the component that is seen at once"
            )
        Y, A = mdp.n_states // X, mdp.n_actions
        if A * Y * X * (X * A) ** self.delay > MOST:
            raise ValueError(
                f"two components of {X} and {Y} values, the second late by {self.delay}, make up to {A * Y * X * (X * A) ** self.delay:,} pairs of something known "
                f"and an action, expected at most {MOST:,}; give a shorter delay or fewer values"
            )
        self._P = np.asarray(mdp.transitions[0]).reshape(X, Y, A, X, Y)
        self._R = np.asarray(mdp.rewards[0]).reshape(X, Y, A)
        self._start = np.asarray(mdp.initial).reshape(X, Y)
        self._numbers: dict[Known, int] = {}
        self.mdp = self._process(mdp)

    @property
    def known(self) -> list[Known]:
        """What each state of the process stands for: (y, the x since, the actions since); y is −1 where nothing of it was seen."""
        return list(self._numbers)

    def state(self, y: int | None, xs: Sequence[int], actions: Sequence[int]) -> int:
        """The state of what is known: the newest y (None: nothing yet), x from its step on, and the actions since."""
        what = (-1 if y is None else int(y), tuple(map(int, xs)), tuple(map(int, actions)))
        if what not in self._numbers:
            raise ValueError(
                f"{what} cannot be known: expected one more x than actions, at most {self.delay} actions, and a path that the process can go"
            )
        return self._numbers[what]

    def _first(self) -> Iterator[tuple[Known, float]]:
        """What is known at time 0, and how likely it is."""
        for x, row in enumerate(self._start):
            if self.delay:
                yield (-1, (x,), ()), float(row.sum())
            else:
                yield from (((y, (x,), ()), float(p)) for y, p in enumerate(row))

    def _shows_next(self, what: Known) -> bool:
        """Is another y seen at the next time?"""
        return what[0] >= 0 or len(what[2]) == self.delay - 1

    def _weights(self, what: Known) -> Floats:
        """weights[z, y]: of the paths to the present y that go through z at the step that is seen next; all in row 0 where that is none yet."""
        y, xs, actions = what
        f = self._start[xs[0]] if y < 0 else np.eye(self._P.shape[1])[y]
        through = np.diag(f) if y < 0 and self._shows_next(what) else f[None, :]
        for j, a in enumerate(actions):
            through = through @ self._P[xs[j], :, a, xs[j + 1], :]
            if j == 0 and y >= 0:
                through = np.diag(through[0])
        weights: Floats = through / through.sum()
        return weights

    def _next(self, what: Known, weights: Floats, a: int) -> Iterator[tuple[Known, float]]:
        """What is known after action a, and how likely it is."""
        y, xs, actions = what
        if not self.delay:
            for x, row in enumerate(self._P[xs[0], y, a]):
                yield from (((z, (x,), ()), float(p)) for z, p in enumerate(row))
            return
        ends = np.einsum("zy,yxw->zx", weights, self._P[xs[-1], :, a])
        for z, x in np.argwhere(ends > 0).tolist():
            if not self._shows_next(what):
                yield (-1, (*xs, x), (*actions, a)), float(ends[z, x])
            elif y < 0:
                yield (z, (*xs, x), (*actions, a)), float(ends[z, x])
            else:
                yield (z, (*xs[1:], x), (*actions[1:], a)), float(ends[z, x])

    def _process(self, mdp: TabularMDP) -> TabularMDP:
        """All that can be known, found from the start on, and how it moves."""
        first = {what: p for what, p in self._first() if p > 0}
        self._numbers |= {what: k for k, what in enumerate(first)}
        rows: list[tuple[int, int, int, float]] = []
        rewards: list[Floats] = []
        waiting = list(first)
        for what in waiting:
            weights, s = self._weights(what), self._numbers[what]
            rewards.append(weights.sum(axis=0) @ self._R[what[1][-1]])
            for a in range(mdp.n_actions):
                for after, p in self._next(what, weights, a):
                    if p > 0:
                        if after not in self._numbers:
                            self._numbers[after] = len(self._numbers)
                            waiting.append(after)
                        rows.append((s, a, self._numbers[after], p))
        origin, action, after_it, p_of = (np.array(column) for column in zip(*rows, strict=True))
        total = np.zeros((len(rewards), mdp.n_actions))
        np.add.at(total, (origin, action), p_of)
        initial = np.zeros(len(rewards))
        initial[: len(first)] = list(first.values())
        return TabularMDP(
            {"s": origin, "a": action, "s2": after_it, "p": p_of / total[origin, action]},
            np.array(rewards),
            horizon=mdp.horizon,
            initial=initial / initial.sum(),
            discount=mdp.discount,
            average=mdp.average,
        )

    def __repr__(self) -> str:
        X, Y = self._start.shape
        return f"LatePart({X} × {Y} values, the second late by {self.delay}, {self.mdp.n_states:,} states of what is known)"
