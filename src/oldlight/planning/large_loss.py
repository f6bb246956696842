"""Planning under loss where there are too many corners to search each of them: bounds by products, pass after pass, then the search.

`oldlight.planning.informed` has the bounds. Passes go on until upper − lower is at most the tolerance, or time is up, or a pass gains little;
what is left is closed by the search that every link has (`oldlight.planning.link_solution`), which begins anew and may take long: `seconds`
and Ctrl-C end it, and the best policy of all is kept. Without `seconds` and with a tolerance of 0 it ends after the work of about a minute (the same work on
every machine): on a process of this size the last digits of the gap can take hours. At every moment lower ≤ optimum ≤ upper, and the policy earns
the lower value.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from oldlight.checks import TooLarge
from oldlight.model.problem import ImpairedMDP
from oldlight.planning.informed import InformedBounds
from oldlight.planning.link_solution import OPTIONS, solve_link
from oldlight.planning.search import CLOSED, magnitude
from oldlight.planning.solution import PlanOptions, Solution, Work
from oldlight.progress import progress_bar

LARGE = 100_000  # information states just after an observation from which on loss is planned so,
HEAVY = 5e9  # or operations to expand each of them once: S²·A for a law of the state
PASSES = 6
ENOUGH = 60  # seconds of search, counted in work, where neither a tolerance nor a time is given
LITTLE = 0.9  # a pass that leaves more than this share of the gap is the last


def settled_losses(problem: ImpairedMDP) -> bool:
    """Are there independent losses, with a constant delay or none, so that every observation is seen or known to be lost at one time?"""
    loss = problem.loss if problem.has_delay_law else None
    return loss is not None and loss.independent and problem.law.constant is not None


def too_many_corners(problem: ImpairedMDP) -> bool:
    """Is loss, alone or with a constant delay, to be planned here?"""
    if not settled_losses(problem):
        return False
    assert problem.law.constant is not None
    corners = problem.horizon * problem.n_states * problem.n_actions ** min(problem.law.constant, problem.horizon)
    # with a delay the search that goes where the policy goes has few of them to look at
    alone = problem.law.constant == 0
    return bool((alone and corners > LARGE) or corners * problem.n_states**2 * problem.n_actions > HEAVY)


def plan_large_loss(problem: ImpairedMDP, asked: PlanOptions) -> Solution:
    """The best policy found and its certificate; see `oldlight.solve`."""
    began, tolerance, seconds = time.perf_counter(), asked.tolerance, asked.seconds
    rounding = CLOSED * magnitude(problem.mdp)

    def left() -> float:
        return np.inf if seconds is None else seconds - (time.perf_counter() - began)

    def search(seconds: float | None) -> Solution:
        enough = None if tolerance > 0 or seconds is not None else ENOUGH * OPTIONS
        return solve_link(problem, asked._replace(seconds=seconds, options=enough))

    try:
        bounds = InformedBounds(problem, asked.max_bytes)
    except TooLarge:
        return search(seconds)
    found: Solution | None = None
    try:
        with progress_bar(asked.progress, "planning") as callback:
            gap = np.inf
            while bounds.passes < PASSES:
                last = gap
                bounds.run(max(tolerance / problem.horizon / 2, rounding), left(), callback)
                gap = bounds.upper - bounds.lower
                found = _solution(problem, bounds, rounding, time.perf_counter() - began)
                if gap <= max(tolerance, rounding) or left() <= 0 or gap > LITTLE * last:
                    break
        if gap > max(tolerance, rounding) and left() > 0:
            assert found is not None
            found = _searched(found, partial(search, None if seconds is None else left()))
    except KeyboardInterrupt as stopped:
        stopped.partial = _better(found, getattr(stopped, "partial", None))  # type: ignore[attr-defined]
        raise
    assert found is not None
    return replace(found, work=replace(found.work, seconds=time.perf_counter() - began))


def _searched(found: Solution, search: Callable[[], Solution]) -> Solution:
    """What the search makes of the rest."""
    try:
        other = search()
    except TooLarge:
        return found
    best = _better(found, other)
    assert best is not None
    return best


def _better(found: Solution | None, other: Solution | None) -> Solution | None:
    """The better policy of the two, with both upper bounds."""
    if found is None or other is None:
        return found if other is None else other
    best = found if found.lower >= other.lower else other
    upper = max(min(found.upper, other.upper), best.lower)
    return replace(best, upper=upper, exact=found.exact or other.exact)


def _solution(problem: ImpairedMDP, bounds: InformedBounds, rounding: float, seconds: float) -> Solution:
    exact = bounds.upper - bounds.lower <= rounding
    work = Work(bounds.U * bounds.S * bounds.Q + bounds.laws, seconds, bounds.bytes)
    upper = bounds.lower if exact else max(bounds.upper, bounds.lower)
    lower = bounds.lower
    return Solution(problem, lower, bounds.policy(), lower, upper, exact, bounds.low_by_start, work, bounds.q)
