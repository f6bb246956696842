"""Posterior sampling: draw a process from what is believed of it, plan exactly for the draw, play that plan for an episode.

Prior: each row p_t(·|s, a) is Dirichlet with every parameter 1/S; the posterior adds the counts. Under delay the counts are
those of hindsight (`learners.counts`) and the plan is the backward pass over all information states. Under loss, alone or with a
constant delay, the counts are of pairs seen one after the other, and the plan is the search of
`oldlight.planning.settling`; other links that lose are refused. Rewards and the link are known. No bonus: what is not known is drawn
differently each time. There is no guarantee in the worst case; the Bayesian regret is of order √K.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oldlight import checks
from oldlight.learners.base import Learner, Setting
from oldlight.learners.counts import DelayCounts
from oldlight.learners.episode_blocks import EpisodeBlock, episodes_that_fit, played_block, room_for
from oldlight.learners.optimistic_tables import Estimate, Tables
from oldlight.learners.search_memory import search_room, setting_tables
from oldlight.model.episode import Episode
from oldlight.model.information import Information
from oldlight.model.mdp import TabularMDP
from oldlight.model.policies import BlackoutPolicy, Policy, TablePolicy
from oldlight.model.problem import ImpairedMDP

if TYPE_CHECKING:
    from oldlight.planning.settling import SettledSearch
    from oldlight.planning.solution import Solution
    from oldlight.simulation import Draws, World

Floats = NDArray[np.float64]
ROWS = 2**12  # of a drawn process at a time


class PosteriorSampling(Learner):
    """Draw a process from the posterior, plan for it, play one episode; see the module's text.

    Parameters
    ----------
    prior : float, optional
        The Dirichlet parameter of each successor; 1/S if None.
    pooled : bool
        Put the counts of all steps together (stationary processes).

    Examples
    --------
    >>> import oldlight as ol
    >>> problem = ol.ImpairedMDP(ol.instances.center_chain(0.8), "constant:1")
    >>> ol.learn(problem, ol.learners.PosteriorSampling(pooled=True), 20).done
    20
    """

    _policy: Policy

    def __init__(self, *, prior: float | None = None, pooled: bool = False) -> None:
        self.prior = None if prior is None else checks.positive("prior", prior)
        self.pooled = pooled

    def start(self, setting: Setting, rng: np.random.Generator) -> None:
        self.setting, self.rng = setting, rng
        S, A, H = setting.n_states, setting.n_actions, setting.horizon
        self.alpha = 1.0 / S if self.prior is None else self.prior
        if setting.arrival_probability is not None:
            if self.pooled and not setting.stationary:
                raise ValueError(
                    "pooled counts are for stationary transitions; this process has one law per step: pooled=False"
                )
            self.number = np.zeros((1 if self.pooled else H, S * A, S))
            self._like = self._any_problem()
            self.room = search_room(setting_tables(setting, self.pooled))
        else:
            self.counts = DelayCounts(setting, self.pooled)
            self.tables = Tables(setting, np.array(setting.rewards))
            T, K = len(self.counts.seen), self.counts.event.shape[2]
            theta = np.ones((T, S * A, K))
            if setting.warmup == 0:
                hazard = np.broadcast_to(setting.law.hazard, (H, S, A, K)).reshape(H, S * A, K)
                if T == 1 and setting.law.hazard.shape[0] > 1:
                    raise ValueError("pooled counts with a delay law that changes from step to step: pooled=False")
                theta = np.array(hazard[:T], order="C")
            first = np.array(setting.law.first_hazard) if setting.warmup == 0 else np.zeros(H + 1)
            index = np.ascontiguousarray(np.broadcast_to(np.arange(S, dtype=np.int32), (T, S * A, S)))
            self.model = Estimate(
                index, np.zeros((T, S * A, S)), np.full((T, S * A), S), np.zeros((T, S * A)), np.zeros((0, 0)), theta,
                np.zeros_like(theta), np.ones((T, S * A), dtype=np.bool_), first, np.array(setting.initial), np.zeros(H),
            )  # fmt: skip
        self.episodes_per_block = 0
        self._search: SettledSearch | None = None  # that of a plan under loss, to be used again in blocks
        if setting.arrival_probability is None and self.tables.one_call:
            self.episodes_per_block = episodes_that_fit(len(self.tables.actions), self.tables.actions.dtype)
        plan = self._plan()
        if plan is not None:
            self._keep_search(plan)

    def policy(self) -> Policy:
        return self._policy

    def see(self, episode: Episode) -> None:
        if self.setting.arrival_probability is None:
            self.counts.add(episode)
        else:
            s, a = episode.states, episode.actions
            pairs = np.flatnonzero((s[:-1] >= 0) & (s[1:] >= 0))
            rows = np.zeros_like(pairs) if self.pooled else pairs
            np.add.at(self.number, (rows, s[pairs] * self.setting.n_actions + a[pairs], s[pairs + 1]), 1)
        self._plan()

    def play_block(self, world: World, draws: Draws, first: int, wanted: NDArray[np.bool_]) -> EpisodeBlock:
        from oldlight.kernels import posterior_sampling as kernels

        if self.setting.arrival_probability is not None:
            return self._play_block_under_loss(world, draws, first, wanted)
        tables, counts = self.tables, self.counts
        block = room_for(draws, first, wanted, len(tables.actions), tables.actions.dtype)
        rule = world.player(TablePolicy.trusted(tables.layout, tables.actions)).rule()
        learnt = (counts.protocol(), counts.arrays(), counts.touched, float(self.alpha), self.model.weight)
        self.estimate = kernels.block(
            world.arrays, rule, world.played(1), learnt, tables.plan(self.model), self.estimate, self.rng, block
        )
        as_policy = partial(TablePolicy.trusted, tables.layout)
        found, self._policy = played_block(block, as_policy, self._policy), tables.policy()
        return found

    def _play_block_under_loss(self, world: World, draws: Draws, first: int, wanted: NDArray[np.bool_]) -> EpisodeBlock:
        """The search of the first plan closes one drawn process after the other."""
        from oldlight.kernels import posterior_sampling as kernels

        assert self._search is not None
        assert isinstance(self._policy, BlackoutPolicy)
        A, shape = self.setting.n_actions, self._policy.sequences.shape
        rule = world.player(BlackoutPolicy(self._policy.sequences.copy(), A)).rule()
        block = room_for(draws, first, wanted, rule.table.size, rule.table.dtype)
        self.drawn = np.empty(self.number.shape)
        learnt = (self.number, float(self.alpha), self.drawn)
        self._search.again(kernels.block_under_loss, (world.arrays, rule, world.played(1), learnt, self.rng, block))
        found = played_block(block, lambda row: BlackoutPolicy(row.reshape(shape), A), self._policy)
        self.estimate = float(block.estimates[-1])
        self._follow(BlackoutPolicy(rule.table.reshape(shape), A))
        return found

    def _follow(self, policy: Policy) -> None:
        """Play the plan for the process that was drawn last."""
        self._policy = policy
        if isinstance(policy, BlackoutPolicy):  # where its own actions do not lead it plans again
            policy.elsewhere = partial(self._elsewhere, self.drawn, [])

    def _draw(self) -> Floats:
        """One row of the posterior for each pair: axes (row, s·A + a, s2); `ROWS` at a time, so that Ctrl-C is heard."""
        from oldlight.kernels.dirichlet import draw_rows

        S = self.setting.n_states
        drawn = np.empty(self.number.shape)
        rows, numbers = drawn.reshape(-1, S), self.number.reshape(-1, S)
        for i in range(0, len(rows), ROWS):
            draw_rows(numbers[i : i + ROWS], float(self.alpha), self.rng, rows[i : i + ROWS])
        return drawn

    def _any_problem(self) -> ImpairedMDP:
        """The setting around a process whose transitions do not matter: that of each draw has everything else of it."""
        setting = self.setting
        S, A, H = setting.n_states, setting.n_actions, setting.horizon
        P = np.full((S, A, S) if self.pooled else (H, S, A, S), 1.0 / S)
        mdp = TabularMDP(P, setting.rewards, horizon=H, initial=setting.initial)
        return ImpairedMDP(mdp, setting.channel, actuation=setting.actuation, pending=setting.pending)

    def _plan(self) -> Solution | None:
        """Draw and plan; returns the plan under loss."""
        setting = self.setting
        if setting.arrival_probability is None:
            from oldlight.kernels.posterior_sampling import draw_process

            draw_process(self.counts.arrays(), float(self.alpha), self.rng, self.model.weight)
            self.estimate = self.tables.sweep(self.model, self.rng)
            self._policy = self.tables.policy()
            return None
        return self._plan_for(self._draw())

    def _plan_for(self, drawn: Floats) -> Solution:
        """The plan under loss for a drawn process, axes (row, s·A + a, s2). It answers at every information state, also where its own
        actions do not lead."""
        self.drawn = drawn
        plan = self._exact_plan(drawn)
        self.estimate = plan.value
        self._follow(plan.policy)
        return plan

    def _exact_plan(self, drawn: Floats) -> Solution:
        from oldlight.planning.link_solution import plan_exactly

        S, A = self.setting.n_states, self.setting.n_actions
        return plan_exactly(self._like._moved_by(drawn.reshape(-1, S, A, S)), room=self.room)

    def _keep_search(self, plan: Solution) -> None:
        """Play blocks where the search of one plan can make the next ones. (With one state, equal actions would be one action there.)"""
        from oldlight.planning.link_solution import settled_search

        search, policy = settled_search(plan), plan.policy
        if search is None or not search.plans_again or self.setting.n_states == 1:
            return
        if isinstance(policy, BlackoutPolicy) and policy.late == 0:
            search.let_go(self._like.mdp)
            self._search = search
            self.episodes_per_block = episodes_that_fit(policy.sequences.size, policy.sequences.dtype)

    def _elsewhere(self, drawn: Floats, known: list[Solution], info: Information) -> int:
        """The plan for `drawn` at an information state where its own actions do not lead; known: that plan, once it was asked for."""
        if not known:
            known.append(self._exact_plan(drawn))
        policy = known[0].policy
        assert isinstance(policy, BlackoutPolicy)
        return policy.action(info)

    def state(self) -> dict[str, Any]:
        if self.setting.arrival_probability is None:
            return self.counts.state() | {"actions": self.tables.actions, "estimate": np.array(self.estimate)}
        return {"number": self.number, "drawn": self.drawn}

    def restore(self, state: dict[str, Any]) -> None:
        if self.setting.arrival_probability is None:
            self.estimate = float(state["estimate"])
            self.counts.restore(state)
            self.tables.actions[:] = state["actions"]
            self._policy = self.tables.policy()
        else:
            self.number[:] = state["number"]
            self._plan_for(np.array(state["drawn"]))
