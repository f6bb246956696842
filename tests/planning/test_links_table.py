"""Every link × every call: it works, and its numbers fit together, or it is refused with a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.model.channels.capped_link import capped, probability_older
from oldlight.model.channels.hidden import merging_error
from oldlight.planning import heuristics, link_plan
from oldlight.planning.link_plan import LinkPlan
from oldlight.planning.search import AgeSearch
from repeats import repeats
from test_links_public import LINKS, process

TOLERANCE = 1e-10
ALL = LINKS | {
    "constant": ol.ConstantDelay(2),
    "geometric": ol.GeometricDelay(0.5),
    "loss": ol.Loss(rate=0.4),
    "late and lossy": ol.Lossy(ol.ConstantDelay(1), rate=0.3),
}
HEURISTICS = (heuristics.qmdp, heuristics.most_likely, heuristics.memoryless, heuristics.open_loop)
every_link = pytest.mark.parametrize("channel", ALL.values(), ids=ALL)


def behind(channel: Any, late: int = 0) -> ol.ImpairedMDP:
    return ol.ImpairedMDP(process(late), channel, actuation=late, pending=(1,) * late)


PLANS: dict[tuple[int, int], ol.Solution] = {}


def solved(channel: Any, late: int = 0) -> ol.Solution:
    """The plan behind a link of `ALL`, made once for all tests of this file."""
    key = id(channel), late
    if key not in PLANS:
        PLANS[key] = ol.solve(behind(channel, late))
    return PLANS[key]


@pytest.mark.crossed("channel", "late")
@every_link
@pytest.mark.parametrize("late", [0, 1])
def test_heuristics_are_valued_exactly_and_played(channel: Any, late: int) -> None:
    problem = behind(channel, late)
    best, n = solved(channel, late).value, repeats(1_000, 4_000)
    for make in HEURISTICS:
        policy = make(problem)  # type: ignore[operator]
        worth, played = ol.evaluate(problem, policy), ol.simulate(problem, policy, n, seed=1)
        assert worth.exact
        assert worth.value <= best + TOLERANCE
        assert abs(played.mean - worth.value) <= 5 * played.returns.std() / np.sqrt(n) + TOLERANCE


@pytest.mark.crossed("channel", "late")
@every_link
@pytest.mark.parametrize("late", [0, 1])
def test_the_ladder_contains_the_optimum_and_its_policy_earns_what_it_says(channel: Any, late: int) -> None:
    problem = behind(channel, late)
    best = solved(channel, late).value
    uppers = []
    for k in range(late, problem.horizon - 1):
        plan = ol.solve(problem, depth=k)
        uppers.append(plan.upper)
        assert plan.lower - TOLERANCE <= best <= plan.upper + TOLERANCE
        assert abs(float(ol.evaluate(problem, plan.policy)) - plan.value) < TOLERANCE
    assert (np.diff(uppers) <= TOLERANCE).all()  # a deeper rung knows less


@pytest.mark.crossed("channel", "late")
@every_link
@pytest.mark.parametrize("late", [0, 1])
def test_truncated_links_are_worth_more_by_at_most_what_is_said(channel: Any, late: int) -> None:
    problem = behind(channel, late)
    best = solved(channel, late).value
    for probability in (0.5, 0.2, 0.0):
        shorter = ol.truncate(problem, probability)
        assert shorter.probability <= probability
        value = ol.solve(shorter.problem).value
        assert best - TOLERANCE <= value <= best + shorter.value_error + TOLERANCE
    (drawn,) = shorter.plot().lines
    assert len(drawn.get_xdata()) == shorter.max_delay + 1
    assert drawn.get_ydata()[-1] == shorter.probability
    assert (np.diff(drawn.get_ydata()) <= 0).all()
    assert (drawn.get_ydata()[:-1] > 0).all()  # each shorter one is exceeded


@every_link
def test_gap_sweep_certificates_and_time(channel: Any) -> None:
    problem = behind(channel)
    best = solved(channel)
    assert ol.sweep(problem.mdp, channels=[channel]).gaps[0].gap == pytest.approx(ol.gap(problem).gap, abs=TOLERANCE)
    for options in ({"tolerance": 0.05}, {"seconds": 1e-9}, {"tolerance": 1e-3, "seconds": 60.0}):
        plan = ol.solve(problem, **options)  # type: ignore[arg-type]
        assert plan.lower - TOLERANCE <= best.value <= plan.upper + TOLERANCE
        assert plan.upper - plan.lower <= options.get("tolerance", np.inf)
        assert plan.lower - TOLERANCE <= float(ol.evaluate(problem, plan.policy)) <= best.value + TOLERANCE


@every_link
def test_a_saved_plan_is_the_same_plan(channel: Any, tmp_path: Path) -> None:
    problem = behind(channel)
    policy: Any = solved(channel).policy
    again = ol.load_policy(policy.save(tmp_path / "policy.npz"))
    assert float(ol.evaluate(problem, again)) == float(ol.evaluate(problem, policy))
    one, two = (ol.simulate(problem, x, 500, seed=2, record=True) for x in (policy, again))
    assert np.array_equal(one.actions, two.actions)  # type: ignore[arg-type]


def test_names_that_a_file_cannot_hold_are_refused(tmp_path: Path) -> None:
    link = ol.ChannelAutomaton.explore([(1.0, frozenset({1}), 0)], lambda n: [(1.0, n, 0)], 5)
    with pytest.raises(TypeError, match="only names made of numbers, text, None and tuples are saved"):
        LinkPlan(process(0), link).run().policy.save(tmp_path / "policy.npz")


@every_link
def test_a_warm_start_works_or_says_why_not(channel: Any) -> None:
    try:
        problem = ol.ImpairedMDP(process(0), channel, start="warm")
    except ValueError as error:
        assert "warm start" in str(error)  # noqa: PT017
        assert "start=None" in str(error) or "Use start=None" in str(error)  # noqa: PT017
        return
    best = ol.solve(problem)
    assert best.value_by_start is not None
    assert abs(best.value_by_start.mean() - best.value) < TOLERANCE
    assert abs(float(ol.evaluate(problem, best.policy)) - best.value) < TOLERANCE


def test_q_values_of_a_plan_with_a_tolerance_are_close_from_below() -> None:
    problem = behind(LINKS["packets"])
    exact, rough = ol.solve(problem), ol.solve(problem, tolerance=0.05)
    for info in (
        ol.LinkInformation(3, 2, 1, 0, (0, 1)),
        ol.LinkInformation(3, 2, None, None, (0, 1, 1)),
        ol.LinkInformation(2, 0, 2, 1, ()),
    ):
        high, low = exact.q(info), rough.q(info)
        assert (low <= high + TOLERANCE).all()
        assert (high - low <= 0.05 + TOLERANCE).all()


@pytest.mark.parametrize("seed", range(10))
def test_merged_laws_of_a_hidden_link(seed: int) -> None:
    """lower ≤ optimum ≤ upper with fewer nodes, and the policy earns what is said of it on the true link."""
    rng = np.random.default_rng([seed, 95])
    link = ol.HiddenLink(rng.dirichlet(np.ones(2), 2), rng.dirichlet(np.ones(3), 2)[:, :2])
    problem = ol.ImpairedMDP(process(seed), link)
    best = ol.solve(problem).value
    rough = ol.solve(problem, tolerance=1.0)
    merged: Any = rough.policy
    assert len(merged.automaton.nodes) < len(problem.automaton.nodes)
    assert rough.lower - TOLERANCE <= best <= rough.upper + TOLERANCE
    assert rough.upper - rough.lower <= 1.0
    assert abs(float(ol.evaluate(problem, merged)) - rough.lower) < TOLERANCE
    played = ol.simulate(problem, merged, 4_000, seed=3)
    assert abs(played.mean - rough.lower) <= 5 * played.returns.std() / np.sqrt(4_000)
    assert merging_error(merged.automaton.merging, problem.mdp.rewards) <= 0.25 + TOLERANCE


def test_interrupted_plans_hold_what_is_certified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the first tables: nothing yet; in the search: a plan with its certificate."""
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.PacketChannel({0: 0.5, 1: 0.5}, lost=0.3))
    best = ol.solve(problem).value

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as early:
        ol.solve(problem, progress=stop)
    assert early.value.partial is None  # type: ignore[attr-defined]
    with pytest.raises(KeyboardInterrupt) as delay:
        ol.solve(problem.behind("constant:2"), progress=stop)
    assert delay.value.partial is None  # type: ignore[attr-defined]
    close, calls = AgeSearch._close, [0]

    def interrupted(self: AgeSearch, *given: Any) -> Any:
        calls[0] += 1
        close(self, given[0], given[1], 0.0, np.inf, 200)
        raise KeyboardInterrupt

    monkeypatch.setattr(AgeSearch, "_close", interrupted)
    monkeypatch.setattr(link_plan, "AT_ONCE", 0)  # so small a plan is made at once otherwise
    with pytest.raises(KeyboardInterrupt) as late:
        ol.solve(problem)
    monkeypatch.undo()
    partial: Any = late.value.partial  # type: ignore[attr-defined]
    assert calls == [1]
    assert partial.lower <= best + TOLERANCE <= partial.upper + 2 * TOLERANCE
    assert partial.lower - TOLERANCE <= float(ol.evaluate(problem, partial.policy)) <= best + TOLERANCE


def test_a_capped_link_never_shows_anything_older() -> None:
    link = ol.PacketChannel({0: 0.5, 3: 0.5}, lost=0.4)
    automaton = link.automaton(8)
    for k in range(8):
        short = capped(automaton, k)
        assert short.longest <= k
        _, ages = short.sample(np.random.default_rng(1), 2_000)
        assert ages.max() <= k
        assert (ages[k:] >= 0).all()
        _, real = automaton.sample(np.random.default_rng(2), 20_000)
        late = ((real > k) | ((real < 0) & (np.arange(8)[:, None] >= k))).any(axis=0).mean()
        p = probability_older(automaton, k)
        assert abs(late - p) <= 5 * np.sqrt(p * (1 - p) / 20_000) + 1e-12


def test_an_interrupted_sweep_holds_what_was_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    mdp, whole = ol.instances.dichotomy(1), []
    for stop_at in range(3):

        def gap(problem: Any, *, at: int = stop_at) -> Any:
            if problem.channel.d == at:
                raise KeyboardInterrupt
            return ol.gap(problem)

        monkeypatch.setattr("oldlight.planning.sweep.gap", gap)
        with pytest.raises(KeyboardInterrupt) as stopped:
            ol.sweep(mdp, delays=[0, 1, 2])
        monkeypatch.undo()
        partial: ol.Sweep = stopped.value.partial  # type: ignore[attr-defined]
        whole = ol.sweep(mdp, delays=[0, 1, 2]).rows
        assert partial.rows == whole[:stop_at]
    assert whole[2]["gap"] > 0
