"""The compiled protocol against exact laws of arrivals and of returns, and against itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import oldlight as ol
from conftest import arrays, information_of, random_mdp
from oracle import arrival_law, random_law, return_law

EPISODES = 40_000


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
    def choose(info: ol.Information) -> Any:
        name = [info.h, (info.t or 0) + 10, (info.state or 0) + (0 if info.t is None else 1), info.waited, *info.queue]
        return np.random.default_rng([seed, *name]).dirichlet(np.ones(problem.n_actions))

    return ol.FunctionPolicy(choose, problem.n_actions)


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
    index = np.abs(found.returns[:, None] - near[None, :]).argmin(axis=1)
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
