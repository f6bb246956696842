"""Links with a state of their own that nobody sees: what the agent knows of it is a law, filtered tick by tick.

**Filter.** A hidden link has configurations g (whatever decides its future: a mode, messages under way), drawn anew with each
tick together with what the tick delivers: the ages of the messages that arrive. A node of the automaton is the age m with
the law β of g given everything delivered so far:

    P(delivery | β) = Σ_g β(g)·P(delivery | g),      β' ∝ Σ_g β(g)·P(delivery, g' | g).

Several deliveries may leave the age alone (a late, older message) and still change β: several nodes share an age.

**Merging.** The number of laws can grow without end. With merging = ε > 0 a law within total variation ε of one that stands
for the same age, and is positive at the same configurations, is replaced by that one, and filtering goes on from it. Each
replacement moves the law of everything that follows by at most ε, so for every policy the value moves by at most

    B = ε·Σ_{h=0}^{H−2} Σ_{j>h} (max r_j − min r_j)          (`merging_error`)

Laws that differ by rounding only (1e-13) are always one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oldlight import checks
from oldlight.arrays import Floats, Ints
from oldlight.checks import TooLarge
from oldlight.model.channels.automaton import NOTHING_NEWER, ChannelAutomaton, News, Tick
from oldlight.model.channels.messages import MessageLink
from oldlight.model.channels.pmfs import drawn

SAME = 1e-13  # laws this close in total variation differ by rounding
MOST_NODES = 200_000
Delivery = tuple[float, Hashable, tuple[int, ...]]  # (probability, next configuration, ages that arrive)


class Representatives:
    """The laws met so far, each standing for those within `merging` of it in total variation."""

    def __init__(self, merging: float, most: int = MOST_NODES) -> None:
        self.most, self.merging = most, checks.probability("merging", merging)
        self._met: dict[Hashable, list[Floats]] = {}
        self._count = 0

    def of(self, key: Hashable, law: dict[Any, float]) -> tuple[tuple[Any, float], ...]:
        """The law that stands for `law`, as pairs (configuration, probability), among those with the same key."""
        items = sorted((g, p) for g, p in law.items() if p > 0)
        names, beta = tuple(g for g, _ in items), np.array([p for _, p in items])
        known = self._met.setdefault((key, names), [])
        if known:
            distance = 0.5 * np.abs(np.asarray(known) - beta).sum(axis=1)
            nearest = int(distance.argmin())
            if distance[nearest] <= max(self.merging, SAME):
                return tuple(zip(names, known[nearest].tolist(), strict=True))
        known.append(beta)
        self._count += 1
        if self._count > self.most:
            raise TooLarge(
                f"a hidden link has more than {self.most:,} laws of its state to distinguish within this horizon; merge those "
                "within a total variation of ε: automaton(horizon, merging=ε), whose error the certificate then contains"
            )
        return tuple(zip(names, beta.tolist(), strict=True))


def filtered(
    start: Iterable[Delivery],
    tick: Callable[[Any], Iterable[Delivery]],
    horizon: int,
    longest: int,
    merging: float = 0.0,
    most: int = MOST_NODES,
) -> tuple[ChannelAutomaton, Callable[[], ChannelAutomaton]]:
    """The automaton of a hidden link, from the deliveries into time 0 and those of a configuration; and a function that makes the true
    link, whose nodes are (node of the automaton, configuration), to value on it what follows merged laws.

    longest: no message arrives with a larger age, so all ages from there on are one. most: laws, refused beyond.
    """
    laws, begin = Representatives(merging, most), list(start)
    follows: dict[Any, dict[tuple[int, ...], tuple[Any, int]]] = {}  # node -> what is delivered -> (the next node, age)

    def sort(weights: Iterable[tuple[float, Delivery]], m: int, node: Any = None) -> list[Tick]:
        """Sort what can happen by what is delivered; m is the age before."""
        parts: dict[tuple[int, ...], dict[Any, float]] = {}
        for weight, (p, g, ages) in weights:
            part = parts.setdefault(ages, {})
            part[g] = part.get(g, 0.0) + weight * p
        out: list[Tick] = []
        for ages, part in parts.items():
            total = sum(part.values())
            if total > 0:
                newest = min(ages, default=longest + 1)
                age = newest if newest <= m else NOTHING_NEWER
                now = min(newest, m + 1, longest)
                law = {g: p / total for g, p in part.items()}
                follows.setdefault(node, {})[ages] = (now, laws.of(now, law)), age
                out.append((min(total, 1.0), follows[node][ages][0], age, News(ages)))
        return out

    def step(node: Any) -> list[Tick]:
        m, beta = node
        return sort([(b, delivery) for g, b in beta for delivery in tick(g)], m, node)

    def true_ticks(node: Any, deliveries: Iterable[Delivery]) -> list[Tick]:
        return [(p, (follows[node][ages][0], g), follows[node][ages][1]) for p, g, ages in deliveries if p > 0]

    def true_link() -> ChannelAutomaton:
        return ChannelAutomaton.explore(true_ticks(None, begin), lambda x: true_ticks(x[0], tick(x[1])), horizon)

    known = ChannelAutomaton.explore(sort([(1.0, x) for x in begin], 0), step, horizon, merging=merging)
    return known, true_link


def merging_error(merging: float, rewards: Floats) -> float:
    """B of the module's text; rewards[h, s, a]."""
    if merging == 0:
        return 0.0
    span = rewards.max(axis=(1, 2)) - rewards.min(axis=(1, 2))
    return float(merging * (np.arange(len(span)) * span).sum())


class HiddenLink(MessageLink):
    """Packets behind a link that is in one of Z hidden modes. They may overtake each other; each arrival carries its time stamp.

    Parameters
    ----------
    switch : array_like, shape (Z, Z)
        P(z_{i+1} | z_i), the mode in which the observation of step i + 1 is sent.
    delays : array_like, shape (Z, K)
        delays[z, k]: the probability that an observation sent in mode z takes k steps; what is missing to 1 is lost, unannounced.
    first : array_like, shape (Z,), optional
        Distribution of z_0; the stationary one of `switch` if None.

    Examples
    --------
    >>> from oldlight import HiddenLink
    >>> link = HiddenLink([[0.9, 0.1], [0.3, 0.7]], delays=[[1.0, 0.0], [0.0, 0.8]])
    >>> link.first.round(6).tolist()
    [0.75, 0.25]
    """

    draws = 2

    def __init__(self, switch: ArrayLike, delays: ArrayLike, *, first: ArrayLike | None = None) -> None:
        self.switch = checks.frozen(checks.probability_rows("HiddenLink: switch", switch, ("z", "z'")))
        Z = len(self.switch)
        f = checks.finite_array("HiddenLink: delays", delays, ("z", "k"))
        if self.switch.shape != (Z, Z) or len(f) != Z:
            raise ValueError(
                f"HiddenLink: switch has shape {self.switch.shape} and delays {f.shape}; expected (Z, Z) and (Z, K)"
            )
        for z, row in enumerate(f):
            if (row < 0).any() or row.sum() > 1 + checks.SUM_TOLERANCE:
                raise ValueError(
                    f"HiddenLink: delays[z={z}] is {row.tolist()}, expected probabilities that sum to at most 1"
                )
        self.delays = checks.frozen(f)
        if first is None:
            spare = np.linalg.lstsq(np.vstack([self.switch.T - np.eye(Z), np.ones(Z)]), np.eye(Z + 1)[Z], rcond=None)[0]
            first = np.maximum(spare, 0.0) / np.maximum(spare, 0.0).sum()
        self.first = checks.frozen(checks.probability_rows("HiddenLink: first", first, ("z",)))
        if self.first.shape != (Z,):
            raise ValueError(f"HiddenLink: first has {len(self.first)} entries, expected one per mode: {Z}")

    def automaton(self, horizon: int, merging: float = 0.0) -> ChannelAutomaton:
        return self.merged(horizon, merging)[0]

    def merged(
        self, horizon: int, merging: float, most: int = MOST_NODES
    ) -> tuple[ChannelAutomaton, Callable[[], ChannelAutomaton]]:
        """The automaton with laws of the mode merged, and a function that makes the true link (`filtered`)."""
        K = self.delays.shape[1]

        def send(modes: Floats, under_way: tuple[int, ...], arrived: tuple[int, ...]) -> list[Delivery]:
            """Draw the mode and the fate of a new message; under_way[a] is the time left of the message sent a steps ago."""
            out: list[Delivery] = []
            for z in np.flatnonzero(modes).tolist():
                row = self.delays[z]
                missing = max(1.0 - float(row.sum()), 0.0)
                fates = [(float(p), k) for k, p in enumerate(row)]
                if missing > checks.SUM_TOLERANCE:
                    fates.append((missing, -1))
                for p, k in fates:
                    if p > 0:
                        kept = (max(k, 0), *under_way)[: K - 1]
                        out.append((float(modes[z]) * p, (z, kept), (0, *arrived) if k == 0 else arrived))
            return out

        def tick(g: Any) -> list[Delivery]:
            z, under_way = g
            arrived = tuple(a + 1 for a, left in enumerate(under_way) if left == 1)
            return send(self.switch[z], tuple(max(left - 1, 0) for left in under_way), arrived)

        return filtered(send(self.first, (0,) * (K - 1), ()), tick, horizon, K - 1, merging, most)

    @property
    def longest(self) -> int:
        return int(self.delays.shape[1]) - 1

    @property
    def oldest(self) -> int | None:
        return None if (self.delays.sum(axis=1) < 1 - checks.SUM_TOLERANCE).any() else self.longest

    def fate(self, i: Ints, link: Ints, u: Floats) -> tuple[Ints, Ints]:
        """The link's state is the mode of the step before."""
        mode = drawn(np.where((i > 0)[:, None], self.switch[link], self.first), u[0])
        wide = np.hstack([self.delays, np.maximum(1.0 - self.delays.sum(axis=1, keepdims=True), 0.0)])
        k = drawn(wide[mode], u[1])
        return np.where(k == self.delays.shape[1], -1, k), mode

    def _parameters(self) -> tuple[Any, ...]:
        return (self.switch.tobytes(), self.delays.tobytes(), self.first.tobytes())

    def _written(self) -> str:
        rows = [np.round(x, 6).tolist() for x in (self.switch, self.delays, self.first)]
        return f"{rows[0]}, {rows[1]}, first={rows[2]}"
