"""A recording in ticks: when the observation of each tick arrives, and how old the newest one is.

At a control period T the ticks of a session are at φ + jT, j = 0, 1, .., with a phase φ in [0, T). A message that was sent at x carries
the state of step i = ⌊(x − φ)/T⌋ and can be used at the first tick at or after its arrival. Of several messages with the state of
one step the first to arrive counts:

    late[i] = ticks from i until the observation of step i can be used first; NEVER if no message brings it,
    age[j] = j − max{ i : i + late[i] ≤ j },     and j + 1 as long as nothing of the session has arrived.

Before the least lateness has passed nothing can have arrived, and the age that the link had is not known: those first ticks of a
session (`Run.skip`) are not counted, and no episode begins there. If nothing has come after them, that is an outage.

The phase of the ticks is not part of a recording; everything is averaged over `PHASES` of them, evenly spaced. With `per_tick` one
message is sent at each tick instead, with the delay that the recording has at that time (that of the message sent nearest to
it): late[j] = ⌈delay/T⌉. A recording without sending times is taken so, a message a tick.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from oldlight import checks
from oldlight.arrays import Floats, Ints

if TYPE_CHECKING:
    from oldlight.traces.trace import Trace

NEVER = 2**31  # ticks; nothing is later
PHASES = 8
MOST = 50_000_000  # ticks of all phases together
ROUNDING = 1e-9  # of a tick


@dataclass(frozen=True, eq=False)
class Run:
    """One session at one phase: `late[i]` of the module's text, for its ticks i = 0..n−1. `begin`: the time of its first tick in
    ticks since the recording began, sessions one after the other; the windows that start in it are ordered by that."""

    late: Ints
    begin: float
    phase: float

    def __len__(self) -> int:
        return len(self.late)

    @property
    def skip(self) -> int:
        """Ticks at the beginning of which the age is not known."""
        least = int(self.late.min())
        return least if least < len(self.late) else 0


def ages_of(late: Ints) -> Ints:
    """The age of the newest usable observation at each tick, j + 1 before there is one."""
    n = len(late)
    step = np.arange(n)
    comes = step + np.minimum(late, NEVER)
    newest = np.full(n, -1)
    here = np.flatnonzero(comes < n)
    np.maximum.at(newest, comes[here], here)
    return np.asarray(step - np.maximum.accumulate(newest))


def runs_of(trace: Trace, period_ms: float, *, per_tick: bool = False) -> tuple[list[Run], tuple[str, ...]]:
    """Every session at every phase, and what was assumed."""
    T = checks.positive("period_ms", period_ms)
    if trace.sent_ms is None:
        per_tick = True
        notes: tuple[str, ...] = (
            f"the file does not say when messages were sent; each is taken for one tick of {T:g} ms",
        )
    else:
        notes = ()
    times: Floats = np.asarray(np.arange(len(trace)) * T if trace.sent_ms is None else trace.sent_ms, dtype=np.float64)
    sessions = [np.flatnonzero(trace.session == k) for k in range(int(trace.session.max()) + 1)]
    total = sum((times[rows[-1]] - times[rows[0]]) / T + 2 for rows in sessions)
    if total * PHASES > MOST:
        raise ValueError(
            f"{trace.source}: at {T:g} ms a tick there are {total:.3g} ticks, at most {MOST // PHASES:,} are looked at; give a longer period_ms, "
            "or a part of the recording"
        )
    phases = 1 if trace.sent_ms is None else PHASES
    runs = []
    for p in range(phases):
        before = 0.0
        for rows in sessions:
            phase = 0.0 if phases == 1 else (p + 0.5) / phases
            late = _late(times[rows] / T, trace.delay_ms[rows] / T, phase, per_tick)
            runs.append(Run(late, before + phase, phase))
            before += (times[rows[-1]] - times[rows[0]]) / T + 1
    return runs, notes


def _late(sent: Floats, delay: Floats, phase: float, per_tick: bool) -> Ints:
    """One session at one phase; times in ticks."""
    x = sent - sent[0]
    last = int(np.floor(x[-1] - phase + ROUNDING))
    n = max(last, 0) + 1
    if per_tick:
        at = np.arange(n) + phase
        after = np.clip(np.searchsorted(x, at), 0, len(x) - 1)
        before = np.maximum(after - 1, 0)
        nearest = np.where(np.abs(x[before] - at) <= np.abs(x[after] - at), before, after)
        return _whole(np.ceil(delay[nearest] - ROUNDING))
    step = np.floor(x - phase + ROUNDING).astype(np.int64)
    comes = np.ceil(x + delay - phase - ROUNDING)
    out = np.full(n, float(NEVER))
    use = np.flatnonzero((step >= 0) & (step < n) & ~np.isnan(delay))
    np.minimum.at(out, step[use], comes[use] - step[use])
    return _whole(out)


def _whole(late: Floats) -> Ints:
    return np.where(np.isnan(late) | (late >= NEVER), NEVER, np.maximum(late, 0)).astype(np.int64)
