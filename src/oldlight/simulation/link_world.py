"""One episode at a time behind a channel that is planned by its automaton: what the loop of the learners plays.

The random numbers are those of `LinkEpisodes.play`: episode e of chunk c is the same one here and there, whatever is played, so that all learners
meet the same link and the same process. The link of a chunk is drawn once: it does not depend on what is done.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oldlight.model.link_information import LinkInformation
from oldlight.model.policies import MarkovPolicy, Policy
from oldlight.model.problem import ImpairedMDP
from oldlight.simulation.link_episodes import LinkDraws, LinkEpisodes

KEPT = 2**14  # answers of a policy


class LinkWorld:
    """A problem behind its automaton, as the loop of the learners plays it: one episode after the other."""

    layout = None

    def __init__(self, problem: ImpairedMDP) -> None:
        self.problem = problem
        self._played: LinkEpisodes | None = None  # with the policy that was played last, and what it answered

    def draw(self, seed: int, chunk: int) -> LinkDraws:
        """The random numbers of chunk number `chunk`."""
        return LinkDraws.of(self.problem, self.problem.automaton, seed, chunk)

    def player(self, policy: Policy | MarkovPolicy) -> LinkEpisodes:
        """The policy, if it can be played here."""
        if self._played is None:
            self._played = LinkEpisodes(self.problem, policy)
        elif self._played.policy is not policy:
            self._played = self._played.following(policy)
        return self._played

    def play(self, player: LinkEpisodes, draws: LinkDraws, n: int) -> tuple[Any, ...]:
        """One episode (n = 1): returns, rewards by step, no ages, and states, actions, arrivals (step, 1). Of one episode lists are quicker than arrays."""
        assert n == 1, "episodes are played one by one"
        problem, H, A = self.problem, self.problem.horizon, self.problem.n_actions
        (index, cumulative), names, rewards = player.successors, problem.automaton.nodes, problem.mdp.rewards
        player.forget(KEPT)
        nodes, ages, u, choice = (x[:, 0].tolist() for x in (draws.nodes, draws.ages, draws.state, draws.action))
        states = [int(np.searchsorted(player.initial, u[0], side="right"))]
        actions: list[int] = []
        earned: list[float] = []
        for h in range(H):
            t, s = None if ages[h] < 0 else h - ages[h], states[h]
            info = LinkInformation(h, names[nodes[h]], t, None if t is None else states[t], tuple(actions[t or 0 :]))
            actions.append(min(int(np.searchsorted(player.law(info), choice[h], side="right")), A - 1))
            earned.append(float(rewards[h, s, actions[h]]))
            if h + 1 < H:
                P, row = min(h, len(index) - 1), s * A + actions[h]
                place = int(np.searchsorted(cumulative[P, row], u[h + 1], side="right"))
                states.append(int(index[P, row, min(place, index.shape[2] - 1)]))
        columns = (np.array(x, dtype=np.int32)[:, None] for x in (states, actions))
        return np.array([sum(earned)]), np.array(earned), None, *columns, draws.arrivals.astype(np.int32)
