"""One episode at a time behind a channel that is planned by its automaton: what the loop of the learners plays.

The random numbers are those of `LinkEpisodes.play`: episode e of chunk c is the same one here and there, whatever is played, so that all learners
meet the same link and the same process. The link of a chunk is drawn once: it does not depend on what is done.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oldlight.model.channels.pmfs import running_sums
from oldlight.model.link_information import LinkInformation
from oldlight.model.policies import MarkovPolicy, Policy
from oldlight.model.policy_check import check_made_for
from oldlight.model.problem import ImpairedMDP
from oldlight.model.successors import successor_sums
from oldlight.simulation.link_episodes import LinkDraws, decide


class LinkWorld:
    """A problem behind its automaton, as the loop of the learners plays it: one episode after the other."""

    layout = None

    def __init__(self, problem: ImpairedMDP) -> None:
        self.problem = problem
        self.index, self.cumulative = successor_sums(problem.mdp)
        self.initial = running_sums(problem.initial)

    def draw(self, seed: int, chunk: int) -> LinkDraws:
        """The random numbers of chunk number `chunk`."""
        return LinkDraws.of(self.problem, self.problem.automaton, seed, chunk)

    def player(self, policy: Policy | MarkovPolicy) -> Any:
        """The policy, if it can be played here."""
        check_made_for(self.problem, policy)
        return policy

    def play(self, policy: Any, draws: LinkDraws, n: int) -> tuple[Any, ...]:
        """One episode (n = 1): returns, rewards by step, ages, and states, actions, arrivals (step, 1)."""
        assert n == 1, "episodes are played one by one"
        problem, H, A = self.problem, self.problem.horizon, self.problem.n_actions
        names, rewards = problem.automaton.nodes, problem.mdp.rewards
        states, actions, earned = np.zeros((H, 1), np.int32), np.zeros((H, 1), np.int32), np.zeros(H)
        done: list[int] = []
        s = int(np.searchsorted(self.initial, draws.state[0, 0], side="right"))
        for h in range(H):
            age = int(draws.ages[h, 0])
            t = None if age < 0 else h - age
            seen = None if t is None else int(states[t, 0]) if t < h else s
            states[h, 0] = s
            info = LinkInformation(h, names[int(draws.nodes[h, 0])], t, seen, tuple(done[t or 0 :]))
            law = running_sums(decide(problem, policy, info))
            a = min(int((law <= draws.action[h, 0]).sum()), A - 1)
            done.append(a)
            actions[h, 0], earned[h] = a, rewards[h, s, a]
            if h + 1 < H:
                P, row = min(h, len(self.index) - 1), s * A + a
                place = int((self.cumulative[P, row] <= draws.state[h + 1, 0]).sum())
                s = int(self.index[P, row, min(place, self.index.shape[2] - 1)])
        return np.array([earned.sum()]), earned, None, states, actions, draws.arrivals.astype(np.int32)
