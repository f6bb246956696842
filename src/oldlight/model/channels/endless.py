"""Links that run for ever: the automaton of a channel without a horizon.

`automaton(horizon)` explores what can be met within a horizon. Where no new node turns up any more the automaton is *closed*: every node has
its ticks, and it holds for ever. Packets, FIFO, age chains, renewal loss, periodic sensing, held lags, constant and capped delays,
independent losses, and losses in bursts that show the mode are closed. Two kinds are not:

- a delay law in order whose delays only grow (`GeometricDelay`, `StochasticDelay` ..). Its delays are capped at the planner's depth D for the
  upper bound (an agent behind the cap knows at least as much); what is certain to be earned is found on the true link;
- a hidden mode with no end of laws (`HiddenLink`, `BurstyLoss` that shows through in both modes). Laws within ε in total variation are
  merged; each replacement moves the law of everything that follows by at most ε, so that for every policy the value moves by at most

      B = ε·Σ_h u^{h+1}·(max r − min r)/(1 − u) = ε·u·(max r − min r)/(1 − u)²          (`endless_merging_error`)

  and the *revealed* link, whose agent is told the mode with every tick, is an upper bound of its own, for the average too.

What changes with time (a loss rate for each step, a delay law for each step) has no end and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from oldlight.checks import TooLarge
from oldlight.model.channels.automaton import NOTHING_NEWER, SILENCE, ChannelAutomaton, Tick
from oldlight.model.channels.capped_link import CappedLink
from oldlight.model.channels.channel import Channel
from oldlight.model.channels.delays import CappedDelay, DelayChannel, StochasticDelay
from oldlight.model.channels.in_order import in_order_automaton, independent_of_the_process
from oldlight.model.channels.losses import Loss, LossChannel, Lossy

TRIES = (24, 96, 384, 1536)  # horizons within which an automaton may close
MANY = 3_000  # nodes of a closed automaton that is planned as it is
FEW_LAWS = 100  # laws of a hidden mode that are kept apart, at most
MERGING = (0.0, 1e-5, 1e-3, 1e-2, 0.1, 1.0)


@dataclass(frozen=True, eq=False)
class EndlessLink:
    """automaton: closed, not yet shifted by late actions. growing: its delays are capped at the depth, those of the link only grow.

    true_link: of merged laws, the link whose nodes are (node of the automaton, hidden configuration), to value a policy on; None: the automaton
    itself. revealed: of merged laws, the link whose mode is told.
    """

    automaton: ChannelAutomaton
    growing: bool = False
    true_link: ChannelAutomaton | None = None
    revealed: ChannelAutomaton | None = None


def is_closed(automaton: ChannelAutomaton) -> bool:
    """Has every node its ticks?"""
    return bool((np.diff(automaton.ticks.first) > 0).all())


def grows(channel: Channel) -> bool:
    """Do the delays of the channel only grow, without bound?"""
    if not channel.has_delay_law:
        return False
    n = TRIES[0]
    law = channel.delay.law(n, *channel.delay._sizes())
    return law.longest_delay >= n and bool(law.interarrival[-1, :, :, 1:].any())


def check_endless(channel: Channel, n_states: int, n_actions: int) -> None:
    """Refuse a channel that cannot run for ever."""
    if isinstance(channel, CappedLink):
        check_endless(channel.link, n_states, n_actions)
        return
    if not channel.has_delay_law:
        return
    loss, delay = channel.loss, channel.delay
    while isinstance(delay, CappedDelay):
        delay = delay.channel
    rates = np.asarray(loss.seen) if isinstance(loss, Loss) else None if loss is None else _rates(loss)
    if rates is not None and rates.ndim and (rates != rates[0]).any():
        raise ValueError(
            f"{channel!r} has an arrival probability for each step, and the process runs for ever; give one for all, or "
            "cut the process: mdp.replace(horizon=H)"
        )
    if isinstance(delay, StochasticDelay) and delay.interarrival.ndim == 4 and len(delay.interarrival) > 1:
        raise ValueError(
            f"{channel!r} has a delay law for each of {len(delay.interarrival)} steps, and the process runs for ever; give one for all, or "
            "cut the process: mdp.replace(horizon=H)"
        )
    if not independent_of_the_process(delay.law(TRIES[0], n_states, n_actions)):
        raise ValueError(
            f"the delay law of {channel!r} depends on the state or the action: waiting itself tells of the hidden state, and that is planned "
            "for a finite horizon only. Cut the process: mdp.replace(horizon=H)"
        )


@lru_cache(maxsize=64)
def endless(channel: Channel, depth: int | None = None) -> EndlessLink:
    """The link of `channel` for ever; depth: where delays that only grow are capped."""
    if grows(channel):
        if depth is None:
            raise ValueError(
                f"the delays of {channel!r} only grow, so its automaton never ends; cap them: channel.capped(k)"
            )
        delay: DelayChannel = CappedDelay(channel.delay, depth)
        capped: Channel = delay if channel.loss is None else Lossy(delay, loss=channel.loss)
        return EndlessLink(endless(capped).automaton, growing=True)
    if is_hidden(channel):
        return _merged(channel)
    for n in TRIES:
        found = channel.automaton(n)
        if is_closed(found):
            return EndlessLink(found)
        if len(found.nodes) > MANY:
            break
    raise _unclosed(channel)


def _unclosed(channel: Channel) -> TooLarge:
    return TooLarge(
        f"the automaton of {channel!r} is not closed within {TRIES[-1]:,} steps and {MANY:,} nodes, or has too many laws of a hidden mode even where "
        "they are merged; for ever it must be. Cut the process: mdp.replace(horizon=H)"
    )


def is_hidden(channel: Channel) -> bool:
    """May there be no end of laws of a hidden mode?"""
    loss: LossChannel | None = channel.loss if channel.has_delay_law else None
    return hasattr(channel, "merged") or (loss is not None and loss.modes(TRIES[0]) is not None)


def _merged(channel: Channel) -> EndlessLink:
    """The laws of a hidden mode, merged as little as leaves few of them."""
    for merging in MERGING:
        for n in TRIES[:3]:
            try:
                found, true_link, revealed = _with_laws_merged(channel, n, merging)
            except TooLarge:
                break
            if len(found.nodes) > FEW_LAWS * (found.longest + 1):
                break
            if is_closed(found):
                if merging == 0:
                    return EndlessLink(found)
                return EndlessLink(found, true_link=true_link(), revealed=revealed())
    raise _unclosed(channel)


Made = Callable[[], ChannelAutomaton]


def _with_laws_merged(channel: Channel, n: int, merging: float) -> tuple[ChannelAutomaton, Made, Made]:
    """The merged automaton, and functions that make the true link and the revealed one."""
    if hasattr(channel, "merged"):
        found, true_link = channel.merged(n, merging, FEW_LAWS)
        return found, true_link, lambda: _revealed(true_link(), lambda node: node[0])
    found = in_order_automaton(channel.delay.law(n, *channel.delay._sizes()), channel.loss, merging, FEW_LAWS)

    def bursty() -> ChannelAutomaton:
        return _bursty_true_link(found, channel.loss)  # type: ignore[arg-type]

    return found, bursty, lambda: _revealed(bursty(), lambda node: node[:-1])


def _bursty_true_link(known: ChannelAutomaton, loss: LossChannel) -> ChannelAutomaton:
    """Nodes (node of the automaton, mode of the next step to settle): what happens, and what the merged laws make of it."""
    modes = loss.modes(known.horizon)
    assert modes is not None
    first, switch, seen = modes[0].tolist(), modes[1].tolist(), modes[2][0].tolist()

    def ticks(n: int, z: int, weight: float = 1.0) -> list[Tick]:
        out: list[Tick] = []
        silent = sum(p for said, (p, _, _) in known.news(n).items() if said == SILENCE)
        for said, (_, target, age) in known.news(n).items():
            if said == SILENCE:
                out.append((weight * silent, (known.nodes[target], z), age, said))
                continue
            p = weight * (1.0 - silent) * (seen[z] if said.arrived else 1.0 - seen[z])
            for after, q in enumerate(switch[z]):
                out.append((p * q, (known.nodes[target], after), age))
        return out

    number = {name: n for n, name in enumerate(known.nodes)}
    start = [tick for z, p in enumerate(first) for tick in ticks(-1, z, p)]
    plain = [tick[:3] for tick in start]
    return ChannelAutomaton.explore(plain, lambda x: [tick[:3] for tick in ticks(number[x[0]], x[1])], known.horizon)


def _revealed(true_link: ChannelAutomaton, age_of: Callable[[Any], Hashable]) -> ChannelAutomaton:
    """The link whose agent is told the configuration with every tick: nodes of one configuration and age are one, whatever their law."""
    pairs: list[Any] = list(true_link.nodes)
    names = [(age_of(node), g) for node, g in pairs]
    row = {name: n for n, name in enumerate(names)}

    def ticks(n: int) -> list[Tick]:
        return [(p, names[target], age) for p, target, age in true_link.row(n)]

    return ChannelAutomaton.explore(ticks(-1), lambda name: ticks(row[name]), true_link.horizon)


def _rates(loss: LossChannel) -> np.ndarray:
    """The arrival probability of the first steps, in each mode."""
    modes = loss.modes(TRIES[0])
    return loss.arrival_probabilities(TRIES[0]) if modes is None else modes[2]


def endless_merging_error(merging: float, rewards: np.ndarray, discount: float | None) -> float:
    """B of the module's text; infinite for the average, where only the revealed link bounds."""
    if merging == 0:
        return 0.0
    if discount is None:
        return np.inf
    return float(merging * discount * np.ptp(rewards) / (1.0 - discount) ** 2)


def growing_link(channel: Channel, deepest: int) -> ChannelAutomaton:
    """A link whose delays only grow, as an agent knows it that stops looking once they are longer than `deepest`: from there on nothing is seen."""
    found = channel.automaton(2 * deepest + 8)
    late = "late"

    def ticks(n: int) -> list[Tick]:
        news = found.news(n)
        rows = [(*tick, said) for said, tick in news.items()] if news else found.row(n)
        out: list[Tick] = []
        for p, to, age, *said in rows:
            name: Any = found.nodes[to]
            if (name[1] if isinstance(name, tuple) else 0) > deepest:
                out.append((p, late, NOTHING_NEWER, *said))  # type: ignore[arg-type]
            else:
                out.append((p, name, age, *said))
        return out

    number = {name: n for n, name in enumerate(found.nodes)}
    stay: list[Tick] = [(1.0, late, NOTHING_NEWER)]
    return ChannelAutomaton.explore(ticks(-1), lambda x: stay if x == late else ticks(number[x]), found.horizon)
