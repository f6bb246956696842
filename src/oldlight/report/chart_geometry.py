"""What both back ends draw: looks, points and ranges of a chart, computed once.

**Looks.** The n-th new label of a chart takes the n-th colour of a palette that people with any colour vision can tell apart
(Okabe and Ito's, without yellow and black); when the colours are used up the stroke changes. `colour` and `dash` of a series
override that: the paper draws constant delays solid and random ones broken. One label has one look in all panels.

**Long curves.** A curve of more than `LONGEST` points is thinned: the axis (linear or logarithmic, as drawn) is cut into
`BUCKETS` equal parts, and of each part the points with the largest and the smallest value are kept, and the outermost points of
the band. So no peak is lost, and the drawn curve stays within the range that the full one has in the same and the next part.

**Logarithmic axes** cannot show what is not positive: such points become gaps, and the lower edge of a band stops one decade
below the smallest point of its curve.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oldlight.arrays import Floats
from oldlight.report.charts import DASHES, Chart, Dots, Group, Heat, Lines, Series, Single, parts, singles

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#767676")
GREY = "#808080"  # reference lines: seen on white and on black
LONGEST = 600
BUCKETS = 150


class Look(NamedTuple):
    """How a label is drawn everywhere. `key` is its number, `kind` is "line" or "dot"."""

    key: int
    colour: str
    dash: str
    kind: str
    marks: bool


class Points(NamedTuple):
    """The points of a series that are really drawn."""

    x: Floats
    y: Floats
    low: Floats | None
    high: Floats | None

    def at(self, where: slice | NDArray[np.int64] | NDArray[np.bool_]) -> Points:
        """Some of the points."""
        return Points(*(None if column is None else column[where] for column in self))  # type: ignore[arg-type]


def looks(chart: Chart) -> dict[str, Look]:
    """label -> look, in the order of the legend."""
    found: dict[str, Look] = {}
    for one in singles(chart):
        for part in parts(one):
            if part.label in found:
                continue
            n = len(found)
            colour = PALETTE[(n if part.colour is None else part.colour) % len(PALETTE)]
            dash = DASHES[n // len(PALETTE) % len(DASHES)] if part.colour is None else "solid"
            if isinstance(part, Group):
                found[part.label] = Look(n, colour, "solid", "dot", True)
            else:
                found[part.label] = Look(n, colour, part.dash or dash, "line", part.marks)
    return found


def points(series: Series, *, log_x: bool = False, log_y: bool = False) -> Points:
    """What is drawn of a series: see the module's text."""
    p = Points(*(None if c is None else np.asarray(c) for c in (series.x, series.y, series.low, series.high)))  # type: ignore[arg-type]
    if log_x:
        p = p.at(p.x > 0)
    if log_y:
        y = np.where(p.y > 0, p.y, np.nan)
        floor = np.nanmin(y) / 10 if np.isfinite(y).any() else 1.0
        edges = (None if edge is None else np.maximum(edge, floor) for edge in (p.low, p.high))
        p = Points(p.x, y, *edges)
    return p.at(thin(p, log=log_x))


def thin(p: Points, *, log: bool = False) -> NDArray[np.int64]:
    """The indices to keep. Curves that are short, or do not run from left to right, keep all."""
    n = len(p.x)
    if n <= LONGEST or (np.diff(p.x) < 0).any():
        return np.arange(n)
    along = np.log(p.x) if log else p.x
    starts = np.unique(np.append(np.searchsorted(along, np.linspace(along[0], along[-1], BUCKETS + 1)[:-1]), 0))
    keep = {0, n - 1}
    for curve, sign in ((p.y, 1), (p.y, -1), (p.high, 1), (p.low, -1)):
        if curve is None:
            continue
        gap = np.isnan(curve)
        height = np.where(gap, -np.inf, sign * curve)
        for a, b in zip(starts.tolist(), [*starts[1:].tolist(), n], strict=True):
            keep.add(a + int(height[a:b].argmax()))
            if gap[a:b].any():
                keep.add(a + int(gap[a:b].argmax()))
    return np.array(sorted(keep), dtype=np.int64)


def band(p: Points) -> Iterator[tuple[Floats, Floats, Floats]]:
    """(x, low, high) of each stretch between gaps, so that a band does not bridge one; nothing without a band."""
    if p.low is None or p.high is None:
        return
    holes = np.flatnonzero(np.isnan(p.y) | np.isnan(p.low) | np.isnan(p.high)).tolist()
    for a, b in zip([-1, *holes], [*holes, len(p.x)], strict=True):
        if b - a > 1:
            yield p.x[a + 1 : b], p.low[a + 1 : b], p.high[a + 1 : b]


def y_range(charts: Iterable[Single]) -> tuple[float, float] | None:
    """One range for the y axes of all Lines among `charts`, with a margin; None if there is nothing to show."""
    found: list[Floats] = []
    log = False
    for one in charts:
        if not isinstance(one, Lines):
            continue
        log |= one.log_y
        found.append(np.array([line.value for line in one.references if line.axis == "y"]))
        shown = [points(s, log_x=one.log_x, log_y=one.log_y) for s in one.series]
        found += [c for p in shown for c in p[1:] if c is not None]
    values = np.concatenate(found) if found else np.zeros(0)
    values = values[np.isfinite(values) & ((values > 0) | (not log))]
    if not values.size:
        return None
    ends = np.array([values.min(), values.max()])
    ends = np.log10(ends) if log else ends
    margin = 0.05 * (ends[1] - ends[0]) or 0.5
    ends += [-margin if log or ends[0] != 0 else 0.0, margin]
    return tuple((10.0**ends if log else ends).tolist())


def places(chart: Dots) -> list[Floats]:
    """Where the dots of each group stand on the axis of categories, 0, 1, ..: those of one category close together, in order."""
    n = len(chart.groups)
    middle = np.arange(len(chart.categories), dtype=np.float64)
    return [middle + (i - (n - 1) / 2) * 0.6 / n for i in range(n)]


def whiskers(group: Group, log: bool) -> tuple[Floats, Floats] | None:
    """How far the whiskers reach to the left and to the right; on a logarithmic axis at most a decade to the left."""
    if group.low is None or group.high is None:
        return None
    x, low, high = (np.asarray(column) for column in (group.x, group.low, group.high))
    return x - (np.maximum(low, x / 10) if log else low), high - x


def z_range(charts: Iterable[Single]) -> tuple[float, float] | None:
    """One colour range for all Heats among `charts`."""
    found = [z for one in charts if isinstance(one, Heat) for z in np.asarray(one.z).ravel().tolist() if np.isfinite(z)]
    return (min(found), max(found)) if found else None


def number_text(value: float, percent: bool = False) -> str:
    """A number as it stands in a cell."""
    number = 100 * value if percent else value
    return (f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}") + ("%" if percent else "")


def wrapped(text: str, width: int = 20, lines: int = 2) -> list[str]:
    """A long label on a few short lines, with "…" for what does not fit."""
    return textwrap.wrap(text, width, max_lines=lines, placeholder="…") or [""]
