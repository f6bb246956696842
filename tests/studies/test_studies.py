"""Studies: what a file may say, ids and luck, results against direct calls, resuming, damage, failures, one's own code."""

from __future__ import annotations

import json
import re
import shutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.learners import DelayedUCBVI, PosteriorSampling, learn
from oldlight.studies import Study, load_study, numbers, results, run_study, runner, status, store
from oldlight.studies.cells import seed_of
from oldlight.studies.lock import locked
from oldlight.studies.result import Damaged, is_time, unpack
from oldlight.studies.spec import StudySpec
from oldlight.studies.work import Event, Job, Parcel, perform

SMALL = {"name": "sensing_chain", "p": 0.8, "n_states": 4, "n_actions": 2, "horizon": 4, "label": "small"}
KEYS: dict[str, Any] = {
    "name": "delays",
    "seed": 3,
    "seeds": 2,
    "episodes": 40,
    "start": "warm",
    "instances": [SMALL],
    "channels": ["constant:1", {"kind": "loss", "rate": 0.25, "label": "a quarter lost"}],
    "learners": ["UniformRandom"],
    "tasks": ["gap"],
}
TOML = """
name = "delays"
seed = 3
seeds = 2
episodes = 40
start = "warm"
channels = ["constant:1", {kind = "loss", rate = 0.25, label = "a quarter lost"}]
learners = ["UniformRandom"]
tasks = ["gap"]

[[instances]]
name = "sensing_chain"
p = 0.8
n_states = 4
n_actions = 2
horizon = 4
label = "small"
"""


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells are done in this process: what is tested is not the engine."""

    def engine(name: str, cells: Any, job: Job, workers: int, scheduler: Any) -> Iterator[Event]:
        for cell in cells:
            yield perform(Parcel.of(cell), job)

    monkeypatch.setattr(runner, "_engine", engine)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with code of one's own in it."""
    (tmp_path / "heron.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("heron", None)


OWN = """
import os, signal
from pathlib import Path
import numpy as np
import oldlight as ol

@ol.registered
class Stubborn:  # a learner with no state() and no restore()
    def __init__(self, *, action=0): self.action = action
    def start(self, setting, rng): self.seen = 0
    def act(self, info): return self.action
    def see(self, episode): self.seen += 1

@ol.registered
def make(*, action=1): return Stubborn(action=action)

@ol.registered
def broken(): return {}["no such key"]

class Late(ol.DelayChannel):
    def __init__(self, d): self.d = d
    def law(self, H, S, A): return ol.ConstantDelay(self.d).law(H, S, A)

@ol.registered
def coin(horizon=3):
    return ol.TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), horizon=horizon)

@ol.registered
def everything(problem, seed, *, episodes=7):
    rng = np.random.default_rng(seed)
    return {"draws": rng.random(episodes), "counts": np.arange(3), "yes": np.array([True, False]), "none": np.zeros(0),
            "words": np.array(["a", "longer"]), "horizon": problem.horizon, "name": "heron", "nan": float("nan"),
            "seconds": 0.5, "fine": True}

@ol.registered
def fails_without(problem, seed, *, path):
    if not Path(path).exists():
        raise ValueError(f"no {path} for {seed}")
    return {"ok": 1}

@ol.registered
def dies(problem, *, how):
    if how == "killed": os.kill(os.getpid(), signal.SIGKILL)
    if how == "exits": os._exit(3)
    return {"ok": 1}

@ol.registered
def first(problem): return ol.FunctionPolicy(lambda info: 0, problem.n_actions)

@ol.registered
def wades(problem, seed, *, deep=0): return {"depth": deep}
def too_deep(problem, *, deep=0):
    if deep > problem.horizon: raise ValueError(f"deep is {deep}, expected at most {problem.horizon}")
wades.refuse = too_deep

@ol.registered
def square(problem): return {"matrix": np.zeros((2, 2))}
@ol.registered
def seven(problem): return 7
"""


def small_study(**changes: Any) -> Study:
    return load_study({key: value for key, value in (KEYS | changes).items() if value is not None})


# -- what a study may say ----------------------------------------------------------------------------------------------


def test_a_file_and_a_mapping_are_the_same_study(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(TOML)
    spoken, given = load_study(tmp_path / "study.toml").cells(), small_study().cells()
    assert [(c.id, c.heading) for c in spoken] == [(c.id, c.heading) for c in given]
    # 1 instance × 2 channels × (1 learner × 2 seeds + 1 task that draws nothing)
    assert [(c.channel, c.label, c.replicate) for c in given] == [
        (channel, *who)
        for channel in ("constant:1", "a quarter lost")
        for who in (("UniformRandom", 0), ("UniformRandom", 1), ("gap", 0))
    ]


def test_blocks_take_from_the_top_what_they_leave_out() -> None:
    blocks = [
        {"name": "one", "tasks": ["solve"], "channels": ["constant:0"]},
        {"episodes": 80, "start": "cold", "seeds": 1},
        {"learners": ["PosteriorSampling"], "channels": ["constant:2"], "seeds": 3},
    ]
    cells = small_study(blocks=blocks).cells()
    assert [c.label for c in cells if c.block == "one"] == ["solve"]  # and neither learner nor task from the top
    second = [c for c in cells if c.block == "block 2"]
    assert {c.label for c in second} == {"UniformRandom", "gap"}
    assert {c.problem.start for c in second} == {None}
    assert {c.episodes for c in second if c.kind == "learner"} == {80}
    assert [(c.label, c.replicate, c.episodes) for c in cells if c.block == "block 3"] == [
        ("PosteriorSampling", r, 40) for r in range(3)
    ]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"episods": 4}, "study: unknown key 'episods'; did you mean episodes?"),
        ({"blocks": [{"tasks": ["gap"], "chanels": []}]}, "unknown key 'chanels' in blocks[0]; did you mean channels?"),
        ({"seeds": "two"}, "study: seeds is 'two', expected a whole number"),
        ({"seeds": 0, "start": "hot"}, "seeds is 0, expected greater than or equal to 1; also start is 'hot', expected 'cold' or 'warm'"),
        ({"failure": 1.5}, "failure is 1.5, expected less than 1"),
        ({"instances": []}, "instances is empty, expected at least one entry"),
        ({"instances": None}, "study: instances is missing"),
        ({"name": None}, "study: name is missing"),
        ({"learners": None, "tasks": None}, "learners is missing (or tasks)"),
        ({"episodes": None}, "learners[0]: a learner needs a number of episodes, and episodes is missing"),
        ({"instances": ["sensing_chian"]}, "instances[0]: unknown process 'sensing_chian'; did you mean sensing_chain?"),
        ({"instances": [SMALL | {"nstates": 4}]}, "has no option 'nstates'; did you mean n_states?"),
        ({"instances": [SMALL | {"start": "hot"}]}, 'instances[0]: start is \'hot\', expected "cold" or "warm"'),
        ({"instances": [{"p": 0.8}]}, "instances[0]: a table needs a name"),
        ({"channels": ["constnat:1"]}, "channels[0]: channel 'constnat:1': unknown kind 'constnat'; did you mean constant?"),
        ({"channels": [{"kind": "loss", "rat": 0.1}]}, "channels[0]: channel loss: unknown key 'rat'; did you mean rate?"),
        ({"channels": [3]}, "channels[0]: 3 is not a name"),
        ({"channels": ["geometric:0.5+loss:0.1"]}, "small behind geometric:0.5+loss:0.1: a warm start behind"),
        ({"learners": ["DelayedUCB"]}, "learners[0]: unknown learner 'DelayedUCB'; did you mean DelayedUCBVI?"),
        ({"learners": [{"name": "DelayedUCBVI", "poled": True}]}, "has no option 'poled'; did you mean pooled?"),
        ({"learners": ["nothere:Mine"]}, "learners[0]: nothere:Mine: no module 'nothere'"),
        ({"tasks": ["gaps"]}, "tasks[0]: unknown task 'gaps'; did you mean gap?"),
        ({"tasks": [{"name": "gap", "tolerence": 0.1}]}, "gap has no option 'tolerence'; did you mean tolerance?"),
        ({"tasks": [{"name": "evaluate", "policy": "qmpd"}]}, "tasks[0]: unknown policy 'qmpd'; did you mean qmdp?"),
        ({"instances": [{"name": "env:CartPole-v1", "strt": "warm"}]}, "'env:CartPole-v1': an environment is env:ID and takes no further keys"),
        ({"instances": ["env:"]}, "'env:': an environment is env:ID"),
        ({"channels": [{"kind": "constant", "d": 1, "label": 3}]}, "channels[0]: label is 3, expected a word"),
        ({"tasks": ["gap", {"name": "gap"}]}, "tasks[1]: the label 'gap' is there twice"),
        ({"tasks": ["gap", {"name": "gap", "label": "b"}]}, "holds the same thing twice: b on small behind constant:1 is gap"),
        ({"channels": ["loss:0.25", "seen:0.75"]}, "holds the same thing twice"),
    ],
)  # fmt: skip
def test_mistakes_are_named_in_one_paragraph(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError) as caught:
        small_study(**changes)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("study: ")


def test_a_file_that_is_no_study_is_named(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    with pytest.raises(FileNotFoundError, match="no such study file"):
        load_study(path)
    path.write_text("name = [")
    with pytest.raises(ValueError, match=r"study\.toml: damaged, or not a study file in TOML"):
        load_study(path)
    path.write_text(TOML.replace("seeds", "sedes"))
    with pytest.raises(ValueError, match=r"study\.toml: unknown key 'sedes'; did you mean seeds\?"):
        load_study(path)


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"channels": ["constant:40"], "instances": ["sensing_chain"]}, ol.TooLarge, "UniformRandom on sensing_chain behind constant:40: "),
        ({"channels": ["bursty:0.1,0.5"]}, ValueError, "loss is planned and valued exactly for independent losses"),
        ({"learners": ["LossUCBVI"], "channels": ["constant:1"]}, ValueError, "LossUCBVI on small behind constant:1: "),
        ({"learners": ["DelayedUCBVI"], "instances": ["inventory"], "start": "cold"}, ValueError, "assume [0, 1]"),
        ({"learners": None, "tasks": [{"name": "simulate", "episodes": 0}]}, ValueError, "episodes is 0, expected a whole number ≥ 1"),
        ({"learners": None, "tasks": [{"name": "gap", "tolerance": -1.0}]}, ValueError, "tolerance is -1, expected a number ≥ 0"),
        ({"learners": None, "tasks": [{"name": "solve", "depth": 1}], "channels": ["loss:0.1"]}, ValueError, "depth shortens delays"),
        ({"by_start": True, "evaluate": "sampled"}, ValueError, 'by_start = true goes with evaluate = "exact", not \'sampled\''),
        ({"learners": None, "tasks": [{"name": "simulate", "luck": "good"}]}, ValueError, "luck is 'good'"),
    ],
)  # fmt: skip
def test_what_would_be_refused_later_is_refused_before_work(
    tmp_path: Path, changes: dict[str, Any], error: type[Exception], says: str, inline: None
) -> None:
    study = small_study(**changes)
    with pytest.raises(error) as caught:
        run_study(study, tmp_path / "runs", progress=False)
    assert says in str(caught.value)
    assert not list((tmp_path / "runs" / "cells").iterdir())


DEEP = {"name": "oldlight.deep:train"}


@pytest.mark.parametrize(
    ("instance", "options", "says"),
    [
        ("env:CartPole-v1", {"algorithm": "A2C"}, "algorithm is 'A2C', expected one of 'PPO', 'DQN'"),
        ("env:CartPole-v1", {"observation": "foo"}, "observation is 'foo', expected one of"),
        ("env:CartPole-v1", {"steps": 0}, "steps is 0, expected a whole number ≥ 1"),
        ("env:CartPol-v1", {}, "Environment `CartPol` doesn't exist. Did you mean: `CartPole`?"),
        ("sensing_chain:0.8", {}, 'takes an environment by its id, not ImpairedMDP; as an instance: "env:'),
        ("env:CartPole-v1", {}, "stable_baselines3 is not installed; deep learners need: pip install 'oldlight[deep]'"),
    ],
)
def test_mistakes_of_a_deep_learner_are_found_before_training(
    instance: str, options: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gymnasium")
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)  # as if the extra were not there
    study = load_study({"name": "s", "instances": [instance], "channels": ["constant:1"], "tasks": [DEEP | options]})
    with pytest.raises(ValueError) as caught:
        study.check()
    assert says in str(caught.value)
    assert str(caught.value).startswith("study: oldlight.deep:train")


def test_a_task_of_ones_own_refuses_before_work(own: Path, inline: None) -> None:
    """Its `refuse` is given the problem and its options, without the seed."""
    given = {"learners": None, "channels": ["constant:1"]}
    study = small_study(tasks=[{"name": "heron:wades", "deep": 5}, {"name": "heron:square"}], **given)
    with pytest.raises(
        ValueError, match=r"study: heron:wades\(deep=5\) on small behind constant:1: deep is 5, expected at most 4"
    ):
        run_study(study, own / "runs", progress=False)
    assert not list((own / "runs" / "failed").iterdir())  # not even what would have failed was begun
    assert run_study(
        small_study(tasks=[{"name": "heron:wades", "deep": 4}], **given), own / "runs", progress=False
    ).complete


# -- ids and luck ------------------------------------------------------------------------------------------------------


def ids(**changes: Any) -> set[str]:
    return {cell.id for cell in small_study(**changes).cells()}


def test_an_id_is_the_hash_of_what_decides_the_result() -> None:
    same = ids()
    assert ids(name="another name", checkpoint_every=1.0) == same
    assert ids(channels=list(reversed(KEYS["channels"]))) == same
    assert ids(channels=[ol.ConstantDelay(1), {"kind": "loss", "seen": 0.75}]) == same
    assert (
        ids(instances=[{"name": ol.instances.sensing_chain(0.8, n_states=4, n_actions=2, horizon=4), "label": "x"}])
        == same
    )
    assert ids(every=1, evaluate="exact", failure=0.1, actuation=0) == same
    assert ids(tasks=[{"name": "gap", "tolerance": 0.0, "label": "price"}]) == same
    assert ids(learners=[ol.learners.UniformRandom]) == same
    assert ids(channels=[ol.ConstantDelay(1).with_period(20.0), "loss:0.25"]) == same

    learner = {c.id for c in small_study(tasks=None).cells()}
    task = {c.id for c in small_study(learners=None).cells()}
    assert learner | task == same
    for changes in (
        {"seed": 4},
        {"episodes": 41},
        {"every": 2},
        {"evaluate": "sampled"},
        {"failure": 0.2},
        {"start": "cold"},
        {"instances": [SMALL | {"p": 0.81}]},
        {"instances": [SMALL | {"horizon": 5}]},
        {"channels": ["constant:2", "loss:0.3"]},
        {"learners": [{"name": "DelayedUCBVI", "pooled": True}]},
    ):
        assert not ids(tasks=None, **changes) & learner, changes
    assert ids(learners=None, seed=4, seeds=9) == task  # nothing is drawn


def test_ids_and_seeds_stay_what_they_were() -> None:
    """Pinned: otherwise a new version of the package would find none of the results of an older one."""
    cell = load_study({"name": "x", "seed": 1, "episodes": 10, "instances": ["sensing_chain:0.75"], "channels": ["constant:1"],
                       "learners": [{"name": "DelayedUCBVI", "c": 0.5}]}).cells()[0]  # fmt: skip
    assert (cell.id, cell.seed) == (PINNED_ID, PINNED_SEED)


PINNED_ID, PINNED_SEED = "8d3a661d6b93a191", 2814326541382699446


def test_learners_on_one_problem_see_the_same_luck() -> None:
    many = small_study(
        learners=["UniformRandom", "PosteriorSampling"], tasks=[{"name": "simulate", "episodes": 10}]
    ).cells()
    seeds: dict[tuple[str, int], set[int | None]] = {}
    for cell in many:
        seeds.setdefault((cell.channel, cell.replicate), set()).add(cell.seed)
    assert all(len(found) == 1 for found in seeds.values())
    assert len({found.pop() for found in seeds.values()}) == 4  # two channels, two replicates: all different
    alone = small_study(learners=["PosteriorSampling"], channels=["constant:1"], seeds=1, tasks=None).cells()[0]
    assert alone.seed == next(c.seed for c in many if c.channel == "constant:1" and c.replicate == 0)


def test_seeds_look_independent() -> None:
    """63-bit seeds: each bit is set in about half of 4,000 of them (5 standard deviations)."""
    found = np.array(
        [seed_of(root, {"p": p}, r) for root in range(10) for p in range(20) for r in range(20)], dtype=np.uint64
    )
    assert len(set(found.tolist())) == 4000
    share = ((found[:, None] >> np.arange(63, dtype=np.uint64)) & np.uint64(1)).mean(axis=0)
    assert np.abs(share - 0.5).max() < 5 * 0.5 / np.sqrt(4000)
    assert int(found.max()) < 2**63


# -- results -----------------------------------------------------------------------------------------------------------


def test_results_are_those_of_direct_calls(tmp_path: Path) -> None:
    """The whole way, with two worker processes, against the library called by hand."""
    study = small_study(learners=["DelayedUCBVI", {"name": "PosteriorSampling", "pooled": True}], every=4, channels=["constant:1"],
                        tasks=["gap", "solve", {"name": "evaluate", "policy": "memoryless"},
                               {"name": "simulate", "episodes": 500, "luck": "paired"}])  # fmt: skip
    seen: list[Any] = []
    state = run_study(study, tmp_path / "runs", workers=2, progress=seen.append)
    assert (state.done, state.total, state.complete) == (9, 9, True)
    assert seen[-1].share == 1.0
    assert "9 of 9 cells done" in str(seen[-1])

    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8, n_states=4, n_actions=2, horizon=4), ol.ConstantDelay(1),
                             start=ol.WarmStart())  # fmt: skip
    by = {(r.label, r.replicate): r for r in results(tmp_path / "runs")}
    for label, make in (
        ("DelayedUCBVI", DelayedUCBVI),
        ("PosteriorSampling(pooled=True)", lambda: PosteriorSampling(pooled=True)),
    ):
        for replicate in range(2):
            got = by[label, replicate]
            run = learn(problem, make(), 40, seed=got.seed, every=4)  # type: ignore[arg-type]
            for name in ("values", "half_widths", "returns", "estimates"):
                assert np.array_equal(got.columns[name], getattr(run, name), equal_nan=True), name
            assert got.scalars["best"] == run.best
            assert np.array_equal(got.run.regret, run.regret)
            assert got.run.done == 40
    price = ol.gap(problem)
    assert by["gap", 0].scalars["gap"] == price.value
    assert by["solve", 0].scalars["value"] == price.impaired
    from oldlight.planning.heuristics import memoryless

    assert by["evaluate(policy=memoryless)", 0].scalars["value"] == ol.evaluate(problem, memoryless(problem)).value
    played = by["simulate(episodes=500, luck=paired)", 1]
    assert played.seed is not None
    assert played.scalars["impaired"] == ol.simulate(problem, price.solution.policy, 500, seed=played.seed).mean
    assert played.scalars["full"] == ol.simulate(problem, price.full_policy, 500, seed=played.seed).mean
    assert played.scalars["exact_gap"] == price.value
    assert played.version == ol.__version__
    assert played.machine["numpy"] == np.__version__
    assert played.settings["seed"] == played.seed
    with pytest.raises(ValueError, match="is a task, not a learner"):
        _ = played.run


def test_the_printed_form_of_regret(tmp_path: Path, inline: None) -> None:
    study = small_study(by_start=True, tasks=None, channels=["constant:1"], seeds=1)
    assert not {cell.id for cell in study.cells()} & ids()
    run_study(study, tmp_path / "runs", progress=False)
    (found,) = results(tmp_path / "runs")
    again = learn(study.cells()[0].problem, ol.learners.UniformRandom(), 40, seed=found.seed, by_start=True)  # type: ignore[arg-type]
    assert np.array_equal(found.run.printed_regret, again.printed_regret)


def test_the_monte_carlo_protocol_agrees_with_the_exact_gap(tmp_path: Path, inline: None) -> None:
    """Independent repetitions: their mean is within 5 standard errors of the exact gap, and they spread as their own
    half-widths say (χ² of 19 degrees of freedom in its central 99.9%)."""
    study = small_study(learners=None, channels=["constant:2"], seeds=20, episodes=2000, tasks=["simulate"])
    run_study(study, tmp_path / "runs", progress=False)
    found = [r.scalars for r in results(tmp_path / "runs")]
    gaps = np.array([s["gap"] for s in found])
    variance = np.mean(
        [(s["full_half_width"] ** 2 + s["impaired_half_width"] ** 2) / 1.959963984540054**2 for s in found]
    )
    assert abs(gaps.mean() - found[0]["exact_gap"]) < 5 * np.sqrt(variance / 20)
    assert 5.4 < gaps.var(ddof=1) * 19 / variance < 45.9


def test_running_again_computes_what_is_missing_and_touches_nothing_else(tmp_path: Path, inline: None) -> None:
    folder = tmp_path / "runs"
    first = run_study(small_study(), folder, progress=False)
    assert (first.done, first.total) == (6, 6)
    before = {p.name: (p.stat().st_mtime_ns, p.read_bytes()) for p in (folder / "cells").iterdir()}
    run_study(small_study(), folder, progress=False)
    assert {p.name: (p.stat().st_mtime_ns, p.read_bytes()) for p in (folder / "cells").iterdir()} == before

    changed = small_study(episodes=50, channels=["constant:1"], tasks=[{"name": "gap", "label": "price"}])
    state = run_study(changed, folder, progress=False)
    assert (state.done, state.total, state.others) == (3, 3, 5)  # the gap is the old file; two new ones
    now = {p.name: (p.stat().st_mtime_ns, p.read_bytes()) for p in (folder / "cells").iterdir()}
    assert before.items() <= now.items()
    assert len(now) == 8
    assert [(r.label, len(r.columns.get("values", ()))) for r in results(folder)] == [
        ("UniformRandom", 50),
        ("UniformRandom", 50),
        ("price", 0),  # under the name that the study has for it now
    ]
    run_study(small_study(), folder, progress=False)  # back to the first study: nothing to do
    store.cell_file(folder, small_study().cells()[0].id).unlink()
    state = status(folder)
    assert (state.done, state.waiting, state.total, state.others) == (5, 1, 6, 2)
    assert run_study(small_study(), folder, progress=False).complete


def test_numbers_leave_out_times() -> None:
    assert is_time("seconds")
    assert is_time("plan_seconds")
    assert not is_time("secondsight")


def test_two_runs_have_the_same_numbers_and_different_times(tmp_path: Path, inline: None) -> None:
    for name in ("a", "b"):
        run_study(small_study(), tmp_path / name, progress=False)
    a, b = (list(results(tmp_path / name)) for name in ("a", "b"))
    assert numbers(tmp_path / "a") == numbers(tmp_path / "b")
    assert any(
        not np.array_equal(x.columns["seconds"], y.columns["seconds"])
        for x, y in zip(a, b, strict=True)
        if x.kind == "learner"
    )
    other = small_study(seed=5)
    run_study(other, tmp_path / "c", progress=False)
    assert not set(numbers(tmp_path / "c").values()) & {
        n for r, n in numbers(tmp_path / "a").items() if r not in numbers(tmp_path / "c")
    }


# -- damage ------------------------------------------------------------------------------------------------------------


def flipped(data: bytes, where: int) -> bytes:
    return data[:where] + bytes([data[where] ^ 1]) + data[where + 1 :]


def test_damaged_files_are_named_moved_aside_and_computed_again(tmp_path: Path, inline: None) -> None:
    folder = tmp_path / "runs"
    run_study(small_study(), folder, progress=False)
    before = numbers(folder)
    files = sorted((folder / "cells").glob("*.parquet"))
    whole = [path.read_bytes() for path in files]
    files[0].write_bytes(whole[0][:-20])  # cut off
    files[1].write_bytes(flipped(whole[1], whole[1].index(b'"scalars"') - 3))  # one bit of the settings
    files[2].write_bytes(b"")
    files[3].write_bytes(whole[4])  # another cell's file under this name
    state = status(folder)
    assert set(state.damaged) == {str(path) for path in files[:4]}
    assert (state.done, state.waiting) == (2, 4)
    with pytest.warns(UserWarning, match="damaged .* it is left out"):
        assert len(list(results(folder))) == 2
    with pytest.warns(UserWarning, match="computed again") as told:
        again = run_study(small_study(), folder, progress=False)
    for path in files[:4]:
        assert any(str(path) in str(w.message) and "computed again" in str(w.message) for w in told)
        assert path.with_name(path.name + ".damaged").exists()
    assert again.complete
    assert not again.damaged
    assert numbers(folder) == before
    assert [p.read_bytes() for p in files[4:]] == whole[4:]


def test_one_flipped_bit_anywhere_is_noticed_or_does_not_matter(tmp_path: Path, inline: None) -> None:
    folder = tmp_path / "runs"
    run_study(small_study(tasks=None, channels=["constant:1"], seeds=1), folder, progress=False)
    (path,) = (folder / "cells").glob("*.parquet")
    whole, sound = path.read_bytes(), unpack(path)
    rng = np.random.default_rng(0)
    noticed = 0
    for where in rng.integers(0, len(whole), 300).tolist():
        path.write_bytes(flipped(whole, where))
        try:
            found = unpack(path)
        except Damaged:
            noticed += 1
            continue
        assert found.numbers == sound.numbers  # in a part of the format that holds nothing of ours
        assert found.settings == sound.settings
        assert all(np.array_equal(found.columns[k], v, equal_nan=True) for k, v in sound.columns.items())
    assert noticed > 150


def test_a_checkpoint_that_cannot_be_continued_is_named_and_the_cell_starts_over(tmp_path: Path, inline: None) -> None:
    study = small_study(learners=["PosteriorSampling"], tasks=None, channels=["constant:1"], seeds=1)
    run_study(study, tmp_path / "clean", progress=False)
    folder = tmp_path / "runs"
    store.prepare(folder)
    checkpoint = store.checkpoint_file(folder, study.cells()[0].id)
    checkpoint.write_bytes(b"no checkpoint")
    with pytest.warns(UserWarning, match="cannot be continued .* the cell starts over"):
        run_study(study, folder, progress=False)
    assert numbers(folder) == numbers(tmp_path / "clean")
    assert checkpoint.with_name(checkpoint.name + ".damaged").exists()
    assert not checkpoint.exists()


def test_another_version_does_not_go_on_with_a_checkpoint_and_mixing_versions_warns(
    tmp_path: Path, inline: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "runs"
    now = ol.__version__
    monkeypatch.setattr(ol, "__version__", "0.0.9")
    before = store.checkpoint_file(folder, "x")
    run_study(small_study(tasks=None), folder, progress=False)
    monkeypatch.setattr(ol, "__version__", now)
    assert store.checkpoint_file(folder, "x") != before
    with pytest.warns(
        UserWarning, match=r"of 4 finished cells 4 by oldlight 0\.0\.9, and this is .*: the results mix versions"
    ):
        state = run_study(small_study(), folder, progress=False)
    assert state.versions == {"0.0.9": 4, now: 2}
    assert f"from versions 0.0.9, {now}" in str(state)


def test_a_worker_of_another_version_says_so(tmp_path: Path) -> None:
    cell = small_study().cells()[0]
    event = perform(Parcel.of(cell), Job(None, 1.0, "9.9"))
    assert event.kind == "failed"
    assert "the study was started with 9.9; install the same version everywhere" in event.error


# -- failures ----------------------------------------------------------------------------------------------------------


def test_failed_cells_are_recorded_and_retried_on_request_while_others_go_on(own: Path, inline: None) -> None:
    there = own / "there"
    study = small_study(learners=["UniformRandom"], tasks=[{"name": "heron:fails_without", "path": str(there), "label": "sometimes"}],
                        channels=["constant:1"])  # fmt: skip
    folder = own / "runs"
    state = run_study(study, folder, progress=False)
    assert (state.done, len(state.failed), state.waiting) == (2, 2, 0)
    failure = state.failed[0]
    assert failure.error.startswith("ValueError: no ")
    assert "in fails_without" in failure.traceback
    assert failure.name == "sometimes on small behind constant:1, replicate 0"
    assert json.loads(Path(failure.file).read_text())["version"] == ol.__version__
    assert "2 of 4 cells done, 2 failed" in str(state)

    there.touch()
    assert len(run_study(study, folder, progress=False).failed) == 2  # only on request
    state = run_study(study, folder, retry_failed=True, progress=False)
    assert state.complete
    assert not list((folder / "failed").iterdir())


def test_a_worker_that_dies_fails_its_cell_and_the_others_go_on(own: Path) -> None:
    tasks = [{"name": "heron:dies", "how": how, "label": how} for how in ("killed", "lives", "exits")]
    study = small_study(learners=["UniformRandom"], tasks=tasks, channels=[{"name": "heron:Late", "d": 1}])
    state = run_study(study, own / "runs", workers=1, progress=False)
    assert state.done == 3
    errors = {failure.name.partition(" ")[0]: failure.error for failure in state.failed}
    assert errors.keys() == {"killed", "exits"}
    assert "killed by signal 9 (SIGKILL); was it out of memory?" in errors["killed"]
    assert "exit code 3" in errors["exits"]


# -- one's own code ----------------------------------------------------------------------------------------------------


def test_code_of_ones_own_beside_the_study(own: Path, inline: None) -> None:
    (own / "study.toml").write_text("""
name = "mine"
episodes = 12
instances = [{name = "heron:coin", horizon = 4, label = "coin"}]
channels = [{name = "heron:Late", d = 1}, "constant:2"]
learners = [{name = "heron:Stubborn", action = 1}]
tasks = ["heron:everything"]
""")
    study = load_study(own / "study.toml")
    assert [c.label for c in study.cells()] == ["heron:Stubborn(action=1)", "heron:everything"] * 2
    state = run_study(study, own / "runs", progress=False)
    assert state.complete, state.failed
    by = {(r.channel, r.label): r for r in results(own / "runs")}
    stubborn = by["heron:Late(d=1)", "heron:Stubborn(action=1)"]
    assert stubborn.columns["values"].tolist() == [2.0] * 12  # whatever it does, it is right half of four times
    everything = by["constant:2", "heron:everything"]
    assert everything.seed is not None
    assert np.array_equal(everything.columns["draws"], np.random.default_rng(everything.seed).random(12))
    assert everything.columns["counts"].tolist() == [0, 1, 2]
    assert everything.columns["yes"].tolist() == [True, False]
    assert everything.columns["none"].tolist() == []
    assert everything.columns["words"].tolist() == ["a", "longer"]
    assert everything.scalars["name"] == "heron"
    assert everything.scalars["fine"] is True
    assert np.isnan(everything.scalars["nan"])

    ours = {"name": "evaluate", "policy": "heron:first"}
    old = {cell.id for cell in study.cells()} | ids(learners=None, tasks=[ours])
    (own / "heron.py").write_text(OWN.replace("rng.random(episodes)", "rng.random(episodes) ** 2"))
    sys.modules.pop("heron")
    edited = {cell.id for cell in load_study(own / "study.toml").cells()} | ids(learners=None, tasks=[ours])
    assert not old & edited  # an edited learner is another learner, and so is a task or a policy


def test_options_are_those_of_what_is_called(own: Path) -> None:
    """A factory whose default differs from that of the class it makes: an option that says the class's default still counts."""
    given = [{"name": "heron:make", "action": 0, "label": "zero"}, {"name": "heron:make", "action": 1, "label": "one"}]
    cells = small_study(learners=given, tasks=None, channels=["constant:1"], seeds=1).cells()
    assert [cell.who["options"] for cell in cells] == [{"action": 0}, {}]


def test_mistakes_in_code_of_ones_own_are_located(own: Path) -> None:
    with pytest.raises(ValueError, match=r"study: instances\[0\]: KeyError: 'no such key'"):
        small_study(instances=["heron:broken"])


def test_a_task_must_return_scalars_and_columns(own: Path, inline: None) -> None:
    study = small_study(learners=None, tasks=["heron:square", "heron:seven"], channels=["constant:1"])
    one, two = run_study(study, own / "runs", progress=False).failed
    assert "'matrix' of shape (2, 2)" in one.error
    assert "returned int, expected a dictionary of scalars and 1-D arrays" in two.error


def test_what_another_process_cannot_find_is_refused() -> None:
    class Here:
        pass

    with pytest.raises(ValueError, match=r"Here cannot be found by another process; put it in a module"):
        small_study(learners=[Here])


def test_files_are_found_beside_the_study(tmp_path: Path) -> None:
    ol.instances.sensing_chain(0.8, n_states=4, n_actions=2, horizon=4).save(tmp_path / "chain.toml")
    (tmp_path / "study.toml").write_text(
        'name = "f"\ninstances = ["chain.toml"]\nchannels = ["constant:1"]\ntasks = ["gap"]\nstart = "warm"\n'
    )
    cell = load_study(tmp_path / "study.toml").cells()[0]
    assert cell.id in ids()  # the same process, whatever it is called
    assert cell.instance == "chain.toml"
    ol.instances.sensing_chain(0.9, n_states=4, n_actions=2, horizon=4).save(tmp_path / "chain.toml")
    assert load_study(tmp_path / "study.toml").cells()[0].id not in ids()


# -- the folder and the runner -----------------------------------------------------------------------------------------


def test_two_runners_do_not_meet_in_one_folder(tmp_path: Path, inline: None) -> None:
    folder = tmp_path / "runs"
    run_study(small_study(), folder, progress=False)
    with locked(folder):
        with pytest.raises(BlockingIOError, match=r"another process runs a study in .* \(process \d+ on "):
            run_study(small_study(), folder, progress=False)
        assert status(folder).done == 6  # looking is allowed
    assert run_study(small_study(), folder, progress=False).complete


def test_a_folder_can_be_read_anywhere_without_the_study(own: Path, inline: None) -> None:
    run_study(small_study(learners=["heron:Stubborn"]), own / "runs", progress=False)
    shutil.move(own / "runs", own / "elsewhere")
    (own / "heron.py").unlink()
    sys.modules.pop("heron", None)
    assert len(list(results(own / "elsewhere"))) == 6
    assert status(own / "elsewhere").complete
    with pytest.raises(FileNotFoundError, match="no such folder of results"):
        status(own / "runs")
    with pytest.raises(ValueError, match=r"is not a folder of results: its study\.json is missing"):
        list(results(own))


def test_wrong_calls(tmp_path: Path) -> None:
    study = small_study()
    with pytest.raises(ValueError, match=r"engine is 'slurm'"):
        run_study(study, tmp_path, engine="slurm")
    with pytest.raises(ValueError, match=r'only engine="dask" has one'):
        run_study(study, tmp_path, scheduler="tcp://x:1")
    with pytest.raises(ValueError, match="workers is 0"):
        run_study(study, tmp_path, workers=0)
    with pytest.raises(TypeError, match="make one with load_study"):
        run_study(KEYS, tmp_path)  # type: ignore[arg-type]


def test_plain_lines_where_there_is_no_terminal(
    tmp_path: Path, inline: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_study(small_study(), tmp_path / "runs")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("delays: 0 of 6 cells done")
    assert lines[-1].startswith("delays: 6 of 6 cells done")


# -- the guide ---------------------------------------------------------------------------------------------------------


def test_the_examples_of_the_guide(tmp_path: Path, inline: None, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parents[2] / "docs" / "studies.md").read_text(encoding="utf-8")
    first, blocks, mine = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    code, script = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(code)
    sizes = []
    for keys in (first, blocks, mine):
        (tmp_path / "study.toml").write_text(keys, encoding="utf-8")
        study = load_study(tmp_path / "study.toml")
        study.check()
        sizes.append(len(study.cells()))
    assert sizes == [42, 9 + 2 + 10 + 3, 4]
    assert run_study(study, tmp_path / "runs", progress=False).complete
    (tmp_path / "study.toml").write_text(mine.replace("episodes = 500", "episodes = 5"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"mine:spread on .* episodes is 5, expected at least 10 for quantiles"):
        load_study(tmp_path / "study.toml").check()
    sys.modules.pop("mine")
    exec(script, {"__name__": "__main__"})
    keys = set(re.findall(r"`(\w+)`", "".join(row.split("|")[1] for row in text.splitlines() if row.startswith("| `"))))
    assert keys >= StudySpec.model_fields.keys()
