"""Measured links: read a recording, look at it, make a channel of it, and try a policy on it."""

from oldlight.traces.candidates import Score
from oldlight.traces.comparison import Comparison, compare_models
from oldlight.traces.counted import AgeCounts
from oldlight.traces.fit import Fit, save_channel
from oldlight.traces.replay import Replay, replay
from oldlight.traces.trace import WIFI, Trace, read_trace, wifi

__all__ = [
    "WIFI",
    "AgeCounts",
    "Comparison",
    "Fit",
    "Replay",
    "Score",
    "Trace",
    "compare_models",
    "read_trace",
    "replay",
    "save_channel",
    "wifi",
]
