"""The commands need, compare-links and sensitivity: what is printed is what the functions say, and what is refused names the right option."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import oldlight as ol
from oldlight import cli

Call = Callable[..., tuple[int, str, str]]
CHAIN = "sensing_chain:p=0.8,n_states=6,horizon=5"


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["oldlight", *arguments])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        out, err = capsys.readouterr()
        return int(stopped.value.code or 0), out, " ".join(err.replace("│", " ").split())

    return run


def test_need_answers_for_each_impairment(call: Call) -> None:
    mdp = ol.instances.sensing_chain(0.8, n_states=6, horizon=5)
    code, out, _ = call("need", CHAIN, "--value", "80%", "--period-ms", "20", "--json", "-")
    assert code == 0
    rows = json.loads(out)
    assert [row["impairment"] for row in rows] == [
        "constant delay",
        "loss rate",
        "mean blackout length",
        "sensor period",
    ]
    for row, over in zip(rows, ("delay", "loss", "blackout", "sensor_period"), strict=True):
        found = ol.requirement(mdp, target="80%", over=over, period_ms=20)
        assert row["level"] == found.answer
        assert row["at most"].startswith(found.answer_text)
        assert row["certificate"] == found.status
    code, out, _ = call("need", CHAIN, "--share", "0.8", "--over", "delay")
    assert code == 0
    assert "1 step" in out


def test_need_draws_the_frontier(call: Call, tmp_path: Path) -> None:
    picture = tmp_path / "frontier.png"
    code, out, err = call("need", CHAIN, "--value", "75%", "--over", "delay", "--over", "loss", "--plot", str(picture))
    assert code == 0, err
    assert "certified" in out
    assert picture.stat().st_size > 10_000


def test_need_says_when_a_share_may_have_been_meant(call: Call) -> None:
    code, _, err = call("need", CHAIN, "--value", "0.1", "--over", "sensor_period")
    assert code == 0
    assert "Was a share" in err
    assert "Was a share" not in call("need", CHAIN, "--value", "80%", "--over", "delay")[2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "exactly one of --value"),
        (["--value", "3", "--share", "0.9"], "exactly one of --value"),
        (["--value", "high"], "--value is 'high'"),
        (["--value", "3", "--over", "speed"], "over is 'speed'"),
        (["--value", "3", "--at", "delay"], "is not name=number"),
        (["--value", "3", "--at", "speed=3"], "at has 'speed'"),
        (["--value", "3", "--over", "delay", "--over", "loss", "--over", "jitter"], "twice for the frontier"),
        (["--value", "3", "--plot", "x.png"], "needs --over"),
    ],
)
def test_what_need_refuses(call: Call, arguments: list[str], said: str) -> None:
    code, _, err = call("need", CHAIN, *arguments)
    assert code == 2
    assert said in err


def test_links_are_compared_on_the_command_line(call: Call, tmp_path: Path) -> None:
    file, picture = tmp_path / "wifi.csv", tmp_path / "links.svg"
    file.write_text("sent_ms,received_ms\n" + "\n".join(f"{20 * i},{20 * i + 15}" for i in range(600)))
    arguments = ("-l", "wired=constant:1", "-l", f"wifi={file}", "--period-ms", "20", "-n", "300", "--per-tick")
    code, out, err = call("compare-links", CHAIN, *arguments, "--plot", str(picture))
    assert code == 0, err
    assert "lost on wifi" in out
    assert picture.read_text().startswith("<?xml")
    code, out, _ = call("compare-links", CHAIN, *arguments, "--json", "-")
    data = json.loads(out)
    assert [row["name"] for row in data["rows"]] == ["wired", "wifi"]
    assert data["verdict"]
    code, _, err = call("compare-links", CHAIN, "-l", "constant:1")
    assert (code, "is not name=link" in err) == (2, True)


def test_prices_on_the_command_line(call: Call, tmp_path: Path) -> None:
    code, out, err = call(
        "sensitivity", CHAIN, "-c", "constant:1+loss:0.1", "--period-ms", "20", "--plot", str(tmp_path / "p.png")
    )
    assert code == 0, err
    found = ol.sensitivity(
        ol.ImpairedMDP(
            ol.instances.sensing_chain(0.8, n_states=6, horizon=5),
            ol.Lossy(ol.ConstantDelay(1), rate=0.1).with_period(20),
        )
    )
    assert out.splitlines()[2:] == str(found).splitlines()[2:]
    code, out, _ = call("sensitivity", CHAIN, "-c", "constant:1", "--json", "-")
    assert json.loads(out)["prices"][0]["change"] == "one more step of delay"
