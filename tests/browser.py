"""A real browser for pages: `check_page` opens one as a reader would, on a phone and on a wide screen, and asks what must hold.

    with chromium() as browser:
        check_page(path, browser, screenshots=folder)

Chromium is the system's own; where there is none, `chromium` skips the test and says so.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from oldlight.report.markup import of_a_paper
from repeats import is_thorough

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--in-process-gpu",  # a process less for every browser
    # no page of its own for the address line of every window, and no process for a page that may come: nobody types here
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,SpareRendererForSitePerProcess",
]
NAMES = ("chromium", "chromium-browser", "google-chrome")
WIDTHS = {360: "phone", 1200: "wide"}


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless browser with an empty profile."""
    driver = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pages are not tested in a browser"
    )
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"none of {', '.join(NAMES)} is installed: pages are not tested in a browser")
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(path: Path, browser: Any, width: int, **context: Any) -> Iterator[Any]:
    """The page, fully drawn; afterwards: it logged no error and asked for nothing but files."""
    trouble: list[str] = []
    with browser.new_context(viewport={"width": width, "height": 800}, **context) as window:
        page = window.new_page()
        page.on("console", lambda said: trouble.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on(
            "request",
            lambda asked: None if asked.url.startswith(("file:", "data:", "blob:")) else trouble.append(asked.url),
        )
        page.goto(
            path.resolve().as_uri(), timeout=120_000
        )  # a page of some megabytes, on a machine that does other work
        if context.get("java_script_enabled", True):
            page.wait_for_selector("html[data-drawn]", state="attached", timeout=60_000)
        yield page
    assert not trouble, f"the page is in trouble: {trouble}"


def check_page(path: Path, browser: Any, *, screenshots: Path | None = None, phone: bool = True) -> dict[str, int]:
    """Everything that a page must do, on a phone too; returns how many plots, keys and tables were tried."""
    tried = {"plots": 0, "keys": 0, "tables": 0}
    for width, name in WIDTHS.items():
        if name == "phone" and not phone:
            continue
        with opened(path, browser, width) as page:
            if screenshots is not None:
                page.screenshot(path=screenshots / f"{path.stem}-{name}.png", full_page=True)
            check_layout(page, width)
            tried["plots"] = check_plots(page)
            if name == "wide":
                tried["keys"] = check_legends(page)
                tried["tables"] = check_tables(page)
                check_print(page)
    return tried


def check_layout(page: Any, width: int) -> None:
    """Nothing sticks out, tables fit a wide screen, links lead away only to papers, and those on the page find their place."""
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "the page is wider than the screen"
    if width >= min(w for w, name in WIDTHS.items() if name == "wide"):
        inside = "all => all.map(t => [t.scrollWidth, t.clientWidth, t.textContent.slice(0, 60)])"
        for wide, room, begins in page.eval_on_selector_all(".table", inside):
            assert wide <= room, f"a table is {wide} pixels wide, {room} are there: {begins}"
    links = page.eval_on_selector_all("a", "all => all.map(a => a.getAttribute('href')).filter(h => h !== null)")
    for link in links:
        away = link.startswith(("http:", "https:", "//"))
        assert not away or of_a_paper(link), f"a link leads away: {link}"
        if link.startswith("#"):
            assert page.locator(f"[id='{link[1:]}']").count() == 1, f"{link} leads nowhere"


def check_plots(page: Any) -> int:
    """Every plot shows something for every trace of it."""
    drawn = page.eval_on_selector_all(
        "figure.chart .plot",
        """all => all.map(p => [p.closest('figure').id, p.data.length,
             p.querySelectorAll('.scatterlayer .trace, .barlayer .trace, .heatmaplayer image').length,
             p.querySelectorAll('svg path').length])""",
    )
    assert page.locator("figure.undrawn").count() == 0
    for figure, traces, shown, paths in drawn:
        assert shown >= traces >= 1, f"{figure}: {shown} of {traces} traces drawn"
        assert paths > 0, f"{figure}: nothing drawn"
    boxes = """all => all.map(p => [...p.querySelectorAll('.ytick text')].map(t => [t.textContent, t.getBoundingClientRect()])
        .map(([text, b]) => [text, b.left, b.right, b.top, b.bottom]))"""
    for labels in page.eval_on_selector_all("figure.chart .plot", boxes):
        for (one, l1, r1, t1, b1), (two, l2, r2, t2, b2) in combinations(labels, 2):
            apart = min(r1, r2) - max(l1, l2) <= 1 or min(b1, b2) - max(t1, t2) <= 1
            assert apart, f"two labels of an axis overlap: {one!r} and {two!r}"
    return len(drawn)


def check_legends(page: Any) -> int:
    """A key of a legend hides its curve in every panel, and shows it again."""
    tried = 0
    seen = """figure => [...figure.querySelectorAll('.plot')].map(p => [
        p.data.filter(t => t.visible !== false).length,
        [...p.querySelectorAll('.scatterlayer .trace, .barlayer .trace')].length])"""
    for figure in page.locator("figure.chart:has(.key)").all():
        key = figure.locator(".key").first
        mark = key.get_attribute("data-key")
        mine = figure.evaluate(
            f"f => [...f.querySelectorAll('.plot')].map(p => p.data.filter(t => t.legendgroup === '{mark}').length)"
        )
        before = figure.evaluate(seen)
        key.click()
        assert key.get_attribute("aria-pressed") == "false"
        after = figure.evaluate(seen)
        for n, (traces, drawn), (traces_after, drawn_after) in zip(mine, before, after, strict=True):
            assert traces - traces_after == n
            assert drawn - drawn_after == n, "the curve is still drawn"
        assert sum(mine) > 0, "the key belongs to no curve"
        key.click()
        assert key.get_attribute("aria-pressed") == "true"
        assert figure.evaluate(seen) == before
        tried += 1
    return tried


def check_tables(page: Any) -> int:
    """A column sorts up by click and down by keyboard; what is missing stays last; no row is lost. Every column of the first table, and the last of the others
    (if thorough every one of them): all have the same code."""
    tables = page.locator(".table table").all()
    column = (
        """([t, j]) => [...t.tBodies[0].rows].map(r => [r.cells[j].dataset.value ?? null, r.cells[j].textContent])"""
    )
    for number, table in enumerate(tables):
        rows = table.locator("tbody tr").count()
        heads = table.locator("thead th")
        columns = range(heads.count())
        for j in columns if number == 0 or is_thorough() else columns[-1:]:
            handle = table.element_handle()
            button = heads.nth(j).locator("button")
            for press, order in ((button.click, "ascending"), (lambda b=button: b.press("Enter"), "descending")):
                press()
                assert heads.nth(j).get_attribute("aria-sort") == order
                cells = page.evaluate(column, [handle, j])
                assert len(cells) == rows
                assert page.locator("th[aria-sort]:not([aria-sort=none])").count() >= 1
                found = [value is not None or text not in ("", "–") for value, text in cells]
                assert found == sorted(found, reverse=True), "what is missing stands last"
                numbers = [float(value) for value, _ in cells if value is not None]
                assert numbers == sorted(numbers, reverse=order == "descending")
    return len(tables)


def check_print(page: Any) -> None:
    """On paper the drawings stand in the place of the plots, and everything is unfolded."""
    page.emulate_media(media="print")
    for still in page.locator("figure.chart .still").all():
        assert still.is_visible()
    assert not any(plot.is_visible() for plot in page.locator(".plot").all())
    folded = page.locator("details:not([open])").count()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() == folded
    page.emulate_media(media="screen")
    assert page.pdf()[:5] == b"%PDF-"
