"""The explorer in a real browser, as a person uses it: sliders, keyboard, an episode, copied code, a phone, in the dark."""

from __future__ import annotations

import contextlib
import io
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser import chromium, opened
from repeats import is_thorough

pytest.importorskip("uvicorn", reason="the extra explore is not installed")

import oldlight as ol
from oldlight.explore.exported import export_page
from oldlight.explore.menu import menu_of

PLANT = "inventory:horizon=5"
STORE = ol.instances.inventory(horizon=5)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    command = [sys.executable, "-m", "oldlight", "explore", PLANT, "-c", "constant:1+loss:0.1", "--no-browser"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    found = re.search(r"http://127\.0\.0\.1:\d+/\S+/", server.stderr.readline())
    assert found is not None
    try:
        yield found[0]
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=30)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@contextmanager
def tab(browser: Any, address: str, width: int = 1300, whole: bool = False, **context: Any) -> Iterator[Any]:
    """The page at an address, with the optimum or wholly answered; afterwards: no error in the console, no request outside of this machine."""
    trouble: list[str] = []
    home = address.split("/")[2]
    with browser.new_context(viewport={"width": width, "height": 800}, **context) as window:
        page = window.new_page()
        page.on("console", lambda said: trouble.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("request", lambda asked: None if outside(asked.url, home) is None else trouble.append(asked.url))
        page.on("websocket", lambda made: None if outside(made.url, home) is None else trouble.append(made.url))
        page.goto(address, timeout=120_000)
        page.wait_for_selector("html[data-answered]", state="attached", timeout=120_000)
        settled(page) if whole else answered(page)
        yield page
    assert not trouble, f"the page is in trouble: {trouble}"


def outside(url: str, home: str) -> str | None:
    inside = url.startswith(("data:", "blob:", f"http://{home}/", f"ws://{home}/"))
    return None if inside else url


def settled(page: Any) -> None:
    """Everything that was asked for has been answered."""
    page.wait_for_selector("html[data-drawn]", state="attached", timeout=120_000)
    for _ in range(1200):
        if page.evaluate("Old.page.settled && !document.body.classList.contains('stale')"):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"no answer: {page.inner_text('#status')}")


def answered(page: Any) -> None:
    """The optimum of the last position is there; pictures may still come."""
    for _ in range(2400):
        if page.evaluate("!document.body.classList.contains('stale') && Old.charts.drawn.optimum.final"):
            return
        page.wait_for_timeout(25)
    raise AssertionError(f"no answer: {page.inner_text('#status')}")


def value(page: Any) -> float:
    return float(page.get_attribute("#value", "data-value"))


def best(channel: str, **options: Any) -> float:
    return ol.solve(ol.ImpairedMDP(STORE, channel, **options)).value


@pytest.mark.slow
def test_a_person_looks_at_a_link(address: str, browser: Any, tmp_path: Path) -> None:
    with tab(browser, address, whole=True, accept_downloads=True) as page:
        assert value(page) == pytest.approx(best("constant:1+loss:0.1"), abs=1e-9)
        by_keyboard(page)
        wrong_input(page)
        an_episode(page)
        pictures_and_code(page, tmp_path)
        another_tab_at_an_address(browser, page, address)
    a_phone_in_the_dark_at_an_address_that_is_wrong(browser, address)


def by_keyboard(page: Any) -> None:
    slider = page.locator("#delay-range")
    slider.focus()
    page.keyboard.press("ArrowRight")
    answered(page)
    assert value(page) == pytest.approx(best("constant:2+loss:0.1"), abs=1e-9)
    assert "delay=2" in page.url
    page.keyboard.press("Home")
    answered(page)
    assert value(page) == pytest.approx(best("loss:0.1"), abs=1e-9)
    page.fill("#loss", "25")
    page.press("#loss", "Enter")
    settled(page)
    assert value(page) == pytest.approx(best("loss:0.25"), abs=1e-9)
    assert page.locator("#price .plot .scatterlayer .trace").count() >= 2
    assert page.locator("#frontier .plot .heatmaplayer image").count() == 1
    assert page.locator("#policy .drawing rect").count() == 4 * 5
    unlabelled = """all => all.filter(x => !(x.getAttribute('aria-label') || x.labels?.length || x.textContent.trim())).map(x => x.outerHTML)"""
    assert page.eval_on_selector_all("input, select, button", unlabelled) == []
    assert page.eval_on_selector_all("svg[role=img], .plot", "all => all.filter(x => !x.getAttribute('aria-label')).length") == 0  # fmt: skip


def wrong_input(page: Any) -> None:
    before, url = value(page), page.url
    page.fill("#delay", "99")
    page.press("#delay", "Enter")
    assert "allowed is a whole number from 0 to 8 steps" in page.inner_text("#delay-wrong")
    assert page.get_attribute("#delay", "aria-invalid") == "true"
    assert (value(page), page.url) == (before, url)
    page.fill("#delay", "0")
    page.press("#delay", "Enter")
    answered(page)
    assert not page.is_visible("#delay-wrong")
    page.locator("#delay-range").press("ArrowRight")
    answered(page)
    page.click(
        "#start label:has-text('warm')"
    )  # with a delay and a loss no warm start is defined: refused by the library
    page.wait_for_selector("#trouble:not([hidden])")
    assert "warm start" in page.inner_text("#trouble p")
    assert page.is_checked("#start input[value=cold]")
    answered(page)
    assert value(page) == pytest.approx(best("constant:1+loss:0.25"), abs=1e-9)


def an_episode(page: Any) -> None:
    page.fill("#seed", "7")
    page.press("#seed", "Enter")
    settled(page)
    problem = ol.ImpairedMDP(STORE, "constant:1+loss:0.25")
    played = ol.simulate(problem, ol.solve(problem).policy, 1, seed=7, record=True)
    assert played.states is not None
    assert played.actions is not None
    names = page.evaluate("Old.choices.plant()")
    for h in range(5):
        told = page.inner_text("#told")
        assert f"The process is in state {names['states'][played.states[0, h]]}." in told
        assert f"The optimum does {names['actions'][played.actions[0, h]]}" in told
        assert f"step={h}" in page.url or h == 0
        page.click("#forward") if h < 4 else None
    assert page.is_disabled("#forward")
    page.locator("#play").focus()
    page.keyboard.press("ArrowLeft")
    assert "time 3" in page.inner_text("#step-value")
    page.click("#play")
    assert page.get_attribute("#play", "aria-label") == "Pause"
    page.wait_for_selector("#play[aria-label=Play]", timeout=10_000)  # it has come to the end
    assert "time 4" in page.inner_text("#step-value")
    page.select_option("#beside", "memoryless")
    assert "newest seen state" in page.inner_text("#told")
    page.click("#new-seed")
    settled(page)
    assert "time 0" in page.inner_text("#step-value")
    assert page.locator("#belief rect").count() == 4
    assert page.locator("#q rect").count() == 4


def pictures_and_code(page: Any, folder: Path) -> None:
    for figure in ("price", "policy", "episode"):
        with page.expect_download() as saved:
            page.click(f"#{figure} .tools button:text-is('SVG')")
        file = folder / f"{figure}.svg"
        saved.value.save_as(file)
        text = file.read_text(encoding="utf-8")
        assert text.lstrip().startswith("<svg")
        assert "var(--" not in text
    page.click("#price .tools button:text-is('Address')")
    assert page.url.endswith("#price")
    page.click("[data-code=optimum]")
    code = page.inner_text("#code code")
    page.click("#copy")
    page.wait_for_selector("#copied:text-is('Copied.')")
    page.keyboard.press("Escape")
    assert not page.is_visible("#code")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "<copied>", "exec"), {})
    assert float(out.getvalue().split()[0]) == pytest.approx(value(page), abs=1e-9)


def another_tab_at_an_address(browser: Any, page: Any, address: str) -> None:
    """An address is a view; and what is done in one tab changes nothing in the other. One page for both: to open it is most of the work."""
    before = value(page)
    view = f"{address}?delay=2&loss=40&discount=0.9&horizon=4&seed=3&step=2&axis=loss&target=60"
    mdp = STORE.replace(horizon=4, rewards=0.9 ** np.arange(4)[:, None, None] * STORE.rewards[:4])
    with tab(browser, view) as other:
        assert value(other) == pytest.approx(ol.solve(ol.ImpairedMDP(mdp, "constant:2+loss:0.4")).value, abs=1e-9)
        other.wait_for_selector("#told:not(:empty)", timeout=60_000)
        assert "time 2 of 3" in other.inner_text("#step-value")
        assert other.input_value("#axis") == "loss"
        assert other.inner_text("#target-value") == "60 % of full information"
        other.locator("#loss-range").press("Home")
        answered(other)
        assert value(other) == pytest.approx(ol.solve(ol.ImpairedMDP(mdp, "constant:2")).value, abs=1e-9)
        other.locator("#delay-range").press("Home")
        answered(other)
        assert value(other) == pytest.approx(ol.solve(ol.ImpairedMDP(mdp, "none")).value, abs=1e-9)
        assert value(page) == before


def a_phone_in_the_dark_at_an_address_that_is_wrong(browser: Any, address: str) -> None:
    """The wrong parts are named and change nothing; what names them does not stick out of a narrow screen either."""
    wrong = f"{address}?delay=77&plant=nothing&speed=3"
    with tab(browser, wrong, width=360, color_scheme="dark") as page:
        said = page.inner_text("#trouble p")
        for part in ("Delay is 77; allowed is a whole number from 0 to 8 steps.", "plant is “nothing”; allowed is one of", "“speed” in the address"):  # fmt: skip
            assert part in said
        assert value(page) == pytest.approx(best("constant:1+loss:0.1"), abs=1e-9)  # it changed nothing
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert page.is_visible("#value")  # the number stays in view beside the sliders
        back = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert back == "rgb(18, 22, 27)"
        assert page.evaluate("Old.charts.drawn.optimum.exact")


@pytest.mark.slow
def test_an_exported_page_answers_without_a_server(browser: Any, tmp_path: Path) -> None:
    """Opened on a phone and then as wide as a screen; if thorough opened on a wide screen too."""
    page_file = export_page(tmp_path / "page.html", menu_of(PLANT), delays=(1, 2), losses=(0, 20), progress=False)
    for width in (360, 1300) if is_thorough() else (360,):
        with opened(page_file, browser, width) as page:
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert value(page) == pytest.approx(best("constant:2"), abs=1e-9)
            page.locator("#loss-range").press("ArrowRight")
            assert value(page) == pytest.approx(best("constant:2+loss:0.2"), abs=1e-9)
            assert page.is_disabled("#horizon")
            assert page.locator("#price .plot .scatterlayer .trace").count() >= 2
            first = page.inner_text("#told")
            page.click("#new-seed")
            page.click("#forward")
            assert page.inner_text("#told") != first
            page.set_viewport_size({"width": 1300, "height": 800})
            follows = "document.documentElement.scrollWidth <= 1300 && document.querySelector('#price .plot').scrollWidth > 360"
            page.wait_for_function(follows, timeout=60_000)
            page.click("[data-code=optimum]")
            assert page.is_visible("#code")
    with pytest.raises(ValueError, match="leave out --trace"):
        export_page(tmp_path / "none.html", menu_of(PLANT, channel="geometric:0.5"))
