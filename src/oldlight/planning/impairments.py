"""What a link can do to observations, as numbers that an engineer can turn: delay, loss, jitter, blackouts, a slow sensor.

`link_of(levels)` makes the channel of any combination of them, in steps and probabilities:

    delay d                 every observation arrives d steps late
    loss q                  each observation is lost with probability q
    jitter j                the delay is uniform on d − j .. d + j (mean d, so j ≤ d); observations may overtake each other, the newest
                            counts. Between two whole numbers it is the mixture of both laws, which keeps the mean
    blackout L              blackouts of L steps on average (geometric lengths; 0: none, else L ≥ 1). One begins after an observation outside of a
                            blackout with probability `blackout_probability`; the episode starts with the stationary probability of being in one
    sensor_period n         only the steps 0, n, 2n, .. are observed

**Order.** A link is *no better* than another if whoever has the other can play it: hold observations back, throw some away, each by rules that do not
look at the process. Then no policy behind it earns more than the best one behind the other, so values fall along

- delay, from a cold start: hold everything one step longer. (A warm start begins with another law for each delay: scanned);
- loss: throw each observation away with probability (q' − q)/(1 − q);
- blackouts of mean length L ≤ L', b the probability that one begins, if 1 − b ≥ 1/L': run both links side by side, so that the longer blackout covers
  the shorter one. Both in a blackout: ending it has probability 1/L ≥ 1/L'. Only the longer one: the other link stays up with
  probability 1 − b ≥ 1/L', the probability that the longer blackout ends. So what L' shows is always shown by L. (The agent has to draw the blackouts of
  L' from what it sees of L; given an observation that it sees, the past of L' tells nothing more about the future of L, so it can.)

Jitter at a fixed mean is not ordered: a larger spread also brings some observations earlier, and can help. Nor are sensor periods (every third
step is not a part of every second one), except multiples, nor control periods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from oldlight import checks
from oldlight.arrays import Floats
from oldlight.model.channels import BurstyLoss, Channel, ConstantDelay, HiddenLink, Loss, Lossy, PacketChannel, Periodic

BLACKOUT_PROBABILITY = 0.05
CONTROL = "control_period"
MOST_SCANNED = 64  # control periods that are tried if nothing is said


@dataclass(frozen=True)
class Impairment:
    """One of them: what it is called in text, its unit, the step of its grid, and whether that may be refined."""

    name: str
    label: str
    unit: str  # "steps", "%" or "ms"
    step: float
    refined: bool


IMPAIRMENTS = {
    each.name: each
    for each in (
        Impairment("delay", "constant delay", "steps", 1.0, False),
        Impairment("loss", "loss rate", "%", 0.001, True),
        Impairment("jitter", "jitter at a fixed mean delay", "steps", 0.25, False),
        Impairment("blackout", "mean blackout length", "steps", 0.1, True),
        Impairment("sensor_period", "sensor period", "steps", 1.0, False),
        Impairment(CONTROL, "control period", "ms", 1.0, False),
    )
}
DEFAULTS = {
    "delay": 0.0,
    "loss": 0.0,
    "jitter": 0.0,
    "blackout": 0.0,
    "sensor_period": 1.0,
    "blackout_probability": BLACKOUT_PROBABILITY,
}
IN_MS = ("delay", "jitter", "blackout", "sensor_period")


def link_of(levels: Mapping[str, float]) -> Channel:
    """The channel that does all of `levels`, a mapping with names of the module's text; what is not named is absent.

    Examples
    --------
    >>> from oldlight.planning.impairments import link_of
    >>> link_of({"delay": 2, "loss": 0.1})
    Lossy(delay=ConstantDelay(d=2), loss=Loss(seen=0.9))
    >>> link_of({"delay": 2, "jitter": 1})
    PacketChannel({1: 0.333333, 2: 0.333333, 3: 0.333333}, lost=0)
    """
    given = DEFAULTS | checked_levels(levels)
    d, n, q, j, L = (given[name] for name in ("delay", "sensor_period", "loss", "jitter", "blackout"))
    d, n, b = int(d), int(n), given["blackout_probability"]
    if n == 1 and (j == 0 or L == 0):
        if j > 0:
            return PacketChannel(spread(d, j), lost=q)
        bursts = BurstyLoss(b, 1.0 / L, seen_good=1.0 - q) if L > 0 and b > 0 else None
        if bursts is not None:
            return Lossy(ConstantDelay(d), loss=bursts) if d else bursts
        if q > 0:
            return Lossy(ConstantDelay(d), rate=q) if d else Loss(rate=q)
        return ConstantDelay(d)
    if q == 0 and j == 0 and L == 0:
        return Periodic(n, delay=d)
    return _by_modes(d, n, (1.0 - q) * spread(d, j), L, b)


def _by_modes(d: int, n: int, delays: Floats, L: float, b: float) -> Channel:
    """The hidden link whose mode is the phase of the sensor, with or without a blackout; an observation is sent in phase 0 outside of one."""
    blackouts = L > 0 and b > 0
    up = np.array([[1.0 - b, b], [1.0 / L, 1.0 - 1.0 / L]]) if blackouts else np.eye(1)
    first = np.array([1.0 / L, b]) / (1.0 / L + b) if blackouts else np.ones(1)
    cycle = np.roll(np.eye(n), 1, axis=1)  # phase i is followed by i + 1
    rows = np.zeros((n, len(up), len(delays)))
    rows[0, 0] = delays
    begin = np.kron(np.eye(n)[0], first)
    return HiddenLink(np.kron(cycle, up), rows.reshape(-1, len(delays)), first=begin)


def spread(d: int, j: float) -> Floats:
    """The law of a delay with mean d and jitter j: uniform on d − j .. d + j, or the mixture of the two nearest such laws."""
    low = int(np.floor(j))
    weight = j - low
    pmf = np.zeros(d + low + (weight > 0) + 1)
    for k, p in ((low, 1.0 - weight), (low + 1, weight)):
        if p > 0:
            pmf[d - k : d + k + 1] += p / (2 * k + 1)
    return pmf


def checked_levels(levels: Mapping[str, Any], who: str = "at") -> dict[str, float]:
    """The levels as numbers, each in its range."""
    out: dict[str, float] = {}
    for name, value in levels.items():
        if name not in DEFAULTS:
            raise ValueError(f"{who} has {name!r}{checks.nearest(str(name), DEFAULTS)}")
        what = f"{who}[{name!r}]"
        if name in ("loss", "blackout_probability"):
            out[name] = checks.probability(what, value)
        elif name in ("delay", "sensor_period"):
            out[name] = float(checks.whole(what, value, least=int(name == "sensor_period")))
        else:
            out[name] = checks.real(what, value)
            if out[name] < 0 or (name == "blackout" and 0 < out[name] < 1):
                allowed = "0 (none) or a mean length ≥ 1" if name == "blackout" else "a number ≥ 0"
                raise ValueError(f"{what} is {out[name]:.12g}, expected {allowed} in steps")
    mean = out.get("delay", 0.0)
    if out.get("jitter", 0.0) > mean:
        raise ValueError(
            f"{who}['jitter'] is {out['jitter']:g} around a mean delay of {mean:g} steps: some delays would be negative; expected at "
            f"most the mean, {who}['delay']"
        )
    return out


def in_steps(at: Mapping[str, Any], period_ms: float | None, held: float = 1.0) -> dict[str, float]:
    """`at` in steps of the controller, which are `held` steps of period_ms each; delay_ms and the like are in milliseconds.

    A delay counts from the first tick at which it is over, a slow sensor is used at the first tick after each reading.
    """
    out: dict[str, float] = {}
    for name, value in at.items():
        plain = str(name).removesuffix("_ms")
        if plain not in IN_MS or (plain == name and held == 1):
            out[name] = value
            continue
        if plain != name and plain in at:
            raise ValueError(f"at has both {plain!r} and {name!r}; expected one of them")
        if plain != name and period_ms is None:
            raise ValueError(f"at[{name!r}] is in milliseconds and needs the control period: period_ms=20, say")
        given = checks.at_least(f"at[{name!r}]", value, 0)
        ticks = given / held / ((period_ms or 1.0) if plain != name else 1.0)
        if plain in ("delay", "sensor_period"):
            ticks = max(float(np.ceil(ticks - 1e-9)), float(plain == "sensor_period"))
        elif plain == "blackout" and ticks:
            ticks = max(ticks, 1.0)
        out[plain] = ticks
    return out


def falls(name: str, levels: Floats, at: Mapping[str, float], warm: bool) -> tuple[bool, str]:
    """Do values fall along `name`, and why or why not?"""
    if name == "delay":
        if warm:
            return False, "a warm start begins with another law for each delay: scanned"
        return True, "whoever has a shorter delay can hold observations back: values fall with the delay"
    if name == "loss":
        return True, "whoever sees more can throw observations away: values fall with the loss rate"
    if name == "blackout":
        b = at.get("blackout_probability", BLACKOUT_PROBABILITY)
        longer = levels[levels > 1]
        if not len(longer) or 1.0 - b >= 1.0 / longer.min() - 1e-12:
            return True, "longer blackouts can be drawn over shorter ones: values fall with the mean length"
        return (
            False,
            "blackouts that begin so often end in the next step more rarely than not beginning: not ordered, scanned",
        )
    return False, {
        "jitter": "more jitter at the same mean also brings some observations earlier: not ordered, scanned",
        "sensor_period": "a slower sensor can see other steps than a faster one: not ordered, scanned",
        CONTROL: "a longer control period decides at other times than a shorter one: not ordered, scanned",
    }[name]


def levels_of(name: str, horizon: int, at: Mapping[str, float], step: float | None, most: float | None) -> Floats:
    """The grid of an impairment: from none of it, in steps of `step`, up to `most`."""
    by = IMPAIRMENTS[name].step if step is None else checks.positive("step", step)
    whole = name in ("delay", "sensor_period", CONTROL)
    if whole and by != int(by):
        raise ValueError(f"step is {by:g}; expected a whole number of steps for {name!r}")
    first = {"sensor_period": 1.0, CONTROL: 1.0, "delay": float(np.ceil(at.get("jitter", 0.0)))}.get(name, 0.0)
    mean = at.get("delay", 0.0)
    if name == "jitter" and mean == 0:
        raise ValueError("over='jitter' needs a mean delay for it to be around: at={'delay': 2}, say")
    last = {"loss": 1.0, "jitter": mean, "blackout": 10.0 * horizon}.get(name, float(horizon))
    end = last if most is None else min(checks.real("most", most), last)
    if end < first:
        raise ValueError(f"most is {end:g}, expected a number in {first:g}..{last:g} for {name!r}")
    if name == "blackout":
        return np.append([0.0], 1.0 + by * np.arange(int((max(end, 1.0) - 1.0) / by + 1e-9) + 1)).round(9)
    if name == CONTROL and step is None and end > MOST_SCANNED:
        return np.asarray(np.unique(np.geomspace(first, end, MOST_SCANNED).round()), dtype=np.float64)
    return np.asarray(first + by * np.arange(int((end - first) / by + 1e-9) + 1)).round(9)
