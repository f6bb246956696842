"""Measured links: read a recording, look at it, and make a channel of it."""

from oldlight.traces.fit import Fit, save_channel
from oldlight.traces.trace import WIFI, Trace, read_trace, wifi

__all__ = ["WIFI", "Fit", "Trace", "read_trace", "save_channel", "wifi"]
