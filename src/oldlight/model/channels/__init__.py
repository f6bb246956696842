"""How observations travel from the process to the agent: the model of a link.

`channel` has the base of all channels, `delays` and `empirical` those that delay, `losses` those that lose, `delay_law` a delay channel
written out for one process. `automaton` is what an agent knows of a link that does not depend on the process; `in_order` makes
it of delays and losses, `hidden` of links with a hidden mode, and `packets`, `fifo`, `age_chain`, `renewal`, `periodic` and
`held_lag` are such links. `delays` defines the delay and the loss of a channel.

Each name is imported when it is first used: a robot's controller needs the automaton alone.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oldlight.model.channels.age_chain import AgeChain as AgeChain
    from oldlight.model.channels.automaton import NOTHING_NEWER as NOTHING_NEWER
    from oldlight.model.channels.automaton import ChannelAutomaton as ChannelAutomaton
    from oldlight.model.channels.channel import Channel as Channel
    from oldlight.model.channels.channel import steps_of as steps_of
    from oldlight.model.channels.delays import BernoulliDelay as BernoulliDelay
    from oldlight.model.channels.delays import CappedDelay as CappedDelay
    from oldlight.model.channels.delays import ConstantDelay as ConstantDelay
    from oldlight.model.channels.delays import DelayChannel as DelayChannel
    from oldlight.model.channels.delays import GeometricDelay as GeometricDelay
    from oldlight.model.channels.delays import HeavyTailedDelay as HeavyTailedDelay
    from oldlight.model.channels.delays import StochasticDelay as StochasticDelay
    from oldlight.model.channels.empirical import EmpiricalDelay as EmpiricalDelay
    from oldlight.model.channels.fifo import FIFODelay as FIFODelay
    from oldlight.model.channels.held_lag import HeldLag as HeldLag
    from oldlight.model.channels.hidden import HiddenLink as HiddenLink
    from oldlight.model.channels.losses import BurstyLoss as BurstyLoss
    from oldlight.model.channels.losses import Loss as Loss
    from oldlight.model.channels.losses import LossChannel as LossChannel
    from oldlight.model.channels.losses import LossModes as LossModes
    from oldlight.model.channels.losses import Lossy as Lossy
    from oldlight.model.channels.packets import PacketChannel as PacketChannel
    from oldlight.model.channels.periodic import Periodic as Periodic
    from oldlight.model.channels.renewal import RenewalLoss as RenewalLoss
else:
    from oldlight._exports import lazily

    WHERE = {
        "age_chain": "AgeChain",
        "automaton": "NOTHING_NEWER ChannelAutomaton",
        "channel": "Channel steps_of",
        "delays": "BernoulliDelay CappedDelay ConstantDelay DelayChannel GeometricDelay HeavyTailedDelay StochasticDelay",
        "empirical": "EmpiricalDelay",
        "fifo": "FIFODelay",
        "held_lag": "HeldLag",
        "hidden": "HiddenLink",
        "losses": "BurstyLoss Loss LossChannel LossModes Lossy",
        "packets": "PacketChannel",
        "periodic": "Periodic",
        "renewal": "RenewalLoss",
    }
    NAMES = [name for names in WHERE.values() for name in names.split()]
    __getattr__ = lazily(__name__, {module: names.split() for module, names in WHERE.items()})

    def __dir__():
        return sorted({*globals(), *NAMES})
