"""Renamed: `oldlight.control`."""

from oldlight._exports import moved

moved(__name__, "oldlight.control")
