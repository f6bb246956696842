"""Every number of the page against what the library says without it, and the Python lines that it hands out."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.explore import answers
from oldlight.explore.answers import Answerer, actions_seen
from oldlight.explore.menu import Menu, menu_of
from oldlight.explore.positions import position_of, problem_at
from oldlight.planning.impairments import link_of

CHAIN = "sensing_chain:p=0.8,n_states=6,n_actions=3,horizon=5"
POSITIONS: list[dict[str, Any]] = [
    {"delay": 2, "loss": 0},
    {"delay": 2, "loss": 10},
    {"delay": 0, "loss": 30},
    {"delay": 2, "loss": 0, "start": "warm"},
    {"delay": 1, "jitter": 1, "loss": 20},
    {"delay": 1, "loss": 10, "burst": 2},
    {"delay": 1, "loss": 0, "period": 2},
    {"delay": 1, "jitter": 1, "loss": 10, "burst": 2, "period": 2, "horizon": 4},
    {"delay": 1, "loss": 10, "horizon": 7, "discount": 0.9},
    {"plant": "dichotomy:2,5", "delay": 1, "loss": 0, "horizon": 4},
]


@pytest.fixture(scope="module")
def menu() -> Menu:
    return menu_of(CHAIN)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine, every plan comes to its end."""
    monkeypatch.setattr(answers, "POINT", 600.0)
    monkeypatch.setattr(answers, "LONG", 600.0)
    monkeypatch.setattr(answers, "CURVE_SECONDS", 600.0)


def answer(menu: Menu, position: dict[str, Any], *parts: str, **more: Any) -> dict[str, dict[str, Any]]:
    """The last report of each part."""
    found: dict[str, dict[str, Any]] = {}
    Answerer(menu)(
        {"position": position, "parts": list(parts), **more}, lambda part: found.update({part["part"]: part})
    )
    assert "refused" not in found or "refused" in parts, found["refused"]["text"]
    return found


def printed(code: str) -> list[str]:
    """What the lines print when they are run as they stand."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "<the page>", "exec"), {"__name__": "__main__"})
    return out.getvalue().splitlines()


@pytest.mark.parametrize("position", POSITIONS, ids=str)
def test_the_optimum_its_price_and_the_lines_that_make_them(menu: Menu, position: dict[str, Any]) -> None:
    found = answer(menu, position, "optimum")["optimum"]
    problem = problem_at(menu, position_of(menu, position))
    best = ol.solve(problem)
    assert found["final"]
    assert found["exact"] == best.exact
    assert found["value"] == pytest.approx(best.value, abs=1e-9)
    assert found["lower"] <= found["value"] <= found["upper"]
    lost = ol.gap(problem)
    assert found["price"] == pytest.approx(lost.gap, abs=1e-9)
    assert found["full"] == pytest.approx(lost.full, abs=1e-9)
    first, second = printed(found["code"])
    assert float(first.split()[0]) == pytest.approx(found["value"], abs=1e-9)
    assert float(second) == pytest.approx(found["price"], abs=1e-9)


def test_curves_prices_and_the_map_are_optima_of_their_own_positions(menu: Menu) -> None:
    position = {"delay": 1, "loss": 10}
    found = answer(menu, position, "prices", "curve", "frontier", axis="delay")
    here = ol.solve(ol.ImpairedMDP(menu.plants[CHAIN].mdp, "constant:1+loss:0.1")).value
    later = ol.solve(ol.ImpairedMDP(menu.plants[CHAIN].mdp, "constant:2+loss:0.1")).value
    lossier = ol.solve(ol.ImpairedMDP(menu.plants[CHAIN].mdp, "constant:1+loss:0.11")).value
    costs = {row["name"]: row["cost"] for row in found["prices"]["rows"]}
    assert costs["delay"] == pytest.approx(here - later, abs=1e-9)
    assert costs["loss"] == pytest.approx(here - lossier, abs=1e-9)
    assert set(costs) == {"delay", "jitter", "loss", "burst", "period"}

    curve = found["curve"]
    assert curve["final"]
    lines = [line.split() for line in printed(curve["code"])]
    assert [float(x) for x, _ in lines] == [p["x"] for p in curve["points"]]
    for (_, value), point in zip(lines, curve["points"], strict=True):
        assert point["low"] - 1e-9 <= float(value) <= point["high"] + 1e-9
    values = [p["low"] for p in curve["points"]]
    assert values == sorted(values, reverse=True)  # a longer delay is never better

    table = found["frontier"]
    assert table["final"]
    for line, row in zip(printed(table["code"]), table["rows"], strict=True):
        numbers = [float(x) for x in line.partition("[")[2].strip("]").split(",")]
        assert row == pytest.approx(numbers, abs=1e-9)
    assert table["rows"][2][1] == pytest.approx(here, abs=1e-9)


def test_the_frontier_is_the_requirement_of_the_library(menu: Menu) -> None:
    found = answer(menu, {"delay": 1, "loss": 10, "jitter": 1}, "need", target=70)["need"]
    assert found["final"]
    assert [point["delay"] for point in found["points"]] == [1, 2, 3, 4, 5, 6]
    lines = [line.split(" ", 2) for line in printed(found["code"])]
    for point, (delay, loss, status) in zip(found["points"], lines, strict=True):
        assert (point["delay"], str(point["loss"])) == (int(delay), loss)
        assert point["status"] == status
    mdp, full = menu.plants[CHAIN].mdp, answer(menu, {"delay": 0, "loss": 0}, "optimum")["optimum"]["value"]
    reached = [point for point in found["points"] if point["status"] == "certified"]
    assert reached
    for point in reached:  # kept up to there, and no further than the refinement of the grid (0.1 % of the value)
        here = {"delay": point["delay"], "jitter": 1, "loss": point["loss"]}
        beyond = {**here, "loss": point["loss"] + 0.02}
        assert ol.solve(ol.ImpairedMDP(mdp, link_of(here))).value >= 0.7 * full - 1e-9
        assert ol.solve(ol.ImpairedMDP(mdp, link_of(beyond))).value < 0.7 * full


@pytest.mark.parametrize("axis", ["horizon", "discount", "loss", "jitter", "burst", "period"])
def test_the_lines_of_every_curve_give_its_points(menu: Menu, axis: str) -> None:
    curve = answer(menu, {"delay": 1, "loss": 10, "horizon": 4}, "curve", axis=axis)["curve"]
    assert curve["axis"] == axis
    assert curve["final"]
    lines = {float(x): float(v) for x, v in (line.split() for line in printed(curve["code"]))}
    for point in curve["points"]:
        assert point["low"] - 1e-9 <= lines[point["x"]] <= point["high"] + 1e-9
        assert point["full"] >= point["low"] - 1e-9


@pytest.mark.parametrize("position", POSITIONS[:6], ids=str)
def test_an_episode_is_that_of_simulate_and_shows_what_was_known(menu: Menu, position: dict[str, Any]) -> None:
    found = answer(menu, position, "episode", seed=5)["episode"]
    problem = problem_at(menu, position_of(menu, position))
    states, actions, arrivals, earned = _episode(found["code"])
    assert found["states"] == states
    assert [step["action"] for step in found["steps"]] == actions[problem.warmup :]
    assert found["arrivals"] == arrivals
    assert found["return"] == pytest.approx(earned)
    for step in found["steps"]:
        assert sum(step["belief"]) == pytest.approx(1, abs=1e-4)
        assert step["belief"][step["state"]] > 0  # the truth is never excluded
        q = [x for x in step["q"] if x is not None]
        assert step["q"][step["action"]] == pytest.approx(max(q), abs=1e-9)
        assert step["arrived"] == [i - problem.warmup for i, when in enumerate(arrivals) if when == step["h"]]
        if step["seen"] is not None:
            t = step["seen"]["step"]
            assert step["seen"]["state"] == states[t + problem.warmup]
            assert step["queue"] == actions[t + problem.warmup : step["h"] + problem.warmup]
            assert 0 <= arrivals[t + problem.warmup] <= step["h"]
        assert set(step["others"]) == {"most_likely", "qmdp", "memoryless"}
    assert len(found["steps"]) == problem.horizon


def _episode(code: str) -> tuple[list[int], list[int], list[int], float]:
    scope: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code, "<the page>", "exec"), scope)
    played = scope["played"]
    return played.states[0].tolist(), played.actions[0].tolist(), played.arrivals[0].tolist(), float(played.returns[0])


def test_the_policy_is_counted_in_episodes(menu: Menu) -> None:
    found = answer(menu, {"delay": 1, "loss": 20}, "policy")["policy"]
    problem = problem_at(menu, position_of(menu, {"delay": 1, "loss": 20}))
    played = ol.simulate(problem, ol.solve(problem).policy, found["episodes"], seed=0, record=True)
    counts = np.zeros((5, 6, 3), dtype=int)
    assert played.states is not None
    assert played.actions is not None
    assert played.arrivals is not None
    for states, actions, arrivals in zip(played.states, played.actions, played.arrivals, strict=True):
        for h in range(5):
            known = [i for i in range(h + 1) if 0 <= arrivals[i] <= h]
            if known:
                counts[h, states[known[-1]], actions[h]] += 1
    np.testing.assert_array_equal(actions_seen(played, problem.mdp), counts)
    assert found["visits"] == counts.sum(axis=2)[:, found["states"]].tolist()
    assert np.array(found["ages"]).sum(axis=1) == pytest.approx(1, abs=1e-3)


def test_what_is_too_large_is_said_in_a_sentence() -> None:
    small = menu_of("sensing_chain", max_bytes=1_000_000)
    found: list[dict[str, Any]] = []
    Answerer(small)({"position": {"delay": 8, "loss": 0}, "parts": ["optimum"]}, found.append)
    assert found[-1]["part"] == "refused"
    assert found[-1]["large"]
    assert "the limit is" in found[-1]["text"]
    Answerer(small)({"position": {"delay": 2, "loss": 10, "start": "warm"}, "parts": ["optimum"]}, found.append)
    assert found[-1]["part"] == "refused"
    assert "warm start" in found[-1]["text"]


@pytest.mark.parametrize("seed", [-1, 2**40, "one", True])
def test_a_seed_that_is_none_is_refused(menu: Menu, seed: Any) -> None:
    found: list[dict[str, Any]] = []
    Answerer(menu)({"position": {}, "parts": ["episode"], "seed": seed}, found.append)
    assert found[-1]["part"] == "refused"
    assert "allowed is a whole number from 0" in found[-1]["text"]


def test_a_recording_is_planned_for_and_played(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    file = tmp_path / "link.csv"
    late = rng.choice([5.0, 25.0, 45.0], size=600)
    rows = [f"{20 * i},{'' if rng.random() < 0.1 else 20 * i + late[i]}" for i in range(600)]
    file.write_text("sent_ms,received_ms\n" + "\n".join(rows) + "\n", encoding="utf-8")
    menu = menu_of(CHAIN, trace=str(file))
    position = menu.defaults()
    assert position["link"] == "recording"
    found = answer(menu, position, "optimum", "episode", "curve", "frontier", seed=3)
    first, _ = printed(found["optimum"]["code"])
    assert float(first.split()[0]) == pytest.approx(found["optimum"]["value"], abs=1e-9)
    assert found["curve"]["axis"] == "horizon"
    assert found["frontier"]["rows"] is None
    episode = found["episode"]
    scope: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(episode["code"], "<the page>", "exec"), scope)
    played = scope["played"]
    assert episode["states"] == played.states[:, 0].tolist()
    assert episode["return"] == pytest.approx(float(played.returns[0]))
    for step in episode["steps"]:
        if step["seen"] is not None and not played.guessed[step["h"], 0]:
            assert step["seen"]["state"] == episode["states"][step["seen"]["step"]]
            assert 0 <= episode["arrivals"][step["seen"]["step"]] <= step["h"]


def test_the_map_marks_bounds_that_do_not_meet(menu: Menu, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that was stopped is at least its colour: the page is told so, and only there."""
    true_value = Answerer._value

    def stopped(answer: Answerer, position: Any, report: Any = None) -> tuple[float, float]:
        low, high = true_value(answer, position, report)
        return (low, high) if position.loss != 90 else (low - 0.1, high)

    monkeypatch.setattr(Answerer, "_value", stopped)
    monkeypatch.setattr(answers, "MAP_DELAYS", (0, 1))
    found = answer(menu, {"delay": 1, "loss": 10}, "frontier")["frontier"]
    assert found["open"] == [[q == 90] * 2 for q in found["losses"]]


def test_beyond_patience_a_progress_note_is_shown(menu: Menu, monkeypatch: pytest.MonkeyPatch) -> None:
    """While bounds are closed the page is told what is being done; the bounds come first, and contain the optimum that follows."""
    monkeypatch.setattr(answers, "QUICK", 1e-9)
    monkeypatch.setattr(answers, "PATIENCE", 0.0)
    told: list[dict[str, Any]] = []
    Answerer(menu)({"position": {"delay": 1, "loss": 40}, "parts": ["optimum"]}, told.append)
    first, last = (part for part in told if part["part"] == "optimum")
    assert not first["final"]
    assert last["final"]
    assert last["exact"]
    assert first["lower"] <= last["value"] <= first["upper"]
    notes = [part for part in told if part["part"] == "progress"]
    assert notes
    assert all(part["what"] == "closing the bounds" and 0 <= part["done"] <= part["total"] for part in notes)
