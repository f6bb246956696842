"""Pages: complete in themselves, safe with users' words, and never half written."""

from __future__ import annotations

import os
import re
import resource
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oldlight import instances
from oldlight.paper.diagrams import chain
from oldlight.report import environment_info as environment_info
from oldlight.report.charts import Lines, Panels, Series, seeds_band
from oldlight.report.markup import inline, local, markup, plain
from oldlight.report.page import Marked, Number, Page, Table
from oldlight.report.table import cell_html, number

HOSTILE = "</script></style><script>alert(1)</script><img src=x onerror=alert(1)>\" onload='x' &lt; ]]>"


def chart(title: str = "Regret", label: str = "a") -> Lines:
    return Lines(
        title, "episode", "regret", [Series.over_seeds(label, [1, 2, 3], [[1, 2, 3], [2, 3, 4]])], band=seeds_band(2)
    )


def small(title: str = "A page") -> Page:
    page = Page(title, lead="Measured.")
    page.section("First")
    page.figure(chart())
    page.section("Second")
    page.section("Under it", level=3)
    page.text("See [the figure](#fig-regret).")
    page.table(Table(["a", "b"], [["x", 1], ["y", 2.5]]))
    page.made(
        settings={"K": 10_000, "c": 0.02}, commands=["oldlight paper --quick"], versions={"oldlight": "0"}, machine={}
    )
    return page


class Reader(HTMLParser):
    """The elements of a page, as a browser takes it apart."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.found if name == tag]


# -- the page -------------------------------------------------------------------------------------------------------------


def test_everything_is_inside_and_plotly_once() -> None:
    from plotly.offline import get_plotlyjs

    text = small().html()
    head = get_plotlyjs()[:400]
    assert text.count(head) == 1
    own = text.replace(get_plotlyjs(), "")
    assert len(own) < len(text) - 1_000_000
    assert not re.search(r"(https?:)?//(?!www\.w3\.org/)[a-z]", re.sub(r"\s//\s.*", "", own)), (
        "an address that is not the page's own"
    )
    page = Reader(own)
    assert not page.all("link")[1:]
    assert all("src" not in attrs for attrs in page.all("script"))
    policy = next(a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_a_page_without_charts_has_no_plotly() -> None:
    page = Page("Only words")
    page.text("Words.")
    page.figure(chain(instances.sensing_chain(0.8)))
    assert len(page.html()) < 300_000


def test_anchors_are_unique_and_links_find_them(tmp_path: Path) -> None:
    page = small()
    again = page.section("First")
    assert again == "first-2"
    assert page.figure(chart()) == "fig-regret-2"
    path = page.write(tmp_path / "deep" / "er" / "report.html")
    found = Reader(path.read_text(encoding="utf-8"))
    ids = [attrs["id"] for _, attrs in found.found if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = [str(attrs["href"]) for attrs in found.all("a")]
    assert {"#first", "#second", "#under-it", "#fig-regret", "figures/regret.svg", "figures/regret-2.pdf"} <= set(links)
    for link in links:
        assert link[1:] in ids if link.startswith("#") else (path.parent / link).is_file(), link
    assert sorted(p.name for p in (path.parent / "figures").iterdir()) == [
        "regret-2.pdf",
        "regret-2.svg",
        "regret.pdf",
        "regret.svg",
    ]
    assert (path.parent / "figures" / "regret.pdf").read_bytes()[:5] == b"%PDF-"
    assert sorted(p.name for p in path.parent.iterdir()) == ["figures", "report.html"]


def test_words_of_users_are_words() -> None:
    page = Page(HOSTILE)
    page.section(HOSTILE)
    page.figure(Panels(HOSTILE, [chart(HOSTILE, HOSTILE), chart("b", HOSTILE)], caption=HOSTILE))
    page.table(Table([HOSTILE], [[HOSTILE], [Number(1, HOSTILE)], [Marked(HOSTILE)]], caption=HOSTILE))
    page.text(plain(HOSTILE))
    page.note(HOSTILE)
    page.made(settings={HOSTILE: {HOSTILE: [HOSTILE]}}, commands=[HOSTILE], versions={}, machine={HOSTILE: HOSTILE})
    harmless = Page("a")
    harmless.section("a")
    harmless.figure(Panels("a", [chart("b", "a"), chart("c", "a")], caption="a"))
    harmless.table(Table(["a"], [["a"], [Number(1, "a")], [Marked("a")]], caption="a"))
    harmless.text("a")
    harmless.note("a")
    harmless.made(settings={"a": {"a": ["a"]}}, commands=["a"], versions={}, machine={"a": "a"})
    found, expected = Reader(page.html()), Reader(harmless.html())
    for tag in ("script", "style", "img", "b", "iframe"):
        assert len(found.all(tag)) == len(expected.all(tag)), tag
    assert not any(name.startswith("on") for _, attrs in found.found for name in attrs)
    assert sum(HOSTILE in words for words in found.words) >= 12


def test_contents_are_nested() -> None:
    text = small().html()
    nav = text[text.index("<nav") : text.index("</nav>")]
    assert '<li><a href="#second">Second</a><ol><li><a href="#under-it">Under it</a></li></ol></li>' in nav


def test_how_it_was_made() -> None:
    page = Page("a")
    page.made(
        settings={"seeds": [0, 1], "problem": {"p": 0.8}}, commands=["oldlight run a.toml", "oldlight report runs"]
    )
    text = page.html()
    assert "<dt>problem</dt><dd>p = 0.8</dd>" in text
    assert "oldlight run a.toml\noldlight report runs" in text
    for name, version in environment_info.versions().items():
        assert f"<dt>{name}</dt><dd>{version}</dd>" in text
    assert {"Python", "oldlight", "numpy"} <= set(environment_info.versions())
    assert set(environment_info.this_machine()) == {"processor", "cores", "memory", "system"}


# -- writing --------------------------------------------------------------------------------------------------------------


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a page, drawn once."""
    return small("Old").write(tmp_path_factory.mktemp("written") / "report.html").parent


@pytest.fixture
def old(written: Path, tmp_path: Path) -> Path:
    """A copy of it, to be written over."""
    return Path(shutil.copytree(written, tmp_path / "old"))


def test_the_same_page_has_the_same_bytes(written: Path, tmp_path: Path) -> None:
    small("Old").write(tmp_path / "two" / "report.html")
    assert contents(written) == contents(tmp_path / "two")


@pytest.fixture
def small_files() -> Any:
    """No file may grow beyond 1 MB, as on a full disk: the system itself refuses."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_the_old_page(old: Path, small_files: Callable[[], None]) -> None:
    before = contents(old)
    new = small("New")
    new.figure(chart("Another"))
    small_files()
    with pytest.raises(
        OSError, match=r"report\.html could not be written \(File too large\); what was there before is untouched"
    ):
        new.write(old / "report.html")
    assert contents(old) == before


def test_a_fault_while_figures_are_written_leaves_all_of_the_old(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(old)
    calls = []

    def failing(number: int) -> None:
        calls.append(number)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OSError, match="No space left on device"):
        small("New").write(old / "report.html")
    assert contents(old) == before
    assert sorted(p.name for p in old.iterdir()) == ["figures", "report.html"]


def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(OSError, match=r"report\.html could not be written"):
        small().write(tmp_path / "file" / "report.html")


# -- text -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("V* and π* and Q*(s)", "V* and π* and Q*(s)"),
        ("*soft* and **hard**, `a*b*c`", "<em>soft</em> and <strong>hard</strong>, <code>a*b*c</code>"),
        ("(V*)−(Q*)", "(V*)−(Q*)"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("a < b & `<i>`", "a &lt; b &amp; <code>&lt;i&gt;</code>"),
        ("[here](#fig-a)", '<a href="#fig-a">here</a>'),
        ("[file](figures/a.pdf)", '<a href="figures/a.pdf">file</a>'),
        ("[out](https://example.org/)", "[out](https://example.org/)"),
        ("[paper](https://arxiv.org/abs/2306.01243)", '<a href="https://arxiv.org/abs/2306.01243">paper</a>'),
        ("[paper](https://doi.org/10.1007/s1-2)", '<a href="https://doi.org/10.1007/s1-2">paper</a>'),
        ("[out](https://arxiv.org.evil.org/abs/1)", "[out](https://arxiv.org.evil.org/abs/1)"),
        ('[out](https://doi.org/"x)', "[out](https://doi.org/&quot;x)"),
        ("[out](//example.org/)", "[out](//example.org/)"),
        ("[bad](javascript:alert)", "[bad](javascript:alert)"),
        ('[bad](#"onclick="x)', '<a href="#&quot;onclick=&quot;x">bad</a>'),
        (r"\*plain\* \[a\]", "*plain* [a]"),
        ("**see [it](#x)**", '<strong>see <a href="#x">it</a></strong>'),
        ("V_h^{d}", "V_h^{d}"),
    ],
)  # fmt: skip
def test_marks(text: str, html: str) -> None:
    assert inline(text) == html


@pytest.mark.parametrize("text", [HOSTILE, "`*[]*` **a** \\`", "*a*", "plain"])
def test_plain_text_stays_plain(text: str) -> None:
    assert "".join(Reader(inline(plain(text))).words) == text


def test_blocks() -> None:
    text = (
        "One\nparagraph.\n\n- a\n- b\n  goes on\n\n1. c\n2. d\n\n```\ncode <1>\n\ncode 2\n```\n\n    indented\n\nEnd."
    )
    assert markup(text) == (
        '<p>One paragraph.</p>\n<ul><li>a</li><li>b goes on</li></ul>\n<ol><li>c</li><li>d</li></ol>\n'
        '<pre tabindex="0"><code>code &lt;1&gt;\n\ncode 2</code></pre>\n<pre tabindex="0"><code>indented</code></pre>\n<p>End.</p>'
    )  # fmt: skip


@pytest.mark.parametrize(
    ("target", "stays"), [("#a", True), ("a/b.svg", True), ("mailto:x", False), ("/etc", False), ("\\\\h", False)]
)
def test_local_links(target: str, stays: bool) -> None:
    assert local(target) == stays


# -- tables ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "form", "html"),
    [
        (1234567, None, "1,234,567"),
        (np.int64(-5), None, "−5"),
        (0.123456789, None, "0.12346"),
        (-0.5, ".1%", "−50.0%"),
        (3e5 + 0.4, None, "300,000"),
        (True, None, "True"),
        (Number(18.0, "18 ± 8"), ".1f", "18 ± 8"),
        (Marked("`x`"), None, "<code>x</code>"),
        ("`x`", None, "`x`"),
        (1e-7, None, "1e−07"),
    ],
)  # fmt: skip
def test_cells(cell: Any, form: str | None, html: str) -> None:
    assert cell_html(cell, form) == html


def test_missing_cells_and_values_to_sort_by() -> None:
    text = Table(["n", "w"], [[None, "a"], [float("nan"), "b"], [2.5, "c"], [np.float64(0.1) * 3, "d"]]).html()
    cells = [attrs for attrs in Reader(text).all("td") if attrs.get("class") == "number"]
    assert [c.get("data-value") for c in cells] == [None, None, "2.5", repr(0.1 * 3)]
    assert text.count("–") == 2
    assert [a["aria-sort"] for a in Reader(text).all("th")] == ["none", "none"]
    assert number(2) == "2"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Table(["a", "b"], [[1, 2], [1]]), r"rows\[1\] has 1 cells, expected one per column: 2"),
        (lambda: Table(["a", "a"], []), "columns has 'a' twice"),
        (lambda: Table(["a"], [], formats={"b": ".2f"}), "a column in formats is 'b', expected one of 'a'"),
        (lambda: Page("p").section("s", level=4), r"level is 4, expected a whole number in 2\.\.3"),
    ],
)  # fmt: skip
def test_refusals(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
