"""ICU-Sepsis: the treatment of sepsis, estimated from the records of real patients; the yardstick of planning at real size.

Choudhary, Gupta and Thomas, "ICU-Sepsis: A Benchmark MDP Built from Real Medical Data" (RLJ 2024); the data are in their package icu-sepsis
(MIT licence), of which one file is read: nothing of it is imported, so nothing that it needs has to be installed.
"""

from __future__ import annotations

from importlib import util
from pathlib import Path

import numpy as np

from oldlight import checks, files
from oldlight.model.mdp import TabularMDP
from oldlight.own_code import registered

DEATH = 713  # then survival, and the end after both
LEVELS = 5


@registered
def icu_sepsis(horizon: int = 20) -> TabularMDP:
    """ICU-Sepsis: 713 states of a patient, death, survival and an end; 5 × 5 doses of fluid and vasopressor; surviving earns 1.

    The rewards of the package, which depend on the next state, are averaged over it. Needs the data of the package icu-sepsis:
    ``pip install icu-sepsis --no-deps`` (with its dependencies it pulls an old gym).

    Parameters
    ----------
    horizon : int
        H.

    Returns
    -------
    TabularMDP
        S = 716, A = 25, stationary; the first state is drawn as in the package.

    Examples
    --------
    >>> import oldlight as ol
    >>> ol.instances.icu_sepsis()  # doctest: +SKIP
    TabularMDP(S=716, A=25, H=20, stationary)
    """
    H = checks.whole("horizon", horizon, least=1)
    spec = util.find_spec("icu_sepsis")  # says where the package is, and imports nothing
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(
            "icu_sepsis() reads the data of the package icu-sepsis, which is not installed: pip install 'oldlight[icu]', or, without what that "
            "package itself needs, pip install icu-sepsis --no-deps"
        )
    source = Path(spec.submodule_search_locations[0]) / "envs" / "assets" / "dynamics.npz"
    with files.arrays_in(source) as held:
        P = held.array("tx_mat", "f", (None, None, None))
        S, A = P.shape[:2]
        R = np.einsum("ijk,ijk->ij", P, held.array("r_mat", "f", (S, A, S)))
        initial = held.array("d_0", "f", (S,))
    states = [f"patient {s}" for s in range(DEATH)] + ["death", "survival", "end"]
    actions = [f"fluid {a // LEVELS}, vasopressor {a % LEVELS}" for a in range(A)]
    totals = P.sum(axis=-1, keepdims=True)  # the file's sums are off by up to 1e-15 or so
    return TabularMDP(P / totals, R, horizon=H, initial=initial / initial.sum(), states=states, actions=actions)
