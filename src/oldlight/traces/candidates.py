"""Which model of the link? Candidates, each fitted to a recording, and how well each predicts ticks that it has not seen.

All candidates are fitted to the same ticks (`oldlight.traces.ticks`, observations older than `oldest` not used): late[i] of each observation,
and the age at each tick.

    constant         every observation is d ticks late, d the smallest that 99 % of those that arrive do not exceed
    in-order         the paper's law: the interarrival law of delays put in order (`oldlight.traces.fit`); losses are not in it
    packets          each observation on its own: the law of late[i], losses included
    FIFO             independent delays delivered in order, several at once: the law of late[i] of those that arrive
    renewal          observations d ticks old, d the commonest lateness; outages by the measured law of their lengths
    Gilbert–Elliott  the same with a link that is good or bad: outages of geometric length
    age chain        the age as a Markov chain, counted (`oldlight.traces.counted`)
    deadline d       observations d ticks old, what comes later is lost; losses independent. For d = 0..oldest that
                     some observation meets

**Held-out likelihood.** The recording is cut into `FOLDS` blocks of time. Each candidate is fitted to all blocks but one, and gives the
probability p of the next age at each tick of that one. The score is the mean of log((1 − ε)·p + ε/(m + 2)), ε = `SLIP`, m the age: a model
pays for what it calls impossible, but not infinitely. The error of a difference of scores is the standard error over the blocks.
(Deadlines act on other ages than arrive, so they have no such score; what they earn is what counts.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oldlight import drawing
from oldlight.arrays import Floats, Ints
from oldlight.model.channels import (
    AgeChain,
    BurstyLoss,
    Channel,
    ConstantDelay,
    FIFODelay,
    Lossy,
    PacketChannel,
    StochasticDelay,
)
from oldlight.model.channels.automaton import hazards, tail
from oldlight.traces.counted import AgeCounts, kernel_of, transitions
from oldlight.traces.ticks import NEVER, ages_of

FOLDS = 10
RARE = 0.01  # share of the ticks that a recommended model may say cannot be, if it is not the best
SLIP = 0.01
NEVER_LONGER = 250  # ticks; longer outages are pooled
LATEST = 0.99  # of what arrives, not later than a constant delay
NAMES = ("constant", "packets", "FIFO", "Gilbert–Elliott", "renewal", "in-order", "age chain")  # simplest first


@dataclass(frozen=True, eq=False)
class Piece:
    """Successive ticks: late[i] of their observations and the ages (one more than there are ticks to predict)."""

    late: Ints
    ages: Ints


@dataclass(frozen=True)
class Score(drawing.Result):
    """A candidate's mean log-probability of a tick that it was not fitted to, how much less that is than the best one's, and the
    standard error of that difference; `impossible`: the share of ticks that the model says cannot be."""

    name: str
    score: float
    behind: float
    error: float
    impossible: float


class Laws:
    """What the candidates count in some pieces of a recording; `oldest` is the oldest usable age."""

    def __init__(self, pieces: list[Piece], oldest: int, phases: int) -> None:
        self.pieces, self.oldest, self.phases = pieces, oldest, phases
        late = np.concatenate([piece.late for piece in pieces])
        here = late[late <= oldest]
        self.n = len(late) / phases
        self.delays = (
            np.bincount(here, minlength=oldest + 1) / max(len(here), 1) if len(here) else np.eye(oldest + 1)[-1]
        )
        self.lost = float(min(max(1 - len(here) / len(late), 1 / (self.n + 2)), 1.0)) if len(here) < len(late) else 0.0
        self.common = int(self.delays.argmax())
        self.within = float((late <= self.common).mean())
        self.constant = int(np.searchsorted(np.cumsum(self.delays), LATEST - 1e-12))

    def packets(self) -> Callable[[int], Floats]:
        f = np.append((1 - self.lost) * self.delays, 0.0)
        beyond = tail(f) + self.lost

        def row(m: int) -> Floats:
            out = np.zeros(m + 2)
            k = min(m, self.oldest)
            out[: k + 1], out[m + 1] = f[: k + 1], beyond[k]
            return out

        return row

    def fifo(self) -> Callable[[int], Floats]:
        f, F, g = self.delays, np.cumsum(self.delays), hazards(self.delays)

        def row(m: int) -> Floats:
            out = np.zeros(m + 2)
            ends = float(g[m]) if m < len(g) else 1.0
            product = 1.0
            for k in range(m, 0, -1):
                below = float(F[k - 1]) if k - 1 < len(F) else 1.0
                out[k] = ends * product * (1 - below)
                product *= below
            out[0], out[m + 1] = ends * product, 1 - ends
            return out

        return row if f.any() else lambda m: np.eye(m + 2)[m + 1]

    def outages(self) -> tuple[Floats, Floats]:
        """Of runs of steps that are not there by the commonest age: how many steps later each (0 included) ended, and how often a
        run got so far."""
        ended, reached = np.zeros(NEVER_LONGER + 1), np.zeros(NEVER_LONGER + 1)
        for piece in self.pieces:
            seen = np.flatnonzero(piece.late <= self.common)
            lengths = np.minimum(np.diff(seen) - 1, NEVER_LONGER)
            ended += np.bincount(lengths, minlength=NEVER_LONGER + 1)
            left = len(piece.late) - 1 - seen[-1] if len(seen) else len(piece.late)
            reached[: min(int(left), NEVER_LONGER + 1)] += 1  # a run that the piece does not show the end of
        reached += np.cumsum(ended[::-1])[::-1]
        return ended / self.phases, reached / self.phases

    def renewal(self) -> Callable[[int], Floats]:
        ended, reached = self.outages()
        often = np.flatnonzero(reached >= 5)
        last = int(often[-1]) if len(often) else 0
        hazard = (ended + 0.5) / (reached + 1)
        hazard[last:] = (ended[last:].sum() + 0.5) / (reached[last:].sum() + 1)
        return lambda m: self._jump(m, float(hazard[min(max(m - self.common, 0), NEVER_LONGER)]))

    def gilbert(self) -> tuple[float, float]:
        """(to bad, to good): the probabilities that an outage begins after a step that was there, and that it ends."""
        ended, reached = self.outages()
        to_bad = 1 - (ended[0] + 0.5) / (reached[0] + 1)
        to_good = (ended[1:].sum() + 0.5) / (reached[1:].sum() + 1)
        return float(to_bad), float(min(to_good, 1.0))

    def bursts(self) -> Callable[[int], Floats]:
        to_bad, to_good = self.gilbert()
        return lambda m: self._jump(m, 1 - to_bad if m <= self.common else to_good)

    def _jump(self, m: int, p: float) -> Floats:
        out = np.zeros(m + 2)
        if m < self.common:
            out[m + 1] = 1.0
        else:
            out[self.common], out[m + 1] = p, 1 - p
        return out

    def always(self) -> Callable[[int], Floats]:
        d = self.constant
        return lambda m: np.eye(m + 2)[d if m >= d else m + 1]

    def counted(self) -> Callable[[int], Floats]:
        ages = [piece.ages for piece in self.pieces]
        rows = kernel_of(transitions(ages), self.phases)

        def row(m: int) -> Floats:
            if m < len(rows):
                return rows[m]
            out = np.zeros(m + 2)
            out[: len(rows)], out[m + 1] = rows[-1][:-1], rows[-1][-1]
            return out

        return row

    def waits(self, horizon: int = 10) -> tuple[Floats, Floats]:
        """(first, interarrival) of the in-order law, windows of `horizon` ticks; a lost observation is as late as the last one."""
        first, waits = np.zeros(self.oldest + 1), np.zeros(self.oldest + 1)
        for piece in self.pieces:
            there = piece.late <= self.oldest
            if len(piece.late) < 2 or not there.any():
                continue
            last = np.maximum.accumulate(np.where(there, np.arange(len(there)), -1))
            late = piece.late[np.where(last < 0, np.flatnonzero(there)[0], last)]
            d = np.lib.stride_tricks.sliding_window_view(late, min(horizon, len(late)))
            d = np.maximum.accumulate(d, axis=1)
            first += np.bincount(d[:, 0], minlength=self.oldest + 1)
            waits += np.bincount(np.diff(d, axis=1).ravel(), minlength=self.oldest + 1)
        if not first.any():
            return np.eye(self.oldest + 1)[-1], np.eye(self.oldest + 1)[0]
        return first / first.sum(), waits / waits.sum()


def split(counts: AgeCounts, blocks: int = FOLDS) -> list[list[Piece]]:
    """The recording as lists of pieces, blocks of time."""
    folds: list[list[Piece]] = [[] for _ in range(blocks)]
    for run in counts.runs:
        late, ages = counts.late(run)[run.skip :], ages_of(counts.late(run))[run.skip :]
        edges = np.linspace(0, len(late), blocks + 1).astype(int)
        for b in range(blocks):
            a, z = int(edges[b]), int(edges[b + 1])
            if z - a > 1:
                folds[b].append(Piece(late[a:z], ages[a:z]))
    return folds


def scores(counts: AgeCounts) -> list[Score]:
    """Every candidate's held-out score, best first; see the module's text."""
    oldest = usable_age(counts)
    counts = counts.cut_at(oldest)
    folds = split(counts)
    by_fold: dict[str, list[tuple[float, float, int]]] = {name: [] for name in NAMES}
    for b, held_out in enumerate(folds):
        others = [piece for c, fold in enumerate(folds) if c != b for piece in fold]
        if not held_out or not others:
            continue
        laws = Laws(others, oldest, counts.phases)
        rows = {
            "constant": laws.always(),
            "packets": laws.packets(),
            "FIFO": laws.fifo(),
            "Gilbert–Elliott": laws.bursts(),
            "renewal": laws.renewal(),
            "age chain": laws.counted(),
        }
        before, after = transitions([piece.ages for piece in held_out])
        pairs = different_pairs(before, after)
        for name in NAMES:
            if name == "in-order":
                p, m, times = _in_order(laws, held_out), before, np.ones(len(before))
            else:
                p, m, times = predicted(rows[name], *pairs[:2]), pairs[0], pairs[2]
            logs = np.log((1 - SLIP) * p + SLIP / (m + 2))
            by_fold[name].append((float(times @ logs), float(times @ (p <= 0)), len(before)))
    total = {name: np.array(found) for name, found in by_fold.items()}
    mean = {name: float(x[:, 0].sum() / x[:, 2].sum()) for name, x in total.items()}
    best = max(mean, key=lambda name: mean[name])
    out = []
    for name in sorted(NAMES, key=lambda name: -mean[name]):
        x, y = total[name], total[best]
        each = (y[:, 0] - x[:, 0]) / x[:, 2]
        error = float(each.std(ddof=1) / np.sqrt(len(each))) if len(each) > 1 else np.inf
        out.append(Score(name, mean[name], mean[best] - mean[name], error, float(x[:, 1].sum() / x[:, 2].sum())))
    return out


def different_pairs(before: Ints, after: Ints) -> tuple[Ints, Ints, Floats]:
    """The different (age, next age), ages above `NEVER_LONGER` pooled, and how often each comes."""
    newer = after <= before
    before = np.minimum(before, NEVER_LONGER)
    after = np.where(newer, np.minimum(after, before), before + 1)
    codes, times = np.unique(before * (NEVER_LONGER + 2) + after, return_counts=True)
    return codes // (NEVER_LONGER + 2), codes % (NEVER_LONGER + 2), times.astype(np.float64)


def predicted(row: Callable[[int], Floats], before: Ints, after: Ints) -> Floats:
    """The probability of each next age."""
    known = {m: row(m) for m in np.unique(before).tolist()}
    return np.array([known[m][k] for m, k in zip(before.tolist(), after.tolist(), strict=True)])


def _in_order(laws: Laws, pieces: list[Piece]) -> Floats:
    """In order, at most one a tick: the same age again with the hazard of the wait so far, or nothing newer."""
    g = hazards(laws.waits()[1])
    out = []
    for piece in pieces:
        before, after = piece.ages[:-1], piece.ages[1:]
        tick = np.arange(len(before))
        came = np.maximum.accumulate(np.where(np.concatenate([[True], (after <= before)[:-1]]), tick, 0))
        p = g[np.minimum(tick - came, len(g) - 1)]
        out.append(np.where(after == before, p, np.where(after > before, 1 - p, 0.0)))
    return np.concatenate(out)


def usable_age(counts: AgeCounts) -> int:
    """The oldest usable age: what was given, else the one that all but a thousandth of what arrives does not exceed, at most 60."""
    late = np.concatenate([run.late[run.late < NEVER] for run in counts.runs])
    if not len(late):
        return 0
    asked = int(np.quantile(late, 0.999, method="higher")) if counts.oldest is None else counts.oldest
    return min(asked, int(late.max()), 60)


def channels(counts: AgeCounts, horizon: int) -> dict[str, Channel]:
    """Every candidate as a channel for episodes of `horizon` ticks, with the deadlines 0..oldest."""
    oldest = usable_age(counts)
    counts = counts.cut_at(oldest)
    laws = Laws([piece for fold in split(counts, 1) for piece in fold], oldest, counts.phases)
    first, waits = laws.waits(horizon)
    to_bad, to_good = laws.gilbert()
    d = laws.common
    chain = counts.chain(horizon=horizon)
    row = laws.renewal()
    renewal = AgeChain([row(m) for m in range(len(chain.kernel))], first=chain.first)
    burst = BurstyLoss(to_bad, to_good)
    found: dict[str, Channel] = {
        "constant": ConstantDelay(laws.constant),
        "in-order": ConstantDelay(oldest) if first[-1] == 1 else StochasticDelay(waits, first=first).capped(oldest),
        "packets": PacketChannel(laws.delays, lost=laws.lost),
        "FIFO": FIFODelay(laws.delays),
        "renewal": renewal,
        "Gilbert–Elliott": Lossy(ConstantDelay(d), loss=burst) if d else burst,
        "age chain": chain,
    }
    late = np.concatenate([counts.late(run) for run in counts.runs])
    for k in range(oldest + 1):
        rate = float((late > k).mean())
        if rate < 1:
            found[f"deadline {k}"] = PacketChannel({k: 1.0}, lost=rate)  # the law of Lossy(ConstantDelay(k), rate=rate)
    return {name: channel.with_period(counts.period_ms) for name, channel in found.items()}


def recommended(found: list[Score]) -> tuple[str, str]:
    """The simplest candidate that predicts as well as the best, and why."""
    good = [one for one in found if one.behind == 0 or (one.behind <= one.error and one.impossible <= RARE)]
    chosen = min(good, key=lambda one: NAMES.index(one.name))
    best = found[0]
    if chosen.name == best.name:
        rest = [one for one in found if one.name != best.name]
        why = f"it predicts ticks that it has not seen best; next is {rest[0].name}, {rest[0].behind:.3g} ± {rest[0].error:.2g} a tick worse"
    else:
        why = f"it predicts ticks that it has not seen as well as {best.name}, the best ({chosen.behind:.2g} ± {chosen.error:.2g} a tick), and is simpler"
    return chosen.name, why
