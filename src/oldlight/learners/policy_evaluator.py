"""What the policies of a learner are worth: each is valued once, on demand per first state as well.

A table under delay is followed by `oldlight.planning.table_values`, which computes only what differs from the table before, and gives the value per
state of the first step (step −warmup) in the same pass; the sequences of a policy under loss likewise. Any other policy has to be asked, one information
state after the other, and is valued by `oldlight.evaluate`, once more for each first state if those are asked for.

**How often it is asked.** Behind loss a policy that randomises can reach every information state: S·A^m of them m steps after an
observation. It is walked along, which is exact, as long as it reaches no more than `QUESTIONS` information states, or as many as a
policy that does not randomise can reach: that one is always valued exactly, up to the `max_states` of `oldlight.evaluate`, which is the limit
behind a delay too. Else max(100, QUESTIONS/H) episodes are played, which ask no more often, and the value has a half-width. The
episodes played for different policies are drawn independently of each other and of those that the learner sees, so that their
errors do not add up in the regret.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oldlight.arrays import Floats
from oldlight.model.held_steps import certain
from oldlight.model.policies import BlackoutPolicy, FunctionPolicy, Policy, TablePolicy, probabilities_at
from oldlight.model.problem import ImpairedMDP
from oldlight.planning import solve
from oldlight.planning.blackout import blackout_values
from oldlight.planning.delay import DelayModel, Induction, Stage
from oldlight.planning.delay import by_start as values_by_start
from oldlight.planning.evaluation import MAX_STATES, Evaluation, evaluate, play
from oldlight.planning.group_walk import group_value
from oldlight.planning.table_values import TableValues
from oldlight.simulation.link_episodes import by_automaton

QUESTIONS = 10_000  # how often a policy is asked for one value, by a walk or in play
TABLE = (
    2**22
)  # information states of a table whose values of all times are kept (32 MiB), so that a table that changed a little is valued at once
EPISODES = 20_000  # played for a sampled value of a policy that need not be asked


class PolicyEvaluator:
    """The value of each policy that a learner plays; the same policy object is valued once."""

    def __init__(self, problem: ImpairedMDP, how: str, seed: int, by_start: bool = False) -> None:
        self.problem, self.how, self.seed = problem, how, seed
        self._last: Policy | None = None
        self._tables: TableValues | None = None  # made with the first table
        self._value = (np.nan, 0.0)
        lossless = problem.has_delay_law and problem.arrival_probability is None
        self._model = DelayModel.of(problem) if lossless else None
        self._by_start = by_start
        self.starts = np.full(problem.n_states, np.nan)  # the value per first state, with by_start
        H, S, A = problem.horizon, problem.n_states, problem.n_actions
        self._episodes = max(100, QUESTIONS // H)
        self._max_states = MAX_STATES if problem.has_delay_law else 5 * QUESTIONS
        if problem.has_delay_law and problem.arrival_probability is not None and problem.law.constant is not None:
            certain = S * A**problem.law.constant * H * (H + 1) // 2 + H  # reached by a policy that does not randomise
            self._max_states = min(max(QUESTIONS, certain), MAX_STATES)

    def value(self, policy: Policy, k: int) -> tuple[float, float]:
        """The policy of episode k: (value, half-width of a 95% interval: 0 if exact)."""
        if policy is not self._last:
            self._last, self._value = policy, self._valued(policy, k)
        return self._value

    def _from_start(self, by_start: Floats) -> Any:
        """The value of an episode from the values by first state, the last axis. A sum, not a product: those of some libraries differ in the last digit with the
        place in memory, and one seed decides the result."""
        return (self.problem.initial * by_start).sum(axis=-1)

    def values(self, policies: Sequence[Policy], first: Sequence[int]) -> tuple[Floats, Floats, Floats]:
        """Those of several policies, played first in these episodes: values and half-widths, shape (n,), and the values per first state, (n, S)."""
        tables = [
            policy.actions for policy in policies if isinstance(policy, TablePolicy) and policy.actions is not None
        ]
        if self.how == "exact" and self._model is not None and policies and len(tables) == len(policies):
            found = self._of_tables(tables)
            if found is not None:
                self.starts, value = found[-1], self._from_start(found)
                self._last, self._value = policies[-1], (float(value[-1]), 0.0)
                return value, np.zeros(len(value)), found
        rows = [(*self.value(policy, k), self.starts.copy()) for policy, k in zip(policies, first, strict=True)]
        S = self.problem.n_states
        return (
            np.array([row[0] for row in rows]),
            np.array([row[1] for row in rows]),
            np.array([row[2] for row in rows]).reshape(-1, S),
        )

    def _of_tables(self, tables: Sequence[Any]) -> Floats | None:
        """The values of tables per first state; None where they are so large that the induction does it with its threads."""
        assert self._model is not None
        if self._model.layout.size > TABLE:
            return None
        if self._tables is None:
            self._tables = TableValues(self._model)
        return self._tables.by_start(np.array(tables))

    def holds(self, policy: Policy) -> bool:
        """Is it the policy that was valued last?"""
        return policy is self._last

    def hold(self, policy: Policy, value: float, half_width: float) -> None:
        """Take over the value of a policy from a checkpoint."""
        self._last, self._value = policy, (value, half_width)

    def _valued(self, policy: Policy, k: int) -> tuple[float, float]:
        seed = int(np.random.SeedSequence(self.seed, spawn_key=(k, 4)).generate_state(1, np.uint64)[0])
        if self.how == "sampled":
            asked = not isinstance(policy, TablePolicy | BlackoutPolicy)
            found = play(self.problem, policy, self._episodes if asked else EPISODES, seed)
            return found.value, found.half_width
        if self._model is not None and isinstance(policy, TablePolicy):
            known = None if policy.actions is None else self._of_tables([policy.actions])
            if known is None:
                known = values_by_start(self.problem, self._follow(policy.actions, policy.action_probabilities))[None]
            self.starts = known[0]
            return float(self._from_start(self.starts)), 0.0
        found = self._evaluate(self.problem, policy, seed)
        wide = self._value_starts(policy, seed) if self._by_start else 0.0
        return found.value, max(found.half_width, wide)

    def _evaluate(self, problem: ImpairedMDP, policy: Policy, seed: int) -> Evaluation:
        if by_automaton(problem, policy):
            walked = group_value(problem, policy, max_states=self._max_states)
            if walked is None:
                return play(problem, policy, self._episodes, seed)
            return Evaluation(walked[0], True, 0.0, "walk forward", walked[1])
        return evaluate(problem, policy, max_states=self._max_states, episodes=self._episodes, seed=seed)

    def _follow(self, given: Any, mix: Floats | None) -> Stage:
        assert self._model is not None
        return Induction(self._model, given=given, mix=mix).run()

    def _value_starts(self, policy: Policy, seed: int) -> float:
        """The value of any policy per first state; returns the largest half-width (0 if exact)."""
        problem = self.problem
        if isinstance(policy, BlackoutPolicy):
            self.starts = blackout_values(problem, policy)
            return 0.0
        if problem.warmup and self._model is not None:
            mix = np.array([probabilities_at(problem, policy, info) for info in self._model.layout])
            self.starts = values_by_start(problem, self._follow(None, mix))
            return 0.0
        asked = FunctionPolicy(
            lambda info: probabilities_at(problem, policy, info), problem.n_actions
        )  # it does not know s
        wide = 0.0
        for s in np.flatnonzero(problem.initial > 0).tolist():
            found = self._evaluate(_from_state(problem, s), asked, seed)
            self.starts[s], wide = found.value, max(wide, found.half_width)
        return wide


def _from_state(problem: ImpairedMDP, s: int) -> ImpairedMDP:
    """The same problem when the first state is s, and known to be (no steps before step 0)."""
    mdp = problem.mdp.replace(initial=certain(problem.n_states, s))
    return ImpairedMDP(mdp, problem.channel, actuation=problem.actuation, pending=problem.pending)


def best_by_start(problem: ImpairedMDP) -> Floats:
    """max_π V^π(s) for each first state s: one plan where it is seen at once, else one plan for each."""
    at_once = (
        problem.has_delay_law
        and problem.law.first[0] == 1.0
        and (problem.arrival_probability is None or problem.arrival_probability[0] == 1.0)
    )
    if problem.warmup or at_once:
        found = solve(problem).value_by_start
        assert found is not None
        return np.where(problem.initial > 0, found, np.nan)
    best = np.full(problem.n_states, np.nan)
    for s in np.flatnonzero(problem.initial > 0).tolist():
        best[s] = solve(_from_state(problem, s)).value
    return best
