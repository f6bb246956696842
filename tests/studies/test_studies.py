"""Studies: results against direct calls, resuming, the folder and the runner, the guide."""

from __future__ import annotations

import re
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldlight as ol
from oldlight.learners import DelayedUCBVI, PosteriorSampling, learn
from oldlight.studies import load_study, numbers, results, run_study, status, store, tasks
from oldlight.studies.lock import locked
from oldlight.studies.result import is_time
from oldlight.studies.spec import StudySpec
from repeats import repeats
from study_cases import KEYS, ids, small_study

# -- results -----------------------------------------------------------------------------------------------------------


def test_results_are_those_of_direct_calls(tmp_path: Path) -> None:
    """The whole way, with two worker processes, against the library called by hand."""
    study = small_study(learners=["DelayedUCBVI", {"name": "PosteriorSampling", "pooled": True}], every=4, channels=["constant:1"],
                        tasks=["gap", "solve", {"name": "evaluate", "policy": "memoryless"},
                               {"name": "simulate", "episodes": 500, "draws": "paired"}])  # fmt: skip
    seen: list[Any] = []
    state = run_study(study, tmp_path / "runs", workers=2, progress=seen.append)
    assert (state.done, state.total, state.complete) == (9, 9, True)
    assert seen[-1].share == 1.0
    assert "9 of 9 jobs done" in str(seen[-1])

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
    assert by["gap", 0].scalars["gap"] == price.gap
    assert by["solve", 0].scalars["value"] == price.impaired
    from oldlight.planning.heuristics import memoryless

    assert by["evaluate(policy=memoryless)", 0].scalars["value"] == ol.evaluate(problem, memoryless(problem)).value
    played = by["simulate(episodes=500, draws=paired)", 1]
    assert played.seed is not None
    assert played.scalars["impaired"] == ol.simulate(problem, price.solution.policy, 500, seed=played.seed).mean
    assert played.scalars["full"] == ol.simulate(problem, price.full_policy, 500, seed=played.seed).mean
    assert played.scalars["exact_gap"] == price.gap
    assert played.version == ol.__version__
    assert played.machine["numpy"] == np.__version__
    assert played.settings["seed"] == played.seed
    with pytest.raises(ValueError, match="is a task, not a learner"):
        _ = played.run


def test_the_printed_form_of_regret(tmp_path: Path, inline: None) -> None:
    study = small_study(by_start=True, tasks=None, channels=["constant:1"], seeds=1)
    assert not {job.id for job in study.jobs()} & ids()
    run_study(study, tmp_path / "runs", progress=False)
    (found,) = results(tmp_path / "runs")
    again = learn(study.jobs()[0].problem, ol.learners.UniformRandom(), 40, seed=found.seed, by_start=True)  # type: ignore[arg-type]
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
    store.result_file(folder, small_study().jobs()[0].id).unlink()
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
    assert lines[0].startswith("delays: 0 of 6 jobs done")
    assert lines[-1].startswith("delays: 6 of 6 jobs done")


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
        sizes.append(len(study.jobs()))
    assert sizes == [42, 9 + 2 + 10 + 3, 4]
    for episodes in (repeats(50, 500), 5):
        (tmp_path / "study.toml").write_text(mine.replace("episodes = 500", f"episodes = {episodes}"), encoding="utf-8")
        if episodes > 5:
            assert run_study(load_study(tmp_path / "study.toml"), tmp_path / "runs", progress=False).complete
    with pytest.raises(ValueError, match=r"mine:spread on .* episodes is 5, expected at least 10 for quantiles"):
        load_study(tmp_path / "study.toml").check()
    sys.modules.pop("mine")
    exec(script, {"__name__": "__main__"})
    keys = set(re.findall(r"`(\w+)`", "".join(row.split("|")[1] for row in text.splitlines() if row.startswith("| `"))))
    assert keys >= StudySpec.model_fields.keys()


def test_the_names_of_before_still_work() -> None:
    from oldlight import studies

    study = small_study()
    with pytest.warns(DeprecationWarning, match=r"Study\.cells is now Study\.jobs"):
        assert [job.id for job in study.cells()] == [job.id for job in study.jobs()]
    with pytest.warns(DeprecationWarning, match=r"oldlight\.studies\.Cell is now oldlight\.studies\.Job"):
        assert studies.Cell is studies.Job
    now = studies.Progress(3, 1, 0, 1, 10, 30, 5.0, 4.0)
    with pytest.warns(DeprecationWarning, match=r"Progress\.cells is now Progress\.jobs"):
        assert now.cells == 3


@pytest.mark.parametrize("task", ["gap", "solve"])
def test_a_task_that_plans_says_nothing_between_the_lines_of_the_study(
    task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from oldlight import planning
    from oldlight.planning import gap as gaps

    asked, plan = [], planning.solve
    spied = lambda problem, **options: asked.append(options.get("progress")) or plan(problem, **options)  # noqa: E731
    for place in (planning, gaps):
        monkeypatch.setattr(place, "solve", spied)
    tasks.TASKS[task](ol.ImpairedMDP(ol.instances.dichotomy(1), "constant:1"))
    assert asked
    assert set(asked) == {False}
