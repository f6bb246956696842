"""What each model of a link predicts for a plant, and what its plan earns on the recording itself.

For every candidate of `oldlight.traces.candidates` the plant is planned behind it; `predicted` is the value of that plan if the model were
true, `earned` what it earns on the recording (`oldlight.traces.replay`). All plans are played from the same starting points with the same
random numbers, so that differences between them have narrower intervals than the values. A row whose half-width is not under 5 % of the
value is *too short to tell*.

Planned are observations up to the age that tables can hold (`oldlight.traces.age_plan`); the age chain's plan acts on the belief beyond,
late messages included, and its prediction is on the whole chain, by simulation. QMDP acts on the belief everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from oldlight import checks
from oldlight.model.channels import Channel
from oldlight.model.mdp import TabularMDP
from oldlight.model.problem import ImpairedMDP
from oldlight.planning.link_solution import solve_within
from oldlight.random_streams import Seed, seed_number
from oldlight.simulation import simulate
from oldlight.traces.age_plan import AgePlan, BeliefPlan, table_age
from oldlight.traces.candidates import channels, usable_age
from oldlight.traces.counted import AgeCounts
from oldlight.traces.replay import Replay, interval, replay
from oldlight.traces.ticks import Run, runs_of
from oldlight.traces.trace import Trace

CHAIN, QMDP = "age chain", "QMDP"
TELLS = 0.05  # of the value, the half-width of a row that counts
NEAR = 0.002  # of the value: a certificate so narrow is a prediction


@dataclass(frozen=True, eq=False)
class Row:
    """One model: what it predicts for its plan (± the half-width where that was simulated), and what the plan earns."""

    name: str
    channel: Channel
    predicted: float
    predicted_half_width: float
    earned: Replay

    @property
    def tells(self) -> bool:
        """Is the half-width under 5 % of the value?"""
        return bool(self.earned.half_width < TELLS * abs(self.earned.value))

    @property
    def holds(self) -> bool:
        """Does the prediction lie in the interval on the recording (widened by its own)?"""
        return abs(self.predicted - self.earned.value) <= self.earned.half_width + self.predicted_half_width

    @property
    def verdict(self) -> str:
        if not self.tells:
            return "too short to tell"
        if self.holds:
            return "holds"
        off = (self.predicted - self.earned.value) / abs(self.earned.value)
        return f"{abs(off):.1%} too {'good' if off > 0 else 'bad'}"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "model": self.name,
            "channel": repr(self.channel),
            "predicted": self.predicted,
            "predicted_half_width": self.predicted_half_width,
            "earned": self.earned.value,
            "half_width": None if np.isinf(self.earned.half_width) else self.earned.half_width,
            "verdict": self.verdict,
            "guessed": self.earned.guessed,
        }


@dataclass(frozen=True, eq=False)
class Comparison:
    """The rows of every model, the age chain first; see the module's text.

    Parameters
    ----------
    rows : tuple of Row
        Of each model what it predicts and what its plan earns.
    trace : Trace
        The recording that was played on.
    period_ms : float
        Milliseconds of a tick.
    oldest : int
        The oldest observation of the plans' tables, in ticks.
    cut : float
        The share of the arriving observations that are older.
    notes : tuple of str
        What was assumed.

    Examples
    --------
    >>> import oldlight as ol
    >>> from oldlight.traces import compare_models
    >>> link = ol.Trace([5.0] * 400, sent_ms=[20.0 * i for i in range(400)], source="link")
    >>> found = compare_models(link, ol.instances.dichotomy(1, 4), period_ms=20, models=["deadlines"], episodes=200, per_tick=True)
    >>> found.best_deadline, found["age chain"].predicted
    ('deadline 1', 1.0)
    """

    rows: tuple[Row, ...]
    trace: Trace
    period_ms: float
    oldest: int
    cut: float
    notes: tuple[str, ...] = field(default=())

    def __getitem__(self, name: str) -> Row:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"no model {name!r}; there are {', '.join(row.name for row in self.rows)}")

    def difference(self, name: str, other: str) -> tuple[float, float]:
        """How much more the plan `name` earns than `other` on the recording, and the half-width of that: they were played alike."""
        one, two = self[name].earned, self[other].earned
        each = one.returns - two.returns
        return float(each.mean()), interval(each, one.at, one.horizon)[0]

    @property
    def best_deadline(self) -> str | None:
        """The deadline whose plan earns most."""
        rows = [row for row in self.rows if row.name.startswith("deadline")]
        return max(rows, key=lambda row: row.earned.value).name if rows else None

    @property
    def verdict(self) -> str:
        """The verdict of the table, as text."""
        chain = self[CHAIN]
        if not chain.tells:
            interval_of = (
                f"± {chain.earned.half_width:.3g}" if np.isfinite(chain.earned.half_width) else "without an interval"
            )
            return (
                f"Too short to tell: on the recording a plan earns {chain.earned.value:.4g} {interval_of}, and a difference of less cannot be seen. "
                "Measure longer."
            )
        said = "holds on the recording" if chain.holds else f"is {chain.verdict}"
        text = f"The age chain's prediction, {chain.predicted:.4g}, {said} ({chain.earned.value:.4g} ± {chain.earned.half_width:.2g})."
        wrong = [
            f"{row.name} ({row.verdict})" for row in self.rows if row.tells and not row.holds and row.name != CHAIN
        ]
        if wrong:
            text += f" Do not trust the predictions of {', '.join(wrong)}."
        for other in filter(None, (self.best_deadline, QMDP if any(row.name == QMDP for row in self.rows) else None)):
            more, wide = self.difference(CHAIN, other)
            word = "more than" if more > wide else "less than" if more < -wide else "as much as"
            text += f" Its plan earns {word} {other} ({more:+.3g} ± {wide:.2g})."
        return text

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "recording": self.trace.source,
            "period_ms": self.period_ms,
            "oldest": self.oldest,
            "cut": self.cut,
            "rows": [row.to_dict() for row in self.rows],
            "verdict": self.verdict,
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        rows = ", ".join(f"{row.name}: {row.verdict}" for row in self.rows[:4])
        return f"Comparison({len(self.rows)} models at {self.period_ms:g} ms a tick; {rows}{', ..' if len(self.rows) > 4 else ''})"

    def __str__(self) -> str:
        first = self.rows[0].earned
        lines = [
            f"{self.trace.source} at {self.period_ms:g} ms a tick, {len(first.returns):,} episodes of {first.horizon} ticks, a start every "
            f"{first.stride:.3g} ticks; tables up to age {self.oldest} ({self.cut:.1%} of the observations arrive older)",
            f"  {'model':16} {'predicted':>18} {'on the recording':>18}  verdict",
        ]
        for row in self.rows:
            own = f" ± {row.predicted_half_width:.2g}" if row.predicted_half_width else ""
            earned = f"{row.earned.value:.4g} ± {row.earned.half_width:.2g}"
            lines.append(f"  {row.name:16} {f'{row.predicted:.4g}{own}':>18} {earned:>18}  {row.verdict}")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes), self.verdict])

    def figure(self) -> Any:
        """The comparison as a figure of its own."""
        return self.plot().figure

    def plot(self, ax: Any = None) -> Any:
        """Predicted (crosses) and earned (dots with intervals) by model, on given matplotlib axes or new ones."""
        from matplotlib.figure import Figure

        ax = Figure(figsize=(7.0, 0.4 * len(self.rows) + 1.2), layout="constrained").subplots() if ax is None else ax
        place = np.arange(len(self.rows))[::-1]
        earned = np.array([row.earned.value for row in self.rows])
        wide = np.array([row.earned.half_width if np.isfinite(row.earned.half_width) else 0.0 for row in self.rows])
        ax.errorbar(
            earned, place, xerr=wide, fmt="o", ms=5, color="#1f6f8b", capsize=3, label="earned on the recording, 95%"
        )
        ax.plot(
            [row.predicted for row in self.rows],
            place,
            "x",
            ms=8,
            mew=2,
            color="#c8553d",
            label="predicted by the model",
        )
        ax.set_yticks(place, [row.name for row in self.rows])
        ax.set_xlabel("return of an episode")
        ax.set_title(f"{self.trace.source} at {self.period_ms:g} ms a tick", fontsize=10)
        ax.legend(frameon=False, fontsize=8, loc="best")
        ax.spines[["top", "right"]].set_visible(False)
        return ax


def compare_models(
    trace: Trace,
    mdp: TabularMDP,
    *,
    period_ms: float | None = None,
    models: Iterable[str] | None = None,
    on: Trace | None = None,
    episodes: int = 5_000,
    seconds: float = 2.0,
    seed: Seed = 0,
    per_tick: bool = False,
) -> Comparison:
    """Plan `mdp` behind every model of a recording; predict, and play on the recording.

    Parameters
    ----------
    trace : Trace
        The recording that the models are fitted to.
    mdp : TabularMDP
        The plant.
    period_ms : float, optional
        Milliseconds of a tick; the sending interval if None.
    models : iterable of str, optional
        Names of candidates ("deadline 2", or "deadlines" for all of them) and "QMDP"; all if None. The age chain is always there.
    on : Trace, optional
        Another recording to play on (the second half, say); the same if None.
    episodes : int
        Episodes on the recording, and of a simulated prediction.
    seconds : float
        For closing the gap of each plan's certificate, counted as work: the same plan on every machine.
    seed : int, SeedSequence or Generator
        Random seed.
    per_tick : bool
        One message at each tick instead of the recording's own.

    Returns
    -------
    Comparison
        With a table and a verdict as text.

    Examples
    --------
    >>> import numpy as np, oldlight as ol
    >>> from oldlight.traces import compare_models
    >>> rng = np.random.default_rng(0)
    >>> link = ol.Trace(np.where(rng.random(4000) < 0.1, np.nan, 15.0), sent_ms=20.0 * np.arange(4000), source="link")
    >>> found = compare_models(link, ol.instances.sensing_chain(0.8), period_ms=40, models=["packets"], episodes=3000)
    >>> found["age chain"].holds
    True
    """
    T, number = trace.period_of(period_ms), seed_number(seed)
    runs, notes = runs_of(trace, T, per_tick=per_tick)
    chain = recorded_chain(trace, mdp, T, runs)
    rows = []
    for name in _wanted([*chain.known, QMDP], models):
        problem = chain.whole if name in (CHAIN, QMDP) else ImpairedMDP(mdp, chain.known[name])
        policy, value = _plan(name, problem, chain.tables, seconds)
        half_width = 0.0
        if value is None:
            played = simulate(problem, policy, episodes, seed=number)
            value, half_width = played.mean, played.half_width
        earned = replay(problem, policy, on or trace, period_ms=T, episodes=episodes, seed=number, per_tick=per_tick)
        rows.append(Row(name, problem.channel, value, half_width, earned))
    return Comparison(tuple(rows), on or trace, T, chain.oldest, chain.cut, (*trace.notes, *notes))


@dataclass(frozen=True, eq=False)
class RecordedChain:
    """A plant behind what was counted in a recording: the whole age chain, the one that tables can hold (up to age `oldest`; the share `cut` of what
    arrives is older), and the other candidates fitted to the same ticks."""

    whole: ImpairedMDP
    tables: ImpairedMDP
    known: dict[str, Channel]
    oldest: int
    cut: float

    def plan(self, seconds: float) -> tuple[Any, float | None]:
        """The plan for the age chain, and its value if the chain were true; None where that has to be simulated."""
        return _plan(CHAIN, self.whole, self.tables, seconds)


def recorded_chain(trace: Trace, mdp: TabularMDP, period_ms: float, runs: list[Run]) -> RecordedChain:
    """What is planned for a recording, whose runs at this period are given."""
    counts = AgeCounts(trace, period_ms, runs)
    whole = counts.cut_at(usable_age(counts))
    oldest = table_age(mdp, usable_age(counts))
    cut = counts.cut_at(oldest)
    known = channels(cut, mdp.finite_horizon)
    full = ImpairedMDP(mdp, whole.chain(horizon=mdp.finite_horizon))
    return RecordedChain(full, ImpairedMDP(mdp, known[CHAIN]), known, oldest, cut.cut)


def _wanted(known: list[str], models: Iterable[str] | None) -> list[str]:
    """The models to compare, the age chain first."""
    deadlines = [name for name in known if name.startswith("deadline")]
    names: list[str] = [CHAIN]
    for name in known if models is None else models:
        checks.one_of("models", name, [*known, "deadlines"])
        names += deadlines if name == "deadlines" else [name]
    return list(dict.fromkeys(names))


def _plan(name: str, problem: ImpairedMDP, tables: ImpairedMDP, seconds: float) -> tuple[Any, float | None]:
    """A model's plan, and its value if the model were true; None where that has to be simulated."""
    if name == QMDP:
        return BeliefPlan(problem), None
    if name == CHAIN:
        plan = AgePlan(problem, tables, seconds=seconds)
        known = plan.plan if problem.channel == tables.channel and _narrow(plan.plan) else None
        return (plan, None) if known is None else (known.policy, known.lower)
    found = solve_within(problem, NEAR * abs(problem.reward_span), seconds)
    return found.policy, found.lower if _narrow(found) else None


def _narrow(found: Any) -> bool:
    return bool(found.upper - found.lower <= NEAR * abs(found.upper))
