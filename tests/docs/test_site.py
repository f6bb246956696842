"""The site: it builds without a warning, loads nothing from elsewhere, and reads on a phone and in the dark."""

from __future__ import annotations

import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import made_once
from repeats import is_thorough

pytest.importorskip("mkdocs")
pytest.importorskip("mkdocstrings")
pytest.importorskip("material")

ROOT = Path(__file__).parents[2]
SCHEME = "document.body.getAttribute('data-md-color-scheme')"
LOOK = """() => [document.scrollingElement.scrollWidth,
    [...document.querySelectorAll('.arithmatex')].filter(f => !f.querySelector('.katex') || f.querySelector('.katex-error')).length,
    [...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)]"""
LOADED = re.compile(
    r"<(?:script|img|iframe|source|audio|video)[^>]*\ssrc=\"([^\"]+)\"|<link[^>]*\shref=\"([^\"]+)\"[^>]*>"
)


def is_current(made: Path) -> bool:
    """Was the site made, without a fault, after the last change of what it is made from?"""
    sources = [*ROOT.glob("*.*"), *(ROOT / "docs").rglob("*"), *(ROOT / "src").rglob("*.py")]
    return made.exists() and made.stat().st_mtime > max(path.stat().st_mtime for path in sources if path.is_file())


def test_a_site_is_taken_only_if_nothing_has_changed_since(tmp_path: Path) -> None:
    stamp = tmp_path / ".made"
    assert not is_current(stamp)
    stamp.touch()
    assert is_current(stamp)
    os.utime(stamp, (0, (ROOT / "mkdocs.yml").stat().st_mtime))
    assert not is_current(stamp)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it: strict, so that a broken link or an unknown name stops it. The one that `make docs` has left, if it is not older
    than anything that it is made from."""

    def make(out: Path) -> None:
        if is_current(ROOT / "site" / ".made"):
            shutil.copytree(ROOT / "site", out, dirs_exist_ok=True)
            return
        command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(out)]
        env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, env=env)
        assert done.returncode == 0, done.stdout + done.stderr

    return made_once(tmp_path_factory, "site", make)


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 25
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for script, sheet in LOADED.findall(text):
            assert not re.match(r"(https?:)?//", script or sheet), f"{page.name} loads {script or sheet}"
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//", sheet.read_text(encoding="utf-8")), sheet.name


@pytest.mark.slow
def test_every_section_and_every_public_name_has_its_place(site: Path) -> None:
    import oldlight as ol
    from oldlight import _exports

    front = (site / "index.html").read_text(encoding="utf-8")
    for section in ("Start", "Guides", "Concepts", "Paper", "API", "Benchmarks", "Errors", "Glossary"):
        assert re.search(rf">\s*{section}\s*<", front), section
    reference = "".join(page.read_text(encoding="utf-8") for page in (site / "api").glob("*.html"))
    for name in _exports.MODULES:
        assert f'id="oldlight.{name}"' in reference, name
    for name in ol.learners.__all__:
        assert re.search(rf'id="oldlight\.(learners\.)?{name}"', reference), name


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


KINDS = [
    "index",  # a picture, a table, code
    "concepts/mathematics",  # formulas
    "errors",  # many wide tables
    "guides/engineer",
    "api/learners",
    "explorer/sensing_chain",
]


@pytest.mark.slow
def test_pages_in_a_browser(site: Path, address: str) -> None:
    """One page of each kind, with --thorough every page, is opened once, in the dark, wide and then as narrow as a phone: no script fails, nothing is
    asked of elsewhere, nothing sticks out, every picture is there and every formula is typeset."""
    from browser import chromium

    wrong: list[str] = []
    typeset = (ROOT / "docs" / "assets" / "katex").is_dir()
    with chromium() as browser:
        light = browser.new_page(color_scheme="light")
        light.goto(f"{address}/index.html", timeout=120_000)
        assert light.evaluate(SCHEME) == "default"
        page = browser.new_page(color_scheme="dark")
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request",
            lambda asked: None if asked.url.startswith((address, "data:", "blob:")) else wrong.append(asked.url),
        )
        names = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
        shown = names if is_thorough() else [f"{name}.html" for name in KINDS]
        assert set(shown) <= set(names)
        for name in shown:
            page.set_viewport_size({"width": 1300, "height": 844})
            page.goto(f"{address}/{name}", timeout=120_000)  # on a machine that does other work
            assert page.evaluate(SCHEME) in ("slate", None), name  # None: a page of the explorer, which is not mkdocs'
            for width in (1300, 390):
                page.set_viewport_size({"width": width, "height": 844})
                for _ in range(30):  # charts follow the width a moment later
                    wide, formulas, pictures = page.evaluate(LOOK)
                    if wide <= width:
                        break
                    page.wait_for_timeout(100)
                assert wide <= width, f"{name} is {wide} pixels wide on a screen of {width}"
                assert pictures == [], f"{name} shows no picture at {pictures}"
                assert formulas == 0 or not typeset, f"{name}: {formulas} formulas are not typeset"
            assert wrong == [], name
