"""`check_channel`: does the automaton of a channel fit together, and does the sampler draw what it says?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from oldlight.model.channels import Channel
from oldlight.model.channels.automaton import NOTHING_NEWER, ChannelAutomaton
from oldlight.model.channels.messages import arrivals_of
from oldlight.model.channels.text import channel_data, channel_of
from oldlight.simulation.link_sampler import LinkSampler

ROUNDING = 1e-9
LONGEST_PATH = 5  # times of which all paths of the age are counted
RUNS = 2000  # of the sampler
RARE = 1e-6  # a χ² that is exceeded this seldom is a difference


def check_channel(channel: Channel | str, horizon: int = 8) -> None:
    """Is `channel` a link that can be planned and played? Its `automaton(horizon)` fits together, and the sampler draws what it says.

    The automaton has `horizon` times; the ticks of every node that is met before the last one sum to one; an observation that becomes
    visible is newer than the one before and was sent within the episode; what is heard tells the next node; a longer horizon changes
    nothing in the times before. The ages that the sampler draws have the automaton's law by a χ² test, with a fixed seed. The channel
    equals itself, shows its name, and comes back from its data if it can be written as data.

    Parameters
    ----------
    channel
        A channel, or one as text.
    horizon
        How many times to look at; all paths of the age of the first five are counted.

    Raises
    ------
    AssertionError
        Which node of the automaton, or which time, does not fit, and what was expected.

    Examples
    --------
    >>> import oldlight as ol
    >>> from oldlight.testing import check_channel
    >>> check_channel("packets:0=.2,1=.6,2=.2+loss:0.1")
    >>> from oldlight.model.channels import NOTHING_NEWER, Channel
    >>> class EverySecond(Channel):
    ...     def automaton(self, horizon):
    ...         ticks = {"now": [(1.0, "later", NOTHING_NEWER)], "later": [(0.9, "now", 0)]}
    ...         return ol.ChannelAutomaton.explore([(1.0, "now", 0)], ticks.__getitem__, horizon)
    >>> check_channel(EverySecond())
    Traceback (most recent call last):
        ...
    AssertionError: EverySecond: automaton(8) is refused: ChannelAutomaton: the ticks of node 'later' sum to 0.9, expected 1 ± 1e-09
    """
    link = channel_of(channel)
    name = type(link).__name__
    short, long = (_automaton(link, name, times) for times in (horizon, horizon + 2))
    laws = [_age_laws(automaton, name) for automaton in (short, long)]
    for h, (one, other) in enumerate(zip(*laws, strict=False)):
        for age in one.keys() | other.keys():
            if abs(one.get(age, 0.0) - other.get(age, 0.0)) > ROUNDING:
                raise AssertionError(
                    f"{name}: age {age} has probability {one.get(age, 0.0):.10g} at time {h} in automaton({horizon}) and "
                    f"{other.get(age, 0.0):.10g} in automaton({horizon + 2}); a longer horizon must change nothing before it"
                )
    _check_draws(link, name, _automaton(link, name, min(horizon, LONGEST_PATH)))
    if link != link or hash(link) != hash(link):
        raise AssertionError(f"{name}: a channel must equal itself and have one hash")
    if name not in repr(link):
        raise AssertionError(f"{name}: repr is {link!r}, expected one that has the name of the class")
    try:
        data = channel_data(link)
    except TypeError:
        return  # a class of one's own that nobody registered
    if channel_of(data) != link:
        raise AssertionError(f"{name}: {link!r} is written as {data!r}, which is read as {channel_of(data)!r}")


def _automaton(link: Channel, name: str, horizon: int) -> ChannelAutomaton:
    """The channel's automaton, whose rows are all there."""
    try:
        automaton = link.automaton(horizon)
    except ValueError as error:
        raise AssertionError(f"{name}: automaton({horizon}) is refused: {error}") from error
    if not isinstance(automaton, ChannelAutomaton) or automaton.horizon != horizon:
        raise AssertionError(
            f"{name}: automaton({horizon}) is {automaton!r}, expected a ChannelAutomaton of horizon {horizon}"
        )
    for n, node in enumerate(automaton.nodes):
        targets: dict[int, set[int]] = {}
        for _, target, age in automaton.row(n):
            targets.setdefault(age, set()).add(target)
        for age, nodes in targets.items():
            if len(nodes) > 1 and not automaton.news(n):
                what = "nothing newer" if age == NOTHING_NEWER else f"age {age}"
                raise AssertionError(
                    f"{name}: node {node!r} has ticks with {what} to the {len(nodes)} nodes {[automaton.nodes[m] for m in sorted(nodes)]}; what is "
                    "heard must tell them apart: give each tick its News, (probability, node, age, News(arrived, lost))"
                )
    return automaton


def _age_laws(automaton: ChannelAutomaton, name: str) -> list[dict[int | None, float]]:
    """The law of the age at each time (None: nothing seen), checked on the way."""
    met: Iterable[tuple[int, int | None]] = [(-1, None)]
    out = []
    for h, at in enumerate(automaton.age_laws()):
        for n, m in met:
            row = automaton.row(n)
            where = "the start" if n < 0 else f"node {automaton.nodes[n]!r}"
            total = sum(p for p, _, _ in row)
            if abs(total - 1.0) > ROUNDING:
                raise AssertionError(
                    f"{name}: the ticks of {where}, which is met at time {h - 1}, sum to {total:.10g}, expected 1"
                )
            for _, _, age in row:
                if age > (h if m is None else m):
                    raise AssertionError(
                        f"{name}: at time {h} {where} makes an observation of age {age} visible, expected one in 0..{h if m is None else m} "
                        "or nothing newer"
                    )
        met = at
        law: dict[int | None, float] = {}
        for (_, m), weight in at.items():
            law[m] = law.get(m, 0.0) + weight
        out.append(law)
    return out


def _check_draws(link: Channel, name: str, automaton: ChannelAutomaton) -> None:
    """Do the ages of the sampler's runs have the law of the automaton?"""
    H = automaton.horizon
    paths: dict[tuple[tuple[int, ...], int], float] = {((), -1): 1.0}
    for _ in range(H):
        longer: dict[tuple[tuple[int, ...], int], float] = {}
        for (ages, n), weight in paths.items():
            for p, target, age in automaton.row(n):
                before = ages[-1] if ages else -1
                now = age if age >= 0 else before + 1 if before >= 0 else -1
                key = ((*ages, now), target)
                longer[key] = longer.get(key, 0.0) + weight * p
        paths = longer
    law: dict[tuple[int, ...], float] = {}
    for (ages, _), weight in paths.items():
        law[ages] = law.get(ages, 0.0) + weight
    drawn = _drawn_ages(link, H)
    for ages in drawn.keys() - law.keys():
        raise AssertionError(
            f"{name}: the sampler draws the ages {ages}, which the automaton says cannot be (−1: nothing seen)"
        )
    if (p_value := _chi_square(drawn, law)) < RARE:
        raise AssertionError(
            f"{name}: the ages of {RUNS} runs of the sampler do not have the automaton's law: the p-value of the χ² test is {p_value:.2g}"
        )


def _drawn_ages(link: Channel, horizon: int) -> dict[tuple[int, ...], int]:
    """How often each path of the age is drawn in `RUNS` runs."""
    sampler, rng = LinkSampler(link, horizon=horizon), np.random.default_rng(0)
    if sampler.link is not None:
        arrivals = arrivals_of(sampler.link, rng, horizon, RUNS)
    else:
        arrivals = np.full((horizon, RUNS), -1)
        for e in range(RUNS):
            for h in range(horizon):
                arrivals[(sampler.send() if h else sampler.begin(rng)).arrived, e] = h
    ages = np.full((horizon, RUNS), -1)
    for h in range(horizon):
        for i in range(h + 1):
            ages[h][(arrivals[i] >= 0) & (arrivals[i] <= h)] = h - i
    found: dict[tuple[int, ...], int] = {}
    for path in map(tuple, ages.T.tolist()):
        found[path] = found.get(path, 0) + 1
    return found


def _chi_square(drawn: dict[Any, int], law: dict[Any, float]) -> float:
    """The probability of a χ² at least as large; what is expected less than 5 times is put together."""
    n = sum(drawn.values())
    often = [(drawn.get(key, 0), p * n) for key, p in law.items() if p * n >= 5]
    rest = (n - sum(count for count, _ in often), n - sum(expected for _, expected in often))
    cells = [*often, rest] if rest[1] > 1 else often
    k = len(cells) - 1
    if k < 1:
        return 1.0
    from scipy.special import chdtrc

    return float(chdtrc(k, sum((count - expected) ** 2 / expected for count, expected in cells)))
