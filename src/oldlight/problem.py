"""An impaired decision process: a process, the channel its observations travel through, and how the episode starts.

*Cold start* (``start=None``): s_0 ~ rho, and nothing is known before its observation arrives.

*Warm start* (``start=WarmStart()``, Section 6 of the paper). Constant delay d: before step 0 the process has already
run d steps from a uniform state under uniform actions, with the transitions of step 0 and without reward; at time 0 the
agent knows (s_{−d}, a_{−d}..a_{−1}), and from then on every observation is d late. For a delay law whose first
observation comes at once, and for loss, warm means: s_0 is uniform, and seen as the law says. Other laws are refused.

Steps before 0 are steps too: `transitions_at(t)` and `rewards_at(t)` answer for t = −lead..H−1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from oldlight.channels import CappedDelay, Channel, ConstantDelay, DelayChannel, DelayLaw, Loss
from oldlight.mdp import TabularMDP

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class WarmStart:
    """Begin from a past that the agent knows: see the module's text."""


@dataclass(frozen=True, eq=False)
class ImpairedMDP:
    """`mdp` seen through `channel`; `start` is None (cold) or WarmStart()."""

    mdp: TabularMDP
    channel: Channel
    start: WarmStart | None = None

    def __init__(self, mdp: TabularMDP, channel: Channel, *, start: WarmStart | None = None) -> None:
        if not isinstance(mdp, TabularMDP):
            raise TypeError(f"mdp is a {type(mdp).__name__}, expected a TabularMDP")
        if not isinstance(channel, DelayChannel | Loss):
            hint = f"; did you mean ConstantDelay({channel})?" if isinstance(channel, int) else ""
            raise TypeError(f"channel is a {type(channel).__name__}, expected a delay channel or Loss{hint}")
        if start is not None and not isinstance(start, WarmStart):
            raise TypeError(f"start is a {type(start).__name__}, expected None (cold) or WarmStart()")
        for name, value in (("mdp", mdp), ("channel", channel), ("start", start)):
            object.__setattr__(self, name, value)
        law, _ = self.law, self.seen  # written out now, so that what does not fit is refused here
        if start is not None and law is not None and law.constant is None and law.first[0] < 1.0:
            raise ValueError(
                f"a warm start needs a constant delay, a law whose first observation comes at once, or loss; {channel!r} "
                f"delays the first observation with probability {1 - law.first[0]:.6g}. Use start=None"
            )
        endless = start is not None and law is not None and law.constant == self.horizon
        if endless and not isinstance(channel, ConstantDelay):
            raise ValueError(f"a warm start behind {channel!r}: write it as ConstantDelay(d) to say how late it is")

    @cached_property
    def law(self) -> DelayLaw | None:
        """The delay law written out, or None for a channel that only loses."""
        if isinstance(self.channel, DelayChannel):
            return self.channel.law(self.horizon, self.n_states, self.n_actions)
        return None

    @cached_property
    def seen(self) -> Floats | None:
        """λ_h, or None for a channel that loses nothing."""
        return self.channel.rates(self.horizon) if isinstance(self.channel, Loss) else None

    @property
    def horizon(self) -> int:
        return self.mdp.horizon

    @property
    def n_states(self) -> int:
        return self.mdp.n_states

    @property
    def n_actions(self) -> int:
        return self.mdp.n_actions

    @cached_property
    def lead(self) -> int:
        """How many steps ran before step 0 (the constant delay of a warm start, else 0)."""
        if self.start is None or self.law is None:
            return 0
        return self.channel.d if isinstance(self.channel, ConstantDelay) else self.law.constant or 0

    @cached_property
    def initial(self) -> Floats:
        """The law of the state of the first step, −lead: rho, or uniform for a warm start."""
        return self.mdp.initial if self.start is None else np.full(self.n_states, 1.0 / self.n_states)

    def transitions_at(self, t: int) -> Floats:
        """P_t, axes (s, a, s2), for t = −lead..H−1."""
        step: Floats = self.mdp.transitions[max(t, 0)]
        return step

    def rewards_at(self, t: int) -> Floats:
        """r_t, axes (s, a), for t = −lead..H−1; zero before step 0."""
        return np.zeros((self.n_states, self.n_actions)) if t < 0 else self.mdp.rewards[t]

    @cached_property
    def state_at_zero(self) -> Floats:
        """The law of s_0: rho, or what the steps before step 0 made of a uniform state."""
        b = self.initial
        for _ in range(self.lead):
            b = b @ self.mdp.transitions[0].mean(axis=1)
        return b

    @property
    def reward_span(self) -> float:
        """The largest possible difference between the returns of two episodes."""
        R = self.mdp.rewards
        return float((R.max(axis=(1, 2)) - R.min(axis=(1, 2))).sum())

    def __repr__(self) -> str:
        start = "cold" if self.start is None else "warm"
        return f"ImpairedMDP({self.mdp!r}, {self.channel!r}, start={start})"


@dataclass(frozen=True)
class Truncated:
    """A problem with a shorter delay, and how far its values can be off.

    For the optimal value, and for every policy of `problem`: value − value_error ≤ value of the original ≤ value
    + value_error; and the optimal value of the original is at most that of `problem` (which knows at least as much).
    """

    problem: ImpairedMDP
    max_delay: int
    probability: float
    value_error: float


def truncate(problem: ImpairedMDP, probability: float) -> Truncated:
    """Cap a long-tailed delay at the shortest D that is exceeded with at most `probability` in an episode.

    The paper's remark on D as a high-probability bound. Where no observation is more than D late the two problems are
    the same, so for every policy their values differ by at most P(some delay > D)·(largest − smallest return).
    """
    from oldlight import checks

    checks.probability("probability", probability)
    if problem.law is None or not isinstance(problem.channel, DelayChannel):
        raise ValueError(f"truncate shortens delays; {problem.channel!r} has none")
    law = problem.law
    if problem.lead:
        return Truncated(problem, law.max_delay, 0.0, 0.0)
    for k in range(law.max_delay + 1):
        chance = law.chance_longer(k)
        if chance <= probability:
            break
    shorter = ImpairedMDP(problem.mdp, CappedDelay(problem.channel, k), start=problem.start)
    return Truncated(shorter, k, chance, chance * problem.reward_span)
