"""Delay and loss together, and late actions: against histories, against exact laws, and refused where not planned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oldlight as ol
from conftest import arrays, information_of, random_mdp
from oldlight.model.information import beginnings, moves
from oldlight.planning import evaluation
from oracle import arrival_law, optimal_value, policy_value, random_law, return_law
from played import chi_square, nearest, random_policy
from repeats import repeats
from test_optimal_values import mdp_of

TOLERANCE = 1e-10


def constant(d: int) -> np.ndarray:
    return np.eye(d + 1)[d]


@pytest.mark.parametrize("seed", range(repeats(28, 100)))
def test_late_and_lossy_against_histories(seed: int) -> None:
    rng = np.random.default_rng([seed, 41])
    mdp = mdp_of(rng)
    d, seen = int(rng.integers(0, 4)), rng.random(mdp.horizon)
    seen[rng.random(mdp.horizon) < 0.2] = 1.0
    solution = ol.solve(ol.ImpairedMDP(mdp, ol.Lossy(ol.ConstantDelay(d), seen=seen)))
    assert solution.exact
    assert abs(solution.value - optimal_value(*arrays(mdp), first=constant(d), seen=seen)) < TOLERANCE
    if d == 0:
        assert abs(solution.value - ol.solve(ol.ImpairedMDP(mdp, ol.Loss(seen=seen))).value) < TOLERANCE
    if seed % 5 == 0:  # nothing lost: delay alone
        late = ol.solve(ol.ImpairedMDP(mdp, ol.ConstantDelay(d))).value
        assert abs(ol.solve(ol.ImpairedMDP(mdp, ol.Lossy(ol.ConstantDelay(d), rate=0.0))).value - late) < TOLERANCE


@pytest.mark.parametrize("seed", range(repeats(28, 100)))
def test_late_actions_against_histories(seed: int) -> None:
    rng = np.random.default_rng([seed, 42])
    mdp = mdp_of(rng)
    k = int(rng.integers(1, 4))
    pending = tuple(int(a) for a in rng.integers(0, mdp.n_actions, k))
    law: dict[str, Any] = {"actuation": k, "initial_actions": pending}
    if seed % 4 == 0:
        channel: Any = ol.ConstantDelay(1)
        law["first"] = constant(1)
    elif seed % 4 == 1:
        first, inter = random_law(rng, mdp.horizon, mdp.n_states, mdp.n_actions, 3, kind="state_action")
        channel = ol.StochasticDelay(inter, first=first)
        law |= {"first": first, "inter": inter}
    elif seed % 4 == 2:
        seen = rng.random(mdp.horizon)
        channel, law["seen"] = ol.Loss(seen=seen), seen
    else:
        seen = rng.random(mdp.horizon)
        channel = ol.Lossy(ol.ConstantDelay(1), seen=seen)
        law |= {"seen": seen, "first": constant(1)}
    problem = ol.ImpairedMDP(mdp, channel, actuation=k, pending=pending)
    solution = ol.solve(problem)
    assert abs(solution.value - optimal_value(*arrays(mdp), **law)) < TOLERANCE
    assert abs(float(ol.evaluate(problem, solution.policy)) - solution.value) < TOLERANCE
    walked = ol.evaluate(problem, ol.FunctionPolicy(solution.policy.probabilities, mdp.n_actions))
    assert abs(float(walked) - solution.value) < TOLERANCE


@pytest.mark.parametrize("seed", range(8))
def test_late_and_lossy_policy_plays_its_value(seed: int) -> None:
    rng = np.random.default_rng([seed, 43])
    mdp = random_mdp(rng, 2, 2, 4)
    d, seen = seed % 3, rng.random(4)
    problem = ol.ImpairedMDP(mdp, ol.Lossy(ol.ConstantDelay(d), seen=seen))
    solution = ol.solve(problem)

    def play(history: Any) -> Any:
        return solution.policy.probabilities(information_of(history))

    assert abs(policy_value(*arrays(mdp), play, first=constant(d), seen=seen) - solution.value) < TOLERANCE
    played = ol.simulate(problem, solution.policy, 40_000, seed=seed)
    assert abs(played.mean - solution.value) < 4 * played.half_width / 1.96
    again = ol.simulate(problem, ol.FunctionPolicy(solution.policy.action, 2), 2_000, seed=seed)
    assert np.array_equal(again.returns, played.returns[:2_000])


@pytest.mark.parametrize("seed", range(6))
def test_q_values_obey_bellman(seed: int) -> None:
    rng = np.random.default_rng([seed, 44])
    mdp = random_mdp(rng, 2, 2, 4)
    k = seed % 2
    problem = ol.ImpairedMDP(
        mdp, ol.Lossy(ol.ConstantDelay(seed % 3), seen=rng.random(4)), actuation=k, pending=(1,) * k
    )
    solution = ol.solve(problem)
    everywhere = ol.FunctionPolicy(lambda info: np.full(2, 0.5), 2)
    assert abs(sum(p * solution.value_at(info) for p, info in beginnings(problem)) - solution.value) < TOLERANCE
    for reached in evaluation.visits(problem, everywhere, 10**6):
        assert reached is not None
        for info in reached:
            if info.h < k:
                continue
            q = solution.q(info)
            for a in range(2):
                ahead = float(ol.belief(problem, info) @ mdp.rewards[info.h][:, a])
                if info.h + 1 < 4:
                    ahead += sum(p * solution.value_at(info2) for p, info2 in moves(problem, info, a))
                assert abs(ahead - q[a]) < TOLERANCE


@pytest.mark.parametrize("seed", range(6))
def test_simulated_for_every_delay_law(seed: int) -> None:
    """Arrivals, losses and returns of a random delay with loss, against the exact laws; late actions too."""
    rng = np.random.default_rng([seed, 45])
    mdp = random_mdp(rng, 2, 2, 3)
    first, inter = random_law(rng, 3, 2, 2, 3, kind="state_action" if seed % 2 else "iid")
    seen = rng.random(3)
    k = seed % 3 // 2
    problem = ol.ImpairedMDP(
        mdp, ol.Lossy(ol.StochasticDelay(inter, first=first), seen=seen), actuation=k, pending=(1,) * k
    )
    policy = random_policy(problem, seed)
    found = ol.simulate(problem, policy, repeats(10_000, 30_000), seed=seed, record=True)
    assert found.arrivals is not None
    P, R, rho = arrays(mdp)

    def asked(history: Any) -> Any:
        info = information_of(history)
        if k:  # the step acted on, and the actions under way, as this package counts them
            actions = ((1,) * k + tuple(e.action for e in history[1:]))[info.t or 0 :]
            info = ol.Information(
                info.h + k, info.t, info.state, actions, info.waited if info.t is not None else info.waited + k
            )
        return policy.probabilities(info)

    law: dict[str, Any] = {"first": first, "inter": inter, "seen": seen, "actuation": k, "initial_actions": (1,) * k}
    exact = {}
    for pattern, p in arrival_law(P, rho, asked, **law).items():
        key = tuple(int(x) for x in pattern)
        exact[key] = exact.get(key, 0.0) + p
    arrivals = np.where(found.arrivals >= 0, np.minimum(found.arrivals - k, 3), -1)
    keys, counts = np.unique(arrivals, axis=0, return_counts=True)
    if k:  # an observation that is as late as the fold cannot be told from a later one
        fold = lambda key: tuple(x if x < 3 - k else min(x, 3 - k) for x in key)  # noqa: E731
        merged: dict[Any, float] = {}
        for key, p in exact.items():
            merged[fold(key)] = merged.get(fold(key), 0.0) + p
        exact = merged
        observed: dict[Any, int] = {}
        for key, n in zip(keys.tolist(), counts.tolist(), strict=True):
            observed[fold(tuple(key))] = observed.get(fold(tuple(key)), 0) + n
    else:
        observed = {tuple(key): n for key, n in zip(keys.tolist(), counts.tolist(), strict=True)}
    assert chi_square(observed, exact) > 1e-4
    returns = return_law(P, R, rho, asked, **law)
    near = np.array(sorted(returns))
    index = nearest(found.returns, near)
    ids, counts = np.unique(index, return_counts=True)
    assert chi_square({near[i]: int(n) for i, n in zip(ids, counts, strict=True)}, returns) > 1e-4


def test_bursty_loss() -> None:
    """Bursts come at their rate and last as long as they should; the plan earns more than an action that is always the same."""
    channel = ol.BurstyLoss(to_bad=0.1, to_good=0.4)
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8, horizon=40), channel)
    policy = ol.FunctionPolicy(lambda info: 0, 5)
    played = ol.simulate(problem, policy, 4_000, seed=1, record=True)
    assert played.arrivals is not None
    lost = played.arrivals == -1
    assert lost.mean() == pytest.approx(0.2, abs=0.02)
    again = (lost[:, 1:] & lost[:, :-1]).sum() / lost[:, :-1].sum()
    assert again == pytest.approx(0.6, abs=0.02)  # a bad link stays bad with 1 − to_good
    value = ol.evaluate(problem, policy)
    assert value.exact
    assert abs(value.value - played.mean) <= 5 * played.returns.std() / np.sqrt(4_000)
    assert not ol.evaluate(problem, policy, max_states=100, episodes=100).exact
    short = ol.ImpairedMDP(ol.instances.sensing_chain(0.8, horizon=6), channel)
    best = ol.solve(short, tolerance=1e-3)
    assert best.upper - best.lower <= 1e-3
    assert best.upper > ol.evaluate(short, policy).value


def test_a_random_delay_with_loss_is_planned_between_its_parts() -> None:
    mdp = ol.instances.sensing_chain(0.8, n_states=6, n_actions=3, horizon=5)
    both = ol.solve(ol.ImpairedMDP(mdp, ol.Lossy(ol.GeometricDelay(0.5), seen=0.8)), tolerance=1e-6)
    late = ol.solve(ol.ImpairedMDP(mdp, ol.GeometricDelay(0.5)))
    assert both.lower <= late.value + TOLERANCE  # losing observations as well cannot help
    assert (
        both.upper >= ol.solve(ol.ImpairedMDP(mdp, ol.Loss(rate=1.0))).value - TOLERANCE
    )  # and they are never worth less than none


def test_more_of_either_costs_more() -> None:
    mdp = ol.instances.sensing_chain(0.8, n_states=8, n_actions=3, horizon=6)
    values = np.array(
        [
            [ol.solve(ol.ImpairedMDP(mdp, ol.Lossy(ol.ConstantDelay(d), rate=r))).value for r in (0, 0.2, 0.5, 1)]
            for d in range(4)
        ]
    )
    assert (np.diff(values, axis=0) <= TOLERANCE).all()
    assert (np.diff(values, axis=1) <= TOLERANCE).all()
    late = [ol.solve(ol.ImpairedMDP(mdp, ol.Loss(rate=0.2), actuation=k)).value for k in range(4)]
    assert late[0] == pytest.approx(values[0, 1], abs=TOLERANCE)
