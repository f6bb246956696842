"""Policies of processes that run for ever: played, saved, controlled; and what still needs a number of steps says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from forever_cases import QUICK, USUAL, names, naming
from oldlight.control import Controller
from repeats import repeats

STEPS = 20


@pytest.mark.parametrize("link", USUAL, ids=names)
def test_played_it_earns_what_was_certified(link: Any, tmp_path: Path) -> None:
    """Five half-widths of the mean return, and what the steps that are not played can earn."""
    late: Any = {"actuation": 1, "pending": [2]} if link in QUICK else {}
    problem = ol.ImpairedMDP(naming(discount=0.8), link, **late)
    found = ol.solve(problem, tolerance=1e-2)
    played = ol.simulate(problem, found.policy, 1_000, seed=1, steps=STEPS)
    rest = 0.8**STEPS * 1.2 / 0.2
    assert abs(played.mean - found.value) <= 2.6 * played.half_width + rest + (found.upper - found.lower)
    again = ol.load_policy(found.policy.save(tmp_path / "plan.npz"))  # type: ignore[attr-defined]
    assert np.array_equal(ol.simulate(problem, again, 500, seed=2, steps=9).returns,
                          ol.simulate(problem, found.policy, 500, seed=2, steps=9).returns)  # fmt: skip


@pytest.mark.parametrize("link", USUAL, ids=names)
def test_a_controller_does_what_the_policy_does(link: Any, tmp_path: Path) -> None:
    """The messages of played episodes, step by step; the controller comes from a file."""
    problem = ol.ImpairedMDP(naming(average=True), link)
    found = ol.solve(problem, tolerance=1e-2)
    controller = Controller.load(Controller(problem, found.policy).save(tmp_path / "plant.npz"))
    assert controller.loss_bound == pytest.approx(found.upper - found.lower)
    policy: Any = found.policy
    announced = problem.has_delay_law and problem.loss is None  # losses are told, other news are of before the episode
    if policy.true_link is not None or not (announced or policy.automaton.tells_by_age):
        for _ in range(300):
            assert 0 <= controller.act() < 3
        return
    played = ol.simulate(problem, found.policy, 3, seed=3, steps=60, record=True)
    assert played.states is not None
    assert played.actions is not None
    assert played.arrivals is not None
    for states, actions, arrivals in zip(played.states, played.actions, played.arrivals, strict=True):
        controller.reset()
        for h in range(60):
            for i in np.flatnonzero(arrivals == h).tolist():
                controller.observe(i, int(states[i]))
            assert controller.act() == actions[h]
    assert controller.report().unplanned == 0


def test_a_controller_runs_without_end() -> None:
    problem = ol.ImpairedMDP(naming(discount=0.99), ol.ConstantDelay(2))
    controller = ol.Controller(problem, ol.solve(problem).policy)
    rng = np.random.default_rng(0)
    for h in range(5_000):
        if h >= 2:
            controller.observe(h - 2, int(rng.integers(3)))
        controller.act()
    assert controller.report().unplanned == 0
    for _ in range(500):  # then silence
        controller.act()
    assert "runs for ever" in repr(controller)


def test_a_warm_controller() -> None:
    problem = ol.ImpairedMDP(naming(discount=0.9), ol.ConstantDelay(2), start="warm")
    policy: Any = ol.solve(problem).policy
    controller = ol.Controller(problem, policy)
    controller.reset(past=[1, 2])
    controller.observe(-2, 0)
    assert controller.act() == policy.action(ol.Information.seen(0, 0, (1, 2)))


def test_average_returns_are_per_step() -> None:
    problem = ol.ImpairedMDP(naming(average=True), ol.ConstantDelay(1))
    found = ol.solve(problem)
    steps = repeats(100, 400)
    played = ol.simulate(problem, found.policy, 100, seed=0, steps=steps)
    assert abs(played.mean - found.value) <= 2.6 * played.half_width + 2 * 1.2 / steps


NEEDS_STEPS: dict[str, Any] = {
    "simulate": lambda p, _: ol.simulate(p, ol.FunctionPolicy(lambda info: 0, 3), 10),
    "truncate": lambda p, _: ol.truncate(p, 0.1),
    "learn": lambda p, _: ol.learn(p, ol.learners.DelayedUCBVI(), 10, seed=0),
    "Layout.of": lambda p, _: ol.Layout.of(p),
    "proposition4": lambda p, _: ol.gap(p).proposition4,
    "open_loop": lambda p, _: _heuristics().open_loop(p),
    "replay": lambda p, _: ol.replay(p, ol.solve(p).policy, _recording(), period_ms=20, episodes=2),
    "run_testbed": lambda p, _: ol.run_testbed(p, ol.solve(p).policy, episodes=2),
    "augmented": lambda p, _: _augmented().augmented(p),
    "past_reward": lambda p, _: _augmented().past_reward(p),
    "problem.horizon": lambda p, _: p.horizon,
    "mdp.finite_horizon": lambda p, _: p.mdp.finite_horizon,
}


def _heuristics() -> Any:
    from oldlight.planning import heuristics

    return heuristics


def _recording() -> ol.Trace:
    return ol.Trace([12.0] * 50, sent_ms=20.0 * np.arange(50))


def _augmented() -> Any:
    from oldlight.planning import augmented

    return augmented


@pytest.mark.parametrize("name", NEEDS_STEPS)
def test_what_needs_a_number_of_steps_says_so(name: str) -> None:
    problem = ol.ImpairedMDP(naming(discount=0.9), ol.ConstantDelay(1))
    with pytest.raises(ValueError, match=r"for ever.*(mdp\.replace\(horizon=H\)|steps=)"):
        NEEDS_STEPS[name](problem, None)


@pytest.mark.parametrize("channel", [ol.Loss(rate=[0.1, 0.2]), ol.StochasticDelay(np.full((3, 3, 3, 2), 0.5))])
def test_links_that_change_with_time_are_refused(channel: Any) -> None:
    with pytest.raises(ValueError, match="runs for ever"):
        ol.ImpairedMDP(naming(discount=0.9), channel)


def test_laws_of_hidden_states_are_refused() -> None:
    law = np.zeros((3, 3, 2))
    law[..., 0], law[..., 1] = 0.5, 0.5
    law[0, 0] = (1.0, 0.0)
    with pytest.raises(ValueError, match="depends on the state or the action"):
        ol.ImpairedMDP(naming(discount=0.9), ol.StochasticDelay(law))
