"""Channels without a delay law: what a problem behind one refuses.

The paper's law settles observations in order, at most one a step. Packets that overtake each other, several messages delivered at
once, or losses that nobody announces have no such law; they have an automaton of ages, and what works from that works for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oldlight.model.channels.channel import Channel

if TYPE_CHECKING:
    from oldlight.model.problem import ImpairedMDP


def no_delay_law(channel: Channel) -> ValueError:
    """The error for what needs observations in order, at most one a step."""
    return ValueError(
        f"{channel!r} has no delay law (observations in order, at most one a step), and this needs one. Behind this channel "
        "there are oldlight.solve, evaluate, simulate, gap, sweep, belief and the heuristics; for learners, controllers, environments "
        "and the testbed take a delay channel, Loss, or Lossy(ConstantDelay(d), rate=...)"
    )


def no_controller(problem: ImpairedMDP, policy: object) -> Exception:
    """The error for a controller behind such a channel, or for a plan made by a channel's automaton."""
    if not problem.has_delay_law:
        return no_delay_law(problem.channel)
    return TypeError(
        f"{policy!r} reads the nodes of the automaton of {problem.channel!r}, which a controller does not follow; give a policy of "
        "oldlight.Information, such as oldlight.planning.heuristics.most_likely(problem)"
    )


def check_start(problem: ImpairedMDP) -> None:
    """Refuse a warm start behind a channel without a delay law where it is not defined."""
    if problem.start is None:
        return
    if problem.actuation:
        raise ValueError("a warm start with late actions is not defined; use start=None and pending=(...)")
    link = problem.automaton
    late = sum(p for p, _, age in link.row(-1) if age != 0)
    if late > 0 and link.longest > 0:
        raise ValueError(
            f"a warm start behind a channel without a delay law needs a first observation that comes at once, or a channel that "
            f"never delays; {problem.channel!r} shows s_0 at time 0 with probability {1 - late:.6g} only. Use start=None"
        )
