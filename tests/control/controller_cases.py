"""Problems, and a controller that begins on them, for the tests of the controller."""

from __future__ import annotations

from typing import Any

import numpy as np

import oldlight as ol
from conftest import random_mdp
from oracle import random_law

KINDS = [
    "none",
    "constant, cold",
    "constant, warm",
    "beyond the horizon",
    "per state and action",
    "geometric",
    "capped",
    "late actions",
    "loss",
    "loss per step",
    "late and lossy",
    "lossy, late actions",
]


def problem_of(kind: str, seed: int) -> ol.ImpairedMDP:
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    S, A, H = int(rng.integers(2, 4)), int(rng.integers(2, 4)), int(rng.integers(3, 6))
    mdp = random_mdp(rng, S, A, H)
    pending = rng.integers(0, A, 2).tolist()
    first, inter = random_law(rng, H, S, A, 3, kind="state_action")
    channel: Any = {
        "none": ol.ConstantDelay(0),
        "constant, cold": ol.ConstantDelay(2),
        "constant, warm": ol.ConstantDelay(2),
        "beyond the horizon": ol.ConstantDelay(9),
        "per state and action": ol.StochasticDelay(inter, first=first),
        "geometric": ol.GeometricDelay(0.6, first="same"),
        "capped": ol.GeometricDelay(0.4, first="same").capped(2),
        "late actions": ol.GeometricDelay(0.5),
        "loss": ol.Loss(seen=0.5),
        "loss per step": ol.Loss(seen=rng.random(H)),
        "late and lossy": ol.Lossy(ol.ConstantDelay(2), seen=0.6),
        "lossy, late actions": ol.Lossy(ol.ConstantDelay(1), seen=0.6),
    }[kind]
    if kind == "constant, warm":
        return ol.ImpairedMDP(mdp, channel, start=ol.WarmStart())
    if "actions" in kind and "late" in kind and "state" not in kind:
        return ol.ImpairedMDP(mdp, channel, actuation=2, pending=pending)
    return ol.ImpairedMDP(mdp, channel)


def chain(d: int = 2, **more: Any) -> tuple[ol.ImpairedMDP, Any]:
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.ConstantDelay(d), **more)
    return problem, ol.solve(problem).policy


def discounted(seed: int, u: float, tolerance: float, S: int = 3, A: int = 2) -> ol.TabularMDP:
    rng = np.random.default_rng([seed, 9])
    return ol.TabularMDP.discounted(
        rng.dirichlet(0.4 * np.ones(S), size=(S, A)), rng.normal(size=(S, A)), discount=u, tolerance=tolerance
    )
