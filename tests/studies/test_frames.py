"""Results as tables: every number is that of the run it comes from, in pandas, Arrow, CSV, Parquet and LaTeX."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import oldlight as ol
from oldlight.studies import load_study, results, run_study
from oldlight.studies.frames import latex, run_table, table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    place = tmp_path_factory.mktemp("runs")
    study = load_study(
        {
            "name": "small",
            "episodes": 5,
            "seeds": 2,
            "instances": [{"name": "dichotomy", "d": 1, "label": "a_b & c%"}],
            "channels": ["constant:1", "constant:2"],
            "learners": ["UniformRandom", {"name": "DelayedUCBVI", "label": "Algorithm 1"}],
            "tasks": ["gap"],
        }
    )
    run_study(study, place, workers=1, progress=False)
    return Path(place)


def test_rows_of_episodes_are_those_of_the_runs(folder: Path) -> None:
    made = table(results(folder))
    assert made.num_rows == 2 * 2 * 2 * 5
    rows = made.to_pylist()
    for result in results(folder):
        if result.kind != "learner":
            continue
        mine = [row for row in rows if row["id"] == result.id]
        run = result.run
        assert [row["episode"] for row in mine] == [1, 2, 3, 4, 5]
        assert [row["regret"] for row in mine] == run.regret.tolist()
        assert [row["value"] for row in mine] == run.values.tolist()
        assert [row["return"] for row in mine] == run.returns.tolist()
        assert {(row["best"], row["seed"], row["label"], row["channel"], row["replicate"]) for row in mine} == {
            (run.best, result.seed, result.label, result.channel, result.replicate)
        }


def test_rows_of_jobs_have_the_last_regret_and_the_scalars_of_tasks(folder: Path) -> None:
    rows = table(results(folder), "jobs").to_pylist()
    found = {result.id: result for result in results(folder)}
    assert {row["id"] for row in rows} == set(found)
    for row in rows:
        result = found[row["id"]]
        if result.kind == "learner":
            assert row["regret"] == result.run.regret[-1]
            assert row["gap"] is None
        else:
            assert row["gap"] == result.scalars["gap"]
            assert row["regret"] is None
    with pytest.raises(ValueError, match="rows"):
        table(results(folder), "columns")  # type: ignore[arg-type]


def test_a_frame_is_of_pandas_where_it_is_installed(folder: Path) -> None:
    with mock.patch("importlib.util.find_spec", return_value=None):
        assert type(results(folder).frame()).__module__.startswith("pyarrow")
    pandas = pytest.importorskip("pandas")
    made = results(folder).frame("jobs")
    assert isinstance(made, pandas.DataFrame)
    assert len(made) == 10


def test_latex_by_hand(folder: Path) -> None:
    text = latex(results(folder))
    assert r"process & link & UniformRandom & Algorithm 1 \\" in text
    assert r"a\_b \& c\%" in text
    runs = [r.run.regret[-1] for r in results(folder) if r.label == "UniformRandom" and r.channel == "constant:2"]
    assert rf"${np.mean(runs):.4g} \pm {np.std(runs, ddof=1):.2g}$" in text
    assert text.count(r"\\") == 3


def test_blocks_that_share_a_problem_are_not_mixed_in_latex(tmp_path: Path) -> None:
    """Two numbers of episodes on one problem: their regrets are not one mean. A deviation that is rounding is none."""
    blocks = [{"name": f"{n} episodes", "episodes": n} for n in (3, 9)]
    study = {
        "name": "s",
        "instances": ["forest"],
        "channels": ["constant:1"],
        "learners": ["UniformRandom"],
        "seeds": 2,
    }
    run_study(load_study(study | {"blocks": blocks}), tmp_path / "out", workers=1, progress=False)
    found = list(results(tmp_path / "out"))
    text = latex(found)
    assert r"block & process & link & UniformRandom \\" in text
    for block in blocks:
        regrets = [r.run.regret[-1] for r in found if r.block == block["name"]]
        assert np.std(regrets) < 1e-12  # one policy, valued exactly
        assert rf"{block['name']} & forest & constant:1 & ${np.mean(regrets):.4g} \pm 0$ \\" in text


def test_results_can_be_read_again_and_one_by_one(folder: Path) -> None:
    found = results(folder)
    assert len(list(found)) == len(list(found)) == 10
    assert next(found).id == next(iter(found)).id


def test_export_writes_what_is_asked_for(folder: Path, tmp_path: Path) -> None:
    import pyarrow.csv
    import pyarrow.parquet
    from typer.testing import CliRunner

    from oldlight.cli import app

    run = CliRunner().invoke(
        app,
        ["export", str(folder), "--csv", str(tmp_path / "a.csv"), "--parquet", str(tmp_path / "a.parquet"), "--latex", str(tmp_path / "a.tex")],
    )  # fmt: skip
    assert run.exit_code == 0, run.output
    expected = table(results(folder))
    read = pyarrow.parquet.read_table(tmp_path / "a.parquet")
    assert read.schema == expected.schema
    assert read.drop(["estimate"]).equals(expected.drop(["estimate"]))  # NaN is not equal to itself
    assert pyarrow.csv.read_csv(tmp_path / "a.csv")["regret"].to_pylist() == expected["regret"].to_pylist()
    assert (tmp_path / "a.tex").read_text() == latex(results(folder))
    jobs = CliRunner().invoke(app, ["export", str(folder), "--rows", "jobs", "--csv", str(tmp_path / "b.csv")])
    assert jobs.exit_code == 0
    assert pyarrow.csv.read_csv(tmp_path / "b.csv").num_rows == 10
    nothing = CliRunner().invoke(app, ["export", str(folder)])
    assert nothing.exit_code != 0
    assert "--csv" in nothing.output


def test_export_of_one_run(tmp_path: Path) -> None:
    import pyarrow.csv
    from typer.testing import CliRunner

    from oldlight.cli import app

    problem = ol.ImpairedMDP(ol.instances.dichotomy(1), "constant:1")
    run = ol.learn(problem, ol.learners.UniformRandom(), 4, seed=7)
    run.save(tmp_path / "run.npz")
    done = CliRunner().invoke(app, ["export", str(tmp_path / "run.npz"), "--csv", str(tmp_path / "run.csv")])
    assert done.exit_code == 0, done.output
    rows = pyarrow.csv.read_csv(tmp_path / "run.csv").to_pylist()
    assert [row["regret"] for row in rows] == run.regret.tolist()
    assert {row["seed"] for row in rows} == {7}
    assert run_table(run).num_rows == 4
    refused = CliRunner().invoke(app, ["export", str(tmp_path / "run.npz"), "--latex", str(tmp_path / "run.tex")])
    assert refused.exit_code != 0
