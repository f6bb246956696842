"""Shared by the tests: random instances, the bridge between raw histories and information states, fixtures of studies."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oracle import History, random_instance
from repeats import is_thorough, set_thorough

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of child processes need not compile our modules again
sys.dont_write_bytecode = False

STARTS_PROCESSES = re.compile(
    r"\b(subprocess|multiprocessing|AsyncVectorEnv|run_testbed|LocalCluster)\b|\bworkers=[2-9]"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thorough", action="store_true", help="repeat random checks as often as tests/repeats.py says")


def pytest_configure(config: pytest.Config) -> None:
    set_thorough(bool(config.getoption("--thorough")))
    # started with nohup or &: processes that tests send Ctrl-C to would ignore it too
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """`-n auto` starts a test process for each core. One more would work while some tests wait, but it takes more than that: 6 min 24 s instead of 5 min 52 s."""
    return os.cpu_count() or 1


def without_half_of_the_pairs(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Of the pairs of two parameters that are marked `crossed` every second one, so that each value of both is met. Values are numbered in the order in which
    they come: pytest's own `callspec.indices` are those of the pairs since pytest 9."""
    met: dict[tuple[Any, ...], list[Any]] = {}
    for item in items:
        mark, places = item.get_closest_marker("crossed"), 0
        for name in () if mark is None else mark.args:
            values, value = met.setdefault((item.path, item.originalname, name), []), item.callspec.params[name]  # type: ignore[attr-defined]
            if not any(value is other for other in values):
                values.append(value)
            places += next(i for i, other in enumerate(values) if value is other)
        if places % 2 == 0:
            yield item


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that start processes are marked, so that they can be left out: pytest -m "not subprocess". Files with slow tests come first: what is
    left at the end, when one test process has nothing to do any more, is short."""
    if not is_thorough():
        items[:] = without_half_of_the_pairs(items)
    starts = {
        path: bool(STARTS_PROCESSES.search(path.read_text(encoding="utf-8"))) for path in {item.path for item in items}
    }
    for item in items:
        if starts[item.path]:
            item.add_marker("subprocess")
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)  # otherwise in their order


def pytest_collection_finish() -> None:
    """Thousands of tests and modules are there until the end: the garbage collector need not walk through them again and again (a seventh of the processor time)."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_terminal_summary(config: pytest.Config) -> None:
    """A failing run ends with the names of the failed tests and what they asserted, not cut off where a narrow terminal ends."""
    writer = config.get_terminal_writer()
    writer.fullwidth = max(writer.fullwidth, 240)


def random_mdp(rng: np.random.Generator, S: int, A: int, H: int, **kind: bool) -> ol.TabularMDP:
    P, R, rho = random_instance(rng, S, A, H, **kind)
    return ol.TabularMDP(P, R, horizon=H, initial=rho)


def arrays(mdp: ol.TabularMDP) -> tuple[Any, Any, Any]:
    """(P, R, rho) as the oracle takes them."""
    return np.array(mdp.transitions), np.array(mdp.rewards), np.array(mdp.initial)


def information_of(history: History) -> ol.Information:
    """τ_h from everything that was seen and done: the newest seen step, the actions since, the wait."""
    h = len(history) - 1
    past = history[0].past
    actions = [*past, *(entry.action for entry in history[1:])]
    newest, when = None, -1
    for time, entry in enumerate(history):
        for step, state in entry.arrivals:
            if state is not None:
                newest, when = (step, state), time
    if newest is None:
        return ol.Information.nothing_seen(tuple(actions))
    t, s = newest
    return ol.Information(h, t, s, tuple(actions[t + len(past) :]), h - when)


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Any]) -> Path:
    """The folder `name` that `make` fills, made by the first test process that asks for it; the others wait, and read it."""
    import fcntl

    alone = "PYTEST_XDIST_WORKER" not in os.environ
    place = (factory.getbasetemp() if alone else factory.getbasetemp().parent) / name
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.with_suffix(".made").exists():
            place.mkdir()
            make(place)
            place.with_suffix(".made").touch()
    return place


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261115)


def inline_engine(name: str, jobs: Any, settings: Any, workers: int, scheduler: Any) -> Iterator[Any]:
    """An engine of studies that does the jobs in this process, for `oldlight.studies.runner._engine`."""
    from oldlight.studies.work import PackedJob, perform

    for job in jobs:
        yield perform(PackedJob.of(job), settings)


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """The jobs of a study are done in this process: what is tested is not the engine."""
    from oldlight.studies import runner

    monkeypatch.setattr(runner, "_engine", inline_engine)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with code of one's own in it, for a study that names it."""
    from study_cases import OWN

    (tmp_path / "heron.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("heron", None)


@pytest.fixture
def fewer_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """`check_learner` learns half as long, unless thorough."""
    if not is_thorough():
        monkeypatch.setattr("oldlight.testing.EPISODES", 8)
        monkeypatch.setattr("oldlight.testing.BEFORE_STOP", 3)


@pytest.fixture
def no_dense_array(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever makes a dense array of a sparse process fails."""
    from oldlight.model.transitions import Transitions

    original = Transitions.dense

    def refuse(self: Transitions, horizon: int) -> Any:
        assert not self.sparse, "a dense array is made of a sparse process"
        return original(self, horizon)

    monkeypatch.setattr(Transitions, "dense", refuse)
