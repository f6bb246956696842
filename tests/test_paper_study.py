"""The paper's study at a small setting: its numbers are the exact ones, and its page shows them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import oldlight as ol
from browser import check_page, chromium

pytest.importorskip("pyarrow")
pytest.importorskip("plotly")

from oldlight import theory
from oldlight.report import paper_page, summary
from oldlight.report.statements import statements
from oldlight.report.study_page import study_page
from oldlight.studies import Result, load_study, results, run_study
from oldlight.studies.paper import BERNOULLI, paper_study

EXACT = {  # ×10⁴, constant delay 1..4
    "sensing chain, p = 0.99": (75.0, 208.9, 384.3, 585.4),
    "sensing chain, p = 0.8": (1085.6, 2917.9, 4955.8, 7011.5),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("paper")
    now = run_study(load_study(paper_study(quick=True, episodes=40)), place, progress=False)
    assert now.complete, str(now)
    return place


@pytest.fixture(scope="module")
def found(folder: Path) -> list[Result]:
    return list(results(folder))


def test_the_exact_gaps(found: list[Result]) -> None:
    gaps = {(r.instance, r.channel): r.scalars["gap"] for r in found if r.block == "table" and r.label == "gap"}
    assert len(gaps) == 4 * 8
    for env in ("Env1", "Env2"):
        values = [gap for (instance, _), gap in gaps.items() if instance == env]
        assert len(values) == 8
        assert np.abs(values).max() < 1e-12  # Table 1 of the paper prints 18 to 3280 ×10⁻⁴
    for instance, expected in EXACT.items():
        assert [round(1e4 * gaps[instance, f"delay {d}"], 1) for d in (1, 2, 3, 4)] == list(expected)


def test_the_monte_carlo_protocol_agrees_with_the_exact_gap(found: list[Result]) -> None:
    """5 repetitions of 10,000 episodes; the mean of all within 4 standard errors, for each of the 32 cells of the table."""
    table = [r for r in found if r.block == "table" and r.label.startswith("simulate")]
    for key, cells in summary.groups(table, "instance", "channel").items():
        assert len(cells) == 5, key
        errors = [np.hypot(r.scalars["full_half_width"], r.scalars["impaired_half_width"]) / 1.96 for r in cells]
        off = np.mean([r.scalars["gap"] - r.scalars["exact_gap"] for r in cells])
        assert abs(off) < 4 * np.sqrt(np.mean(np.square(errors)) / 5), key


def test_every_curve_of_the_figure_is_there(found: list[Result]) -> None:
    groups = summary.groups([r for r in found if r.block == "figure"], "instance", "channel")
    assert len(groups) == 2 * (3 + len(BERNOULLI))
    assert {len(cells) for cells in groups.values()} == {3}
    for cells in groups.values():
        for r in cells:
            assert r.scalars["best"] == pytest.approx(r.run.best)
            assert (r.columns["values"] <= r.scalars["best"] + 1e-9).all()  # no policy beats the best executable one


def test_learners_of_one_problem_share_their_luck(found: list[Result]) -> None:
    groups = summary.groups([r for r in found if r.block == "learners"], "channel", "replicate")
    for cells in groups.values():
        assert len({r.seed for r in cells}) == 1
        assert len({r.label for r in cells}) == len(cells)


def test_the_page(folder: Path, tmp_path: Path) -> None:
    page = paper_page.paper_page(folder).write(tmp_path / "report.html")
    text = page.read_text(encoding="utf-8")
    for said in (
        "cannot come from the stated process",
        "2917.9",
        "3280",
        "Proposition 6",
        "Theorem 2",
        "Lemma: longest gap",
    ):
        assert said in text
    names = {path.stem for path in (tmp_path / "figures").iterdir()}
    assert {"regret", "sensing-regret", "price", "late-and-lossy", "learners", "loss", "bounds"} <= names
    assert {"interaction", "dichotomy", "chain", "hard-tree"} <= names  # the paper's four diagrams
    for name in names:
        assert (tmp_path / "figures" / f"{name}.pdf").read_bytes()[:4] == b"%PDF"
        assert "<svg" in (tmp_path / "figures" / f"{name}.svg").read_text(encoding="utf-8")


def test_the_page_in_a_browser(folder: Path, tmp_path: Path) -> None:
    """What `make demo` ends with, opened as a reader would: drawn, without an error, legends and tables alive."""
    page = paper_page.paper_page(folder).write(tmp_path / "report.html")
    with chromium() as browser:
        found = check_page(page, browser)
    assert found["plots"] == 13
    assert found["tables"] >= 6


def test_the_page_of_any_study(tmp_path: Path) -> None:
    keys = {
        "name": "mine <b>",
        "instances": ["dichotomy:1"],
        "channels": ["constant:1", "constant:2"],
        "learners": ["DelayedUCBVI", {"name": "PosteriorSampling", "label": "<script>alert(1)</script>"}],
        "tasks": ["gap"],
        "episodes": 30,
        "seeds": 2,
    }
    run_study(load_study(keys), tmp_path / "runs", workers=1, progress=False)
    text = study_page(tmp_path / "runs").write(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script>alert(1)" not in text
    assert "mine &lt;b&gt;" in text
    assert "Regret on dichotomy:1" in text
    with pytest.raises(ValueError, match="not a folder of results"):
        study_page(tmp_path)


def test_each_statement_has_a_figure() -> None:
    rows = statements()
    assert len({row.name for row in rows}) == len(rows) >= 15
    for row in rows:
        assert re.search(r"\d", row.measured), row.name
        for function in re.findall(r"theory\.(\w+)", row.where):
            assert hasattr(theory, function), function


def test_rows_that_say_the_same_everywhere_go_to_the_caption(found: list[Result]) -> None:
    titles, rows, caption = summary.regret_rows([r for r in found if r.block == "learners"])
    assert titles[0] == "learner"
    assert "delay 2" in caption
    assert "3 seeds" in caption
    best = ol.solve(ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.ConstantDelay(2), start=ol.WarmStart())).value
    assert all(row[titles.index("best value")] == round(best, 4) for row in rows)
    uniform = next(row for row in rows if row[0] == "UniformRandom")
    assert uniform[titles.index("± sd")] == pytest.approx(0, abs=1e-6)
