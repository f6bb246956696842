"""From a recording to a channel at a control period: the age chain, the in-order law, deadlines, and how far independence is from it.

**The age chain** (`age_chain`) is counted from the messages as they were sent and as they came (`oldlight.traces.ticks`, `.counted`). The
rest of this text is about the in-order law, the model of the paper.

**From messages to ticks.** At a control period of T milliseconds the observation of a tick is a message sent at that tick, and it can
be used at the first tick at or after its arrival: r = ⌈delay/T⌉ ticks later. Messages are taken one per period: where they were
sent more often than that, those in between are left out; where less often, each stands for one tick (and how ticks hang together
that are closer than the messages is then not in the data: a note says so). With a `horizon`, an episode of H ticks, what is later than H
counts as H, and a note says how much that is; without one nothing is cut, and windows of `WINDOW` ticks are looked at.

**In order.** The model of `oldlight.model.channels` uses observations in order, at most one a tick. So an observation waits for the one
before it: in an episode of H ticks that begins with message j,

    d_0 = r_j,    d_{i+1} = max(d_i, r_{j+i+1}),    Δ_i = d_{i+1} − d_i ≥ 0,

the delay never falls within an episode, and the longer the episode the longer it gets: that is why H matters. A lost message is
counted as late as the last one received before it, so that it adds Δ = 0. Every message that has H − 1 after it in its session begins
an episode; `first` is the law of d_0 over them, `by_step[i]` that of Δ_i, `interarrival` the law of Δ over all steps alike, `longest` the
largest d. The channel has these laws, capped at `longest`: by step if the horizon is known, else the one for all.

**Loss.** Independent with the measured rate, or, where runs of losses are longer than independence gives (p < 0.01), a link that is
good or bad for a while (`BurstyLoss`): lost if and only if bad, changing with the measured frequencies.

**How far from independent.** The model draws each Δ_i, and each loss, by itself; `tests` are those of `oldlight.traces.independence`.
`distance` says how much it matters: the largest difference in total variation, over the steps of an episode, between the law of d_i
in the data and in the channel by step. Delays that are drawn anew for each message and then put in order are *not* independent
in this sense: where d_i is large already, Δ_i is 0. The mean of d_i is right all the same (but for the cap), its spread is not.

**A deadline** (`with_deadline`) needs no order: act on observations that are exactly d ticks old, hold what comes sooner, and count
what comes later as lost. `Lossy(ConstantDelay(d), ...)` is then exact up to the independence of losses, and can be planned. A
`Controller` holds what comes sooner by itself; what comes later, do not feed to it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.arrays import Floats, Ints
from oldlight.model.channels import (
    BurstyLoss,
    Channel,
    ConstantDelay,
    DelayChannel,
    Loss,
    LossChannel,
    Lossy,
    StochasticDelay,
)
from oldlight.model.channels.delay_law import DelayLaw
from oldlight.traces.candidates import Score, channels, recommended, scores
from oldlight.traces.counted import AgeCounts
from oldlight.traces.independence import IndependenceTest, runs, shuffled, successive
from oldlight.traces.ticks import runs_of

if TYPE_CHECKING:
    from oldlight.model.channels import AgeChain
    from oldlight.traces.trace import Trace

LATEST = 10_000  # ticks; what is later counts as so late, and it is said
WINDOW = 10  # ticks that are looked at in order, where nobody says how long an episode is
LEVEL = 0.01  # below this p-value losses are called bursty, and independence rejected
MOST = 4_000_000  # ticks of overlapping episodes that are looked at


@dataclass(frozen=True, eq=False)
class Fit:
    """A recording at a control period; see the module's text. Made by `Trace.fit`.

    Parameters
    ----------
    trace : Trace
        The recording.
    period_ms : float
        Milliseconds of a tick.
    horizon : int
        Ticks of the episodes that are looked at in order.
    late, lost : ndarray, shape (messages,)
        The ticks r of each message (that of the last one received, if it was lost), and whether it was lost.
    notes : tuple of str
        What was assumed, and what is cut.
    within : ndarray, shape (messages,)
        `late`, H for all that is later than the given horizon H.
    session : ndarray, shape (messages,)
        The number of each one's session.
    ages : AgeCounts
        The age of the newest observation at every tick.

    Examples
    --------
    >>> import oldlight as ol
    >>> fit = ol.Trace([15.0] * 50, sent_ms=[20.0 * i for i in range(50)]).fit(20, per_tick=True)
    >>> fit.recommended[0], fit.model()
    ('constant', ConstantDelay(d=1).with_period(20))
    """

    trace: Trace
    period_ms: float
    horizon: int
    late: Ints
    lost: NDArray[np.bool_]
    notes: tuple[str, ...]
    within: Ints
    session: Ints
    ages: AgeCounts

    def age_chain(self, *, horizon: int | None = None, oldest: int | None = None) -> AgeChain:
        """The age of the newest observation as a chain, counted (`oldlight.traces.counted`).

        Parameters
        ----------
        horizon : int, optional
            Ticks of the plant's episodes: the first age is counted where `oldlight.replay` begins them.
        oldest : int, optional
            The oldest age at which an arriving observation is used; a planner's tables grow with A^oldest.
        """
        return self.ages.cut_at(oldest).chain(horizon=horizon)

    @cached_property
    def scores(self) -> list[Score]:
        """How well each candidate model predicts ticks that it was not fitted to, best first (`oldlight.traces.candidates`)."""
        return scores(self.ages)

    @cached_property
    def recommended(self) -> tuple[str, str]:
        """The simplest candidate that predicts as well as the best, and why."""
        return recommended(self.scores)

    def model(self, name: str | None = None, *, oldest: int | None = None, horizon: int | None = None) -> Channel:
        """A candidate of `oldlight.traces.candidates` ("age chain", "packets", "deadline 2", ..) as a channel, the recommended one if
        `name` is None; `oldest` and `horizon` as for `age_chain`, the horizon of the fit if None."""
        self.ages.check()
        known = channels(self.ages.cut_at(oldest), self.horizon if horizon is None else horizon)
        return known[checks.one_of("name", self.recommended[0] if name is None else name, list(known))]

    @cached_property
    def episodes(self) -> Ints:
        """d_i of every episode, axes (episode, i); they overlap, and none crosses from one session into the next."""
        every = math.ceil(len(self.late) * self.horizon / MOST)
        windows = np.lib.stride_tricks.sliding_window_view(self.within, self.horizon)
        whole = self.session[: len(windows)] == self.session[len(self.session) - len(windows) :]
        windows = windows[whole] if whole.any() else windows
        return np.asarray(np.maximum.accumulate(windows[::every], axis=1))

    @property
    def longest(self) -> int:
        """The longest delay, in ticks (H for all that is longer than a given horizon H)."""
        return int(self.episodes.max())

    @cached_property
    def first(self) -> Floats:
        """P(d_0 = 0, 1, ..)."""
        return _pmf(self.episodes[:, 0], self.longest)

    @cached_property
    def by_step(self) -> Floats:
        """P(Δ_i = 0, 1, ..), axes (i, δ); the last step's is 0, for nothing follows."""
        waits = np.diff(self.episodes, axis=1)
        rows = [_pmf(waits[:, i], self.longest) for i in range(self.horizon - 1)]
        return np.array([*rows, np.eye(self.longest + 1)[0]])

    @property
    def interarrival(self) -> Floats:
        """P(Δ = 0, 1, ..) over all steps alike."""
        law = self.by_step[:-1].mean(axis=0) if self.horizon > 1 else self.by_step[0]
        return np.asarray(law / law.sum())

    @property
    def loss_rate(self) -> float:
        """The share of the messages that were lost."""
        return float(self.lost.mean())

    @cached_property
    def tests(self) -> tuple[IndependenceTest, ...]:
        """How far the data are from what the model draws independently."""
        H, n = self.horizon, len(self.late) // self.horizon
        d = np.maximum.accumulate(self.within[: n * H].reshape(n, H), axis=1)
        waits = np.diff(d, axis=1)
        found = [
            shuffled("delay and next wait", "Δ_i does not depend on d_i", d[:, :-1], waits),
            shuffled("wait and next wait", "Δ_{i+1} does not depend on Δ_i", waits[:, :-1], waits[:, 1:]),
            successive(self.trace.delay_ms),
        ]
        return (*found, runs(self.lost)) if self.lost.any() else tuple(found)

    @property
    def bursty(self) -> bool:
        """Are runs of losses longer than independent losses give?"""
        return any(test.name == "runs of losses" and test.p_value < LEVEL for test in self.tests)

    @property
    def independent(self) -> bool:
        """Does no test reject, at 1% for all of them together?"""
        return min(test.p_value for test in self.tests) >= LEVEL / len(self.tests)

    @cached_property
    def distance(self) -> float:
        """The largest difference in total variation, over steps, between the law of d_i in the data and in the channel by step."""
        model = delay_laws(self.delay(by_step=True).law(self.horizon, 1, 1))
        data = np.array([_pmf(self.episodes[:, i], model.shape[1] - 1) for i in range(self.horizon)])
        return float(0.5 * np.abs(model - data).sum(axis=1).max())

    # -- channels -----------------------------------------------------------------------------------------------------

    def delay(self, *, by_step: bool = False) -> DelayChannel:
        """The delay alone."""
        channel: DelayChannel
        if self.first[-1] == 1.0:
            channel = ConstantDelay(self.longest)
        else:
            waits = self.by_step[:, None, None, :] if by_step else np.trim_zeros(self.interarrival, "b")
            channel = StochasticDelay(waits, first=self.first).capped(self.longest)
        return channel.with_period(self.period_ms)

    def loss(self, *, bursty: bool | None = None) -> LossChannel | None:
        """What is lost; None if nothing was. `bursty` None: as the test of runs says."""
        if not self.lost.any():
            return None
        if self.bursty if bursty is None else bursty:
            return bursty_loss(self.lost).with_period(self.period_ms)
        return Loss(rate=self.loss_rate).with_period(self.period_ms)

    def channel(self, *, by_step: bool = False, bursty: bool | None = None) -> Channel:
        """Delay and loss. `by_step`: with a law for each of the fit's `horizon` steps, else one for all."""
        delay, loss = self.delay(by_step=by_step), self.loss(bursty=bursty)
        if loss is None:
            return delay
        if delay.with_period(None) == ConstantDelay(0):
            return loss
        return Lossy(delay, loss=loss).with_period(self.period_ms)

    def lost_by(self, d: int) -> float:
        """The share of messages that were lost, or came more than d ticks late."""
        return float((self.lost | (self.late > d)).mean())

    def with_deadline(self, d: int) -> Channel:
        """Observations d ticks old, held if they come sooner, lost if they come later; losses independent, so it can be planned."""
        rate = self.lost_by(checks.whole("d", d))
        if rate == 0:
            return ConstantDelay(d).with_period(self.period_ms)
        late = ConstantDelay(d).with_period(self.period_ms)
        return (Lossy(late, rate=rate) if d else Loss(rate=rate)).with_period(self.period_ms)

    def save(self, path: str | Path, *, by_step: bool = False, bursty: bool | None = None) -> Path:
        """Write the channel as a JSON file, which the words `file:PATH` read."""
        return save_channel(path, self.channel(by_step=by_step, bursty=bursty))

    # -- for people ---------------------------------------------------------------------------------------------------

    def to_dict(self, deadline: int | None = None, *, oldest: int | None = None) -> dict[str, Any]:
        """Everything as plain JSON values, with the recommended channel, or that of a deadline."""
        from oldlight.traces.fit_text import to_dict

        return to_dict(self, deadline, oldest)

    def figure(self) -> Any:
        """Four panels: the delays as measured, their law, their autocorrelation, and the law of the last tick's delay as the data
        and the channel have it."""
        from oldlight.traces.plot import figure

        return figure(self)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"Fit({len(self.late):,} messages at {self.period_ms:g} ms a tick, {self.loss_rate:.2%} lost)"

    def text(self, deadline: int | None = None, *, oldest: int | None = None) -> str:
        """The recording, its laws, the models and the tests for people, with the recommended channel, or that of a deadline."""
        from oldlight.traces.fit_text import text

        return text(self, deadline, oldest)


def fit(trace: Trace, period_ms: float | None, horizon: int | None, per_tick: bool) -> Fit:
    """See `Trace.fit`."""
    T = trace.period_of(period_ms)
    taken = np.arange(len(trace))
    if trace.sent_ms is not None:
        of = [np.flatnonzero(trace.session == k) for k in range(int(trace.session[-1]) + 1)]
        interval = trace.interval_ms or T
        taken = np.concatenate([rows[one_per_period(trace.sent_ms[rows], T, interval)] for rows in of])
    delay = trace.delay_ms[taken]
    H = min(WINDOW, len(delay)) if horizon is None else checks.whole("horizon", horizon, least=1)
    if len(delay) < 2:
        raise ValueError(
            f"{trace.source}: at one message per {T:g} ms there is only one; measure longer, or give a shorter period_ms"
        )
    if len(delay) < H:
        raise ValueError(
            f"{trace.source} has {len(delay)} messages at one per {T:g} ms, fewer than an episode of {H} ticks; "
            "measure longer, or give a shorter horizon"
        )
    lost = np.isnan(delay)
    if lost.all():
        raise ValueError(f"{trace.source}: at one message per {T:g} ms none was received: there is nothing to fit")
    ticks = np.ceil(np.where(lost, 0.0, np.minimum(delay, LATEST * T)) / T - 1e-9).clip(0).astype(np.int64)
    last = np.maximum.accumulate(np.where(lost, -1, np.arange(len(ticks))))
    late = ticks[np.where(last < 0, np.flatnonzero(~lost)[0], last)]
    runs, more = runs_of(trace, T, per_tick=per_tick)
    most = LATEST if horizon is None else H
    notes = (*trace.notes, *more, *_notes(trace, T, delay, most))
    counts = AgeCounts(trace, T, runs)
    return Fit(trace, T, H, late, lost, notes, np.minimum(late, most), trace.session[taken], counts)


def _notes(trace: Trace, T: float, delay: Floats, most: int) -> list[str]:
    """What is cut, and what the recording cannot say."""
    notes = []
    later = float(np.mean(delay > most * T))
    if later:
        notes.append(
            f"{later:.2%} of the messages are more than {most} ticks late; in the in-order law they count as {most}"
        )
    interval = trace.interval_ms
    if interval is not None and interval > 1.5 * T:
        notes.append(
            f"messages were sent every {interval:g} ms, ticks are {T:g} ms apart: how delays of successive ticks hang together "
            "was not measured"
        )
    return notes


def one_per_period(sent_ms: Floats, period_ms: float, interval: float) -> Ints:
    """Which messages to take: the next at least a period after the last one taken, up to half a sending interval sooner."""
    if interval >= 0.75 * period_ms:
        return np.arange(len(sent_ms))
    taken, after = [0], period_ms - interval / 2
    while True:
        i = int(np.searchsorted(sent_ms, sent_ms[taken[-1]] + after))
        if i >= len(sent_ms):
            return np.array(taken)
        taken.append(i)


def bursty_loss(lost: NDArray[np.bool_]) -> BurstyLoss:
    """Lost if and only if the link is bad; it changes with the measured frequencies."""
    before, after = lost[:-1], lost[1:]
    to_bad = float((~before & after).sum() / max((~before).sum(), 1))
    to_good = float((before & ~after).sum() / max(before.sum(), 1))
    return BurstyLoss(to_bad, to_good)


def delay_laws(law: DelayLaw) -> Floats:
    """P(d_i = d), axes (i, d), for a law that does not depend on the process."""
    out = np.zeros((law.horizon, law.longest_delay + 1))
    np.add.at(out[0], np.minimum(np.arange(len(law.first)), law.longest_delay), law.first)
    for i in range(law.horizon - 1):
        pmf = law.at_step(law.interarrival, i)[0, 0]
        for k in np.flatnonzero(pmf):
            np.add.at(out[i + 1], np.minimum(np.arange(law.longest_delay + 1) + k, law.longest_delay), pmf[k] * out[i])
    return out


def save_channel(path: str | Path, channel: Channel) -> Path:
    """Write any channel as a JSON file, which the text `file:PATH` reads.

    Parameters
    ----------
    path : path
        Where to.
    channel : Channel
        Any channel.

    Returns
    -------
    Path
        Where it is.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import oldlight as ol
    >>> from oldlight.registry import channel_of
    >>> from oldlight.traces import save_channel
    >>> with TemporaryDirectory() as folder:
    ...     channel_of(f"file:{save_channel(Path(folder, 'link.json'), ol.PacketChannel({1: 1.0}, lost=0.25))}")
    PacketChannel({1: 1}, lost=0.25)
    """
    import json

    from oldlight.model.channels.text import channel_data

    return checks.write_text(path, json.dumps(channel_data(channel), indent=1) + "\n")


def _pmf(values: Ints, longest: int) -> Floats:
    return np.bincount(np.minimum(values, longest), minlength=longest + 1) / len(values)
