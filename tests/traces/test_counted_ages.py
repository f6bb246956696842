"""The age at the control ticks: by brute force over the messages, and the chain that is counted from it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import oldlight as ol
from oldlight.traces import Trace, compare_models
from oldlight.traces.candidates import (
    Laws,
    Piece,
    channels,
    different_pairs,
    predicted,
    recommended,
    scores,
    usable_age,
)
from oldlight.traces.counted import AgeCounts, kernel_of, transitions
from oldlight.traces.ticks import NEVER, PHASES, ages_of, runs_of
from repeats import repeats
from trace_cases import NAN


def random_trace(seed: int, n: int = 60) -> Trace:
    rng = np.random.default_rng(seed)
    sent = np.cumsum(rng.uniform(5, 25, n))
    return Trace(np.where(rng.random(n) < 0.2, NAN, rng.gamma(2, 12, n)), sent_ms=sent)


def age_by_hand(trace: Trace, T: float, phase: float, j: int) -> int:
    """At tick j the newest message that has arrived by φ + jT was sent at x: j − ⌊x/T⌋; nothing yet: j + 1."""
    assert trace.sent_ms is not None
    origin, now = trace.sent_ms[0] + phase * T, trace.sent_ms[0] + (phase + j) * T
    arrived = [
        math.floor((x - origin) / T)
        for x, d in zip(trace.sent_ms, trace.delay_ms, strict=True)
        if not math.isnan(d) and x + d <= now
    ]
    return j - max((i for i in arrived if i >= 0), default=-1)


@pytest.mark.parametrize("period", [7.0, 20.0, 55.0])
def test_ages_against_the_definition(period: float) -> None:
    for seed in range(4):
        trace = random_trace(seed)
        runs, _ = runs_of(trace, period)
        assert [run.phase for run in runs] == [(p + 0.5) / PHASES for p in range(PHASES)]
        for run in runs:
            wanted = [age_by_hand(trace, period, run.phase, j) for j in range(len(run))]
            assert ages_of(run.late).tolist() == wanted


def test_one_message_a_tick() -> None:
    trace = Trace([5, 45, NAN, 12], sent_ms=[0, 40, 80, 120])
    for run in runs_of(trace, 20.0, per_tick=True)[0]:
        near = np.abs((np.arange(len(run)) + run.phase)[:, None] * 20 - np.array([0, 40, 80, 120])).argmin(axis=1)
        assert run.late.tolist() == [[1, 3, NEVER, 1][i] for i in near]
    untimed, notes = runs_of(Trace([5, 45, NAN, 12]), 20.0)
    assert [run.late.tolist() for run in untimed] == [[1, 3, NEVER, 1]]
    assert "each is taken for one tick of 20 ms" in notes[0]


def test_sessions_do_not_run_on() -> None:
    trace = Trace([5.0] * 6, sent_ms=[0, 20, 40, 0, 20, 40], session=[0, 0, 0, 1, 1, 1])
    runs, _ = runs_of(trace, 20.0)
    assert len(runs) == 2 * PHASES
    assert all(len(run) in (2, 3) for run in runs)
    pairs = sum(len(run) - 1 - run.skip for run in runs)
    assert len(transitions(AgeCounts(trace, 20.0, runs).ages())[0]) == pairs


def test_the_kernel_by_hand() -> None:
    """Ages 1 1 2 3 1 2 2, w = 4 visits of the prior: nine tenths the neighbouring rows, one tenth all rows."""
    ages = np.array([1, 1, 2, 3, 1, 2, 2])
    rows = kernel_of(transitions([ages]), 1)
    # counts, columns (0, 1, 2, nothing newer): row 1: (0,1,0,2), row 2: (0,0,1,1), row 3: (0,1,0,0)
    counts = np.array([[0, 0, 0, 0], [0, 1, 0, 2], [0, 0, 1, 1], [0, 1, 0, 0]], dtype=float)
    assert len(rows) == 3  # row 3 has fewer than three visits and is pooled in row 2, the deepest jump
    pooled = np.array([counts[0], counts[1], counts[2] + counts[3]])
    every = pooled.sum(axis=0) / pooled.sum()
    for m in range(3):
        near = pooled[max(m - 1, 0) : m + 2].sum(axis=0)
        row = pooled[m] + 4 * (0.9 * near / near.sum() + 0.1 * every)
        wanted = [*row[: m + 1], row[m + 1 :].sum()]
        assert rows[m] == pytest.approx(np.array(wanted) / sum(wanted), abs=1e-12)


def test_a_chain_is_found_again() -> None:
    """Ages drawn from a known chain, as a recording: the counted kernel is that kernel, and `first` its stationary law."""
    kernel = [[0.0, 1.0], [0.0, 0.85, 0.15], [0.0, 0.5, 0.2, 0.3], [0.0, 0.2, 0.1, 0.0, 0.7]]
    rng, n = np.random.default_rng(1), 20_000
    age, late = 1, np.full(n, NEVER)
    for j in range(1, n):
        p = kernel[min(age, 3)]
        k = rng.choice(len(p), p=p)
        age = age + 1 if k == len(p) - 1 else k
        if k < len(p) - 1 and late[j - k] == NEVER:
            late[j - k] = k
    trace = Trace(np.where(late == NEVER, NAN, 20.0 * late), sent_ms=20.0 * np.arange(n))
    chain = trace.fit(20, per_tick=True).age_chain(horizon=50)
    error = 5 * np.sqrt(0.25 / 300)  # five standard errors of the row that is met least
    for m in (1, 2, 3):
        assert chain.kernel[m][: m + 1] == pytest.approx(np.array(kernel[m][: m + 1]), abs=error)
    assert chain.first @ np.arange(len(chain.first)) > 1


def test_first_is_counted_where_replay_begins() -> None:
    """One outage at the end: no episode of 20 ticks begins in it."""
    delay = np.full(200, 5.0)
    delay[185:] = NAN
    fit = Trace(delay, sent_ms=20.0 * np.arange(200)).fit(20, per_tick=True)
    assert fit.age_chain(horizon=20).first.tolist() == [0.0, 1.0]
    assert fit.ages.first(None, 60)[2:].sum() == pytest.approx(
        14.5 / 198, rel=0.1
    )  # the last tick with a message is 184 or 185


def test_what_is_older_is_not_used() -> None:
    late = np.array([1, 1, 5, 1, 9, 1, NEVER, 1] * 20)
    trace = Trace(np.where(late == NEVER, NAN, 20.0 * late), sent_ms=20.0 * np.arange(len(late)))
    counts = trace.fit(20, per_tick=True).ages
    assert counts.cut_at(4).cut == pytest.approx(2 / 7, abs=0.01)
    assert counts.cut_at(9).cut == 0
    assert max(len(row) - 2 for row in counts.cut_at(4).kernel()) <= 60
    jumps = {k for m, row in enumerate(counts.cut_at(4).kernel()) for k in np.flatnonzero(row[: m + 1])}
    assert jumps == {1}


def test_one_long_outage_is_said_to_be_one() -> None:
    delay = np.full(300, 10.0)
    delay[:180] = NAN
    fit = Trace(delay, sent_ms=100.0 * np.arange(300), source="starlink").fit(100)
    says = r"starlink: nothing to count: one outage of 18\.\d s in a recording of 29\.9 s"
    with pytest.raises(ValueError, match=says):
        fit.age_chain()
    with pytest.raises(ValueError, match="nothing to count"):
        fit.model()
    assert "no model: starlink: nothing to count" in str(fit)
    assert fit.to_dict()["channel"] is None


def test_a_recording_that_is_too_short_is_not_called_an_outage() -> None:
    fit = Trace([12.0, 13.0, 15.0], sent_ms=[0.0, 20.0, 40.0], source="short").fit(20)
    with pytest.raises(ValueError, match=r"short: nothing to count: .* in which none is lost\. Measure longer"):
        fit.age_chain()


# -- candidates -------------------------------------------------------------------------------------------------------


def drawn(channel: ol.PacketChannel, n: int, seed: int) -> Trace:
    rng = np.random.default_rng(seed)
    f = np.append((1 - channel.lost) * np.asarray(channel.delays), channel.lost)
    late = rng.choice(len(f), p=f, size=n)
    return Trace(np.where(late == len(f) - 1, NAN, 20.0 * late), sent_ms=20.0 * np.arange(n))


def test_the_laws_of_the_candidates_are_those_of_the_channels() -> None:
    """P(next age | age) of each candidate against the automaton of its channel."""
    rng = np.random.default_rng(3)
    late = np.where(rng.random(400) < 0.1, NEVER, rng.choice([1, 2, 3], p=[0.6, 0.3, 0.1], size=400))
    laws = Laws([Piece(late, ages_of(late))], 3, 1)
    to_bad, to_good = laws.gilbert()
    cases = {
        "packets": (laws.packets(), ol.PacketChannel(laws.delays, lost=laws.lost)),
        "FIFO": (laws.fifo(), ol.FIFODelay(laws.delays)),
        "bursts": (laws.bursts(), ol.Lossy(ol.ConstantDelay(1), loss=ol.BurstyLoss(to_bad, to_good))),
        "constant": (laws.always(), ol.ConstantDelay(laws.constant)),
    }
    for name, (row, channel) in cases.items():
        link = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), channel).automaton
        at = {(age, n): 1.0 for p, n, age in link.row(-1) if age == 0} or {(-1, n): 1.0 for _, n, _ in link.row(-1)}
        for _ in range(7):
            after: dict[tuple[int, int], float] = {}
            for m, n in at:
                found: dict[int, float] = {}
                for p, target, age in link.row(n):
                    k = age if age >= 0 else -1 if m < 0 else m + 1
                    found[k] = found.get(k, 0.0) + p
                    after[k, target] = 1.0
                if m >= 0 and link.row(n):
                    wanted = row(m)
                    assert {k: p for k, p in enumerate(wanted) if p > 1e-12} == pytest.approx(found), (name, m)
            at = after


def test_the_true_model_is_recommended() -> None:
    packets = ol.PacketChannel({1: 0.7, 2: 0.2, 4: 0.1}, lost=0.1)
    fit = drawn(packets, 4000, 0).fit(20, per_tick=True)
    assert fit.recommended[0] == "packets"
    found = fit.model("packets")
    assert isinstance(found, ol.PacketChannel)
    assert found.lost == pytest.approx(0.1, abs=4 * 0.3 / np.sqrt(4000))
    constant = Trace(np.full(500, 15.0), sent_ms=20.0 * np.arange(500)).fit(20, per_tick=True)
    assert constant.recommended[0] == "constant"
    assert constant.model() == ol.ConstantDelay(1).with_period(20)
    rng = np.random.default_rng(0)
    bad = ol.BurstyLoss(0.01, 0.1).lost(rng, 8_000, 1)[:, 0]
    bursts = Trace(np.where(bad, NAN, 15.0), sent_ms=20.0 * np.arange(8_000)).fit(20, per_tick=True)
    assert bursts.recommended[0] == "Gilbert–Elliott"
    assert {one.name: one.behind > 3 * one.error for one in bursts.scores}["packets"]
    with pytest.raises(ValueError, match="name is 'pigeons'"):
        bursts.model("pigeons")


def test_scores_are_of_ticks_that_were_not_fitted() -> None:
    """A likelihood of zero is paid for once, not infinitely; the mean is over all ticks."""
    trace = drawn(ol.PacketChannel({1: 1.0}, lost=0.05), 3000, 1)
    counts = trace.fit(20, per_tick=True).ages
    found = {one.name: one for one in scores(counts)}
    assert found["constant"].impossible == pytest.approx(0.05, abs=4 * np.sqrt(0.05 / 3000))
    assert np.isfinite(found["constant"].score)
    entropy = 0.95 * np.log(0.95) + 0.05 * np.log(0.05)
    assert found["packets"].score == pytest.approx(entropy, abs=0.03)
    assert recommended(scores(counts))[0] == "packets"
    before, after, times = different_pairs(np.array([1, 1, 400, 900, 900]), np.array([2, 2, 401, 1, 800]))
    assert (before.tolist(), after.tolist(), times.tolist()) == ([1, 250, 250, 250], [2, 1, 250, 251], [2, 1, 1, 1])
    assert predicted(lambda m: np.append(np.zeros(m + 1), 1.0), before, after).tolist() == [1.0, 0.0, 0.0, 1.0]


def test_deadlines_are_among_the_candidates() -> None:
    counts = drawn(ol.PacketChannel({0: 0.5, 2: 0.5}, lost=0.1), 4000, 2).fit(20, per_tick=True).ages
    found = channels(counts, 10)
    late = np.concatenate([run.late[run.skip :] for run in counts.runs])
    assert usable_age(counts) == 2
    for d in range(3):
        assert found[f"deadline {d}"] == ol.PacketChannel({d: 1.0}, lost=float((late > d).mean())).with_period(20)


@pytest.mark.slow
def test_models_are_compared_by_what_their_plans_earn() -> None:
    """A link with outages: independent packets promise too much, the age chain does not, and its plan is no worse than theirs."""
    rng = np.random.default_rng(5)
    bad = ol.BurstyLoss(0.02, 0.1).lost(rng, 10_000, 1)[:, 0]
    trace = Trace(np.where(bad, NAN, 5.0), sent_ms=20.0 * np.arange(10_000), source="link")
    mdp = ol.instances.sensing_chain(0.8, n_states=6).replace(horizon=15)
    found = compare_models(
        trace, mdp, period_ms=20, models=["packets", "deadlines", "QMDP"], episodes=repeats(1000, 2000), per_tick=True
    )
    assert found["age chain"].verdict == "holds"
    assert found["packets"].predicted > found["packets"].earned.value + found["packets"].earned.half_width
    assert found["packets"].verdict.endswith("too good")
    for other in ("packets", found.best_deadline, "QMDP"):
        more, wide = found.difference("age chain", str(other))
        assert more > -wide
    assert "Do not trust the predictions of packets" in found.verdict
    assert "age chain" in str(found)
    assert len(found.figure().axes) == 1
    assert found.to_dict()["rows"][0]["verdict"] == "holds"
    short = compare_models(trace.part(0, 0.05), mdp, period_ms=20, models=[], episodes=500, per_tick=True)
    assert short["age chain"].earned.half_width > found["age chain"].earned.half_width
    with pytest.raises(ValueError, match="models is 'pigeons'"):
        compare_models(trace, mdp, period_ms=20, models=["pigeons"])
    with pytest.raises(KeyError, match="no model 'FIFO'"):
        found["FIFO"]
