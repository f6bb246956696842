"""oldlight: act well when observations arrive late or never.

Finite decision processes whose observations are delayed or lost on the way to the agent: the best policy that can really
be executed, what the impairment costs, and how to act on it.

>>> import oldlight as ol
>>> problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.ConstantDelay(2), start=ol.WarmStart())
>>> round(ol.solve(problem).value, 6)
3.669276
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from oldlight import envs

if TYPE_CHECKING:
    from oldlight import instances, learners
    from oldlight.channels import (
        BernoulliDelay,
        BurstyLoss,
        CappedDelay,
        ConstantDelay,
        DelayChannel,
        EmpiricalDelay,
        GeometricDelay,
        HeavyTailedDelay,
        Loss,
        Lossy,
        StochasticDelay,
    )
    from oldlight.checks import TooLarge
    from oldlight.controller import Controller
    from oldlight.files import UnreadableFile
    from oldlight.information import Information, Layout, belief
    from oldlight.learners import LearningRun, compare, learn
    from oldlight.mdp import TabularMDP
    from oldlight.own_code import registered
    from oldlight.planning import Solution, solve
    from oldlight.planning.evaluation import Evaluation, evaluate
    from oldlight.planning.gap import Gap, gap
    from oldlight.planning.sweep import Sweep, sweep
    from oldlight.policies import (
        BeliefPolicy,
        BlackoutPolicy,
        FunctionPolicy,
        MarkovPolicy,
        Policy,
        TablePolicy,
        load_policy,
    )
    from oldlight.problem import ImpairedMDP, Truncated, WarmStart, truncate
    from oldlight.simulation import Simulation, simulate
    from oldlight.testbed import run_testbed
    from oldlight.traces import Trace, read_trace, wifi

__version__ = "0.1.0"

_WHERE = {
    "channels": (
        "BernoulliDelay",
        "BurstyLoss",
        "CappedDelay",
        "ConstantDelay",
        "DelayChannel",
        "EmpiricalDelay",
        "GeometricDelay",
        "HeavyTailedDelay",
        "Loss",
        "Lossy",
        "StochasticDelay",
    ),
    "checks": ("TooLarge",),
    "controller": ("Controller",),
    "files": ("UnreadableFile",),
    "information": ("Information", "Layout", "belief"),
    "learners": ("LearningRun", "compare", "learn"),
    "mdp": ("TabularMDP",),
    "own_code": ("registered",),
    "planning": ("Solution", "solve"),
    "planning.evaluation": ("Evaluation", "evaluate"),
    "planning.gap": ("Gap", "gap"),
    "planning.sweep": ("Sweep", "sweep"),
    "policies": (
        "BeliefPolicy",
        "BlackoutPolicy",
        "FunctionPolicy",
        "MarkovPolicy",
        "Policy",
        "TablePolicy",
        "load_policy",
        "read_trace",
        "run_testbed",
    ),
    "problem": ("ImpairedMDP", "Truncated", "WarmStart", "truncate"),
    "simulation": ("Simulation", "simulate"),
    "testbed": ("run_testbed",),
    "traces": ("Trace", "read_trace", "wifi"),
}
_FOUND = {name: module for module, names in _WHERE.items() for name in names}
_PARTS = (
    "controller",
    "instances",
    "learners",
    "planning",
    "report",
    "studies",
    "testbed",
    "theory",
    "traces",
    "words",
)


def __getattr__(name: str) -> Any:
    """Each part is imported when it is first used, so that `import oldlight` takes no time."""
    if name in _PARTS:
        return import_module(f"oldlight.{name}")
    if name not in _FOUND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"oldlight.{_FOUND[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_FOUND, *_PARTS})


__all__ = [
    "BeliefPolicy",
    "BernoulliDelay",
    "BlackoutPolicy",
    "BurstyLoss",
    "CappedDelay",
    "ConstantDelay",
    "Controller",
    "DelayChannel",
    "EmpiricalDelay",
    "Evaluation",
    "FunctionPolicy",
    "Gap",
    "GeometricDelay",
    "HeavyTailedDelay",
    "ImpairedMDP",
    "Information",
    "Layout",
    "LearningRun",
    "Loss",
    "Lossy",
    "MarkovPolicy",
    "Policy",
    "Simulation",
    "Solution",
    "StochasticDelay",
    "Sweep",
    "TablePolicy",
    "TabularMDP",
    "TooLarge",
    "Trace",
    "Truncated",
    "UnreadableFile",
    "WarmStart",
    "__version__",
    "belief",
    "compare",
    "envs",
    "evaluate",
    "gap",
    "instances",
    "learn",
    "learners",
    "load_policy",
    "read_trace",
    "registered",
    "run_testbed",
    "simulate",
    "solve",
    "sweep",
    "truncate",
    "wifi",
]
