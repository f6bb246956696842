"""The command line: what it prints is what Python computes; what it refuses, and with which exit code."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import oldlight as ol
from oldlight import cli
from oldlight.registry import POLICIES


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["oldlight", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    out, err = capsys.readouterr()
    return int(stopped.value.code or 0), out, err


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    return lambda *arguments: run(monkeypatch, capsys, *arguments)


def warm(channel: ol.DelayChannel) -> ol.ImpairedMDP:
    return ol.ImpairedMDP(ol.instances.sensing_chain(0.8), channel, start=ol.WarmStart())


def test_plan_and_simulate_its_policy(call, tmp_path: Path) -> None:
    best, table = tmp_path / "best.npz", tmp_path / "plan.csv"
    code, out, err = call("plan", "sensing_chain:0.8", "--warm", "-c", "constant:2", "--save", str(best), "--json", "-",
                          "--csv", str(table))  # fmt: skip
    assert code == 0
    (row,) = json.loads(out)
    assert row["value"] == ol.solve(warm(ol.ConstantDelay(2))).value
    assert row["exact"] is True
    assert float(next(csv.DictReader(table.open()))["value"]) == row["value"]
    assert str(best) in err
    code, out, _ = call("simulate", "sensing_chain:0.8", "--warm", "-c", "constant:2", "--policy", str(best), "-n",
                        "20000", "--json", "-")  # fmt: skip
    (played,) = json.loads(out)
    assert code == 0
    assert played["exact value"] == pytest.approx(row["value"], abs=1e-12)
    assert abs(played["mean return"] - row["value"]) < 4 / 1.96 * played["± 95%"]
    same = ol.simulate(warm(ol.ConstantDelay(2)), ol.load_policy(best), 20_000, seed=0)
    assert played["mean return"] == same.mean


def test_gap_of_several_channels(call) -> None:
    code, out, _ = call("gap", "sensing_chain", "--warm", "-c", "constant:1", "-c", "loss:0.2", "--json", "-")
    assert code == 0
    one, two = json.loads(out)
    assert one["gap"] == pytest.approx(float(ol.gap(warm(ol.ConstantDelay(1)))), abs=1e-12)
    assert two["gap"] == pytest.approx(float(ol.gap(warm(ol.Loss(rate=0.2)))), abs=1e-12)
    code, out, _ = call("gap", "dichotomy:1", "-c", "constant:2", "--terms")
    assert code == 0
    assert "Proposition 4" in out
    assert "0.5" in out


@pytest.mark.parametrize("policy", [p for p in POLICIES if p != "best"])
def test_every_named_policy_plays(call, policy: str) -> None:
    code, out, _ = call("simulate", "dichotomy:1", "-c", "constant:1", "--policy", policy, "-n", "100", "--csv", "-")
    assert code == 0
    assert out.startswith("process,channel,policy")


def test_a_policy_by_its_old_spelling_a_file_and_ones_own(
    call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names are those of Python; the hyphens of before still work, and say so."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("plover.py").write_text(
        "import oldlight\nfrom oldlight.planning.heuristics import most_likely\n\n"
        "@oldlight.registered\ndef mine(problem):\n    return most_likely(problem)\n"
    )
    play = ("simulate", "sensing_chain:0.8", "-c", "constant:1", "-n", "200", "--csv", "-", "--policy")
    code, said, err = call(*play, "most_likely")
    assert (code, err) == (0, "")
    code, other, err = call(*play, "most-likely")
    assert (code, other) == (0, said.replace("most_likely", "most-likely"))
    assert err == "Warning: the policy most-likely is now most_likely\n"
    assert call(*play, "plover:mine")[:2] == (0, said.replace("most_likely", "plover:mine"))
    assert call("plan", "sensing_chain:0.8", "-c", "constant:1", "--save", "best.npz")[0] == 0
    best, filed = (call(*play, name)[1].replace(name, "it") for name in ("best", "best.npz"))
    assert best == filed
    code, _, err = call(*play, "most_likly")
    assert code == 2
    assert "'most_likly' is neither a file nor a known policy; did you mean most_likely" in " ".join(err.split())


def test_learn(call, tmp_path: Path) -> None:
    code, out, err = call("learn", "sensing_chain", "--warm", "-c", "constant:1", "-l", "DelayedUCBVI", "-l",
                          "PosteriorSampling", "-o", "pooled=true", "-n", "60", "--seeds", "2", "--save",
                          str(tmp_path / "runs"), "--plot", str(tmp_path / "regret.svg"), "--json", "-")  # fmt: skip
    assert code == 0, err
    rows = json.loads(out)
    assert [row["learner"] for row in rows] == ["DelayedUCBVI", "PosteriorSampling"]
    again = ol.learn(warm(ol.ConstantDelay(1)), ol.learners.DelayedUCBVI(pooled=True), 60, seed=1, every=10)
    loaded = ol.LearningRun.load(tmp_path / "runs" / "DelayedUCBVI-1.npz")
    assert loaded.regret[-1] == again.regret[-1]
    assert (tmp_path / "regret.svg").read_text().lstrip().startswith("<?xml")


def test_list_names_everything(call) -> None:
    code, out, _ = call("list")
    assert code == 0
    for name in (
        "sensing_chain",
        "DelayedUCBVI",
        "UniformRandom",
        "constant:d",
        "bursty",
        "memoryless",
        "oldlight/HardTree-v0",
    ):
        assert name in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("plan", "sensing_chan"), "did you mean sensing_chain"),
        (("plan", "sensing_chain", "-c", "constnt:2"), "did you mean constant"),
        (("plan", "sensing_chain", "-c", "constant:-1"), "whole number"),
        (("plan",), "Missing argument"),
        (("paln", "sensing_chain"), "No such command"),
        (("simulate", "sensing_chain", "--policy", "bst"), "did you mean best"),
        (("learn", "sensing_chain", "-l", "DelayedUCVI"), "did you mean DelayedUCBVI"),
        (("learn", "sensing_chain", "-o", "poled=true"), "did you mean pooled"),
        (("learn", "sensing_chain", "-o", "pooled"), "key=value"),
        (("simulate", "sensing_chain", "-n", "0"), "--episodes"),
    ],
)
def test_wrong_usage_is_2_and_says_what_was_meant(call, arguments: tuple[str, ...], says: str) -> None:
    code, _, err = call(*arguments)
    assert code == 2
    assert says in " ".join(err.replace("│", " ").split())
    assert "Traceback" not in err


def test_failure_is_1_in_one_paragraph(call, tmp_path: Path) -> None:
    code, _, err = call("plan", "sensing_chain", "-c", "constant:9", "--max-gb", "0.001")
    assert code == 1
    assert err.startswith("Error: an exact plan")
    assert err.count("\n") == 1
    damaged = tmp_path / "best.npz"
    damaged.write_bytes(b"PK nonsense")
    code, _, err = call("simulate", "sensing_chain", "-c", "constant:1", "--policy", str(damaged))
    assert (code, "best.npz" in err) == (2, True)


def test_debug_shows_the_error_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["--debug", "plan", "sensing_chain", "-c", "constant:9", "--max-gb", "0.001"]
    monkeypatch.setattr(sys, "argv", ["oldlight", *arguments])
    with pytest.raises(ol.TooLarge):
        cli.main()


TOLD_OFTEN = "from oldlight import __main__, progress; progress.EVERY_LINE = 0.1; __main__.main()"  # the command, which says every tenth of a second how far it is


def members_of(session: int) -> list[int]:
    """The processes that belong to a session."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            told = entry.read_text().rpartition(")")[2].split()
            if int(told[3]) == session and told[0] != "Z":
                found.append(int(entry.parent.name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to find the worker processes")
@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_is_130_and_ends_every_seed(workers: str, tmp_path: Path) -> None:
    """One SIGINT, to the parent alone: no further seed is started, and no process stays behind."""
    rows = tmp_path / "rows.json"
    command = [sys.executable, "-c", TOLD_OFTEN, "learn", "sensing_chain", "-c", "constant:2", "-n", "5000000", "--seeds", "4",
               "--every", "1000000", "--workers", workers, "--json", str(rows)]  # fmt: skip
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr is not None
    told = []
    for line in process.stderr:  # until every worker is in the middle of its first seed
        told.append(line)
        done = re.match(r"learning: ([\d,]+) of 20,000,000", line)
        if done and int(done[1].replace(",", "")) > 2_000 * int(workers):
            break
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=120)
    err = "".join(told) + rest
    assert process.returncode == 130, err
    assert "Interrupted" in err
    assert "Traceback" not in err
    (row,) = json.loads(rows.read_text())
    assert 0 < row["episodes"] < 5_000_000
    assert row["runs"] <= int(workers)
    for _ in range(100):  # the last of them go when they see that the parent has gone
        if not members_of(process.pid):
            break
        time.sleep(0.1)
    else:
        pytest.fail("a process stayed behind")


def test_ctrl_c_prints_what_there_is(call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The channels that were done; the bounds that were known; how far a study is. Always with exit code 130."""
    import oldlight.planning.gap as gaps
    from oldlight import planning, studies

    price, known = gaps.gap, ol.solve(warm(ol.ConstantDelay(1)))

    def interrupted(problem, **options):
        if problem.channel == ol.ConstantDelay(2):
            raise KeyboardInterrupt
        return price(problem)

    monkeypatch.setattr(gaps, "gap", interrupted)
    code, out, err = call(
        "gap", "dichotomy:1", "-c", "constant:1", "-c", "constant:2", "-c", "constant:3", "--json", "-"
    )
    assert (code, [row["channel"] for row in json.loads(out)]) == (130, ["constant:1"])
    assert err == "Interrupted: these are the channels that were done.\nInterrupted.\n"

    def stopped(*given, **options):
        stop = KeyboardInterrupt()
        stop.partial = known
        raise stop

    monkeypatch.setattr(planning, "solve", stopped)
    code, out, err = call("plan", "sensing_chain:0.8", "--warm", "-c", "constant:1", "--json", "-")
    assert (code, [row["value"] for row in json.loads(out)]) == (130, [known.value])
    assert err == "Interrupted: this is what was known by then.\nInterrupted.\n"
    file = tmp_path / "s.toml"
    file.write_text('name = "small"\ninstances = ["dichotomy:1"]\ntasks = ["gap"]\n')

    def begun(study, folder, **options):
        studies.store.prepare(Path(folder))
        studies.store.write_study(Path(folder), study.data(), study.jobs())
        raise KeyboardInterrupt

    monkeypatch.setattr(studies, "run_study", begun)
    code, _, err = call("run", str(file), "--out", str(tmp_path / "runs"))
    assert code == 130
    assert f"small in {tmp_path / 'runs'}: 0 of 1 jobs done, 1 waiting. The same command goes on from there." in err


def test_a_device_is_written_to_and_not_replaced(call, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True)
    code, _, _ = call("gap", "dichotomy:1", "-c", "constant:1", "--csv", str(pipe))
    assert code == 0
    assert "dichotomy:1" in reader.communicate(timeout=20)[0]
    assert pipe.is_fifo()
    real = tmp_path / "real.csv"
    (tmp_path / "link.csv").symlink_to(real)
    assert call("gap", "dichotomy:1", "-c", "constant:1", "--csv", str(tmp_path / "link.csv"))[0] == 0
    assert (tmp_path / "link.csv").is_symlink()
    assert "dichotomy:1" in real.read_text()


def test_a_controller_file(call, tmp_path: Path) -> None:
    file = tmp_path / "controller.npz"
    code, _, err = call("plan", "dichotomy:1", "-c", "constant:1", "--controller", str(file))
    assert code == 0, err
    controller = ol.Controller.load(file)
    controller.reset()
    assert controller.act() in (0, 1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("plan", "sensing_chain", "--depth", "-1"), "--depth"),
        (("plan", "sensing_chain", "--tolerance", "-1"), "--tolerance"),
        (("plan", "sensing_chain", "--max-gb", "0"), "--max-gb"),
        (("gap", "sensing_chain", "--json", "/nowhere/x.json"), "no such folder"),
        (("learn", "sensing_chain", "--plot", "x.foo", "-n", "5"), ".png, .svg or .pdf"),
        (("learn", "sensing_chain", "-l", "UniformRandom", "-o", "pooled=true", "-n", "5"), "no option 'pooled'"),
        (("plan", "sensing_chain:0.8,7,3"), "too many positional"),
    ],
)
def test_more_wrong_usage_is_refused_before_work(call, arguments: tuple[str, ...], says: str) -> None:
    code, _, err = call(*arguments)
    assert code == 2
    assert says in " ".join(err.split())


def test_options_go_to_the_learners_that_have_them(call) -> None:
    code, out, err = call("learn", "dichotomy:1", "-c", "constant:1", "-l", "PosteriorSampling", "-l", "UniformRandom", "-o",
                          "prior=0.5", "-n", "20", "--seeds", "1", "--json", "-")  # fmt: skip
    assert code == 0, err
    assert [row["learner"] for row in json.loads(out)] == ["PosteriorSampling", "UniformRandom"]


def test_json_has_no_infinity(call) -> None:
    code, out, _ = call("simulate", "dichotomy:1", "-n", "1", "--json", "-")
    assert code == 0
    (row,) = json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} in JSON"))
    assert row["± 95%"] is None


def test_help_teaches_and_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['oldlight', '--help']\n"
        "from oldlight import cli\n"
        "try: cli.main()\n"
        "except SystemExit as stop: assert not stop.code\n"
        "heavy = {'numba', 'scipy', 'matplotlib', 'gymnasium', 'pydantic', 'pyarrow', 'plotly', 'distributed', 'torch'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "oldlight paper --quick" in " ".join(done.stdout.split())


def test_each_command_has_an_example(call) -> None:
    for command in cli.app.registered_commands:
        name = command.name or command.callback.__name__
        code, out, _ = call(name, "--help")
        assert code == 0
        assert f"oldlight {name} " in out, f"{name} --help has no example"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(shell: str) -> None:
    words = {"bash": {"COMP_WORDS": "oldlight pl", "COMP_CWORD": "1"}}.get(
        shell, {"_TYPER_COMPLETE_ARGS": "oldlight pl"}
    )
    environment = os.environ | words | {"_OLDLIGHT_COMPLETE": f"complete_{shell}"}
    if shell == "fish":
        environment["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    code = "import sys; sys.argv = ['oldlight']; from oldlight.cli import app; app(prog_name='oldlight')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert "plan" in done.stdout
