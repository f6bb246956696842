"""The controller against the policy it follows, whatever the network does with its messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import oldlight as ol
from controller_cases import KINDS, chain, problem_of
from oldlight.control import Controller
from oldlight.learners.episode_loop import _episode
from oldlight.model.policies import tabulate
from repeats import repeats


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
    returns = np.array([play(problem, controller, rng) for _ in range(repeats(300, 1500))])
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


@pytest.mark.crossed("kind", "seed")
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
