"""Where each public name of `oldlight` is defined. `oldlight/__init__.py` has the same list for type checkers; a test compares."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

WHERE = {
    "checks": ("TooLarge",),
    "control.controller": ("Controller",),
    "files": ("UnreadableFile",),
    "learners": ("LearningRun", "compare", "learn"),
    "model.channels": (
        "AgeChain",
        "BernoulliDelay",
        "BurstyLoss",
        "CappedDelay",
        "ChannelAutomaton",
        "ConstantDelay",
        "DelayChannel",
        "EmpiricalDelay",
        "FIFODelay",
        "GeometricDelay",
        "HeavyTailedDelay",
        "HeldLag",
        "HiddenLink",
        "Loss",
        "Lossy",
        "PacketChannel",
        "Periodic",
        "RenewalLoss",
        "StochasticDelay",
    ),
    "model.log_counts": ("CountedMDP", "LogCounts"),
    "model.information": ("Information", "Layout", "belief"),
    "model.link_information": ("LinkInformation",),
    "model.mdp": ("TabularMDP",),
    "model.policies": (
        "BeliefPolicy",
        "BlackoutPolicy",
        "FunctionPolicy",
        "MarkovPolicy",
        "Policy",
        "TablePolicy",
    ),
    "model.policy_files": ("load_policy",),
    "model.problem": ("ImpairedMDP", "Truncated", "WarmStart", "truncate"),
    "own_code": ("registered",),
    "planning": ("Solution", "solve"),
    "planning.evaluation": ("Evaluation", "evaluate"),
    "planning.frontier": ("Frontier",),
    "planning.gap": ("Gap", "gap"),
    "planning.requirement": ("requirement",),
    "planning.requirement_result": ("Requirement",),
    "planning.sensitivity": ("Sensitivity", "sensitivity"),
    "planning.sweep": ("Sweep", "sweep"),
    "simulation": ("Simulation", "simulate"),
    "testbed": ("run_testbed",),
    "traces.channel_comparison": ("compare_channels",),
    "traces.links_compared": ("ChannelComparison",),
    "traces": ("Trace", "read_trace", "wifi"),
    "traces.replay": ("Replay", "replay"),
}
PARTS = (
    "control",
    "envs",
    "instances",
    "learners",
    "model",
    "paper",
    "planning",
    "registry",
    "report",
    "studies",
    "testbed",
    "traces",
)
RENAMED = {
    "channels": "model.channels",
    "controller": "control",
    "information": "model.information",
    "theory": "paper",
    "words": "registry",
}
MODULES = {name: module for module, names in WHERE.items() for name in names}
NAMES = sorted([*MODULES, "envs", "instances", "learners"])


def lazily(package: str, where: Mapping[str, Iterable[str]]) -> Callable[[str], Any]:
    """`__getattr__` of a package whose names, by the module that defines them, are imported when they are first used."""
    modules = {name: module for module, names in where.items() for name in names}

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, found)
        return found

    return load


_load = lazily("oldlight", WHERE)


def load(name: str) -> Any:
    """The public name, imported now and kept in the package for the next time."""
    if name in RENAMED:
        new = RENAMED[name]
        warnings.warn(f"oldlight.{name} is now oldlight.{new}", DeprecationWarning, stacklevel=3)
        return import_module(f"oldlight.{new}")
    if name in PARTS:
        return import_module(f"oldlight.{name}")
    return _load(name)


def moved(old: str, new: str) -> None:
    """Put module `new` in the place of `old`, which is going away."""
    warnings.warn(f"{old} is now {new}", DeprecationWarning, stacklevel=3)
    sys.modules[old] = import_module(new)
