"""Proposition 5's process: a delay of d costs nothing, a delay of d + 1 costs half.

Two states, two actions. The state stays as it is, except that step d (the paper's step d + 1) draws a new one uniformly.
The only reward is 1 for naming the state at step d. With delay d the first state is just seen in time; with d + 1 it is
not, and any policy is right half of the time. Cold start, uniform first state.
"""

from __future__ import annotations

import numpy as np

from oldlight import checks
from oldlight.model.mdp import TabularMDP
from oldlight.own_code import registered


@registered
def dichotomy(d: int, horizon: int | None = None) -> TabularMDP:
    """Value 1 under ConstantDelay(d), 1/2 under ConstantDelay(d + 1).

    Parameters
    ----------
    d : int
        The longest delay that costs nothing.
    horizon : int, optional
        H > d; d + 2 if None.

    Returns
    -------
    TabularMDP
        The process.

    Examples
    --------
    >>> import oldlight as ol
    >>> [ol.solve(ol.ImpairedMDP(ol.instances.dichotomy(2), ol.ConstantDelay(d))).value for d in (2, 3)]
    [1.0, 0.5]
    """
    checks.whole("d", d)
    H = checks.whole("horizon", d + 2 if horizon is None else horizon, least=d + 1)
    P = np.zeros((H, 2, 2, 2))
    P[:, [0, 1], :, [0, 1]] = 1.0
    P[d] = 0.5
    R = np.zeros((H, 2, 2))
    R[d] = np.eye(2)
    return TabularMDP(P, R, horizon=H, actions=["name 0", "name 1"])
