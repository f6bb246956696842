"""Measured links: read a recording, look at it, make a channel of it, and try a policy on it."""

from oldlight.traces.comparison import Comparison, compare_models
from oldlight.traces.fit import Fit, save_channel
from oldlight.traces.replay import Replay, replay
from oldlight.traces.trace import WIFI, Trace, read_trace, wifi

__all__ = [
    "WIFI",
    "Comparison",
    "Fit",
    "Replay",
    "Trace",
    "compare_models",
    "read_trace",
    "replay",
    "save_channel",
    "wifi",
]
