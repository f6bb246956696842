"""A walk forward over the information states that a policy reaches, with their probabilities and what the policy earns.

The information states of time h are kept in groups, one for each newest visible step t (None: nothing has been seen) and wait δ.
A group is a few arrays with one row per information state: the state s_t, the queue, and the probability to be there. The policy is asked
once at each row; everything else is done for a whole group at a time, by products of matrices.

Rewards are earned at the newest *settled* step u, so that no belief has to be computed anew at every step:

    delay    u = t, and s_t is known: the reward of step t is counted when the observation of step t + 1 arrives;
    loss     u = h − d, d the constant delay (0 under loss alone): step u is seen, or known to be lost. A row carries the joint law
             P(τ_h, s_u = s) of the information state and the hidden s_u; the reward of step u is counted when step u + 1 is settled.

When the last action is chosen, the steps u..H−1 that are left follow the actions in the queue (open loop). Two rows become one only where an
observation arrives: rows with the same queue after it, for each state that it can show. So the walk costs what asking the policy costs, and
the number of information states of time h + 1 is known before any of them is asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.arrays import Floats, Ints, action_type
from oldlight.model.information import Information, advance, beginnings, settled_late
from oldlight.model.policies import Policy, probabilities_at
from oldlight.model.problem import ImpairedMDP

LARGEST = 2**24  # numbers in the joint laws of one time (128 MiB), and in one piece of the work


@dataclass(frozen=True, eq=False)
class Group:
    """Information states with the same newest visible step t and wait, one per row.

    states[i]: s_t (0 if t is None); queue[i, j]: the actions since, oldest first; mass: the probability of row i, as mass[i] under delay and as
    mass[i, s], jointly with s_u = s, under loss.
    """

    t: int | None
    waited: int
    states: Ints
    queue: NDArray[Any]
    mass: Floats

    def information(self, h: int) -> Iterator[Information]:
        for s, queue in zip(self.states.tolist(), self.queue.tolist(), strict=True):
            yield Information(h, self.t, None if self.t is None else s, tuple(queue), self.waited)

    def measure(self, h: int) -> Iterator[tuple[Information, float]]:
        weights = self.mass if self.mass.ndim == 1 else self.mass.sum(axis=1)
        return zip(self.information(h), weights.tolist(), strict=True)


class Walk:
    """Iterate over it: the groups of time 0, 1, .., H−1; or None, and the end, where more than `max_states` information states would be met in
    all (or a joint law of one time would have more than `LARGEST` numbers). Afterwards `value` is what the policy earns and `met` how many
    information states it reached."""

    def __init__(self, problem: ImpairedMDP, policy: Policy, max_states: int) -> None:
        self.problem, self.policy, self.max_states = problem, policy, max_states
        self.late = None if problem.arrival_probability is None else settled_late(problem)
        self.value, self.met = 0.0, 0

    def __iter__(self) -> Iterator[list[Group] | None]:
        problem = self.problem
        if problem.warmup and problem.n_states * problem.n_actions**problem.warmup > self.max_states:
            yield None
            return
        groups = self._first()
        for h in range(problem.horizon):
            self.met += sum(len(group.states) for group in groups)
            if self.met > self.max_states:
                yield None
                return
            yield groups
            asked = [(group, self._ask(h, group)) for group in groups]
            if h + 1 == problem.horizon:
                self.value += sum(self._finish(h, *each) for each in asked)
            elif self.late is None:
                groups = self._move_delay(h, asked)
            elif sum(np.count_nonzero(mix) for _, mix in asked) * problem.n_states > LARGEST:
                yield None
                return
            else:
                groups = self._move_loss(h, self.late, asked)

    def _first(self) -> list[Group]:
        problem = self.problem
        kinds: dict[tuple[int | None, int], list[tuple[float, Information]]] = defaultdict(list)
        for p, info in beginnings(problem):
            kinds[info.t, info.waited].append((p, info))
        groups = []
        for (t, waited), rows in kinds.items():
            states = np.array([info.state or 0 for _, info in rows])
            queue = np.array([info.queue for _, info in rows], dtype=action_type(problem.n_actions))
            group = Group(t, waited, states, queue.reshape(len(rows), -1), np.array([p for p, _ in rows]))
            groups.append(group if self.late is None else Group(t, waited, states, group.queue, self._law(group)))
        return groups

    def _ask(self, h: int, group: Group) -> Floats:
        """The probabilities of the actions, axes (row, a); a policy that has `actions_at` is asked for all rows at once."""
        at_once = getattr(self.policy, "actions_at", None)
        if at_once is not None and h >= self.problem.actuation:
            chosen = at_once(h, group.t, group.waited, group.states, group.queue)
            return np.asarray(np.eye(self.problem.n_actions)[chosen])
        return np.array([probabilities_at(self.problem, self.policy, info) for info in group.information(h)])

    def _law(self, group: Group, rows: slice = slice(None)) -> Floats:
        """P(τ, s_t = s) of rows whose mass is a number: axes (row, s); of s_0 where nothing was seen."""
        mass = group.mass[rows]
        if group.t is None:
            return mass[:, None] * self.problem.initial
        law = np.zeros((len(mass), self.problem.n_states))
        law[np.arange(len(mass)), group.states[rows]] = mass
        return law

    def _chosen(self, group: Group, mix: Floats) -> tuple[Ints, Floats, NDArray[Any]]:
        """Each row with each action that is taken there: the row, the probability of the action, the longer queue."""
        row, a = np.nonzero(mix > 0)
        return row, mix[row, a], np.column_stack([group.queue[row], a.astype(group.queue.dtype)])

    # -- delay -----------------------------------------------------------------------------------------------------

    def _move_delay(self, h: int, asked: list[tuple[Group, Floats]]) -> list[Group]:
        problem, law, A = self.problem, self.problem.law, self.problem.n_actions
        groups: list[Group] = []
        arrivals: dict[int, list[tuple[NDArray[Any], Ints, Floats]]] = defaultdict(list)  # by the new t
        for group, mix in asked:
            row, p_action, queue = self._chosen(group, mix)
            mass, s, t = group.mass[row] * p_action, group.states[row], group.t
            if t is None:
                arrives, cell, after = np.full(len(row), law.first_hazard[h + 1]), np.zeros(len(row), np.int64), queue
            else:
                head, after = queue[:, 0].astype(np.int64), queue[:, 1:]
                cell, arrives = s * A + head, np.ones(len(row))
                if not problem.warmup and h - t < law.longest_delay:
                    table = law.at_step(law.hazard, t)
                    arrives = table[np.minimum(s, len(table) - 1), np.minimum(head, table.shape[1] - 1), group.waited]
                self.value += float((mass * arrives) @ problem.rewards_at(t)[s, head])
            now, later = arrives > 0, arrives < 1
            if now.any():
                arrivals[0 if t is None else t + 1].append((after[now], cell[now], (mass * arrives)[now]))
            if later.any():
                groups.append(Group(t, group.waited + 1, s[later], queue[later], (mass * (1 - arrives))[later]))
        for t, parts in arrivals.items():
            queue, cell, mass = (np.concatenate(part) for part in zip(*parts, strict=True))
            before = problem.matrix_at(t - 1)
            first = t == 0 and not problem.warmup
            groups.append(self._arrive_delay(t, queue, cell, mass, problem.initial[None] if first else before))
        return groups

    def _arrive_delay(self, t: int, queue: NDArray[Any], cell: Ints, mass: Floats, to: Any) -> Group:
        """Step t becomes visible: its state has the law to[cell[i]] where the queue is then queue[i]."""
        different, which = _different(queue)
        n, piece = to.shape[0], max(1, LARGEST // max(to.shape))
        found: list[tuple[Ints, Ints, Floats]] = []
        order = np.argsort(which, kind="stable")
        edges = np.searchsorted(which[order], np.arange(0, len(different) + piece, piece))
        for k, (low, high) in enumerate(pairwise(edges.tolist())):
            rows = order[low:high]
            count = min(piece, len(different) - k * piece)
            joint = (
                np.bincount((which[rows] - k * piece) * n + cell[rows], mass[rows], count * n).reshape(count, n) @ to
            )
            q, s = np.nonzero(joint)
            found.append((q + k * piece, s, joint[q, s]))
        q, s, weight = (np.concatenate(part) for part in zip(*found, strict=True))
        return Group(t, 0, s, different[q], weight)

    # -- loss, alone or with a constant delay ------------------------------------------------------------------------

    def _move_loss(self, h: int, late: int, asked: list[tuple[Group, Floats]]) -> list[Group]:
        problem, settled = self.problem, h + 1 - late  # the step that is settled at time h + 1
        assert problem.arrival_probability is not None
        arrives = float(problem.arrival_probability[settled]) if settled >= 0 else 0.0
        groups: list[Group] = []
        arrivals: list[tuple[NDArray[Any], Floats]] = []
        for group, mix in asked:
            row, p_action, queue = self._chosen(group, mix)
            law, begin = group.mass[row] * p_action[:, None], group.t or 0
            if settled > 0:
                acts = queue[:, settled - 1 - begin].astype(np.int64)
                self.value += float(np.einsum("is,si->", law, problem.rewards_at(settled - 1)[:, acts]))
                law = advance(law, acts, problem.matrix_at(settled - 1))
            if arrives > 0:
                arrivals.append((queue[:, settled - begin :], arrives * law))
            if arrives < 1:
                groups.append(Group(group.t, group.waited + 1, group.states[row], queue, (1 - arrives) * law))
        if arrivals:
            queue, law = (np.concatenate(part) for part in zip(*arrivals, strict=True))
            different, which = _different(queue)
            joint = np.zeros((len(different), problem.n_states))
            np.add.at(joint, which, law)
            q, s = np.nonzero(joint)
            corner = Group(settled, 0, s, different[q], joint[q, s])
            groups.append(Group(settled, 0, s, corner.queue, self._law(corner)))
        return groups

    # -- the end -----------------------------------------------------------------------------------------------------

    def _finish(self, h: int, group: Group, mix: Floats) -> float:
        """What the last action and the actions in the queue earn, from the newest settled step on."""
        problem, begin = self.problem, group.t or 0
        u = begin if self.late is None else max(h - self.late, 0)
        piece = max(1, LARGEST // problem.n_states)
        earned = 0.0
        for k in range(0, len(group.states), piece):
            rows = slice(k, k + piece)
            law = self._law(group, rows) if group.mass.ndim == 1 else group.mass[rows]
            for step in range(u, h):
                acts = group.queue[rows, step - begin].astype(np.int64)
                earned += float(np.einsum("is,si->", law, problem.rewards_at(step)[:, acts]))
                law = advance(law, acts, problem.matrix_at(step))
            earned += float(np.sum((law @ problem.rewards_at(h)) * mix[rows]))
        return earned


def _different(queue: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
    """The different rows, and which of them each row is."""
    if queue.shape[1] == 0:
        return queue[:1], np.zeros(len(queue), dtype=np.int64)
    rows, which = np.unique(queue, axis=0, return_inverse=True)
    return rows, which.reshape(-1)
