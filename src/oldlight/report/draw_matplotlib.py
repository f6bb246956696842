"""Charts for print: matplotlib figures, and the bytes of their SVG and PDF files.

In SVG letters stay letters (they can be searched and edited), in PDF the fonts are embedded. The same figure and name give the same
bytes: no dates, no random names inside. A band says in the figure which one it is, under the legend.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

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
from oldlight.report.charts import Chart, Dots, Heat, Lines, Panels, Single, bands, singles

STROKES: dict[str, Any] = {
    "solid": "-",
    "broken": (0, (5, 2.2)),
    "dotted": (0, (1.2, 1.6)),
    "dash-dot": (0, (6, 2, 1.2, 2)),
}
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.25,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "text.parse_math": False,  # a dollar is a dollar
}
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def to_matplotlib(chart: Chart, *, titled: bool = True) -> Any:
    """A matplotlib Figure, with its title unless told otherwise."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    charts, shown = singles(chart), looks(chart)
    columns = 2 if len(charts) == 4 else min(len(charts), 3)
    rows = -(-len(charts) // columns)
    with rc_context(STYLE):
        width = 5.4 if columns == 1 else 3.9 * columns
        keys = ["\n".join(wrapped(label, 44, 3)) for label in shown]
        longest = max((len(line) for key in keys for line in key.splitlines()), default=1)
        across = max(1, min(len(keys), int(width / (0.6 + 0.075 * longest))))
        legend_rows = -(-sum(1 + key.count("\n") for key in keys) // across)
        tall = max([3.1, *(0.6 + 0.34 * len(one.categories) for one in charts if isinstance(one, Dots))])
        fig = Figure(figsize=(width, tall * rows + 0.4 + 0.18 * legend_rows), layout="constrained")
        axes = fig.subplots(rows, columns, squeeze=False).ravel()
        share = isinstance(chart, Panels) and chart.share
        y, z = (y_range(charts), z_range(charts)) if share else (None, None)
        for i, (one, place) in enumerate(zip(charts, axes, strict=False)):
            _draw(one, place, shown, y, z)
            if share and i % columns and place.get_ylabel() == axes[i - i % columns].get_ylabel():
                place.set_ylabel("")
            if len(charts) > 1:
                place.set_title(one.title)
        for place in axes[len(charts) :]:
            place.remove()
        if titled:
            fig.suptitle(chart.title, fontsize=11)
        _legend(fig, chart, dict(zip(shown, keys, strict=True)), across)
    return fig


def picture(figure: Any, format: str, name: str) -> bytes:
    """The figure as an "svg" or "pdf" file. `name` makes the identifiers inside; equal names give equal bytes."""
    from matplotlib import rc_context

    stream = io.BytesIO()
    unsaid = {"Date": None} if format == "svg" else {"CreationDate": None}
    with rc_context({**STYLE, "svg.fonttype": "none", "svg.hashsalt": name, "pdf.fonttype": 42}):
        figure.savefig(stream, format=format, metadata={**unsaid, "Creator": "oldlight"})
    return stream.getvalue()


def inline_svg(svg: bytes, name: str) -> str:
    """An SVG file as an element of a page: without head, metadata and background; identifiers and styles are its own."""
    text = svg.decode("utf-8")
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.S)
    text = re.sub(r'<g id="patch_1">.*?</g>', "", text, count=1, flags=re.S)  # the figure's white ground is drawn first
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'(href="|url\()#', rf"\1#{name}-", text)
    # a style in a page holds for the whole page
    text = text.replace("*{stroke-linejoin", f"#{name} *{{stroke-linejoin")
    return text.replace("<svg ", f'<svg id="{name}" focusable="false" ', 1).strip()


def _draw(
    chart: Single, ax: Any, shown: dict[str, Look], y: tuple[float, float] | None, z: tuple[float, float] | None
) -> None:
    ax.set_xlabel(chart.x_label)
    if isinstance(chart, Heat | Lines):
        ax.set_ylabel(chart.y_label)
    if isinstance(chart, Heat):
        return _heat(chart, ax, z)
    if isinstance(chart, Lines):
        _lines(chart, ax, shown)
        _axis(ax.yaxis, chart.log_y, chart.percent_y)
        if y is not None:
            ax.set_ylim(y)
    else:
        _dots(chart, ax, shown)
    _axis(ax.xaxis, chart.log_x, chart.percent_x)
    for line in chart.references:
        across = line.axis == "y"
        (ax.axhline if across else ax.axvline)(line.value, color=GREY, lw=1, ls=STROKES["dotted"], zorder=1.5)
        frame = ax.get_yaxis_transform() if across else ax.get_xaxis_transform()
        at = (1.0, line.value) if across else (line.value, 1.0)
        side = (
            {"ha": "right", "va": "bottom", "xytext": (0, 2)}
            if across
            else {"ha": "left", "va": "top", "xytext": (3, 0)}
        )
        ax.annotate(line.label, at, xycoords=frame, textcoords="offset points", color=GREY, fontsize=8, **side)


def _lines(chart: Lines, ax: Any, shown: dict[str, Look]) -> None:
    for series in chart.series:
        look = shown[series.label]
        p = points(series, log_x=chart.log_x, log_y=chart.log_y)
        mark = {"marker": "o", "ms": 4} if look.marks else {}
        ax.plot(p.x, p.y, color=look.colour, ls=STROKES[look.dash], lw=1.5, label=series.label, **mark)
        for x, low, high in band(p):
            ax.fill_between(x, low, high, color=look.colour, alpha=0.18, lw=0)


def _dots(chart: Dots, ax: Any, shown: dict[str, Look]) -> None:
    for group, at in zip(chart.groups, places(chart), strict=True):
        look = {"color": shown[group.label].colour, "fmt": "o", "ms": 4.5, "elinewidth": 1.2, "capsize": 2}
        ax.errorbar(np.asarray(group.x), at, xerr=whiskers(group, chart.log_x), label=group.label, **look)
    ax.set_yticks(range(len(chart.categories)), _ticks(chart.categories))
    ax.set_ylim(len(chart.categories) - 0.4, -0.6)
    ax.grid(False, axis="y")
    for i in range(1, len(chart.categories)):
        ax.axhline(i - 0.5, color=GREY, lw=0.4, alpha=0.5)


def _heat(chart: Heat, ax: Any, limits: tuple[float, float] | None) -> None:
    from matplotlib.ticker import FuncFormatter

    z = np.ma.masked_invalid(np.asarray(chart.z))
    low, high = limits or z_range([chart]) or (0.0, 1.0)
    image = ax.imshow(z, origin="lower", aspect="auto", cmap="cividis", vmin=low, vmax=high)
    ax.set_xticks(range(len(chart.x)), _ticks(chart.x))
    ax.set_yticks(range(len(chart.y)), _ticks(chart.y))
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    for (i, j), value in np.ndenumerate(np.asarray(chart.z)):
        if np.isfinite(value):
            dark = value < (low + high) / 2
            size = 7 if len(chart.x) <= 10 else 5.5
            ax.text(
                j, i, number_text(value, chart.percent), ha="center", va="center", size=size, color="w" if dark else "k"
            )
    bar = ax.figure.colorbar(image, ax=ax, label=chart.z_label, pad=0.02)
    bar.outline.set_visible(False)
    if chart.percent:
        bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: number_text(v, True)))


def _ticks(found: Sequence[Any]) -> list[str]:
    return ["\n".join(wrapped(str(name))) for name in found]


def _axis(axis: Any, log: bool, percent: bool) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter, StrMethodFormatter

    if log:
        (axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale)("log")
        axis.set_major_formatter(FuncFormatter(lambda v, _: _power(v, percent)))
        axis.set_minor_formatter(NullFormatter())
    elif percent:
        axis.set_major_formatter(FuncFormatter(lambda v, _: number_text(v, True)))
    elif max(abs(v) for v in axis.get_view_interval()) >= 1000:
        axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def _power(value: float, percent: bool) -> str:
    if percent or 0.01 <= value < 1000:
        return number_text(value, percent)
    return "10" + str(round(np.log10(value))).translate(SUPERSCRIPT)


def _legend(fig: Any, chart: Chart, shown: dict[str, str], columns: int) -> None:
    caption = " ".join(bands(chart)) or None
    if not shown or (len(shown) == 1 and caption is None and len(singles(chart)) == 1):
        return
    found: dict[str, Any] = {}
    for ax in fig.axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    fig.legend(
        [found[label] for label in shown],
        list(shown.values()),
        loc="outside lower center",
        ncols=columns,
        title=caption,
        title_fontsize=7,
        handlelength=2.6,
    )
