"""The dask engine against a real scheduler and two worker processes, one of which is killed in the middle."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import oldlight as ol
from oldlight.studies import Progress, cluster, load_study, numbers, results, run_study, status
from oldlight.studies.result import unpack
from oldlight.studies.work import Event, PackedJob, RunSettings, perform
from repeats import repeats

distributed = pytest.importorskip("distributed", reason="the dask engine is optional")

KEYS: dict[str, Any] = {
    "name": "on a cluster",
    "seed": 5,
    "seeds": 2,
    "episodes": repeats(1500, 5000),
    "every": 100,
    "start": "warm",
    "checkpoint_every": 0.2,
    "instances": [{"name": "sensing_chain", "p": 0.8, "n_states": 4, "n_actions": 2, "horizon": 5, "label": "small"}],
    "channels": ["constant:1"],
    "learners": ["MemorylessQLearning", "DelayedUCBVI"],
    "tasks": [{"name": "simulate", "episodes": 500}],
}


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The address of a scheduler with two workers, and the workers' processes (without nannies: the dead stay dead)."""
    place = tmp_path_factory.mktemp("dask")
    file = place / "scheduler.json"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    how: dict[str, Any] = {"env": environment, "cwd": place, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    alone = ["--scheduler-file", str(file), "--no-dashboard"]
    dask = "from distributed.cli import dask_{0} as cli; cli.main()"
    base = [sys.executable, "-c"]
    crew = [
        subprocess.Popen(
            [
                *base,
                dask.format("scheduler"),
                "--host",
                "127.0.0.1",
                "--port",
                "0",
                "--dashboard-address",
                "127.0.0.1:0",
                *alone,
            ],
            **how,
        )
    ]
    try:
        until = time.monotonic() + 60
        while not file.exists():
            assert crew[0].poll() is None, "the scheduler has ended"
            assert time.monotonic() < until, "the scheduler does not start"
            time.sleep(0.05)
        for name in ("one", "two"):
            command = [*base, dask.format("worker"), "--nthreads", "1", "--no-nanny", "--name", name, *alone]
            crew.append(subprocess.Popen(command, **how))
        with distributed.Client(scheduler_file=str(file), set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
            address = client.scheduler.address
        yield address, crew[1:]
    finally:
        for process in crew:
            process.kill()
            process.wait()


def undisturbed(keys: dict[str, Any], folder: Path) -> dict[str, str]:
    """The numbers of each job, done in this process."""
    out = {}
    for job in load_study(keys).jobs():
        event = perform(PackedJob.of(job), RunSettings(None, 1e9, ol.__version__))
        assert event.data is not None, event.error
        path = folder / f"{job.id}.parquet"
        path.write_bytes(event.data)
        out[job.id] = unpack(path).numbers
    return out


def test_workers_that_cannot_reach_the_folder_send_their_results(
    scheduler: tuple[str, list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextlib.contextmanager
    def unseen(settings: RunSettings, token: str) -> Iterator[str]:
        yield str(tmp_path / "no such file")

    monkeypatch.setattr(cluster, "_sign", unseen)
    keys = KEYS | {"learners": ["MemorylessQLearning"], "episodes": 50}
    state = run_study(load_study(keys), tmp_path / "runs", engine="dask", scheduler=scheduler[0], progress=False)
    assert state.complete, state
    assert numbers(tmp_path / "runs") == undisturbed(keys, tmp_path)


def test_a_cell_whose_tables_are_in_files(scheduler: tuple[str, list[Any]], tmp_path: Path) -> None:
    """A study names the scratch folder, one that every machine of the cluster has; the numbers are those of memory."""
    planned = {}
    for name, options in {"memory": {}, "files": {"scratch": str(tmp_path), "max_bytes": 1}}.items():
        keys = KEYS | {"learners": None, "tasks": [{"name": "solve", **options}], "seeds": 1}
        state = run_study(load_study(keys), tmp_path / name, engine="dask", scheduler=scheduler[0], progress=False)
        assert state.complete, state.failed
        planned[name] = [(r.scalars["value"], r.scalars["lower"], r.scalars["upper"]) for r in results(tmp_path / name)]
    assert planned["files"] == planned["memory"]
    with pytest.raises(ValueError, match="scratch: nowhere does not exist"):
        load_study(KEYS | {"tasks": [{"name": "solve", "scratch": "nowhere"}]}).check()


def test_a_failure_on_a_cluster_is_recorded(
    scheduler: tuple[str, list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code of one's own is found beside the study's file; what it raises comes back with its traceback."""
    (tmp_path / "egret.py").write_text(
        "import oldlight\n@oldlight.registered\ndef wades(problem, *, deep):\n    return {'depth': 1 / (1 - deep)}\n"
    )
    (tmp_path / "study.toml").write_text("""
name = "birds"
instances = ["sensing_chain"]
tasks = [{name = "egret:wades", deep = 0}, {name = "egret:wades", deep = 1}]
""")
    monkeypatch.setattr(sys, "path", list(sys.path))
    state = run_study(
        load_study(tmp_path / "study.toml"), tmp_path / "runs", engine="dask", scheduler=scheduler[0], progress=False
    )
    sys.modules.pop("egret")
    assert [r.scalars["depth"] for r in results(tmp_path / "runs")] == [1.0]
    (failure,) = state.failed
    assert failure.error == "ZeroDivisionError: division by zero"
    assert "in wades" in failure.traceback


def test_what_nobody_waits_for_stops(scheduler: tuple[str, list[Any]], tmp_path: Path) -> None:
    """Ctrl-C at the runner: the jobs that were running end on the cluster too, at their last checkpoint."""
    study = load_study(
        KEYS | {"episodes": 2 * 10**6, "learners": ["MemorylessQLearning"], "tasks": None, "every": 10**6}
    )

    def interrupt(now: Progress) -> None:
        if now.episodes:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(study, tmp_path / "runs", engine="dask", scheduler=scheduler[0], progress=interrupt)
    with distributed.Client(scheduler[0], set_as_default=False) as client:
        until = time.monotonic() + 60
        while any(client.run(lambda dask_worker: bool(dask_worker.active_threads)).values()):
            assert time.monotonic() < until, "the workers go on for nobody"
            time.sleep(0.1)
    state = status(tmp_path / "runs")
    assert (state.done, state.running, state.waiting, state.stopped) == (0, (), 2, 2)


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(scheduler: tuple[str, list[subprocess.Popen[bytes]]], tmp_path: Path) -> None:
    """The last test here: one worker is killed (−9) while both are learning."""
    address, workers = scheduler
    expected = undisturbed(KEYS, tmp_path)
    killed: list[Progress] = []

    def watch(now: Progress) -> None:
        if not killed and now.running == 2 and now.episodes > 0:
            workers[0].send_signal(signal.SIGKILL)
            workers[0].wait()
            killed.append(now)

    state = run_study(load_study(KEYS), tmp_path / "runs", engine="dask", scheduler=address, progress=watch)
    assert killed
    assert killed[0].done < state.total
    assert state.complete, state.failed
    assert numbers(tmp_path / "runs") == expected
    assert not list((tmp_path / "runs" / "running").glob("*.npz"))


def test_a_result_that_died_with_its_worker_is_waited_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker ends a job and is killed before anybody has looked at its result: the scheduler has the job done again."""

    class Future:
        key, fates = "", ["lost", "pending", "finished"]

        def add_done_callback(self, call: Any) -> None:
            self.status = self.fates.pop(0)
            call(self)

        def result(self) -> Event:
            return Event("done", "the job")

    class Client:
        def submit(self, *_: Any, key: str, **__: Any) -> Future:
            future.key = key
            return future

        def subscribe_topic(self, *_: Any) -> None: ...

        def cancel(self, left: list[Any], **_: Any) -> None:
            assert not left

    future = Future()
    monkeypatch.setattr(cluster, "_client", lambda *_: contextlib.nullcontext(Client()))
    (tmp_path / "running").mkdir()
    job = next(iter(load_study(KEYS).jobs()))
    settings = RunSettings(str(tmp_path), 1.0, ol.__version__)
    assert list(cluster.run_on_dask([job], settings, 1, None)) == [Event("done", "the job")]
    assert not future.fates


def test_a_local_cluster_where_no_address_is_given(tmp_path: Path) -> None:
    """And where dask's own port is taken, which its scheduler would complain about."""
    keys = KEYS | {"episodes": 50, "seeds": 1}
    with socket.socket() as taken, warnings.catch_warnings():
        with contextlib.suppress(OSError):  # somebody else may have it
            taken.bind(("127.0.0.1", 8787))
            taken.listen()
        warnings.filterwarnings("error", message="Port 8787")
        state = run_study(load_study(keys), tmp_path / "runs", engine="dask", workers=1, progress=False)
    assert state.complete, state.failed
    assert numbers(tmp_path / "runs") == undisturbed(keys, tmp_path)


def test_no_scheduler_at_that_address(tmp_path: Path) -> None:
    import dask

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "500ms"}),
        pytest.raises(ConnectionError, match="no dask scheduler answers"),
    ):
        run_study(load_study(KEYS), tmp_path / "runs", engine="dask", scheduler="tcp://127.0.0.1:9", progress=False)


@pytest.mark.parametrize("address", ["nonsense", "smoke://here:8786", "tcp://here:99999", "tcp://here:port"])
def test_what_is_no_address_is_refused_before_a_client_is_made(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that was half made would hold up the end of the program for a minute, and then print a traceback."""
    monkeypatch.setattr(distributed, "Client", lambda *args, **options: pytest.fail("a client was made"))
    with pytest.raises(ValueError, match=rf"scheduler is '{address}', expected an address such as tcp://"):
        run_study(load_study(KEYS), tmp_path / "runs", engine="dask", scheduler=address, progress=False)
