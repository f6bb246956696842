"""What a learner is: three methods. Anything with them can be given to `oldlight.learn`.

    start(setting, rng)   once, before the first episode: what is known beforehand, and the generator to draw from
    act(info)             during an episode: an action, or the chances of the actions, for what the agent knows now
    see(episode)          after each episode: everything that the protocol reveals

Between two calls of `see` the answers of `act` must not change: they are the policy of that episode, whose exact value is
what regret counts. A learner may draw from `rng` in `start` and `see`.

A learner that keeps its policy in a table may also have `policy()`, which returns an executable policy object (and returns the
same object as long as nothing has changed); it is then played and valued in compiled code, and `act` is not needed. For
checkpoints it has `state()`, a dictionary of arrays, and `restore(state)`.

    class AlwaysTheFirst:                       # the smallest learner
        def start(self, setting, rng): ...
        def act(self, info): return 0
        def see(self, episode): ...
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.model.channels import Channel
from oldlight.model.channels.delay_law import DelayLaw
from oldlight.model.information import Information, Layout
from oldlight.model.problem import ImpairedMDP

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Setting:
    """What a learner is told: everything but the transitions (and it is up to the learner what else it uses).

    `law` and `arrival_probability` are those of the problem; `rewards[h, s, a]` and `initial[s]` too. `episodes` is the K of the run and
    `failure` the γ of the bounds. A learner that estimates the delay law may use its support (which delays can occur at all).
    """

    horizon: int
    n_states: int
    n_actions: int
    rewards: Floats
    initial: Floats
    channel: Channel
    law: DelayLaw
    arrival_probability: Floats | None
    warmup: int
    actuation: int
    pending: tuple[int, ...]
    stationary: bool
    episodes: int
    failure: float
    layout: Layout | None  # where each information state stands in a table; None under loss

    lead = checks.renamed_property("lead", "warmup")
    seen = checks.renamed_property("seen", "arrival_probability")

    @classmethod
    def of(cls, problem: ImpairedMDP, episodes: int, failure: float, layout: Layout | None) -> Setting:
        mdp = problem.mdp
        return cls(
            problem.horizon, problem.n_states, problem.n_actions, np.array(mdp.rewards), np.array(problem.initial),
            problem.channel, problem.law, problem.arrival_probability, problem.warmup, problem.actuation, problem.pending,
            mdp.stationary_transitions, episodes, failure, layout,
        )  # fmt: skip

    @property
    def log_term(self) -> float:
        """ι = log(S·A·H·K/γ)."""
        return float(np.log(self.n_states * self.n_actions * self.horizon * self.episodes / self.failure))


@dataclass(frozen=True, eq=False)
class Episode:
    """What the protocol reveals after an episode, for the steps −warmup..H−1 (entry i is step i − warmup).

    states[i]: the state, or −1 if its observation was lost. actions[i]. arrivals[i]: when it was seen (H or later: only after
    the episode; −1: lost). Rewards are those of the setting at (states, actions): what a learner with unknown rewards has seen
    is `rewards[i]`, NaN where the observation was lost and zero before step 0.
    """

    states: Ints
    actions: Ints
    arrivals: Ints
    rewards: Floats
    warmup: int

    lead = checks.renamed_property("lead", "warmup")

    def information(self, h: int) -> Information:
        """What the agent knew at time h of this episode (as it knew it then)."""
        known = [i for i in range(h + self.warmup + 1) if 0 <= self.arrivals[i] <= h]
        queue = tuple(self.actions.tolist())
        if not known:
            return Information.nothing_seen(queue[: h + self.warmup])
        i = known[-1]
        return Information(
            h, i - self.warmup, int(self.states[i]), queue[i : h + self.warmup], h - int(self.arrivals[i])
        )


class Learner(Protocol):
    """The protocol; see the module's text."""

    def start(self, setting: Setting, rng: np.random.Generator) -> None: ...

    def act(self, info: Information) -> Any: ...

    def see(self, episode: Episode) -> None: ...
