"""What a run shows: a table, plain values, a picture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import oldlight as ol
from oldlight.learners import DelayedUCBVI, UniformRandom, learn

PROBLEM = ol.ImpairedMDP(ol.instances.sensing_chain(0.8, horizon=4), ol.ConstantDelay(1))


def test_print_shows_a_small_table() -> None:
    run = learn(PROBLEM, UniformRandom(), 12, seed=2, every=3)
    rows = dict(line.strip().split("  ", 1) for line in str(run).splitlines()[1:])
    assert rows["episodes"].strip() == "12 of 12"
    assert float(rows["regret"]) == float(f"{run.regret[-1]:.6g}")
    assert rows["values"].strip() == "valued every 3 episodes"
    assert rows["problem"].strip() == repr(PROBLEM)
    assert repr(run).startswith("LearningRun(UniformRandom, 12 episodes")  # one line, as before


def test_plain_values_are_json() -> None:
    run = learn(PROBLEM, UniformRandom(), 12, seed=2, by_start=True)
    found = json.loads(json.dumps(run.to_dict()))
    assert (found["learner"], found["seed"], found["done"]) == ("UniformRandom", 2, 12)
    assert np.array_equal(found["regret"], run.regret)
    assert np.array_equal(found["start_values"], run.start_values)
    assert len(found["best_by_start"]) == PROBLEM.n_states


def test_a_checkpoint_does_not_depend_on_the_control_period(tmp_path: Path) -> None:
    """No number does. A run that was begun when channels did not print their period is continued, too."""
    timed = PROBLEM.behind(PROBLEM.channel.with_period(20))
    first = learn(timed, DelayedUCBVI(), 6, seed=2, checkpoint=tmp_path / "run.npz")
    again = learn(PROBLEM, DelayedUCBVI(), 6, seed=2, checkpoint=tmp_path / "run.npz")
    assert np.array_equal(first.values, again.values)
    with pytest.raises(ol.UnreadableFile, match="a checkpoint of another run: problem is"):
        learn(PROBLEM.behind(ol.ConstantDelay(2)), DelayedUCBVI(), 6, seed=2, checkpoint=tmp_path / "run.npz")


def test_a_run_is_drawn_on_the_axes_given() -> None:
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    run = learn(PROBLEM, UniformRandom(), 12, seed=2)
    assert run.plot(ax) is ax
    assert np.array_equal(ax.lines[0].get_ydata(), run.regret)


def test_growing_values_the_first_policies_each_and_stands_for_a_sixteenth_at_most() -> None:
    """Every value is that of its own episode or of one not more than a sixteenth of the episodes before, in blocks and one by one."""
    problem = ol.ImpairedMDP(ol.instances.center_chain(0.8), ol.ConstantDelay(1))
    for make in (ol.learners.DelayedUCBVI, ol.learners.default):  # policies that expire, and blocks that remember them
        each = ol.learn(problem, make(), 500, seed=3)
        few = ol.learn(problem, make(), 500, seed=3, every="growing")
        k = np.arange(500)
        step = np.where(k < 32, 1, 2 ** np.maximum(0, np.floor(np.log2(np.maximum(k, 1))).astype(int) - 4))
        assert (step <= np.maximum(1, k / 16)).all()
        assert np.array_equal(few.values, each.values[k - k % step])
        assert np.array_equal(few.returns, each.returns)
    assert "ever more seldom" in repr(few)
    assert not few.exact
    with pytest.raises(ValueError, match=r'every .a number of episodes, or "growing". is'):
        ol.learn(problem, make(), 5, every="seldom")
