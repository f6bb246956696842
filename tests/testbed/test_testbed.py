"""The testbed: real processes, real datagrams, and the value that was predicted."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from conftest import random_mdp
from oldlight.control import Controller
from oldlight.planning import heuristics
from oldlight.testbed.processes import IN_STEP, Plant
from oldlight.testbed.testbed import TestbedResult, _run, relay_of, run_testbed
from oldlight.testbed.wire import PLANT, Delays, Port, Recorded, Setup, Stopped, Watchdog
from oldlight.traces import Trace
from repeats import is_thorough, repeats
from thread_workers import in_threads
from travelling import Fails, half, mostly_right

NAN = float("nan")


def problem_of(kind: str) -> ol.ImpairedMDP:
    rng = np.random.default_rng(len(kind))
    mdp = random_mdp(rng, 3, 2, 5)
    table = rng.dirichlet(np.ones(3), size=(1, 3, 2))
    made: dict[str, Any] = {
        "warm": lambda: ol.ImpairedMDP(mdp, ol.ConstantDelay(2), start=ol.WarmStart()),
        "per state and action": lambda: ol.ImpairedMDP(mdp, ol.StochasticDelay(table, first=[0.5, 0.5]).capped(2)),
        "loss": lambda: ol.ImpairedMDP(mdp, ol.Loss(seen=0.5)),
        "late, lossy, actions late": lambda: ol.ImpairedMDP(
            mdp, ol.Lossy(ol.ConstantDelay(1), seen=0.6), actuation=1, pending=[1]
        ),
        "packets": lambda: ol.ImpairedMDP(mdp, "packets:0=.3,1=.4,2=.3+loss:0.2"),
        "held": lambda: ol.ImpairedMDP(mdp, "held:0=.5,2=.5,hold=.6", actuation=1),
        "late and lossy": lambda: ol.ImpairedMDP(mdp, "geometric:.5+loss:.3"),
        "old messages": lambda: ol.ImpairedMDP(mdp, ol.AgeChain([[0.6, 0.4], [0.2, 0.5, 0.3]], first=[0.2, 0.3, 0.5])),
    }
    return made[kind]()  # type: ignore[no-any-return]


def without_a_network(setup: Setup) -> Any:
    """The same luck, played in one process by direct calls."""
    plant, delays, controller, problem = Plant(setup), Delays(setup), setup.controller, setup.problem
    for e in range(setup.episodes):
        plant.begin(e)
        delays.begin(e)
        controller.reset(plant.past)
        planned, under_way = list(problem.pending), []
        for h in range(problem.horizon):
            for step, state, s, a in plant.observations(h):
                fate = delays.of(step, s, a)  # type: ignore[arg-type]
                under_way += [(max(step + late, h), step, state) for late in fate.late]
                if fate.announced is not None:
                    under_way.append((step + fate.announced, step, None))
            under_way += [(h, step, 0) for step in delays.before.get(h, [])]
            if h + problem.actuation < problem.horizon:
                for _, step, state in [x for x in under_way if x[0] == h]:
                    if state is None:
                        controller.lost(step)
                    else:
                        controller.observe(step, state)
                planned.append(controller.act())
            plant.do(h, planned[h])
    return plant.returns


def setup_for(problem: ol.ImpairedMDP, episodes: int, **more: Any) -> Setup:
    controller = Controller(problem, ol.solve(problem).policy)
    return Setup(problem, controller, problem.channel, episodes, 5, None, time.monotonic() + 60, **more)


# -- in lock-step -----------------------------------------------------------------------------------------------------


KINDS = ["warm", "per state and action", "loss", "late, lossy, actions late"]
LINKS = [*KINDS, "packets", "held", "late and lossy", "old messages"]


@pytest.mark.parametrize("kind", LINKS if is_thorough() else ["warm", "loss", "late and lossy", "old messages"])
def test_the_return_is_what_evaluate_predicts(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Late and lossy in processes; the others too if thorough, otherwise in threads."""
    if kind != "late and lossy":
        in_threads(monkeypatch)
    problem = problem_of(kind)
    policy = ol.solve(problem).policy
    n = repeats(80, 250)
    result = run_testbed(problem, policy, episodes=n, seed=5)
    assert isinstance(result, TestbedResult)
    assert result.predicted.value == float(ol.evaluate(problem, policy))
    error = result.half_width / 1.959963984540054
    assert abs(result.mean - result.predicted.value) <= 3.3 * error
    assert result.agrees == (abs(result.mean - result.predicted.value) <= result.half_width + 1e-9)
    assert result.returns.tolist() == without_a_network(setup_for(problem, n)).tolist()
    counts, report = result.counts, result.report
    assert counts["observations"] == n * (problem.horizon + problem.warmup - problem.actuation)
    assert report["observations"] + counts["dropped"] <= counts["observations"]
    assert report["observations"] + report["duplicates"] == counts["forwarded"]
    assert report["ticks"] == n * (problem.horizon - problem.actuation)
    assert report["nearest_wait"] == report["counted_along"] == report["held_back"] == report["refused"] == 0
    assert (counts["dropped"] > 0) == (not problem.has_delay_law or problem.loss is not None)
    assert result.disturbed == 0
    assert multiprocessing.active_children() == []


class BadPort(Port):
    """A wire that loses one datagram in ten and doubles one in five."""

    def __init__(self, watchdog: Watchdog, setup: Setup, seed: int) -> None:
        super().__init__(watchdog, setup)
        self.rng = np.random.default_rng(seed)

    def send(self, peer: str, message: Any) -> None:
        luck = self.rng.random()
        for _ in range(0 if luck < 0.1 else 2 if luck > 0.8 else 1):
            super().send(peer, message)


@pytest.mark.parametrize("kind", [kind for kind in LINKS if kind != "late and lossy"])
def test_datagrams_lost_and_doubled_on_the_wire_change_nothing(kind: str) -> None:
    """The plant asks again, the relay repeats itself, the controller meets duplicates and repeated ticks: the same returns."""
    problem = problem_of(kind)
    calm = without_a_network(setup_for(problem, 20))
    setup = setup_for(problem, 20, patience=0.02)
    pipes = {role: multiprocessing.Pipe() for role in IN_STEP}
    ports = {role: BadPort(Watchdog(pipes[role][1], setup.deadline), setup, i) for i, role in enumerate(IN_STEP)}
    counts: dict[str, dict[str, Any]] = {role: {} for role in IN_STEP}

    def work(role: str) -> None:
        ports[role].peers = {other: port.number for other, port in ports.items()}
        with contextlib.suppress(Stopped):
            IN_STEP[role](ports[role], setup, 0.0, counts[role])

    threads = {role: threading.Thread(target=work, args=(role,), daemon=True) for role in IN_STEP}
    for thread in threads.values():
        thread.start()
    threads[PLANT].join(30)
    for role, thread in threads.items():
        pipes[role][0].send("stop")
        thread.join(5)
        assert not thread.is_alive()
        ports[role].close()
    assert counts[PLANT]["returns"].tolist() == calm.tolist()
    assert counts[PLANT]["repeated"] > 0
    report = setup.controller.report()
    assert report.repeated > 0
    assert report.duplicates > 0
    assert (report.ticks, report.refused, report.unplanned) == (20 * (5 - problem.actuation), 0, 0)


def test_strangers_and_noise_are_not_heard() -> None:
    pipe, end = multiprocessing.Pipe()
    port = Port(Watchdog(end, time.monotonic() + 10), setup_for(problem_of("warm"), 20))
    forms = {"seen": ("e", "state")}
    friend = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    friend.bind(("127.0.0.1", 0))
    port.peers = {"friend": friend.getsockname()[1]}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(b'{"kind":"tick"}', ("127.0.0.1", port.number))
    wrong = (b"\xff\x00", b"[1]", b'{"kind":["seen"]}', b'{"kind":"seen"}', b'{"kind":"seen","e":true,"state":0}')
    wrong += (
        b'{"kind":"seen","e":0,"state":-1}',
        b'{"kind":"seen","e":20,"state":0}',
        b'{"kind":"tick","e":0,"state":0}',
    )
    for data in (*wrong, b"[" * 60_000, b'{"kind":' * 8_000, b'{"kind":"seen","e":0,"state":1}'):
        friend.sendto(data, ("127.0.0.1", port.number))
    assert port.receive(time.monotonic() + 2, forms) == {"kind": "seen", "e": 0, "state": 1}
    assert port.receive(time.monotonic(), forms) is None
    pipe.send("stop")
    with pytest.raises(Stopped):
        port.receive(time.monotonic() + 2, forms)
    friend.close()
    port.close()


def test_a_recorded_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """45 ms on a 20 ms tick, one in five lost, as recorded: planned from the fit, played from the recording."""
    in_threads(monkeypatch)
    rng = np.random.default_rng(0)
    trace = Trace(np.where(rng.random(4000) < 0.2, NAN, 45.0), sent_ms=20.0 * np.arange(4000), source="link.csv")
    channel = trace.channel()
    assert channel == ol.Lossy(ol.ConstantDelay(3), rate=float(trace.lost.mean())).with_period(20)
    problem = ol.ImpairedMDP(random_mdp(rng, 3, 2, 6), channel)
    n = repeats(80, 250)
    result = run_testbed(problem, ol.solve(problem).policy, episodes=n, link=trace, seed=1)
    assert abs(result.mean - result.predicted.value) <= 3.3 * result.half_width / 1.96
    assert result.counts["dropped"] == pytest.approx(0.2 * 6 * n, abs=4 * np.sqrt(0.16 * 6 * n))
    assert result.report["counted_along"] == 0
    assert "behind link.csv" in str(result)
    assert f"(exact) behind the planned link, {channel!r}" in str(result)
    assert result.agrees is None  # the recording is not the channel that was fitted to it


def test_recorded_delays_in_order_and_as_they_came() -> None:
    problem = ol.ImpairedMDP(random_mdp(np.random.default_rng(0), 2, 2, 4), ol.ConstantDelay(0))
    trace = Trace(20.0 * np.array([2, 0, 3, 1, 0]), source="t")
    for in_order, wanted in [(True, [2, 2, 3, 3]), (False, [2, 0, 3, 1])]:
        link = relay_of(problem.behind(ol.ConstantDelay(0).with_period(20)), trace, in_order=in_order)
        delays = Delays(Setup(problem, None, link, 2, 0, None, 0.0))
        while True:
            delays.begin(0)
            if delays.start == 0:
                break
            delays.setup = Setup(problem, None, link, 2, delays.setup.seed + 1, None, 0.0)
        assert [delays.of(i, 0, 0).late for i in range(4)] == [(late,) for late in wanted]


def test_delays_follow_the_law_of_the_channel() -> None:
    problem = ol.ImpairedMDP(
        random_mdp(np.random.default_rng(0), 2, 2, 4),
        ol.Lossy(ol.GeometricDelay(0.5, first="same").capped(2), seen=0.7),
    )
    delays = Delays(Setup(problem, None, problem.channel, 4000, 5, None, 0.0))
    late = np.full((4000, 4), -1)
    for e in range(4000):
        delays.begin(e)
        for i in range(4):
            late[e, i] = next(iter(delays.of(i, 0, 0).late), -1)
    from oldlight.traces.fit import delay_laws

    laws = delay_laws(problem.law)
    for i in range(4):
        assert np.mean(late[:, i] < 0) == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / 4000))
        for d in range(3):
            assert np.mean(late[:, i] == d) == pytest.approx(0.7 * laws[i, d], abs=4 * np.sqrt(0.25 / 4000))


# -- by the wall clock ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["late, lossy, actions late", "old messages"])
def test_by_the_wall_clock(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where this machine keeps to the ticks the returns are those of lock-step, episode by episode."""
    if kind == "old messages":
        in_threads(monkeypatch)
    problem = problem_of(kind)
    setup = setup_for(problem, 15)
    result = run_testbed(problem, ol.solve(problem).policy, episodes=15, seed=5, period_ms=12)
    calm = without_a_network(setup)
    differ = int((np.abs(result.returns - calm) > 1e-12).sum())
    assert differ <= result.disturbed
    assert result.seconds > 15 * 5 * 0.012
    assert set(result.counts) == {"sent", "observations", "forwarded", "dropped", "missed", "mistimed"}
    assert result.counts["observations"] == 75
    assert "a tick every 12 ms" in str(result)


def test_a_warm_start_by_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    in_threads(monkeypatch)
    problem = problem_of("warm")
    result = run_testbed(problem, ol.solve(problem).policy, episodes=8, seed=5, period_ms=12)
    differ = int((np.abs(result.returns - without_a_network(setup_for(problem, 8))) > 1e-12).sum())
    assert differ <= result.disturbed


# -- it stops ---------------------------------------------------------------------------------------------------------


def test_it_is_bounded_in_time() -> None:
    problem = problem_of("loss")
    began = time.monotonic()
    with pytest.raises(TimeoutError, match="the time for the whole run is over"):
        run_testbed(problem, ol.solve(problem).policy, episodes=1000, period_ms=1000, timeout=1.0)
    assert time.monotonic() - began < 20
    assert multiprocessing.active_children() == []


def test_it_is_bounded_in_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    in_threads(monkeypatch)
    problem = problem_of("loss")
    with pytest.raises(TimeoutError, match="the testbed's plant: no action for tick 0 of episode 0 after 0 tries"):
        _run(setup_for(problem, 5, tries=0))
    assert multiprocessing.active_children() == []


def test_what_fails_in_a_process_is_raised_here() -> None:
    problem = problem_of("loss")
    with pytest.raises(RuntimeError, match="the testbed's controller failed: RuntimeError: no idea"):
        run_testbed(problem, Fails(), episodes=5)
    assert multiprocessing.active_children() == []


def test_a_function_of_a_module_travels() -> None:
    """So do a partial of one and the heuristics; the link given as it is planned keeps the verdict."""
    problem = problem_of("loss")
    result = run_testbed(problem, ol.FunctionPolicy(mostly_right, 2), episodes=20, seed=1, link=ol.Loss(seen=0.5))
    assert result.report["ticks"] == 100
    assert result.planned is None
    assert result.agrees is not None
    for policy in (
        ol.FunctionPolicy(partial(half, 0.5), 2),
        *(make(problem) for make in (heuristics.most_likely, heuristics.memoryless, heuristics.open_loop)),
    ):
        again = pickle.loads(pickle.dumps(Controller(problem, policy, seed=0)))
        same = Controller(problem, policy, seed=0)
        assert [again.act() for _ in range(5)] == [same.act() for _ in range(5)]


def test_a_fit_says_how_long_the_ticks_of_a_recording_are(monkeypatch: pytest.MonkeyPatch) -> None:
    in_threads(monkeypatch)
    problem = ol.ImpairedMDP(random_mdp(np.random.default_rng(0), 2, 2, 4), ol.ConstantDelay(1))
    trace = Trace([15.0] * 40, sent_ms=20.0 * np.arange(40), source="link.csv")
    for period, ticks in [(20, 1), (10, 2), (5, 3)]:
        link = relay_of(
            problem, trace.fit(period, horizon=4), period_ms=40
        )  # the wall clock may be slower than the recording
        assert isinstance(link, Recorded)
        assert set(link.late.tolist()) == {ticks}
    result = run_testbed(problem, ol.solve(problem).policy, episodes=5, link=trace.fit(10, horizon=4))
    assert "behind link.csv at 10 ms a tick" in str(result)
    assert result.report["counted_along"] > 0  # two ticks late, one was planned


SCRIPT = """
import multiprocessing, sys, threading, time
import numpy as np
import oldlight as ol
from oldlight.testbed import run_testbed

def tell():
    while len(multiprocessing.active_children()) < 3:
        time.sleep(0.05)
    time.sleep(0.5)
    print(*(child.pid for child in multiprocessing.active_children()), flush=True)

if __name__ == "__main__":
    mdp = ol.TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), horizon=3)
    problem = ol.ImpairedMDP(mdp, ol.ConstantDelay(0))
    policy = ol.FunctionPolicy(len, 2)
    layout = ol.Layout.of(problem)
    threading.Thread(target=tell, daemon=True).start()
    run_testbed(problem, ol.TablePolicy(layout, np.zeros(layout.size, dtype=int)), episodes=10_000, period_ms=50)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_process_is_left_behind(how: signal.Signals, tmp_path: Path) -> None:
    """Ctrl-C, and even a kill that nobody can catch."""
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    running = subprocess.Popen([sys.executable, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        children = [int(pid) for pid in running.stdout.readline().split()]
        assert len(children) == 3
        running.send_signal(how)
        running.wait(timeout=20)
        until = time.monotonic() + 20
        while any(alive(pid) for pid in children) and time.monotonic() < until:
            time.sleep(0.05)
        assert not [pid for pid in children if alive(pid)]
        assert running.returncode != 0
        if how == signal.SIGINT:
            assert running.stderr is not None
            assert "KeyboardInterrupt" in running.stderr.read().splitlines()[-1]
    finally:
        running.kill()
        running.communicate()


def alive(pid: int) -> bool:
    """Does it run, and is it more than an entry that nobody has taken away?"""
    try:
        os.kill(pid, 0)
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


# -- what it refuses, what it shows -----------------------------------------------------------------------------------


def test_refusals() -> None:
    problem, warm = problem_of("loss"), problem_of("warm")
    policy = ol.solve(problem).policy
    with pytest.raises(TypeError, match="run_testbed takes an ImpairedMDP"):
        run_testbed(problem.mdp, policy)  # type: ignore[arg-type]
    for more, says in [
        ({"episodes": 1}, "episodes is 1, expected a whole number ≥ 2"),
        ({"period_ms": 0}, "period_ms is 0, expected a number > 0"),
        ({"timeout": -1}, "timeout is -1, expected a number > 0"),
        ({"link": ol.Loss(seen=[0.5] * 4)}, "Loss has 4 rates"),
        ({"link": Trace([1.0, 2.0, 3.0])}, "does not say when messages were sent"),
        ({"link": Trace([1.0, 2.0, 3.0], sent_ms=[0, 1, 2])}, "fewer than an episode of 5 ticks"),
        ({"link": Trace([1.0, 2.0, 3.0]).fit(1, horizon=2)}, "the trace has 3 ticks, fewer than an episode: 5"),
    ]:
        with pytest.raises(ValueError, match=says):
            run_testbed(problem, policy, **more)
    with pytest.raises(TypeError, match="link is of type int, expected a channel, a Trace or its fit"):
        run_testbed(problem, policy, link=2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a warm start knows a past that came over the planned link"):
        run_testbed(warm, ol.solve(warm).policy, link=ol.ConstantDelay(1))
    with pytest.raises(TypeError, match="the policy cannot be sent to another process"):
        run_testbed(problem, ol.FunctionPolicy(lambda info: 0, 2))


def test_the_result_reads_well() -> None:
    from oldlight.planning.evaluation import Evaluation

    returns = np.array([1.0, 2.0, 3.0, 2.0])
    result = TestbedResult(
        returns,
        Evaluation(2.1, True, 0.0, "", 0),
        "Loss(seen=0.5)",
        None,
        1.25,
        0,
        {"sent": 8},
        {"ticks": 4, "lost": 0},
    )
    assert result.half_width == pytest.approx(1.96 * np.std(returns, ddof=1) / 2, rel=1e-4)
    assert str(result).splitlines() == [
        "4 episodes over UDP on loopback, in lock-step, 1.2 s, behind Loss(seen=0.5)",
        "  return     2 ± 0.8 (95%)",
        "  predicted  2.1 (exact): within the interval",
        "  datagrams  sent 8",
        "  controller ticks 4",
    ]
    data = json.loads(json.dumps(result.to_dict()))
    assert (data["agrees"], data["mean"], data["predicted"]) == (True, 2.0, 2.1)
    far = TestbedResult(returns, Evaluation(4.0, True, 0.0, "", 0), "", 10.0, 1.0, 2)
    assert not far.agrees
    assert "OUTSIDE the interval" in str(far)
    assert "disturbed  2 episodes" in str(far)
    other = TestbedResult(
        returns, Evaluation(4.0, True, 0.0, "", 0), "link.csv", None, 1.0, 0, planned="Loss(seen=0.5)"
    )
    assert other.agrees is None
    assert "  predicted  4 (exact) behind the planned link, Loss(seen=0.5)" in str(other).splitlines()
    assert (other.to_dict()["planned"], other.to_dict()["agrees"]) == ("Loss(seen=0.5)", None)
    assert result.to_dict()["planned"] == result.link


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    in_threads(monkeypatch)
    page = (Path(__file__).parents[2] / "docs" / "controller.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)
    printed = capsys.readouterr().out
    assert "ticks 10, observations 8" in printed
    shown = [line[4:] for line in page.splitlines() if line.startswith("      ")]
    assert [line for line in shown if line.startswith(("  return", "  predicted"))] == [
        line for line in printed.splitlines() if line.startswith(("  return", "  predicted"))
    ]
    sent: list[int] = []

    ticks, messages = iter([0, 1, 4, 4, 5]), [{"step": 0, "state": 1}, {"step": 0, "state": 99}]
    controller = Controller(problem_of("loss"), ol.solve(problem_of("loss")).policy)
    with pytest.raises(ValueError, match="tick is 5"):
        names["loop"](controller, lambda: next(ticks), lambda: messages, sent.append)
    assert len(sent) == 4
    report = controller.report()
    assert (report.skipped, report.repeated, report.refused) == (2, 1, 5)
