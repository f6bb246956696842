"""The age chain of a recording: how the age of the newest observation moves from tick to tick, counted.

`oldlight.traces.ticks` has the age at every tick. Every pair of successive ticks of a session is counted, c[m, k] from age m to age
k ≤ m, or to m + 1 (nothing newer), as a mean over the phases; n[m] is their number.

**Older observations are not used** beyond the age `oldest`: a policy may ignore what arrives older than that, so its value is
predicted without error; `cut` says which share of the arriving observations it is. (A planner's tables grow with A^oldest.)

**Tail.** Row M is the last age with at least `LEAST` visits (never less than the oldest usable age, at most `ROWS`); all older ages are
pooled in it. Beyond M the chain goes on with that row.

**Smoothing.** Row m is (c[m] + w·p)/(n[m] + w) with w = `WEIGHT` visits of p, which is nine tenths what rows m−1, m and m+1 have together
and one tenth what all rows have together, each age above m counted as nothing newer. So a row that was hardly ever visited is its
neighbours', and no age that was ever reached is impossible.

**The first age** is counted at the ticks where `oldlight.replay` begins its episodes: those with H − 1 ticks after them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from oldlight import checks
from oldlight.arrays import Floats, Ints
from oldlight.model.channels import AgeChain
from oldlight.traces.ticks import NEVER, Run, ages_of

if TYPE_CHECKING:
    from oldlight.traces.trace import Trace

LEAST = 3  # visits of the last row
ROWS = 60
WEIGHT = 4.0  # visits
ALIKE = 0.1  # of the prior from all rows together
OUTAGE = 0.5  # an outage longer than this share of the recording leaves nothing to count


@dataclass(frozen=True, eq=False)
class AgeCounts:
    """The ages of a recording at a control period; see the module's text.

    Attributes
    ----------
    runs : list of Run
        Every session at every phase.
    oldest : int or None
        The oldest age at which an arriving observation is used.
    """

    trace: Trace
    period_ms: float
    runs: list[Run]
    oldest: int | None = None

    def cut_at(self, oldest: int | None) -> AgeCounts:
        """The same with another oldest usable age."""
        return AgeCounts(
            self.trace, self.period_ms, self.runs, None if oldest is None else checks.whole("oldest", oldest)
        )

    def late(self, run: Run) -> Ints:
        return run.late if self.oldest is None else np.where(run.late > self.oldest, NEVER, run.late)

    @property
    def cut(self) -> float:
        """The share of the observations that arrive, but older than `oldest`, and so are not used."""
        arrives = np.concatenate([run.late[run.late < NEVER] for run in self.runs])
        return 0.0 if self.oldest is None or not len(arrives) else float((arrives > self.oldest).mean())

    def ages(self) -> list[Ints]:
        """The age at every tick of every run, from the first tick on at which it is known."""
        return [ages_of(self.late(run))[run.skip :] for run in self.runs]

    @property
    def longest_outage(self) -> int:
        """The oldest age that is ever reached, in ticks."""
        return max(int(ages.max()) for ages in self.ages())

    def check(self) -> None:
        """Refuse a recording of one long outage, or one that is too short: there is nothing to count."""
        longest = max(len(run) for run in self.runs)
        if self.longest_outage > OUTAGE * longest:
            T = self.period_ms / 1e3
            if all((run.late < NEVER).all() for run in self.runs):
                raise ValueError(
                    f"{self.trace.source}: nothing to count: the newest observation is up to {self.longest_outage * T:.4g} s old in a recording of "
                    f"{longest * T:.4g} s, in which none is lost. Measure longer"
                )
            raise ValueError(
                f"{self.trace.source}: nothing to count: one outage of {self.longest_outage * T:.4g} s in a recording of {longest * T:.4g} s. It is a "
                "recording of that outage; measure for longer than the link's outages take, or give a part without it"
            )

    def first(self, horizon: int | None, rows: int) -> Floats:
        """The law of the age at the ticks where episodes of `horizon` ticks begin, ages above `rows` pooled there."""
        begins = [a[: len(a) - (horizon or 1) + 1] for a in self.ages() if len(a) >= (horizon or 1)]
        if not begins:
            longest = max(len(run) for run in self.runs)
            raise ValueError(
                f"{self.trace.source} has at most {longest} ticks of {self.period_ms:g} ms in a session, fewer than an episode of {horizon} ticks; "
                "measure longer, or give a shorter horizon"
            )
        return np.bincount(np.minimum(np.concatenate(begins), rows)) / sum(map(len, begins))

    def kernel(self) -> list[Floats]:
        """Rows 0..M of the chain, smoothed and pooled."""
        return kernel_of(transitions(self.ages()), self.phases)

    @property
    def phases(self) -> int:
        """Over how many phases of the ticks everything is a mean."""
        return len({run.phase for run in self.runs})

    def chain(self, *, horizon: int | None = None) -> AgeChain:
        """The age chain, for episodes of `horizon` ticks (of any length if None)."""
        self.check()
        kernel = self.kernel()
        return AgeChain(kernel, first=self.first(horizon, len(kernel) - 1)).with_period(self.period_ms)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "period_ms": self.period_ms,
            "oldest": self.oldest,
            "cut": self.cut,
            "longest_outage": self.longest_outage,
            "kernel": [row.tolist() for row in self.kernel()],
        }


def transitions(ages: list[Ints]) -> tuple[Ints, Ints]:
    """(age, next age) of every pair of successive ticks."""
    return np.concatenate([a[:-1] for a in ages]), np.concatenate([a[1:] for a in ages])


def kernel_of(pairs: tuple[Ints, Ints], phases: int) -> list[Floats]:
    """The smoothed rows from (age, next age); see the module's text."""
    before, after = pairs
    newer = after <= before
    deepest = int(after[newer].max(initial=0))
    visits = np.bincount(np.minimum(before, 10 * ROWS)) / phases
    often = np.flatnonzero(visits >= LEAST)
    M = max(deepest, min(int(often[-1]) if len(often) else 0, ROWS))
    column = np.where(newer, after, deepest + 1)  # ages 0..deepest, then nothing newer
    codes = np.minimum(before, M) * (deepest + 2) + column
    counts = np.bincount(codes, minlength=(M + 1) * (deepest + 2)).reshape(M + 1, -1) / phases
    every = counts.sum(axis=0)
    rows = []
    for m in range(M + 1):
        near = counts[max(m - 1, 0) : m + 2].sum(axis=0)
        near = near if near.sum() else every
        prior = (1 - ALIKE) * near / near.sum() + ALIKE * every / every.sum()
        pooled = counts[m] + WEIGHT * prior
        row = np.zeros(m + 2)
        usable = min(m, deepest)
        row[: usable + 1] = pooled[: usable + 1]
        row[m + 1] = pooled[usable + 1 :].sum()
        rows.append(row / row.sum())
    return rows
