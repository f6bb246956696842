"""Discounted plans that a controller follows for ever, within their bound."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from controller_cases import discounted
from oldlight.control import Controller
from oldlight.control.policy_arrays import discount_of, standstill

# -- without end ------------------------------------------------------------------------------------------------------


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
