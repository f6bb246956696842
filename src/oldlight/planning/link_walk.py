"""The exact value of any policy behind a link that does not depend on the process, by a walk over what it reaches.

What the agent knows at time h is `LinkInformation`: the node of the link's automaton, the newest visible step t with its state
(None when nothing has been seen), and the actions since. The walk goes forward over the information states that the policy
reaches, each with its probability; the reward of step h is expected under the law of s_h. A deterministic policy reaches few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from oldlight.model.channels.automaton import NOTHING_NEWER, ChannelAutomaton
from oldlight.model.link_information import LinkInformation, law_of_state
from oldlight.model.mdp import TabularMDP

Floats = NDArray[np.float64]


Choice = Callable[[LinkInformation], "int | Floats"]  # an action, or the probability of each


def reached(
    mdp: TabularMDP,
    automaton: ChannelAutomaton,
    policy: Choice,
    *,
    initial: Floats | None = None,
    max_states: int | None = None,
) -> Iterator[dict[LinkInformation, float] | None]:
    """For h = 0, 1, ..: the probability of each information state that the policy reaches; None, and the end, as soon as more
    than `max_states` have been met in all."""
    names, numbers = automaton.nodes, {name: n for n, name in enumerate(automaton.nodes)}
    rho = mdp.initial if initial is None else initial
    at: dict[LinkInformation, float] = {}
    for p, n, age in automaton.row(-1):
        if age == NOTHING_NEWER:
            at[LinkInformation(0, names[n], None, None, ())] = p
        else:
            assert age == 0, "a warm start is walked by oldlight.evaluate"
            for s in np.flatnonzero(rho > 0).tolist():
                at[LinkInformation(0, names[n], 0, s, ())] = p * float(rho[s])
    met = 0
    for h in range(mdp.horizon):
        met += len(at)
        if max_states is not None and met > max_states:
            yield None
            return
        yield at
        following: dict[LinkInformation, float] = {}
        for info, weight in at.items() if h + 1 < mdp.horizon else ():
            for a, p_action in choices(policy, info):
                queue = (*info.queue, a)
                longer = info._replace(queue=queue)
                begin = info.t or 0
                for p, n, age in automaton.row(numbers[info.node]):
                    share = weight * p_action * p
                    if age == NOTHING_NEWER:
                        new = LinkInformation(h + 1, names[n], info.t, info.state, queue)
                        following[new] = following.get(new, 0.0) + share
                        continue
                    step = h + 1 - age
                    b = law_of_state(mdp, longer, step - begin, rho)
                    for s in np.flatnonzero(b > 0).tolist():
                        new = LinkInformation(h + 1, names[n], step, s, queue[step - begin :])
                        following[new] = following.get(new, 0.0) + share * float(b[s])
        at = following


def choices(policy: Choice, info: LinkInformation) -> list[tuple[int, float]]:
    """The actions that the policy may take, each with its probability."""
    given = policy(info)
    if np.ndim(given) == 0:
        return [(int(given), 1.0)]
    return [(a, float(p)) for a, p in enumerate(np.asarray(given)) if p > 0]


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
