"""The exact value of any policy behind a link that does not depend on the process, by a walk over what it reaches.

What the agent knows at time h is `LinkInformation`: the node of the link's automaton, the newest visible step t with its state
(None when nothing has been seen), and the actions since. The walk goes forward over the information states that the policy
reaches, each with its probability; the reward of step h is expected under the law of s_h. A deterministic policy reaches few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from oldlight.arrays import Floats
from oldlight.model.channels.automaton import NOTHING_NEWER, ChannelAutomaton, Tick
from oldlight.model.link_information import LinkInformation, law_of_state
from oldlight.model.mdp import TabularMDP

Choice = Callable[[LinkInformation], "int | Floats"]  # an action, or the probability of each


def beginnings_of(
    mdp: TabularMDP, automaton: ChannelAutomaton, initial: Floats | None = None
) -> Iterator[tuple[float, LinkInformation]]:
    """What the agent can know at time 0, and how likely."""
    names, rho = automaton.nodes, mdp.initial if initial is None else initial
    for p, n, age in automaton.row(-1):
        if age == NOTHING_NEWER:
            yield p, LinkInformation(0, names[n], None, None, ())
            continue
        assert age == 0, "a warm start is walked by oldlight.evaluate"
        for s in np.flatnonzero(rho > 0).tolist():
            yield p * float(rho[s]), LinkInformation(0, names[n], 0, s, ())


def moves_of(
    mdp: TabularMDP,
    automaton: ChannelAutomaton,
    number: int,
    info: LinkInformation,
    a: int,
    initial: Floats | None = None,
) -> Iterator[tuple[float, LinkInformation]]:
    """What the agent can know one step after acting a on `info`, whose node has this number, and how likely."""
    names, h, queue, begin = automaton.nodes, info.h, (*info.queue, a), info.t or 0
    longer = info._replace(queue=queue)
    for p, n, age in automaton.row(number):
        if age == NOTHING_NEWER:
            yield p, LinkInformation(h + 1, names[n], info.t, info.state, queue)
            continue
        step = h + 1 - age
        b = law_of_state(mdp, longer, step - begin, initial)
        for s in np.flatnonzero(b > 0).tolist():
            yield p * float(b[s]), LinkInformation(h + 1, names[n], step, s, queue[step - begin :])


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
    numbers = {name: n for n, name in enumerate(automaton.nodes)}
    at: dict[LinkInformation, float] = {}
    for p, info in beginnings_of(mdp, automaton, initial):
        at[info] = at.get(info, 0.0) + p
    met = 0
    for h in range(mdp.finite_horizon):
        met += len(at)
        if max_states is not None and met > max_states:
            yield None
            return
        yield at
        following: dict[LinkInformation, float] = {}
        for info, weight in at.items() if h + 1 < mdp.finite_horizon else ():
            for a, p_action in choices(policy, info):
                for p, new in moves_of(mdp, automaton, numbers[info.node], info, a, initial):
                    following[new] = following.get(new, 0.0) + weight * p_action * p
        at = following


def with_wait(automaton: ChannelAutomaton) -> ChannelAutomaton:
    """The same link; a node is (node, ticks since anything newer was seen, counted from the start before that)."""

    def after(wait: int, ticks: list[tuple[float, int, int]]) -> list[Tick]:
        return [(p, (n, wait + 1 if age == NOTHING_NEWER else 0), age) for p, n, age in ticks]

    return ChannelAutomaton.explore(
        after(0, automaton.row(-1)), lambda node: after(node[1], automaton.row(node[0])), automaton.horizon
    )


def choices(policy: Choice, info: LinkInformation) -> list[tuple[int, float]]:
    """The actions that the policy may take, each with its probability."""
    given = policy(info)
    if np.ndim(given) == 0:
        return [(int(given), 1.0)]
    return [(a, float(p)) for a, p in enumerate(np.asarray(given)) if p > 0]
