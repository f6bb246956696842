"""Measured links: read a recording, look at it, and make a channel of it.

    trace = read_trace("link.csv")                # or what ping printed; the forms are in `oldlight.traces.read`
    chain = trace.fit(20).age_chain(horizon=50)   # the age of the newest observation at 20 ms a tick, counted: for ImpairedMDP
    replay(problem, policy, trace, period_ms=20)  # what a policy earns on the recording itself

How the age is counted is defined in `oldlight.traces.ticks` and `oldlight.traces.counted`, the in-order law in `oldlight.traces.fit`, the
other models and how they are compared in `oldlight.traces.candidates`.

`wifi()` is a link that somebody else measured: Bouteiller et al., *Reinforcement Learning with Random Delays* (https://arxiv.org/abs/2010.02966), give the law of
the delay of a Wi-Fi link in steps. Here it is the delay of an episode, drawn once: among the links that deliver in order, at most
one a step, it is the only one whose delay has that law at *every* step (a delay that never falls and always has the same law
stays what it was).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.arrays import Floats, Ints
from oldlight.model.channels import Channel, EmpiricalDelay
from oldlight.traces.fit import Fit, fit, save_channel
from oldlight.traces.independence import IndependenceTest
from oldlight.traces.read import YEAR, read_file

WIFI = {1: 0.3082, 2: 0.5927, 3: 0.0829, 4: 0.0075, 5: 0.0031, 6: 0.0056}
QUANTILES = (0.5, 0.9, 0.99)


def wifi() -> EmpiricalDelay:
    """The measured Wi-Fi link: an episode's delay is 1..6 steps (see the module's text).

    Returns
    -------
    EmpiricalDelay
        The same law at every step.

    Examples
    --------
    >>> from oldlight import wifi
    >>> wifi().law(10, 1, 1).max_delay
    6
    """
    return EmpiricalDelay(WIFI)


def read_trace(
    path: str | os.PathLike[str],
    *,
    holes: Literal["lost", "stop"] | float = "lost",
    columns: Sequence[str] | None = None,
) -> Trace:
    """Read a recording of a link.

    Parameters
    ----------
    path : path
        A table, what ping or fping printed, irtt's JSON, or JSON lines (forms: `oldlight.traces.read`).
    holes : "lost", "stop" or float
        What a hole in the sending times is where messages have no numbers: messages that were lost, a stop of the log (a new session
        begins after it), or lost up to this many milliseconds and a stop beyond.
    columns : sequence of str, optional
        The names of the columns of a table that has none, e.g. ["sent_ms", "received_ms"].

    Returns
    -------
    Trace
        Its `notes` say what was assumed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from oldlight import read_trace
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "link.csv")
    ...     _ = file.write_text("sent_ms,received_ms\\n0,12\\n20,\\n40,75.5\\n")
    ...     read_trace(file).delay_ms
    array([12. ,  nan, 35.5])
    """
    found = read_file(path, holes=holes, columns=columns)
    return Trace(found.delay_ms, sent_ms=found.sent_ms, session=found.session, source=str(path), notes=found.notes)


@dataclass(frozen=True, eq=False, init=False)
class Trace:
    """A recording: messages in the order of sending, in one session or several.

    Parameters
    ----------
    delay_ms : array, shape (n,)
        The delay of each message, NaN if it was lost; all of them may be.
    sent_ms : array, shape (n,), optional
        When each was sent, by any clock that runs on within a session.
    session : array of int, shape (n,), optional
        The number of each one's session, 0, 1, ..; one session if None.
    source : str
        What it is called in texts.
    notes : tuple of str
        What was assumed when it was read.

    Examples
    --------
    >>> import numpy as np
    >>> from oldlight import Trace
    >>> print(Trace([12.0, np.nan, 35.5, 12.0], sent_ms=[0, 20, 40, 60], source="link"))
    link: 4 messages sent every 20 ms for 0.08 s, 25.00% lost
      delay                mean 19.83 ms, half below 12, 90% 30.8, 99% 35.03, from 12 to 35.5
      autocorrelation      -1.000 at lag 1, -1.000 at lag 2
      outages              1, 20 ms long on average, the longest 20 ms
    """

    delay_ms: Floats
    sent_ms: Floats | None
    session: Ints
    source: str
    notes: tuple[str, ...]

    def __init__(
        self,
        delay_ms: Any,
        *,
        sent_ms: Any = None,
        session: Any = None,
        source: str = "the trace",
        notes: tuple[str, ...] = (),
    ) -> None:
        delay = checks.numbers("delay_ms", delay_ms)
        if delay.ndim != 1 or len(delay) < 2:
            raise ValueError(f"delay_ms has shape {delay.shape}; expected at least two messages")
        wrong = np.flatnonzero((delay < 0) | (delay > YEAR))
        if len(wrong):
            raise ValueError(
                f"delay_ms[{wrong[0]}] is {delay[wrong[0]]}, expected a number ≥ 0, or NaN for a lost message; at most {YEAR:.4g}, a year"
            )
        number = np.zeros(len(delay), dtype=np.int64) if session is None else np.array(session)
        steps = np.diff(number) if number.shape == delay.shape and number.dtype.kind in "ui" else np.array([-1])
        if number.reshape(-1)[0] != 0 or ((steps != 0) & (steps != 1)).any():
            raise ValueError(
                f"session is {str(session)[:60]}, expected a number 0, 1, .. for each of {len(delay)} messages, in order"
            )
        sent = None
        if sent_ms is not None:
            sent = checks.frozen(checks.finite_array("sent_ms", sent_ms, ("i",)))
            if sent.shape != delay.shape:
                raise ValueError(f"sent_ms has {len(sent)} entries, expected one per message: {len(delay)}")
            back = np.flatnonzero((np.diff(sent) < 0) & (np.diff(number) == 0))
            if len(back):
                raise ValueError(
                    f"sent_ms[{back[0] + 1}] is before sent_ms[{back[0]}]; messages are given in the order of sending"
                )
        parts = {"delay_ms": checks.frozen(delay), "sent_ms": sent, "session": checks.frozen(number), "source": source}
        for name, value in (parts | {"notes": notes}).items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.delay_ms)

    @property
    def lost(self) -> NDArray[np.bool_]:
        """Whether each message was lost."""
        return np.isnan(self.delay_ms)

    @property
    def loss_rate(self) -> float:
        """The share of the messages that were lost."""
        return float(self.lost.mean())

    @property
    def interval_ms(self) -> float | None:
        """The median time between two sent messages; None where that is not known."""
        if self.sent_ms is None:
            return None
        gaps = np.diff(self.sent_ms)[np.diff(self.session) == 0]
        interval = float(np.median(gaps)) if len(gaps) else 0.0
        return interval if interval > 0 else None

    @property
    def duration_ms(self) -> float | None:
        """From the first message to an interval after the last, sessions added up; None where that is not known."""
        if self.sent_ms is None or self.interval_ms is None:
            return None
        inside = np.diff(self.session) == 0
        return float(np.diff(self.sent_ms)[inside].sum() + (int(self.session[-1]) + 1) * self.interval_ms)

    def period_of(self, period_ms: float | None) -> float:
        """`period_ms`, or the sending interval if it is None."""
        if period_ms is None and self.interval_ms is None:
            raise ValueError(
                f"{self.source} does not say when messages were sent; give the control period: period_ms=..., as text trace:FILE@20"
            )
        return checks.positive("period_ms", self.interval_ms if period_ms is None else period_ms)

    @property
    def mean_ms(self) -> float:
        """The mean delay of what was received; NaN if nothing was."""
        return float(np.nanmean(self.delay_ms)) if not self.lost.all() else float("nan")

    def quantiles_ms(self, q: Any = QUANTILES) -> Floats:
        """Quantiles of the delays of what was received."""
        if self.lost.all():
            return np.full(np.shape(q), np.nan)
        return np.asarray(np.nanquantile(self.delay_ms, q))

    def autocorrelation(self, lags: int = 20) -> Floats:
        """Of the delays at lags 0..lags, over pairs of which both were received; 0 where nothing varies."""
        checks.whole("lags", lags, most=len(self) - 1)
        if self.lost.all():
            return np.zeros(lags + 1)
        x = self.delay_ms - self.mean_ms
        known = np.where(np.isnan(x), 0.0, x)
        variance = np.nanmean(x**2)
        out = np.zeros(lags + 1)
        for k in range(lags + 1):
            pairs = int((~(np.isnan(x[: len(x) - k]) | np.isnan(x[k:]))).sum())
            if pairs and variance > 0:
                out[k] = (known[: len(x) - k] * known[k:]).sum() / pairs / variance
        return out

    @property
    def loss_runs(self) -> NDArray[np.int64]:
        """The lengths of the runs of lost messages, in order, in messages."""
        return np.array([stop - start for start, stop in self._runs()], dtype=np.int64)

    @property
    def outages_ms(self) -> Floats:
        """How long each run of lost messages lasted: from the sending of its first to that of the next one received (to an interval
        after the last message, where none was)."""
        sent = np.arange(len(self), dtype=np.float64) if self.sent_ms is None else self.sent_ms
        interval = 1.0 if self.sent_ms is None else self.interval_ms or 0.0
        ends = [
            sent[stop] if stop < len(self) and self.session[stop] == self.session[start] else sent[stop - 1] + interval
            for start, stop in self._runs()
        ]
        return np.asarray(np.array(ends) - np.array([sent[start] for start, _ in self._runs()]))

    def _runs(self) -> list[tuple[int, int]]:
        """Where runs of lost messages begin and end; none crosses from one session into the next."""
        number = np.where(self.lost, self.session + 1, 0)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], number, [0]])))
        return [(int(a), int(b)) for a, b in pairwise(edges) if number[a]]

    # -- channels -----------------------------------------------------------------------------------------------------

    def fit(self, period_ms: float | None = None, *, horizon: int | None = None, per_tick: bool = False) -> Fit:
        """The recording at a control period: as an age chain, in order, with a deadline, and what else it may be.

        Parameters
        ----------
        period_ms : float, optional
            Milliseconds of a tick; the median sending interval if None.
        horizon : int, optional
            Ticks of the plant's episodes. What is later than that counts as so late, and it is said; without it nothing is cut.
        per_tick : bool
            One message at each tick, with the recording's delay at that time, instead of the messages as they were sent.

        Returns
        -------
        Fit

        Examples
        --------
        >>> from oldlight import Trace
        >>> Trace([15.0] * 50, sent_ms=[20.0 * i for i in range(50)]).fit(20, per_tick=True).age_chain()
        AgeChain([[0.0, 1.0], [0.0, 1.0, 0.0]], first={1: 1}).with_period(20)
        """
        return fit(self, period_ms, horizon, per_tick)

    def channel(self, period_ms: float | None = None, *, horizon: int | None = None) -> Channel:
        """The in-order law: one for all steps, or with `horizon` a law for each step of such an episode. What predicts best is mostly
        the age chain, `fit(period_ms).age_chain()`."""
        return self.fit(period_ms, horizon=horizon).channel(by_step=horizon is not None)

    def part(self, begin: float, end: float) -> Trace:
        """The messages between two shares of the recording's length, e.g. part(0, 0.5): its first half."""
        if not 0 <= begin < end <= 1:
            raise ValueError(f"part: {begin}..{end}, expected shares 0 ≤ begin < end ≤ 1")
        rows = slice(round(begin * len(self)), round(end * len(self)))
        session = self.session[rows] - self.session[rows][0] if rows.stop > rows.start else self.session[rows]
        sent = None if self.sent_ms is None else self.sent_ms[rows]
        where = f"{self.source} ({begin:.0%} to {end:.0%})"
        return Trace(self.delay_ms[rows], sent_ms=sent, session=session, source=where, notes=self.notes)

    # -- for people ---------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """What `str` says, as plain JSON values."""
        runs, outages, nothing = self.loss_runs, self.outages_ms, bool(self.lost.all())
        timed = self.sent_ms is not None
        return {
            "source": self.source,
            "messages": len(self),
            "sessions": int(self.session[-1]) + 1,
            "interval_ms": self.interval_ms,
            "duration_ms": self.duration_ms,
            "lost": int(self.lost.sum()),
            "loss_rate": self.loss_rate,
            "mean_loss_run": float(runs.mean()) if len(runs) else 0.0,
            "longest_loss_run": int(runs.max(initial=0)),
            "outages": len(runs),
            "mean_outage_ms": float(outages.mean()) if len(runs) and timed else None,
            "longest_outage_ms": float(outages.max()) if len(runs) and timed else None,
            "mean_ms": None if nothing else self.mean_ms,
            "quantiles_ms": None
            if nothing
            else dict(zip(map(str, QUANTILES), self.quantiles_ms().tolist(), strict=True)),
            "shortest_ms": None if nothing else float(np.nanmin(self.delay_ms)),
            "longest_ms": None if nothing else float(np.nanmax(self.delay_ms)),
            "autocorrelation": self.autocorrelation(min(20, len(self) - 1)).tolist(),
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        return f"Trace({len(self):,} messages, {self.loss_rate:.2%} lost, {int(self.session[-1]) + 1} sessions)"

    def __str__(self) -> str:
        data = self.to_dict()
        every = (
            ""
            if data["interval_ms"] is None
            else f" sent every {data['interval_ms']:g} ms for {data['duration_ms'] / 1e3:.4g} s"
        )
        several = f" in {data['sessions']} sessions" if data["sessions"] > 1 else ""
        lines = [f"{self.source}: {len(self):,} messages{every}{several}, {data['loss_rate']:.2%} lost"]
        if data["mean_ms"] is not None:
            half, most, nearly = self.quantiles_ms()
            shown = [k for k in (1, 2, 5, 10, 20) if k < len(data["autocorrelation"])]
            lines += [
                f"  delay                mean {data['mean_ms']:.4g} ms, half below {half:.4g}, 90% {most:.4g}, 99% {nearly:.4g}, "
                f"from {data['shortest_ms']:.4g} to {data['longest_ms']:.4g}",
                "  autocorrelation      " + ", ".join(f"{data['autocorrelation'][k]:+.3f} at lag {k}" for k in shown),
            ]
        if data["outages"] and data["mean_outage_ms"] is not None:
            lines.append(
                f"  outages              {data['outages']:,}, {data['mean_outage_ms']:.4g} ms long on average, the longest {data['longest_outage_ms']:.4g} ms"
            )
        elif data["outages"]:
            lines.append(
                f"  runs of losses       {data['mean_loss_run']:.3g} messages long on average, the longest {data['longest_loss_run']}"
            )
        return "\n".join(lines)

    def plot(self, ax: Any = None) -> Any:
        """Delays as they were measured, lost messages marked below, on given matplotlib axes or new ones; sessions end to end."""
        from matplotlib.figure import Figure

        ax = Figure(figsize=(7.0, 3.2), layout="constrained").subplots() if ax is None else ax
        when = np.arange(len(self), dtype=np.float64)
        if self.sent_ms is not None:
            steps = np.where(np.diff(self.session) == 0, np.diff(self.sent_ms), self.interval_ms or 0.0)
            when = np.concatenate([[0.0], np.cumsum(steps)]) / 1e3
        ax.plot(when, self.delay_ms, ".", ms=2.5, color="#1f6f8b", label="received")
        if self.lost.any():
            ax.plot(when[self.lost], np.zeros(int(self.lost.sum())), "|", ms=8, color="#c8553d", label="lost")
        ax.set_xlabel("message" if self.sent_ms is None else "sent after (s)")
        ax.set_ylabel("delay (ms)")
        ax.set_ylim(bottom=0)
        ax.legend(frameon=False, loc="upper right")
        return ax


__all__ = ["WIFI", "Fit", "IndependenceTest", "Trace", "read_trace", "save_channel", "wifi"]
