"""Measured links: the Wi-Fi law, deadlines, channels as files, what is shown."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.registry import channel_of
from oldlight.traces import WIFI, Trace, read_trace, save_channel, wifi
from oldlight.traces.age_plan import BeliefPlan
from oldlight.traces.fit import delay_laws
from trace_cases import NAN, same

# -- the Wi-Fi law ----------------------------------------------------------------------------------------------------


def test_the_wifi_law() -> None:
    """The numbers of the published table, at every step of an episode."""
    law = wifi().law(20, 1, 1)
    assert law.first.tolist() == pytest.approx([0.0, 0.3082, 0.5927, 0.0829, 0.0075, 0.0031, 0.0056], abs=1e-15)
    assert sum(WIFI.values()) == pytest.approx(1.0, abs=1e-12)
    assert law.max_delay == 6
    laws = delay_laws(law)
    assert np.allclose(laws[:, :7], law.first, atol=1e-15)
    assert float(laws[9] @ np.arange(laws.shape[1])) == pytest.approx(1.8214, abs=1e-9)
    assert channel_of("wifi") == wifi()
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8, n_states=6, n_actions=3), wifi())
    by_delay = [ol.solve(ol.ImpairedMDP(problem.mdp, ol.ConstantDelay(d))).value for d in WIFI]
    best = ol.solve(problem, depth=3)
    assert (
        best.lower <= float(np.dot(by_delay, list(WIFI.values()))) + 1e-9
    )  # who knew the delay beforehand could do so well


# -- channels ---------------------------------------------------------------------------------------------------------


def test_a_deadline() -> None:
    delays = [5, 25, 10, NAN, 45, 12, 70, 3, 39, 41]
    fit = Trace(delays).fit(20, horizon=4)
    assert fit.with_deadline(4) == ol.Lossy(ol.ConstantDelay(4), rate=0.1).with_period(20)
    assert fit.with_deadline(2) == ol.Lossy(ol.ConstantDelay(2), rate=0.4).with_period(20)
    assert fit.with_deadline(0) == ol.Loss(rate=1.0).with_period(20)
    assert Trace(np.array(delays)[:3]).fit(20, horizon=2).with_deadline(2) == ol.ConstantDelay(2).with_period(20)
    assert fit.with_deadline(2).period_ms == 20
    with pytest.raises(ValueError, match="d is -1"):
        fit.with_deadline(-1)
    short = Trace(delays).fit(20, horizon=2)  # a deadline may be longer than the fit's episodes
    for d in range(6):
        assert short.with_deadline(d) == fit.with_deadline(d)
        assert short.lost_by(d) == np.mean([not x <= 20 * d for x in delays])
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), fit.with_deadline(2))
    assert ol.solve(problem).exact


def test_channel_files_and_words(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    delays = rng.gamma(2.0, 12.0, 800)
    delays[rng.random(800) < 0.05] = NAN
    path = tmp_path / "link.csv"
    rows = [f"{20 * i},{'' if np.isnan(x) else 20 * i + x}" for i, x in enumerate(delays)]
    path.write_text("sent_ms,received_ms\n" + "\n".join(rows))
    trace = read_trace(path)
    fit = trace.fit(25)
    target = fit.save(tmp_path / "link.json")
    assert channel_of(f"file:{target}") == fit.channel() == trace.channel(25)
    assert channel_of(f"trace:{path}@25") == fit.channel()
    assert channel_of(f"trace:{path}") == trace.channel(20)
    assert channel_of(f"trace:{path}@25").delay.period_ms == 25  # type: ignore[union-attr]
    by_step = fit.save(tmp_path / "by_step.json", by_step=True)
    assert channel_of(f"file:{by_step}") == trace.channel(25, horizon=10)
    save_channel(tmp_path / "deadline.json", fit.with_deadline(3))
    assert channel_of(f"file:{tmp_path / 'deadline.json'}") == fit.with_deadline(3)
    data = json.loads(json.dumps(fit.to_dict()))
    assert channel_of(data["channel"]) == fit.model() == fit.model(data["recommended"])
    assert data["tests"][0]["p_value"] == fit.tests[0].p_value
    mdp = ol.instances.sensing_chain(0.8)
    assert ol.simulate(ol.ImpairedMDP(mdp, fit.channel()), ol.FunctionPolicy(lambda info: 0, 5), 100, seed=0).mean > 0


# -- what is shown ----------------------------------------------------------------------------------------------------


def test_statistics_of_a_trace() -> None:
    rng, n = np.random.default_rng(5), 40_000
    x = np.zeros(n)
    for i in range(1, n):
        x[i] = 0.7 * x[i - 1] + rng.normal()
    delays = 100 + x
    trace = Trace(delays, sent_ms=np.cumsum(rng.uniform(9, 11, n)))
    assert trace.mean_ms == pytest.approx(delays.mean())
    assert same(trace.quantiles_ms([0.1, 0.5]), np.quantile(delays, [0.1, 0.5]))
    assert trace.autocorrelation(3) == pytest.approx([1.0, 0.7, 0.49, 0.343], abs=4 * np.sqrt(3 / n))
    assert trace.interval_ms == pytest.approx(10.0, abs=0.05)
    holes = delays.copy()
    holes[rng.random(n) < 0.3] = NAN
    assert Trace(holes).autocorrelation(2) == pytest.approx([1.0, 0.7, 0.49], abs=6 * np.sqrt(3 / n))
    runs_of = Trace([NAN, 1, NAN, NAN, 1, 1, NAN]).loss_runs
    assert runs_of.tolist() == [1, 2, 1]
    assert Trace([1.0, 1.0]).autocorrelation(1).tolist() == [0.0, 0.0]


def test_it_reads_well() -> None:
    trace = Trace([5, 25, 10, NAN, 45, 12], sent_ms=20 * np.arange(6), source="link.csv")
    assert str(trace).splitlines()[0] == "link.csv: 6 messages sent every 20 ms for 0.12 s, 16.67% lost"
    text = str(trace.fit(horizon=3))
    assert "at 20 ms a tick, in episodes of 3 ticks (6 ticks measured):" in text
    assert "first delay d_0      {1: 0.7500, 2: 0.2500}" in text
    assert "lost                 16.67%, one by one" in text
    assert "runs of losses         p = 1 " in text
    assert "no model: link.csv: nothing to count" in text  # six messages
    fit = trace.fit(horizon=3)
    assert fit.text() == str(fit)
    first, last = fit.text(deadline=1).splitlines()[-2:]
    assert first == "with a deadline of 1 ticks (20 ms): 50.00% lost or later"
    assert last == f"channel: {fit.with_deadline(1)!r}"
    data = fit.to_dict(deadline=1)
    assert (data["deadline"], data["lost_by_deadline"]) == (1, 0.5)
    assert channel_of(data["channel"]) == fit.with_deadline(1)
    assert fit.to_dict()["deadline"] is None


def test_pictures(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    rng = np.random.default_rng(0)
    delays = rng.gamma(2.0, 12.0, 300)
    delays[::7] = NAN
    trace = Trace(delays, sent_ms=20 * np.arange(300), source="link.csv")
    ax = Figure().subplots()
    assert trace.plot(ax) is ax
    assert [len(line.get_xdata()) for line in ax.get_lines()] == [300, int(trace.lost.sum())]
    figure = trace.fit(20).figure()
    assert len(figure.axes) == 4
    figure.savefig(tmp_path / "trace.png")
    assert (tmp_path / "trace.png").stat().st_size > 10_000
    assert len(Trace([1.0, 1.0, 1.0]).fit(20, horizon=1).figure().axes) == 4


def test_the_page_runs_and_shows_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "traces.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)
    printed = capsys.readouterr().out
    shown = [line[4:] for line in page.splitlines() if line.startswith("    ")]
    for begin, lines in (
        ("link.csv: 4,000 messages sent every 20 ms for 80 s, 2.73% lost", 20),
        ("link.csv at 20 ms a tick, 2,000", 7),
    ):
        first = next(i for i, line in enumerate(shown) if line.startswith(begin))
        for line in shown[first : first + lines]:
            assert line in printed.splitlines()


def test_ties_of_qmdp_are_broken_alike_on_every_machine() -> None:
    """A product of matrices is rounded otherwise on another processor; between equal actions the choice must not follow that."""
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "packets:0=0.5,1=0.3,2=0.2")
    plan, other, rng = BeliefPlan(problem), BeliefPlan(problem), np.random.default_rng(0)
    other.q = other.q * (1.0 + 1e-15 * rng.uniform(-1.0, 1.0, other.q.shape))
    asked = [
        ol.LinkInformation(h=h, node=2, t=h - 2, state=s, queue=(a, b))
        for h in range(2, problem.horizon)
        for s in range(problem.n_states)
        for a, b in ((0, 1), (1, 0), (2, 3))
    ]
    rounded = [int((other.belief(info) @ other.q[info.h]).argmax()) for info in asked]
    assert [plan.action(info) for info in asked] == [other.action(info) for info in asked] != rounded
