"""Draws the message diagrams of docs/links.md: python docs/scripts/links.py

Above, time runs and each step sends its observation; below, the agent. A line is a message on its way; one that ends in a cross is lost. The
dot below is the newest observation that the agent sees, and the number under it is its age. Everything is drawn by the sampler that
environments and simulations use, with a fixed seed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import oldlight as ol
from oldlight.model.channels.messages import AgeLink, arrivals_of

FOLDER = Path(__file__).parents[1] / "links"
STEPS, LEFT, PITCH, TOP, BOTTOM = 12, 74, 44, 34, 124
WIDTH, HEIGHT = LEFT + STEPS * PITCH + 6, 172
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #33424f }
.axis { stroke: #9aa8b4; stroke-width: 1.2 } .way { stroke: #2f6f9f; stroke-width: 1.8; fill: none }
.old { stroke: #9aa8b4; stroke-width: 1.5; stroke-dasharray: 4 3; fill: none } .lost { stroke: #c0392b; stroke-width: 1.8; fill: none }
.sent { fill: #33424f } .seen { fill: #2f6f9f } .none { fill: none; stroke: #9aa8b4; stroke-width: 1.4 }
@media (prefers-color-scheme: dark) {
  text { fill: #d7dee4 } .axis, .old, .none { stroke: #7d8b97 } .way { stroke: #6fb4e6 } .lost { stroke: #ff8a75 }
  .sent { fill: #d7dee4 } .seen { fill: #6fb4e6 }
}
"""
LINKS: dict[str, tuple[Any, int]] = {  # file: the link, and the seed of a run in which what it does can be seen
    "udp": (ol.PacketChannel({0: 0.3, 1: 0.4, 2: 0.3}, lost=0.15), 11),
    "tcp": (ol.FIFODelay({0: 0.6, 1: 0.25, 3: 0.15}), 1),
    "dds": (ol.HiddenLink([[0.85, 0.15], [0.4, 0.6]], [[0.7, 0.3], [0.0, 0.15]]), 30),
    "wifi": (ol.FIFODelay({0: 0.9, 4: 0.1}), 70),
    "polling": (ol.Periodic(3), 0),
    "camera": (ol.Periodic(4, delay=2, offset=1), 0),
    "recording": (ol.AgeChain([[0.7, 0.3], [0.4, 0.3, 0.3], [0.3, 0.1, 0.1, 0.5]]), 3),
}


def at(time: float) -> float:
    return LEFT + PITCH * (time + 0.5)


def line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>'


def messages(link: Any, arrivals: list[int], ages: list[int]) -> list[str]:
    """A line for each message: on its way, overtaken (dashed), or lost."""
    out = []
    for i, when in enumerate(arrivals):
        if when >= STEPS:  # it arrives after the end of the picture
            share = (STEPS - 0.5 - i) / (when - i)
            out.append(line("way", at(i), TOP, at(STEPS - 0.5), TOP + share * (BOTTOM - TOP)))
        elif when >= 0:
            out.append(line("old" if when - ages[when] > i else "way", at(i), TOP, at(when), BOTTOM - 5))
        elif not isinstance(link, AgeLink | ol.Periodic):  # what those never show was not sent
            x, y = at(i + 0.28), TOP + 30
            out += [
                line("lost", at(i), TOP, x, y),
                line("lost", x - 5, y - 5, x + 5, y + 5),
                line("lost", x - 5, y + 5, x + 5, y - 5),
            ]
    return out


def picture(link: Any, seed: int) -> str:
    arrivals = arrivals_of(link, np.random.default_rng(seed), STEPS, 1)[:, 0].tolist()
    visible = [[i for i in range(h + 1) if 0 <= arrivals[i] <= h] for h in range(STEPS)]
    ages = [h - seen[-1] if seen else -1 for h, seen in enumerate(visible)]
    parts = [line("axis", at(-0.5), y, at(STEPS - 0.5), y) for y in (TOP, BOTTOM)]
    parts += messages(link, arrivals, ages)
    for i in range(STEPS):
        sent = not isinstance(link, ol.Periodic) or arrivals[i] >= 0
        parts.append(f'<circle class="{"sent" if sent else "none"}" cx="{at(i):g}" cy="{TOP}" r="4"/>')
        parts.append(f'<text x="{at(i):g}" y="{TOP - 12}" text-anchor="middle">{i}</text>')
        parts.append(f'<circle class="{"seen" if ages[i] >= 0 else "none"}" cx="{at(i):g}" cy="{BOTTOM}" r="5"/>')
        parts.append(
            f'<text x="{at(i):g}" y="{BOTTOM + 28}" text-anchor="middle">{ages[i] if ages[i] >= 0 else "–"}</text>'
        )
    for y, word in ((TOP - 12, "time"), (TOP + 4, "process"), (BOTTOM + 4, "agent"), (BOTTOM + 28, "age")):
        parts.append(f'<text x="6" y="{y}">{word}</text>')
    begin = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">'
    return "\n".join([begin, f"<title>Messages over {link!r}</title>", f"<style>{STYLE}</style>", *parts, "</svg>", ""])


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, (link, seed) in LINKS.items():
        (FOLDER / f"{name}.svg").write_text(picture(link, seed), encoding="utf-8")
