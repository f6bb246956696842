"""What the theory says of learning: estimates come to the truth at their rates, and the printed form of regret."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
import oracle
from conftest import arrays, information_of, random_mdp
from oldlight.learners import DelayedUCBVI, LearningRun, LossUCBVI, UniformRandom, learn
from oldlight.learners.base import Episode
from oldlight.model.policies import probabilities_at
from oldlight.paper import estimates, lambda_hat, long_runs, p_hat, pattern_gap, theta_hat, total_variation
from oldlight.paper.concentration import leaves_its_band
from oldlight.paper.estimates import Watched, slope
from repeats import repeats

# -- estimates -----------------------------------------------------------------------------------------------------------

PLAYED: dict[str, tuple[ol.ImpairedMDP, set[str]]] = {
    "constant": (ol.ImpairedMDP(random_mdp(np.random.default_rng(3), 3, 2, 4), ol.ConstantDelay(1)), {"p̂"}),
    "geometric": (
        ol.ImpairedMDP(random_mdp(np.random.default_rng(4), 2, 2, 4), ol.GeometricDelay(0.6, first="same")),
        {"p̂", "θ̂"},
    ),
    "capped, by state": (
        ol.ImpairedMDP(
            random_mdp(np.random.default_rng(5), 2, 2, 4),
            ol.StochasticDelay(np.array([[[0.7, 0.2, 0.1]], [[0.3, 0.3, 0.4]]])[None]).capped(2),
        ),
        {"p̂", "θ̂"},
    ),
    "loss": (
        ol.ImpairedMDP(random_mdp(np.random.default_rng(6), 2, 2, 4), ol.Loss(seen=[0.9, 0.7, 0.5, 0.8])),
        {"p̂", "λ̂", "b̂"},
    ),
}


@pytest.mark.parametrize("where", PLAYED)
def test_estimates_come_to_the_truth_at_the_stated_rate(where: str) -> None:
    """log error falls by 1/2 per log n, within 4 of its standard deviations; the inequalities hold in 1 − γ of the runs."""
    problem, names = PLAYED[where]
    runs = repeats(10, 20)
    claim = estimates(problem, 4000, runs=runs, seed=1)
    assert claim.holds
    assert names <= set(claim.detail["share of runs"])
    assert set(claim.detail["rates"]) == names
    for rate, deviation in claim.detail["rates"].values():
        assert deviation < 0.04 * np.sqrt(20 / runs)  # so that −1/4 and −1 are more than 4 of them away
        assert abs(rate + 0.5) < 4 * deviation
    assert not estimates(problem, 1000, c=0.01, runs=5).holds  # a band too narrow: the inequalities can fail


def test_the_rate_and_its_deviation_by_many_repetitions() -> None:
    """The slope's own standard deviation, from 300 sets of 8 streams; and a bias that does not vanish is found out."""
    rng = np.random.default_rng(0)
    n = np.arange(1, 513)
    found = []
    for _ in range(300):
        draws = rng.random((8, 512)) < 0.3
        squares = list((np.cumsum(draws, axis=1) / n - 0.3) ** 2)
        found.append(slope(Watched(squares=squares, variances=[0.21] * 8)))
    slopes, deviations = np.array(found).T
    assert np.allclose(deviations, deviations[0])
    assert slopes.mean() == pytest.approx(
        -0.5, abs=0.02 + 4 * deviations[0] / math.sqrt(300)
    )  # log of a mean: 1/(2M) off
    assert slopes.std() == pytest.approx(deviations[0], rel=0.25)
    wrong = list((np.cumsum(rng.random((64, 512)) < 0.3, axis=1) / n - 0.35) ** 2)
    rate, deviation = slope(Watched(squares=wrong, variances=[0.21] * 64))
    assert abs(rate + 0.5) > 4 * deviation
    assert math.isnan(slope(Watched(squares=[np.ones(20)], variances=[1.0]))[0])


def test_a_learners_estimates_are_those_of_the_streams() -> None:
    """p̂ of Algorithm 1 after a run of its own is the mean of each stream, as `estimates` takes it."""
    problem = PLAYED["geometric"][0]
    learner, episodes = watched(DelayedUCBVI)
    learn(problem, learner, 500, seed=3, every=500)
    states, actions = np.array([e.states for e in episodes]), np.array([e.actions for e in episodes])
    for t, s, a in np.ndindex(3, 2, 2):
        here = (states[:, t] == s) & (actions[:, t] == a)
        if here.any():
            shares = np.bincount(states[here, t + 1], minlength=2) / here.sum()
            row = np.zeros(2)
            np.add.at(row, learner.model.index[t, 2 * s + a], learner.model.weight[t, 2 * s + a])
            assert row == pytest.approx(shares)


def watched(make: Callable[[], Any]) -> tuple[Any, list[Episode]]:
    """A learner, and the list of the episodes that it is shown."""
    learner, episodes = make(), []
    see = learner.see

    def look(episode: Episode) -> None:
        episodes.append(episode)
        see(episode)

    learner.see = look
    return learner, episodes


# -- concentration, exactly ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("p", "n", "width"), [(0.3, 9, 0.25), (0.5, 8, 0.3), (0.9, 7, 0.4), (0.0, 5, 0.1)])
def test_leaving_a_band_by_enumeration(p: float, n: int, width: float) -> None:
    total = 0.0
    for draws in itertools.product([0, 1], repeat=n):
        means = np.cumsum(draws) / np.arange(1, n + 1)
        out = (np.abs(means - p) > width * np.sqrt(3 / np.arange(1, n + 1)) + 1e-12).any()
        total += out * math.prod(p if u else 1 - p for u in draws)
    assert leaves_its_band(p, n, lambda j: width * math.sqrt(3 / j)) == pytest.approx(total, abs=1e-12)


def test_concentration_of_lambda_hat() -> None:
    for rates, K, gamma in itertools.product(([0.5], [0.9, 0.7, 0.5]), (1, 50, 1000), (0.01, 0.5)):
        assert lambda_hat(rates, K, gamma).holds
    assert not lambda_hat([0.5] * 5, 1000, 0.1, c=0.3).holds
    one, three = (lambda_hat([0.5] * k, 300, 0.1, c=0.45) for k in (1, 3))
    assert 0 < one.left < three.left


def test_concentration_of_theta_hat_and_p_hat() -> None:
    """c = 1 is proved; the union of the exact tails is below γ down to about a half, and not at a quarter."""
    for D, gamma in itertools.product((1, 2, 3), (0.01, 0.2)):
        size: dict[str, Any] = {"S": 3, "A": 2, "H": 4, "D": D}
        for claim in (theta_hat, p_hat):
            assert claim(0.4, 500, gamma, **size).holds
            assert not claim(0.4, 500, gamma, c=0.25, **size).holds
            assert claim(0.4, 500, gamma, c=0.6, **size).holds
    # without the D under the root the number of value functions is not paid for
    crowd = p_hat(0.5, 300, 0.1, S=2, A=9, H=12, D=12, c=math.sqrt(0.5 / 12))
    assert not crowd.holds


@pytest.mark.parametrize("p", [[0.5, 0.5], [0.2, 0.3, 0.5], [0.1, 0.2, 0.3, 0.4], [0.0, 0.4, 0.6]])
def test_total_variation(p: list[float]) -> None:
    rng = np.random.default_rng(0)
    for n, t in itertools.product((1, 5, 12), (0.1, 0.3, 0.6)):
        claim = total_variation(n, p, t)
        assert claim.holds
        assert claim.detail["which holds"]
        drawn = np.abs(rng.multinomial(n, p, size=20_000) / n - p).sum(axis=1) / 2 >= t - 1e-9
        assert abs(drawn.mean() - claim.left) < 4.5 * math.sqrt(max(claim.left * (1 - claim.left), 1e-4) / 20_000)


# -- E_m and runs of losses ------------------------------------------------------------------------------------------------


def test_what_long_runs_cost() -> None:
    for H, seen, K in itertools.product((2, 5, 12), (0.3, 0.6, 0.9), (10, 1000, 100_000)):
        claim = long_runs(H, seen, K)
        assert claim.holds  # H·K·P(a longer run in an episode) ≤ H²√K
        m, never, printed, one = claim.detail.values()
        assert one <= H * (1 - seen) ** (math.floor(m) + 1) + 1e-12
        assert printed <= H  # what the proof prints as a bound of the regret on the complement
        if claim.left > H:  # ... which the episodes with long runs can cost many times over
            assert never < math.exp(-1)
    nearly_never = long_runs(10, 0.5, 10_000)
    assert nearly_never.detail["P(E_m), all K episodes"] < 1e-20
    rng = np.random.default_rng(2)
    lost = rng.random((100_000, 6)) < 0.5
    m = long_runs(6, 0.5, 60).detail["m"]  # 2.5: longer is 3 or more
    there = np.array([lost[:, i : i + 3].all(axis=1) for i in range(4)]).any(axis=0)
    assert m == 2.5
    assert there.mean() == pytest.approx(long_runs(6, 0.5, 60).detail["one episode"], abs=0.008)


def test_losses_of_one_length_can_be_further_apart_than_printed() -> None:
    """Where every λ_h is λ_0 the gap holds; where they are larger such losses are rarer, and it does not."""
    for run, K, low in itertools.product((1, 2), (100, 2000), (0.3, 0.6)):
        assert pattern_gap(K, run, low, least_seen=low, gamma=0.1, S=2, A=2, H=3).holds
    assert not pattern_gap(1000, 1, 0.9, least_seen=0.5, gamma=0.1, S=2, A=2, H=3).holds
    with pytest.raises(ValueError, match="least_seen"):
        pattern_gap(10, 1, 0.5, least_seen=0.6, gamma=0.1)


# -- the printed form of regret ----------------------------------------------------------------------------------------------


def naming(seed: int) -> ol.TabularMDP:
    """Two states; most is earned by naming the state, so it is worth knowing where one begins."""
    mdp = random_mdp(np.random.default_rng(seed), 2, 2, 3)
    return mdp.replace(
        rewards=0.2 * mdp.rewards + 0.8 * np.eye(2), transitions=0.4 * mdp.transitions + 0.6 * np.eye(2)[:, None]
    )


HIDDEN: dict[str, tuple[ol.ImpairedMDP, dict[str, Any], Any]] = {
    "constant, cold": (
        ol.ImpairedMDP(naming(21), ol.ConstantDelay(1)),
        {"first": [0.0, 1.0]},
        partial(DelayedUCBVI, c=0.1),
    ),
    "random first": (
        ol.ImpairedMDP(naming(22), ol.StochasticDelay([1.0], first=[0.5, 0.25, 0.25])),
        {"first": [0.5, 0.25, 0.25]},
        partial(DelayedUCBVI, planning="greedy"),
    ),
    "loss": (
        ol.ImpairedMDP(naming(23), ol.Loss(seen=[0.4, 0.7, 0.9])),
        {"seen": [0.4, 0.7, 0.9]},
        LossUCBVI,
    ),
    "loss, acting at random": (
        ol.ImpairedMDP(naming(24), ol.Loss(seen=[0.4, 0.7, 0.9])),
        {"seen": [0.4, 0.7, 0.9]},
        UniformRandom,
    ),
    "late actions": (
        ol.ImpairedMDP(naming(25), ol.ConstantDelay(0), actuation=1, pending=(1,)),
        {"actuation": 1, "initial_actions": (1,)},
        UniformRandom,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("where", HIDDEN)
def test_printed_regret_by_brute_force(where: str) -> None:
    """Starts, values from them and the comparator, against an enumeration of raw histories; a hidden start costs more."""
    problem, link, make = HIDDEN[where]
    P, R, rho = arrays(problem.mdp)
    S = problem.n_states
    plain = learn(problem, make(), 12, seed=5)
    learner, episodes = watched(make)
    ask = getattr(learner, "policy", None)
    expected: list[list[float]] = []

    def valued() -> Any:
        """The policy of the next episode, valued from each start by brute force."""
        policy = ask() if ask is not None else ol.FunctionPolicy(learner.act, 2)

        def answer(history: Any) -> Any:
            if problem.actuation:
                return [0.5, 0.5]  # who acts at random
            return probabilities_at(problem, policy, information_of(history))

        expected.append([oracle.policy_value(P, R, e, answer, **link) for e in np.eye(S)])
        return policy

    learner.policy = valued
    run = learn(problem, learner, 12, seed=5, by_start=True)
    assert np.array_equal(run.values, plain.values)  # nothing else changes
    assert np.array_equal(run.returns, plain.returns)
    assert run.exact
    assert run.starts is not None
    assert run.start_values is not None
    if problem.arrival_probability is None:
        assert run.starts.tolist() == [int(e.states[0]) for e in episodes]
    by_policy = np.array(expected)
    assert run.start_values == pytest.approx(by_policy[np.arange(12), run.starts], abs=1e-12)
    assert by_policy @ rho == pytest.approx(run.values, abs=1e-12)
    best = np.array([oracle.optimal_value(P, R, e, **link) for e in np.eye(S)])
    assert run.best_by_start == pytest.approx(best, abs=1e-12)
    assert run.printed_regret == pytest.approx(np.cumsum((best - by_policy)[np.arange(12), run.starts]), abs=1e-12)
    # in expectation over the start: ours, and what knowing the start is worth, in every episode
    worth = rho @ best - run.best
    assert (best - by_policy) @ rho == pytest.approx(run.shortfalls + worth, abs=1e-12)
    assert worth > 1e-3 if where != "late actions" else abs(worth) < 1e-12  # there it is seen before the first choice


SEEN: dict[str, tuple[ol.ImpairedMDP, Any]] = {
    "no delay": (ol.ImpairedMDP(random_mdp(np.random.default_rng(31), 3, 2, 3), ol.ConstantDelay(0)), DelayedUCBVI),
    "random": (
        ol.ImpairedMDP(random_mdp(np.random.default_rng(32), 2, 2, 3), ol.StochasticDelay([0.6, 0.4])),
        DelayedUCBVI,
    ),
    "warm": (
        ol.ImpairedMDP(random_mdp(np.random.default_rng(33), 3, 2, 3), ol.ConstantDelay(1), start=ol.WarmStart()),
        DelayedUCBVI,
    ),
    "warm, acting at random": (
        ol.ImpairedMDP(random_mdp(np.random.default_rng(34), 3, 2, 3), ol.ConstantDelay(2), start=ol.WarmStart()),
        UniformRandom,
    ),
    "loss later": (
        ol.ImpairedMDP(random_mdp(np.random.default_rng(35), 2, 2, 3), ol.Loss(seen=[1.0, 0.5, 0.5])),
        LossUCBVI,
    ),
}


@pytest.mark.parametrize("where", SEEN)
def test_where_the_start_is_seen_the_two_forms_agree_in_expectation(where: str) -> None:
    """Σ_s rho(s)·(max V(s) − V^π(s)) is our gap, for the last policy of a run; in a run they differ by the draws alone."""
    problem, make = SEEN[where]
    run = learn(problem, make(), 400, seed=2, by_start=True)
    assert run.starts is not None
    assert run.start_values is not None
    assert run.best_by_start is not None
    gaps = run.best_by_start[run.starts] - run.start_values
    assert gaps.min() >= -1e-10
    # the same policy was played often: its gap from each start, put together again
    same = [k for k in range(400) if run.values[k] == run.values[-1]]
    per_start = {int(run.starts[k]): gaps[k] for k in same}
    assert set(per_start) == set(range(problem.n_states))
    mean = sum(problem.initial[s] * gap for s, gap in per_start.items())
    assert mean == pytest.approx(run.shortfalls[-1], abs=1e-12)
    # Azuma: both are sums of terms in [0, H], and their difference a martingale
    assert abs(run.printed_regret[-1] - run.regret[-1]) <= 3 * math.sqrt(400 / 2 * math.log(2 / 1e-6))


def test_on_the_dichotomy_the_printed_form_never_ends() -> None:
    """Delay d + 1 hides what must be known: nothing is lost by our form, 1/2 in every episode by the printed one."""
    problem = ol.ImpairedMDP(ol.instances.dichotomy(1), ol.ConstantDelay(2))
    run = learn(problem, UniformRandom(), 50, seed=0, by_start=True)
    assert run.regret == pytest.approx(np.zeros(50))
    assert run.printed_regret == pytest.approx(0.5 * np.arange(1, 51))
    assert run.best_by_start == pytest.approx([1.0, 1.0])
    seen = learn(
        ol.ImpairedMDP(ol.instances.dichotomy(1), ol.ConstantDelay(1)), DelayedUCBVI(), 300, seed=0, by_start=True
    )
    assert np.diff(seen.printed_regret)[-100:].max() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("every", [1, 7, "growing"])
@pytest.mark.parametrize("where", ["constant, cold", "loss"])
def test_printed_regret_survives_checkpoints_and_files(where: str, every: Any, tmp_path: Path) -> None:
    problem, _, make = HIDDEN[where]
    whole = learn(problem, make(), 40, seed=3, every=every, by_start=True)
    path = tmp_path / "run.npz"
    learner = make()
    see, count = learner.see, [0]

    def stop_after_twelve(episode: Episode) -> None:
        count[0] += 1
        if count[0] > 12:
            raise KeyboardInterrupt
        see(episode)

    learner.see = stop_after_twelve
    with pytest.raises(KeyboardInterrupt) as stop:
        learn(problem, learner, 40, seed=3, every=every, by_start=True, checkpoint=path, checkpoint_every=0.0)
    assert len(stop.value.partial.printed_regret) == 12
    with pytest.raises(ValueError, match="another run: by_start is True, here False"):
        learn(problem, make(), 40, seed=3, every=every, checkpoint=path)
    again = learn(problem, make(), 40, seed=3, every=every, by_start=True, checkpoint=path)
    for name in ("values", "starts", "start_values", "best_by_start", "printed_regret"):
        assert np.array_equal(getattr(again, name), getattr(whole, name)), name
    whole.save(tmp_path / "saved.npz")
    loaded = LearningRun.load(tmp_path / "saved.npz")
    assert np.array_equal(loaded.printed_regret, whole.printed_regret)
    assert np.array_equal(loaded.regret, whole.regret)


def test_what_the_printed_form_needs() -> None:
    problem = HIDDEN["constant, cold"][0]
    with pytest.raises(ValueError, match="by_start=True"):
        _ = learn(problem, UniformRandom(), 3, seed=0).printed_regret
    with pytest.raises(ValueError, match="takes the exact value"):
        learn(problem, UniformRandom(), 3, seed=0, evaluate="sampled", by_start=True)
