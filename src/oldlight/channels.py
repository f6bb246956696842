"""Renamed: `oldlight.model.channels`."""

from oldlight._exports import moved

moved(__name__, "oldlight.model.channels")
