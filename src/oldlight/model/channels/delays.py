"""How observations travel from the process to the agent.

**Delay.** The observation of step i (its state and reward) arrives at time i + d_i, before the action of that time is
chosen. d_0 has the law `first`, and d_{i+1} = d_i + Δ_i with interarrival Δ_i ≥ 0 drawn from
`interarrival[i, s_i, a_i, :]`, independent of s_{i+1} given (s_i, a_i). So observations arrive in order, at most one
a step. What is delayed by H or more is only seen after the episode, so every law is folded at H: heavy tails are fine.

The agent's question is always "does the next one arrive now?". Its answer is the hazard

    θ_i(s, a, δ) = P(Δ_i = δ | Δ_i ≥ δ, s_i = s, a_i = a),      θ = 1 where P(Δ_i ≥ δ | s, a) = 0,

where δ counts the steps since step i's own observation arrived.

A *cap* k replaces d_i by min(d_i, k). The agent then knows at least as much, so the capped value is never lower.

**Loss.** The observation of step h is seen at time h with probability λ_h; otherwise it is lost for good, and the agent
knows that it was lost. `Loss` draws each observation by itself; `BurstyLoss` draws from a link that is good or bad for a while.

**Late and lossy.** An observation is lost with its rate, otherwise it travels with the delay; the agent learns of a loss at
the time when the observation would have arrived.

Steps are counted from 0 (see `oldlight.model.mdp`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oldlight import checks
from oldlight.arrays import Floats
from oldlight.model.channels.automaton import ChannelAutomaton
from oldlight.model.channels.channel import Channel, steps_of
from oldlight.model.channels.delay_law import KEPT, DelayLaw, fold
from oldlight.model.channels.in_order import in_order_automaton

FirstDelay: TypeAlias = Sequence[float] | Floats | Literal["same"] | None


class DelayChannel(Channel):
    """Base of the channels that delay: a subclass defines `law(horizon, n_states, n_actions)`, which returns a `DelayLaw`.

    Examples
    --------
    >>> import oldlight as ol
    >>> isinstance(ol.GeometricDelay(0.5), ol.DelayChannel)
    True
    >>> ol.GeometricDelay(0.5).capped(2)
    CappedDelay(channel=GeometricDelay(p=0.5, first=None), max_delay=2)
    """

    has_delay_law = True

    @property
    def delay(self) -> DelayChannel:
        """The channel itself."""
        return self

    @property
    def loss(self) -> None:
        """None: nothing is lost."""
        return None

    def law(self, horizon: int, n_states: int, n_actions: int) -> DelayLaw:
        """The delay written out for a process of these sizes."""
        raise TypeError(f"{type(self).__name__} does not define law(horizon, n_states, n_actions)")

    def automaton(self, horizon: int) -> ChannelAutomaton:
        """What an agent knows of the link; refused for a law that depends on the state or the action."""
        return in_order_automaton(self.law(horizon, *self._sizes()))

    def _sizes(self) -> tuple[int, int]:
        """The states and actions for which the law differs."""
        return 1, 1

    def capped(self, max_delay: int) -> DelayChannel:
        """The same channel with no delay longer than `max_delay`: an agent behind it knows at least as much."""
        return CappedDelay(self, max_delay).with_period(self.period_ms)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """After transport to another process arrays are read-only again."""
        for name, value in state.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)


def _constant_law(late: int, horizon: int) -> DelayLaw:
    first = np.zeros(late + 1)
    first[-1] = 1.0
    return write_out(first, np.ones(1), horizon, 1, 1, who="ConstantDelay")


# with what follows from it: every problem of the same delay and horizon asks for that
_kept_law = lru_cache(maxsize=64)(_constant_law)


def write_out(first: Floats, interarrival: Floats, H: int, S: int, A: int, *, who: str) -> DelayLaw:
    """Broadcast to (H, S, A, K) without copying, and fold what exceeds H into H."""
    shape = (1,) * max(0, 4 - interarrival.ndim) + interarrival.shape
    for axis, name, size in ((0, "steps", H), (1, "states", S), (2, "actions", A)):
        if len(shape) != 4 or shape[axis] not in (1, size):
            raise ValueError(
                f"{who}: interarrival has shape {interarrival.shape}; its axes are (step, state, action, δ), each 1 or the "
                f"process's own size ({H}, {S}, {A}), and {name} do not fit. For one law per step write law[:, None, None, :]"
            )
    return DelayLaw(H, fold(first, H), fold(interarrival.reshape(shape), H), H)


@dataclass(frozen=True, eq=False)
class ConstantDelay(DelayChannel):
    """Every observation is exactly d steps late.

    Parameters
    ----------
    d : int
        The delay in steps, ≥ 0.

    Examples
    --------
    >>> from oldlight import ConstantDelay
    >>> ConstantDelay.from_ms(45, period_ms=20)  # rounded up to whole steps
    ConstantDelay(d=3).with_period(20)
    """

    d: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", checks.steps("ConstantDelay: d", self.d))

    @classmethod
    def from_ms(cls, delay_ms: float, *, period_ms: float) -> ConstantDelay:
        """`delay_ms` milliseconds at a control period of `period_ms`: whole steps, rounded up."""
        return cls(steps_of(delay_ms, period_ms)).with_period(period_ms)

    @property
    def constant(self) -> int:
        """d."""
        return self.d

    def capped(self, max_delay: int) -> ConstantDelay:
        """The constant delay min(d, max_delay)."""
        return ConstantDelay(min(self.d, checks.whole("max_delay", max_delay))).with_period(self.period_ms)

    def law(self, horizon: int, n_states: int, n_actions: int) -> DelayLaw:
        late = min(self.d, horizon)
        return (_kept_law if horizon * (late + 1) <= KEPT else _constant_law)(late, horizon)


class StochasticDelay(DelayChannel):
    """Interarrival times from any pmf, per step, state and action if need be.

    Parameters
    ----------
    interarrival : array_like, shape (K,) up to (H, S, A, K)
        The last axis is P(Δ = 0, 1, ...); it broadcasts to (H, S, A, K). Plain ``[0.7, 0.3]`` is one law for all.
    first : array_like, optional
        The pmf of d_0; ``[1.0]`` (the first state is seen at once) if None.

    Examples
    --------
    >>> from oldlight import StochasticDelay
    >>> StochasticDelay([0.7, 0.3]).law(horizon=4, n_states=2, n_actions=2).max_delay
    3
    """

    def __init__(self, interarrival: ArrayLike, *, first: ArrayLike | None = None) -> None:
        table = checks.numbers("StochasticDelay: interarrival", interarrival)
        if not 1 <= table.ndim <= 4:
            raise ValueError(f"interarrival has shape {table.shape}; expected (K,) up to (H, S, A, K)")
        axes = ("i", "s", "a", "δ")[4 - table.ndim :]
        self.interarrival = checks.frozen(checks.probability_rows("StochasticDelay: interarrival", table, axes))
        self.first = checks.frozen(
            checks.probability_rows("StochasticDelay: first", [1.0] if first is None else first, ("d",))
        )

    def law(self, horizon: int, n_states: int, n_actions: int) -> DelayLaw:
        return write_out(self.first, self.interarrival, horizon, n_states, n_actions, who=type(self).__name__)

    def _sizes(self) -> tuple[int, int]:
        shape = (1, 1, 1, *self.interarrival.shape)
        return shape[-3], shape[-2]

    def _parameters(self) -> tuple[Any, ...]:
        return (self.interarrival.shape, self.interarrival.tobytes(), self.first.tobytes())

    def _written(self) -> str:
        shape, first = self.interarrival.shape, np.round(self.first, 6).tolist()
        table = np.round(self.interarrival, 6).tolist() if len(shape) == 1 else f"<array {shape}>"
        return f"{table}, first={first}"


@dataclass(frozen=True, eq=False)
class _IndependentDelay(DelayChannel):
    """A law of Δ that is the same everywhere; `first` is a pmf of d_0, or "same" for the law of Δ itself."""

    def _tail(self, k: NDArray[np.int64]) -> Floats:
        """P(Δ ≥ k)."""
        raise TypeError(f"{type(self).__name__} does not define its tail")

    def _first(self) -> Any:
        return getattr(self, "first", None)

    def law(self, horizon: int, n_states: int, n_actions: int) -> DelayLaw:
        tail = self._tail(np.arange(horizon + 1))
        pmf = np.append(tail[:-1] - tail[1:], tail[-1])  # the last entry holds all of Δ ≥ H
        first = self._first()
        start = pmf if isinstance(first, str) else np.array([1.0] if first is None else first)
        return write_out(start, pmf, horizon, n_states, n_actions, who=type(self).__name__)


def _check_first(who: str, first: Any) -> Any:
    if first is None or (isinstance(first, str) and first == "same"):
        return first
    if isinstance(first, str):
        raise ValueError(f'{who}: first is {first!r}, expected a pmf of the first delay or "same"')
    return tuple(float(x) for x in checks.probability_rows(f"{who}: first", first, ("d",)))


@dataclass(frozen=True, eq=False)
class GeometricDelay(_IndependentDelay):
    """P(Δ = k) = p·(1−p)^k: at each step the next observation arrives with probability p.

    Parameters
    ----------
    p : float
        The probability of an arrival at each step, in (0, 1].
    first : array_like, "same" or None
        The pmf of d_0 (seen at once if None), or "same": then arrivals are a Bernoulli process from the start.

    Examples
    --------
    >>> from oldlight import GeometricDelay
    >>> GeometricDelay.from_ms(30, period_ms=10)  # a mean of three steps
    GeometricDelay(p=0.25, first=None).with_period(10)
    """

    p: float
    first: FirstDelay = None

    @classmethod
    def from_ms(cls, mean_ms: float, *, period_ms: float, first: FirstDelay = None) -> GeometricDelay:
        """The law whose Δ has the mean `mean_ms` milliseconds at a control period of `period_ms`."""
        mean = checks.positive("mean_ms", mean_ms) / checks.positive("period_ms", period_ms)
        return cls(1.0 / (1.0 + mean), first).with_period(period_ms)

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", checks.probability("GeometricDelay: p", self.p))
        object.__setattr__(self, "first", _check_first(type(self).__name__, self.first))

    def _tail(self, k: NDArray[np.int64]) -> Floats:
        return np.asarray((1.0 - self.p) ** k, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class HeavyTailedDelay(_IndependentDelay):
    """P(Δ ≥ k) = (1 + k/scale)^(−alpha): a Lomax (Pareto II) law in whole steps; its mean is infinite for alpha ≤ 1.

    Parameters
    ----------
    alpha : float
        Exponent of the tail, > 0.
    scale : float
        In steps, > 0.
    first : array_like, "same" or None
        The pmf of d_0 (seen at once if None), or "same" for the law of Δ.

    Examples
    --------
    >>> from oldlight import HeavyTailedDelay
    >>> HeavyTailedDelay(1.5).law(horizon=3, n_states=1, n_actions=1).interarrival.round(3).ravel().tolist()
    [0.646, 0.161, 0.067, 0.125]
    """

    alpha: float
    scale: float = 1.0
    first: FirstDelay = None

    def __post_init__(self) -> None:
        for name in ("alpha", "scale"):
            object.__setattr__(self, name, checks.positive(f"HeavyTailedDelay: {name}", getattr(self, name)))
        object.__setattr__(self, "first", _check_first(type(self).__name__, self.first))

    def _tail(self, k: NDArray[np.int64]) -> Floats:
        return np.asarray((1.0 + k / self.scale) ** (-self.alpha), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class BernoulliDelay(DelayChannel):
    """The paper's experiment: d_0 = 0, Δ ∈ {0, 1} with P(Δ = 0) = p_zero for the first `steps` steps, Δ = 0 afterwards.

    Parameters
    ----------
    p_zero : float
        Probability that the delay does not grow, in [0, 1].
    steps : int
        How many steps the delay may grow for.

    Examples
    --------
    >>> from oldlight import BernoulliDelay
    >>> BernoulliDelay(0.5).law(horizon=10, n_states=1, n_actions=1).max_delay
    3
    """

    p_zero: float
    steps: int = 3

    def __post_init__(self) -> None:
        object.__setattr__(self, "p_zero", checks.probability("BernoulliDelay: p_zero", self.p_zero))
        object.__setattr__(self, "steps", checks.whole("BernoulliDelay: steps", self.steps))

    def law(self, horizon: int, n_states: int, n_actions: int) -> DelayLaw:
        pmf = np.zeros((horizon, 1, 1, 2))
        pmf[..., 0] = 1.0
        pmf[: self.steps] = (self.p_zero, 1.0 - self.p_zero)
        return write_out(np.ones(1), pmf, horizon, n_states, n_actions, who="BernoulliDelay")


@dataclass(frozen=True, eq=False)
class CappedDelay(DelayChannel):
    """Another delay channel with min(d_i, max_delay) in place of d_i.

    Parameters
    ----------
    channel : DelayChannel
        The channel with longer delays.
    max_delay : int
        The longest delay that is left, in steps.

    Examples
    --------
    >>> from oldlight import CappedDelay, GeometricDelay
    >>> CappedDelay(GeometricDelay(0.5), 2).law(horizon=10, n_states=1, n_actions=1).max_delay
    2
    """

    channel: DelayChannel
    max_delay: int

    def __post_init__(self) -> None:
        if not isinstance(self.channel, DelayChannel):
            raise TypeError(f"CappedDelay: channel is of type {type(self.channel).__name__}, expected a delay channel")
        object.__setattr__(self, "max_delay", checks.whole("CappedDelay: max_delay", self.max_delay))

    def _sizes(self) -> tuple[int, int]:
        return self.channel._sizes()

    def law(self, horizon: int, n_states: int, n_actions: int) -> DelayLaw:
        inner = self.channel.law(horizon, n_states, n_actions)
        longest_delay = min(inner.longest_delay, self.max_delay)
        first = inner.first
        if len(first) > longest_delay + 1:
            first = checks.frozen(np.append(first[:longest_delay], first[longest_delay:].sum()))
        return DelayLaw(horizon, first, inner.interarrival, longest_delay)
