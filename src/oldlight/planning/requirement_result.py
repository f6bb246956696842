"""The result of `oldlight.requirement` over one impairment: the answer, its certificate on both sides, and everything that was looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from oldlight import drawing
from oldlight.model.channels import Channel
from oldlight.planning.impairments import CONTROL, IMPAIRMENTS

DRAWN = 0.02  # of the value with full information: bounds so narrow are drawn as a value
Status = Literal["certified", "not decided", "always", "never"]


@dataclass(frozen=True)
class Point(drawing.Result):
    """One level of an impairment: lower ≤ best executable value ≤ upper behind `channel`.

    Parameters
    ----------
    level : float
        In steps, or a loss rate.
    lower, upper : float
        Certified bounds; lower is −∞ where only an upper bound is known.
    channel : Channel
        The link at this level.
    reaches : bool or None
        Does the value reach the target? None where the bounds do not tell.
    how : str
        What the bounds come from: "a plan", "a ladder", "its neighbours" or "the plan of a neighbour".

    Examples
    --------
    >>> import oldlight as ol
    >>> found = ol.requirement(ol.instances.dichotomy(1), target=0.9, over="delay")
    >>> found.reached.level, found.reached.lower, found.failed.level, found.failed.upper
    (1.0, 1.0, 2.0, 0.5)
    """

    level: float
    lower: float
    upper: float
    channel: Channel
    reaches: bool | None
    how: str
    _data = "level lower upper reaches how channel"

    @property
    def value(self) -> float:
        """The middle of the bounds, or the one that there is."""
        return self.upper if not np.isfinite(self.lower) else (self.lower + self.upper) / 2

    @property
    def exact(self) -> bool:
        """Are the bounds one number, up to a billionth?"""
        return bool(self.upper - self.lower <= 1e-9 * max(abs(self.upper), 1.0))


def said(name: str, level: float | None, period_ms: float | None, held: bool = False) -> str:
    """A level as text, in milliseconds and percent where that can be said; held: its steps are those of a plant."""
    if level is None:
        return "none"
    if name == "loss":
        return f"{100 * level:.10g} %"
    if name == CONTROL:
        return (
            f"{level:.10g} ms"
            if not held
            else f"{level:.10g} {'step' if level == 1 else 'steps'} of the plant" + _ms(level, period_ms)
        )
    step = "step" if level == 1 else "steps"
    return f"{level:.10g} {step}{_ms(level, period_ms)}"


def _ms(level: float, period_ms: float | None) -> str:
    return "" if period_ms is None else f" ({level * period_ms:.10g} ms)"


@dataclass(frozen=True, eq=False)
class Requirement(drawing.Result):
    """How much of one impairment a plant can stand; made by `requirement`.

    Parameters
    ----------
    over : str
        The impairment.
    target : float
        The value that has to be reached.
    full : float
        The value with full information (of the shortest control period, where that is varied).
    answer : float or None
        The largest level up to which the best executable policy reaches the target; None if the first level does not.
    reached, failed : Point or None
        The certificates: at the answer the lower bound reaches the target; at the next level that was decided the upper bound does not.
    undecided : list of float
        Levels between the two at which the bounds do not tell.
    reentries : list of (float, float)
        Later ranges of levels that reach the target again. Only a scan can find some.
    points : list of Point
        Every level that was looked at, in order.
    monotone : bool
        Do values fall along this impairment?
    why : str
        The argument for that, or why the levels were scanned.
    at : mapping
        What else the link does.
    period_ms : float, optional
        Milliseconds of a step.
    plans, reused : int
        Plans that were made, and levels that a neighbour's plan decided.
    seconds : float
        Time taken.
    held : bool
        Over control periods: are levels counted in steps of the plant (else they are milliseconds)?

    Examples
    --------
    >>> import oldlight as ol
    >>> print(ol.requirement(ol.instances.sensing_chain(0.8), target="95%", over="loss", period_ms=20))
    Requirement
      loss rate    at most 23.2 %
      target       3.763011712 (95% of the value with full information, 3.96106496)
      at 23.2 %    at least 3.763793256
      at 23.3 %    at most 3.762992049
      certificate  on both sides
      argument     whoever sees more can throw observations away: values fall with the loss rate
      work         ... plans, ... levels decided by a neighbour's plan, ... s
    """

    over: str
    target: float
    full: float
    answer: float | None
    reached: Point | None
    failed: Point | None
    undecided: list[float]
    reentries: list[tuple[float, float]]
    points: list[Point]
    monotone: bool
    why: str
    at: Mapping[str, float] = field(default_factory=dict)
    period_ms: float | None = None
    plans: int = 0
    reused: int = 0
    seconds: float = 0.0
    held: bool = False
    _data = (
        "over target share full answer answer_text status undecided reentries monotone why at period_ms "
        "plans reused seconds reached failed points"
    )

    @property
    def unit(self) -> str:
        """The unit of levels: "steps", "%" (levels are shares of 1) or "ms"."""
        return IMPAIRMENTS[self.over].unit if not self.held else "steps"

    @property
    def share(self) -> float | None:
        """The target as a share of the value with full information: 1 − (full − target)/|full|."""
        return 1.0 - (self.full - self.target) / abs(self.full) if self.full else None

    @property
    def status(self) -> Status:
        """ "certified" on both sides; "always": every level reaches it; "never": not even the first does; or "not decided"."""
        if self.undecided or not self.points:
            return "not decided"
        if self.answer is None:
            return "never"
        return "always" if self.failed is None else "certified"

    def say(self, level: float | None) -> str:
        """A level as text, in milliseconds and percent where that can be said."""
        return said(self.over, level, self.period_ms, self.held)

    @property
    def answer_text(self) -> str:
        """The answer as text."""
        return self.say(self.answer)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each level that was looked at."""
        return [
            {"level": p.level, self.over: self.say(p.level), "lower": p.lower, "upper": p.upper, "reaches": p.reaches}
            for p in self.points
        ]

    def plot(self, ax: Any = None) -> Any:
        """Draw the bounds along the impairment with the target and the answer; returns the matplotlib axes."""
        ax = drawing.axes_of(ax)
        scale = 100.0 if self.over == "loss" else 1.0
        x = [scale * p.level for p in self.points]
        ax.fill_between(x, [p.lower if np.isfinite(p.lower) else np.nan for p in self.points], [p.upper for p in self.points],
                        color="#1f6f8b", alpha=0.25, linewidth=0)  # fmt: skip
        known = [p for p in self.points if p.upper - p.lower <= DRAWN * abs(self.full)]
        ax.plot([scale * p.level for p in known], [p.value for p in known], marker="o", ms=3.5, color="#1f6f8b", label="best executable value")  # fmt: skip
        ax.axhline(self.target, color="#c8553d", lw=1, label=f"target {self.target:.4g}")
        ax.axhline(self.full, color="black", lw=0.8, ls=":", label=f"full information {self.full:.4g}")
        if self.answer is not None:
            ax.axvline(scale * self.answer, color="#c8553d", lw=1, ls="--", label=f"at most {self.answer_text}")
        ax.set_xlabel(f"{IMPAIRMENTS[self.over].label} [{self.unit}]")
        ax.set_ylabel("value")
        ax.legend(frameon=False, fontsize=8)
        return ax

    def __str__(self) -> str:
        """A small table."""
        share = (
            ""
            if self.share is None
            else f" ({100 * self.share:.6g}% of the value with full information, {self.full:.10g})"
        )
        label = IMPAIRMENTS[self.over].label
        rows = {label: self._answer(), "target": f"{self.target:.10g}{share}"}
        for point, word in ((self.reached, "at least"), (self.failed, "at most")):
            if point is not None:
                rows[f"at {self.say(point.level)}"] = (
                    f"{word} {point.lower if word == 'at least' else point.upper:.10g}"
                )
        for first, last in self.reentries:
            rows[f"again from {self.say(first)}"] = (
                f"to {self.say(last)}: the target is reached again after the first failure"
            )
        if self.at:
            rows["the link also has"] = ", ".join(f"{name} {value:g}" for name, value in self.at.items())
        rows["certificate"] = self._certificate()
        rows["argument"] = self.why
        rows["work"] = f"{self.plans} plans, {self.reused} levels decided by a neighbour's plan, {self.seconds:.3g} s"
        return drawing.facts("Requirement", rows)

    def _answer(self) -> str:
        if self.answer is None and not self.undecided:
            if self.reentries:
                return "the first level does not reach the target"
            above = " (which is above the value with full information)" if self.target > self.full else ""
            return f"no level reaches the target{above}"
        if self.answer is None:
            return "not decided"
        text = f"at most {self.answer_text}"
        return text + (
            ": every level that was tried reaches the target" if self.failed is None and not self.undecided else ""
        )

    def _certificate(self) -> str:
        if self.undecided:
            between = self.say(self.undecided[0])
            if len(self.undecided) > 1:
                between += f" to {self.say(self.undecided[-1])}"
            between += "" if self.failed is not None else ", nor beyond"
            return f"not decided within the tolerance at {between}"
        return {"certified": "on both sides", "always": "reached at the last level", "never": "failed at the first level"}.get(self.status, "none")  # fmt: skip

    def __repr__(self) -> str:
        return f"Requirement({self.over}: {self._answer()}; {self.status}, target {self.target:.6g})"
