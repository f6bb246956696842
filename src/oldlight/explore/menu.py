"""What can be chosen in the explorer: the process, the link, the start, and the range of every slider.

The page can choose among these and nothing else: it names no file, no module and no size of its own.

A **process** is one that the command named, or one of `KNOWN`. A **link** is what the sliders say (`oldlight.planning.impairments`), the
channel that the command named if sliders cannot say it, or a recording, planned for by its counted age chain (`oldlight.traces`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oldlight.model.channels import Channel, Periodic
from oldlight.model.mdp import TabularMDP
from oldlight.traces import Trace

SLIDERS, GIVEN, RECORDING = "sliders", "given", "recording"
STARTS = ("cold", "warm")
ENDLESS = 20  # steps
OLDEST = 4  # ticks: what arrives older in a recording is not used in its age chain
BYTES = 2**28  # that one plan may take, unless the command says otherwise
SMALL = "inventory:horizon=10"
KNOWN = ("sensing_chain:0.8", "center_chain:0.8", "forest:n_states=10,horizon=20", SMALL, "dichotomy:2,5")


@dataclass(frozen=True)
class Field:
    """A slider: its name in the address, what stands beside it, its range and where it begins."""

    name: str
    label: str
    unit: str
    least: float
    most: float
    step: float
    default: float
    help: str

    @property
    def whole(self) -> bool:
        """Are its positions whole numbers?"""
        return self.step == int(self.step)


FIELDS = {
    each.name: each
    for each in (
        Field("delay", "Delay", "steps", 0, 8, 1, 2, "Every observation arrives this many steps late."),
        Field("jitter", "Jitter", "steps", 0, 3, 1, 0, "The delay varies by up to so many steps, all equally likely, around the same mean."),
        Field("loss", "Loss", "%", 0, 90, 1, 10, "This share of the observations never arrives."),
        Field("burst", "Burst of losses", "steps", 0, 10, 1, 0, "Mean length of blackouts; one begins at 5 % of the steps. 0: none."),
        Field("period", "Sensor period", "steps", 1, 5, 1, 1, "Only every n-th step is observed."),
        Field("horizon", "Horizon", "steps", 1, 50, 1, 10, "Steps of an episode."),
        Field("discount", "Discount", "", 0.5, 1, 0.01, 1, "A reward h steps ahead counts discount^h."),
        Field("period_ms", "Control period", "ms", 5, 500, 5, 20, "Milliseconds of a step, for the recording."),
    )
}  # fmt: skip
LINK_FIELDS = ("delay", "jitter", "loss", "burst", "period")


@dataclass(frozen=True)
class Plant:
    """A process that can be chosen."""

    name: str
    mdp: TabularMDP

    @property
    def most_horizon(self) -> int:
        """The longest episode: a process that changes from step to step has no steps beyond its own."""
        return int(FIELDS["horizon"].most) if self.mdp.stationary else self.mdp.finite_horizon

    @property
    def horizon(self) -> int:
        """Where the slider begins: the process's own horizon, or `ENDLESS` steps of one that runs for ever."""
        return min(ENDLESS if self.mdp.horizon is None else self.mdp.horizon, self.most_horizon)


@dataclass(frozen=True)
class Menu:
    """Everything that can be chosen, and where the page begins.

    Parameters
    ----------
    plants : dict of str to Plant
        The processes, by name; the first is shown first.
    link : Channel, optional
        A channel of the command that sliders cannot say.
    link_text : str
        The same as it was written.
    trace : Trace, optional
        A recording.
    trace_file : str
        Where it was read from.
    begin : dict
        Fields that do not begin at their default.
    max_bytes : int
        Memory that one plan may take.
    """

    plants: dict[str, Plant]
    link: Channel | None = None
    link_text: str = ""
    trace: Trace | None = None
    trace_file: str = ""
    begin: dict[str, Any] = field(default_factory=dict)
    max_bytes: int = BYTES

    @property
    def links(self) -> dict[str, str]:
        """The kinds of links, each with what the page calls it."""
        found = {SLIDERS: "as the sliders say"}
        if self.link is not None:
            found[GIVEN] = self.link_text
        if self.trace is not None:
            found[RECORDING] = f"recording {self.trace.source}"
        return found

    def defaults(self, plant: str | None = None) -> dict[str, Any]:
        """The position where the page begins, or begins anew with another process."""
        name = next(iter(self.plants)) if plant is None else plant
        values: dict[str, Any] = {each.name: each.default for each in FIELDS.values()}
        values |= {"plant": name, "link": next(reversed(self.links)), "start": "cold"}
        return values | {"horizon": self.plants[name].horizon} | self.begin

    def to_dict(self) -> dict[str, Any]:
        """What the page has to know, as plain data."""
        plants = {
            name: {
                "states": list(plant.mdp.states or map(str, range(plant.mdp.n_states))),
                "actions": list(plant.mdp.actions or (f"action {a}" for a in range(plant.mdp.n_actions))),
                "horizon": plant.horizon,
                "most_horizon": plant.most_horizon,
            }
            for name, plant in self.plants.items()
        }
        fields = [vars(each) | {"link": each.name in LINK_FIELDS} for each in FIELDS.values()]
        return {
            "plants": plants,
            "links": self.links,
            "starts": STARTS,
            "fields": fields,
            "defaults": self.defaults(),
        }


def menu_of(
    plant: str | None = None,
    *,
    channel: str | None = None,
    trace: str | None = None,
    warm: bool = False,
    period_ms: float | None = None,
    max_bytes: int | None = None,
) -> Menu:
    """The menu of `oldlight explore PLANT -c LINK --trace FILE`.

    Examples
    --------
    >>> from oldlight.explore import menu_of
    >>> menu = menu_of("sensing_chain:0.9", channel="constant:3+loss:0.2")
    >>> next(iter(menu.plants)), menu.begin["delay"], menu.begin["loss"]
    ('sensing_chain:0.9', 3, 20.0)
    """
    from oldlight.registry import channel_of, mdp_of
    from oldlight.traces import read_trace

    names = dict.fromkeys([*([] if plant is None else [plant]), *KNOWN])
    plants = {name: Plant(name, mdp_of(name)) for name in names}
    begin: dict[str, Any] = {"start": "warm"} if warm else {}
    link, text = None, ""
    if channel is not None:
        made = channel_of(channel)
        said = slider_values(made)
        begin |= said or {}
        link, text = (made, channel) if said is None else (None, "")
    found = None if trace is None else read_trace(trace)
    if found is not None:
        begin["period_ms"] = found.period_of(period_ms)
    options: Mapping[str, Any] = {} if max_bytes is None else {"max_bytes": max_bytes}
    return Menu(plants, link, text, found, "" if trace is None else str(trace), begin, **options)


def slider_values(channel: Channel) -> dict[str, Any] | None:
    """The sliders that say the same as a channel; None where they cannot."""
    found: dict[str, Any] = {"delay": 0, "jitter": 0, "loss": 0, "burst": 0, "period": 1}
    if isinstance(channel, Periodic) and channel.offset == 0:
        found |= {"delay": channel.delay, "period": channel.every}
    elif not channel.has_delay_law or channel.delay.constant is None:
        return None
    else:
        found["delay"] = channel.delay.constant
        if channel.loss is not None:
            modes = channel.loss.modes()
            if modes is None or modes.seen.size != 1:
                return None
            found["loss"] = round(100 * (1 - float(modes.seen[0, 0])), 12)
    inside = all(FIELDS[name].least <= value <= FIELDS[name].most for name, value in found.items())
    return found if inside else None
