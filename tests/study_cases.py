"""A small study, and code of one's own for studies that name it."""

from __future__ import annotations

from typing import Any

from oldlight.studies import Study, load_study

SMALL = {"name": "sensing_chain", "p": 0.8, "n_states": 4, "n_actions": 2, "horizon": 4, "label": "small"}


KEYS: dict[str, Any] = {
    "name": "delays",
    "seed": 3,
    "seeds": 2,
    "episodes": 40,
    "start": "warm",
    "instances": [SMALL],
    "channels": ["constant:1", {"kind": "loss", "rate": 0.25, "label": "a quarter lost"}],
    "learners": ["UniformRandom"],
    "tasks": ["gap"],
}


OWN = """
import os, signal
from pathlib import Path
import numpy as np
import oldlight as ol

@ol.registered
class Stubborn:  # a learner with no state() and no restore()
    def __init__(self, *, action=0): self.action = action
    def start(self, setting, rng): self.seen = 0
    def act(self, info): return self.action
    def see(self, episode): self.seen += 1

@ol.registered
def make(*, action=1): return Stubborn(action=action)

@ol.registered
def broken(): return {}["no such key"]

class Late(ol.DelayChannel):
    def __init__(self, d): self.d = d
    def law(self, H, S, A): return ol.ConstantDelay(self.d).law(H, S, A)

@ol.registered
def coin(horizon=3):
    return ol.TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), horizon=horizon)

@ol.registered
def everything(problem, seed, *, episodes=7):
    rng = np.random.default_rng(seed)
    return {"draws": rng.random(episodes), "counts": np.arange(3), "yes": np.array([True, False]), "none": np.zeros(0),
            "words": np.array(["a", "longer"]), "horizon": problem.horizon, "name": "heron", "nan": float("nan"),
            "seconds": 0.5, "fine": True}

@ol.registered
def fails_without(problem, seed, *, path):
    if not Path(path).exists():
        raise ValueError(f"no {path} for {seed}")
    return {"ok": 1}

@ol.registered
def dies(problem, *, how):
    if how == "killed": os.kill(os.getpid(), signal.SIGKILL)
    if how == "exits": os._exit(3)
    return {"ok": 1}

@ol.registered
def first(problem): return ol.FunctionPolicy(lambda info: 0, problem.n_actions)

@ol.registered
def wades(problem, seed, *, deep=0): return {"depth": deep}
def too_deep(problem, *, deep=0):
    if deep > problem.horizon: raise ValueError(f"deep is {deep}, expected at most {problem.horizon}")
wades.refuse = too_deep

@ol.registered
def square(problem): return {"matrix": np.zeros((2, 2))}
@ol.registered
def seven(problem): return 7
"""


def small_study(**changes: Any) -> Study:
    return load_study({key: value for key, value in (KEYS | changes).items() if value is not None})


def ids(**changes: Any) -> set[str]:
    return {job.id for job in small_study(**changes).jobs()}
