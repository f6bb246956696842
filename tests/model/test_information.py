"""Information states: codes, tables, what can be known, and the belief that follows from it."""

from __future__ import annotations

import itertools
import pickle
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import oldlight as ol
from oldlight.model.information import Information, Layout, check, decode, encode
from oracle import random_instance, random_pmf
from repeats import repeats


def make(
    channel: Any,
    *,
    S: int = 2,
    A: int = 2,
    H: int = 4,
    seed: int = 0,
    sparse: bool = False,
    warm: bool = False,
    pending: tuple[int, ...] = (),
) -> Any:
    P, R, rho = random_instance(np.random.default_rng(seed), S, A, H, sparse=sparse)
    mdp = ol.TabularMDP(P, R, horizon=H, initial=rho)
    start = ol.WarmStart() if warm else None
    return ol.ImpairedMDP(mdp, channel, start=start, actuation=len(pending), pending=pending)


def by_state_and_action(H: int, S: int, A: int, K: int = 3) -> ol.StochasticDelay:
    rng = np.random.default_rng(7)
    table = np.array([random_pmf(rng, K) for _ in range(H * S * A)]).reshape(H, S, A, K)
    return ol.StochasticDelay(table, first=[0.5, 0.25, 0.25])


DELAYED = {
    "at once": make(ol.ConstantDelay(0)),
    "constant, cold": make(ol.ConstantDelay(2), H=5),
    "constant, warm": make(ol.ConstantDelay(2), A=3, warm=True),
    "longer than the episode, cold": make(ol.ConstantDelay(9), H=3),
    "longer than the episode, warm": make(ol.ConstantDelay(4), H=3, warm=True),
    "Bernoulli": make(ol.BernoulliDelay(0.5), S=3, H=5),
    "geometric": make(ol.GeometricDelay(0.5, first="same"), H=4),
    "geometric, capped": make(ol.GeometricDelay(0.5, first="same").capped(2), A=3, H=5),
    "empirical": make(ol.EmpiricalDelay([0, 2, 3]), H=5),
    "gaps": make(ol.EmpiricalDelay(interarrival=[0, 2]), H=5),
    "by state and action": make(by_state_and_action(4, 3, 2), S=3),
    "one state, one action": make(ol.GeometricDelay(0.5, first="same"), S=1, A=1),
    "late actions": make(ol.ConstantDelay(1), H=5, pending=(1, 0)),
    "late actions, geometric": make(ol.GeometricDelay(0.5), H=4, pending=(1,)),
}
LOSSY = {
    "loss": make(ol.Loss(seen=0.5), S=3),
    "loss by step": make(ol.Loss(seen=[0.5, 0.0, 1.0, 0.25])),
    "loss, warm": make(ol.Loss(seen=0.5), warm=True),
    "late and lossy": make(ol.Lossy(ol.ConstantDelay(2), seen=0.5), H=5),
    "loss, late actions": make(ol.Loss(seen=[0.5, 0.0, 1.0, 0.25]), pending=(1,)),
    "late and lossy, late actions": make(ol.Lossy(ol.ConstantDelay(1), seen=0.5), H=5, pending=(0, 1)),
}
delayed = pytest.mark.parametrize("problem", DELAYED.values(), ids=DELAYED)
every = pytest.mark.parametrize("problem", [*DELAYED.values(), *LOSSY.values()], ids=[*DELAYED, *LOSSY])


# -- codes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("A", "m"), [(1, 4), (2, 0), (2, 5), (3, 3), (5, 2)])
def test_codes_number_the_queues(A: int, m: int) -> None:
    queues = list(itertools.product(range(A), repeat=m))
    codes = [encode(queue, A) for queue in queues]
    assert sorted(codes) == list(range(A**m))
    assert [decode(code, m, A) for code in codes] == queues


def test_code_arithmetic() -> None:
    A = 3
    for queue in itertools.product(range(A), repeat=3):
        code = encode(queue, A)
        assert code // A == encode(queue[1:], A)
        for a in range(A):
            assert code + a * A**3 == encode((*queue, a), A)
    assert encode((1, 0, 2), A) == 1 + 0 * 3 + 2 * 9


def test_short_ways_to_write_information() -> None:
    assert Information.nothing_seen((1, 0)) == (2, None, None, (1, 0), 3)
    assert Information.seen(1, 4, (0, 2, 2), waited=1) == (4, 1, 4, (0, 2, 2), 1)
    assert Information.seen(0, 3) == (0, 0, 3, (), 0)
    assert pickle.loads(pickle.dumps(Information.seen(0, 3))) == Information.seen(0, 3)


# -- the table --------------------------------------------------------------------------------------------------------


@delayed
def test_the_index_is_one_to_one_onto_the_table(problem: Any) -> None:
    layout = Layout.of(problem)
    infos = list(layout)
    assert [layout.index(info) for info in infos] == list(range(layout.size))
    assert len(set(infos)) == layout.size
    assert sum(layout.block_size(b.m) for h in range(layout.horizon) for b in layout.blocks(h)) + sum(
        layout.n_actions ** int(h) for h in np.flatnonzero(layout.root >= 0)
    ) == layout.size  # fmt: skip


def test_sizes_by_hand() -> None:
    S, A, H = 2, 3, 5
    assert Layout.of(make(ol.ConstantDelay(0), A=A, H=H)).size == S * H
    assert Layout.of(make(ol.ConstantDelay(2), A=A, H=H, warm=True)).size == S * A**2 * H
    assert Layout.of(make(ol.ConstantDelay(2), A=A, H=H)).size == 1 + A + S * A**2 * (H - 2)
    assert Layout.of(make(ol.ConstantDelay(9), A=A, H=3)).size == 1 + A + A**2
    # first seen at once, then Δ = 1 or 0 once: (m, δ) = (0, 0); (0, 0), (1, 1); then (0, 0) or (1, 0)
    assert Layout.of(make(ol.BernoulliDelay(0.5, steps=1), A=A, H=3)).size == S + (S + S * A) + (S + S * A)


def test_a_table_far_too_large_is_only_counted() -> None:
    layout = Layout.of(make(ol.ConstantDelay(40), S=2, A=5, H=50))
    assert layout.size == sum(5**h for h in range(40)) + 2 * 5**40 * 10


@delayed
def test_what_has_no_place_raises_key_error(problem: Any) -> None:
    layout = Layout.of(problem)
    for info in (
        Information(2, 0, 0, (0, 0), 9),
        Information(1, None, None, (0, 0), 3),
        Information(2, -7, 0, (0,) * 9),
    ):
        with pytest.raises(KeyError, match="no information state"):
            layout.index(info)


@pytest.mark.parametrize(
    "info",
    [
        Information(2, 1, 2, (0,), 0),  # there are two states
        Information(2, 1, -1, (0,), 0),
        Information(2, 1, 0, (2,), 0),  # and two actions
        Information(2, 1, 0, (-1,), 0),
        Information(2, 0, 0, (0,), 0),  # one action does not lead from step 0 to time 2
        Information(-1, -2, 0, (0,), 0),  # there are times 0..3
        Information(4, 3, 0, (0,), 0),
    ],
)
def test_what_cannot_be_written_has_no_place_either(info: Information) -> None:
    layout = Layout.of(make(ol.ConstantDelay(1)))
    assert 0 <= layout.index(Information(2, 1, 1, (1,), 0)) < layout.size
    with pytest.raises(KeyError, match="no information state"):
        layout.index(info)


# -- what is met in play ----------------------------------------------------------------------------------------------


def reconstructed(problem: Any, played: Any) -> Iterator[tuple[Information, int]]:
    """τ_h and the true s_h for every episode and time, from the record alone."""
    warmup, H = problem.warmup, problem.horizon
    for states, actions, arrivals in zip(played.states, played.actions, played.arrivals, strict=True):
        for h in range(H):
            there = [i for i in range(warmup + h + 1) if 0 <= arrivals[i] <= h]
            if not there:
                info = Information.nothing_seen(tuple(actions[warmup : warmup + h].tolist()))
            else:
                i = there[-1]
                waited = h - int(arrivals[i])
                info = Information(h, i - warmup, int(states[i]), tuple(actions[i : warmup + h].tolist()), waited)
            yield info, int(states[warmup + h])


def undecided(A: int) -> ol.FunctionPolicy:
    return ol.FunctionPolicy(lambda info: np.full(A, 1 / A), A)


@every
def test_every_state_of_play_is_possible_and_in_the_table(problem: Any) -> None:
    asked: set[Information] = set()

    def choose(info: Information) -> Any:
        asked.add(info)
        return np.full(problem.n_actions, 1 / problem.n_actions)

    played = ol.simulate(problem, ol.FunctionPolicy(choose, problem.n_actions), repeats(600, 1500), seed=3, record=True)
    met = {info for info, _ in reconstructed(problem, played)}
    chosen = {info for info in met if info.h >= problem.actuation}  # what was under way is not asked for
    assert chosen == asked  # the policy is asked with what the record says it knows
    for info in met:
        check(problem, info)
    if problem.arrival_probability is None:
        layout = Layout.of(problem)
        assert {layout.index(info) for info in met} <= set(range(layout.size))
        assert met <= set(layout)


@every
def test_belief_is_the_frequency_of_the_hidden_state(problem: Any) -> None:
    """χ² over all information states met, each with its own belief."""
    played = ol.simulate(problem, undecided(problem.n_actions), repeats(1200, 6000), seed=11, record=True)
    counts: dict[Information, Counter[int]] = defaultdict(Counter)
    for info, state in reconstructed(problem, played):
        counts[info][state] += 1
    statistic, freedom = 0.0, 0
    for info, hidden in counts.items():
        b = ol.belief(problem, info)
        n = hidden.total()
        assert b.sum() == pytest.approx(1.0, abs=1e-12)
        assert all(b[s] > 0 for s in hidden)
        likely = np.flatnonzero(b * n >= 5)
        if len(likely) > 1:
            rest = 1 - b[likely].sum()
            groups = [(hidden[int(s)], b[s] * n) for s in likely]
            if rest * n >= 5:
                groups.append((n - sum(k for k, _ in groups), rest * n))
            elif rest > 1e-12:  # too rare to count by itself: join it to the rarest
                groups[-1] = (n - sum(k for k, _ in groups[:-1]), n - sum(x for _, x in groups[:-1]))
            statistic += sum((k - x) ** 2 / x for k, x in groups)
            freedom += len(groups) - 1
    if freedom:
        assert chi2.sf(statistic, freedom) > 1e-4


# -- against a list of all trajectories -------------------------------------------------------------------------------


def all_trajectories(problem: Any) -> dict[Information, Any]:
    """P(τ_h, s_h) for every h, by listing states, actions and delays or losses one by one; uniform actions; cold.

    Under loss the delay is constant; what was under way before the start is done first.
    """
    H, S, A = problem.horizon, problem.n_states, problem.n_actions
    P, law, seen = problem.mdp.transitions, problem.law, problem.arrival_probability
    joint: dict[Information, Any] = defaultdict(lambda: np.zeros(S))

    def go(h: int, states: tuple[int, ...], acts: tuple[int, ...], when: tuple[int, ...], weight: float) -> None:
        """States 0..h and their arrival times (−1: lost) are drawn."""
        there = [i for i in range(h + 1) if 0 <= when[i] <= h]
        info = Information.nothing_seen(acts)
        if there:
            t = there[-1]
            info = Information(h, t, states[t], acts[t:], h - when[t])
        joint[info][states[h]] += weight
        if h == H - 1:
            return
        s, delay = states[-1], when[-1] - h
        choices = range(A) if h >= problem.actuation else [problem.pending[h]]
        for a, s2 in itertools.product(choices, range(S)):
            p = weight / len(choices) * P[h, s, a, s2]
            if seen is not None:
                outcomes = [(h + 1 + law.constant, seen[h + 1]), (-1, 1 - seen[h + 1])]
            else:
                pmf = np.broadcast_to(law.at_step(law.interarrival, h), (S, A, law.interarrival.shape[-1]))[s, a]
                outcomes = [(h + 1 + min(delay + k, law.longest_delay), q) for k, q in enumerate(pmf)]
            for time, q in outcomes:
                if p * q > 0:
                    go(h + 1, (*states, s2), (*acts, a), (*when, time), p * q)

    for s in range(S):
        first = [(law.constant, seen[0]), (-1, 1 - seen[0])] if seen is not None else enumerate(law.first)
        for time, q in first:
            if problem.initial[s] * q > 0:
                go(0, (s,), (), (time,), float(problem.initial[s] * q))
    return joint


SMALL = {
    "constant": make(ol.ConstantDelay(2)),
    "geometric": make(ol.GeometricDelay(0.5, first="same"), H=3),
    "capped": make(ol.GeometricDelay(0.5, first="same").capped(1), H=3),
    "gaps": make(ol.EmpiricalDelay([0, 2], interarrival=[0, 2]), H=4),
    "Bernoulli, sparse": make(ol.BernoulliDelay(0.5), S=3, seed=2, sparse=True),
    "loss": make(ol.Loss(seen=0.5)),
    "loss by step, sparse": make(ol.Loss(seen=[0.5, 0.0, 1.0, 0.25]), S=3, seed=4, sparse=True),
    "late and lossy": make(ol.Lossy(ol.ConstantDelay(1), seen=0.5)),
    "late and lossy by step": make(ol.Lossy(ol.ConstantDelay(2), seen=[0.5, 0.0, 1.0, 0.25, 0.5]), H=5),
    "late actions": make(ol.ConstantDelay(1), pending=(1,)),
    "late actions, geometric": make(ol.GeometricDelay(0.5), pending=(0, 1)),
    "late actions, loss": make(ol.Loss(seen=[0.5, 0.0, 1.0, 0.25]), pending=(1,)),
    "late actions, late and lossy": make(ol.Lossy(ol.ConstantDelay(1), seen=0.5), pending=(1,)),
}


@pytest.mark.parametrize("problem", [*SMALL.values(), make(by_state_and_action(4, 2, 2))], ids=[*SMALL, "by s and a"])
def test_belief_is_the_conditional_law_exactly(problem: Any) -> None:
    joint = all_trajectories(problem)
    for info, weights in joint.items():
        assert ol.belief(problem, info) == pytest.approx(weights / weights.sum(), abs=1e-12)
    for h in range(problem.horizon):
        assert sum(w.sum() for info, w in joint.items() if info.h == h) == pytest.approx(1.0, abs=1e-12)


def everything_writable(problem: Any) -> Iterator[Information]:
    """All tuples of the right kind, possible or not."""
    H, S, A = problem.horizon, problem.n_states, problem.n_actions
    for h in range(H):
        for queue in itertools.product(range(A), repeat=h):
            yield Information.nothing_seen(queue)
        for t in range(h + 1):
            for queue in itertools.product(range(A), repeat=h - t):
                for s, waited in itertools.product(range(S), range(h - t + 1)):
                    yield Information(h, t, s, queue, waited)


def allowed(problem: Any) -> set[Information]:
    passed = set()
    for info in everything_writable(problem):
        try:
            check(problem, info)
        except ValueError:
            continue
        passed.add(info)
    return passed


@pytest.mark.parametrize("problem", SMALL.values(), ids=SMALL)
def test_check_passes_what_can_happen_and_nothing_else(problem: Any) -> None:
    assert allowed(problem) == set(all_trajectories(problem))


def test_check_knows_that_delays_can_depend_on_the_state() -> None:
    """Only state 1 delays what comes after it, and state 1 is never reached."""
    P = np.zeros((2, 1, 2))
    P[:, :, 0] = 1.0
    mdp = ol.TabularMDP(P, np.zeros((2, 1)), horizon=3, initial=[1, 0])
    problem = ol.ImpairedMDP(mdp, ol.StochasticDelay([[[1.0, 0.0]], [[0.5, 0.5]]]))
    assert allowed(problem) == set(all_trajectories(problem))


# -- impossible information, one test a reason ------------------------------------------------------------------------

COLD = make(ol.ConstantDelay(1), H=4)
WARM = make(ol.ConstantDelay(2), H=4, warm=True)
GAPS = make(ol.EmpiricalDelay(interarrival=[0, 2]), H=5)
BY_ACTION = make(ol.StochasticDelay([[[1.0, 0.0], [0.0, 1.0]]]), H=4)
LOSS = make(ol.Loss(seen=[0.5, 0.0, 1.0, 0.5]), H=4)
STUCK = ol.ImpairedMDP(
    ol.TabularMDP(np.eye(2)[:, None, :], [[0], [0]], horizon=3, initial=[1, 0]), ol.GeometricDelay(0.5)
)
REASONS = [
    (COLD, Information(4, 3, 0, (0,), 0), "time h = 4 is outside 0..3"),
    (COLD, Information(-1, -1, 0, (), 0), "time h = -1 is outside 0..3"),
    (COLD, Information(1, 0, 0, (2,), 0), "action 2 in the queue is outside 0..1"),
    (COLD, Information(1, 0, None, (0,), 0), "t and state must both be given, or both be None"),
    (COLD, Information(0, None, None, (0,), 1), "nothing seen by time 0 means 0 actions in the queue, not 1"),
    (WARM, Information.nothing_seen(), "after a warm start something has always been seen"),
    (COLD, Information.nothing_seen((0,)), "the first observation has always arrived by time 1"),
    (LOSS, Information.nothing_seen((0, 1)), "the observation of step 2 is always seen"),
    (COLD, Information(1, 2, 0, (), 0), "the newest visible step t = 2 is outside 0..1"),
    (WARM, Information(0, -3, 0, (0, 0, 0), 0), "the newest visible step t = -3 is outside -2..0"),
    (COLD, Information(1, 0, 2, (0,), 0), "state 2 is outside 0..1"),
    (COLD, Information(2, 1, 0, (0, 0), 0), "from step t = 1 to time h = 2 there are 1 actions, not 2"),
    (STUCK, Information.seen(1, 1), "no way of acting reaches state 1 at step 1"),
    (LOSS, Information.seen(1, 0), "the observation of step 1 is never seen"),
    (LOSS, Information.seen(0, 0, (1, 1), 2), "the observation of step 2 is always seen"),
    (WARM, Information.seen(0, 0), "with a constant delay 2 the newest visible step at time 0 is -2"),
    (WARM, Information(1, -1, 0, (0, 0), 1), "with a constant delay 2 the newest visible step at time 1 is -1"),
    (GAPS, Information(1, 0, 0, (0,), 2), "waited = 2 is outside 0..1"),
    (GAPS, Information(1, 0, 0, (0,), -1), "waited = -1 is outside 0..1"),
    (GAPS, Information(2, 1, 0, (0,), 0), "cannot be exactly 1 late"),
    (COLD, Information(0, 0, 0, (), 0), "cannot be exactly 0 late"),
    (BY_ACTION, Information(1, 0, 0, (0,), 1), "after state 0 and action 0 the next observation never takes 1 step"),
]


@pytest.mark.parametrize(("problem", "info", "why"), REASONS, ids=[why for _, _, why in REASONS])
def test_impossible_information_says_why(problem: Any, info: Information, why: str) -> None:
    with pytest.raises(ValueError, match="impossible information") as refusal:
        ol.belief(problem, info)
    assert why in str(refusal.value)
    assert str(tuple(info)) in str(refusal.value)


def test_its_possible_neighbours_are_fine() -> None:
    for problem, info in (
        (COLD, Information(1, 0, 0, (0,), 0)),
        (WARM, Information(0, -2, 0, (0, 0), 0)),
        (GAPS, Information(2, 0, 0, (0, 0), 2)),
        (BY_ACTION, Information(1, 0, 0, (1,), 1)),
        (LOSS, Information.nothing_seen((0,))),
        (LOSS, Information.seen(2, 1, (1,), 1)),
        (STUCK, Information.seen(1, 0)),
    ):
        assert ol.belief(problem, info).sum() == pytest.approx(1.0)
