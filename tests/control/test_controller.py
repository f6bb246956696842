"""The controller against the policy it follows, whatever the network does with its messages."""

from __future__ import annotations

import itertools
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import oldlight as ol
from conftest import random_mdp
from oldlight.control import Controller
from oldlight.control.policy_arrays import discount_of, standstill
from oldlight.learners.loop import _episode
from oldlight.model.policies import tabulate
from oracle import random_law

KINDS = [
    "none",
    "constant, cold",
    "constant, warm",
    "beyond the horizon",
    "per state and action",
    "geometric",
    "capped",
    "late actions",
    "loss",
    "loss per step",
    "late and lossy",
    "lossy, late actions",
]


def problem_of(kind: str, seed: int) -> ol.ImpairedMDP:
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    S, A, H = int(rng.integers(2, 4)), int(rng.integers(2, 4)), int(rng.integers(3, 6))
    mdp = random_mdp(rng, S, A, H)
    pending = rng.integers(0, A, 2).tolist()
    first, inter = random_law(rng, H, S, A, 3, kind="state_action")
    channel: Any = {
        "none": ol.ConstantDelay(0),
        "constant, cold": ol.ConstantDelay(2),
        "constant, warm": ol.ConstantDelay(2),
        "beyond the horizon": ol.ConstantDelay(9),
        "per state and action": ol.StochasticDelay(inter, first=first),
        "geometric": ol.GeometricDelay(0.6, first="same"),
        "capped": ol.GeometricDelay(0.4, first="same").capped(2),
        "late actions": ol.GeometricDelay(0.5),
        "loss": ol.Loss(seen=0.5),
        "loss per step": ol.Loss(seen=rng.random(H)),
        "late and lossy": ol.Lossy(ol.ConstantDelay(2), seen=0.6),
        "lossy, late actions": ol.Lossy(ol.ConstantDelay(1), seen=0.6),
    }[kind]
    if kind == "constant, warm":
        return ol.ImpairedMDP(mdp, channel, start=ol.WarmStart())
    if "actions" in kind and "late" in kind and "state" not in kind:
        return ol.ImpairedMDP(mdp, channel, actuation=2, pending=pending)
    return ol.ImpairedMDP(mdp, channel)


def begin(controller: Controller, problem: ol.ImpairedMDP, actions: Any) -> None:
    controller.reset(actions[: problem.warmup].tolist())


# -- the right action, whatever happens to the messages ---------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_plays_what_the_compiled_simulator_plays(kind: str, seed: int) -> None:
    """Shuffled, repeated and announced-as-lost messages; the same actions, states of information and mean return."""
    problem = problem_of(kind, seed)
    policy: Any = ol.solve(problem).policy
    played = ol.simulate(problem, policy, 60, seed=seed, record=True)
    states, actions, arrivals = played.states, played.actions, played.arrivals
    assert states is not None
    assert actions is not None
    assert arrivals is not None
    controller, rng = Controller(problem, policy), np.random.default_rng(seed)
    H, warmup, k = problem.horizon, problem.warmup, problem.actuation
    returns = np.zeros(60)
    for e in range(60):
        begin(controller, problem, actions[e])
        came: list[tuple[int, int]] = []
        episode = _episode(problem, states[e], actions[e], arrivals[e])
        for h in range(k, H):
            new = [(i - warmup, int(states[e, i])) for i in range(warmup + H) if arrivals[e, i] == h]
            again = [came[int(j)] for j in rng.integers(0, len(came), 2)] if came else []
            for j in rng.permutation(len(new) + len(again)):
                controller.observe(*(new + again)[j])
            came += new
            if problem.loss is not None and rng.random() < 0.5:
                for i in np.flatnonzero(arrivals[e, : h - k + 1] < 0):
                    controller.lost(int(i))
            info = controller.information
            assert info == episode.information(h)
            assert controller.act() == policy.action(info) == actions[e, warmup + h]
        done = actions[e, warmup:]
        returns[e] = problem.mdp.rewards[np.arange(H), states[e, warmup:], done].sum()
        seen = controller.episode(problem)
        known = np.where((arrivals[e] >= 0) & (arrivals[e] < H), states[e], -1)
        assert seen.states.tolist() == known.tolist()
        assert seen.actions.tolist() == actions[e].tolist()
        assert seen.arrivals[known >= 0].tolist() == arrivals[e][known >= 0].tolist()
        assert np.allclose(seen.rewards[known >= 0], episode.rewards[known >= 0])
    assert returns == pytest.approx(played.returns, abs=1e-12)
    report = controller.report()
    assert report.unplanned == report.refused == report.out_of_order == report.skipped == 0
    assert report.ticks == 60 * max(H - k, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_mean_return_is_what_evaluate_says(kind: str) -> None:
    """A process of its own, in Python, that knows nothing of the simulator."""
    problem = problem_of(kind, 5)
    policy: Any = ol.solve(problem).policy
    controller, rng = Controller(problem, policy), np.random.default_rng(5)
    returns = np.array([play(problem, controller, rng) for _ in range(1500)])
    error = returns.std(ddof=1) / np.sqrt(len(returns))
    assert abs(returns.mean() - float(ol.evaluate(problem, policy))) < 3.5 * error + 1e-12


def play(problem: ol.ImpairedMDP, controller: Controller, rng: np.random.Generator) -> float:
    """One episode by the definitions of oldlight.model.channels, in ticks of the wall clock."""
    mdp, H, A, warmup, k = problem.mdp, problem.horizon, problem.n_actions, problem.warmup, problem.actuation
    law = ol.ImpairedMDP(mdp, problem.channel, start=problem.start).law
    s = int(rng.choice(problem.n_states, p=problem.initial))
    states, past = [s], rng.integers(0, A, warmup).tolist()
    for a in past:
        states.append(int(rng.choice(problem.n_states, p=mdp.transitions[0, states[-1], a])))
    controller.reset(past)
    d = warmup or int(rng.choice(len(law.first), p=law.first))
    under_way = [(i - warmup + d, i - warmup, states[i]) for i in range(len(states))]
    plan, total = list(problem.pending), 0.0
    if problem.arrival_probability is not None and rng.random() >= problem.arrival_probability[0]:
        under_way = []
    for h in range(H):
        for message in [x for x in under_way if x[0] == h]:
            controller.observe(message[1], message[2])
        if h + k < H:
            plan.append(controller.act())
        s, a = states[-1], plan[h]
        total += float(mdp.rewards[h, s, a])
        if h + 1 < H:
            row = law.at_step(law.interarrival, h)
            pmf = row[min(s, row.shape[0] - 1), min(a, row.shape[1] - 1)]
            d = min(d + int(rng.choice(len(pmf), p=pmf)), law.longest_delay)
            states.append(int(rng.choice(problem.n_states, p=mdp.transitions[h, s, a])))
            if problem.arrival_probability is None or rng.random() < problem.arrival_probability[h + 1]:
                under_way.append((h + 1 + d, h + 1, states[-1]))
    return total


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_any_stream_of_messages(kind: str, seed: int) -> None:
    """Messages that come when the plan does not expect them: τ as the definition has it, the policy's action wherever the plan
    has one, and always an action."""
    problem = problem_of(kind, seed)
    policy: Any = ol.solve(problem).policy
    controller, rng = Controller(problem, policy), np.random.default_rng([seed, 77])
    H, S, A, warmup, k = problem.horizon, problem.n_states, problem.n_actions, problem.warmup, problem.actuation
    strict: Any = policy if problem.arrival_probability is None else ol.BlackoutPolicy(policy.sequences, A, policy.late)
    planned = 0
    for _ in range(60):
        past = rng.integers(0, A, warmup).tolist()
        states = rng.integers(0, S, warmup + H)
        when = np.arange(-warmup, H) + rng.integers(0, 5, warmup + H)  # ticks; H or later: never
        controller.reset(past)
        actions = past or list(problem.pending)
        messages = {i - warmup: (int(states[i]), max(int(when[i]), 0) + k) for i in range(warmup + H)}
        for tick in range(H - k):
            due = [i for i, (_, time) in messages.items() if time == tick + k and i <= tick]
            for i in rng.permutation(due).tolist() + rng.permutation(due).tolist()[:1]:
                controller.observe(i, messages[i][0])
            info = by_definition(tick + k, actions, messages, warmup)
            assert controller.information == info
            before = controller.report().unplanned
            a = controller.act()
            try:
                early = problem.arrival_probability is not None and info.t is not None and len(info.queue) < policy.late
                wanted = None if early else (strict if problem.arrival_probability is not None else policy).action(info)
            except (KeyError, IndexError):
                wanted = None
            if wanted is None:
                assert controller.report().unplanned == before + 1
                assert 0 <= a < A
                if problem.arrival_probability is None:
                    assert a == policy.action(nearest(problem, policy, info, actions, messages))
            else:
                assert a == wanted
                assert controller.report().unplanned == before
                planned += 1
            actions.append(a)
    assert planned >= 5


def nearest(
    problem: ol.ImpairedMDP, policy: Any, info: ol.Information, actions: list[int], messages: Any
) -> ol.Information:
    """The information state of the plan that stands in for `info`, as the module's text has it."""
    h, warmup, known = info.h, problem.warmup, {i: s for i, (s, when) in messages.items() if when <= info.h}

    def state(t: int) -> int:
        if t in known:
            return int(known[t])
        if t == -warmup:
            return int(problem.initial.argmax())
        return int(problem.transitions_at(t - 1)[state(t - 1), actions[t - 1 + warmup]].argmax())

    newest = -warmup - 1 if info.t is None else info.t
    for t in [*range(newest, h + 1), *range(newest - 1, -warmup - 1, -1)]:
        if t < -warmup:
            continue
        arrived = messages[t][1] if t in known else -1 if info.t is None else messages[newest][1]
        for w in sorted(range(h + warmup + 1), key=lambda w: (abs(w - (h - arrived)), w)):
            there = ol.Information(h, t, state(t), tuple(actions[t + warmup :]), w)
            try:
                policy.layout.index(there)
            except KeyError:
                continue
            return there
    return ol.Information.nothing_seen(tuple(actions))


def by_definition(h: int, actions: list[int], messages: dict[int, tuple[int, int]], warmup: int) -> ol.Information:
    """τ_h from every message that has come: the newest step decides."""
    come = [i for i, (_, when) in messages.items() if when <= h]
    if not come:
        return ol.Information(h, None, None, tuple(actions), h + 1)
    t = max(come)
    return ol.Information(h, t, messages[t][0], tuple(actions[t + warmup :]), h - messages[t][1])


def test_a_policy_that_randomises_is_drawn_from() -> None:
    problem = problem_of("per state and action", 1)

    def choose(info: ol.Information) -> Any:
        return np.random.default_rng([info.h, info.waited, *info.queue]).dirichlet(np.ones(problem.n_actions))

    asked = ol.FunctionPolicy(choose, problem.n_actions)
    table = tabulate(problem, asked)
    for policy in (asked, table):
        controller = Controller(problem, policy, seed=3)
        counts = np.zeros(problem.n_actions)
        for _ in range(3000):
            controller.reset()
            chances = policy.probabilities(controller.information)
            counts[controller.act()] += 1
        assert stats.chisquare(counts, 3000 * chances).pvalue > 1e-3
        same = Controller(problem, policy, seed=3)
        assert [same.act() for _ in range(problem.horizon)] == [
            Controller(problem, policy, seed=3).act(),
            *same._memory.actions[1:],
        ]


def test_learned_policies() -> None:
    """What a learner has learned is run like a plan."""
    problem, learner = problem_of("geometric", 2), ol.learners.DelayedUCBVI()
    ol.learn(problem, learner, 40, seed=0, progress=False)
    policy = learner.policy()
    played = ol.simulate(problem, policy, 40, seed=1, record=True)
    controller = Controller(problem, policy, seed=0)
    assert played.states is not None
    assert played.actions is not None
    assert played.arrivals is not None
    for states, actions, arrivals in zip(played.states, played.actions, played.arrivals, strict=True):
        controller.reset()
        for h in range(problem.horizon):
            for i in np.flatnonzero(arrivals == h):
                controller.observe(int(i), int(states[i]))
            chances = policy.probabilities(controller.information)
            assert chances[controller.act()] > 0
            controller.did(h, int(actions[h]))
            assert chances[actions[h]] > 0


def test_a_policy_that_is_asked_does_what_its_table_does() -> None:
    problem = problem_of("geometric", 2)
    table: Any = ol.solve(problem).policy
    asked = Controller(problem, ol.FunctionPolicy(table.action, problem.n_actions))
    looked_up = Controller(problem, table)
    for h in range(problem.horizon):
        for one in (asked, looked_up):
            if h % 2 == 0:
                one.observe(h // 2, 0)
        assert asked.act() == looked_up.act()
    assert looked_up.report().unplanned == 0


# -- the clock --------------------------------------------------------------------------------------------------------


def chain(d: int = 2, **more: Any) -> tuple[ol.ImpairedMDP, Any]:
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.ConstantDelay(d), **more)
    return problem, ol.solve(problem).policy


def test_a_repeated_tick_gets_the_same_action() -> None:
    problem, policy = chain(0)
    controller = Controller(problem, policy)
    controller.observe(0, 3)
    first = controller.act(0)
    controller.observe(0, 3)
    assert [controller.act(0), controller.act(0)] == [first, first]
    controller.observe(1, 15)
    assert controller.act(0) == first  # news in between: it may have been carried out
    assert controller.act() == controller._memory.actions[1]
    report = controller.report()
    assert (report.repeated, report.ticks, report.duplicates, report.skipped) == (3, 2, 1, 0)


@pytest.mark.parametrize("fill", [None, 4])
def test_skipped_ticks_hold_the_action_and_did_corrects(fill: int | None) -> None:
    problem, policy = chain(2)
    controller = Controller(problem, policy, skipped=fill)
    a = [controller.act(), controller.act()]
    controller.tick(4)  # ticks 2 and 3 were missed
    controller.observe(2, 7)
    held = a[1] if fill is None else fill
    assert controller.information == ol.Information(4, 2, 7, (held, held), 0)
    controller.did(3, 2)
    info = ol.Information(4, 2, 7, (held, 2), 0)
    assert controller.information == info
    assert controller.act() == policy.action(info)
    assert controller.report().skipped == 2
    controller.tick(9)
    controller.reset()
    controller.tick(3)  # before anything was done
    assert controller.information.queue == ((0 if fill is None else fill),) * 3


def test_skipped_ticks_under_loss_leave_the_sequence() -> None:
    """Off the plan the controller says so, finds another sequence, and is back on the plan with the next observation."""
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.Loss(seen=0.5))
    policy: Any = ol.solve(problem).policy
    controller = Controller(problem, policy)
    controller.observe(0, 5)
    controller.act()
    controller.did(0, 4)  # not what the plan says
    assert policy.sequences[1, 5, 0, 0] != 4
    likely = int(problem.mdp.transitions[0, 5, 4].argmax())
    assert controller.act() == policy.sequences[2, likely, 0, 0]
    assert controller.report().counted_along == 1
    assert controller.act() == policy.sequences[2, likely, 0, 1]  # and it follows that one
    controller.observe(3, 9)
    assert controller.act() == policy.sequences[4, 9, 0, 0]
    assert controller.act() == policy.sequences[4, 9, 0, 1]
    assert controller.report().counted_along == 2


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
        ("observe", (0, 8), "the observation of step 0 said state 7, now it says 8; the first is kept"),
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


# -- without end ------------------------------------------------------------------------------------------------------


def discounted(seed: int, u: float, tolerance: float, S: int = 3, A: int = 2) -> ol.TabularMDP:
    rng = np.random.default_rng([seed, 9])
    return ol.TabularMDP.discounted(
        rng.dirichlet(0.4 * np.ones(S), size=(S, A)), rng.normal(size=(S, A)), discount=u, tolerance=tolerance
    )


def best_endless(P: Any, R: Any, u: float, d: int) -> Any:
    """V[s, q1..qd] by value iteration on the augmented model, in rewards of the current time."""
    S, A = R.shape
    V = np.zeros((S,) + (A,) * d)
    for _ in range(2000):
        new = np.empty_like(V)
        for s, *q in itertools.product(range(S), *([range(A)] * d)):
            options = []
            for a in range(A):
                queue = (*q, a)
                b = np.eye(S)[s]
                for x in q:
                    b = b @ P[:, x, :]
                options.append(b @ R[:, a] + u * sum(P[s, queue[0], z] * V[(z, *queue[1:])] for z in range(S)))
            new[(s, *q)] = max(options)
        if np.abs(new - V).max() < 1e-13:
            return new
        V = new
    raise AssertionError("value iteration did not converge")


@pytest.mark.parametrize("d", [0, 1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_a_discounted_plan_runs_for_ever_within_its_bound(d: int, seed: int) -> None:
    """The value of what the controller does for ever, by a linear system, against value iteration."""
    u = 0.6
    mdp = discounted(seed, u, 0.5)
    problem = ol.ImpairedMDP(mdp, ol.ConstantDelay(d))
    controller = Controller(problem, ol.solve(problem).policy)
    S, A, P, R = 3, 2, mdp.transitions[0], mdp.rewards[0]
    assert discount_of(mdp) == pytest.approx(u, abs=1e-12)
    assert standstill(problem) == (d, "")
    states = list(itertools.product(range(S), *([range(A)] * d)))
    place = {x: i for i, x in enumerate(states)}
    transition, reward, acts = np.zeros((len(states),) * 2), np.zeros(len(states)), {}
    for s, *q in states:
        for far in (mdp.horizon + 3, 10 * mdp.horizon):  # long after the plan's end it does the same
            controller.reset()
            controller.tick(far)
            for i, x in enumerate(q):
                controller.did(far - d + i, x)
            controller.observe(far - d, s)
            a = controller.act()
            assert acts.setdefault((s, *q), a) == a
        b = np.eye(S)[s]
        for x in q:
            b = b @ P[:, x, :]
        i, queue = place[(s, *q)], (*q, a)
        reward[i] = b @ R[:, a]
        for z in range(S):
            transition[i, place[(z, *queue[1:])]] += P[s, queue[0], z]
    value = np.linalg.solve(np.eye(len(states)) - u * transition, reward)
    loss = best_endless(P, R, u, d).reshape(-1) - value
    bound = controller.loss_bound
    assert bound is not None
    assert bound == pytest.approx(u ** (mdp.horizon - d) * np.ptp(R) / (1 - u), rel=1e-9)
    assert loss.min() >= -1e-10
    assert loss.max() <= bound + 1e-10


def test_the_bound_is_not_empty() -> None:
    """Plans of one or two steps do lose something, and never more than they say."""
    lost = 0.0
    for seed in range(30):
        u = 0.8
        mdp = discounted(seed, u, 30.0)
        assert mdp.horizon <= 3
        problem = ol.ImpairedMDP(mdp, ol.ConstantDelay(0))
        controller = Controller(problem, ol.solve(problem).policy)
        acts = []
        for s in range(3):
            controller.reset()
            controller.tick(50)
            controller.observe(50, s)
            acts.append(controller.act())
        P, R = mdp.transitions[0], mdp.rewards[0]
        value = np.linalg.solve(np.eye(3) - u * P[range(3), acts], R[range(3), acts])
        loss = (best_endless(P, R, u, 0) - value).max()
        assert controller.loss_bound is not None
        assert loss <= controller.loss_bound + 1e-10
        lost = max(lost, loss)
    assert lost > 0.01


@pytest.mark.parametrize("late", [0, 1])
def test_a_plan_under_loss_runs_for_ever_within_its_bound(late: int) -> None:
    """Between observations a sequence; the value over (state, queue at the observation) by a linear system that stops counting
    after 60 silent steps, against a plan for a much longer horizon."""
    u, seen, S, A = 0.5, 0.5, 2, 2
    for seed in range(3):
        mdp = discounted(seed, u, 0.2, S, A)
        channel: Any = ol.Lossy(ol.ConstantDelay(late), seen=seen) if late else ol.Loss(seen=seen)
        problem = ol.ImpairedMDP(mdp, channel)
        controller = Controller(problem, ol.solve(problem).policy)
        P, R = mdp.transitions[0], mdp.rewards[0]
        states = list(itertools.product(range(S), *([range(A)] * late)))
        n, silent, far = len(states), 60, 500
        system, earned = np.eye(n), np.zeros(n)
        for i, (s, *q) in enumerate(states):
            controller.reset()
            controller.tick(far)
            for j, x in enumerate(q):
                controller.did(far - late + j, x)
            controller.observe(far - late, s)
            queue, b, weight = list(q), np.eye(S)[s], 1.0  # b: the law of the state of step h − late
            for _ in range(silent):
                queue.append(controller.act())
                now = b
                for x in queue[:-1]:
                    now = now @ P[:, x, :]
                earned[i] += weight * (now @ R[:, queue[-1]])
                b = b @ P[:, queue[0], :]
                queue = queue[1:]
                weight *= u
                for z in range(S):
                    system[i, states.index((z, *queue))] -= weight * seen * b[z]
                weight *= 1 - seen
        value = np.linalg.solve(system, earned)
        rest = (u * (1 - seen)) ** silent * np.abs(R).max() / (1 - u)
        longer = discounted(seed, u, 1e-9, S, A)
        plan = ol.solve(ol.ImpairedMDP(longer, channel))
        for i, (s, *q) in enumerate(states):
            info = ol.Information.seen(0, s, tuple(q))
            best = plan.value_at(info) / u**late
            loss = best - value[i]
            assert controller.loss_bound is not None
            assert -1e-6 - rest <= loss <= controller.loss_bound + 1e-6 + rest
        assert controller.loss_bound == pytest.approx(u ** (mdp.horizon - late) * np.ptp(R) / (1 - u), rel=1e-9)


def test_random_delays_without_end_need_a_cap() -> None:
    mdp = discounted(0, 0.7, 0.01)
    capped = ol.ImpairedMDP(mdp, ol.GeometricDelay(0.5, first="same").capped(2))
    hold, why = standstill(capped)
    assert (hold, why) == (2, "")
    controller = Controller(capped, ol.solve(capped).policy)
    full: Any = ol.solve(capped).policy
    assert controller.tables.table.size < 0.5 * full.layout.size  # what is never used is not kept
    for far in (hold, mdp.horizon + 40):
        controller.reset()
        controller.tick(far)
        controller.observe(far - 1, 2)
        queue = (controller._memory.actions[-1],)
        assert controller.act() == full.action(ol.Information(hold, hold - 1, 2, queue, 0))
    assert controller.report().unplanned == 0
    for channel, why in {
        ol.GeometricDelay(0.5): "grow without bound",
        ol.BernoulliDelay(0.5): "changes with time",
        ol.Loss(seen=np.linspace(0, 1, mdp.horizon)): "changes with time",
        ol.ConstantDelay(mdp.horizon): "beyond the plan's",
    }.items():
        problem = ol.ImpairedMDP(mdp.replace(), channel)
        if isinstance(channel, ol.GeometricDelay):
            problem = ol.ImpairedMDP(discounted(0, 0.3, 0.5), channel)
        ends = Controller(problem, ol.FunctionPolicy(lambda info: 0, 2))
        assert why in standstill(problem)[1]
        for _ in range(problem.horizon):
            ends.act()
        with pytest.raises(ValueError, match="the episode has ended after"):
            ends.act()


def test_an_endless_run_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounded memory: long silences, very late messages, and still the same actions as one that remembers everything."""
    from oldlight.control import memory as controller_memory

    mdp = discounted(3, 0.6, 0.01)
    problem = ol.ImpairedMDP(mdp, ol.ConstantDelay(2))
    policy = ol.solve(problem).policy
    everything = Controller(problem, policy)
    monkeypatch.setattr(controller_memory, "MEMORY", 20)
    controller = Controller(problem, policy)
    rng = np.random.default_rng(0)
    longest = 0
    for h in range(600):
        monkeypatch.setattr(controller_memory, "MEMORY", 10**6)
        for i in [h - 2] if h % 100 > 30 else []:
            if i >= 0 and rng.random() < 0.8:
                everything.observe(i, s := int(rng.integers(0, 3)))
                controller.observe(i, s)
        one = everything.act()
        monkeypatch.setattr(controller_memory, "MEMORY", 20)
        assert controller.act() == one
        longest = max(longest, len(controller._memory.actions))
    assert longest <= 41
    controller.observe(1, 2)
    assert controller.report().forgotten == 1
    with pytest.raises(
        ValueError, match="tick 200000 is 199,400 ahead of the clock; at most 100,000 can be skipped at once"
    ):
        controller.tick(200_000)
    with pytest.raises(ValueError, match="runs for ever"):
        controller.episode(problem)


# -- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_loaded_it_does_the_same(kind: str, tmp_path: Path) -> None:
    problem = problem_of(kind, 0)
    controller = Controller(problem, ol.solve(problem).policy)
    controller.save(tmp_path / "plan.npz")
    assert [p.name for p in tmp_path.iterdir()] == ["plan.npz"]
    loaded, copied = Controller.load(tmp_path / "plan.npz"), pickle.loads(pickle.dumps(controller))
    rng = np.random.default_rng(0)
    for _ in range(20):
        past = rng.integers(0, problem.n_actions, problem.warmup).tolist()
        for one in (controller, loaded, copied):
            one.reset(past)
        for tick in range(problem.horizon - problem.actuation):
            if rng.random() < 0.6:
                message = (int(rng.integers(-problem.warmup, tick + 1)), int(rng.integers(problem.n_states)))
                if message[0] not in controller._memory.seen:
                    for one in (controller, loaded, copied):
                        one.observe(*message)
            assert controller.act() == loaded.act() == copied.act()
    assert controller.report() == loaded.report()


def test_an_endless_plan_is_saved_with_its_bound(tmp_path: Path) -> None:
    problem = ol.ImpairedMDP(discounted(1, 0.6, 0.1), ol.ConstantDelay(1))
    controller = Controller(problem, ol.solve(problem).policy)
    loaded = Controller.load(controller.save(tmp_path / "endless.npz"))
    assert loaded.loss_bound == controller.loss_bound
    assert [loaded.act() for _ in range(100)] == [controller.act() for _ in range(100)]
    assert repr(loaded) == "Controller(actions, S=3, A=2, runs for ever, tick 100)"


ALONE = """
import sys

class Only:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in ("numpy", "oldlight"):
            raise ImportError(f"{name} is not numpy")

sys.meta_path.insert(0, Only())
from oldlight.control import Controller

controller = Controller.load(sys.argv[1])
out = []
for h in range(10):
    if h >= 2:
        controller.observe(h - 2, 3 * h % 20)
    out.append(controller.act())
third = {name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names) - {"__main__", "numpy", "oldlight"}
print(*out)
print(*sorted(name for name in third if not name.startswith("_")))
"""


def test_a_loaded_controller_needs_numpy_alone(tmp_path: Path) -> None:
    problem, policy = chain(2)
    controller = Controller(problem, policy)
    path = controller.save(tmp_path / "plan.npz")
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    actions, third = done.stdout.splitlines()
    wanted = []
    for h in range(10):
        if h >= 2:
            controller.observe(h - 2, 3 * h % 20)
        wanted.append(controller.act())
    assert [int(a) for a in actions.split()] == wanted
    assert third == ""


def test_damaged_files_are_named(tmp_path: Path) -> None:
    problem, policy = chain(2)
    good = Controller(problem, policy).save(tmp_path / "plan.npz")
    with np.load(good) as data:
        arrays = {key: data[key] for key in data.files}

    def saved(**changes: Any) -> Path:
        path = tmp_path / "damaged.npz"
        np.savez(path, **{k: v for k, v in (arrays | changes).items() if v is not None})
        return path

    numbers, offset, root = arrays["numbers"], arrays["offset"], arrays["root"]

    def number(i: int, value: int) -> dict[str, Any]:
        return {"numbers": np.where(np.arange(8) == i, value, numbers)}

    one_missing = offset.copy()
    one_missing[5] = -1
    for changes, says in [
        ({"kind": np.array("guess")}, "kind is 'guess', expected a saved oldlight Controller$"),
        ({"likely": None}, "damaged, .*'likely' is missing"),
        ({"numbers": numbers[:3]}, r"damaged, .*'numbers' has shape \(3,\), expected \(8,\)"),
        (number(0, 9), "version is 9; this oldlight reads version 1"),
        *(({name: value}, rf"damaged, .*'?{name}'? (is wrong|is of type|is 'guess'|has shape)") for name, value in [
            ("table", arrays["table"] + 5),
            ("table", arrays["table"].astype(float)),
            ("table", arrays["table"][:, None]),
            ("likely", arrays["likely"] + 20),
            ("policy", np.array("guess")),
            ("pending", np.array([9, 9])),
            ("pending", np.array([-1])),
            ("offset", np.full_like(offset, -1)),
            ("offset", one_missing),
            ("offset", offset[:-1]),
            ("offset", root),
            ("offset", np.where(offset == offset.max(), len(arrays["table"]) - 499, offset)),
            ("root", np.where(root == root.max(), len(arrays["table"]), root)),
            ("root", root[:-1]),
        ]),
        ({"table": arrays["table"][:-5]}, "its arrays do not fit together"),
        ({"offset": np.full_like(offset, -1), "root": np.full_like(root, -1)}, "'offset' is wrong"),
        (number(2, 0), "'likely' has shape .* expected .1, 0, 5."),
        (number(4, -1), "'numbers' is wrong"),
        (number(6, 20), "'numbers' is wrong"),
    ]:  # fmt: skip
        with pytest.raises(ol.UnreadableFile, match=says):
            Controller.load(saved(**changes))
    with pytest.raises(FileNotFoundError, match="no such file"):
        Controller.load(tmp_path / "nowhere.npz")
    with pytest.raises(ValueError, match="a policy written in Python cannot be saved"):
        Controller(problem, ol.FunctionPolicy(lambda info: 0, 5)).save(tmp_path / "f.npz")


def test_damaged_chances_are_named(tmp_path: Path) -> None:
    problem, policy = chain(1)
    chances = ol.TablePolicy(policy.layout, chances=np.eye(5)[policy.actions])
    good = Controller(problem, chances).save(tmp_path / "plan.npz")
    assert Controller.load(good).act() in range(5)
    with np.load(good) as data:
        arrays = {key: data[key] for key in data.files}
    for table in (
        arrays["table"][:, :4],
        0.9 * arrays["table"],
        2 * arrays["table"] - 0.2,
        arrays["table"].astype(int),
    ):
        np.savez(tmp_path / "damaged.npz", **(arrays | {"table": table}))
        with pytest.raises(ol.UnreadableFile, match=r"'table' (is wrong|is of type|has shape)"):
            Controller.load(tmp_path / "damaged.npz")


def test_a_file_of_a_policy_is_refused_with_the_way_out(tmp_path: Path) -> None:
    for channel in (ol.ConstantDelay(1), ol.Loss(seen=0.5)):
        problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8, horizon=4), channel)
        policy: Any = ol.solve(problem).policy
        path = policy.save(tmp_path / "best.npz")
        with pytest.raises(ValueError, match="expected a saved oldlight Controller") as refused:
            Controller.load(path)
        way = re.search(r"Controller\(problem, load_policy\(.*?\)\)\.save\(FILE\)", str(refused.value))
        assert way is not None
        assert str(refused.value).endswith("oldlight plan --controller FILE")
        names = {
            "Controller": Controller,
            "load_policy": ol.load_policy,
            "problem": problem,
            "FILE": tmp_path / "c.npz",
        }
        assert Controller.load(eval(way[0], names)).act() == Controller(problem, policy).act()


def test_a_plan_of_many_steps_is_read_without_a_warning(tmp_path: Path) -> None:
    mdp = random_mdp(np.random.default_rng(0), 2, 5, 3)
    problem = ol.ImpairedMDP(ol.TabularMDP(mdp.transitions[0], mdp.rewards[0], horizon=600), ol.ConstantDelay(1))
    path = Controller(problem, ol.solve(problem).policy).save(tmp_path / "plan.npz")
    with np.errstate(all="raise"):  # 5^599 is more than a float holds
        loaded = Controller.load(path)
    loaded.reset()
    assert loaded.act() == Controller(problem, ol.solve(problem).policy).act()


def test_the_report_reads_well() -> None:
    problem, policy = chain(2)
    controller = Controller(problem, policy)
    assert str(controller.report()) == "ticks 0"
    controller.act()
    controller.observe(0, 1)
    controller.observe(0, 1)
    controller.lost(1)
    controller.observe(1, 4)
    controller.lost(1)
    assert str(controller.report()) == "ticks 1, observations 2, duplicates 2, lost 1, came after lost 1"
