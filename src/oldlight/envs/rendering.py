"""One moment of an impaired process, for people: the truth, what the agent sees, what is under way, the actions since.

As text (`ansi`) and as a picture (`rgb_array`), made from the same `Scene`. Both know more than the agent does: the true state,
and when what is under way will arrive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.envs.batch_simulator import BatchSimulator

TRUE, SEEN, WAY, LOST, PAID = "#1b3a57", "#d9822b", "#8fa3b5", "#b03030", "#fbe7b2"
CELLS = 60  # with more states than this the strip of states has no cells of its own


@dataclass(frozen=True)
class Scene:
    """Time `now` of `horizon`; states[i], settles[i], lost[i] for the steps −warmup.. that have been sent; `newest`: the step the
    agent sees (None: nothing yet); `queue`: (step, action) for the actions since and under way."""

    now: int
    horizon: int
    warmup: int
    states: list[int]
    settles: list[int]
    lost: list[bool]
    newest: int | None
    queue: list[tuple[int, int]]
    earned: float
    link: str
    state_names: list[str]
    action_names: list[str]
    paid: list[float]  # the most that each state pays at this step

    @classmethod
    def of(cls, simulator: BatchSimulator, e: int, plain: bool, earned: float) -> Scene:
        from oldlight.kernels import batch_simulator as k

        problem, past, agent = simulator.problem, simulator.known[:, :, e], simulator.agent[:, e].tolist()
        warmup, now, t, m = problem.warmup, agent[k.CLOCK], agent[k.NEWEST], agent[k.LENGTH]
        sent = past[:, : warmup + now + 1].tolist()
        last = warmup + now + problem.actuation
        mdp = problem.mdp
        return cls(
            now, problem.horizon, warmup, sent[k.STATE], sent[k.SETTLES], [bool(gone) for gone in sent[k.LOST]],
            None if t < -warmup else t, [(row - warmup, int(past[k.ACTION, row])) for row in range(last - m, last)], earned,
            "no link: the state itself is seen" if plain else repr(problem.channel),
            list(mdp.states or map(str, range(mdp.n_states))), list(mdp.actions or map(str, range(mdp.n_actions))),
            mdp.rewards[min(now, problem.horizon - 1)].max(axis=1).tolist(),
        )  # fmt: skip

    @property
    def true(self) -> int:
        return self.states[-1]

    @property
    def seen(self) -> int | None:
        return None if self.newest is None else self.states[self.newest + self.warmup]

    @property
    def under_way(self) -> list[tuple[int, int, bool]]:
        """(step, when it arrives, lost) of what was sent and has not settled."""
        rows = enumerate(zip(self.settles, self.lost, strict=True))
        return [(i - self.warmup, when, gone) for i, (when, gone) in rows if when > self.now]

    @property
    def what_is_seen(self) -> str:
        if self.newest is None or self.seen is None:
            return "nothing yet"
        age = self.now - self.newest
        old = "now" if age == 0 else f"{age} step{'s' if age > 1 else ''} ago"
        return f"state {self.state_names[self.seen]}, as it was {old} (step {self.newest})"


def ansi(scene: Scene) -> str:
    """A few lines of text."""
    strip = ["." if paid <= 0 else "$" for paid in scene.paid]
    if scene.seen is not None:
        strip[scene.seen] = "o"
    strip[scene.true] = "@" if scene.seen == scene.true else "X"
    way = ", ".join(f"step {i} ({'lost' if gone else 'arrives'} at {when})" for i, when, gone in scene.under_way)
    queue = ", ".join(f"{scene.action_names[a]}" for _, a in scene.queue)
    lines = [
        f"time {scene.now} of {scene.horizon}   reward so far {scene.earned:g}   {scene.link}",
        *([f"[{''.join(strip)}]   X true, o seen, @ both, $ reward"] if len(strip) <= CELLS else []),
        f"true state    {scene.state_names[scene.true]}",
        f"agent sees    {scene.what_is_seen}",
        f"under way     {way or 'nothing'}",
        f"action queue  {queue or 'empty'}",
    ]
    return "\n".join(lines) + "\n"


def rgb_array(scene: Scene) -> NDArray[np.uint8]:
    """A picture, 960 × 600."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 6.0), dpi=100, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    axes = figure.subplots(3, 1, gridspec_kw={"height_ratios": [1.1, 2.2, 0.9], "hspace": 0.55})
    figure.subplots_adjust(left=0.09, right=0.98, top=0.9, bottom=0.05)
    figure.suptitle(
        f"time {scene.now} of {scene.horizon}      reward so far {scene.earned:g}      {_short(scene.link)}",
        x=0.09,
        ha="left",
        fontsize=11,
    )
    _states(axes[0], scene)
    _link(axes[1], scene)
    _queue(axes[2], scene)
    canvas.draw()  # type: ignore[no-untyped-call]
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()  # type: ignore[no-untyped-call]


def _short(text: str) -> str:
    text = text.replace(", first=None", "")
    return text if len(text) <= 80 else text[:79] + "…"


def _bare(axis: Any, title: str) -> None:
    axis.set_title(title, loc="left", fontsize=10)
    axis.set_yticks([])
    for side in ("left", "right", "top"):
        axis.spines[side].set_visible(False)


def _states(axis: Any, scene: Scene) -> None:
    """The states in a row; the true one, and the one that the agent sees."""
    from matplotlib.patches import Rectangle

    S = len(scene.paid)
    _bare(axis, f"true state: {scene.state_names[scene.true]}        agent sees: {scene.what_is_seen}")
    if S <= CELLS:
        for s, paid in enumerate(scene.paid):
            axis.add_patch(Rectangle((s - 0.5, 0), 1, 1, facecolor=PAID if paid > 0 else "white", edgecolor="#bbbbbb"))
    if scene.seen is not None:
        axis.plot([scene.seen], [0.5], "o", ms=18, mfc="none", mec=SEEN, mew=3, label="seen")
    axis.plot([scene.true], [0.5], "o", ms=10, color=TRUE, label="true")
    axis.set_xlim(-0.6, S - 0.4)
    axis.set_ylim(-0.05, 1.05)
    axis.spines["bottom"].set_visible(False)
    axis.tick_params(length=0, labelsize=8)
    shown = np.arange(S) if S <= CELLS else np.linspace(0, S - 1, 11).astype(int)
    axis.set_xticks(shown)
    names = [scene.state_names[s] for s in shown]
    long = max(map(len, names)) > 3 and S > 6
    axis.set_xticklabels(names, rotation=35 if long else 0, ha="right" if long else "center", fontsize=7 if long else 8)


def _link(axis: Any, scene: Scene) -> None:
    """Each observation from the moment it is sent to the moment it arrives: the slope is the delay."""
    _bare(axis, "the link: sent above, received below")
    end = scene.horizon
    for row, (when, gone) in enumerate(zip(scene.settles, scene.lost, strict=True)):
        i = row - scene.warmup
        arrived = when <= scene.now
        colour = LOST if gone else (SEEN if i == scene.newest else TRUE if arrived else WAY)
        stop = min(when, scene.now) if arrived else when
        axis.plot([i, stop], [1, 0], "-" if arrived else ":", color=colour, lw=2.4 if i == scene.newest else 1.3)
        axis.plot([i], [1], "o", ms=4, color=TRUE)
        if gone:
            axis.plot([i + 0.3 * (when - i)], [0.7], "x", ms=9, mew=2.5, color=LOST)
        elif arrived:
            axis.plot([when], [0], "v", ms=6, color=colour)
        axis.text(i, 1.08, scene.state_names[scene.states[row]][:8], ha="center", va="bottom", fontsize=7, color=TRUE)
    axis.plot([scene.now, scene.now], [-0.1, 1], color="#444444", lw=1)
    axis.text(scene.now, -0.12, "now", ha="center", va="top", fontsize=8)
    lines = (("newest seen", SEEN, "-"), ("arrived", TRUE, "-"), ("under way", WAY, ":"), ("lost", LOST, ":"))
    for name, colour, style in lines:
        axis.plot([], [], style, color=colour, label=name)
    axis.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4, fontsize=8, frameon=False)
    axis.set_xlim(-scene.warmup - 0.6, end + 0.6)
    axis.set_ylim(-0.32, 1.35)
    axis.set_xticks(np.arange(-scene.warmup, end + 1, max(1, (end + scene.warmup) // 20)))
    axis.set_yticks([0, 1], ["agent", "process"], fontsize=8)
    axis.tick_params(axis="y", length=0)
    axis.tick_params(axis="x", labelsize=8)


def _queue(axis: Any, scene: Scene) -> None:
    """The actions since the newest observation, and the place of the next."""
    from matplotlib.patches import Rectangle

    _bare(axis, "action queue: done or under way since what the agent sees")
    axis.spines["bottom"].set_visible(False)
    axis.set_xticks([])
    shown = scene.queue[-12:]
    for j, (step, a) in enumerate(shown):
        axis.add_patch(Rectangle((j, 0), 0.94, 1, facecolor="#e8eef4", edgecolor=TRUE))
        axis.text(j + 0.47, 0.6, scene.action_names[a][:10], ha="center", va="center", fontsize=8)
        axis.text(j + 0.47, 0.2, f"step {step}", ha="center", va="center", fontsize=6, color="#555555")
    n = len(shown)
    axis.add_patch(Rectangle((n, 0), 0.94, 1, facecolor="none", edgecolor="#999999", linestyle=":"))
    axis.text(n + 0.47, 0.5, "next" if scene.now < scene.horizon else "end", ha="center", va="center", fontsize=8)
    axis.set_xlim(-0.05, max(13, n + 1))
    axis.set_ylim(-0.05, 1.05)
