"""What an agent knows at one time of a real episode: the paper's first figure, from a simulation.

Three rows over time: the states of the process, the observations on their way, the actions of the agent. Filled states have been
seen; the newest is dark, and the actions done since are the red queue. On the side, the law of the current state given all that.
Steps, states and actions are counted from 1 in the picture.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.model.information import Information, belief
from oldlight.model.policies import Policy
from oldlight.model.problem import ImpairedMDP
from oldlight.random_streams import Seed
from oldlight.report.sketch import (
    BLUE,
    BROKEN,
    FAINT,
    INK,
    PALE_BLUE,
    PALE_RED,
    PAPER,
    RED,
    SOFT,
    Diagram,
    arrow,
    canvas,
    circle,
    label,
    names,
    square,
    words,
)
from oldlight.simulation import simulate

TOP, BOTTOM = 2.35, 0.55  # the rows of the process and of the agent


def interaction(problem: ImpairedMDP, policy: Policy, *, h: int, seed: Seed = 0) -> Diagram:
    """One simulated episode of `problem` under `policy`, stopped when the action of step h (from 0) is due."""
    checks.whole("h", h, most=problem.horizon - 1)
    played = simulate(problem, policy, 1, seed=seed, record=True)
    columns = (played.states, played.actions, played.arrivals)
    warmup = played.warmup
    states, actions, arrivals = (
        {i - warmup: int(v) for i, v in enumerate(np.ravel(c))} for c in columns if c is not None
    )
    seen = [i for i in range(-warmup, h + 1) if 0 <= arrivals[i] <= h]
    t = max(seen, default=None)
    first = -warmup if t is None else t
    queue = tuple(actions[i] for i in range(first, h))
    info = Information.nothing_seen(queue) if t is None else Information.seen(t, states[t], queue, h - arrivals[t])
    law = belief(problem, info)

    def draw() -> Any:
        fig, (ax, side) = canvas((-warmup - 0.9, h + 1.9, -0.75, TOP + 0.75), (0, 3.2, -0.75, TOP + 0.75), scale=0.86)
        for i in range(-warmup, h + 1):
            _step(ax, i, h, t, arrivals[i], i in seen, i > -warmup, waiting=i >= first)
        now = h + 1.0
        square(ax, (now, BOTTOM), label("a", h + 1), fill=RED, ec=RED, ink=PAPER)
        ax.plot([now, now], [BOTTOM + 0.3, TOP - 0.34], color=RED, lw=0.8, ls=(0, (1, 2)), zorder=0)
        words(ax, (now, TOP + 0.52), f"now: time {h + 1}", color=RED)
        for y, row in ((TOP, "process"), ((TOP + BOTTOM) / 2, "link"), (BOTTOM, "agent")):
            words(ax, (-warmup + 0.45, y), row, ha="right", color=SOFT)
        if queue:
            ax.plot([first + 0.75, first + 0.75, h + 0.25, h + 0.25], [0.2, 0.1, 0.1, 0.2], color=RED, lw=1)
            words(ax, ((first + h + 1) / 2, -0.02), "done since", color=RED, size=8, va="top")
        known = ([] if t is None else [label("s", t + 1)]) + ([names("a", range(first + 1, h + 1))] if queue else [])
        text = f"{label('a', h + 1)} ~ {label('π', h + 1)}( · | {', '.join(known) or 'nothing'} )"
        words(ax, (now + 0.75, -0.42), text, ha="right", color=INK, size=9)
        _law(side, law, states[h], h, problem.mdp.states)
        return fig

    name = problem.mdp.states
    newest = (
        "none yet" if t is None else f"{label('s', t + 1)} = {name[states[t]] if name else f'state {states[t] + 1}'}"
    )
    done = names("a", range(first + 1, h + 1)) or "nothing"
    return Diagram(
        "Acting on old light",
        f"One simulated episode behind {problem.channel!r}. At time {h + 1} the newest observation is {newest}; since its step the "
        f"agent has done {done}. The policy chooses {label('a', h + 1)} from these alone: the states with a broken line have not "
        "been seen. Right: the law of the current state given what is known.",
        draw,
    )


def _step(ax: Any, i: int, h: int, t: int | None, came: int, seen: bool, follows: bool, *, waiting: bool) -> None:
    """State, action and observation of step i."""
    x = i + 1.0
    fill, ink = (BLUE, PAPER) if i == t else (PALE_BLUE, INK) if seen else (PAPER, SOFT)
    edge: dict[str, Any] = {} if seen else {"ls": BROKEN, "ec": SOFT}
    circle(ax, (x, TOP), label("s", i + 1), fill=fill, ink=ink, **edge)
    if follows:
        arrow(ax, (x - 1, TOP), (x, TOP), ink=SOFT, mutation_scale=7, lw=1)
    if i < h:
        square(ax, (x, BOTTOM), label("a", i + 1), fill=PALE_RED if waiting else PAPER, ec=RED if waiting else SOFT)
        arrow(ax, (x, BOTTOM), (x + 0.5, TOP), gap=0.28, ink=FAINT, lw=0.9, mutation_scale=6, zorder=1)
    if came == -1:
        arrow(ax, (x, TOP), (x + 0.34, TOP - 0.9), ink=SOFT, ls=BROKEN, arrowstyle="-", gap=0.32)
        words(ax, (x + 0.3, TOP - 0.78), "×", size=12, color=RED)
    elif came <= h:
        arrow(ax, (x, TOP), (came + 0.93, BOTTOM), ink=BLUE, lw=2.2 if i == t else 1.1, gap=0.35, zorder=1.5)
    elif (share := (h + 0.6 - i) / (came - i)) * (came - i + 1) > 0.9:  # still on its way: drawn as far as it has come
        end = (x + share * (came - i), TOP - share * (TOP - BOTTOM))
        arrow(ax, (x, TOP), end, ink=SOFT, ls=BROKEN, lw=1, gap=0.35)


def _law(ax: Any, law: NDArray[np.float64], true: int, h: int, given: tuple[str, ...] | None) -> None:
    """The belief as bars, the true state in red: at most nine states around the likeliest."""
    likely = np.sort(np.argsort(-law, kind="stable")[:9])
    shown = [int(s) for s in likely if law[s] > 1e-12 or s == true]
    shown = sorted({*shown, true})
    words(ax, (1.6, TOP + 0.52), f"belief about {label('s', h + 1)}", size=9)
    high, step = TOP + 0.1, min(0.42, 2.7 / len(shown))
    for k, s in enumerate(reversed(shown)):
        y = high - step * k
        words(
            ax,
            (0.98, y),
            given[s] if given else f"state {s + 1}",
            ha="right",
            size=7.5,
            color=RED if s == true else INK,
        )
        ax.barh(y, 1.5 * law[s] / law.max(), left=1.08, height=0.62 * step, color=RED if s == true else BLUE)
        words(ax, (1.14 + 1.5 * law[s] / law.max(), y), f"{law[s]:.2f}", ha="left", size=7.5, color=SOFT)
    words(ax, (1.6, high - step * len(shown) - 0.12), "red: where it really is", size=7.5, color=RED)
