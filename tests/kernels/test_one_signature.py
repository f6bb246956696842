"""Loops are compiled for one kind of array, whatever policy or law they are handed: each further kind costs seconds in every new environment."""

from __future__ import annotations

import numba
import numpy as np
import pytest

import oldlight as ol
from oldlight.arrays import action_type
from oldlight.planning.settling import _writable
from oldlight.simulation.world import World


@pytest.mark.parametrize("actions", [3, 300])
def test_the_tables_of_every_policy_are_one_kind_of_array(actions: int) -> None:
    H, S = 4, 5
    mdp = ol.TabularMDP(np.full((S, actions, S), 1 / S), np.zeros((S, actions)), horizon=H)
    late, lossy = World(ol.ImpairedMDP(mdp, "constant:1")), World(ol.ImpairedMDP(mdp, "loss:0.5"))
    assert late.layout is not None
    planned = np.full(late.layout.size, actions - 1, action_type(actions))
    players = (
        late.player(ol.MarkovPolicy(np.full((H, S), actions - 1), actions)),
        late.player(ol.TablePolicy(late.layout, planned)),
        late.player(ol.TablePolicy(late.layout, planned.astype(np.int64))),
        lossy.player(ol.BlackoutPolicy(np.full((H + 1, S, 1, H), actions - 1), actions)),
    )
    assert len({numba.typeof(player.rule()) for player in players}) == 1
    assert all(set(player.table.tolist()) == {actions - 1} for player in players)  # none was cut off


def test_a_law_that_cannot_be_written_is_handed_on_as_one_that_can() -> None:
    law = np.array([[0.25, 0.75]])
    assert _writable(law) is law
    law.setflags(write=False)
    assert numba.typeof(_writable(law)) == numba.typeof(np.zeros((1, 2)))
    assert _writable(law[:, ::-1]).tolist() == [[0.75, 0.25]]
