"""The explicit models against the planner, the step-by-step definitions, each other and two solvers from elsewhere."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
import pytest

import oldlight as ol
from conftest import random_mdp
from oldlight.model.information import check, moves
from oldlight.planning import augmented as explicit
from oracle import random_law
from played import random_policy
from repeats import repeats

TOLERANCE = 1e-10
DELAYS = ["constant, cold", "constant, warm", "bernoulli", "state and action", "capped", "late actions"]
KINDS = [*DELAYS, "loss", "late and lossy", "late actions, loss"]
SEEDS = range(repeats(4, 8))  # 4: every second one from a warm start


class SizeFormula(NamedTuple):
    """The paper's sizes of the augmented space beside the real ones; D is the longest delay (H under loss)."""

    bound: int  # S·A^H
    summed: int  # the sum behind it: Σ_{i=0..min(H, D)} H·S·A^i; no waits, nothing for nothing seen
    doubled: int  # 2·H·S·A^min(H, D), which the sum is at most if A ≥ 2
    states: int  # places in MDP_aug, without the end
    past_states: int | None  # places in the past-reward twin, without the end; None under loss


def size_formula(problem: ol.ImpairedMDP) -> SizeFormula:
    """How large the explicit models are, and how large they are by the paper's formulas; nothing of that size is made."""
    S, A, H, segments = problem.n_states, problem.n_actions, problem.horizon, explicit._segments(problem)
    D = H if problem.arrival_probability is not None else min(H, problem.warmup or problem.law.max_delay)
    states = sum(x.size for x in segments)
    twin = (
        states + sum(x.size for x in explicit._after_the_end(problem, segments))
        if problem.arrival_probability is None
        else None
    )
    return SizeFormula(S * A**H, H * S * sum(A**i for i in range(D + 1)), 2 * H * S * A**D, states, twin)


def problem_of(kind: str, seed: int) -> ol.ImpairedMDP:
    rng = np.random.default_rng([seed, KINDS.index(kind), 41])
    S, A = (int(x) for x in rng.integers(1, 4, 2))
    H = int(rng.integers(1, 5))
    mdp = random_mdp(rng, S, A, H, stationary=bool(rng.integers(2)), sparse=bool(rng.integers(2)))
    first, inter = random_law(rng, H, S, A, 3, kind="state_action")
    seen = rng.random(H)
    seen[rng.random(H) < 0.2] = 1.0
    seen[rng.random(H) < 0.2] = 0.0
    d, late = (int(x) for x in rng.integers(0, H + 2, 2))
    start = ol.WarmStart() if seed % 2 else None
    pending = rng.integers(0, A, late).tolist()
    if kind == "constant, cold":
        return ol.ImpairedMDP(mdp, ol.ConstantDelay(d))
    if kind == "constant, warm":
        return ol.ImpairedMDP(mdp, ol.ConstantDelay(d), start=ol.WarmStart())
    if kind == "bernoulli":
        return ol.ImpairedMDP(mdp, ol.BernoulliDelay(0.4, steps=2), start=start)
    if kind == "state and action":
        return ol.ImpairedMDP(mdp, ol.StochasticDelay(inter, first=first))
    if kind == "capped":
        return ol.ImpairedMDP(mdp, ol.GeometricDelay(0.5, first="same").capped(d))
    if kind == "late actions":
        return ol.ImpairedMDP(mdp, ol.StochasticDelay(inter, first=first), actuation=late, pending=pending)
    if kind == "loss":
        return ol.ImpairedMDP(mdp, ol.Loss(seen=seen), start=start)
    if kind == "late and lossy":
        return ol.ImpairedMDP(mdp, ol.Lossy(ol.ConstantDelay(d), seen=seen))
    return ol.ImpairedMDP(mdp, ol.Loss(seen=seen), actuation=late, pending=pending)


def models_of(problem: ol.ImpairedMDP) -> list[explicit.AugmentedMDP]:
    built = [explicit.augmented(problem)]
    return built if problem.arrival_probability is not None else [*built, explicit.past_reward(problem)]


def possible(problem: ol.ImpairedMDP, info: ol.Information | None) -> bool:
    if info is None or info.h >= problem.horizon:
        return False
    try:
        check(problem, info)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_value_is_the_planners(kind: str, seed: int) -> None:
    problem = problem_of(kind, seed)
    plan = ol.solve(problem)
    for model in models_of(problem):
        assert abs(explicit.value(model) - plan.value) < TOLERANCE
        assert abs(explicit.policy_value(model, plan.policy) - plan.value) < TOLERANCE


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_proposition_1(kind: str, seed: int) -> None:
    """A random randomised policy has one value: in both models, and by the package's own evaluation."""
    problem = problem_of(kind, seed)
    policy = random_policy(problem, seed)
    expected = float(ol.evaluate(problem, policy))
    for model in models_of(problem):
        assert abs(explicit.policy_value(model, policy) - expected) < TOLERANCE


@pytest.mark.parametrize("seed", SEEDS[: repeats(2, 4)])
@pytest.mark.parametrize("kind", KINDS)
def test_every_row_against_the_definition(kind: str, seed: int) -> None:
    """p_aug, r_aug and the best value from each possible information state on, one state at a time."""
    problem = problem_of(kind, seed)
    model, plan = explicit.augmented(problem), ol.solve(problem)
    best = explicit.values(model)
    rows = model.transitions.toarray().reshape(model.size, problem.n_actions, model.size)
    for i in range(model.size):
        info = model.information(i)
        if info is None or not possible(problem, info):
            continue
        under_way = info.h < problem.actuation
        for a in range(problem.n_actions):
            done = problem.pending[info.h] if under_way else a
            expected = np.zeros(model.size)
            if info.h == problem.horizon - 1:
                expected[-1] = 1.0
            else:
                for p, following in moves(problem, info, done):
                    expected[model.index(following)] += p
            assert rows[i, a] == pytest.approx(expected, abs=1e-14)
            reward = ol.belief(problem, info) @ problem.mdp.rewards[info.h][:, done]
            assert model.rewards[i, a] == pytest.approx(reward, abs=1e-14)
        if not under_way:
            assert best[i] == pytest.approx(plan.value_at(info), abs=TOLERANCE)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_index(kind: str, seed: int) -> None:
    problem = problem_of(kind, seed)
    H, end_of_both = problem.horizon, []
    for model in models_of(problem):
        n, A = model.size, problem.n_actions
        assert model.transitions.shape == (n * A, n)
        assert model.transitions.has_canonical_format
        assert (model.transitions.data > 0).all()
        assert model.transitions.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
        assert model.initial.sum() == pytest.approx(1.0, abs=1e-12)
        assert not model.initial[model.times > 0].any()
        infos = [model.information(i) for i in range(n)]
        assert [model.index(info) for info in infos] == list(range(n))
        assert [H if info is None else info.h for info in infos[:-1]] == model.times[:-1].tolist()
        assert infos[-1] is None
        assert not model.rewards[-1].any()
        if problem.arrival_probability is None:
            layout = ol.Layout.of(problem)
            first = infos[: layout.size]
            assert [layout.index(info) for info in first if info is not None] == list(range(layout.size))
        # Time passes one step at a time, and nobody is at the end before the last step is over.
        reached = model.initial
        for h in range(model.horizon):
            if h < H:
                assert reached[model.times == h].sum() == pytest.approx(1.0, abs=1e-12)
            assert not reached[:-1][model.times[:-1] != h].any()
            reached = model.transitions.T @ np.repeat(reached / A, A)
        assert reached[-1] == pytest.approx(1.0, abs=1e-12)
        end_of_both.append(n - 1)
    size = size_formula(problem)
    assert end_of_both == [x for x in (size.states, size.past_states) if x is not None]


@pytest.mark.filterwarnings("ignore:infinite horizon solution methods:UserWarning")
@pytest.mark.parametrize("seed", SEEDS[: repeats(2, 4)])
@pytest.mark.parametrize("kind", KINDS)
def test_quantecon_agrees(kind: str, seed: int) -> None:
    markov = pytest.importorskip("quantecon.markov")
    problem = problem_of(kind, seed)
    expected = ol.solve(problem).value
    for model in models_of(problem):
        R, Q, s_indices, a_indices = explicit.to_quantecon(model)
        found, _ = markov.backward_induction(markov.DiscreteDP(R, Q, 1.0, s_indices, a_indices), model.horizon)
        assert abs(found[0] @ model.initial - expected) < TOLERANCE
        assert found[0] == pytest.approx(explicit.values(model), abs=TOLERANCE)


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
@pytest.mark.parametrize("seed", SEEDS[: repeats(2, 4)])
@pytest.mark.parametrize("kind", KINDS)
def test_mdptoolbox_agrees(kind: str, seed: int) -> None:
    mdp = pytest.importorskip("mdptoolbox.mdp")
    problem = problem_of(kind, seed)
    expected = ol.solve(problem).value
    for model in models_of(problem):
        P, R = explicit.to_mdptoolbox(model)
        found = mdp.FiniteHorizon(P, R, 1, model.horizon)
        found.run()
        assert abs(found.V[:, 0] @ model.initial - expected) < TOLERANCE


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
def test_rows_that_are_slightly_off_are_exported_all_the_same() -> None:
    mdp = pytest.importorskip("mdptoolbox.mdp")
    P = np.array([[[0.3, 0.7 + 5e-10], [1.0, 0.0]], [[0.5, 0.5], [0.2, 0.8]]])
    problem = ol.ImpairedMDP(ol.TabularMDP(P, [[1.0, 0.0], [0.0, 2.0]], horizon=3), ol.ConstantDelay(1))
    model = explicit.augmented(problem)
    found = mdp.FiniteHorizon(*explicit.to_mdptoolbox(model), 1, model.horizon)
    found.run()
    assert found.V[:, 0] @ model.initial == pytest.approx(ol.solve(problem).value, abs=1e-8)


def test_the_sensing_chain() -> None:
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.ConstantDelay(2), start=ol.WarmStart())
    one, two = models_of(problem)
    assert (one.size, one.horizon, two.horizon) == (10 * 20 * 25 + 1, 10, 20)
    assert explicit.value(one) == pytest.approx(3.669276, abs=1e-6)
    assert abs(explicit.value(one) - explicit.value(two)) < TOLERANCE


def test_past_rewards_are_counted_once_and_when_seen() -> None:
    """Two steps, two late, by hand: nothing is earned before time 2, then r_0 at time 2 and r_1 at time 3."""
    mdp = ol.TabularMDP(np.eye(2)[:, None, :].repeat(2, axis=1), [[1.0, 2.0], [3.0, 5.0]], horizon=2, initial=[0, 1])
    model = explicit.past_reward(ol.ImpairedMDP(mdp, ol.ConstantDelay(2)))
    earned: dict[int, set[float]] = defaultdict(set)
    for i in range(model.size):
        earned[int(model.times[i])] |= set(model.rewards[i].tolist())
    assert earned[0] == earned[1] == {0.0}
    assert earned[2] == earned[3] == {1.0, 2.0, 3.0, 5.0}
    info = model.information(model.index(ol.Information(2, 0, 1, (1, 0), 0)))
    assert model.rewards[model.index(info)].tolist() == [5.0, 5.0]  # a_0 = 1, whatever is done at time 2
    assert explicit.value(model) == pytest.approx(10.0)


def test_sizes() -> None:
    rng = np.random.default_rng(0)
    size = size_formula(ol.ImpairedMDP(random_mdp(rng, 2, 3, 4), ol.ConstantDelay(2)))
    # Nothing seen: 1 + 3. Then (s, two actions) at times 2 and 3; after the end (s, two), (s, one).
    assert size == (2 * 3**4, 4 * 2 * (1 + 3 + 9), 2 * 4 * 2 * 9, 1 + 3 + 2 * 18, 40 + 18 + 6)
    size = size_formula(ol.ImpairedMDP(random_mdp(rng, 2, 3, 3), ol.Loss(seen=0.5)))
    # (s, queue) with every queue shorter than h + 1 at time h, and nothing seen.
    assert size.states == 2 * (1 + (1 + 3) + (1 + 3 + 9)) + (1 + 3 + 9)
    assert size.past_states is None
    sure = size_formula(ol.ImpairedMDP(random_mdp(rng, 2, 3, 3), ol.Loss(seen=[1.0, 0.5, 1.0])))
    assert sure.states == 2 + 2 * (1 + 3) + 2
    never = size_formula(ol.ImpairedMDP(random_mdp(rng, 2, 3, 3), ol.Loss(seen=[0.5, 0.0, 0.5])))
    assert never.states == (2 + 1) + (2 * 3 + 3) + (2 + 2 * 9 + 9)
    # S·A^H is no bound when every wait is possible.
    waits = size_formula(ol.ImpairedMDP(random_mdp(rng, 2, 2, 5), ol.GeometricDelay(0.5)))
    assert waits.states > waits.bound


def test_what_is_too_large_is_refused_before_it_is_made() -> None:
    chain = ol.instances.sensing_chain(0.8)
    problem = ol.ImpairedMDP(chain, ol.ConstantDelay(2))
    with pytest.raises(ol.TooLarge, match=r"has 4,007 states and needs about .*B; the limit is 1000 B\. Ways out"):
        explicit.augmented(problem, max_bytes=1000)
    for huge in (ol.ConstantDelay(40), ol.HeavyTailedDelay(1.0), ol.Loss(seen=0.5)):
        late = ol.ImpairedMDP(chain.replace(horizon=40), huge)
        with pytest.raises(ol.TooLarge, match=r"oldlight\.solve\(problem\) plans without it, raise max_bytes"):
            explicit.augmented(late)
        assert size_formula(late).states > 5**38
    with pytest.raises(ValueError, match="max_bytes is 0"):
        explicit.augmented(problem, max_bytes=0)


def test_what_cannot_be_written_out_is_refused() -> None:
    mdp = random_mdp(np.random.default_rng(1), 2, 2, 3)
    with pytest.raises(ValueError, match=r"what Loss.* loses never arrives"):
        explicit.past_reward(ol.ImpairedMDP(mdp, ol.Loss(seen=0.5)))
    with pytest.raises(ValueError, match="constant delay"):
        explicit.augmented(ol.ImpairedMDP(mdp, ol.Lossy(ol.GeometricDelay(0.5), seen=0.5)))
    model = explicit.augmented(ol.ImpairedMDP(mdp, ol.ConstantDelay(1)))
    wrong: list[Any] = [
        (1, 0, 2, (0,), 0),
        (1, 0, 1, (2,), 0),
        (2, 0, 1, (0, 0), 1),
        (1, 0, None, (0,), 0),
        (3, 2, 0, (0,), 0),
    ]
    for info in wrong:
        with pytest.raises(KeyError, match="no information state"):
            model.index(ol.Information(*info))
    with pytest.raises(ValueError, match="state is 99, expected a whole number in 0"):
        model.information(99)
    assert repr(model) == f"AugmentedMDP({model.size} states, {model.transitions.nnz} transitions, 3 steps)"
