"""Inputs that broke something once, and the harness itself: it counts what is refused, and notices what is not."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import oldlight as ol
import run
import targets

BROKE = [  # (target, input): each was a traceback, a hang or a bill of gigabytes once
    ("datagrams", b"[" * 60_000),
    ("datagrams", b'{"kind":"act","e":0,"h":99999999999999999999,"a":1}'),
    ("recordings", targets.PING.replace("icmp_seq=1", "icmp_seq=99999999999999999999").encode()),
    ("recordings", targets.PING.encode() + b"7" * 300_000),
    ("recordings", targets.PING.encode() + b"from" + b" " * 100_000 + b"from" * 100_000),
    ("recordings", targets.PING.encode() + b"1 a, 1," * 50_000 + b"%" * 50_000 + b"x"),
    ("recordings", targets.PING.encode() + b"ping 1 a" * 50_000 + b"x"),
    ("recordings", targets.PING.encode() + b"h : " + b"1 " * 100_000 + b"x"),
    ("study.json", b"[" * 100_000),
    ("study.json", b'{"format": 1, "study": [], "cells": {}}'),
    ("links as text and data", b"constant:" + b"9" * 20),
    ("links as text and data", b'{"kind":' * 100_000),
    ("processes as text and data", b"/dev/zero"),
    ("processes as text and data", b"{" * 100_000),
    ("processes as text and data", b"gym:Fro-0.0enLake-v1@5"),
    ("processes as text and data", b"gym:Fror_chain:0.99enLake-v1@5"),
    ("studies", b"instances = " + b"[" * 100_000),
    ("run files", b"PK\x05\x06" + b"\xff" * 18),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(targets, "FOLDER", tmp_path)
    monkeypatch.chdir(tmp_path)
    before = signal.signal(signal.SIGPROF, run._hung)
    yield
    signal.signal(signal.SIGPROF, before)


def counted(target: targets.Target, data: bytes) -> dict[str, Any]:
    found = {"inputs": 0, "refused": 0, "exceptions": 0, "hangs": 0}
    run.one(target, data, found)
    return found


@pytest.mark.parametrize(("name", "data"), BROKE)
def test_what_broke_once_is_refused_or_read(name: str, data: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    [target] = [one for one in targets.TARGETS if one.name == name]
    found = counted(target, data)
    assert (found["exceptions"], found["hangs"]) == (0, 0), capsys.readouterr().err


def test_a_controller_with_impossible_pending_actions_is_refused(tmp_path: Path) -> None:
    import numpy as np

    problem = ol.ImpairedMDP(targets.problem().mdp, ol.ConstantDelay(1), actuation=1)
    path = ol.Controller(problem, ol.solve(problem).policy).save(tmp_path / "controller.npz")
    with np.load(path) as held:
        members = dict(held)
    [name] = [name for name in members if "pending" in name]
    members[name] = np.full_like(members[name], 77)
    np.savez(path, **members)
    with pytest.raises(ol.UnreadableFile):
        ol.Controller.load(path)


def test_the_harness_notices_what_it_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    def broken(data: bytes) -> None:
        raise KeyError("not a refusal") if data else ValueError("a refusal")

    target = targets.Target("broken", lambda: (b"x",), broken, (ValueError,))
    assert counted(target, b"x")["exceptions"] == 1
    assert counted(target, b"")["refused"] == 1

    def slow(data: bytes) -> None:
        while True:
            pass

    target = targets.Target("slow", lambda: (b"x",), slow, (ValueError,))
    targets.HANG, before = 0.05, targets.HANG
    try:
        assert counted(target, b"x")["hangs"] == 1
    finally:
        targets.HANG = before
    assert "KeyError" in capsys.readouterr().err


def test_every_target_takes_its_own_corpus(capsys: pytest.CaptureFixture[str]) -> None:
    """A batch of each: enough to see that the strategies make inputs and the targets use them."""
    for target in targets.TARGETS:
        if target.name == "command lines":
            continue
        found = {"inputs": 0, "refused": 0, "exceptions": 0, "hangs": 0}
        run.batch(target, 1, 5, found)
        assert found["inputs"] >= 5
        assert (found["exceptions"], found["hangs"]) == (0, 0), (target.name, capsys.readouterr().err)
