"""`LinkLearner`: one learner for every link that can be planned.

Packets that overtake each other, messages delivered in order, random delays with losses, losses in bursts, slow sensors, an age that was counted: whatever
the link does, it does not depend on the process. So both are learnt apart (`learners.link_counts`),

    the process     from one-step transitions between revealed states: no count has a queue or an age in it,
    the link        known, or estimated as a chain of ages, from all ticks of all episodes,

and joined by the one planner of links (`planning.link_plan`), behind a delay alone by the backward induction of `planning.delay`. For each episode k:

    1. play the plan's policy, count what the episode reveals;
    2. if some N_t(s, a) has doubled since the last plan, and that is at least a fiftieth of all episodes ago: make a process of the counts that is
       optimistic, or drawn from the posterior (`learners.optimistic_model`), and plan for it behind the link.

A plan that is not exact by its tables is closed to `tolerance` times what can be earned at most; the work of that is counted in steps of the search, not by
the clock, so that one seed gives one run on every machine. `estimate` is the value of the plan.

**Rewards.** Known, or estimated from the revealed ones: the mean, plus c·√(ι/N) for "hoeffding" and "bernstein", plus n/(N + n)·(1 − mean) for "prior" and "best"; 1 where
nothing was revealed. "posterior" takes the mean.

**Lost observations.** A transition is counted where both of its states were revealed. With hidden_steps = n ≥ 2 stretches of up to n steps between two
revealed states count too, by expectation–maximisation (`learners.hidden_steps`), renewed whenever the number of episodes has grown by half.

**A delay law that depends on state or action** is planned where it is known, behind a delay alone; with law="estimated" it is refused (`DelayedUCBVI` estimates it). A random
delay of the in-order kind that is estimated becomes a chain of ages, which forgets how long the agent has waited.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.learners.base import Learner, Setting
from oldlight.learners.delayed_ucbvi import rewards_in_unit_interval
from oldlight.learners.hidden_steps import HiddenStretches
from oldlight.learners.learnt_plan import LearntPlan, needs_nodes
from oldlight.learners.link_counts import AgeCounts, LinkCounts
from oldlight.learners.optimistic_model import Estimated, Optimism, drawn, optimistic, towards_best, without_ties
from oldlight.learners.search_memory import search_room, setting_tables
from oldlight.model.episode import Episode
from oldlight.model.policies import Policy
from oldlight.model.problem import ImpairedMDP

Floats = NDArray[np.float64]
KINDS = ("prior", "best", "bernstein", "hoeffding", "posterior")
SELDOM = 50  # at most so many plans while the number of episodes grows by a factor e
GROWTH = 1.5  # hidden steps are filled in again when there are so many times as many episodes


class LinkLearner(Learner):
    """One learner for every link that can be planned; see the module's text.

    Parameters
    ----------
    optimism : "prior", "best", "bernstein", "hoeffding" or "posterior"
        What makes it explore (`oldlight.learners.optimistic_model`).
    c : float
        Constant of the two bonuses.
    visits : float
        Pseudo-visits n of "prior" and "best".
    sharpness : float
        κ of "best": how many times as many visits the draw pretends to have.
    draws : int
        Of "posterior": rows that are drawn for each pair; it takes the one that promises most.
    pooled : bool or "auto"
        Put the counts of all steps together (stationary processes); "auto": those of a pair until a sequential test says that its law changes with the
        step (`oldlight.learners.link_counts`).
    law : "known" or "estimated"
        Of the link; estimated as a chain of ages.
    rewards : "known" or "estimated"
        See the module's text.
    hidden_steps : int
        0, or the longest stretch between two revealed states that is counted by expectation–maximisation, ≥ 2.
    tolerance : float
        Of a plan, in parts of what can be earned at most.

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8, n_states=4, horizon=5), "packets:0=0.5,1=0.3,2=0.2")
    >>> run = ol.learn(problem, ol.learners.LinkLearner(pooled=True), 100, seed=1)
    >>> bool(run.shortfalls[-1] < 0.1 * run.shortfalls[0])
    True
    """

    def __init__(
        self,
        *,
        optimism: Literal["prior", "best", "bernstein", "hoeffding", "posterior"] = "prior",
        c: float = 0.02,
        visits: float = 1.0,
        sharpness: float = 3.0,
        draws: int = 1,
        pooled: bool | Literal["auto"] = False,
        law: Literal["known", "estimated"] = "known",
        rewards: Literal["known", "estimated"] = "known",
        hidden_steps: int = 0,
        tolerance: float = 1e-3,
    ) -> None:
        checks.one_of("optimism", optimism, KINDS)
        checks.one_of("law", law, ("known", "estimated"))
        checks.one_of("rewards", rewards, ("known", "estimated"))
        if pooled not in (True, False, "auto"):
            raise ValueError(f'pooled is {pooled!r}, expected True, False or "auto"')
        if hidden_steps:
            checks.whole("hidden_steps", hidden_steps, least=2)
        self.optimism, self.c, self.visits = optimism, checks.positive("c", c), checks.positive("visits", visits)
        self.draws, self.pooled, self.law, self.rewards = checks.whole("draws", draws, least=1), pooled, law, rewards
        self.sharpness = checks.positive("sharpness", sharpness)
        self.hidden_steps, self.tolerance = hidden_steps, checks.positive("tolerance", tolerance)

    def acts_on_nodes(self, problem: ImpairedMDP) -> bool:
        """Is it asked with the nodes of the link's automaton?"""
        return needs_nodes(problem.channel, self.law)

    def start(self, setting: Setting, rng: np.random.Generator) -> None:
        if self.optimism != "posterior" or self.rewards == "estimated":
            rewards_in_unit_interval(setting)
        self.setting, self.rng = setting, rng
        self.counts = LinkCounts(setting, self.pooled)
        room = search_room(setting_tables(setting, self.pooled is True))
        self.planner = LearntPlan(setting, self.law, self.tolerance, room)
        self.ages = AgeCounts(self.planner.automaton) if self.law == "estimated" else None
        self.stretches = HiddenStretches(self.hidden_steps, self.pooled is not False) if self.hidden_steps else None
        self.planned_at, self.planned_visits, self.filled_at = 0, np.zeros(0), 0
        self._plan()

    def policy(self) -> Policy:
        return self._policy

    def see(self, episode: Episode) -> None:
        counts = self.counts
        counts.add(episode)
        if self.ages is not None:
            self.ages.add(episode)
        if self.stretches is not None:
            self.stretches.add(episode)
            if counts.episodes >= GROWTH * self.filled_at:
                self._fill_in()
        k = counts.episodes
        if k < self.planned_at + 1 + self.planned_at // SELDOM:
            return
        visits = counts.visits
        if (
            counts.test(self.setting.failure)
            or visits.shape != self.planned_visits.shape
            or (visits >= 2 * np.maximum(self.planned_visits, 0.5)).any()
        ):
            self._plan()

    def _fill_in(self) -> None:
        """The expected transitions between observations several steps apart."""
        assert self.stretches is not None
        counts, self.filled_at = self.counts, self.counts.episodes
        number = counts.number if self.pooled is False else counts.number.sum(axis=0, keepdims=True)
        before = counts.hidden if counts.hidden.shape == number.shape else np.zeros_like(number)
        counts.hidden = self.stretches.expected(number, before)

    # -- plans -----------------------------------------------------------------------------------------------------

    def _plan(self) -> None:
        self.planned_at, self.planned_visits = self.counts.episodes, self.counts.visits
        link = None if self.ages is None else np.concatenate([self.ages.rows.ravel(), self.ages.roots.ravel()])
        self._plan_for(without_ties(self.estimated(), self.rng), link)

    def estimated(self) -> Estimated:
        """The process that the next plan is for, made of the counts."""
        number, rewards = self.counts.by_step(), self._reward_estimates()
        if self.optimism == "posterior":
            return drawn(number, rewards, 1.0 / self.setting.n_states, self.draws, self.rng)
        if self.optimism == "best":
            return towards_best(number, rewards, self.visits, self.sharpness, self.rng)
        return optimistic(number, rewards, Optimism(self.optimism, self.c, self.setting.log_term, self.visits))

    def _reward_estimates(self) -> Floats:
        if self.rewards == "known":
            return np.array(self.setting.rewards)
        N, total = self.counts.paid_times, self.counts.paid
        mean = np.where(N > 0, total / np.maximum(N, 1.0), 1.0)
        if self.optimism in ("prior", "best"):
            mean = mean + self.visits / (N + self.visits) * (1.0 - mean)
        elif self.optimism != "posterior":
            mean = mean + self.c * np.sqrt(self.setting.log_term / np.maximum(N, 1.0))
        return np.minimum(mean, 1.0)

    def _plan_for(self, model: Estimated, link: Floats | None) -> None:
        """Plan for a process, and for the link that these counts of ages make."""
        self._model, self._link = model, link
        automaton = None
        if self.ages is not None and link is not None:
            now = self.ages.rows, self.ages.roots
            cut = self.ages.rows.size
            self.ages.rows, self.ages.roots = link[:cut].reshape(now[0].shape), link[cut:].reshape(now[1].shape)
            automaton = self.ages.automaton()
            self.ages.rows, self.ages.roots = now
        self._policy, self.estimate = self.planner.plan(model, automaton, self.ages)

    # -- checkpoints -----------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        held = self.counts.state() | {
            "planned_at": np.array(self.planned_at), "planned_visits": self.planned_visits, "filled_at": np.array(self.filled_at),
            "model.transitions": self._model.transitions, "model.rewards": self._model.rewards,
        }  # fmt: skip
        if self.ages is not None and self._link is not None:
            held |= self.ages.state() | {"link": self._link}
        return held | (self.stretches.state() if self.stretches is not None else {})

    def restore(self, state: dict[str, Any]) -> None:
        self.counts.restore(state)
        self.planned_at, self.filled_at = int(state["planned_at"]), int(state["filled_at"])
        self.planned_visits = np.array(state["planned_visits"])
        if self.ages is not None:
            self.ages.restore(state)
        if self.stretches is not None:
            self.stretches.restore(state)
        self._plan_for(Estimated(state["model.transitions"], state["model.rewards"]), state.get("link"))
