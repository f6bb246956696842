"""A process counted from a log: how often each action was done in each state, where that led, and what it earned.

With n(s, a) the visits whose next state is known, n(s, a, s2) of them to s2, and r_i the rewards of all visits,

    P(s2|s, a) = n(s, a, s2)/n(s, a),        R(s, a) = mean of r_i,

pooled over all steps, or for each step h on its own. **Intervals** of P are Clopper and Pearson's: each covers its probability with at least the
confidence asked for, however few the visits. Those of R are Student's, ±∞ with one visit (rewards that never differ: of width 0).

**Pairs that were never met** (s, a with n(s, a) = 0: never done, or what followed was never seen) have no count. `unmet` says what is assumed of them:

    "worst"    they lead to one more state, "unmet", which earns the lowest mean reward of any pair at every step, and absorbs: a plan gains
               nothing from what nobody has tried (the default)
    "stay"     the state stays, and the step earns the lowest mean reward of any pair
    "mean"     they do what the other actions of that state did on average, or stay where none was tried
    "refuse"   the log is refused

**Ends.** An episode of the log may be shorter than the horizon: with ends="cut" nothing is known of what follows (and nothing is counted);
with ends="absorb" it ended, so its last step leads to one more state, "end", which earns nothing and absorbs.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.arrays import Floats, Ints
from oldlight.model.log_table import Columns, LogTable, read_log, wrong
from oldlight.model.mdp import TabularMDP
from oldlight.model.table_size import check_room

UNMET = ("worst", "stay", "mean", "refuse")
ENDS = ("cut", "absorb")
SHOWN = 10  # pairs in a printed table


@dataclass(frozen=True, eq=False)
class LogCounts:
    """What a log holds of a process: visits, successors, rewards, and how sure they make the model.

    Parameters
    ----------
    states, actions : tuple of str
        Their names, in the model's order (without the states that were added).
    episodes, steps : int
        How many.
    visits : ndarray, shape (S, A) or (H, S, A)
        How often each action was done in each state.
    pair, following, count : ndarray, shape (n,)
        Of each transition that occurs: the place of (h, s, a) in `visits` laid flat, the next state, how often.
    reward, deviation : ndarray, like `visits`
        Mean and standard deviation of what was earned; NaN where nothing was.

    Examples
    --------
    >>> import oldlight as ol
    >>> rows = [(0, 0, "low", "wait", 0.0), (0, 1, "high", "stop", 1.0), (0, 2, "low", "stop", 0.0), (0, 3, "low", None, None)]
    >>> log = ol.TabularMDP.from_log(rows, unmet="stay", warn=False).log
    >>> round(log.coverage, 2), log.unmet
    (0.75, [('high', 'wait')])
    """

    states: tuple[str, ...]
    actions: tuple[str, ...]
    episodes: int
    steps: int
    visits: Ints
    pair: Ints
    following: Ints
    count: Ints
    reward: Floats
    deviation: Floats

    @property
    def met(self) -> NDArray[np.bool_]:
        """Like `visits`: was it done, and what followed seen? After the last step of a model per step nothing follows."""
        known = np.bincount(self.pair, minlength=self.visits.size).reshape(self.visits.shape) > 0
        if self.visits.ndim == 3:
            known[-1] = self.visits[-1] > 0
        return known

    @property
    def coverage(self) -> float:
        """The share of pairs (s, a), or (h, s, a), that were met, among the states in which anything was done."""
        tried = (self.visits > 0).any(axis=-1)
        return float(self.met[tried].mean()) if tried.any() else 0.0

    @property
    def unmet(self) -> list[tuple[Any, ...]]:
        """The pairs (state, action) that were never met; of a model per step (step, state, action), for states in which anything was done."""
        lacking = ~self.met
        if lacking.ndim == 3:
            lacking &= (self.visits > 0).any(axis=-1, keepdims=True)
        return [(*map(int, h), self.states[s], self.actions[a]) for *h, s, a in np.argwhere(lacking)]

    def _by_pair(self) -> Ints:
        return self.visits if self.visits.ndim == 2 else np.asarray(self.visits.sum(axis=0))

    def intervals(self, confidence: float = 0.95) -> list[dict[str, Any]]:
        """One row for each transition that occurs: its probability with an interval, and the mean reward of its pair with one.

        Parameters
        ----------
        confidence : float
            Probability with which one interval holds, in (0, 1).

        Returns
        -------
        list of dict
            step (None where steps are pooled), state, action, next, count, visits, probability, low, high, reward, reward_low, reward_high.
        """
        from scipy.stats import beta, t

        level = checks.probability("confidence", confidence)
        tail = (1.0 - level) / 2
        known = np.bincount(self.pair, self.count, minlength=self.visits.size)
        n, k = known[self.pair], self.count
        low = np.where(k > 0, beta.ppf(tail, np.maximum(k, 1), n - k + 1), 0.0)
        high = np.where(k < n, beta.ppf(1 - tail, k + 1, np.maximum(n - k, 1)), 1.0)
        seen = self.visits.reshape(-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            half = t.ppf(1 - tail, np.maximum(seen - 1, 1)) * self.deviation.reshape(-1) / np.sqrt(seen)
        half[seen == 1] = np.inf
        mean, S, A = self.reward.reshape(-1), len(self.states), len(self.actions)
        rows = []
        for i, (pair, s2) in enumerate(zip(self.pair.tolist(), self.following.tolist(), strict=True)):
            rows.append({
                "step": None if self.visits.ndim == 2 else pair // (S * A),
                "state": self.states[pair // A % S], "action": self.actions[pair % A],
                "next": self.states[s2] if s2 < S else "end", "count": int(k[i]), "visits": int(n[i]),
                "probability": float(k[i] / n[i]), "low": float(low[i]), "high": float(high[i]), "reward": float(mean[pair]),
                "reward_low": float(mean[pair] - half[pair]), "reward_high": float(mean[pair] + half[pair]),
            })  # fmt: skip
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Plain values: sizes, coverage, the pairs never met, visits per state and action."""
        return {
            "episodes": self.episodes,
            "steps": self.steps,
            "states": list(self.states),
            "actions": list(self.actions),
            "coverage": self.coverage,
            "unmet": [list(pair) for pair in self.unmet],
            "visits": self.visits.tolist(),
        }

    def plot(self, ax: Any = None) -> Any:
        """Draw how often each action was done in each state; returns the axes."""
        from oldlight.drawing import axes_of

        ax = axes_of(ax)
        picture = ax.imshow(np.log10(1 + self._by_pair()).T, aspect="auto", interpolation="nearest")
        ax.figure.colorbar(picture, ax=ax, label="log10 of 1 + visits")
        ax.set(xlabel="state", ylabel="action", title=f"{self.steps:,} steps in {self.episodes:,} episodes")
        return ax

    def __str__(self) -> str:
        by_pair, missing = self._by_pair(), self.unmet
        lines = [
            f"{self.steps:,} steps in {self.episodes:,} episodes; S={len(self.states)}, A={len(self.actions)}",
            f"coverage: {100 * self.coverage:.4g} % of the pairs in states where anything was done",
            f"visits per met pair: {int(by_pair[by_pair > 0].min(initial=0))} to {int(by_pair.max(initial=0))}",
        ]
        if missing:
            more = f", and {len(missing) - SHOWN:,} more" if len(missing) > SHOWN else ""
            lines.append("never met: " + ", ".join(f"({', '.join(map(str, pair))})" for pair in missing[:SHOWN]) + more)
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"LogCounts({self.steps:,} steps, {self.episodes:,} episodes, coverage {100 * self.coverage:.4g} %)"


class CountedMDP(TabularMDP):
    """A process counted from a log (`TabularMDP.from_log`): a TabularMDP whose `log` says what it rests on.

    Parameters
    ----------
    log : LogCounts
        The counts.
    **parts
        The arguments of `TabularMDP`.

    Examples
    --------
    >>> import oldlight as ol
    >>> log = {"episode": [1, 1, 1], "step": [0, 1, 2], "state": [0, 1, 0], "action": [0, 0, 0], "reward": [0, 1, 0]}
    >>> mdp = ol.TabularMDP.from_log(log)
    >>> mdp.log
    LogCounts(3 steps, 1 episodes, coverage 100 %)
    """

    log: LogCounts

    def __init__(self, *, log: LogCounts, **parts: Any) -> None:
        self.log = log
        super().__init__(**parts)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"log": self.log}


@dataclass(frozen=True)
class LogOptions:
    """How a log is counted; see `TabularMDP.from_log`."""

    horizon: int | None = None
    stationary: bool = True
    unmet: str = "worst"
    ends: str = "cut"
    states: Any = None
    actions: Any = None
    warn: bool = True


def counted_model(table: Any, columns: Columns, options: LogOptions) -> CountedMDP:
    """The model that a log gives; see the module's text."""
    checks.one_of("unmet", options.unmet, UNMET)
    checks.one_of("ends", options.ends, ENDS)
    log = read_log(table, columns)
    longest = max(steps[-1].step + (steps[-1].action is not None) for steps in log.episodes.values())
    H = max(longest, 1) if options.horizon is None else checks.whole("horizon", options.horizon, least=1)
    counts, first = _count(log, H, options)
    missing = counts.unmet
    if missing and options.unmet == "refuse":
        wrong(log.source, f"{_unmet_words(counts)}. Ways out: a longer log, or unmet='worst', 'stay' or 'mean'")
    mdp = CountedMDP(log=counts, horizon=H, **_model(counts, first, H, options))
    if missing and options.warn:
        assumed = {
            "worst": "they lead to the state 'unmet', which earns the lowest mean reward of any pair from then on",
            "stay": "they are assumed to change nothing and to earn the lowest mean reward of any pair",
            "mean": "they are assumed to do what the other actions of their state did on average",
        }[options.unmet]
        warnings.warn(f"{_unmet_words(counts)}; {assumed}. mdp.log.unmet lists them", stacklevel=4)
    return mdp


def _unmet_words(counts: LogCounts) -> str:
    missing = counts.unmet
    names = ("step", "state", "action")[-len(missing[0]) :]
    first = ", ".join(f"{name} {part}" for name, part in zip(names, missing[0], strict=True))
    what = "pairs of state and action" if len(names) == 2 else "triples of step, state and action"
    return (
        f"{len(missing):,} of {counts.visits.size:,} {what} never occur in the log with what followed, first ({first})"
    )


def _names(given: Any, found: set[Any], what: str, source: str) -> dict[Any, int]:
    """Each name with its number: as given, or sorted (numbers by size)."""
    if given is None:
        numeric = all(isinstance(name, int) or (isinstance(name, str) and name.isdigit()) for name in found)
        order = sorted(found, key=int if numeric else lambda name: (not isinstance(name, int), str(name)))
        return {name: i for i, name in enumerate(order)}
    known = {name: i for i, name in enumerate(given)}
    known |= {str(name): i for name, i in known.items()}
    strange = next((name for name in sorted(found, key=str) if name not in known), None)
    if strange is not None:
        wrong(source, f"{what} {strange!r} is not one of those given: {[*given][:8]}")
    return known


def _count(log: LogTable, H: int, options: LogOptions) -> tuple[LogCounts, Floats]:
    """The counts, and how often each state was the first."""
    rows = [row for steps in log.episodes.values() for row in steps]
    met = {row.state for row in rows} | {row.next_state for row in rows if row.next_state is not None}
    s_of = _names(options.states, met, "state", log.source)
    a_of = _names(options.actions, {row.action for row in rows if row.action is not None}, "action", log.source)
    if not a_of:
        wrong(log.source, "no row has an action; expected at least one step that was acted on")
    states, actions = _labels(options.states, s_of), _labels(options.actions, a_of)
    S, A, end = len(states), len(actions), len(states)
    shape = (S, A) if options.stationary else (H, S, A)
    steps_apart = 1 if options.stationary else H
    check_room(log.source, f"a table of {S:,} states and {A:,} actions", steps_apart, S + 2, S + 2, A)
    first = np.zeros(S)
    pairs, rewards, moves = [], [], []
    for steps in log.episodes.values():
        first[s_of[steps[0].state]] += 1.0
        for i, row in enumerate(steps):
            if row.action is None or (not options.stationary and row.step >= H):
                continue
            pair = s_of[row.state] * A + a_of[row.action] + (0 if options.stationary else row.step * S * A)
            pairs.append(pair)
            rewards.append(row.reward)
            later = steps[i + 1] if i + 1 < len(steps) else None
            if row.next_state is not None:
                moves.append((pair, s_of[row.next_state]))
            elif later is not None and later.step == row.step + 1:
                moves.append((pair, s_of[later.state]))
            elif later is None and options.ends == "absorb":
                moves.append((pair, end))
    n = int(np.prod(shape))
    visits = np.bincount(pairs, minlength=n)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.bincount(pairs, rewards, minlength=n) / visits
        squares = np.bincount(pairs, (np.array(rewards) - mean[pairs]) ** 2, minlength=n)
        deviation = np.sqrt(squares / np.maximum(visits - 1, 1))
    deviation[visits == 0] = np.nan
    unique, count = np.unique(np.array(moves, np.int64).reshape(-1, 2), axis=0, return_counts=True)
    counts = LogCounts(
        states, actions, len(log.episodes), len(pairs), visits.reshape(shape), unique[:, 0], unique[:, 1], count,
        mean.reshape(shape), deviation.reshape(shape),
    )  # fmt: skip
    return counts, first


def _labels(given: Any, number: dict[Any, int]) -> tuple[str, ...]:
    return tuple(str(name) for name in (number if given is None else given))


def _model(counts: LogCounts, first: Floats, H: int, options: LogOptions) -> dict[str, Any]:
    """The arguments of `TabularMDP`."""
    S, A = len(counts.states), len(counts.actions)
    ending = options.ends == "absorb"
    P = np.zeros((*counts.visits.shape, S + ending))
    np.add.at(P.reshape(-1, S + ending), (counts.pair, counts.following), counts.count)
    known = P.sum(axis=-1)
    lowest = float(np.nanmin(counts.reward)) if np.isfinite(counts.reward).any() else 0.0
    R = np.where(counts.visits > 0, counts.reward, lowest)
    lacking = known == 0
    if not options.stationary:  # nothing follows the last step: its states stay
        last = np.argwhere(lacking[-1] & (counts.visits[-1] > 0))
        P[-1, *last.T, last[:, 0]], known[-1, *last.T] = 1.0, 1.0
        lacking[-1, *last.T] = False
    added = (["end"] if ending else []) + (["unmet"] if options.unmet == "worst" and lacking.any() else [])
    P[~lacking] /= known[~lacking][:, None]
    P = np.concatenate([P, np.zeros((*P.shape[:-1], S + len(added) - P.shape[-1]))], axis=-1)
    places = np.argwhere(lacking)
    if "unmet" in added:
        P[*places.T, -1] = 1.0
    elif options.unmet == "mean":
        total = np.where(lacking[..., None], 0.0, P).sum(axis=-2)
        tried = (~lacking).sum(axis=-1)
        alone = tried[*places[:, :-1].T] == 0
        P[*places.T] = total[*places[:, :-1].T] / np.maximum(tried[*places[:, :-1].T], 1)[:, None]
        P[*places[alone].T, places[alone][:, -2]] = 1.0
        earned = np.where(lacking, 0.0, R).sum(axis=-1) / np.maximum(tried, 1)
        R[*places.T] = np.where(
            counts.visits[*places.T] > 0, R[*places.T], np.where(alone, lowest, earned[*places[:, :-1].T])
        )
    else:
        P[*places.T, places[:, -2]] = 1.0
    for i, name in enumerate(added):
        row = np.zeros((*P.shape[:-3], 1, A, P.shape[-1]))
        row[..., S + i] = 1.0
        P = np.concatenate([P, row], axis=-3)
        R = np.concatenate([R, np.full((*R.shape[:-2], 1, A), 0.0 if name == "end" else lowest)], axis=-2)
    initial = np.concatenate([first / first.sum(), np.zeros(len(added))])
    return {
        "transitions": P,
        "rewards": R,
        "initial": initial,
        "states": [*counts.states, *added],
        "actions": counts.actions,
    }
