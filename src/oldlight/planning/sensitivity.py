"""What the next millisecond, percent or step costs, and where the impairment hurts.

**Prices.** The value behind the link next to this one (`oldlight.planning.neighbouring_links`) minus the value behind this one: differences of optima, not
derivatives. Both are planned; where plans have bounds, so has their difference.

**Where it hurts.** Let π be the best executable policy and V*, Q* the values with full information. Then the gap is split exactly into what each
action loses to the best one for the true state,

    V* − V^π = Σ_h Σ_s lost[h, s],      lost[h, s] = Σ_a P^π(s_h = s, a_h = a)·( V*_h(s) − Q*_h(s, a) ) ≥ 0,

because V*_h(s_h) − Q*_h(s_h, a_h) is what is given up at step h (the performance difference lemma). P^π comes from a walk over the information states that the policy
reaches, or where those are too many from played episodes, and then the split is an estimate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from oldlight import checks, drawing
from oldlight.arrays import Floats
from oldlight.checks import TooLarge
from oldlight.model.information import current
from oldlight.model.link_information import law_of_state
from oldlight.model.policies import probabilities_at
from oldlight.model.problem import ImpairedMDP, checked_problem
from oldlight.planning import Solution, solve
from oldlight.planning.evaluation import visits
from oldlight.planning.link_walk import choices, reached
from oldlight.planning.neighbouring_links import Neighbour, neighbours
from oldlight.progress import Callback, progress_bar
from oldlight.random_streams import Seed
from oldlight.simulation import simulate
from oldlight.simulation.link_episodes import by_automaton, decide, link_of

SHOWN = 3  # states and steps in the printed table


@dataclass(frozen=True)
class Price(drawing.Result):
    """What one change of the link costs.

    Parameters
    ----------
    change : str
        What was changed.
    channel : Channel
        The link after it.
    value : float
        The best executable value behind it.
    cost : float
        The value before minus that after; negative: a gain.
    low, high : float
        Bounds on the cost, equal to it where both plans are exact.
    unit : str
        "step" or "percent".
    amount : float
        How many of them were added.
    per_ms : float or None
        The cost of a millisecond, on average over a step, where the control period is known.

    Examples
    --------
    >>> import oldlight as ol
    >>> found = ol.sensitivity(ol.ImpairedMDP(ol.instances.dichotomy(1), "constant:1"))
    >>> found.prices[0].change, found.prices[0].cost
    ('one more step of delay', 0.5)
    """

    change: str
    channel: Any
    value: float
    cost: float
    low: float
    high: float
    unit: str
    amount: float
    per_ms: float | None


@dataclass(frozen=True, eq=False)
class Sensitivity(drawing.Result):
    """What a little more of each impairment costs, and where the impairment that there is hurts; made by `sensitivity`.

    Parameters
    ----------
    problem : ImpairedMDP
        The process and its channel.
    full : float
        The value with full information.
    solution : Solution
        The plan behind the channel.
    prices : list of Price
        One for each link next to this one.
    lost : ndarray, shape (H, S)
        What the best executable policy loses in state s at step h; adds up to the gap.
    half_width : float
        Half of a 95% confidence interval of the sum of `lost`; 0 where it is exact.
    notes : tuple of str
        What could not be priced, and why.

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.ConstantDelay(2).with_period(20))
    >>> print(ol.sensitivity(problem))
    Sensitivity of ImpairedMDP(TabularMDP(S=20, A=5, H=10, stationary), ConstantDelay(d=2).with_period(20), start=cold)
    value 2.72705, 1.23401 (31.15%) less than with full information
                    change    value        cost       per ms  % of value
    one more step of delay  2.25722    0.469837    0.0234918     17.2287
    one step of delay less  3.31166   -0.584607    0.0292303    -21.4373
     one percent more lost  2.72206  0.00499366                 0.183116
        one step of jitter  2.80063  -0.0735777  -0.00367888    -2.69807
    lost most in the states 7 (13.7%), 12 (13.7%), 8 (8.0%)
    lost most at the steps 0 (46.4%), 1 (41.5%), 4 (3.7%)
    """

    problem: ImpairedMDP
    full: float
    solution: Solution
    prices: list[Price]
    lost: Floats
    half_width: float
    notes: tuple[str, ...] = ()
    _data = "problem value full gap exact half_width lost by_step by_state notes prices"

    @property
    def value(self) -> float:
        """What the plan earns."""
        return self.solution.value

    @property
    def gap(self) -> float:
        """What full information would earn more."""
        return self.full - self.value

    @property
    def exact(self) -> bool:
        """Is `lost` exact (or counted in played episodes)?"""
        return self.half_width == 0

    @property
    def by_step(self) -> Floats:
        """What is lost at each step, shape (H,)."""
        return np.asarray(self.lost.sum(axis=1))

    @property
    def by_state(self) -> Floats:
        """What is lost in each state, shape (S,)."""
        return np.asarray(self.lost.sum(axis=0))

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each price."""
        rows = []
        for p in self.prices:
            row: dict[str, Any] = {"change": p.change, "value": p.value, "cost": p.cost}
            if not (p.low == p.high == p.cost):
                row |= {"at least": p.low, "at most": p.high}
            if self.problem.period_ms is not None:
                row["per ms"] = "" if p.per_ms is None else p.per_ms
            row["% of value"] = 100 * p.cost / abs(self.value) if self.value else 0.0
            rows.append(row)
        names = list(dict.fromkeys(name for row in rows for name in row))
        return [{name: row.get(name, "") for name in names} for row in rows]

    def name_of(self, s: int) -> str:
        """The name of a state, or its number."""
        return str(s) if self.problem.mdp.states is None else self.problem.mdp.states[s]

    def plot(self, ax: Any = None) -> Any:
        """Draw the value lost by step and state as a map; returns the matplotlib axes."""
        ax = drawing.axes_of(ax)
        H, S = self.lost.shape
        image = ax.pcolormesh(
            np.arange(H + 1) - 0.5, np.arange(S + 1) - 0.5, self.lost.T, cmap="magma_r", shading="flat"
        )
        ax.figure.colorbar(image, ax=ax, label="value lost")
        ax.set_xlabel("step")
        ax.set_ylabel("state")
        if self.problem.mdp.states is not None and S <= 30:
            ax.set_yticks(range(S), self.problem.mdp.states, fontsize=7)
        ax.set_title(f"where {self.gap:.4g} of {self.full:.4g} is lost", fontsize=10)
        return ax

    def figure(self) -> Any:
        """The prices as bars beside the map, as a figure of its own."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9.5, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        place = np.arange(len(self.prices))[::-1]
        left.barh(
            place, [p.cost for p in self.prices], color=["#c8553d" if p.cost > 0 else "#1f6f8b" for p in self.prices]
        )
        left.set_yticks(place, [p.change for p in self.prices], fontsize=8)
        left.axvline(0, color="black", lw=0.8)
        left.set_xlabel("cost (left of 0: a gain)")
        self.plot(right)
        return figure

    def __str__(self) -> str:
        """A small table."""
        share = f" ({100 * self.gap / abs(self.full):.4g}%)" if self.full else ""
        lines = [
            f"Sensitivity of {self.problem!r}",
            f"value {self.value:.6g}, {self.gap:.6g}{share} less than with full information",
            drawing.columns(self.rows),
        ]
        sure = "" if self.exact else f" (by played episodes, the sum ± {self.half_width:.2g})"
        total = float(self.lost.sum())
        if total > 0:
            states = [
                f"{self.name_of(s)} ({self.by_state[s] / total:.1%})"
                for s in np.argsort(-self.by_state, kind="stable")[:SHOWN].tolist()
            ]
            steps = [
                f"{h} ({self.by_step[h] / total:.1%})"
                for h in np.argsort(-self.by_step, kind="stable")[:SHOWN].tolist()
            ]
            lines += [
                f"lost most in the states {', '.join(states)}{sure}",
                f"lost most at the steps {', '.join(steps)}{sure}",
            ]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def __repr__(self) -> str:
        largest = max(self.prices, key=lambda p: p.cost, default=None)
        most = "" if largest is None else f"; {largest.change} costs {largest.cost:.6g}"
        return f"Sensitivity(value {self.value:.6g}, gap {self.gap:.6g}{most})"


def sensitivity(
    problem: ImpairedMDP,
    *,
    tolerance: float = 0.0,
    seconds: float | None = None,
    max_bytes: int | None = None,
    max_states: int = 50_000,
    episodes: int = 100_000,
    seed: Seed = 0,
    progress: bool | Callback | None = None,
) -> Sensitivity:
    """What one more step, millisecond or percent costs behind this link, and where the impairment hurts most.

    Parameters
    ----------
    problem : ImpairedMDP
        The process and its channel.
    tolerance, seconds, max_bytes : float, float or None, int or None
        Of each plan, as `solve` takes them.
    max_states : int
        The most information states that are walked over for `lost`; beyond, episodes are played.
    episodes : int
        How many are played then.
    seed : int, SeedSequence or Generator
        Random seed of these episodes.
    progress : bool or function of (done, total), optional
        A progress bar or none, or a callback; None: a bar on a terminal after two seconds.

    Returns
    -------
    Sensitivity
        `.prices`, `.lost` by step and state, a table when printed.

    Examples
    --------
    >>> import oldlight as ol
    >>> found = ol.sensitivity(ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "loss:0.2"))
    >>> [(p.change, round(p.cost, 4)) for p in found.prices]
    [('one more step of delay', 0.6343), ('one percent more lost', 0.0102), ('one percent less lost', -0.01)]
    >>> bool(abs(found.lost.sum() - found.gap) < 1e-9)
    True
    """
    checked_problem(problem, "sensitivity")
    checks.whole("max_states", max_states)
    checks.whole("episodes", episodes, least=2)
    options: dict[str, Any] = {"tolerance": tolerance, "seconds": seconds, "max_bytes": max_bytes, "progress": False}
    changes = list(neighbours(problem.channel))
    with progress_bar(progress, "sensitivity") as callback:
        here = solve(problem, **options)
        prices: list[Price] = []
        notes: list[str] = []
        for k, change in enumerate(changes):
            if callback is not None:
                callback(k + 1, len(changes) + 1)
            found = _price(problem, here, change, options)
            if isinstance(found, Price):
                prices.append(found)
            else:
                notes.append(found)
        if not any(p.unit == "percent" for p in prices):
            notes.append(f"one percent more lost is not defined behind {type(problem.channel).__name__}")
        full, advantage = _advantages(problem)
        lost, half_width = _lost(problem, here.policy, advantage, max_states, (episodes, seed))
    return Sensitivity(problem, full, here, prices, lost, half_width, tuple(notes))


def _price(problem: ImpairedMDP, here: Solution, change: Neighbour, options: dict[str, Any]) -> Price | str:
    """The price of a change, or why there is none."""
    try:
        there = solve(problem.behind(change.channel), **options)
    except (TooLarge, ValueError) as error:
        return f"{change.change} is not priced: {error}"
    period = problem.period_ms
    cost = here.value - there.value
    low, high = (cost, cost) if here.exact and there.exact else (here.lower - there.upper, here.upper - there.lower)
    per_ms = cost / (change.amount * period) if period is not None and change.unit == "step" else None
    return Price(change.change, change.channel, there.value, cost, low, high, change.unit, change.amount, per_ms)


def _advantages(problem: ImpairedMDP) -> tuple[float, Floats]:
    """V* at the start, and V*_h(s) − Q*_h(s, a), axes (h, s, a)."""
    H = problem.mdp.finite_horizon
    V, out = np.zeros(problem.n_states), np.empty((H, problem.n_states, problem.n_actions))
    for h in range(H - 1, -1, -1):
        q = problem.rewards_at(h) + problem.mdp.expected(V, max(h, 0))
        V = q.max(axis=1)
        out[h] = V[:, None] - q
    return float(problem.state_at_zero @ V), out


def _lost(
    problem: ImpairedMDP, policy: Any, advantage: Floats, max_states: int, play: tuple[int, Seed]
) -> tuple[Floats, float]:
    """lost[h, s] of the module's text, and the half-width of its sum."""
    out = np.zeros(advantage.shape[:2])
    for h, at in enumerate(_occupied(problem, policy, max_states)):
        if at is None:
            break
        for weight, b, actions in at:
            out[h] += weight * b * (advantage[h] @ actions)
    else:
        return out, 0.0
    played = simulate(problem, policy, play[0], seed=play[1], record=True)
    H, n = len(advantage), len(played.returns)
    s, a, _ = (np.asarray(x, dtype=np.int64)[:, played.warmup :].T for x in played.record)  # [h, episode]
    given_up: Any = advantage[np.arange(H)[:, None], s, a]
    for h in range(H):
        out[h] = np.bincount(s[h], given_up[h], minlength=len(out[h])) / n
    spread = float(given_up.sum(axis=0).std(ddof=1))
    return out, max(1.959963984540054 * spread / np.sqrt(n), 3.0 / n * problem.reward_span)


def _occupied(
    problem: ImpairedMDP, policy: Any, max_states: int
) -> Iterator[list[tuple[float, Floats, Floats]] | None]:
    """For each h what the policy reaches: (probability, law of s_h, probabilities of the actions); None where that is too much."""
    A = problem.n_actions
    if by_automaton(problem, policy):
        link, choose = link_of(problem, policy), cache(partial(decide, problem, policy))
        for at in reached(problem.mdp, link, choose, initial=problem.initial, max_states=max_states):
            if at is None:
                yield None
                return
            found = []
            for info, weight in at.items():
                mix = np.zeros(A)
                for a, p in choices(choose, info):
                    mix[a] = p
                found.append((weight, law_of_state(problem.mdp, info, len(info.queue), problem.initial), mix))
            yield found
        return
    for seen in visits(problem, policy, max_states):
        if seen is None:
            yield None
            return
        yield [(p, current(problem, info), probabilities_at(problem, policy, info)) for info, p in seen.items()]
