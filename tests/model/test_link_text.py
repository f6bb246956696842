"""Links without a delay law as text, as data, on the command line and on their page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import oldlight as ol
from oldlight.registry import channel_data, channel_of

WRITTEN: dict[str, Any] = {
    "packets:0=.2,1=.6,2=.2+loss:0.1": ol.PacketChannel({0: 0.2, 1: 0.6, 2: 0.2}, lost=0.1),
    "packets:1=1+seen:0.75": ol.PacketChannel({1: 1.0}, lost=0.25),
    "packets:0=.8,1=.2+bursty:.1,.4,.9,.5": ol.HiddenLink(
        [[0.9, 0.1], [0.4, 0.6]], [[0.9 * 0.8, 0.9 * 0.2], [0.5 * 0.8, 0.5 * 0.2]], first=[0.8, 0.2]
    ),
    "fifo:0=.5,1=.3,2=.2": ol.FIFODelay([0.5, 0.3, 0.2]),
    "ages:.9,.1/.5,.3,.2": ol.AgeChain([[0.9, 0.1], [0.5, 0.3, 0.2]]),
    "renewal:0=.9,5=.1": ol.RenewalLoss({0: 0.9, 5: 0.1}),
    "periodic:5": ol.Periodic(5),
    "periodic:5,2,1": ol.Periodic(5, delay=2, offset=1),
    "held:0=.5,2=.5,hold=.7": ol.HeldLag({0: 0.5, 2: 0.5}, hold=0.7),
}


@pytest.mark.parametrize("text", WRITTEN)
def test_text_and_data(text: str, tmp_path: Path) -> None:
    channel = channel_of(text)
    assert channel == WRITTEN[text]
    data = json.loads(json.dumps(channel_data(channel)))
    assert channel_of(data) == channel
    file = tmp_path / "link.json"
    file.write_text(json.dumps(data))
    assert channel_of(f"file:{file}") == channel


def test_a_hidden_link_and_a_law_as_a_mapping_are_data() -> None:
    hidden = ol.HiddenLink([[0.9, 0.1], [0.5, 0.5]], [[0.5, 0.5], [0.0, 0.2]])
    assert channel_of(json.loads(json.dumps(channel_data(hidden)))) == hidden
    assert channel_of({"kind": "packets", "delays": {"0": 0.5, "2": 0.5}}) == ol.PacketChannel({0: 0.5, 2: 0.5})


@pytest.mark.parametrize(
    "text", ["fifo:0=.5,1=.5+loss:0.1", "constant:1+packets:0=1", "periodic:2+periodic:3", "held:0=1+bursty:.1,.5"]
)
def test_a_link_stands_alone(text: str) -> None:
    with pytest.raises(ValueError, match="stands alone"):
        channel_of(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("packets:0=.5,1=.5+loss:.1,.2", "packets take one loss rate for all steps"),
        ("packets:0=.5, 0=.5", "0= is there twice; packets is written packets:0="),
        ("held:0=1,hold=.1,hold=.2", "hold= is there twice"),
        (
            "hidden:x",
            "hidden is given as data, .* with switch, delays, first, or as a file that holds it: file:link.json",
        ),
        ("empirical:1=1", "empirical is given as data"),
    ],
)
def test_what_cannot_be_written_is_said(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        channel_of(text)


@pytest.mark.parametrize("command", ["plan", "gap", "simulate"])
def test_the_command_line(command: str) -> None:
    from oldlight.cli import app

    more = ["-n", "1000"] if command == "simulate" else []
    done = CliRunner().invoke(app, [command, "sensing_chain", "-c", "fifo:0=.5,1=.5", *more, "--json", "-"])
    assert done.exit_code == 0, done.output
    row = json.loads(done.stdout)[0]
    best = ol.solve(ol.ImpairedMDP(ol.instances.sensing_chain(), ol.FIFODelay([0.5, 0.5]))).value
    found = row[{"plan": "value", "gap": "executable", "simulate": "exact value"}[command]]
    assert abs(found - best) < 1e-10


def test_the_page_runs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "links.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 9
    exec("\n".join(blocks), {})
    for text in re.findall(r"\| `([a-z]+:[^`]+)` \|\n", page):
        assert isinstance(channel_of(text), ol.model.channels.Channel)
