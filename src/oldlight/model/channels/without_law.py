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
        f"{channel!r} has no delay law (observations in order, at most one a step), which most learners and explicit models need: "
        "take a delay channel, Loss, or Lossy(ConstantDelay(d), rate=...). Plans, simulations, learners.LinkLearner, environments, "
        "controllers and the testbed work behind this channel too"
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
