"""The controller where messages are not as the plan expected them, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oldlight as ol
from controller_cases import chain
from oldlight.control import Controller

# -- what the plan did not expect -------------------------------------------------------------------------------------


def test_silence_is_counted_along_by_most_likely_successors() -> None:
    problem, policy = chain(2)
    controller = Controller(problem, policy)
    controller.act(), controller.act()
    controller.observe(0, 9)
    controller.act()
    for h in (3, 4, 5):
        controller_info = controller.information
        assert len(controller_info.queue) == h
        state = 9
        for i, a in enumerate(controller_info.queue[:-2]):
            state = int(problem.mdp.transitions[i, state, a].argmax())
        assert controller.act() == policy.action(ol.Information(h, h - 2, state, controller_info.queue[-2:], 0))
    assert controller.report().counted_along == 3
    controller.observe(3, 2)  # late: three steps old, one too many; counted along from here
    queue = controller.information.queue
    state = int(problem.mdp.transitions[3, 2, queue[0]].argmax())
    assert controller.act() == policy.action(ol.Information(6, 4, state, queue[1:], 0))


def test_nothing_at_all_is_counted_along_from_the_most_likely_start() -> None:
    mdp = ol.instances.sensing_chain(0.8, initial=np.eye(20)[4])
    problem = ol.ImpairedMDP(mdp, ol.ConstantDelay(1))
    policy: Any = ol.solve(problem).policy
    controller = Controller(problem, policy)
    actions, state = [controller.act()], 4
    for h in range(1, 10):
        assert controller.act() == policy.action(ol.Information(h, h - 1, state, (actions[-1],), 0))
        actions.append(controller._memory.actions[-1])
        state = int(mdp.transitions[0, state, actions[h - 1]].argmax())
    assert controller.report().counted_along == 9


def test_early_observations_are_held_until_they_are_due() -> None:
    """A link that is faster than the plan: the plan's own value, neither more nor less."""
    problem, policy = chain(2)
    fast, slow = Controller(problem, policy), Controller(problem, policy)
    rng = np.random.default_rng(0)
    for _ in range(20):
        states = rng.integers(0, 20, 10).tolist()
        fast.reset(), slow.reset()
        for h in range(10):
            fast.observe(h, states[h])
            if h >= 2:
                slow.observe(h - 2, states[h - 2])
            assert fast.act() == slow.act()
    assert fast.report().held_back == 200
    assert slow.report().unplanned == 0


def test_early_observations_under_loss_are_held_too() -> None:
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.Lossy(ol.ConstantDelay(2), seen=0.5))
    policy: Any = ol.solve(problem).policy
    fast, slow = Controller(problem, policy), Controller(problem, policy)
    rng = np.random.default_rng(0)
    for _ in range(40):
        states, seen = rng.integers(0, 20, 10).tolist(), rng.random(10) < 0.5
        fast.reset(), slow.reset()
        for h in range(10):
            if seen[h]:
                fast.observe(h, states[h])
            if h >= 2 and seen[h - 2]:
                slow.observe(h - 2, states[h - 2])
            assert fast.act() == slow.act()
    assert slow.report().unplanned == 0 < fast.report().held_back


def test_a_wait_that_the_plan_does_not_know() -> None:
    law = np.array([0.5, 0.5])
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.StochasticDelay(law).capped(3))
    policy: Any = ol.solve(problem).policy
    controller = Controller(problem, policy)
    controller.act()
    controller.observe(1, 5)
    controller.act()
    controller.act()  # waited 1: known
    assert controller.report().counted_along == 1  # at tick 0 the state of step 0 is always seen
    info = controller.information
    assert info.waited == 2
    assert controller.act() == policy.action(info._replace(waited=1))
    assert controller.report().nearest_wait == 1


# -- nonsense ---------------------------------------------------------------------------------------------------------


def refusals() -> list[tuple[str, Any, str]]:
    return [
        ("observe", (3, 1), "observe: step is 3, expected a whole number in 0..2"),
        ("observe", (-1, 1), "observe: step is -1, expected a whole number in 0..2"),
        ("observe", (1, 20), "observe: state is 20, expected a whole number in 0..19"),
        ("observe", (1, -1), "observe: state is -1, expected a whole number in 0..19"),
        ("observe", (1, None), "observe: state is None, expected a whole number in 0..19"),
        ("observe", (1.5, 0), "observe: step is 1.5, expected a whole number in 0..2"),
        ("observe", (float("nan"), 0), "observe: step is nan, expected a whole number in 0..2"),
        ("observe", (0, 8), "the observation of step 0 had state 7, now it has 8; the first is kept"),
        ("observe", (True, 8), "observe: step is True, expected a whole number in 0..2"),
        ("lost", (3,), "lost: step is 3, expected a whole number in 0..2"),
        ("tick", (0,), "tick 0 is over: the clock is at 2. A new episode begins with reset()"),
        ("tick", (10,), "tick is 10, expected a whole number in 0..9"),
        ("tick", ("now",), "tick is 'now', expected a whole number in 0..9"),
        ("did", (2, 0), "did: step is 2, expected a whole number in 0..1"),
        ("did", (0, 5), "did: action is 5, expected a whole number in 0..4"),
        ("reset", ([1],), "past has 1 actions, expected one per step before the start: 0"),
        ("reset", (3,), "past is 3, expected a list of actions, one per step before the start: 0"),
    ]


@pytest.mark.parametrize(("name", "given", "says"), refusals())
def test_nonsense_is_refused_and_changes_nothing(name: str, given: Any, says: str) -> None:
    problem, policy = chain(2)
    controller, other = Controller(problem, policy), Controller(problem, policy)
    for one in (controller, other):
        one.act(), one.act()
        one.observe(0, 7)
    with pytest.raises(ValueError) as refused:
        getattr(controller, name)(*given)
    assert str(refused.value) == says
    assert controller.report().refused == 1
    assert controller.information == other.information
    assert [controller.act() for _ in range(8)] == [other.act() for _ in range(8)]


def test_the_end_of_an_episode() -> None:
    problem, policy = chain(2)
    controller = Controller(problem, policy)
    for _ in range(10):
        controller.act()
    with pytest.raises(ValueError, match=r"the episode has ended after 10 steps; call reset\(\)"):
        controller.act()
    controller.observe(9, 3)  # what comes after the end is for learning
    assert controller.episode(problem).states[9] == 3
    with pytest.raises(ValueError, match=r"observe: step is 10, expected a whole number in 0..9"):
        controller.observe(10, 3)
    controller.reset()
    assert controller.information == ol.Information.nothing_seen()
    assert controller.act() in range(5)
    assert controller.loss_bound is None


def test_a_warm_start_needs_its_past() -> None:
    problem, policy = chain(1, start=ol.WarmStart())
    controller = Controller(problem, policy)
    for name, given in [
        ("observe", (-1, 0)),
        ("lost", (-1,)),
        ("act", ()),
        ("act", (0,)),
        ("tick", (0,)),
        ("did", (-1, 2)),
        ("episode", (problem,)),
    ]:
        with pytest.raises(ValueError, match=r"a warm start begins with reset\(past\): the 1 actions before the start"):
            getattr(controller, name)(*given)
    assert (controller.report().refused, controller.report().ticks, controller.step) == (7, 0, 0)
    with pytest.raises(ValueError, match="past has 0 actions, expected one per step before the start: 1"):
        controller.reset()
    with pytest.raises(ValueError, match=r"past\[0\] is 5"):
        controller.reset([5])
    controller.reset([3])
    controller.observe(-1, 4)
    assert controller.act() == policy.action(ol.Information(0, -1, 4, (3,), 0))


def test_what_it_takes() -> None:
    problem, policy = chain(2)
    other = ol.ImpairedMDP(problem.mdp, ol.ConstantDelay(1))
    with pytest.raises(ValueError, match="was made for another problem"):
        Controller(other, policy)
    with pytest.raises(ValueError, match="was made for another problem"):
        Controller(ol.ImpairedMDP(problem.mdp, ol.Loss(seen=0.5)), policy)
    with pytest.raises(ValueError, match="was made for another problem"):
        Controller(problem, ol.solve(ol.ImpairedMDP(problem.mdp, ol.Loss(seen=0.5))).policy)
    with pytest.raises(TypeError, match="acts on the current state, which a controller does not see"):
        Controller(problem, ol.MarkovPolicy(np.zeros((10, 20), dtype=int), 5))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="without probabilities"):
        Controller(problem, lambda info: 0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Controller takes an ImpairedMDP"):
        Controller(problem.mdp, policy)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="skipped is 5"):
        Controller(problem, policy, skipped=5)
    with pytest.raises(TypeError, match=r"Controller.episode takes an ImpairedMDP, not something of type int"):
        Controller(problem, policy).episode(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no such episode"):
        Controller(problem, policy).episode(ol.ImpairedMDP(problem.mdp.replace(horizon=4), ol.ConstantDelay(2)))
