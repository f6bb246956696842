"""Links side by side: values against plans, a plan on another link against exact values, recordings that are known links."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol

MDP = ol.instances.sensing_chain(0.8, n_states=6, horizon=6)
N = 4_000
CHANNELS: dict[str, Any] = {
    "near": "constant:1",
    "far": "constant:2",
    "radio": "loss:0.3",
    "bad radio": ol.Loss(rate=0.7),
    "packets": ol.PacketChannel({0: 0.3, 1: 0.4, 2: 0.3}, lost=0.1),
    "slow": ol.Periodic(3),
}


@pytest.fixture(scope="module")
def compared() -> ol.ChannelComparison:
    return ol.compare_channels(MDP, CHANNELS, episodes=N, seed=3)


def test_values_are_those_of_plans_and_plans_earn_them(compared: ol.ChannelComparison) -> None:
    full = ol.solve(ol.ImpairedMDP(MDP, "none")).value
    assert compared.full == pytest.approx(full)
    for k, (name, channel) in enumerate(CHANNELS.items()):
        value = ol.solve(ol.ImpairedMDP(MDP, channel)).value
        row = compared[name]
        assert row.low - 1e-9 <= value <= row.high + 1e-9
        assert row.price == pytest.approx(full - row.value)
        assert abs(compared.earned[k, k] - value) <= 2 * compared.earned_half_width[k, k] + (row.high - row.low)
        assert compared.loss[k, k] == 0
    assert compared.best == max(compared.rows, key=lambda row: row.value).name
    assert "is the best link" in compared.verdict


def test_a_plan_on_another_link_earns_what_it_must(compared: ol.ChannelComparison) -> None:
    """A plan for a delay of 2 holds what comes earlier; a plan for one loss rate has an exact value at another."""
    at = compared.names.index
    far = ol.solve(ol.ImpairedMDP(MDP, "constant:2")).value
    i, j = at("far"), at("near")
    assert abs(compared.earned[i, j] - far) <= 2 * compared.earned_half_width[i, j]
    near = ol.solve(ol.ImpairedMDP(MDP, "constant:1")).value
    assert abs(compared.loss[i, j] - (near - far)) <= 2 * compared.loss_half_width[i, j]
    for here, there in (("radio", "bad radio"), ("bad radio", "radio")):
        plan = ol.solve(ol.ImpairedMDP(MDP, CHANNELS[here])).policy
        worth = ol.evaluate(ol.ImpairedMDP(MDP, CHANNELS[there]), plan).value
        i, j = at(here), at(there)
        assert abs(compared.earned[i, j] - worth) <= 2 * compared.earned_half_width[i, j]
    best = np.array([ol.solve(ol.ImpairedMDP(MDP, channel)).value for channel in CHANNELS.values()])
    assert (compared.earned <= best + 2 * compared.earned_half_width).all()  # no plan beats the optimum of a link
    assert (compared.loss >= -2 * compared.loss_half_width).all()


def test_the_safest_plan_has_the_smallest_largest_loss(compared: ol.ChannelComparison) -> None:
    name, most = compared.safest
    assert most == compared.loss[compared.names.index(name)].max() == compared.loss.max(axis=1).min()
    assert f"plan for {name}" in compared.verdict


def test_a_recording_of_a_known_link_is_that_link(tmp_path: Path) -> None:
    """Messages that take 15 ms, read every 20 ms, are a delay of one step; so is the file of that recording."""
    sent = 20.0 * np.arange(3000)
    steady = ol.Trace(np.full(3000, 15.0), sent_ms=sent, source="steady")
    file = tmp_path / "steady.csv"
    file.write_text("sent_ms,received_ms\n" + "\n".join(f"{t:g},{t + 15:g}" for t in sent))
    rng = np.random.default_rng(4)
    lossy = ol.Trace(np.where(rng.random(3000) < 0.3, np.nan, 0.0), sent_ms=sent, source="lossy")
    links: dict[str, Any] = {
        "wired": "constant:1",
        "recorded": steady,
        "read": file,
        "lossy": lossy,
        "radio": "loss:0.3",
    }
    found = ol.compare_channels(MDP, links, period_ms=20, episodes=2_000, per_tick=True)
    wired, radio = found["wired"], found["radio"]
    for name in ("recorded", "read"):
        assert abs(found[name].value - wired.value) <= 2 * found[name].half_width
        assert found[name].by == "recording"
        assert abs(found.loss[found.names.index("wired"), found.names.index(name)]) <= 1e-9
    assert abs(found["lossy"].value - radio.value) <= 2 * found["lossy"].half_width
    more, wide = found.difference("recorded", "read")
    assert wide == pytest.approx(np.hypot(found["recorded"].half_width, found["read"].half_width))
    assert abs(more) <= wide


def test_what_is_refused() -> None:
    one, two = (ol.Trace([5.0] * 100, sent_ms=t * np.arange(100.0)) for t in (20, 50))
    with pytest.raises(ValueError, match="different periods"):
        ol.compare_channels(MDP, {"one": one, "two": two})
    with pytest.raises(TypeError, match=r"links\['one'\] is of type int"):
        ol.compare_channels(MDP, {"one": 1})  # type: ignore[dict-item]
    law = np.random.default_rng(0).dirichlet([1, 1], size=(6, 5))
    with pytest.raises(ValueError, match="depend"):
        ol.compare_channels(MDP, {"one": ol.StochasticDelay(law)})
    with pytest.raises(ValueError, match="links is empty"):
        ol.compare_channels(MDP, {})
    with pytest.raises(TypeError, match="expected a TabularMDP"):
        ol.compare_channels("chain", {"one": one})  # type: ignore[arg-type]
