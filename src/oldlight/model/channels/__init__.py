"""How observations travel from the process to the agent: the model of a link.

`channel` has the base of all channels, `delays` and `empirical` those that delay, `losses` those that lose, `delay_law` a delay channel
written out for one process. `automaton` is what an agent knows of a link that does not depend on the process; `in_order` makes
it of delays and losses, `hidden` of links with a hidden mode, and `packets`, `fifo`, `age_chain`, `renewal`, `periodic` and
`held_lag` are such links. `delays` defines the delay and the loss of a channel.

Each name is imported when it is first used: a robot's controller needs the automaton alone.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oldlight.model.channels.age_chain import AgeChain
    from oldlight.model.channels.automaton import NOTHING_NEWER, ChannelAutomaton
    from oldlight.model.channels.channel import Channel, steps_of
    from oldlight.model.channels.delays import (
        BernoulliDelay,
        CappedDelay,
        ConstantDelay,
        DelayChannel,
        GeometricDelay,
        HeavyTailedDelay,
        StochasticDelay,
    )
    from oldlight.model.channels.empirical import EmpiricalDelay
    from oldlight.model.channels.fifo import FIFODelay
    from oldlight.model.channels.held_lag import HeldLag
    from oldlight.model.channels.hidden import HiddenLink
    from oldlight.model.channels.losses import BurstyLoss, Loss, LossChannel, LossModes, Lossy
    from oldlight.model.channels.packets import PacketChannel
    from oldlight.model.channels.periodic import Periodic
    from oldlight.model.channels.renewal import RenewalLoss

__all__ = [
    "NOTHING_NEWER",
    "AgeChain",
    "BernoulliDelay",
    "BurstyLoss",
    "CappedDelay",
    "Channel",
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
    "LossChannel",
    "LossModes",
    "Lossy",
    "PacketChannel",
    "Periodic",
    "RenewalLoss",
    "StochasticDelay",
    "steps_of",
]
_WHERE = {
    "AgeChain": "age_chain",
    "NOTHING_NEWER": "automaton",
    "ChannelAutomaton": "automaton",
    "Channel": "channel",
    "steps_of": "channel",
    "BernoulliDelay": "delays",
    "CappedDelay": "delays",
    "ConstantDelay": "delays",
    "DelayChannel": "delays",
    "GeometricDelay": "delays",
    "HeavyTailedDelay": "delays",
    "StochasticDelay": "delays",
    "EmpiricalDelay": "empirical",
    "FIFODelay": "fifo",
    "HeldLag": "held_lag",
    "HiddenLink": "hidden",
    "BurstyLoss": "losses",
    "Loss": "losses",
    "LossChannel": "losses",
    "LossModes": "losses",
    "Lossy": "losses",
    "PacketChannel": "packets",
    "Periodic": "periodic",
    "RenewalLoss": "renewal",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
