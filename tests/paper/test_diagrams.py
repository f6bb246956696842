"""Diagrams: what they show is what the instances are, read back from the drawing."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight import instances
from oldlight.paper import diagrams
from oldlight.report.draw_matplotlib import picture


def texts(diagram: diagrams.Diagram) -> list[str]:
    """Every text of the drawing."""
    found = [t.get_text() for ax in diagram.draw().axes for t in ax.texts]
    return [t for t in found if t]


def test_the_four_diagrams() -> None:
    found = diagrams.paper_diagrams()
    assert list(found) == ["interaction", "dichotomy", "chain", "hard-tree"]
    for name, diagram in found.items():
        assert re.fullmatch(r"[a-z-]+", name)
        assert diagram.caption
        assert b"<text" in picture(diagram.draw(), "svg", name)


@pytest.mark.parametrize("p", [0.99, 0.7])
def test_a_chain_shows_its_own_probabilities(p: float) -> None:
    shown = texts(diagrams.chain(instances.center_chain(p)))
    numbers = [float(t) for t in shown if re.fullmatch(r"0\.\d+", t)]
    assert set(numbers) == {p, round(1 - p, 3)}
    assert [t for t in shown if t.startswith("a")] == ["a₁", "a₂ … a₅"]
    circles = [int(t) for t in shown if re.fullmatch(r"\d+", t)]
    assert circles == 2 * [1, 2, 3, 9, 10, 11, 12, 18, 19, 20]
    # every arrow of a drawn state is there: two moves per state and kind of action
    assert len(numbers) == 2 * len(circles)


def test_a_chain_leaves_out_only_states_that_move_as_their_neighbours() -> None:
    P, R = np.array(instances.sensing_chain(0.8).transitions[0]), np.zeros((20, 5))
    P[5, 0] = 0.0
    P[5, 0, 5] = 1.0  # one state that differs
    shown = texts(diagrams.chain(ol.TabularMDP(P, R, horizon=4)))
    assert {"5", "6", "7"} <= set(shown)
    with pytest.raises(ValueError, match="has a move over 19 states"):
        diagrams.chain(ol.TabularMDP(np.roll(P, 1, axis=2), R, horizon=4))
    with pytest.raises(ValueError, match="changes from step to step"):
        diagrams.chain(instances.dichotomy(1))


@pytest.mark.parametrize("d", [1, 3])
def test_the_dichotomy_shows_times_and_computed_values(d: int) -> None:
    shown = texts(diagrams.dichotomy(d))
    assert [t for t in shown if t.startswith("time")] == [f"time {h + 1}" for h in range(d + 2)]
    assert "s₁ is seen, in time: value 1" in shown
    assert "s₁ is seen, too late: value 1/2" in shown
    assert shown.count("½") == 4  # the one step that draws a new state
    assert sum(t.startswith("reward 1 for") for t in shown) == 2
    assert {f"delay {d}", f"delay {d + 1}"} <= set(shown)


@pytest.mark.parametrize(("depth", "actions", "seed"), [(3, 2, 1), (2, 3, 0), (1, 3, 4)])
def test_the_tree_finds_the_special_triple(depth: int, actions: int, seed: int) -> None:
    mdp = instances.hard_tree(depth, actions, 3, epsilon=0.25, seed=seed)
    good = mdp.n_states - 1
    ((h, s, a),) = np.argwhere(np.isclose(mdp.transitions[..., good], 0.75))  # the one row with the better chance
    leaf = s - (1 + (actions**depth - 1) // (actions - 1) - actions ** (depth - 1))
    diagram = diagrams.tree(mdp)
    sub = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
    assert (
        f"except {f'a{a + 1}'.translate(sub)} in leaf {f'ℓ{leaf + 1}'.translate(sub)} at step {h + 1}, where it is ¾"
        in diagram.caption
    )
    shown = texts(diagram)
    assert {"¾*", "¼*", "wait", "good", "bad"} <= set(shown)
    leaves = [t for t in shown if t.startswith("ℓ")]
    assert len(set(leaves)) == actions ** (depth - 1)
    first_paid = int(np.flatnonzero(mdp.rewards[:, good].any(axis=1))[0]) + 1
    assert f"pays 1 for h ≥ {first_paid}" in shown


def test_a_tree_without_a_special_leaf_and_other_processes() -> None:
    assert "except" not in diagrams.tree(instances.hard_tree(2, 2, 2, epsilon=0.0)).caption
    with pytest.raises(ValueError, match="is not a process from hard_tree"):
        diagrams.tree(instances.sensing_chain(0.8))


@pytest.mark.parametrize(
    ("channel", "start", "h", "newest"),
    [
        (ol.ConstantDelay(2), None, 5, 3),
        (ol.ConstantDelay(2), None, 1, None),
        (ol.ConstantDelay(3), ol.WarmStart(), 1, -2),
        (ol.ConstantDelay(0), None, 4, 4),
    ],
)
def test_an_episode_shows_what_the_agent_knows(channel: Any, start: Any, h: int, newest: int | None) -> None:
    problem = ol.ImpairedMDP(instances.sensing_chain(0.8), channel, start=start)
    policy = ol.solve(problem).policy
    diagram = diagrams.interaction(problem, policy, h=h, seed=3)
    sub = str.maketrans("-0123456789", "₋₀₁₂₃₄₅₆₇₈₉")
    shown = texts(diagram)
    played = ol.simulate(problem, policy, 1, seed=3, record=True)
    assert played.states is not None
    if newest is None:
        assert "the newest observation is none yet" in diagram.caption
    else:
        name = f"s{newest + 1}".translate(sub)
        assert f"{name} = state {played.states[0, newest + played.warmup] + 1};" in diagram.caption
        assert any("~" in t and name in t for t in shown)
    law = [float(t) for t in shown if re.fullmatch(r"[01]\.\d\d", t)]
    assert sum(law) == pytest.approx(1.0, abs=0.05) if len(law) < 9 else sum(law) <= 1.05


def test_lost_observations_are_crossed_out() -> None:
    problem = ol.ImpairedMDP(instances.sensing_chain(0.8), ol.Loss(rate=0.5))
    policy = ol.FunctionPolicy(lambda info: 0, 5)
    played = ol.simulate(problem, policy, 1, seed=1, record=True)
    assert played.arrivals is not None
    lost = int((played.arrivals[0, :8] == -1).sum())
    assert lost > 0
    assert texts(diagrams.interaction(problem, policy, h=7, seed=1)).count("×") == lost
    with pytest.raises(ValueError, match="h is 10"):
        diagrams.interaction(problem, policy, h=10)
