"""An impaired decision process: a process, the channel its observations travel through, and how the episode starts.

*Cold start* (``start=None`` or ``"cold"``): s_0 ~ rho, and nothing is known before its observation arrives.

*Warm start* (``start="warm"`` or ``WarmStart()``, Section 6 of the paper). Constant delay d: before step 0 the process has already
run d steps from a uniform state under uniform actions, with the transitions of step 0 and without reward; at time 0 the
agent knows (s_{−d}, a_{−d}..a_{−1}), and from then on every observation is d late. For a delay law whose first
observation comes at once, and for loss, warm means: s_0 is uniform, and seen after the delay of the law; so too for a channel without a
delay law whose first observation comes at once, or that never delays. Other laws are refused.

*Late actions* (``actuation=k``): the action chosen at time h acts at step h + k. Knowing observations d late and acting k late
is knowing them d + k late and acting at once, with the first k actions given.

Steps before 0 are steps too: `transitions_at(t)` and `rewards_at(t)` answer for t = −warmup..H−1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from oldlight import checks, drawing
from oldlight.arrays import Floats
from oldlight.model.channels import Channel, ChannelAutomaton, LossChannel
from oldlight.model.channels.capped_link import CappedLink, probability_older
from oldlight.model.channels.delay_law import DelayLaw
from oldlight.model.channels.endless import TRIES, check_endless, endless
from oldlight.model.channels.without_law import check_start, no_delay_law
from oldlight.model.mdp import TabularMDP


@dataclass(frozen=True)
class WarmStart:
    """Begin from a past that the agent knows; what that means for each channel is in the text of `oldlight.model.problem`.

    Examples
    --------
    >>> import oldlight as ol
    >>> ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:2", start=ol.WarmStart()).warmup
    2
    """


Start: TypeAlias = WarmStart | Literal["warm", "cold"] | None
GivenChannel: TypeAlias = Channel | str | Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class ImpairedMDP:
    """A process seen through a channel.

    Parameters
    ----------
    mdp : TabularMDP
        The process: H steps, S states, A actions.
    channel : Channel, str or mapping
        How observations travel: an object, text such as ``"constant:2+loss:0.1"`` or data (see `oldlight.model.channels.text`).
    start : None, "cold", "warm" or WarmStart()
        See the module's text; None is cold.
    actuation : int
        Actions take effect this many steps after they are chosen. `h` of an information state is always the step that the action
        chosen now will act on, so late actions are the same as observations that are later by `actuation` (see `law`).
    pending : sequence of `actuation` ints, optional
        The actions under way at time 0, done at steps 0..actuation−1; action 0 each if None.

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:2", start="warm")
    >>> problem.warmup, problem.channel
    (2, ConstantDelay(d=2))
    >>> problem.behind("loss:0.2").arrival_probability.tolist() == [0.8] * 10
    True
    """

    mdp: TabularMDP
    channel: Channel
    start: WarmStart | None = None
    actuation: int = 0
    pending: tuple[int, ...] = ()

    def __init__(
        self,
        mdp: TabularMDP,
        channel: GivenChannel,
        *,
        start: Start = None,
        actuation: int = 0,
        pending: Sequence[int] | None = None,
    ) -> None:
        if not isinstance(mdp, TabularMDP):
            raise TypeError(f"mdp is of type {type(mdp).__name__}, expected a TabularMDP")
        channel, start = _channel(channel), _start(start)
        k = checks.steps("actuation", actuation)
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
        if self.forever:
            check_endless(channel, mdp.n_states, mdp.n_actions)
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
        if law.constant == law.horizon and channel.constant is None:
            raise ValueError(f"a warm start behind {channel!r}: write it as ConstantDelay(d) to say how late it is")

    @cached_property
    def _made(self) -> dict[str, Any]:
        """What others make of this problem once: its layout, the arrays of its plan. Not part of its state: another process makes it anew."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_made"}

    @property
    def has_delay_law(self) -> bool:
        """Are observations settled in order, at most one a step, by a delay law (with announced losses, or none)?"""
        return self.channel.has_delay_law

    @cached_property
    def automaton(self) -> ChannelAutomaton:
        """What an agent knows of the link, every age later by the actuation delay (`oldlight.model.channels.automaton`)."""
        if self.forever:
            return endless(self.channel).automaton.shifted(self.actuation)
        return self.channel.automaton(self.horizon).shifted(self.actuation)

    @cached_property
    def law(self) -> DelayLaw:
        """When each observation arrives, or is known to be lost, counted as later by the actuation delay."""
        if not self.has_delay_law:
            raise no_delay_law(self.channel)
        steps = self._law_steps if self.forever else self.horizon
        law = self.channel.delay.law(steps, self.n_states, self.n_actions)
        return law.shifted(self.actuation) if self.actuation else law

    @property
    def loss(self) -> LossChannel | None:
        """What is lost, or None for a channel that loses nothing."""
        if not self.has_delay_law:
            raise no_delay_law(self.channel)
        return self.channel.loss

    @cached_property
    def arrival_probability(self) -> Floats | None:
        """λ_h, or None for a channel that loses nothing."""
        return None if self.loss is None else self.loss.arrival_probabilities(self.law.horizon)

    @property
    def forever(self) -> bool:
        """Does the process run for ever?"""
        return self.mdp.horizon is None

    @property
    def _law_steps(self) -> int:
        """The steps that a delay law is written out for where there is no horizon: enough to see what it is."""
        return TRIES[0] + (self.channel.constant or 0) + self.actuation

    @property
    def horizon(self) -> int:
        """H, the number of steps; a process that runs for ever refuses, with the way out."""
        return self.mdp.finite_horizon

    @property
    def n_states(self) -> int:
        """S."""
        return self.mdp.n_states

    @property
    def n_actions(self) -> int:
        """A."""
        return self.mdp.n_actions

    @cached_property
    def warmup(self) -> int:
        """How many steps ran before step 0 (the constant delay of a warm start, else 0)."""
        if self.start is None or not self.has_delay_law:
            return 0
        late = self.channel.constant
        return self.law.constant or 0 if late is None else late

    @cached_property
    def initial(self) -> Floats:
        """The law of the state of the first step, −warmup: rho, or uniform for a warm start."""
        return self.mdp.initial if self.start is None else np.full(self.n_states, 1.0 / self.n_states)

    lead = checks.renamed_property("lead", "warmup")
    seen = checks.renamed_property("seen", "arrival_probability")

    def matrix_at(self, t: int) -> Any:
        """P_t with the rows s·A + a, as `TabularMDP.matrix` has it, for t = −warmup..H−1."""
        return self.mdp.matrix(0 if self.forever else max(t, 0))

    def transitions_at(self, t: int) -> Floats:
        """P_t, axes (s, a, s2), for t = −warmup..H−1; made on request if the process is sparse (see `TabularMDP.transitions`)."""
        step: Floats = self.mdp.transitions[0 if self.forever else max(t, 0)]
        return step

    def rewards_at(self, t: int) -> Floats:
        """r_t, axes (s, a), for t = −warmup..H−1; zero before step 0."""
        return np.zeros((self.n_states, self.n_actions)) if t < 0 else self.mdp.rewards[0 if self.forever else t]

    @cached_property
    def state_at_zero(self) -> Floats:
        """The law of s_0: rho, or what the steps before step 0 made of a uniform state."""
        b, A = self.initial, self.n_actions
        for _ in range(self.warmup):
            b = np.asarray(np.repeat(b / A, A) @ self.mdp.matrix(0))
        return b

    def behind(self, channel: GivenChannel) -> ImpairedMDP:
        """The same process, start and actuation behind another channel, which may be given as text."""
        return ImpairedMDP(self.mdp, channel, start=self.start, actuation=self.actuation, pending=self.pending)

    def _moved_by(self, transitions: Floats) -> ImpairedMDP:
        """The same with other transitions (`TabularMDP._moved_by`); what was made of the link is kept, and its automaton is made before, once for all."""
        _ = self.automaton
        kept = {name: value for name, value in vars(self).items() if name not in ("_made", "state_at_zero")}
        other = ImpairedMDP.__new__(ImpairedMDP)
        vars(other).update(kept | {"mdp": self.mdp._moved_by(transitions)})
        return other

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


def _channel(given: GivenChannel) -> Channel:
    """The channel that was given as an object, as text or as data."""
    if isinstance(given, Channel):
        return given
    if isinstance(given, str | Mapping):
        from oldlight.model.channels.text import channel_of

        return channel_of(given)
    hint = f"; did you mean ConstantDelay({given})?" if isinstance(given, int) else ""
    if callable(given):
        hint = f"; did you mean {getattr(given, '__name__', 'channel')}(..)?"
    raise TypeError(f"channel is of type {type(given).__name__}, expected a delay channel, Loss or Lossy{hint}")


def _start(given: Start) -> WarmStart | None:
    if given is None or isinstance(given, WarmStart):
        return given
    if isinstance(given, str):
        return WarmStart() if checks.one_of("start", given, ("warm", "cold")) == "warm" else None
    raise TypeError(f"start is of type {type(given).__name__}, expected None (cold) or WarmStart()")


def checked_problem(problem: ImpairedMDP, who: str) -> None:
    """Refuse anything but an ImpairedMDP, with the call that was meant."""
    if not isinstance(problem, ImpairedMDP):
        raise TypeError(
            f"{who} takes an ImpairedMDP, not something of type {type(problem).__name__}; wrap it: ImpairedMDP(mdp, channel)"
        )


@dataclass(frozen=True)
class Truncated(drawing.Result):
    """A problem with a shorter delay, and how far its values can be off; made by `truncate`.

    For the optimal value, and for every policy of `problem`: value − value_error ≤ value of the original ≤ value + value_error. The
    optimal value of the original is at most that of `problem`, whose agent knows at least as much.

    Parameters
    ----------
    problem : ImpairedMDP
        The process behind the shorter delay.
    max_delay : int
        Its longest delay D.
    probability : float
        Of a delay longer than D in an episode of the original.
    value_error : float
        `probability` times the largest difference between two returns.

    Examples
    --------
    >>> import oldlight as ol
    >>> cut = ol.truncate(ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.GeometricDelay(0.9)), probability=0.1)
    >>> cut.max_delay, round(cut.probability, 4), round(cut.value_error, 4)
    (2, 0.053, 0.5297)
    """

    problem: ImpairedMDP
    max_delay: int
    probability: float
    value_error: float

    def plot(self, ax: Any = None) -> Any:
        """Draw the probability that some delay of an episode exceeds k (behind a link that loses, or has no delay law: that some
        observation is older than k when it is shown), for k up to the new longest delay; returns the axes."""
        ax = drawing.axes_of(ax)
        problem = self.problem
        if problem.has_delay_law:
            law, what = problem.channel.delay.law(problem.horizon, problem.n_states, problem.n_actions), "a delay"
            shorter = [law.probability_longer(k) for k in range(self.max_delay)]
        else:
            link, what = problem.channel.automaton(problem.horizon), "an age"
            shorter = [probability_older(link, k) for k in range(self.max_delay)]
        ax.step(range(self.max_delay + 1), [*shorter, self.probability], where="post", marker="o")
        ax.set_xlabel("k [steps]")
        ax.set_ylabel(f"probability of {what} > k")
        return ax


def truncate(problem: ImpairedMDP, probability: float) -> Truncated:
    """Cap a long-tailed delay at the shortest D that is exceeded with at most `probability` in an episode.

    The paper's remark on D as a high-probability bound. Where no observation is more than D late the two problems are
    the same, so for every policy their values differ by at most P(some delay > D)·(largest − smallest return). Behind a link that
    loses, or has no delay law, it is the age that is capped: an observation that is not there by then is shown when it is D steps old.

    Parameters
    ----------
    problem : ImpairedMDP
        Behind any channel.
    probability : float
        What may remain, in [0, 1].

    Returns
    -------
    Truncated
        The problem with the shorter delay, and its error.

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.GeometricDelay(0.9))
    >>> ol.truncate(problem, probability=0.1).max_delay
    2
    """
    checked_problem(problem, "truncate")
    checks.probability("probability", probability)
    if not problem.has_delay_law or problem.loss is not None:
        return _truncated_link(problem, probability)
    law = problem.channel.delay.law(problem.horizon, problem.n_states, problem.n_actions)
    if problem.warmup:
        return Truncated(problem, law.max_delay, 0.0, 0.0)
    for k in range(law.max_delay + 1):
        longer = law.probability_longer(k)
        if longer <= probability:
            break
    shorter = problem.behind(problem.channel.delay.capped(k))
    return Truncated(shorter, k, longer, longer * problem.reward_span)


def _truncated_link(problem: ImpairedMDP, probability: float) -> Truncated:
    """The same for a link that loses or has no delay law: the age is capped."""
    link = problem.channel.automaton(problem.horizon)
    for k in range(problem.horizon + 1):
        older = probability_older(link, k)
        if older <= probability:
            break
    return Truncated(problem.behind(CappedLink(problem.channel, k)), k, older, older * problem.reward_span)
