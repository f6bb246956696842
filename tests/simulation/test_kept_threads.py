"""Threads are kept for the next plan or simulation, lent to one caller at a time."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from oldlight import threads
from oldlight.threads import lent_threads


@pytest.fixture(autouse=True)
def _none_kept() -> None:
    threads._kept.clear()


def test_the_next_caller_has_the_same_threads() -> None:
    with lent_threads(2) as first:
        one = first.submit(threading.get_ident).result()
    with lent_threads(1) as second:
        assert second.submit(threading.get_ident).result() == one
    assert second is first
    with lent_threads(3) as larger:
        assert larger is not first
    with lent_threads(2) as again:
        assert again is larger


def test_two_callers_at_once_have_threads_of_their_own() -> None:
    with lent_threads(1) as outer, lent_threads(1) as inner:
        # each does its work although the only thread of the other is busy
        gate = threading.Event()
        waiting = outer.submit(gate.wait, 30)
        assert inner.submit(sum, [1, 2]).result(10) == 3
        gate.set()
        assert waiting.result()
    assert len(threads._kept) == 1


def test_after_an_error_threads_end() -> None:
    def fail() -> None:
        with lent_threads(1) as pool:
            pool.submit(int).result()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert threads._kept == []


def test_callers_in_many_threads() -> None:
    def ask(i: int) -> int:
        with lent_threads(2) as pool:
            return pool.submit(int, i).result()

    with ThreadPoolExecutor(8) as callers:
        assert list(callers.map(ask, range(400))) == list(range(400))
    assert len(threads._kept) == 1


FORKED = """
import os, sys
import oldlight as ol
from oldlight.simulation import spans
spans.FEW = 0
problem = ol.ImpairedMDP(ol.instances.center_chain(0.99), "constant:6", start="warm")
def both():
    plan = ol.solve(problem, progress=False)
    return plan.value, ol.simulate(problem, plan.policy, 20_000, seed=1, threads=2).mean
before = both()
child = os.fork()
if child == 0:
    os._exit(0 if both() == before else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert both() == before
"""


@pytest.mark.subprocess
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_plans_and_plays_with_threads_of_its_own() -> None:
    environment = os.environ | {"OLDLIGHT_THREADS": "2"}
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=120, env=environment)
