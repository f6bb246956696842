"""Tables in files of a scratch folder: the same numbers as in memory, nothing left behind, and a full disk is named."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import oldlight as ol
from conftest import random_mdp
from oldlight.model.information import beginnings
from oldlight.planning import scratch
from oracle import random_law

MAPS = Path("/proc/self/maps")


def mapped(folder: Path) -> int:
    """How many files of the folder this process has mapped."""
    return sum(str(folder) in line for line in MAPS.read_text(encoding="utf-8").splitlines())


def problems(seed: int) -> ol.ImpairedMDP:
    rng = np.random.default_rng([seed, 41])
    mdp = random_mdp(rng, 3, 2, 5, stationary=bool(seed % 2), sparse=bool(seed % 3 == 0))
    if seed % 4 == 0:
        return ol.ImpairedMDP(mdp, ol.ConstantDelay(3), start="warm")
    if seed % 4 == 1:
        return ol.ImpairedMDP(mdp, ol.ConstantDelay(4))
    if seed % 4 == 2:
        return ol.ImpairedMDP(mdp, ol.GeometricDelay(0.4, first="same"), actuation=1, pending=(1,))
    first, inter = random_law(rng, 5, 3, 2, 4, kind="state_action")
    return ol.ImpairedMDP(mdp, ol.StochasticDelay(inter, first=first))


@pytest.mark.parametrize("seed", range(16))
def test_the_numbers_are_those_of_memory_bit_for_bit(seed: int, tmp_path: Path) -> None:
    problem = problems(seed)
    here, there = ol.solve(problem), ol.solve(problem, scratch=tmp_path, max_bytes=1)
    assert (here.value, here.lower, here.upper) == (there.value, there.lower, there.upper)
    np.testing.assert_array_equal(here.value_by_start, there.value_by_start)
    np.testing.assert_array_equal(here.policy.actions, there.policy.actions)
    assert there.work.scratch == here.work.bytes > 0
    assert (here.work.scratch, there.work.bytes) == (0, 0)
    _, info = next(beginnings(problem))
    np.testing.assert_array_equal(here.q(info), there.q(info))
    assert ol.evaluate(problem, there.policy, scratch=tmp_path).value == ol.evaluate(problem, here.policy).value
    assert ol.simulate(problem, there.policy, 50, seed=1).mean == ol.simulate(problem, here.policy, 50, seed=1).mean


LINKS = {
    "packets": ol.PacketChannel([0.3, 0.3, 0.4]),
    "in order": ol.FIFODelay([0.3, 0.3, 0.4]),
    "age chain": ol.AgeChain([[0.5, 0.5, 0.0, 0.0], [0.2, 0.3, 0.5, 0.0], [0.5, 0.3, 0.2, 0.0]]),
    "packets that are lost": ol.PacketChannel([0.5, 0.5], lost=0.4),
    "late and lossy": "constant:2+loss:0.3",
}


@pytest.mark.parametrize("name", LINKS)
def test_links_have_the_numbers_of_memory_bit_for_bit(name: str, tmp_path: Path) -> None:
    mdp = random_mdp(np.random.default_rng([3, 41]), 4, 2, 6, stationary=False, sparse=False)
    problem = ol.ImpairedMDP(mdp, LINKS[name])  # type: ignore[arg-type]
    here = ol.solve(problem, tolerance=100.0)  # the first tables are enough
    there = ol.solve(problem, tolerance=100.0, scratch=tmp_path, max_bytes=1)
    assert (here.value, here.lower, here.upper) == (there.value, there.lower, there.upper)
    np.testing.assert_array_equal(here.policy.arrays["actions"], there.policy.arrays["actions"])
    assert there.work.scratch > 0 == here.work.scratch
    assert there.work.bytes < here.work.bytes
    assert ol.evaluate(problem, there.policy).value == ol.evaluate(problem, here.policy).value
    bounds = ol.solve(problem, scratch=tmp_path, max_bytes=1)  # a search would not fit: what is certified without it
    assert (bounds.lower, bounds.upper) == (there.lower, there.upper)
    del here, there, bounds
    assert not MAPS.exists() or mapped(tmp_path) == 0


def test_a_plan_for_ever_names_the_way_to_a_folder() -> None:
    chain = ol.instances.sensing_chain(0.8)
    plant = ol.TabularMDP(chain.transitions[0], chain.rewards[0], horizon=None, discount=0.9)
    with pytest.raises(ol.TooLarge, match=r"on a disk, scratch=FOLDER \(plans for ever stay in memory\)"):
        ol.solve(ol.ImpairedMDP(plant, "constant:3"), max_bytes=1)


def test_a_ladder_and_a_gap_take_the_folder(tmp_path: Path) -> None:
    problem = problems(1)
    here, there = ol.solve(problem, depth=2), ol.solve(problem, depth=2, scratch=tmp_path, max_bytes=1)
    assert (here.value, here.lower, here.upper) == (there.value, there.lower, there.upper)
    assert ol.gap(problem, scratch=tmp_path, max_bytes=1).gap == ol.gap(problem).gap


@pytest.mark.skipif(not MAPS.exists(), reason="mapped files are listed by Linux only")
def test_the_tables_are_in_files_without_a_name_and_go_with_the_solution(tmp_path: Path) -> None:
    seen: list[tuple[int, list[Path]]] = []
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:3")
    found = ol.solve(
        problem,
        scratch=tmp_path,
        max_bytes=1,
        progress=lambda *_: seen.append((mapped(tmp_path), [*tmp_path.iterdir()])),
    )
    assert seen
    assert all(files == 2 and names == [] for files, names in seen)  # values and actions
    assert mapped(tmp_path) == 1  # the policy
    path = found.policy.save(tmp_path / "best.npz")
    del found
    assert mapped(tmp_path) == 0
    np.testing.assert_array_equal(ol.load_policy(path).actions, ol.solve(problem).policy.actions)


def test_what_fits_in_memory_stays_there(tmp_path: Path) -> None:
    assert ol.solve(problems(0), scratch=tmp_path).work.scratch == 0


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problems(0)
    monkeypatch.setattr(scratch.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 100}))
    with pytest.raises(ol.TooLarge, match=r"scratch: the tables need \d+ B and .* has 100 B left"):
        ol.solve(problem, scratch=tmp_path, max_bytes=1)
    monkeypatch.undo()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(scratch, "_reserve", full)
    with pytest.raises(OSError, match=r"could not be reserved in .* \(No space left on device\)") as caught:
        ol.solve(problem, scratch=tmp_path, max_bytes=1)
    assert caught.value.errno == errno.ENOSPC
    assert list(tmp_path.iterdir()) == []


def test_room_is_reserved_where_the_system_has_no_call_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    monkeypatch.setattr(scratch, "PIECE", 64)
    found = scratch.empty(100, np.float64, tmp_path)
    found[:] = np.arange(100)
    assert found.sum() == 4950


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist, expected a folder"):
        ol.solve(problems(0), scratch=tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileNotFoundError, match="is a file, expected a folder"):
        ol.solve(problems(0), scratch=tmp_path / "file")


def test_the_refusal_names_this_way_out() -> None:
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8, horizon=20), "constant:10")
    with pytest.raises(ol.TooLarge, match=r"scratch=FOLDER keeps the tables in files of a disk with [\d.]+ GiB left"):
        ol.solve(problem, max_bytes=2**30)


INTERRUPTED = """
import os, signal, sys
import oldlight as ol
folder = sys.argv[1]
signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent in the background ignores it
problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:3")
def stop(done, total):
    os.kill(os.getpid(), signal.{signal})
ol.solve(problem, scratch=folder, max_bytes=1, progress=stop)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_an_interrupt_leaves_nothing(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED.replace("{signal}", name), str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode in (-getattr(signal, name), 128 + getattr(signal, name), 1)
    assert ended.returncode != 0
    if name == "SIGINT":
        assert "KeyboardInterrupt" in ended.stderr
    assert list(tmp_path.iterdir()) == []
