"""Problems and episodes for the learners under loss."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

import oldlight as ol
from oldlight.learners import Episode, Setting
from oldlight.model.information import Information


def tiny(seed: int = 7, *, S: int = 3, A: int = 2, H: int = 3, seen: Any = 0.8) -> ol.ImpairedMDP:
    rng = np.random.default_rng(seed)
    mdp = ol.TabularMDP(rng.dirichlet(np.full(S, 0.5), size=(H, S, A)), rng.random((H, S, A)), horizon=H)
    return ol.ImpairedMDP(mdp, ol.Loss(seen=seen))


def begun(learner: Any, problem: ol.ImpairedMDP, episodes: int = 1000, seed: int = 0) -> Any:
    learner.start(Setting.of(problem, episodes, 0.1, None), np.random.default_rng(seed))
    return learner


def episode(states: list[int], actions: list[int]) -> Episode:
    s = np.array(states)
    arrivals = np.where(s >= 0, np.arange(len(s)), -1)
    return Episode(s, np.array(actions), arrivals, np.zeros(len(s)), 0)


def at_random(problem: ol.ImpairedMDP, n: int, seed: int) -> list[Episode]:
    """Episodes of acting at random."""
    A = problem.n_actions
    played = ol.simulate(problem, ol.FunctionPolicy(lambda _: np.full(A, 1 / A), A), n, seed=seed, record=True)
    assert played.actions is not None
    pairs = zip(played.revealed, played.actions, strict=True)
    return [episode(states.tolist(), actions.tolist()) for states, actions in pairs]


def everything_known(problem: ol.ImpairedMDP) -> Iterator[Information]:
    H, S, A = problem.horizon, problem.n_states, problem.n_actions
    for h in range(H):
        for queue in product(range(A), repeat=h):
            yield Information.nothing_seen(queue)
        for t, s in product(range(h + 1), range(S)):
            for queue in product(range(A), repeat=h - t):
                yield Information.seen(t, s, queue, h - t)
