"""A learner of one's own: Algorithm 1's counts with greedy plans, and a random action now and then."""

from __future__ import annotations

import numpy as np

import oldlight as ol
from oldlight.information import Information
from oldlight.learners import Episode, Setting


@ol.registered
class EpsilonGreedy:
    """Plans on the mean of what was counted; with probability epsilon an action is drawn at random instead."""

    def __init__(self, epsilon: float = 0.1) -> None:
        self.epsilon = epsilon

    def start(self, setting: Setting, rng: np.random.Generator) -> None:
        self.setting, self.counts = setting, np.zeros((setting.n_states, setting.n_actions, setting.n_states))
        self.seen, self.plan = 0, None

    def act(self, info: Information) -> np.ndarray:
        chances = np.full(self.setting.n_actions, self.epsilon / self.setting.n_actions)
        if self.plan is None:
            return np.full_like(chances, 1 / len(chances))
        chances[self.plan.action(info)] += 1 - self.epsilon
        return chances

    def see(self, episode: Episode) -> None:
        s, a = episode.states, episode.actions
        np.add.at(self.counts, (s[:-1], a[:-1], s[1:]), 1)
        self.seen += 1
        if (self.seen & (self.seen - 1)) == 0:  # plan again at 1, 2, 4, 8, ... episodes
            P = (self.counts + 1 / self.setting.n_states) / (self.counts.sum(axis=2, keepdims=True) + 1)
            mdp = ol.TabularMDP(P, self.setting.rewards, horizon=self.setting.horizon)
            start = ol.WarmStart() if self.setting.lead else None
            self.plan = ol.solve(ol.ImpairedMDP(mdp, self.setting.channel, start=start)).policy
