"""A run that is killed (−9) at random moments and started again ends in the identical result."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import oldlight as ol
from oldlight.learners import DelayedUCBVI, learn
from repeats import repeats

SCRIPT = """
import sys
import numpy as np
import oldlight as ol
from oldlight.learners import DelayedUCBVI, learn
rng = np.random.default_rng(4)
mdp = ol.TabularMDP(rng.dirichlet(np.ones(4), size=(4, 2)), rng.random((4, 2)), horizon=6)
problem = ol.ImpairedMDP(mdp, ol.ConstantDelay(1))
learn(problem, DelayedUCBVI(), 60_000, seed=11, checkpoint=sys.argv[1], checkpoint_every=0.05).save(sys.argv[2])
"""


@pytest.mark.slow
def test_kill_nine_and_go_on(tmp_path: Path) -> None:
    checkpoint, result = tmp_path / "checkpoint.npz", tmp_path / "run.npz"
    command = [sys.executable, "-c", SCRIPT, str(checkpoint), str(result)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    rng = np.random.default_rng(0)
    kills = 0
    for _ in range(12):
        process = subprocess.Popen(command, env=environment)
        began = time.monotonic()
        while process.poll() is None and not checkpoint.exists() and time.monotonic() - began < 60:
            time.sleep(0.01)  # let it get somewhere, whatever it has to compile
        if kills < repeats(2, 4):
            try:
                process.wait(timeout=float(rng.uniform(0.05, 0.25)))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                kills += 1
        process.wait(timeout=120)
        if result.exists():
            break
    assert result.exists()
    assert kills > 0
    draws = np.random.default_rng(4)
    mdp = ol.TabularMDP(draws.dirichlet(np.ones(4), size=(4, 2)), draws.random((4, 2)), horizon=6)
    undisturbed = learn(ol.ImpairedMDP(mdp, ol.ConstantDelay(1)), DelayedUCBVI(), 60_000, seed=11)
    again = ol.LearningRun.load(result)
    assert np.array_equal(again.values, undisturbed.values)
    assert np.array_equal(again.returns, undisturbed.returns)
    leftovers = [p.name for p in tmp_path.iterdir() if p.suffix == ".part"]
    assert len(leftovers) <= kills  # at most the file that was being written when the process died
