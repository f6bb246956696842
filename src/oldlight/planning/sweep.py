"""The gap along a list of channels, and its price: what one more step, millisecond or percent of loss costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from oldlight import checks, drawing
from oldlight.arrays import Floats
from oldlight.model.channels import ConstantDelay, Loss
from oldlight.model.mdp import TabularMDP
from oldlight.model.problem import GivenChannel, ImpairedMDP, Start
from oldlight.planning.gap import Gap, gap, value_lost


@dataclass(frozen=True, eq=False)
class Sweep(drawing.Result):
    """The gap of one process behind several channels; made by `sweep`.

    Parameters
    ----------
    name : str
        What was varied: "delay", "delay ms", "loss rate" or "channel".
    labels : list
        Its values.
    gaps : list of Gap
        The gap of each.
    period_ms : float, optional
        The control period.

    Examples
    --------
    >>> import oldlight as ol
    >>> print(ol.sweep(ol.instances.dichotomy(1), delays=[0, 1, 2]))
    delay  full  impaired  gap  more
        0     1         1    0     0
        1     1         1    0     0
        2     1       0.5  0.5   0.5
    """

    name: str
    labels: list[Any]
    gaps: list[Gap]
    period_ms: float | None = None
    _data = "name period_ms rows"

    @property
    def gap(self) -> Floats:
        """The gap of each channel, shape (n,)."""
        return np.array([g.gap for g in self.gaps])

    values = checks.renamed_property("values", "gap")

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per channel, for a table or a file.

        `more` is what the channel costs more than the row before it; of delays in milliseconds or with a control period also
        `per ms`, of loss rates also `per percent`: that cost divided by how much longer or lossier the link became.
        """
        rows: list[dict[str, Any]] = []
        for i, (label, g) in enumerate(zip(self.labels, self.gaps, strict=True)):
            row: dict[str, Any] = {self.name: label}
            late = getattr(g.problem.channel, "d", None)
            if self.period_ms is not None and late is not None:
                row |= {"delay": late, "delay ms": label if self.name == "delay ms" else late * self.period_ms}
            row |= {"full": g.full, "impaired": g.impaired, "gap": g.gap}
            row["more"] = value_lost(g.problem, self.gaps[i - 1].impaired, g.impaired) if i else 0.0
            unit, scale = self._unit()
            if unit:
                change = (label - self.labels[i - 1]) * scale if i else 0.0
                row[unit] = row["more"] / change if change else 0.0
            rows.append(row)
        return rows

    def _unit(self) -> tuple[str, float]:
        """The unit a price is quoted in, and how many of them one label is."""
        if self.name == "loss rate":
            return "per percent", 100.0
        if self.name == "delay ms":
            return "per ms", 1.0
        return ("per ms", self.period_ms) if self.name == "delay" and self.period_ms is not None else ("", 1.0)

    def plot(self, ax: Any = None) -> Any:
        """Draw the gap along the sweep; returns the matplotlib axes."""
        ax = drawing.axes_of(ax)
        numeric = all(isinstance(x, int | float) for x in self.labels)
        x = self.labels if numeric else range(len(self.gaps))
        ax.plot(x, self.gap, marker="o")
        if not numeric:
            ax.set_xticks(list(x), [str(label) for label in self.labels], rotation=30, ha="right")
        ax.set_xlabel(self.name)
        ax.set_ylabel("gap: value with full information − best executable value")
        ax.set_ylim(bottom=0)
        return ax

    def __str__(self) -> str:
        """A small table."""
        return drawing.columns(self.rows)

    def __repr__(self) -> str:
        span = f"gap {self.gap.min():.6g} .. {self.gap.max():.6g}" if self.gaps else "empty"
        return f"Sweep({self.name}, {len(self.gaps)} channels, {span})"


def sweep(
    mdp: TabularMDP,
    *,
    delays: Iterable[int] | None = None,
    delays_ms: Iterable[float] | None = None,
    losses: Iterable[float] | None = None,
    channels: Iterable[GivenChannel] | None = None,
    period_ms: float | None = None,
    start: Start = None,
    **options: Any,
) -> Sweep:
    """The gap for each constant delay, loss rate or channel of a list.

    Parameters
    ----------
    mdp : TabularMDP
        The process.
    delays : iterable of int
        In steps. Exactly one of the four lists is given.
    delays_ms : iterable of float
        In milliseconds, at the control period `period_ms`.
    losses : iterable of float
        Loss rates.
    channels : iterable of channels
        As `ImpairedMDP` takes them.
    period_ms : float, optional
        The control period.
    start : None, "cold", "warm" or WarmStart()
        As `ImpairedMDP` takes it.
    **options
        Those of `solve`.

    Returns
    -------
    Sweep
        `.gap`, shape (n,), and `.rows`.

    Raises
    ------
    KeyboardInterrupt
        On Ctrl-C, with the sweep over what was finished as its attribute `partial`.

    Examples
    --------
    >>> import oldlight as ol
    >>> ol.sweep(ol.instances.sensing_chain(0.8, horizon=4), losses=[0, 0.2]).gap.round(4).tolist()
    [0.0, 0.05]
    """
    if sum(x is not None for x in (delays, delays_ms, losses, channels)) != 1:
        raise ValueError(
            "sweep takes exactly one of delays=[0, 1], delays_ms=[0, 15], losses=[0, .1] and channels=[...]"
        )
    if period_ms is not None:
        checks.positive("period_ms", period_ms)
    links: list[Any]
    if delays is not None:
        name, labels = "delay", list[Any](delays)
        links = [ConstantDelay(d) for d in labels]
    elif delays_ms is not None:
        if period_ms is None:
            raise ValueError("delays_ms needs the control period: sweep(mdp, delays_ms=[...], period_ms=20)")
        name, labels = "delay ms", list[Any](delays_ms)
        links = [ConstantDelay.from_ms(x, period_ms=period_ms) for x in labels]
    elif losses is not None:
        name, labels = "loss rate", list[Any](losses)
        links = [Loss(rate=x) for x in labels]
    else:
        name, labels = "channel", list[Any](channels or [])
        links = labels
    gaps: list[Gap] = []
    try:
        for link in links:
            gaps.append(gap(ImpairedMDP(mdp, link, start=start), **options))
    except KeyboardInterrupt as stopped:
        stopped.partial = Sweep(name, labels[: len(gaps)], gaps, period_ms)  # type: ignore[attr-defined]
        raise
    return Sweep(name, labels, gaps, period_ms)
