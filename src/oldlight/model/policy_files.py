"""Saved policies, read back with numpy alone."""

from __future__ import annotations

import os

import numpy as np

from oldlight import files
from oldlight.model.information import Layout
from oldlight.model.link_policy import KIND, LinkPolicy
from oldlight.model.policies import BlackoutPolicy, TablePolicy
from oldlight.model.stationary_policy import KIND as FOREVER
from oldlight.model.stationary_policy import StationaryPolicy
from oldlight.model.table_places import RENAMED_MEMBER, places


def load_policy(path: str | os.PathLike[str]) -> TablePolicy | BlackoutPolicy | LinkPolicy | StationaryPolicy:
    """Read a policy that `save` wrote.

    Parameters
    ----------
    path : path-like
        The npz file.

    Returns
    -------
    TablePolicy, BlackoutPolicy, LinkPolicy or StationaryPolicy
        The policy; a file that is damaged or of another kind is refused (`UnreadableFile`).

    Examples
    --------
    >>> import tempfile
    >>> import oldlight as ol
    >>> best = ol.solve(ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:1")).policy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ol.load_policy(best.save(f"{folder}/best.npz"))
    TablePolicy(901 information states)
    """
    with files.arrays_in(path) as held:
        kind = held.words("kind", 100)
        if kind == KIND:
            return LinkPolicy.read(held)
        if kind == FOREVER:
            return StationaryPolicy.read(held)
        if kind == "oldlight.BlackoutPolicy":
            n_actions, late = held.numbers("sizes", 2)
            return BlackoutPolicy(held.array("sequences", "iu", (None, None, None, None)), n_actions, late)
        if kind != "oldlight.TablePolicy":
            raise files.UnreadableFile(f"{path}: kind is {kind!r}, expected a saved oldlight policy")
        H, S, A = held.numbers("sizes", 3)
        offset = held.array("offset", "iu", (H, None, None)).astype(np.int64)
        root = held.array("root", "iu", (H,)).astype(np.int64)
        if "actions" in held:
            table = {"actions": held.array("actions", "iu", (None,))}
        else:
            name = RENAMED_MEMBER if RENAMED_MEMBER in held else "action_probabilities"
            table = {"action_probabilities": held.array(name, "f", (None, A))}
        size = len(next(iter(table.values())))
        for name, good in places(offset, root, S, A, size):
            if not good:
                raise ValueError(f"{name!r} does not fit a table of {size} information states")
        return TablePolicy(Layout(H, S, A, offset, root, size), **table)
