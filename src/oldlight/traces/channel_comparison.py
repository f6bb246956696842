"""Which link is better for a plant: channels and recordings side by side, and what it costs to plan for one and run on another.

**Value.** Behind a channel the best executable value is planned, with its certificate. Of a recording an age chain is counted (`oldlight.traces.counted`), the
plant is planned behind it (`oldlight.traces.age_plan`), and its value is what that plan earns on the recording itself, with an interval by blocks of time
(`oldlight.traces.replay`).

**One plan on another link.** The plan for link i acts on what link j delivers, as a controller would that was made for i (`oldlight.traces.following`): recordings
are replayed, channels are drawn, n episodes each; losses are not announced to a plan for another link. All plans meet the same episodes of link j with the same random numbers of the plant, so

    loss[i, j] = (what the plan for j earns on j) − (what the plan for i earns on j)

has a narrower interval than either. Where j is a channel, its own plan is the best there is, and the loss is ≥ 0 but for sampling error; on a recording
another plan may well do better, and then the loss is negative.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.arrays import Floats
from oldlight.model.channels import Channel
from oldlight.model.mdp import TabularMDP
from oldlight.model.problem import ImpairedMDP
from oldlight.planning import solve
from oldlight.planning.evaluation import unimpaired
from oldlight.planning.link_solution import solve_within
from oldlight.progress import Callback, progress_bar
from oldlight.random_streams import Seed, seed_number
from oldlight.simulation import simulate
from oldlight.simulation.episodes import half_width
from oldlight.traces.comparison import NEAR, recorded_chain
from oldlight.traces.links_compared import ChannelComparison, LinkRow
from oldlight.traces.replay import CHUNK, Player, interval, recorded, starting_points
from oldlight.traces.ticks import NEVER, Run
from oldlight.traces.trace import Trace, read_trace

Link = Channel | str | Mapping[str, Any] | Trace | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class _Planned:
    """A link with its plan; `runs` are where episodes are played, at `begins`, and `at` the times of these."""

    problem: ImpairedMDP
    policy: Any
    lower: float
    upper: float
    recording: Trace | None
    runs: list[Run]
    begins: NDArray[np.int64]
    at: Floats


def compare_channels(
    mdp: TabularMDP,
    links: Mapping[str, Link],
    *,
    period_ms: float | None = None,
    episodes: int = 5_000,
    seconds: float = 2.0,
    seed: Seed = 0,
    per_tick: bool = False,
    progress: bool | Callback | None = None,
) -> ChannelComparison:
    """The value of a plant behind each of several links, and what it costs to plan for one of them and run on another.

    Parameters
    ----------
    mdp : TabularMDP
        The plant, from a cold start.
    links : mapping of names to links
        Each a channel (an object, text such as "constant:1", or data), a `Trace`, or the path of a recording (a `pathlib.Path`).
    period_ms : float, optional
        Milliseconds of a step; if None that of the channels that carry one, else the sending interval of the recordings.
    episodes : int
        Episodes of each plan on each link.
    seconds : float
        For closing the gap of each plan's certificate, counted as work: the same plan on every machine.
    seed : int, SeedSequence or Generator
        Random seed.
    per_tick : bool
        Of recordings: one message at each tick instead of the recording's own.
    progress : bool or function of (done, total), optional
        A progress bar or none, or a callback; None: a bar on a terminal after two seconds.

    Returns
    -------
    ChannelComparison
        `.rows`, `.loss`, `.verdict`, a table when printed.

    Examples
    --------
    >>> import numpy as np, oldlight as ol
    >>> rng = np.random.default_rng(0)
    >>> wifi = ol.Trace(np.where(rng.random(4000) < 0.2, np.nan, 15.0), sent_ms=20.0 * np.arange(4000), source="wifi")
    >>> found = ol.compare_channels(ol.instances.sensing_chain(0.8), {"wired": "constant:1", "wifi": wifi}, period_ms=20, episodes=1000, per_tick=True)
    >>> found.best
    'wired'
    """
    if not isinstance(mdp, TabularMDP):
        raise TypeError(f"mdp is of type {type(mdp).__name__}, expected a TabularMDP")
    if not isinstance(links, Mapping) or not links:
        raise ValueError('links is empty or not a mapping; expected {"wifi": trace, "wired": "constant:1"}')
    n, number = checks.whole("episodes", episodes, least=2), seed_number(seed)
    checks.positive("seconds", seconds)
    given = {str(name): _link(str(name), link) for name, link in links.items()}
    T = _period(given, period_ms)
    full = solve(unimpaired(ImpairedMDP(mdp, "none")), progress=False).value
    with progress_bar(progress, "comparing links") as callback:
        done, total = 0, len(given) + len(given) ** 2

        def tick() -> None:
            nonlocal done
            done += 1
            if callback is not None:
                callback(done, total)

        planned = {}
        for name, link in given.items():
            planned[name] = _planned(mdp, link, T, n, seconds, number, per_tick)
            tick()
        returns = {}
        for here, there in product(planned, repeat=2):
            returns[here, there] = _played(planned[here], planned[there], number)
            tick()
    return _compared(planned, returns, full, T, n)


def _link(name: str, link: Any) -> Channel | Trace:
    if isinstance(link, Trace | Channel):
        return link
    if isinstance(link, os.PathLike):
        return read_trace(Path(link))
    if isinstance(link, str | Mapping):
        from oldlight.model.channels.text import channel_of

        return channel_of(link)
    raise TypeError(
        f"links[{name!r}] is of type {type(link).__name__}, expected a channel, text such as 'constant:1', a Trace, or the path of a recording"
    )


def _period(given: Mapping[str, Channel | Trace], period_ms: float | None) -> float | None:
    """Milliseconds of a tick: given, or what the links agree on; None where no link has any."""
    if period_ms is not None:
        return checks.positive("period_ms", period_ms)
    carried = {name: link.period_ms for name, link in given.items() if isinstance(link, Channel)}
    known = {name: period for name, period in carried.items() if period is not None}
    if not known:
        known = {name: link.period_of(None) for name, link in given.items() if isinstance(link, Trace)}
    if len({round(period, 6) for period in known.values()}) > 1:
        said = ", ".join(f"{name} {period:g} ms" for name, period in known.items())
        raise ValueError(f"the links have different periods ({said}); say which one is meant: period_ms=20")
    return next(iter(known.values()), None)


def _planned(
    mdp: TabularMDP, link: Channel | Trace, T: float | None, n: int, seconds: float, seed: int, per_tick: bool
) -> _Planned:
    H = mdp.finite_horizon
    if isinstance(link, Trace):
        runs, period = recorded(link, T, per_tick)
        begins, at = starting_points(runs, H, link.source, period)
        pick = np.arange(n) * len(begins) // n
        chain = recorded_chain(link, mdp, period, runs)
        policy, value = chain.plan(seconds)
        bound = np.nan if value is None else value
        return _Planned(chain.whole, policy, bound, bound, link, runs, begins[pick], at[pick])
    link.automaton(1)  # refuses a delay law that depends on the process: it cannot be played for another plan
    problem = ImpairedMDP(mdp, link.with_period(T) if T is not None and link.period_ms is None else link)
    found = solve_within(problem, NEAR * abs(problem.reward_span), seconds)
    arrivals = simulate(problem, found.policy, n, seed=seed, record=True).arrivals
    assert arrivals is not None
    late = np.where(arrivals < 0, NEVER, arrivals.astype(np.int64) - np.arange(H))  # [episode, step]
    runs = [Run(row, float(e * H), 0.0) for e, row in enumerate(late)]
    begins = np.arange(n) * H
    return _Planned(problem, found.policy, found.lower, found.upper, None, runs, begins, begins.astype(np.float64))


def _played(plan: _Planned, on: _Planned, seed: int) -> Floats:
    """The returns of a plan on the episodes of a link."""
    player = Player(plan.problem, plan.policy, on.runs)
    parts = [player.play(on.begins[i : i + CHUNK], seed, i // CHUNK).returns for i in range(0, len(on.begins), CHUNK)]
    return np.concatenate(parts)


def _compared(
    planned: dict[str, _Planned],
    returns: dict[tuple[str, str], Floats],
    full: float,
    T: float | None,
    episodes: int,
) -> ChannelComparison:
    names = list(planned)
    earned, earned_width, loss, loss_width = np.zeros((4, len(names), len(names)))
    for (i, here), (j, there) in product(enumerate(names), repeat=2):
        got, less = returns[here, there], returns[there, there] - returns[here, there]
        earned[i, j], earned_width[i, j] = got.mean(), _half_width(got, planned[there])
        loss[i, j], loss_width[i, j] = less.mean(), 0.0 if i == j else _half_width(less, planned[there])
    rows, notes = [], []
    for k, (name, plan) in enumerate(planned.items()):
        if plan.recording is None:
            middle = (plan.lower + plan.upper) / 2
            rows.append(LinkRow(name, repr(plan.problem.channel), middle, plan.lower, plan.upper, "plan", full))
        else:
            value, wide = float(earned[k, k]), float(earned_width[k, k])
            rows.append(LinkRow(name, plan.recording.source, value, value - wide, value + wide, "recording", full))
            notes += [f"{name}: {note}" for note in plan.recording.notes]
    return ChannelComparison(rows, full, earned, earned_width, loss, loss_width, T, episodes, tuple(notes))


def _half_width(values: Floats, on: _Planned) -> float:
    """Half of a 95 % interval of the mean: by blocks of time on a recording, of independent episodes behind a channel."""
    if on.recording is not None:
        return interval(values, on.at, on.problem.mdp.finite_horizon)[0]
    return half_width(values)
