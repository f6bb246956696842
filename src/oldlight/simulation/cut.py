"""A process that runs for ever, played for a number of steps."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from oldlight import checks
from oldlight.model.policies import MarkovPolicy
from oldlight.model.problem import ImpairedMDP


def for_steps(problem: ImpairedMDP, policy: Any, steps: int | None) -> tuple[ImpairedMDP, Any]:
    """A process that runs for ever, cut after `steps` of them, with the same link; rewards are those that a return adds up."""
    if steps is None:
        raise ValueError(
            f"{problem!r} runs for ever: say how many steps to play, simulate(problem, policy, episodes, steps=100)"
        )
    n = checks.whole("steps", steps, least=1)
    mdp = problem.mdp
    cut = mdp.replace(horizon=n, **({"rewards": mdp.rewards[0] / n} if mdp.average else {}))
    played = ImpairedMDP(
        cut, problem.channel, start=problem.start, actuation=problem.actuation, pending=problem.pending
    )
    link = policy.playing(problem) if hasattr(policy, "playing") else None
    if link is None and not problem.has_delay_law:
        link = copy.copy(problem.automaton)
    if link is not None:
        link.horizon = n
        played.__dict__["automaton"] = link  # known already; that of n steps could be large
    if isinstance(policy, MarkovPolicy) and len(policy.actions) == 1:
        policy = MarkovPolicy(np.repeat(policy.actions, n, axis=0), policy.n_actions)
    return played, policy
