"""Measured links: read a trace, look at it, and make a channel of it.

    trace = read_trace("link.csv")          # or what ping printed; the forms are in `oldlight.traces_read`
    print(trace.fit(period_ms=20))          # the law at 20 ms a tick, and how far independence is from the data
    channel = trace.channel(period_ms=20)   # for ImpairedMDP; also as the words "trace:link.csv@20"

How a trace becomes the interarrival law of a channel, and what is tested, is defined in `oldlight.traces_fit`.

`wifi()` is a link that somebody else measured: Bouteiller et al., *Reinforcement Learning with Random Delays* (https://arxiv.org/abs/2010.02966), give the law of
the delay of a Wi-Fi link in steps. Here it is the delay of an episode, drawn once: among the links that deliver in order, at most
one a step, it is the only one whose delay has that law at *every* step (a delay that never falls and always has the same law
stays what it was).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.channels import Channel, EmpiricalDelay
from oldlight.traces_fit import Fit, fit, save_channel
from oldlight.traces_read import YEAR, read_file
from oldlight.traces_tests import IndependenceTest

Floats = NDArray[np.float64]
EPISODE = 10  # ticks of an episode, where nobody says
WIFI = {1: 0.3082, 2: 0.5927, 3: 0.0829, 4: 0.0075, 5: 0.0031, 6: 0.0056}
QUANTILES = (0.5, 0.9, 0.99)


def wifi() -> EmpiricalDelay:
    """The measured Wi-Fi link: an episode's delay is 1..6 steps (see the module's text)."""
    return EmpiricalDelay(WIFI)


def read_trace(path: str | os.PathLike[str]) -> Trace:
    """A CSV file of sent and received times, or what ping printed (forms: `oldlight.traces_read`)."""
    found = read_file(path)
    return Trace(found.delay_ms, sent_ms=found.sent_ms, source=str(path), notes=found.notes)


@dataclass(frozen=True, eq=False, init=False)
class Trace:
    """Messages in the order of sending: delay_ms[i], NaN if lost; sent_ms[i], or None where that is not known."""

    delay_ms: Floats
    sent_ms: Floats | None
    source: str
    notes: tuple[str, ...]

    def __init__(
        self, delay_ms: Any, *, sent_ms: Any = None, source: str = "the trace", notes: tuple[str, ...] = ()
    ) -> None:
        delay = checks.numbers("delay_ms", delay_ms)
        if delay.ndim != 1 or len(delay) < 2:
            raise ValueError(f"delay_ms has shape {delay.shape}; expected at least two messages")
        wrong = np.flatnonzero((delay < 0) | (delay > YEAR))
        if len(wrong):
            raise ValueError(
                f"delay_ms[{wrong[0]}] is {delay[wrong[0]]}, expected a number ≥ 0, or NaN for a lost message; at most {YEAR:.4g}, a year"
            )
        if np.isnan(delay).all():
            raise ValueError("delay_ms is NaN everywhere: no message was received")
        sent = None
        if sent_ms is not None:
            sent = checks.frozen(checks.finite_array("sent_ms", sent_ms, ("i",)))
            if sent.shape != delay.shape:
                raise ValueError(f"sent_ms has {len(sent)} entries, expected one per message: {len(delay)}")
            back = np.flatnonzero(np.diff(sent) < 0)
            if len(back):
                raise ValueError(
                    f"sent_ms[{back[0] + 1}] is before sent_ms[{back[0]}]; messages are given in the order of sending"
                )
        parts = {"delay_ms": checks.frozen(delay), "sent_ms": sent, "source": source, "notes": notes}
        for name, value in parts.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.delay_ms)

    @property
    def lost(self) -> NDArray[np.bool_]:
        return np.isnan(self.delay_ms)

    @property
    def loss_rate(self) -> float:
        return float(self.lost.mean())

    @property
    def interval_ms(self) -> float | None:
        """The median time between two sent messages; None where that is not known."""
        if self.sent_ms is None:
            return None
        interval = float(np.median(np.diff(self.sent_ms)))
        return interval if interval > 0 else None

    @property
    def mean_ms(self) -> float:
        return float(np.nanmean(self.delay_ms))

    def quantiles_ms(self, q: Any = QUANTILES) -> Floats:
        """Quantiles of the delays of what was received."""
        return np.asarray(np.nanquantile(self.delay_ms, q))

    def autocorrelation(self, lags: int = 20) -> Floats:
        """Of the delays at lags 0..lags, over pairs of which both were received; 0 where nothing varies."""
        checks.whole("lags", lags, most=len(self) - 1)
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
        """The lengths of the runs of lost messages, in order."""
        edges = np.diff(np.concatenate([[0], self.lost.astype(np.int64), [0]]))
        return np.flatnonzero(edges == -1) - np.flatnonzero(edges == 1)

    # -- channels -----------------------------------------------------------------------------------------------------

    def fit(self, period_ms: float | None = None, *, horizon: int = EPISODE) -> Fit:
        """The law at a control period (the median sending interval if None), for episodes of `horizon` ticks."""
        return fit(self, period_ms, horizon)

    def channel(self, period_ms: float | None = None, *, horizon: int | None = None) -> Channel:
        """The fitted channel: one interarrival law for all steps, or with `horizon` a law for each step of such an episode."""
        found = self.fit(period_ms, horizon=EPISODE if horizon is None else horizon)
        return found.channel(by_step=horizon is not None)

    # -- for people ---------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """What `str` says, as plain JSON values."""
        runs = self.loss_runs
        return {
            "source": self.source,
            "messages": len(self),
            "interval_ms": self.interval_ms,
            "lost": int(self.lost.sum()),
            "loss_rate": self.loss_rate,
            "mean_loss_run": float(runs.mean()) if len(runs) else 0.0,
            "longest_loss_run": int(runs.max(initial=0)),
            "mean_ms": self.mean_ms,
            "quantiles_ms": dict(zip(map(str, QUANTILES), self.quantiles_ms().tolist(), strict=True)),
            "shortest_ms": float(np.nanmin(self.delay_ms)),
            "longest_ms": float(np.nanmax(self.delay_ms)),
            "autocorrelation": self.autocorrelation(min(20, len(self) - 1)).tolist(),
        }

    def __str__(self) -> str:
        data = self.to_dict()
        every = "" if data["interval_ms"] is None else f" sent every {data['interval_ms']:g} ms"
        shown = [k for k in (1, 2, 5, 10, 20) if k < len(data["autocorrelation"])]
        half, most, nearly = self.quantiles_ms()
        lines = [
            f"{self.source}: {len(self):,} messages{every}, {data['loss_rate']:.2%} lost",
            f"  delay                mean {data['mean_ms']:.4g} ms, half below {half:.4g}, 90% {most:.4g}, 99% {nearly:.4g}, "
            f"from {data['shortest_ms']:.4g} to {data['longest_ms']:.4g}",
            "  autocorrelation      " + ", ".join(f"{data['autocorrelation'][k]:+.3f} at lag {k}" for k in shown),
        ]
        if data["lost"]:
            lines.append(
                f"  runs of losses       {data['mean_loss_run']:.3g} long on average, the longest {data['longest_loss_run']}; "
                f"independent losses would make {len(self) / (len(self) - data['lost'] + 1):.3g}"
            )
        return "\n".join(lines)

    def plot(self, ax: Any) -> Any:
        """Delays as they were measured, lost messages marked below, on given matplotlib axes."""
        when = np.arange(len(self)) if self.sent_ms is None else (self.sent_ms - self.sent_ms[0]) / 1e3
        ax.plot(when, self.delay_ms, ".", ms=2.5, color="#1f6f8b", label="received")
        if self.lost.any():
            ax.plot(when[self.lost], np.zeros(int(self.lost.sum())), "|", ms=8, color="#c8553d", label="lost")
        ax.set_xlabel("message" if self.sent_ms is None else "sent after (s)")
        ax.set_ylabel("delay (ms)")
        ax.set_ylim(bottom=0)
        ax.legend(frameon=False, loc="upper right")
        return ax


__all__ = ["WIFI", "Fit", "IndependenceTest", "Trace", "read_trace", "save_channel", "wifi"]
