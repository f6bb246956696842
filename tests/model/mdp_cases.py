"""A stationary process and one with a table per step."""

from __future__ import annotations

from typing import Any

import numpy as np

import oldlight as ol

H, S, A = 4, 3, 2


def arrays(seed: int = 0) -> tuple[Any, Any, Any]:
    """Per-step transitions [h, s, a, s2], rewards [h, s, a] and a first law."""
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(S), size=(H, S, A)), rng.normal(size=(H, S, A)), rng.dirichlet(np.ones(S))


def stationary(**more: Any) -> ol.TabularMDP:
    P, R, rho = arrays()
    return ol.TabularMDP(P[0], R[0], horizon=H, initial=rho, **more)


def per_step(**more: Any) -> ol.TabularMDP:
    P, R, rho = arrays()
    return ol.TabularMDP(P, R, horizon=H, initial=rho, **more)


def best(mdp: ol.TabularMDP) -> float:
    """The optimal value when everything is seen at once."""
    return ol.solve(ol.ImpairedMDP(mdp, ol.ConstantDelay(0))).value
