"""Datagrams that do not belong to a testbed, sent over real UDP while it runs: they change nothing."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.control import Controller
from oldlight.testbed import run_testbed
from oldlight.testbed.processes import IN_STEP, IN_TIME
from oldlight.testbed.wire import CONTROLLER, PLANT, RELAY, Port, Setup, Stopped, Watchdog
from thread_workers import in_threads

MDP = ol.TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), horizon=4)
PROBLEM = ol.ImpairedMDP(MDP, ol.ConstantDelay(1))
NOISE = [
    b"[" * 60_000,
    b'{"kind":' * 8_000,
    b"\xff" * 100,
    b"",
    b"{}",
    b"[]",
    b'{"kind":[]}',
    *(b'{"kind":"%s"}' % kind for kind in (b"tick", b"seen", b"act", b"start")),
    *(
        b'{"kind":"%s","e":"x","h":null,"a":[],"new":[[1]],"past":3,"steps":{}}' % kind
        for kind in (b"tick", b"seen", b"act")
    ),
    b'{"kind":"tick","e":0,"h":0,"new":[[0,0,9,9]],"past":[]}',
    b'{"kind":"tick","e":0,"h":0,"past":[1,1,1],"steps":[]}',
    b'{"kind":"seen","e":0,"step":99,"state":0,"before":[0],"due":1}',
    b'{"kind":"act","e":0,"h":0,"step":0,"a":1e400}',
]


def played(setup: Setup, work: dict[str, Any], sender: str) -> dict[str, dict[str, Any]]:
    """The three roles as threads, each flooded with noise by `sender` ("stranger", or the port of a peer)."""
    pipes = {role: multiprocessing.Pipe() for role in work}
    ports = {role: Port(Watchdog(pipes[role][1], setup.deadline), setup) for role in work}
    counts: dict[str, dict[str, Any]] = {role: {} for role in work}
    failed: list[BaseException] = []
    begin = time.monotonic() + 0.2

    def run(role: str) -> None:
        ports[role].peers = {other: port.number for other, port in ports.items()}
        try:
            with contextlib.suppress(Stopped):
                work[role](ports[role], setup, begin, counts[role])
        except BaseException as error:
            failed.append(error)

    stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    source = stranger if sender == "stranger" else ports[sender].socket
    for port in ports.values():  # waiting in each socket before anybody listens
        for data in NOISE:
            source.sendto(data, ("127.0.0.1", port.number))
    threads = {role: threading.Thread(target=run, args=(role,), daemon=True) for role in work}
    for thread in threads.values():
        thread.start()
    threads[PLANT].join(30)
    for role, thread in threads.items():
        pipes[role][0].send("stop")
        thread.join(5)
        assert not thread.is_alive()
        ports[role].close()
    stranger.close()
    assert failed == []
    return counts


def setup(period_s: float | None) -> Setup:
    controller = Controller(PROBLEM, ol.solve(PROBLEM).policy, seed=0)
    return Setup(PROBLEM, controller, PROBLEM.channel, 10, 0, period_s, time.monotonic() + 40)


@pytest.mark.parametrize("sender", ["stranger", PLANT, RELAY, CONTROLLER])
@pytest.mark.parametrize("clock", ["in step", "in time"])
def test_noise_from_anybody_changes_nothing(sender: str, clock: str) -> None:
    """Also from the address of a peer: what is not of a form that is waited for is not heard."""
    period = None if clock == "in step" else 0.02
    counts = played(setup(period), IN_STEP if period is None else IN_TIME, sender)
    assert counts[RELAY]["observations"] == 10 * PROBLEM.horizon
    assert np.isfinite(counts[PLANT]["returns"]).all()
    if period is None:
        assert counts[PLANT]["returns"].tolist() == played(setup(None), IN_STEP, "stranger")[PLANT]["returns"].tolist()


def test_a_flood_of_strangers_does_not_make_time_stand_still() -> None:
    pipe, end = multiprocessing.Pipe()
    port = Port(Watchdog(end, time.monotonic() + 30), setup(None))
    stop = threading.Event()

    def flood() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            while not stop.is_set():
                stranger.sendto(b"{}", ("127.0.0.1", port.number))

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        assert port.receive(time.monotonic() + 0.2, {"act": ("e",)}) is None  # before, not as long as the flood lasted
    finally:
        stop.set()
        thread.join()
        port.close()
        pipe.close()


def ports_of(pid: int) -> set[int]:
    """The UDP ports of a process on loopback."""
    inodes = set()
    with contextlib.suppress(OSError):
        for handle in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                inodes.add(os.readlink(handle.path).removeprefix("socket:[").removesuffix("]"))
    rows = [line.split() for line in Path("/proc/net/udp").read_text().splitlines()[1:]]
    return {int(row[1].partition(":")[2], 16) for row in rows if row[9] in inodes}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the ports of processes in /proc")
def test_a_run_in_processes_is_not_ended_by_a_datagram() -> None:
    policy = ol.solve(PROBLEM).policy
    with pytest.MonkeyPatch.context() as patch:  # nobody is near: the same returns, in processes or in threads
        in_threads(patch)
        calm = run_testbed(PROBLEM, policy, episodes=60, seed=3)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(run_testbed(PROBLEM, policy, episodes=60, seed=3)))
    thread.start()
    met = set[int]()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        while thread.is_alive():
            for child in multiprocessing.active_children():
                for number in ports_of(child.pid or 0):
                    met.add(number)
                    for data in NOISE[:3]:
                        stranger.sendto(data, ("127.0.0.1", number))
            time.sleep(0.005)
    thread.join()
    assert len(met) == 3
    assert len(found) == 1, "the run ended with an error"
    assert found[0].returns.tolist() == calm.returns.tolist()
