"""The lower bound's tree, formulas as processes, and the paper's propositions as programs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from conftest import arrays, information_of, random_mdp
from oldlight.instances import hard_tree, hard_tree_epsilon, hard_tree_value, sat, satisfied_share
from oldlight.paper import (
    monotone_in_delay,
    monotone_in_loss,
    proposition1,
    proposition2,
    proposition3,
    proposition4,
    proposition4_repaired,
    proposition4_ties,
    proposition5_long,
    proposition5_short,
    proposition6,
)
from oldlight.paper.counterexamples import (
    blind_coin,
    both_signs,
    decoy,
    decoy_lost,
    hidden_action,
    late_reward,
    mirror,
    moved_start,
)
from oldlight.paper.gap_bound import bounds, executable_visits, observed_visits, optimal_actions
from oldlight.planning.evaluation import unimpaired
from oldlight.planning.hidden_visits import hidden_visits
from oracle import History, policy_value, random_law, random_pmf
from repeats import repeats


def random_problem(rng: np.random.Generator, i: int, *, loss: bool = True) -> ol.ImpairedMDP:
    S, A, H = (int(x) for x in rng.integers([2, 2, 2], [4, 4, 5]))
    mdp = random_mdp(rng, S, A, H, sparse=bool(i % 2))
    kind = i // 2 % (4 if loss else 3)
    if kind == 0:
        return ol.ImpairedMDP(mdp, ol.ConstantDelay(int(rng.integers(H + 2))))
    if kind == 1:
        return ol.ImpairedMDP(mdp, ol.ConstantDelay(int(rng.integers(1, min(H, 3) + 1))), start=ol.WarmStart())
    if kind == 2:
        first, inter = random_law(rng, H, S, A, 3, kind="state_action")
        return ol.ImpairedMDP(mdp, ol.StochasticDelay(inter, first=first))
    return ol.ImpairedMDP(mdp, ol.Loss(seen=rng.random(H)))


# -- instances --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "A", "D"), list(itertools.product([1, 2, 3], [2, 3], [1, 3])))
def test_hard_tree_has_its_closed_form_behind_every_link(m: int, A: int, D: int) -> None:
    """(H − D − m)(1/2 + ε), with and without delay, and blind: D as a delay changes nothing."""
    for seed in range(2):
        claim = proposition2(m, A, D, epsilon=0.2, seed=seed)
        assert claim.holds, claim
    mdp = hard_tree(m, A, D)
    assert mdp.n_states == 3 + (A**m - 1) // (A - 1)
    assert len([s for s in mdp.states or () if s.startswith("leaf")]) == A ** (m - 1)
    assert mdp.initial[0] == 1.0


def test_hard_tree_rewards_only_its_triple() -> None:
    """The chance of the good state is 1/2 + ε for the triple, 1/2 for every other open-loop plan that leaves in time."""
    m, A, D, e = 2, 2, 2, 0.25
    for w, leaf, a in itertools.product(range(D), range(A ** (m - 1)), range(A)):
        mdp = hard_tree(m, A, D, epsilon=e, horizon=8, h_star=w + m, leaf_star=leaf, a_star=a)
        found = []
        for plan in itertools.product(range(A), repeat=D + m):
            b = mdp.initial
            for h in range(8):
                b = b @ mdp.transitions[h, :, plan[h] if h < len(plan) else 0]
            found.append(float(b[-1]))
        assert set(np.round(found, 12)) == {0.5, 0.75}
        best = [plan for plan, v in zip(itertools.product(range(A), repeat=D + m), found, strict=True) if v > 0.6]
        assert all(plan[: w + 1] == (0,) * w + (1,) and plan[w + 1] == leaf and plan[w + m] == a for plan in best)
    assert hard_tree_value(m, D, 8, e) == 3.0


def test_hard_tree_draws_by_seed_and_refuses() -> None:
    assert hard_tree(3, 3, 4, seed=1) == hard_tree(3, 3, 4, seed=1)
    assert len({hard_tree(2, 3, 3, seed=i).transitions.tobytes() for i in range(40)}) > 15
    with pytest.raises(ValueError, match=r"h_star is 1, expected a whole number in 2\.\.3"):
        hard_tree(2, 2, 2, h_star=1)
    with pytest.raises(ValueError, match=r"leaf_star is 2, expected a whole number in 0\.\.1"):
        hard_tree(2, 2, 2, leaf_star=2)
    with pytest.raises(ValueError, match="horizon is 4, expected a whole number ≥ 5"):
        hard_tree(2, 2, 2, horizon=4)
    with pytest.raises(ValueError, match=r"epsilon is 0\.6"):
        hard_tree(2, 2, 2, epsilon=0.6)
    assert hard_tree_epsilon(2, 2, 2, 16) == pytest.approx((1 - 1 / 8) / (2 * 2**0.5) * (8 / 16) ** 0.5)
    with pytest.raises(ValueError, match="16 episodes are enough"):
        hard_tree_epsilon(2, 2, 2, 6)


def test_the_constant_of_the_lower_bound() -> None:
    """From (1 − 1/(DLA))(H − D − m)√(DLAK)/(4√2) to H√(DSAK)/(72√2), for S ≥ 6, H ≥ 2D, H ≥ 3m."""
    for m, A, D, more in itertools.product(range(2, 6), range(2, 6), [1, 2, 3, 10, 50], [0, 1, 40]):
        S, L, H = 3 + (A**m - 1) // (A - 1), A ** (m - 1), max(3 * m, 2 * D, D + m + 1) + more
        proof = (1 - 1 / (D * L * A)) * (H - D - m) * (D * L * A) ** 0.5 / 4
        assert proof >= H * (D * S * A) ** 0.5 / 72
        assert hard_tree_epsilon(m, A, D, H * S * A) <= 0.25


def random_formula(rng: np.random.Generator, n: int) -> list[list[int]]:
    sizes = rng.integers(1, n + 1, size=rng.integers(1, 9))
    return [[int(v) * int(rng.choice([-1, 1])) for v in rng.integers(1, n + 1, size=size)] for size in sizes]


def test_blind_value_is_satisfiability(rng: np.random.Generator) -> None:
    """1 exactly if some assignment satisfies all clauses, at most 1 − 1/C if none does; and 1 if everything is seen."""
    answers = set()
    for i in range(repeats(45, 90)):
        n = i % 3 + 1
        formula = random_formula(rng, n)
        claim = proposition3(formula, n_variables=n)
        assert claim.holds, (formula, claim)
        worlds = itertools.product([False, True], repeat=n)
        can = any(all(any(w[abs(x) - 1] == (x > 0) for x in clause) for clause in formula) for w in worlds)
        assert (abs(claim.left - 1) < 1e-12) == can
        assert can or claim.left <= 1 - 1 / len(formula) + 1e-12
        assert ol.solve(ol.ImpairedMDP(sat(formula), ol.ConstantDelay(0))).value == pytest.approx(1.0, abs=1e-12)
        answers.add(can)
    assert answers == {True, False}
    assert satisfied_share([[1, 2], [-1, 2], [1, -2], [-1, -2]]) == 0.75


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        ([], "clauses is empty"),
        ([[1], []], r"clauses\[1\] is empty"),
        ([[1, 0]], r"clauses\[0\]\[1\] is 0"),
        ([1, 2], r"clauses\[0\] is 1, expected a list"),
        ([[1, 3]], r"clauses\[0\]\[1\] without its sign is 3, expected a whole number in 1\.\.2"),
        ([[1.5]], r"clauses\[0\]\[0\] without its sign is 1\.5"),
    ],
)
def test_sat_refuses(clauses: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sat(clauses, n_variables=2)


# -- Propositions 1, 5 and monotonicity -------------------------------------------------------------------------------


def test_proposition1_for_random_policies(rng: np.random.Generator) -> None:
    """Both models give the value that the brute force over raw histories gives, from every first information state, by the
    paper's sentence ("When h ≤ H, the transition is the same as MDP_aug") and with one arrival per step from h = H on."""
    lost, n = 0, repeats(12, 24)
    for i in range(n):
        problem = random_problem(rng, i, loss=False)
        A = problem.n_actions
        policy = ol.FunctionPolicy(lambda _, A=A: random_pmf(rng, A), A)
        claim = proposition1(problem, policy)
        assert claim.holds, (problem, claim)
        assert claim.detail["largest difference"] <= 1e-10

        def raw(history: History, policy: ol.FunctionPolicy = policy) -> Any:
            return policy.probabilities(information_of(history))

        P, R, rho = arrays(problem.mdp)
        if problem.warmup:
            given: dict[str, Any] = {"warm_delay": problem.warmup}
        else:
            given = {"first": problem.law.first}
            if problem.law.constant is None:
                shape = (*R.shape, problem.law.interarrival.shape[-1])
                given["inter"] = np.broadcast_to(problem.law.interarrival, shape)
        assert claim.right == pytest.approx(policy_value(P, R, rho, raw, **given), abs=1e-10)
        assert proposition1(problem, policy, at_horizon="arrival").right == pytest.approx(claim.right, abs=1e-12)
        lost += not proposition1(problem, policy, at_horizon="nothing").holds
    assert lost > 10 / 24 * n  # the list of cases leaves out h = H; to the letter, what is under way then is never paid


def test_proposition1_limits() -> None:
    one = ol.TabularMDP(np.ones((1, 1, 1)), np.ones((1, 1)), horizon=1)
    policy = ol.FunctionPolicy(lambda _: 0, 1)
    late = ol.ImpairedMDP(one, ol.ConstantDelay(1))
    assert proposition1(late, policy).holds
    assert (late_reward().mdp, late_reward().channel) == (one, ol.ConstantDelay(1))
    literal = proposition1(late_reward(), at_horizon="nothing")
    assert (literal.left, literal.right, literal.holds) == (1.0, 0.0, False)
    too_late = proposition1(ol.ImpairedMDP(one, ol.ConstantDelay(2), start=ol.WarmStart()), policy)
    assert (too_late.left, too_late.right, too_late.holds) == (1.0, 0.0, False)
    with pytest.raises(ValueError, match="about delay"):
        proposition1(ol.ImpairedMDP(one, ol.Loss(seen=0.5)), policy)
    with pytest.raises(ValueError, match="at_horizon is 'later', expected one of 'arrival'"):
        proposition1(late, policy, at_horizon="later")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="comparator is 'best', expected one of 'each start'"):
        proposition5_long(1, 5, 0.1, comparator="best")  # type: ignore[arg-type]


@pytest.mark.parametrize("d", [1, 2, 4])
def test_proposition5(d: int) -> None:
    assert proposition5_short(d).holds
    assert proposition5_short(d, horizon=d + 1).holds
    for K, gamma in itertools.product([1, 2, 5, 40, 1000], [0.01, 0.1, 0.4, 0.61, 0.9]):
        claim = proposition5_long(d, K, gamma, comparator="expectation")
        assert claim.holds, claim
        assert claim.detail["gap of one policy"] == pytest.approx(0.5, abs=1e-12)
    printed = proposition5_long(d, 1000, 0.1)  # each first state on its own, as in Proposition 4
    assert (printed.left, printed.holds) == (1.0, False)
    assert printed.detail["mean gap"] == 0.0  # a policy for each start loses nothing
    hindsight = proposition5_long(d, 2, 0.4, comparator="hindsight")
    assert hindsight.left == pytest.approx(0.5)  # above γ: log(2/γ) is needed
    assert not hindsight.holds


def test_proposition5_simulated_mean_gap() -> None:
    """The share of 120 runs that miss the bound agrees with its exact probability."""
    K, gamma = 9, 0.3
    claims = [proposition5_long(1, K, gamma, comparator="expectation", seed=seed) for seed in range(120)]
    exact = claims[0].left
    missed = np.mean([c.detail["mean gap"] < c.detail["bound"] for c in claims])
    assert missed == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 120))


def test_value_is_monotone_in_delay_and_loss(rng: np.random.Generator) -> None:
    for i in range(repeats(10, 20)):
        mdp = random_mdp(rng, 3, 2, 4, sparse=bool(i % 2))
        assert monotone_in_delay(mdp, range(6)).holds
        assert monotone_in_loss(mdp, [0, 0.1, 0.4, 0.8, 1.0]).holds
        assert monotone_in_loss(mdp, [0, 0.5, 1.0], start=ol.WarmStart()).holds


def test_warm_starts_are_not_monotone_in_delay() -> None:
    """The steps before step 0 move s_0: a longer delay can have a higher value and a smaller gap."""
    claim = monotone_in_delay(moved_start(), [0, 1, 2], start=ol.WarmStart())
    assert not claim.holds
    assert claim.detail["values"] == pytest.approx([1, 3 / 4, 7 / 8], abs=1e-14)
    assert claim.detail["gaps"] == pytest.approx([0, 1 / 4, 1 / 8], abs=1e-14)


# -- Proposition 4 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "gap", "bound"),
    [
        (mirror(2), 3 / 8, 0),
        (mirror(3), 3 / 8, 0),
        (mirror(4), 3 / 8, 0),
        (mirror(2, keep=0.6), 0.48, 0),
        (both_signs(0.25), 1, 1 / 2),
        (both_signs(0.3), 1.2, 0.6),
        (decoy(0.25), 7 / 8, 25 / 32),
        (decoy_lost(0.25), 7 / 16, 53 / 128),
    ],
)
def test_proposition4_fails(problem: ol.ImpairedMDP, gap: float, bound: float) -> None:
    """Exact counterexamples from one fixed first state, with one optimal policy on each side."""
    assert problem.initial[0] == 1.0
    for claim in (proposition4(problem), proposition4_ties(problem)):
        assert not claim.holds
        assert claim.left == pytest.approx(gap, abs=1e-13)
        assert claim.right == pytest.approx(bound, abs=1e-13)
    assert not proposition4_ties(problem).detail["ties"]
    assert proposition4_repaired(problem).holds


def test_repaired_bound_is_tight() -> None:
    for problem in (mirror(2), mirror(4), both_signs(0.25), decoy(0.25), blind_coin()):
        claim = proposition4_repaired(problem)
        assert claim.right == pytest.approx(claim.left, abs=1e-13)


def test_proposition4_fails_for_a_coin() -> None:
    """Both actions tie for the blind agent; tossing a coin, it looks like the one who sees: bound 0, gap 1/2."""
    assert blind_coin().initial[0] == 1.0
    assert proposition4(blind_coin()).holds  # the pair that planning returns is not the one that fails
    claim = proposition4_ties(blind_coin())
    assert not claim.holds
    assert claim.left == pytest.approx(0.5, abs=1e-14)
    assert claim.right == pytest.approx(0.0, abs=1e-14)
    assert claim.detail["smallest bound, deterministic"] == pytest.approx(1.0)


def test_proposition4_is_about_each_first_state(rng: np.random.Generator) -> None:
    """A start that is drawn at step 0 refutes the mean over the start only: from each state of it the bound holds."""
    mdp = mirror(2).mdp
    drawn = ol.TabularMDP(mdp.transitions[1:], mdp.rewards[1:], horizon=4)
    assert ol.gap(ol.ImpairedMDP(drawn, ol.ConstantDelay(2))).bound == pytest.approx(0, abs=1e-13)
    for claim in (proposition4, proposition4_ties):
        found = claim(ol.ImpairedMDP(drawn, ol.ConstantDelay(2)))
        assert (found.left, found.right, found.holds) == (pytest.approx(3 / 8), pytest.approx(3 / 4), True)
    for i in range(12):  # the one with the least room, among those computed one by one
        problem = ol.ImpairedMDP(random_mdp(rng, 3, 2, 3, sparse=bool(i % 2)), ol.ConstantDelay(2))
        each = [ol.gap(ol.ImpairedMDP(problem.mdp.replace(initial=e), problem.channel)) for e in np.eye(3)]
        here = [price for price, p in zip(each, problem.initial, strict=True) if p > 0]
        found = proposition4(problem)
        assert found.right - found.left == pytest.approx(min(price.bound - price.gap for price in here), abs=1e-12)


def test_proposition4_holds_at_delay_one_with_unit_span(rng: np.random.Generator) -> None:
    """Proved for d = 1 and max r − min r ≤ 1: for every optimal pair, ties and mixtures included."""
    for i in range(repeats(24, 60)):  # twice each of the twelve kinds
        mdp = random_mdp(rng, *(int(x) for x in rng.integers([2, 2, 2], [4, 4, 5])), sparse=bool(i % 3))
        if i % 2:
            mdp = mdp.replace(rewards=mdp.rewards - 0.5)
        problem = ol.ImpairedMDP(mdp, ol.ConstantDelay(1), start=ol.WarmStart() if i % 4 > 1 else None)
        assert proposition4_ties(problem, limit=8, mixtures=4, seed=i).holds
    scaled = both_signs(0.25).mdp
    tight = proposition4(ol.ImpairedMDP(scaled.replace(rewards=(scaled.rewards + 1) / 2), ol.ConstantDelay(1)))
    assert tight.left == pytest.approx(tight.right, abs=1e-14)
    assert tight.holds


def test_repaired_proposition4(rng: np.random.Generator) -> None:
    """Delay, warm and cold, random delay, loss; rewards of both signs."""
    for i in range(repeats(24, 64)):  # three times each of the eight kinds
        problem = random_problem(rng, i)
        claim = proposition4_repaired(problem)
        assert claim.holds, (problem, claim)
        qmdp = claim.detail["QMDP"]
        assert qmdp <= ol.solve(problem).value + 1e-10


def test_visits_of_a_full_information_policy(rng: np.random.Generator) -> None:
    """Against the package's other computation; and mixing two policies at one (h, s) mixes their visits."""
    for i in range(repeats(16, 32)):  # twice each of the eight kinds
        problem = random_problem(rng, i)
        H, S, A = problem.horizon, problem.n_states, problem.n_actions
        acts = rng.integers(A, size=(H, S))
        full = np.eye(A)[acts]
        found = observed_visits(problem, full)
        other: dict[ol.Information, float] = {}
        for reached in hidden_visits(problem, ol.MarkovPolicy(acts, A), 10**6):
            other |= reached
        assert found.keys() == other.keys()
        assert all(found[info] == pytest.approx(other[info], abs=1e-12) for info in found)
        h, s, w = int(rng.integers(H)), int(rng.integers(S)), float(rng.random())
        second, mixed = full.copy(), full.copy()
        second[h, s] = np.eye(A)[(acts[h, s] + 1) % A]
        mixed[h, s] = w * full[h, s] + (1 - w) * second[h, s]
        visits, of_mixed = observed_visits(problem, second), observed_visits(problem, mixed)
        for info in of_mixed:
            both = w * found.get(info, 0.0) + (1 - w) * visits.get(info, 0.0)
            assert of_mixed[info] == pytest.approx(both, abs=1e-12)


def test_optimal_actions_are_all_optimal(rng: np.random.Generator) -> None:
    """Any choice among them has the optimal value, and the planner's own pair is among the pairs."""
    for i in range(16):
        problem = random_problem(rng, 2 * i + 1)
        choices = optimal_actions(problem)
        A = problem.n_actions
        policy = ol.FunctionPolicy(lambda info, c=choices: int(rng.choice(c[info])), A)
        assert ol.evaluate(problem, policy).value == pytest.approx(ol.solve(problem).value, abs=1e-9)
        price = ol.gap(problem)
        full = np.eye(A)[price.full_policy.actions]
        pair = bounds(problem, [observed_visits(problem, full)], [executable_visits(problem, price.solution.policy)])
        assert pair[0, 0] == pytest.approx(price.bound, abs=1e-12)
        plain = optimal_actions(unimpaired(problem))
        assert all(price.full_policy.actions[info.h, info.state] in acts for info, acts in plain.items())


# -- Proposition 6 ----------------------------------------------------------------------------------------------------


def test_optimistic_planning_can_lose_for_ever() -> None:
    """What is done only when the state is hidden is never counted: regret (1 − λ)/4 in every episode, whatever c, with one
    rate λ for all steps."""
    pairs = [(0.5, 0.01), (0.9, 1.0), (0.5, 1.0), (0.9, 0.01)]  # each rate and each constant, all pairs if thorough
    for seen, c in pairs[: repeats(2, 4)]:
        problem = hidden_action(seen)
        assert problem.arrival_probability == pytest.approx(np.full(3, seen))
        assert ol.solve(problem).value == pytest.approx(1 + seen / 2, abs=1e-13)
        claim = proposition6(2000, seen=seen, c=c)
        assert not claim.holds
        assert claim.left == pytest.approx(1.0, abs=1e-9)  # linear
        assert claim.right < 0.63  # the printed bound grows like √K up to logarithms
        assert claim.detail["per episode"] == pytest.approx(((1 - seen) / 4,) * 2, abs=1e-12)
        counts = np.array(claim.detail["counts"])[1]
        assert counts[0, 2] == counts[1, 0] == 0  # what the two actions do where the other one is right
        assert counts[0, 0] > 0


def test_claims_print_both_sides() -> None:
    """No claim compares a number with itself in words: what is printed is "left relation right"."""
    assert str(proposition6(2000)).endswith(": 1 ≤ 0.61974 fails")
    assert str(proposition5_long(1, 2, 0.4, comparator="hindsight")).endswith(": 0.5 ≤ 0.4 fails")
