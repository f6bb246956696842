"""A fitted recording for people and for programs: `Fit.text` and `Fit.to_dict`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from oldlight.arrays import Floats
from oldlight.drawing import plain
from oldlight.model.channels import Channel
from oldlight.traces.counted import WEIGHT

if TYPE_CHECKING:
    from oldlight.traces.fit import Fit

CHAIN = "age chain"


def chosen(fit: Fit, deadline: int | None, oldest: int | None) -> tuple[Channel | None, str]:
    """The channel to print or write, and why: of the deadline, else the recommended one; None where there is nothing to count."""
    if deadline is not None:
        rate = fit.lost_by(deadline)
        return fit.with_deadline(
            deadline
        ), f"with a deadline of {deadline} ticks ({deadline * fit.period_ms:g} ms): {rate:.2%} lost or later"
    try:
        channel = fit.model(oldest=oldest)
    except ValueError as error:
        return None, f"no model: {error}"
    name, why = fit.recommended
    cut = fit.ages.cut_at(oldest)
    more = (
        f". Observations older than {oldest} ticks are not used: {cut.cut:.1%} of those that arrive" if cut.cut else ""
    )
    if name == CHAIN:
        last = len(channel.kernel) - 1
        more += f". {WEIGHT:g} visits of its neighbours are added to each row of the chain, and ages from {last} on share a row"
    return channel, f"recommended: {name}: {why}{more}"


def text(fit: Fit, deadline: int | None, oldest: int | None) -> str:
    """See `Fit.text`."""
    ages = np.concatenate(fit.ages.ages())
    longest = fit.ages.longest_outage
    lines = [
        str(fit.trace),
        f"at {fit.period_ms:g} ms a tick, in episodes of {fit.horizon} ticks ({len(fit.late):,} ticks measured):",
        f"  age of the newest    {law(np.bincount(ages) / len(ages))}, at most {longest} ticks ({longest * fit.period_ms / 1e3:.4g} s)",
        f"  first delay d_0      {law(fit.first)}",
        f"  interarrival Δ       {law(fit.interarrival)}",
        f"  longest delay        {fit.longest} ticks",
    ]
    if fit.lost.any():
        lines.append(f"  lost                 {fit.loss_rate:.2%}, {'in bursts' if fit.bursty else 'one by one'}")
    lines += [f"  note: {note}" for note in fit.notes]
    lines.append(
        "how far from independent (a small p-value is bad: models that draw each delay and loss by itself are then too good):"
    )
    lines += [
        f"  {test.name:22} p {p_text(test.p_value):<11} effect {test.effect:+.3f}   {test.means}" for test in fit.tests
    ]
    lines.append(
        f"  law of the delay     off by at most {fit.distance:.3f} (total variation) at any tick of an episode"
    )
    channel, why = chosen(fit, deadline, oldest)
    if channel is not None and deadline is None:
        lines.append(
            "how well each model predicts ticks that it was not fitted to (log-probability of a tick, higher is better):"
        )
        lines += [
            f"  {one.name:16} {one.score:+.4f}, {one.behind:.4f} ± {one.error:.4f} behind the best"
            + (f"; {100 * one.impossible:.2g}% of the ticks are impossible in it" if one.impossible else "")
            for one in fit.scores
        ]
    lines.append(why)
    if channel is not None:
        lines.append(f"channel: {channel!r}")
    return "\n".join(lines)


def to_dict(fit: Fit, deadline: int | None, oldest: int | None) -> dict[str, Any]:
    """See `Fit.to_dict`."""
    from oldlight.model.channels.text import channel_data

    channel, why = chosen(fit, deadline, oldest)
    counted = channel is not None and deadline is None
    names = "period_ms horizon first interarrival by_step longest loss_rate bursty tests independent distance notes"
    known: dict[str, Any] = plain({name: getattr(fit, name) for name in names.split()})
    return known | {
        "trace": fit.trace.to_dict(),
        "ticks": len(fit.late),
        "ages": fit.ages.to_dict(),
        "scores": plain(fit.scores if counted else []),
        "recommended": fit.recommended[0] if counted else None,
        "why": why,
        "deadline": deadline,
        "lost_by_deadline": None if deadline is None else fit.lost_by(deadline),
        "channel": None if channel is None else channel_data(channel),
    }


def p_text(p: float) -> str:
    return f"= {p:.3g}" if p > 0 else "< 1e-300"


def law(pmf: Floats) -> str:
    likely = [f"{k}: {p:.4f}" for k, p in enumerate(pmf) if p > 0]
    return "{" + ", ".join(likely if len(likely) <= 8 else [*likely[:7], f".. {len(likely) - 7} more"]) + "}"
