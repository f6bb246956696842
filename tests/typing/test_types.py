"""What a type checker says of code that uses oldlight: mistakes are errors, right code is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy import api

import oldlight as ol

ROOT = Path(__file__).parents[2]
SNIPPET = """\
import numpy as np

import oldlight as ol

mdp = ol.instances.sensing_chain(0.8)
problem = ol.ImpairedMDP(mdp, "constant:2+loss:0.1", start="warm")
problem = ol.ImpairedMDP(mdp, {"kind": "constant", "d": 2}, start=ol.WarmStart()).behind("loss:0.1")
problem = ol.ImpairedMDP(mdp, ol.ConstantDelay(2), start=None)
learner = ol.learners.DelayedUCBVI(bonus="hoeffding", planning="full", clip="H")
run = ol.learn(problem, learner, 10, seed=np.random.SeedSequence(1), evaluate="sampled")
value: float = ol.solve(problem).value
played = ol.simulate(problem, ol.solve(problem).policy, 10, seed=np.random.default_rng(0))
delay: ol.DelayChannel = problem.channel.delay
lost: float = ol.gap(problem).gap
env = ol.envs.TabularEnv(mdp, channel="constant:1", start="warm", rewards="delayed", render_mode="ansi")
flat = ol.envs.AugmentedObservation(ol.envs.ImpairedObservation(env, "none", rewards="immediate"), kind="box")
slow = ol.GeometricDelay(0.5, first="same"), ol.HeavyTailedDelay(1.5, first=[0.5, 0.5])
claim = ol.paper.proposition1(problem, at_horizon="arrival")
ol.Controller(problem, ol.solve(problem).policy, skipped=0, seed=1)

ol.sovle(problem)  # error: attr-defined
ol.ImpairedMDP(mdp, 2)  # error: arg-type
ol.ImpairedMDP(mdp, "none", start="hot")  # error: arg-type
ol.learners.DelayedUCBVI(bonus="x")  # error: arg-type
ol.learners.OptimisticPlanning(oracle="x")  # error: arg-type
ol.learners.AugmentedUCBVI(planning="x")  # error: arg-type
ol.learners.LossUCBVI(clip="x")  # error: arg-type
ol.learn(problem, learner, 10, evaluate="x")  # error: arg-type
ol.simulate(problem, ol.solve(problem).policy, 10, seed="x")  # error: arg-type
words: str = ol.solve(problem).value  # error: assignment
ol.envs.TabularEnv(mdp, start="hot")  # error: arg-type
ol.envs.TabularEnv(mdp, rewards="late")  # error: arg-type
ol.envs.TabularEnv(mdp, render_mode="x")  # error: arg-type
ol.envs.TabularVectorEnv(mdp, autoreset_mode="x")  # error: arg-type
ol.envs.ImpairedObservation(env, "none", rewards="x")  # error: arg-type
ol.envs.AugmentedObservation(flat, kind="x")  # error: arg-type
ol.studies.run_study(ol.studies.load_study("x"), "y", engine="x")  # error: arg-type
ol.paper.proposition1(problem, at_horizon="x")  # error: arg-type
ol.paper.proposition5_long(1, 10, 0.1, comparator="x")  # error: arg-type
ol.Controller(problem, "x")  # error: arg-type
ol.GeometricDelay(0.5, first="x")  # error: arg-type
"""
OPTIONS = """\
[mypy]
python_version = 3.11
strict = true
follow_imports = skip
ignore_missing_imports = true
[mypy-numpy.*,gymnasium.*]
follow_imports = normal
[mypy-gymnasium.envs.*,gymnasium.wrappers.*]
follow_imports = skip
[mypy-oldlight.*]
follow_imports = silent
"""  # read is what the types of the snippet are made of; whether the code of oldlight itself is right is asked by `make lint`


@pytest.mark.slow  # where .mypy_cache is empty
def test_mistakes_are_errors_and_right_code_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYPYPATH", str(Path(ol.__file__).parents[1]))  # the oldlight of this test
    file = tmp_path / "snippet.py"
    file.write_text(SNIPPET, encoding="utf-8")
    (tmp_path / "mypy.ini").write_text(OPTIONS, encoding="utf-8")
    cache = ROOT / ".mypy_cache" / "snippet"  # its own, as other options are other results
    options = ["--config-file", str(tmp_path / "mypy.ini"), "--cache-dir", str(cache)]
    said, faults, _ = api.run([*options, str(file)])
    assert not faults
    found = set(re.findall(r"snippet\.py:(\d+): error: .*\[([a-z-]+)\]$", said, re.MULTILINE))
    lines = enumerate(SNIPPET.splitlines(), 1)
    expected = {(str(number), line.partition("# error: ")[2]) for number, line in lines if "# error: " in line}
    assert found == expected, said
