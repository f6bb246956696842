"""A policy against a clock and a network: what a robot loads. Everything here needs numpy alone."""

from oldlight.control.controller import Controller

__all__ = ["Controller"]
