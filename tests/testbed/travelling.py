"""Policies that are sent to the processes of a testbed. These import the module of a policy, so it imports little itself."""

from __future__ import annotations

import multiprocessing
from typing import Any

import oldlight as ol


class Fails:
    """A policy that fails where it is used, not where it is made."""

    def probabilities(self, info: ol.Information) -> Any:
        if multiprocessing.parent_process() is not None:
            raise RuntimeError("no idea")
        return [1.0, 0.0]


def mostly_right(info: ol.Information) -> Any:
    return [0.25, 0.75]


def half(weight: float, info: ol.Information) -> Any:
    return [weight, 1 - weight]
