"""The compiled protocol against exact laws of arrivals and of returns, and against itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oldlight as ol
from conftest import arrays, information_of
from oracle import arrival_law, return_law
from played import cases, chi_square, nearest, random_policy
from repeats import repeats

EPISODES = repeats(12_000, 40_000)


@pytest.mark.parametrize("seed", range(10))
def test_arrivals_and_returns_follow_their_exact_law(seed: int) -> None:
    problem, law = cases(seed)
    policy = random_policy(problem, seed)
    H, warmup = problem.horizon, problem.warmup
    played: Any = policy
    if problem.arrival_probability is None and seed >= 5:  # the compiled table of chances, instead of asking in Python
        from oldlight.model.policies import tabulate

        played = tabulate(problem, policy)
    found = ol.simulate(problem, played, EPISODES, seed=seed, record=True)
    assert found.arrivals is not None
    P, R, rho = arrays(problem.mdp)

    def asked(history: Any) -> Any:
        return policy.probabilities(information_of(history))

    patterns = np.minimum(found.arrivals[:, warmup:], H)
    keys, counts = np.unique(patterns, axis=0, return_counts=True)
    observed = {tuple(int(x) for x in key): int(n) for key, n in zip(keys, counts, strict=True)}
    exact = {tuple(int(x) for x in key): p for key, p in arrival_law(P, rho, asked, **law).items()}
    assert chi_square(observed, exact) > 1e-4

    exact_returns = return_law(P, R, rho, asked, **law)
    near = np.array(sorted(exact_returns))
    index = nearest(found.returns, near)
    assert np.abs(found.returns - near[index]).max() < 1e-8
    ids, counts = np.unique(index, return_counts=True)
    assert chi_square({near[i]: int(n) for i, n in zip(ids, counts, strict=True)}, exact_returns) > 1e-4


@pytest.mark.parametrize("seed", range(5))
def test_the_seed_alone_decides(seed: int) -> None:
    problem, _ = cases(seed)
    policy = ol.solve(problem).policy
    one = ol.simulate(problem, policy, 10_000, seed=seed, threads=1, record=True)
    many = ol.simulate(problem, policy, 10_000, seed=seed, threads=4, record=True)
    other = ol.simulate(problem, policy, 10_000, seed=seed + 1)
    assert np.array_equal(one.returns, many.returns)
    assert np.array_equal(one.states, many.states)  # type: ignore[arg-type]
    assert not np.array_equal(one.returns, other.returns)
    fewer = ol.simulate(problem, policy, 5_000, seed=seed)
    assert np.array_equal(one.returns[:5_000], fewer.returns)


@pytest.mark.parametrize("seed", range(5))
def test_a_table_and_the_same_policy_in_python_play_the_same_episodes(seed: int) -> None:
    problem, _ = cases(seed)
    policy = ol.solve(problem).policy
    compiled = ol.simulate(problem, policy, 3_000, seed=7)
    python = ol.simulate(problem, ol.FunctionPolicy(policy.action, problem.n_actions), 3_000, seed=7)
    assert np.array_equal(compiled.returns, python.returns)


@pytest.mark.parametrize("channel", [ol.ConstantDelay(3), ol.BernoulliDelay(0.5), ol.Loss(seen=0.5)], ids=repr)
def test_mean_return_is_the_value(channel: Any) -> None:
    """Within 4 standard errors (a 1 in 16,000 event for a right simulator)."""
    start = ol.WarmStart() if isinstance(channel, ol.ConstantDelay) else None
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), channel, start=start)
    solution = ol.solve(problem)
    played = ol.simulate(problem, solution.policy, 200_000, seed=3)
    assert abs(played.mean - solution.value) < 4 * played.half_width / 1.96
    assert played.mean_reward.sum() == pytest.approx(played.mean, abs=1e-9)
    assert (played.ages.sum(axis=1) == 200_000).all()
    if isinstance(channel, ol.ConstantDelay):
        assert (played.ages[:, 3] == 200_000).all()


def test_full_information_policy_is_played_unimpaired() -> None:
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.ConstantDelay(2), start=ol.WarmStart())
    gap = ol.gap(problem)
    played = ol.simulate(problem, gap.full_policy, 200_000, seed=5)
    assert abs(played.mean - gap.full) < 4 * played.half_width / 1.96


def test_hindsight() -> None:
    """After the episode everything is revealed under delay, and nothing more under loss."""
    mdp = ol.instances.sensing_chain(0.8)
    late = ol.ImpairedMDP(mdp, ol.ConstantDelay(4))
    played = ol.simulate(late, ol.solve(late).policy, 100, seed=0, record=True)
    assert np.array_equal(played.revealed, played.states)  # type: ignore[arg-type]
    lossy = ol.ImpairedMDP(mdp, ol.Loss(seen=0.5))
    played = ol.simulate(lossy, ol.solve(lossy).policy, 100, seed=0, record=True)
    assert played.arrivals is not None
    assert ((played.revealed == -1) == (played.arrivals == -1)).all()
    assert 0.4 < (played.revealed == -1).mean() < 0.6
    with pytest.raises(ValueError, match="record=True"):
        _ = ol.simulate(late, ol.solve(late).policy, 10, seed=0).revealed
