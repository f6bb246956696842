"""The value of a policy behind an automaton, one information state after the other: the slow way, beside which the quick ones are tested."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oldlight.model.channels.automaton import ChannelAutomaton
from oldlight.model.link_information import law_of_state
from oldlight.model.mdp import TabularMDP
from oldlight.planning.link_walk import Choice, choices, reached

Floats = NDArray[np.float64]


def walk_value(
    mdp: TabularMDP,
    automaton: ChannelAutomaton,
    policy: Choice,
    *,
    initial: Floats | None = None,
    max_states: int | None = None,
) -> float | None:
    """The value of `policy`, exactly; None where it reaches more than `max_states` information states."""
    found = walk(mdp, automaton, policy, initial=initial, max_states=max_states)
    return None if found is None else found[0]


def walk(
    mdp: TabularMDP,
    automaton: ChannelAutomaton,
    policy: Choice,
    *,
    initial: Floats | None = None,
    max_states: int | None = None,
) -> tuple[float, int] | None:
    """The value of `policy`, exactly, and how many information states it reaches; None where there are more than `max_states`."""
    value, met = 0.0, 0
    for at in reached(mdp, automaton, policy, initial=initial, max_states=max_states):
        if at is None:
            return None
        met += len(at)
        for info, weight in at.items():
            reward = law_of_state(mdp, info, len(info.queue), initial) @ mdp.rewards[info.h]
            value += weight * sum(p * float(reward[a]) for a, p in choices(policy, info))
    return value, met
