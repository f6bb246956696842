"""Channels without a delay law as text and as data; `oldlight.model.channels.text` reads and writes them with all others.

packets:0=.2,1=.6,2=.2+loss:0.1   each observation on its own: its delay, and the share that is lost
packets:0=.8,1=.2+bursty:0.1,0.5  the same with losses in bursts that nobody announces: a `HiddenLink` of two modes
fifo:0=.5,1=.3,2=.2               a delay each, delivered in order
ages:.9,.1/.5,.3,.2               an age chain: the rows of ages 0, 1, .. with "/" between them; each has the probabilities of the
                                  ages 0..m and, last, of nothing newer. A long chain is better a file: file:chain.json
renewal:0=.9,5=.1                 how many observations are lost between two seen ones
periodic:5  periodic:5,2,1        every 5th step is observed, 2 steps late, from step 1 on
held:0=.5,2=.5,hold=.7            a lag that stays as it is with probability .7
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oldlight.model.channels import (
    AgeChain,
    Channel,
    FIFODelay,
    HeldLag,
    HiddenLink,
    Loss,
    PacketChannel,
    Periodic,
    RenewalLoss,
)

LINK_KINDS: dict[str, tuple[type[Any], tuple[str, ...]]] = {
    "packets": (PacketChannel, ("delays", "lost")),
    "fifo": (FIFODelay, ("delays",)),
    "ages": (AgeChain, ("kernel", "first")),
    "renewal": (RenewalLoss, ("lengths",)),
    "periodic": (Periodic, ("every", "delay", "offset")),
    "held": (HeldLag, ("lags", "hold")),
    "hidden": (HiddenLink, ("switch", "delays", "first")),  # as data only
}
LINK_FORMS = {
    "packets": "0=0.2,1=0.6,2=0.2",
    "fifo": "0=0.5,1=0.3,2=0.2",
    "ages": "0.9,0.1/0.5,0.3,0.2",
    "renewal": "0=0.9,5=0.1",
    "periodic": "every[,delay,offset]",
    "held": "0=0.5,2=0.5,hold=0.7",
}
LINK_MEANING = {
    "packets": "each observation on its own with this delay, may overtake, the newest wins; +loss:0.1 or +bursty:0.1,0.5 loses silently (UDP)",
    "fifo": "independent delays, delivered in order, several at once (TCP, Wi-Fi head of line)",
    "ages": "a Markov chain of the age: a row for each age, of the ages 0..m and of nothing newer",
    "renewal": "blackouts: how many observations are lost between two seen ones",
    "periodic": "a slow sensor: every n-th step is observed, `delay` late, from step `offset` on",
    "held": "a lag that stays as it was with probability hold, else is drawn anew",
}


def link_part(text: str, kind: str, rest: str) -> Channel:
    """The channel that `kind:rest` stands for."""
    form = LINK_FORMS[kind]
    if kind == "ages":
        return AgeChain([[float(number(text, kind, x, form)) for x in row.split(",")] for row in rest.split("/")])
    if kind == "periodic":
        numbers = [number(text, kind, x, form) for x in rest.split(",")]
        if len(numbers) > 3:
            raise ValueError(f"channel {text!r}: {kind} has {len(numbers)} numbers; it is written {kind}:{form}")
        return Periodic(*numbers)
    pairs = [item.partition("=")[::2] for item in rest.split(",")]
    items = {key.strip(): value for key, value in pairs}
    if len(items) < len(pairs):
        twice = next(
            key.strip() for i, (key, _) in enumerate(pairs) if key.strip() in [k.strip() for k, _ in pairs[:i]]
        )
        raise ValueError(f"channel {text!r}: {twice}= is there twice; {kind} is written {kind}:{form}")
    hold = {"hold": number(text, kind, items.pop("hold"), form)} if kind == "held" and "hold" in items else {}
    for key, value in items.items():
        if not value:
            raise ValueError(f"channel {text!r}: {key!r} has no weight; {kind} is written {kind}:{form}")
    pmf = {number(text, kind, key, form): float(number(text, kind, value, form)) for key, value in items.items()}
    made: Channel = LINK_KINDS[kind][0](pmf, **hold)
    return made


def number(text: str, kind: str, item: str, form: str) -> Any:
    """A number in a channel as text, an int where it is whole; `form` is how the kind is written."""
    try:
        value = float(item)
    except ValueError:
        raise ValueError(f"channel {text!r}: {item!r} is not a number; {kind} is written {kind}:{form}") from None
    return int(value) if value == value // 1 and abs(value) < 1e15 else value


def with_loss(text: str, link: Channel, delay: Any, loss: Any) -> Channel:
    """The whole channel that `text` stands for, from its link and the other parts: packets may be lost too, one by one or in bursts."""
    if delay is None and loss is None:
        return link
    if isinstance(link, PacketChannel) and delay is None:
        if isinstance(loss, Loss) and isinstance(loss.seen, float):
            return PacketChannel(link.delays, lost=round(1.0 - loss.seen, 15))
        modes = loss.modes()
        if modes is not None and len(modes.first) > 1:
            return HiddenLink(modes.switch, modes.seen[0][:, None] * link.delays, first=modes.first)
        raise ValueError(
            f"channel {text!r}: packets take one loss rate for all steps, as in packets:0=0.2,1=0.8+loss:0.1"
        )
    raise ValueError(
        f"channel {text!r}: {link!r} stands alone; only packets may be followed by another part, loss:, seen: or bursty:, as in "
        "packets:0=0.2,1=0.8+loss:0.1"
    )


def fields_of(kind: str, fields: dict[str, Any]) -> dict[str, Any]:
    """The keys of a mapping of JSON, {"0": 0.9}, as numbers, where a channel of this kind takes a law so."""
    return {
        key: {number(f"{kind} {key}", kind, str(k), "k"): p for k, p in value.items()}
        if isinstance(value, Mapping)
        else value
        for key, value in fields.items()
    }
