"""The value of a given executable policy, exactly where it can be had.

Three exact ways, all without sampling:
- a table for a delayed problem: the backward induction of `oldlight.planning.delay`, following the table;
- sequences for a lossy problem: one walk along each sequence (`oldlight.planning.blackout`);
- any other policy: a walk forward over the information states that it reaches (`oldlight.planning.walk`; behind a channel that is
  planned by its automaton `oldlight.planning.link_walk`). A deterministic policy
  reaches few information states, a policy that randomises up to all of them.
Where the walk would meet more than `max_states` of them, episodes are played instead, and the result is marked as not exact.
A process that runs for ever: the chain of the information states that the policy reaches (`oldlight.planning.stationary_value`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from oldlight import checks, drawing
from oldlight.arrays import Floats
from oldlight.model.channels import ConstantDelay
from oldlight.model.information import Information, Layout
from oldlight.model.policies import (
    BlackoutPolicy,
    MarkovPolicy,
    Policy,
    TablePolicy,
)
from oldlight.model.policy_check import check_made_for
from oldlight.model.problem import ImpairedMDP, checked_problem
from oldlight.planning.blackout import blackout_values
from oldlight.planning.delay import DelayModel, Induction, by_start, checked_layout
from oldlight.planning.group_walk import group_value
from oldlight.planning.link_walk import with_wait
from oldlight.planning.scratch import scratch_folder
from oldlight.planning.walk import Walk
from oldlight.random_streams import Seed
from oldlight.simulation import simulate
from oldlight.simulation.link_episodes import by_automaton

MAX_STATES = 1_000_000
QUESTIONS = 250_000  # to a policy in Python, for a value that is played
SMALL_TABLE = 2**22  # information states of which nobody asks whether they fit


@dataclass(frozen=True)
class Evaluation(drawing.Result):
    """The value of a policy; `float()` of it is `value`.

    Parameters
    ----------
    value : float
        Expected sum of rewards.
    exact : bool
        Or the mean of played episodes?
    half_width : float
        Half of a 95% confidence interval; 0 if exact. Of a process that runs for ever: half of the distance between two certified bounds.
    method : str
        How it was found.
    size : int
        Information states met, or episodes played.

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:1")
    >>> ol.evaluate(problem, ol.solve(problem).policy).method
    'backward induction'
    """

    value: float
    exact: bool
    half_width: float
    method: str
    size: int

    def plot(self, ax: Any = None) -> Any:
        """Draw the value with its 95% confidence interval; returns the matplotlib axes."""
        ax = drawing.axes_of(ax)
        ax.errorbar(
            ["exact" if self.exact else f"{self.size:,} episodes"], [self.value], [self.half_width], fmt="o", capsize=4
        )
        ax.set_ylabel("value")
        return ax

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        """A small table."""
        of = "information states" if self.exact else "episodes"
        rows = {
            "value": f"{self.value:.10g}" + ("" if self.exact else f" ± {self.half_width:.3g} (95%)"),
            "exact": "yes" if self.exact else "no",
            "found by": f"{self.method} of {self.size:,} {of}",
        }
        return drawing.facts("Evaluation", rows)

    def __repr__(self) -> str:
        how = "exact" if self.exact else f"± {self.half_width:.3g}" + (" (95%)" if self.method == "play" else "")
        return f"Evaluation({self.value:.10g} {how}, by {self.method} of {self.size:,})"


def evaluate(
    problem: ImpairedMDP,
    policy: Policy | MarkovPolicy,
    *,
    max_states: int = MAX_STATES,
    episodes: int | None = None,
    seed: Seed = 0,
    scratch: str | os.PathLike[str] | None = None,
) -> Evaluation:
    """The value of `policy` on `problem`, exactly wherever possible.

    Parameters
    ----------
    problem : ImpairedMDP
        The process and its channel.
    policy : Policy or MarkovPolicy
        A MarkovPolicy is valued as if nothing were impaired: it sees the current state.
    max_states : int
        The most information states that a walk may meet before episodes are played instead.
    episodes : int, optional
        How many are played then. None: 100,000, or fewer (at least 1,000) for a policy that is asked in Python, so that it is asked about a
        quarter of a million times.
    seed : int, SeedSequence or Generator
        Random seed of these episodes.
    scratch : path-like, optional
        A folder for values that half of the machine's memory does not hold, as in `solve`; for a TablePolicy.

    Returns
    -------
    Evaluation
        `.value`, `.exact`, `.half_width`.

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:1")
    >>> right = ol.FunctionPolicy(lambda info: 0, n_actions=5)
    >>> ol.evaluate(problem, right)
    Evaluation(1 exact, by walk forward of 181)
    """
    checked_problem(problem, "evaluate")
    check_made_for(problem, policy)
    checks.whole("max_states", max_states)
    episodes = _to_play(problem, policy) if episodes is None else checks.whole("episodes", episodes, least=2)
    if problem.forever:
        from oldlight.planning.stationary_value import evaluate_forever

        return evaluate_forever(problem, policy, max_states, episodes, seed)
    if isinstance(policy, MarkovPolicy):
        problem = unimpaired(problem)
        policy = TablePolicy(Layout.of(problem), policy.actions.reshape(-1))
    if by_automaton(problem, policy):
        found = group_value(problem, policy, max_states=max_states)
        if found is None:
            return play(problem, policy, episodes, seed)
        return Evaluation(found[0], True, 0.0, "walk forward", found[1])
    if isinstance(policy, TablePolicy):
        return _of_table(problem, policy, scratch)
    if isinstance(policy, BlackoutPolicy):
        value = float(problem.initial @ blackout_values(problem, policy))
        return Evaluation(value, True, 0.0, "walk along sequences", policy.sequences.size)
    loss = problem.loss
    if loss is not None and not (problem.law.constant is not None and loss.independent):
        return _walked(problem, policy, max_states) or play(problem, policy, episodes, seed)
    walk = Walk(problem, policy, max_states)
    if any(groups is None for groups in walk):
        return play(problem, policy, episodes, seed)
    return Evaluation(walk.value, True, 0.0, "walk forward", walk.met)


def _to_play(problem: ImpairedMDP, policy: Policy | MarkovPolicy) -> int:
    """Episodes that are played for a value, if nobody says how many."""
    if problem.forever or isinstance(policy, TablePolicy | BlackoutPolicy | MarkovPolicy):
        return 100_000
    return min(max(QUESTIONS // problem.horizon, 1_000), 100_000)


def _of_table(problem: ImpairedMDP, policy: TablePolicy, scratch: str | os.PathLike[str] | None) -> Evaluation:
    """A table under delay, by the backward induction that follows it."""
    layout, folder = policy.layout, None if scratch is None else scratch_folder(scratch)
    if layout.size <= SMALL_TABLE:
        folder = None
    else:
        folder = checked_layout(problem, None, policy=False, scratch=folder).folder
    first = Induction(
        DelayModel.of(problem), given=policy.actions, mix=policy.action_probabilities, scratch=folder
    ).run()
    value = float(problem.initial @ by_start(problem, first))
    return Evaluation(value, True, 0.0, "backward induction", layout.size)


class _Waiting:
    """A policy of `Information` as one of nodes that know how long nothing newer has come (`with_wait`)."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def probabilities(self, info: Any) -> Floats:
        return self.policy.probabilities(Information(info.h, info.t, info.state, info.queue, info.node[1]))


def _walked(problem: ImpairedMDP, policy: Policy, max_states: int) -> Evaluation | None:
    """A policy of `Information` behind losses in bursts or with random delays, by the automaton; None where that is too much, or
    where the delay law depends on the process."""
    try:
        link = with_wait(problem.automaton)
    except ValueError:
        return None
    found = group_value(problem, _Waiting(policy), link=link, max_states=max_states)
    return None if found is None else Evaluation(found[0], True, 0.0, "walk forward", found[1])


def play(problem: ImpairedMDP, policy: Policy, episodes: int, seed: Seed) -> Evaluation:
    """The mean return of `episodes` episodes, with its half-width.

    Where all returns are the same their spread is no measure; then, with 95% confidence, another return has a probability of at most 3/n (the
    "rule of three"), which moves the mean by at most 3/n·(largest − smallest possible return).
    """
    steps = steps_enough(problem) if problem.forever else None
    played = simulate(problem, policy, episodes, seed=seed, steps=steps)
    half_width = played.half_width or (0.0 if problem.forever else 3.0 / episodes * problem.reward_span)
    return Evaluation(played.mean, False, half_width, "play", episodes)


def steps_enough(problem: ImpairedMDP) -> int:
    """Of a process that runs for ever: steps after which a thousandth of the discount is left; 2,000 for the average."""
    u = problem.mdp.discount
    return 2_000 if u is None else 1 if u == 0 else min(max(int(np.ceil(np.log(1e-3) / np.log(u))), 1), 20_000)


def visits(problem: ImpairedMDP, policy: Policy, max_states: int) -> Iterator[dict[Information, float] | None]:
    """For h = 0, 1, ..: the probability of each information state that the policy reaches (the paper's ρ_h); None, and
    the end, as soon as more than `max_states` have been met in all."""
    for h, groups in enumerate(Walk(problem, policy, max_states)):
        yield None if groups is None else {info: p for group in groups for info, p in group.measure(h)}


def unimpaired(problem: ImpairedMDP) -> ImpairedMDP:
    """The same process with every state seen at once, from the same law of s_0."""
    return ImpairedMDP(
        problem.mdp.replace(initial=problem.state_at_zero / problem.state_at_zero.sum()), ConstantDelay(0)
    )
