"""The files of the page: one HTML file, one style sheet, scripts, and plotly's script from the installed package."""

from __future__ import annotations

import json
from functools import cache
from html import escape
from importlib import resources
from typing import Any

from oldlight.explore.menu import Menu

SCRIPTS = ("choices.js", "charts.js", "episode.js", "source.js", "main.js")
KINDS = {
    "explore.html": "text/html",
    "explore.css": "text/css",
    "plotly.js": "text/javascript",
    **dict.fromkeys(SCRIPTS, "text/javascript"),
}


@cache
def asset(name: str) -> str:
    """A file of `assets`."""
    return resources.files("oldlight.explore").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def plotly() -> str:
    """plotly's script."""
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

    return str(get_plotlyjs())


def served(name: str, menu: Menu) -> str:
    """What the server answers for a file of `KINDS`."""
    if name == "explore.html":
        links = "".join(f'<script src="{script}" defer></script>\n' for script in ("plotly.js", *SCRIPTS))
        return page('<link rel="stylesheet" href="explore.css">', links, menu.to_dict())
    return plotly() if name == "plotly.js" else asset(name)


def page(style: str, scripts: str, menu: dict[str, Any], more: str = "") -> str:
    """The HTML file with its style, its scripts and the menu as data."""
    data = json.dumps(menu, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    title = escape(f"oldlight: {next(iter(menu['plants']))}")
    return (
        asset("explore.html")
        .replace("<!-- title -->", title)
        .replace("<!-- style -->", style)
        .replace("<!-- data -->", f'<script type="application/json" id="menu">{data}</script>\n{more}')
        .replace("<!-- scripts -->", scripts)
    )
