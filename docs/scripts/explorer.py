"""The explorer in the documentation: its picture, and one exported page.

python docs/scripts/explorer.py picture docs/explorer.png     a real page in headless Chromium, light, 1,300 pixels wide
python docs/scripts/explorer.py page docs/explorer/sensing_chain.html      the sensing chain, without a server
"""

from __future__ import annotations

import io
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

VIEW = "?delay=1&loss=10&target=50&seed=12&step=6"
SIZE = {"width": 1300, "height": 800}
COLOURS = 160


def picture(target: Path) -> None:
    """The first screen of the page, with few colours so that the file is small."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-m", "oldlight", "explore", "--no-browser"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        found = re.search(r"http://\S+", server.stderr.readline())
        assert found is not None, "the explorer did not start"
        with sync_playwright() as playwright:
            path = shutil.which("chromium") or shutil.which("google-chrome")
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport=SIZE, color_scheme="light")
            page.goto(found[0] + VIEW)
            page.wait_for_selector("html[data-drawn]", state="attached", timeout=300_000)
            page.locator("#delay-range").press(
                "ArrowRight"
            )  # a move of the slider, so that nothing is planned for the first time
            while not page.evaluate("Old.page.settled"):
                page.wait_for_timeout(100)
            page.evaluate("document.activeElement.blur()")
            page.wait_for_timeout(500)
            shot = page.screenshot()
            browser.close()
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=30)
    image = Image.open(io.BytesIO(shot)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    image.save(target, optimize=True)


def page(target: Path) -> None:
    """The sensing chain behind a grid of delays and losses."""
    from oldlight.explore.exported import export_page
    from oldlight.explore.menu import menu_of

    target.parent.mkdir(parents=True, exist_ok=True)
    export_page(target, menu_of("sensing_chain:0.8"))


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("picture", "page"):
        sys.exit(__doc__)
    {"picture": picture, "page": page}[sys.argv[1]](Path(sys.argv[2]))
