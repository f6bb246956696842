"""`LinkLearner`: one learner for every link that can be planned.

Packets that overtake each other, messages delivered in order, random delays with losses, losses in bursts, slow sensors, an age that was counted: whatever
the link does, it does not depend on the process. So both are learnt apart (`learners.link_counts`),

    the process     from one-step transitions between revealed states: no count has a queue or an age in it,
    the link        known, or estimated as a chain of ages, from all ticks of all episodes,

and joined by the one planner of links (`planning.link_plan`), behind a delay alone by the backward induction of `planning.delay`. For each episode k:

    1. play the plan's policy, count what the episode reveals;
    2. if some N_t(s, a) has doubled since the last plan, and that is at least a fiftieth of all episodes ago: make a process of the counts that is
       optimistic, or drawn from the posterior (`learners.optimistic_model`), and plan for it behind the link. A posterior is drawn again, too, when the last draw, after episode k, is more than
       √(2k) episodes old, so that one that shows nothing new is not played for ever (the second rule of TSDE, Ouyang et al. 2017: its stretches grow by one).

Behind a delay alone whose law is known (none, constant, or random and in order) all of this is compiled, and many episodes are played in one call (`learners.episode_blocks`). Behind other
links a plan is a search that Python leads: there what is counted and the process that is made of it are compiled, and most of the time goes into plans and into asking them.

A plan that is not exact by its tables is closed to `tolerance` times what can be earned at most; the work of that is counted in steps of the search, not by
the clock, so that one seed gives one run on every machine. `estimate` is the value of the plan.

**Second looks** (looks=m, of "prior" and "best"). Few pseudo-visits waste little, but a pair that did badly at its first visits may then never be tried again: on RiverSwim about one run of forty stays at
the mouth for ever. So single episodes are played with a plan that expects more of what was seldom tried: after episodes k_1 = 1, k_{j+1} ≥ k_j + 1 + k_j/m the process is made with

    √(1 + k/10)·n    pseudo-visits instead of n,        and after the one episode it is made as before.

These are at most m'·log(1 + K/m) + 1 episodes of K, m' = 1/log(1 + 1/m), and their pseudo-visits grow without bound, so that nothing that a plan could reach is left aside for ever.

**Rewards.** Known, or estimated from the revealed ones: the mean, plus c·√(ι/N) for "hoeffding" and "bernstein", plus n/(N + n)·(1 − mean) for "prior" and "best" (n = 0.15 where it is learnt); 1 where
nothing was revealed. "posterior" takes the mean.

**Lost observations.** A transition is counted where both of its states were revealed. With hidden_steps = n ≥ 2 stretches of up to n steps between two
revealed states count too, by expectation–maximisation (`learners.hidden_steps`), renewed whenever the number of episodes has grown by half. A slow sensor never shows two states that are one
step apart: behind it "auto" takes its period, and fewer steps are refused, because nothing could be counted.

**A delay law that depends on state or action** is planned where it is known, behind a delay alone; with law="estimated" it is refused (`DelayedUCBVI` estimates it). A random
delay of the in-order kind that is estimated becomes a chain of ages, which forgets how long the agent has waited.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.arrays import Floats
from oldlight.learners.base import Learner, Setting
from oldlight.learners.delayed_ucbvi import rewards_in_unit_interval
from oldlight.learners.episode_blocks import EpisodeBlock, episodes_that_fit, played_block
from oldlight.learners.episode_blocks import room_for as room_for_block
from oldlight.learners.hidden_steps import HiddenStretches
from oldlight.learners.learnt_plan import LearntPlan, needs_nodes
from oldlight.learners.learnt_table import LearntTable
from oldlight.learners.link_counts import AgeCounts, LinkCounts
from oldlight.learners.optimistic_model import KINDS, Estimated, Optimism, adds_state, room_for
from oldlight.learners.search_memory import search_room, setting_tables
from oldlight.model.episode import Episode
from oldlight.model.policies import Policy, TablePolicy
from oldlight.model.problem import ImpairedMDP

if TYPE_CHECKING:
    from oldlight.simulation import Draws, World

GROWTH = 1.5  # hidden steps are filled in again when there are so many times as many episodes


class LinkLearner(Learner):
    """One learner for every link that can be planned; see the module's text.

    Parameters
    ----------
    optimism : "prior", "best", "bernstein", "hoeffding" or "posterior"
        What makes it explore (`oldlight.learners.optimistic_model`).
    c : float
        Constant of the two bonuses.
    visits : float or "learnt"
        Pseudo-visits n of "prior" and "best"; "learnt": from how often a visit met a successor that was new to its pair.
    sharpness : float
        κ of "best": how many times as many visits the draw pretends to have.
    looks : int
        Of "prior" and "best": second looks while the number of episodes grows by a factor e, single episodes that expect more of what was seldom tried; 0: none.
    draws : int
        Of "posterior": rows that are drawn for each pair; it takes the one that promises most.
    pooled : bool or "auto"
        Put the counts of all steps together (stationary processes); "auto": those of a pair until a sequential test says that its law changes with the
        step (`oldlight.learners.link_counts`).
    law : "known" or "estimated"
        Of the link; estimated as a chain of ages.
    rewards : "known" or "estimated"
        See the module's text.
    hidden_steps : int or "auto"
        0, or the longest stretch between two revealed states that is counted by expectation–maximisation, ≥ 2; "auto": the period of a slow sensor, else 0.
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
        visits: float | Literal["learnt"] = 1.0,
        sharpness: float = 3.0,
        looks: int = 0,
        draws: int = 1,
        pooled: bool | Literal["auto"] = False,
        law: Literal["known", "estimated"] = "known",
        rewards: Literal["known", "estimated"] = "known",
        hidden_steps: int | Literal["auto"] = "auto",
        tolerance: float = 1e-3,
    ) -> None:
        checks.one_of("optimism", optimism, KINDS)
        checks.one_of("law", law, ("known", "estimated"))
        checks.one_of("rewards", rewards, ("known", "estimated"))
        if pooled not in (True, False, "auto"):
            raise ValueError(f'pooled is {pooled!r}, expected True, False or "auto"')
        if isinstance(hidden_steps, str) and hidden_steps != "auto":
            raise ValueError(f'hidden_steps is {hidden_steps!r}, expected "auto", 0 or a whole number ≥ 2')
        if hidden_steps and hidden_steps != "auto":
            checks.whole("hidden_steps", hidden_steps, least=2)
        self.optimism, self.c, self.visits = optimism, checks.positive("c", c), visits
        if visits != "learnt":
            self.visits = checks.positive("visits", visits)
        self.draws, self.pooled, self.law, self.rewards = checks.whole("draws", draws, least=1), pooled, law, rewards
        self.sharpness, self.looks = checks.positive("sharpness", sharpness), checks.whole("looks", looks, least=0)
        if looks and optimism not in ("prior", "best"):
            raise ValueError(
                f'looks is {looks}, expected 0 with optimism={optimism!r}: only "prior" and "best" have pseudo-visits'
            )
        self.hidden_steps, self.tolerance = hidden_steps, checks.positive("tolerance", tolerance)

    def acts_on_nodes(self, problem: ImpairedMDP) -> bool:
        """Is it asked with the nodes of the link's automaton?"""
        return needs_nodes(problem.channel, self.law)

    def start(self, setting: Setting, rng: np.random.Generator) -> None:
        if self.optimism != "posterior" or self.rewards == "estimated":
            rewards_in_unit_interval(setting)
        self.setting, self.rng = setting, rng
        self.counts = LinkCounts(setting, self.pooled)
        nodes = needs_nodes(setting.channel, self.law)
        room = search_room(setting_tables(setting, self.pooled is True)) if nodes else None
        self.planner = LearntPlan(setting, self.law, self.tolerance, room) if nodes else None
        self.table = None if nodes else LearntTable(setting, int(adds_state(self.optimism)))
        self.ages = AgeCounts(self.planner.automaton) if self.planner is not None and self.law == "estimated" else None
        longest = self._longest_stretch(setting.channel.spacing)
        self.stretches = HiddenStretches(longest, self.pooled is not False) if longest else None
        shape = (setting.horizon, setting.n_states, setting.n_actions)
        self.planned, self.planned_at, self.filled_at = np.zeros(shape), np.zeros(4, dtype=np.int64), 0
        self._now, self._rewards = np.zeros((*shape, setting.n_states)), np.zeros(shape)
        self._transitions, self._model_rewards = room_for(self.optimism, shape)
        self._policy: Policy | None = None
        self.episodes_per_block = 0  # behind other links a plan is a search, which Python leads
        if self.table is not None and self.table.tables.one_call and self.stretches is None:
            self.episodes_per_block = episodes_that_fit(len(self.table.actions), self.table.actions.dtype)
        self._plan()

    def _longest_stretch(self, spacing: int) -> int:
        """hidden_steps behind a link that shows states so many steps apart."""
        if self.hidden_steps == "auto":
            return spacing if spacing > 1 else 0
        if self.hidden_steps < spacing > 1:
            raise ValueError(
                f"hidden_steps is {self.hidden_steps}, expected at least {spacing} behind {self.setting.channel!r}: it never shows two states that are "
                'one step apart, so that no transition could be counted; hidden_steps="auto" takes its period'
            )
        return self.hidden_steps

    def policy(self) -> Policy:
        if self._policy is None:
            assert self.table is not None
            self._policy = self.table.policy()
        return self._policy

    def see(self, episode: Episode) -> None:
        from oldlight.kernels import link_learner as kernels

        counts = self.counts
        counts.add(episode)
        if self.ages is not None:
            self.ages.add(episode)
        if self.stretches is not None:
            self.stretches.add(episode)
            if counts.episodes >= GROWTH * self.filled_at:
                self._fill_in()
        if kernels.due(self._learnt()):
            self._plan()

    def play_block(self, world: World, draws: Draws, first: int, wanted: NDArray[np.bool_]) -> EpisodeBlock:
        from oldlight.kernels import link_learner as kernels

        table = self.table
        assert table is not None
        block = room_for_block(draws, first, wanted, len(table.actions), table.actions.dtype)
        before = self.policy()
        rule = world.player(TablePolicy.trusted(table.layout, table.actions)).rule()
        self.estimate, plans, changed = kernels.block(
            world.arrays, rule, world.played(1), self._learnt(), table.plan, self.estimate, self.rng, block
        )
        found = played_block(block, partial(TablePolicy.trusted, table.layout), before)
        if plans:
            self._policy = found.policies[-1] if found.policies and not changed else None
        return found

    def _fill_in(self) -> None:
        """The expected transitions between observations several steps apart."""
        assert self.stretches is not None
        counts, self.filled_at = self.counts, self.counts.episodes
        number = counts.number if self.pooled is False else counts.number.sum(axis=0, keepdims=True)
        before = counts.hidden if counts.hidden.shape == number.shape else np.zeros_like(number)
        counts.hidden = self.stretches.expected(number, before)

    # -- plans -----------------------------------------------------------------------------------------------------

    def _learnt(self) -> Any:
        """Everything that is learnt, as `kernels.link_learner` reads it."""
        from oldlight.kernels.link_learner import Learnt

        setting = self.setting
        visits = 0.0 if self.visits == "learnt" else float(self.visits)
        how = Optimism(self.optimism, self.c, setting.log_term, visits, self.sharpness, self.draws, looks=self.looks)
        known = np.ascontiguousarray(setting.rewards) if self.rewards == "known" else np.zeros((0, 0, 0))
        keep = np.zeros((0, 3), dtype=np.int64) if self.table is None else self.table.keep
        return Learnt(
            self.counts.arrays(), how.numbers(), known, float(setting.failure), self._now, self._rewards,
            self.planned, self.planned_at, self._transitions, keep,
        )  # fmt: skip

    def _plan(self) -> None:
        from oldlight.kernels import link_learner as kernels

        learnt = self._learnt()
        if self.table is None:
            rows = kernels.process(learnt, self.rng, self._model_rewards)
            link = None if self.ages is None else np.concatenate([self.ages.rows.ravel(), self.ages.roots.ravel()])
            self._plan_for(Estimated(self._transitions[:rows].copy(), self._model_rewards.copy()), link)
            return
        kernels.prepare(learnt, self.table.plan, self.rng)
        self.estimate = self.table.tables.sweep(self.table.model, self.rng)
        kernels.keep(learnt, self.table.plan, self.table.actions)
        self._policy = None

    def _plan_for(self, model: Estimated, link: Floats | None) -> None:
        """Plan for a process behind the link's nodes, and for the link that these counts of ages make."""
        assert self.planner is not None
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
            "planned_at": self.planned_at, "planned": self.planned, "filled_at": np.array(self.filled_at),
        }  # fmt: skip
        if self.table is not None:
            held |= {"actions": self.table.actions, "estimate": np.array(self.estimate)}
        else:
            held |= {"model.transitions": self._model.transitions, "model.rewards": self._model.rewards}
        if self.ages is not None and self._link is not None:
            held |= self.ages.state() | {"link": self._link}
        return held | (self.stretches.state() if self.stretches is not None else {})

    def restore(self, state: dict[str, Any]) -> None:
        self.counts.restore(state)
        self.planned[:], at = state["planned"], state["planned_at"]
        self.planned_at[: len(at)] = at  # before there were second looks it had two entries
        self.filled_at = int(state["filled_at"])
        if self.ages is not None:
            self.ages.restore(state)
        if self.stretches is not None:
            self.stretches.restore(state)
        if self.table is None:
            self._plan_for(Estimated(state["model.transitions"], state["model.rewards"]), state.get("link"))
            return
        self.table.actions[:], self.estimate, self._policy = state["actions"], float(state["estimate"]), None
