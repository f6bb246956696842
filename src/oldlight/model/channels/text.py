"""Channels as text or as JSON data: what a command line, a file or a keyword can hold.

**A channel as text** is one or two parts joined by "+", a delay and a loss; each part is a kind, a colon, and its numbers:

    constant:2             every observation 2 steps late            none                nothing is late, nothing is lost
    geometric:0.3          P(Δ = 0) = 0.3                            heavy:1.5,2         P(Δ ≥ k) = (1 + k/2)^−1.5
    bernoulli:0.7,3        the paper's: Δ ∈ {0, 1} for 3 steps       stochastic:0.7,0.3  P(Δ = 0), P(Δ = 1), ...
    delays:1=0.3,2=0.7     an episode's delay, drawn once            interarrival:0=0.9,3=0.1   measured Δ
    loss:0.2               20% are lost                              seen:0.8            the same
    bursty:0.1,0.5         to_bad, to_good[, seen_good, seen_bad]    wifi                the Wi-Fi link of docs/traces.md
    trace:link.csv@20      fitted to a measured link at 20 ms        file:link.json      what `oldlight trace` wrote
    constant:40ms@20       milliseconds, of which a step has 20: rounded up to whole steps, and the period is kept
    mymodule:MyChannel     a channel of your own (`oldlight.own_code`)
    packets: fifo: ages: renewal: periodic: held:   links without a delay law (`oldlight.model.channels.link_text`)

and a delay may be followed by "+cap:k": no delay is longer than k. `channel_of` also takes the same as data, `{"kind": "constant", "d": 2}`;
`channel_data` writes any channel as such a mapping of plain JSON values, and channel_of(channel_data(c)) == c.

Measured links belong to a package above this one: `MEASURED` names the function that makes them, and it is imported when it is named.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from oldlight import checks, files
from oldlight.checks import nearest
from oldlight.model.channels import (
    BernoulliDelay,
    BurstyLoss,
    CappedDelay,
    Channel,
    ConstantDelay,
    DelayChannel,
    EmpiricalDelay,
    GeometricDelay,
    HeavyTailedDelay,
    Loss,
    LossChannel,
    Lossy,
    StochasticDelay,
)
from oldlight.model.channels.link_text import (
    LINK_FORMS,
    LINK_KINDS,
    LINK_MEANING,
    fields_of,
    link_part,
    number,
    with_loss,
)
from oldlight.model.channels.milliseconds import MILLISECONDS, in_steps
from oldlight.own_code import called, permit, resolve

CHANNELS = (Channel,)  # what a channel of one's own derives from
EXAMPLES = "constant:2, geometric:0.3, loss:0.2, constant:2+loss:0.2"
KINDS: dict[str, tuple[type[Any], tuple[str, ...]]] = {  # kind -> class, its fields as data
    "constant": (ConstantDelay, ("d",)),
    "geometric": (GeometricDelay, ("p", "first")),
    "heavy": (HeavyTailedDelay, ("alpha", "scale", "first")),
    "bernoulli": (BernoulliDelay, ("p_zero", "steps")),
    "stochastic": (StochasticDelay, ("interarrival", "first")),
    "empirical": (EmpiricalDelay, ("delays", "interarrival")),
    "capped": (CappedDelay, ("channel", "max_delay")),
    "loss": (Loss, ("seen", "rate")),
    "bursty": (BurstyLoss, ("to_bad", "to_good", "seen_good", "seen_bad")),
    "lossy": (Lossy, ("delay", "loss", "seen", "rate")),
} | LINK_KINDS
FORMS = {  # what can stand before the colon, and what follows it
    "none": "",
    "constant": "d",
    "geometric": "p",
    "heavy": "alpha[,scale]",
    "bernoulli": "p_zero[,steps]",
    "stochastic": "p0,p1,...",
    "delays": "1=0.3,2=0.7",
    "interarrival": "0=0.9,3=0.1",
    "loss": "rate",
    "seen": "λ",
    "bursty": "to_bad,to_good[,seen_good,seen_bad]",
    "wifi": "",
    "trace": "FILE[@period_ms]",
    "file": "FILE.json",
} | LINK_FORMS
MEASURED = {"trace": "oldlight.traces:read_trace", "wifi": "oldlight.traces:wifi"}  # kind -> module:function

MEANING = {
    "none": "nothing is late, nothing is lost",
    "constant": "every observation d steps late",
    "geometric": "P(Δ = k) = p(1−p)^k: the next observation arrives with probability p at each step",
    "heavy": "P(Δ ≥ k) = (1 + k/scale)^−alpha",
    "bernoulli": "the paper's: Δ = 0 with probability p_zero, else 1, for the first `steps` (3) steps",
    "stochastic": "P(Δ = 0), P(Δ = 1), ...",
    "delays": "an episode's delay, drawn once from these weights",
    "interarrival": "measured interarrival times Δ, with weights",
    "loss": "this share of the observations is lost",
    "seen": "this share of the observations is seen",
    "bursty": "Gilbert–Elliott: a link that is good or bad for a while",
    "wifi": "a measured Wi-Fi link: one delay of 1..6 steps per episode, drawn at its start",
    "trace": "fitted to a measured link, CSV or ping output",
    "file": "a channel file, as `oldlight trace` writes it",
} | LINK_MEANING

IN_ORDER = (  # what surprises practitioners; also in docs/envs.md and docs/guides/practitioner.md
    "Delays of the paper's in-order law never fall within an episode: behind geometric:0.7 the newest observation is 60 steps old after "
    "200 steps, on average. wifi is one delay per episode."
)


def channel_of(given: str | Mapping[str, Any] | Channel) -> Channel:
    """The channel that a text or data describes; a channel is returned as it is."""
    if isinstance(given, Channel):
        return given
    if isinstance(given, str):
        return _from_text(given)
    if isinstance(given, Mapping):
        return _from_data(given)
    raise TypeError(
        f"a channel is given as text ({EXAMPLES}), as a mapping with a kind, or as a channel; not {given!r}"
    )


def _from_text(text: str) -> Channel:
    delay: DelayChannel | None = None
    loss: LossChannel | None = None
    link: Channel | None = None
    period: float | None = None
    parts = [part.strip() for part in text.split("+")]
    for part in parts:
        kind = part.partition(":")[0]
        if kind in KINDS and kind not in FORMS:
            raise ValueError(
                f'channel {text!r}: {kind} is given as data, {{"kind": "{kind}", ..}} with {", ".join(KINDS[kind][1])}, or as a file that holds '
                "it: file:link.json"
            )
    own = [p for p in parts if names_code(p) and not difflib.get_close_matches(p.partition(":")[0], FORMS)]
    permit(*own)
    for part in parts:
        kind, _, rest = part.partition(":")
        if MILLISECONDS.search(rest) and kind not in MEASURED and kind != "file":
            rest, period = in_steps(text, rest, period)
        if kind == "cap":
            if delay is None:
                raise ValueError(f"channel {text!r}: cap:{rest} shortens the delay before it, e.g. geometric:0.3+cap:4")
            delay = delay.capped(_number(text, "cap", rest))
            continue
        made = own_channel(part, {}) if part in own else _part(text, kind, rest)
        period = made.period_ms if made.period_ms is not None else period
        if not made.has_delay_law:
            link = with_loss(text, made, link, None)
            continue
        late = None if made is made.loss else made.delay
        for what, before, found in (("delays", delay, late), ("losses", loss, made.loss)):
            if before is not None and found is not None:
                raise ValueError(f"channel {text!r} has two {what}; expected one delay and one loss, e.g. {EXAMPLES}")
        delay, loss = late or delay, made.loss or loss
    whole: Channel | None = delay if loss is None else loss if delay is None else Lossy(delay, loss=loss)
    whole = whole if link is None else with_loss(text, link, delay, loss)
    assert whole is not None
    return whole if period is None else whole.with_period(period)


def names_code(part: str) -> bool:
    """Is this part of a channel as text a `module:name`, rather than a kind with its numbers?"""
    kind, _, rest = part.partition(":")
    return kind not in FORMS and kind != "cap" and rest.isidentifier()


def own_channel(name: str, options: Mapping[str, Any]) -> Channel:
    """The channel that `module:name` makes with these options."""
    made = called(name, resolve(name, f"unknown channel {name!r}", CHANNELS), (), options)
    if not isinstance(made, Channel):
        raise TypeError(f"{name} made something of type {type(made).__name__}, expected a channel")
    return made


def _part(text: str, kind: str, rest: str) -> Channel:
    if kind not in FORMS:
        raise ValueError(f"channel {text!r}: unknown kind {kind!r}{nearest(kind, FORMS)} (for example {EXAMPLES})")
    if bool(rest) != bool(FORMS[kind]):
        form = f"{kind}:{FORMS[kind]}" if FORMS[kind] else kind
        raise ValueError(f"channel {text!r}: {kind} is written {form}")
    if kind in ("none", "file"):
        return ConstantDelay(0) if kind == "none" else _in_file(rest)
    if kind in LINK_FORMS:
        return link_part(text, kind, rest)
    if kind == "wifi":
        wifi: Channel = _measured(kind)()
        return wifi
    if kind == "trace":
        path, _, period = rest.partition("@")
        fitted: Channel = _measured(kind)(path).channel(period_ms=_number(text, kind, period) if period else None)
        return fitted
    if kind in ("delays", "interarrival"):
        weights = dict(_pair(text, kind, item) for item in rest.split(","))
        return EmpiricalDelay(**{kind: weights})
    numbers = [_number(text, kind, item) for item in rest.split(",")]
    if kind == "stochastic":
        return StochasticDelay(numbers)
    if kind in ("loss", "seen"):
        return Loss(**{"rate" if kind == "loss" else "seen": numbers[0] if len(numbers) == 1 else numbers})
    build, fields = KINDS[kind]
    most = FORMS[kind].count(",") + 1
    least = FORMS[kind].partition("[")[0].count(",") + 1
    if not least <= len(numbers) <= most:
        raise ValueError(f"channel {text!r}: {kind} has {len(numbers)} numbers; it is written {kind}:{FORMS[kind]}")
    found: Channel = build(**dict(zip(fields, numbers, strict=False)))
    return found


def _measured(kind: str) -> Any:
    """The function of `MEASURED`, imported now."""
    module, _, name = MEASURED[kind].partition(":")
    return getattr(import_module(module), name)


def _number(text: str, kind: str, item: str) -> Any:
    return number(text, kind, item, FORMS.get(kind, "k"))


def _pair(text: str, kind: str, item: str) -> tuple[int, float]:
    steps, equals, weight = item.partition("=")
    if not equals:
        raise ValueError(f"channel {text!r}: {item!r} has no weight; {kind} is written {kind}:{FORMS[kind]}")
    return checks.whole(f"channel {text!r}: a delay", _number(text, kind, steps)), float(_number(text, kind, weight))


def _in_file(path: str) -> Channel:
    """The channel of a file, which holds data and no text: it can name neither code nor another file."""
    data = files.read_json(path, "channel file")
    with files.reading(path, "channel file"):
        todo = [data]
        while todo:
            part = todo.pop()
            if not isinstance(part, Mapping):
                raise ValueError(
                    f'a channel in it is {str(part)[:60]!r}, expected data such as {{"kind": "constant", "d": 2}}'
                )
            inner = () if part.get("kind") in LINK_KINDS else ("channel", "delay", "loss")
            todo += [part[key] for key in inner if key in part]
        return _from_data(data)


def _from_data(data: Mapping[str, Any]) -> Channel:
    fields = {key: value for key, value in data.items() if key not in ("kind", "period_ms")}
    kind = data.get("kind")
    if kind is None and data and all(isinstance(part, Channel | str | Mapping) for part in data.values()):
        raise ValueError(
            f"a link for each of the parts {', '.join(map(repr, data))} is played by oldlight.envs.ImpairedObservation, and not planned: with parts of different "
            "ages, all that the fresher ones have shown since belongs to the information. One part at once and one late by d steps: oldlight.envs.LatePart plans it"
        )
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"a channel as data has kind = {kind!r}{nearest(str(kind), KINDS)}")
    made, allowed = KINDS[kind]
    for key in fields:
        if key not in allowed:
            raise ValueError(f"channel {kind}: unknown key {key!r}{nearest(key, allowed)}")
    if kind == "empirical" or kind in LINK_KINDS:
        fields = fields_of(kind, fields)
    for key in () if kind in LINK_KINDS else ("channel", "delay") + (("loss",) if kind == "lossy" else ()):
        if key in fields:
            fields[key] = channel_of(fields[key])
    try:
        channel: Channel = made(**fields)
    except TypeError as error:
        raise ValueError(f"channel {kind}: {error}; its keys are {', '.join(allowed)}") from None
    return channel.with_period(data["period_ms"]) if data.get("period_ms") is not None else channel


def channel_data(channel: Channel) -> dict[str, Any]:
    """The channel as plain JSON values, which `channel_of` reads back."""
    kind = next((kind for kind, (made, _) in KINDS.items() if type(channel) is made), None)
    if kind is None:
        raise TypeError(f"{type(channel).__name__} cannot be written as data; known kinds: {', '.join(KINDS)}")
    data: dict[str, Any] = {"kind": kind}
    if isinstance(channel, EmpiricalDelay):
        pmfs = (("delays", channel.first), ("interarrival", channel.interarrival))
        data |= {name: {str(k): float(p) for k, p in enumerate(pmf) if p > 0} for name, pmf in pmfs}
    else:
        data |= {name: _plain(getattr(channel, name)) for name in KINDS[kind][1] if hasattr(channel, name)}
    if channel.period_ms is not None:
        data["period_ms"] = channel.period_ms
    return {key: value for key, value in data.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, Channel):
        return channel_data(value)
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value.tolist() if isinstance(value, np.ndarray) else value
