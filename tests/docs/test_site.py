"""The site: it builds without a warning, loads nothing from elsewhere, and reads on a phone and in the dark."""

from __future__ import annotations

import functools
import http.server
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import made_once

pytest.importorskip("mkdocs")
pytest.importorskip("mkdocstrings")
pytest.importorskip("material")

ROOT = Path(__file__).parents[2]
LOADED = re.compile(
    r"<(?:script|img|iframe|source|audio|video)[^>]*\ssrc=\"([^\"]+)\"|<link[^>]*\shref=\"([^\"]+)\"[^>]*>"
)
SHOWN = (
    "index.html",
    "concepts/mathematics.html",
    "links.html",
    "errors.html",
    "api/planning-and-value.html",
    "guides/engineer.html",
    "paper.html",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it: strict, so that a broken link or an unknown name stops it."""

    def make(out: Path) -> None:
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


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1300, "dark")])
def test_pages_in_a_browser(address: str, width: int, scheme: Any) -> None:
    from browser import chromium

    with chromium() as browser:
        page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)
        outside: list[str] = []
        wrong: list[str] = []
        page.on(
            "request",
            lambda request: (
                outside.append(request.url) if not request.url.startswith((address, "data:", "blob:")) else None
            ),
        )
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        for name in SHOWN:
            page.goto(f"{address}/{name}")
            wide = page.evaluate("document.scrollingElement.scrollWidth")
            assert wide <= width, f"{name} is {wide} pixels wide on a screen of {width}"
            assert (
                page.evaluate("document.body.getAttribute('data-md-color-scheme')")
                == {"light": "default", "dark": "slate"}[scheme]
            )
        assert (outside, wrong) == ([], [])
