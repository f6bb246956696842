"""The README's example runs, the pictures are made, and the package says which version it is."""

from __future__ import annotations

import re
from pathlib import Path

import heuristics_table as heuristics
import numpy as np
import pytest

import oldlight as ol

ROOT = Path(__file__).parents[2]


def test_the_readme_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    code = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    assert len(code) == 1
    assert len(code[0].strip().splitlines()) <= 11
    exec(compile(code[0], "README.md", "exec"), {})
    assert "3.669276129" in capsys.readouterr().out


def test_the_comparison_of_heuristics(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    small = ol.instances.sensing_chain(0.8, n_states=6, n_actions=3, horizon=6, initial=np.eye(6)[1])
    monkeypatch.setattr(heuristics, "processes", lambda: {"small chain": small})
    monkeypatch.setattr(heuristics, "DELAYS", [0, 1, 2])
    lost = heuristics.compare()["small chain"]
    for who, values in lost.items():
        assert len(values) == 3
        assert all(x > -1e-9 for x in values), who
    assert lost["QMDP (rung 0)"][0] == pytest.approx(0.0, abs=1e-9)
    assert heuristics.main(str(tmp_path)).exists()


def test_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {ol.__version__}" in citation
    assert f"## {ol.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
