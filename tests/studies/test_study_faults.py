"""Studies under faults: kill −9 at random moments, Ctrl-C, a full disk, a read-only folder.

What must hold each time: the final numbers are those of an undisturbed run, earlier results stay, and nobody is left running.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.studies import load_study, numbers, run_study, status
from oldlight.studies.result import unpack
from oldlight.studies.work import PackedJob, RunSettings, perform
from repeats import repeats

KEYS: dict[str, Any] = {
    "name": "to be killed",
    "seed": 8,
    "seeds": 2,
    "episodes": repeats(60_000, 600_000),  # a fifth of a second for a job, or two
    "every": 3000,
    "start": "warm",
    "checkpoint_every": 0.02,
    "instances": [{"name": "sensing_chain", "p": 0.8, "n_states": 4, "n_actions": 2, "horizon": 5, "label": "small"}],
    "channels": ["constant:0", "constant:1"],
    "learners": ["MemorylessQLearning", {"name": "MemorylessQLearning", "pooled": True}],  # quick to start
}
RUN = """
import json, sys
from oldlight.studies import load_study, run_study
if __name__ == "__main__":
    run_study(load_study(json.loads(sys.argv[1])), sys.argv[2], workers=int(sys.argv[3]), progress=False)
"""
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


def started(folder: Path, workers: int) -> subprocess.Popen[bytes]:
    """A process that runs the study, in a group of its own."""
    script = folder.parent / "run.py"
    script.write_text(RUN)
    command = [sys.executable, str(script), json.dumps(KEYS), str(folder), str(workers)]
    return subprocess.Popen(command, env=ENVIRONMENT, start_new_session=True, stderr=subprocess.DEVNULL)


def children(pid: int) -> list[int]:
    """The processes that a process has started, and theirs."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if after_name[0] != "Z":
            parents[int(entry.parent.name)] = int(after_name[1])
    out = [child for child, parent in parents.items() if parent == pid]
    return out + [grandchild for child in out for grandchild in children(child)]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def wait_for(what: Any, process: subprocess.Popen[bytes], seconds: float = 60.0) -> bool:
    """Wait until `what()` holds; False if the process has ended before."""
    until = time.monotonic() + seconds
    while not what():
        if process.poll() is not None:
            return False
        assert time.monotonic() < until, "nothing happens"
        time.sleep(0.01)
    return True


def traces(folder: Path) -> set[tuple[str, int]]:
    """What a run has left so far: results and checkpoints, with their times."""
    out = set()
    for path in [*folder.glob("cells/*.parquet"), *folder.glob("running/*.npz")]:
        with contextlib.suppress(FileNotFoundError):
            out.add((path.name, path.stat().st_mtime_ns))
    return out


def undisturbed(keys: dict[str, Any], folder: Path) -> dict[str, str]:
    """The numbers of each job: one after the other, in this process, without checkpoints."""
    out = {}
    for job in load_study(keys).jobs():
        event = perform(PackedJob.of(job), RunSettings(None, 1e9, ol.__version__))
        assert event.data is not None, event.error
        path = folder / f"{job.id}.parquet"
        path.write_bytes(event.data)
        out[job.id] = unpack(path).numbers
    return out


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to find the worker processes")
def test_kill_nine_at_random_moments(tmp_path: Path) -> None:
    """Three kills (ten if thorough): some as soon as the process starts, most after it got somewhere; now the runner with its workers, now the runner
    alone, whose workers must then end by themselves. Should a study be finished before the last, another one is begun."""
    expected = undisturbed(KEYS, tmp_path)
    rng = np.random.default_rng(7)
    study, kills, in_the_middle = 0, 0, 0
    while kills < repeats(3, 10):
        folder = tmp_path / f"runs{study}"
        before = traces(folder)
        process = started(folder, workers=2 if kills % 5 == 2 else 1)
        try:
            if kills % 3:
                going = wait_for(lambda: traces(folder) - before, process)  # noqa: B023
                in_the_middle += going
            time.sleep(float(rng.uniform(0.0, 0.35 if kills % 3 else 1.5)))
            if process.poll() is None:
                crew = children(process.pid)
                kill([process.pid, *crew] if kills % 2 else [process.pid])
                kills += 1
                process.wait()
                until = time.monotonic() + 30
                while any(map(alive, crew)):
                    assert time.monotonic() < until, "workers go on after their runner has died"
                    time.sleep(0.02)
            else:
                assert process.returncode == 0
        finally:
            kill([process.pid, *children(process.pid)])
        if folder.exists() and (folder / "study.json").exists():
            state = status(folder)
            assert not state.running
            assert not state.damaged
            if state.complete:
                assert numbers(folder) == expected
                study += 1
    assert in_the_middle >= kills // 2

    folder = tmp_path / f"runs{study}"
    process = started(folder, workers=2)  # then Ctrl-C, as a terminal sends it: to the whole group
    before = traces(folder)
    if wait_for(lambda: traces(folder) - before and status(folder).running, process):
        os.killpg(process.pid, signal.SIGINT)
        ended, state = process.wait(timeout=60), status(folder)
        assert not state.running
        assert state.stopped or state.complete
        assert ended == -signal.SIGINT or (ended == 0 and state.complete)  # its last job may be done before it hears
    state = run_study(load_study(KEYS), folder, workers=repeats(1, 2), progress=False)
    assert state.complete
    assert numbers(folder) == expected
    assert not list((folder / "running").glob("*.npz"))


DISK = """
import json, os, subprocess, sys
from pathlib import Path
from oldlight.studies import load_study, numbers, run_study, runner, status
from oldlight.studies.work import PackedJob, perform

def inline(name, jobs, settings, workers, scheduler):
    for job in jobs:
        yield perform(PackedJob.of(job), settings)

def tried(keys):
    try:
        run_study(load_study(keys), runs, workers=1, progress=False)
        return [0, "no error"]
    except OSError as error:
        return [error.errno, error.strerror]

if __name__ == "__main__":
    keys, disk = json.loads(sys.argv[1]), Path(sys.argv[2])
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(disk)]).returncode:
        sys.exit(77)
    runs, said, engine = disk / "runs", {}, runner._engine
    few = keys | {"episodes": 50}
    runner._engine = inline
    run_study(load_study(few), runs, progress=False)
    before = {p.name: p.read_bytes() for p in (runs / "cells").iterdir()}
    runner._engine = engine

    both = keys | {"blocks": [{"episodes": 50}, {"episodes": 4_000}]}
    def fill(leave):
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_bsize
        (disk / "ballast").write_bytes(bytes(free - leave))
    fill(0)
    said["full"] = tried(both)
    (disk / "ballast").unlink()
    fill(16 * 1024)
    said["nearly full"] = tried(both)
    said["kept"] = all((runs / "cells" / name).read_bytes() == data for name, data in before.items())
    said["parts"] = [p.name for p in runs.rglob(".*.part")]
    state = status(runs)
    said["state"] = [state.done, state.total, len(state.failed), len(state.damaged)]
    (disk / "ballast").unlink()

    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    said["read-only"] = tried(both)
    said["readable"] = status(runs).done == state.done and len(numbers(runs)) == state.done
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)

    runner._engine = inline
    run_study(load_study(both), runs, progress=False)
    said["numbers"] = numbers(runs)
    print(json.dumps(said))
"""


def test_a_full_disk_and_a_read_only_one(tmp_path: Path) -> None:
    """A disk of 1 MB in a mount namespace of its own, so that nothing of it is left behind."""
    disk, script = tmp_path / "disk", tmp_path / "disk.py"
    disk.mkdir()
    script.write_text(DISK)
    few = KEYS | {"learners": ["DelayedUCBVI"], "channels": ["constant:1"], "every": 200, "checkpoint_every": 10.0}
    for alone in (["unshare", "--mount"], ["unshare", "--map-root-user", "--mount"]):
        try:
            done = subprocess.run([*alone, sys.executable, str(script), json.dumps(few), str(disk)], env=ENVIRONMENT,
                                  capture_output=True, text=True, timeout=120)  # fmt: skip
        except FileNotFoundError:
            pytest.skip("there is no unshare command here, so no small disk can be made")
        if done.returncode == 0:
            break
        if done.returncode != 77 and "unshare" not in done.stderr:
            pytest.fail(done.stderr)
    else:
        pytest.skip(f"mounting is not permitted here, so no small disk can be made: {done.stderr.strip()}")
    said = json.loads(done.stdout)
    number, words = said["full"]
    assert number == errno.ENOSPC
    assert "could not be written (No space left on device)" in words
    number, words = said["nearly full"]
    assert number == errno.ENOSPC
    assert f"{disk}/runs" in words
    assert "could not be written (No space left on device); what was there before is untouched" in words
    assert "all earlier ones are kept; make room and start the study again" in words
    assert said["kept"]
    assert not said["parts"]
    assert said["state"] == [2, 4, 0, 0]  # no room is not the jobs' failure
    number, words = said["read-only"]
    assert number == errno.EROFS
    assert words.startswith(f"{disk}/runs cannot be written (Read-only file system); give a folder that can")
    assert said["readable"]
    assert said["numbers"] == undisturbed(few | {"blocks": [{"episodes": 50}, {"episodes": 4_000}]}, tmp_path)


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("mine")
    study = load_study(KEYS)
    with pytest.raises(NotADirectoryError, match=r"runs is a file, expected a folder for the results"):
        run_study(study, tmp_path / "runs")
    with pytest.raises(OSError, match=r"runs/deeper cannot be written \(Not a directory\)"):
        run_study(study, tmp_path / "runs" / "deeper")
    assert (tmp_path / "runs").read_text() == "mine"
