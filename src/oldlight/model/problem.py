"""An impaired decision process: a process, the channel its observations travel through, and how the episode starts.

*Cold start* (``start=None``): s_0 ~ rho, and nothing is known before its observation arrives.

*Warm start* (``start=WarmStart()``, Section 6 of the paper). Constant delay d: before step 0 the process has already
run d steps from a uniform state under uniform actions, with the transitions of step 0 and without reward; at time 0 the
agent knows (s_{−d}, a_{−d}..a_{−1}), and from then on every observation is d late. For a delay law whose first
observation comes at once, and for loss, warm means: s_0 is uniform, and seen as the law says; so too for a channel without a
delay law whose first observation comes at once, or that never delays. Other laws are refused.

*Late actions* (``actuation=k``): the action chosen at time h acts at step h + k. Knowing observations d late and acting k late
is knowing them d + k late and acting at once, with the first k actions given.

Steps before 0 are steps too: `transitions_at(t)` and `rewards_at(t)` answer for t = −warmup..H−1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.model.channels import Channel, ChannelAutomaton, ConstantDelay, DelayChannel, LossChannel, Lossy
from oldlight.model.channels.delay_law import DelayLaw
from oldlight.model.channels.without_law import check_start, no_delay_law
from oldlight.model.mdp import TabularMDP

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class WarmStart:
    """Begin from a past that the agent knows: see the module's text."""


@dataclass(frozen=True, eq=False)
class ImpairedMDP:
    """`mdp` seen through `channel`; `start` is None (cold) or WarmStart().

    actuation: actions take effect this many steps after they are chosen; `pending` are the ones under way at time 0, done at
    steps 0..actuation−1 (the first action each if None). `h` of an information state is always the step that the action
    chosen now will act on, so late actions are the same as observations that are later by `actuation` (see `law`).
    """

    mdp: TabularMDP
    channel: Channel
    start: WarmStart | None = None
    actuation: int = 0
    pending: tuple[int, ...] = ()

    def __init__(
        self,
        mdp: TabularMDP,
        channel: Channel,
        *,
        start: WarmStart | None = None,
        actuation: int = 0,
        pending: Sequence[int] | None = None,
    ) -> None:
        if not isinstance(mdp, TabularMDP):
            raise TypeError(f"mdp is of type {type(mdp).__name__}, expected a TabularMDP")
        if not isinstance(channel, Channel):
            hint = f"; did you mean ConstantDelay({channel})?" if isinstance(channel, int) else ""
            raise TypeError(
                f"channel is of type {type(channel).__name__}, expected a delay channel, Loss or Lossy{hint}"
            )
        if start is not None and not isinstance(start, WarmStart):
            raise TypeError(f"start is of type {type(start).__name__}, expected None (cold) or WarmStart()")
        k = checks.whole("actuation", actuation)
        if pending is not None and not isinstance(pending, Sequence | np.ndarray):
            raise ValueError(f"pending is {pending!r}, expected a list of {k} actions")
        waiting = (0,) * k if pending is None else tuple(pending)
        if len(waiting) != k:
            raise ValueError(f"pending has {len(waiting)} actions, expected one per step of actuation delay: {k}")
        for i, a in enumerate(waiting):
            checks.whole(f"pending[{i}]", a, most=mdp.n_actions - 1)
        parts = {"mdp": mdp, "channel": channel, "start": start, "actuation": k, "pending": waiting}
        for name, value in parts.items():
            object.__setattr__(self, name, value)
        if not self.has_delay_law:
            check_start(self)
            return
        law, _ = self.law, self.arrival_probability  # written out now, so that what does not fit is refused here
        if start is None:
            return
        if k:
            raise ValueError("a warm start with late actions is not defined; use start=None and pending=(...)")
        if law.constant is None and law.first[0] < 1.0:
            raise ValueError(
                f"a warm start needs a constant delay, a law whose first observation comes at once, or loss; {channel!r} "
                f"delays the first observation with probability {1 - law.first[0]:.6g}. Use start=None"
            )
        if self.arrival_probability is not None and law.constant != 0:
            raise ValueError(f"a warm start behind {channel!r}, which delays and loses, is not defined; use start=None")
        if law.constant == self.horizon and not isinstance(channel, ConstantDelay):
            raise ValueError(f"a warm start behind {channel!r}: write it as ConstantDelay(d) to say how late it is")

    @property
    def has_delay_law(self) -> bool:
        """Are observations settled in order, at most one a step, by a delay law (with announced losses, or none)?"""
        return isinstance(self.channel, DelayChannel | LossChannel | Lossy)

    @cached_property
    def automaton(self) -> ChannelAutomaton:
        """What an agent knows of the link, every age later by the actuation delay (`oldlight.model.channels.automaton`)."""
        return self.channel.automaton(self.horizon).shifted(self.actuation)

    @cached_property
    def law(self) -> DelayLaw:
        """When each observation arrives, or is known to be lost, counted as later by the actuation delay."""
        if not self.has_delay_law:
            raise no_delay_law(self.channel)
        channel: Any = self.channel.delay if isinstance(self.channel, Lossy) else self.channel
        if isinstance(channel, LossChannel):
            channel = ConstantDelay(0)
        law: DelayLaw = channel.law(self.horizon, self.n_states, self.n_actions)
        return law.shifted(self.actuation) if self.actuation else law

    @cached_property
    def loss(self) -> LossChannel | None:
        """What is lost, or None for a channel that loses nothing."""
        if not self.has_delay_law:
            raise no_delay_law(self.channel)
        if isinstance(self.channel, Lossy):
            return self.channel.loss
        return self.channel if isinstance(self.channel, LossChannel) else None

    @cached_property
    def arrival_probability(self) -> Floats | None:
        """λ_h, or None for a channel that loses nothing."""
        return None if self.loss is None else self.loss.arrival_probabilities(self.horizon)

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
    def warmup(self) -> int:
        """How many steps ran before step 0 (the constant delay of a warm start, else 0)."""
        if self.start is None or not self.has_delay_law:
            return 0
        return self.channel.d if isinstance(self.channel, ConstantDelay) else self.law.constant or 0

    @cached_property
    def initial(self) -> Floats:
        """The law of the state of the first step, −warmup: rho, or uniform for a warm start."""
        return self.mdp.initial if self.start is None else np.full(self.n_states, 1.0 / self.n_states)

    def transitions_at(self, t: int) -> Floats:
        """P_t, axes (s, a, s2), for t = −warmup..H−1."""
        step: Floats = self.mdp.transitions[max(t, 0)]
        return step

    def rewards_at(self, t: int) -> Floats:
        """r_t, axes (s, a), for t = −warmup..H−1; zero before step 0."""
        return np.zeros((self.n_states, self.n_actions)) if t < 0 else self.mdp.rewards[t]

    @cached_property
    def state_at_zero(self) -> Floats:
        """The law of s_0: rho, or what the steps before step 0 made of a uniform state."""
        b = self.initial
        for _ in range(self.warmup):
            b = b @ self.mdp.transitions[0].mean(axis=1)
        return b

    def behind(self, channel: Channel) -> ImpairedMDP:
        """The same process, start and actuation behind another channel."""
        return ImpairedMDP(self.mdp, channel, start=self.start, actuation=self.actuation, pending=self.pending)

    @property
    def period_ms(self) -> float | None:
        """The control period in milliseconds, if the channel carries one."""
        return self.channel.period_ms

    @property
    def reward_span(self) -> float:
        """The largest possible difference between the returns of two episodes."""
        R = self.mdp.rewards
        return float((R.max(axis=(1, 2)) - R.min(axis=(1, 2))).sum())

    def __repr__(self) -> str:
        start = "cold" if self.start is None else "warm"
        late = f", actuation={self.actuation}" if self.actuation else ""
        return f"ImpairedMDP({self.mdp!r}, {self.channel!r}, start={start}{late})"


def checked_problem(problem: ImpairedMDP, who: str) -> None:
    """Refuse anything but an ImpairedMDP, with the call that was meant."""
    if not isinstance(problem, ImpairedMDP):
        raise TypeError(
            f"{who} takes an ImpairedMDP, not something of type {type(problem).__name__}; wrap it: ImpairedMDP(mdp, channel)"
        )


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
    checked_problem(problem, "truncate")
    checks.probability("probability", probability)
    if not isinstance(problem.channel, DelayChannel):
        raise ValueError(f"truncate shortens a delay channel; {problem.channel!r} is not one")
    law = problem.channel.law(problem.horizon, problem.n_states, problem.n_actions)
    if problem.warmup:
        return Truncated(problem, law.max_delay, 0.0, 0.0)
    for k in range(law.max_delay + 1):
        chance = law.chance_longer(k)
        if chance <= probability:
            break
    shorter = problem.behind(problem.channel.capped(k))
    return Truncated(shorter, k, chance, chance * problem.reward_span)
