"""Brute force for decision processes behind a link that does not depend on the process.

It works on raw histories and knows neither ages nor automata. A link is told by its own hidden states and what it delivers:

    link.start()      the hidden states before time 0, [(probability, g)]
    link.tick(h, g)   what happens at time h, [(probability, g', delivered, notices)]: the steps whose observations are delivered
                      at time h, with their time stamps, and whatever else the agent is shown

A history is the tuple of everything delivered and shown at each time, with every action. For each history the oracle carries the
weight of every hidden trajectory (all states so far and the link's hidden state) that agrees with it; histories are never merged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Protocol

import numpy as np

Outcome = tuple[float, Any, tuple[int, ...], Any]


class RawLink(Protocol):
    def start(self) -> Iterable[tuple[float, Any]]: ...

    def tick(self, h: int, g: Any) -> Iterable[Outcome]: ...


def value(
    P: Any,
    R: Any,
    rho: Any,
    link: RawLink,
    policy: Callable[[tuple[Any, ...]], Any] | None = None,
    pending: tuple[int, ...] = (),
) -> float:
    """The best value over all policies of the raw history, or that of policy(history) -> probabilities of the actions.

    pending: the actions of the steps 0..k−1; an action chosen at time h acts at step h + k.
    """
    P, R, k = np.asarray(P, float).tolist(), np.asarray(R, float), len(pending)
    H, S, A = R.shape
    R = R.tolist()

    @cache
    def tick(h: int, g: Any) -> tuple[Outcome, ...]:
        """The same for every history: asked of the link once."""
        return tuple(link.tick(h, g))

    def best(h: int, weights: dict[Any, float], history: tuple[Any, ...], actions: tuple[int, ...]) -> float:
        """Weighted reward of the steps h..; weights of (states so far, link state) before the tick of time h."""
        parts: dict[Any, dict[Any, float]] = defaultdict(lambda: defaultdict(float))
        for (states, g), w in weights.items():
            for p, g2, delivered, shown in tick(h, g):
                if w * p > 0:
                    seen = (tuple((i, states[i]) for i in delivered), shown)
                    parts[seen][states, g2] += w * p
        total = 0.0
        for seen, part in parts.items():
            known = (*history, seen)

            def worth(choice: int | None, part: dict[Any, float] = part, known: tuple[Any, ...] = known) -> float:
                chosen = actions if choice is None else (*actions, choice)
                a = chosen[h]
                gain = sum(w * R[h][states[h]][a] for (states, _), w in part.items())
                if h == H - 1:
                    return gain
                after: dict[Any, float] = defaultdict(float)
                for (states, g), w in part.items():
                    for s, p in enumerate(P[h][states[h]][a]):
                        if p > 0:
                            after[(*states, s), g] += w * p
                return gain + best(h + 1, after, (*known, choice), chosen)

            if h + k >= H:
                total += worth(None)
            elif policy is None:
                total += max(worth(a) for a in range(A))
            else:
                total += sum(p * worth(a) for a, p in enumerate(policy(known)) if p > 0)
        return total

    begin = {((s,), g): float(rho[s]) * p for s in range(S) if rho[s] > 0 for p, g in link.start() if p > 0}
    return best(0, begin, (), tuple(pending))


class Packets:
    """Step i is sent at time i and takes a delay from delays[z] (rows sum to at most 1, the rest is lost), z the link's mode."""

    def __init__(self, delays: Any, switch: Any = ((1.0,),), first: Any = (1.0,)) -> None:
        self.delays, self.switch, self.first = np.atleast_2d(delays), np.asarray(switch), np.asarray(first)

    def start(self) -> list[tuple[float, Any]]:
        return [(1.0, (None, ()))]

    def tick(self, h: int, g: Any) -> list[Outcome]:
        mode, under_way = g
        out: list[Outcome] = []
        for z, p in enumerate(self.first if mode is None else self.switch[mode]):
            fates = [(float(q), h + k) for k, q in enumerate(self.delays[z])]
            for q, arrival in [*fates, (1.0 - float(self.delays[z].sum()), None)]:
                if p * q > 1e-15:
                    messages = under_way if arrival is None else (*under_way, (arrival, h))
                    delivered = tuple(i for time, i in messages if time == h)
                    out.append((float(p) * q, (z, tuple(m for m in messages if m[0] > h)), delivered, None))
        return out


class InTurn:
    """Step i is delivered at the later of i + X_i and the delivery of step i − 1."""

    def __init__(self, delays: Any) -> None:
        self.delays = delays

    def start(self) -> list[tuple[float, Any]]:
        return [(1.0, (0, ()))]

    def tick(self, h: int, g: Any) -> list[Outcome]:
        last, under_way = g
        out: list[Outcome] = []
        for k, p in enumerate(self.delays):
            arrival = max(last, h + k)
            messages = (*under_way, (arrival, h))
            delivered = tuple(i for time, i in messages if time <= h)
            out.append((float(p), (arrival, tuple(m for m in messages if m[0] > h)), delivered, None))
        return out


class InOrder:
    """The paper's law, d_{i+1} = d_i + Δ_i; a step is lost by `lose(i, mode)` and that is announced when it would have arrived.

    lose gives [(probability, lost?, next mode)].
    """

    def __init__(self, first: Any, interarrival: Callable[[int], Any], lose: Any = None, cap: int = 10**9) -> None:
        self.first, self.interarrival, self.cap = first, interarrival, cap
        self.lose = lose or (lambda i, mode: [(1.0, False, mode)])

    def start(self) -> list[tuple[float, Any]]:
        return [(1.0, (None, "start", ()))]

    def tick(self, h: int, g: Any) -> list[Outcome]:
        late, mode, under_way = g
        out: list[Outcome] = []
        for k, p in enumerate(self.first if late is None else self.interarrival(h - 1)):
            delay = (late or 0) + k
            arrival = h + min(delay, self.cap)
            for q, lost, after in self.lose(h, mode):
                messages = (*under_way, (arrival, h, lost))
                now = [m for m in messages if m[0] == h]
                rest = tuple(m for m in messages if m[0] > h)
                delivered = tuple(i for _, i, gone in now if not gone)
                notices = tuple(i for _, i, gone in now if gone)
                if p * q > 0:
                    out.append((float(p) * q, (delay, after, rest), delivered, notices))
        return out


class Renewal:
    """Seen at once or lost; the number lost between two seen ones has the law `lengths`."""

    def __init__(self, lengths: Any) -> None:
        self.lengths = lengths

    def start(self) -> list[tuple[float, Any]]:
        return [(float(p), k) for k, p in enumerate(self.lengths)]

    def tick(self, h: int, g: Any) -> list[Outcome]:
        if g > 0:
            return [(1.0, g - 1, (), None)]
        return [(float(p), k, (h,), None) for k, p in enumerate(self.lengths)]


class Slow:
    """Steps offset, offset + every, .. are delivered `delay` later."""

    def __init__(self, every: int, delay: int, offset: int) -> None:
        self.every, self.delay, self.offset = every, delay, offset

    def start(self) -> list[tuple[float, Any]]:
        return [(1.0, None)]

    def tick(self, h: int, g: Any) -> list[Outcome]:
        i = h - self.delay
        return [(1.0, None, (i,) if i >= 0 and i % self.every == self.offset else (), None)]


class Held:
    """Time h shows step max(h − lag, 0) with its time stamp; the lag is kept with probability hold, else drawn anew."""

    def __init__(self, lags: Any, hold: float) -> None:
        self.lags, self.hold = lags, hold

    def start(self) -> list[tuple[float, Any]]:
        return [(1.0, None)]

    def tick(self, h: int, g: Any) -> list[Outcome]:
        out: list[Outcome] = []
        for lag, p in enumerate(self.lags):
            q = float(p) if g is None else (1 - self.hold) * float(p) + (self.hold if lag == g else 0.0)
            if q > 0:
                out.append((q, lag, (max(h - lag, 0),), None))
        return out


class Ages:
    """The newest step that the link shows is a Markov chain of its age; steps before 0 are shown as such."""

    def __init__(self, kernel: Any, first: Any) -> None:
        self.kernel, self.first = kernel, first

    def start(self) -> list[tuple[float, Any]]:
        return [(1.0, None)]

    def tick(self, h: int, g: Any) -> list[Outcome]:
        out: list[Outcome] = []
        if g is None:
            pairs = list(enumerate(self.first))
        else:
            row = self.kernel[min(g, len(self.kernel) - 1)]
            pairs = [*enumerate(row[:-1]), (g + 1, row[-1])]
        for age, p in pairs:
            if p > 0:
                new = age <= h and (g is None or age <= g)
                out.append((float(p), age, (h - age,) if new else (), max(age - h, 0)))
        return out
