"""The optimism of `default()` by hand, and the process on which the delay matters."""

from __future__ import annotations

import delay_slope as slope
import numpy as np
import pytest

import oldlight as ol
from oldlight.learners.optimistic_model import towards_best


def test_a_sharp_draw_is_the_counts_with_visits_to_the_best_state() -> None:
    """Written out: (N + n·e_best)/(|N| + n), e_best where nothing was tried, best by the values of the next step."""
    rng = np.random.default_rng(1)
    H, S, A, n = 4, 3, 2, 0.5
    number = rng.integers(0, 4, size=(1, S, A, S)).astype(float)
    number[0, 1, 1] = 0.0
    rewards = rng.random((H, S, A))
    made = towards_best(number, rewards, n, 1e14, rng).transitions
    V = [0.0] * S
    for t in range(H - 1, -1, -1):
        best = max(range(S), key=lambda s: V[s])
        Q = np.zeros((S, A))
        for s in range(S):
            for a in range(A):
                row = number[0, s, a].copy()
                row[best] += n
                row = row / row.sum() if number[0, s, a].sum() else np.eye(S)[best]
                assert made[t, s, a] == pytest.approx(row, abs=1e-5)  # √(4/1e14), the draw's own width, twenty times
                Q[s, a] = rewards[t, s, a] + row @ V
        V = Q.max(axis=1).tolist()


def test_draws_have_the_posterior_s_mean_and_a_variance_smaller_by_the_sharpness() -> None:
    """Without pseudo-visits a row is Dirichlet with parameters κN: mean N/|N|, variance p(1 − p)/(κ|N| + 1)."""
    number = np.array([3.0, 1.0, 2.0])[None, None, None].repeat(3, axis=1)
    rng, kappa, K = np.random.default_rng(2), 3.0, 4000
    draws = np.array(
        [towards_best(number, np.ones((1, 3, 1)), 1e-12, kappa, rng).transitions[0, 0, 0] for _ in range(K)]
    )
    p = number[0, 0, 0] / 6.0
    variance = p * (1 - p) / (kappa * 6 + 1)
    assert draws.mean(axis=0) == pytest.approx(p, abs=5 * np.sqrt(variance.max() / K))
    assert draws.var(axis=0) == pytest.approx(variance, rel=5 * np.sqrt(3 / K))


def test_all_pairs_are_split_at_once_when_their_evidence_together_is_enough() -> None:
    from oldlight.learners.base import Setting
    from oldlight.learners.link_counts import LinkCounts, log_evidence

    H, S, A = 2, 2, 2
    P = np.stack([np.eye(2)[[[0, 1], [0, 1]]], np.eye(2)[[[1, 0], [1, 0]]]])
    problem = ol.ImpairedMDP(ol.TabularMDP(P, np.ones((S, A)), horizon=H), "none")
    counts = LinkCounts(Setting.of(problem, 10, 0.1, None), "auto")
    for times in range(1, 20):
        counts.number = times * P
        evidence = log_evidence(counts.number)
        if counts.test(0.1):
            break
    assert evidence.max() <= np.log(2 * S * A / 0.1)  # no pair would have been split by itself
    assert evidence.sum() > np.log(2 / 0.1)
    assert counts.split.all()


@pytest.mark.parametrize(("pairs", "delay"), [(1, 1), (2, 1), (2, 2), (3, 2), (2, 4)])
def test_blind_choice_is_worth_what_the_text_says_behind_each_delay(pairs: int, delay: int) -> None:
    """Pairs that are seen in time are won; of the others the likelier successor."""
    eps, H = 0.3, 12
    process = slope.blind_choice(pairs, eps, np.random.default_rng(pairs).choice((-1, 1), size=pairs), H)
    blind = min(delay, pairs)
    expected = H // 2 * (blind * (1 + eps) / 2 + pairs - blind) / pairs
    assert ol.solve(ol.ImpairedMDP(process, ol.ConstantDelay(delay))).value == pytest.approx(expected, abs=1e-12)


def test_regret_by_counts_is_all_mistakes_where_nothing_can_be_told_apart() -> None:
    """ε = 1: the first visit of a pair tells all; before it either action is right half of the time, after it every time."""
    found = np.mean([slope.by_counts(2, 2, 1.0, 200, np.random.default_rng(s)) for s in range(400)])
    # a pair's first visit is at the k-th episode with probability ½^k: 2 episodes before it is known, each losing half of H/2 · 1/2
    expected = 2 * 2 * 0.5 * 0.5 * (slope.HORIZON // 2)
    assert found == pytest.approx(expected, rel=5 * np.sqrt(2 / 800))
