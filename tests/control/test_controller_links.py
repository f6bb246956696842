"""Controllers behind links that are planned by their automaton: the plan's own actions, its value, files, surprises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from link_cases import BY_NODES, HORIZON, guessing, names
from oldlight.model.link_information import LinkInformation, NodeFollower
from oldlight.simulation.link_sampler import LinkSampler
from repeats import repeats


def played(problem: ol.ImpairedMDP, controller: ol.Controller, seed: Any, policy: Any = None) -> float:
    """One episode by events; if a policy is given each action must be its own."""
    rng, H, k = np.random.default_rng(seed), problem.horizon, problem.actuation
    sampler, follower = LinkSampler(problem.channel, horizon=H), NodeFollower(problem.automaton, k)
    states = [int(rng.choice(problem.n_states, p=problem.initial))]
    acts, newest, earned = list(problem.pending), -1, 0.0
    controller.reset()
    for w in range(H):
        told = sampler.send() if w else sampler.begin(rng)
        if w + k < H:
            for i in rng.permutation(told.arrived).tolist():  # in any order
                controller.observe(i, states[i] if i >= 0 else 0)
            for i in told.lost:
                controller.lost(i)
            a = controller.act()
            if policy is not None:
                newest = max([newest, *told.arrived])
                t, s = (newest, states[newest]) if newest >= 0 else (None, None)
                node = problem.automaton.nodes[follower.hear(told.arrived, told.lost)]
                info = LinkInformation(w + k, node, t, s, tuple(acts[max(newest, 0) :]))
                assert a == policy.action(info), info
            acts.append(a)
        earned += float(problem.mdp.rewards[w, states[-1], acts[w]])
        states.append(int(rng.choice(problem.n_states, p=problem.mdp.transitions[w, states[-1], acts[w]])))
    return earned


@pytest.mark.crossed("channel", "actuation")
@pytest.mark.parametrize("actuation", [0, 1])
@pytest.mark.parametrize("channel", BY_NODES, ids=names)
def test_a_controller_does_what_the_plan_says(channel: Any, actuation: int, tmp_path: Path) -> None:
    problem = ol.ImpairedMDP(guessing(HORIZON + 1), channel, actuation=actuation, pending=[2] * actuation)
    policy = ol.solve(problem).policy
    controller = ol.Controller.load(ol.Controller(problem, policy).save(tmp_path / "plan.npz"))
    for e in range(60):
        played(problem, controller, [1, e], policy)
    report = controller.report()
    assert report.unplanned == report.refused == 0
    assert report.ticks == 60 * (HORIZON + 1 - actuation)


@pytest.mark.parametrize("channel", BY_NODES, ids=names)
def test_a_controller_earns_the_plan_s_value(channel: Any) -> None:
    problem = ol.ImpairedMDP(guessing(), channel)
    solution = ol.solve(problem)
    controller = ol.Controller(problem, solution.policy)
    n = repeats(200, 800)
    returns = np.array([played(problem, controller, [2, e]) for e in range(n)])
    assert abs(returns.mean() - solution.value) < 4.2 * returns.std() / np.sqrt(n)


def test_laws_of_the_search_are_in_the_file(tmp_path: Path) -> None:
    """Loss without delay: beyond the tables every decision is one on a law; searched and tabled ones."""
    problem = ol.ImpairedMDP(guessing(7), "packets:0=1.+loss:.6")
    policy: Any = ol.solve(problem, depth=0).policy
    assert len(policy.as_arrays().beliefs) > 1
    controller = ol.Controller.load(ol.Controller(problem, policy).save(tmp_path / "plan.npz"))
    for e in range(300):
        played(problem, controller, [3, e], policy)


@pytest.mark.parametrize("channel", [BY_NODES[0], BY_NODES[2], BY_NODES[4], BY_NODES[7]], ids=names)
def test_links_that_were_not_planned_for(channel: Any) -> None:
    """Whatever comes there is an action; what the plan did not expect is counted."""
    problem = ol.ImpairedMDP(guessing(12), channel)
    controller = ol.Controller(problem, ol.solve(problem, tolerance=0.2).policy)
    rng = np.random.default_rng(0)
    for _ in range(60):
        controller.reset()
        h = 0
        while h < 12:
            controller.tick(h)
            for i in range(h + 1):
                if rng.random() < 0.1:
                    controller.observe(i, i % 3)
            if rng.random() < 0.1:
                controller.lost(h)
            if h and rng.random() < 0.1:
                controller.did(h - 1, int(rng.integers(3)))
            assert 0 <= controller.act() < 3
            h += 1 if rng.random() < 0.8 else 3
    report = controller.report()
    assert report.unplanned > 0
    assert report.skipped > 0


def test_silence_longer_than_the_plan_knows_is_counted_along() -> None:
    problem = ol.ImpairedMDP(guessing(8), ol.FIFODelay([0.5, 0.5]))
    controller = ol.Controller(problem, ol.solve(problem).policy)
    controller.observe(0, 1)
    for _ in range(6):
        controller.act()
    assert controller.report().counted_along == 4  # of the ages 0..5 the plan knows 0 and 1
    controller.observe(6, 2)
    controller.act()
    assert controller.report().unplanned == 4, "the node after that is known again"


def test_any_policy_of_nodes_is_asked() -> None:
    problem = ol.ImpairedMDP(guessing(), "held:0=.5,2=.5,hold=.6")
    asked: list[LinkInformation] = []

    def choose(info: LinkInformation) -> int:
        asked.append(info)
        return 0 if info.state is None else info.state

    controller = ol.Controller(problem, ol.FunctionPolicy(choose, 3))
    value = float(ol.evaluate(problem, ol.FunctionPolicy(lambda info: 0 if info.state is None else info.state, 3)))
    returns = np.array([played(problem, controller, [4, e]) for e in range(600)])
    assert abs(returns.mean() - value) < 4.2 * returns.std() / np.sqrt(600)
    assert {info.node for info in asked} <= set(problem.automaton.nodes)
    with pytest.raises(ValueError, match="a policy written in Python cannot be saved"):
        controller.save("nowhere.npz")
    controller.reset()
    controller.act()  # the buffer shows something at every time, but nothing came
    assert controller.report().nearest_wait > 0


def test_policies_made_for_another_link_are_refused() -> None:
    packets, fifo = (ol.ImpairedMDP(guessing(), text) for text in ("packets:0=.5,2=.5", "fifo:0=.5,1=.5"))
    late = ol.ImpairedMDP(guessing(), "constant:1")
    for problem, policy in (
        (packets, ol.solve(fifo).policy),
        (packets, ol.solve(late).policy),
        (late, ol.solve(packets).policy),
    ):
        with pytest.raises(ValueError, match="was made for another"):
            ol.Controller(problem, policy)
    with pytest.raises(TypeError, match="acts on the current state"):
        ol.Controller(packets, ol.MarkovPolicy(np.zeros((HORIZON, 3), dtype=int), 3))


WANTED = """
import sys
import oldlight.control
controller = oldlight.control.Controller.load(sys.argv[1])
controller.observe(0, 1)
controller.act()
heavy = {"multiprocessing", "matplotlib", "gymnasium", "typer", "numba", "scipy", "rich", "concurrent"}
print(sorted({name.split(".")[0] for name in sys.modules} & heavy))
print(*sorted(name.removeprefix("oldlight.") for name in sys.modules if name.startswith("oldlight.")))
"""


@pytest.mark.subprocess
def test_a_robot_loads_what_it_needs(tmp_path: Path) -> None:
    problem = ol.ImpairedMDP(guessing(), "packets:0=.5,1=.5+loss:0.1")
    path = ol.Controller(problem, ol.solve(problem).policy).save(tmp_path / "plan.npz")
    source = str(Path(ol.__file__).parents[1])
    told = subprocess.run(
        [sys.executable, "-c", WANTED, str(path)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": source},
        check=True,
    )
    heavy, own = told.stdout.splitlines()
    assert heavy == "[]"
    assert set(own.split()) == NEEDED


NEEDED = {  # 20 of our modules and the package itself: no process, no problem, no channel but the automaton that a plan may follow
    *(
        "_exports",
        "arrays",
        "checks",
        "files",
        "machine",
        "control",
        "model",
        "model.channels",
        "model.channels.automaton",
    ),
    *(f"control.{name}" for name in ("choice", "controller", "link_choice", "memory", "plan_tables", "report")),
    *("model.channels.pmfs", "model.age_layers", "model.held_steps", "model.link_tables", "model.table_places"),
}


def test_a_saved_plan_still_hears_what_tells_the_node(tmp_path: Path) -> None:
    """Behind a hidden link the age does not tell the node; the file of a plan keeps what does."""
    link = ol.HiddenLink([[0.8, 0.2], [0.3, 0.7]], delays=[[0.5, 0.5], [0.2, 0.3]])
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8).replace(horizon=4), link)
    policy = ol.solve(problem).policy
    again = ol.load_policy(policy.save(tmp_path / "plan.npz"))
    assert not problem.automaton.tells_by_age
    for key, array in policy.as_arrays().to_arrays().items():
        np.testing.assert_array_equal(again.as_arrays().to_arrays()[key], array)
