"""One self-contained HTML page: text, interactive charts, tables that sort, diagrams, and how it was made.

    page = Page("Regret behind a slow link", lead="What was measured, and how.")
    page.section("The figure")
    page.text("Constant delays are *solid*.")
    page.figure(chart)            # a chart of charts.py or a diagram of diagrams.py
    page.table(Table(["learner", "regret"], rows))
    page.made(settings={...}, commands=["oldlight run study.toml"])
    page.write("out/report.html")

The page opens from a file, offline: style, script and plotly.js are inside, the last exactly once and only if there is a chart. Its own
security policy forbids it to load anything, so no external address can be asked for. Every figure is also written as SVG and PDF into a
folder `figures` beside the page; on paper, and without JavaScript, those drawings stand in the place of the interactive ones.

`write` makes everything under temporary names first and then moves it into place: if the disk is full, the old page and its figures stay.
Titles, captions and cells are plain text and are escaped; `text`, `note` and `lead` take the marks of markup.py.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from oldlight import checks
from oldlight.report import environment_info
from oldlight.report.chart_geometry import Look, looks
from oldlight.report.charts import Chart, Dots, Panels, caption_of, singles
from oldlight.report.draw_matplotlib import inline_svg, picture, to_matplotlib
from oldlight.report.draw_plotly import shared, spec
from oldlight.report.markup import markup
from oldlight.report.sketch import Diagram
from oldlight.report.table import Marked, Number, Table, cell_html

__all__ = ["Marked", "Number", "Page", "Table"]

FIGURES = "figures"
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
SWATCHES = {"solid": "", "broken": "7 4", "dotted": "2 3", "dash-dot": "8 3 2 3"}


class Page:
    """A page under construction; blocks appear in the order of the calls."""

    def __init__(self, title: str, *, lead: str = "") -> None:
        self.title = title
        self.lead = lead
        self._blocks: list[str] = []
        self._contents: list[tuple[int, str, str]] = []  # level, anchor, title
        self._anchors: set[str] = {"content"}
        self._files: dict[
            str, Callable[[], bytes]
        ] = {}  # path under `figures` -> what makes its contents, when the page is written
        self._figures = 0
        self._charts = 0

    # -- blocks -------------------------------------------------------------------------------------------------------

    def section(self, title: str, *, level: int = 2) -> str:
        """A heading (level 2 or 3) that stands in the contents; returns its anchor, for links: [text](#anchor)."""
        checks.whole("level", level, least=2, most=3)
        name = self._anchor(title)
        self._contents.append((level, name, title))
        self._blocks.append(f'<h{level} id="{name}">{escape(title)}</h{level}>')
        return name

    def text(self, text: str) -> None:
        """Paragraphs, lists and code: see markup.py."""
        self._blocks.append(markup(text))

    def note(self, text: str) -> None:
        """Text that must not be overlooked."""
        self._blocks.append(f'<div class="note" role="note">{markup(text)}</div>')

    def table(self, table: Table) -> None:
        """A table that sorts."""
        self._blocks.append(table.html())

    def figure(self, what: Chart | Diagram, name: str | None = None) -> str:
        """A chart or a diagram; `name` is that of its files (made from the title if None). Returns its anchor, for links."""
        anchor = self._anchor(name or what.title, "fig-")
        file = anchor.removeprefix("fig-")
        drawing = what.draw() if isinstance(what, Diagram) else to_matplotlib(what, titled=False)
        svg = picture(drawing, "svg", file)
        drawing.set_layout_engine("none")  # everything has its place now, in the other file too
        self._files |= {f"{file}.svg": lambda: svg, f"{file}.pdf": partial(picture, drawing, "pdf", file)}
        self._figures += 1
        still = inline_svg(svg, f"{anchor}-drawing")
        if isinstance(what, Diagram):
            kind, caption = "diagram", what.caption
            inside = (
                f'<div class="drawing" role="img" tabindex="0" aria-label="{_told(what.title, caption)}">{still}</div>'
            )
        else:
            kind, caption = "chart", caption_of(what)
            self._charts += 1
            inside = (
                _plots(what)
                + f'\n<div class="still" role="img" aria-label="{_told(what.title, caption)}">{still}</div>'
            )
        links = " · ".join(f'<a href="{FIGURES}/{file}.{end}">{end.upper()}</a>' for end in ("svg", "pdf"))
        self._blocks.append(
            f'<figure class="{kind}" id="{anchor}">\n<p class="title"><span class="number">Figure {self._figures}.</span>'
            f"{escape(what.title)}</p>\n{inside}\n"
            f'<figcaption>{escape(caption)} <span class="files">({links})</span></figcaption>\n</figure>'
        )
        return anchor

    def made(
        self,
        *,
        settings: Mapping[str, Any],
        commands: Sequence[str],
        versions: Mapping[str, Any] | None = None,
        machine: Mapping[str, Any] | None = None,
    ) -> None:
        """How the page was made, folded; versions and machine are those of now if None."""
        self.section("How this page was made")
        parts = {
            "Settings": settings,
            "Versions": environment_info.versions() if versions is None else versions,
            "Machine": environment_info.this_machine() if machine is None else machine,
        }
        lists = "".join(f"<h3>{title}</h3><dl>{_pairs(found)}</dl>" for title, found in parts.items() if found)
        typed = escape("\n".join(commands))
        self._blocks.append(
            '<details class="made"><summary>Settings, versions, machine and commands</summary>\n'
            f'<h3>Commands</h3><pre tabindex="0"><code>{typed}</code></pre>{lists}</details>'
        )

    # -- the whole ----------------------------------------------------------------------------------------------------

    def html(self) -> str:
        """The page as text."""
        lead = f'<div class="lead">{markup(self.lead)}</div>' if self.lead else ""
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
            '<meta name="generator" content="oldlight">\n<meta name="color-scheme" content="light dark">\n'
            f'<link rel="icon" href="data:,">\n<title>{escape(self.title)}</title>\n'
            f"<style>\n{_asset('page.css')}</style>\n"
            '<script>document.documentElement.className = "js";</script>\n</head>\n<body>\n'
            f'<a class="skip" href="#content">Skip to the content</a>\n<header><div><h1>{escape(self.title)}</h1>{lead}</div></header>\n'
            f'<div class="frame">\n{_contents(self._contents)}\n<main id="content">\n'
            + "\n".join(self._blocks)
            + f"\n</main>\n</div>\n{_plotly() if self._charts else ''}<script>\n{_asset('page.js')}</script>\n</body>\n</html>\n"
        )

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the page, and its figures beside it; folders are made if need be. Returns the path of the page."""
        target = Path(path)
        text = self.html().encode("utf-8")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
        except OSError as error:
            raise _unwritten(target, error) from None
        try:
            contents = {f"{FIGURES}/{name}": make for name, make in self._files.items()} | {target.name: lambda: text}
            for name, make in contents.items():
                (made / name).parent.mkdir(exist_ok=True)
                checks.write_file(made / name, lambda stream, make=make: stream.write(make()))  # type: ignore[misc]
            if self._files:
                (target.parent / FIGURES).mkdir(exist_ok=True)
            for name in self._files:
                os.replace(made / FIGURES / name, target.parent / FIGURES / name)
            os.replace(made / target.name, target)
        except OSError as error:
            raise _unwritten(target, error) from None
        finally:
            shutil.rmtree(made, ignore_errors=True)
        return target

    def _anchor(self, text: str, prefix: str = "") -> str:
        """An identifier made from a text, different from all others of the page."""
        letters = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
        name = prefix + (re.sub(r"[^a-z0-9]+", "-", letters).strip("-")[:60].strip("-") or "part")
        found, n = name, 1
        while found in self._anchors:
            n += 1
            found = f"{name}-{n}"
        self._anchors.add(found)
        return found


def _plots(chart: Chart) -> str:
    """The interactive side of a chart: legend, a place for each plot, and the data."""
    shown, ranges, charts = looks(chart), shared(chart), singles(chart)
    data = json.dumps(
        [spec(one, shown, **ranges) for one in charts], ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    places = []
    for one in charts:
        title = f'<p class="panel-title">{escape(one.title)}</p>' if isinstance(chart, Panels) else ""
        tall = f' style="height: {max(24, 5 + 2.3 * len(one.categories)):.0f}rem"' if isinstance(one, Dots) else ""
        places.append(
            f'<div>{title}<div class="plot"{tall} role="img" aria-label="{_told(one.title, caption_of(one))}"></div></div>'
        )
    keys = "".join(
        f'<button type="button" class="key" data-key="k{look.key}" aria-pressed="true">{_swatch(look)}{escape(label)}</button>'
        for label, look in shown.items()
    )
    legend = f'<div class="legend" role="group" aria-label="Legend: press to hide or show">{keys}</div>' if keys else ""
    return (
        f'<div class="plots">{legend}<div class="panels{" many" if len(charts) > 1 else ""}">{"".join(places)}</div></div>'
        f'<script type="application/json" class="data">{data.replace("<", chr(92) + "u003c")}</script>'
    )


def _swatch(look: Look) -> str:
    if look.kind == "dot":
        shape = f'<circle cx="14" cy="7" r="5" fill="{look.colour}"/>'
    else:
        dot = f'<circle cx="14" cy="7" r="3.5" fill="{look.colour}"/>' if look.marks else ""
        dash = f' stroke-dasharray="{SWATCHES[look.dash]}"' if SWATCHES[look.dash] else ""
        shape = f'<path d="M1 7H27" stroke="{look.colour}" stroke-width="2.4"{dash}/>{dot}'
    return f'<svg width="28" height="14" viewBox="0 0 28 14" aria-hidden="true">{shape}</svg>'


def _contents(found: list[tuple[int, str, str]]) -> str:
    """The table of contents; sections of level 3 under the one before."""
    items: list[str] = []
    for level, anchor, title in found:
        link = f'<a href="#{anchor}">{escape(title)}</a>'
        if level == 2 or not items:
            items.append(link)
        elif items[-1].endswith("</ol>"):
            items[-1] = items[-1].removesuffix("</ol>") + f"<li>{link}</li></ol>"
        else:
            items[-1] += f"<ol><li>{link}</li></ol>"
    inside = "".join(f"<li>{item}</li>" for item in items)
    return f'<nav aria-label="Contents"><details open><summary>Contents</summary><ol>{inside}</ol></details></nav>'


def _pairs(found: Mapping[str, Any]) -> str:
    def as_html(value: Any) -> str:
        if isinstance(value, Mapping):
            return ", ".join(f"{escape(str(k))} = {as_html(v)}" for k, v in value.items())
        if isinstance(value, list | tuple):
            return ", ".join(as_html(v) for v in value)
        return cell_html(value)

    return "".join(f"<dt>{escape(str(name))}</dt><dd>{as_html(value)}</dd>" for name, value in found.items())


def _told(title: str, caption: str) -> str:
    return escape(f"{title}. {caption}".strip())


def _asset(name: str) -> str:
    return resources.files("oldlight.report").joinpath("assets", name).read_text(encoding="utf-8")


def _plotly() -> str:
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

    return f"<script>{get_plotlyjs().replace('</script', '<' + chr(92) + '/script')}</script>\n"


def _unwritten(target: Path, error: OSError) -> OSError:
    return OSError(
        error.errno,
        f"{target} could not be written ({os.strerror(error.errno or 0)}); what was there before is untouched",
    )
