"""Charts: what is drawn is what was given, the same in both back ends, and bands are over seeds and say so."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import numpy as np
import pytest

from oldlight.report.chart_geometry import BUCKETS, PALETTE, looks, points, y_range
from oldlight.report.charts import (
    Chart,
    Dots,
    Group,
    Heat,
    Lines,
    Panels,
    Reference,
    Series,
    bands,
    caption_of,
    seeds_band,
    singles,
)
from oldlight.report.draw_matplotlib import inline_svg, picture, to_matplotlib
from oldlight.report.draw_plotly import shared, spec
from repeats import is_thorough

ODD = "<b>a</b> & $x^2$ %{y} </script>"


def lines(*labels: str, **more: Any) -> Lines:
    x = np.arange(1, 6)
    return Lines(
        "Lines", "episode", "regret", [Series(label, x, x * (i + 1.0)) for i, label in enumerate(labels)], **more
    )


def some_charts() -> dict[str, Chart]:
    rng = np.random.default_rng(3)
    x = np.arange(1, 2001)
    runs = np.cumsum(rng.random((3, 2000)), axis=1)
    banded = Lines(
        "With a band", "episode", "regret", [Series.over_seeds("a", x, runs), Series("b", x, 0.3 * x, dash="broken", marks=True)],
        band=seeds_band(3), references=[Reference("best", 700), Reference("half", 1000, "x")],
    )  # fmt: skip
    logs = Lines("Logs", "k", "R", [Series.over_seeds(ODD, x, runs), Series("b", x, x**0.5)], log_x=True, log_y=True, band="sd",
                 references=[Reference("r", 10.0)])  # fmt: skip
    dots = Dots("Dots", "regret", ["one", "two", ODD], [Group.over_seeds(f"g{i}", rng.random((4, 3))) for i in range(2)],
                band=seeds_band(4), references=[Reference("best", 0.5, "x")], percent_x=True)  # fmt: skip
    heat = Heat(
        "Heat", "delay", "loss", "price", [0, 1, 2], ["0%", ODD], [[0.0, 0.1, 0.2], [0.3, np.nan, 0.5]], percent=True
    )
    return {
        "lines": banded,
        "logs": logs,
        "dots": dots,
        "heat": heat,
        "panels": Panels("All", [banded, dots, heat, logs]),
    }


# -- bands ----------------------------------------------------------------------------------------------------------------


def test_bands_are_over_seeds() -> None:
    runs = [[1.0, 2.0], [3.0, 6.0], [5.0, 10.0]]  # sd with n − 1: 2 and 4
    series, group = Series.over_seeds("a", [1, 2], runs), Group.over_seeds("a", runs)
    for found, mean in ((series, series.y), (group, group.x)):
        assert np.array_equal(mean, [3, 6])
        assert found.low is not None
        assert found.high is not None
        assert np.allclose([found.low, found.high], [[1, 2], [5, 10]])
    alone = Series.over_seeds("a", [1, 2], runs[:1])
    assert (alone.low, alone.high) == (None, None)


def test_a_band_must_say_what_it_is() -> None:
    banded = Series.over_seeds("a", [1, 2], [[1, 2], [3, 4]])
    with pytest.raises(ValueError, match="shows a band and does not say which"):
        Lines("t", "x", "y", [banded])
    with pytest.raises(ValueError, match="shows a band and does not say which"):
        Dots("t", "x", ["c"], [Group("a", [1.0], [0.5], [1.5])])
    told = Lines("t", "x", "y", [banded], band=seeds_band(2), caption="Regret.")
    assert caption_of(told) == "Regret. Band: mean ± 1 standard deviation over 2 seeds."
    assert bands(Panels("p", [told, told])) == ["Band: mean ± 1 standard deviation over 2 seeds."]
    assert "Band: mean ± 1 standard deviation over 2 seeds." in picture(to_matplotlib(told), "svg", "n").decode()
    dots = Dots("t", "x", ["c"], [Group("a", [1.0], [0.5], [1.5])], band="95% interval.")
    assert caption_of(dots) == "Whiskers: 95% interval."


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Series("a", [1, 2], [1, 2, 3]), r"y of series 'a' has shape \(3,\), expected 2 numbers"),
        (lambda: Series("a", [1, np.nan], [1, 2]), r"x of series 'a'\[point=1\] is nan"),
        (lambda: Series("a", [1, 2], [1, np.inf]), r"y of series 'a'\[1\] is infinite"),
        (lambda: Series("a", [1], [1], low=[0]), "only one edge of its band"),
        (lambda: Series("a", [1], [1], low=[2], high=[0]), "low of series 'a' lies above high at index 0"),
        (lambda: Series("a", [1], [1], dash="dashed"), "dash of series 'a' is 'dashed', expected one of 'solid', 'broken'"),
        (lambda: Series.over_seeds("a", [1, 2], [1, 2]), "expected one row per seed"),
        (lambda: lines(), "has no series"),
        (lambda: lines("a", "a"), "has 'a' twice"),
        (lambda: lines("a", log_y=True, references=[Reference("r", 0.0)]), "is 0, expected > 0 on a logarithmic axis"),
        (lambda: Dots("t", "x", ["c"], [Group("a", [1, 2])]), "has 2 dots, expected one per category: 1"),
        (lambda: Dots("t", "x", ["c"], [Group("a", [1])], [Reference("r", 1, "y")]), "is on the y axis, which has only categories"),
        (lambda: Heat("t", "x", "y", "z", [1, 2], [1], [[1], [2]]), r"shape \(2, 1\), expected \(y, x\) = \(1, 2\)"),
        (lambda: Panels("t", []), "has no charts"),
        (lambda: Reference("r", 1, "z"), "axis of reference 'r' is 'z'"),
    ],
)  # fmt: skip
def test_refusals(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


# -- long curves ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("log", [False, True])
def test_thinning_keeps_every_peak_and_stays_within_the_curve(log: bool) -> None:
    rng = np.random.default_rng(1)
    x = np.arange(1.0, 10_001.0)
    y = 300 + np.cumsum(rng.standard_normal(10_000))
    y[[2_222, 7_777]] = 1000.0, 1.0  # single peaks
    spread = rng.random(10_000)
    full = Series("a", x, y, y - spread, y + spread)
    p = points(full, log_x=log)
    assert len(p.x) <= 4 * BUCKETS + 2
    assert (p.x[0], p.x[-1]) == (1, 10_000)
    assert set(zip(p.x, p.y, strict=True)) <= set(zip(x, y, strict=True))
    assert p.low is not None
    assert p.high is not None
    along = np.log(x) if log else x
    bucket = np.minimum(((along - along[0]) / (along[-1] - along[0]) * BUCKETS).astype(int), BUCKETS - 1)
    kept = bucket[(p.x - 1).astype(int)]
    between = np.interp(along, np.log(p.x) if log else p.x, p.y)
    for b in range(BUCKETS):
        mine = bucket == b
        if not mine.any():
            continue
        assert p.y[kept == b].max() == y[mine].max()
        assert p.y[kept == b].min() == y[mine].min()
        assert p.high[kept == b].max() == (y + spread)[mine].max()
        assert p.low[kept == b].min() == (y - spread)[mine].min()
        near = y[np.abs(bucket - b) <= (BUCKETS if log and mine.sum() < 2 else 1)]
        assert near.min() <= between[mine].min()
        assert between[mine].max() <= near.max()


def test_short_curves_keep_every_point_and_gaps_stay_gaps() -> None:
    x = np.arange(400.0)
    assert np.array_equal(points(Series("a", x, x)).x, x)
    back = Series("a", [0.0, 2.0, 1.0] * 300, np.arange(900.0))
    assert len(points(back).x) == 900
    y = np.arange(5000.0)
    y[2000:2500] = np.nan
    p = points(Series("a", np.arange(5000), y, y - 1, y + 1))
    hole = np.isnan(p.y)
    assert hole.any()
    assert not hole[(p.x < 2000) | (p.x >= 2500)].any()
    data = spec(Lines("t", "x", "y", [Series("a", np.arange(5000), y, y - 1, y + 1)], band="sd"))["data"]
    band = data[0]
    assert band["x"].count(None) == 1, "the band is two polygons"
    assert not any(v is not None and 2000 < v < 2499 for v in band["x"])


def test_logarithmic_axes_drop_what_they_cannot_show() -> None:
    p = points(Series("a", [0, 1, 10, 100], [5, 0, 1, 10], [0, -1, -5, 9], [6, 1, 7, 11]), log_x=True, log_y=True)
    assert np.array_equal(p.x, [1, 10, 100])
    assert np.array_equal(np.isnan(p.y), [True, False, False])
    assert p.low is not None
    assert p.low.min() == pytest.approx(0.1)  # a decade below the smallest point


# -- looks ----------------------------------------------------------------------------------------------------------------


def test_one_label_has_one_look_and_no_two_labels_share_one() -> None:
    many = lines(*(f"label {i}" for i in range(2 * len(PALETTE))))
    found = looks(Panels("p", [lines("label 3", "label 0"), many]))
    assert list(found)[:2] == ["label 3", "label 0"]
    assert len({(look.colour, look.dash) for look in found.values()}) == len(found) == 2 * len(PALETTE)
    paper = Lines("t", "x", "y", [Series("c", [1], [1], colour=2), Series("s", [1], [1], colour=2, dash="broken")])
    assert [(look.colour, look.dash) for look in looks(paper).values()] == [
        (PALETTE[2], "solid"),
        (PALETTE[2], "broken"),
    ]


# Machado, Oliveira, Fernandes (2009), severity 1: what people without one kind of cone see, in linear RGB
BLINDNESS = {
    "none": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


@pytest.mark.parametrize("kind", BLINDNESS)
def test_colours_can_be_told_apart(kind: str) -> None:
    """Every pair differs by ΔE ≥ 10 in CIE Lab (about 2.3 is just noticeable) for each kind of colour vision."""
    rgb = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in PALETTE])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.array(BLINDNESS[kind]).T, 0, 1)
    to_xyz = np.array(
        [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    )
    f = np.cbrt(seen @ to_xyz.T / [0.95047, 1.0, 1.08883])
    lab = np.column_stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])])
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(lab, 2)) >= 10


# -- both back ends -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["lines", "logs"])
def test_both_back_ends_draw_the_same_curves(name: str) -> None:
    chart = some_charts()[name]
    assert isinstance(chart, Lines)
    figure = to_matplotlib(chart)
    drawn = {line.get_label(): line for line in figure.axes[0].get_lines()}
    traces = {t["legendgroup"]: t for t in spec(chart)["data"] if "hovertemplate" in t}
    for series in chart.series:
        look = looks(chart)[series.label]
        line, trace = drawn[series.label], traces[f"k{look.key}"]
        assert np.allclose(np.array(trace["x"], float), line.get_xdata(), rtol=1e-5)
        assert np.allclose(np.array(trace["y"], float), line.get_ydata(), rtol=1e-5)
        assert trace["line"]["color"] == line.get_color() == look.colour
        assert (trace["line"]["dash"] == "solid") == (line.get_linestyle() == "-") == (look.dash == "solid")
    shades = [t for t in spec(chart)["data"] if t.get("fill")]
    areas = figure.axes[0].collections
    assert len(shades) == len(areas) == 1
    corners = areas[0].get_paths()[0].vertices
    assert max(v for v in shades[0]["y"] if v is not None) == pytest.approx(corners[:, 1].max(), rel=1e-5)
    assert min(v for v in shades[0]["y"] if v is not None) == pytest.approx(corners[:, 1].min(), rel=1e-5)
    assert figure.axes[0].get_xscale() == spec(chart)["layout"]["xaxis"]["type"]


def test_both_back_ends_draw_the_same_dots_and_cells() -> None:
    dots, heat = some_charts()["dots"], some_charts()["heat"]
    assert isinstance(dots, Dots)
    assert isinstance(heat, Heat)
    drawn = to_matplotlib(dots).axes[0].containers
    for trace, group, here in zip(spec(dots)["data"], dots.groups, drawn, strict=True):
        assert np.allclose([trace["x"], trace["y"]], here.lines[0].get_data(), rtol=1e-5)
        assert np.allclose(trace["x"], np.asarray(group.x), rtol=1e-5)
        assert np.allclose(np.add(trace["x"], trace["error_x"]["array"]), np.asarray(group.high), rtol=1e-4)
        ends = np.array([segment[:, 0] for segment in here.lines[2][0].get_segments()])
        assert np.allclose(ends.T, [np.asarray(group.low), np.asarray(group.high)])
    image = to_matplotlib(heat).axes[0].images[0].get_array()
    cells = np.array(spec(heat)["data"][0]["z"], dtype=float)
    assert np.array_equal(np.isnan(cells), image.mask)
    assert np.allclose(cells[~image.mask], image.compressed())
    assert spec(heat)["data"][0]["text"][0] == ["0%", "10%", "20%"]


def test_labels_of_categories_do_not_overlap() -> None:
    """As many and as long as the learners' on the paper's page; whiskers on a logarithmic axis reach down a decade at most."""
    labels = [f"{name}{option}" for name in ("AugmentedQLearning", "PosteriorSampling", "MemorylessUCBVI", "DelayedUCBVI")
              for option in ("", ", pooled", ", paper's bonus, and so on")]  # fmt: skip
    runs = 10.0 ** np.random.default_rng(2).uniform(1, 4, (2, len(labels)))
    chart = Dots("t", "regret", labels, [Group.over_seeds(f"delay {d}", runs) for d in range(4)], log_x=True, band="sd")
    figure = to_matplotlib(chart)
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in figure.axes[0].get_yticklabels()]
    assert len(boxes) == len(labels)
    for one, other in itertools.combinations(boxes, 2):
        assert not one.overlaps(other)
    assert figure.axes[0].get_xscale() == spec(chart)["layout"]["xaxis"]["type"] == "log"
    wide = Dots("t", "x", ["c"], [Group("a", [10.0], [-30.0], [50.0])], log_x=True, band="sd")
    assert spec(wide)["data"][0]["error_x"]["arrayminus"] == [9.0]


def test_shared_panels_have_one_range() -> None:
    low, high = lines("a"), Lines("b", "x", "y", [Series("a", [1, 2], [50, 90])])
    both = Panels("p", [low, high], share=True)
    limits = y_range(both.charts)
    assert limits is not None
    assert limits[0] < 1
    assert limits[1] > 90
    assert {ax.get_ylim() for ax in to_matplotlib(both).axes} == {limits}
    for one in both.charts:
        assert spec(one, **shared(both))["layout"]["yaxis"]["range"] == pytest.approx(limits)
    assert len({ax.get_ylim() for ax in to_matplotlib(Panels("p", [low, high])).axes}) == 2


@pytest.mark.parametrize("name", some_charts())
def test_plotly_accepts_every_chart(name: str) -> None:
    """Plotly's own schema refuses a property that does not exist."""
    from plotly.graph_objects import Figure

    chart = some_charts()[name]
    figures = [Figure(spec(one, looks(chart), **shared(chart))) for one in singles(chart)]
    named = {trace.name for figure in figures for trace in figure.data if trace.type != "heatmap"}
    assert len(named) == len(looks(chart))
    for figure in figures:
        assert "<b>" not in figure.to_json().replace("\\u003cb\\u003e%{", "").replace("<b>%{", "")


def test_labels_are_plain_text_in_both() -> None:
    chart = lines(ODD)
    assert spec(chart)["data"][0]["name"] == "&lt;b&gt;a&lt;/b&gt; &amp; &#36;x^2&#36; %{y} &lt;/script&gt;"
    root = ElementTree.fromstring(
        picture(to_matplotlib(Lines(ODD, ODD, ODD, [Series(ODD, [1], [1]), Series("b", [1], [1])])), "svg", "n")
    )
    texts = ["".join(t.itertext()) for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count(ODD) == 4  # title, two axes, legend


@pytest.mark.parametrize("name", some_charts() if is_thorough() else ["panels"])  # it has all of them
def test_pictures_have_letters_and_are_the_same_every_time(name: str) -> None:
    chart = some_charts()[name]
    svg, pdf = (picture(to_matplotlib(chart), kind, name) for kind in ("svg", "pdf"))
    assert svg == picture(to_matplotlib(some_charts()[name]), "svg", name)
    assert pdf == picture(to_matplotlib(some_charts()[name]), "pdf", name)
    assert chart.title in svg.decode()
    assert b"/FontFile2" in pdf, "the font is embedded"
    ElementTree.fromstring(svg)


def test_drawings_in_a_page_do_not_meet() -> None:
    svg = picture(to_matplotlib(lines("a", "b")), "svg", "same")
    made = [inline_svg(svg, name) for name in ("one", "two")]
    ids = [re.findall(r'id="([^"]+)"', text) for text in made]
    assert not set(ids[0]) & set(ids[1])
    for text, known in zip(made, ids, strict=True):
        root = ElementTree.fromstring(text)
        used = set(re.findall(r'(?:href="|url\()#([^")]+)', text))
        assert used
        assert used <= set(known), "a reference leads nowhere"
        styles = "".join(e.text or "" for e in root.iter("{http://www.w3.org/2000/svg}style"))
        assert all(rule.strip().startswith("#") for rule in re.findall(r"([^{}]+)\{", styles)), (
            "a style would hold for the whole page"
        )
        assert not re.search(r"https?://(?!www\.w3\.org/)", text)
