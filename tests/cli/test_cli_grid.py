"""`oldlight plan gym:ID --grid`: what it prints is what Python computes; what it refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import gymnasium as gym
import pytest

import oldlight as ol
from oldlight import cli
from oldlight.envs import GridProcess, ImpairedObservation, play


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["oldlight", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    out, err = capsys.readouterr()
    return int(stopped.value.code or 0), out, err


def test_a_plan_on_a_grid(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "car.npz"
    code, out, err = run(monkeypatch, capsys, "plan", "gym:MountainCar-v0", "-c", "constant:1", "--grid", "--bins", "15,13", "-n", "2",
                         "--controller", str(file), "--json", "-")  # fmt: skip
    assert code == 0
    (row,) = json.loads(out)
    grid = GridProcess.from_env(gym.make("MountainCar-v0"), bins=(15, 13))
    problem = grid.problem("constant:1")
    assert row["value on the grid"] == ol.solve(problem, tolerance=grid.tolerance).value
    assert (row["cells"], row["coverage"]) == (195, 1.0)
    env = ImpairedObservation(gym.make("MountainCar-v0"), "constant:1", queue=0)
    assert row["mean return"] == play(env, grid.controller("constant:1"), 2, grid=grid).mean()
    assert str(file) in err
    assert row["mean return"] == play(env, ol.Controller.load(file), 2, grid=grid).mean()


def test_wrong_usage_of_a_grid(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, word in (
        (("gym:CartPole-v1", "--grid", "--warm"), "--grid goes with"),
        (("sensing_chain", "--grid"), "gym:CartPole-v1"),
        (("gym:FrozenLake-v1", "--grid"), "Box"),
        (("gym:CartPole-v1", "--grid", "--bins", "3,x"), "--bins"),
    ):
        code, _, err = run(monkeypatch, capsys, "plan", *arguments)
        assert code == 2
        assert word in err
