"""The exact value of a policy of nodes, by a walk over groups of information states: what `link_walk` computes, with one product where that has a
loop over states.

At time h the information states are grouped by (node, newest visible step t, queue): w[s] is the probability of each state s_t of the group. With
B_j[s] the law of s_{t+j} when s_t = s and the first j actions of the queue are done, the states of the group that do a at time h, weights w_a, earn

    Σ_s w_a[s]·B_m[s]·r_h(:, a),          and a tick to age k adds  p(k)·w_a B_{m+1−k}  to the group (node', h + 1 − k, rest of the queue);

a tick without anything newer adds p·w_a to (node', t, queue and a). Before anything is seen w stands for the law of s_0, and the whole group acts
alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oldlight.arrays import Floats
from oldlight.model.channels.automaton import NOTHING_NEWER, ChannelAutomaton
from oldlight.model.information import push
from oldlight.model.link_information import LinkInformation, PolicyOfNodes
from oldlight.model.policy_check import check_made_for
from oldlight.model.problem import ImpairedMDP
from oldlight.simulation.link_episodes import decide, link_of

WRITTEN_OUT = 128  # states up to which the laws from each state are kept as one matrix,
ROOM = 2**22  # of so many numbers in all, which are forgotten where there would be more
Key = tuple[int, int, tuple[int, ...]]  # (number of the node, t or −1, queue)


def group_value(
    problem: ImpairedMDP,
    policy: Any,
    *,
    max_states: int | None = None,
    link: ChannelAutomaton | None = None,
    initial: Floats | None = None,
) -> tuple[float, int] | None:
    """The value of `policy` and how many information states it was asked at; None where there are more than `max_states`. link, initial: another
    automaton than that of the policy, another law of the first state than that of the problem."""
    check_made_for(problem, policy)
    link = link_of(problem, policy) if link is None else link
    return _GroupWalk(problem, link, policy, max_states).run(problem.initial if initial is None else initial)


class _GroupWalk:
    def __init__(self, problem: ImpairedMDP, link: ChannelAutomaton, policy: Any, max_states: int | None) -> None:
        self.problem, self.link, self.policy, self.max_states = problem, link, policy, max_states
        self.asked = 0
        self._acts = isinstance(policy, PolicyOfNodes)  # it does not randomise
        self._at_once = self._acts and hasattr(policy, "actions_at")
        self.rows = [link.row(n) for n in range(len(link.nodes))]
        self._laws: dict[tuple[int, tuple[int, ...]], Floats] = {}

    def run(self, initial: Floats) -> tuple[float, int] | None:
        value, now = 0.0, self._start(initial)
        for h in range(self.problem.horizon):
            following: dict[Key, Floats] = {}
            for key, weight in now.items():
                for a, mine in self._actions(h, key, weight):
                    value += self._step(h, key, a, mine, following)
            if self.max_states is not None and self.asked > self.max_states:
                return None
            now = following
        return value, self.asked

    def _start(self, initial: Floats) -> dict[Key, Floats]:
        now: dict[Key, Floats] = {}
        for p, n, age in self.link.row(-1):
            assert age in (0, NOTHING_NEWER), "a warm start is walked by oldlight.evaluate"
            _add(now, (n, 0 if age == 0 else -1, ()), p * initial)
        return now

    def _actions(self, h: int, key: Key, weight: Floats) -> list[tuple[int, Floats]]:
        """Which actions the group takes, each with the weights of the states that take it."""
        n, t, queue = key
        name, out = self.link.nodes[n], {}  # type: Any, dict[int, Floats]
        states: list[Any] = [None] if t < 0 else np.flatnonzero(weight > 0).tolist()
        self.asked += len(states)
        if t >= 0 and self._at_once and h >= self.problem.actuation:
            return self._split(LinkInformation(h, name, t, states[0], queue), states, weight)
        for s in states:
            for a, p in self._choices(LinkInformation(h, name, None if t < 0 else t, s, queue)):
                mine = out.get(a)
                if mine is None:
                    mine = out[a] = np.zeros(len(weight))
                if s is None:
                    mine += p * weight
                else:
                    mine[s] += p * weight[s]
        return list(out.items())

    def _split(self, info: LinkInformation, states: list[int], weight: Floats) -> list[tuple[int, Floats]]:
        """The same for a policy that answers for all states of a group in one call."""
        chosen = np.full(len(weight), -1)
        chosen[states] = self.policy.actions_at(info, states)
        return [(a, np.where(chosen == a, weight, 0.0)) for a in dict.fromkeys(chosen[states].tolist())]

    def _choices(self, info: LinkInformation) -> list[tuple[int, float]]:
        """The actions that the policy may take, each with its probability."""
        if self._acts and info.h >= self.problem.actuation:
            return [(self.policy.action(info), 1.0)]
        law = decide(self.problem, self.policy, info)
        return [(a, float(law[a])) for a in np.flatnonzero(law > 0).tolist()]

    def _step(self, h: int, key: Key, a: int, weight: Floats, following: dict[Key, Floats]) -> float:
        """What the step earns; what can be known after it is added to `following`."""
        n, t, queue = key
        begin, m = max(t, 0), len(queue)
        earned = float(self._pushed(weight, begin, queue) @ self.problem.mdp.rewards[h][:, a])
        if h + 1 == self.problem.horizon:
            return earned
        longer = (*queue, a)
        for p, target, age in self.rows[n]:
            if age == NOTHING_NEWER:
                _add(following, (target, t, longer), p * weight)
            else:
                step = h + 1 - age
                j = step - begin
                assert 0 <= j <= m + 1
                _add(following, (target, step, longer[j:]), p * self._pushed(weight, begin, longer[:j]))
        return earned

    def _pushed(self, weight: Floats, begin: int, queue: tuple[int, ...]) -> Floats:
        """weight·B; of a sparse or large process step by step, so that B is never written out."""
        if not self.problem.mdp.sparse and len(weight) <= WRITTEN_OUT:
            return np.asarray(weight @ self._law(begin, queue))
        return push(self.problem, weight, begin, queue)

    def _law(self, begin: int, queue: tuple[int, ...]) -> Floats:
        """B[s, s2]: the law of s_{begin + len(queue)} from each s_begin = s."""
        key = (begin, queue)
        if key not in self._laws:
            if len(self._laws) * self.problem.n_states**2 >= ROOM:
                self._laws.clear()
            if queue:
                A = self.problem.n_actions
                step = self.problem.mdp.matrix(begin + len(queue) - 1)[queue[-1] :: A]
                self._laws[key] = np.asarray(self._law(begin, queue[:-1]) @ step)
            else:
                self._laws[key] = np.eye(self.problem.n_states)
        return self._laws[key]


def _add(groups: dict[Key, Floats], key: Key, weight: Floats) -> None:
    known = groups.get(key)
    if known is None:
        groups[key] = weight.copy()
    else:
        known += weight
