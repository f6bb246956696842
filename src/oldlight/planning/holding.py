"""A plant at a slower control period: every action is held for n of its steps, and only the steps at which one is chosen can be observed.

With T_h = P_h(·|·, a) and block k of the steps kn .. min((k+1)n, H) − 1, the held process has

    P̃_k(s'|s, a) = (T_{kn}·T_{kn+1}·..)(s, s'),      r̃_k(s, a) = Σ_j (T_{kn}·..·T_{kn+j−1} r_{kn+j}(·, a))(s)

so that its values are those of the plant itself over the same H steps: the last block is shorter where n does not divide H.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oldlight import checks
from oldlight.arrays import Floats
from oldlight.model.mdp import TabularMDP


def held(mdp: TabularMDP, n: int) -> TabularMDP:
    """`mdp` with every action held for n steps, ⌈H/n⌉ decisions in all; see the module's text.

    Parameters
    ----------
    mdp : TabularMDP
        The plant at its own steps.
    n : int
        Steps between two decisions, ≥ 1.

    Returns
    -------
    TabularMDP
        One step of it is n of the plant's.

    Examples
    --------
    >>> import oldlight as ol
    >>> from oldlight.planning.holding import held
    >>> held(ol.instances.sensing_chain(0.8), 3)  # 3 + 3 + 3 + 1 steps
    TabularMDP(S=20, A=5, H=4, per-step)
    """
    checks.whole("n", n, least=1)
    if n == 1:
        return mdp
    H = mdp.finite_horizon
    same: dict[str, Any] = {"initial": mdp.initial, "states": mdp.states, "actions": mdp.actions}
    if mdp.stationary and H % n == 0:
        P, R = _block(mdp, 0, n)
        return TabularMDP(P, R, horizon=H // n, truncation_error=mdp.truncation_error, **same)
    blocks = [_block(mdp, begin, min(begin + n, H)) for begin in range(0, H, n)]
    R = np.stack([reward for _, reward in blocks])
    P = [moves for moves, _ in blocks]
    return TabularMDP(P, R, horizon=len(blocks), truncation_error=mdp.truncation_error, **same)


def _block(mdp: TabularMDP, begin: int, end: int) -> tuple[Any, Floats]:
    """The transitions and rewards [s, a] of the steps begin..end−1 with one action held; a list of sparse matrices, one for each
    action, or an array [s, a, s2]."""
    A = mdp.n_actions
    P, R = [mdp.matrix(end - 1)[a::A] for a in range(A)], np.array(mdp.rewards[end - 1])
    for h in range(end - 2, begin - 1, -1):
        steps = [mdp.matrix(h)[a::A] for a in range(A)]
        P = [step @ after for step, after in zip(steps, P, strict=True)]
        R = mdp.rewards[h] + np.stack([step @ R[:, a] for a, step in enumerate(steps)], axis=1)
    P = [each / each.sum(axis=1)[:, None] for each in P]
    return (P if mdp.sparse else np.stack(P, axis=1)), R
