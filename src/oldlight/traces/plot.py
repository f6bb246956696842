"""A fitted trace as a picture: what was measured, and what the channel makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from oldlight.traces.fit import Fit

DATA, MODEL = "#1f6f8b", "#c8553d"


def figure(fit: Fit) -> Any:
    """See `Fit.figure`."""
    from matplotlib.figure import Figure

    from oldlight.traces.fit import delay_laws

    trace, H = fit.trace, fit.horizon
    fig = Figure(figsize=(10.0, 6.4), layout="constrained")
    (over_time, law), (together, last) = fig.subplots(2, 2)

    trace.plot(over_time)
    over_time.set_title("delays as measured", fontsize=10)

    delays = np.sort(trace.delay_ms[~trace.lost])
    law.step(delays, np.arange(1, len(delays) + 1) / len(trace), where="post", color=DATA)
    most = min(int(delays[-1] / fit.period_ms) + 1, 50)
    for tick in range(most + 1):
        law.axvline(tick * fit.period_ms, color="#999999", lw=0.5, zorder=0)
    law.set_xlim(0, max(delays[-1], fit.period_ms) * 1.02)
    law.set_ylim(0, 1)
    law.set_xlabel(f"delay (ms); lines: ticks of {fit.period_ms:g} ms")
    law.set_ylabel("share received by then")
    law.set_title(f"law of the delay, {trace.loss_rate:.2%} lost", fontsize=10)

    lags = min(30, len(trace) - 1)
    together.bar(np.arange(1, lags + 1), trace.autocorrelation(lags)[1:], width=0.7, color=DATA)
    band = 1.959963984540054 / np.sqrt(len(delays))
    together.axhspan(-band, band, color="#dddddd", zorder=0, label="95% if independent")
    together.set_xlabel("lag (messages)")
    together.set_ylabel("autocorrelation of delays")
    together.set_title("how delays hang together", fontsize=10)
    together.legend(frameon=False, fontsize=8)

    channel = delay_laws(fit.delay(by_step=True).law(H, 1, 1))[H - 1][: fit.longest + 1]
    data = np.bincount(fit.episodes[:, -1], minlength=fit.longest + 1) / len(fit.episodes)
    ticks = np.arange(fit.longest + 1)
    last.bar(ticks - 0.2, data[: fit.longest + 1], width=0.4, color=DATA, label="data, in order")
    last.bar(ticks + 0.2, channel, width=0.4, color=MODEL, label="channel by step")
    last.set_xlabel(f"delay at tick {H - 1} of an episode (ticks)")
    last.set_ylabel("probability")
    last.set_title(f"the fit; at most {fit.distance:.3f} off at any tick", fontsize=10)
    last.legend(frameon=False, fontsize=8)

    for ax in (over_time, law, together, last):
        ax.spines[["top", "right"]].set_visible(False)
    fig.suptitle(f"{trace.source} at {fit.period_ms:g} ms a tick", fontsize=11)
    return fig
