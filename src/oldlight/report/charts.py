"""What a figure says, apart from how it is drawn.

A chart is one of four frozen descriptions; `spec` (draw_plotly.py) and `to_matplotlib` (draw_matplotlib.py) draw the same
description for the page and for print, so that nothing is said twice:

- `Lines`: curves, each a `Series` with an optional band, and `Reference` lines at one value (an optimum);
- `Dots`: for each category, one under the other, one dot per `Group`, with an optional whisker (a dot, unlike a bar, needs no base,
  which a logarithmic axis does not have);
- `Heat`: a table of numbers as colours, with the numbers in the cells;
- `Panels`: several of these side by side under one legend.

Every text is plain text: no markup and no formulas are looked for in it, so a label from a user's file is shown as it is.

**Bands.** The unit of every band and whisker is the seed: `Series.over_seeds` and `Group.over_seeds` take one row per seed and
give the mean ± 1 standard deviation (with n − 1) between seeds. A chart that shows a band must say in `band` which one it is;
the sentence becomes a part of its caption (`caption_of`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oldlight import checks
from oldlight.arrays import Floats

Numbers = Sequence[float] | NDArray[Any]
Rows = ArrayLike
DASHES = ("solid", "broken", "dotted", "dash-dot")


@dataclass(frozen=True, eq=False)
class Series:
    """A curve y over x; low and high are the edges of its band. NaN in y leaves a gap.

    dash: one of DASHES, colour: an index of the palette (both chosen if None); marks: show the points (a few measured ones).
    """

    label: str
    x: Numbers
    y: Numbers
    low: Numbers | None = None
    high: Numbers | None = None
    dash: str | None = None
    colour: int | None = None
    marks: bool = False

    def __post_init__(self) -> None:
        x = checks.finite_array(f"x of series {self.label!r}", self.x, ("point",))
        _freeze(self, x=x, y=_values(f"y of series {self.label!r}", self.y, len(x)))
        _check_band(self, f"series {self.label!r}", len(x))
        if self.dash is not None:
            checks.one_of(f"dash of series {self.label!r}", self.dash, DASHES)

    @classmethod
    def over_seeds(cls, label: str, x: Numbers, runs: Rows, **look: Any) -> Series:
        """The mean of runs[seed, point] with a band of ± 1 standard deviation between seeds (none for one seed)."""
        return cls(label, x, *_over_seeds(f"runs of series {label!r}", runs), **look)


@dataclass(frozen=True)
class Reference:
    """A thin line across the chart at one value of the y axis (or of the x axis), with its label beside it."""

    label: str
    value: float
    axis: str = "y"

    def __post_init__(self) -> None:
        checks.real(f"value of reference {self.label!r}", self.value)
        checks.one_of(f"axis of reference {self.label!r}", self.axis, ("x", "y"))


@dataclass(frozen=True, eq=False)
class Group:
    """One dot per category of a `Dots`; low and high are the ends of its whiskers. NaN leaves a dot out."""

    label: str
    x: Numbers
    low: Numbers | None = None
    high: Numbers | None = None
    colour: int | None = None

    def __post_init__(self) -> None:
        _freeze(self, x=_values(f"dots of group {self.label!r}", self.x, len(self.x)))
        _check_band(self, f"group {self.label!r}", len(self.x))

    @classmethod
    def over_seeds(cls, label: str, runs: Rows, **look: Any) -> Group:
        """The mean of runs[seed, category], whiskers of ± 1 standard deviation between seeds (none for one seed)."""
        return cls(label, *_over_seeds(f"runs of group {label!r}", runs), **look)


@dataclass(frozen=True, eq=False)
class Lines:
    """Curves over a common axis. percent_x, percent_y: write 0.2 as 20%. band: which band the series show."""

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    references: Sequence[Reference] = ()
    log_x: bool = False
    log_y: bool = False
    percent_x: bool = False
    percent_y: bool = False
    band: str = ""
    caption: str = ""

    def __post_init__(self) -> None:
        _check_parts(self, "series", self.series)
        _check_references(self, {"x": self.log_x, "y": self.log_y})


@dataclass(frozen=True, eq=False)
class Dots:
    """Categories one under the other, the first on top; for each one dot per group. band: what the whiskers are."""

    title: str
    x_label: str
    categories: Sequence[str]
    groups: Sequence[Group]
    references: Sequence[Reference] = ()
    log_x: bool = False
    percent_x: bool = False
    band: str = ""
    caption: str = ""

    def __post_init__(self) -> None:
        _freeze(self, categories=checks.names("categories", self.categories, len(self.categories)))
        _check_parts(self, "groups", self.groups)
        for group in self.groups:
            if len(group.x) != len(self.categories):
                raise ValueError(
                    f"group {group.label!r} of {self.title!r} has {len(group.x)} dots, expected one per category: "
                    f"{len(self.categories)}"
                )
        _check_references(self, {"x": self.log_x})


@dataclass(frozen=True, eq=False)
class Heat:
    """z[row, column] as colours: row i is labelled y[i], column j x[j]; row 0 is at the bottom. NaN leaves a cell empty."""

    title: str
    x_label: str
    y_label: str
    z_label: str
    x: Sequence[Any]
    y: Sequence[Any]
    z: Rows
    percent: bool = False
    caption: str = ""

    def __post_init__(self) -> None:
        x, y = checks.names("x", self.x, len(self.x)), checks.names("y", self.y, len(self.y))
        z = checks.numbers(f"z of {self.title!r}", self.z)
        if z.shape != (len(self.y), len(self.x)) or not z.size:
            raise ValueError(f"z of {self.title!r} has shape {z.shape}, expected (y, x) = {(len(self.y), len(self.x))}")
        if np.isinf(z).any():
            raise ValueError(f"z of {self.title!r} has an infinite entry, expected numbers (NaN leaves a cell empty)")
        _freeze(self, x=x, y=y, z=z)


@dataclass(frozen=True, eq=False)
class Panels:
    """Charts side by side under one legend. share: one y range for all Lines, one colour range for all Heats."""

    title: str
    charts: Sequence[Lines | Dots | Heat]
    share: bool = False
    caption: str = ""

    def __post_init__(self) -> None:
        _freeze(self, charts=tuple(self.charts))
        if not self.charts:
            raise ValueError(f"{self.title!r} has no charts, expected at least one")


Single = Lines | Dots | Heat
Chart = Lines | Dots | Heat | Panels


def singles(chart: Chart) -> tuple[Single, ...]:
    """The charts with axes of their own."""
    return tuple(chart.charts) if isinstance(chart, Panels) else (chart,)


def parts(chart: Single) -> Sequence[Series | Group]:
    """What the legend lists."""
    if isinstance(chart, Lines):
        return chart.series
    return chart.groups if isinstance(chart, Dots) else ()


def bands(chart: Chart) -> list[str]:
    """Which bands and whiskers the chart shows, as text."""
    found = [(one, one.band) for one in singles(chart) if isinstance(one, Lines | Dots) and one.band]
    texts = [f"{'Band' if isinstance(one, Lines) else 'Whiskers'}: {band.rstrip('.')}." for one, band in found]
    return list(dict.fromkeys(texts))


def caption_of(chart: Chart) -> str:
    """The caption, with which band is shown."""
    return " ".join(text for text in (chart.caption, *bands(chart)) if text)


def seeds_band(n_seeds: int) -> str:
    """What `over_seeds` shows, as text."""
    n = checks.whole("n_seeds", n_seeds, least=1)
    return f"mean ± 1 standard deviation over {n} seeds" if n > 1 else "none, there is only one seed"


# -- checks -------------------------------------------------------------------------------------------------------------


def _freeze(owner: Any, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(owner, name, value)


def _values(name: str, values: Any, n: int) -> Floats:
    array = checks.numbers(name, values)
    if array.shape != (n,) or not n:
        raise ValueError(f"{name} has shape {array.shape}, expected {n or 'at least one'} numbers in a row")
    if np.isinf(array).any():
        raise ValueError(f"{name}[{int(np.isinf(array).argmax())}] is infinite, expected a number (NaN leaves a gap)")
    return array


def _check_band(owner: Series | Group, name: str, n: int) -> None:
    if (owner.low is None) != (owner.high is None):
        raise ValueError(f"{name} has only one edge of its band; give low and high, or neither")
    if owner.low is not None:
        low, high = _values(f"low of {name}", owner.low, n), _values(f"high of {name}", owner.high, n)
        if (low > high).any():
            raise ValueError(f"low of {name} lies above high at index {int((low > high).argmax())}")
        _freeze(owner, low=low, high=high)


def _check_parts(chart: Lines | Dots, kind: str, found: Sequence[Series | Group]) -> None:
    if not found:
        raise ValueError(f"{chart.title!r} has no {kind}, expected at least one")
    checks.names(f"{kind} of {chart.title!r}", [part.label for part in found], len(found))
    if any(part.low is not None for part in found) and not chart.band:
        raise ValueError(
            f"{chart.title!r} shows a band and does not say which; give for example band=seeds_band(3), "
            "'mean ± 1 standard deviation over 3 seeds'"
        )
    _freeze(chart, **{kind: tuple(found)}, references=tuple(chart.references))


def _check_references(chart: Lines | Dots, logarithmic: dict[str, bool]) -> None:
    for line in chart.references:
        if line.axis not in logarithmic:
            raise ValueError(
                f"reference {line.label!r} of {chart.title!r} is on the {line.axis} axis, which has only categories"
            )
        if logarithmic[line.axis] and line.value <= 0:
            raise ValueError(
                f"reference {line.label!r} of {chart.title!r} is {line.value:.12g}, expected > 0 on a logarithmic axis"
            )


def _over_seeds(name: str, runs: Any) -> tuple[Floats, Floats | None, Floats | None]:
    rows = checks.numbers(name, runs)
    if rows.ndim != 2 or not rows.size:
        raise ValueError(f"{name} has shape {rows.shape}, expected one row per seed: (seed, point)")
    mean = rows.mean(axis=0)
    if len(rows) == 1:
        return mean, None, None
    spread = rows.std(axis=0, ddof=1)
    return mean, mean - spread, mean + spread
