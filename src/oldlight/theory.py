"""Renamed: `oldlight.paper`."""

from oldlight._exports import moved

moved(__name__, "oldlight.paper")
