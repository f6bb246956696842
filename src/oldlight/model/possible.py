"""Can an episode lead to an information state?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oldlight.arrays import Floats
from oldlight.model.problem import ImpairedMDP

if TYPE_CHECKING:
    from oldlight.model.information import Information


def check(problem: ImpairedMDP, info: Information) -> None:
    """Raise ValueError if no episode of `problem` can lead to `info`."""
    h, t, s, queue, waited = info
    H, S, A = problem.horizon, problem.n_states, problem.n_actions

    def no(why: str) -> ValueError:
        return ValueError(f"impossible information {tuple(info)}: {why}")

    if not 0 <= h < H:
        raise no(f"time h = {h} is outside 0..{H - 1}")
    for a in queue:
        if not 0 <= a < A:
            raise no(f"action {a} in the queue is outside 0..{A - 1}")
    law, seen = problem.law, problem.arrival_probability
    for i, a in enumerate(problem.pending[:h]):
        j = i - (t or 0)
        if 0 <= j < len(queue) and queue[j] != a:
            raise no(f"the action of step {i} was under way before the start: it is {a}, not {queue[j]}")
    if t is None or s is None:
        return _check_root(problem, info, no)
    if not -problem.warmup <= t <= h:
        raise no(f"the newest visible step t = {t} is outside {-problem.warmup}..{h}")
    if not 0 <= s < S:
        raise no(f"state {s} is outside 0..{S - 1}")
    if len(queue) != h - t:
        raise no(f"from step t = {t} to time h = {h} there are {h - t} actions, not {len(queue)}")
    reached = _reachable(problem, t)
    if not reached[s].any():
        raise no(f"no way of acting reaches state {s} at step {t}")
    m = h - t
    if problem.warmup:
        if m != problem.warmup or waited:
            raise no(
                f"with a constant delay {problem.warmup} the newest visible step at time {h} is {h - problem.warmup}"
            )
        return
    if not 0 <= waited <= m:
        raise no(f"waited = {waited} is outside 0..{m}, the steps since step {t}")
    if m - waited > law.longest_delay or not reached[s, m - waited]:
        raise no(f"the observation of step {t} in state {s} cannot be exactly {m - waited} late")
    if seen is not None:
        if seen[t] <= 0:
            raise no(f"the observation of step {t} is never seen")
        if law.constant is not None:
            _check_lost(seen, t + 1, h - law.constant, no)
    elif waited:
        risk = law.at_step(law.at_risk, t)
        row = risk[min(s, risk.shape[0] - 1), min(queue[0], risk.shape[1] - 1)]
        if m > law.longest_delay or waited >= len(row) or row[waited] <= 0:
            raise no(f"after state {s} and action {queue[0]} the next observation never takes {waited} steps more")


def _check_lost(seen: Floats, first: int, last: int, no: Callable[[str], ValueError]) -> None:
    """Steps first..last are settled and none of them was seen: is that possible?"""
    always = np.flatnonzero(seen[first : last + 1] >= 1) if last >= first else np.zeros(0)
    if len(always):
        raise no(f"the observation of step {first + int(always[0])} is always seen")


def _reachable(problem: ImpairedMDP, t: int) -> NDArray[np.bool_]:
    """Axes (s, d): can step t be in state s with an observation that is d late? (One column after a warm start.)"""
    law, S = problem.law, problem.n_states
    if problem.warmup:
        mask = problem.initial > 0
        for i in range(-problem.warmup, t):
            mask = np.asarray(np.repeat(mask.astype(np.float64), problem.n_actions) @ problem.matrix_at(i)) > 0
        return np.asarray(mask[:, None])
    reached = np.zeros((S, law.longest_delay + 1), dtype=bool)
    reached[:, : len(law.first)] = (problem.initial > 0)[:, None] & (law.first[: law.longest_delay + 1] > 0)
    for i in range(t):
        can = np.broadcast_to(law.at_step(law.interarrival, i) > 0, (S, problem.n_actions, law.interarrival.shape[-1]))
        P, after = problem.matrix_at(i), np.zeros_like(reached)
        for k in np.flatnonzero(can.any(axis=(0, 1))).tolist():
            for d in np.flatnonzero(reached.any(axis=0)).tolist():
                pairs = (reached[:, d, None] & can[:, :, k]).astype(np.float64)
                after[:, min(d + k, law.longest_delay)] |= np.asarray(pairs.reshape(-1) @ P) > 0
        reached = after
    return reached


def _check_root(problem: ImpairedMDP, info: Information, no: Callable[[str], ValueError]) -> None:
    """`check` where nothing has been seen."""
    h, t, s, queue, _ = info
    law, seen = problem.law, problem.arrival_probability
    if t is not None or s is not None:
        raise no("t and state must both be given, or both be None when nothing has been seen")
    if len(queue) != h:
        raise no(f"nothing seen by time {h} means {h} actions in the queue, not {len(queue)}")
    if problem.warmup:
        raise no("after a warm start something has always been seen")
    if seen is None:
        if law.first[h + 1 :].sum() <= 0:
            raise no(f"the first observation has always arrived by time {h}")
    elif law.constant is not None:
        _check_lost(seen, 0, h - law.constant, no)
