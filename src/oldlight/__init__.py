"""oldlight: act well when observations arrive late or never.

Finite decision processes whose observations are delayed or lost on the way to the agent: the best policy that can really
be executed, what the impairment costs, and how to act on it.

>>> import oldlight as ol
>>> problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.ConstantDelay(2), start=ol.WarmStart())
>>> round(ol.solve(problem).value, 6)
3.669276
"""

from oldlight import envs, instances, learners
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
from oldlight.information import Information, Layout, belief
from oldlight.learners import LearningRun, compare, learn
from oldlight.mdp import TabularMDP
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

__version__ = "0.1.0"

__all__ = [
    "BeliefPolicy",
    "BernoulliDelay",
    "BlackoutPolicy",
    "BurstyLoss",
    "CappedDelay",
    "ConstantDelay",
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
    "Truncated",
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
    "simulate",
    "solve",
    "sweep",
    "truncate",
]
