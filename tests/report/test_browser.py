"""Pages in a real browser. `page_under_test` has every kind of block, and labels that try to break out of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser import (
    check_layout,
    check_legends,
    check_page,
    check_plots,
    check_print,
    check_tables,
    chromium,
    opened,
)
from oldlight import instances
from oldlight.paper.diagrams import chain
from oldlight.report.charts import Dots, Group, Heat, Lines, Panels, Reference, Series, seeds_band
from oldlight.report.page import Marked, Number, Page, Table
from repeats import is_thorough

HOSTILE = "</script><script>alert('out')</script><img src=x onerror=alert(1)> <b>bold</b> $x_1$ %{y}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


def page_under_test(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    K = np.arange(1, 3001)

    def regret(title: str, slope: float) -> Lines:
        curves = [
            Series.over_seeds(label, K, slope * (d + 1) * np.sqrt(K) * rng.uniform(0.8, 1.2, (3, 1)), dash=dash)
            for d, (label, dash) in enumerate(
                [("constant delay 1", "solid"), ("p = 0.5", "broken"), (HOSTILE, "dotted")]
            )
        ]
        return Lines(
            title, "episode", "cumulative regret", curves, band=seeds_band(3), references=[Reference("target", 900)]
        )

    page = Page(f"A page {HOSTILE}", lead="What was measured, with `oldlight`.")
    page.section("The figures")
    page.text("Constant delays are *solid*.\n\n- one\n- two\n\n    oldlight report runs/")
    page.note("**Note** this.")
    page.figure(Panels("Regret", [regret("Env1", 10), regret("Env2", 20)], share=True), "regret")
    page.figure(
        Lines(
            "Both logarithmic", "k", "R", [Series("a", K, 3.0 * K), Series("b", K, np.sqrt(K))], log_x=True, log_y=True
        )
    )
    page.section("Dots and colours", level=3)
    many = [f"{name}, {which} and pooled" for name in ("DelayedUCBVI", "PosteriorSampling") for which in "abcdef"]
    dots = [Group.over_seeds(f"delay {d}", 150 * 10 ** rng.random((3, len(many) + 1))) for d in range(2)]
    page.figure(
        Dots(
            "Final regret",
            "regret",
            [*many, HOSTILE],
            dots,
            band=seeds_band(3),
            log_x=True,
        )
    )
    z = np.add.outer(np.arange(4.0), np.arange(5.0)) / 10
    z[1, 2] = np.nan
    page.figure(
        Heat("The price of both", "delay", "lost", "price", range(5), ["0%", "10%", "20%", HOSTILE], z, percent=True)
    )
    page.section("A diagram and a table")
    page.figure(chain(instances.sensing_chain(0.8)), "chain")
    rows: list[list[Any]] = [
        ["ten", 10, 10.5, "a"],
        ["nine", 9, None, Marked("`b`")],
        [HOSTILE, -2, Number(100.0, "100 ± 3"), ""],
        ["none", 1000, float("nan"), "d"],
    ]
    page.table(Table(["learner", "delay", "regret", "remark"], rows, caption="Results"))
    page.made(settings={"study": HOSTILE, "seeds": [0, 1, 2]}, commands=["oldlight run study.toml"])
    return page.write(folder / "report.html")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return page_under_test(tmp_path_factory.mktemp("page"))


@pytest.mark.slow
def test_the_page_works_and_words_of_users_stay_words(path: Path, browser: Any, tmp_path: Path) -> None:
    """What `check_page` asks of every page, on a phone and on a wide screen, and then what only this page can show, on the same wide screen: to open
    it is most of the work. If thorough by `check_page` itself too."""
    with opened(path, browser, 360) as page:
        page.screenshot(path=tmp_path / "report-phone.png", full_page=True)
        check_layout(page, 360)
        assert check_plots(page) == 5
    with opened(path, browser, 1200, color_scheme="light") as page:
        page.on("dialog", lambda box: pytest.fail(f"a script of a label ran: {box.message}"))
        page.screenshot(path=tmp_path / "report-wide.png", full_page=True)
        check_layout(page, 1200)
        assert check_plots(page) == 5
        assert check_legends(page) == 3
        words_of_users_stay_words(page)  # before the table is sorted
        assert check_tables(page) == 1
        keys_can_stand_alone(page)
        the_screen_may_turn_dark(page)
        check_print(page)
    assert all((tmp_path / f"report-{name}.png").stat().st_size > 10_000 for name in ("phone", "wide"))
    if is_thorough():
        (tmp_path / "again").mkdir()
        assert check_page(path, browser, screenshots=tmp_path / "again") == {"plots": 5, "keys": 3, "tables": 1}
        assert {p.name for p in (tmp_path / "again").iterdir()} == {"report-phone.png", "report-wide.png"}


def words_of_users_stay_words(page: Any) -> None:
    assert page.locator("img[src=x]").count() == 0
    assert page.title().endswith(HOSTILE)
    assert page.locator("#fig-regret .key").nth(2).inner_text() == HOSTILE
    assert page.locator("tbody td").filter(has_text="onerror").count() == 1
    texts = "all => all.map(t => t.textContent)"
    assert any("<script>" in t for t in page.eval_on_selector_all("#fig-final-regret .ytick text", texts))
    assert {"200", "500", "1,000"} <= set(page.eval_on_selector_all("#fig-final-regret .xtick text", texts))
    assert any("alert('out')" in t for t in page.eval_on_selector_all("#fig-regret .still text", texts))


def keys_can_stand_alone(page: Any) -> None:
    keys = page.locator("#fig-regret .key")
    pressed = "all => all.map(k => k.getAttribute('aria-pressed'))"
    keys.nth(1).click(modifiers=["Shift"])
    assert keys.evaluate_all(pressed) == ["false", "true", "false"]
    keys.nth(1).click(modifiers=["Shift"])
    assert keys.evaluate_all(pressed) == ["true", "true", "true"]
    keys.nth(0).dblclick()
    assert keys.evaluate_all(pressed) == ["true", "false", "false"]


def the_screen_may_turn_dark(page: Any) -> None:
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for words, style in (("body", "color"), ("#fig-regret .plot .xtick text", "fill")):
            shade = page.locator(words).first.evaluate(f"e => getComputedStyle(e).{style}")
            bright = sum(int(v) for v in shade.removeprefix("rgb(").removesuffix(")").split(","))
            assert bright > 600 if scheme == "dark" else bright < 150, f"{words} on a {scheme} screen is {shade}"


def test_without_scripts_the_drawings_are_shown(path: Path, browser: Any) -> None:
    with opened(path, browser, 1000, java_script_enabled=False) as page:
        assert all(still.is_visible() for still in page.locator("figure.chart .still").all())
        assert not any(plot.is_visible() for plot in page.locator(".plot").all())


def test_a_page_that_is_too_wide_is_caught(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "wide.html").write_text(
        '<html data-drawn="0"><body><div style="width:900px">wide</div></body></html>', encoding="utf-8"
    )
    with pytest.raises(AssertionError, match="wider than the screen"):
        check_page(tmp_path / "wide.html", browser)


def test_a_page_that_asks_for_the_network_is_caught(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "asks.html").write_text(
        '<html data-drawn="0"><img src="http://127.0.0.1:9/x.png"></html>', encoding="utf-8"
    )
    with pytest.raises(AssertionError, match=r"127\.0\.0\.1"), opened(tmp_path / "asks.html", browser, 360):
        pass
