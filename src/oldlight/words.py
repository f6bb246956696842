"""Renamed: `oldlight.registry`."""

from oldlight._exports import moved

moved(__name__, "oldlight.registry")
