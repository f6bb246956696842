"""A learner of one's own: Algorithm 1's counts with greedy plans, and a random action now and then."""

from __future__ import annotations

import numpy as np

import oldlight as ol
from oldlight.learners import Episode, Setting
from oldlight.model.information import Information


@ol.registered
class EpsilonGreedy:
    """Plans on the mean of what was counted; with probability epsilon an action is drawn at random instead."""

    def __init__(self, epsilon: float = 0.1) -> None:
        self.epsilon = epsilon

    def start(self, setting: Setting, rng: np.random.Generator) -> None:
        self.setting, self.counts = setting, np.zeros((setting.n_states, setting.n_actions, setting.n_states))
        self.seen, self.plan = 0, None
        self.answers = ol.FunctionPolicy(self.act, setting.n_actions)

    def act(self, info: Information) -> np.ndarray:
        mixed = np.full(self.setting.n_actions, self.epsilon / self.setting.n_actions)
        if self.plan is None:
            return np.full_like(mixed, 1 / len(mixed))
        mixed[self.plan.action(info)] += 1 - self.epsilon
        return mixed

    def policy(self) -> ol.FunctionPolicy:
        return self.answers  # the same object until the next plan, so that it is valued only once

    def see(self, episode: Episode) -> None:
        s, a = episode.states, episode.actions
        both = (s[:-1] >= 0) & (
            s[1:] >= 0
        )  # a lost state is -1: a transition counts only where both its states were seen
        np.add.at(self.counts, (s[:-1][both], a[:-1][both], s[1:][both]), 1)
        self.seen += 1
        if (self.seen & (self.seen - 1)) == 0:  # plan again at 1, 2, 4, 8, ... episodes
            setting = self.setting
            P = (self.counts + 1 / setting.n_states) / (self.counts.sum(axis=2, keepdims=True) + 1)
            mdp = ol.TabularMDP(P, setting.rewards, horizon=setting.horizon, initial=setting.initial)
            start = ol.WarmStart() if setting.warmup else None
            late = {"actuation": setting.actuation, "pending": setting.pending}
            self.plan = ol.solve(ol.ImpairedMDP(mdp, setting.channel, start=start, **late)).policy
            self.answers = ol.FunctionPolicy(self.act, setting.n_actions)
