"""Textbook processes with published optimal values (no delay)."""

from __future__ import annotations

import numpy as np

from oldlight import checks
from oldlight.model.mdp import TabularMDP
from oldlight.own_code import registered


@registered
def forest(
    n_states: int = 3, *, r1: float = 4.0, r2: float = 2.0, p: float = 0.1, discount: float = 1.0, horizon: int = 3
) -> TabularMDP:
    """Forest management, as in pymdptoolbox: wait or cut; a fire burns the forest down.

    Parameters
    ----------
    n_states : int
        Ages of the forest, ≥ 2.
    r1, r2 : float
        What waiting, and cutting, earns in the oldest state; cutting earns 1 in a middle one.
    p : float
        Probability of a fire in a step.
    discount : float
        Factor per step, in [0, 1].
    horizon : int
        H.

    Returns
    -------
    TabularMDP
        The process.

    Examples
    --------
    >>> import oldlight as ol
    >>> ol.solve(ol.ImpairedMDP(ol.instances.forest(discount=0.9).replace(initial=[0, 0, 1]), "none")).value
    9.9373
    """
    S = checks.whole("n_states", n_states, least=2)
    checks.probability("p", p)
    P = np.zeros((S, 2, S))
    for s in range(S):
        P[s, 0, 0] += p
        P[s, 0, min(s + 1, S - 1)] += 1 - p
        P[s, 1, 0] = 1.0
    R = np.zeros((S, 2))
    R[S - 1] = r1, r2
    R[1 : S - 1, 1] = 1.0
    powers = checks.probability("discount", discount) ** np.arange(checks.whole("horizon", horizon, least=1))
    return TabularMDP(P, powers[:, None, None] * R, horizon=horizon, actions=["wait", "cut"])


@registered
def inventory(*, capacity: int = 3, horizon: int = 3, penalty: float = 100.0) -> TabularMDP:
    """Puterman's stochastic inventory (2005, Section 3.2): order u for 4 + 2u, hold u for u, sell u for 8u.

    Demand is 0, 1, 2 with probability ¼, ½, ¼.

    Parameters
    ----------
    capacity : int
        The largest stock.
    horizon : int
        H.
    penalty : float
        Cost of an order that does not fit: nothing comes.

    Returns
    -------
    TabularMDP
        The process.

    Examples
    --------
    >>> import oldlight as ol
    >>> ol.solve(ol.ImpairedMDP(ol.instances.inventory().replace(initial=[1, 0, 0, 0]), "none")).value
    4.1875
    """
    M = checks.whole("capacity", capacity, least=1)
    demand = {0: 0.25, 1: 0.5, 2: 0.25}
    P = np.zeros((M + 1, M + 1, M + 1))
    R = np.zeros((M + 1, M + 1))
    for stock in range(M + 1):
        for order in range(M + 1):
            fits = stock + order <= M
            have = stock + (order if fits else 0)
            cost = penalty if not fits else 4.0 + 2.0 * order if order else 0.0
            R[stock, order] = sum(q * 8.0 * min(have, x) for x, q in demand.items()) - cost - have
            for x, q in demand.items():
                P[stock, order, max(have - x, 0)] += q
    names = [f"stock {i}" for i in range(M + 1)]
    return TabularMDP(P, R, horizon=horizon, states=names, actions=[f"order {i}" for i in range(M + 1)])
