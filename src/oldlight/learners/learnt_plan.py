"""The plan of a learner for an estimated process behind a link, and its policy on the true problem.

The estimated process may have one state more than the true one (`learners.optimistic_model`), which is never seen: its entries are left out of tables, and the
policies of nodes are asked about the others only. Behind a delay alone whose law is known the plan is a table of the true problem's layout; else it is a
`LinkPolicy`, whose nodes are those of the true link, or, for an estimated one, found from the age.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oldlight.arrays import Floats
from oldlight.learners.base import Setting
from oldlight.learners.link_counts import AgeCounts
from oldlight.learners.optimistic_model import Estimated
from oldlight.model.channels import Channel
from oldlight.model.channels.automaton import ChannelAutomaton
from oldlight.model.information import Information
from oldlight.model.link_information import LinkInformation, PolicyOfNodes
from oldlight.model.link_policy import LinkPolicy
from oldlight.model.mdp import TabularMDP
from oldlight.model.policies import Policy
from oldlight.model.problem import ImpairedMDP, WarmStart
from oldlight.planning import solve
from oldlight.planning.link_plan import LinkPlan

OPTIONS = 2_000  # that a search may try for one plan


def needs_nodes(channel: Channel, law: str) -> bool:
    """Is a plan behind this channel one of nodes? All but those behind a delay alone whose law is known."""
    return not channel.has_delay_law or channel.loss is not None or law == "estimated"


class LearntPolicy(PolicyOfNodes):
    """A plan's `LinkPolicy`, asked with what is known of the true problem; ages: the estimated link, if it is one."""

    def __init__(self, plan: LinkPolicy, setting: Setting, ages: AgeCounts | None) -> None:
        self.plan, self.ages = plan, ages
        self.sizes = (setting.horizon, setting.n_states, setting.n_actions)

    def action(self, info: Any) -> int:
        """The action at `info`."""
        return self.plan(self._known(info))

    def actions_at(self, info: Any, states: list[int]) -> list[int]:
        """The action at `info` for each newest visible state instead of its own."""
        return self.plan.actions_at(self._known(info), states)

    def _known(self, info: Any) -> LinkInformation:
        """`info` with the plan's own node."""
        if self.ages is not None:
            return LinkInformation(info.h, self.ages.node(info.h, info.t), info.t, info.state, tuple(info.queue))
        known: LinkInformation = self.plan.of_node(info) if isinstance(info, Information) else info
        return known

    def probabilities(self, info: Any) -> Floats:
        return np.asarray(np.eye(self.sizes[2])[self.action(info)])

    def fits(self, problem: ImpairedMDP) -> bool:
        return self.sizes == (problem.horizon, problem.n_states, problem.n_actions)

    def __repr__(self) -> str:
        H, S, A = self.sizes
        return f"LearntPolicy(H={H}, S={S}, A={A})"


class LearntPlan:
    """Plans for estimated processes behind the channel of a setting."""

    def __init__(self, setting: Setting, law: str, tolerance: float, room: int | None = None) -> None:
        """room: bytes that a search may take."""
        self.setting, self.room = setting, room
        self.nodes = needs_nodes(setting.channel, law)
        self.tolerance = tolerance * float(setting.rewards.max(axis=(1, 2)).sum())
        if not self.nodes:
            return
        if setting.warmup:
            raise ValueError(
                f'LinkLearner(law="estimated") has no chain of ages for a warm start behind {setting.channel!r}; use law="known"'
            )
        self.automaton = setting.channel.automaton(setting.horizon).shifted(setting.actuation)

    def plan(self, model: Estimated, link: ChannelAutomaton | None, ages: AgeCounts | None) -> tuple[Policy, float]:
        """The policy for `model` behind the link (the known one if None), and its value there, from above."""
        return self.bounds(model, link, ages)[:2]

    def bounds(
        self, model: Estimated, link: ChannelAutomaton | None = None, ages: AgeCounts | None = None
    ) -> tuple[Policy, float, float]:
        """The policy for `model`, what no policy exceeds there, and what it earns at least."""
        setting, S = self.setting, model.rewards.shape[1]
        initial = np.zeros(S)
        initial[: setting.n_states] = setting.initial
        P = model.transitions[0] if len(model.transitions) == 1 else model.transitions
        mdp = TabularMDP(P, model.rewards, horizon=setting.horizon, initial=initial)
        if not self.nodes:
            policy, value = self._table(mdp)
            return policy, value, value
        pending = setting.pending[: setting.horizon]
        plan = LinkPlan(mdp, self.automaton if link is None else link, pending=pending, room=self.room)
        plan.run(self.tolerance, options=OPTIONS)
        return LearntPolicy(plan.policy, setting, ages), plan.upper, plan.lower

    def _table(self, mdp: TabularMDP) -> tuple[Policy, float]:
        """The plan behind a delay alone, as a table."""
        setting = self.setting
        start = WarmStart() if setting.warmup else None
        problem = ImpairedMDP(mdp, setting.channel, start=start, actuation=setting.actuation, pending=setting.pending)
        found = solve(problem, progress=False)
        return found.policy, found.value
