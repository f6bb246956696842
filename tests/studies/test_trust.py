"""A study is code: what may be named by `module:name`, where it is looked for, and who must have agreed.

The mark guards against accidents, trust against strangers; a dry run, `status` and `report` import nothing of the user's.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pickle
import pty
import re
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import oldlight as ol
from conftest import inline_engine
from oldlight import own_code
from oldlight.own_code import NotChecked, looking_in, registered, resolve
from oldlight.registry import channel_of, learner_of, mdp_of
from oldlight.studies import load_study, run_study, runner, status
from oldlight.studies.trust import is_trusted, remember, trust_file
from oldlight.studies.work import PackedJob, RunSettings, perform
from repeats import is_thorough

MODULE = """
import functools, os, pathlib, subprocess
import oldlight as ol
from oldlight.learners import Learner
from subprocess import getoutput
from os import system
pathlib.Path(__file__).with_name("imported").touch()

class Slow(ol.DelayChannel):
    def law(self, H, S, A): return ol.ConstantDelay(2).law(H, S, A)

class Idle(Learner):
    def start(self, setting, rng): pass
    def act(self, info): return 0
    def see(self, episode): pass

class Chain(ol.TabularMDP):
    def __init__(self): super().__init__([[[1.0]]], [[1.0]], horizon=2)

@ol.registered
def plant(): return ol.instances.forest()

@ol.registered
def one(problem):
    import ibis_helper
    return {"one": ibis_helper.ONE}

@ol.registered
class Marked:
    pass

class Unmarked(Marked):
    def start(self, setting, rng): pass
    def act(self, info): return 0
    def see(self, episode): pass

def unmarked(): return ol.instances.forest()
bound = functools.partial(ol.instances.forest, horizon=3)

class Everything:
    def __getattr__(self, name): return True
    def __call__(self): return ol.instances.forest()
has_everything = Everything()
"""
STUDY = 'name = "mine"\ninstances = ["forest"]\ntasks = ["gap", "ibis:one"]\n'


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of one's own, which nobody has trusted, is the current one."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "ibis.py").write_text(MODULE)
    (folder / "ibis_helper.py").write_text("ONE = 1\n")
    (folder / "study.toml").write_text(STUDY)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    yield folder
    assert str(folder) not in sys.path, "the library left sys.path edited"
    forget()


def forget() -> None:
    """No module of the folder is imported."""
    for name in [name for name in sys.modules if name.startswith("ibis")]:
        del sys.modules[name]


def oldlight(*words: str, cwd: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    """The command, started by a script elsewhere, as an installed one is."""
    script = Path(os.environ["XDG_CONFIG_HOME"]).parent / "bin" / "oldlight_command.py"
    script.parent.mkdir(exist_ok=True)
    script.write_text("from oldlight.cli import main\nif __name__ == '__main__':\n    main()\n")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment["PYTHONPATH"] = str(Path(ol.__file__).parents[1])
    return subprocess.run(
        [sys.executable, str(script), *words], cwd=cwd, env=environment, capture_output=True, text=True, timeout=300, **more
    )  # fmt: skip


@pytest.fixture
def command(
    mine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command without a terminal: if thorough a process of its own; otherwise in this process, and its jobs too, with nothing of the folder
    imported before. `test_modules_beside_a_study_take_nobodys_place` and `test_on_a_terminal_it_asks` always start real ones."""

    def here(*words: str) -> subprocess.CompletedProcess[str]:
        from oldlight.cli import main

        forget()
        capsys.readouterr()
        before = list(sys.path)
        with monkeypatch.context() as patch, warnings.catch_warnings():
            patch.setattr(sys, "argv", ["oldlight", *words])
            patch.setattr(sys, "path", list(before))
            patch.setattr(runner, "_engine", inline_engine)
            with pytest.raises(SystemExit) as ended:
                main()
            assert sys.path in (before, [*before, str(mine)])  # at the end, where a job with code of its own was done
        forget()
        said = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return subprocess.CompletedProcess(words, ended.value.code, said.out, said.err)

    return (lambda *words: oldlight(*words, cwd=mine, stdin=subprocess.DEVNULL)) if is_thorough() else here


# -- the mark ----------------------------------------------------------------------------------------------------------


def test_a_marked_callable_is_the_same_callable() -> None:
    def plant() -> int:
        return 7

    assert registered(plant) is plant
    assert plant() == 7
    with pytest.raises(TypeError, match="cannot be marked; mark a function of your own that calls it"):
        registered(os.getcwd)
    with pytest.raises(TypeError, match="put before a function or class, not 3"):
        registered(3)  # type: ignore[type-var]


def test_what_is_marked_or_of_the_right_base_may_be_named(mine: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mdp_of("ibis:plant") == ol.instances.forest()
        assert mdp_of("ibis:Chain").horizon == 2
        assert type(channel_of("ibis:Slow")).__name__ == "Slow"
        assert type(learner_of("ibis:Idle")).__name__ == "Idle"
        assert mdp_of("oldlight.instances:forest") == ol.instances.forest()


RESOLVED: dict[str, Callable[[str], Any]] = {
    "a process": mdp_of,
    "a process as data": lambda name: mdp_of({"name": name, "cmd": "touch called"}),
    "a channel": channel_of,
    "a part of a channel": lambda name: channel_of(f"loss:0.1+{name}"),
    "a channel in a channel": lambda name: channel_of({"kind": "capped", "channel": name, "max_delay": 2}),
    "a learner": learner_of,
    "an environment's channel": lambda name: gym.make("oldlight.envs:oldlight/SensingChain-v0", channel=name),
    "a wrapper's channel": lambda name: ol.envs.ImpairedObservation(gym.make("CartPole-v1"), name),
    "an instance": lambda name: study_of(instances=[{"name": name, "cmd": "touch called"}]),
    "a study's channel": lambda name: study_of(channels=[{"name": name, "cmd": "touch called"}]),
    "a study's learner": lambda name: study_of(learners=[{"name": name, "cmd": "touch called"}], episodes=1),
    "a task": lambda name: study_of(tasks=[name]),
    "a policy": lambda name: study_of(tasks=[{"name": "evaluate", "policy": name}]),
}


def study_of(**keys: Any) -> Any:
    return load_study({"name": "s", "instances": ["forest"], "tasks": ["gap"]} | keys)


@pytest.mark.parametrize(
    "name", ["subprocess:getoutput", "shutil:rmtree", "builtins:exec", "numpy:save", "oldlight.checks:write_text"]
)
@pytest.mark.parametrize("way", RESOLVED)
def test_what_was_not_written_to_be_named_is_refused(way: str, name: str, mine: Path) -> None:
    """Whatever is named, wherever: installed code, and this package's own, without the mark is not called."""
    with pytest.raises(ValueError, match=rf"{name} may not be named: .*@oldlight\.registered"):
        RESOLVED[way](name)
    assert not Path("called").exists()


def test_a_channel_file_names_no_more_than_others(mine: Path) -> None:
    Path("link.json").write_text('{"kind": "capped", "max_delay": 1, "channel": "subprocess:getoutput"}')
    with pytest.raises(ValueError, match="expected data such as"):  # data only: not even a name
        channel_of("file:link.json")


def test_a_standard_module_is_not_even_imported(mine: Path) -> None:
    sys.modules.pop("this", None)  # it prints a poem when it is imported
    with pytest.raises(ValueError, match="this is a module of Python's standard library"):
        mdp_of("this:d")
    assert "this" not in sys.modules


@pytest.mark.parametrize("name", ["ibis:unmarked", "ibis:bound", "ibis:has_everything"])
def test_unmarked_code_in_ones_own_folder_works_for_now(name: str, mine: Path) -> None:
    with pytest.warns(DeprecationWarning, match=rf"{name} is not marked: put @oldlight.registered before") as caught:
        assert isinstance(mdp_of(name), ol.TabularMDP)
    assert caught[0].filename == __file__  # where a reader of the warning has something to change
    with pytest.warns(DeprecationWarning, match="ibis:Unmarked is not marked"):  # a mark is not inherited
        learner_of("ibis:Unmarked")


@pytest.mark.parametrize("name", ["ibis:getoutput", "ibis:system"])
def test_what_ones_own_module_imports_is_not_ones_own(name: str, mine: Path) -> None:
    with pytest.raises(ValueError, match=rf"{name} may not be named"):
        mdp_of(name)


def test_unmarked_code_elsewhere_is_refused(mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Python's path is not in one's own folder; nor is what is installed below it, as in a .venv."""
    elsewhere = mine / "venv" / "site-packages"
    elsewhere.mkdir(parents=True)
    (elsewhere / "ibis_elsewhere.py").write_text(MODULE)
    monkeypatch.syspath_prepend(elsewhere)
    with pytest.raises(
        ValueError, match=r"ibis_elsewhere:unmarked may not be named: .*ibis_elsewhere\.py does not mark it"
    ):
        mdp_of("ibis_elsewhere:unmarked")
    assert mdp_of("ibis_elsewhere:plant") == ol.instances.forest()


def test_the_command_line_says_what_is_not_marked(mine: Path, command: Any) -> None:
    done = command("gap", "ibis:unmarked", "-c", "constant:1")
    assert done.returncode == 0, done.stderr
    assert "Warning: ibis:unmarked is not marked: put @oldlight.registered" in done.stderr
    done = command("gap", "subprocess:getoutput")
    assert done.returncode == 2
    assert "subprocess:getoutput may not be named" in done.stderr


# -- where it is looked for --------------------------------------------------------------------------------------------


def test_what_is_installed_comes_first(mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "installed"
    installed.mkdir()
    (installed / "ibis.py").write_text(
        "import oldlight\n@oldlight.registered\ndef plant(): return oldlight.instances.dichotomy(1)\n"
    )
    monkeypatch.syspath_prepend(installed)
    (mine / "s.toml").write_text('name = "s"\ninstances = ["ibis:plant"]\ntasks = ["gap"]\n')
    (job,) = load_study(mine / "s.toml").jobs()
    assert job.problem.mdp == ol.instances.dichotomy(1)  # type: ignore[union-attr]
    assert not Path("imported").exists()


HOW = [("console", False), ("-m", True), ("console", True), ("-m", False)]


@pytest.mark.parametrize(("how", "code"), HOW if is_thorough() else HOW[:2])
def test_modules_beside_a_study_take_nobodys_place(code: bool, how: str, mine: Path) -> None:
    """pyarrow.py and pickle.py beside the study, which is also the current folder: neither the command nor its workers import them.
    Without code of its own nothing of the folder is imported at all, not even what is not installed."""
    for name in ("pyarrow", "pickle", "selectors", "numpy", "ibis_not_installed"):
        (mine / f"{name}.py").write_text(f"open({str(mine / 'shadowed')!r}, 'w')\n")
    (mine / "s.toml").write_text(STUDY if code else STUDY.replace(', "ibis:one"', ""))
    words = ("run", "s.toml", "--workers", "1", *(["--trust"] if code else []))
    if how == "-m":  # Python itself looks in the current folder first, and imports what it needs to start
        for name in ("pickle", "selectors"):
            (mine / f"{name}.py").unlink()
        command = [sys.executable, "-m", "oldlight", *words]
        done = subprocess.run(command, cwd=mine, capture_output=True, text=True, timeout=300)
    else:
        done = oldlight(*words, cwd=mine)
    assert done.returncode == 0, done.stderr
    assert status("runs/s").complete
    assert not (mine / "shadowed").exists()
    assert (mine / "imported").exists() is code


def test_a_worker_has_the_folder_on_its_path_only_where_code_is_named(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = list(sys.path)
    study = load_study("study.toml")
    assert {job.path for job in study.jobs()} == {str(mine)}
    assert load_study_text('name = "s"\ninstances = ["forest"]\ntasks = ["gap"]\n').jobs()[0].path is None
    for job in study.jobs():  # as a worker would do them
        event = perform(PackedJob.of(job), RunSettings(None, 1.0, ol.__version__))
        assert event.kind == "done", event.error
    assert sys.path == [*before, str(mine)]  # at the end, and it stays
    sys.path.remove(str(mine))


def load_study_text(text: str, **options: Any) -> Any:
    Path("text.toml").write_text(text)
    return load_study("text.toml", **options)


def test_a_worker_refuses_what_is_not_marked(mine: Path) -> None:
    """It resolves names as everybody does, whatever a packed job says."""
    (job, *_) = load_study("study.toml").jobs()
    forged = {"problem": job.content["problem"], "task": {"name": "subprocess:getoutput", "options": {}}}
    packed = PackedJob("x", str(mine), pickle.dumps(dataclasses.replace(job, content=forged)))
    event = perform(packed, RunSettings(None, 1.0, ol.__version__))
    sys.path.remove(str(mine))
    assert event.kind == "failed"
    assert "subprocess:getoutput may not be named" in event.error


def test_resolving_in_a_thread_does_not_touch_others(mine: Path) -> None:
    found: list[Any] = []
    with looking_in("/", importing=False):
        thread = threading.Thread(target=lambda: found.append(resolve("ibis:plant", "")))
        thread.start()
        thread.join()
        with pytest.raises(NotChecked):
            resolve("ibis:plant", "")
    assert found


# -- nothing is imported -----------------------------------------------------------------------------------------------

EVERYWHERE = """
name = "everywhere"
episodes = 2
instances = ["forest", "ibis:plant", "gym:ibis_env:Own-v0@3", "env:ibis_env:Other-v0"]
channels = ["constant:1", "ibis:Slow+ibis:Drop", {kind = "capped", channel = "ibis:Inner", max_delay = 2}]
learners = ["UniformRandom", "ibis:Idle"]
tasks = ["gap", "ibis:one", {name = "evaluate", policy = "ibis:policy"}]
"""


def test_a_study_without_its_code(mine: Path) -> None:
    """Each place where code can be named is found, and nothing is imported; the rest is built and checked."""
    study = load_study_text(EVERYWHERE, import_code=False)
    names = ["plant", "Slow", "Drop", "Inner", "Idle", "one", "policy"]
    assert set(study.code) == {f"ibis:{name}" for name in names} | {"ibis_env:Own-v0", "ibis_env:Other-v0"}
    assert [job.label for job in study.jobs()] == ["UniformRandom", "gap"]
    study.check()
    assert not Path("imported").exists()
    with pytest.raises(
        ValueError, match=r"loaded with import_code=False, so ibis:plant was not imported; run study.with_code()"
    ):
        run_study(study, "runs")
    with pytest.raises(ValueError, match="unknown task 'gpa'; did you mean gap"):
        load_study_text(EVERYWHERE.replace('"gap"', '"gpa"'), import_code=False)


def test_with_its_code_it_is_the_whole_study(mine: Path) -> None:
    study = load_study("study.toml", import_code=False).with_code()
    assert [c.id for c in study.jobs()] == [c.id for c in load_study("study.toml").jobs()]
    assert (len(study.jobs()), study.code) == (2, ("ibis:one",))
    assert study.with_code() is study


def test_dry_run_status_and_report_import_nothing(mine: Path, command: Any) -> None:
    done = command("run", "study.toml", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "1 jobs without those of its own code" in done.stderr
    assert "not checked: ibis:one" in done.stderr
    assert not Path("imported").exists()
    assert command("run", "study.toml", "--trust", "--workers", "1", "--out", "runs").returncode == 0
    assert status("runs").complete
    Path("imported").unlink()
    for words in (("status", "runs"), ("report", "runs")):
        done = command(*words)
        assert done.returncode == 0, done.stderr
        assert "not checked: ibis:one" in done.stderr
    assert not Path("imported").exists()
    assert status("runs").code == ("ibis:one",)


def test_a_dry_run_does_not_run_a_command(mine: Path, command: Any) -> None:
    (mine / "s.toml").write_text(
        'name = "s"\ninstances = [{name = "subprocess:getoutput", cmd = "touch called"}]\ntasks = ["gap"]\n'
    )
    done = command("run", "s.toml", "--dry-run")
    assert done.returncode == 2
    assert "instances[0]: subprocess:getoutput may not be named" in done.stderr
    assert not Path("called").exists()


# -- trust -------------------------------------------------------------------------------------------------------------


def test_a_folder_is_trusted_once(mine: Path, command: Any) -> None:
    done = command("run", "study.toml", "--workers", "1")
    assert done.returncode == 2
    assert f"ibis:one  ({mine / 'ibis.py'})" in done.stderr
    assert "has not been trusted yet" in done.stderr
    assert "give --trust" in done.stderr
    assert not Path("imported").exists()
    assert not is_trusted(mine)
    assert command("run", "study.toml", "--workers", "1", "--trust").returncode == 0
    assert is_trusted(mine)
    assert json.loads(trust_file().read_text()) == {"format": 1, "folders": [str(mine)]}
    (mine / "runs" / "study" / "study.json").unlink()
    assert command("run", "study.toml", "--workers", "1").returncode == 0


def test_a_study_without_code_needs_no_trust(mine: Path, command: Any) -> None:
    ours = Path(__file__).parents[2] / "docs" / "studies" / "deep.toml"
    assert load_study(ours, import_code=False).code == ()
    (mine / "plain.toml").write_text('name = "s"\ninstances = ["forest"]\ntasks = ["gap"]\n')
    done = command("run", "plain.toml", "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert not trust_file().exists()


@pytest.mark.parametrize("answer", ["y", "n"])
def test_on_a_terminal_it_asks(answer: str, mine: Path) -> None:
    ours, theirs = pty.openpty()
    code = "import sys; sys.argv[0] = 'oldlight'; from oldlight.cli import main; main()"
    command = [sys.executable, "-P", "-c", code, "run", "study.toml", "--workers", "1"]
    process = subprocess.Popen(command, cwd=mine, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(ours, f"{answer}\n".encode())
    said = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while piece := os.read(ours, 4096):
            said += piece
    os.close(ours)
    text = re.sub(r"\s+", " ", said.decode())
    assert f"ibis:one ({mine / 'ibis.py'})" in text
    assert f"Trust the folder {mine} from now on? [y/N]" in text
    assert process.wait(timeout=60) == (0 if answer == "y" else 2), text
    assert is_trusted(mine) is Path("imported").exists() is (answer == "y")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format": 2, "folders": []}', '{"format": 1, "folders": [3]}', "[" * 200_000, b"\xff"]
)
def test_a_damaged_list_stops_nobody(text: str | bytes, mine: Path) -> None:
    trust_file().parent.mkdir(parents=True)
    trust_file().write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.warns(UserWarning, match=r"trusted\.json is damaged or cannot be read"):
        assert not is_trusted(mine)
    with pytest.warns(UserWarning, match="damaged"):
        remember(mine)
    assert is_trusted(mine)


def test_a_list_that_cannot_be_written_stops_nobody(mine: Path, command: Any) -> None:
    trust_file().parents[1].write_text("a file where the folder should be")
    with (
        pytest.warns(UserWarning, match=r"trusted\.json could not be written .* trusted all the same"),
        pytest.warns(UserWarning, match="cannot be read"),
    ):
        remember(mine)
    done = command("run", "study.toml", "--workers", "1", "--trust")
    assert done.returncode == 0, done.stderr


def test_the_list_is_the_users(mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert trust_file() == tmp_path / "config" / "oldlight" / "trusted.json"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for unusable in ("", "relative/path"):  # the XDG specification: not absolute, not used
        monkeypatch.setenv("XDG_CONFIG_HOME", unusable)
        assert trust_file() == tmp_path / "home" / ".config" / "oldlight" / "trusted.json"
    remember(mine)
    other = tmp_path / "other"
    other.mkdir()
    (tmp_path / "link").symlink_to(mine)
    assert is_trusted(tmp_path / "link")
    assert not is_trusted(other)
    assert not is_trusted(mine / "below")
    remember(other)
    assert is_trusted(mine)


def test_help_says_what_guards_against_what(mine: Path, command: Any) -> None:
    text = re.sub(r"[\s│]+", " ", command("run", "--help").stdout)
    assert "The mark guards against accidents" in text
    assert "--trust guards against strangers" in text


def test_names_on_the_terminal_move_no_cursor(mine: Path, command: Any) -> None:
    (mine / "s.toml").write_text('name = "s"\ninstances = ["env:ibis:\\u001b[2J-v0"]\ntasks = ["ibis:one"]\n')
    done = command("run", "s.toml", "--dry-run")
    assert "not checked: ibis:\\x1b[2J-v0" in done.stderr
    assert "\x1b[2J" not in done.stderr


def test_whereabouts_imports_nothing(mine: Path) -> None:
    assert own_code.whereabouts("ibis:one", mine) == str(mine / "ibis.py")
    assert own_code.whereabouts("no_such_module_at_all:x", mine) == "not found"
    assert "ibis" not in sys.modules
