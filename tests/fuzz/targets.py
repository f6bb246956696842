"""What is fuzzed: every parser and loader that takes text, files or datagrams from elsewhere.

A target takes one input, made from its corpus of good and once-bad ones by `mutated`, and either works or raises one of its named refusals. Anything
else is a defect: another exception, more than HANG seconds, more than the memory that `run.py` allows.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
import types
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import oldlight as ol
from oldlight.checks import TooLarge

HANG = 5.0  # seconds
FOLDER = Path(tempfile.gettempdir())  # `run.py` gives it one of its own

NASTY = (
    "", "0", "-1", "1e999", "nan", "inf", "-0.0", "1e-320", "99999999999999999999", "0x10", "1_000", "true", "null", "../../etc/passwd", "/dev/zero",
    "\x00", "\ud7ff", "é", "１", "[" * 2000, "{" * 2000, '{"a":' * 500, "(" * 300, "@", "+", "::", "=,=", "%s", "\\", '"', "'", "\r\n", "\t", "#", ":" * 50,
)  # fmt: skip


@st.composite
def mutated(draw: Any, corpus: tuple[bytes, ...]) -> bytes:
    """One of the corpus, changed in a few places: bytes flipped, pieces cut, doubled, exchanged with another's, or replaced by something nasty."""
    data = bytearray(draw(st.sampled_from(corpus)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.sampled_from((0, 1, 1, 2, 4, 9, 40))))
        kind = draw(st.integers(0, 4))
        if kind == 0:
            data[at:end] = draw(st.sampled_from(NASTY)).encode("utf-8", "surrogatepass")
        elif kind == 1:
            data[at:end] = draw(st.binary(max_size=4))
        elif kind == 2:
            other = draw(st.sampled_from(corpus))
            begin = draw(st.integers(0, len(other)))
            data[at:end] = other[begin : begin + 30]
        elif kind == 3:
            data[at:at] = data[at:end]
        else:
            del data[at:]
    return bytes(data)


@dataclass(eq=False)
class Target:
    """name; corpus of inputs; use(input), which works or raises one of `refusals`."""

    name: str
    corpus: Callable[[], tuple[bytes, ...]]
    use: Callable[[bytes], Any]
    refusals: tuple[type[BaseException], ...] = (ValueError, TooLarge)

    def strategy(self) -> Any:
        return mutated(self.corpus())


def text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def file(data: bytes, name: str) -> Path:
    path = FOLDER / name
    path.write_bytes(data)
    return path


CHANNELS = (
    "none", "constant:2", "geometric:0.3", "heavy:1.2,2", "bernoulli:0.8,3", "stochastic:.5,.5", "delays:1=0.3,2=0.7", "interarrival:0=0.9,3=0.1",
    "loss:0.2", "seen:0.8", "bursty:0.1,0.5,1,0", "wifi", "constant:2+loss:0.2", "packets:0=.2,1=.6,2=.2+loss:0.1", "fifo:0=.5,1=.5",
    "ages:.9,.1/.5,.3,.2", "renewal:0=.9,5=.1", "periodic:5,2,1", "held:0=.5,2=.5,hold=.7", "trace:nowhere.csv@20", "file:nowhere.json",
    '{"kind": "ages", "kernel": [[0.9, 0.1], [0.5, 0.3, 0.2]]}', '{"kind": "packets", "delays": [0.5, 0.5], "lost": 0.1}',
)  # fmt: skip
PROCESSES = ("sensing_chain:0.8", "sensing_chain:p=0.9,horizon=5", "center_chain:0.99", "dichotomy:2,6", "forest", "inventory:3,3", "gym:FrozenLake-v1@5", "nowhere.toml",
             "hard_tree:depth=2,n_actions=2", '{"name": "sensing_chain", "p": 0.8}')  # fmt: skip
LEARNERS = ("DelayedUCBVI", "DelayedUCBVI:c=0.1,pooled=true", "PosteriorSampling", "LossUCBVI:c=1", "nothing:Here")
STUDY = """name = "s"
instances = ["sensing_chain:0.8", {name = "forest", horizon = 4}]
channels = ["constant:1", "loss:0.2"]
learners = [{name = "DelayedUCBVI", c = 0.02}, "PosteriorSampling"]
episodes = 10
seeds = 2
start = "warm"
tasks = ["gap"]
"""
RECORD = (
    '{"format": 1, "version": "0.2", "study": {"name": "s", "file": null, "blocks": [{"name": "b", "tasks": ["gap"]}], "code": []}, "cells": [{"id": "ab12", '
    '"block": "b", "instance": "i", "channel": "c", "kind": "task", "label": "gap", "replicate": 0, "episodes": 0}]}'
)
PING = """PING a (127.0.0.1) 56(84) bytes of data.
64 bytes from a (127.0.0.1): icmp_seq=1 ttl=64 time=10.1 ms
64 bytes from a (127.0.0.1): icmp_seq=2 ttl=64 time=12.0 ms
64 bytes from a (127.0.0.1): icmp_seq=4 ttl=64 time=99.5 ms
--- a ping statistics ---
4 packets transmitted, 3 received, 25% packet loss, time 3004ms
"""
TRACES = (
    PING,
    PING.replace("icmp_seq=1", "icmp_seq=99999999999999999999"),
    "sent_ms,received_ms\n0,10\n20,\n40,61.5\n60,80\n",
    "seq sent delay(ms)\n1 0 10\n2 20 nan\n3 40 12\n",
    "2024-01-01T00:00:00.000Z;2024-01-01T00:00:00.010Z\n2024-01-01T00:00:00.020Z;2024-01-01T00:00:00.031Z\n",
    "[1700000000.010] a : [0], 84 bytes, 10.0 ms (10.0 avg, 0% loss)\n[1700000001.010] a : [1], timed out (NaN avg, 50% loss)\n",
    '{"seq": 1, "sent_ns": 1000000, "received_ns": 3000000}\n{"seq": 2, "sent_ns": 21000000, "received_ns": 25000000}\n',
    '{"round_trips": [{"seqno": 0, "lost": "false", "delay": {"rtt": 1000000}}, {"seqno": 1, "lost": "true"}]}',
    "0.0 0.01\n0.02 0.04\n0.04 0.05\n",
)
COMMANDS = (
    "list", "--help", "plan sensing_chain:horizon=3 -c constant:1", "gap forest -c loss:0.2 --json -", "simulate forest -c constant:1 -n 5 --seed 1",
    "learn forest -c constant:1 -l DelayedUCBVI -n 3 --json -", "plan gym:FrozenLake-v1@3 -c loss:0.1", "trace nowhere.csv --period-ms 20", "status nowhere",
    "run nowhere.toml --dry-run", "report nowhere", "plan forest -c packets:0=.5,1=.5+loss:0.1 --tolerance 0.1", "gap sensing_chain --warm -c constant:1 --csv -",
)  # fmt: skip
DATAGRAMS = (
    '{"kind":"tick","e":0,"h":1,"new":[[0,1]],"steps":[0],"past":[],"news":[0]}', '{"kind":"act","e":0,"h":1,"a":1}', '{"kind":"state","e":0,"step":1,"state":1}',
    "[" * 60000, '{"kind":"act","e":0,"h":99999999999999999999,"a":1}', '{"kind":["act"]}', "null", "",
)  # fmt: skip


def coded(texts: tuple[str, ...]) -> Callable[[], tuple[bytes, ...]]:
    return lambda: tuple(one.encode() for one in texts)


@cache
def problem() -> ol.ImpairedMDP:
    return ol.ImpairedMDP(ol.TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), horizon=4), ol.ConstantDelay(1))


def warm_up() -> None:
    """Import and compile what the targets use, so that no input pays for it."""
    for tolerance in (0.1, 0.0):
        ol.solve(ol.ImpairedMDP(problem().mdp, "packets:0=.5,1=.5+loss:0.1"), tolerance=tolerance)
    fuzzed_controller()
    every: list[tuple[Callable[[bytes], None], tuple[str, ...]]] = [
        (use_trace, TRACES),
        (use_study, (STUDY,)),
        (use_command, COMMANDS),
    ]
    for use, corpus in every:
        for one in corpus:
            with contextlib.suppress(ValueError, OSError, SystemExit):
                use(one.encode())


def use_channel(data: bytes) -> None:
    said = text(data)
    channel = ol.registry.channel_of(json_or(said))
    if len(said) < 60:
        ol.ImpairedMDP(problem().mdp, channel)


def json_or(said: str) -> Any:
    from oldlight.files import json_of

    return json_of(said) if said.lstrip().startswith("{") else said


def use_process(data: bytes) -> None:
    ol.registry.mdp_of(json_or(text(data)))


def use_learner(data: bytes) -> None:
    name, _, options = text(data).partition(":")
    ol.registry.learner_of(name, **dict(item.partition("=")[::2] for item in options.split(",") if "=" in item))


def use_study(data: bytes) -> None:
    from oldlight.studies import load_study

    study = load_study(file(data, "study.toml"), import_code=False)
    if len(data) < 400:
        study.jobs()


def use_trace(data: bytes) -> None:
    trace = ol.read_trace(file(data, "link.txt"))
    repr(trace)
    trace.fit(20.0, horizon=2)


def archives(kind: str) -> Callable[[], tuple[bytes, ...]]:
    """A good file, one of its members replaced by hostile ones, and plain rubbish."""

    @cache
    def made() -> tuple[bytes, ...]:
        plan = ol.solve(problem()).policy
        save = {
            "process": lambda path: problem().mdp.save(path),
            "policy": plan.save,
            "controller": lambda path: ol.Controller(problem(), plan).save(path),
            "run": lambda path: ol.learn(problem(), ol.learners.PosteriorSampling(), 3, best=1.0, progress=False).save(
                path
            ),
        }[kind]
        save(FOLDER / f"good-{kind}.npz")
        good = (FOLDER / f"good-{kind}.npz").read_bytes()
        return (good, *hostile(good), b"PK\x03\x04", b"")

    return made


def hostile(good: bytes) -> list[bytes]:
    """The archive with each of its members in turn declared huge, of another type, or nested."""
    with zipfile.ZipFile(io.BytesIO(good)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    out = []
    bad = (
        b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999,), }".ljust(127)
        + b"\n",
        b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(127) + b"\n",
        b"\x93NUMPY\x01\x00v\x00" + b"(" * 118,
    )
    for name in members:
        for data in bad:
            written = io.BytesIO()
            with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
                for other, content in members.items():
                    archive.writestr(other, data if other == name else content)
            out.append(written.getvalue())
    return out


def use_archive(kind: str) -> Callable[[bytes], None]:
    def use(data: bytes) -> None:
        if kind == "process":
            if not (FOLDER / "fuzzed.toml").exists():
                problem().mdp.save(FOLDER / "fuzzed.toml")
            file(data, "fuzzed.npz")
            ol.TabularMDP.load(FOLDER / "fuzzed.toml")
            return
        path = file(data, f"fuzzed-{kind}.npz")
        if kind == "policy":
            ol.load_policy(path)
        elif kind == "run":
            repr(ol.LearningRun.load(path))
        else:
            controller = ol.Controller.load(path)
            controller.reset((0,) * controller.tables.warmup)
            controller.act()

    return use


def use_process_head(data: bytes) -> None:
    problem().mdp.save(FOLDER / "headed.toml")
    file(data, "headed.toml")
    ol.TabularMDP.load(FOLDER / "headed.toml")


def use_study_record(data: bytes) -> None:
    file(data, "study.json")
    str(ol.studies.status(FOLDER))


def use_datagram(data: bytes) -> None:
    """As a peer of the testbed would send it."""
    from oldlight.testbed import wire

    port = wire.Port.__new__(wire.Port)
    port.setup = types.SimpleNamespace(problem=problem(), episodes=3)  # type: ignore[assignment]
    port.peers = {"plant": 7}
    port.socket = types.SimpleNamespace(recvfrom=lambda size: (data[:size], ("127.0.0.1", 7)))  # type: ignore[assignment]
    forms = {"tick": tuple(wire.FIELDS), "act": ("e", "h", "a"), "state": ("e", "step", "state")}
    message = port._taken(forms)
    assert message is None or message["kind"] in forms


def use_events(data: bytes) -> None:
    """Events in any order with any numbers: a controller refuses nonsense and goes on."""
    controller = fuzzed_controller()
    controller.reset()
    for i in range(0, min(len(data) - 1, 24), 2):
        number = int.from_bytes(data[i + 1 : i + 2], "big", signed=True)
        wild: Any = (number, number % 5, 10**20, -number, float(number), None, "1", True)[data[i] >> 5]
        try:
            match data[i] & 3:
                case 0:
                    controller.observe(wild, number % 3)
                case 1:
                    controller.lost(wild)
                case 2:
                    controller.tick(wild)
                case _:
                    assert controller.act() in (0, 1)
        except ValueError:
            continue
    if controller.step < 3:
        assert controller.act() in (0, 1)


@cache
def fuzzed_controller() -> ol.Controller:
    return ol.Controller(problem(), ol.solve(problem()).policy)


def use_command(data: bytes) -> None:
    from typer.testing import CliRunner

    from oldlight import cli

    words = text(data).split()
    if {"paper", "testbed", "explore"} & set(words) or any(
        word.startswith(("-n", "--e", "--w", "--s")) and len(word) > 12 for word in words
    ):
        return  # these take long by their nature
    done = CliRunner().invoke(cli.app, words)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception


TARGETS = [
    Target("links as text and data", coded(CHANNELS), use_channel, (ValueError, TypeError, OSError, TooLarge)),
    Target("processes as text and data", coded(PROCESSES), use_process, (ValueError, TypeError, OSError, TooLarge)),
    Target("learners as text", coded(LEARNERS), use_learner, (ValueError, TypeError)),
    Target("studies", coded((STUDY, "instances = []", 'instances = [{name = "subprocess:getoutput", cmd = "true"}]')), use_study, (ValueError, TypeError, OSError, TooLarge)),
    Target("recordings", coded(TRACES), use_trace, (ValueError,)),
    *(Target(f"{kind} files", archives(kind), use_archive(kind), (ol.UnreadableFile,)) for kind in ("process", "policy", "controller", "run")),
    Target("heads of process files", lambda: ((problem().mdp.save(FOLDER / "head.toml")).read_bytes(),), use_process_head, (ol.UnreadableFile, FileNotFoundError)),
    Target("study.json", coded((RECORD, '{"format": 1, "study": {}, "cells": [{"id": "a1"}]}', "[]", "[" * 100_000)), use_study_record, (ValueError,)),
    Target("datagrams", coded(DATAGRAMS), use_datagram, ()),
    Target("events of a controller", lambda: tuple(bytes(range(i, i + 24)) for i in range(0, 256 - 24, 16)), use_events, ()),
    Target("command lines", coded(COMMANDS), use_command, (ValueError, TypeError, OSError, TooLarge)),
]  # fmt: skip
