"""A problem is made with its channel and its start as text, everywhere the same."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import oldlight as ol
from oldlight.model.channels.text import channel_of

MDP = ol.instances.sensing_chain(0.8)


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("constant:2+loss:0.1", ol.Lossy(ol.ConstantDelay(2), rate=0.1)),
        ("geometric:0.3+cap:4", ol.GeometricDelay(0.3).capped(4)),
        ({"kind": "loss", "rate": 0.2}, ol.Loss(rate=0.2)),
        ("wifi", ol.wifi()),
    ],
)
def test_the_channel_of_a_problem_may_be_text_or_data(given: object, made: object) -> None:
    problem = ol.ImpairedMDP(MDP, given)  # type: ignore[arg-type]
    assert problem.channel == made
    assert ol.ImpairedMDP(MDP, "none").behind(given).channel == made  # type: ignore[arg-type]


def test_the_start_of_a_problem_may_be_text() -> None:
    warm = ol.ImpairedMDP(MDP, "constant:2", start="warm")
    assert warm.start == ol.WarmStart()
    assert warm.warmup == 2
    assert warm.behind("constant:1").warmup == 1
    assert ol.ImpairedMDP(MDP, "constant:2", start="cold").start is None
    assert ol.solve(warm).value == ol.solve(ol.ImpairedMDP(MDP, ol.ConstantDelay(2), start=ol.WarmStart())).value


def test_a_sweep_takes_the_same_text() -> None:
    as_text = ol.sweep(MDP, channels=["constant:1", "loss:0.2"], start="warm")
    objects = ol.sweep(MDP, channels=[ol.ConstantDelay(1), ol.Loss(rate=0.2)], start=ol.WarmStart())
    assert np.array_equal(as_text.values, objects.values)


def test_what_is_misspelt_is_named() -> None:
    with pytest.raises(ValueError, match="unknown kind 'constnt'; did you mean constant"):
        ol.ImpairedMDP(MDP, "constnt:2")
    with pytest.raises(ValueError, match="start is 'hot', expected one of 'warm', 'cold'"):
        ol.ImpairedMDP(MDP, "constant:2", start="hot")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"start is of type bool, expected None \(cold\) or WarmStart"):
        ol.ImpairedMDP(MDP, "constant:2", start=True)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"did you mean ConstantDelay\(2\)"):
        ol.ImpairedMDP(MDP, 2)  # type: ignore[arg-type]


def test_code_may_be_named_only_if_it_was_written_to_be() -> None:
    with pytest.raises(ValueError, match="subprocess is a module of Python's standard library"):
        ol.ImpairedMDP(MDP, "subprocess:getoutput")


def test_measured_links_are_imported_only_when_they_are_named() -> None:
    code = "import sys; from oldlight.model.channels.text import channel_of; channel_of('constant:2+loss:0.1'); "
    code += (
        "before = 'oldlight.traces' in sys.modules; channel_of('wifi'); print(before, 'oldlight.traces' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert said.stdout.split() == ["False", "True"], said.stderr
    assert channel_of("wifi") == ol.wifi()
