"""A sparse process in the environments, the testbed and the explorer: what the dense one does, and no dense array of it."""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from scipy import sparse

import oldlight as ol
from oldlight.envs import TabularEnv, TabularVectorEnv
from oldlight.envs.tabular_setup import as_data, read_mdp
from oldlight.explore.positions import shaped
from oracle import random_instance

pytestmark = pytest.mark.usefixtures("no_dense_array")


def pair(seed: int) -> tuple[ol.TabularMDP, ol.TabularMDP]:
    """The same process twice: dense, sparse."""
    S, A, H = 5, 2, 6
    stationary = seed % 2 == 0
    P, R, rho = random_instance(np.random.default_rng(seed), S, A, H, stationary=stationary, sparse=True)
    steps = [sparse.csr_array(step.reshape(S * A, S)) for step in P]
    dense = ol.TabularMDP(P[0] if stationary else P, R, horizon=H, initial=rho)
    return dense, ol.TabularMDP(steps[0] if stationary else steps, R, horizon=H, initial=rho)


def played(env: gym.Env[Any, Any], seed: int) -> list[Any]:
    """Everything that the agent is told in some episodes of random actions."""
    out, rng = [], np.random.default_rng(seed)
    for episode in range(4):
        shown, _ = env.reset(seed=seed + episode)
        out.append(shown)
        ended = False
        while not ended:
            shown, reward, over, cut, _ = env.step(int(rng.integers(2)))
            out += [shown, reward]
            ended = over or cut
    return out


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("link", [None, "constant:1", "loss:0.3", "packets:0=0.5,1=0.5"])
def test_environments_agree(link: str | None, seed: int) -> None:
    one, other = (played(TabularEnv(mdp, channel=link), seed) for mdp in pair(seed))
    assert str(one) == str(other)
    runs = []
    for mdp in pair(seed):
        envs = TabularVectorEnv(mdp, num_envs=3, channel=link)
        runs.append([envs.reset(seed=seed)[0], *(envs.step(np.array([0, 1, k % 2]))[:2] for k in range(8))])
    assert str(runs[0]) == str(runs[1])


@pytest.mark.parametrize("seed", range(4))
def test_a_sparse_process_travels_as_plain_data(seed: int) -> None:
    """As the keyword of an environment's spec; the lists are what `TabularMDP` takes."""
    for mdp in pair(seed):
        assert ol.TabularMDP(mdp.triples(), mdp.rewards, horizon=6, initial=mdp.initial) == pair(seed)[1]
    again = read_mdp(json.loads(json.dumps(as_data(pair(seed)[1]))))
    assert again.sparse
    assert again == pair(seed)[1]


@pytest.mark.parametrize("seed", range(4))
def test_the_explorer_shortens_and_discounts_a_sparse_process(seed: int) -> None:
    one, other = (ol.ImpairedMDP(shaped(mdp, 4, 0.9), "constant:1") for mdp in pair(seed))
    assert other.mdp.sparse
    assert ol.solve(other).value == pytest.approx(ol.solve(one).value, abs=1e-12)


@pytest.mark.subprocess
def test_the_testbed_plays_a_sparse_process() -> None:
    problem = ol.ImpairedMDP(pair(0)[1], "loss:0.3")
    plan = ol.solve(problem)
    result = ol.run_testbed(problem, plan.policy, episodes=60, seed=5)
    assert abs(result.mean - plan.value) < 2 * result.half_width  # four standard errors
