"""Worker processes: what they do, how they fail, how they are stopped; and the one progress display."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path
from typing import Any

import pytest

import oldlight as ol
from oldlight import progress, workers
from oldlight.learners import DelayedUCBVI, learn_seeds
from oldlight.machine import thread_count
from oldlight.studies.work import keep_to_one_thread
from oldlight.workers import Pool
from worker_jobs import do

PROBLEM = ol.ImpairedMDP(ol.instances.sensing_chain(0.8, horizon=4), ol.ConstantDelay(1))


def test_results_reports_errors_and_deaths() -> None:
    jobs = [("square", 3), ("raise", "too much"), ("die", None), ("odd", None), ("square", 5)]
    told: dict[int, list[tuple[str, Any]]] = {}
    with Pool(do, 2) as pool:
        for kind, k, what in pool.run(jobs):
            told.setdefault(k, []).append((kind, what))
    assert told[0] == [("started", None), ("reported", 3), ("done", 9)]
    assert told[4] == [("started", None), ("reported", 5), ("done", 25)]
    assert [kind for kind, _ in told[1]] == ["started", "failed"]
    error = told[1][1][1]
    assert (type(error), str(error)) == (ol.TooLarge, "too much")
    assert "worker_jobs.py" in error.__notes__[0]
    assert told[2][1] == ("died", "the worker process was killed by signal 9 (SIGKILL); was it out of memory?")
    assert repr(told[3][1][1]) == "RuntimeError('Odd: 1 and 2')"
    assert multiprocessing.active_children() == []


def test_a_worker_has_one_thread_for_plans_and_for_products_of_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("OLDLIGHT_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    for name in names:
        monkeypatch.setenv(name, "7")
    with Pool(do, 1) as pool:
        found = [what for kind, _, what in pool.run([("threads", names)]) if kind == "done"]
    assert found == [[1, "1", "1", "1", "1", "1"]]
    assert thread_count() == 7  # the caller keeps its own
    keep_to_one_thread()  # what a dask worker does, which somebody else has started
    assert thread_count() == 1


def test_stopping_gives_what_was_put_down_and_ends_what_does_not_hear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "GRACE", 4.0)
    here = [tmp_path / "a", tmp_path / "b"]
    with Pool(do, 2) as pool:
        events = pool.run([("wait", str(here[0])), ("deaf", str(here[1])), ("square", 2)])
        assert {next(events)[:2], next(events)[:2]} == {("started", 0), ("started", 1)}
        while not all(path.exists() for path in here):
            time.sleep(0.05)
        assert pool.stop() == {0: "put down"}
    assert multiprocessing.active_children() == []


def test_an_interrupt_that_would_be_dropped_is_heard_when_it_comes_again() -> None:
    with Pool(do, 1) as pool:
        for kind, _, _ in pool.run([("dropped", "still here")]):
            if kind == "reported":
                break
        assert pool.stop() == {0: "heard again"}


def test_other_processes_of_the_caller_are_left_alone() -> None:
    """Ctrl-C in a loop over seeds goes to its own workers, not to every child of this process."""
    mine = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(3600,), daemon=True)
    mine.start()

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    try:
        with pytest.raises(KeyboardInterrupt) as stop:
            learn_seeds(PROBLEM, DelayedUCBVI, 10**6, seeds=range(3), workers=2, every=10**5, progress=interrupt)
        assert mine.is_alive()
        assert 1 <= len(stop.value.partial) <= 2
        assert all(run.interrupted and run.done < 10**6 for run in stop.value.partial)
        assert max(run.done for run in stop.value.partial) > 0
    finally:
        mine.kill()
        mine.join()


@pytest.mark.parametrize("n", [1, 2])
def test_one_callback_for_the_episodes_of_all_seeds(n: int) -> None:
    seen: list[tuple[int, int]] = []
    learn_seeds(PROBLEM, DelayedUCBVI, 40, seeds=range(3), workers=n, progress=lambda *now: seen.append(now))
    done, total = zip(*seen, strict=True)
    assert set(total) == {120}
    assert list(done) == sorted(done)
    assert done[0] >= 1


@pytest.mark.parametrize("asked", [True, None])
def test_lines_where_there_is_no_terminal(
    asked: bool | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One at once if asked for, then one every ten seconds; nothing where the caller wants nothing."""
    clock = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    with progress.progress_bar(asked, "planning") as callback:
        assert callback is not None
        for k in range(1, 6):
            clock[0] += 5.0
            callback(k, 5)
    lines = capsys.readouterr().err.splitlines()
    expected = ["planning: 2 of 5, 0:15 left", "planning: 4 of 5, 0:05 left"]
    if asked:
        expected = ["planning: 1 of 5, 0:20 left", "planning: 3 of 5, 0:10 left", "planning: 5 of 5, 0:00 left"]
    assert lines == expected
    with progress.progress_bar(False, "planning") as nothing:
        assert nothing is None


def test_a_bar_on_a_terminal_appears_after_two_seconds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress.progress_bar(None, "planning") as callback:
        assert callback is not None
        callback(1, 5)
        assert capsys.readouterr().err == ""
        clock[0] += progress.PATIENCE
        callback(2, 5)
    assert "planning" in capsys.readouterr().err
