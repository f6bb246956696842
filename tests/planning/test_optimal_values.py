"""Optimal values against a brute force over all histories, which knows nothing of information states."""

from __future__ import annotations

import numpy as np
import pytest

import oldlight as ol
from conftest import arrays, information_of, random_mdp
from oracle import optimal_value, policy_value, random_law
from repeats import repeats

TOLERANCE = 1e-10


def sizes(rng: np.random.Generator) -> tuple[int, int, int]:
    S, A = (int(x) for x in rng.integers(1, 4, 2))
    return S, A, int(rng.integers(1, 5 if S * A > 4 else 6))


def mdp_of(rng: np.random.Generator) -> ol.TabularMDP:
    S, A, H = sizes(rng)
    return random_mdp(rng, S, A, H, stationary=bool(rng.integers(2)), sparse=bool(rng.integers(2)))


@pytest.mark.parametrize("seed", range(repeats(30, 60)))
@pytest.mark.parametrize("kind", ["constant", "iid", "state_action"])
def test_delay_cold_start(seed: int, kind: str) -> None:
    rng = np.random.default_rng([seed, len(kind)])
    mdp = mdp_of(rng)
    first, inter = random_law(rng, mdp.horizon, mdp.n_states, mdp.n_actions, int(rng.integers(1, 4)), kind=kind)
    problem = ol.ImpairedMDP(mdp, ol.StochasticDelay(inter, first=first))
    assert abs(ol.solve(problem).value - optimal_value(*arrays(mdp), first=first, inter=inter)) < TOLERANCE


@pytest.mark.parametrize("seed", range(repeats(20, 60)))  # delays 0 to 3, five of each
def test_delay_warm_start(seed: int) -> None:
    rng = np.random.default_rng([seed, 1])
    mdp = mdp_of(rng)
    d = int(rng.integers(0, 4))
    value = ol.solve(ol.ImpairedMDP(mdp, ol.ConstantDelay(d), start=ol.WarmStart())).value
    assert abs(value - optimal_value(*arrays(mdp), warm_delay=d)) < TOLERANCE


@pytest.mark.parametrize("seed", range(20))
def test_random_delay_warm_start(seed: int) -> None:
    rng = np.random.default_rng([seed, 2])
    mdp = mdp_of(rng)
    _, inter = random_law(rng, mdp.horizon, mdp.n_states, mdp.n_actions, 3, kind="state_action")
    value = ol.solve(ol.ImpairedMDP(mdp, ol.StochasticDelay(inter), start=ol.WarmStart())).value
    assert abs(value - optimal_value(*arrays(mdp), inter=inter, warm_delay=0)) < TOLERANCE


@pytest.mark.parametrize("seed", range(repeats(50, 100)))
def test_loss(seed: int) -> None:
    rng = np.random.default_rng([seed, 3])
    mdp = mdp_of(rng)
    seen = rng.random(mdp.horizon)
    seen[rng.random(mdp.horizon) < 0.15] = 1.0
    seen[rng.random(mdp.horizon) < 0.15] = 0.0
    start = ol.WarmStart() if seed % 4 == 0 else None
    problem = ol.ImpairedMDP(mdp, ol.Loss(seen=seen), start=start)
    expected = optimal_value(*arrays(mdp), seen=seen, warm_delay=None if start is None else 0)
    solution = ol.solve(problem)
    assert solution.exact
    assert solution.lower == solution.upper == solution.value
    assert abs(solution.value - expected) < TOLERANCE


@pytest.mark.parametrize("seed", range(repeats(20, 40)))
@pytest.mark.parametrize("tolerance", [0.01, 0.3])
def test_loss_with_tolerance_is_certified(seed: int, tolerance: float) -> None:
    rng = np.random.default_rng([seed, 4])
    mdp = mdp_of(rng)
    seen = rng.random(mdp.horizon)
    solution = ol.solve(ol.ImpairedMDP(mdp, ol.Loss(seen=seen)), tolerance=tolerance)
    best = optimal_value(*arrays(mdp), seen=seen)
    assert solution.lower - TOLERANCE <= best <= solution.upper + TOLERANCE
    assert solution.upper - solution.lower <= tolerance + TOLERANCE
    assert abs(float(ol.evaluate(solution.problem, solution.policy)) - solution.value) < TOLERANCE


@pytest.mark.parametrize("seed", range(24))
def test_the_policy_earns_its_value_when_played_on_histories(seed: int) -> None:
    rng = np.random.default_rng([seed, 5])
    mdp = mdp_of(rng)
    law: dict[str, object]
    if seed % 3 == 0:
        channel, start, law = ol.ConstantDelay(2), ol.WarmStart(), {"warm_delay": 2}
    elif seed % 3 == 1:
        first, inter = random_law(rng, mdp.horizon, mdp.n_states, mdp.n_actions, 3, kind="state_action")
        channel, start, law = ol.StochasticDelay(inter, first=first), None, {"first": first, "inter": inter}
    else:
        seen = rng.random(mdp.horizon)
        channel, start, law = ol.Loss(seen=seen), None, {"seen": seen}
    solution = ol.solve(ol.ImpairedMDP(mdp, channel, start=start))

    def play(history):  # type: ignore[no-untyped-def]
        return solution.policy.probabilities(information_of(history))

    assert abs(policy_value(*arrays(mdp), play, **law) - solution.value) < TOLERANCE


@pytest.mark.parametrize("seed", range(16))
def test_q_values_obey_bellman_and_agree_with_the_value(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every information state: max_a Q is what the policy takes, and one step ahead it is r + E[V]."""
    from oldlight.model.information import beginnings, moves
    from oldlight.planning import evaluation

    rng = np.random.default_rng([seed, 6])
    mdp = random_mdp(rng, 2, 2, 3)
    channels = [
        ol.ConstantDelay(1),
        ol.GeometricDelay(0.5, first="same"),
        ol.Loss(seen=[0.5, 0.2, 0.7]),
        ol.ConstantDelay(2),
    ]
    problem = ol.ImpairedMDP(mdp, channels[seed % 4], start=ol.WarmStart() if seed % 4 == 3 else None)
    if seed >= 8:
        monkeypatch.setattr("oldlight.planning.KEEP_VALUES", 0)  # computed again on request
    solution = ol.solve(problem)
    assert abs(sum(p * solution.value_at(info) for p, info in beginnings(problem)) - solution.value) < TOLERANCE
    everywhere = ol.FunctionPolicy(lambda info: np.full(2, 0.5), 2)
    for reached in evaluation.visits(problem, everywhere, 10**6):
        assert reached is not None
        for info in reached:
            q = solution.q(info)
            for a in range(2):
                ahead = float(ol.belief(problem, info) @ mdp.rewards[info.h][:, a])
                if info.h + 1 < mdp.horizon:
                    ahead += sum(p * solution.value_at(info2) for p, info2 in moves(problem, info, a))
                assert abs(ahead - q[a]) < TOLERANCE
            assert q[solution.policy.action(info)] > q.max() - TOLERANCE


@pytest.mark.parametrize("seed", range(12))
def test_value_by_start(seed: int) -> None:
    """Linear in the law of the start, and what the policy earns from each start."""
    rng = np.random.default_rng([seed, 7])
    mdp = random_mdp(rng, 3, 2, 4)
    channel = [ol.ConstantDelay(1), ol.GeometricDelay(0.5, first="same"), ol.Loss(seen=0.4)][seed % 3]
    problem = ol.ImpairedMDP(mdp, channel)
    solution = ol.solve(problem)
    assert abs(mdp.initial @ solution.value_by_start - solution.value) < TOLERANCE
    for s in range(3):
        certain = ol.ImpairedMDP(mdp.replace(initial=np.eye(3)[s]), channel)
        assert abs(float(ol.evaluate(certain, solution.policy)) - solution.value_by_start[s]) < TOLERANCE
