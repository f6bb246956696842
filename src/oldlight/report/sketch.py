"""The strokes of the diagrams: states, actions and arrows on a matplotlib axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from oldlight.report.draw_matplotlib import STYLE

Point = tuple[float, float]

INK, SOFT, FAINT, PAPER = "#1d2733", "#76818d", "#c9d0d7", "#ffffff"
BLUE, RED, GOLD, GREEN = "#0072b2", "#d55e00", "#f3c65a", "#00805d"
PALE_BLUE, PALE_RED, BROWN = "#d7eaf5", "#fbe3d3", "#7a4f00"
BROKEN = (0, (2.2, 1.7))
SUBSCRIPT = str.maketrans("-0123456789", "₋₀₁₂₃₄₅₆₇₈₉")


@dataclass(frozen=True)
class Diagram:
    """A diagram with its title and caption; `draw()` gives a matplotlib Figure."""

    title: str
    caption: str
    draw: Callable[[], Any]


def canvas(*boxes: tuple[float, float, float, float], scale: float = 0.62) -> tuple[Any, list[Any]]:
    """A figure with bare axes side by side, one per box (left, right, bottom, top), in which a unit is `scale` inches."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    widths = [right - left for left, right, _, _ in boxes]
    height = max(top - bottom for _, _, bottom, top in boxes)
    with rc_context({**STYLE, "axes.grid": False}):
        fig = Figure(figsize=(scale * sum(widths), scale * height))
        grid = fig.add_gridspec(1, len(boxes), width_ratios=widths, left=0, right=1, bottom=0, top=1, wspace=0)
        axes = [fig.add_subplot(grid[i]) for i in range(len(boxes))]
    for ax, (left, right, bottom, top) in zip(axes, boxes, strict=True):
        ax.set_aspect("equal")
        ax.axis("off")
        ax.set_xlim(left, right)
        ax.set_ylim(bottom, top)
    return fig, axes


def label(name: str, number: int) -> str:
    """s₃ for ("s", 3)."""
    return name + str(number).translate(SUBSCRIPT)


def names(name: str, numbers: Sequence[int]) -> str:
    """a₂, a₃ for ("a", [2, 3]); a₂ … a₅ for a run of three or more."""
    if len(numbers) > 2 and list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
        return f"{label(name, numbers[0])} … {label(name, numbers[-1])}"
    return ", ".join(label(name, n) for n in numbers)


def fraction(p: float) -> str:
    """½ for 0.5, else up to three digits."""
    return {0.25: "¼", 0.5: "½", 0.75: "¾"}.get(round(p, 12), f"{p:.3g}")


def words(ax: Any, at: Point, text: str, **style: Any) -> None:
    """Plain text, centred."""
    ax.text(*at, text, **({"ha": "center", "va": "center", "color": INK, "size": 9, "parse_math": False} | style))


def circle(ax: Any, at: Point, text: str = "", *, r: float = 0.3, **look: Any) -> None:
    """A state. look: fill, ink, size of the text, and what matplotlib takes for an edge."""
    from matplotlib.patches import Circle

    _shape(ax, at, text, partial(Circle, at, r), **look)


def square(ax: Any, at: Point, text: str = "", **look: Any) -> None:
    """An action. look: as for `circle`."""
    from matplotlib.patches import FancyBboxPatch

    corner = (at[0] - 0.19, at[1] - 0.19)
    _shape(ax, at, text, partial(FancyBboxPatch, corner, 0.38, 0.38, boxstyle="round,pad=0.06"), **look)


def _shape(
    ax: Any,
    at: Point,
    text: str,
    patch: Callable[..., Any],
    *,
    fill: str = PAPER,
    ink: str = INK,
    size: float = 9,
    **edge: Any,
) -> None:
    """A closed shape with a word in it."""
    ax.add_patch(patch(fc=fill, **({"ec": INK, "lw": 1.2, "zorder": 3} | edge)))
    words(ax, at, text, zorder=4, color=ink, size=size)


def arrow(
    ax: Any,
    start: Point,
    end: Point,
    text: str = "",
    *,
    gap: float = 0.33,
    lift: float = 0.0,
    bend: float = 0.0,
    where: float = 0.5,
    off: float = 0.15,
    size: float = 8,
    ink: str = INK,
    **line: Any,
) -> None:
    """From one place to another, stopping `gap` short of both.

    lift moves it to the left of its way, bend bows it to the left by that share of its length. The text stands `off` to the
    left (right if negative) of the arrow, the share `where` along it.
    """
    from matplotlib.patches import FancyArrowPatch

    dx, dy = end[0] - start[0], end[1] - start[1]
    length = (dx * dx + dy * dy) ** 0.5
    ux, uy = dx / length, dy / length

    def at(along: float, left: float) -> Point:
        return start[0] + along * ux - left * uy, start[1] + along * uy + left * ux

    look: dict[str, Any] = {
        "arrowstyle": "-|>",
        "mutation_scale": 9,
        "lw": 1.2,
        "shrinkA": 0,
        "shrinkB": 0,
        "zorder": 2,
    } | line
    tips = at(gap, lift), at(length - gap, lift)
    ax.add_patch(FancyArrowPatch(*tips, connectionstyle=f"arc3,rad={-bend}", color=ink, **look))
    if text:
        span = length - 2 * gap
        # the height there of the quadratic curve with control point bend·span
        bow = 2 * where * (1 - where) * bend * span
        halo = {"fc": PAPER, "ec": "none", "pad": 0.5, "alpha": 0.9}
        words(ax, at(gap + where * span, lift + bow + off), text, size=size, color=ink, bbox=halo, zorder=2.5)


def loop(
    ax: Any, at: Point, text: str, *, r: float, side: str, size: float = 8, ink: str = INK, lw: float = 1.2
) -> None:
    """An arrow from a state to itself, with the text beyond it; side: "left", "right" or "top"."""
    from matplotlib.patches import FancyArrowPatch

    dx, dy = {"left": (-1, 0), "right": (1, 0), "top": (0, 1)}[side]
    tips = [(at[0] + r * (0.9 * dx - k * dy), at[1] + r * (0.9 * dy + k * dx)) for k in (0.45, -0.45)]
    look: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 9, "shrinkA": 0, "shrinkB": 0, "zorder": 2}
    ax.add_patch(FancyArrowPatch(*tips, connectionstyle="arc3,rad=-1.9", color=ink, lw=lw, **look))
    align = {"left": ("right", "center"), "right": ("left", "center"), "top": ("center", "bottom")}[side]
    words(ax, (at[0] + 2.2 * r * dx, at[1] + 2.2 * r * dy), text, size=size, color=ink, ha=align[0], va=align[1])
