"""A link played one step at a time, for episodes of any length: which observations arrive now, and which are announced as lost.

Environments, wrappers and the testbed's relay draw from `LinkSampler`; `oldlight.simulate` and the vector environment draw many runs
at once from the same laws (`oldlight.model.channels.messages`, or compiled for a delay law).

**A delay law.** The conventions are those of `oldlight.model.channels`: the observation of step i settles (arrives, or is known to be
lost) at time i + d_i, with d_0 ~ `first` and d_{i+1} = d_i + Δ_i, so in order and at most one a step.

*No horizon is needed.* A law written out for K steps holds P(Δ = k) for k < K and puts all of Δ ≥ K at K. When a draw falls
there, or a delay reaches K, the law is written out for 2K steps and the same draw is looked up again: the running sums
below K stay as they are, so this is the unbounded law itself, heavy tails included. Only a law with a row for each step (and
losses given per step) has a horizon of its own.

*Out of order* (`in_order=False`): every observation has a delay of its own, d_i ~ the law of Δ_{i−1}, or ~ `first` where Δ is
never positive (a constant delay, `EmpiricalDelay(delays)`), whatever the others do; d_0 ~ `first`.

**Links without a delay law** send messages that may overtake each other or vanish silently, or show the observation of some age at
each time (`oldlight.model.channels.messages`). A class of one's own that has nothing but `automaton(horizon)` is drawn by its
automaton: what arrives is what becomes the newest visible observation.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oldlight.arrays import Ints
from oldlight.model.channels import Channel, ChannelAutomaton, ConstantDelay
from oldlight.model.channels.delay_law import DelayLaw
from oldlight.model.channels.messages import AgeLink, SteppedLink
from oldlight.model.channels.pmfs import running_sums

STEPS = 64  # a law is first written out for this many
LONGEST = 2**20  # and at most for this many: what takes longer never arrives


class Delivery(NamedTuple):
    """What happens at one time: the steps whose observations arrive, and those that are announced as lost."""

    arrived: list[int]
    lost: list[int]


class LinkSampler:
    """One run of a link after the other. `begin(rng)` starts one and sends the observation of step 0; `send(s, a)` sends the next one,
    after state s and action a (they only matter to a delay law that depends on them). Both say what is delivered at that time.

    Parameters
    ----------
    channel : Channel
        Any channel.
    horizon : int, optional
        The longest run, where there is one.
    sizes : (S, A), optional
        Of a process with states and actions 0..S−1 and 0..A−1; without them a law may depend on neither.
    in_order : bool
        False lets the observations of a delay law overtake each other (see the module's text).

    Examples
    --------
    >>> import numpy as np
    >>> import oldlight as ol
    >>> from oldlight.simulation.link_sampler import LinkSampler
    >>> camera = LinkSampler(ol.Periodic(2, delay=1))
    >>> [camera.begin(np.random.default_rng(0)).arrived, *(camera.send().arrived for _ in range(4))]
    [[], [0], [], [2], []]
    """

    def __init__(
        self,
        channel: Channel,
        *,
        horizon: int | None = None,
        sizes: tuple[int, int] | None = None,
        in_order: bool = True,
    ) -> None:
        self.channel, self.horizon, self.in_order = channel, horizon, in_order
        self.law = (
            LawSampler(channel, horizon=horizon, sizes=sizes, in_order=in_order) if channel.has_delay_law else None
        )
        self.link = None if self.law is not None else stepped(channel, horizon)
        delay = channel.delay if self.law is not None and channel.loss is None else None
        # every observation is late by this much: nothing is drawn, nothing has to be kept
        self.late = delay.d if isinstance(delay, ConstantDelay) and delay.d < LONGEST else None
        self.silent = self.link is not None  # can an observation that was sent never be heard of?

    def oldest(self, horizon: int) -> int:
        """The largest age, or number of actions before anything is seen, within so many steps."""
        if self.link is not None:
            oldest = self.link.oldest
        else:
            assert self.law is not None
            oldest = None if self.law.loss is not None else self.law.longest
        return horizon if oldest is None else min(oldest, horizon)

    def begin(self, rng: np.random.Generator) -> Delivery:
        """A new run, at time 0."""
        self._rng, self.now = rng, 0
        self._due: dict[int, list[tuple[int, bool]]] = {}  # by the time at which they settle: (step, lost)
        self._state = np.zeros(1, dtype=np.int64)
        if self.late is not None:
            return Delivery([0] if self.late == 0 else [], [])
        if self.law is not None:
            return self._settle(*self.law.begin(rng))
        return self._told()

    def send(self, s: int = 0, a: int = 0) -> Delivery:
        """The next time."""
        self.now += 1
        if self.late is not None:
            i = self.now - self.late
            return Delivery([i] if i >= 0 else [], [])
        if self.law is not None:
            return self._settle(*self.law.send(s, a))
        return self._told()

    def under_way(self) -> list[tuple[int, int, bool]]:
        """(step, when it settles, lost) of everything that settles later, by step."""
        if self.late is not None:
            d = self.late
            return [(i, i + d, False) for i in range(max(self.now - d + 1, 0), self.now + 1)]
        return sorted((i, when, lost) for when, found in self._due.items() for i, lost in found)

    def may_come(self, step: int) -> bool:
        """Can the observation of `step` still arrive later?"""
        if self.late is not None:
            return self.now - self.late < step <= self.now
        if self.link is not None and not self.link.sends_messages:
            return self.now - step < self.link.longest
        return any(step == i and not lost for found in self._due.values() for i, lost in found)

    def _settle(self, when: int, lost: bool) -> Delivery:
        self._due.setdefault(when, []).append((self.now, lost))
        return self._delivered()

    def _told(self) -> Delivery:
        assert self.link is not None
        u = self._rng.random((self.link.draws, 1))
        step, when, self._state = self.link.tell(np.array([self.now]), self._state, u)
        if when[0] >= 0:
            self._due.setdefault(int(when[0]), []).append((int(step[0]), False))
        return self._delivered()

    def _delivered(self) -> Delivery:
        settled = self._due.pop(self.now, None)
        if settled is None:
            return Delivery([], [])
        if len(settled) == 1:
            i, lost = settled[0]
            return Delivery([], [i]) if lost else Delivery([i], [])
        return Delivery([i for i, lost in settled if not lost], [i for i, lost in settled if lost])


class ManyLinks:
    """`n` runs of a link without a delay law, each with random draws of its own (SplitMix64) and its own clock.

    `told` is what the last time told of each run: the step, and the time at which its observation arrives (−1: never).
    """

    def __init__(self, channel: Channel, horizon: int, n: int) -> None:
        self.link = stepped(channel, horizon)
        self.clock, self.state = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        self.told = np.zeros((2, n), dtype=np.int64)

    def begin(self, who: NDArray[np.bool_], streams: NDArray[np.uint64]) -> None:
        """Time 0 of the runs in `who`."""
        self.clock[who], self.state[who] = 0, 0
        self._tell(who, streams)

    def step(self, skip: NDArray[np.bool_], streams: NDArray[np.uint64]) -> None:
        """The next time of all runs but those in `skip`."""
        self.clock[~skip] += 1
        self._tell(~skip, streams)

    def _tell(self, who: NDArray[np.bool_], streams: NDArray[np.uint64]) -> None:
        u = np.empty((self.link.draws, int(who.sum())))
        for row in u:
            row[:] = _uniforms(streams, who)
        step, when, self.state[who] = self.link.tell(self.clock[who], self.state[who], u)
        self.told[:, who] = step, when


def _uniforms(streams: NDArray[np.uint64], who: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The next number in [0, 1) of each stream in `who`, as `oldlight.kernels.batch_simulator` draws them."""
    z = streams[who] + np.uint64(0x9E3779B97F4A7C15)
    streams[who] = z
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53


def stepped(channel: Channel, horizon: int | None) -> SteppedLink:
    """How a channel without a delay law is played."""
    return channel if isinstance(channel, SteppedLink) else ByAutomaton(channel, horizon)


class ByAutomaton(AgeLink):
    """A channel that has nothing but an automaton: each tick is drawn; the link's state is the node, counted from 1."""

    def __init__(self, channel: Channel, horizon: int | None) -> None:
        self.channel = channel
        self._write_out(STEPS if horizon is None else horizon + 1)

    def _write_out(self, steps: int) -> None:
        self._automaton: ChannelAutomaton = self.channel.automaton(steps)
        self._number = {name: n for n, name in enumerate(self._automaton.nodes)}

    @property
    def longest(self) -> int:
        return self._automaton.longest

    def shown(self, h: Ints, link: Ints, u: NDArray[np.float64]) -> tuple[Ints, Ints]:
        if h.max() >= self._automaton.horizon:
            names = self._automaton.nodes
            self._write_out(2 * int(h.max()))
            link = np.array([self._number[names[n - 1]] + 1 if n else 0 for n in link.tolist()])
        ages, after = np.empty_like(h), np.empty_like(h)
        for e, (now, n) in enumerate(zip(h.tolist(), link.tolist(), strict=True)):
            row = self._automaton.row(-1 if now == 0 else n - 1)
            sums = running_sums(np.array([p for p, _, _ in row]))
            _, node, ages[e] = row[int(np.searchsorted(sums, u[0, e], side="right"))]
            after[e] = node + 1
        return ages, after

    def __repr__(self) -> str:
        return f"ByAutomaton({self.channel!r})"


class LawSampler:
    """A channel with a delay law: `begin` and `send` as in `LinkSampler`, but both return (settles, lost) of the step that is sent."""

    def __init__(
        self, channel: Channel, *, horizon: int | None, sizes: tuple[int, int] | None, in_order: bool = True
    ) -> None:
        self.channel, self.horizon, self.in_order = channel, horizon, in_order
        self.delay, self.loss = channel.delay, channel.loss
        self.sizes = sizes or (1, 1)
        self._fixed = False
        self._write_out(STEPS)
        self.modes = None if self.loss is None else self.loss.modes(horizon)
        one_mode = self.modes is not None and len(self.modes.first) == 1
        self._seen: list[float] = self.modes.seen[:, 0].tolist() if self.modes is not None and one_mode else []
        if self.loss is not None and self.modes is None and horizon is None:
            raise ValueError(f"{self.loss!r} draws the losses of a whole episode: say how long it can be, horizon=...")

    def _write_out(self, steps: int) -> None:
        """The law for `steps` steps, or for the steps of the environment if it is a law of so many."""
        try:
            law = self.delay.law(steps, *self.sizes)
        except ValueError as error:
            steps, law = self._of_its_own_length(error)
        self._steps, self.law = steps, law
        self._rows: dict[tuple[int, int, int], Any] = {}
        self._first = _row(law.first)
        self.moves = bool((law.interarrival[..., 1:] > 0).any())
        self._still = self.in_order and law.interarrival.size == 1  # the delay of the first observation is that of all

    def _of_its_own_length(self, error: ValueError) -> tuple[int, DelayLaw]:
        if self.horizon is not None:
            try:
                law, self._fixed = self.delay.law(self.horizon, *self.sizes), True
                return self.horizon, law
            except ValueError as other:
                error = other
        way_out = []
        if self.sizes == (1, 1):
            way_out.append(
                "a law that depends on the state or the action needs an environment with Discrete observations and actions"
            )
        if self.horizon is None:
            way_out.append("a law per step needs an environment with a limit on its steps, or horizon=...")
        raise ValueError("; ".join([f"{self.channel!r} does not fit the environment: {error}", *way_out])) from None

    @property
    def longest(self) -> int | None:
        """The longest that an observation can take, losses apart; None if there is no such thing."""
        if self.horizon is not None:
            return min(self._bound(self.horizon), self.horizon)
        shorter, longer = self._bound(4096), self._bound(8192)
        return longer if shorter == longer else None

    def _bound(self, steps: int) -> int:
        law = self.delay.law(steps, *self.sizes)
        first = int(np.flatnonzero(law.first)[-1])
        most = [int(np.flatnonzero(rows.any(axis=(0, 1)))[-1]) for rows in law.interarrival > 0]
        if self.in_order:
            waits = sum(most) if len(most) > 1 else most[0] * steps
            return min(first + waits, law.longest_delay)
        return min(max(first, *most), law.longest_delay)

    # -- playing ------------------------------------------------------------------------------------------------

    def begin(self, rng: np.random.Generator) -> tuple[int, bool]:
        self._rng = rng
        self._i = 0
        self._mode = 0
        if self.modes is not None and len(self.modes.first) > 1:
            self._mode = _mode(rng.random(), self.modes.first, 0)
        elif self.loss is not None and self.modes is None:
            assert self.horizon is not None
            self._drawn: NDArray[np.bool_] = self.loss.lost(rng, self.horizon, 1)[:, 0]
        self._d = self._draw(-1, 0, 0, 0)
        return self._d, self._is_lost()

    def send(self, s: int = 0, a: int = 0) -> tuple[int, bool]:
        if self._still:
            self._i += 1
            return self._i + self._d, self._is_lost()
        before = self._d if self.in_order else 0
        self._d = self._draw(self._i, s, a, before) if self.moves or self.in_order else self._draw(-1, 0, 0, 0)
        self._i += 1
        return self._i + self._d, self._is_lost()

    def _draw(self, i: int, s: int, a: int, before: int) -> int:
        """before + Δ_i, capped; i = −1: d_0."""
        row = self._row(i, s, a)
        u = self._rng.random() if len(row) > 1 else 0.0
        k = bisect_right(row, u)
        while (k >= self._steps or before + k >= self._steps) and self._may_grow():
            self._write_out(2 * self._steps)
            k = bisect_right(self._row(i, s, a), u)
        return min(before + k, self.law.longest_delay) if self.law.longest_delay < self._steps else before + k

    def _may_grow(self) -> bool:
        return not self._fixed and self.law.longest_delay == self._steps < LONGEST

    def _row(self, i: int, s: int, a: int) -> Any:
        """The running sums of the law of Δ_i, or of d_0 for i = −1."""
        if i < 0:
            return self._first
        table = self.law.interarrival
        if i >= len(table) == self._steps > 1:
            if self._fixed:
                raise ValueError(f"the episode is longer than the {self._steps} steps that the law of the link has")
            while i >= self._steps:
                self._write_out(2 * self._steps)
            table = self.law.interarrival
        at = (min(i, len(table) - 1), min(s, table.shape[1] - 1), min(a, table.shape[2] - 1))
        if len(table) > 1:  # each row is used once in an episode: keeping them all would grow with it
            return _row(table[at])
        found = self._rows.get(at)
        if found is None:
            found = self._rows[at] = _row(table[at])
        return found

    def _is_lost(self) -> bool:
        if self.loss is None:
            return False
        if self._seen:
            last = len(self._seen) - 1
            return self._rng.random() >= self._seen[self._i if self._i < last else last]
        modes, i = self.modes, self._i
        if modes is None:
            return bool(self._drawn[min(i, len(self._drawn) - 1)])
        if i:
            self._mode = _mode(self._rng.random(), modes.switch[self._mode], self._mode)
        return bool(self._rng.random() >= modes.seen[min(i, len(modes.seen) - 1), self._mode])


def _mode(u: float, law: NDArray[np.float64], stays: int) -> int:
    """The mode that a draw stands for: the others in turn, and `stays` where none of them is drawn."""
    for z in range(len(law)):
        if z != stays:
            u -= float(law[z])
            if u < 0:
                return z
    return stays


def _row(pmf: NDArray[np.float64]) -> Any:
    """Running sums to look a draw up in: a list where that is quicker."""
    sums = running_sums(pmf)
    return sums.tolist() if len(sums) <= 4096 else sums
