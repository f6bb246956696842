"""Shared by the tests of whatever plays episodes: problems with their laws, a policy that randomises, a χ² test."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy import stats

import oldlight as ol
from conftest import random_mdp
from oracle import random_law


def cases(seed: int) -> tuple[ol.ImpairedMDP, dict[str, Any]]:
    """A problem and the same thing in the oracle's words."""
    rng = np.random.default_rng([seed, 11])
    mdp = random_mdp(rng, 2, 2, 4)
    kind = seed % 5
    if kind == 0:
        return ol.ImpairedMDP(mdp, ol.ConstantDelay(2), start=ol.WarmStart()), {"warm_delay": 2}
    if kind == 1:
        first, inter = random_law(rng, 4, 2, 2, 3, kind="state_action")
        return ol.ImpairedMDP(mdp, ol.StochasticDelay(inter, first=first)), {"first": first, "inter": inter}
    if kind == 2:
        pmf = np.append(0.6 * 0.4 ** np.arange(4), 0.4**4)
        law = {"first": pmf, "inter": np.broadcast_to(pmf, (4, 2, 2, 5))}
        return ol.ImpairedMDP(mdp, ol.GeometricDelay(0.6, first="same")), law
    if kind == 3:
        seen = rng.random(4)
        return ol.ImpairedMDP(mdp, ol.Loss(seen=seen)), {"seen": seen}
    return ol.ImpairedMDP(mdp, ol.ConstantDelay(1)), {"first": [0, 1]}


def random_policy(problem: ol.ImpairedMDP, seed: int) -> ol.FunctionPolicy:
    @cache
    def drawn(*name: int) -> Any:
        return np.random.default_rng([seed, *name]).dirichlet(np.ones(problem.n_actions))

    def choose(info: ol.Information) -> Any:
        return drawn(
            info.h, (info.t or 0) + 10, (info.state or 0) + (0 if info.t is None else 1), info.waited, *info.queue
        )

    return ol.FunctionPolicy(choose, problem.n_actions)


def nearest(values: Any, ordered: Any) -> Any:
    """For each value the index of the nearest of `ordered`, which rises."""
    right = np.searchsorted(ordered, values).clip(0, len(ordered) - 1)
    left = np.maximum(right - 1, 0)
    return np.where(np.abs(values - ordered[left]) <= np.abs(values - ordered[right]), left, right)


def chi_square(observed: dict[Any, int], law: dict[Any, float]) -> float:
    """The p-value; outcomes expected less than five times are put together."""
    assert set(observed) <= set(law), "the simulator did something impossible"
    total = sum(observed.values())
    counts, expected, rest, rest_expected = [], [], 0.0, 0.0
    for key, p in law.items():
        if p * total >= 5:
            counts.append(observed.get(key, 0))
            expected.append(p * total)
        else:
            rest += observed.get(key, 0)
            rest_expected += p * total
    if rest_expected > 0:
        counts.append(rest)
        expected.append(rest_expected)
    scale = sum(counts) / sum(expected)
    return float(stats.chisquare(counts, np.array(expected) * scale).pvalue) if len(counts) > 1 else 1.0
