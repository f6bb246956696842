"""The automaton of a link that settles observations in order, at most one a tick, each seen or announced as lost.

That is the paper's delay law where it does not depend on the state or the action, loss, and both together. Let i be the
next step to settle, e = h + 1 − i how late it would be at the next tick, and δ the wait since step i − 1 was settled. With
the hazard θ_{i−1}(δ) of the law (1 where e has reached the cap) the next tick settles step i; it is then seen, with age e, with
probability λ_i, or known to be lost. A node is (i, e, δ), without i where the law is the same at every step; with losses in
bursts it also has the law of the hidden mode. Before step 0 is settled, the law of d_0 takes the part of the hazard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from oldlight.model.channels.automaton import NOTHING_NEWER, SILENCE, ChannelAutomaton, News, Tick
from oldlight.model.channels.hidden import MOST_NODES, Representatives

if TYPE_CHECKING:
    from oldlight.model.channels.delay_law import DelayLaw
    from oldlight.model.channels.losses import LossChannel


class _Losses:
    """The probability that step i is seen, and what is known of the loss channel's mode after step i was settled."""

    def __init__(self, loss: LossChannel | None, horizon: int, merging: float, most: int) -> None:
        modes = None if loss is None else loss.modes(horizon)
        if loss is not None and modes is None and not loss.independent:
            raise ValueError(
                f"{loss!r} defines only how its losses are drawn (lost), and they depend on each other; a plan needs modes(horizon), the hidden "
                "modes behind them (oldlight.model.channels.LossModes). Simulations and ImpairedObservation need nothing more"
            )
        self.laws = Representatives(merging, most)
        if modes is not None:
            self.first, self.switch, self.seen = modes
        else:
            self.first, self.switch = np.ones(1), np.ones((1, 1))
            self.seen = np.ones((1, 1)) if loss is None else loss.arrival_probabilities(horizon)[:, None]
        self.per_step = bool((self.seen != self.seen[0]).any())
        self.mode: Any = self.laws.of(None, dict(enumerate(self.first.tolist()))) if len(self.first) > 1 else None

    def outcomes(self, i: int, mode: Any) -> list[tuple[float, bool, Any]]:
        """(probability, seen?, what is known of the next mode); mode: what is known of that of step i, None where there is only one."""
        arrives = self.seen[min(i, len(self.seen) - 1)]
        if mode is None:
            return [(float(arrives[0]), True, None), (1.0 - float(arrives[0]), False, None)]
        out = []
        for seen in (True, False):
            weight = np.zeros(len(self.first))
            for z, p in mode:
                weight[z] = p * (arrives[z] if seen else 1.0 - arrives[z])
            total = float(weight.sum())
            if total > 0:
                following = (weight @ self.switch) / total
                out.append((min(total, 1.0), seen, self.laws.of(None, dict(enumerate(following.tolist())))))
        return out


def independent_of_the_process(law: DelayLaw) -> bool:
    """Is the law the same for every state and action?"""
    rows = law.interarrival
    return bool((rows == rows[:, :1, :1]).all())


def in_order_automaton(
    law: DelayLaw, loss: LossChannel | None = None, merging: float = 0.0, most: int = MOST_NODES
) -> ChannelAutomaton:
    """See the module's text; merging, and the most laws that are kept apart, are for losses in bursts (`oldlight.model.channels.hidden`)."""
    if not independent_of_the_process(law):
        raise ValueError(
            "a delay law that depends on the state or the action is not an automaton of ages: waiting itself tells of the hidden "
            "state. It is planned by the delay planner, without loss; with loss use a law that is the same for all states"
        )
    H, losses = law.horizon, _Losses(loss, law.horizon, merging, most)
    hazard, first = law.hazard[:, 0, 0, :], law.first_hazard
    per_step = losses.per_step or bool((hazard != hazard[0]).any())
    changing = np.flatnonzero((hazard != hazard[-1]).any(axis=1))
    steady = H if losses.per_step else int(changing.max(initial=-1)) + 2  # from this step on all are alike

    def settle(theta: float, i: int, e: int, mode: Any) -> list[Tick]:
        after = min(i + 1, steady) if per_step else 1  # only "after step 0" matters where all steps are alike
        return [
            (theta * p, (after, e, 0, then), e if seen else NOTHING_NEWER, News((e,)) if seen else News(lost=(e,)))
            for p, seen, then in losses.outcomes(i, mode)
        ]

    def into(h: int) -> list[Tick]:
        """The tick into time h while step 0 is not settled."""
        theta = float(first[min(h, H)])
        wait: list[Tick] = [(1.0 - theta, ("first", h), NOTHING_NEWER, SILENCE)] if theta < 1 else []
        return settle(theta, 0, h, losses.mode) + wait

    def step(node: Any) -> list[Tick]:
        if len(node) == 2:
            return into(node[1] + 1)
        i, e, wait, mode = node
        row = hazard[min(i - 1, len(hazard) - 1)]
        theta = 1.0 if e >= law.longest_delay or wait >= len(row) else float(row[wait])
        later: list[Tick] = [(1.0 - theta, (i, e + 1, wait + 1, mode), NOTHING_NEWER, SILENCE)] if theta < 1 else []
        return settle(theta, i, e, mode) + later

    return ChannelAutomaton.explore(into(0), step, H, merging=merging)
