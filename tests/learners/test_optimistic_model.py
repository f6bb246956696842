"""The processes that `LinkLearner` plans for, and the steps between observations, against recursions of their own."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.learners.hidden_steps import HiddenStretches
from oldlight.learners.optimistic_model import Optimism, drawn, optimistic
from oldlight.model.episode import Episode

S, A, H = 4, 3, 5


def case(seed: int, rows: int) -> tuple[Any, Any]:
    rng = np.random.default_rng([seed, 7])
    number = rng.integers(0, 6, size=(rows, S, A, S)) * (rng.random((rows, S, A, 1)) < 0.8)
    return number.astype(float), rng.random((H, S, A))


def values(P: Any, R: Any) -> Any:
    V = np.zeros(P.shape[1])
    for h in range(H - 1, -1, -1):
        V = (R[h] + P[min(h, len(P) - 1)] @ V).max(axis=1)
    return V


@pytest.mark.parametrize("kind", ["bernstein", "hoeffding"])
@pytest.mark.parametrize("rows", [1, H])
@pytest.mark.parametrize("seed", range(4))
def test_full_information_value_is_that_of_a_clipped_bonus(kind: str, rows: int, seed: int) -> None:
    number, R = case(seed, rows)
    made = optimistic(number, R, Optimism(kind, 0.1, 9.0, 1.0))
    left, V = np.append(np.cumsum(R.max(axis=(1, 2))[::-1])[::-1], 0.0), np.zeros(S)
    for h in range(H - 1, -1, -1):  # UCBVI, written out
        Q = np.empty((S, A))
        for s, a in product(range(S), range(A)):
            counts = number[min(h, rows - 1), s, a]
            N = counts.sum()
            if h == H - 1:
                Q[s, a] = R[h, s, a]
            elif N == 0:
                Q[s, a] = R[h, s, a] + left[h + 1]
            else:
                p = counts / N
                var = p @ (V - p @ V) ** 2
                bonus = left[h + 1] * np.sqrt(9 / N)
                if kind == "bernstein":
                    bonus = np.sqrt(2 * var * 9 / N) + left[h + 1] * 9 / (3 * N)
                Q[s, a] = R[h, s, a] + min(p @ V + 0.1 * bonus, left[h + 1])
        V = Q.max(axis=1)
    found = values(made.transitions, made.rewards)
    assert found[:S] == pytest.approx(V, abs=1e-9)
    assert found[S] == pytest.approx(left[0], abs=1e-12)
    assert (found[:S] <= left[0] + 1e-9).all()


@pytest.mark.parametrize("rows", [1, H])
def test_prior_is_a_visit_that_led_to_the_best(rows: int) -> None:
    number, R = case(1, rows)
    made = optimistic(number, R, Optimism("prior", 0.1, 9.0, 2.0))
    assert len(made.transitions) == rows
    N = number.sum(axis=3)
    assert made.transitions[:, :S, :, S] == pytest.approx(2 / (N + 2))
    assert made.transitions[:, :S, :, :S] == pytest.approx(number / (N + 2)[..., None])
    assert made.transitions.sum(axis=3) == pytest.approx(np.ones((rows, S + 1, A)))
    more = optimistic(100 * number, R, Optimism("prior", 0.1, 9.0, 2.0))
    assert (values(more.transitions, more.rewards) <= values(made.transitions, made.rewards) + 1e-12).all()


def test_of_several_draws_each_pair_takes_the_most_promising() -> None:
    number, R = case(2, 1)
    one = [drawn(number, R, 0.25, 1, np.random.default_rng(k)) for k in range(20)]
    several = [drawn(number, R, 0.25, 5, np.random.default_rng(k)) for k in range(20)]
    for x, y in zip(one, several, strict=True):
        assert y.transitions.sum(axis=3) == pytest.approx(np.ones((H, S, A)))
        assert (values(y.transitions, R) >= values(x.transitions, R) - 1e-12).all()  # its first draw is the same


def test_posterior_draws_have_the_posterior_mean() -> None:
    number, R = case(3, 1)
    rng = np.random.default_rng(0)
    mean = np.mean([drawn(number, R, 0.25, 1, rng).transitions for _ in range(4000)], axis=0)
    N = number.sum(axis=3, keepdims=True)
    expected = (number + 0.25) / (N + 1)
    spread = np.sqrt(expected * (1 - expected) / (N + 2) / 4000)
    assert (np.abs(mean - expected) <= 5 * spread).all()


# -- hidden steps ----------------------------------------------------------------------------------------------------


def test_expected_transitions_are_those_of_all_paths() -> None:
    """One round, against the sum over every path of hidden states."""
    import oldlight.learners.hidden_steps as module

    number, _ = case(4, 1)
    total = number + 1 / S
    p = total / total.sum(axis=3, keepdims=True)
    stretches = HiddenStretches(3, True)
    states = np.array([2, -1, -1, 1, 0])
    stretches.add(Episode(states, np.array([0, 2, 1, 0, 0]), np.array([0, -1, -1, 3, 4]), np.zeros(5), 0))
    assert stretches.met == {(0, 2, 1, 0, 2, 1): 1}
    expected, weight = np.zeros_like(number), 0.0
    for i, j in product(range(S), repeat=2):
        w = p[0, 2, 0, i] * p[0, i, 2, j] * p[0, j, 1, 1]
        weight += w
        for s, a, s2 in ((2, 0, i), (i, 2, j), (j, 1, 1)):
            expected[0, s, a, s2] += w
    rounds, module.ROUNDS = module.ROUNDS, 1
    try:
        found = stretches.expected(number, np.zeros_like(number))
    finally:
        module.ROUNDS = rounds
    assert found == pytest.approx(expected / weight, abs=1e-12)
    assert found.sum() == pytest.approx(3.0)


def test_each_round_raises_the_likelihood_and_the_estimate_gains() -> None:
    """Every second observation is lost: with the hidden steps the law is nearer to the true one than without."""
    rng = np.random.default_rng(5)
    P = rng.dirichlet(0.5 * np.ones(S), size=(S, A))
    stretches, number = HiddenStretches(2, True), np.zeros((1, S, A, S))
    errors = []
    for _ in range(400):
        s, a = [int(rng.integers(S))], rng.integers(A, size=8)
        for t in range(7):
            s.append(int(rng.choice(S, p=P[s[t], a[t]])))
        seen = rng.random(8) < 0.5
        shown = np.where(seen, s, -1)
        stretches.add(Episode(shown, a, np.where(seen, np.arange(8), -1), np.zeros(8), 0))
        for t in np.flatnonzero(seen[:-1] & seen[1:]):
            number[0, s[t], a[t], s[t + 1]] += 1

    def likelihood(hidden: Any) -> float:
        total = number + hidden + 1 / S
        p = total / total.sum(axis=3, keepdims=True)
        prior = (np.log(p) / S).sum() + (number * np.log(p)).sum()
        pairs = sum(n * np.log(p[0, s, a] @ p[0, :, b, s2]) for (_, s, s2, a, b), n in stretches.met.items())
        return float(prior + pairs)

    hidden, before = np.zeros_like(number), -np.inf
    for _ in range(4):
        now = likelihood(hidden)
        assert now >= before - 1e-9
        before, hidden = now, stretches.expected(number, hidden)
    for extra in (0.0, hidden):
        total = number + extra + 1 / S
        errors.append(float(np.abs(total / total.sum(axis=3, keepdims=True) - P).mean()))
    assert errors[1] < 0.95 * errors[0]


@pytest.mark.parametrize("kind", ["bernstein", "hoeffding"])
@pytest.mark.parametrize("channel", ["constant:2", "loss:0.5", "packets:0=0.5,2=0.5"])
def test_a_state_that_cannot_be_improved_is_no_better_than_it_is(kind: Any, channel: str) -> None:
    """A place that pays, and pays only while one stays: with many visits the plan for the process with bonuses is the best one behind a link, too. (A bonus as a share of the added
    state is the same with full information, and behind a link paid for having been there once.)"""
    places, stay = 5, 2
    P = np.zeros((places, 3, places))
    for s, (a, to) in product(range(places), enumerate((-1, 1, 0))):
        P[s, a, min(max(s + to, 0), places - 1)] += 0.8
        P[s, a, s] += 0.2
    r = np.zeros((places, 3))
    r[3] = 1.0
    mdp = ol.TabularMDP(P, r, horizon=8)
    made = optimistic(1e6 * P[None], np.array(mdp.rewards), Optimism(kind, 0.005, 9.0))
    start = np.append(mdp.initial, 0.0)
    more = ol.TabularMDP(made.transitions, made.rewards, horizon=8, initial=start)
    best = ol.solve(ol.ImpairedMDP(mdp, channel), progress=False).value
    hoped = ol.solve(ol.ImpairedMDP(more, channel), progress=False).value
    bonus = 0.005 * 8 * 8 * np.sqrt(9 / 1e6)  # at most, at each of the steps
    assert best - 1e-9 <= hoped <= best + bonus
    assert made.transitions[0, 3, stay, 3] == pytest.approx(1.0)
