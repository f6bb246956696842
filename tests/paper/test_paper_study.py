"""The paper's study at a small setting: its numbers are the exact ones, and its page shows them."""

from __future__ import annotations

import re
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import oldlight as ol
from browser import check_layout, check_page, check_plots, chromium, opened
from conftest import inline_engine, made_once

pytest.importorskip("pyarrow")
pytest.importorskip("plotly")

from oldlight.paper import paper_page
from oldlight.paper import statements as statement_rows
from oldlight.paper.section6 import BERNOULLI, command_of, paper_study
from oldlight.report import summary
from oldlight.report.deep_page import deep_page
from oldlight.report.study_page import commands as commands_of
from oldlight.report.study_page import study_page
from oldlight.studies import Result, load_study, results, run_study, runner, store
from oldlight.studies.result import pack
from oldlight.studies.work import PackedJob, RunSettings, perform
from repeats import is_thorough, repeats

EPISODES = repeats(12, 40)
EXACT = {  # ×10⁴, constant delay 1..4
    "sensing chain, p = 0.99": (75.0, 208.9, 384.3, 585.4),
    "sensing chain, p = 0.8": (1085.6, 2917.9, 4955.8, 7011.5),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def make(place: Path) -> None:
        with mock.patch.object(runner, "_engine", inline_engine):
            now = run_study(load_study(paper_study(quick=True, episodes=EPISODES)), place, progress=False)
        assert now.complete, str(now)

    return made_once(tmp_path_factory, "paper", make)


@pytest.fixture(scope="module")
def page(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole page, drawn once. Unless thorough the statements on it are without that on optimism, which takes as long as all others together:
    tests/paper/test_statements_page.py computes every row and compares it with docs/paper.md."""
    rows = [row for row in statement_rows.ROWS if is_thorough() or row is not statement_rows._optimism]

    def make(place: Path) -> None:
        with mock.patch.object(statement_rows, "ROWS", rows):
            paper_page.paper_page(folder).write(place / "report.html")

    return made_once(tmp_path_factory, "page", make) / "report.html"


@pytest.fixture(scope="module")
def found(folder: Path) -> list[Result]:
    return list(results(folder))


@pytest.mark.slow
def test_the_exact_gaps(found: list[Result]) -> None:
    gaps = {(r.instance, r.channel): r.scalars["gap"] for r in found if r.block == "table" and r.label == "gap"}
    assert len(gaps) == 4 * 8
    for env in ("Env1", "Env2"):
        values = [gap for (instance, _), gap in gaps.items() if instance == env]
        assert len(values) == 8
        assert np.abs(values).max() < 1e-12  # Table 1 of the paper prints 18 to 3280 ×10⁻⁴
    for instance, expected in EXACT.items():
        assert [round(1e4 * gaps[instance, f"delay {d}"], 1) for d in (1, 2, 3, 4)] == list(expected)


@pytest.mark.slow
def test_the_monte_carlo_protocol_agrees_with_the_exact_gap(found: list[Result]) -> None:
    """5 repetitions of 10,000 episodes; the mean of all within 4 standard errors, for each of the 32 jobs of the table."""
    table = [r for r in found if r.block == "table" and r.label.startswith("simulate")]
    for key, jobs in summary.groups(table, "instance", "channel").items():
        assert len(jobs) == 5, key
        errors = [np.hypot(r.scalars["full_half_width"], r.scalars["impaired_half_width"]) / 1.96 for r in jobs]
        off = np.mean([r.scalars["gap"] - r.scalars["exact_gap"] for r in jobs])
        assert abs(off) < 4 * np.sqrt(np.mean(np.square(errors)) / 5), key


@pytest.mark.slow
def test_every_curve_of_the_figure_is_there(found: list[Result]) -> None:
    groups = summary.groups([r for r in found if r.block == "figure"], "instance", "channel")
    assert len(groups) == 2 * (3 + len(BERNOULLI))
    assert {len(jobs) for jobs in groups.values()} == {3}
    for jobs in groups.values():
        for r in jobs:
            assert r.scalars["best"] == pytest.approx(r.run.best)
            assert (r.columns["values"] <= r.scalars["best"] + 1e-9).all()  # no policy beats the best executable one


@pytest.mark.slow
def test_learners_of_one_problem_share_their_luck(found: list[Result]) -> None:
    groups = summary.groups([r for r in found if r.block == "learners"], "channel", "replicate")
    for jobs in groups.values():
        assert len({r.seed for r in jobs}) == 1
        assert len({r.label for r in jobs}) == len(jobs)


@pytest.mark.slow
def test_the_page(folder: Path, found: list[Result], page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    c = {r.settings["learner"]["constants"]["c"] for r in found if r.block == "figure"}
    assert len(c) == 1
    for said in (
        f"here K = {EPISODES} episodes, 3 seeds, and c = {c.pop():g}, chosen on other processes, behind constant and stochastic delays",
        "Learning to Act with Delayed and Missing State Observations",
        'href="https://arxiv.org/abs/2306.01243"',
        'href="https://arxiv.org/abs/2603.03480"',
        f"K = {EPISODES} episodes, 2 seeds. The default constants, c: Algorithm 2 (bonus oracle) ",
        f"oldlight paper --quick --out {folder}\noldlight report {folder}",
        "cannot come from the stated process",
        "2917.9",
        "3280",
        "Proposition 6",
        "Theorem 2",
        "Lemma: longest gap",
    ):
        assert said in text
    captions = [html.split("</figcaption>")[0] for html in text.split("<figcaption>")[1:]]
    laws = [re.findall("law=&quot;(.*?)&quot;", caption) for caption in captions if "DelayedUCBVI(" in caption]
    assert laws == [
        ["estimated"] * 2,
        ["known"],
        ["estimated"],
        ["estimated"],
    ]  # the figure, law known, sensing, bounds
    assert re.findall("divisor=&quot;(.*?)&quot;", captions[0]) == ["at risk", "printed"]
    assert re.findall(r"(Env1 and Env2|Printed divisor|Upper|Lower)", captions[0]) == [
        "Env1 and Env2",
        "Printed divisor",
    ]
    # by the panels' titles: on a page as wide as a reader's screen they do not stand two by two
    figures = page.parent / "figures"
    names = {path.stem for path in figures.iterdir()}
    assert {"regret", "regret-known-law", "sensing-regret", "price", "late-and-lossy", "learners", "loss"} <= names
    assert {"learners-final", "bounds"} <= names
    assert {"interaction", "dichotomy", "chain", "hard-tree"} <= names  # the paper's four diagrams
    for name in names:
        assert (figures / f"{name}.pdf").read_bytes()[:4] == b"%PDF"
        assert "<svg" in (figures / f"{name}.svg").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_of_an_unfinished_study(
    folder: Path, found: list[Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sections are there when every job of theirs is; the rest is named. What needs no results and takes long is left out here."""
    monkeypatch.setattr(paper_page, "_diagrams", lambda page: None)
    rows = (statement_rows._theorem_1, statement_rows._theorem_2)  # those that take regrets from the study
    assert set(rows) <= set(statement_rows.ROWS)
    monkeypatch.setattr(statement_rows, "ROWS", rows)
    place = tmp_path / "runs"
    shutil.copytree(folder, place)
    total = len({r.id for r in found})
    left = {r.id for r in found if r.block in ("price", "late+lossy")}
    first = next(r.id for r in found if r.block == "loss")  # and one job of another block
    for r in found:
        if r.id not in left | {first}:
            (place / "cells" / f"{r.id}.parquet").unlink(missing_ok=True)
    text = paper_page.paper_page(place).write(tmp_path / "report.html").read_text(encoding="utf-8")
    assert (
        "The study is not finished. Not on this page yet: figure, sensing, printed, known law, fixed D, table, loss, learners."
        in text
    )
    assert f"{len(left) + 1} of {total} jobs are finished. What is missing is computed by" in text
    assert f"oldlight paper --quick --out {place}" in text
    assert {"price", "late-and-lossy"} <= {path.stem for path in (tmp_path / "figures").iterdir()}
    for section, there in {
        "The price of delay": True,
        "Table 1: the gap": False,
        "The regret figure": False,
        "Learning under loss": False,
    }.items():
        assert (f">{section}" in text) == there, section
    for id in left:
        (place / "cells" / f"{id}.parquet").unlink()
    assert (
        "Not on this page yet: figure, sensing, printed, known law, fixed D, table, loss, learners, price, late+lossy."
        in paper_page.paper_page(place).html()
    )
    (place / "cells" / f"{first}.parquet").unlink()
    with pytest.raises(ValueError, match=r"no job of this study is finished yet; oldlight status"):
        paper_page.paper_page(place)


@pytest.mark.slow
def test_the_page_in_a_browser(page: Path) -> None:
    """What `make demo` ends with, opened as a reader would: drawn, without an error, nothing sticks out. If thorough on a phone too, with each legend, table
    and the print tried: tests/report does that with a smaller page, whose legends and tables have the same code."""
    with chromium() as browser:
        if is_thorough():
            found = check_page(page, browser)
        else:
            with opened(page, browser, 1200) as shown:
                check_layout(shown, 1200)
                found = {"plots": check_plots(shown), "tables": shown.locator(".table table").count()}
    assert found["plots"] == 17  # the regret figure has four panels, the known law two
    assert found["tables"] >= 6


KEYS = {
    "name": "mine <b>",
    "instances": ["dichotomy:1"],
    "channels": ["constant:1", "constant:2"],
    "learners": ["DelayedUCBVI", {"name": "PosteriorSampling", "label": "<script>alert(1)</script>"}],
    "tasks": ["gap"],
    "episodes": 30,
    "seeds": 2,
}


def test_the_page_of_any_study(tmp_path: Path, inline: None) -> None:
    run_study(load_study(KEYS), tmp_path / "runs", workers=1, progress=False)
    text = study_page(tmp_path / "runs").write(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script>alert(1)" not in text
    assert "mine &lt;b&gt;" in text
    assert "Regret on dichotomy:1" in text
    assert "are finished. What is missing" not in text
    with pytest.raises(ValueError, match="not a folder of results"):
        study_page(tmp_path)


@pytest.mark.parametrize(
    ("given", "runs", "commands"),
    [
        ("my study.toml", "runs/my study", ["oldlight run 'my study.toml'", "oldlight report 'runs/my study'"]),
        ("sub/s.toml", "runs/s", ["oldlight run sub/s.toml", "oldlight report runs/s"]),
        ("sub/s.toml", "here", ["oldlight run sub/s.toml --out here", "oldlight report here"]),
        (None, "here", ["run_study(study, 'here')  # in Python: the study is a mapping", "oldlight report here"]),
        ("paper", "runs/paper", ["oldlight paper", "oldlight report runs/paper"]),
        ("paper-quick", "out", ["oldlight paper --quick --out out", "oldlight report out"]),
    ],
)
def test_a_page_says_what_makes_it_again(
    given: str | None, runs: str, commands: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The study's file as it was given; `--out` where the folder is not the usual one."""
    monkeypatch.chdir(tmp_path)
    keys = {"name": "s", "instances": ["dichotomy:1"], "tasks": ["gap"]}
    study: Any = keys
    own_command = None
    if given in ("paper", "paper-quick"):
        study = keys | {"name": paper_study(quick=given != "paper")["name"]}
        own_command = command_of(study["name"])
    elif given is not None:
        Path(given).parent.mkdir(exist_ok=True)
        Path(given).write_text('name = "s"\ninstances = ["dichotomy:1"]\ntasks = ["gap"]\n')
        study = given
    store.prepare(Path(runs))
    loaded = load_study(study)
    store.write_study(Path(runs), loaded.data(), loaded.jobs())
    assert commands_of(runs, own_command) == commands


def test_what_is_not_on_a_page_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs that failed, that are not finished, and on the page of deep learners those of other tasks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("curlew.py").write_text(
        "import oldlight\n@oldlight.registered\ndef fails(problem):\n    raise ValueError('no\\n `mud`')\n"
    )
    deep = {"name": "oldlight.deep:train", "label": "DQN, newest"}
    keys = {
        "name": "s",
        "instances": ["dichotomy:1"],
        "channels": ["constant:1"],
        "tasks": ["gap", "curlew:fails", deep],
    }
    jobs = load_study(keys).jobs()
    store.prepare(Path("runs"))
    store.write_study(Path("runs"), load_study(keys).data(), jobs)
    settings = RunSettings(str(Path("runs").absolute()), 10.0, ol.__version__)
    assert perform(PackedJob.of(jobs[0]), settings).kind == "done"
    failed = perform(PackedJob.of(jobs[1]), settings)
    store.record_failure(Path("runs"), jobs[1], failed.error, failed.traceback)
    sys.modules.pop("curlew")
    told = [
        "1 of 3 jobs are finished. What is missing is computed by",
        "Failed, and not on this page (--retry-failed tries them again):",
        "<li>curlew:fails on dichotomy:1 behind constant:1, replicate 0: ValueError: no `mud`</li>",
    ]
    text = study_page("runs").html()
    for words in told:
        assert words in text
    with pytest.raises(ValueError, match=r"no finished job of oldlight\.deep:train"):
        deep_page("runs")
    trained = {
        "at": np.array([0, 10]),
        "returns": np.array([0.0, 1.0]),
        "final": 1.0,
        "optimum": 0.0,
        "full_optimum": 0.0,
    }
    store.keep(Path("runs"), jobs[2].id, pack(jobs[2], trained, 1.0))
    text = deep_page("runs").html()
    for words in (
        *told[1:],
        "2 of 3 jobs",
        "1 finished jobs are not of oldlight.deep:train and are not on this page: gap.",
    ):
        assert words in text


def test_a_best_value_of_zero_is_no_trouble(tmp_path: Path) -> None:
    """No warning from shares of nothing, and none from a run of one episode."""
    nothing = ol.TabularMDP(np.full((2, 2, 2), 0.5), np.zeros((2, 2)), horizon=3)
    keys = {"name": "s", "instances": [nothing], "learners": ["UniformRandom"], "tasks": ["gap"], "seeds": 2}
    settings = RunSettings(str(tmp_path), 10.0, ol.__version__)
    for episodes in (1, 100):
        study = load_study(keys | {"episodes": episodes})
        store.prepare(tmp_path)
        store.write_study(tmp_path, study.data(), study.jobs())
        for job in study.jobs():
            assert perform(PackedJob.of(job), settings).kind == "done"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            text = study_page(tmp_path).html()
        assert "nan" not in re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)


@pytest.mark.slow
def test_rows_that_say_the_same_everywhere_go_to_the_caption(found: list[Result]) -> None:
    titles, rows, caption = summary.regret_rows([r for r in found if r.block == "learners"])
    assert titles[0] == "learner"
    assert "delay 2" in caption
    assert "3 seeds" in caption
    best = ol.solve(ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.ConstantDelay(2), start=ol.WarmStart())).value
    assert all(row[titles.index("best value")] == round(best, 4) for row in rows)
    uniform = next(row for row in rows if row[0] == "UniformRandom")
    assert uniform[titles.index("± sd")] == pytest.approx(0, abs=1e-6)
