"""Two chains of S states with reward 1 in the two middle ones, whatever the action.

`center_chain(p)` is the paper's experiment (Section 6; Env1: p = 0.99, Env2: p = 0.8). The first action moves one state
towards the middle with probability p, else one away; every other action moves away with probability p, else towards. A
move off an end stays. The first action is best in *every* state, so "always the first action" is optimal without looking,
and no delay and no loss costs anything.

`sensing_chain(p)` is the same chain made to need eyes: the first action moves right and the second left with probability
p (else the other way; a move off the end stays), the others stay. Where to go depends on where one is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oldlight import checks
from oldlight.model.mdp import TabularMDP
from oldlight.own_code import registered


@registered
def center_chain(
    p: float = 0.99, *, n_states: int = 20, n_actions: int = 5, horizon: int = 10, initial: ArrayLike | None = None
) -> TabularMDP:
    """The paper's chain: Env1 at p = 0.99, Env2 at p = 0.8. No delay and no loss costs anything.

    Parameters
    ----------
    p : float
        Probability that a move goes the intended way.
    n_states : int
        S, even.
    n_actions : int
        A ≥ 1.
    horizon : int
        H.
    initial : array_like, shape (S,), optional
        Distribution of the first state; uniform if None.

    Returns
    -------
    TabularMDP
        The process.

    Examples
    --------
    >>> import oldlight as ol
    >>> ol.instances.center_chain(0.8)
    TabularMDP(S=20, A=5, H=10, stationary)
    """
    S, A, R = _sizes(p, n_states, n_actions, least_actions=1)
    P = np.zeros((S, A, S))
    for s in range(S):
        inward = min(s + 1, S - 1) if s < S // 2 else s - 1
        outward = max(s - 1, 0) if s < S // 2 else min(s + 1, S - 1)
        for a in range(A):
            P[s, a, inward] += p if a == 0 else 1 - p
            P[s, a, outward] += 1 - p if a == 0 else p
    return TabularMDP(P, R, horizon=horizon, initial=initial)


@registered
def sensing_chain(
    p: float = 0.8, *, n_states: int = 20, n_actions: int = 5, horizon: int = 10, initial: ArrayLike | None = None
) -> TabularMDP:
    """The chain in which the best action depends on the state: right, left, stay, stay, stay.

    Parameters
    ----------
    p : float
        Probability that a move goes the intended way.
    n_states : int
        S, even.
    n_actions : int
        A ≥ 2.
    horizon : int
        H.
    initial : array_like, shape (S,), optional
        Distribution of the first state; uniform if None.

    Returns
    -------
    TabularMDP
        The process.

    Examples
    --------
    >>> import oldlight as ol
    >>> ol.instances.sensing_chain(0.8).actions
    ('right', 'left', 'stay 1', 'stay 2', 'stay 3')
    """
    S, A, R = _sizes(p, n_states, n_actions, least_actions=2)
    P = np.zeros((S, A, S))
    for s in range(S):
        right, left = min(s + 1, S - 1), max(s - 1, 0)
        P[s, 0, right] += p
        P[s, 0, left] += 1 - p
        P[s, 1, left] += p
        P[s, 1, right] += 1 - p
        P[s, 2:, s] = 1.0
    names = ["right", "left", *(f"stay {i}" for i in range(1, A - 1))]
    return TabularMDP(P, R, horizon=horizon, initial=initial, actions=names)


def _sizes(p: float, n_states: int, n_actions: int, least_actions: int) -> tuple[int, int, NDArray[np.float64]]:
    checks.probability("p", p)
    S = checks.whole("n_states", n_states, least=2)
    A = checks.whole("n_actions", n_actions, least=least_actions)
    if S % 2:
        raise ValueError(f"n_states is {S}, expected an even number: the two middle states carry the reward")
    R = np.zeros((S, A))
    R[[S // 2 - 1, S // 2]] = 1.0
    return S, A, R
