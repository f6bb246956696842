"""The result of `oldlight.compare_channels`: values, prices, what a plan for one link loses on another, a verdict, a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from oldlight import drawing
from oldlight.arrays import Floats


@dataclass(frozen=True)
class LinkRow(drawing.Result):
    """One link: the value of its plan, between low and high; by its certificate, or on the recording with a 95 % interval."""

    name: str
    link: str
    value: float
    low: float
    high: float
    by: str  # "plan" or "recording"
    full: float
    _data = "name link value low high by full price price_share"

    @property
    def price(self) -> float:
        """What full information would earn more."""
        return self.full - self.value

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2

    @property
    def price_share(self) -> float | None:
        """The price as a share of the value with full information."""
        return self.price / abs(self.full) if self.full else None


@dataclass(frozen=True, eq=False)
class ChannelComparison(drawing.Result):
    """Several links behind one plant; made by `compare_channels`.

    Parameters
    ----------
    rows : list of LinkRow
        Of each link the value with its interval, and the price against full information.
    full : float
        The value with full information.
    earned, earned_half_width : ndarray, shape (links, links)
        [i, j]: what the plan for link i earns on link j in played episodes, with the half-width of its 95 % interval.
    loss, loss_half_width : ndarray, shape (links, links)
        [i, j]: how much less that is than the plan for j earns on the same episodes.
    period_ms : float or None
        Milliseconds of a step.
    episodes : int
        Of each plan on each link.
    notes : tuple of str
        What was assumed about recordings.

    Examples
    --------
    >>> import oldlight as ol
    >>> links = {"near": "constant:1", "far": "constant:2", "lossy": "loss:0.3"}
    >>> found = ol.compare_channels(ol.instances.sensing_chain(0.8, horizon=6), links, episodes=2000)
    >>> found.best, found.names
    ('lossy', ['near', 'far', 'lossy'])
    >>> bool(found.loss[1, 0] > found.loss_half_width[1, 0])  # a plan for two steps of delay wastes a link with one
    True
    """

    rows: list[LinkRow]
    full: float
    earned: Floats
    earned_half_width: Floats
    loss: Floats
    loss_half_width: Floats
    period_ms: float | None
    episodes: int
    notes: tuple[str, ...] = ()
    _data = "rows full period_ms episodes verdict earned earned_half_width loss loss_half_width notes"

    @property
    def names(self) -> list[str]:
        """The names of the links."""
        return [row.name for row in self.rows]

    def __getitem__(self, name: str) -> LinkRow:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"no link {name!r}; there are {', '.join(self.names)}")

    @property
    def ranking(self) -> list[LinkRow]:
        """The links, the one with the largest value first."""
        return sorted(self.rows, key=lambda row: -row.value)

    @property
    def best(self) -> str:
        """The link with the largest value."""
        return self.ranking[0].name

    def difference(self, name: str, other: str) -> tuple[float, float]:
        """How much more is earned on `name` than on `other`, and how far that can be off: two recordings are independent of each
        other, so their half-widths add as squares; bounds of plans add."""
        one, two = self[name], self[other]
        wide = [row.half_width for row in (one, two)]
        both = one.by == two.by == "recording"
        return one.value - two.value, float(np.hypot(wide[0], wide[1])) if both else sum(wide)

    @property
    def safest(self) -> tuple[str, float]:
        """The plan whose largest loss on any of the links is smallest, and that loss."""
        worst = self.loss.max(axis=1)
        i = int(worst.argmin())
        return self.names[i], float(worst[i])

    @property
    def verdict(self) -> str:
        """The verdict of the tables, as text."""
        first, *others = self.ranking
        text = f"{first.name} is the best link: {_within(first)}"
        if self.full:
            text += f", {100 * first.price / abs(self.full):.3g}% below full information"
        text += "."
        for row in others:
            more, wide = self.difference(first.name, row.name)
            if not np.isfinite(wide):
                text += f" {row.name} was recorded for too short a time to tell ({row.value:.4g})."
            elif more > wide:
                text += f" {row.name} earns {more:.3g} less" + (f" (± {wide:.2g})." if wide > 1e-9 else ".")
            else:
                text += f" {row.name} cannot be told apart from it ({-more:+.3g} ± {wide:.2g})."
        return text + self._mismatch()

    def _mismatch(self) -> str:
        if len(self.rows) < 2:
            return ""
        off = np.where(np.eye(len(self.rows), dtype=bool), -np.inf, self.loss)
        i, j = np.unravel_index(int(off.argmax()), off.shape)
        if off[i, j] <= self.loss_half_width[i, j]:
            return " Which link the plan was made for makes no difference that can be seen."
        name, most = self.safest
        text = (
            f" The most expensive mistake is to plan for {self.names[i]} and run on {self.names[j]}: {self.loss[i, j]:.3g} ± {self.loss_half_width[i, j]:.2g} less than "
            f"with the plan for {self.names[j]}."
        )
        return f"{text} If the link is not known, plan for {name}: at most {max(most, 0.0):.3g} is lost."

    @property
    def table(self) -> list[dict[str, Any]]:
        """One dictionary for each link: its value and price, and what its plan loses on each of the others."""
        out = []
        for i, row in enumerate(self.rows):
            share = f"{100 * row.price / abs(self.full):.3g}%" if self.full else ""
            cells = {
                f"lost on {name}": _loss(self.loss[i, j], self.loss_half_width[i, j])
                for j, name in enumerate(self.names)
            }
            out.append({"link": row.name, "value": _within(row), "price": f"{row.price:.4g}", "of full": share} | cells)
        return out

    def plot(self, ax: Any = None) -> Any:
        """Draw the values with their intervals beside that with full information; returns the matplotlib axes."""
        ax = drawing.axes_of(ax)
        place = np.arange(len(self.rows))[::-1]
        wide = [row.half_width if np.isfinite(row.half_width) else 0.0 for row in self.rows]
        ax.errorbar([row.value for row in self.rows], place, xerr=wide, fmt="o", color="#1f6f8b", capsize=4)
        ax.axvline(self.full, color="black", lw=1, ls=":", label="full information")
        ax.set_yticks(place, [f"{row.name} ({row.by})" for row in self.rows])
        ax.set_ylim(-0.6, len(self.rows) - 0.4)
        ax.set_xlabel("value")
        ax.legend(frameon=False, fontsize=8)
        return ax

    def figure(self) -> Any:
        """The values beside the losses of each plan on each link, as a figure of its own."""
        from matplotlib.figure import Figure

        m = len(self.rows)
        figure = Figure(figsize=(9.5, 0.55 * m + 2.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        self.plot(left)
        image = right.imshow(np.maximum(self.loss, 0.0), cmap="OrRd")
        for i in range(m):
            for j in range(m):
                dark = self.loss[i, j] > 0.6 * self.loss.max()
                right.text(
                    j,
                    i,
                    _loss(self.loss[i, j], np.nan),
                    ha="center",
                    va="center",
                    fontsize=8,
                    color="white" if dark else "black",
                )
        right.set_xticks(range(m), self.names, rotation=30, ha="right")
        right.set_yticks(range(m), self.names)
        right.set_xlabel("run on")
        right.set_ylabel("planned for")
        figure.colorbar(image, ax=right, label="value lost")
        return figure

    def __str__(self) -> str:
        """A small table and the verdict."""
        period = "" if self.period_ms is None else f" at {self.period_ms:g} ms a step"
        head = f"{len(self.rows)} links{period}; value with full information {self.full:.6g}; {self.episodes:,} episodes of each plan on each link"
        return "\n".join([head, drawing.columns(self.table), self.verdict, *(f"note: {note}" for note in self.notes)])

    def __repr__(self) -> str:
        return f"ChannelComparison({len(self.rows)} links, best {self.best}: {self.ranking[0].value:.6g} of {self.full:.6g})"


def _within(row: LinkRow) -> str:
    if not np.isfinite(row.half_width):
        return f"{row.value:.4g} (no interval)"
    return f"{row.value:.6g}" if row.half_width <= 1e-9 * abs(row.value) else f"{row.value:.4g} ± {row.half_width:.2g}"


def _loss(loss: float, wide: float) -> str:
    return f"{loss:.3g}" if not np.isfinite(wide) or wide == 0 else f"{loss:.3g} ± {wide:.1g}"
