"""Renamed: `oldlight.model.information`."""

from oldlight._exports import moved

moved(__name__, "oldlight.model.information")
