"""The one compiled sweep: whatever the order, the memory and the threads, the same numbers; few calls, and none that is long."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.kernels import delay as kernels
from oldlight.kernels.optimistic_tables import start_value
from oldlight.learners.base import Setting
from oldlight.model.information import Layout
from oldlight.paper.q_tables import true_tables
from oldlight.planning import blocks
from oldlight.planning.blocks import Schedule
from oldlight.planning.delay import DelayModel, Induction, Stage, by_start


def process(S: int, A: int, H: int, seed: int, successors: int | None = None, per_step: bool = False) -> ol.TabularMDP:
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(S), size=(H, S, A) if per_step else (S, A))
    if successors is not None:
        P = np.where(np.argsort(np.argsort(-P, axis=-1), axis=-1) < successors, P, 0.0)
        P /= P.sum(axis=-1, keepdims=True)
    R = rng.random((H, S, A) if per_step else (S, A))
    return ol.TabularMDP(P, R, horizon=H, initial=rng.dirichlet(np.ones(S)))


def problems() -> list[Any]:
    rng = np.random.default_rng(1)
    few, many, step = process(5, 3, 5, 0, 2), process(12, 2, 6, 1), process(4, 3, 4, 2, 3, True)
    waits = ol.StochasticDelay(rng.dirichlet(np.ones(3), size=(4, 3)), first=[0.2, 0.5, 0.3])
    return [
        pytest.param(ol.ImpairedMDP(few, ol.ConstantDelay(3)), id="constant"),
        pytest.param(ol.ImpairedMDP(few, ol.ConstantDelay(2), start=ol.WarmStart()), id="warm"),
        pytest.param(ol.ImpairedMDP(many, ol.GeometricDelay(0.6).capped(4)), id="geometric, dense"),
        pytest.param(ol.ImpairedMDP(step, waits), id="of state and action"),
        pytest.param(ol.ImpairedMDP(step, waits, actuation=2, pending=(1, 0)), id="late actions"),
        pytest.param(ol.ImpairedMDP(few, ol.GeometricDelay(0.3)), id="no cap"),
        pytest.param(ol.ImpairedMDP(process(3, 1, 4, 3), ol.ConstantDelay(2)), id="one action"),
        pytest.param(ol.ImpairedMDP(process(3, 3, 9, 4, 2), ol.ConstantDelay(7)), id="long"),  # several tiles of w
        pytest.param(ol.ImpairedMDP(process(12, 2, 11, 5), ol.ConstantDelay(9)), id="long, dense"),
    ]


def planned(problem: ol.ImpairedMDP, **options: Any) -> tuple[Stage, Any]:
    layout = Layout.of(problem)
    table = np.zeros(layout.size, dtype=np.uint8)
    return Induction(DelayModel(problem, layout), table=table, **options).run(), table


def same(a: Stage, b: Stage) -> bool:
    if a.values.keys() != b.values.keys() or (a.root is None) != (b.root is None):
        return False
    pairs = [(a.values[key], b.values[key]) for key in a.values] + ([] if a.root is None else [(a.root, b.root)])
    return all(np.array_equal(x, y) for x, y in pairs)


@pytest.mark.parametrize("problem", problems())
def test_two_times_at_once_are_enough_memory(problem: ol.ImpairedMDP) -> None:
    """Every time's values are those that are found when all times are kept apart."""
    kept: list[Stage] = []
    model = DelayModel(problem, Layout.of(problem))
    Induction(model, kept=kept).run()
    assert len(kept) == problem.horizon + 1
    for h, stage in enumerate(kept):
        assert same(Induction(model).run(stop=h), stage), h
    assert model.schedule("two times").size < model.schedule("all times").size


@pytest.mark.parametrize("multiplications", [20, 10**9], ids=["level by level", "all levels in one call"])
@pytest.mark.parametrize("problem", problems())
def test_parts_and_threads_change_nothing(
    problem: ol.ImpairedMDP, multiplications: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the threads wait for each other between two levels, in one compiled call for all of them."""
    monkeypatch.setenv("OLDLIGHT_THREADS", "1")
    first, table = planned(problem)
    monkeypatch.setenv("OLDLIGHT_THREADS", "3")
    monkeypatch.setattr(blocks, "SMALL", 1)
    monkeypatch.setattr(blocks, "CALL", multiplications)
    model = DelayModel(problem, Layout.of(problem))
    calls = list(model.schedule("two times").calls(3))
    assert max(parts for *_, parts in calls) >= 3
    assert multiplications == 20 or len(calls) == 1
    again, table_again = planned(problem)
    assert same(first, again)
    assert np.array_equal(table, table_again)


@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("stop", [KeyboardInterrupt, MemoryError])
def test_nobody_waits_for_a_thread_that_ended_early(
    part: int, stop: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C before the own part has begun, or no memory in another thread: the plan ends with that error and does not hang."""
    monkeypatch.setenv("OLDLIGHT_THREADS", "2")
    monkeypatch.setattr(blocks, "SMALL", 1)
    sweep = kernels.sweep

    def stopped(*arguments: Any) -> None:
        if arguments[-2] == part:
            raise stop
        sweep(*arguments)

    monkeypatch.setattr(kernels, "sweep", stopped)
    with pytest.raises(stop):
        planned(ol.ImpairedMDP(process(5, 3, 6, 0), ol.ConstantDelay(2)))


@pytest.mark.parametrize("problem", problems())
def test_following_the_plan_earns_what_was_planned(problem: ol.ImpairedMDP) -> None:
    best, table = planned(problem)
    model = DelayModel(problem, Layout.of(problem))
    followed = Induction(model, given=table).run()
    mixed = Induction(model, mix=np.eye(problem.n_actions)[table]).run()
    for stage in (followed, mixed):
        assert np.allclose(by_start(problem, stage), by_start(problem, best), rtol=0, atol=1e-12)


@pytest.mark.parametrize("problem", problems())
def test_optimistic_planning_without_bonuses_is_the_plan(problem: ol.ImpairedMDP) -> None:
    """The learners' sweep on the truth; with late actions those under way are not chosen anew."""
    setting = Setting.of(problem, 10, 0.1, Layout.of(problem))
    tables, truth = true_tables(problem, setting)
    assert start_value(tables.plan(truth)) == pytest.approx(ol.solve(problem).value, abs=1e-11)


def test_a_plan_is_one_compiled_call(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    sweep = kernels.sweep
    monkeypatch.setattr(kernels, "sweep", lambda *arguments: calls.append(sweep(*arguments)))
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.ConstantDelay(3))
    policy = ol.solve(problem).policy
    assert len(calls) == 1
    ol.evaluate(problem, policy)
    assert len(calls) == 2
    true_tables(problem, Setting.of(problem, 10, 0.1, Layout.of(problem)))
    assert len(calls) == 3


@pytest.mark.parametrize("successors", [2, None])
@pytest.mark.parametrize("how", [{}, {"start": "warm"}, {"actuation": 1}], ids=str)
@pytest.mark.parametrize("d", [0, 1, 2, 4])
def test_the_sweep_for_certain_arrivals_does_the_same(
    d: int, how: dict[str, Any], successors: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled apart (None for `optimism`) and the general one: the same values and actions, bit by bit."""
    mdp = process(9, 3, 7, d, successors)
    given: list[bool] = []
    sweep = kernels.sweep
    monkeypatch.setattr(kernels, "sweep", lambda *all_: (given.append(all_[1] is None), sweep(*all_))[1])
    plain = ol.solve(ol.ImpairedMDP(mdp, ol.ConstantDelay(d), **how))
    problem = ol.ImpairedMDP(mdp, ol.ConstantDelay(d), **how)
    monkeypatch.setattr(DelayModel.of(problem).schedule("two times"), "certain", False)
    general = ol.solve(problem)
    assert given == [d + how.get("actuation", 0) > 0 or successors == 2, False]
    assert plain.value_by_start.tolist() == general.value_by_start.tolist()
    assert plain.policy.actions.tolist() == general.policy.actions.tolist()  # type: ignore[attr-defined]


def test_no_compiled_call_is_long() -> None:
    problem = ol.ImpairedMDP(process(30, 6, 12, 0), ol.GeometricDelay(0.5).capped(7))  # too large to plan here
    schedule = Schedule(Layout.of(problem), warmup=0, longest_delay=7, values="two times", width=30)
    work = {first: w for _, first, _, w in schedule.levels}
    for threads in (1, 4):
        calls = list(schedule.calls(threads))
        assert calls[0][1] == 0
        assert [a[2] for a in calls[:-1]] == [b[1] for b in calls[1:]]
        assert calls[-1][2] == len(schedule.blocks)
        for _, first, last, parts in calls:
            assert sum(w for begin, w in work.items() if first <= begin < last) <= parts * blocks.CALL
        assert max(parts for *_, parts in calls) > 4


def test_an_interrupt_between_two_calls_stops_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLDLIGHT_THREADS", "2")
    monkeypatch.setattr(blocks, "SMALL", 1)
    monkeypatch.setattr(blocks, "CALL", 1)
    times: list[int] = []

    def stop(done: int, total: int) -> None:
        times.append(done)
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        planned(ol.ImpairedMDP(process(5, 3, 6, 0), ol.ConstantDelay(2)), progress=stop)
    assert times == [1, 2, 3]
