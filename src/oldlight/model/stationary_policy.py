"""The plan of a process that runs for ever: one action for each node of the link, newest visible state and queue, whatever the time.

With D the depth of the plan's tables:

    age ≤ D              actions[node, age, s, queue]
    nothing seen, h < D  the root's action for the queue so far
    older                on the law b of the state of step h − D, pushed there from the newest visible state by the actions since: the action with the
                         largest Σ_s b'(s)·E[s, q2..qD, a], b' = b·P(q1) (D = 0: b·(r + u·P·E)); ties go to the lowest
    older than `reach`   `rest`, one action

It holds arrays only; files are npz without pickle.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight import checks, files
from oldlight.model.channels.automaton import ChannelAutomaton
from oldlight.model.channels.endless import growing_link, grows, is_hidden
from oldlight.model.held_steps import HeldSteps, certain
from oldlight.model.information import Information, encode
from oldlight.model.link_information import LinkInformation, PolicyOfNodes
from oldlight.model.link_policy import automaton_arrays, read_automaton
from oldlight.model.problem import ImpairedMDP

KIND = "oldlight.StationaryPolicy"
TIE = 1e-9


class StationaryPolicy(PolicyOfNodes):
    """What a plan without end decides at each `LinkInformation`, whatever its time.

    Parameters
    ----------
    automaton : ChannelAutomaton
        The closed link that was planned for.
    arrays : dict of arrays
        transitions (S, A, S), or (0, A, 0) where no law is ever needed, or the lists of a sparse process (`oldlight.model.held_steps`), rewards (S, A), initial (S,), number (A,) and kept: as in `LinkPolicy`; numbers: depth, reach, rest and whether the
        delays only grow; bounds: discount (1 for the average), lower and upper value; blocks (B, 4): node, length, place of its actions, row of its
        expectations or −1; actions; expectations (E, S, queues); roots (.., 3): time, node, place of its root_actions.
    true_link : ChannelAutomaton, optional
        Of merged laws of a hidden mode: the link to play on, nodes (node, configuration).
    """

    def __init__(
        self, automaton: ChannelAutomaton, arrays: dict[str, NDArray[Any]], true_link: ChannelAutomaton | None = None
    ) -> None:
        self.automaton, self.arrays, self.true_link = automaton, arrays, true_link
        self.n_states, self.n_actions = arrays["rewards"].shape
        self.depth, self.reach, self.rest, growing = (int(x) for x in arrays["numbers"])
        self.growing = bool(growing)
        self.discount, self.lower, self.upper = arrays["bounds"].tolist()
        self._steps = HeldSteps.from_arrays(arrays, self.n_states, self.n_actions)
        self._few, self.beyond = len(arrays["kept"]), len(arrays["expectations"]) > 0
        self._number: list[int] = arrays["number"].tolist()
        self._kept: list[int] = arrays["kept"].tolist()
        self.nodes: dict[Any, int] = {name: n for n, name in enumerate(automaton.nodes)}
        for name in () if true_link is None else true_link.nodes:
            if name not in self.nodes:
                self.nodes[name] = self.nodes[name[0]]  # type: ignore[index]
        self._blocks = {(n, L): (place, row) for n, L, place, row in arrays["blocks"].tolist()}
        self._roots = {(h, n): place for h, n, place in arrays["roots"].tolist()}
        self._nodes_of: dict[int, list[int]] = {}
        for n, L in self._blocks:
            self._nodes_of.setdefault(L, []).append(n)
        self._laws: dict[Any, int] = {}

    def action(self, info: Any) -> int:
        """The action at `info`, a `LinkInformation` (or an `Information` where its age tells the node)."""
        known = self.of_node(info)
        return self.choose(self.nodes.get(known.node, -1), known.state if known.t is not None else None, known.queue)

    def choose(self, n: int, state: int | None, queue: tuple[int, ...]) -> int:
        """The action at node number n (−1: none of the plan's) with the newest visible state, None where nothing has been seen."""
        L, D, arrays = len(queue), self.depth, self.arrays
        if state is None and L < D:
            place = self._roots.get((L, n), -1)
            if place < 0:
                place = next((p for (h, _), p in self._roots.items() if h == L), -1)
            return self._kept[int(arrays["root_actions"][place + self._code(queue)])] if place >= 0 else self.rest
        if (self.reach < L or not self.beyond) and (state is None or L > D):
            return self.rest
        place, row = self._block(n, min(L, D))
        if state is not None and L <= D:
            return self._kept[int(arrays["actions"][place + state * self._few**L + self._code(queue)])]
        case = (row, state, queue)
        if case not in self._laws:
            if len(self._laws) > 200_000:
                self._laws.clear()
            self._laws[case] = self._on_a_law(row, state, queue)
        return self._laws[case]

    def node_of_age(self, age: int, nothing: bool) -> int:
        """Some node that the plan knows with this age."""
        if nothing and age < self.depth:
            return next((n for h, n in self._roots if h == age), 0)
        return self._nodes_of.get(min(age, self.depth), [0])[0]

    def _block(self, n: int, L: int) -> tuple[int, int]:
        """Where the block of a node is; of another node of this age where the plan has no such node."""
        found = self._blocks.get((n, L))
        if found is None:
            here = self._nodes_of.get(L) or self._nodes_of[max(self._nodes_of)]
            found = self._blocks[here[0], L] if (here[0], L) in self._blocks else next(iter(self._blocks.values()))
        return found

    def _code(self, queue: tuple[int, ...]) -> int:
        return encode(tuple(self._number[a] for a in queue), self._few)

    def _on_a_law(self, row: int, state: int | None, queue: tuple[int, ...]) -> int:
        P, D = self._steps, self.depth
        b = self.arrays["initial"] if state is None else certain(self.n_states, state)
        for a in queue[: len(queue) - D]:
            b = P.push(b, 0, a)
        E = self.arrays["expectations"][row]
        if D == 0:
            x = b @ (self.arrays["rewards"][:, self._kept] + self.discount * P.expected(E[:, 0])[:, self._kept])
        else:
            last = queue[len(queue) - D :]
            W = self._few ** (D - 1)
            ahead = P.push(b, 0, last[0]) @ E[:, self._code(last[1:]) :: W][:, : self._few]
            x = ahead
        scale = float(np.abs(x).max()) or 1.0
        return self._kept[int(np.flatnonzero(x >= x.max() - TIE * scale)[0])]

    def of_node(self, info: Any) -> LinkInformation:
        """`info` as the automaton's; an `Information` where its age and wait tell the node."""
        if isinstance(info, LinkInformation):
            return info
        if isinstance(info, Information):
            L = len(info.queue)
            here = list(self._nodes_of.get(min(L, self.depth), ()))
            if info.t is None:
                here = [n for h, n in self._roots if h == L] or self._nodes_of.get(self.depth, [])
            names: list[Any] = [self.automaton.nodes[n] for n in here]
            if len(names) > 1:
                waited = [x for x in names if isinstance(x, tuple) and len(x) == 4 and x[2] == info.waited]
                names = waited if len(waited) == 1 else names
            if len(names) == 1 or (self.growing and names):
                return LinkInformation(info.h, names[0], info.t, info.state, tuple(info.queue))
        raise TypeError(
            f"{self!r} acts on oldlight.LinkInformation(h, node, t, state, queue), not on {info!r}; value and play it with "
            "oldlight.evaluate(problem, policy) and oldlight.simulate(problem, policy, episodes, steps=n)"
        )

    def fits(self, problem: ImpairedMDP) -> bool:
        """Was the policy made for a process of these sizes behind a link of these nodes?"""
        if (self.n_states, self.n_actions) != (problem.n_states, problem.n_actions):
            return False
        if self.growing:
            return grows(problem.channel)
        if self.true_link is not None:
            return is_hidden(problem.channel)
        return not grows(problem.channel) and set(problem.automaton.nodes) <= set(self.automaton.nodes)

    def playing(self, problem: ImpairedMDP) -> ChannelAutomaton:
        """The link that it knows, as an automaton of `problem`; where delays only grow, up to the age at which it stops looking."""
        if self.growing:
            return growing_link(problem.channel, self.reach - problem.actuation + 1).shifted(problem.actuation)
        return copy.copy(self.automaton)

    def link_for(self, problem: ImpairedMDP) -> ChannelAutomaton:
        """The link that it is played on for a number of steps: the true one of merged laws, else that of the problem."""
        if self.true_link is None:
            return problem.automaton
        link = copy.copy(self.true_link)
        link.horizon = problem.horizon
        return link

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the policy, for `oldlight.load_policy`."""
        return checks.save_arrays(path, kind=np.array(KIND), **self.to_arrays())

    def to_arrays(self, prefix: str = "") -> dict[str, NDArray[Any]]:
        """Everything that `read` needs."""
        links = automaton_arrays(self.automaton)
        if self.true_link is not None:
            links |= {f"true_{name}": array for name, array in automaton_arrays(self.true_link).items()}
        return {f"{prefix}{name}": array for name, array in (self.arrays | links).items()}

    @classmethod
    def read(cls, held: files.Arrays, prefix: str = "") -> StationaryPolicy:
        """The policy in an open file."""
        R = held.array(f"{prefix}rewards", "f", (None, None))
        S, A = R.shape
        kept = held.array(f"{prefix}kept", "iu", (None,))
        arrays = _steps_in(held, prefix, S, A) | {
            "rewards": R,
            "initial": held.array(f"{prefix}initial", "f", (S,)),
            "kept": kept,
            "number": held.array(f"{prefix}number", "iu", (A,)),
            "numbers": held.array(f"{prefix}numbers", "iu", (4,)).astype(np.int64),
            "bounds": held.array(f"{prefix}bounds", "f", (3,)),
            "blocks": held.array(f"{prefix}blocks", "iu", (None, 4)).astype(np.int64),
            "roots": held.array(f"{prefix}roots", "iu", (None, 3)).astype(np.int64),
            "actions": held.array(f"{prefix}actions", "iu", (None,)),
            "root_actions": held.array(f"{prefix}root_actions", "iu", (None,)),
            "expectations": held.array(f"{prefix}expectations", "f", (None, S, None)),
        }
        link = read_automaton(held, prefix)
        true_link = read_automaton(held, f"{prefix}true_") if f"{prefix}true_nodes" in held else None
        check_arrays(arrays, len(link.nodes))
        return cls(link, arrays, true_link)

    def __repr__(self) -> str:
        return f"StationaryPolicy({len(self.automaton.nodes)} nodes, depth {self.depth}, S={self.n_states}, A={self.n_actions})"


def _steps_in(held: files.Arrays, prefix: str, S: int, A: int) -> dict[str, NDArray[Any]]:
    """The transitions of an open file: lists, or one array without a step axis."""
    if f"{prefix}first" in held:
        return HeldSteps.read(held, prefix, (S, A), (1,)).to_arrays()
    return {"transitions": held.array(f"{prefix}transitions", "f", (S, A, S), (0, A, 0))}


def check_arrays(arrays: dict[str, NDArray[Any]], nodes: int) -> None:
    """Refuse arrays that do not fit together: a policy must not find out while it runs."""
    for name, good in _parts(arrays, nodes):
        if not good:
            raise ValueError(f"{name!r} does not fit the other arrays of a StationaryPolicy")


def _parts(arrays: dict[str, NDArray[Any]], nodes: int) -> Iterator[tuple[str, bool]]:
    """The arrays by name, and whether each fits those before it."""
    S, A = arrays["rewards"].shape
    K = len(arrays["kept"])
    depth, reach, rest, growing = arrays["numbers"].tolist()
    for name in ("transitions", "initial"):
        rows = arrays.get(name, np.ones(1))  # the lists of a sparse process were looked at when they were read
        sums = rows.sum(axis=-1)
        yield name, bool((rows >= 0).all() and (np.abs(sums - 1) <= checks.SUM_TOLERANCE).all())
    yield "numbers", 0 <= depth < 64 and reach >= 0 and 0 <= rest < A and growing in (0, 1)
    for name, most in (("kept", A), ("number", K), ("actions", K), ("root_actions", K)):
        yield name, checks.within(arrays[name], 0, most)
    node, length, place, row = arrays["blocks"].T
    yield "blocks", bool(len(node) > 0 and checks.within(node, 0, nodes) and checks.within(length, 0, depth + 1))
    size = np.array([float(S) * float(K) ** int(L) for L in length])
    yield "blocks", bool((place >= 0).all() and (place + size <= len(arrays["actions"])).all())
    yield "blocks", bool((row >= -1).all() and (row < len(arrays["expectations"])).all())
    h, node, place = arrays["roots"].T
    yield "roots", checks.within(h, 0, 64) and checks.within(node, 0, nodes)
    ends = place + np.array([float(K) ** int(x) for x in h])
    yield "roots", bool((place >= 0).all() and (ends <= len(arrays["root_actions"])).all())
    wide = arrays["expectations"].shape
    yield "expectations", wide[0] == 0 or wide[1:] == (S, max(K**depth, 1))
