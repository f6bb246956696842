"""Blocks of episodes: a learner that plays, counts, estimates and plans in compiled code does so for many episodes in one call.

The loop of `learners.loop` asks for a block of n episodes, with the random numbers that the same episodes would have one by one, and says whose policies
are wanted (those that are valued). It gets what each episode earned, where it began, the learner's estimate after it, and the policies. A block comes
back within `SECONDS`, so that values, progress, checkpoint and Ctrl-C have their turn; how many episodes that is, is found while running and changes
nothing in the result.

A learner takes part if it has `play_block`, and an `episodes_per_block` that is not 0. A subclass (or an object) with a `see`, `act` or `policy` of its own
is played one episode at a time, by its three methods.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight.learners.base import has_hook
from oldlight.model.policies import Policy
from oldlight.simulation import Draws

SECONDS = 0.05  # of a block; a block may take up to four times as long if its episodes become slower
ROOM = 2**25  # bytes for the policies of a block


@dataclass(frozen=True, eq=False)
class EpisodeBlock:
    """What n episodes leave.

    Parameters
    ----------
    returns, estimates : ndarray, shape (n,)
        What each earned, and the learner's estimate after it.
    starts : ndarray of int, shape (n,)
        The first state of each.
    which : ndarray of int, shape (n,)
        The number of its policy in `policies`, −1 where that was not wanted; it never decreases but for those.
    policies : list of Policy
        Each as often as it changed.
    """

    returns: NDArray[np.float64]
    starts: NDArray[np.int64]
    estimates: NDArray[np.float64]
    which: NDArray[np.int64]
    policies: list[Policy]


def plays_blocks(learner: Any) -> bool:
    """Are blocks of this learner the same as its three methods? Not if those were written anew, in a subclass, on the object or around it."""
    if not has_hook(learner, "play_block") or not learner.episodes_per_block:
        return False
    methods = ("see", "act", "policy")
    if any(name in vars(learner) for name in methods):
        return False
    order = type(learner).__mro__

    def owner(name: str) -> int:
        return next((i for i, c in enumerate(order) if name in vars(c)), len(order))

    if owner("play_block") == len(order):
        return False  # it stands for another learner, whose methods it passes on
    return all(owner(name) >= owner("play_block") for name in methods)


def played_block(block: Any, as_policy: Callable[[NDArray[Any]], Policy], before: Policy) -> EpisodeBlock:
    """What a compiled block leaves; as_policy: from a row of it. before: the policy of its first episode, the same object where it is one of those kept, since
    it may be valued already."""
    policies = [as_policy(row) for row in block.policies[: block.rows[0]]]
    if policies and not block.rows[1]:
        policies[0] = before
    return EpisodeBlock(block.returns, block.starts, block.estimates, block.which, policies)


def room_for(draws: Draws, first: int, wanted: NDArray[np.bool_], places: int, kind: np.dtype[Any]) -> Any:
    """The arrays of a block (`kernels.episode_blocks`): the episodes first, first + 1, .. of `draws`, and room for the wanted policies."""
    from oldlight.kernels import episode_blocks as kernels

    n, columns = len(wanted), slice(first, first + len(wanted))
    state, link, action, lost = (
        x[None] if x.shape[1] == 1 else np.ascontiguousarray(x[:, columns].T)[:, :, None]
        for x in (draws.state, draws.link, draws.action, draws.lost)
    )
    policies = np.empty((int(np.count_nonzero(wanted)), places), dtype=kind)
    whole = np.zeros((2, n), dtype=np.int64)
    earned = np.zeros((2, n))
    return kernels.Block(
        state, link, action, lost, wanted, earned[0], whole[0], earned[1], whole[1], policies, np.zeros(2, np.int64)
    )  # fmt: skip


def episodes_that_fit(places: int, kind: np.dtype[Any]) -> int:
    """How many policies of this many places a block may keep."""
    return max(1, ROOM // max(places * kind.itemsize, 1))
