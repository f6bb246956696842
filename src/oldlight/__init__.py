"""oldlight: act well when observations arrive late or never.

Finite decision processes whose observations are delayed or lost on the way to the agent: the best policy that can really
be executed, what the impairment costs, and how to act on it.

>>> import oldlight as ol
>>> problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.ConstantDelay(2), start=ol.WarmStart())
>>> round(ol.solve(problem).value, 6)
3.669276

Each name is imported when it is first used, so that `import oldlight` takes no time; type checkers and editors see the names
below as they are.
"""

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from oldlight import control as control
    from oldlight import envs as envs
    from oldlight import instances as instances
    from oldlight import learners as learners
    from oldlight import model as model
    from oldlight import paper as paper
    from oldlight import planning as planning
    from oldlight import registry as registry
    from oldlight import report as report
    from oldlight import studies as studies
    from oldlight import testbed as testbed
    from oldlight import traces as traces
    from oldlight.checks import TooLarge as TooLarge
    from oldlight.control.controller import Controller as Controller
    from oldlight.files import UnreadableFile as UnreadableFile
    from oldlight.learners import LearningRun as LearningRun
    from oldlight.learners import compare as compare
    from oldlight.learners import learn as learn
    from oldlight.model.channels import AgeChain as AgeChain
    from oldlight.model.channels import BernoulliDelay as BernoulliDelay
    from oldlight.model.channels import BurstyLoss as BurstyLoss
    from oldlight.model.channels import CappedDelay as CappedDelay
    from oldlight.model.channels import ChannelAutomaton as ChannelAutomaton
    from oldlight.model.channels import ConstantDelay as ConstantDelay
    from oldlight.model.channels import DelayChannel as DelayChannel
    from oldlight.model.channels import EmpiricalDelay as EmpiricalDelay
    from oldlight.model.channels import FIFODelay as FIFODelay
    from oldlight.model.channels import GeometricDelay as GeometricDelay
    from oldlight.model.channels import HeavyTailedDelay as HeavyTailedDelay
    from oldlight.model.channels import HeldLag as HeldLag
    from oldlight.model.channels import HiddenLink as HiddenLink
    from oldlight.model.channels import Loss as Loss
    from oldlight.model.channels import Lossy as Lossy
    from oldlight.model.channels import PacketChannel as PacketChannel
    from oldlight.model.channels import Periodic as Periodic
    from oldlight.model.channels import RenewalLoss as RenewalLoss
    from oldlight.model.channels import StochasticDelay as StochasticDelay
    from oldlight.model.information import Information as Information
    from oldlight.model.information import Layout as Layout
    from oldlight.model.information import belief as belief
    from oldlight.model.link_information import LinkInformation as LinkInformation
    from oldlight.model.log_counts import CountedMDP as CountedMDP
    from oldlight.model.log_counts import LogCounts as LogCounts
    from oldlight.model.mdp import TabularMDP as TabularMDP
    from oldlight.model.policies import BeliefPolicy as BeliefPolicy
    from oldlight.model.policies import BlackoutPolicy as BlackoutPolicy
    from oldlight.model.policies import FunctionPolicy as FunctionPolicy
    from oldlight.model.policies import MarkovPolicy as MarkovPolicy
    from oldlight.model.policies import Policy as Policy
    from oldlight.model.policies import TablePolicy as TablePolicy
    from oldlight.model.policy_files import load_policy as load_policy
    from oldlight.model.problem import ImpairedMDP as ImpairedMDP
    from oldlight.model.problem import Truncated as Truncated
    from oldlight.model.problem import WarmStart as WarmStart
    from oldlight.model.problem import truncate as truncate
    from oldlight.own_code import registered as registered
    from oldlight.planning import Solution as Solution
    from oldlight.planning import solve as solve
    from oldlight.planning.evaluation import Evaluation as Evaluation
    from oldlight.planning.evaluation import evaluate as evaluate
    from oldlight.planning.frontier import Frontier as Frontier
    from oldlight.planning.gap import Gap as Gap
    from oldlight.planning.gap import gap as gap
    from oldlight.planning.requirement import requirement as requirement
    from oldlight.planning.requirement_result import Requirement as Requirement
    from oldlight.planning.sensitivity import Sensitivity as Sensitivity
    from oldlight.planning.sensitivity import sensitivity as sensitivity
    from oldlight.planning.sweep import Sweep as Sweep
    from oldlight.planning.sweep import sweep as sweep
    from oldlight.simulation import Simulation as Simulation
    from oldlight.simulation import simulate as simulate
    from oldlight.testbed import run_testbed as run_testbed
    from oldlight.traces import Trace as Trace
    from oldlight.traces import read_trace as read_trace
    from oldlight.traces import wifi as wifi
    from oldlight.traces.channel_comparison import compare_channels as compare_channels
    from oldlight.traces.links_compared import ChannelComparison as ChannelComparison
    from oldlight.traces.replay import Replay as Replay
    from oldlight.traces.replay import replay as replay
else:
    import sys

    from oldlight import _exports

    __all__ = ["__version__", *_exports.NAMES]

    def __getattr__(name):
        return _exports.load(name)

    def __dir__():
        return sorted({*globals(), *_exports.NAMES, *_exports.PARTS})

    if hasattr(
        sys.modules.get("gymnasium"), "register"
    ):  # gym.make("oldlight:oldlight/SensingChain-v0") comes this way
        from oldlight.envs import register

        register()
