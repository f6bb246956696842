"""Measured links: files as people have them, the fit against closed forms, the tests of independence against enumeration."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import oldlight as ol
from oldlight.registry import channel_of
from oldlight.traces import WIFI, Trace, read_trace, save_channel, wifi
from oldlight.traces.fit import delay_laws, one_per_period
from oldlight.traces.independence import runs, shuffled, successive

NAN = float("nan")


def same(found: Any, wanted: Any) -> bool:
    return bool(np.allclose(np.asarray(found, dtype=float), np.asarray(wanted, dtype=float), equal_nan=True, atol=1e-6))


# -- files ------------------------------------------------------------------------------------------------------------

CSV = {
    "plain": ("sent_ms,received_ms\n0,12\n20,\n40,75.5\n", [12, NAN, 35.5], [0, 20, 40]),
    "seconds": ("sent_s,received_s\n1700000000.0,1700000000.012\n1700000000.02,nan\n", [12, NAN], None),
    "semicolons, other names": ("Tx (ms);note;Rx (ms)\n0;a;1\n5;b;lost\n10;c;12\n", [1, NAN, 2], [0, 5, 10]),
    "tabs, microseconds": ("send_us\trecv_us\n0\t1500\n1000\ttimeout\n", [1.5, NAN], [0, 1]),
    "delay": ("sent_ms,delay_ms\n0,3\n10,-\n20,4\n", [3, NAN, 4], [0, 10, 20]),
    "round trip, no sending times": ("rtt_ms\n3\nlost\n4\n", [3, NAN, 4], None),
    "comments, quotes, byte order mark": (
        '\ufeff# my link\n"sent_ms","received_ms"\n"0","7"\n\n# pause\n"9","10"\n',
        [7, 1],
        [0, 9],
    ),
    "not in order": ("sent_ms,received_ms\n20,25\n0,3\n10,\n", [3, NAN, 5], [0, 10, 20]),
    "numbered, with gaps and doubles": (
        "seq,sent_ms,received_ms\n3,0,1\n6,30,35\n4,10,12\n4,10,19\n",
        [1, 2, NAN, 5],
        [0, 10, 20, 30],
    ),
    "short lines": ("sent_ms,received_ms\n0,1\n2\n3,9\n", [1, NAN, 6], [0, 2, 3]),
    "sent, received and delay": ("sent_ms,received_ms,delay_ms\n0,1,99\n2,5,99\n", [1, 3], [0, 2]),
    "nanoseconds of the epoch": (
        "sent_ns,received_ns\n1700000000000000000,1700000000012000000\n1700000000020000000,\n",
        [12, NAN],
        None,
    ),
}


@pytest.mark.parametrize("name", CSV)
def test_csv(name: str, tmp_path: Path) -> None:
    text, delays, sent = CSV[name]
    path = tmp_path / "link.csv"
    path.write_text(text, encoding="utf-8")
    trace = read_trace(path)
    assert np.allclose(trace.delay_ms, delays, equal_nan=True, atol=1e-3)
    if sent is not None:
        assert same(trace.sent_ms, sent)
    assert trace.source == str(path)


LINUX = """PING 1.1.1.1 (1.1.1.1) 56(84) bytes of data.
64 bytes from 1.1.1.1: icmp_seq=2 ttl=57 time=12.3 ms
64 bytes from 1.1.1.1: icmp_seq=3 ttl=57 time=14 ms
no answer yet for icmp_seq=4
From 10.0.0.1 icmp_seq=5 Destination Host Unreachable
64 bytes from 1.1.1.1: icmp_seq=7 ttl=57 time=9.5 ms
64 bytes from 1.1.1.1: icmp_seq=7 ttl=57 time=31.5 ms (DUP!)
64 bytes from 1.1.1.1: icmp_seq=6 ttl=57 time=250 ms

--- 1.1.1.1 ping statistics ---
9 packets transmitted, 4 received, +1 duplicates, +1 errors, 55.5556% packet loss, time 1608ms
rtt min/avg/max/mdev = 9.5/71.4/250/103.1 ms
"""


def test_ping_linux(tmp_path: Path) -> None:
    path = tmp_path / "ping.txt"
    path.write_text(LINUX)
    trace = read_trace(path)
    assert same(trace.delay_ms, [NAN, 12.3, 14, NAN, NAN, 250, 9.5, NAN, NAN])
    assert same(trace.sent_ms, 201.0 * np.arange(9))
    assert trace.notes == ("sent every 201 ms, by the closing line",)


def test_ping_with_times(tmp_path: Path) -> None:
    path = tmp_path / "ping.txt"
    lines = [
        f"[{1700000000 + 0.2 * i + 0.0123:.6f}] 64 bytes from 1.1.1.1: icmp_seq={i + 1} ttl=57 time=12.3 ms"
        for i in range(10)
    ]
    path.write_text("PING 1.1.1.1 (1.1.1.1) 56(84) bytes of data.\n" + "\n".join(lines[:4] + lines[6:]))
    trace = read_trace(path)
    assert same(trace.delay_ms, [12.3] * 4 + [NAN] * 2 + [12.3] * 4)
    assert trace.sent_ms is not None
    assert np.allclose(trace.sent_ms - trace.sent_ms[0], 200.0 * np.arange(10), atol=1e-2)
    assert trace.notes == ()


def test_ping_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "ping.txt"
    path.write_text(
        "PING 1.1.1.1 (1.1.1.1): 56 data bytes\n64 bytes from 1.1.1.1: icmp_seq=0 ttl=57 time=12.301 ms\n"
        "Request timeout for icmp_seq 1\n64 bytes from 1.1.1.1: icmp_seq=2 ttl=57 time=11.0 ms\n"
    )
    trace = read_trace(path)
    assert same(trace.delay_ms, [12.301, NAN, 11.0])
    assert same(trace.sent_ms, [0, 1000, 2000])
    assert "each second" in trace.notes[0] or "every second" in trace.notes[0]
    path.write_text(
        "PING h (h): 56 data bytes\n64 bytes from h: seq=0 ttl=64 time=0.093 ms\n64 bytes from h: seq=2 ttl=64 time=0.5 ms\n"
    )
    assert same(read_trace(path).delay_ms, [0.093, NAN, 0.5])


def test_ping_numbers_begin_again(tmp_path: Path) -> None:
    path = tmp_path / "ping.txt"
    numbers = [65533, 65534, 0, 65535, 2, 3]  # 65535 comes after 0, and 1 never
    path.write_text("\n".join(f"64 bytes from h: icmp_seq={i} ttl=64 time={i % 10 + 1} ms" for i in numbers))
    assert same(read_trace(path).delay_ms, [4, 5, 6, 1, NAN, 3, 4])


REFUSED = {
    "no unit": (
        "sent,received\n0,1\n1,2\n",
        "line 1: column 'sent' has no unit; name it sent_s, sent_ms, sent_us or sent_ns",
    ),
    "other columns": (
        "a,b\n0,1\n",
        "line 1: the columns are ['a', 'b']; expected sent_ms and received_ms, or delay_ms (also _s, _us, _ns)",
    ),
    "two of a kind": (
        "sent_ms,received_ms,rx_ms\n0,1,1\n",
        "line 1: 'rx_ms' is a second column of the kind 'received'",
    ),
    "word": ("sent_ms,received_ms\n0,1\n1,soon\n", "line 3: received is 'soon', expected a number, or nothing if lost"),
    "no sending time": ("sent_ms,received_ms\n0,1\n,5\n", "line 3: sent is '', expected a number"),
    "into the past": (
        "sent_ms,received_ms\n0,1\n9,5\n",
        "line 3: received 4 ms before it was sent; both times must be of one clock",
    ),
    "negative": ("delay_ms\n1\n-2\n", "line 3: a delay of -2, expected a number ≥ 0"),
    "absurd": (
        "delay_ms\n1\n1e300\n",
        "line 3: a delay of 1e+300 ms, more than a year; is the unit right? A lost message has an empty cell",
    ),
    "absurd, by another clock": (
        "sent_s,received_s\n0,0.1\n1,1700000000\n",
        "line 3: a delay of 1.7e+12 ms, more than a year; is the unit right? A lost message has an empty cell",
    ),
    "too many cells": ("delay_ms\n1\n2,3\n", "line 3: 2 cells, but the first line names 1 columns"),
    "half a number": (
        "seq,delay_ms\n1,1\n1.5,1\n",
        "line 3: seq is 1.5, expected a whole number ≥ 0, of at most 15 digits",
    ),
    "numbers far apart": (
        "seq,delay_ms\n1,1\n10000000,1\n",
        "messages are numbered 1..10000000, but only 2 of them are there",
    ),
    "one message": ("delay_ms\n1\n", "1 messages; expected at least two"),
    "empty": ("\n", "empty; expected a line of column names, e.g. sent_ms,received_ms"),
    "nothing received": ("delay_ms\nlost\nlost\n", "of 2 messages none was received; there is no delay to measure"),
    "short ping": (
        "PING h\n64 bytes from h: icmp_seq=1 ttl=1 time=1 ms\n",
        "ping's output with 1 messages; expected at least two lines with icmp_seq=",
    ),
    "absurd ping": (
        f"PING h\n64 bytes from h: icmp_seq=1 ttl=1 time=1 ms\n64 bytes from h: icmp_seq=2 ttl=1 time={'9' * 30} ms\n",
        "line 3: a delay of 1e+30 ms, more than a year; is the unit right? A lost message has an empty cell",
    ),
    "no number": (
        "PING h\n64 bytes from h: icmp_seq=1 ttl=1 time=1.2.3 ms\n",
        "line 2: time='1.2.3', expected a number of milliseconds",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_files_that_cannot_be_read_are_named_with_their_line(name: str, tmp_path: Path) -> None:
    text, says = REFUSED[name]
    path = tmp_path / "link.csv"
    path.write_text(text)
    with pytest.raises(ValueError) as refused:
        read_trace(path)
    assert str(refused.value).removeprefix(str(path)).lstrip(":, ") == says


def test_other_refusals(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.csv: no such file"):
        read_trace(tmp_path / "nowhere.csv")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ol.UnreadableFile, match="not a file of text in UTF-8"):
        read_trace(tmp_path / "bytes")
    for given, says in [
        ({"delay_ms": [1.0]}, "expected at least two messages"),
        ({"delay_ms": [1.0, -1.0]}, r"delay_ms\[1\] is -1.0, expected a number ≥ 0, or NaN"),
        ({"delay_ms": [1.0, 1e300]}, r"delay_ms\[1\] is 1e\+300, expected .* at most 3.156e\+10, a year"),
        ({"delay_ms": [float("inf"), 1.0]}, r"delay_ms\[0\] is inf, expected"),
        ({"delay_ms": [NAN, NAN]}, "no message was received"),
        ({"delay_ms": [1, 2], "sent_ms": [0, 1, 2]}, "sent_ms has 3 entries, expected one per message: 2"),
        ({"delay_ms": [1, 2], "sent_ms": [5, 1]}, r"sent_ms\[1\] is before sent_ms\[0\]"),
    ]:
        with pytest.raises(ValueError, match=says):
            Trace(**given)
    with pytest.raises(ValueError, match="does not say when messages were sent; give the control period"):
        Trace([1, 2, 3]).fit()
    with pytest.raises(ValueError, match="has 3 messages at one per 20 ms, fewer than an episode of 10 ticks"):
        Trace([1, 2, 3]).fit(20)
    with pytest.raises(ValueError, match=r"at one message per 900 ms there is only one; .* a shorter period_ms"):
        Trace([1, 2, 3], sent_ms=[0, 20, 40]).fit(900, horizon=1)
    with pytest.raises(ValueError, match="period_ms is 0, expected a number > 0"):
        Trace([1, 2, 3]).fit(0)
    with pytest.raises(ValueError, match="at one message per 20 ms none was received"):
        Trace([NAN, 1, NAN, NAN], sent_ms=[0, 5, 20, 25]).fit(20, horizon=2)
    with pytest.raises(ValueError, match="lags is 5"):
        Trace([1, 2, 3]).autocorrelation(5)


# -- the Wi-Fi law ----------------------------------------------------------------------------------------------------


def test_the_wifi_law() -> None:
    """The numbers of the published table, at every step of an episode."""
    law = wifi().law(20, 1, 1)
    assert law.first.tolist() == pytest.approx([0.0, 0.3082, 0.5927, 0.0829, 0.0075, 0.0031, 0.0056], abs=1e-15)
    assert sum(WIFI.values()) == pytest.approx(1.0, abs=1e-12)
    assert law.max_delay == 6
    laws = delay_laws(law)
    assert np.allclose(laws[:, :7], law.first, atol=1e-15)
    assert float(laws[9] @ np.arange(laws.shape[1])) == pytest.approx(1.8214, abs=1e-9)
    assert channel_of("wifi") == wifi()
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), wifi())
    by_delay = [ol.solve(ol.ImpairedMDP(problem.mdp, ol.ConstantDelay(d))).value for d in WIFI]
    best = ol.solve(problem, depth=3)
    assert (
        best.lower <= float(np.dot(by_delay, list(WIFI.values()))) + 1e-9
    )  # who knew the delay beforehand could do so well


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
            for period in (1e-300, 1e-3, 20.0):
                fit = Trace(delays, sent_ms=20 * np.arange(4)).fit(period, horizon=1)
                assert np.isfinite(fit.episodes).all()
                assert "nan" not in str(fit)


def test_a_lost_beginning_is_as_late_as_the_first_received() -> None:
    assert Trace([NAN, NAN, 45, NAN, 5]).fit(20, horizon=4).late.tolist() == [3, 3, 3, 3, 1]


def test_one_message_per_period() -> None:
    rng = np.random.default_rng(0)
    assert one_per_period(5.0 * np.arange(20), 20.0).tolist() == [0, 4, 8, 12, 16]
    jitter = 20.0 * np.arange(200) + rng.uniform(-3, 3, 200)
    assert one_per_period(jitter, 20.0).tolist() == list(range(200))
    assert one_per_period(np.arange(5) * 1000.0, 20.0).tolist() == list(range(5))
    assert one_per_period(np.array([0.0, 5, 10, 15, 500, 505, 510, 515, 520]), 10.0).tolist() == [0, 2, 4, 6, 8]
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


# -- channels ---------------------------------------------------------------------------------------------------------


def test_a_deadline() -> None:
    delays = [5, 25, 10, NAN, 45, 12, 70, 3, 39, 41]
    fit = Trace(delays).fit(20, horizon=4)
    assert fit.with_deadline(4) == ol.Lossy(ol.ConstantDelay(4), rate=0.1).with_period(20)
    assert fit.with_deadline(2) == ol.Lossy(ol.ConstantDelay(2), rate=0.4).with_period(20)
    assert fit.with_deadline(0) == ol.Loss(rate=1.0).with_period(20)
    assert Trace(np.array(delays)[:3]).fit(20, horizon=2).with_deadline(2) == ol.ConstantDelay(2).with_period(20)
    assert fit.with_deadline(2).period_ms == 20
    with pytest.raises(ValueError, match="d is -1"):
        fit.with_deadline(-1)
    short = Trace(delays).fit(20, horizon=2)  # a deadline may be longer than the fit's episodes
    for d in range(6):
        assert short.with_deadline(d) == fit.with_deadline(d)
        assert short.lost_by(d) == np.mean([not x <= 20 * d for x in delays])
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), fit.with_deadline(2))
    assert ol.solve(problem).exact


def test_channel_files_and_words(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    delays = rng.gamma(2.0, 12.0, 800)
    delays[rng.random(800) < 0.05] = NAN
    path = tmp_path / "link.csv"
    rows = [f"{20 * i},{'' if np.isnan(x) else 20 * i + x}" for i, x in enumerate(delays)]
    path.write_text("sent_ms,received_ms\n" + "\n".join(rows))
    trace = read_trace(path)
    fit = trace.fit(25)
    target = fit.save(tmp_path / "link.json")
    assert channel_of(f"file:{target}") == fit.channel() == trace.channel(25)
    assert channel_of(f"trace:{path}@25") == fit.channel()
    assert channel_of(f"trace:{path}") == trace.channel(20)
    assert channel_of(f"trace:{path}@25").delay.period_ms == 25  # type: ignore[union-attr]
    by_step = fit.save(tmp_path / "by_step.json", by_step=True)
    assert channel_of(f"file:{by_step}") == trace.channel(25, horizon=10)
    save_channel(tmp_path / "deadline.json", fit.with_deadline(3))
    assert channel_of(f"file:{tmp_path / 'deadline.json'}") == fit.with_deadline(3)
    data = json.loads(json.dumps(fit.to_dict()))
    assert channel_of(data["channel"]) == fit.channel()
    assert data["tests"][0]["p_value"] == fit.tests[0].p_value
    mdp = ol.instances.sensing_chain(0.8)
    assert ol.simulate(ol.ImpairedMDP(mdp, fit.channel()), ol.FunctionPolicy(lambda info: 0, 5), 100, seed=0).mean > 0


# -- what is shown ----------------------------------------------------------------------------------------------------


def test_statistics_of_a_trace() -> None:
    rng, n = np.random.default_rng(5), 40_000
    x = np.zeros(n)
    for i in range(1, n):
        x[i] = 0.7 * x[i - 1] + rng.normal()
    delays = 100 + x
    trace = Trace(delays, sent_ms=np.cumsum(rng.uniform(9, 11, n)))
    assert trace.mean_ms == pytest.approx(delays.mean())
    assert same(trace.quantiles_ms([0.1, 0.5]), np.quantile(delays, [0.1, 0.5]))
    assert trace.autocorrelation(3) == pytest.approx([1.0, 0.7, 0.49, 0.343], abs=4 * np.sqrt(3 / n))
    assert trace.interval_ms == pytest.approx(10.0, abs=0.05)
    holes = delays.copy()
    holes[rng.random(n) < 0.3] = NAN
    assert Trace(holes).autocorrelation(2) == pytest.approx([1.0, 0.7, 0.49], abs=6 * np.sqrt(3 / n))
    runs_of = Trace([NAN, 1, NAN, NAN, 1, 1, NAN]).loss_runs
    assert runs_of.tolist() == [1, 2, 1]
    assert Trace([1.0, 1.0]).autocorrelation(1).tolist() == [0.0, 0.0]


def test_it_reads_well() -> None:
    trace = Trace([5, 25, 10, NAN, 45, 12], sent_ms=20 * np.arange(6), source="link.csv")
    assert str(trace).splitlines()[0] == "link.csv: 6 messages sent every 20 ms, 16.67% lost"
    text = str(trace.fit(horizon=3))
    assert "at 20 ms a tick, in episodes of 3 ticks (6 ticks measured):" in text
    assert "first delay d_0      {1: 0.7500, 2: 0.2500}" in text
    assert "lost                 16.67%, one by one" in text
    assert "runs of losses         p = 1 " in text
    assert "channel: Lossy(" in text
    fit = trace.fit(horizon=3)
    assert fit.text() == str(fit)
    first, last = fit.text(deadline=1).splitlines()[-2:]
    assert first == "with a deadline of 1 ticks (20 ms): 50.00% lost or later"
    assert last == f"channel: {fit.with_deadline(1)!r}"
    data = fit.to_dict(deadline=1)
    assert (data["deadline"], data["lost_by_deadline"]) == (1, 0.5)
    assert channel_of(data["channel"]) == fit.with_deadline(1)
    assert fit.to_dict()["deadline"] is None


def test_pictures(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    rng = np.random.default_rng(0)
    delays = rng.gamma(2.0, 12.0, 300)
    delays[::7] = NAN
    trace = Trace(delays, sent_ms=20 * np.arange(300), source="link.csv")
    ax = Figure().subplots()
    assert trace.plot(ax) is ax
    assert [len(line.get_xdata()) for line in ax.get_lines()] == [300, int(trace.lost.sum())]
    figure = trace.fit(20).figure()
    assert len(figure.axes) == 4
    figure.savefig(tmp_path / "trace.png")
    assert (tmp_path / "trace.png").stat().st_size > 10_000
    assert len(Trace([1.0, 1.0, 1.0]).fit(20, horizon=1).figure().axes) == 4


def test_the_page_runs_and_shows_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "traces.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)
    printed = capsys.readouterr().out
    shown = [line[4:] for line in page.splitlines() if line.startswith("    ")]
    first = shown.index("link.csv: 4,000 messages sent every 20 ms, 2.73% lost")
    for line in shown[first : first + 15]:
        assert line in printed.splitlines() or line in block_lines(page)
    for value in ("2.92", "2.69", "2.24"):
        assert f" {value}" in printed


def block_lines(page: str) -> set[str]:
    """Lines of the page's own code, which are indented too."""
    return {line[4:] for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) for line in block.splitlines()}
