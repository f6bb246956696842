"""A recording as what the relay does: in order, as the paper's law has it, or as it came."""

from __future__ import annotations

import numpy as np

from oldlight.model.problem import ImpairedMDP
from oldlight.testbed.wire import Recorded
from oldlight.traces import Fit
from oldlight.traces.replay import starting_points
from oldlight.traces.ticks import NEVER, ages_of


def recorded(problem: ImpairedMDP, fit: Fit, in_order: bool) -> Recorded:
    """One message a tick put in order (`oldlight.traces.fit`), or the recording as it came (`oldlight.traces.ticks`); no episode crosses
    from one session into the next."""
    horizon, runs = problem.horizon, fit.ages.runs
    if not in_order:
        late = np.concatenate([run.late for run in runs])
        starts, _ = starting_points(runs, horizon, fit.trace.source, fit.period_ms)
        ages = None
        if problem.channel.begins_before:
            oldest = problem.automaton.longest
            ages = np.concatenate([ages_of(np.where(run.late > oldest, NEVER, run.late)) for run in runs])
        return Recorded(late, late >= NEVER, in_order, starts, ages)
    starts = np.arange(len(fit.late) - horizon + 1)
    starts = starts[fit.session[starts] == fit.session[starts + horizon - 1]]
    if not len(starts):
        raise ValueError(f"{fit.trace.source} has {len(fit.late)} ticks, fewer than an episode: {horizon}")
    return Recorded(fit.late, fit.lost, in_order, starts)
