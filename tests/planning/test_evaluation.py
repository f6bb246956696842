"""Policies: valued exactly by three routes that must agree, by sampling only when it says so; saved and loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from conftest import arrays, information_of, random_mdp
from oldlight.model.policies import blackout_of, tabulate
from oracle import policy_value, random_law
from played import cases, random_policy
from repeats import repeats


@pytest.mark.parametrize("seed", range(20))
def test_randomised_policies_against_histories(seed: int) -> None:
    problem, law = cases(seed)
    policy = random_policy(problem, seed)

    def asked(history: Any) -> Any:
        return policy.probabilities(information_of(history))

    expected = policy_value(*arrays(problem.mdp), asked, **law)
    walked = ol.evaluate(problem, policy)
    assert walked.exact
    assert walked.half_width == 0
    assert float(walked) == pytest.approx(expected, abs=1e-12)
    if problem.arrival_probability is None:
        table = ol.evaluate(problem, tabulate(problem, policy))
        assert table.method == "backward induction"
        assert float(table) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_deterministic_policies_under_loss_are_sequences(seed: int) -> None:
    rng = np.random.default_rng([seed, 21])
    problem = ol.ImpairedMDP(random_mdp(rng, 3, 3, 4), ol.Loss(seen=rng.random(4)))
    chosen = random_policy(problem, seed)
    policy = ol.FunctionPolicy(lambda info: int(chosen.probabilities(info).argmax()), 3)
    sequences = blackout_of(problem, policy)
    assert float(ol.evaluate(problem, sequences)) == pytest.approx(float(ol.evaluate(problem, policy)), abs=1e-12)


def test_sampled_says_so() -> None:
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.Loss(seen=0.3))
    uniform = ol.FunctionPolicy(lambda info: np.full(5, 0.2), 5)
    found = ol.evaluate(problem, uniform, max_states=1_000, episodes=3_000, seed=1)
    assert not found.exact
    assert found.half_width > 0
    assert found.method == "play"
    assert "±" in repr(found)
    blind = problem.mdp.initial
    exact = 0.0
    for h in range(10):  # uniform actions ignore what is seen
        exact += float(blind @ problem.mdp.rewards[h].mean(axis=1))
        blind = blind @ problem.mdp.transitions[h].mean(axis=1)
    assert abs(float(found) - exact) < 4 * found.half_width / 1.96


def test_belief_policy_is_the_same_whatever_the_queue_looks_like() -> None:
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.ConstantDelay(1), start=ol.WarmStart())

    def towards_the_middle(h: int, b: Any) -> int:
        return 0 if b @ np.arange(20) < 9.5 else 1

    policy = ol.BeliefPolicy(problem, towards_the_middle)
    value = ol.evaluate(problem, policy)
    assert value.exact
    assert float(value) < ol.solve(problem).value
    played = ol.simulate(problem, policy, repeats(6_000, 20_000), seed=0)
    assert abs(played.mean - float(value)) < 4 * played.half_width / 1.96


@pytest.mark.parametrize(
    "channel", [ol.ConstantDelay(2), ol.GeometricDelay(0.5).capped(2), ol.Loss(seen=0.5)], ids=repr
)
def test_policies_are_saved_and_loaded(tmp_path: Path, channel: Any) -> None:
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), channel)
    policy = ol.solve(problem).policy
    policy.save(tmp_path / "policy.npz")
    loaded = ol.load_policy(tmp_path / "policy.npz")
    assert float(ol.evaluate(problem, loaded)) == pytest.approx(float(ol.evaluate(problem, policy)), abs=0)
    assert [p.name for p in tmp_path.iterdir()] == ["policy.npz"]
    with np.load(tmp_path / "policy.npz", allow_pickle=False) as data:
        assert "kind" in data.files


def test_chances_are_saved_and_loaded(tmp_path: Path) -> None:
    problem, _ = cases(1)
    policy = tabulate(problem, random_policy(problem, 1))
    policy.save(tmp_path / "p.npz")
    assert float(ol.evaluate(problem, ol.load_policy(tmp_path / "p.npz"))) == float(ol.evaluate(problem, policy))


def test_a_policy_for_another_problem_is_refused() -> None:
    mdp = ol.instances.sensing_chain(0.8)
    one, two = (ol.ImpairedMDP(mdp, ol.ConstantDelay(d)) for d in (1, 2))
    policy = ol.solve(one).policy
    with pytest.raises(ValueError, match="another problem"):
        ol.evaluate(two, policy)
    with pytest.raises(ValueError, match="another problem"):
        ol.simulate(two, policy, 10, seed=0)


@pytest.mark.parametrize("seed", range(12))
def test_gap_terms_are_measures_and_agree_with_enumeration(seed: int) -> None:
    """ρ_h of the full-information policy, against a plain enumeration of trajectories of states and delays."""
    rng = np.random.default_rng([seed, 31])
    H = 3
    mdp = random_mdp(rng, 2, 2, H)
    if seed % 3 == 2:
        seen = rng.random(H)
        problem = ol.ImpairedMDP(mdp, ol.Loss(seen=seen))
    elif seed % 3 == 1:
        first, inter = random_law(rng, H, 2, 2, 3, kind="state_action")
        problem = ol.ImpairedMDP(mdp, ol.StochasticDelay(inter, first=first))
    else:
        problem = ol.ImpairedMDP(mdp, ol.ConstantDelay(1), start=ol.WarmStart())
    gap = ol.gap(problem)
    terms = gap.proposition4
    for h in range(H):
        assert sum(terms.full[h].values()) == pytest.approx(1.0, abs=1e-12)
        assert sum(terms.executable[h].values()) == pytest.approx(1.0, abs=1e-12)
    played = ol.simulate(problem, gap.full_policy, repeats(10_000, 30_000), seed=seed, record=True)
    assert played.states is not None
    assert played.actions is not None
    assert played.arrivals is not None
    counts: dict[ol.Information, int] = {}
    for s, a, arrive in zip(played.states.tolist(), played.actions.tolist(), played.arrivals.tolist(), strict=True):
        h, warmup = H - 1, problem.warmup
        known = [i for i in range(h + warmup + 1) if 0 <= arrive[i] <= h]
        if known:
            i = known[-1]
            info = ol.Information(h, i - warmup, s[i], tuple(a[i : h + warmup]), h - arrive[i])
        else:
            info = ol.Information.nothing_seen(tuple(a[: h + warmup]))
        counts[info] = counts.get(info, 0) + 1
    from played import chi_square

    assert chi_square(counts, terms.full[H - 1]) > 1e-4
    assert gap.gap >= -1e-12
    assert gap.bound == pytest.approx(gap.e1.sum() + 2 * gap.e2.sum())


def test_milliseconds() -> None:
    """45 ms at a control period of 20 ms are usable at the third tick; prices are quoted per millisecond."""
    late = ol.ConstantDelay.from_ms(45, period_ms=20)
    assert (late.d, late.period_ms) == (3, 20)
    assert ol.ConstantDelay.from_ms(40, period_ms=20).d == 2
    assert ol.ConstantDelay.from_ms(0, period_ms=20).d == 0
    assert late == ol.ConstantDelay(3).with_period(20)
    assert ol.ImpairedMDP(ol.instances.sensing_chain(0.8), late).period_ms == 20
    law = ol.EmpiricalDelay.from_ms({5: 1, 15: 1, 25: 2}, period_ms=10).law(10, 2, 2)
    assert law.first == pytest.approx([0, 0.25, 0.25, 0.5])
    slow = ol.GeometricDelay.from_ms(30, period_ms=10).law(200, 1, 1).interarrival.reshape(-1)
    assert slow @ np.arange(len(slow)) == pytest.approx(3.0, abs=1e-9)
    mdp = ol.instances.sensing_chain(0.8)
    steps = ol.sweep(mdp, delays=[0, 1, 2], period_ms=20).rows
    assert [row["delay ms"] for row in steps] == [0, 20, 40]
    assert steps[2]["per ms"] == pytest.approx(steps[2]["more"] / 20)
    fine = ol.sweep(mdp, delays_ms=[0, 15, 40], period_ms=20).rows
    assert [row["delay"] for row in fine] == [0, 1, 2]
    assert fine[2]["per ms"] == pytest.approx(steps[2]["more"] / 25)
    with pytest.raises(ValueError, match="control period"):
        ol.sweep(mdp, delays_ms=[1.0])


def test_sweep_rows_and_picture() -> None:
    sweep = ol.sweep(ol.instances.sensing_chain(0.8), losses=[0.0, 0.2, 0.5])
    assert [row["loss rate"] for row in sweep.rows] == [0.0, 0.2, 0.5]
    assert sweep.rows[2]["more"] == pytest.approx(sweep.gaps[1].impaired - sweep.gaps[2].impaired)
    assert sweep.rows[2]["per percent"] == pytest.approx(sweep.rows[2]["more"] / 30)
    axes = sweep.plot()
    assert axes.lines[0].get_ydata() == pytest.approx(sweep.gap)
    mixed = ol.sweep(ol.instances.sensing_chain(0.8), channels=[ol.ConstantDelay(1), ol.Loss(seen=0.5)])
    assert len(mixed.plot().get_xticklabels()) == 2
    with pytest.raises(ValueError, match="exactly one"):
        ol.sweep(ol.instances.sensing_chain(0.8))
