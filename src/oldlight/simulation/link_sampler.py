"""When each observation arrives, or is lost: a channel played one step at a time, for episodes of any length.

The conventions are those of `oldlight.model.channels`: the observation of step i settles (arrives, or is known to be lost) at time
i + d_i, with d_0 ~ `first` and d_{i+1} = d_i + Δ_i, so in order and at most one a step.

**No horizon is needed.** A law written out for K steps holds P(Δ = k) for k < K and puts all of Δ ≥ K at K. When a draw falls
there, or a delay reaches K, the law is written out for 2K steps and the same draw is looked up again: the running sums
below K stay as they are, so this is the unbounded law itself, heavy tails included. Only a law with a row for each step (and
losses given per step) has a horizon of its own.

**Out of order** (`in_order=False`): every observation has a delay of its own, d_i ~ the law of Δ_{i−1}, or ~ `first` where Δ is
never positive (a constant delay, `EmpiricalDelay(delays)`), whatever the others do; d_0 ~ `first`.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.model.channels import Channel, ConstantDelay, DelayChannel, Lossy
from oldlight.model.channels.delay_law import DelayLaw
from oldlight.model.channels.losses import BurstyLoss, Loss, LossChannel
from oldlight.model.channels.without_law import no_delay_law
from oldlight.simulation import cumulative_of

STEPS = 64  # a law is first written out for this many
LONGEST = 2**20  # and at most for this many: what takes longer never arrives


def split(channel: Channel) -> tuple[DelayChannel, LossChannel | None]:
    """The delay and the loss of a channel."""
    if isinstance(channel, DelayChannel):
        return channel, None
    if isinstance(channel, LossChannel):
        return ConstantDelay(0), channel
    if not isinstance(channel, Lossy):
        raise no_delay_law(channel)
    return channel.delay, channel.loss


class Traffic:
    """One link. `begin(rng)` starts an episode and sends the observation of step 0; `send(s, a)` sends the next one, after
    state s and action a (they only matter to a law that depends on them). Both return (settles, lost).

    sizes: (S, A) of a process with states and actions 0..S−1 and 0..A−1, or None: then a law may depend on neither.
    """

    def __init__(
        self, channel: Channel, *, horizon: int | None, sizes: tuple[int, int] | None, in_order: bool = True
    ) -> None:
        self.channel, self.horizon, self.in_order = channel, horizon, in_order
        self.delay, self.loss = split(channel)
        self.sizes = sizes or (1, 1)
        self._fixed = False
        self._write_out(STEPS)
        if isinstance(self.loss, Loss) and isinstance(self.loss.seen, tuple):
            self.loss.arrival_probabilities(
                len(self.loss.seen) if horizon is None else horizon
            )  # refused if the lengths differ
        elif self.loss is not None and not isinstance(self.loss, Loss | BurstyLoss) and horizon is None:
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
        if isinstance(self.loss, BurstyLoss):
            self._bad = bool(rng.random() < self.loss.bad)
        elif self.loss is not None and not isinstance(self.loss, Loss):
            assert self.horizon is not None
            self._drawn: NDArray[np.bool_] = self.loss.lost(rng, self.horizon, 1)[:, 0]
        self._d = self._draw(-1, 0, 0, 0)
        return self._d, self._is_lost()

    def send(self, s: int = 0, a: int = 0) -> tuple[int, bool]:
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
        loss, i = self.loss, self._i
        if loss is None:
            return False
        if isinstance(loss, Loss):
            seen = loss.seen[min(i, len(loss.seen) - 1)] if isinstance(loss.seen, tuple) else loss.seen
        elif isinstance(loss, BurstyLoss):
            if i:
                self._bad = (
                    bool(self._rng.random() >= loss.to_good) if self._bad else bool(self._rng.random() < loss.to_bad)
                )
            seen = loss.seen_bad if self._bad else loss.seen_good
        else:
            return bool(self._drawn[min(i, len(self._drawn) - 1)])
        return bool(self._rng.random() >= seen)


def _row(pmf: NDArray[np.float64]) -> Any:
    """Running sums to look a draw up in: a list where that is quicker."""
    sums = cumulative_of(pmf)
    return sums.tolist() if len(sums) <= 4096 else sums
