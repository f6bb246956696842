"""`oldlight compile`: after it, what people do first finds every loop compiled."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from oldlight import cli
from oldlight.cli.compiling import PARTS, compile_bytecode

AFTERWARDS = """
import importlib, json, pkgutil
import numpy as np
import oldlight as ol
import oldlight.kernels
from oldlight.cli.compiling import PARTS, compile_part

def signatures():
    found = {}
    for info in pkgutil.iter_modules(oldlight.kernels.__path__):
        module = importlib.import_module(f"oldlight.kernels.{info.name}")
        for name, loop in vars(module).items():
            if hasattr(loop, "signatures") and getattr(loop, "py_func", loop).__module__ == module.__name__:
                found[f"{info.name}.{name}"] = len(loop.signatures)
    return found

for part in PARTS:
    compile_part(part)
before = signatures()
chain = ol.instances.sensing_chain(0.8)
rng = np.random.default_rng(0)
dense = ol.TabularMDP(rng.dirichlet(np.ones(5), size=(6, 5, 3)), rng.random((6, 5, 3)), horizon=6)
learners = ol.learners
for mdp in (chain, dense):
    for channel, start in (("constant:2", "warm"), ("constant:1", None), ("geometric:0.5", None), ("loss:0.3", None)):
        if channel.startswith("geometric") and mdp is chain:
            continue
        problem = ol.ImpairedMDP(mdp, channel, start=start)
        plan = ol.solve(problem, progress=False)
        ol.evaluate(problem, plan.policy)
        ol.simulate(problem, plan.policy, 50, record=True)
        if channel == "constant:2":
            for learner in (learners.DelayedUCBVI(), learners.DelayedUCBVI(planning="doubling", law="estimated", rewards="estimated"),
                            learners.AugmentedUCBVI(bonus="bernstein"), learners.AugmentedQLearning(), learners.PosteriorSampling(),
                            learners.default(), learners.LinkLearner(optimism="prior", rewards="estimated"),
                            learners.MemorylessUCBVI(), learners.MemorylessQLearning(aligned=True)):
                ol.learn(problem, learner, 3, best=plan.value, progress=False)
        if channel == "loss:0.3":
            for learner in (learners.LossUCBVI(), learners.OptimisticPlanning(), learners.PosteriorSampling(), learners.MemorylessUCBVI(aligned=True)):
                ol.learn(problem, learner, 3, best=plan.value, every=3, progress=False)
after = signatures()
ready = sorted(name for name, n in before.items() if n > 0)
print(json.dumps([ready, {name: [before[name], n] for name, n in after.items() if n > before[name]}]))
"""

ENTRIES = {  # called from Python (what only loops call is not loaded by itself)
    "delay.sweep",
    "policy_value.value_policies",
    "episodes.begin",
    "episodes.play",
    "chunks.draw_chunk",
    "chunks.play_chunks",
    "independent_links.play_blackouts",
    "independent_links.play_late",
    "random_delays.certain_from",
    "random_delays.play_random",
    "delayed_ucbvi.block",
    "delayed_ucbvi.greedy_block",
    "delayed_ucbvi.take",
    "augmented_blocks.ucbvi_block",
    "augmented_blocks.q_block",
    "posterior_sampling.block",
    "posterior_sampling.draw_process",
    "dirichlet.draw_rows",
    "link_learner.block",
    "link_learner.due",
    "link_learner.prepare",
    "link_learner.process",
    "loss_ucbvi.block",
    "memoryless.block",
    "memoryless.decide",
    "memoryless.plan",
    "optimistic_planning.block",
    "batch_simulator.step",
}


@pytest.mark.subprocess
def test_what_people_do_first_is_compiled() -> None:
    done = subprocess.run([sys.executable, "-c", AFTERWARDS], capture_output=True, text=True, check=True)
    ready, new = json.loads(done.stdout.splitlines()[-1])
    assert new == {}, "these loops were compiled for other types than `oldlight compile` compiles them for"
    assert ENTRIES - set(ready) == set(), "`oldlight compile` leaves these out"


def test_an_unknown_part_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["oldlight", "compile", "delays"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code in (1, 2)
    error = capsys.readouterr().err
    assert "delays" in error
    assert all(name in error for name in ("delay", "simulation"))


def test_parts_are_compiled_in_workers(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["oldlight", "compile", "delay", "--workers", "1"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 0
    assert "1 part compiled in" in capsys.readouterr().err
    assert len(PARTS) > 10


def test_bytecode_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "bytecode"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert compile_bytecode()
    made = Path(importlib.util.cache_from_source(str(Path(cli.__file__).parent.parent / "planning" / "delay.py")))
    assert made.is_relative_to(tmp_path)
    before = made.stat().st_mtime_ns
    assert compile_bytecode()
    assert made.stat().st_mtime_ns == before
    monkeypatch.setattr(sys, "pycache_prefix", str(made))  # a file: nothing can be written below it
    assert not compile_bytecode()
