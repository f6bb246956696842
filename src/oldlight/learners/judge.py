"""What the policies of a learner are worth, exactly: each is valued once, on demand per first state as well.

A table under delay is followed by the backward induction of `oldlight.planning.delay`, which gives the value per state of
the first step (step −lead) in the same pass; the sequences of a policy under loss likewise. Any other policy is valued by
`oldlight.evaluate`, once more for each first state if those are asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.information import Layout
from oldlight.planning import solve
from oldlight.planning.delay import DelayModel, Induction, Stage
from oldlight.planning.delay import by_start as values_by_start
from oldlight.planning.evaluation import evaluate
from oldlight.planning.loss import blackout_values
from oldlight.policies import BlackoutPolicy, FunctionPolicy, Policy, TablePolicy, chances_of
from oldlight.problem import ImpairedMDP

Floats = NDArray[np.float64]


class Judge:
    """The value of each policy that a learner plays; the same policy object is valued once."""

    def __init__(self, problem: ImpairedMDP, how: str, episodes: int, seed: int, by_start: bool = False) -> None:
        self.problem, self.how, self.episodes, self.seed = problem, how, episodes, seed
        self._last: Policy | None = None
        self._value = (np.nan, 0.0)
        self._model = DelayModel(problem, Layout.of(problem)) if problem.seen is None else None
        self._by_start = by_start
        self.starts = np.full(problem.n_states, np.nan)  # the value per first state, with by_start

    def value(self, policy: Policy) -> tuple[float, float]:
        """(value, half-width of a 95% interval: 0 if exact)."""
        if policy is not self._last:
            self._last, self._value = policy, self._judge(policy)
        return self._value

    def _judge(self, policy: Policy) -> tuple[float, float]:
        if self.how == "sampled":
            found = evaluate(self.problem, FunctionPolicy(policy.probabilities, self.problem.n_actions), max_states=0,
                             episodes=self.episodes, seed=self.seed)  # fmt: skip
            return found.value, found.half_width
        if self._model is not None and isinstance(policy, TablePolicy):
            self.starts = values_by_start(self.problem, self._follow(policy.actions, policy.chances))
            return float(self.problem.initial @ self.starts), 0.0
        found = evaluate(self.problem, policy, episodes=self.episodes, seed=self.seed)
        wide = self._value_starts(policy) if self._by_start else 0.0
        return found.value, max(found.half_width, wide)

    def _follow(self, given: Any, mix: Floats | None) -> Stage:
        assert self._model is not None
        return Induction(self._model, given=given, mix=mix).run()

    def _value_starts(self, policy: Policy) -> float:
        """The value of any policy per first state; returns the largest half-width (0 if exact)."""
        problem = self.problem
        if isinstance(policy, BlackoutPolicy):
            self.starts = blackout_values(problem, policy)
            return 0.0
        if problem.lead and self._model is not None:
            mix = np.array([chances_of(problem, policy, info) for info in self._model.layout])
            self.starts = values_by_start(problem, self._follow(None, mix))
            return 0.0
        asked = FunctionPolicy(lambda info: chances_of(problem, policy, info), problem.n_actions)  # it is not told s
        wide = 0.0
        for s in np.flatnonzero(problem.initial > 0).tolist():
            found = evaluate(_from_state(problem, s), asked, episodes=self.episodes, seed=self.seed)
            self.starts[s], wide = found.value, max(wide, found.half_width)
        return wide


def _from_state(problem: ImpairedMDP, s: int) -> ImpairedMDP:
    """The same problem when the first state is s, and known to be (no steps before step 0)."""
    mdp = problem.mdp.replace(initial=np.eye(problem.n_states)[s])
    return ImpairedMDP(mdp, problem.channel, actuation=problem.actuation, pending=problem.pending)


def best_by_start(problem: ImpairedMDP) -> Floats:
    """max_π V^π(s) for each first state s: one plan where it is seen at once, else one plan for each."""
    at_once = problem.law.first[0] == 1.0 and (problem.seen is None or problem.seen[0] == 1.0)
    if problem.lead or at_once:
        found = solve(problem).value_by_start
        assert found is not None
        return np.where(problem.initial > 0, found, np.nan)
    best = np.full(problem.n_states, np.nan)
    for s in np.flatnonzero(problem.initial > 0).tolist():
        best[s] = solve(_from_state(problem, s)).value
    return best
