"""Recordings as people have them: every format, and every way in which a bad link could be read as a good one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import oldlight as ol
from oldlight.traces import read_trace
from trace_cases import NAN, same

WINDOWS = """
Pinging example.org [93.184.216.34] with 32 bytes of data:
Reply from 93.184.216.34: bytes=32 time=12ms TTL=57
Request timed out.
Reply from 93.184.216.34: bytes=32 time<1ms TTL=57
Reply from 10.0.0.1: Destination host unreachable.
Reply from 93.184.216.34: bytes=32 time=2000ms TTL=57

Ping statistics for 93.184.216.34:
    Packets: Sent = 6, Received = 3, Lost = 3 (50% loss),
"""
FPING = """[1700000000.010] a : [0], 84 bytes, 10.0 ms (10.0 avg, 0% loss)
[1700000000.020] b : [0], 84 bytes, 20.0 ms (20.0 avg, 0% loss)
a : [1], timed out (10.0 avg, 50% loss)
[1700000001.020] b : [1], 84 bytes, 20.0 ms (20.0 avg, 0% loss)
[1700000002.030] a : [2], 84 bytes, 30.0 ms (20.0 avg, 33% loss)
"""
GERMAN = """
Ping wird ausgeführt für 10.0.0.1 mit 32 Bytes Daten:
Antwort von 10.0.0.1: Bytes=32 Zeit=12ms TTL=57
Zeitüberschreitung der Anforderung.
Antwort von 10.0.0.1: Bytes=32 Zeit<1ms TTL=57
Antwort von 10.0.0.7: Zielhost nicht erreichbar.

Ping-Statistik für 10.0.0.1:
    Pakete: Gesendet = 4, Empfangen = 2, Verloren = 2
    (50% Verlust),
Ca. Zeitangaben in Millisek.:
    Minimum = 0ms, Maximum = 12ms, Mittelwert = 6ms
"""
FRENCH = """
Envoi d'une requête 'Ping'  10.0.0.1 avec 32 octets de données :
Délai d'attente de la demande dépassé.
Réponse de 10.0.0.1 : octets=32 temps=12 ms TTL=57
Délai d'attente de la demande dépassé.

Statistiques Ping pour 10.0.0.1:
    Paquets : envoyés = 3, reçus = 1, perdus = 2 (perte 66%),
"""
IPV6 = """
Pinging example.org [2606:2800:220:1::1] with 32 bytes of data:
Reply from 2606:2800:220:1::1: time=12ms
Request timed out.
Reply from 2606:2800:220:1::1: time<1ms
"""
LINUX_GERMAN = """PING h (10.0.0.9) 56(84) Bytes an Daten.
64 Bytes von 10.0.0.9: icmp_seq=1 ttl=64 Zeit=12,5 ms
64 Bytes von 10.0.0.9: icmp_seq=3 ttl=64 Zeit=9,0 ms

--- h ping-Statistik ---
4 Pakete übertragen, 2 empfangen, 50% Paketverlust, Zeit 60ms
rtt min/avg/max/mdev = 9,0/10,7/12,5/1,7 ms
"""
TEXTS = {  # name: (text, delays, sending times since the first or None)
    "Windows": (WINDOWS, [12, NAN, 1, NAN, 2000, NAN], [0, 1000, 5000, 6000, 10000, 12000]),
    "Windows, in German": (GERMAN, [12, NAN, 1, NAN], [0, 1000, 5000, 6000]),
    "Windows, in French": (FRENCH, [NAN, 12, NAN], [0, 4000, 5000]),
    "Windows, IPv6": (IPV6, [12, NAN, 1], [0, 1000, 5000]),
    "Linux, in German": (LINUX_GERMAN, [12.5, NAN, 9, NAN], [0, 20, 40, 60]),
    "fping -C": ("host : 12.3 - 9.5\n", [12.3, NAN, 9.5], [0, 1000, 2000]),
    "blanks, delay(ms) in the header": (
        "pub_time(ms) sub_time(ms) delay(ms) v(m/s)\n100 112 12 3.5 \n150 155 5 3.5 \n",
        [12, 5],
        [0, 50],
    ),
    "blanks, a unit apart": ("sent (ms)  delay (ms)\n0 1\n20 nan\n", [1, NAN], [0, 20]),
    "no names, one column": ("12\nlost\n9.5\n", [12, NAN, 9.5], None),
    "no names, times of this century": ("1700000000.0 1700000000.012 x\n1700000000.05 1700000000.055 y\n", [12, 5], [0, 50]),
    "dates": (
        "sent,received\n2024-05-01T12:00:00.000Z,2024-05-01T12:00:00.012Z\n2024-05-01T12:00:00.050Z,\n",
        [12, NAN],
        [0, 50],
    ),
    "bracketed times": ("sent,rtt_ms\n[1700000000.0],7\n[1700000000.1],8\n", [7, 8], [0, 100]),
    "bracketed dates between blanks": (
        "sent delay_ms\n[2024-05-01 12:00:00.000] 7\n[2024-05-01 12:00:00.100] lost\n",
        [7, NAN],
        [0, 100],
    ),
    "a clock beside a delay": ("timestamp_s,rtt_ms\n10,7\n11,8\n", [7, 8], [0, 1000]),
    "ping with dates": (
        "[2024-05-01 12:00:00.012] 64 bytes from h: icmp_seq=1 ttl=57 time=12 ms\n"
        "[2024-05-01 12:00:00.205] 64 bytes from h: icmp_seq=3 ttl=57 time=5 ms\n",
        [12, NAN, 5],
        [0, 100, 200],
    ),
}  # fmt: skip


def read(tmp_path: Path, text: str, **options: object) -> ol.Trace:
    path = tmp_path / "link.txt"
    path.write_text(text, encoding="utf-8")
    return read_trace(path, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", TEXTS)
def test_formats(name: str, tmp_path: Path) -> None:
    text, delays, sent = TEXTS[name]
    trace = read(tmp_path, text)
    assert np.allclose(trace.delay_ms, delays, equal_nan=True, atol=1e-2)
    assert (trace.sent_ms is None) == (sent is None)
    if sent is not None and trace.sent_ms is not None:
        assert np.allclose(trace.sent_ms - trace.sent_ms[0], sent, atol=1e-2)
    assert trace.session.max() == 0


def test_codes_of_windows(tmp_path: Path) -> None:
    """PowerShell writes UTF-16, the older console a code of its own; nothing else is read that is not UTF-8."""
    for text, lost in ((WINDOWS, 3), (GERMAN, 2)):
        for code in ("utf-8", "utf-8-sig", "utf-16", "cp1252", "cp850"):
            path = tmp_path / "ping.txt"
            path.write_bytes(text.encode(code))
            assert int(read_trace(path).lost.sum()) == lost, code
    path.write_bytes("sent_ms,delay_ms,größe\n0,5,1\n20,6,1\n".encode("cp1252"))
    with pytest.raises(ol.UnreadableFile, match="not a file of text in UTF-8"):
        read_trace(path)
    path.write_bytes("sent_ms\tdelay_ms\n0\t5\n20\t6\n".encode("utf-16"))
    assert same(read_trace(path).delay_ms, [5, 6])


def test_windows_sessions_are_kept_apart(tmp_path: Path) -> None:
    trace = read(tmp_path, GERMAN + GERMAN + WINDOWS)
    assert np.bincount(trace.session).tolist() == [4, 4, 6]
    assert int(trace.lost.sum()) == 2 + 2 + 3
    nothing = "\n".join(line for line in GERMAN.splitlines() if "Zeit=" not in line and "Zeit<" not in line)
    nothing = nothing.replace("Gesendet = 4, Empfangen = 2, Verloren = 2", "Gesendet = 2, Empfangen = 0, Verloren = 2")
    trace = read(tmp_path, nothing)
    assert (len(trace), trace.loss_rate) == (2, 1.0)


def test_one_is_not_several(tmp_path: Path) -> None:
    rows = [f"{20 * i},5" for i in range(40) if i not in (7, 8)]
    assert read(tmp_path, "\n".join(["sent_ms,delay_ms", *rows])).notes == (
        "1 hole of 0.06 s in the sending times: 2 messages in it, taken for lost",
    )
    stopped = read(tmp_path, "\n".join(["sent_ms,delay_ms", *rows]), holes="stop")
    assert stopped.notes == ("1 hole of 0.06 s in the sending times: taken for a stop of the log",)
    with pytest.raises(ValueError, match="1 message; expected at least two"):
        read(tmp_path, "sent_ms,delay_ms\n0,5\n")


def test_fping_has_a_session_for_each_host(tmp_path: Path) -> None:
    trace = read(tmp_path, FPING)
    assert same(trace.delay_ms, [10, NAN, 30, 20, 20])
    assert trace.session.tolist() == [0, 0, 0, 1, 1]
    assert trace.sent_ms is not None
    assert np.allclose(trace.sent_ms[:3] - trace.sent_ms[0], [0, 1000, 2000], atol=1e-2)
    assert "2 sessions, kept apart" in trace.notes


def test_irtt(tmp_path: Path) -> None:
    def trip(i: int, rtt: float | None) -> dict[str, object]:
        send = {"wall": 1700000000_000000000 + i * 20_000000, "monotonic": i * 20_000000}
        delay = {} if rtt is None else {"rtt": int(rtt * 1e6), "send": 1, "receive": 1}
        return {
            "seqno": i,
            "lost": "false" if rtt else "true_down",
            "timestamps": {"client": {"send": send}},
            "delay": delay,
        }

    trips = [trip(0, 12.5), trip(1, None), trip(3, 9.0)]  # number 2 was not written at all
    trace = read(tmp_path, json.dumps({"version": {}, "round_trips": trips}, indent=1))
    assert np.allclose(trace.delay_ms, [12.5, NAN, NAN, 9.0], equal_nan=True)
    assert trace.sent_ms is not None
    assert np.allclose(np.diff(trace.sent_ms), 20, atol=1e-3)
    with pytest.raises(
        ValueError, match=r"round trip 1: expected seqno, lost, delay.rtt and timestamps.client.send .*KeyError: 'lost'"
    ):
        read(tmp_path, json.dumps({"round_trips": [{"seqno": 1}, {"seqno": 2}]}))


def line(seq: int, sent_ns: int, received_ns: int) -> str:
    """As a ROS 2 logger writes it: the date is local time and must not be taken for the arrival."""
    return json.dumps(
        {
            "datetime": "2022-11-15 12:14:55.732434",
            "timestamp": received_ns,
            "payload": {"seqnum": seq, "src_timestamp_ns": str(sent_ns)},
        }
    )


def test_json_lines_with_two_clocks(tmp_path: Path) -> None:
    t0 = 1668510894867850605
    rows = [
        (5, 0, 30),
        (6, 500, 498),
        (9, 2000, 2010),
    ]  # the second seems to arrive 2 ms before it was sent; 7 and 8 are missing
    trace = read(tmp_path, "\n".join(line(n, t0 + s * 10**6, t0 + r * 10**6) for n, s, r in rows))
    assert np.allclose(trace.delay_ms, [32, 0, NAN, NAN, 12], equal_nan=True, atol=1e-3)
    assert trace.sent_ms is not None
    assert np.allclose(trace.sent_ms - trace.sent_ms[0], [0, 500, 1000, 1500, 2000], atol=1e-3)
    assert trace.notes[0].startswith(
        "1 message seems to arrive before it was sent, by up to 2 ms: two clocks. 2 ms were added"
    )
    stamped = [
        {"header": {"stamp": {"sec": 10 + i, "nanosec": 5}}, "received_ns": (10 + i) * 10**9 + 3_000_005}
        for i in range(2)
    ]
    assert np.allclose(read(tmp_path, "\n".join(map(json.dumps, stamped))).delay_ms, 3)
    assert np.allclose(read(tmp_path, json.dumps([{"rtt_ms": 4}, {"rtt_ms": None}])).delay_ms, [4, NAN], equal_nan=True)


def test_two_clocks_in_a_table_and_two_time_zones(tmp_path: Path) -> None:
    trace = read(tmp_path, "sent_ms,received_ms\n0,1\n9,5\n20,\n")
    assert same(trace.delay_ms, [5, 0, NAN])
    assert "two clocks" in trace.notes[0]
    trace = read(
        tmp_path,
        "sent,received\n2024-05-01T12:00:00Z,2024-05-01T14:00:00.010Z\n2024-05-01T12:00:01Z,2024-05-01T14:00:01.020Z\n",
    )
    assert trace.notes == ("the quickest message took 7200.01 s: are both times of one clock, and of one time zone?",)


# -- silent errors ----------------------------------------------------------------------------------------------------


def session(n: int, lost: int) -> str:
    """ping -c n: the last `lost` messages have no answer; the closing line says how many were sent."""
    lines = ["PING h (10.0.0.9) 56(84) bytes of data."]
    lines += [f"64 bytes from 10.0.0.9: icmp_seq={i + 1} ttl=64 time={10 + i % 3}.0 ms" for i in range(n - lost)]
    return "\n".join(
        [
            *lines,
            "",
            "--- h ping statistics ---",
            f"{n} packets transmitted, {n - lost} received, x% packet loss, time {20 * (n - 1)}ms",
            "",
        ]
    )


def test_sessions_of_ping_are_kept_apart(tmp_path: Path) -> None:
    """Ten sessions in one file; read as one, the numbers 1..40 are answered in some session and nearly nothing seems lost."""
    trace = read(tmp_path, "\n".join(session(40, lost) for lost in range(10)))
    assert len(trace) == 400
    assert int(trace.lost.sum()) == sum(range(10))
    assert np.bincount(trace.session).tolist() == [40] * 10
    assert "10 sessions, kept apart" in trace.notes
    assert trace.outages_ms.tolist() == [20.0 * lost for lost in range(1, 10)]  # none runs on into the next session
    answers = [x for x in session(4, 0).splitlines() if "icmp_seq" in x]
    assert np.bincount(read(tmp_path, "\n".join(answers * 3)).session).tolist() == [4, 4, 4]  # without any heading
    doubled = [answers[0], answers[1], answers[0] + " (DUP!)", answers[2]]
    assert len(read(tmp_path, "\n".join(doubled))) == 3


def test_numbered_tables_may_begin_again(tmp_path: Path) -> None:
    rows = [f"{i},{t + 20 * i},{t + 20 * i + 5}" for t in (0, 9000) for i in (1, 2, 4)]
    trace = read(tmp_path, "\n".join(["seq,sent_ms,received_ms", *rows]))
    assert same(trace.delay_ms, [5, 5, NAN, 5] * 2)
    assert trace.session.tolist() == [0] * 4 + [1] * 4


def holes() -> str:
    """Sent every 20 ms; 5 messages missing, then 3 s without any."""
    sent = [20 * i for i in range(40)] + [900 + 20 * i for i in range(30)] + [4500 + 20 * i for i in range(30)]
    return "\n".join(["sent_ms,received_ms", *(f"{t},{t + 7}" for t in sent)])


def test_holes_are_said_and_counted(tmp_path: Path) -> None:
    trace = read(tmp_path, holes())
    assert int(trace.lost.sum()) == 5 + 150
    assert trace.sent_ms is not None
    assert np.allclose(np.diff(trace.sent_ms), 20)
    assert trace.notes == (
        "2 holes in the sending times, 3.14 s in all, the longest 3.02 s: 155 messages in 2 of them count as lost",
    )
    assert trace.outages_ms.tolist() == [100.0, 3000.0]  # in time, not in messages
    assert "outages              2, 1550 ms long on average, the longest 3000 ms" in str(trace)
    stopped = read(tmp_path, holes(), holes="stop")
    assert (int(stopped.lost.sum()), stopped.session.max()) == (0, 2)
    assert "2 count as stops of the log" in stopped.notes[0]
    both = read(tmp_path, holes(), holes=1000)
    assert (int(both.lost.sum()), both.session.max()) == (5, 1)
    assert both.duration_ms == pytest.approx(20 * (40 + 5 + 30 + 30))
    with pytest.raises(ValueError, match="holes is 'gone'"):
        read(tmp_path, holes(), holes="gone")
    head, *rows = holes().splitlines()
    whole = "\n".join([f"seq,{head}", *(f"{i},{row}" for i, row in enumerate(rows))])
    assert not read(tmp_path, whole).lost.any()  # numbers that run on say that nothing is missing
    rng = np.random.default_rng(0)
    irregular = np.cumsum(rng.exponential(20, 200))
    trace = read(tmp_path, "\n".join(["sent_ms,delay_ms", *(f"{t:.3f},5" for t in irregular)]))
    assert not trace.lost.any()
    assert "cannot be told" in trace.notes[0]
    far = "sent_ms,delay_ms\n" + "\n".join(f"{t},5" for t in [*range(0, 40, 2), 10**9])
    with pytest.raises(ValueError, match='would be 5e\\+08 lost messages, of 21 that are there; give holes="stop"'):
        read(tmp_path, far)


def test_no_default_horizon_cuts_delays() -> None:
    """A 106 ms link at 10 ms a tick is 11 ticks late, whatever the episode; with a horizon, what is cut is said."""
    trace = ol.Trace(np.full(300, 106.0), sent_ms=10.0 * np.arange(300))
    fit = trace.fit(10)
    assert fit.channel() == ol.ConstantDelay(11).with_period(10)
    assert not any("late" in note for note in fit.notes)
    cut = trace.fit(10, horizon=5)
    assert cut.longest == 5
    assert cut.notes == ("100.00% of the messages are more than 5 ticks late; in the in-order law they count as 5",)
    assert np.flatnonzero(fit.age_chain().first).min() == 11
    with pytest.raises(ValueError, match="nothing to count"):
        fit.age_chain(oldest=5)


def test_nothing_received_is_a_recording(tmp_path: Path) -> None:
    closing = "PING h (h) 56(84) bytes of data.\n\n--- h ping statistics ---\n50 packets transmitted, 0 received, 100% packet loss, time 980ms\n"
    for text in (closing, "delay_ms\nlost\nlost\n", "sent_ms,received_ms\n0,\n20,\n40,\n"):
        trace = read(tmp_path, text)
        assert trace.loss_rate == 1.0
        assert "100.00% lost" in str(trace)
        assert json.dumps(trace.to_dict())
        assert trace.plot() is not None
        with pytest.raises(ValueError, match="none was received: there is nothing to fit"):
            trace.fit(20)
    assert len(read(tmp_path, closing)) == 50


def test_an_unknown_format_shows_its_first_lines_and_the_accepted_forms(tmp_path: Path) -> None:
    with pytest.raises(ValueError) as refused:
        read(tmp_path, "hello world\n1 2\n3 4\n5 6\n")
    said = str(refused.value)
    assert "The file begins:\n    hello world\n    1 2\n    3 4\naccepted are: a table" in said
    for form in ("ping or fping", "irtt's JSON", "JSON lines", "columns=[...]"):
        assert form in said
    with pytest.raises(ValueError, match=r"a table without column names; say what they are: columns="):
        read(tmp_path, "0 5\n20 27\n")
    trace = read(tmp_path, "0 5\n20 27\n", columns=["sent_ms", "received_ms"])
    assert same(trace.delay_ms, [5, 7])
    with pytest.raises(ValueError, match=r"line 2: not JSON"):
        read(tmp_path, '{"rtt_ms": 1}\n{"rtt_ms": \n')
    with pytest.raises(ValueError, match=r"line 2: expected an object"):
        read(tmp_path, '{"rtt_ms": 1}\n[1]\n')


def test_halves() -> None:
    trace = ol.Trace(np.arange(10.0), sent_ms=np.arange(10.0), session=[0] * 4 + [1] * 6)
    second = trace.part(0.5, 1)
    assert second.delay_ms.tolist() == [5, 6, 7, 8, 9]
    assert second.session.tolist() == [0] * 5
    assert trace.part(0, 0.5).session.tolist() == [0, 0, 0, 0, 1]
    with pytest.raises(ValueError, match="expected shares"):
        trace.part(0.5, 0.5)
