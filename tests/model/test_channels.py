"""Channels: laws and hazards against their definitions, what can happen, and what a cap costs."""

from __future__ import annotations

import itertools
import pickle
import zlib
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.model.channels.delay_law import DelayLaw
from oracle import Hidden, _Process, _support, random_instance, random_law, random_pmf
from repeats import repeats

WIFI = {1: 0.3082, 2: 0.5927, 3: 0.0829, 4: 0.0075, 5: 0.0031, 6: 0.0056}


def law_of(channel: Any, horizon: int = 5, n_states: int = 2, n_actions: int = 2) -> DelayLaw:
    law = channel.law(horizon, n_states, n_actions)
    assert isinstance(law, DelayLaw)
    assert np.allclose(law.interarrival.sum(axis=-1), 1.0, atol=1e-12)
    assert law.first.sum() == pytest.approx(1.0, abs=1e-12)
    return law


def direct_hazard(pmf: Any) -> list[float]:
    """P(Δ = δ | Δ ≥ δ), and 1 where nobody waits that long."""
    return [p / sum(pmf[k:]) if sum(pmf[k:]) > 0 else 1.0 for k, p in enumerate(pmf)]


def problem_of(channel: Any, horizon: int, n_states: int = 2, n_actions: int = 2, seed: int = 0) -> ol.ImpairedMDP:
    P, R, rho = random_instance(np.random.default_rng(seed), n_states, n_actions, horizon)
    return ol.ImpairedMDP(ol.TabularMDP(P, R, horizon=horizon, initial=rho), channel)


# -- laws by hand -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [0, 1, 4, 5, 6, 100])
def test_constant(d: int) -> None:
    law = law_of(ol.ConstantDelay(d), horizon=5)
    late = min(d, 5)  # five or more late: only seen after the episode
    assert law.first.tolist() == [0.0] * late + [1.0]
    assert law.interarrival.reshape(-1).tolist() == [1.0]
    assert (law.constant, law.max_delay, law.longest_delay) == (late, late, 5)
    assert law.feasible_delays.tolist() == [[k == late for k in range(6)]] * 5
    assert law.longest_wait(0) == 0


@pytest.mark.parametrize("p", [0.0, 0.3, 0.5, 1.0])
def test_geometric(p: float) -> None:
    H = 4
    law = law_of(ol.GeometricDelay(p), horizon=H)
    pmf = law.interarrival[0, 0, 0]
    assert pmf == pytest.approx([p, p * (1 - p), p * (1 - p) ** 2, p * (1 - p) ** 3, (1 - p) ** H], abs=1e-15)
    assert law.at_risk[0, 0, 0] == pytest.approx([(1 - p) ** k for k in range(H + 1)], abs=1e-15)
    assert law.hazard[0, 0, 0] == pytest.approx([p] * H + [1.0] if 0 < p < 1 else direct_hazard(pmf), abs=1e-12)
    assert law.first.tolist() == [1.0]


def test_geometric_from_the_start_is_a_bernoulli_process() -> None:
    law = law_of(ol.GeometricDelay(0.3, first="same"), horizon=4)
    assert law.first == pytest.approx(law.interarrival[0, 0, 0])
    assert law.first_hazard == pytest.approx([0.3] * 4 + [1.0])


@pytest.mark.parametrize(("alpha", "scale"), [(0.5, 1.0), (1.0, 2.0), (3.0, 0.25)])
def test_heavy_tails_follow_their_tail_law_up_to_the_horizon(alpha: float, scale: float) -> None:
    H = 7
    law = law_of(ol.HeavyTailedDelay(alpha, scale), horizon=H)
    tail = [(1 + k / scale) ** -alpha for k in range(H + 2)]
    assert law.at_risk[0, 0, 0] == pytest.approx(tail[: H + 1], abs=1e-15)
    assert law.interarrival[0, 0, 0, :H] == pytest.approx([tail[k] - tail[k + 1] for k in range(H)], abs=1e-15)
    assert law.interarrival[0, 0, 0, H] == pytest.approx(tail[H], abs=1e-15)


@pytest.mark.parametrize("first", [[0.25, 0.75], (0.25, 0.75)])
def test_independent_laws_take_a_first_law(first: Any) -> None:
    for channel in (ol.GeometricDelay(0.5, first=first), ol.HeavyTailedDelay(1.0, first=first)):
        law = law_of(channel)
        assert law.first.tolist() == [0.25, 0.75]
        assert law.first_hazard.tolist() == [0.25, 1, 1, 1, 1, 1]


def test_independent_laws_take_a_first_law_from_an_array() -> None:
    first = np.array([0.25, 0.75])
    assert ol.GeometricDelay(0.5, first=first) == ol.GeometricDelay(0.5, first=(0.25, 0.75))
    assert ol.HeavyTailedDelay(0.5, first=first) == ol.HeavyTailedDelay(0.5, first=(0.25, 0.75))


def test_bernoulli_is_the_papers_experiment() -> None:
    law = law_of(ol.BernoulliDelay(0.6), horizon=5)
    rows = law.interarrival[:, 0, 0, :]
    assert rows[:3] == pytest.approx(np.array([[0.6, 0.4]] * 3))
    assert rows[3:].tolist() == [[1.0, 0.0]] * 2
    assert law.hazard[:, 0, 0, 0] == pytest.approx([0.6, 0.6, 0.6, 1, 1])
    assert (law.hazard[..., 1] == 1).all()
    assert law.first.tolist() == [1.0]
    assert law.max_delay == 3
    feasible = [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3]]
    assert [np.flatnonzero(row).tolist() for row in law.feasible_delays] == feasible
    assert law_of(ol.BernoulliDelay(0.6, steps=1), horizon=5).max_delay == 1
    assert law_of(ol.BernoulliDelay(0.6, steps=99), horizon=5).max_delay == 4
    assert law_of(ol.BernoulliDelay(1.0), horizon=5).constant == 0


def test_empirical_samples_and_weights() -> None:
    samples = ol.EmpiricalDelay([1, 2, 2, 4])
    assert samples == ol.EmpiricalDelay({1: 10, 2: 20, 4: 10}) == ol.EmpiricalDelay(np.array([2, 4, 1, 2]))
    law = law_of(samples, horizon=6)
    assert law.first.tolist() == [0, 0.25, 0.5, 0, 0.25]
    assert law.interarrival.reshape(-1).tolist() == [1.0]  # the delay of an episode stays as it began
    assert [np.flatnonzero(row).tolist() for row in law.feasible_delays] == [[1, 2, 4]] * 6
    assert law.constant is None
    assert law.first_hazard == pytest.approx([0, 0.25, 2 / 3, 0, 1, 1, 1])


def test_empirical_interarrivals() -> None:
    alone = law_of(ol.EmpiricalDelay(interarrival=[0, 0, 0, 2]))
    assert alone.first.tolist() == [1.0]
    assert alone.interarrival[0, 0, 0].tolist() == [0.75, 0, 0.25]
    assert alone.hazard[0, 0, 0].tolist() == [0.75, 0, 1]
    both = law_of(ol.EmpiricalDelay(WIFI, interarrival={0: 3, 1: 1}), horizon=10)
    assert both.first == pytest.approx([0, *WIFI.values()])
    assert both.interarrival[0, 0, 0].tolist() == [0.75, 0.25]


def test_one_law_per_step_state_or_action() -> None:
    rng = np.random.default_rng(1)
    H, S, A, K = 4, 3, 2, 3
    table = rng.dirichlet(np.ones(K), size=(H, S, A))
    full = law_of(ol.StochasticDelay(table), H, S, A)
    assert np.array_equal(full.interarrival, table)
    for i, s, a in itertools.product(range(H), range(S), range(A)):
        assert full.at_step(full.hazard, i)[s, a] == pytest.approx(direct_hazard(table[i, s, a]), abs=1e-12)
    by_action = law_of(ol.StochasticDelay(table[0, 0]), H, S, A)
    assert by_action.interarrival.shape == (1, 1, A, K)
    by_step = law_of(ol.StochasticDelay(table[:, :1, :1]), H, S, A)
    assert by_step.interarrival.shape == (H, 1, 1, K)
    assert np.array_equal(by_step.at_step(by_step.interarrival, 2)[0, 0], table[2, 0, 0])


# -- definitions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_hazards_are_conditional_probabilities(seed: int) -> None:
    rng = np.random.default_rng(seed)
    H = 6
    first, pmf = random_pmf(rng, int(rng.integers(1, 8))), random_pmf(rng, int(rng.integers(1, 8)))
    law = law_of(ol.StochasticDelay(pmf, first=first), horizon=H)
    assert law.hazard[0, 0, 0] == pytest.approx(direct_hazard(pmf.tolist()), abs=1e-12)
    padded = np.append(first, np.zeros(H + 1))[: H + 1]
    assert law.first_hazard == pytest.approx(direct_hazard(padded.tolist()), abs=1e-12)
    surviving = np.cumprod(np.append(1.0, 1 - law.hazard[0, 0, 0]))  # the hazards give the law back
    assert law.hazard[0, 0, 0] * surviving[:-1] == pytest.approx(pmf, abs=1e-12)


def test_what_exceeds_the_horizon_is_folded_into_it() -> None:
    rng = np.random.default_rng(3)
    H, K = 3, 9
    first, table = rng.dirichlet(np.ones(K)), rng.dirichlet(np.ones(K), size=(H, 2, 2))
    law = law_of(ol.StochasticDelay(table, first=first), horizon=H)
    assert law.first.shape == (H + 1,)
    assert law.interarrival.shape == (H, 2, 2, H + 1)
    assert np.array_equal(law.first[:H], first[:H])
    assert law.first[H] == pytest.approx(first[H:].sum())
    assert np.array_equal(law.interarrival[..., :H], table[..., :H])
    assert np.allclose(law.interarrival[..., H], table[..., H:].sum(axis=-1))
    short = ol.StochasticDelay(law.interarrival, first=law.first)
    assert ol.solve(problem_of(short, H)).value == ol.solve(problem_of(ol.StochasticDelay(table, first=first), H)).value


def test_the_caller_cannot_change_a_law_afterwards() -> None:
    pmf = np.array([0.5, 0.5])
    channel = ol.StochasticDelay(pmf)
    pmf[:] = 0, 1
    assert channel.interarrival.tolist() == [0.5, 0.5]
    for array in (channel.interarrival, channel.first, law_of(channel).interarrival, law_of(channel).first):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0


def possible_by_hand(first: Any, inter: Any, longest_delay: int) -> list[set[int]]:
    """Every delay of every step, by listing what can follow what."""
    steps = [{min(d, longest_delay) for d in np.flatnonzero(first)}]
    for i in range(len(inter) - 1):
        more = {int(k) for k in np.argwhere(inter[i] > 0)[:, -1]}
        steps.append({min(d + k, longest_delay) for d in steps[-1] for k in more})
    return steps


@pytest.mark.parametrize("kind", ["constant", "iid", "state_action"])
@pytest.mark.parametrize("longest_delay", [None, 0, 1, 3])
def test_feasible_delays_by_hand(kind: str, longest_delay: int | None) -> None:
    H, S, A, K = 5, 2, 2, 3
    for seed in range(8):
        first, inter = random_law(np.random.default_rng(seed), H, S, A, K, kind=kind)
        channel: Any = ol.StochasticDelay(inter, first=first)
        law = law_of(channel if longest_delay is None else channel.capped(longest_delay), H, S, A)
        expected = possible_by_hand(first, inter, H if longest_delay is None else longest_delay)
        assert [set(np.flatnonzero(row).tolist()) for row in law.feasible_delays] == expected
        assert law.max_delay == max(set().union(*expected))
        once = set().union(*expected)
        assert law.constant == (once.pop() if len(once) == 1 else None)


CHANNELS = [
    ol.ConstantDelay(2),
    ol.GeometricDelay(0.5),
    ol.GeometricDelay(0.5, first="same").capped(2),
    ol.BernoulliDelay(0.5, steps=2),
    ol.EmpiricalDelay([1, 2, 2, 4]),
    ol.EmpiricalDelay([0, 1], interarrival=[0, 2]),
    ol.StochasticDelay([[[0.5, 0.5, 0], [0.5, 0, 0.5]]], first=[0.5, 0, 0.5]),
    ol.HeavyTailedDelay(0.5, first=[0.5, 0.5]),
]


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
def test_feasible_delays_are_those_that_are_played(channel: Any) -> None:
    problem = problem_of(channel, 5)
    played = ol.simulate(problem, ol.FunctionPolicy(lambda info: [0.5, 0.5], 2), 8000, seed=1, record=True)
    assert problem.arrival_probability is None
    assert played.arrivals is not None
    delays = played.arrivals - np.arange(5)
    assert (np.diff(delays, axis=1) >= 0).all()
    for i in range(5):
        assert set(delays[:, i].tolist()) == set(np.flatnonzero(problem.law.feasible_delays[i]).tolist())


# -- caps -------------------------------------------------------------------------------------------------------------


def test_a_capped_law_keeps_its_increments_and_folds_the_first_delay() -> None:
    law = law_of(ol.EmpiricalDelay([0, 1, 2, 3], interarrival=[0, 1]).capped(2))
    assert law.longest_delay == 2
    assert law.first.tolist() == [0.25, 0.25, 0.5]
    assert law.interarrival[0, 0, 0].tolist() == [0.5, 0.5]
    assert law.max_delay == 2


def test_caps_on_caps_and_caps_that_do_nothing() -> None:
    channel = ol.GeometricDelay(0.5)
    assert law_of(channel.capped(3).capped(1)).longest_delay == law_of(channel.capped(1).capped(3)).longest_delay == 1
    loose = problem_of(channel.capped(99), 4)
    assert ol.solve(loose).value == ol.solve(problem_of(channel, 4)).value
    assert ol.solve(problem_of(channel.capped(0), 4)).value == ol.solve(problem_of(ol.ConstantDelay(0), 4)).value


def convolved(law: DelayLaw, k: int) -> float:
    """P(d_{H−1−k} > k): delays only grow, and a later observation would not be seen in time anyway."""
    chance = np.asarray(law.first)
    for i in range(law.horizon - 1 - k):
        chance = np.convolve(chance, law.at_step(law.interarrival, i)[0, 0])
    return float(chance[k + 1 :].sum())


@pytest.mark.parametrize(
    "channel",
    [
        ol.ConstantDelay(3),
        ol.GeometricDelay(0.7),
        ol.GeometricDelay(0.7, first="same"),
        ol.HeavyTailedDelay(0.5),
        ol.BernoulliDelay(0.6),
        ol.EmpiricalDelay(WIFI),
        ol.EmpiricalDelay([0, 1, 3], interarrival=[0, 0, 2]),
    ],
    ids=repr,
)
def test_probability_longer_is_exact_where_the_law_ignores_state_and_action(channel: Any) -> None:
    law = law_of(channel, horizon=6)
    for k in range(8):
        expected = convolved(law, k) if k < 6 else 0.0
        assert law.probability_longer(k) == pytest.approx(expected, abs=1e-12)


def test_probability_longer_takes_the_worst_way_of_acting() -> None:
    """Action 1 delays by one more with probability ½, action 0 never: five chances to exceed a cap of 1."""
    law = law_of(ol.StochasticDelay([[[1, 0], [0.5, 0.5]]]), horizon=7)
    heads = [
        sum(1 for flips in itertools.product((0, 1), repeat=n) if sum(flips) > k) / 2**n for k, n in [(0, 6), (1, 5)]
    ]
    assert [law.probability_longer(0), law.probability_longer(1)] == pytest.approx(heads)


class Capped(_Process):
    """The oracle's process with no delay longer than `cap`."""

    longest_delay = 0

    def advance(self, h: int, weights: dict[Hidden, float], a: int) -> dict[Hidden, float]:
        after: dict[Hidden, float] = defaultdict(float)
        for hidden, w in weights.items():
            for s, p in self.P[h, hidden.state, a]:
                for more, q in self.inter[h, hidden.state, a]:
                    delay = min(hidden.delay + more, self.longest_delay)
                    for sent, r in self.send(h + 1, s, delay, hidden.under_way, ()):
                        after[sent] += w * p * q * r
        return after


def brute_force(P: Any, R: Any, rho: Any, first: Any, inter: Any, longest_delay: int) -> float:
    process = Capped(P, R, rho, first, inter, None, None, 0, ())
    process.longest_delay = longest_delay
    folded = np.zeros(longest_delay + 1)
    for d, p in enumerate(first):
        folded[min(d, longest_delay)] += p
    process.first = _support(folded)
    return sum(process.value(0, weights, (), actions, None) for actions, weights in process.starts())


@pytest.mark.parametrize("kind", ["iid", "state_action"])
@pytest.mark.parametrize("seed", range(repeats(3, 6)))
def test_a_cap_costs_at_most_what_truncate_says(kind: str, seed: int) -> None:
    """V ≤ V_capped ≤ V + value_error, with both values by brute force over all histories."""
    rng = np.random.default_rng(seed)
    H, S, A, K = 4, 2, 2, 4
    P, R, rho = random_instance(rng, S, A, H)
    R = 3 * R - 1
    first, inter = random_law(rng, H, S, A, K, kind=kind)
    mdp = ol.TabularMDP(P, R, horizon=H, initial=rho)
    problem = ol.ImpairedMDP(mdp, ol.StochasticDelay(inter, first=first))
    value = brute_force(P, R, rho, first, inter, longest_delay=H)
    assert ol.solve(problem).value == pytest.approx(value, abs=1e-12)
    policy = ol.FunctionPolicy(lambda info: np.random.default_rng(zlib.crc32(repr(info).encode())).dirichlet([1, 1]), A)
    shortest = H
    for probability in (0.0, 0.1, 0.3, 0.6, 1.0):
        cut = ol.truncate(problem, probability)
        capped = brute_force(P, R, rho, first, inter, longest_delay=cut.max_delay)
        assert ol.solve(cut.problem).value == pytest.approx(capped, abs=1e-12)
        assert cut.probability <= probability
        assert cut.value_error == pytest.approx(cut.probability * problem.reward_span)
        assert value - 1e-12 <= capped <= value + cut.value_error + 1e-12
        earned, earned_capped = float(ol.evaluate(problem, policy)), float(ol.evaluate(cut.problem, policy))
        assert abs(earned - earned_capped) <= cut.value_error + 1e-12
        assert cut.max_delay <= shortest
        shortest = cut.max_delay
        if cut.max_delay:  # the shortest cap that will do
            assert problem.law.probability_longer(cut.max_delay - 1) > probability


def test_reward_span_is_the_largest_difference_of_returns() -> None:
    problem = problem_of(ol.ConstantDelay(1), 3)
    R = problem.mdp.rewards
    assert problem.reward_span == pytest.approx(sum(R[h].max() - R[h].min() for h in range(3)))


def test_truncating_nothing_changes_nothing() -> None:
    problem = problem_of(ol.GeometricDelay(0.5), 4)
    cut = ol.truncate(problem, 0.0)
    assert (cut.max_delay, cut.value_error) == (3, 0.0)  # four late is after the episode
    assert ol.solve(cut.problem).value == ol.solve(problem).value
    warm = ol.ImpairedMDP(problem.mdp, ol.ConstantDelay(2), start=ol.WarmStart())
    assert ol.truncate(warm, 0.5).problem is warm


# -- loss -------------------------------------------------------------------------------------------------------------


def test_loss_rates() -> None:
    assert ol.Loss(seen=0.75).arrival_probabilities(3).tolist() == [0.75] * 3
    assert ol.Loss(rate=0.25) == ol.Loss(seen=0.75)
    assert ol.Loss(rate=[0.25, 1.0, 0.0]).arrival_probabilities(3).tolist() == [0.75, 0.0, 1.0]
    assert ol.Loss(seen=np.array([1, 0.5])).arrival_probabilities(2).tolist() == [1.0, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        ol.Loss(seen=0.5).arrival_probabilities(3)[0] = 1.0


def test_loss_is_played_at_its_rates() -> None:
    problem = problem_of(ol.Loss(seen=[1.0, 0.25, 0.0, 0.75]), 4)
    n = 20_000
    played = ol.simulate(problem, ol.FunctionPolicy(lambda info: 0, 2), n, seed=5, record=True)
    assert played.arrivals is not None
    seen = (played.arrivals == np.arange(4)).mean(axis=0)
    assert set(np.unique(played.arrivals - np.arange(4) * (played.arrivals >= 0))) == {-1, 0}
    assert seen[0] == 1.0
    assert seen[2] == 0.0
    for h, rate in ((1, 0.25), (3, 0.75)):
        assert abs(seen[h] - rate) < 4.5 * np.sqrt(rate * (1 - rate) / n)


# -- objects ----------------------------------------------------------------------------------------------------------

EVERY = [
    ol.ConstantDelay(2),
    ol.StochasticDelay([0.5, 0.25, 0.25], first=[0.5, 0.5]),
    ol.GeometricDelay(0.25),
    ol.GeometricDelay(0.25, first="same"),
    ol.GeometricDelay(0.25, first=(0.5, 0.5)),
    ol.HeavyTailedDelay(1.5, 2.0),
    ol.BernoulliDelay(0.25, steps=2),
    ol.EmpiricalDelay([1, 2, 2, 4]),
    ol.EmpiricalDelay({1: 0.5, 3: 0.5}, interarrival={0: 3, 2: 1}),
    ol.GeometricDelay(0.25).capped(3),
    ol.Loss(seen=0.75),
    ol.Lossy(ol.ConstantDelay(1), seen=0.75),
    ol.Loss(seen=(1.0, 0.5, 0.25)),
    ol.BurstyLoss(0.25, 0.5, seen_bad=0.125),
    ol.Lossy(ol.GeometricDelay(0.25), loss=ol.BurstyLoss(0.25, 0.5)),
]


@pytest.mark.parametrize("channel", EVERY, ids=repr)
def test_repr_makes_an_equal_channel(channel: Any) -> None:
    again = eval(repr(channel), {name: getattr(ol, name) for name in ol.__all__})
    assert again == channel
    assert hash(again) == hash(channel)


@pytest.mark.parametrize("channel", EVERY, ids=repr)
def test_pickling(channel: Any) -> None:
    again = pickle.loads(pickle.dumps(channel))
    assert again == channel
    assert hash(again) == hash(channel)
    assert type(again) is type(channel)


@pytest.mark.parametrize("channel", EVERY, ids=repr)
def test_a_control_period_comes_along(channel: Any) -> None:
    assert channel.period_ms is None
    timed = channel.with_period(20)
    assert timed.period_ms == 20
    assert channel.period_ms is None
    assert pickle.loads(pickle.dumps(timed)).period_ms == 20
    assert timed != channel
    assert timed.with_period(None) == channel


@pytest.mark.parametrize(("late", "steps"), [(0, 0), (1, 1), (20, 1), (20.5, 2), (40, 2), (0.1 * 3 / 0.1 * 20, 3)])
def test_milliseconds_are_rounded_up_to_whole_steps(late: float, steps: int) -> None:
    assert ol.ConstantDelay.from_ms(late, period_ms=20) == ol.ConstantDelay(steps).with_period(20)
    assert ol.EmpiricalDelay.from_ms([late, 0], period_ms=20) == ol.EmpiricalDelay([steps, 0]).with_period(20)
    assert ol.EmpiricalDelay.from_ms({late: 3, 99: 1}, period_ms=20) == ol.EmpiricalDelay({steps: 3, 5: 1}).with_period(
        20
    )
    assert ol.ConstantDelay.from_ms(late, period_ms=20).period_ms == 20


def test_a_geometric_delay_has_the_mean_that_was_measured() -> None:
    channel = ol.GeometricDelay.from_ms(30, period_ms=20)
    law = law_of(channel, horizon=200).interarrival[0, 0, 0]
    assert law @ np.arange(len(law)) == pytest.approx(30 / 20)
    assert channel.period_ms == 20


def test_every_channel_differs_from_every_other() -> None:
    for one, other in itertools.combinations(EVERY, 2):
        assert one != other
    assert len(set(EVERY)) == len(EVERY)


def test_a_large_table_is_not_printed() -> None:
    rows = np.full((2, 3, 2, 2), 0.5)
    assert repr(ol.StochasticDelay(rows)) == "StochasticDelay(<array (2, 3, 2, 2)>, first=[1.0])"


def test_channels_stay_read_only_after_pickling() -> None:
    for channel in (ol.StochasticDelay([0.5, 0.5]), ol.EmpiricalDelay([1, 2]), ol.EmpiricalDelay(interarrival=[0, 1])):
        again = pickle.loads(pickle.dumps(channel))
        for array in (channel.first, channel.interarrival, again.first, again.interarrival):
            assert not array.flags.writeable


def test_a_problem_travels() -> None:
    for channel in EVERY[:-2]:  # the last two are played only
        problem = problem_of(channel, 3)
        again = pickle.loads(pickle.dumps(problem))
        assert again.mdp == problem.mdp
        assert again.channel == channel
        assert ol.solve(again).value == ol.solve(problem).value


@pytest.mark.parametrize("channel", [ol.ConstantDelay(1), ol.Loss(seen=0.5)], ids=repr)
def test_a_plan_travels(channel: Any) -> None:
    problem = problem_of(channel, 3)
    plan = ol.solve(problem)
    policy = pickle.loads(pickle.dumps(plan)).policy
    assert float(ol.evaluate(problem, policy)) == pytest.approx(plan.value, abs=1e-12)
