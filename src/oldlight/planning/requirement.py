"""The requirement on a link: how late, lossy, jittery or slow it may be before the best executable policy misses a target.

With V(x) the best executable value at level x of an impairment (`oldlight.planning.impairments`), and a target v, the answer is the largest
level x̂ of a grid x_0 < x_1 < .. up to which V(x) ≥ v, with a certificate on both sides: a policy that earns at least v at x̂
(lower bound), and no policy that earns v at the next level (upper bound below v).

**Where values fall** (delay from a cold start, loss rate, blackouts; the arguments are in `oldlight.planning.impairments`) the grid is bisected:
O(log n) plans. Delays are tried upwards instead, because each step costs A times as much as the one before, so all shorter delays together
cost less than the last. The grid of a rate or a length is refined by tens until V changes by at most tolerance·|V*| from one level to the next.

**Elsewhere** (jitter at a fixed mean, sensor period, control period, delay from a warm start) every level is planned: the answer is the last level before the
first failure, and later ranges that reach the target again are reported.

**Not decided.** A plan that had to stop early (`seconds`), or whose tables do not fit (`max_bytes`: then the ladder bounds the value), may leave
v between its bounds. Such levels are reported; nothing is claimed about them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, overload

import numpy as np

from oldlight import checks
from oldlight.arrays import Floats
from oldlight.model.mdp import TabularMDP
from oldlight.model.problem import ImpairedMDP, Start
from oldlight.planning import solve
from oldlight.planning.evaluation import unimpaired
from oldlight.planning.frontier import Frontier, frontier
from oldlight.planning.impairments import CONTROL, IMPAIRMENTS, checked_levels, in_steps, levels_of
from oldlight.planning.requirement_result import Requirement
from oldlight.planning.requirement_search import PlantAt, Question, along
from oldlight.progress import Callback, progress_bar

Levels = Iterable[float] | Mapping[str, Iterable[float]]
JITTERED = 3.0  # steps: the largest mean delay in a frontier of delay and jitter, if nothing is said
MEMORY = 2**30  # bytes of a plan's tables, if nothing is said


@overload
def requirement(
    mdp: TabularMDP | PlantAt, *, target: float | str, over: str, relative: bool = ..., at: Mapping[str, float] | None = ...,
    period_ms: float | None = ..., levels: Levels | None = ..., step: float | None = ..., most: float | None = ..., start: Start = ...,
    actuation: int = ..., tolerance: float = ..., seconds: float | None = ..., max_bytes: int | None = ..., grid: int = ...,
    progress: bool | Callback | None = ...,
) -> Requirement: ...  # fmt: skip
@overload
def requirement(
    mdp: TabularMDP | PlantAt, *, target: float | str, over: tuple[str, str] | list[str], relative: bool = ..., at: Mapping[str, float] | None = ...,
    period_ms: float | None = ..., levels: Levels | None = ..., step: float | None = ..., most: float | None = ..., start: Start = ...,
    actuation: int = ..., tolerance: float = ..., seconds: float | None = ..., max_bytes: int | None = ..., grid: int = ...,
    progress: bool | Callback | None = ...,
) -> Frontier: ...  # fmt: skip
def requirement(
    mdp: TabularMDP | PlantAt,
    *,
    target: float | str,
    over: str | tuple[str, str] | list[str],
    relative: bool = False,
    at: Mapping[str, float] | None = None,
    period_ms: float | None = None,
    levels: Levels | None = None,
    step: float | None = None,
    most: float | None = None,
    start: Start = None,
    actuation: int = 0,
    tolerance: float = 1e-3,
    seconds: float | None = None,
    max_bytes: int | None = None,
    grid: int = 9,
    progress: bool | Callback | None = None,
) -> Requirement | Frontier:
    """The largest delay, loss rate, jitter, blackout length, sensor or control period at which a target is still reached.

    Parameters
    ----------
    mdp : TabularMDP or function of a control period in ms
        The plant. Over "control_period" it is given at its own steps, of `period_ms` milliseconds each, and every action is held for n of
        them (`oldlight.planning.holding`); or it is a function mdp_of(period_ms) that makes the plant for a control period, with `levels`.
    target : float or str
        A value; or a share of the value with full information, as text such as "95%". Of a negative value V* (costs) the share p is
        V* − (1 − p)·|V*|.
    over : str, or a pair of str
        "delay", "loss", "jitter", "blackout", "sensor_period" or "control_period" (`oldlight.planning.impairments` says what each is); a
        pair of them for the frontier.
    relative : bool
        Is the number `target` a share (0.95) instead of a value?
    at : mapping, optional
        What else the link does: {"delay": 2, "loss": 0.1, "jitter": 1, "blackout": 3, "blackout_probability": 0.05, "sensor_period": 2}, in
        steps and probabilities, or "delay_ms", "jitter_ms", "blackout_ms", "sensor_period_ms". Over control periods
        they are those of the plant's own steps, and each control period makes of them what it can use.
    period_ms : float, optional
        Milliseconds of a step, so that answers can be read in milliseconds.
    levels : iterable of float, or a mapping of them for a pair, optional
        The levels to look at and no others, instead of a grid of the impairment's own.
    step, most : float, optional
        The step and the last level of that grid (for a pair: `levels`).
    start : None, "cold", "warm" or WarmStart()
        As `ImpairedMDP` takes it.
    actuation : int
        Actions take effect this many steps late.
    tolerance : float
        A share of |V*|: plans are first made to this width, and the grid of a rate is refined until V changes by no more.
    seconds : float, optional
        For each plan; what cannot be decided then is reported.
    max_bytes : int, optional
        Memory of a plan's tables; 1 GiB, or half of the machine's memory if that is less, if None.
    grid : int
        For a pair: how many levels of each the map and the curve have, where `levels` does not say.
    progress : bool or function of (done, total), optional
        A progress bar or none, or a callback; None: a bar on a terminal after two seconds.

    Returns
    -------
    Requirement or Frontier
        `.answer`, `.reached` and `.failed` (the certificates), `.points`, `.reentries`; for a pair `.answers` along the first and a map of values.

    Raises
    ------
    KeyboardInterrupt
        On Ctrl-C; its `partial` is the Requirement as far as it was known, or None.

    Examples
    --------
    >>> import oldlight as ol
    >>> chain = ol.instances.sensing_chain(0.8)
    >>> ol.requirement(chain, target="80%", over="delay", period_ms=20)
    Requirement(delay: at most 1 step (20 ms); certified, target 3.16885)
    >>> ol.requirement(chain, target=3.0, over="loss", at={"delay": 1}).answer_text
    '35.5 %'
    """
    names = (over,) if isinstance(over, str) else tuple(over)
    asked = _asked(mdp, names, at, period_ms, start, actuation)
    asked.tolerance = checks.real("tolerance", tolerance)
    asked.seconds = None if seconds is None else checks.positive("seconds", seconds)
    asked.max_bytes = _memory() if max_bytes is None else checks.whole("max_bytes", max_bytes, least=1)
    asked.grids = _grids(asked, levels, step, most)
    asked.full = _full(asked)
    asked.target = _target(target, relative, asked.full)
    asked.problem(tuple(float(grid[0]) for grid in asked.grids))  # what does not fit is refused here
    with progress_bar(progress, "requirement") as asked.progress:
        if len(names) == 1:
            return along(asked, asked.known())
        return frontier(asked, checks.whole("grid", grid, least=2))


# -- what is asked -----------------------------------------------------------------------------------------------------


def _asked(
    mdp: TabularMDP | PlantAt, names: tuple[str, ...], at: Any, period_ms: float | None, start: Start, actuation: int
) -> Question:
    if not isinstance(mdp, TabularMDP) and not callable(mdp):
        raise TypeError(
            f"mdp is of type {type(mdp).__name__}, expected a TabularMDP, or a function of the control period"
        )
    if not 1 <= len(names) <= 2 or len(set(names)) < len(names):
        raise ValueError(f"over is {names!r}, expected one impairment or two different ones: {', '.join(IMPAIRMENTS)}")
    for name in names:
        if name not in IMPAIRMENTS:
            raise ValueError(f"over is {name!r}{checks.nearest(str(name), IMPAIRMENTS)}")
    if not isinstance(mdp, TabularMDP) and CONTROL not in names:
        raise ValueError(
            "a plant that is a function of the control period answers over='control_period'; expected a TabularMDP"
        )
    fixed = dict(at or {})
    for name in names:
        for given in (name, f"{name}_ms"):
            if given in fixed:
                raise ValueError(f"at has {given!r}, which is varied; name it in `over` or in `at`, not in both")
    period = None if period_ms is None else checks.positive("period_ms", period_ms)
    if not isinstance(mdp, TabularMDP):
        for given in fixed:
            if given in ("delay", "jitter", "blackout", "sensor_period"):
                raise ValueError(
                    f"at has {given!r} in steps, but the control period is not fixed; give {given + '_ms'!r}"
                )
    steps = in_steps(fixed, 1.0 if not isinstance(mdp, TabularMDP) else period)
    partial = {**steps, **({"delay": steps["jitter"]} if "delay" in names and "jitter" in steps else {})}
    checked_levels({k: (float(np.ceil(v)) if k == "delay" else v) for k, v in partial.items()})
    return Question(mdp, names, fixed, period, start, actuation, 1e-3, None, None)


def _grids(asked: Question, levels: Any, step: float | None, most: float | None) -> list[Floats]:
    given = dict(levels) if isinstance(levels, Mapping) else {} if levels is None else {asked.names[0]: levels}
    if len(asked.names) == 2 and levels is not None and not isinstance(levels, Mapping):
        raise ValueError(
            f"levels of a pair are a mapping: levels={{{asked.names[0]!r}: [...], {asked.names[1]!r}: [...]}}"
        )
    for name in given:
        if name not in asked.names:
            raise ValueError(
                f"levels has {name!r}, which is not varied; expected {' or '.join(map(repr, asked.names))}"
            )
    asked.given = frozenset(given)
    out: list[Floats] = []
    for name in asked.names:
        if name in given:
            out.append(_given_levels(name, given[name]))
        elif name == CONTROL and asked.by_period:
            raise ValueError(
                "a plant that is a function of the control period needs levels=[5, 10, 20], in milliseconds"
            )
        else:
            horizon = (
                asked.mdp.finite_horizon
                if isinstance(asked.mdp, TabularMDP)
                else asked._plants(float(out[0][0] if out else given[CONTROL][0])).finite_horizon
            )
            out.append(levels_of(name, horizon, _rest(asked, given, most), step, most))
    return out


def _rest(asked: Question, given: Mapping[str, Iterable[float]], most: float | None) -> dict[str, float]:
    """What else the link does in steps; the mean of a jitter that is varied together with the delay is the largest delay."""
    steps = in_steps(asked.at, 1.0 if asked.by_period else asked.period_ms)
    if {"delay", "jitter"} <= set(asked.names):
        steps["delay"] = max(given["delay"]) if "delay" in given else JITTERED if most is None else most
    return steps


def _given_levels(name: str, given: Iterable[float]) -> Floats:
    values = checks.finite_array("levels", list(given), ("i",))
    if (np.diff(values) <= 0).any():
        raise ValueError(f"levels is {values.tolist()}, expected increasing numbers")
    for value in values:
        if name == CONTROL:
            checks.positive("levels", value)
        else:
            checked_levels({name: value} | ({"delay": float(np.ceil(value))} if name == "jitter" else {}), "levels")
    return values


def _full(asked: Question) -> float:
    """The value with full information; of the shortest control period, where that is varied."""
    n = float(asked.grids[asked.names.index(CONTROL)][0]) if CONTROL in asked.names and asked.by_period else 1.0
    plant = asked._plants(n)
    return solve(unimpaired(ImpairedMDP(plant, "none", start=asked.start)), progress=False).value


def _target(target: float | str, relative: bool, full: float) -> float:
    if isinstance(target, str) and target.strip().endswith("%"):
        share = checks.real("target", target.strip()[:-1]) / 100
    elif relative:
        share = checks.real("target", target)
    else:
        return checks.real("target", target)
    if not 0 <= share <= 1:
        raise ValueError(
            f"target is {target!r}, expected a share of the value with full information in 0..1 (or 0%..100%)"
        )
    return full - (1.0 - share) * abs(full)


def _memory() -> int:
    from oldlight.machine import default_limit

    return min(MEMORY, default_limit())


__all__ = ["Requirement", "requirement"]
