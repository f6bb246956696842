"""The link of the actions: what is done at each step, for one episode after the other; and what of it can be planned.

The action chosen at time h is sent at h and arrives as the channel says. At step h the newest action that has arrived acts (newest by when it was
chosen). Where nothing newer has arrived at this step

    missing="hold"       what was done before is done again (a motor keeps its set point)
    missing="default"    `default` is done (a brake falls in)

and before anything has arrived `default` is done. `ImpairedAction` puts any environment behind such a link, the keyword `action_channel=` the
tabular environments of this package.

**What can be planned.** The agent knows what it chose, not what was done.

1. All actions are late by d: the same as `actuation=d` with `pending=[default] * d`, planned exactly as the information of a delay longer by d.
2. Each action is lost on its own with probability ρ, where it is missing `default` is done, and all are late by d (0 as well): after the
   choice a the state moves by (1 − ρ)·P(· | s, a) + ρ·P(· | s, default), whatever happened before, and earns the mean of the two rewards. That is a
   process of its own (`mixed_process`), with late actions as in 1, and its plan is exact behind every link of the observations.
3. Elsewhere (a random delay, bursts, or a loss after which the last action is held) what was done depends on what was done before, and the agent has not
   seen it: its information is no newest state and queue of choices. Such a link is simulated and learned behind, and `planned_link` refuses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.model.channels import Channel, ConstantDelay, Loss
from oldlight.model.mdp import TabularMDP
from oldlight.simulation.link_sampler import LinkSampler

MISSING = ("hold", "default")


class ActionLink:
    """One episode after the other: `begin(rng)`, then `arrives(action)` at each step."""

    def __init__(self, channel: Channel, horizon: int | None, *, holds: bool, default: Any) -> None:
        self.sampler = LinkSampler(channel, horizon=horizon)
        self.holds, self.default = holds, default

    def begin(self, rng: np.random.Generator) -> None:
        """A new episode, with nothing under way."""
        self._rng, self._now, self._newest = rng, 0, -1
        self._sent: dict[int, Any] = {}  # by the time at which they were chosen
        self._current = self.default

    def arrives(self, action: Any) -> tuple[Any, int]:
        """(what is done at this step, when it was chosen; −1: the default). The action is sent."""
        self._sent[self._now] = action
        came = self.sampler.begin(self._rng) if self._now == 0 else self.sampler.send()
        newer = [i for i in came.arrived if i > self._newest]
        source = self._newest
        if newer:
            source = self._newest = max(newer)
            self._current = self._sent[source]
        elif not self.holds:
            self._current, source = self.default, -1
        for i in [i for i in self._sent if i < self._newest]:
            del self._sent[i]
        self._now += 1
        return self._current, source


def planned_link(channel: Channel, missing: str) -> tuple[int, float]:
    """(d, ρ): how late all actions are, and how often each is lost and replaced by the default; refused where the agent's information is another one."""
    late, loses = (channel.delay, channel.loss) if channel.has_delay_law else (None, None)
    if isinstance(late, ConstantDelay):
        if loses is None:
            return int(late.d), 0.0
        if missing == "default" and isinstance(loses, Loss) and isinstance(loses.seen, float):
            return int(late.d), 1.0 - loses.seen
    held = (
        ' With missing="default" independent losses are planned.'
        if isinstance(late, ConstantDelay) and isinstance(loses, Loss)
        else ""
    )
    raise ValueError(
        "behind this link of the actions the agent does not know what was done, and what was done decides what is done next: its information is no newest "
        "state and queue of actions, so this is simulated and not planned. Planned are a constant delay of actions, and independent losses "
        f'(loss:0.1, constant:1+loss:0.1) with missing="default".{held} The link is {channel!r}, missing={missing!r}'
    )


def mixed_process(mdp: TabularMDP, default: int, lost: float) -> TabularMDP:
    """The process of the choices, each of which is replaced by `default` with probability `lost`: see the module's text, 2."""
    if lost == 0.0:
        return mdp
    S, A = mdp.n_states, mdp.n_actions
    instead = np.repeat(np.arange(S) * A + default, A)
    steps = [mdp.matrix(h) for h in range(1 if mdp.stationary_transitions else mdp.horizon or 1)]
    mixed = [(1 - lost) * P + lost * P[instead] for P in steps]
    rewards = mdp.rewards[:1] if mdp.stationary_rewards else mdp.rewards
    R: NDArray[np.float64] = (1 - lost) * rewards + lost * rewards[:, :, default : default + 1]
    P: Any = mixed if mdp.sparse else np.array(mixed).reshape(-1, S, A, S)
    return TabularMDP(
        P[0] if mdp.stationary_transitions else P,
        R[0] if mdp.stationary_rewards else R,
        horizon=mdp.horizon,
        initial=mdp.initial,
        discount=mdp.discount,
        average=mdp.average,
        states=mdp.states,
        actions=mdp.actions,
    )


class ActionLinks:
    """The links of the actions of n copies, each with random draws of its own; `source` says when what is done was chosen."""

    def __init__(self, channel: Channel, horizon: int, n: int, *, holds: bool, default: int) -> None:
        self._links = [ActionLink(channel, horizon, holds=holds, default=default) for _ in range(n)]
        self._rngs = [np.random.default_rng(0) for _ in range(n)]
        self._acted = np.zeros(n, dtype=np.int64)
        self.source = np.full(n, -1, dtype=np.int64)

    def seed(self, e: int, rng: np.random.Generator) -> None:
        """New draws for copy e."""
        self._rngs[e] = np.random.Generator(np.random.SFC64(int(rng.integers(2**64, dtype=np.uint64))))

    def begin(self, who: NDArray[np.bool_]) -> None:
        """New episodes for the copies in `who`."""
        for e in np.flatnonzero(who).tolist():
            self._links[e].begin(self._rngs[e])

    def step(self, actions: NDArray[np.int64], skip: NDArray[np.bool_]) -> NDArray[np.int64]:
        """What each copy does, the others than those in `skip`."""
        for e in np.flatnonzero(~skip).tolist():
            self._acted[e], self.source[e] = self._links[e].arrives(int(actions[e]))
        return self._acted.copy()
