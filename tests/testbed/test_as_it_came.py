"""A recording as it came, over UDP: with a verdict, and as `replay` has it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import oldlight as ol
from oldlight.testbed import relay_of, run_testbed
from oldlight.testbed.wire import Recorded
from oldlight.traces import Trace
from thread_workers import in_threads

NAN = float("nan")


def test_a_recording_as_it_came_has_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packets of 20 ms, one in five lost, silently: the prediction holds on the recording, and one of a better link does not."""
    in_threads(monkeypatch)
    rng = np.random.default_rng(0)
    trace = Trace(np.where(rng.random(3000) < 0.2, NAN, 20.0), sent_ms=20.0 * np.arange(3000), source="link.csv")
    mdp = ol.instances.sensing_chain(0.9, n_states=6)
    problem = ol.ImpairedMDP(mdp, ol.Lossy(ol.ConstantDelay(2), rate=0.2).with_period(20))
    result = run_testbed(problem, ol.solve(problem).policy, episodes=120, link=trace, in_order=False, seed=1)
    assert result.recording is not None
    assert result.agrees
    assert abs(result.mean - result.recording.value) <= 3.3 * (result.half_width + result.recording.half_width) / 1.96
    assert "within the interval on the recording as it came" in str(result)
    assert "  replayed   " in str(result)
    assert result.to_dict()["recording"]["value"] == result.recording.value
    better = dataclasses.replace(result, predicted=ol.Evaluation(10.0, True, 0.0, "walk", 1))
    assert not better.agrees
    assert "OUTSIDE the interval on the recording" in str(better)


def test_an_age_chain_on_its_recording_over_udp(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan behind the counted age chain is told the age of the link at the start, and earns over UDP what the replay says."""
    in_threads(monkeypatch)
    rng = np.random.default_rng(1)
    bad = ol.BurstyLoss(0.1, 0.3).lost(rng, 2000, 1)[:, 0]
    trace = Trace(np.where(bad, NAN, 10.0), sent_ms=20.0 * np.arange(2000), source="link.csv")
    mdp = ol.instances.sensing_chain(0.9, n_states=6).replace(horizon=8)
    problem = ol.ImpairedMDP(mdp, trace.fit(20).age_chain(horizon=8))
    result = run_testbed(problem, ol.solve(problem, tolerance=0.1).policy, episodes=150, link=trace, in_order=False)
    assert result.recording is not None
    assert abs(result.mean - result.recording.value) <= 3.3 * (result.half_width + result.recording.half_width) / 1.96
    link = relay_of(problem, trace, in_order=False)
    assert isinstance(link, Recorded)
    assert link.ages is not None
    for start in link.starts[:50].tolist():
        heard = link.before(start, 8)
        for h in range(8):
            newest = max(
                (i for i in range(-60, h + 1) if start + i >= 0 and i + link.late[start + i] <= h), default=-99
            )
            before = max(
                (i for i in range(-60, h) if start + i >= 0 and i + link.late[start + i] <= h - 1), default=-99
            )
            assert heard.get(h, []) == ([newest] if newest < 0 and (h == 0 or newest > before) else [])
