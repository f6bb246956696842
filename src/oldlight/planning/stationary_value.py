"""What a given policy earns on a process that runs for ever, by the chain of the information states that it reaches.

A policy of a process without end must not look at the time. It is asked with the newest visible step as step 0; one that answers otherwise
when the same is known a step later is refused. Silences without end: a `StationaryPolicy` says what it does then; of any other policy a silence that is less likely than
1e-10 may earn anything (discount; the bounds hold it), or is taken as one action repeated (average).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from oldlight.model.channels.endless import grows
from oldlight.model.information import Information
from oldlight.model.link_information import LinkInformation, PolicyOfNodes
from oldlight.model.policies import (
    MarkovPolicy,
    as_probabilities,
)
from oldlight.model.problem import ImpairedMDP
from oldlight.model.stationary_policy import StationaryPolicy
from oldlight.planning.evaluation import Evaluation, play, unimpaired
from oldlight.planning.stationary import forever_value, scale_of
from oldlight.random_streams import Seed

CLOSED = 1e-9  # of the scale: bounds this close are called exact
FARTHEST = 8  # the age up to which a policy is followed where delays only grow


def evaluate_forever(problem: ImpairedMDP, policy: Any, max_states: int, episodes: int, seed: Seed) -> Evaluation:
    """The value of `policy`, between two bounds; played where it reaches more than `max_states` information states."""
    if isinstance(policy, MarkovPolicy):
        problem, policy = unimpaired(problem), _Plain(policy)
    scale = scale_of(problem.mdp)
    options: dict[str, Any] = {}
    if not isinstance(policy, StationaryPolicy):
        told = problem.has_delay_law and not isinstance(policy, PolicyOfNodes)
        options = {"choose": partial(_asked, problem, policy, told), "waits": told}
        if grows(problem.channel):
            options["reach"] = problem.actuation + FARTHEST
    found = forever_value(problem, policy, max_states=max_states, tolerance=0.1 * CLOSED * scale, **options)
    if found is None:
        return play(problem, policy, episodes, seed)
    half = (found.upper - found.lower) / 2
    close = half <= CLOSED * scale
    return Evaluation(found.lower + half, close, 0.0 if close else half, "chain of information states", found.size)


class _Plain:
    """A plan for every state, as a policy of what is seen at once."""

    def __init__(self, plan: MarkovPolicy) -> None:
        self.plan = plan

    def probabilities(self, info: Any) -> Any:
        return np.eye(self.plan.n_actions)[self.plan.actions[0, info.state]]


def _asked(problem: ImpairedMDP, policy: Any, told: bool, info: LinkInformation, wait: int) -> list[tuple[int, float]]:
    """What the policy does on what is known now, and the same a step later."""
    h, node, t, s, queue = info
    if t is None and h < problem.actuation:
        return [(problem.pending[h], 1.0)]
    A, given = problem.n_actions, []
    for later in (0, 1) if t is not None else (0,):
        now: Any = LinkInformation(h + later, node, None if t is None else t + later, s, queue)
        if told:
            now = Information(h + later, now.t, s, queue, h + 1 if t is None else wait)
        given.append(as_probabilities(policy.probabilities(now), A, f"the policy at {tuple(now)}"))
    if len(given) == 2 and not np.array_equal(given[0], given[1]):
        raise ValueError(
            f"the policy does {given[0].round(6).tolist()} at {tuple(info)} and {given[1].round(6).tolist()} where the same is known a step later; a "
            "process that runs for ever takes policies that do not look at the time. Cut it: mdp.replace(horizon=H)"
        )
    return [(a, float(p)) for a, p in enumerate(given[0]) if p > 0]
