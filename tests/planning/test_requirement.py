"""The requirement on a link, against sweeps of `solve` over every level, and the links and orders it relies on against brute force."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

import link_oracle
import oldlight as ol
from conftest import arrays
from oldlight.planning.holding import held
from oldlight.planning.impairments import falls, levels_of, link_of, spread
from repeats import repeats

CLOSE = 1e-9


def process(seed: int, S: int = 3, A: int = 2, H: int = 4) -> ol.TabularMDP:
    """One in which what is known matters: the action has to fit the state."""
    rng = np.random.default_rng([seed, 17])
    P = rng.dirichlet(0.5 * np.ones(S), size=(S, A) if seed % 2 == 0 else (H, S, A))
    R = 0.3 * rng.random((S, A)) + 0.7 * (np.arange(S)[:, None] % A == np.arange(A))
    return ol.TabularMDP(P, R, horizon=H, initial=rng.dirichlet(np.ones(S)))


def best(mdp: ol.TabularMDP, levels: dict[str, float]) -> float:
    return ol.solve(ol.ImpairedMDP(mdp, link_of(levels))).value


# -- links -----------------------------------------------------------------------------------------------------------


class RawLink:
    """Observations by all that can happen to them, told without ages: the state is (in a blackout?, steps under way with their arrival)."""

    def __init__(
        self,
        delay: int = 0,
        loss: float = 0,
        jitter: float = 0,
        blackout: float = 0,
        sensor_period: int = 1,
        b: float = 0.3,
    ):
        self.delays, self.loss, self.every = spread(delay, jitter), loss, sensor_period
        self.to_bad, self.to_good = (b, 1 / blackout) if blackout else (0.0, 1.0)

    def start(self) -> Any:
        return [(1.0, None)]

    def tick(self, h: int, g: Any) -> Any:
        down, under_way = (None, ()) if g is None else g
        up = self.to_good / (self.to_bad + self.to_good) if down is None else self.to_good if down else 1 - self.to_bad
        for p_mode, bad in ((up, False), (1 - up, True)):
            fates = [(1.0, None)]
            if h % self.every == 0 and not bad:
                fates = [(self.loss, None), *(((1 - self.loss) * p, h + k) for k, p in enumerate(self.delays))]
            for p, arrives in fates:
                travelling = under_way if arrives is None else (*under_way, (h, arrives))
                delivered = tuple(i for i, when in travelling if when == h)
                if p_mode * p > 0:
                    yield p_mode * p, (bad, tuple(x for x in travelling if x[1] > h)), delivered, None


COMBINED: list[dict[str, Any]] = [
    {"delay": 1, "loss": 0.3},
    {"delay": 1, "jitter": 1, "loss": 0.2},
    {"delay": 1, "jitter": 0.25},
    {"blackout": 2.5},
    {"blackout": 1.5, "delay": 1, "loss": 0.2},
    {"blackout": 2, "delay": 1, "jitter": 1},
    {"sensor_period": 2, "delay": 1},
    {"sensor_period": 3, "loss": 0.4},
    {"sensor_period": 2, "delay": 1, "jitter": 1, "loss": 0.1},
    {"sensor_period": 2, "blackout": 3},
]


@pytest.mark.parametrize("levels", COMBINED, ids=str)
def test_a_combined_link_does_what_it_says(levels: dict[str, Any]) -> None:
    for seed in range(2):
        mdp = process(seed, S=2, H=3)
        P, R, rho = arrays(mdp)
        raw = link_oracle.value(P, R, rho, RawLink(**levels))
        assert best(mdp, levels | {"blackout_probability": 0.3}) == pytest.approx(raw, abs=CLOSE)


@pytest.mark.parametrize(("d", "j"), [(2, 0), (2, 1), (2, 2), (3, 0.25), (3, 2.75)])
def test_jitter_keeps_the_mean(d: int, j: float) -> None:
    law = spread(d, j)
    assert law.sum() == pytest.approx(1)
    assert law @ np.arange(len(law)) == pytest.approx(d)
    assert law[-1] > 0
    assert len(law) == d + int(np.ceil(j)) + 1


ORDERED: list[tuple[str, list[float], dict[str, float]]] = [
    ("delay", [0, 1, 2, 3, 4], {}),
    ("delay", [1, 2, 3], {"jitter": 1, "loss": 0.2}),
    ("delay", [0, 1, 2], {"sensor_period": 2}),
    ("loss", [0, 0.2, 0.5, 0.9, 1], {"delay": 1, "jitter": 1}),
    ("loss", [0, 0.2, 0.5, 0.9, 1], {"sensor_period": 2}),
    ("blackout", [0, 1, 1.5, 2, 4, 9], {"blackout_probability": 0.3}),
    ("blackout", [0, 1, 1.5, 2, 4, 9], {"blackout_probability": 0.3, "loss": 0.3, "delay": 1}),
]


@pytest.mark.parametrize(("name", "levels", "rest"), ORDERED, ids=str)
def test_values_fall_where_the_text_says_so(name: str, levels: list[float], rest: dict[str, float]) -> None:
    assert falls(name, np.array(levels), rest, False)[0]
    for seed in range(4):
        values = [best(process(seed), rest | {name: x}) for x in levels]
        assert all(y <= x + CLOSE for x, y in pairwise(values))


def test_blackouts_that_begin_too_often_are_not_taken_for_ordered() -> None:
    assert not falls("blackout", np.array([0, 1, 1.5]), {"blackout_probability": 0.5}, False)[0]
    assert falls("blackout", np.array([0, 1, 2.0]), {"blackout_probability": 0.5}, False)[0]
    assert not falls("delay", np.arange(3.0), {}, True)[0]  # a warm start


# -- the control period ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", [0, 1])
def test_holding_an_action_is_repeating_it(n: int, seed: int) -> None:
    """Every open-loop plan of the held process earns what the plant earns when each action is repeated."""
    mdp = process(seed, S=3, H=5)
    slow = held(mdp, n)
    assert slow.horizon == -(-5 // n)
    for plan in product(range(2), repeat=slow.horizon):
        values = [slow.initial, mdp.initial]
        earned = [0.0, 0.0]
        for i, (which, actions) in enumerate(((slow, plan), (mdp, [plan[h // n] for h in range(5)]))):
            for h, a in enumerate(actions):
                earned[i] += float(values[i] @ which.rewards[h][:, a])
                values[i] = values[i] @ which.transitions[h][:, a]
        assert earned[0] == pytest.approx(earned[1], abs=CLOSE)


def test_a_process_may_have_full_and_sparse_steps() -> None:
    """Held over steps that n does not divide, the last step has fewer successors than the others; two planners agree on it."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(9), size=(5, 9, 2))
    P[4] = np.eye(9)[:, None]
    mdp = ol.TabularMDP(P, rng.random((5, 9, 2)), horizon=5)
    one, two = (ol.solve(ol.ImpairedMDP(mdp, link)) for link in ("constant:1", ol.PacketChannel({1: 1.0})))
    assert one.exact
    assert one.value == pytest.approx(two.value, abs=CLOSE)


# -- the requirement -----------------------------------------------------------------------------------------------------

ASKED: list[tuple[str, dict[str, float], dict[str, Any]]] = [
    ("delay", {}, {}),
    ("delay", {"loss": 0.3}, {}),
    ("loss", {}, {"levels": np.linspace(0, 1, 11)}),
    ("loss", {"delay": 1}, {"levels": np.linspace(0, 1, 11)}),
    ("jitter", {"delay": 2}, {"step": 0.5}),
    ("blackout", {"blackout_probability": 0.4}, {"levels": [0, 1, 2, 3, 5, 8]}),
    ("sensor_period", {"loss": 0.1}, {}),
]


@pytest.mark.parametrize(("over", "at", "options"), ASKED, ids=str)
def test_the_answer_is_that_of_a_sweep(over: str, at: dict[str, float], options: dict[str, Any]) -> None:
    for seed in range(repeats(2, 4)):
        mdp = process(seed)
        grid = np.asarray(options.get("levels", levels_of(over, mdp.horizon, at, options.get("step"), None)))
        values = np.array([best(mdp, at | {over: float(x)}) for x in grid])
        full = ol.solve(ol.ImpairedMDP(mdp, "none")).value
        for target in (
            values.min() - 0.01,
            *((a + b) / 2 for a, b in pairwise(np.unique(values.round(9)))),
            full + 0.01,
        ):
            found = ol.requirement(
                mdp, target=float(target), over=over, at=at, tolerance=10.0 if seed % 2 else 1e-3, **options
            )
            reaches = values >= target
            first = len(grid) if reaches.all() else int(reaches.argmin())
            assert found.answer == (grid[first - 1] if first else None)
            assert found.full == pytest.approx(full)
            assert found.status == ("never" if first == 0 else "always" if first == len(grid) else "certified")
            if first < len(grid):
                assert found.failed is not None
                assert found.failed.level == grid[first]
                assert found.failed.upper < target
                assert found.failed.upper >= values[first] - CLOSE
            if first:
                assert found.reached is not None
                assert target <= found.reached.lower <= values[first - 1] + CLOSE
            again = [float(x) for x, good in zip(grid[first:], reaches[first:], strict=True) if good]
            assert [x for low, high in found.reentries for x in again if low <= x <= high] == again
            assert all(low in again and high in again for low, high in found.reentries)


def test_the_grid_of_a_rate_is_refined_until_the_value_is_known() -> None:
    """±0.1 % of the value, with certificates one finer step apart, on the two processes that the plan is measured on."""
    rng = np.random.default_rng(0)
    P, R = rng.dirichlet(0.3 * np.ones(20), size=(5, 20)), rng.random((20, 5))
    dense = ol.TabularMDP(P.transpose(1, 0, 2), R, horizon=10)
    for mdp in (ol.instances.sensing_chain(0.8), dense):
        found = ol.requirement(mdp, target="85%", over="loss", tolerance=1e-3)
        assert found.status == "certified"
        assert found.reached is not None
        assert found.failed is not None
        here, beyond = (
            ol.solve(ol.ImpairedMDP(mdp, ol.Loss(rate=p.level))).value for p in (found.reached, found.failed)
        )
        assert here >= found.target > beyond
        assert here - beyond <= 1e-3 * found.full
        coarse = ol.requirement(mdp, target="85%", over="loss", step=0.1, tolerance=1e-3)
        assert coarse.reached is not None
        assert abs(coarse.reached.value - found.target) <= 1e-3 * found.full


def blinking() -> ol.TabularMDP:
    """A coin is tossed before step 3, and guessing it there earns 1; before that nothing happens: whoever sees step 3 wins."""
    P = np.zeros((6, 2, 2, 2))
    P[:] = np.eye(2)[:, None, :]
    P[2] = 0.5
    R = np.zeros((6, 2, 2))
    R[3] = np.eye(2)
    return ol.TabularMDP(P, R, horizon=6, initial=[1, 0])


def test_a_scan_finds_the_target_again() -> None:
    """A sensor that reads every third step sees the coin, one that reads every second step does not."""
    found = ol.requirement(blinking(), target=1.0, over="sensor_period", period_ms=10)
    assert [(p.level, p.reaches) for p in found.points] == [
        (1, True),
        (2, False),
        (3, True),
        (4, False),
        (5, False),
        (6, False),
    ]
    assert (found.answer, found.reentries) == (1, [(3, 3)])
    assert "again from 3 steps (30 ms)" in str(found)


def test_jitter_can_help() -> None:
    """At a mean delay of 2 the state of step h is worth a guess at step h + 1 only: some jitter brings it in time."""
    rng = np.random.default_rng(5)
    P = np.tile(rng.dirichlet(np.ones(3), size=3)[:, None], (1, 3, 1))
    mdp = ol.TabularMDP(P, np.eye(3), horizon=6)
    steady = best(mdp, {"delay": 2})
    found = ol.requirement(mdp, target=steady + 1e-6, over="jitter", at={"delay": 2})
    assert found.answer is None
    assert found.status == "never"
    assert found.reentries
    assert best(mdp, {"delay": 2, "jitter": found.reentries[0][0]}) >= steady + 1e-6


def test_the_control_period_holds_actions_and_rounds_what_the_link_does() -> None:
    mdp = process(0, H=6)
    values = [ol.solve(ol.ImpairedMDP(held(mdp, n), ol.ConstantDelay(-(-3 // n)))).value for n in range(1, 7)]
    for target in np.unique(np.round(values, 6)) - 1e-7:
        reaches = np.array(values) >= target
        first = 6 if reaches.all() else int(reaches.argmin())
        for at in ({"delay": 3}, {"delay_ms": 30}):
            found = ol.requirement(mdp, target=float(target), over="control_period", at=at, period_ms=10)
            assert found.answer == (first or None)
        made = ol.requirement(lambda ms: held(mdp, int(ms / 10)), target=float(target), over="control_period", at={"delay_ms": 30}, levels=[10, 20, 30, 40, 50, 60])  # fmt: skip
        assert made.answer == (10 * first or None)
        assert made.answer_text == (f"{10 * first} ms" if first else "none")


def test_shares_of_values_and_of_costs() -> None:
    mdp = process(0)
    full = ol.solve(ol.ImpairedMDP(mdp, "none")).value
    found = ol.requirement(mdp, target="90%", over="delay")
    assert found.target == pytest.approx(0.9 * full)
    assert found.share == pytest.approx(0.9)
    assert ol.requirement(mdp, target=0.9, relative=True, over="delay").answer == found.answer
    costs = mdp.replace(rewards=mdp.rewards[0] - 10)
    dear = ol.requirement(costs, target="99%", over="loss")
    assert dear.target == pytest.approx(1.01 * dear.full)
    assert dear.share == pytest.approx(0.99)
    assert dear.answer is not None


def test_what_is_not_decided_is_said() -> None:
    """With no room for tables there are ladders and what the order tells; no level is claimed that a plan would refute."""
    mdp = ol.instances.sensing_chain(0.8, n_states=8, n_actions=3, horizon=7)
    values = [best(mdp, {"delay": float(d)}) for d in range(7)]
    seen = set()
    for target in np.linspace(values[-1] - 0.01, values[0], 7):
        found = ol.requirement(mdp, target=float(target), over="delay", max_bytes=2_000)
        seen.add(found.status)
        for p in found.points[:7]:
            assert p.lower <= values[int(p.level)] + CLOSE
            assert p.upper >= values[int(p.level)] - CLOSE
            assert p.reaches in (None, values[int(p.level)] >= target)
        if found.status == "not decided":
            assert found.undecided
            assert "not decided within the tolerance" in str(found)
    assert "not decided" in seen


# -- the frontier ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("over", "levels"),
    [
        (("delay", "loss"), {"delay": [0, 1, 2], "loss": [0, 0.1, 0.3, 0.6, 1]}),
        (("loss", "delay"), {"loss": [0, 0.1, 0.3, 0.6, 1], "delay": [0, 1, 2, 3]}),
        (("sensor_period", "loss"), {"sensor_period": [1, 2, 3], "loss": [0, 0.2, 0.5]}),
        (("delay", "jitter"), {"delay": [0, 1, 2], "jitter": [0, 1, 2]}),
        (("loss", "sensor_period"), {"loss": [0, 0.2, 0.5], "sensor_period": [1, 2, 3]}),
    ],
    ids=str,
)
def test_the_frontier_is_that_of_a_sweep(over: tuple[str, str], levels: dict[str, list[float]]) -> None:
    for seed in range(2):
        mdp = process(seed)
        full = ol.solve(ol.ImpairedMDP(mdp, "none")).value
        found = ol.requirement(mdp, target="88%", over=over, levels=levels)
        x, y = (levels[name] for name in over)
        assert found.x.tolist() == x
        assert found.y.tolist() == y
        for i, first in enumerate(x):
            possible = [v for v in y if over != ("delay", "jitter") or v <= first]
            values = [best(mdp, {over[0]: first, over[1]: v}) for v in possible]
            reaches = [v >= found.target for v in values]
            good = reaches.index(False) if False in reaches else len(reaches)
            assert found.requirements[i].answer == (possible[good - 1] if good else None)
            n = len(possible)
            assert np.all(found.lower[i, :n] <= np.array(values) + CLOSE)
            assert np.all(found.upper[i, :n] >= np.array(values) - CLOSE)
            assert np.all(found.upper[i, :n] - found.lower[i, :n] <= 0.01 * full + CLOSE)
            assert np.isnan(found.lower[i, n:]).all()


def test_the_frontier_chooses_its_own_levels() -> None:
    chain = ol.instances.sensing_chain(0.8, n_states=6, horizon=5)
    found = ol.requirement(chain, target="75%", over=("delay", "loss"), grid=4)
    assert found.requirements[-1].status == "never"
    assert np.all(np.diff(found.answers[:-1]) <= 0)
    assert np.nanmax(found.answers) <= found.y[-1]
    turned = ol.requirement(chain, target="75%", over=("loss", "delay"), grid=4)
    assert turned.x[0] == 0
    assert turned.x[-1] == pytest.approx(found.answers[0], abs=1.1e-3)
