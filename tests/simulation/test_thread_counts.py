"""The number of threads changes no number, and workers have one each."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.machine import thread_count
from oldlight.planning.blocks import SMALL
from oldlight.planning.delay import DelayModel
from oldlight.simulation import spans
from oldlight.studies import cluster
from oldlight.workers import THREADS, Pool

CHAIN = ol.instances.sensing_chain(0.8)


@pytest.mark.parametrize("channel", ["constant:3", "bernoulli:0.5", "loss:0.5", "bursty:0.2,0.5"])
def test_simulation_does_not_depend_on_the_number_of_threads(channel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = ol.ImpairedMDP(CHAIN, channel)
    policy = ol.solve(problem).policy
    monkeypatch.setattr(spans, "FEW", 0)  # threads even for so few episodes
    one, two = (ol.simulate(problem, policy, 9_000, seed=2, threads=n, record=True) for n in (1, 2))
    kept = ol.simulate(problem, policy, 9_000, seed=2, threads=2)  # the memory of a chunk is used again
    for name in ("returns", "mean_reward", "ages", "states", "actions", "arrivals"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    for name in ("returns", "mean_reward", "ages"):
        np.testing.assert_array_equal(getattr(one, name), getattr(kept, name), err_msg=name)


def test_a_plan_does_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Successors by lists, where every entry is computed by the same loop; and a product of matrices, to rounding."""
    rng = np.random.default_rng(3)
    dense = ol.TabularMDP(rng.dirichlet(np.ones(12), size=(12, 5)), rng.random((12, 5)), horizon=6)
    for mdp, d, exact in ((ol.instances.center_chain(0.99), 6, True), (dense, 5, False)):
        plans = []
        for threads in ("1", "2"):
            monkeypatch.setenv("OLDLIGHT_THREADS", threads)
            plans.append(ol.solve(ol.ImpairedMDP(mdp, ol.ConstantDelay(d), start="warm")))
        one, two = plans
        assert DelayModel.of(one.problem).schedule("two times").most_work >= SMALL  # large enough to be shared
        if exact:
            assert one.value == two.value
            np.testing.assert_array_equal(one.policy.actions, two.policy.actions)  # type: ignore[attr-defined]
        else:
            np.testing.assert_allclose(one.value_by_start, two.value_by_start, atol=1e-12)  # type: ignore[arg-type]


def _threads_here(job: Any, report: Any) -> list[Any]:
    return [thread_count(), *(os.environ.get(name) for name in THREADS)]


@pytest.mark.subprocess
def test_a_worker_has_one_thread() -> None:
    with Pool(_threads_here, 1) as pool:
        (found,) = [what for kind, _, what in pool.run([0]) if kind == "done"]
    assert found == [1, *("1" for _ in THREADS)]


def test_a_dask_worker_has_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The local cluster is asked for processes with one thread each and this environment."""
    distributed = pytest.importorskip("distributed")
    asked: dict[str, Any] = {}

    class Stop(Exception):
        pass

    def local_cluster(**options: Any) -> None:
        asked.update(options)
        raise Stop

    monkeypatch.setattr(distributed, "LocalCluster", local_cluster)
    with pytest.raises(Stop):
        list(cluster.run_on_dask([], None, 2, None))  # type: ignore[arg-type]
    assert (asked["n_workers"], asked["threads_per_worker"], asked["processes"]) == (2, 1, True)
    assert asked["env"] == dict.fromkeys(THREADS, "1")
