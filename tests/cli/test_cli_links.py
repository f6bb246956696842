"""The commands trace and testbed: what is printed is what is written, and what is refused names the right option."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight import cli
from oldlight.registry import channel_of
from oldlight.traces import read_trace

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["oldlight", *arguments])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        out, err = capsys.readouterr()
        return int(stopped.value.code or 0), out, " ".join(err.replace("│", " ").split())

    return run


@pytest.fixture
def link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """300 messages at 20 ms, 8 to 60 ms late, one in ten lost; the folder is the current one."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    rows = [f"{20 * i}," + ("" if rng.random() < 0.1 else f"{20 * i + rng.uniform(8, 60):.2f}") for i in range(300)]
    path = tmp_path / "link.csv"
    path.write_text("sent_ms,received_ms\n" + "\n".join(rows))
    return path


# -- trace ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("deadline", [None, 0, 2, 30])
def test_the_channel_printed_is_the_channel_written(call: Call, link: Path, deadline: int | None) -> None:
    fit = read_trace(link).fit(20)
    wanted = fit.model(oldest=4) if deadline is None else fit.with_deadline(deadline)
    options = () if deadline is None else ("--deadline", str(deadline))
    code, out, _ = call("trace", "link.csv", "--period-ms", "20", *options)  # the channel that would be written
    assert code == 0
    assert out.splitlines()[-1] == f"channel: {wanted!r}"
    code, again, err = call("trace", "link.csv", "--period-ms", "20", *options, "--channel", "link.json")
    assert (code, again) == (0, out)
    assert "The channel is in link.json" in err
    assert channel_of("file:link.json") == wanted
    if deadline is not None:
        delays = read_trace(link).delay_ms
        lost = np.mean([not x <= 20 * deadline for x in delays])
        assert f"with a deadline of {deadline} ticks ({20 * deadline} ms): {lost:.2%} lost or later" in out
    code, out, _ = call("trace", "link.csv", "--period-ms", "20", *options, "--json", "-")
    assert (code, channel_of(json.loads(out)["fit"]["channel"])) == (0, wanted)


def test_a_trace_that_cannot_be_fitted_is_shown_all_the_same(call: Call, link: Path) -> None:
    Path("few.csv").write_text("\n".join(link.read_text().splitlines()[:6]))
    Path("horizon.csv").write_text("delay_ms\n" + "\n".join(str(3 + i % 5) for i in range(40)))
    for arguments, option, says in [
        (("few.csv", "--horizon", "10"), "--horizon", "fewer than an episode of 10 ticks"),
        (("horizon.csv",), "--period-ms", "does not say when messages were sent"),
        (("link.csv", "--period-ms", "1e9", "--horizon", "1"), "--period-ms", "there is only one"),
    ]:
        code, out, err = call("trace", *arguments)
        assert code == 2
        assert out.rstrip() == str(read_trace(arguments[0]))
        assert f"Invalid value for {option}:" in err
        assert says in err
        code, out, _ = call("trace", *arguments, "--json", "-")
        assert (code, out) == (2, "")
    assert call("trace", "few.csv", "--horizon", "5")[0] == 0
    code, _, err = call("trace", "few.csv", "--channel", "few.json")
    assert (code, Path("few.json").exists()) == (2, False)
    assert "no model: few.csv: nothing to count" in err
    assert call("trace", "horizon.csv", "--period-ms", "5")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("link.csv", "--period-ms", "0"), "Invalid value for --period-ms: period-ms is 0, expected a number > 0"),
        (("link.csv", "--deadline", "-1"), "--deadline"),
        (("link.csv", "--channel", "nowhere/link.json"), "nowhere: no such folder"),
        (("link.csv", "--plot", "link.txt"), "expected a name that ends in .png, .svg or .pdf"),
        (("nowhere.csv",), "Invalid value for FILE: nowhere.csv: no such file"),
        (
            ("link.csv", "--holes", "gone"),
            "Invalid value for --holes: holes is 'gone', expected a number of milliseconds, lost or stop",
        ),
        (("link.csv", "--plant", "nothing"), "Invalid value for --plant"),
        (("absurd.csv",), "absurd.csv, line 3: a delay of 1e+300 ms, more than a year"),
    ],
)
def test_wrong_usage_of_trace_is_2(call: Call, link: Path, arguments: tuple[str, ...], says: str) -> None:
    Path("absurd.csv").write_text("sent_ms,delay_ms\n0,1\n1,1e300\n")
    code, out, err = call("trace", *arguments)
    assert (code, out) == (2, "")
    assert says in err


def test_a_plant_is_planned_and_played_on_the_recording(call: Call, link: Path) -> None:
    arguments = ("trace", "link.csv", "--period-ms", "20", "--plant", "dichotomy:1", "-n", "300")
    code, out, err = call(*arguments, "--plot", "link.png", "--json", "all.json")
    assert code == 0, err
    rows = json.loads(Path("all.json").read_text())["plant"]["rows"]
    assert [row["model"] for row in rows][:2] == ["age chain", "constant"]
    assert {"deadline 1", "QMDP", "in-order", "packets", "FIFO", "renewal", "Gilbert–Elliott"} <= {
        row["model"] for row in rows
    }
    for row in rows:
        assert f"  {row['model']} " in out
    assert Path("link.png").stat().st_size > 5_000
    code, out, _ = call(*arguments, "--json", "-")
    assert json.loads(out)["plant"]["rows"] == rows  # the seed gives the same again


# -- testbed ----------------------------------------------------------------------------------------------------------


def played(call: Call, *arguments: str) -> dict[str, Any]:
    code, out, err = call("testbed", "dichotomy:1", "-n", "10", *arguments, "--json", "-")
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def test_uniform_late_actions_and_a_timeout(call: Call) -> None:
    """Late actions make two late of one, so the state to be named is never known: half of the time it is right."""
    found = played(call, "-c", "constant:1", "--actuation", "1", "--policy", "uniform", "--timeout", "60")
    assert found["predicted"] == pytest.approx(0.5)
    assert found["controller"]["ticks"] == 10 * (3 - 1)
    assert found["agrees"] is not None
    code, _, err = call("testbed", "sensing_chain", "-n", "1000", "--period-ms", "1000", "--timeout", "0.5")
    assert code == 1
    assert "the time for the whole run is over" in err


def test_another_link_than_the_planned_one(call: Call, link: Path) -> None:
    found = played(call, "-c", "constant:1", "--link", "constant:0")
    assert (found["agrees"], found["link"], found["planned"]) == (None, "ConstantDelay(d=0)", "ConstantDelay(d=1)")
    arguments = ("testbed", "dichotomy:1", "-n", "5", "-c", "constant:1", "--link", "trace:link.csv")
    code, out, _ = call(*arguments, "--json", "all.json")
    assert code == 0
    found = json.loads(Path("all.json").read_text())
    assert (found["agrees"], found["link"]) == (None, "link.csv at 20 ms a tick")
    assert found["predicted"] == ol.solve(ol.ImpairedMDP(ol.instances.dichotomy(1), ol.ConstantDelay(1))).value
    assert "behind link.csv at 20 ms a tick\n" in out
    assert "predicted  1 (exact) behind the planned link, ConstantDelay(d=1)\n" in out
    assert "interval" not in out
    found = played(call, "-c", "constant:1", "--link", "trace:link.csv@40", "--as-it-came")
    assert found["recording"]["period_ms"] == 40
    assert found["link"] == "link.csv at 40 ms a tick"
    assert found["agrees"] in (True, False)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--period-ms", "0"), "Invalid value for --period-ms: period-ms is 0, expected a number > 0"),
        (("--period-ms", "nan"), "Invalid value for --period-ms: period-ms is nan, expected a finite number"),
        (("--timeout", "-1"), "Invalid value for --timeout: timeout is -1, expected a number > 0"),
        (("--actuation", "-1"), "--actuation"),
        (("-n", "1"), "--episodes"),
        (("--link", "constnt:1"), "did you mean constant"),
        (("--as-it-came",), "Invalid value for --as-it-came: a recording comes by --link trace:FILE[@period_ms]"),
        (("--link", "trace:link.csv@0"), "Invalid value for --link: trace:link.csv@0: the period is 0, expected a number > 0"),
        (("--link", "trace:link.csv@fast"), "the period is 'fast', expected a number"),
        (("--link", "trace:nowhere.csv"), "nowhere.csv: no such file"),
        (("--link", "trace:delays.csv"), "give the control period: period_ms=..., as text trace:FILE@20"),
        (("--warm", "--link", "constant:1"), "Invalid value for --link: a warm start knows a past"),
        (("--policy", "full-information"), "Invalid value for --policy: MarkovPolicy"),
        (("--policy", "bst"), "did you mean best"),
        (("--json", "nowhere/rows.json"), "nowhere: no such folder"),
    ],
)  # fmt: skip
def test_wrong_usage_of_testbed_is_2(call: Call, link: Path, arguments: tuple[str, ...], says: str) -> None:
    Path("delays.csv").write_text("delay_ms\n" + "3\n" * 20)
    code, out, err = call("testbed", "sensing_chain", "-c", "constant:2", *arguments)
    assert (code, out) == (2, "")
    assert says in err
