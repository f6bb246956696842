"""The paper's four diagrams, redrawn from the objects that they speak of.

- `interaction`: what an agent knows at one time of a real episode (diagram_interaction.py);
- `dichotomy`: Proposition 5's process, unrolled in time, and when its first state is seen;
- `chain`: the transitions of a chain, one row per kind of action;
- `tree`: the lower bound's tree, and one branch of it (diagram_tree.py).

No number is copied: states, edges, probabilities, rewards and times are read from a `TabularMDP` or a simulated episode, and values are
computed. Steps, states and actions are counted from 1 in the pictures, as in the paper.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from oldlight import instances
from oldlight.model.channels import ConstantDelay
from oldlight.model.mdp import TabularMDP
from oldlight.model.problem import ImpairedMDP
from oldlight.paper.diagram_interaction import interaction
from oldlight.paper.diagram_tree import tree
from oldlight.planning import solve
from oldlight.report.sketch import (
    BLUE,
    BROWN,
    GOLD,
    GREEN,
    PAPER,
    RED,
    SOFT,
    Diagram,
    arrow,
    canvas,
    circle,
    fraction,
    label,
    loop,
    names,
    words,
)

__all__ = ["Diagram", "chain", "dichotomy", "interaction", "paper_diagrams", "tree"]


def paper_diagrams() -> dict[str, Diagram]:
    """The four, by a name that can be the name of a file."""
    problem = ImpairedMDP(instances.sensing_chain(0.8, initial=np.eye(20)[3]), ConstantDelay(2))
    return {
        "interaction": interaction(problem, solve(problem).policy, h=5),
        "dichotomy": dichotomy(2),
        "chain": chain(instances.center_chain(0.99), title="The chain of Section 6 (Env1)"),
        "hard-tree": tree(instances.hard_tree(3, 2, 3, epsilon=0.25, seed=1)),
    }


# -- Proposition 5 --------------------------------------------------------------------------------------------------------


def dichotomy(d: int) -> Diagram:
    """`instances.dichotomy(d)` unrolled, with the time at which s₁ is seen under delays d and d + 1."""
    mdp = instances.dichotomy(d)
    H = mdp.finite_horizon
    values = {late: solve(ImpairedMDP(mdp, ConstantDelay(late))).value for late in (d, d + 1)}
    due = int(np.flatnonzero(mdp.rewards.any(axis=(1, 2)))[0])

    def draw() -> Any:
        wide = 1.8
        fig, (ax,) = canvas((-1.2, wide * (H - 1) + 3.1, -0.75, 3.75), scale=0.78)
        rows = {0: 2.45, 1: 1.15}
        for h in range(H):
            words(ax, (wide * h, 3.5), f"time {h + 1}", color=SOFT)
            for s, y in rows.items():
                paid = mdp.rewards[h, s]
                circle(ax, (wide * h, y), str(s + 1), fill=GOLD if paid.any() else PAPER)
                text = ", ".join(f"reward {paid[a]:g} for {label('a', int(a) + 1)}" for a in np.flatnonzero(paid))
                words(ax, (wide * h, y + (0.5 if s == 0 else -0.5)), text, size=8, color=BROWN)
            if h + 1 < H:
                _edges(ax, mdp, h, wide, rows)
        ax.plot([wide * due] * 2, [-0.62, 0.45], color=BROWN, lw=0.9, ls=(0, (1, 2)))
        for y, (late, value) in zip((0.2, -0.35), values.items(), strict=True):
            at, ink = wide * late, GREEN if late <= due else RED
            ax.plot([0, at - 0.08], [y, y], color=ink, lw=1.7)
            ax.plot([0, at], [y, y], ls="none", marker="o", ms=4.5, color=ink)
            words(ax, (-0.22, y), f"delay {late}", ha="right", color=ink)
            text = f"{label('s', 1)} is seen, {'in time' if late <= due else 'too late'}: value "
            words(ax, (at + 0.16, y), text + str(Fraction(value).limit_denominator(1000)), ha="left", color=ink)
        return fig

    return Diagram(
        f"A delay of {d} costs nothing, a delay of {d + 1} costs half",
        f"Two states, two actions (Proposition 5 with d = {d}); the first state is drawn uniformly. The state stays as it is, whatever "
        f"is done, until step {due + 1} draws a new one uniformly; only at that step does naming the state earn a reward. The values are "
        "computed: those of the best executable policies.",
        draw,
    )


def _edges(ax: Any, mdp: TabularMDP, h: int, wide: float, rows: dict[int, float]) -> None:
    """The transitions of one step; actions that do the same share an arrow."""
    for s, y in rows.items():
        for kind in _kinds(mdp.transitions[h, [s]]):
            P = mdp.transitions[h, s, kind[0]]
            who = "" if len(kind) == mdp.n_actions else names("a", [a + 1 for a in kind]) + ": "
            for s2 in np.flatnonzero(P).tolist():
                text = "" if P[s2] == 1 and not who else who + fraction(P[s2])
                place: dict[str, Any] = {"where": 0.5, "off": 0.16} if s2 == s else {"where": 0.25, "off": 0.0}
                arrow(ax, (wide * h, y), (wide * (h + 1), rows[s2]), text, size=9, **place)


def _kinds(P: Any) -> list[list[int]]:
    """Actions with the same transitions P[s, a, s2], in order."""
    kinds: list[list[int]] = []
    for a in range(P.shape[1]):
        same = next((kind for kind in kinds if np.array_equal(P[:, kind[0]], P[:, a])), None)
        if same is None:
            kinds.append([a])
        else:
            same.append(a)
    return kinds


# -- chains ---------------------------------------------------------------------------------------------------------------


def chain(mdp: TabularMDP, *, title: str = "A chain") -> Diagram:
    """One row per kind of action; "…" stands for states that move as their neighbours do."""
    if not mdp.stationary:
        raise ValueError(
            f"{mdp!r} changes from step to step; expected a stationary process, which one picture can show"
        )
    reach = np.argwhere(mdp.transitions[0].max(axis=1) > 0)  # pairs (s, s2)
    far = int(np.abs(reach[:, 1] - reach[:, 0]).max())
    if far > 1:
        raise ValueError(f"{mdp!r} has a move over {far} states; expected moves to neighbours only, as in a chain")
    kinds = _kinds(mdp.transitions[0])
    paid = [int(s) for s in np.flatnonzero(mdp.rewards[0].any(axis=1))]
    shown = _shown(mdp, paid)

    def draw() -> Any:
        tall = 1.6
        fig, (ax,) = canvas((-2.6, len(shown) + 0.2, -tall * (len(kinds) - 1) - 0.75, 0.75), scale=0.68)
        for k, kind in enumerate(kinds):
            y = -tall * k
            given = f" {mdp.actions[kind[0]]}" if mdp.actions and len(kind) == 1 else ""
            words(ax, (-1.2, y), names("a", [a + 1 for a in kind]) + given, ha="right", size=10)
            for x, s in enumerate(shown):
                if s is None:
                    words(ax, (x, y), "…", size=14, color=SOFT)
                    continue
                circle(ax, (x, y), str(s + 1), fill=GOLD if s in paid else PAPER, r=0.28, size=8.5)
                _moves(ax, mdp.transitions[0, s, kind[0]], s, (x, y))
        return fig

    return Diagram(
        title,
        f"{mdp.n_states} states, {mdp.n_actions} actions; one row per kind of action, the likelier move in blue. The states in gold "
        f"({', '.join(str(s + 1) for s in paid)}) pay a reward, whatever the action. The states left out move as their neighbours do.",
        draw,
    )


def _moves(ax: Any, P: Any, s: int, at: tuple[float, float]) -> None:
    """Where one state goes under one action."""
    for s2 in np.flatnonzero(P).tolist():
        look: dict[str, Any] = {"ink": BLUE if P[s2] >= 0.5 else SOFT, "lw": 0.8 + 1.3 * P[s2], "size": 7.5}
        if s2 == s:
            side = "left" if s == 0 else "right" if s == len(P) - 1 else "top"
            loop(ax, at, fraction(P[s2]), r=0.28, side=side, **look)
        else:
            arrow(ax, at, (at[0] + s2 - s, at[1]), fraction(P[s2]), gap=0.24, lift=0.17, bend=0.45, off=0.14, **look)


def _shown(mdp: TabularMDP, paid: list[int]) -> list[int | None]:
    """The states to draw, None for a gap: around the ends, the rewards and wherever the moves change."""
    S = mdp.n_states
    P = np.pad(mdp.transitions[0], ((0, 0), (0, 0), (1, 1)))
    moves = [P[s, :, s : s + 3].tolist() for s in range(S)]  # to the left, stay, to the right
    changes = {0, S - 1, *paid, *(i for s in range(1, S) if moves[s] != moves[s - 1] for i in (s - 1, s))}
    keep = {s for s in range(S) if any(abs(s - at) <= 1 for at in changes)}
    shown: list[int | None] = []
    for s in range(S):
        if s in keep or (s - 1 in keep and s + 1 in keep):
            shown.append(s)
        elif shown[-1] is not None:
            shown.append(None)
    return shown
