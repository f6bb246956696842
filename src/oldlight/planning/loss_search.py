"""The search behind losses alone, on arrays instead of a problem: for learners that plan for estimates and cap what they promise."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from oldlight.arrays import Floats
from oldlight.model.age_layers import Layers
from oldlight.model.channels import Loss
from oldlight.model.mdp import TabularMDP
from oldlight.planning.ages import AgeTables, Plant
from oldlight.planning.settling import SettledSearch


@lru_cache(maxsize=8)
def _layers(seen: tuple[float, ...], n_states: int, n_actions: int) -> Layers:
    """The same for every plan of a learner."""
    return Layers.of(Loss(seen=seen).automaton(len(seen)), n_states, n_actions, 0)


class LossSearch:
    """Every corner settled (`oldlight.planning.settling`), a seen state of step h counting as at most cap[h].

    P[h, s, a, s2] (as many steps as there are; the last one stands for all that follow), R[h, s, a], seen[h]: λ_h. Afterwards corner[0, h, s] and
    corner[1, h, s] are the bounds of a seen state, 0 after the end, above[h, s, a] upper bounds of its actions, slack the gap that is left at most, and
    seen has a 0 for the end. room: bytes that the search may take; it forgets what it cannot keep.
    """

    def __init__(self, P: Floats, R: Floats, seen: Floats, cap: Floats, room: int) -> None:
        H, self.S, self.A = R.shape
        self.H, self.P, self.R, self.seen = H, P, R, np.append(seen, 0.0)
        whole = P[0] if len(P) == 1 else P[np.minimum(np.arange(H), len(P) - 1)]
        mdp = TabularMDP(whole, R, horizon=H)
        del whole
        layers = _layers(tuple(seen.tolist()), self.S, self.A)
        tables = AgeTables(Plant(mdp), layers, True, True)
        self._search = SettledSearch(tables, room, cap=cap, forgets=True)
        self.slack = self._search.slack
        self.corner = np.stack([tables.lower, tables.upper]).reshape(2, H + 1, self.S)
        self.above = self._search.ceiling.reshape(H + 1, self.S, self.A)

    def visit(self, h: int, laws: Floats) -> Floats:
        """(lower, upper, action) where the law of s_h is laws[i]."""
        return self._search.laws(h, laws)
