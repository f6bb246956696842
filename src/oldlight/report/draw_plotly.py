"""Charts for the page: plotly figures, to hover over, zoom into and switch on and off.

`spec(chart)` is the figure of one set of axes as plain data (what plotly.js reads), without a legend: the page has its own,
shared by all panels.

Plotly looks for markup in every text (<b>, <a href>); all texts are escaped, so a label is shown as it is written. The traces of
one label carry its `legendgroup`, "k0", "k1", ..: band, line and the same line in other panels are switched together.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.report.chart_geometry import (
    GREY,
    Look,
    band,
    looks,
    number_text,
    places,
    points,
    whiskers,
    wrapped,
    y_range,
    z_range,
)
from oldlight.report.charts import Chart, Dots, Heat, Lines, Panels, Series, Single, singles

STROKES = {"solid": "solid", "broken": "dash", "dotted": "dot", "dash-dot": "dashdot"}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
GRID = "rgba(128,128,128,0.22)"


def shared(chart: Chart) -> dict[str, tuple[float, float] | None]:
    """The ranges that panels have in common, as `spec` takes them."""
    share = isinstance(chart, Panels) and chart.share
    return {"y": y_range(singles(chart)), "z": z_range(singles(chart))} if share else {"y": None, "z": None}


def spec(
    chart: Single,
    shown: dict[str, Look] | None = None,
    *,
    y: tuple[float, float] | None = None,
    z: tuple[float, float] | None = None,
) -> dict[str, Any]:
    """{"data", "layout"} of one set of axes; `shown` are the looks of the whole figure, y and z ranges to keep to."""
    known = looks(chart) if shown is None else shown
    layout = base_layout() | {"showlegend": False}
    layout["xaxis"], layout["yaxis"] = _axis(chart.x_label), _axis("" if isinstance(chart, Dots) else chart.y_label)
    if isinstance(chart, Heat):
        data = _heat(chart, z)
        layout["xaxis"] |= _categories(chart.x)
        layout["yaxis"] |= _categories(chart.y)
        return {"data": data, "layout": layout | {"shapes": [], "annotations": []}}
    if isinstance(chart, Lines):
        data = [trace for s in chart.series for trace in _line(chart, s, known[s.label])]
        layout["yaxis"] |= _kind(chart.log_y, chart.percent_y, data, "y")
        if y is not None:
            layout["yaxis"]["range"] = np.log10(y).tolist() if chart.log_y else list(y)
    else:
        data = _dots(chart, known)
        n = len(chart.categories)
        layout["yaxis"] |= _categories(chart.categories) | {
            "type": "linear",
            "tickvals": list(range(n)),
            "zeroline": False,
        }
        layout["yaxis"]["range"] = [n - 0.4, -0.6]
    layout["xaxis"] |= _kind(chart.log_x, chart.percent_x, data, "x")
    return {"data": data, "layout": layout | _references(chart)}


def base_layout() -> dict[str, Any]:
    """Transparent, and in the page's own font; the page sets the colour of text."""
    return {
        "font": {"family": FONT, "size": 13},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 16, "r": 30, "t": 14, "b": 16},
        "hovermode": "closest",
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "rgba(128,128,128,0.7)", "activecolor": GREY},
    }


def _axis(label: str) -> dict[str, Any]:
    return {
        "title": {"text": _text(label), "standoff": 8},
        "automargin": True,
        "gridcolor": GRID,
        "zerolinecolor": GRID,
        "linecolor": "rgba(128,128,128,0.6)",
        "showline": True,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": "rgba(128,128,128,0.6)",
    }


def _categories(found: Sequence[Any]) -> dict[str, Any]:
    """Names along an axis; a long one is broken, and whole under the pointer."""
    written = ["<br>".join(_text(line) for line in wrapped(name)) for name in found]
    return {
        "type": "category",
        "showgrid": False,
        "tickmode": "array",
        "tickvals": [_text(name) for name in found],
        "ticktext": written,
    }


def _kind(log: bool, percent: bool, data: list[dict[str, Any]], axis: str) -> dict[str, Any]:
    """Linear or logarithmic; over two decades and more only the powers of ten are written, over less than that 1, 2 and 5 of each.

    Plotly writes 2 and 5 of a decade as that digit alone, unless a format is given: then it writes the whole number.
    """
    whole = {"tickformat": ",.3~%" if percent else ",~r"}
    if not log:
        return {"type": "linear", **whole}
    found = [v for trace in data for v in trace[axis] if v is not None and v > 0]
    reach = max(found) / min(found) if found else 1.0
    ticks = {"dtick": 1 if reach >= 100 else "D2", "minor": {"ticks": "outside", "ticklen": 2}} if reach >= 5 else {}
    powers = reach >= 100 and not percent
    return {"type": "log", **({"exponentformat": "power"} if powers else whole), **ticks}


def _line(chart: Lines, series: Series, look: Look) -> list[dict[str, Any]]:
    p = points(series, log_x=chart.log_x, log_y=chart.log_y)
    common = {"type": "scatter", "name": _text(series.label), "legendgroup": f"k{look.key}"}
    number = ",.4~%" if chart.percent_y else ",.5~g"
    hover = f"%{{x:{',.4~%' if chart.percent_x else ',.6~g'}}}: <b>%{{y:{number}}}</b>"
    line: dict[str, Any] = common | {
        "x": _list(p.x),
        "y": _list(p.y),
        "mode": "lines+markers" if look.marks else "lines",
        "line": {"color": look.colour, "width": 2.2, "dash": STROKES[look.dash]},
        "marker": {"size": 7},
        "hovertemplate": hover,
    }
    if p.low is None or p.high is None:
        return [line]
    edges = np.column_stack([p.low, p.high])
    line |= {
        "customdata": [_list(pair) for pair in edges],
        "hovertemplate": hover + f"<br>band %{{customdata[0]:{number}}} to %{{customdata[1]:{number}}}",
    }
    x: list[float | None] = []
    edge: list[float | None] = []
    for xs, low, high in band(p):
        gap: list[float | None] = [None] if x else []
        x += gap + _list(np.append(xs, xs[::-1]))
        edge += gap + _list(np.append(high, low[::-1]))
    shade = common | {
        "x": x,
        "y": edge,
        "mode": "lines",
        "fill": "toself",
        "fillcolor": _rgba(look.colour, 0.18),
        "line": {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    return [shade, line]


def _dots(chart: Dots, known: dict[str, Look]) -> list[dict[str, Any]]:
    number = ",.4~%" if chart.percent_x else ",.5~g"
    data = []
    for group, at in zip(chart.groups, places(chart), strict=True):
        look = known[group.label]
        dots = {
            "type": "scatter",
            "mode": "markers",
            "name": _text(group.label),
            "legendgroup": f"k{look.key}",
            "x": _list(np.asarray(group.x)),
            "y": _list(at),
            "marker": {"color": look.colour, "size": 8},
            "text": [_text(c) for c in chart.categories],
            "hovertemplate": f"%{{text}}: <b>%{{x:{number}}}</b>",
        }
        reach = whiskers(group, chart.log_x)
        if reach is not None:
            down, up = (_list(side) for side in reach)
            dots["error_x"] = {"type": "data", "array": up, "arrayminus": down, "thickness": 1.4, "width": 3}
        data.append(dots)
    return data


def _heat(chart: Heat, limits: tuple[float, float] | None) -> list[dict[str, Any]]:
    z = np.asarray(chart.z)
    texts = [["" if np.isnan(v) else number_text(v, chart.percent) for v in row] for row in z]
    trace: dict[str, Any] = {
        "type": "heatmap",
        "x": [_text(v) for v in chart.x],
        "y": [_text(v) for v in chart.y],
        "z": [_list(row) for row in z],
        "text": texts,
        "texttemplate": "%{text}",
        "colorscale": "Cividis",
        "xgap": 1,
        "ygap": 1,
        "hoverongaps": False,
        "hovertemplate": f"%{{x}}, %{{y}}: <b>%{{z:{',.4~%' if chart.percent else ',.5~g'}}}</b><extra></extra>",
        "colorbar": {
            "title": {"text": _text(chart.z_label), "side": "right"},
            "thickness": 12,
            "outlinewidth": 0,
            "tickformat": ",.3~%" if chart.percent else ",~r",
        },
    }
    if limits is not None:
        trace |= {"zmin": limits[0], "zmax": limits[1]}
    return [trace]


def _references(chart: Lines | Dots) -> dict[str, Any]:
    shapes, annotations = [], []
    for line in chart.references:
        log = isinstance(chart, Lines) and chart.log_y if line.axis == "y" else chart.log_x
        across = {"x0": 0, "x1": 1, "xref": "paper", "y0": line.value, "y1": line.value, "yref": "y"}
        up = {"y0": 0, "y1": 1, "yref": "paper", "x0": line.value, "x1": line.value, "xref": "x"}
        where = across if line.axis == "y" else up
        shapes.append({"type": "line", "line": {"color": GREY, "width": 1.3, "dash": "dot"}, **where})
        at = float(np.log10(line.value)) if log else line.value  # an annotation on a log axis stands at its exponent
        beside = (
            {"x": 1, "xref": "paper", "xanchor": "right", "y": at, "yref": "y", "yanchor": "bottom"}
            if line.axis == "y"
            else {"y": 1, "yref": "paper", "yanchor": "top", "x": at, "xref": "x", "xanchor": "left", "xshift": 3}
        )
        annotations.append(
            {"text": _text(line.label), "showarrow": False, "font": {"size": 12, "color": GREY}, **beside}
        )
    return {"shapes": shapes, "annotations": annotations}


def _list(values: NDArray[Any]) -> list[float | None]:
    """Numbers for JSON: 6 digits are more than a screen shows; a gap is None."""
    return [None if np.isnan(v) else float(f"{v:.6g}") for v in values]


def _rgba(colour: str, alpha: float) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def _text(text: str) -> str:
    """Text without markup; a dollar would begin a formula."""
    return escape(str(text), quote=False).replace("$", "&#36;")
