"""Problems for the augmented and the memoryless learners."""

from __future__ import annotations

import numpy as np

import oldlight as ol
from oldlight.learners import Setting
from oldlight.learners.base import Episode
from oldlight.simulation import World

GAMMA = 0.1


def process(seed: int, S: int, A: int, H: int, *, stationary: bool = True, sparse: float = 0.5) -> ol.TabularMDP:
    rng = np.random.default_rng([seed, 4])
    P = rng.dirichlet(sparse * np.ones(S), size=(S, A) if stationary else (H, S, A))
    return ol.TabularMDP(P, rng.random((H, S, A)), horizon=H, initial=rng.dirichlet(np.ones(S)))


def problems(name: str) -> ol.ImpairedMDP:
    """Every kind of delay: name → problem."""
    warm = ol.WarmStart()
    rng = np.random.default_rng(77)
    by_pair = rng.dirichlet(np.ones(3), size=(3, 2))
    return {
        "none": lambda: ol.ImpairedMDP(process(1, 3, 2, 4), ol.ConstantDelay(0)),
        "changing": lambda: ol.ImpairedMDP(process(1, 3, 2, 4, stationary=False), ol.ConstantDelay(1)),
        "cold": lambda: ol.ImpairedMDP(process(2, 2, 2, 5), ol.ConstantDelay(2)),
        "warm": lambda: ol.ImpairedMDP(process(3, 3, 2, 4), ol.ConstantDelay(2), start=warm),
        "warm, long": lambda: ol.ImpairedMDP(process(3, 2, 2, 2), ol.ConstantDelay(3), start=warm),
        "never": lambda: ol.ImpairedMDP(process(4, 2, 2, 3), ol.ConstantDelay(5)),
        "geometric": lambda: ol.ImpairedMDP(process(5, 2, 2, 4), ol.GeometricDelay(0.6, first="same")),
        "by pair": lambda: ol.ImpairedMDP(process(6, 3, 2, 4), ol.StochasticDelay(by_pair, first=[0.3, 0.7])),
        "two or none": lambda: ol.ImpairedMDP(process(7, 2, 2, 5), ol.StochasticDelay([0.5, 0, 0.5])),
        "bernoulli": lambda: ol.ImpairedMDP(process(8, 2, 2, 6), ol.BernoulliDelay(0.5), start=warm),
        "late actions": lambda: ol.ImpairedMDP(process(9, 2, 2, 4), ol.ConstantDelay(1), actuation=1, pending=(1,)),
    }[name]()


def setting_of(problem: ol.ImpairedMDP, episodes: int) -> Setting:
    return Setting.of(
        problem, episodes, GAMMA, None if problem.arrival_probability is not None else ol.Layout.of(problem)
    )


class Random:
    """Plays anything, differently each time; keeps the episodes."""

    def __init__(self, problem: ol.ImpairedMDP, episodes: int, seed: int) -> None:
        A, warmup = problem.n_actions, problem.warmup
        layout, world = ol.Layout.of(problem), World(problem)
        rng = np.random.default_rng([seed, 5])
        self.setting = setting_of(problem, episodes)
        self.episodes: list[Episode] = []
        draws = world.draw(seed, 0)
        for k in range(episodes):
            policy = ol.TablePolicy(layout, rng.integers(A, size=layout.size))
            *_, states, actions, arrivals = world.play(world.player(policy), draws.one(k), 1)
            s, a = states[:, 0].astype(np.int64), actions[:, 0].astype(np.int64)
            paid = np.zeros(len(s))
            h = np.arange(problem.horizon)
            paid[warmup:] = problem.mdp.rewards[h, s[warmup:], a[warmup:]]
            self.episodes.append(Episode(s, a, arrivals[:, 0].astype(np.int64), paid, warmup))
