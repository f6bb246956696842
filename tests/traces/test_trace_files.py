"""Measured links: files as people have them, and files that cannot be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import oldlight as ol
from oldlight.traces import Trace, read_trace
from oldlight.traces.read_table import FORMS
from trace_cases import NAN, same

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
        "column 'sent' has no unit; name it sent_s, sent_ms, sent_us or sent_ns",
    ),
    "other columns": (
        "a,b\n0,1\n",
        "line 1: the columns are ['a', 'b']; expected sent_ms and received_ms, or delay_ms (also _s, _us, _ns). The file begins:\n"
        f"    a,b\n    0,1\n{FORMS}",
    ),
    "two of a kind": (
        "sent_ms,received_ms,rx_ms\n0,1,1\n",
        "line 1: 'rx_ms' is a second column of the kind 'received'",
    ),
    "word": ("sent_ms,received_ms\n0,1\n1,soon\n", "line 3: received is 'soon', expected a number, or nothing if lost"),
    "no sending time": ("sent_ms,received_ms\n0,1\n,5\n", "line 3: sent is '', expected a number"),
    "negative": ("delay_ms\n1\n-2\n", "line 3: a delay of -2, expected a number ≥ 0"),
    "absurd": (
        "delay_ms\n1\n1e300\n",
        "line 3: a delay of 1e+300 ms, more than a year; is the unit right? A lost message has an empty cell",
    ),
    "absurd, by another clock": (
        "sent_s,received_s\n0,0.1\n1,1700000000\n",
        "line 3: a delay of 1.7e+12 ms, more than a year; is the unit right? A lost message has an empty cell",
    ),
    "too many cells": ("sent_ms,delay_ms\n0,1\n2,3,4\n", "line 3: 3 cells, but the first line names 2 columns"),
    "too few cells": (
        "sent_ms delay_ms\n0 1\n2\n",
        "line 3: 1 cells, expected 2; write nan where nothing was received",
    ),
    "half a number": (
        "seq,delay_ms\n1,1\n1.5,1\n",
        "line 3: seq is 1.5, expected a whole number ≥ 0, of at most 15 digits",
    ),
    "numbers far apart": (
        "seq,delay_ms\n1,1\n10000000,1\n",
        "messages are numbered 1..10000000, but only 2 of them are there",
    ),
    "one message": ("delay_ms\n1\n", "1 message; expected at least two"),
    "empty": ("\n", "empty; expected a line of column names, e.g. sent_ms,received_ms"),
    "short ping": (
        "PING h\n64 bytes from h: icmp_seq=1 ttl=1 time=1 ms\n",
        "ping's output with 1 message; expected at least two lines with icmp_seq=",
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
        (
            {"delay_ms": [1, 2], "session": [0, 2]},
            r"session is \[0, 2\], expected a number 0, 1, .. for each of 2 messages",
        ),
        ({"delay_ms": [1, 2], "sent_ms": [0, 1, 2]}, "sent_ms has 3 entries, expected one per message: 2"),
        ({"delay_ms": [1, 2], "sent_ms": [5, 1]}, r"sent_ms\[1\] is before sent_ms\[0\]"),
    ]:
        with pytest.raises(ValueError, match=says):
            Trace(**given)
    with pytest.raises(ValueError, match="does not say when messages were sent; give the control period"):
        Trace([1, 2, 3]).fit()
    with pytest.raises(ValueError, match="has 3 messages at one per 20 ms, fewer than an episode of 10 ticks"):
        Trace([1, 2, 3]).fit(20, horizon=10)
    with pytest.raises(ValueError, match=r"at one message per 900 ms there is only one; .* a shorter period_ms"):
        Trace([1, 2, 3], sent_ms=[0, 20, 40]).fit(900, horizon=1)
    with pytest.raises(ValueError, match="period_ms is 0, expected a number > 0"):
        Trace([1, 2, 3]).fit(0)
    with pytest.raises(ValueError, match="at one message per 20 ms none was received"):
        Trace([NAN, 1, NAN, NAN], sent_ms=[0, 5, 20, 25]).fit(20, horizon=2)
    with pytest.raises(ValueError, match="lags is 5"):
        Trace([1, 2, 3]).autocorrelation(5)
