"""The value of a given executable policy, exactly where it can be had.

Three exact ways, all without sampling:
- a table for a delayed problem: the backward induction of `oldlight.planning.delay`, following the table;
- sequences for a lossy problem: one walk along each sequence (`oldlight.planning.loss`);
- any other policy: a walk forward over the information states that it reaches, each with its probability. The reward of a
  step is expected under the belief. A deterministic policy reaches few information states.
Where the walk would meet more than `max_states` of them, episodes are played instead, and the result says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.channels import ConstantDelay
from oldlight.information import Information, Layout, beginnings, current, moves
from oldlight.planning.delay import DelayModel, Induction, by_start
from oldlight.planning.loss import blackout_values
from oldlight.policies import (
    BlackoutPolicy,
    MarkovPolicy,
    Policy,
    TablePolicy,
    chances_of,
    made_for_another,
    not_a_policy,
    same_layout,
)
from oldlight.problem import ImpairedMDP, checked_problem
from oldlight.simulation import simulate

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Evaluation:
    """`value`; `exact`; `half_width` of a 95% confidence interval (0 if exact); how it was found, and on how much:
    information states met, or episodes played."""

    value: float
    exact: bool
    half_width: float
    method: str
    size: int

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        how = "exact" if self.exact else f"± {self.half_width:.3g} (95%)"
        return f"Evaluation({self.value:.10g} {how}, by {self.method} of {self.size:,})"


def evaluate(
    problem: ImpairedMDP,
    policy: Policy | MarkovPolicy,
    *,
    max_states: int = 1_000_000,
    episodes: int = 100_000,
    seed: int = 0,
) -> Evaluation:
    """The value of `policy` on `problem`; float() of the result is the value.

    max_states: the most information states that a walk may meet before `episodes` episodes are played instead.
    A MarkovPolicy is valued as if nothing were impaired (it sees the current state).
    """
    checked_problem(problem, "evaluate")
    if not isinstance(policy, MarkovPolicy) and not hasattr(policy, "probabilities"):
        raise not_a_policy(policy)
    checks.whole("max_states", max_states)
    checks.whole("episodes", episodes, least=2)
    if isinstance(policy, MarkovPolicy):
        if policy.actions.shape != (problem.horizon, problem.n_states) or policy.n_actions != problem.n_actions:
            raise made_for_another(policy, problem)
        problem = unimpaired(problem)
        policy = TablePolicy(Layout.of(problem), policy.actions.reshape(-1))
    if isinstance(policy, TablePolicy):
        layout = policy.layout if problem.seen is not None else Layout.of(problem)
        if problem.seen is not None or not same_layout(policy.layout, layout):
            raise ValueError(
                f"{policy!r} was made for another problem than {problem!r}: sizes, channel or start differ"
            )
        first = Induction(DelayModel(problem, layout), given=policy.actions, mix=policy.chances).run()
        value = float(problem.initial @ by_start(problem, first))
        return Evaluation(value, True, 0.0, "backward induction", layout.size)
    if isinstance(policy, BlackoutPolicy):
        if not policy.fits(problem):
            raise made_for_another(policy, problem)
        value = float(problem.initial @ blackout_values(problem, policy))
        return Evaluation(value, True, 0.0, "walk along sequences", policy.sequences.size)
    value, met = 0.0, 0
    walkable = problem.seen is None or (problem.law.constant is not None and problem.loss.independent)  # type: ignore[union-attr]
    for reached in visits(problem, policy, max_states) if walkable else [None]:
        if reached is None:
            played = simulate(problem, policy, episodes, seed=seed)
            return Evaluation(played.mean, False, played.half_width, "play", episodes)
        met += len(reached)
        for info, weight in reached.items():
            b = current(problem, info)
            value += weight * float(b @ problem.mdp.rewards[info.h] @ chances_of(problem, policy, info))
    return Evaluation(value, True, 0.0, "walk forward", met)


def visits(problem: ImpairedMDP, policy: Policy, max_states: int) -> Iterator[dict[Information, float] | None]:
    """For h = 0, 1, ..: the probability of each information state that the policy reaches (the paper's ρ_h); None, and
    the end, as soon as more than `max_states` have been met in all."""
    if problem.lead and problem.n_states * problem.n_actions**problem.lead > max_states:
        yield None
        return
    reached = {info: p for p, info in beginnings(problem)}
    met = len(reached)
    for h in range(problem.horizon):
        if met > max_states:
            yield None
            return
        yield reached
        following: dict[Information, float] = {}
        if h + 1 < problem.horizon:
            for info, weight in reached.items():
                for a, chance in enumerate(chances_of(problem, policy, info)):
                    if chance > 0:
                        for p, info2 in moves(problem, info, a):
                            following[info2] = following.get(info2, 0.0) + weight * float(chance) * p
                if met + len(following) > max_states:
                    yield None
                    return
        reached = following
        met += len(reached)


def unimpaired(problem: ImpairedMDP) -> ImpairedMDP:
    """The same process with every state seen at once, from the same law of s_0."""
    return ImpairedMDP(
        problem.mdp.replace(initial=problem.state_at_zero / problem.state_at_zero.sum()), ConstantDelay(0)
    )
