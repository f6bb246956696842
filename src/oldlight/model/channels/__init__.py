"""How observations travel from the process to the agent: the model of a link.

`channel` has the base of all channels, `delays` those that delay, `losses` those that lose, `delay_law` a delay channel
written out for one process. What the delay and the loss of a channel mean is said in `delays`.
"""

from oldlight.model.channels.channel import Channel, steps_of
from oldlight.model.channels.delays import (
    BernoulliDelay,
    CappedDelay,
    ConstantDelay,
    DelayChannel,
    EmpiricalDelay,
    GeometricDelay,
    HeavyTailedDelay,
    StochasticDelay,
)
from oldlight.model.channels.losses import BurstyLoss, Loss, LossChannel, Lossy

__all__ = [
    "BernoulliDelay",
    "BurstyLoss",
    "CappedDelay",
    "Channel",
    "ConstantDelay",
    "DelayChannel",
    "EmpiricalDelay",
    "GeometricDelay",
    "HeavyTailedDelay",
    "Loss",
    "LossChannel",
    "Lossy",
    "StochasticDelay",
    "steps_of",
]
