"""A position: everything that the page has chosen, checked; and the problem that it means.

The process is shaped first: its horizon, and with a discount u < 1 rewards R_h = u^h·R. Then it is seen through the link.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from oldlight import checks
from oldlight.explore.menu import FIELDS, GIVEN, LINK_FIELDS, OLDEST, RECORDING, SLIDERS, STARTS, Field, Menu
from oldlight.model.channels import Channel
from oldlight.model.mdp import TabularMDP
from oldlight.model.problem import ImpairedMDP
from oldlight.planning.impairments import link_of


@dataclass(frozen=True)
class Position:
    """What the page has chosen, in the units of its sliders."""

    plant: str
    link: str
    start: str
    delay: int
    jitter: int
    loss: float
    burst: int
    period: int
    horizon: int
    discount: float
    period_ms: float

    def moved(self, name: str, value: float) -> Position:
        """The same with one slider elsewhere."""
        change: dict[str, Any] = {name: int(value) if FIELDS[name].whole and name != "loss" else value}
        return replace(self, **change)

    @property
    def levels(self) -> dict[str, float]:
        """What the sliders say of the link, as `link_of` takes it; what is absent is not named."""
        said = {
            "delay": self.delay,
            "jitter": self.jitter,
            "loss": round(self.loss / 100, 12),
            "blackout": self.burst,
            "sensor_period": self.period,
        }
        nothing = {"sensor_period": 1}
        return {name: value for name, value in said.items() if value != nothing.get(name, 0)}

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain data."""
        return asdict(self)


def position_of(menu: Menu, given: Mapping[str, Any]) -> Position:
    """The position that a page sent: plain data with names of the menu; what is missing is at its default.

    Whatever is not allowed is refused in one sentence that says what is.
    """
    unknown = [name for name in given if name not in FIELDS and name not in ("plant", "link", "start")]
    if unknown:
        raise ValueError(f"{unknown[0][:40]!r} is no slider{checks.nearest(unknown[0][:40], FIELDS)}")
    plant = given.get("plant", next(iter(menu.plants)))
    chosen = {"plant": _one("process", plant, tuple(menu.plants))}
    values = menu.defaults(plant) | dict(given)
    chosen |= {"link": _one("link", values["link"], tuple(menu.links)), "start": _one("start", values["start"], STARTS)}
    numbers = {name: _number(each, values[name]) for name, each in FIELDS.items()}
    most = menu.plants[plant].most_horizon
    if numbers["horizon"] > most:
        raise ValueError(
            f"horizon is {numbers['horizon']:g}; the process {plant} changes from step to step and has {most} of them: 1 to {most}"
        )
    if chosen["link"] == SLIDERS and numbers["jitter"] > numbers["delay"]:
        raise ValueError(
            f"jitter is {numbers['jitter']:g} around a mean delay of {numbers['delay']:g} steps: allowed is 0 to {numbers['delay']:g}"
        )
    return Position(**chosen, **numbers)  # type: ignore[arg-type]


def _one(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} is {str(value)[:60]!r}; allowed is one of {', '.join(allowed)}")
    return value


def _number(each: Field, value: Any) -> float:
    unit = f" {each.unit}" if each.unit else ""
    allowed = f"allowed is {'a whole number' if each.whole and each.name != 'loss' else 'a number'} from {each.least:g} to {each.most:g}{unit}"
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise ValueError(f"{each.label.lower()} is {str(value)[:40]!r}; {allowed}")
    if not each.least <= value <= each.most or (each.whole and each.name != "loss" and value != int(value)):
        raise ValueError(f"{each.label.lower()} is {value:g}; {allowed}")
    return int(value) if value == int(value) else float(value)


def shaped(mdp: TabularMDP, horizon: int, discount: float) -> TabularMDP:
    """The process with this horizon, and rewards u^h·R."""
    if horizon == mdp.horizon and discount == 1:
        return mdp
    if mdp.horizon is None:  # for ever: its own discount is in the rewards of the first steps
        mdp = mdp.replace(horizon=horizon)
    steps = [mdp.matrix(h) for h in range(1 if mdp.stationary_transitions else horizon)]
    if not mdp.sparse:
        steps = [step.reshape(mdp.n_states, mdp.n_actions, -1) for step in steps]
    P: Any = steps[0] if mdp.stationary_transitions else steps
    R: Any = mdp.rewards[0] if mdp.stationary_rewards else mdp.rewards[:horizon]
    if discount < 1:
        R = discount ** np.arange(horizon)[:, None, None] * R
    return mdp.replace(transitions=P, rewards=R, horizon=horizon)


def channel_at(menu: Menu, position: Position) -> Channel:
    """The channel of a position."""
    if position.link == GIVEN:
        assert menu.link is not None
        return menu.link
    if position.link == RECORDING:
        assert menu.trace is not None
        fitted = menu.trace.fit(position.period_ms, horizon=position.horizon)
        return fitted.age_chain(horizon=position.horizon, oldest=OLDEST)
    return link_of(position.levels)


def problem_at(menu: Menu, position: Position) -> ImpairedMDP:
    """The problem of a position."""
    mdp = shaped(menu.plants[position.plant].mdp, position.horizon, position.discount)
    return ImpairedMDP(mdp, channel_at(menu, position), start=position.start)  # type: ignore[arg-type]


def axis_levels(menu: Menu, position: Position, name: str) -> list[float]:
    """The positions of a slider along which a curve is drawn, few enough to be planned one after the other."""
    each = FIELDS[name]
    most = {"jitter": min(each.most, position.delay), "horizon": min(menu.plants[position.plant].most_horizon, 30)}.get(
        name, each.most
    )
    step = {"loss": 5, "discount": 0.05}.get(name, each.step)
    if name == "horizon":
        step = max(1, round(most / 12))
    levels = np.arange(each.least, most + step / 2, step).round(9).tolist()
    here = getattr(position, name)
    return sorted({*levels, here})


__all__ = ["LINK_FIELDS", "Position", "axis_levels", "channel_at", "position_of", "problem_at", "shaped"]
