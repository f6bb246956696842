"""The lower bound's tree, read from a process of `instances.hard_tree`: left the whole, right one branch.

Waiting state, root, levels, leaves, the two ends and the triple (step, leaf, action) that differs are all found in the transitions and
rewards. Steps and actions are counted from 1 in the picture.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from oldlight.model.mdp import TabularMDP
from oldlight.report.sketch import (
    BROKEN,
    BROWN,
    FAINT,
    GOLD,
    PALE_BLUE,
    RED,
    SOFT,
    Diagram,
    Point,
    arrow,
    canvas,
    circle,
    fraction,
    label,
    loop,
    names,
    words,
)


@dataclass(frozen=True, eq=False)
class _Tree:
    """The parts of a hard tree."""

    mdp: TabularMDP

    def __post_init__(self) -> None:
        rewarded = [s for s in self.fixed if self.mdp.rewards[:, s].any()]
        if len(self.fixed) != 2 or len(rewarded) != 1 or not self.waits.any():
            raise ValueError(
                f"{self.mdp!r} is not a process from hard_tree; expected a start that can wait and two absorbing states, one "
                "of them with a reward"
            )

    @cached_property
    def fixed(self) -> list[int]:
        """The absorbing states."""
        return [s for s in range(self.mdp.n_states) if (self.mdp.transitions[:, s, :, s] == 1).all()]

    @property
    def wait(self) -> int:
        return int(self.mdp.initial.argmax())

    @property
    def waits(self) -> Any:
        """[h, a]: does the start stay?"""
        return self.mdp.transitions[:, self.wait, :, self.wait] == 1

    @cached_property
    def good(self) -> int:
        return next(s for s in self.fixed if self.mdp.rewards[:, s].any())

    @cached_property
    def bad(self) -> int:
        return next(s for s in self.fixed if s != self.good)

    @property
    def since(self) -> int:
        """The first step with a reward, from 1."""
        return 1 + int(np.flatnonzero(self.mdp.rewards[:, self.good].any(axis=1))[0])

    def children(self, s: int) -> list[int]:
        """Where the actions lead from a node; nothing for a leaf."""
        rows = self.mdp.transitions[-1, s]
        return [] if rows[:, self.fixed].any() else [int(row.argmax()) for row in rows]

    @cached_property
    def levels(self) -> list[list[int]]:
        found = [[int(self.mdp.transitions[-1, self.wait, 0].argmax())]]
        while below := [child for s in found[-1] for child in self.children(s)]:
            found.append(below)
        return found

    @cached_property
    def to_good(self) -> Any:
        """[h, leaf, a]: the probability of the good state."""
        return self.mdp.transitions[:, self.levels[-1]][..., self.good]

    @property
    def usual(self) -> float:
        return float(np.median(self.to_good))

    @cached_property
    def special(self) -> list[tuple[int, int, int]]:
        """(h, index of the leaf, a) whose probability differs from all others."""
        return [(int(h), int(i), int(a)) for h, i, a in np.argwhere(np.abs(self.to_good - self.usual) > 1e-12)]


def tree(mdp: TabularMDP) -> Diagram:
    """A process from `instances.hard_tree` as a picture."""
    found = _Tree(mdp)
    until = 1 + int(np.flatnonzero(found.waits.any(axis=1))[-1])
    except_for = "; ".join(
        f"{label('a', a + 1)} in leaf {label('ℓ', i + 1)} at step {h + 1}, where it is {fraction(found.to_good[h, i, a])}"
        for h, i, a in found.special
    )

    def draw() -> Any:
        leaves = len(found.levels[-1])
        wide, deep = 1.2 * leaves, 1.3 * len(found.levels)
        shown = _branch(found)
        span = 2.5 * (len(shown) - 1)
        box = (-1.4, span + 1.4, -3.5, 2.3)
        scale = 10.5 / (wide + 2.2 + span + 2.8)
        fig, (left, right) = canvas((-1.1, wide + 1.1, -deep - 1.1, 2.1), box, scale=max(0.5, min(scale, 0.72)))
        _whole(left, found, wide, deep, until)
        _zoom(right, found, shown, span)
        return fig

    return Diagram(
        "The lower bound's tree",
        f"The start can wait up to step {until}; then the actions lead down the tree to a leaf, and from there to the good state, which "
        f"pays 1 per step from step {found.since} on, or to the bad one. The probability of the good one is {fraction(found.usual)} from every "
        f"leaf, whatever is done and when{', except ' + except_for if except_for else ''}. "
        + ("Only trials can find that. Right: its branch." if except_for else "Right: one branch."),
        draw,
    )


def _branch(found: _Tree) -> list[int]:
    """The leaves under one node: that of the special leaf, if there is one."""
    leaves = found.levels[-1]
    target = leaves[found.special[0][1]] if found.special else leaves[0]
    parents = found.levels[-2] if len(found.levels) > 1 else []
    return next((found.children(s) for s in parents if target in found.children(s)), leaves)


def _whole(ax: Any, found: _Tree, wide: float, deep: float, until: int) -> None:
    spots: dict[int, Point] = {
        found.wait: (wide / 2, 1.4),
        found.bad: (0.28 * wide, -deep),
        found.good: (0.72 * wide, -deep),
    }
    for depth, level in enumerate(found.levels):
        spots |= {s: ((i + 0.5) * wide / len(level), -1.25 * depth) for i, s in enumerate(level)}
    root = found.levels[0][0]
    circle(ax, spots[found.wait], "wait", r=0.34, size=8)
    stays = names("a", [int(a) + 1 for a in np.flatnonzero(found.waits.any(axis=0))])
    loop(ax, spots[found.wait], f"{stays} while h ≤ {until}", r=0.34, side="left")
    arrow(ax, spots[found.wait], spots[root], "else", gap=0.36, off=0.28, size=7.5)
    for level in found.levels[:-1]:
        for s in level:
            circle(ax, spots[s], "root" if s == root else "", r=0.29, size=7.5)
            for a, child in enumerate(found.children(s)):
                off = -0.14 if spots[child][0] < spots[s][0] else 0.14
                arrow(ax, spots[s], spots[child], label("a", a + 1), gap=0.31, off=off, size=7.5)
    starred = {i for _, i, _ in found.special}
    for i, s in enumerate(found.levels[-1]):
        circle(ax, spots[s], label("ℓ", i + 1), r=0.29, size=8.5, fill=GOLD if i in starred else PALE_BLUE)
        for end in (found.bad, found.good):
            look: dict[str, Any] = {"ink": RED, "lw": 1.6} if i in starred else {"ink": FAINT, "lw": 0.9}
            arrow(ax, spots[s], spots[end], gap=0.34, zorder=1, **look)
    _ends(ax, found, spots)


def _zoom(ax: Any, found: _Tree, shown: list[int], span: float) -> None:
    leaves, middle = found.levels[-1], span / 2
    spots: dict[int, Point] = {s: (2.5 * k, 0.0) for k, s in enumerate(shown)}
    spots |= {found.bad: (middle - 1.25, -2.3), found.good: (middle + 1.25, -2.3)}
    above = (middle, 1.45)
    if len(found.levels) > 1:
        circle(ax, above, "", r=0.3)
        arrow(ax, (middle, 2.6), above, gap=0.31, ink=SOFT, ls=BROKEN, lw=1)
    for a, s in enumerate(shown):
        i = leaves.index(s)
        special = [(h, what) for h, where, what in found.special if where == i]
        if len(found.levels) > 1:
            arrow(ax, above, spots[s], label("a", a + 1), gap=0.34, off=-0.15 if spots[s][0] < middle else 0.15)
        circle(ax, spots[s], label("ℓ", i + 1), r=0.33, size=9, fill=GOLD if special else PALE_BLUE)
        for end in (found.bad, found.good):
            usual = found.usual if end == found.good else 1 - found.usual
            text = (
                f"{fraction(found.mdp.transitions[special[0][0], s, special[0][1], end])}*"
                if special
                else fraction(usual)
            )
            look: dict[str, Any] = (
                {"ink": RED, "lw": 1.9, "size": 10} if special else {"ink": SOFT, "lw": 1.1, "size": 9}
            )
            arrow(ax, spots[s], spots[end], text, gap=0.36, where=0.3, off=0.0, **look)
    _ends(ax, found, spots)
    if found.special:
        h, _, a = found.special[0]
        words(
            ax,
            (middle, -3.3),
            f"* by {label('a', a + 1)} at step {h + 1}; otherwise {fraction(found.usual)}",
            size=8.5,
            color=RED,
        )


def _ends(ax: Any, found: _Tree, spots: dict[int, Point]) -> None:
    circle(ax, spots[found.bad], "bad", r=0.34, size=8, fill="#e4e7eb")
    circle(ax, spots[found.good], "good", r=0.34, size=8, fill=GOLD)
    x, y = spots[found.good]
    words(ax, (x, y - 0.55), f"pays 1 for h ≥ {found.since}", size=7.5, color=BROWN)
