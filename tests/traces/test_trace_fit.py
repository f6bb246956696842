"""Measured links: the fit against closed forms, the tests of independence against enumeration."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats

import oldlight as ol
from oldlight.traces import WIFI, Trace
from oldlight.traces.fit import delay_laws, one_per_period
from oldlight.traces.independence import runs, shuffled, successive
from trace_cases import NAN

# -- from messages to ticks -------------------------------------------------------------------------------------------


def test_a_fit_by_hand() -> None:
    """Delays 5, 25, 10, lost, 45, 12 ms at 20 ms a tick are r = 1, 2, 1, (1), 3, 1; episodes of three ticks."""
    fit = Trace([5, 25, 10, NAN, 45, 12], sent_ms=20 * np.arange(6)).fit(horizon=3)
    assert fit.period_ms == 20
    assert fit.late.tolist() == [1, 2, 1, 1, 3, 1]
    assert fit.episodes.tolist() == [[1, 2, 2], [2, 2, 2], [1, 1, 3], [1, 3, 3]]
    assert fit.first.tolist() == [0, 3 / 4, 1 / 4, 0]
    assert fit.by_step.tolist() == [[2 / 4, 1 / 4, 1 / 4, 0], [3 / 4, 0, 1 / 4, 0], [1, 0, 0, 0]]
    assert fit.interarrival.tolist() == [5 / 8, 1 / 8, 2 / 8, 0]
    assert (fit.longest, fit.loss_rate, fit.bursty) == (3, 1 / 6, False)
    channel = fit.channel(by_step=True)
    assert isinstance(channel, ol.Lossy)
    assert channel.loss == ol.Loss(rate=1 / 6).with_period(20)
    assert channel.period_ms == channel.delay.period_ms == 20
    law = channel.delay.law(3, 1, 1)
    assert law.interarrival[:, 0, 0].tolist() == fit.by_step.tolist()
    assert law.longest_delay == 3
    assert fit.channel().delay.law(3, 1, 1).interarrival.reshape(-1).tolist() == [5 / 8, 1 / 8, 2 / 8]  # type: ignore[union-attr]


def test_the_rounding_is_that_of_the_channels() -> None:
    for delay, ticks in [(0.0, 0), (0.1, 1), (20.0, 1), (20.1, 2), (45.0, 3)]:
        fit = Trace([delay] * 12).fit(20, horizon=4)
        assert fit.late[0] == ticks == ol.ConstantDelay.from_ms(delay, period_ms=20).d
        assert fit.channel() == ol.ConstantDelay(ticks).with_period(20)
        assert fit.independent
    assert Trace([1000.0] * 12).fit(20, horizon=4).channel() == ol.ConstantDelay(4).with_period(
        20
    )  # what exceeds H is H


def test_no_number_is_too_large_or_too_small() -> None:
    with np.errstate(all="raise"):
        for delays in ([0.0, 3e10, 5.0, 1e-300], [3e10] * 4):
            for period in (1e-3, 20.0):
                fit = Trace(delays, sent_ms=20 * np.arange(4)).fit(period, horizon=1)
                assert np.isfinite(fit.episodes).all()
                assert "nan" not in str(fit)
                assert Trace(delays, sent_ms=20 * np.arange(4)).fit(period).longest == 10_000
        with pytest.raises(
            ValueError, match="at 1e-300 ms a tick there are 6e\\+301 ticks, at most 6,250,000 are looked at"
        ):
            Trace([1.0] * 4, sent_ms=20 * np.arange(4)).fit(1e-300)


def test_a_lost_beginning_is_as_late_as_the_first_received() -> None:
    assert Trace([NAN, NAN, 45, NAN, 5]).fit(20, horizon=4).late.tolist() == [3, 3, 3, 3, 1]


def test_one_message_per_period() -> None:
    rng = np.random.default_rng(0)
    assert one_per_period(5.0 * np.arange(20), 20.0, 5.0).tolist() == [0, 4, 8, 12, 16]
    jitter = 20.0 * np.arange(200) + rng.uniform(-3, 3, 200)
    assert one_per_period(jitter, 20.0, 20.0).tolist() == list(range(200))
    assert one_per_period(np.arange(5) * 1000.0, 20.0, 1000.0).tolist() == list(range(5))
    assert one_per_period(np.array([0.0, 5, 10, 15, 500, 505, 510, 515, 520]), 10.0, 5.0).tolist() == [0, 2, 4, 6, 8]
    slow = Trace([5.0] * 20, sent_ms=1000 * np.arange(20)).fit(20)
    assert "was not measured" in slow.notes[0]


def running_maximum(f: Any, H: int) -> tuple[Any, Any]:
    """Independent delays with law f, put in order: the laws of d_i and of Δ_i, exactly."""
    F, K = np.cumsum(f), len(f)
    laws = [np.diff(F ** (i + 1), prepend=0.0) for i in range(H)]
    waits = np.zeros((H - 1, K))
    for i in range(H - 1):
        for k in range(1, K):
            waits[i, k] = sum(laws[i][d] * f[d + k] for d in range(K - k))
        waits[i, 0] = 1 - waits[i].sum()
    return np.array(laws), waits


def test_independent_delays_put_in_order_against_the_closed_form() -> None:
    rng, n, H = np.random.default_rng(3), 120_000, 6
    f = np.array([0.0, *WIFI.values()])
    fit = Trace(20.0 * rng.choice(7, p=f, size=n)).fit(20, horizon=H)
    laws, waits = running_maximum(f, H)
    error = 5 * np.sqrt(
        H / n
    )  # five standard errors, if the overlapping episodes told no more than the n/H that do not
    assert np.abs(fit.first - laws[0]).max() < error
    assert np.abs(fit.by_step[:-1] - waits).max() < error
    assert np.abs(fit.interarrival - waits.mean(axis=0)).max() < error
    model = delay_laws(fit.delay(by_step=True).law(H, 1, 1))
    exact = np.zeros((H, model.shape[1]))
    exact[0, :7] = f
    for i in range(H - 1):
        for d, k in itertools.product(range(7), range(7)):
            exact[i + 1, min(d + k, 6)] += exact[i, d] * waits[i, k]
    assert np.abs(model - exact).max() < 2 * error
    distance = 0.5 * np.abs(exact[:, :7] - laws).sum(axis=1).max()
    assert fit.distance == pytest.approx(distance, abs=3 * error)
    assert distance > 0.1  # in order is not independent, and the fit says so
    test = fit.tests[0]
    assert test.p_value < 1e-20
    assert test.effect < -0.1
    assert fit.tests[2].p_value > 1e-3  # though the messages themselves are
    assert not fit.independent


def test_delay_laws_against_the_simulator() -> None:
    channel = ol.StochasticDelay([0.5, 0.3, 0.2], first=[0.6, 0.4]).capped(3)
    mdp = ol.TabularMDP(np.ones((1, 1, 1)), np.ones((1, 1)), horizon=6)
    played = ol.simulate(
        ol.ImpairedMDP(mdp, channel), ol.FunctionPolicy(lambda info: 0, 1), 40_000, seed=1, record=True
    )
    assert played.arrivals is not None
    late = played.arrivals - np.arange(6)
    laws = delay_laws(channel.law(6, 1, 1))
    for i in range(6):
        counts = np.bincount(late[:, i], minlength=laws.shape[1])
        possible = laws[i] > 0
        assert stats.chisquare(counts[possible], 40_000 * laws[i][possible]).pvalue > 1e-4


# -- independence -----------------------------------------------------------------------------------------------------


def test_p_values_are_uniform_where_the_model_holds() -> None:
    """Episodes whose Δ really are independent: p-values of both tests of waits, and of successive messages, are uniform."""
    found = []
    for seed in range(300):
        rng = np.random.default_rng([seed, 1])
        waits = rng.choice(2, p=[0.7, 0.3], size=(120, 4))  # so that no delay exceeds the episode
        d = np.concatenate([np.ones((120, 1), dtype=int), waits], axis=1).cumsum(axis=1)
        tests = Trace(20.0 * d.reshape(-1)).fit(20, horizon=5).tests
        assert [test.name for test in tests] == ["delay and next wait", "wait and next wait", "message and next"]
        found.append([tests[0].p_value, tests[1].p_value, successive(rng.exponential(size=200)).p_value])
    for column in np.array(found).T:
        assert stats.kstest(column, "uniform").pvalue > 1e-3


def test_the_variance_is_that_of_shuffling() -> None:
    """Against every permutation of a small case."""
    x, y = np.array([0.0, 1.0, 5.0, 2.0]), np.array([1.0, 0.0, 2.0, 2.5])
    sums = [float((x - x.mean()) @ (np.array(order) - y.mean())) for order in itertools.permutations(y)]
    assert np.mean(sums) == pytest.approx(0.0, abs=1e-12)
    test = shuffled("", "", x[:, None], y[:, None])
    z = float((x - x.mean()) @ (y - y.mean())) / np.std(sums)
    assert test.p_value == pytest.approx(stats.chi2.sf(z**2, 1), rel=1e-9)
    assert test.effect == pytest.approx(np.corrcoef(x, y)[0, 1], rel=1e-9)


def test_ranks_share_ties_and_skip_losses() -> None:
    delays = np.array([3.0, 1.0, NAN, 2.0, 2.0, 9.0, NAN, 4.0, 4.0])
    ranks = stats.rankdata(delays[~np.isnan(delays)])
    full = np.full(9, NAN)
    full[~np.isnan(delays)] = ranks
    pairs = np.array([(a, b) for a, b in itertools.pairwise(full) if not np.isnan(a + b)])
    assert successive(delays).effect == pytest.approx(np.corrcoef(pairs.T)[0, 1], rel=1e-9)


@pytest.mark.parametrize(("n", "bad"), [(6, 1), (8, 3), (9, 4), (10, 5), (7, 6), (5, 5)])
def test_runs_of_losses_against_every_order(n: int, bad: int) -> None:
    orders = [np.isin(np.arange(n), places) for places in itertools.combinations(range(n), bad)]
    count = np.array([int((o[1:] & ~o[:-1]).sum() + o[0]) for o in orders])
    for order, runs_of in zip(orders, count, strict=True):
        assert runs(order).p_value == pytest.approx(float((count <= runs_of).mean()), rel=1e-9)


def test_bursts_are_offered_where_runs_are_longer() -> None:
    rng, n = np.random.default_rng(0), 20_000
    lost = ol.BurstyLoss(0.02, 0.4).lost(rng, n, 1)[:, 0]
    delays = np.where(lost, NAN, 15.0)
    fit = Trace(delays).fit(20)
    assert fit.bursty
    loss = fit.channel().loss  # type: ignore[union-attr]
    assert isinstance(loss, ol.BurstyLoss)
    assert loss.to_bad == pytest.approx(0.02, abs=4 * np.sqrt(0.02 / n))
    assert loss.to_good == pytest.approx(0.4, abs=4 * np.sqrt(0.24 / lost.sum()))
    assert loss.bad == pytest.approx(fit.loss_rate, abs=2 / n)
    assert (loss.seen_good, loss.seen_bad) == (1.0, 0.0)
    assert fit.channel(bursty=False) == ol.Lossy(ol.ConstantDelay(1), rate=fit.loss_rate).with_period(fit.period_ms)
    assert Trace(delays).loss_runs.mean() == pytest.approx(1 / loss.to_good, rel=0.01)
    one_by_one = Trace(np.where(rng.random(n) < 0.05, NAN, 15.0)).fit(20)
    assert not one_by_one.bursty
    assert isinstance(one_by_one.channel().loss, ol.Loss)  # type: ignore[union-attr]
    assert isinstance(one_by_one.channel(bursty=True).loss, ol.BurstyLoss)  # type: ignore[union-attr]
    rejected = [
        Trace(np.where(np.random.default_rng(i).random(500) < 0.1, NAN, 1.0)).fit(20).bursty for i in range(400)
    ]
    assert np.mean(rejected) <= 0.01 + 3 * np.sqrt(0.01 / 400)  # the level is what it says
    assert isinstance(Trace(np.where(lost, NAN, 0.0)).fit(20).channel(), ol.BurstyLoss)  # no delay: loss alone
