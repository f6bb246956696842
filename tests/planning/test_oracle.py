"""The oracle against closed forms, against plain recursions and against a flat sum over all trajectories."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from oracle import (
    Entry,
    arrival_law,
    optimal_value,
    policy_value,
    random_instance,
    random_law,
    random_policy,
    return_law,
)
from repeats import repeats

KINDS = ["constant", "iid", "state_action"]


def point(k: int, n: int) -> Any:
    return np.eye(n)[k]


def guessing(p: float, H: int) -> tuple[Any, Any, Any]:
    """Two states that stay with probability p, reward 1{a = s}, start in state 0."""
    P = np.broadcast_to(np.array([[p, 1 - p], [1 - p, p]])[:, None, :], (H, 2, 2, 2))
    R = np.broadcast_to(np.eye(2), (H, 2, 2))
    return P, R, np.array([1.0, 0.0])


def late_after_first(H: int, d: int) -> Any:
    inter = np.zeros((H, 2, 2, d + 1))
    inter[0, ..., d] = 1
    inter[1:, ..., 0] = 1
    return inter


def value_iteration(P: Any, R: Any, rho: Any) -> float:
    V = np.zeros(len(rho))
    for i in reversed(range(len(P))):
        V = (R[i] + P[i] @ V).max(axis=1)
    return float(rho @ V)


def open_loop(P: Any, R: Any, rho: Any, actions: Any) -> float:
    total, b = 0.0, rho
    for i, a in enumerate(actions):
        total += b @ R[i, :, a]
        b = b @ P[i, :, a]
    return float(total)


def best_open_loop(P: Any, R: Any, rho: Any) -> float:
    H, _, A, _ = P.shape
    return max(open_loop(P, R, rho, actions) for actions in itertools.product(range(A), repeat=H))


def flat_laws(
    P: Any, R: Any, rho: Any, policy: Any, first: Any, inter: Any, seen: Any, initial: tuple[int, ...]
) -> tuple[float, dict[Any, float], dict[float, float]]:
    """Value, arrival law and return law by listing every (states, delays, losses, choices) one by one."""
    H, S, A, _ = P.shape
    value: float = 0.0
    patterns: dict[Any, float] = defaultdict(float)
    returns: dict[float, float] = defaultdict(float)
    free = H - len(initial)
    for s, first_delay, later, lost, choices in itertools.product(
        itertools.product(range(S), repeat=H),
        range(len(first)),
        itertools.product(range(inter.shape[3]), repeat=H - 1),
        itertools.product((False, True), repeat=H),
        itertools.product(range(A), repeat=free),
    ):
        a = initial + choices
        d = [first_delay]
        weight = rho[s[0]] * first[first_delay]
        for i in range(H - 1):
            weight *= P[i, s[i], a[i], s[i + 1]] * inter[i, s[i], a[i], later[i]]
            d.append(d[-1] + later[i])
        for i in range(H):
            weight *= 1 - seen[i] if lost[i] else seen[i]
        if weight == 0:
            continue
        message = [(i, None if lost[i] else s[i]) for i in range(H)]
        history: tuple[Entry, ...] = ()
        for h in range(free):
            arrivals = tuple(message[i] for i in range(H) if i + d[i] == h)
            history += (Entry(arrivals, choices[h - 1] if h else None),)
            weight *= policy(history)[choices[h]]
        if weight == 0:
            continue
        total = sum(R[i, s[i], a[i]] for i in range(H))
        value += weight * total
        returns[round(total, 9)] += weight
        patterns[tuple(-1 if lost[i] else min(i + d[i], H) for i in range(H))] += weight
    return value, patterns, returns


def same_law(left: dict[Any, float], right: dict[Any, float]) -> bool:
    return set(left) == set(right) and all(abs(left[k] - right[k]) < 1e-12 for k in left)


@pytest.mark.parametrize("H", [4, 6])
@pytest.mark.parametrize("d", [0, 1, 2, 3])
def test_two_states_late(H: int, d: int) -> None:
    p = 0.8
    expected = sum((1 + (2 * p - 1) ** min(h, d)) / 2 for h in range(H))
    value = optimal_value(*guessing(p, H), inter=late_after_first(H, d))
    assert value == pytest.approx(expected, abs=1e-12)
    if H == 6:
        assert value == pytest.approx([6, 5, 113 / 25, 538 / 125][d], abs=1e-12)


@pytest.mark.parametrize(("rate", "expected"), [(0.3, 5.6502051744), (0.5, 5.34679), (1.0, 4.19168)])
def test_two_states_lost(rate: float, expected: float) -> None:
    H, x = 6, 0.6
    seen = np.array([1.0] + [1 - rate] * (H - 1))
    # the last sight of the state is m < h steps old with probability rate^m (1 - rate), else h steps old
    recall = [sum(rate**m * (1 - rate) * x**m for m in range(h)) + rate**h * x**h for h in range(H)]
    direct = sum((1 + y) / 2 for y in recall)
    value = optimal_value(*guessing(0.8, H), seen=seen)
    assert value == pytest.approx(expected, abs=1e-9)
    assert value == pytest.approx(direct, abs=1e-12)


def test_dichotomy() -> None:
    """Lazy until step d, where alone the reward is paid: delay d is worth 1, delay d + 1 is worth 1/2."""
    for d in (1, 2):
        H = d + 2
        P = np.broadcast_to(np.eye(2)[:, None, :], (H, 2, 2, 2))
        R = np.zeros((H, 2, 2))
        R[d] = np.eye(2)
        rho = np.array([0.5, 0.5])
        assert optimal_value(P, R, rho, first=point(d, d + 2)) == pytest.approx(1, abs=1e-12)
        assert optimal_value(P, R, rho, first=point(d + 1, d + 2)) == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_everything_seen_and_nothing_seen(seed: int) -> None:
    rng = np.random.default_rng(seed)
    P, R, rho = random_instance(rng, 3, 2, 4, stationary=seed % 2 == 0, sparse=seed % 3 == 0)
    full, blind = value_iteration(P, R, rho), best_open_loop(P, R, rho)
    assert optimal_value(P, R, rho) == pytest.approx(full, abs=1e-12)
    assert optimal_value(P, R, rho, seen=np.ones(4)) == pytest.approx(full, abs=1e-12)
    assert optimal_value(P, R, rho, first=point(4, 5)) == pytest.approx(blind, abs=1e-12)
    assert optimal_value(P, R, rho, seen=np.zeros(4)) == pytest.approx(blind, abs=1e-12)
    fixed = optimal_value(P, R, rho, actuation=4, initial_actions=(0, 1, 1, 0))
    assert fixed == pytest.approx(open_loop(P, R, rho, (0, 1, 1, 0)), abs=1e-12)
    ladder = [optimal_value(P, R, rho, first=point(d, 5)) for d in range(5)]
    assert all(x >= y - 1e-12 for x, y in itertools.pairwise(ladder))
    lossy = [optimal_value(P, R, rho, seen=np.full(4, x)) for x in (1, 0.7, 0.3, 0)]
    assert all(x >= y - 1e-12 for x, y in itertools.pairwise(lossy))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("actuation", [0, 1])
def test_laws_agree_with_a_flat_sum(kind: str, seed: int, actuation: int) -> None:
    rng = np.random.default_rng(seed)
    P, R, rho = random_instance(rng, 2, 2, 3, sparse=seed % 2 == 0)
    first, inter = random_law(rng, 3, 2, 2, 2, kind=kind)
    seen = rng.random(3)
    initial = (1,) * actuation
    policy = random_policy(rng, 2)
    options: dict[str, Any] = {
        "first": first,
        "inter": inter,
        "seen": seen,
        "actuation": actuation,
        "initial_actions": initial,
    }
    value, patterns, returns = flat_laws(P, R, rho, policy, first, inter, seen, initial)
    assert policy_value(P, R, rho, policy, **options) == pytest.approx(value, abs=1e-12)
    assert same_law(arrival_law(P, rho, policy, **options), patterns)
    assert same_law(return_law(P, R, rho, policy, **options), returns)
    assert sum(patterns.values()) == pytest.approx(1, abs=1e-12)
    assert optimal_value(P, R, rho, **options) >= value - 1e-12


@pytest.mark.parametrize("seed", range(repeats(2, 4)))  # one with delays, one with losses
def test_best_of_all_deterministic_policies(seed: int) -> None:
    """Two steps: all maps from what was seen to an action (a map need not look at its own actions)."""
    rng = np.random.default_rng(seed)
    P, R, rho = random_instance(rng, 2, 2, 2)
    if seed % 2:
        options: dict[str, Any] = {"seen": rng.random(2)}
    else:
        options = {"first": rng.dirichlet(np.ones(3)), "inter": rng.dirichlet(np.ones(2), size=(2, 2, 2))}
    sights: set[Any] = set()

    def note(history: Any) -> list[float]:
        sights.add(tuple(entry.arrivals for entry in history))
        return [0.5, 0.5]

    policy_value(P, R, rho, note, **options)
    order = {sight: n for n, sight in enumerate(sorted(sights, key=repr))}
    assert len(order) == 12
    best = -np.inf
    for table in itertools.product(np.eye(2).tolist(), repeat=len(order)):

        def policy(history: Any, table: Any = table) -> Any:
            return table[order[tuple(entry.arrivals for entry in history)]]

        best = max(best, policy_value(P, R, rho, policy, **options))
    assert optimal_value(P, R, rho, **options) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_late_actions_are_late_observations(seed: int) -> None:
    """Observations d late and actions k late are worth, for the best initial actions, a delay of d + k."""
    rng = np.random.default_rng(seed)
    P, R, rho = random_instance(rng, 2, 2, 4)
    for d, k in ((0, 1), (0, 2), (1, 1), (1, 2)):
        best = max(
            optimal_value(P, R, rho, first=point(d, 4), actuation=k, initial_actions=actions)
            for actions in itertools.product(range(2), repeat=k)
        )
        assert best == pytest.approx(optimal_value(P, R, rho, first=point(d + k, 4)), abs=1e-12)


@pytest.mark.parametrize("d", [0, 1, 2])
def test_warm_start(d: int) -> None:
    """A warm start is a process with d free steps in front, whose actions are given and averaged over."""
    rng = np.random.default_rng(d)
    P, R, rho = random_instance(rng, 2, 2, 3)
    longer_P = np.concatenate([P[:1]] * d + [P])
    longer_R = np.concatenate([np.zeros((d, 2, 2)), R])
    mean = np.mean(
        [
            optimal_value(longer_P, longer_R, np.full(2, 0.5), actuation=d, initial_actions=past)
            for past in itertools.product(range(2), repeat=d)
        ]
    )
    assert optimal_value(P, R, rho, warm_delay=d) == pytest.approx(mean, abs=1e-12)

    met: set[Any] = set()
    inner = random_policy(rng, 2)

    def policy(history: Any) -> Any:
        met.add(history[0])
        assert [e.arrivals[0][0] for e in history] == list(range(-d, len(history) - d))
        return inner(history)

    value = policy_value(P, R, rho, policy, warm_delay=d)
    law = return_law(P, R, rho, policy, warm_delay=d)
    pasts = list(itertools.product(range(2), repeat=d))
    assert met == {Entry(((-d, s),), None, past) for s in range(2) for past in pasts}
    assert sum(law.values()) == pytest.approx(1, abs=1e-12)
    assert sum(x * p for x, p in law.items()) == pytest.approx(value, abs=1e-8)
    times = tuple(min(i + d, 3) for i in range(3))
    assert arrival_law(P, rho, policy, warm_delay=d) == {times: pytest.approx(1, abs=1e-12)}
