"""Plans on a counted age chain: tables where the newest observation is young, the belief beyond.

Tables for observations up to age d have A^d entries per state, and recordings have outages of hundreds of ticks. So a plan is made for the
chain that uses observations up to the age `oldest` that tables can hold (`table_age`), and it is followed as long as the newest
observation is at most so old. Beyond, `BeliefPlan` acts on the belief of the current state, with the values of somebody who will see
everything (QMDP); late messages of any age are used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oldlight.arrays import Floats
from oldlight.model.held_steps import certain
from oldlight.model.link_information import LinkInformation, PolicyOfNodes
from oldlight.model.mdp import TabularMDP
from oldlight.model.problem import ImpairedMDP
from oldlight.planning.ladder import first_best
from oldlight.planning.link_plan import kept_actions
from oldlight.planning.link_solution import solve_within
from oldlight.planning.solution import Solution

ENTRIES = 5_000  # of a table at one time and node
REMEMBERED = 200_000  # beliefs


def table_age(mdp: TabularMDP, most: int) -> int:
    """The oldest age d ≤ `most` whose tables have at most `ENTRIES` entries, S·A^d."""
    A, d = len(kept_actions(mdp)[0]), 0
    while d < most and mdp.n_states * A ** (d + 1) <= ENTRIES:
        d += 1
    return d


class BeliefPlan(PolicyOfNodes):
    """QMDP: the best action on average over the belief, if everything were seen from the next step on.

    Parameters
    ----------
    problem : ImpairedMDP
        Behind any link that is planned by its automaton.
    """

    def __init__(self, problem: ImpairedMDP) -> None:
        self.problem, self.mdp, self.n_actions = problem, problem.mdp, problem.n_actions
        self.q = np.empty((problem.horizon, problem.n_states, problem.n_actions))
        value = np.zeros(problem.n_states)
        for h in range(problem.horizon - 1, -1, -1):
            self.q[h] = self.mdp.rewards[h] + self.mdp.expected(value, h)
            value = self.q[h].max(axis=1)
        self._beliefs: dict[Any, Floats] = {}

    def belief(self, info: LinkInformation) -> Floats:
        """The law of the current state, from that of the step before where it is remembered."""
        key = (info.t, info.state, info.queue)
        found = self._beliefs.get(key)
        if found is None:
            if not info.queue:
                found = self.problem.initial if info.state is None else certain(self.problem.n_states, info.state)
            else:
                before = self.belief(info._replace(h=info.h - 1, queue=info.queue[:-1]))
                found = self.mdp.advanced(before, info.h - 1, info.queue[-1])
            if len(self._beliefs) >= REMEMBERED:
                self._beliefs.clear()
            self._beliefs[key] = found
        return found

    def action(self, info: LinkInformation) -> int:
        return int(first_best(self.belief(info)[None] @ self.q[info.h])[0])  # ties alike on every machine

    def fits(self, problem: ImpairedMDP) -> bool:
        sizes = (self.problem.horizon, self.problem.n_states, self.n_actions)
        return sizes == (problem.horizon, problem.n_states, problem.n_actions)

    def __repr__(self) -> str:
        return f"BeliefPlan(H={self.problem.horizon}, S={self.problem.n_states}, A={self.n_actions})"


class AgePlan(BeliefPlan):
    """The plan of the module's text, for `problem` behind a whole age chain.

    Parameters
    ----------
    problem : ImpairedMDP
        Behind the age chain of a recording, nothing cut.
    tables : ImpairedMDP
        The same process behind the chain cut at the age that tables can hold.
    seconds : float
        For closing the gap of the tables' certificate, counted as work.
    """

    def __init__(self, problem: ImpairedMDP, tables: ImpairedMDP, *, seconds: float = 2.0) -> None:
        super().__init__(problem)
        self.plan: Solution = solve_within(tables, 0.002 * problem.reward_span, seconds)
        self.tables = tables
        self.depth = tables.automaton.longest
        self.nodes = set(tables.automaton.nodes)
        self.roots = {
            h: sorted(n[1] for n in self.nodes if isinstance(n, tuple) and n[0] == h) for h in range(self.depth + 1)
        }

    def action(self, info: LinkInformation) -> int:
        node = info.node
        if len(info.queue) > self.depth:
            return super().action(info)
        if info.t is None:  # the nearest age of the link that the cut chain has
            ages = self.roots[info.h]
            node = (info.h, min(ages, key=lambda m: abs(m - info.node[1]))) if ages else None  # type: ignore[index]
        if node not in self.nodes:
            return super().action(info)
        try:
            return int(self.plan.policy.probabilities(info._replace(node=node)).argmax())  # type: ignore[arg-type]
        except KeyError:
            return super().action(info)

    def __repr__(self) -> str:
        return f"AgePlan(tables up to age {self.depth}, the belief beyond; H={self.problem.horizon}, S={self.problem.n_states})"
